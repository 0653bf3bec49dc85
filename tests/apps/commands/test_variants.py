"""`train.py --seeds` and `--vary`: the runs that they start, and `evaluate.py compare`, with which they end."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from muzero_jax.apps import start
from muzero_jax.apps.commands import child, evaluate, train
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.apps.study import together
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.run import Result
from muzero_jax.storage import run_directory
from tests.reference import told_runs
from tests.reference.training import settled

ROOT = Path(__file__).parents[3]
TINY = ["--env", "hex", "--board-size", "5", "--frames", "8192"]


ENDED = Result({}, interrupted=False)


def asked():
    """The config that these flags mean, for runs that are compared."""
    return settled(*TINY, "--evaluation.parts", "6").config


def given(words):
    """The folder's name, and the values of the flags of a started run."""
    flags = dict(zip(words[:-1], words[1:], strict=True))
    return Path(flags["--run-dir"]).name, flags


@pytest.fixture
def started(monkeypatch):
    """The commands that are started; each tells of scores at once."""
    commands = []

    def wait(arguments):
        commands.append(arguments)
        run_dir = Path(arguments[arguments.index("--run-dir") + 1])
        seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else 0
        if not run_dir.exists():
            told_runs.tell(run_dir, [0.2, 0.4], seed=seed, final=0.5, config=asked())
        return 0

    monkeypatch.setattr(child, "wait", wait)
    return commands


def test_each_seed_is_a_run_with_the_same_flags_and_a_folder_of_its_own(started, tmp_path, capsys):
    assert train.main([*TINY, "--seeds", "3", "--seed", "4", "--run-dir", str(tmp_path / "study")]) == 0
    folders = [str(tmp_path / "study" / f"seed{seed}") for seed in (4, 5, 6)]
    assert started == [
        ["--evaluation.parts", "6", *TINY, "--seed", folder[-1], "--run-dir", folder] for folder in folders
    ]
    assert "study" in capsys.readouterr().out
    assert (tmp_path / "study-compare.png").exists()


