"""What a user types and reads: every mistake is one sentence that says what to do, exit status 2 and no traceback."""

import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import tyro

import muzero_jax
from muzero_jax import presets
from muzero_jax.apps.commands import evaluate, play, requirements, train, train_flags, tune
from muzero_jax.apps.commands import evaluate_flags as flags
from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED, report_errors
from muzero_jax.apps.commands.train_flags import Command
from muzero_jax.games import catalogue
from muzero_jax.ops import devices, precision
from muzero_jax.run import autotune, charts, compilation_cache, runner
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.runner import Result
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.validation import validate
from tests.reference import engines, gamble, tiny_run

ROOT = Path(__file__).parents[3]
TINY = (
    "--env tic_tac_toe --devices 2 --network.width 16 --search.num-simulations 4 --self-play.num-envs 8 "
    "--self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 --targets.unroll-steps 2 "
    "--targets.td-steps 4 --optimiser.batch-size 8 --optimiser.updates-per-iteration 2"
).split()


@pytest.fixture(autouse=True)
def no_compilation_cache(monkeypatch):
    """The user's folder stays as it is."""
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)


@pytest.fixture
def run(capsys):
    """Runs a command in this process: (exit status, standard output, standard error)."""

    def call(command, *arguments):
        try:
            status = report_errors(command.main, [str(argument) for argument in arguments])
        except SystemExit as error:  # tyro's and argparse's way out
            status = error.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def words(text):
    """The text without the box that tyro draws and the line breaks that it needs."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def assert_one_sentence(outcome, *parts):
    status, _, error = outcome
    assert status == EXIT_ERROR
    assert error.startswith("error: ") and error.count("\n") == 1, error
    for part in parts:
        assert part in error


# --- train: mistakes --------------------------------------------------------------------------------------------------


def test_an_unknown_game_is_answered_with_the_nearest_one(run):
    assert_one_sentence(run(train, "--env", "tictactoe"), "tictactoe", "did you mean 'tic_tac_toe'", "connect_four")


def test_a_game_of_pgx_that_is_not_supported_yet_is_told_apart_from_a_typo(run):
    assert_one_sentence(run(train, "--env", "kuhn_poker"), "'kuhn_poker'", "not supported yet", "choose one of")


@pytest.mark.parametrize("size", [-3, 0, 1, 20, 40])
def test_a_board_that_is_too_small_or_too_large_is_refused(run, size):
    assert_one_sentence(run(train, "--env", "hex", "--board-size", size), str(size))


def test_a_board_size_for_a_game_that_has_one_size_is_refused(run):
    assert_one_sentence(run(train, "--env", "tic_tac_toe", "--board-size", 4), "board size", "tic_tac_toe")


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("--search.num-simulation", "--search.num-simulations"),
        ("--lr=0.1", "--optimiser.learning-rate"),
        ("--sims", "--search.num-simulations"),
        ("--width", "--network.width"),
        ("--iterations", "--max-iterations"),
        ("--batch_size", "--optimiser.batch-size"),
        ("--num-simulations", "--search.num-simulations"),
        ("--optimizer.learning-rate", "--optimiser.learning-rate"),
        ("--no-tensorbord", "--no-tensorboard"),
    ],
)
def test_an_unknown_flag_is_answered_with_the_one_that_was_meant(run, typed, meant):
    outcome = run(train, "--env", "tic_tac_toe", typed, "4")
    assert_one_sentence(
        outcome, f"no flag {typed.split('=')[0].replace('_', '-')} (did you mean {meant}?)", "--help-all"
    )


def test_every_way_to_write_a_flag_is_known():
    default = Command(presets.tic_tac_toe(), Session())
    known = (
        "--minutes=3 --self_play.num_envs 4 --no-tensorboard --replay.no-symmetries --evaluation.mcts-simulations 1 2"
    )
    train_flags.check_names(known.split(), default)
    for switch in (flag.name for flag in train_flags.all_flags(default) if not flag.value):
        off = train_flags._negated(switch)
        train_flags.check_names([off], default)
        tyro.cli(Command, default=default, args=[off])
    assert tyro.cli(Command, default=default, args=known.split()).config.replay.symmetries is False


@pytest.mark.parametrize(
    "command, arguments, sentence",
    [
        (train, "--env tic_tac_toe --minutes soon", "--minutes takes FLOAT, not 'soon'"),
        (train, "--env tic_tac_toe --search.policy alpha", "invalid choice 'alpha' for argument '--search.policy'"),
        (tune, "--trials few", "--trials takes INT, not 'few'"),
        (evaluate, "match --run", "missing value for argument '--run'"),
        (evaluate, "match --run x --gmes 8", "unrecognized options: --gmes, 8 (did you mean --games?)"),
        (evaluate, "exhaustive --run x --games 8", "options: --games (applied to"),
        (evaluate, "mtach --run x", "(available subcommands: match, returns, tournament, oracle, fidelity, exhaustive"),
        (evaluate, "match --games 4", "missing from "),
        (evaluate, "--games 4", "--run is missing"),
        (play, "--run x --web 8000", "unrecognized options: 8000"),
    ],
)
def test_what_a_flag_does_not_take_is_one_sentence(run, command, arguments, sentence):
    assert_one_sentence(run(command, *arguments.split()), sentence)


@pytest.mark.parametrize(
    "flag, value, sentence",
    [
        ("--optimiser.batch-size", 7, "batch size 7 isn't divisible by 2 devices; use --optimiser.batch-size 6 or 8"),
        ("--self-play.num-envs", 9, "num envs 9 isn't divisible by 2 devices; use --self-play.num-envs 8 or 10"),
        ("--replay.replay-length", 30, "--replay.replay-length 30 must be a multiple of"),
        ("--search.num-simulations", 0, "--search.num-simulations is 0, but must be positive"),
        ("--seed", 10**20, "--seed is 100000000000000000000, but must lie between 0 and 2^32 - 1"),
        ("--devices", 99, "--devices 99 is too many"),
        ("--devices", 0, "--devices is 0"),
        ("--autotune-minutes", 0, "--autotune-minutes is 0.0, but must be positive"),
    ],
)
def test_sizes_that_make_no_run_are_refused_before_anything_is_compiled(run, tmp_path, flag, value, sentence):
    assert_one_sentence(run(train, *TINY, "--run-dir", tmp_path / "run", flag, value), sentence)
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_not_touched(run, saved_run):
    before = sorted(path.name for path in saved_run.rglob("*"))
    outcome = run(train, *TINY, "--run-dir", saved_run)
    assert_one_sentence(outcome, "holds a run already", "--resume", "--overwrite")
    assert sorted(path.name for path in saved_run.rglob("*")) == before


def test_a_folder_that_cannot_be_used_is_refused_before_minutes_go_into_autotune(run, saved_run, tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "tune", lambda *arguments, **keywords: pytest.fail("too early"))
    assert_one_sentence(run(train, *TINY, "--autotune", "--run-dir", saved_run), "holds a run already")


def test_there_must_be_a_run_to_resume(run, tmp_path):
    assert_one_sentence(run(train, "--resume", "--run-dir", tmp_path / "nothing"), "no run", "nothing")


def test_a_folder_that_cannot_be_made_is_refused(run, tmp_path):
    """Root may write anywhere, so a file stands in for the read-only folder."""
    (tmp_path / "file").write_text("")
    assert_one_sentence(run(train, *TINY, "--run-dir", tmp_path / "file" / "run"), "--run-dir")


def test_a_read_only_folder_is_refused(run, tmp_path, monkeypatch):
    def refuse(self, *arguments, **keywords):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(run_directory.Path, "mkdir", refuse)
    assert_one_sentence(run(train, *TINY, "--run-dir", tmp_path / "run"), "Permission denied", "--run-dir")


@pytest.mark.slow
def test_a_run_that_does_not_fit_in_memory_names_the_flag_to_lower(run, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "available_memory_bytes", lambda num_devices=1: 1024)
    outcome = run(train, *TINY, "--run-dir", tmp_path / "run")
    assert_one_sentence(outcome, "memory", "lower --")
    assert "replay" in outcome[1] and "program" in outcome[1]
    run_directory.check(tmp_path / "run")  # the next try may have the folder


# --- train: what it says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env, defaults", [("tic_tac_toe", presets.tic_tac_toe()), ("connect_four", presets.connect_four())]
)
def test_help_shows_the_presets_own_defaults(run, env, defaults):
    status, output, _ = run(train, "--env", env, "--help-all")
    assert status == 0
    for flag, value in {
        "--minutes FLOAT": defaults.minutes,
        "--seed INT": 0,
        "--network.width INT": defaults.network.width,
        "--targets.td-steps INT": defaults.targets.td_steps,
        "--optimiser.reward-weight FLOAT": defaults.optimiser.reward_weight,
        "--tensorboard": "on",
    }.items():
        assert re.search(rf"^{re.escape(flag)}\n(    .*\n)* .*\[{re.escape(str(value))}\]$", output, re.MULTILINE), flag


def test_help_shows_the_few_that_most_need_and_how_to_see_the_others(run):
    status, output, _ = run(train, "--env", "tic_tac_toe", "--help")
    shown = re.findall(r"^(--\S+).*\n    ", output, re.MULTILINE)
    assert status == 0 and shown == train_flags.MOST_NEEDED and len(shown) <= 21
    rest = len(train_flags.all_flags(Command(presets.tic_tac_toe(), Session()))) - len(shown)
    assert f"--help-all shows the other {rest}." in output and "--GROUP.no-FLAG" in output


def test_every_flag_has_a_sentence_and_every_line_fits_a_terminal(run):
    flags = train_flags.all_flags(Command(presets.tic_tac_toe(), Session()))
    assert [flag.name for flag in flags if not flag.sentence] == []
    _, output, _ = run(train, "--env", "tic_tac_toe", "--help-all")
    assert max(map(len, output.splitlines())) <= 104
    torn = [flag.name for flag in flags if flag.sentence not in words(output)]
    assert torn == []


def test_importing_the_command_starts_nothing():
    """pgx starts JAX when it is imported, and then the processor's cores can no longer become devices."""
    code = "import sys, muzero_jax.apps.commands.train; print({'pgx', 'rich', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_a_run_begins_with_five_lines(run, tmp_path, monkeypatch):
    """The fifth, of the memory, once the program is compiled."""
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: Result({}, interrupted=True))
    monkeypatch.setattr(precision, "has_amx", lambda: False)
    _, output, _ = run(train, *TINY, "--run-dir", tmp_path / "run", "--minutes", 3)
    lines = output.splitlines()[:4]
    assert lines[0] == "game        Tic-tac-toe" and lines[3] == f"directory   {tmp_path / 'run'}"
    assert lines[1].startswith("device      2 CPU devices") and "float32" in lines[1]
    assert lines[2] == "budget      3 minutes; compiling and the final matches come on top"
    _, output, _ = run(train, *TINY, "--run-dir", tmp_path / "run", "--verbose")
    assert "num_simulations=4" in output


