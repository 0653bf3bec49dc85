"""`train.py --seeds` and `--vary`: the runs that they start, and `evaluate.py compare`, with which they end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muzero_jax.apps.commands import child, train
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.run.interrupt import Stopped
from muzero_jax.storage import run_directory
from tests.reference import told_runs
from tests.reference.pages import ROOT
from tests.reference.training import settled

TINY = ["--env", "hex", "--board-size", "5", "--frames", "8192"]
VARY = ["--vary", "optimiser.learning-rate", "1e-3", "2e-3"]


def tell(run_dir, seed=0, final=None):
    """A run of these flags in the folder, which has ended if it has a final score."""
    config = settled(*TINY, "--evaluation.parts", "6").config  # as for runs that are compared
    return told_runs.tell(run_dir, [0.2, 0.4], seed=seed, final=final, config=config)


def folder_of(words):
    return Path(words[words.index("--run-dir") + 1])


@pytest.fixture
def started(monkeypatch):
    """The commands that are started; each leaves a run with scores at once."""
    commands = []

    def wait(arguments):
        commands.append(arguments)
        run_dir = folder_of(arguments)
        if not run_dir.exists():
            tell(run_dir, int(arguments[arguments.index("--seed") + 1]), final=0.5)
        return 0

    monkeypatch.setattr(child, "wait", wait)
    return commands


def test_each_seed_is_a_run_with_the_same_flags_and_a_folder_of_its_own(started, tmp_path, capsys):
    assert train.main([*TINY, "--seeds", "3", "--seed", "4", "--run-dir", str(tmp_path / "study")]) == 0
    folders = [str(tmp_path / "study" / f"seed{seed}") for seed in (4, 5, 6)]
    assert started == [
        ["--evaluation.parts", "6", *TINY, "--seed", folder[-1], "--run-dir", folder] for folder in folders
    ]
    assert "study" in capsys.readouterr().out and (tmp_path / "study-compare.png").exists()


def test_each_value_is_a_run_with_a_folder_of_its_name_and_two_fields_vary_in_all_pairs(started, tmp_path):
    vary = ["--vary", "search.num_simulations", "8", "16", *VARY]
    assert train.main([*TINY, *vary, "--run-dir", str(tmp_path / "study")]) == 0
    pairs = [(number, rate) for number in ("8", "16") for rate in ("1e-3", "2e-3")]
    assert [folder_of(words).name for words in started] == [
        f"num-simulations-{number}-learning-rate-{rate}-seed0" for number, rate in pairs
    ]
    given = [dict(zip(words[:-1], words[1:], strict=True)) for words in started]
    assert [(flags["--search.num-simulations"], flags["--optimiser.learning-rate"]) for flags in given] == pairs


def test_a_switch_varies_between_true_and_false(started, tmp_path):
    vary = ["--vary", "replay.symmetries", "true", "false"]
    assert train.main([*TINY, *vary, "--run-dir", str(tmp_path / "study")]) == 0
    assert [folder_of(words).name for words in started] == ["symmetries-true-seed0", "symmetries-false-seed0"]
    assert ["--replay.no-symmetries" in words for words in started] == [False, True]


# --- resuming, and beginning again ------------------------------------------------------------------------------------


def test_resume_skips_ended_runs_continues_the_rest_and_starts_the_missing(started, tmp_path):
    tell(tmp_path / "seed0", final=0.5)
    tell(tmp_path / "seed1", 1)
    command = [*TINY, "--seeds", "3", "--run-dir", str(tmp_path), "--resume"]
    assert train.main(command) == 0
    assert [("--resume-if-any" in words, folder_of(words).name) for words in started] == [
        (True, "seed1"),
        (False, "seed2"),
    ]
    command[5], command[-1] = "16384", "--resume-if-any"  # a larger budget continues all ended runs
    assert train.main(command) == 0 and [words[-1] for words in started[2:]] == ["--resume-if-any"] * 3


def test_overwrite_deletes_no_run_while_a_process_trains_in_one(started, tmp_path, capsys):
    for seed in (0, 1):
        tell(tmp_path / f"seed{seed}", seed, final=0.3)
    words = [*TINY, "--seeds", "2", "--run-dir", str(tmp_path), "--overwrite"]
    with run_directory.locked(tmp_path / "seed1"):
        assert report_errors(train.main, words) == 2
    assert f"another process is training in {tmp_path / 'seed1'}" in capsys.readouterr().err and not started
    assert [run_directory.has_ended(tmp_path / f"seed{seed}") for seed in (0, 1)] == [True, True]
    assert train.main(words) == 0 and len(started) == 2


# --- a run as a process -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number, status, says",
    [(signal.SIGINT, 130, ""), (signal.SIGTERM, 0, "no other begins\n")],  # a run that saved ends with 0 by SIGTERM
)
def test_a_signal_stops_the_child_run_which_is_waited_for(tmp_path, number, status, says):
    """A real child that takes its time to end. Ctrl-C reaches both; SIGTERM is passed on, and no other run begins."""
    run = tmp_path / "train.py"
    run.write_text(
        "import signal, sys, time\ndef stop(number, frame):\n    time.sleep(0.5); sys.exit(int(sys.argv[1]))\n"
        "for number in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(number, stop)\n"
        "print('ready', flush=True)\ntime.sleep(30)\nsys.exit(1)\n"
    )
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\nfrom muzero_jax.apps.commands import child\n"
        "child.COMMAND = sys.argv[2:]\n"
        "try:\n    sys.exit(child.wait([]))\nexcept child.Stopped:\n    print('no other begins')"
    )
    words = [sys.executable, "-c", program, str(ROOT), str(run), str(status)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        os.killpg(parent.pid, number) if number == signal.SIGINT else os.kill(parent.pid, number)
        assert parent.stdout.read() == says
    assert parent.returncode == status


def test_a_run_imports_nothing_that_lies_in_the_current_folder(tmp_path, monkeypatch):
    for name in ("random.py", "muzero_jax.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep)
    assert child.wait(["--env", "none-such"]) == 2 and not (tmp_path / "mark").exists()


def test_seeds_that_are_stopped_are_not_compared_and_say_how_to_continue(monkeypatch, tmp_path, capsys):
    def wait(words):
        tell(tmp_path / "seed0")
        raise Stopped

    monkeypatch.setattr(child, "wait", wait)
    assert train.main([*TINY, "--seeds", "3", "--run-dir", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "stopped at seed 0; continue with the same command and --resume" in output and "Final" not in output
