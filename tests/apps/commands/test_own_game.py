"""`--env file.py` from the command line: a mistake in the file is one sentence, before anything is compiled or made."""

import pytest

from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.run import compilation_cache
from muzero_jax.run.run import Result
from muzero_jax.storage.validation import validate

FROM = "from tests.apps.check.test_environment import"


@pytest.fixture
def begin(tmp_path, capsys, monkeypatch):
    """Trains on a file of this text, but for the training: (exit status, stdout, stderr)."""
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(start, "train", lambda *arguments: Result({}, interrupted=True))

    def call(text, *flags):
        file = tmp_path / "mine.py"
        file.write_text(text)
        sizes = "--devices 2 --self-play.num-envs 8 --optimiser.batch-size 8 --overwrite".split()
        arguments = ["--env", str(file), "--run-dir", str(tmp_path / "run"), *sizes, *flags]
        return report_errors(train.main, arguments), *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    "text, says",
    [
        ("x = 1", "defines no function make"),
        ("import no_such_package", "mine.py:1)"),
        (f"{FROM} AsksInPython as make", "jnp.where"),
        (f"{FROM} FloatStones as make", "the state's stones is int32[] after init"),
        (
            f"{FROM} RewardsFive, WithoutMovesAtTwo\nclass make(RewardsFive, WithoutMovesAtTwo): pass",
            "(and 1 more: muzero_jax.check(",
        ),
    ],
)
def test_a_file_that_makes_no_sound_game_is_one_sentence_and_leaves_no_folder(begin, tmp_path, text, says):
    status, _, error = begin(text)
    assert status == EXIT_ERROR and error.startswith("error: ") and error.count("\n") == 1
    assert says in error and str(tmp_path) in error and not (tmp_path / "run").exists()


def test_what_is_odd_is_said_and_the_run_begins(begin):
    _, output, error = begin(f"{FROM} RewardsTheOther as make")
    assert "doubt       whoever made the last move lost" in output and not error
    assert output.splitlines()[1] == "game        Mine"


@pytest.mark.parametrize(
    "text, flags, is_said",
    [
        (f"{FROM} Heap as make", [], True),
        (f"{FROM} Heap as make", ["--network.predict-discount"], False),
        ("from tests.reference.double_nim import GAME\ndef make(): return GAME", [], False),
    ],
)
def test_turns_that_alternated_are_said_to_be_taken_so_unless_they_are_learned(begin, text, flags, is_said):
    _, output, error = begin(text, *flags)
    assert ("add --network.predict-discount" in output) == is_said and "doubt" not in output and not error


# --- settings for a game of which nothing is known --------------------------------------------------------------------

BOARD = f"""
import jax.numpy as jnp
{FROM} Heap

class make(Heap):
    def state(self, stones, player, rewards):
        state = super().state(stones, player, rewards)
        return state._replace(observation=jnp.broadcast_to(stones > 2, SHAPE))
"""


@pytest.mark.parametrize(
    "text, network, targets",
    [
        (f"{FROM} Heap as make", ("mlp", 1.0), (8, 1.0, (100,))),  # half more than five single stones
        (BOARD.replace("SHAPE", "(4, 4, 8)"), ("observation", 10.0), (8, 1.0, (100,))),
        (BOARD.replace("SHAPE", "(4, 4, 9)"), ("tower", 10.0), None),
        # Long games learn from bootstrapped values and meet no rollouts.
        (f"{FROM} Endless as make", ("mlp", 1.0), (32, 0.95, ())),
    ],
)
def test_a_game_without_a_preset_has_settings_by_what_it_shows(tmp_path, text, network, targets):
    (tmp_path / "mine.py").write_text(text)
    config = validate(presets.preset(str(tmp_path / "mine.py"), None))
    assert (config.network.kind, config.optimiser.reconstruction_weight) == network
    if targets:
        assert (config.targets.td_steps, config.targets.td_lambda, config.evaluation.mcts_simulations) == targets
