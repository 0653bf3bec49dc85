"""Reductions, in the form that is fast on each backend, equal NumPy's."""

import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.ops.reductions import first_argmax, reduce_rows


@pytest.mark.parametrize("num_actions", [3, 9, 33, 82])
def test_first_argmax_takes_the_first_of_equals_like_numpys(num_actions):
    rng = np.random.default_rng(0)
    scores = rng.integers(-3, 3, size=(200, num_actions)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[0] = -np.inf
    np.testing.assert_array_equal(first_argmax(jnp.asarray(scores)), scores.argmax(-1))


@pytest.mark.parametrize("num_actions", [1, 9, 32, 33, 82])
def test_reductions_over_short_and_long_rows_are_numpys(num_actions):
    a, b, c = np.random.default_rng(0).normal(size=(3, 5, num_actions)).astype(np.float32)
    low, total, high = reduce_rows((jnp.min, jnp.asarray(a)), (jnp.sum, jnp.asarray(b)), (jnp.max, jnp.asarray(c)))
    np.testing.assert_array_equal(low, a.min(-1, keepdims=True))
    np.testing.assert_allclose(total, b.sum(-1, keepdims=True), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(high, c.max(-1, keepdims=True))