def test_a_run_on_a_large_board_that_begins_with_nothing_is_advised_to_begin_on_a_smaller_one(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: Result({}, interrupted=True))

    def advised(name, *arguments):
        return "\nadvice" in run(train, "--env", "hex", "--run-dir", tmp_path / name, *arguments)[1]

    assert advised("large", "--board-size", 9)
    assert not advised("small", "--board-size", 7, "--network.kind", "fully_convolutional")
    assert not advised("begun", "--board-size", 9, "--init-from", "agent:hex")
    assert not advised("dense", "--board-size", 9, "--network.kind", "mlp")


def test_devices_that_cannot_share_the_games_are_not_left_out_in_silence(run, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: Result({}, interrupted=True))
    monkeypatch.setattr(devices, "configure_devices", lambda *arguments: 2)
    _, output, _ = run(train, "--env", "tic_tac_toe", "--run-dir", tmp_path, "--self-play.num-envs", 7)
    assert "using 1 of 2 devices" in output and "--self-play.num-envs 8 --optimiser.batch-size" in output


@pytest.mark.parametrize(
    "flag, value, made_with",
    [
        ("--self-play.rollout-length", 8, 4),
        ("--targets.discount", 0.9, 1.0),
        ("--network.width", 32, 16),
        ("--replay.replay-length", 64, 32),
        ("--self-play.num-envs", 16, 8),
        ("--model", "rules", "learned"),
        ("--self-play.full-search-share", 0.5, 1.0),
        ("--optimiser.consistency-weight", 1.0, 0.0),
        ("--optimiser.name", "muon", "adamw"),
    ],
)
def test_what_a_checkpoint_was_made_with_cannot_change_and_is_refused_at_once(
    run, saved_run, monkeypatch, flag, value, made_with
):
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: pytest.fail("too late"))
    outcome = run(train, "--resume", "--run-dir", saved_run, flag, value)
    assert_one_sentence(outcome, f"made with {flag} {made_with}, so it cannot go on with {value}; leave {flag} out")


