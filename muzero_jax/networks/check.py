"""`muzero_jax.check_model`: what is wrong with a model of your own, in one sentence each.

Shapes and dtypes come first (`contract`). Then the model is traced twice, and run once on random observations: with
fresh parameters along 20 imagined moves, and with all parameters moved a little, since heads may start at zero.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from muzero_jax.networks import contract
from muzero_jax.types import Environment, Model, NetworkOutput, Params

NUM_ROWS, NUM_STEPS = 6, 20
NOISE = 0.1
"""Standard deviation of what is added to each parameter."""
LARGEST_DIFFERENCE = 1e-3
"""Of a row's outputs in two batches, as a share of 1 plus their size; BatchNorm changes them by a tenth and more."""
LARGEST_GROWTH = 10.0
"""Of embeddings between the first imagined move and the twentieth."""
TARGETS = (-0.9, -0.3, 0.0, 0.5, 0.9)
LARGEST_ERROR = 0.05
"""Of the scalar that the logits with the smallest loss stand for."""
_MOST_NAMES = 4


class Inputs(NamedTuple):
    """What the model is run on. Row 0 is the same in both batches."""

    observation: Array  # [N, *obs]
    action: Array  # [N] int32
    other_observation: Array  # [N, *obs]
    other_action: Array  # [N] int32
    actions: Array  # [steps, N] int32
    noise: Params


class Findings(NamedTuple):
    """What running it shows."""

    finite_root: Array  # [] bool, with fresh parameters
    finite_steps: Array  # [steps] bool
    size: Array  # [steps], the largest number of the embeddings
    difference: Array  # [2], of row 0 in two batches: of initial and of recurrent inference
    is_reached: Any  # a bool for each parameter: whether its gradient is not 0 everywhere
    finite_gradient: Array  # [] bool
    fitted: Array  # [targets], what `to_scalar` says of the logits with the smallest loss


def check_model(model: Model, environment: Environment) -> list[str]:
    """What is wrong with a model for a game, in one sentence each; empty if nothing was found.

    Takes a few seconds, most of which compile. It finds wrong shapes and dtypes, what JAX cannot compile, outputs that
    depend on more than the arguments or on the rest of the batch, NaNs, parameters that learn nothing, embeddings that
    grow, and a `to_scalar` that does not go with its `scalar_loss`.
    """
    if found := contract.breaches(model, environment):
        return found
    inputs = _inputs(model, environment)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    root = jax.eval_shape(model.initial_inference, shapes, inputs.observation)
    found = [
        *_impure("init", model.init, jax.random.key(0)),
        *_impure("initial_inference", model.initial_inference, shapes, inputs.observation),
        *_impure("recurrent_inference", model.recurrent_inference, shapes, root.embedding, inputs.action),
    ]
    key = jax.random.key(0, impl="rbg")  # compiles in a quarter of threefry's time
    measured = jax.device_get(jax.jit(partial(_measure, model))(key, inputs))
    return [*found, *_sentences(measured)]


def _inputs(model: Model, environment: Environment) -> Inputs:
    generator = np.random.default_rng(0)
    one = contract.observation_of(environment)
    bits = one.dtype == bool
    draw = generator.random((2, NUM_ROWS, *one.shape))
    observation, other = draw > 0.5 if bits else draw.astype(one.dtype)
    other[0] = observation[0]
    actions = generator.integers(environment.num_actions, size=(NUM_STEPS + 1, NUM_ROWS)).astype(np.int32)
    other_action = np.roll(actions[0], 1)
    other_action[0] = actions[0, 0]
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    noise = jax.tree.map(lambda x: generator.normal(scale=NOISE, size=x.shape).astype(np.float32), shapes)
    return Inputs(observation, actions[0], other, other_action, actions[1:], noise)  # type: ignore


def _impure(name: str, function: Callable[..., Any], *arguments: Any) -> Iterator[str]:
    """Whether two traces with the same arguments make different programs."""
    try:
        one, other = (_program(function, arguments) for _ in range(2))
    except jax.errors.UnexpectedTracerError:
        yield f"{name} stores what it computes and uses it in a later call; its arguments alone must do"
        return
    if one != other:
        yield (
            f"{name} is not a function of its arguments alone: called twice with the same, it computes something else; "
            "draw random numbers from params or from init's key, and change nothing outside"
        )


def _program(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, list[bytes]]:
    """What a function computes, as text, and the constants in it."""
    closed = jax.make_jaxpr(lambda *inputs: function(*inputs))(*arguments)
    return re.sub("0x[0-9a-f]+", "", str(closed.jaxpr)), [_bytes(constant) for constant in closed.consts]


def _bytes(array: Any) -> bytes:
    is_key = jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(array) if is_key else array).tobytes()


