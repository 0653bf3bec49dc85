"""The MLP, the tower, the transformer, the network that imagines observations: what their outputs may depend on."""

import functools
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.check.model_checks import disturbed
from muzero_jax.config.config import Config
from muzero_jax.networks import layers
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.ops import convolution
from muzero_jax.ops.devices import made_for
from muzero_jax.types import Model
from tests.reference.models import BOARD, make_network

N, WIDTH, S = 5, 8, 7
PASS = 9
CELLS_AND_PASS = layers.BoardLayout((3, 3), (*range(9), -1))
SIZES = layers.NetworkSizes(
    num_actions=BOARD.num_actions,
    num_bins=S,
    observation_shape=BOARD.observation_shape,
    width=WIDTH,
    num_blocks=1,
    activation=jax.nn.relu,
    dtype=jnp.dtype("float32"),
)


class Case(NamedTuple):
    """A kind of network: its model compiled, its fresh parameters, and random ones."""

    kind: str
    model: Model
    fresh: Any
    params: Any  # random everywhere, heads included
    initial: Any
    recurrent: Any


def key(seed):
    return jax.random.key(seed, impl="rbg")  # compiles in a quarter of threefry's time


small_model = partial(make_network, support=Support(-1.0, 1.0, S))


def randomised(params):
    generator = np.random.default_rng(0)
    params = jax.device_get(params)
    return jax.tree.map(lambda x: x + generator.normal(scale=0.2, size=x.shape).astype(np.float32), params)


@functools.cache
def compiled(kind):
    model = small_model(kind)
    fresh = jax.device_get(jax.jit(model.init)(key(0)))
    initial, recurrent = jax.jit(model.initial_inference), jax.jit(model.recurrent_inference)
    return Case(kind, model, fresh, randomised(fresh), initial, recurrent)


@pytest.fixture(scope="module", params=["mlp", "observation", "tower", "attention", "fully_convolutional", "pixels"])
def case(request):
    return compiled(request.param)


@pytest.fixture(scope="module")
def observation():
    return np.random.default_rng(1).random((N, *BOARD.observation_shape)).astype(np.float32)


ACTIONS = np.arange(N, dtype=np.int32)


def assert_outputs_close(one, other, **tolerance):
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(x, np.float32), np.asarray(y, np.float32), **tolerance)


def rows(output, row):
    return jax.tree.map(lambda leaf: leaf[row], jax.device_get(output))


# --- shapes, dtypes, the start ----------------------------------------------------------------------------------------


def test_outputs_have_the_shapes_of_the_records(case, observation):
    root = case.initial(case.params, observation)
    child = case.recurrent(case.params, root.embedding, ACTIONS)
    for output in (root, child):
        assert output.policy_logits.shape == (N, BOARD.num_actions)
        assert output.value_logits.shape == output.reward_logits.shape == (N, S)
        assert output.embedding.shape in {(N, WIDTH), (N, 3, 3, WIDTH), observation.shape}
        assert {leaf.dtype for leaf in jax.tree.leaves(output)} == {jnp.dtype("float32")}
    np.testing.assert_array_equal(root.reward_logits, 0)


def test_heads_start_at_a_uniform_policy_and_at_value_and_reward_0(case, observation):
    root = case.initial(case.fresh, observation)
    child = case.recurrent(case.fresh, root.embedding, ACTIONS)
    for output in (root, child):
        np.testing.assert_array_equal(output.policy_logits, 0)
        np.testing.assert_allclose(case.model.to_scalar(output.value_logits), 0, atol=1e-6)
        np.testing.assert_allclose(case.model.to_scalar(output.reward_logits), 0, atol=1e-6)


def test_parameters_are_float32_whatever_the_arithmetic():
    for kind in ("mlp", "observation", "tower", "attention", "fully_convolutional"):
        models = (small_model(kind, compute_dtype=dtype) for dtype in ("float32", "bfloat16"))
        shapes = [jax.eval_shape(model.init, jax.random.key(0)) for model in models]
        assert shapes[0] == shapes[1]
        assert {leaf.dtype for leaf in jax.tree.leaves(shapes[1])} == {jnp.dtype("float32")}


def test_reconstruction_has_the_observations_shape_and_depends_on_the_embedding(case, observation):
    embedding = case.initial(case.params, observation).embedding
    logits = jax.jit(case.model.reconstruct)(case.params, embedding)
    assert logits.shape == observation.shape and logits.dtype == jnp.float32
    assert np.abs(np.asarray(logits[0] - logits[1])).max() > 1e-3