@pytest.mark.parametrize("flag", ["--updates", "--frames", "--seed", "--board-size", "--devices", "--max-iterations"])
def test_a_number_that_is_none_is_one_sentence(run, flag):
    assert_one_sentence(run(train, flag, "1e6"), flag, "'1e6' is not a whole number; write all its digits")


def test_a_run_without_any_budget_is_refused(run):
    assert_one_sentence(run(train, *TINY, "--minutes", "None"), "no budget and would never end; give --minutes")


def test_a_second_ctrl_c_still_names_the_command_that_resumes(run, tmp_path, monkeypatch):
    def interrupted(config, session, run_dir, *others, **evaluator):
        configs.save(config, run_dir)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train", interrupted)
    status, output, _ = run(train, *TINY, "--run-dir", tmp_path / "run")
    assert status == EXIT_INTERRUPTED and f"--run-dir {tmp_path / 'run'} --resume" in output
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: (_ for _ in ()).throw(KeyboardInterrupt))
    status, output, error = run(train, *TINY, "--run-dir", tmp_path / "other")
    assert status == EXIT_INTERRUPTED and "--resume" not in output and "the same command begins again" in error


def test_the_agent_of_a_game_for_one_is_asked_and_not_played(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: Result({}, interrupted=True))
    own = tiny_run.algorithm()._replace(environment=gamble.GAMBLE)
    train.main([*TINY, "--run-dir", str(tmp_path / "run")], lambda config: own)
    output = capsys.readouterr().out
    assert "play.py" not in output
    _, _, code = shlex.split(output.splitlines()[-1].removeprefix("ask:"))
    loaded = []
    asked = SimpleNamespace(environment=gamble.GAMBLE, analyse=lambda state: "an answer")
    monkeypatch.setattr(muzero_jax, "load", lambda run: loaded.append(run) or asked, raising=False)
    exec(code)
    assert loaded == [str(tmp_path / "run")] and capsys.readouterr().out == "an answer\n"


