"""`--env file.py` from the command line: a mistake in the file is one sentence, before anything is compiled or made."""

import pytest

from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.run import compilation_cache
from muzero_jax.run.run import Result
from muzero_jax.storage.validation import validate

SMALL = "--devices 2 --self-play.num-envs 8 --optimiser.batch-size 8".split()


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    """Neither a program nor a file in the user's cache is made."""
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(start, "train", lambda *arguments: Result({}, interrupted=True))


@pytest.fixture
def begin(tmp_path, capsys):
    """Trains on a file of this text: (exit status, stdout, stderr)."""

    def call(text, *flags):
        file = tmp_path / "mine.py"
        file.write_text(text)
        arguments = ["--env", str(file), "--run-dir", str(tmp_path / "run"), *SMALL, *flags]
        return report_errors(train.main, arguments), *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    "text, says",
    [
        ("x = 1", "mine.py defines no function make; define it"),
        ("import no_such_package", "mine.py:1); correct it there"),
        (
            "from tests.apps.check.test_environment import AsksInPython as make",
            "write jnp.where or jax.lax in place of Python",
        ),
        (
            "from tests.apps.check.test_environment import FloatStones as make",
            "mine.py: the state's stones is int32[] after init",
        ),
        (
            "from tests.apps.check.test_environment import RewardsFive as make",
            "mine.py: a move is rewarded with 5; scale it",
        ),
        (
            "from tests.apps.check.test_environment import RewardsFive, WithoutMovesAtTwo\n"
            "class make(RewardsFive, WithoutMovesAtTwo): pass",
            "(and 1 more: muzero_jax.check(",
        ),
    ],
)
def test_a_file_that_makes_no_sound_game_is_one_sentence_and_leaves_no_folder(begin, tmp_path, text, says):
    status, _, error = begin(text)
    assert status == EXIT_ERROR and error.startswith("error: ") and error.count("\n") == 1
    assert says in error and str(tmp_path) in error and not (tmp_path / "run").exists()


def test_a_missing_file_is_one_sentence(tmp_path, capsys):
    assert report_errors(train.main, ["--env", str(tmp_path / "nowhere.py"), "--devices", "2"]) == EXIT_ERROR
    assert "nowhere.py (No such file or directory); name a Python file of yours" in capsys.readouterr().err


def test_what_is_odd_is_said_and_the_run_begins(begin):
    _, output, error = begin("from tests.apps.check.test_environment import RewardsTheOther as make")
    assert "doubt       whoever made the last move lost in all 16 random games" in output and not error
    assert output.splitlines()[1] == "game        Mine"
    _, output, _ = begin("from tests.apps.check.test_environment import Heap as make", "--overwrite")
    assert "doubt" not in output and "check " not in output


def test_turns_that_alternated_in_random_games_are_said_to_be_taken_so_unless_they_are_learned(begin):
    says = "turns       alternated in all 16 random games; add --network.predict-discount if a player may ever move"
    heap = "from tests.apps.check.test_environment import Heap as make"
    twice = "from tests.reference.double_nim import GAME\ndef make(): return GAME"
    for text, flags, is_said in ((heap, [], 1), (heap, ["--network.predict-discount"], 0), (twice, [], 0)):
        _, output, error = begin(text, *flags, "--overwrite")
        assert output.count(f"\n{says} twice\n") == is_said and not error


# --- settings for a game of which nothing is known --------------------------------------------------------------------

BOARD = """
import jax.numpy as jnp
from tests.apps.check.test_environment import Heap

class make(Heap):
    def state(self, stones, player, rewards):
        state = super().state(stones, player, rewards)
        return state._replace(observation=jnp.broadcast_to(stones > 2, {shape}))
"""


@pytest.mark.parametrize(
    "text, kind, reconstruction_weight",
    [
        ("from tests.apps.check.test_environment import Heap as make", "mlp", 1.0),
        (BOARD.format(shape=(4, 4, 8)), "observation", 10.0),
        (BOARD.format(shape=(4, 4, 9)), "tower", 10.0),
        (BOARD.format(shape=(200,)), "mlp", 1.0),
    ],
)
def test_a_game_without_a_preset_has_settings_by_what_it_shows(tmp_path, text, kind, reconstruction_weight):
    file = tmp_path / "mine.py"
    file.write_text(text)
    config = validate(presets.preset(str(file), None))
    assert (config.network.kind, config.optimiser.reconstruction_weight) == (kind, reconstruction_weight)
    if kind != "tower":
        assert (config.targets.td_steps, config.targets.td_lambda) == (8, 1.0), "half more than five single stones"
        assert config.evaluation.mcts_simulations == (100,) and config.evaluation.opening_plies == 1


def test_long_games_learn_from_bootstrapped_values_and_meet_no_rollouts(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from tests.apps.check.test_environment import Endless as make")
    config = validate(presets.preset(str(file), None))
    assert (config.targets.td_steps, config.targets.td_lambda, config.evaluation.mcts_simulations) == (32, 0.95, ())