def test_arithmetic_in_bfloat16_stays_close_to_float32(case, observation):
    model = small_model(case.kind, compute_dtype="bfloat16")
    observation = (observation > 0.5).astype(np.float32)

    @jax.jit
    def both(params, observation, actions):
        root = model.initial_inference(params, observation)
        return root, model.recurrent_inference(params, root.embedding, actions)

    root, child = both(case.params, observation, ACTIONS)
    assert root.embedding.dtype == child.embedding.dtype == jnp.bfloat16  # half the memory in a tree
    assert root.policy_logits.dtype == root.value_logits.dtype == child.reward_logits.dtype == jnp.float32
    expected = case.initial(case.params, observation)
    assert_outputs_close(root, expected, atol=0.1, rtol=0.02)  # XLA's fusions decide what is rounded
    imagined = case.recurrent(case.params, expected.embedding, ACTIONS)
    same = np.ones(N, bool)
    if case.kind == "fully_convolutional":  # the heads read bits, and one that is nearly 0 may flip
        same = np.all((np.asarray(child.embedding) > 0) == (np.asarray(imagined.embedding) > 0), axis=(1, 2, 3))
        assert same.sum() >= N - 2
    assert_outputs_close(rows(child, same), rows(imagined, same), atol=0.1, rtol=0.02)


def test_one_model_computes_in_the_precision_of_the_device_that_it_is_traced_for(observation):
    """So that play can move an agent from an accelerator to the CPU without its game being built again."""
    model = small_model("mlp", compute_dtype="auto")
    params = jax.eval_shape(model.init, key(0))
    for capability, dtype in (("9.0", jnp.bfloat16), ("7.5", jnp.float32)):
        with made_for(SimpleNamespace(platform="gpu", compute_capability=capability)):
            found = jax.eval_shape(lambda *inputs: model.initial_inference(*inputs), params, observation)
            assert found.embedding.dtype == dtype


@pytest.mark.parametrize("kind", ["mlp", "tower", "observation", "attention", "fully_convolutional"])
def test_with_bfloat16_products_trunks_multiply_bfloat16_and_everything_else_is_float32(kind, observation):
    model = small_model(kind, width=32, compute_dtype="bfloat16_products")
    params, observation = jax.eval_shape(model.init, key(0)), jnp.asarray(observation)

    def unroll(params):
        root = model.initial_inference(params, observation)
        return root, model.recurrent_inference(params, root.embedding, ACTIONS)

    trunks, found = jax.make_jaxpr(unroll, return_shape=True)(params)
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype("float32")}
    # h, f, g and f have a first layer and a block of two each; a tower's h reads too few planes at first. Where h is
    # the identity, f has two blocks. A transformer's blocks have four layers: queries, keys and values, their read-out,
    # and an MLP of two.
    layers = {
        "mlp": ("multiply", 12),
        "observation": ("multiply", 13),
        "tower": ("row_windows", 11),
        "attention": ("multiply", 4 * (1 + 4)),
        "fully_convolutional": ("row_windows", 10),
    }
    name, count = layers[kind]
    assert str(trunks).count(f"name={name}\n") == count


# --- independence -----------------------------------------------------------------------------------------------------


def test_a_rows_output_does_not_depend_on_the_rest_of_the_batch(case, observation):
    """What BatchNorm would break: a position must look the same in search, in the loss and in any batch."""
    others = np.random.default_rng(2).random(observation.shape).astype(np.float32) * 10
    others[2] = observation[2]
    one, other = case.initial(case.params, observation), case.initial(case.params, others)
    assert_outputs_close(rows(one, 2), rows(other, 2), rtol=1e-5, atol=1e-6)
    actions = np.where(np.arange(N) == 2, ACTIONS, PASS).astype(np.int32)
    one, other = (case.recurrent(case.params, root.embedding, a) for root, a in ((one, ACTIONS), (other, actions)))
    assert_outputs_close(rows(one, 2), rows(other, 2), rtol=1e-5, atol=1e-6)


# --- actions ----------------------------------------------------------------------------------------------------------


def test_every_action_leads_to_an_embedding_of_its_own(case, observation):
    """Passes included: the index tells actions apart, and the plane says where they are."""
    root = case.initial(case.params, np.broadcast_to(observation[:1], observation.shape))
    by_action = [
        np.asarray(case.recurrent(case.params, root.embedding, np.resize(np.arange(i, i + N), N).astype(np.int32))[0])
        for i in (0, N)
    ]
    children = np.concatenate(by_action).reshape(2 * N, -1)
    distances = np.abs(children[:, None] - children[None]).max(axis=-1)
    assert (distances[~np.eye(2 * N, dtype=bool)] > 1e-3).all()