def test_ctrl_c_before_a_run_is_overwritten_does_not_offer_to_resume_the_old_one(run, saved_run, tmp_path, monkeypatch):
    shutil.copytree(saved_run, tmp_path / "run")
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: (_ for _ in ()).throw(KeyboardInterrupt))
    status, output, error = run(train, *TINY, "--overwrite", "--run-dir", tmp_path / "run")
    assert status == EXIT_INTERRUPTED and "--resume" not in output and "the same command begins again" in error


def test_another_budget_replaces_the_presets_minutes():
    for given, minutes in (("--frames 5", None), ("--updates 7", None), ("--updates 7 --minutes 9", 4.0), ("", 4.0)):
        default, _ = train.choose_default(["--env", "tic_tac_toe", *given.split()])
        assert default.config.minutes == minutes


def test_a_finished_run_says_that_nothing_is_left_and_stops(run, saved_run, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: pytest.fail("too late"))
    shutil.copytree(saved_run, tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text('{"finished": true, "iteration": 6}')
    outcome = run(train, "--resume", "--run-dir", tmp_path / "run", "--max-iterations", 6)
    assert_one_sentence(outcome, "nothing is left of 6 iterations; give --max-iterations 12 to go on")


def test_an_interrupted_run_prints_the_command_that_resumes_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: Result({}, interrupted=True))
    monkeypatch.setattr(precision, "has_amx", lambda: False)
    status, output, _ = run(train, *TINY, "--run-dir", tmp_path / "run")
    assert status == EXIT_INTERRUPTED == 130
    assert f"{sys.executable} experiments/train.py --run-dir {tmp_path / 'run'} --resume --devices 2\n" in output
    assert f"experiments/play.py --run {tmp_path / 'run'} --web\n" in output


def test_a_run_that_a_system_stopped_has_succeeded_and_says_how_to_go_on(run, tmp_path, monkeypatch):
    """And so has one that was in its final matches."""

    def stopped(config, session, run_dir, *others, **evaluator):
        configs.save(config, run_dir)
        raise Stopped

    monkeypatch.setattr(runner, "train", lambda *arguments, **evaluator: Result({}, interrupted=True, by_system=True))
    status, output, _ = run(train, *TINY, "--run-dir", tmp_path / "run")
    assert status == 0 and f"--run-dir {tmp_path / 'run'} --resume" in output
    monkeypatch.setattr(runner, "train", stopped)
    status, output, _ = run(train, *TINY, "--run-dir", tmp_path / "other")
    assert status == 0 and f"--run-dir {tmp_path / 'other'} --resume" in output


def test_resuming_takes_everything_from_the_saved_config(run, saved_run, monkeypatch):
    """But for the flags given now."""
    seen = []
    monkeypatch.setattr(
        runner, "train", lambda *arguments, **evaluator: seen.append(arguments[:2]) or Result({}, interrupted=True)
    )
    run(train, "--resume", "--run-dir", saved_run, "--minutes", 9, "--no-tensorboard")
    session = Session(run_dir=str(saved_run), resume=True, tensorboard=False)
    assert seen == [(replace(tiny_run.CONFIG, minutes=9.0), session)]


def test_a_resumed_run_keeps_its_seed(run, saved_run):
    assert_one_sentence(run(train, "--resume", "--run-dir", saved_run, "--seed", 1), "made with --seed 0")


def test_a_run_can_be_resumed_by_its_game(saved_run, tmp_path, monkeypatch, capsys):
    shutil.copytree(saved_run, tmp_path / "runs" / "tic_tac_toe-seed3")
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(devices, "configure_devices", lambda *arguments: asked.append(arguments) or 2)
    default, _ = train.choose_default("--env tic_tac_toe --resume --devices 2 --device cpu".split())
    assert default == (tiny_run.CONFIG, Session(run_dir="runs/tic_tac_toe-seed3"))
    assert asked == [(2, "cpu")]
    assert capsys.readouterr().out == "going on with runs/tic_tac_toe-seed3\n"