def _measure(model: Model, key: Array, inputs: Inputs) -> Findings:
    fresh = model.init(key)
    root = model.initial_inference(fresh, inputs.observation)

    def imagine(embedding, action):
        output = model.recurrent_inference(fresh, embedding, action)
        return output.embedding, (_is_finite(output), jnp.max(jnp.abs(output.embedding)).astype(jnp.float32))

    _, (finite_steps, size) = lax.scan(imagine, root.embedding, inputs.actions)
    moved = jax.tree.map(jnp.add, fresh, inputs.noise)
    gradient, outputs = jax.grad(partial(_probe, model), has_aux=True)(moved, inputs)
    other_root = model.initial_inference(moved, inputs.other_observation)
    others = other_root, model.recurrent_inference(moved, other_root.embedding, inputs.other_action)
    difference = jnp.stack([_difference(*pair) for pair in zip(outputs, others, strict=True)])
    return Findings(
        finite_root=_is_finite(root),
        finite_steps=finite_steps,
        size=size,
        difference=difference,
        is_reached=jax.tree.map(lambda x: jnp.any(x != 0), gradient),
        finite_gradient=_is_finite(gradient),
        fitted=_fit(model, root.value_logits.shape[-1]),
    )


def _probe(model: Model, params: Params, inputs: Inputs) -> tuple[Array, tuple[NetworkOutput, NetworkOutput]]:
    """A sum of all that the heads say along two moves, each number with a weight of its own; and the outputs."""
    root = model.initial_inference(params, inputs.observation)
    child = model.recurrent_inference(params, root.embedding, inputs.action)
    last = model.recurrent_inference(params, child.embedding, inputs.actions[0])
    heads = [output._replace(embedding=None) for output in (root, child, last)]
    leaves = jax.tree.leaves((heads, model.reconstruct(params, last.embedding)))
    return sum(jnp.sum(x * jnp.cos(jnp.arange(x.size)).reshape(x.shape)) for x in leaves), (root, child)  # type: ignore


def _is_finite(tree: Any) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(tree)]))


def _difference(one: NetworkOutput, other: NetworkOutput) -> Array:
    """How far row 0 of two batches is apart, as a share of 1 plus its size."""

    def of(x, y):
        x, y = x[0].astype(jnp.float32), y[0].astype(jnp.float32)
        return jnp.max(jnp.abs(x - y)) / (1.0 + jnp.max(jnp.abs(x)))

    return jnp.max(jnp.stack(jax.tree.leaves(jax.tree.map(of, one, other))))


def _fit(model: Model, num_bins: int) -> Array:
    """Descends `scalar_loss` for each target, by steps of a length that falls and does not depend on the gradient's."""
    targets = jnp.array(TARGETS)

    def descend(logits, length):
        gradient = jax.grad(lambda x: jnp.sum(model.scalar_loss(x, targets)))(logits)
        size = jnp.sqrt(jnp.sum(gradient**2, axis=-1, keepdims=True))
        return logits - length * gradient / (size + 1e-6), None

    start = jnp.zeros((len(TARGETS), num_bins))
    return model.to_scalar(lax.scan(descend, start, 0.98 ** jnp.arange(300))[0])


def _sentences(found: Findings) -> Iterator[str]:
    if not found.finite_root:
        yield "initial_inference gives NaN or infinity with fresh parameters; look for a division by 0 or a logarithm"
    elif not found.finite_steps.all():
        step = int(np.argmin(found.finite_steps)) + 1
        yield f"recurrent_inference gives NaN or infinity at imagined move {step}; keep its embeddings in a range"
    elif found.size[-1] > LARGEST_GROWTH * found.size[0]:
        growth = found.size[-1] / found.size[0]
        yield (
            f"embeddings grow {growth:.0f}-fold over {NUM_STEPS} imagined moves, and deeper ones without bound; "
            "scale each to [0, 1], for example by muzero_jax.networks.layers.min_max_scale"
        )
    for name, difference in zip(("initial_inference", "recurrent_inference"), found.difference, strict=True):
        if difference > LARGEST_DIFFERENCE:
            yield (
                f"{name} mixes the rows of a batch: one row's outputs change by {difference:.1%} with its neighbours; "
                "use LayerNorm in place of BatchNorm, and no mean over the first axis"
            )
    yield from _of_gradient(found)
    for target, fitted in zip(TARGETS, found.fitted, strict=True):
        if not abs(target - fitted) <= LARGEST_ERROR:
            yield (
                f"scalar_loss for the target {target} is smallest where to_scalar says {fitted:.2f}; "
                "both must read the logits alike, as muzero_jax.networks.value_transform does with one Support"
            )
            return


def _of_gradient(found: Findings) -> Iterator[str]:
    if found.finite_root and found.finite_steps.all() and not found.finite_gradient:
        yield "the gradient is NaN or infinity; look for a square root, norm or logarithm of 0"
        return
    leaves = jax.tree_util.tree_leaves_with_path(found.is_reached)
    unreached = [contract.path_name(path) for path, is_reached in leaves if not is_reached]
    if unreached:
        more = f" and {len(unreached) - _MOST_NAMES} more" if len(unreached) > _MOST_NAMES else ""
        names = ", ".join(unreached[:_MOST_NAMES])
        yield f"no gradient reaches {names}{more}, so they learn nothing; let a head depend on them or leave them out"