def test_a_towers_action_changes_the_neighbourhood_of_its_cell():
    """One convolution of the action's plane: a corner's move is felt in its 2x2 corner, not across the board."""
    planes = layers.ActionPlanes(SIZES, CELLS_AND_PASS)
    actions = jnp.array([0, 8, PASS])
    params = randomised(jax.jit(planes.init)(key(0), actions))
    table = params["params"]["Embed_0"]["embedding"]
    by_cell = np.asarray(jax.jit(planes.apply)(params, actions)) - np.asarray(table)[np.asarray(actions)][:, None, None]
    touched = np.abs(by_cell).max(axis=-1) > 1e-6
    corner = np.zeros((3, 3), bool)
    corner[:2, :2] = True
    np.testing.assert_array_equal(touched, [corner, corner[::-1, ::-1], np.zeros((3, 3))])


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (1, 4), (1, 1)])
def test_a_kernel_placed_on_a_cell_is_the_convolution_of_a_one_there(shape):
    """Values and gradients, for every cell and for none, in one batch."""
    generator, cells = np.random.default_rng(0), shape[0] * shape[1]
    ones = np.eye(cells + 1, cells, -1, dtype=np.float32).reshape(-1, *shape, 1)
    kernel, weights = (np.float32(generator.normal(size=s)) for s in ((3, 3, 4), (cells + 1, *shape, 4)))

    def by_convolution(kernel):
        return convolution.native(jnp.asarray(ones), kernel[:, :, None])

    def by_look_up(kernel):
        return layers.convolved_ones(kernel[:, :, None], jnp.arange(-1, cells), shape, jnp.dtype("float32"))

    @partial(jax.jit, static_argnums=0)
    def with_gradient(call, kernel):
        found, pullback = jax.vjp(call, kernel)
        return found, *pullback(jnp.asarray(weights))

    wanted, wanted_gradient = with_gradient(by_convolution, kernel)
    for device in (None, SimpleNamespace(platform="gpu")):
        with made_for(device):
            found, gradient = with_gradient(partial(by_look_up), kernel)  # a function of its own, traced again
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        np.testing.assert_allclose(gradient, wanted_gradient, atol=1e-4)


def test_in_half_precision_a_kernel_gets_the_gradient_of_all_actions():
    """One of 1,024 actions at the same cell: bfloat16 itself would stop counting at 256."""
    planes = layers.ActionPlanes(SIZES._replace(dtype=jnp.dtype("bfloat16")), CELLS_AND_PASS)
    actions = jnp.zeros(1024, jnp.int32)
    params = jax.jit(planes.init)(key(0), actions)
    gradient = jax.jit(jax.grad(lambda p: planes.apply(p, actions).astype(jnp.float32).sum()))(params)
    np.testing.assert_array_equal(gradient["params"]["kernel"][1, 1, 0], 1024)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_an_accelerators_products_are_a_cpus_look_ups_and_convolutions(activation):
    """Outputs and gradients of the network of small boards, whose weights fit both."""
    generator = np.random.default_rng(0)
    observation = jnp.asarray(generator.random((N, *BOARD.observation_shape)) < 0.5)
    action = jnp.arange(N, dtype=jnp.int32)

    def outputs_and_gradient(device):
        with made_for(device):
            model = make_model(
                BOARD, Support(-1.0, 1.0, S), kind="observation", width=WIDTH, num_blocks=1, activation=activation,
                compute_dtype="float32",
            )  # fmt: skip

            def loss(params):
                root = model.initial_inference(params, observation)
                child = model.recurrent_inference(params, root.embedding, action)
                outputs = [leaf for each in (root, child) for leaf in jax.tree.leaves(each)]
                return sum(
                    (jnp.sin(leaf) * jnp.arange(leaf.size).reshape(leaf.shape)).sum() for leaf in outputs
                ), outputs

            params = disturbed(jax.jit(model.init)(key(0)))
            return jax.jit(jax.grad(loss, has_aux=True))(params)

    ours, theirs = map(outputs_and_gradient, (None, SimpleNamespace(platform="gpu", compute_capability="9.0")))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * (1 + np.abs(one).max()))


# --- min-max scaling --------------------------------------------------------------------------------------------------