def test_a_profiled_run_keeps_a_gpus_kernels_apart_before_jax_starts(monkeypatch):
    seen = []
    monkeypatch.setattr(devices, "configure_devices", lambda *arguments: seen.append(os.environ["XLA_FLAGS"]) or 2)
    monkeypatch.setenv("XLA_FLAGS", "")
    train.choose_default("--env tic_tac_toe".split())
    train.choose_default("--env tic_tac_toe --profile".split())
    assert seen == ["", "--xla_gpu_enable_command_buffer="]


def test_hex_without_a_size_says_which_it_chose_and_why(capsys):
    config = presets.preset("hex", None)
    assert config.board_size == 5
    assert "5x5" in capsys.readouterr().out


def test_every_game_has_a_preset_that_makes_a_run():
    for env in catalogue.GAMES:
        assert validate(presets.preset(env, None)).env == env
    for size in (2, 3, 5, 11, 19):
        assert validate(presets.preset("hex", size)).board_size == size


# --- evaluate ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_match(monkeypatch):
    """What was asked of a match that is not played."""
    asked = []

    def play(command, mesh, build):
        asked.append(command)
        return {"wins": 3, "draws": 1, "score": 0.875}, None

    monkeypatch.setitem(evaluate.COMMANDS, flags.Match, play)
    return asked


def test_a_match_as_json_is_one_object(run, saved_run):
    """By the flags of before there were commands, which outside programs call."""
    status, output, progress = run(
        evaluate, "--run", saved_run, "--opponent", "random", "--games", 8, "--num-simulations", 2, "--json"
    )
    assert status == 0
    (line,) = output.splitlines()
    result = json.loads(line)
    assert result["wins"] + result["draws"] + result["losses"] == result["games"] == 8 >= result["distinct_games"]
    assert result["score"] == (result["wins"] + result["draws"] / 2) / 8
    low, high = result["ci95"]
    assert 0 <= low <= result["score"] <= high <= 1
    assert (result["iteration"], result["opponent"], result["illegal_actions"]) == (6, "random", 0)
    assert (result["run"], result["player"]) == (str(saved_run), "agent (2 simulations)")
    compiling, compiled, note = progress.splitlines()
    assert compiling.startswith("compiling the match (") and re.fullmatch(
        r"compiled in [0-9.]+ s; playing \.\.\.", compiled
    )
    assert note.startswith("note: ")


def test_a_match_shows_how_many_games_are_finished(run, saved_run, monkeypatch):
    """Tic-tac-toe after two random moves lasts up to 7: at least one look at the games lies on the way."""
    monkeypatch.setattr(evaluate, "make_progress_report", partial(evaluate.make_progress_report, interval=0.0))
    status, output, progress = run(evaluate, "match", "--run", saved_run, "--games", 8, "--num-simulations", 2)
    assert status == 0 and "games finished" not in output
    assert re.search(r"^0 of 8 games finished$", progress, re.MULTILINE)
    title, columns, row, _, *rest = output.splitlines()
    assert title.startswith("Strength (colours balanced")
    assert columns.split("  ")[0] == "opponent" and columns.endswith("won / drawn / lost  distinct games")
    assert re.match(r"random +[0-9.]+% +[0-9.]+% to [0-9.]+% +\d / \d / \d +\d$", row)
    names = [line.split()[0] for line in rest]
    assert {"run", "iteration", "player", "mean_length", "illegal_actions"} <= set(names)


def test_progress_is_said_every_few_seconds_after_a_first_line(capsys, monkeypatch):
    now = iter([0.0, 0.1, 6.0, 6.1, 12.0])
    monkeypatch.setattr(evaluate.time, "monotonic", lambda: next(now))
    report = evaluate.make_progress_report("matches played", "compiling ...")
    for played in range(4):
        report(played, 4)
    assert capsys.readouterr().err == "compiling ...\n1 of 4 matches played\n3 of 4 matches played\n"


def test_a_result_without_a_table_of_its_own_is_a_line_a_field(run, fake_match):
    assert run(evaluate, "match", "--run", "x") == (0, " wins  3\ndraws  1\nscore  0.875\n", "")


def test_old_flags_work_with_a_note_that_names_the_command(run, fake_match):
    status, output, error = run(evaluate, "--run", "x", "--opponent", "mcts:9", "--games", 4, "--seed", 3)
    assert status == 0 and output.splitlines()[0].split() == ["wins", "3"]
    assert error.startswith("note: ") and "`evaluate.py match`" in error and error.count("\n") == 1
    assert fake_match == [flags.Match(run=Path("x"), opponent="mcts:9", games=4, seed=3)]


