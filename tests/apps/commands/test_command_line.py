"""What a user types and reads: flags; a mistake gives one error line that names it, and status 2."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands import entry, evaluate, parser, play, start_jax, train, tune
from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED, report_errors
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.fields import fields_of
from muzero_jax.config.session import Session
from muzero_jax.ops import precision
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.run import Result
from tests.reference import engines, tiny_run, told_runs, training
from tests.reference.pages import ROOT
from tests.reference.training import settled

TINY = ["--env", "tic_tac_toe", *training.TINY]
HEX = ["--env", "hex", "--board-size", "5", "--frames", "8192"]
WINDOWS = "--devices 2 --targets.unroll-steps 2 --targets.td-steps 4 --optimiser.batch-size 8"
COMMANDS = {"train": train, "tune": tune, "evaluate": evaluate, "play": play}


@pytest.fixture
def run(capsys):
    """Runs a command in this process: (exit status, standard output, standard error)."""

    def call(command, *arguments):
        try:
            status = report_errors(COMMANDS[command].main, [str(argument) for argument in arguments])
        except SystemExit as end:  # help
            status = end.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def ended(monkeypatch):
    """Replaces training: `ended(outcome)` lets the next runs return a result or raise an exception."""

    def end(outcome, saves=False):
        def trained(run, *_):
            if saves:
                config_file.save(run.config, run.folder)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(start, "train", trained)

    return end


STOPPED = Result({}, interrupted=True)


def assert_one_sentence(outcome, part):
    status, _, error = outcome
    last = error.splitlines()[-1]
    assert status == EXIT_ERROR and last.startswith("error: ") and "Traceback" not in error, error
    assert part in last, last


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def places(saved_run, tmp_path, monkeypatch):
    """The words in capitals of `MISTAKES`; commands run in an empty folder."""
    (tmp_path / "games.txt").write_text("a1 a2 b1 b2 c1\n")
    told_runs.tell(tmp_path / "hex" / "seed0", [0.2, 0.4], final=0.5, config=settled(*HEX).config)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    words = {"RUN": saved_run, "TOLD": tmp_path / "hex", "GAMES": tmp_path / "games.txt", "NEW": tmp_path / "new"}
    return words | {"TINY": " ".join(TINY), "HEX": " ".join(HEX), "OFFLINE": f"--offline {saved_run} {WINDOWS}"}


MISTAKES = {
    "train --env hex --search.num-simulation 4": "mean --search.num-simulations?",
    "train --env hex --minutes soon": "--minutes is soon",
    "train TINY --run-dir NEW --optimiser.batch-size 7": (
        "--optimiser.batch-size 7 cannot be shared evenly by 2 devices; use 6 or 8"
    ),
    "train TINY --run-dir RUN": "--overwrite",
    "train --resume --run-dir NEW": "no run",
    "train HEX --vary seed 1 2": "--seeds N",
    "train HEX --seeds 2 --resume --run-dir TOLD --search.policy puct": "was trained with other flags",
    f"train --offline GAMES {WINDOWS}": "add --env NAME",
    f"train --offline RUN/checkpoints {WINDOWS}": "is a part of a run",
    "train OFFLINE --env hex --board-size 3": "--env tic_tac_toe, not hex",
    "tune --env hex --board-size 4": "all trials get equally many frames",
    "tune HEX --vary network.width": "network.width has no range",
    "tune HEX --vary env a.py b.py": "--vary env",
    "tune HEX --study RUN": "holds no study",
    "tune HEX --vary optimiser.learning-rate 1e-2:1e-4": "must be the smaller one",
    "tune HEX --vary optimiser.learning-rate 1e-4:1e-2 5e-2": "not both",
    "tune HEX --vary replay.symmetries maybe": "true and false",
    "train TINY --algorithm": "--algorithm.files needs a value",
    "train TINY --network.kind mlp --network.canonical": "no effect with --network.kind mlp",
    "evaluate compare": "RUNS is missing",
    "evaluate mtach --run RUN": "match, returns",
    "evaluate match --run RUN:greedy": "also says how it plays",
    "evaluate tournament RUN": "two players or more",
    "evaluate tournament RUN RUN/": "twice",
    "evaluate tournament random mcts:5": "at least one run",
    "evaluate oracle --run RUN --player gtp:true": "plays only matches",
    "evaluate oracle --run RUN --budgets 4 --num-simulations 4": "not both",
    "evaluate compare RUN": "no scores of",
    "evaluate compare TOLD/seed0 --plot a.txt": "must end in .png",
    "play --run RUN --web --port 70000": "--port is 70000",
    "play --run RUN --colour green": "--colour",
    "play --run RUN --board-size 5": "leave --board-size out",
    "play --run RUN/nothing": "config.json",
    "play": "--agent NAME (2048, animal_shogi,",
    "play --run RUN --agent hex_5x5": "--run and --agent",
    "play --run RUN --tree none/tree.svg": "cannot write --tree",
    "play --run RUN --tree x.svg --moves z9": "--moves: z9 is move 1",
    "play --run RUN --moves a1": "--moves is for --tree and --film",
    "play --run RUN --web --colour x": "--colour is for the terminal",
    "play --run RUN --web --time-per-move 2": "choice of simulations",
    "play --run RUN --tree x.svg --web": "choose one of --engine, --web, --tree and --film",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gives_one_error_line_and_makes_nothing(run, places, ended, line):
    ended(AssertionError("too late"))
    command, *words = re.sub(r"\b[A-Z]{3,}\b", lambda word: str(places.get(word[0], word[0])), line).split()
    assert_one_sentence(run(command, *words), MISTAKES[line])
    assert list(Path.cwd().iterdir()) == [] and not places["NEW"].exists()


def test_missing_packages_give_the_command_that_installs_them():
    command = [sys.executable, "-I", "-S", str(ROOT / "experiments" / "train.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert_one_sentence((done.returncode, done.stdout, done.stderr), "lacks jax")
    assert "[tune]" in entry.lacking("optuna")


# --- the entry --------------------------------------------------------------------------------------------------------


def test_the_devices_are_chosen_before_pgx_is_imported():
    code = (
        "import sys, jax; from muzero_jax.apps.commands import start_jax; "
        "start_jax.choose('train', ['--devices', '3']); "
        "assert jax.device_count() == 3 and not {'pgx', 'rich', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_programs_own_build_function_reaches_evaluate_and_play(monkeypatch, capsys, saved_run):
    def build(config):
        raise ValueError(f"my own {config.env}")

    monkeypatch.setattr(start_jax, "choose", lambda *arguments: None)
    for line in ("evaluate match --run", "evaluate tournament random", "evaluate oracle --run", "play --run"):
        command, *words = line.split()
        assert entry.start(command, [*words, str(saved_run)], build) == EXIT_ERROR
        assert "my own tic_tac_toe" in capsys.readouterr().err


# --- train ------------------------------------------------------------------------------------------------------------


def test_help_shows_the_common_flags_and_help_all_the_presets_defaults(run):
    status, output, _ = run("train", "--env", "connect_four", "--help")
    wanted = "--env --seeds --vary --self-play.exploration --evaluation.interval-minutes --lr --resume".split()
    assert status == 0 and [flag for flag in wanted if flag not in output] == []
    _, everything, _ = run("train", "--env", "connect_four", "--help-all")
    defaults = presets.connect_four()
    for flag, value in {"--targets.td-steps INT": defaults.targets.td_steps, "--tensorboard": "on"}.items():
        assert re.search(rf"^{flag}\n(    .*\n)* .*\[{value}\]$", everything, re.MULTILINE), flag


def test_another_budget_replaces_the_presets_minutes():
    for given, minutes in (("--frames 5", None), ("--updates 7 --minutes 9", 9.0), ("", 4.0)):
        assert settled("--env", "tic_tac_toe", *given.split()).config.minutes == minutes


def test_a_run_begins_with_four_lines_and_then_says_how_to_resume_and_to_play(run, tmp_path, ended, monkeypatch):
    ended(STOPPED)
    monkeypatch.setattr(precision, "has_amx", lambda: False)
    status, output, _ = run("train", *TINY, "--run-dir", tmp_path / "run", "--minutes", 3)
    assert status == EXIT_INTERRUPTED
    assert [line.split()[0] for line in output.splitlines()[:4]] == ["game", "device", "budget", "directory"]
    assert f"experiments/train.py --run-dir {tmp_path / 'run'} --resume --devices 2 --no-tensorboard\n" in output
    assert f"experiments/play.py --run {tmp_path / 'run'} --web\n" in output


@pytest.mark.parametrize(
    "outcome, saves, status",
    [
        (STOPPED, True, EXIT_INTERRUPTED),
        (KeyboardInterrupt(), True, EXIT_INTERRUPTED),  # a second Ctrl-C
        (KeyboardInterrupt(), False, EXIT_INTERRUPTED),
        (STOPPED._replace(by_system=True), True, 0),
        (Stopped(), True, 0),
    ],
)
def test_a_run_that_is_stopped_names_the_command_that_resumes_what_is_saved(
    run, tmp_path, ended, outcome, saves, status
):
    """If the system stopped it, the status is 0."""
    ended(outcome, saves)
    found, output, _ = run("train", *TINY, "--run-dir", tmp_path / "run")
    assert found == status and ("--resume" in output) == saves


def test_resuming_takes_everything_from_the_saved_config_except_the_flags(saved_run, tmp_path, monkeypatch, capsys):
    found = settled("--resume", "--run-dir", saved_run, "--minutes", 9, "--no-tensorboard")
    assert found.config == replace(tiny_run.CONFIG, minutes=9.0)
    assert found.session == Session(run_dir=str(saved_run), resume=True, tensorboard=False)
    shutil.copytree(saved_run, tmp_path / "runs" / "tic_tac_toe-seed3")
    monkeypatch.chdir(tmp_path)
    assert settled("--env", "tic_tac_toe", "--resume").session.run_dir == "runs/tic_tac_toe-seed3"
    assert capsys.readouterr().out == "continuing runs/tic_tac_toe-seed3\n"


# --- evaluate ---------------------------------------------------------------------------------------------------------


def test_a_match_as_json_is_one_object(run, saved_run):
    arguments = ["--run", saved_run, "--opponent", "sampled:2", "--games", 8, "--num-simulations", 2, "--json"]
    status, output, progress = run("evaluate", "match", *arguments)
    result = json.loads(output)
    assert status == 0 and progress.startswith("compiling the match (")
    assert result["wins"] + result["draws"] + result["losses"] == result["games"] == 8 >= result["distinct_games"]
    low, high = result["ci95"]
    assert 0 <= low <= result["score"] == (result["wins"] + result["draws"] / 2) / 8 <= high <= 1
    assert (result["iteration"], result["opponent"], result["illegal_actions"]) == (6, "sampled:2", 0)
    assert (result["run"], result["player"]) == (str(saved_run), "agent (2 simulations)")


def test_a_match_with_another_program_is_a_match_whose_games_are_kept(run, saved_run, tmp_path):
    """Against the scripted engine; Ctrl-C and failures are tested in `test_engine_matches.py`."""
    engine, folder = engines.name("gtp"), tmp_path / "games"
    arguments = ["--run", saved_run, "--opponent", engine, "--sgf", folder]
    status, output, _ = run("evaluate", "match", *arguments, "--games", 4, "--num-simulations", 2, "--json")
    result = json.loads(output)
    assert status == 0 and (result["games"], result["opponent"], result["engine"]) == (4, engine, "Fake 1.0")
    assert len(list(folder.glob("*.sgf"))) == 4
    assert_one_sentence(run("evaluate", "match", *arguments), f"--sgf {folder} is not empty")


# --- flags ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, given",
    [
        ("--minutes=3", {"minutes": "3"}),
        ("--self_play.num_envs 4", {"self_play.num_envs": "4"}),
        ("--no-tensorboard --replay.no-symmetries", {"tensorboard": False, "replay.symmetries": False}),
        ("--evaluation.mcts-simulations 1 2", {"evaluation.mcts_simulations": ["1", "2"]}),
        ("--network.options a=1 --network.options b=2", {"network.options": ["a=1", "b=2"]}),
        ("--vary a 1 2 --vary b 3", {"vary": [["a", "1", "2"], ["b", "3"]]}),
        ("--lr 1e-3 --network net.py", {"optimiser.learning_rate": "1e-3", "network.file": "net.py"}),
        ("--seed 1 --seed 2", {"seed": "2"}),
        ("--optimiser.weight-decay -1", {"optimiser.weight_decay": "-1"}),
        ("-h", {parser.HELP: True}),
    ],
)
def test_a_command_line_is_split_into_fields_and_their_texts(line, given):
    assert parser.split(line.split(), Config, Session) == given


def test_flags_that_are_written_back_parse_to_the_same_fields():
    for field in fields_of(Config):
        text = {bool: False}.get(field.kind, ["1", "2"] if str(field.kind).startswith("tuple") else "text")
        assert parser.split(parser.typed_again({field.name: text}), Config) == {field.name: text}
