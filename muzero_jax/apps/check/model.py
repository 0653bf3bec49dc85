"""`muzero_jax.check_model`: what is wrong with a model of your own, in one sentence each.

Shapes and dtypes come first (`contract`), then each function is traced twice. Last, one small program runs the model on
random observations and 20 imagined moves: with fresh parameters, and with all of them moved a little, since heads may
start at zero.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array

from muzero_jax.networks import contract
from muzero_jax.networks.layers import MUZERO
from muzero_jax.types import Environment, Model, NetworkOutput, Params

NUM_ROWS, NUM_STEPS = 6, 20
NOISE = 0.1
"""Standard deviation of what is added to each parameter."""
LARGEST_DIFFERENCE = 1e-3
"""Between a row's outputs in two batches, as a share of 1 plus their size; BatchNorm's differ by a tenth and more."""
LARGEST_GROWTH = 10.0
"""The factor by which embeddings may grow between the first imagined move and the twentieth."""
TARGETS = (-0.9, -0.3, 0.0, 0.5, 0.9)
LARGEST_ERROR = 0.05
"""The error that `to_scalar` may have, of the logits with the smallest loss."""
QUICKLY: dict = {"xla_llvm_disable_expensive_passes": True}
"""Compiler options. With no optimisation at all, the gradient of a maximum may be 0/0: XLA then computes its argument
twice, and not bit for bit alike."""
_MOST_NAMES = 4


class Batch(NamedTuple):
    """The inputs that the model is run on."""

    observation: Array  # [N, *obs]
    actions: Array  # [steps, N] int32; every second one a code, where the model has codes of chance


class Outputs(NamedTuple):
    """The outputs along the imagined moves."""

    root: NetworkOutput
    steps: NetworkOutput  # leaves [steps, N, ...]
    observation_logits: Array  # [N, *obs], of the last
    of_codes: Any = None  # what the encoder of chance says, and the output of following a code as a one-hot


def check_model(model: Model, environment: Environment) -> list[str]:
    """The faults of a model for a game, in one sentence each; empty if nothing was found.

    Takes seconds, most of which compile. It finds wrong shapes and dtypes, what JAX cannot compile, outputs that depend
    on more than the arguments or on the rest of the batch, NaNs, parameters that learn nothing, embeddings that grow,
    and a `to_scalar` that does not go with its `scalar_loss`.
    """
    abilities = MUZERO._replace(num_codes=model.num_codes, encodes_chance=model.encode_chance is not None)
    if found := contract.breaches(model, environment, abilities):
        return found
    batch, other = _batches(environment, model.num_codes)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    root = jax.eval_shape(model.initial_inference, shapes, batch.observation)
    found = [
        *_impure("init", model.init, jax.random.key(0)),
        *_impure("initial_inference", model.initial_inference, shapes, batch.observation),
        *_impure("recurrent_inference", model.recurrent_inference, shapes, root.embedding, batch.actions[0]),
    ]
    if found:
        return found
    key = jax.random.key(0, impl="rbg")  # compiles in a quarter of threefry's time
    fresh = jax.jit(model.init, compiler_options=QUICKLY)(key)
    generator = np.random.default_rng(1)
    moved = jax.tree.map(lambda x: x + generator.normal(scale=NOISE, size=x.shape).astype(np.float32), fresh)
    run = jax.jit(jax.grad(partial(_run, model), has_aux=True), compiler_options=QUICKLY)
    cases = ((fresh, batch), (moved, batch), (moved, other))
    (_, at_first), (gradient, one), (_, two) = (jax.device_get(run(*case)) for case in cases)
    return [
        *_of_first(at_first),
        *_of_rows(one, two),
        *_of_gradient(gradient, is_expected=_is_finite(one)),
        *_of_codes(model, one),
        *_of_loss(model, root.value_logits.shape[-1]),
    ]


def _batches(environment: Environment, num_codes: int) -> tuple[Batch, Batch]:
    """Two batches of random observations and moves, with the same row 0."""
    generator, seen = np.random.default_rng(0), contract.observation_of(environment)
    draw = generator.random((2, NUM_ROWS, *seen.shape))
    observation = draw > 0.5 if seen.dtype == bool else draw.astype(seen.dtype)
    actions = generator.integers(environment.num_actions, size=(2, NUM_STEPS, NUM_ROWS)).astype(np.int32)
    if num_codes:
        actions[:, 1::2] = environment.num_actions + generator.integers(num_codes, size=actions[:, 1::2].shape)
    observation[1, 0], actions[1, :, 0] = observation[0, 0], actions[0, :, 0]
    one, other = (Batch(jnp.asarray(observation[i]), jnp.asarray(actions[i])) for i in range(2))
    return one, other


def _impure(name: str, function: Callable[..., Any], *arguments: Any) -> Iterator[str]:
    """Whether two traces with the same arguments make different programs."""
    one, other = (_program(function, arguments) for _ in range(2))
    if one != other:
        yield (
            f"{name} is not a function of its arguments alone: called twice with the same, it computes something else; "
            "draw random numbers from params or from init's key, and change nothing outside"
        )


def _program(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """A function's computation, as text, and the constants in it."""
    closed = jax.make_jaxpr(lambda *inputs: function(*inputs))(*arguments)
    return re.sub("0x[0-9a-f]+", "", str(closed.jaxpr)), [_comparable(constant) for constant in closed.consts]


def _comparable(array: Any) -> Any:
    """A constant's bytes; for what an earlier trace has left behind something that nothing is equal to."""
    if isinstance(array, Tracer):
        return object()
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array).tobytes()