@pytest.mark.parametrize(
    "old, command",
    [
        ("--run x", flags.Match(run=Path("x"))),
        ("--json --run x/versions/3", flags.Match(run=Path("x/versions/3"), json=True)),
        ("--run x --opponent exhaustive --num-simulations 8", flags.Exhaustive(run=Path("x"), num_simulations=8)),
        ("--run x --oracle --budgets 2 4 --games 9", flags.Oracle(run=Path("x"), budgets=(2, 4))),
        (
            "--run x --fidelity --positions 7 --plot y.svg",
            flags.Fidelity(run=Path("x"), positions=7, plot=Path("y.svg")),
        ),
        ("--tournament x y@2 --anchor y@2", flags.Tournament(players=("x", "y@2"), anchor="y@2")),
    ],
)
def test_old_flags_mean_what_the_command_does(old, command):
    assert flags.parse(old.split(), "") == (command, True)


@pytest.mark.parametrize(
    "command", ["match --run", "tournament random", "oracle --run", "fidelity --run", "exhaustive --run"]
)
def test_every_command_takes_ones_own_parts(saved_run, command):
    def build(config):
        raise ValueError(f"my own {config.env}")

    with pytest.raises(ValueError, match="my own tic_tac_toe"):
        evaluate.main([*command.split(), str(saved_run)], build)


def test_a_folder_without_a_run_cannot_be_evaluated(run, tmp_path):
    assert_one_sentence(run(evaluate, "--run", tmp_path), "holds no run", "experiments/train.py")


def test_a_trained_agent_is_played_against_and_measured_by_its_name(run, fake_match):
    """Without a run, at once; and whoever names none, or one that there is not, hears which there are."""
    (position, thinker, _) = play.load(play.Arguments(agent="tic_tac_toe", device="cpu"))
    assert position.game.title == "Tic-tac-toe" and thinker.num_simulations == 64
    assert run(evaluate, "match", "--run", "agent:hex_5x5")[0] == 0 and fake_match[0].run == Path("agent:hex_5x5")
    assert_one_sentence(run(play), "connect_four, go_9x9, hex, hex_5x5", "--run DIRECTORY")
    assert_one_sentence(run(play, "--agent", "hex_5x5", "--run", "x"), "leave one of them out")
    assert_one_sentence(
        run(play, "--agent", "chess"), "no agent 'chess'; the agents are 2048, backgammon, connect_four, go_9x9, hex"
    )
    assert_one_sentence(run(evaluate, "oracle", "--run", "agent:chess"), "no agent 'chess'")
    assert_one_sentence(run(play, "--agent", "x.safetensors"), "there is no file x.safetensors")


def test_damaged_checkpoints_are_a_sentence_and_stay_on_the_disk(run, saved_run, tmp_path):
    copy = shutil.copytree(saved_run, tmp_path / "copy")
    files = [path for path in (copy / "checkpoints" / "6" / "params").rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    assert_one_sentence(run(evaluate, "--run", copy), "damaged")
    assert (copy / "checkpoints" / "6").is_dir()


def test_a_config_that_was_tampered_with_is_a_sentence(run, saved_run, tmp_path):
    copy = shutil.copytree(saved_run, tmp_path / "copy")
    (copy / "config.json").write_text('{"env": "tic_tac_toe", "learning_speed": 3}')
    assert_one_sentence(run(evaluate, "--run", copy), "learning_speed")
    (copy / "config.json").write_text('{"env": "tic_')
    assert_one_sentence(run(evaluate, "--run", copy))


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--opponent", "rnadom"], ["no player 'rnadom'", "mcts:N"]),
        (["--opponent", "RUN/checkpoints/5"], ["no version 5 in", "name one of those in it: 6"]),
        (["--games", 0], ["--games is 0"]),
        (["--games", 10**12], ["--games is 1000000000000, but must be at most 1000000"]),
        (["--num-simulations", 0], ["--num-simulations is 0"]),
        (["--num-simulations", 10**11], ["--num-simulations is 100000000000, but must be at most 100000"]),
        (["--opponent", "mcts:1000000000000"], ["the budget of 'mcts:1000000000000'", "at most 100000"]),
        (["--opponent", "RUN@1000000000000"], ["the budget of", "@1000000000000' is", "at most 100000"]),
        (["--opening-plies", -1], ["--opening-plies is -1"]),
        (["--seed", 10**20], ["--seed is 100000000000000000000, but must lie between 0 and 2^32 - 1"]),
        (["--seed", -1], ["--seed is -1"]),
    ],
)
def test_matches_that_cannot_be_played_are_refused(run, saved_run, arguments, parts):
    arguments = [str(argument).replace("RUN", str(saved_run)) for argument in arguments]
    assert_one_sentence(run(evaluate, "match", "--run", saved_run, *arguments), *parts)


