"""Two-hot codes and the loss of categorical heads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muzero_jax.networks import value_transform
from muzero_jax.networks.value_transform import Support
from tests.reference import losses as reference

BOARD_GAME = Support(-1.0, 1.0, 21)
SCALAR = Support(-1.0, 1.0, 1)

f32 = np.float32  # NumPy inputs, so that each jitted function below is all that compiles
few_examples = settings(max_examples=50, deadline=None)
two_hot = jax.jit(value_transform.two_hot, static_argnames="support")
to_scalar = jax.jit(value_transform.to_scalar, static_argnames="support")
scalar_loss = jax.jit(value_transform.scalar_loss, static_argnames="support")
squash, unsquash = jax.jit(value_transform.squash), jax.jit(value_transform.unsquash)


def numbers(low, high, count=8):
    """Arrays of `count` numbers, the interval's ends among the likely ones."""
    one = st.floats(low, high, width=32)
    return st.lists(one, min_size=count, max_size=count).map(np.float32)


def logits_of(probabilities):
    return np.log(np.maximum(probabilities, f32(1e-30)))


# --- two-hot codes ----------------------------------------------------------------------------------------------------


def test_two_hot_shares_a_scalar_between_its_neighbours_by_distance():
    support = Support(-2.0, 2.0, 5)
    codes = two_hot(f32([-2.0, -0.75, 0.0, 1.5, 2.0]), support)
    expected = [[1, 0, 0, 0, 0], [0, 0.75, 0.25, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0.5, 0.5], [0, 0, 0, 0, 1]]
    np.testing.assert_allclose(codes, expected, atol=1e-6)


@pytest.mark.parametrize("support", [BOARD_GAME, Support(-3.0, 5.0, 2), Support(0.0, 7.0, 8)], ids=str)
@few_examples
@given(st.data())
def test_a_two_hot_code_is_a_distribution_on_neighbours_with_the_scalar_as_its_mean(support, data):
    x = data.draw(numbers(support.low, support.high))
    codes = np.asarray(two_hot(x, support=support))
    assert (codes >= 0).all() and (codes > 0).sum(axis=-1).max() <= 2
    np.testing.assert_allclose(codes.sum(axis=-1), 1, rtol=1e-6)
    bins = np.linspace(support.low, support.high, support.num_bins)
    np.testing.assert_allclose(codes @ bins, x, atol=1e-5)
    for code in codes:
        positive = np.flatnonzero(code)
        assert positive[-1] - positive[0] <= 1


# --- heads: logits to scalars and losses ------------------------------------------------------------------------------


@pytest.mark.parametrize("support", [BOARD_GAME, Support(-20.0, 20.0, 41)], ids=["board game", "large returns"])
def test_logits_of_a_two_hot_code_give_its_scalar_and_loss_0(support):
    x = f32(np.linspace(support.low, support.high, 33))
    logits = logits_of(two_hot(x, support))
    np.testing.assert_allclose(to_scalar(logits, support), x, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(scalar_loss(logits, x, support), 0, atol=1e-5)


@pytest.mark.parametrize("num_bins", [1, 2, 20, 21])
def test_logits_of_zero_mean_the_value_0(num_bins):
    np.testing.assert_allclose(to_scalar(f32(np.zeros((3, num_bins))), Support(-1.0, 1.0, num_bins)), 0, atol=1e-6)


def test_the_loss_equals_the_cross_entropy_in_plain_loops():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(6, 5)).astype(np.float32)
    target = np.array([-1.0, -0.3, 0.0, 0.99, 1.0, 1.7], np.float32)
    expected = [reference.scalar_loss(row, x, -1.0, 1.0) for row, x in zip(logits.tolist(), target, strict=True)]
    np.testing.assert_allclose(scalar_loss(logits, target, Support(-1.0, 1.0, 5)), expected, rtol=1e-5)


def test_one_bin_is_a_scalar_head_with_half_the_squared_error():
    logits = f32([[0.5], [-2.0]])
    np.testing.assert_allclose(to_scalar(logits, SCALAR), [0.5, -2.0])
    np.testing.assert_allclose(scalar_loss(logits, f32([1.0, 1.0]), SCALAR), [0.125, 4.5])


def test_heads_are_read_in_float32_whatever_their_dtype():
    logits, target = jax.random.normal(jax.random.key(0), (8, 21)).astype(jnp.bfloat16), f32(np.linspace(-1, 1, 8))
    whole = logits.astype(jnp.float32)
    np.testing.assert_array_equal(to_scalar(logits, BOARD_GAME), to_scalar(whole, BOARD_GAME))
    np.testing.assert_array_equal(scalar_loss(logits, target, BOARD_GAME), scalar_loss(whole, target, BOARD_GAME))


# --- large returns ----------------------------------------------------------------------------------------------------

LARGE = Support(-100_000.0, 100_000.0, 255, is_squashed=True)


def squashed(x):
    """h of Pohlen et al. 2018, in double precision."""
    x = np.float64(x)
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x


def test_squash_by_hand_and_its_inverse():
    found = squash(f32([0, 3, -3, 99, 1e4]))
    np.testing.assert_allclose(found, [0, 1.003, -1.003, 9.099, 109.005], rtol=1e-4)
    x = f32([-100_000.0, -4096, -4, -0.01, 0, 1e-3, 1, 8, 2048, 65536])
    np.testing.assert_allclose(unsquash(squash(x)), x, rtol=1e-4, atol=1e-6)


def test_the_bins_of_a_large_support_are_even_after_squashing():
    """A return halfway between two bins after h, and one beyond the support."""
    ends = squashed([-100_000, 100_000])
    bins = np.linspace(*ends, 255)
    np.testing.assert_allclose(LARGE.ends, ends)
    middle = unsquash(f32([(bins[200] + bins[201]) / 2]))
    (code,) = np.asarray(two_hot(np.asarray(middle), LARGE))
    np.testing.assert_allclose(code[[200, 201]], 0.5, atol=1e-3)
    assert np.argmax(two_hot(f32([1e7]), LARGE)) == 254


def test_large_returns_survive_two_hot_codes_and_fresh_heads_give_0():
    x = f32([-50_000, -4, 0, 4, 1000, 37_356])
    np.testing.assert_allclose(to_scalar(logits_of(two_hot(x, LARGE)), LARGE), x, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(to_scalar(np.zeros((1, 255), f32), LARGE), 0, atol=1e-3)
    scalar = LARGE._replace(num_bins=1)
    np.testing.assert_allclose(to_scalar(f32([[109.005]]), scalar), [1e4], rtol=1e-3)
    np.testing.assert_allclose(scalar_loss(f32([[7.099]]), f32([99]), scalar), [2.0], rtol=1e-3)


def test_a_mixture_of_returns_is_averaged_after_squashing():
    mixed = np.mean(two_hot(f32([0, 1000]), LARGE), axis=0, keepdims=True)
    np.testing.assert_allclose(to_scalar(logits_of(mixed), LARGE), [272.8], rtol=1e-2)
