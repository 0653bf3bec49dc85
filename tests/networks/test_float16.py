"""Learning in float16: a step whose scaled loss overflows is skipped by all devices, and others are like float32's."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.algorithm.learning import build_terms
from muzero_jax.learning import learner, losses, scaled_loss
from muzero_jax.networks import layers
from muzero_jax.ops.mesh import AXIS
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.run.run import not_finite
from muzero_jax.types import Batch, Targets
from tests.reference import tiny_run
from tests.reference.models import BOARD, make_network, make_tanh_model, random_params
from tests.reference.programs import QUICKLY, alone
from tests.reference.tiny_run import assert_same
from tests.reference.windows import make_batch, make_window, random_window

# --- by hand: the loss is w x y, computed in float16, whose largest number is 65,504 ----------------------------------

MODEL = make_tanh_model()  # not called here
OPTIMISER = optax.sgd(0.1, momentum=0.9)


def product_loss(params, batch):
    """w x y of the one window's observation [x, y]; its gradient in w is scale * y and then that times x."""
    x, y = batch.observation[0, 0].astype(jnp.float16)
    product = params["w"].astype(jnp.float16) * x * y
    return product.astype(jnp.float32), {"train/loss": product.astype(jnp.float32)}


def product_state(w, scale):
    """The learner of that loss, with another scale than it begins with."""
    model = MODEL._replace(init=lambda key: {"w": jnp.float32(w)})
    state = learner.init(model, OPTIMISER, jax.random.key(0), scale_loss=True)
    scaled = state.optimiser_state
    loss_scale = scaled.loss_scale.replace(scale=jnp.float32(scale))
    return state._replace(optimiser_state=scaled._replace(loss_scale=loss_scale))


def product_window(x, y):
    return make_window([[0.0]], [[1.0]], observation=[[[x, y]]])


def update_by_product(state, window):
    nothing = jnp.zeros((1, 0), jnp.int32), Targets(*(jnp.zeros(1) for _ in Targets._fields)), jnp.ones(1)
    batch = Batch(window.observation, window.legal_action_mask[:, :1], *nothing)
    step = partial(learner.update, optimiser=OPTIMISER, loss=product_loss)
    return step(state, batch, 0.0)


product_update = jax.jit(partial(alone, update_by_product))


def test_a_step_that_overflows_is_skipped_and_halves_the_scale_until_one_fits():
    """Gradient 3: 65,536 is no float16, 32,768 x 3 = 98,304 neither, 16,384 x 3 = 49,152 is one; then w = 1 - 0.3."""
    before, window = product_state(1.0, 2**16), product_window(3.0, 1.0)
    state, found = before, []
    for step in range(3):
        state, metrics = product_update(state, window)
        found.append([float(metrics[f"train/{name}"]) for name in ("loss_scale", "gradient_norm", "loss")])
        if step < 2:
            assert_same(state.params, before.params)
            assert_same(state.optimiser_state.optimiser_state, before.optimiser_state.optimiser_state)
    np.testing.assert_allclose(found, [[2**16, 0, 3], [2**15, 0, 3], [2**14, 3, 3]])
    np.testing.assert_allclose(state.params["w"], 0.7, rtol=1e-6)
    assert (int(state.num_updates), float(state.optimiser_state.loss_scale.scale)) == (3, 2**14)


def test_a_gradient_that_overflows_unscaled_is_divergence_and_stops_the_run():
    """300 x 300 = 90,000 overflows, although the loss is only 900."""
    state, metrics = product_update(product_state(0.01, 1.0), product_window(300.0, 300.0))
    assert float(state.optimiser_state.loss_scale.scale) == 1.0 == scaled_loss.MINIMUM_SCALE
    assert np.isfinite(metrics["train/loss"]) and np.isfinite(state.params["w"])
    assert not_finite({name: float(value) for name, value in metrics.items()}) == "train/gradient_norm"