def test_a_match_with_another_program_is_a_match_whose_games_are_kept(run, saved_run, tmp_path):
    """The scripted engine, beside our own agent; Ctrl-C and failures are tested where the match is."""
    engine, folder = engines.name("gtp"), tmp_path / "games"
    arguments = ["--run", saved_run, "--opponent", engine, "--sgf", folder]
    status, output, progress = run(evaluate, "match", *arguments, "--games", 4, "--num-simulations", 2, "--json")
    result = json.loads(output)
    assert status == 0 and progress.startswith("starting the engine")
    assert (result["games"], result["opponent"], result["engine"]) == (4, engine, "Fake 1.0")
    assert len(list(folder.glob("*.sgf"))) == 4
    assert_one_sentence(run(evaluate, "match", *arguments), f"--sgf {folder} is not empty; name a new folder")


def test_a_folder_for_records_is_for_games_with_other_programs(run, saved_run, tmp_path):
    outcome = run(evaluate, "match", "--run", saved_run, "--sgf", tmp_path / "new")
    assert_one_sentence(outcome, "--sgf records games against another program")
    (tmp_path / "file").touch()
    outcome = run(evaluate, "match", "--run", saved_run, "--sgf", tmp_path / "file" / "games")
    assert_one_sentence(outcome, "--sgf", "Not a directory")


def test_another_program_plays_matches_and_tournaments_alone(run, saved_run):
    arguments = ["--run", saved_run, "--player", engines.name("gtp"), "--positions", 4]
    status, _, error = run(evaluate, "oracle", *arguments)
    assert status == EXIT_ERROR
    assert_one_sentence((status, "", error.splitlines()[-1] + "\n"), "plays matches and tournaments alone")


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--oracle", "--fidelity"], ["--fidelity and --oracle", "one at a time"]),
        (["--tournament", "random", "mcts:1"], ["leave --run out"]),
        (["--anchor", "random"], ["--anchor is for --tournament"]),
        (["--plot", "x.png"], ["--plot draws what --tournament or --fidelity find"]),
        (["--oracle", "--opponent", "random"], ["--opponent is for a match; leave out --opponent or --oracle"]),
        (["--fidelity", "--opponent", "mcts:9"], ["--opponent is for a match; leave out --opponent or --fidelity"]),
    ],
)
def test_old_flags_that_do_not_go_together_are_refused(run, arguments, parts):
    assert_one_sentence(run(evaluate, "--run", "x", *arguments), *parts)


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--plot", "x.doc"], ["--plot x.doc", ".png, .svg, .pdf"]),
        (["--unroll-steps", 0], ["--unroll-steps is 0"]),
        (["--positions", 0], ["--positions is 0"]),
    ],
)
def test_fidelity_that_cannot_be_measured_is_refused(run, saved_run, arguments, parts):
    assert_one_sentence(run(evaluate, "fidelity", "--run", saved_run, *arguments), *parts)


@pytest.mark.parametrize("tournament", ["tournament", "--tournament"])
def test_a_tournament_takes_its_runs_as_players(run, saved_run, tournament):
    assert_one_sentence(run(evaluate, tournament, "random", "mcts:1"), "needs a run directory among its players")
    assert_one_sentence(run(evaluate, tournament, saved_run, "rnadom"), "no player 'rnadom'")


def test_a_result_is_said_before_it_is_drawn(run, saved_run, monkeypatch, tmp_path):
    """A disk may be full by then."""

    def fail(result, path):
        raise ValueError("the disk is full")

    monkeypatch.setattr(evaluate, "COMMANDS", {flags.Tournament: lambda *arguments: ({"elo": 1}, "the table")})
    monkeypatch.setattr(charts, "plot_tournament", fail)
    status, output, error = run(evaluate, "tournament", saved_run, "random", "--plot", tmp_path / "elo.png")
    assert (status, output) == (2, "the table\n") and error.endswith("error: the disk is full\n")


@pytest.mark.slow
def test_fidelity_is_a_table_with_what_it_means_and_a_picture(run, saved_run, tmp_path):
    picture = tmp_path / "drift.svg"
    arguments = ["--positions", 4, "--unroll-steps", 1, "--num-simulations", 2, "--plot", picture]
    status, output, _ = run(evaluate, "fidelity", "--run", saved_run, *arguments)
    assert status == 0
    assert "Along uniformly random moves" in output and "--opponent rules:2" in output
    assert "<svg" in picture.read_text()


