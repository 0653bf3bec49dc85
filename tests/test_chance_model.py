"""Wiring of a learned model with chance: which game gets which codes, what a batch holds, and what is refused."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import learning, make_algorithm, playing
from muzero_jax.networks.value_transform import squash, unsquash
from muzero_jax.types import Chance, Symmetries
from tests.reference.models import BOARD
from tests.reference.tiny_run import CONFIG
from tests.reference.windows import random_window

FIELDS = {"move": None, "probabilities": None, "resolve": None}
CHANCY = BOARD._replace(chance=Chance(num_outcomes=21, **FIELDS))  # type: ignore
K = CONFIG.unroll_steps


def config_of(model="learned", **network):
    return replace(CONFIG, model=model, network=replace(CONFIG.network, kind="mlp", width=8, **network))


def made(config, environment=CHANCY):
    return make_algorithm(config, environment)


@pytest.mark.parametrize(
    ("config", "environment", "expected"),
    [
        (config_of(), BOARD, 0),  # no chance, no codes
        (config_of(), CHANCY, 32),
        (config_of(chance_codes=0), CHANCY, 0),  # plain MuZero
        (config_of(chance_codes=8), BOARD, 8),  # chance that the game does not list
        (config_of("learned_outcomes"), CHANCY, 22),  # the last code: chance had no part
        (config_of("learned_legality"), CHANCY, 0),
        (config_of("rules"), CHANCY, 0),
    ],
)
def test_game_and_flags_decide_the_number_of_chance_codes(config, environment, expected):
    model = made(config, environment).model
    assert model.num_codes == expected
    assert (model.encode_chance is not None) == (config.model == "learned" and expected > 0)


def test_known_outcomes_need_a_game_that_lists_them():
    with pytest.raises(ValueError, match="which board does not list; choose --model learned"):
        playing.chance_codes(config_of("learned_outcomes"), BOARD)


def test_an_encoder_reads_all_observations_of_a_window_and_known_outcomes_only_the_first():
    for model, length in (("learned", K + 1), ("learned_outcomes", 1)):
        config = config_of(model)
        config = replace(config, optimiser=replace(config.optimiser, reconstruction_weight=0.0))
        algorithm = made(config)
        assert algorithm.num_frames == length
        assert {"chance", "afterstate_value"} <= {term.name for term in algorithm.terms}


@pytest.mark.parametrize("model", ["learned", "learned_outcomes"])
def test_a_batch_has_known_outcomes_as_codes_and_its_loss_has_a_chance_term(model):
    config = config_of(model)
    algorithm = made(config)
    window = random_window(0, 4, config.window_length, BOARD.num_actions, BOARD.observation_shape)
    window = window._replace(observation=window.observation > 0.5, outcome=jnp.full(window.action.shape, 3, jnp.int32))
    wanted, terms = algorithm.make_targets(window, jnp.float32(0.0)), algorithm.terms
    batch = algorithm.make_batch(window, wanted, jnp.ones(4), jax.random.key(0), num_frames=algorithm.num_frames)
    if model == "learned_outcomes":
        assert (np.asarray(batch.extras["codes"])[np.asarray(batch.targets.alive)[:, :-1] > 0] == 3).all()
    loss = partial(algorithm.loss, model=algorithm.model, terms=terms)
    shapes = jax.eval_shape(loss, jax.eval_shape(algorithm.model.init, jax.random.key(0)), batch)
    assert shapes[0].shape == () and "train/chance_loss" in shapes[1]


def test_with_known_outcomes_symmetries_need_an_outcome_permutation():
    turned = Symmetries(*(jnp.concatenate([x, x]) for x in BOARD.board.symmetries[:3]))
    silent = CHANCY._replace(board=BOARD.board._replace(symmetries=turned))
    with pytest.raises(ValueError, match="add --replay.no-symmetries"):
        learning.build_augment(config_of("learned_outcomes"), silent)
    permutation = jnp.zeros((2, 21), jnp.int32) + jnp.arange(21)
    said = silent._replace(board=silent.board._replace(symmetries=turned._replace(outcome_permutation=permutation)))
    for config, environment, is_turned in (
        (config_of("learned_outcomes"), said, True),
        (config_of("learned"), said, False),  # an encoder's codes are no outcomes
        (config_of("learned"), silent, False),
        (config_of("learned_outcomes"), CHANCY, False),  # only the identity
    ):
        found = learning.build_augment(config, environment).keywords["symmetries"]
        assert (found.outcome_permutation is not None) == is_turned


def test_the_config_sets_the_support_of_large_returns():
    """Bin 190 of 255 stands halfway up the squashed line, far below half of the largest value."""
    config = config_of(num_bins=255, support_range=1000.0, squash=True)
    model = made(config, BOARD).model
    assert model.bound == 1000.0
    found = model.to_scalar(100.0 * jnp.eye(255)[jnp.array([0, 127, 190, 254])])
    halfway = unsquash(63 / 127 * squash(jnp.float32(1000.0)))
    np.testing.assert_allclose(found, [-1000, 0, halfway, 1000], rtol=1e-3, atol=0.1)


def test_the_encoder_of_chance_sees_whole_batches():
    optimiser = replace(CONFIG.optimiser, micro_batch_size=2)
    config = replace(config_of(), optimiser=optimiser)
    with pytest.raises(ValueError, match="micro-batch-size does not go with codes"):
        made(config, CHANCY)
    assert made(replace(config_of(chance_codes=0), optimiser=optimiser), CHANCY).model.encode_chance is None