def test_an_overflow_on_one_device_skips_the_step_on_all():
    """60,000 times 2 overflows on the second device; unscaled both step by the mean of 1 and 60,000."""
    share = jax.jit(jax.vmap(update_by_product, in_axes=(None, 0), axis_name=AXIS))
    windows = jax.tree.map(lambda *leaves: jnp.stack(leaves), product_window(1.0, 1.0), product_window(6e4, 1.0))
    after, metrics = share(product_state(1.0, 2.0), windows)
    np.testing.assert_array_equal(after.params["w"], [1, 1])
    np.testing.assert_array_equal(after.optimiser_state.loss_scale.scale, [1, 1])
    np.testing.assert_array_equal(metrics["train/gradient_norm"], [0, 0])
    after, metrics = share(product_state(1.0, 1.0), windows)
    np.testing.assert_allclose(metrics["train/gradient_norm"], [30_000.5] * 2, rtol=1e-3)
    np.testing.assert_allclose(after.params["w"], [1 - 3000.05] * 2, rtol=1e-3)


# --- the networks -----------------------------------------------------------------------------------------------------


def test_min_max_scaling_in_float16_is_close_to_float32():
    """The epsilon and the square of a range of 0.003, by which the gradient divides, are too small for float16."""
    rows = jnp.array([[3.0, 3.0, 3.0, 3.0], [0.0, 1e-3, 2e-3, 3e-3], [-3e4, 6e4, 0.0, 1e3]], jnp.float16)

    @jax.jit
    def weighted(rows):
        return jnp.sum(layers.min_max_scale(rows) * jnp.arange(4, dtype=rows.dtype), dtype=jnp.float32)

    assert layers.min_max_scale(rows).dtype == jnp.float16
    np.testing.assert_array_equal(layers.min_max_scale(rows)[0], 0)
    one, other = (jax.grad(weighted)(rows.astype(dtype))[1:] for dtype in (jnp.float16, jnp.float32))
    np.testing.assert_allclose(one, other, rtol=2e-3)


@pytest.mark.parametrize(
    "kind", ["observation", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("tower", "attention"))]
)
def test_loss_and_gradient_in_float16_are_close_to_float32(kind):
    window = random_window(0, 4, 4, BOARD.num_actions, BOARD.observation_shape)
    window = window._replace(observation=window.observation > 0.5)
    batch = make_batch(window, jax.random.key(0), unroll_steps=1)
    config = replace(tiny_run.CONFIG, optimiser=replace(tiny_run.CONFIG.optimiser, reconstruction_weight=1.0))
    num_blocks = int(kind == "attention")  # a block is what makes it attend
    one, other = (make_network(kind, num_blocks=num_blocks, compute_dtype=dtype) for dtype in ("float32", "float16"))
    params = random_params(one)

    @partial(jax.jit, compiler_options=QUICKLY)
    def both(params, scale):
        def scaled_loss(params, model, scale):
            terms = build_terms(config, model)
            return scale * losses.loss(params, batch, model=model, terms=terms, checkpoint=False, batched=False)[0]

        gradient_fn = jax.value_and_grad(scaled_loss)
        return gradient_fn(params, one, 1.0), gradient_fn(params, other, scale)

    (loss, gradient), (scaled_loss, scaled_gradient) = jax.device_get(both(params, 2.0**8))
    np.testing.assert_allclose(scaled_loss / 2**8, loss, rtol=2e-3)
    exact, found = (
        np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)]) for tree in (gradient, scaled_gradient)
    )
    assert np.linalg.norm(found / 2**8 - exact) < 0.01 * np.linalg.norm(exact)


# --- a run ------------------------------------------------------------------------------------------------------------

NETWORK = replace(tiny_run.CONFIG.network, num_blocks=0, compute_dtype="float16")
CONFIG = replace(tiny_run.CONFIG, network=NETWORK, targets=replace(tiny_run.CONFIG.targets, unroll_steps=1))


def test_a_float16_run_scales_its_loss_and_keeps_parameters_and_search_results_in_float32():
    algorithm, mesh = make_algorithm(CONFIG), tiny_run.mesh()
    state = make_init(algorithm, CONFIG.seed, mesh).eval_shape()
    assert isinstance(state.learner.optimiser_state, scaled_loss.ScaledState)
    assert {leaf.dtype for leaf in jax.tree.leaves(state.learner.params)} == {jnp.dtype("float32")}
    assert state.replay.transitions.search_policy.dtype == state.replay.transitions.search_value.dtype == jnp.float32
    after, metrics = make_chunk(algorithm, mesh).trace(state, tiny_run.PROGRESS).out_info
    assert "train/loss_scale" in metrics and jax.tree.structure(after) == jax.tree.structure(state)


def test_a_run_in_float32_has_no_loss_scale():
    state = tiny_run.abstract_state().learner
    assert not isinstance(state.optimiser_state, scaled_loss.ScaledState)
