"""A game, a network or an algorithm of one's own, from the command line to the board: no edit anywhere else.

A mistake in the file gives one error message, before anything is compiled or made.
"""

from pathlib import Path

import pytest

from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands.command_line import EXIT_ERROR
from muzero_jax.config.validation import validate
from muzero_jax.run.run import Result
from tests.reference.training import command, settled

FROM = "from tests.apps.check.test_environment import"
NETWORK = Path(__file__).parents[3] / "examples" / "transformer.py"
GOOD = NETWORK.read_text()
FEW = "--devices 2 --self-play.num-envs 8 --optimiser.batch-size 8".split()
OPTIONS = ["--network.options", "width=16", "depth=1"]


@pytest.fixture
def begin(tmp_path, capsys, monkeypatch):
    """Runs `train.py` with a file of this text, without training: (exit status, stdout, stderr)."""
    monkeypatch.setattr(start, "train", lambda *arguments: Result({}, interrupted=True))

    def call(flag, text, *flags):
        file = tmp_path / "mine.py"
        file.write_text(text)
        game = [] if flag == "--env" else ["--env", "tic_tac_toe"]
        status = command(*FEW, *game, flag, file, "--run-dir", tmp_path / "run", *flags)
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    "flag, text, flags, says",
    [
        ("--env", f"{FROM} AsksInPython as make", [], "jnp.where"),
        ("--network", "def make_model(environment, support): return 3", [], "must return a muzero_jax.types.Model"),
        ("--network", GOOD, ["--network.options", "widht=3"], "'widht'"),
        ("--network", GOOD, ["--network.width", "32"], "--network.options width="),
        ("--network", GOOD.replace("(self.num_actions, ", "(4, "), [], "policy_logits must be float32"),
        ("--algorithm", "def change(algorithm, config): return 3", [], "muzero_jax.Algorithm"),
        ("--algorithm", "def change(algorithm, config): return algorithm._replace(terms=[3])", [], "terms"),
    ],
)
def test_a_faulty_game_network_or_algorithm_file_gives_one_error_and_leaves_no_folder(
    begin, tmp_path, flag, text, flags, says
):
    status, _, error = begin(flag, text, *flags)
    assert status == EXIT_ERROR and error.startswith("error: ") and error.count("\n") == 1
    assert says in error and not (tmp_path / "run").exists()


def test_an_odd_rule_is_reported_as_a_doubt_and_the_run_begins(begin):
    _, output, error = begin("--env", f"{FROM} RewardsTheOther as make")
    assert "doubt       whoever made the last move lost" in output and not error


@pytest.mark.parametrize(
    "text, flags, is_said",
    [
        (f"{FROM} Heap as make", [], True),
        (f"{FROM} Heap as make", ["--network.predict-discount"], False),
        ("from tests.reference.double_nim import GAME\ndef make(): return GAME", [], False),
    ],
)
def test_a_run_says_that_it_assumes_alternating_turns_unless_it_predicts_the_discount(begin, text, flags, is_said):
    _, output, error = begin("--env", text, *flags)
    assert ("add --network.predict-discount" in output) == is_said and "doubt" not in output and not error


def test_a_network_file_is_stored_by_its_absolute_path(monkeypatch, tmp_path):
    monkeypatch.chdir(NETWORK.parent)
    config = settled("--env", "tic_tac_toe", "--network", NETWORK.name, *OPTIONS).config
    assert (config.network.file, config.network.options) == (str(NETWORK), ("width=16", "depth=1"))


# --- settings for a game that has no preset ---------------------------------------------------------------------------

BOARD = f"""
import jax.numpy as jnp
{FROM} Heap

class make(Heap):
    def state(self, stones, player, rewards):
        state = super().state(stones, player, rewards)
        return state._replace(observation=jnp.broadcast_to(stones > 2, (4, 4, 9)))
"""


@pytest.mark.parametrize(
    "text, network, targets",
    [
        (f"{FROM} Heap as make", ("mlp", 1.0), (8, 1.0, (100,))),  # half more than five single stones
        # Long games, and those that a tower plays, learn from bootstrapped values and meet no rollouts.
        (BOARD, ("tower", 10.0), (32, 0.95, ())),
        (f"{FROM} Endless as make", ("mlp", 1.0), (32, 0.95, ())),
    ],
)
def test_a_game_without_a_preset_gets_settings_from_its_observations_and_lengths(tmp_path, text, network, targets):
    (tmp_path / "mine.py").write_text(text)
    config = validate(presets.preset(str(tmp_path / "mine.py"), None))
    assert (config.network.kind, config.optimiser.reconstruction_weight) == network
    assert (config.targets.td_steps, config.targets.td_lambda, config.evaluation.mcts_simulations) == targets
