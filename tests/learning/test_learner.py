"""The optimiser's parts by hand, and that gradient steps learn."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from muzero_jax.learning import learner, losses
from muzero_jax.learning.losses import Term
from muzero_jax.types import LearnerState
from tests.reference import windows
from tests.reference.models import BOARD, SUPPORT, make_network, make_tanh_model
from tests.reference.programs import alone, on_devices
from tests.reference.windows import random_window

N, K = 8, 2
MODEL = make_tanh_model()
OPTIMISER = learner.make_optimiser(weight_decay=0.0, max_gradient_norm=5.0)
RATE = 0.01
DESCENT = optax.sgd(0.1)  # a step in proportion to the gradient shows more than Adam's, and compiles sooner


def make_loss(model, reconstruction=0.0):
    """MuZero's losses with weight 1, and the reconstruction's."""
    terms = [
        Term("reward", losses.reward_loss, 1.0),
        Term("value", losses.value_loss, 1.0),
        Term("policy", losses.policy_loss, 1.0),
        Term("reconstruction", losses.reconstruction_loss, reconstruction, "all"),
    ]
    return partial(losses.loss, model=model, terms=terms if reconstruction else terms[:3])


def update_of_share(state, batch, *, rate=RATE, **options):
    """`learner.update`, as one of several devices makes it."""
    bound = {"optimiser": DESCENT, "loss": make_loss(MODEL, reconstruction=0.5)} | options
    return learner.update(state, batch, rate, **bound)


def update(state, batch, **options):
    """`learner.update`, as the only device makes it."""
    return alone(partial(update_of_share, **options), state, batch)


def make_batch(num_windows, num_actions=3, observation_shape=(2,)):
    window = random_window(0, num_windows, K + 3, num_actions, observation_shape)
    return jax.jit(partial(windows.make_batch, unroll_steps=K))(window, jax.random.key(0))


# --- the schedule -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schedule, warmup_updates, found",
    [
        ("constant", 4, {(0.0, 0): 0.0, (0.0, 1): 0.25, (0.5, 2): 0.5, (0.5, 4): 1.0, (1.0, 10_000): 1.0}),
        ("constant", 0, {(0.0, 0): 1.0, (1.0, 10_000): 1.0}),
        # (1 + cos(pi t)) / 2 scaled to [0.1, 1]: at a quarter of the way 0.1 + 0.9 (1 + sqrt(1/2)) / 2
        ("cosine", 4, {(0.0, 0): 0.0, (0.0, 4): 1.0, (0.25, 8): 0.868198, (0.5, 2): 0.275, (1.5, 9): 0.1}),
    ],
)
def test_the_learning_rate_warms_up_and_is_constant_or_falls_to_a_tenth(schedule, warmup_updates, found):
    """By the progress of the run, and in the warm-up by the updates made."""
    rate = learner.make_schedule(learning_rate=2.0, schedule=schedule, warmup_updates=warmup_updates)
    rates = [float(rate(jnp.float32(progress), jnp.int32(made))) for progress, made in found]
    np.testing.assert_allclose(rates, [2.0 * share for share in found.values()], rtol=1e-5, atol=1e-7)


def test_a_step_is_proportional_to_the_learning_rate():
    step = jax.jit(partial(update, optimiser=OPTIMISER))
    start, batch = learner.init(MODEL, OPTIMISER, jax.random.key(0)), make_batch(N)

    def after(rate):
        moved, metrics = step(start, batch, rate=rate)
        assert float(metrics["train/learning_rate"]) == pytest.approx(rate) and int(moved.num_updates) == 1
        return jax.tree.map(np.subtract, *jax.device_get((moved.params, start.params)))

    scaled = jax.tree.map(lambda x: x * 0.001 / 0.0055, after(0.0055))
    chex.assert_trees_all_close(scaled, after(0.001), rtol=1e-7, atol=1e-6)


# --- the optimiser ----------------------------------------------------------------------------------------------------


NAMES = ("adamw", "adafactor", "muon", "sgd")


def is_matrix(params):
    return jax.tree.map(lambda x: x.ndim > 1, params)


def plain(name, rate, decay):
    """The same optimiser as a user of Optax writes it, with a fixed rate."""
    if name == "adafactor":  # its decay is not multiplied by the rate
        return optax.adafactor(
            rate, multiply_by_parameter_scale=False, weight_decay_rate=rate * decay, weight_decay_mask=is_matrix
        )
    if name == "muon":
        axes = {2: optax.contrib.MuonDimensionNumbers(0, 1), 4: optax.contrib.MuonDimensionNumbers((0, 1, 2), 3)}
        return optax.contrib.muon(
            rate,
            weight_decay=decay,
            muon_weight_dimension_numbers=lambda params: jax.tree.map(lambda x: axes.get(x.ndim), params),
            consistent_rms=0.2,
        )
    if name == "sgd":
        return optax.chain(optax.sgd(rate, momentum=0.9), optax.add_decayed_weights(-rate * decay, is_matrix))
    return optax.adamw(rate, weight_decay=decay, mask=is_matrix)


@pytest.mark.parametrize("name", NAMES)
def test_an_optimiser_given_its_rate_at_each_update_steps_like_optaxs_at_a_fixed_rate(name):
    """Twelve steps on a toy problem: least squares in a matrix, a convolution kernel and a bias."""
    generator = np.random.default_rng(0)
    shapes = {"kernel": (4, 3), "convolution": (3, 3, 2, 4), "bias": (3,)}
    start = {key: np.float32(generator.normal(size=shape)) for key, shape in shapes.items()}
    aim = {key: generator.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}
    ours = learner.make_optimiser(name=name, weight_decay=0.1, max_gradient_norm=1e9)
    theirs = plain(name, 0.03, 0.1)

    @jax.jit
    def run(params):
        def step(carry, _):
            (one, our_state), (other, their_state) = carry
            gradients = jax.tree.map(jnp.subtract, one, aim)
            updates, our_state = ours.update(gradients, our_state, one, learning_rate=jnp.float32(0.03))
            one = optax.apply_updates(one, updates)
            gradients = jax.tree.map(jnp.subtract, other, aim)
            updates, their_state = theirs.update(gradients, their_state, other)
            other = optax.apply_updates(other, updates)
            return ((one, our_state), (other, their_state)), (one, other)

        return jax.lax.scan(step, ((params, ours.init(params)), (params, theirs.init(params))), None, length=12)[1]

    found, wanted = jax.device_get(run(start))
    chex.assert_trees_all_close(found, wanted, rtol=1e-5, atol=1e-6)
    assert all(np.abs(found[key][-1] - start[key]).max() > 0.05 for key in shapes)


@pytest.mark.parametrize("name", NAMES)
def test_every_optimiser_clips_by_the_global_norm_first_and_decays_only_kernels(name):
    """A gradient that is too long counts as the one of the same direction and the largest norm, which is 1 here."""
    optimiser = learner.make_optimiser(name=name, weight_decay=0.5, max_gradient_norm=1.0)
    params = {"kernel": jnp.full((2, 3), 4.0), "convolution": jnp.full((3, 3, 1, 2), -2.0), "bias": jnp.full(3, 4.0)}
    step = jax.jit(optimiser.update)
    updates, _ = step(jax.tree.map(jnp.zeros_like, params), optimiser.init(params), params, learning_rate=0.1)
    np.testing.assert_allclose(updates["kernel"], -0.1 * 0.5 * 4.0, rtol=1e-6)
    np.testing.assert_allclose(updates["convolution"], 0.1 * 0.5 * 2.0, rtol=1e-6)
    np.testing.assert_allclose(updates["bias"], 0, atol=1e-12)
    sizes = 1e6, 1 / optax.tree.norm(params)
    gradients = [jax.tree.map(partial(jnp.multiply, size), params) for size in sizes]
    states = [step(gradient, optimiser.init(params), params, learning_rate=0.1)[1] for gradient in gradients]
    chex.assert_trees_all_close(*states, rtol=1e-5)


# --- updates ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def batch():
    return make_batch(N)


@pytest.fixture(scope="module")
def state():
    return jax.device_get(learner.init(MODEL, DESCENT, jax.random.key(0)))


@pytest.fixture(scope="module")
def updated(state, batch):
    return jax.device_get(jax.jit(update)(state, batch))


def test_an_update_counts_itself_and_changes_every_parameter(state, updated):
    after, metrics = updated
    assert (int(state.num_updates), int(after.num_updates)) == (0, 1)
    assert isinstance(after, LearnerState)
    for old, new in zip(jax.tree.leaves(state.params), jax.tree.leaves(after.params), strict=True):
        assert old.dtype == new.dtype == jnp.float32 and (old != new).any()
    assert all(np.isfinite(value) and value.shape == () for value in metrics.values())
    assert metrics["train/gradient_norm"] > 0


def test_shares_of_a_batch_averaged_over_devices_make_the_same_step_as_the_whole(state, batch, updated):
    halves = jax.tree.map(lambda x: x.reshape(2, N // 2, *x.shape[1:]), jax.device_get(batch))
    after, metrics = jax.device_get(on_devices(partial(update_of_share, jax.device_put(state)), halves))
    expected, expected_metrics = updated
    for row in range(2):
        chex.assert_trees_all_close(jax.tree.map(lambda x: x[row], metrics), expected_metrics, rtol=1e-4)  # noqa: B023
        params = jax.tree.map(lambda x: x[row], after.params)  # noqa: B023
        chex.assert_trees_all_close(params, expected.params, rtol=1e-4, atol=1e-6)


def test_micro_batches_make_the_same_step_as_the_whole_batch(state, batch, updated):
    """The loss only ever sees two windows, which is what saves memory."""
    seen, loss = set(), make_loss(MODEL, reconstruction=0.5)

    def loss_of_part(params, part):
        seen.add(len(part.actions))
        return loss(params, part)

    found = jax.jit(partial(update, loss=loss_of_part, micro_batch=2))(state, batch)
    chex.assert_trees_all_close(found, updated, rtol=1e-4, atol=1e-6)
    assert seen == {2}


def test_only_the_first_observation_of_a_window_is_encoded_and_only_once(state, batch):
    encoded = []

    def initial_inference(params, observation):
        encoded.append(observation.shape)
        return MODEL.initial_inference(params, observation)

    batch = batch._replace(observation=batch.observation[:, :1])  # what `replay.gather` reads
    step = partial(update, loss=make_loss(MODEL._replace(initial_inference=initial_inference)))
    jax.eval_shape(step, state, batch)
    assert set(encoded) == {(N, 2)} and len(encoded) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "attention"])
def test_overfitting_one_tiny_batch_drives_every_loss_to_0(kind):
    """In 400 updates on the same four windows, which a small network can learn by heart."""
    model = make_network(kind, support=SUPPORT, width=32)
    batch = make_batch(4, BOARD.num_actions, BOARD.observation_shape)
    batch = batch._replace(observation=batch.observation > 0.5)
    step = partial(update, optimiser=OPTIMISER, loss=make_loss(model, reconstruction=1.0))

    @jax.jit
    def run(key):
        state = learner.init(model, OPTIMISER, key)
        return jax.lax.scan(lambda state, _: step(state, batch), state, None, length=400)[1]

    curves = jax.device_get(run(jax.random.key(1, impl="rbg")))  # compiles in a quarter of threefry's time
    for part in ("loss", "value_loss", "reward_loss", "policy_loss", "reconstruction_loss"):
        curve = curves[f"train/{part}"]
        assert curve[-1] < 0.02 * curve[0], (part, curve[0], curve[-1])
        assert (curve > -1e-4).all()  # entropies are subtracted: 0 is the floor


# --- the target network -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "follow, by_update",
    [
        (partial(learner.copied, period=2), [0.0, 2.0, 2.0, 4.0]),
        (partial(learner.averaged, decay=0.9), [0.1, 0.29, 0.561, 0.9049]),
        (partial(learner.averaged_from_the_start, decay=0.6), [1.0, 1.5, 2.1, 2.86]),
    ],
)
def test_a_target_network_is_copied_every_period_or_averaged_at_every_update(follow, by_update):
    """The network goes from 0 to 1, 2, 3, 4."""
    target, found = {"w": jnp.float32(0.0)}, []
    for update_number in range(1, 5):
        target = follow(target, {"w": jnp.float32(update_number)}, jnp.int32(update_number))
        found.append(float(target["w"]))
    np.testing.assert_allclose(found, by_update, rtol=1e-6)


def test_an_update_moves_the_target_network_if_there_is_one(state, batch):
    follow = partial(learner.averaged, decay=0.5)
    with_target = learner.init(MODEL, DESCENT, jax.random.key(0), has_target=True)
    with_target, (after, _) = jax.device_get((with_target, jax.jit(partial(update, follow=follow))(with_target, batch)))
    middle = jax.tree.map(lambda old, new: (old + new) / 2, with_target.params, after.params)
    chex.assert_trees_all_close(after.target_params, middle, rtol=1e-6)
    assert after.search_params is after.target_params
    assert state.target_params is None and state.search_params is state.params


def test_an_average_is_the_agent_if_there_is_one(state, batch):
    average = partial(learner.averaged_from_the_start, decay=0.5)
    begun = learner.init(MODEL, DESCENT, jax.random.key(0), has_average=True)
    step = jax.jit(partial(update, average=average))
    one, _ = step(begun, batch)
    two, _ = step(one, batch)
    chex.assert_trees_all_close(one.average_params, one.params, rtol=1e-6)  # of the first parameters nothing is left
    middle = jax.tree.map(lambda old, new: (old + new) / 2, one.params, two.params)
    chex.assert_trees_all_close(two.average_params, middle, rtol=1e-5, atol=1e-7)
    assert two.agent_params is two.average_params and state.agent_params is state.params


def test_steps_of_sgd_are_proportional_to_the_gradient():
    """And with momentum 0.9 a constant gradient's second step is 1.9 times the first."""
    descent = learner.make_optimiser(name="sgd", weight_decay=0.0, max_gradient_norm=1e9)
    params = {"w": jnp.array([1.0, 2.0])}
    for scale in (1.0, 1e-4):
        steps, state = [], descent.init(params)
        for _ in range(2):
            gradient = {"w": scale * jnp.array([0.5, -2.0])}
            changes, state = descent.update(gradient, state, params, learning_rate=jnp.float32(0.1))
            steps.append(changes["w"] / scale)
        np.testing.assert_allclose(steps, [[-0.05, 0.2], [-0.095, 0.38]], rtol=1e-5)