def test_embeddings_are_scaled_per_sample_by_the_representation_and_by_the_dynamics(case, observation):
    if case.kind in ("observation", "fully_convolutional"):
        pytest.skip("rounding takes the place of scaling")
    wide = observation * np.logspace(-1, 3, N, dtype=np.float32)[:, None, None, None]  # samples of unlike size
    embedding = case.initial(case.params, wide).embedding
    for _ in range(4):
        flat = np.asarray(embedding).reshape(N, -1)
        np.testing.assert_allclose(flat.min(axis=1), 0, atol=1e-6)
        np.testing.assert_allclose(flat.max(axis=1), 1, atol=1e-3)
        embedding = case.recurrent(case.params, embedding, ACTIONS).embedding


def test_min_max_scaling_by_hand():
    scaled = jax.jit(layers.min_max_scale)(np.float32([[2.0, 4.0, 3.0], [-100.0, 0.0, 100.0]]))
    np.testing.assert_allclose(scaled, [[0, 1, 0.5], [0, 0.5, 1]], atol=1e-5)


def test_a_constant_embedding_and_its_gradient_stay_finite():
    constant = np.full((2, 4), 3.0, np.float32)
    weighted_sum = lambda x: jnp.sum(layers.min_max_scale(x) * jnp.arange(4.0))  # noqa: E731
    scaled, gradient = jax.jit(jax.value_and_grad(weighted_sum))(constant)
    assert np.isfinite(scaled) and np.isfinite(gradient).all()
    np.testing.assert_array_equal(jax.jit(layers.min_max_scale)(constant), 0)


# --- imagined observations --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def imagining():
    return compiled("observation"), np.random.default_rng(3).random((N, *BOARD.observation_shape)) > 0.5


def test_an_observation_is_reconstructed_with_certainty(imagining):
    case, bits = imagining
    logits = case.model.reconstruct(case.params, case.initial(case.params, bits).embedding)
    np.testing.assert_array_equal(logits > 0, bits)
    np.testing.assert_array_equal(np.abs(logits), 20.0)


def test_only_the_bits_of_an_imagined_observation_matter(imagining):
    """An error that flips no bit therefore disappears at the next step."""
    case, bits = imagining
    unsure, certain = (np.where(bits, size, -size).astype(np.float32) for size in (0.1, 7.0))
    one, other = (case.recurrent(case.params, embedding, ACTIONS) for embedding in (unsure, certain))
    assert_outputs_close(one, other, rtol=0, atol=0)


def test_an_imagined_position_is_judged_as_the_same_one_seen(imagining):
    case, bits = imagining
    imagined = case.recurrent(case.params, case.initial(case.params, bits).embedding, ACTIONS)
    seen = case.initial(case.params, np.asarray(imagined.embedding) > 0)
    assert_outputs_close(imagined[2:], seen[2:], rtol=1e-5, atol=1e-6)


def test_dynamics_gets_gradients_of_embedding_and_reward_but_not_of_value_and_policy(imagining):
    (_, model, _, params, *_), bits = imagining

    def totals(params):
        """Of the embedding, the reward, the value and the policy."""
        output = model.recurrent_inference(params, model.initial_inference(params, bits).embedding, ACTIONS)
        return [jnp.sum(part * jnp.arange(part.size).reshape(part.shape)) for part in output[:4]]

    gradients = jax.jit(jax.jacrev(totals))(params)
    reaches = [any(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(one["dynamics"])) for one in gradients]
    assert reaches == [True, True, False, False]


def test_the_observation_network_refuses_observations_that_are_not_boolean():
    environment = BOARD._replace(observe=lambda state: jnp.zeros((3, 3, 2)))
    with pytest.raises(ValueError, match="--network.kind"):
        make_network("observation", environment)


# --- heads ------------------------------------------------------------------------------------------------------------


def test_the_support_of_a_run_is_the_range_of_a_board_games_returns():
    model = make_algorithm(Config(env="tic_tac_toe")).model
    lost_and_won = np.float32(100.0 * np.eye(21)[[0, 20]])
    np.testing.assert_allclose(jax.jit(model.to_scalar)(lost_and_won), [-1, 1], rtol=1e-6)


def test_embeddings_that_hardly_differ_are_projected_apart():
    """So the consistency loss cannot be met by one constant; equal embeddings have a projection of 0."""
    projector = layers.Projector(SIZES)
    near = 7.0 + 0.05 * np.random.default_rng(2).normal(size=(64, 3, 3, WIDTH)).astype(np.float32)
    params = projector.init(key(0), near, method=lambda module, x: module.predict(module.project(x)))
    projected = projector.apply(params, near, method="project")
    np.testing.assert_allclose(np.mean(projected, axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.var(projected, axis=0), 1, atol=0.02)
    np.testing.assert_allclose(projector.apply(params, np.full_like(near, 7.0), method="project"), 0, atol=0.02)
