"""What a person sees of a run: lines in a file, a table that remembers on a terminal."""

import io
import sys

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


def test_without_a_terminal_a_record_is_a_line(monkeypatch):
    """With the time left at the pace so far; a single-player game has its return beside random play's."""
    monkeypatch.setattr(display, "LINE_SECONDS", 0.0)
    lines = []
    with ProgressDisplay(lines.append) as shown:
        shown.update(RECORD, spent=0.3)
        shown.update({"iteration": 1608, "time/minutes": 61.0}, spent=1.0)
        shown.update({"iteration": 1610, "selfplay/mean_return": 0.7512, "selfplay/random_return": 0.375})
    assert lines == [
        "iteration 1,600 | games 12,288 | frames/s 8,912 | simulations/s 2.14M | updates/s 35.2 | "
        "loss total 1.500, policy 1.250 | score against random 98%, mcts:100 50% | opening-value accuracy 96% | "
        "Elo +312 | time 1:30, 3:30 left",
        "iteration 1,608 | time 1:01:00, 0:00 left",
        "iteration 1,610 | return 0.751 (self-play), 0.375 (random play) | time 0:00",
    ]


def test_a_loss_that_jumps_is_marked_and_the_usual_noise_is_not(monkeypatch):
    monkeypatch.setattr(display, "LINE_SECONDS", 0.0)
    lines = []
    with ProgressDisplay(lines.append) as shown:
        for loss in (0.90, 1.0, 0.91, 1.33, 0.92):
            shown.update({"iteration": 740, "time/minutes": 1.0, "train/loss": loss})
    assert ["JUMPED by 46%" in line for line in lines] == [False, False, False, True, False]


def test_on_a_terminal_progress_is_a_table_that_remembers_evaluations_and_is_drawn_seldom(monkeypatch):
    terminal, now = io.StringIO(), [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    with ProgressDisplay() as shown:
        shown.update(RECORD)
        terminal.truncate(0)
        now[0] = 0.4
        shown.update({"iteration": 1608, "time/minutes": 2.0})
        assert "1,608" not in terminal.getvalue()
    assert "1,608" in terminal.getvalue() and "random 98%" in terminal.getvalue()
