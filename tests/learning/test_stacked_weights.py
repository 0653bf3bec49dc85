"""Weights of one shape in one array: taken apart exactly, and updated by an optimiser as each would be on its own."""

import jax
import numpy as np
import optax
import pytest

from muzero_jax.learning import stacked_weights

SHAPES = {"a": (2, 3), "b": (3,), "c": (2, 3), "d": (1, 1, 3, 2), "e": (), "f": (4, 3)}


def tree(seed=0):
    generator = np.random.default_rng(seed)
    return jax.device_put({key: np.float32(generator.normal(size=shape)) for key, shape in SHAPES.items()})


def test_taking_joined_weights_apart_gives_the_originals():
    shapes = {"2x3": (2, 2, 3), "1x1x3x2": (1, 1, 1, 3, 2), "4x3": (1, 4, 3), "rest": (4,)}
    whole = jax.jit(stacked_weights.stack)(tree())
    assert {key: x.shape for key, x in whole.items()} == shapes
    assert stacked_weights.decays(whole) == {key: key != "rest" for key in shapes}
    jax.tree.map(np.testing.assert_array_equal, jax.jit(stacked_weights.unstack)(whole, tree()), tree())


def test_the_norm_is_that_of_all_weights():
    numbers = np.concatenate([np.ravel(x) for x in tree().values()])
    assert float(jax.jit(stacked_weights.norm)(tree())) == pytest.approx(np.linalg.norm(numbers))


def test_an_optimiser_over_joined_weights_keeps_few_arrays_and_makes_the_same_step():
    alone = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1))
    together = stacked_weights.over(alone)
    states = [jax.jit(optimiser.init)(tree()) for optimiser in (alone, together)]
    few = len(jax.eval_shape(stacked_weights.stack, tree()))
    assert len(jax.tree.leaves(states[1])) == 1 + 2 * few < len(jax.tree.leaves(states[0]))
    steps = zip((alone, together), states, strict=True)
    one, other = (jax.jit(optimiser.update)(tree(1), state, tree())[0] for optimiser, state in steps)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), one, other)
