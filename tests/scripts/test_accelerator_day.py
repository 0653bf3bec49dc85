"""`scripts/accelerator_day.py`: parts share the minutes, and the folder tells after each what became of it."""

import json
import sys

import pytest

from muzero_jax.apps.commands.command_line import report_errors
from scripts import accelerator_day as day
from scripts.accelerator_day import Done
from tests.apps.commands.test_shown_commands import complaint


@pytest.fixture
def told(monkeypatch):
    """What was asked of `run`, which takes a second of a clock of its own for each."""
    asked, clock = [], [0.0]

    def run(part, folder, seconds):
        asked.append((part.name, seconds))
        clock[0] += 1.0
        return Done(part.name, "ended", 1.0, "7 frames/s")

    monkeypatch.setattr(day, "run", run)
    monkeypatch.setattr(day.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(day, "describe_device", lambda: ("Tesla T4", False))
    return asked


def test_the_minutes_are_shared_and_what_is_left_over_is_given_on(told, tmp_path):
    assert day.main(["--out", str(tmp_path / "day"), "--minutes", "25"]) == 0
    names, seconds = zip(*told, strict=True)
    assert names == tuple(part.name for part in day.parts(9))
    shares = [part.share for part in day.parts(9)]
    assert seconds[0] == pytest.approx((25 * 60 - day.ENDING) * shares[0] / sum(shares))
    assert seconds[-1] == pytest.approx(25 * 60 - day.ENDING - (len(names) - 1))
    assert 700 < dict(told)["training"] < 900


def test_a_part_without_time_is_left_out_and_the_table_says_so(told, tmp_path):
    assert day.main(["--out", str(tmp_path / "day"), "--minutes", "1"]) == 0
    table = (tmp_path / "day/README.md").read_text()
    assert [name for name, _ in told] == ["search against mctx"]  # of 40 s a second is gone then
    assert (
        "| search against mctx | ended | 1 | 7 frames/s |" in table
        and "| training | left out: too little time | 0 | |" in table
    )


def test_every_part_is_a_command_with_flags_that_exist():
    commands = {part.name: f"{part.script} {part.flags}" for part in day.parts(9)}
    assert {name: complaint(command) for name, command in commands.items() if complaint(command)} == {}


def test_a_part_that_takes_too_long_is_ended_and_one_that_fails_is_named(tmp_path):
    log = tmp_path / "part.txt"
    assert day.attempt([sys.executable, "-c", "import time; time.sleep(60)"], log, 0.5) == "stopped"
    assert (
        day.attempt([sys.executable, "-c", "import sys; print('so'); sys.exit(3)"], log, 20) == "failed with status 3"
    )
    assert log.read_text() == "so\n"


def test_a_trainings_figures_are_those_of_chunks_that_learned(tmp_path):
    run_dir = tmp_path / "training"
    run_dir.mkdir()
    rows = [(0.0, 9000.0), (5.0, 100.0), (5.0, 300.0), (5.0, 200.0)]
    lines = [{"train/updates_per_second": u, "selfplay/frames_per_second": f} for u, f in rows]
    (run_dir / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run_dir / "summary.json").write_text(json.dumps({"strength": {"random": {"score": 0.75}}}))
    part = next(part for part in day.parts(5) if part.name == "training")
    assert day.found(part, run_dir) == "200 frames/s, 75% against random"
    (tmp_path / "ended early").mkdir()
    assert day.found(part, tmp_path / "never") == day.found(part, tmp_path / "ended early") == ""


def test_a_part_that_was_ended_before_it_measured_has_a_sentence_and_costs_no_other(tmp_path):
    """A training that was ended while it compiled leaves a folder without metrics, or a line that is half written."""
    part = next(part for part in day.parts(5) if part.name == "games x 4")
    run_dir = tmp_path / day.file_name(part)
    run_dir.mkdir()
    assert day.tell(part, run_dir) == "nothing measured; see games-x-4.txt"
    (run_dir / "metrics.jsonl").write_text('{"train/updates_per_sec')
    assert day.tell(part, run_dir) == "what it wrote cannot be read (JSONDecodeError); see games-x-4.txt"


def test_a_rehearsal_plays_fewer_games():
    real, rehearsed = (day.choose(("games x 4",), rehearse=rehearse)[0].flags for rehearse in (False, True))
    assert f"num-envs {4 * day.GAMES} " in real and f"num-envs {4 * day.REHEARSED} " in rehearsed


def test_what_the_preview_allows_stands_beside_the_same_sizes():
    """The preset for a T4 has 2,048 games and the search without loops."""
    by_name = {part.name: part for part in day.parts(9)}
    sizes = day.page.read()["Hex 5x5, T4"]["sizes"]
    assert day.at_best(by_name["loop_free, games x 16"], "Tesla T4") == f"{sizes[1]['frames_per_second']:,.0f}"
    assert day.at_best(by_name["games x 16"], "Tesla T4") == day.at_best(by_name["loop_free"], "AMD EPYC") == ""
    training = day.page.read()["Hex 9x9, H100"]["sizes"][0]
    assert day.at_best(by_name["training"], "NVIDIA H100") == f"{training['frames_per_second']:,.0f}"


@pytest.mark.parametrize("flags", [["--only", "everything"], ["--minutes", "0"], []])
def test_what_cannot_be_done_is_one_sentence(told, tmp_path, flags, capsys):
    out = tmp_path / "day" if flags else tmp_path
    assert report_errors(day.main, ["--out", str(out), *flags]) == 2
    assert capsys.readouterr().err.count("error: ") == 1 and not told