def test_without_a_folder_each_lies_where_it_would_alone(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train.main([*TINY, "--seeds=2", "--model", "rules"]) == 0
    assert [words[words.index("--run-dir") + 1] for words in started] == [f"runs/hex-5-rules-seed{k}" for k in (0, 1)]


def test_resume_leaves_what_has_ended_goes_on_with_the_rest_and_begins_what_is_missing(started, tmp_path):
    told_runs.tell(tmp_path / "seed0", [0.3], final=0.5, config=asked())
    told_runs.tell(tmp_path / "seed1", [0.3], seed=1, config=asked())
    command = [*TINY, "--seeds", "3", "--run-dir", str(tmp_path), "--resume"]
    assert train.main(command) == 0
    assert [("--resume-if-any" in words, given(words)[0]) for words in started] == [(True, "seed1"), (False, "seed2")]


def test_resume_if_any_begins_all_runs_and_then_goes_on_with_them(started, tmp_path):
    command = [*TINY, "--seeds", "2", "--run-dir", str(tmp_path / "study"), "--resume-if-any"]
    assert train.main(command) == 0 and "--resume-if-any" not in started[0] + started[1]
    for seed in (0, 1):
        (tmp_path / "study" / f"seed{seed}" / "summary.json").unlink()  # both were stopped
    assert train.main(command) == 0 and [words[-1] for words in started[2:]] == ["--resume-if-any"] * 2


def test_runs_that_began_with_anothers_config_go_on_with_the_same_command(started, tmp_path):
    source = told_runs.tell(tmp_path / "source", [0.3], config=asked()) / "config.json"
    told_runs.tell(tmp_path / "study" / "seed0", [0.3], config=asked())
    command = ["--config", str(source), *TINY[-2:], "--seeds", "2", "--run-dir", str(tmp_path / "study"), "--resume"]
    assert train.main(command) == 0
    assert settled(*started[0]).session.resume and given(started[0])[0] == "seed0"


def test_resume_with_a_larger_budget_goes_on_with_runs_that_have_ended(started, tmp_path):
    told_runs.tell(tmp_path / "seed0", [0.3], final=0.5, config=asked())
    told_runs.tell(tmp_path / "seed1", [0.3], seed=1, final=0.5, config=asked())
    train.main([*TINY[:-1], "16384", "--seeds", "2", "--run-dir", str(tmp_path), "--resume"])
    assert [words[-1] for words in started] == ["--resume-if-any"] * 2


def test_overwrite_deletes_nothing_while_another_process_trains_in_any_of_the_folders(started, tmp_path, capsys):
    for seed in (0, 1, 2):
        told_runs.tell(tmp_path / f"seed{seed}", [0.3], seed=seed, config=asked())
    before = sorted(path for path in tmp_path.rglob("*") if path.name != run_directory.LOCK)
    words = [*TINY, "--seeds", "3", "--run-dir", str(tmp_path), "--overwrite"]
    with run_directory.locked(tmp_path / "seed2"):
        assert report_errors(train.main, words) == 2
    error = capsys.readouterr().err
    assert f"another process is training in {tmp_path / 'seed2'}; wait until" in error and error.count("\n") == 1
    assert sorted(path for path in tmp_path.rglob("*") if path.name != run_directory.LOCK) == before and not started
    assert train.main(words) == 0 and len(started) == 3  # the locks were given back


VARY = ["--vary", "optimiser.learning-rate", "1e-3", "2e-3"]


def test_each_value_is_a_run_for_each_seed_with_a_folder_of_its_name(started, tmp_path):
    assert train.main([*TINY, *VARY, "--seeds", "2", "--run-dir", str(tmp_path)]) == 0
    folders = [f"learning-rate-{rate}-seed{seed}" for rate in ("1e-3", "2e-3") for seed in (0, 1)]
    assert [given(words)[0] for words in started] == folders
    assert [given(words)[1]["--optimiser.learning-rate"] for words in started] == ["1e-3", "1e-3", "2e-3", "2e-3"]


def test_files_go_by_their_stems(started, tmp_path):
    files = [str(tmp_path / name) for name in ("mine.py", "other.py")]
    for file in files:
        Path(file).write_text("def change(algorithm, config): ...\n")
    assert train.main([*TINY, "--vary", "algorithm", *files, "--run-dir", str(tmp_path / "study")]) == 0
    assert [given(words)[0] for words in started] == ["file-mine-seed0", "file-other-seed0"]
    assert [given(words)[1]["--algorithm.file"] for words in started] == files


def test_two_fields_vary_in_all_pairs(started, tmp_path):
    words = ["--vary", "search.num_simulations", "8", "16", *VARY]
    assert train.main([*TINY, *words, "--run-dir", str(tmp_path)]) == 0
    names = [Path(words[words.index("--run-dir") + 1]).name for words in started]
    assert names[1] == "num-simulations-8-learning-rate-2e-3-seed0" and len(names) == 4


@pytest.fixture
def trained(monkeypatch):
    """The groups that are trained as one program."""
    groups = []

    def train_all(runs, session, mesh, say):
        groups.append([(run.name, run.config.optimiser.learning_rate) for run in runs])
        for run in runs if not session.resume else []:
            told_runs.tell(run.folder, [0.2], seed=run.config.seed, final=0.5, config=run.config)
        return [ENDED for _ in runs]

    monkeypatch.setattr(together, "train", train_all)
    ready = SimpleNamespace(mesh=None)
    monkeypatch.setattr(start, "prepare", lambda *_, **__: nullcontext(ready))
    return groups


def test_seeds_and_numbers_are_trained_as_one_program(trained, tmp_path):
    assert train.main([*TINY, *VARY, "--seeds", "2", "--together", "--run-dir", str(tmp_path)]) == 0
    assert trained == [[(f"learning-rate-{rate} seed {seed}", float(rate)) for rate in VARY[2:] for seed in (0, 1)]]


def test_what_changes_the_program_takes_several_and_says_why(trained, tmp_path, capsys):
    words = [*VARY, "--vary", "network.width", "16", "32", "--together"]
    assert train.main([*TINY, *words, "--run-dir", str(tmp_path)]) == 0
    assert [[name for name, _ in group] for group in trained] == [
        [f"learning-rate-{rate} width-{width} seed 0" for rate in VARY[2:]] for width in (16, 32)
    ]
    assert "network.width changes what is compiled, or the matches: 2 programs" in capsys.readouterr().out


def test_seeds_that_join_are_a_program_of_their_own_because_the_others_go_on_from_a_checkpoint(
    trained, tmp_path, monkeypatch, capsys
):
    resumes, train_all = [], together.train

    def noted(runs, session, *others):
        resumes.append(session.resume)
        return train_all(runs, session, *others)

    monkeypatch.setattr(together, "train", noted)
    for seed in (0, 1):
        told_runs.tell(tmp_path / f"seed{seed}", [0.3], seed=seed, config=asked())
    words = ["--seeds", "3", "--together", "--resume", "--run-dir", str(tmp_path)]
    assert train.main([*TINY, *words]) == 0
    assert [[name for name, _ in group] for group in trained] == [["seed 0", "seed 1"], ["seed 2"]]
    assert resumes == [True, False] and "2 programs, one after another" in capsys.readouterr().out


def test_one_that_fails_is_named_and_the_others_are_kept(trained, tmp_path, monkeypatch, capsys):
    ends = [ENDED, ValueError("it diverged")]
    monkeypatch.setattr(together, "train", lambda *_: ends)
    assert train.main([*TINY, "--seeds", "2", "--together", "--run-dir", str(tmp_path)]) == 2
    assert "error: seed 1: it diverged" in capsys.readouterr().err


def waiting(tmp_path, on_signal):
    """A process that waits for a run, which answers signals with this code; leads a group of processes of its own."""
    child = tmp_path / "train.py"
    child.write_text(
        f"import signal, sys, time\nheard = []\ndef stop(signum, frame):\n    {on_signal}\n"
        "for signum in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(signum, stop)\n"
        "print('ready', flush=True)\ntime.sleep(30)\n"
    )
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\nfrom muzero_jax.apps.commands import child\n"
        "child.COMMAND = [sys.argv[2]]\n"
        "try:\n    sys.exit(child.wait([]))\nexcept child.Stopped:\n    print('no other begins')"
    )
    words = [sys.executable, "-c", program, str(ROOT), str(child)]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True, text=True)
    assert parent.stdout.readline() == "ready\n"
    return parent