def _run(model: Model, params: Params, batch: Batch) -> tuple[Array, Outputs]:
    """A sum of all that the heads say along the moves, each number with a weight of its own; and the outputs.

    A gradient passes from the first move to the root, and no further, so that it cannot explode.
    """

    def imagine(embedding, action):
        output = model.recurrent_inference(params, embedding, action)
        return lax.stop_gradient(output.embedding), output

    root = model.initial_inference(params, batch.observation)
    _, steps = lax.scan(imagine, root.embedding, batch.actions)
    afterstate, num_actions = steps.embedding[0], root.policy_logits.shape[-1]
    of_codes = None
    if model.encode_chance is not None and model.follow_code is not None:
        found = model.encode_chance(params, batch.observation, jnp.roll(batch.observation, 1, axis=-1))
        one_hot = jax.nn.one_hot(batch.actions[1] - num_actions, model.num_codes)
        of_codes = found, model.follow_code(params, afterstate, one_hot)
    outputs = Outputs(root, steps, model.reconstruct(params, steps.embedding[-1]), of_codes)
    heads = [output._replace(embedding=None) for output in (root, steps)]
    leaves = jax.tree.leaves((heads, outputs.observation_logits, of_codes and of_codes[0]))
    return sum(jnp.sum(x * jnp.cos(jnp.arange(x.size)).reshape(x.shape)) for x in leaves), outputs  # type: ignore


def _is_finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(x, np.float32)).all() for x in jax.tree.leaves(tree))


def _of_first(found: Outputs) -> Iterator[str]:
    """Faults of fresh parameters along the moves."""
    if not _is_finite(found.root):
        yield "initial_inference gives NaN or infinity with fresh parameters; look for a division by 0 or a logarithm"
        return
    for step in range(NUM_STEPS):
        if not _is_finite(jax.tree.map(lambda x: x[step], found.steps)):  # noqa: B023
            yield f"recurrent_inference gives NaN or infinity at imagined move {step + 1}; keep embeddings in a range"
            return
    size = np.abs(np.asarray(found.steps.embedding, np.float32)).reshape(NUM_STEPS, -1).max(axis=1)
    if size[-1] > LARGEST_GROWTH * size[0]:
        yield (
            f"embeddings grow {size[-1] / size[0]:.0f}-fold over {NUM_STEPS} imagined moves, and deeper ones without "
            "bound; scale each to [0, 1], for example by muzero_jax.networks.layers.min_max_scale"
        )


def _of_rows(one: Outputs, two: Outputs) -> Iterator[str]:
    """Whether row 0, the same in both batches, is judged alike."""
    for name, x, y in (
        ("initial_inference", one.root, two.root),
        ("recurrent_inference", jax.tree.map(lambda x: x[0], one.steps), jax.tree.map(lambda x: x[0], two.steps)),
    ):
        difference = max(_difference(*pair) for pair in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True))
        if difference > LARGEST_DIFFERENCE:
            yield (
                f"{name} mixes the rows of a batch: one row's outputs change by {difference:.1%} with its neighbours; "
                "use LayerNorm in place of BatchNorm, and no mean over the first axis"
            )
            return


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    one, other = np.asarray(one[0], np.float32), np.asarray(other[0], np.float32)
    return float(np.abs(one - other).max() / (1.0 + np.abs(one).max()))


def _of_gradient(gradient: Any, *, is_expected: bool) -> Iterator[str]:
    """Which parameters it does not reach, if it is finite where it is expected to be."""
    if not _is_finite(gradient):
        if is_expected:
            yield "the gradient is NaN or infinity; look for a square root, norm or logarithm of 0"
        return
    leaves = jax.tree_util.tree_leaves_with_path(gradient)
    unreached = [contract.path_name(path) for path, leaf in leaves if not np.any(leaf)]
    if unreached:
        more = f" and {len(unreached) - _MOST_NAMES} more" if len(unreached) > _MOST_NAMES else ""
        names = ", ".join(unreached[:_MOST_NAMES])
        yield f"no gradient reaches {names}{more}, so they learn nothing; let a head depend on them or leave them out"


def _of_codes(model: Model, found: Outputs) -> Iterator[str]:
    """Whether a code leads to the same place as a number and as a one-hot."""
    if found.of_codes is None:
        return
    by_number = jax.tree.map(lambda x: x[1], found.steps)
    pairs = zip(jax.tree.leaves(by_number), jax.tree.leaves(found.of_codes[1]), strict=True)
    difference = max(_difference(x[None], y[None]) for x, y in pairs)
    if difference > LARGEST_DIFFERENCE:
        yield (
            f"follow_code and recurrent_inference differ by {difference:.1%} for the same code; the one-hot of c must "
            "lead where the index num_actions + c does"
        )


def _of_loss(model: Model, num_bins: int) -> Iterator[str]:
    """Whether the loss of a target is smallest where it is read: by steps of a falling length down its gradient."""
    targets, bound = jnp.array(TARGETS) * (model.bound or 1.0), model.bound or 1.0

    def descend(logits, length):
        gradient = jax.grad(lambda x: jnp.sum(model.scalar_loss(x, targets)))(logits)
        size = jnp.sqrt(jnp.sum(gradient**2, axis=-1, keepdims=True))
        return logits - length * gradient / (size + 1e-6), None

    @partial(jax.jit, compiler_options=QUICKLY)
    def fit(start):
        return model.to_scalar(lax.scan(descend, start, 0.98 ** jnp.arange(300))[0])

    fitted_targets = np.asarray(fit(jnp.zeros((len(TARGETS), num_bins))))
    for target, fitted in zip(np.asarray(targets).tolist(), fitted_targets, strict=True):
        if not abs(target - fitted) <= LARGEST_ERROR * bound:
            yield (
                f"scalar_loss for the target {target:g} is smallest where to_scalar says {fitted:.2f}; "
                "both must read the logits alike, as muzero_jax.networks.value_transform does with one Support"
            )
            return
