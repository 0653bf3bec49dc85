"""What a person sees of a run: lines in a file, a table that remembers on a terminal."""

import io
import sys

import pytest

from muzero_jax.run import display
from muzero_jax.run.display import ProgressDisplay

RECORD = {
    "iteration": 1600,
    "total/games": 12288.0,
    "selfplay/frames_per_second": 8912.4,
    "selfplay/simulations_per_second": 2142400.0,
    "train/updates_per_second": 35.25,
    "train/loss": 1.5,
    "train/policy_loss": 1.25,
    "eval/random": 0.984,
    "eval/mcts:100": 0.5,
    "eval/openings_right": 0.96,
    "eval/elo": 312.4,
    "time/minutes": 1.5,
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def every_record(monkeypatch):
    monkeypatch.setattr(display, "LINE_SECONDS", 0.0)


def test_away_from_a_terminal_progress_is_one_line_per_record(every_record):
    lines = []
    with ProgressDisplay(5.0, say=lines.append) as shown:
        shown.update(RECORD)
        shown.update({"iteration": 1608, "time/minutes": 61.0})
    first, second = lines
    assert first == (
        "iteration 1,600 | games 12,288 | frames/s 8,912 | simulations/s 2.14M | updates/s 35.2 | "
        "loss total 1.500, policy 1.250 | score against random 98%, mcts:100 50% | opening-value accuracy 96% | "
        "Elo +312 | time 1:30, 3:30 left"
    )
    assert second == "iteration 1,608 | time 1:01:00, 0:00 left"


def test_a_game_for_one_shows_its_return_beside_random_play(every_record):
    lines = []
    with ProgressDisplay(None, say=lines.append) as shown:
        shown.update({"iteration": 8, "selfplay/mean_return": 0.7512, "selfplay/random_return": 0.375})
    assert lines == ["iteration 8 | return 0.751 (self-play), 0.375 (random play) | time 0:00"]


def test_away_from_a_terminal_lines_are_seconds_apart_unless_one_tells_an_evaluation(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    lines = []
    with ProgressDisplay(5.0, say=lines.append) as shown:
        for seconds in range(8):
            now[0] = seconds
            score = {"eval/random": 0.5} if seconds == 3 else {}
            shown.update({"iteration": seconds, "time/minutes": 0.0} | score)
            now[0] += 0.1
            shown.update({"iteration": 10 + seconds, "time/minutes": 0.0})
        now[0] = 8.1
        shown.update({"iteration": 20, "time/minutes": 0.0})
        shown.update({"iteration": 21, "time/minutes": 0.0})
    told = [line.split(" | ")[0] for line in lines]
    assert told == ["iteration 0", "iteration 3", "iteration 20", "iteration 21"]  # the last one always


def test_the_time_left_is_that_of_whichever_limit_comes_first(every_record):
    lines = []
    with ProgressDisplay(5.0, 2400, say=lines.append) as shown:
        shown.update({"iteration": 0, "time/minutes": 0.5})  # no pace yet
        shown.update({"iteration": 1600, "time/minutes": 2.0})  # 800 iterations at 800 a minute
        shown.update({"iteration": 2408, "time/minutes": 3.0})  # whole chunks may go past the limit
        shown.update({"iteration": 1600, "time/minutes": 4.5})
    assert [line.split(", ")[1] for line in lines] == [
        "4:30 left",
        "1:00 left",
        "0:00 left",
        "0:30 left",
    ]


def test_a_loss_that_jumps_is_marked_and_the_usual_noise_is_not(every_record):
    lines = []
    with ProgressDisplay(None, say=lines.append) as shown:
        for loss in (0.90, 1.0, 0.91, 1.33, 0.92):
            shown.update({"iteration": 740, "time/minutes": 1.0, "train/loss": loss})
    marks = ["JUMPED" in line for line in lines]
    assert marks == [False, False, False, True, False]
    assert "total 1.330  JUMPED by 46%" in lines[3]
    assert lines[0].endswith("time 1:00")  # nobody knows how much is left


def test_on_a_terminal_progress_is_a_table_that_remembers_rare_evaluations(monkeypatch):
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    with ProgressDisplay(5.0) as shown:
        shown.update(RECORD)
        terminal.truncate(0)
        shown.update({"iteration": 1608, "time/minutes": 2.0})
    assert "1,608" in terminal.getvalue() and "random 98%" in terminal.getvalue()


def test_who_takes_the_lines_himself_gets_no_table_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    lines = []
    with ProgressDisplay(5.0, say=lines.append) as shown:
        shown.update(RECORD)
    assert len(lines) == 1 and terminal.getvalue() == ""


def test_the_table_is_drawn_seldom_but_at_the_end_always(monkeypatch):
    seconds = iter([10.0, 10.0, 10.1, 10.4, 10.6, 10.6, 10.7, 10.7])  # asked at each record, and after each drawing
    monkeypatch.setattr(display.time, "monotonic", lambda: next(seconds))
    drawn = []
    monkeypatch.setattr(sys, "stdout", Terminal())
    with display.ProgressDisplay(5.0) as table:
        monkeypatch.setattr(table._live, "update", lambda grid, refresh: drawn.append(list(grid.columns[1].cells)[0]))
        for iteration in (1, 2, 3, 4, 5):
            table.update({"iteration": iteration, "time/minutes": 1.0})
    assert drawn == ["1", "4", "5"]


def test_a_line_of_an_evaluation_says_all_that_is_known_of_its_iteration(every_record):
    """Its record comes after the chunk's own; what an earlier iteration said is not said again."""
    lines = []
    with ProgressDisplay(None, say=lines.append) as shown:
        shown.update({"iteration": 6, "time/minutes": 0.0, "eval/random": 0.25})
        shown.update({"iteration": 8, "time/minutes": 0.0, "train/loss": 1.5})
        shown.update({"iteration": 8, "time/minutes": 1.0, "eval/random": 0.5})
    assert lines[1:] == [
        "iteration 8 | loss total 1.500 | time 0:00",
        "iteration 8 | loss total 1.500 | score against random 50% | time 1:00",
    ]