def test_an_oracle_takes_budgets_that_a_search_can_have(run, saved_run):
    for budget, limit in ((0, "positive"), (10**12, "at most 100000")):
        outcome = run(evaluate, "oracle", "--run", saved_run, "--budgets", 4, budget)
        assert_one_sentence(outcome, f"--budgets is (4, {budget}), but each must be {limit}")


def test_compiled_programs_are_kept_unless_a_flag_says_no(run, fake_match, monkeypatch):
    asked = []
    monkeypatch.setattr(compilation_cache, "enable", lambda: asked.append(True))
    run(evaluate, "match", "--run", "x", "--no-compilation-cache")
    assert asked == []
    run(evaluate, "match", "--run", "x")
    assert asked == [True]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_a_bug_is_not_dressed_up_as_a_mistake():
    def broken(arguments):
        raise AssertionError("a bug")

    with pytest.raises(AssertionError):
        report_errors(broken, [])


def test_ctrl_c_outside_of_training_is_no_traceback(capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    assert report_errors(interrupted, []) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("command", ["train", "evaluate", "play"])
def test_ctrl_c_while_packages_are_imported_is_silent(command, tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored
    (tmp_path / "tyro.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n")
    ended = subprocess.run(
        [sys.executable, f"experiments/{command}.py"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (EXIT_INTERRUPTED, "", "")


@pytest.mark.parametrize(
    "arguments, lower",
    [
        ("match --run r", "--games or --num-simulations"),
        ("--run r", "--games or --num-simulations"),
        ("--run r --oracle", "--num-simulations"),
        ("--run r --fidelity", "--num-simulations"),
        ("--run r --opponent=exhaustive", "--num-simulations"),
        ("oracle --run r --budgets 16 64", "--budgets"),
        ("--run r --oracle --budgets 16", "--budgets"),
    ],
)
def test_a_full_memory_is_answered_with_flags_that_were_heeded(arguments, lower):
    assert flags.remedy(arguments.split()) == f"lower {lower}, or use --device cpu"


@pytest.mark.parametrize(
    "arguments",
    ["--run r --oracle", "--run r --fidelity", "--run r --opponent exhaustive", "oracle --run r", "fidelity --run r"],
)
def test_every_command_takes_a_number_of_devices(arguments):
    command, _ = flags.parse([*arguments.split(), "--devices", "1"], "")
    assert command.devices == 1


COMMANDS = [
    "experiments/train.py",
    "experiments/evaluate.py match --run nothing",
    "experiments/evaluate.py oracle --run nothing",
    "experiments/evaluate.py tournament nothing random",
    "experiments/evaluate.py --run nothing",
    "experiments/play.py --run nothing",
    "scripts/benchmark.py",
    "scripts/hardware_report.py",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_memory_is_answered_with_flags_that_the_command_has(command, monkeypatch, capsys):
    script, *needed = command.split()

    def enter(*arguments):
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        with pytest.raises(SystemExit) as exit_:
            runpy.run_path(str(ROOT / script), run_name="__main__")
        return exit_.value.code, capsys.readouterr()

    _, shown = enter(*needed, "--help-all" if script == "experiments/train.py" else "--help")

    def fill(*arguments):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.")

    monkeypatch.setattr(devices, "configure_devices", fill)
    status, said = enter(*needed)
    assert_one_sentence((status, said.out, said.err), "the device's memory is full; ")
    flags = re.findall(r"--[\w.-]+", said.err)
    assert flags
    for flag in flags:
        assert re.search(re.escape(flag) + r"(?![\w.-])", shown.out), flag


# --- a Python without the packages ------------------------------------------------------------------------------------


SCRIPTS = [*dict.fromkeys(command.split()[0] for command in COMMANDS), "scripts/export_agent.py"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_python_without_the_packages_is_told_how_to_install_them(script):
    command = [sys.executable, "-I", "-S", str(ROOT / script), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert_one_sentence((done.returncode, done.stdout, done.stderr), f"{sys.executable} lacks jax and ")
    assert "pip install -e . -c constraints.txt" in done.stderr or f".venv/bin/python {ROOT / script}" in done.stderr


def test_what_to_do_depends_on_whether_there_is_an_environment(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["experiments/train.py", "--env", "hex"])
    assert requirements.sentence(["jax"], has_environment=True).endswith(
        f"lacks jax; use the project's environment: {ROOT}/.venv/bin/python experiments/train.py --env hex"
    )
    assert f"once (cd {ROOT} && python3 -m venv .venv" in requirements.sentence(["jax", "tyro"], has_environment=False)


def test_the_packages_that_are_looked_for_are_those_that_are_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {
        re.match(r"[\w-]+", dependency).group().removesuffix("-checkpoint") for dependency in project["dependencies"]
    }
    assert sorted(requirements.PACKAGES) == sorted(names)