def test_ctrl_c_is_left_to_the_run_which_is_waited_for(tmp_path):
    """A real child that takes its time to end when Ctrl-C reaches both."""
    with waiting(tmp_path, "time.sleep(0.5); sys.exit(130)") as parent:
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.wait(timeout=20) == 130


def test_sigterm_is_passed_on_to_the_run_and_no_other_begins(tmp_path):
    """A run that saves ends with 0, as one does whose budget is spent."""
    with waiting(tmp_path, "time.sleep(0.5); sys.exit(0)") as parent:
        os.kill(parent.pid, signal.SIGTERM)
        assert parent.stdout.read() == "no other begins\n"
    assert parent.returncode == 0


def test_seeds_that_are_stopped_are_not_compared_and_say_how_to_go_on(monkeypatch, tmp_path, capsys):
    begun = []

    def wait(words):
        begun.append(words)
        told_runs.tell(tmp_path / "seed0", [0.3], config=asked())
        raise Stopped

    monkeypatch.setattr(child, "wait", wait)
    assert train.main([*TINY, "--seeds", "3", "--run-dir", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "stopped at seed 0; continue with the same command and --resume" in output and len(begun) == 1
    assert "Final scores" not in output


def test_a_run_that_fails_ends_them_all(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(child, "wait", lambda arguments: 130)
    assert train.main([*TINY, "--seeds", "3", "--run-dir", str(tmp_path)]) == 130
    assert "stopped at seed 0; continue with the same command\n" in capsys.readouterr().out, "nothing was begun"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--seeds", "2", "--autotune"], "--autotune may find other sizes for each seed"),
        (["--seeds", "2", "--search.num-simulations", "0"], "--search.num-simulations is 0"),
        (["--seeds", "0"], "seeds"),
        (["--vary"], "--vary FIELD names no values"),
        (["--vary", "optimiser.learning-rate"], "--vary optimiser.learning-rate names no values"),
        (["--vary", "optimiser.learning-rat", "1e-3"], "did you mean --optimiser.learning-rate?"),
        (["--vary", "optimiser.batch-size", "8", "0"], "--optimiser.batch-size is 0"),
        (["--vary", "optimiser.batch-size", "8", "8"], "give each value once"),
        (["--vary", "algorithm.file", "none.py"], "there is no file"),
        (["--seeds", "2", "--run-dir", ""], "--run-dir is ''"),
        (["--vary", "seed", "1", "2"], "--seeds N trains N seeds"),
        (["--together"], "add --seeds N or --vary"),
        (["--seeds", "2", "--together", "--profile"], "leave them out with --together"),
        (["--seeds", "2", "--resume", "--overwrite"], "give one of them"),
        (["--seeds", "2", "--resume", "--run-dir", "/no/such/runs"], "there is no run to resume"),
    ],
)
def test_what_cannot_be_is_one_sentence_before_anything_is_trained(started, flags, sentence, capsys):
    assert report_errors(train.main, [*TINY, *flags]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1 and not started


def test_resume_with_other_flags_is_refused(started, tmp_path, capsys):
    told_runs.tell(tmp_path / "seed0", [0.3], final=0.5, config=asked())
    words = [*TINY, "--seeds", "2", "--run-dir", str(tmp_path), "--resume", "--search.policy", "puct"]
    assert report_errors(train.main, words) == 2
    assert "was trained with other flags" in capsys.readouterr().err and not started


def test_overwrite_deletes_nothing_before_the_first_weights_were_looked_at(started, tmp_path, capsys):
    told_runs.tell(tmp_path / "seed0", [0.3])
    words = [*TINY, "--seeds", "2", "--run-dir", str(tmp_path), "--overwrite", "--init-from"]
    assert report_errors(train.main, [*words, "agent:none_such"]) == 2
    assert "there is no agent 'none_such'" in capsys.readouterr().err
    assert report_errors(train.main, [*words, str(tmp_path / "seed0")]) == 2
    assert "--overwrite would delete" in capsys.readouterr().err
    assert run_directory.holds_run(tmp_path / "seed0") and not started


def test_a_run_imports_nothing_that_lies_in_the_current_folder(tmp_path, monkeypatch):
    for name in ("random.py", "muzero_jax.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep)
    assert child.wait(["--env", "none-such"]) == 2
    assert not (tmp_path / "mark").exists()


def test_compare_prints_a_table_or_json_and_draws(tmp_path, capsys):
    runs = [str(told_runs.tell(tmp_path / f"a-seed{k}", [0.1, 0.2], seed=k, final=0.5)) for k in range(2)]
    assert evaluate.main(["compare", *runs, "--plot", str(tmp_path / "a.png")]) == 0
    assert "50.0%" in capsys.readouterr().out and (tmp_path / "a.png").stat().st_size > 5000
    assert evaluate.main(["compare", *runs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"]["mcts:1000"]["mean"] == 0.5


def test_runs_of_two_games_are_not_compared_and_one_without_scores_is_named(tmp_path, capsys):
    run_dir = told_runs.tell(tmp_path / "a-seed0", [0.1, 0.2])
    silent = told_runs.tell(tmp_path / "silent", [])
    assert evaluate.main(["compare", str(run_dir), str(silent)]) == 0
    assert f"left out, because they have no scores yet: {silent}" in capsys.readouterr().err
    game = replace(told_runs.HEX, env="tic_tac_toe", board_size=None)
    other = told_runs.tell(tmp_path / "other", [0.1], config=game)
    assert report_errors(evaluate.main, ["compare", str(run_dir), str(other)]) == 2
    assert f"and {other} tic_tac_toe; compare runs of one game" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["no/run"], "no/run"),
        (["{run}", "--plot", "a.txt"], "must end in .png"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(tmp_path, flags, sentence, capsys):
    run_dir = told_runs.tell(tmp_path / "a-seed0", [0.1])
    assert report_errors(evaluate.main, ["compare", *(flag.format(run=run_dir) for flag in flags)]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
