"""`muzero_jax.check_model`: what is wrong with a model of your own, in one sentence each.

Shapes and dtypes come first (`contract`). Then the model runs on random observations and 20 imagined moves, with fresh
parameters and with all of them moved a little, since heads may start at zero.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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
QUICKLY: dict = {"xla_llvm_disable_expensive_passes": True}
"""Compiler options."""


class Outputs(NamedTuple):
    """The outputs along the imagined moves."""

    root: NetworkOutput
    steps: NetworkOutput  # leaves [steps, N, ...]
    followed: NetworkOutput | None  # of the second move, a code, followed as a one-hot; None without codes of chance


def check_model(model: Model, environment: Environment) -> list[str]:
    """The faults of a model for a game, in one sentence each; empty if nothing was found.

    Takes seconds, most of which compile. It finds wrong shapes and dtypes, what JAX cannot compile, NaNs, outputs that
    depend on the rest of the batch, and embeddings that grow.
    """
    abilities = MUZERO._replace(num_codes=model.num_codes, encodes_chance=model.encode_chance is not None)
    if found := contract.breaches(model, environment, abilities):
        return found
    batch, other = _batches(environment, model.num_codes)
    fresh = jax.jit(model.init, compiler_options=QUICKLY)(jax.random.key(0, impl="rbg"))  # threefry compiles slowly
    generator = np.random.default_rng(1)
    moved = jax.tree.map(lambda x: x + generator.normal(scale=NOISE, size=x.shape).astype(np.float32), fresh)
    run = jax.jit(partial(_run, model), compiler_options=QUICKLY)
    at_first, one, two = (jax.device_get(run(*case)) for case in ((fresh, *batch), (moved, *batch), (moved, *other)))
    return [*_of_numbers(at_first), *_of_rows(one, two), *_of_codes(one)]


def _batches(environment: Environment, num_codes: int) -> list[tuple[Array, Array]]:
    """Two batches of random observations [N, *obs] and moves [steps, N], with the same row 0.

    Every second move is a code, where the model has codes of chance.
    """
    generator, seen = np.random.default_rng(0), contract.observation_of(environment)
    draw = generator.random((2, NUM_ROWS, *seen.shape))
    observation = draw > 0.5 if seen.dtype == bool else draw.astype(seen.dtype)
    actions = generator.integers(environment.num_actions, size=(2, NUM_STEPS, NUM_ROWS)).astype(np.int32)
    if num_codes:
        actions[:, 1::2] = environment.num_actions + generator.integers(num_codes, size=actions[:, 1::2].shape)
    observation[1, 0], actions[1, :, 0] = observation[0, 0], actions[0, :, 0]
    return [(jnp.asarray(observation[i]), jnp.asarray(actions[i])) for i in range(2)]


def _run(model: Model, params: Params, observation: Array, actions: Array) -> Outputs:
    def imagine(embedding, action):
        output = model.recurrent_inference(params, embedding, action)
        return output.embedding, output

    root = model.initial_inference(params, observation)
    _, steps = jax.lax.scan(imagine, root.embedding, actions)
    followed = None
    if model.follow_code is not None:
        one_hot = jax.nn.one_hot(actions[1] - root.policy_logits.shape[-1], model.num_codes)
        followed = model.follow_code(params, steps.embedding[0], one_hot)
    return Outputs(root, steps, followed)


def _of_numbers(found: Outputs) -> Iterator[str]:
    """NaN, and growth, with fresh parameters along the moves."""
    if not _is_finite(found.root):
        yield "initial_inference gives NaN or infinity with fresh parameters; look for a division by 0 or a logarithm"
        return
    for step in range(NUM_STEPS):
        if not _is_finite(_at(found.steps, step)):
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
    pairs = {
        "initial_inference": (one.root, two.root),
        "recurrent_inference": (_at(one.steps, 0), _at(two.steps, 0)),
    }
    for name, outputs in pairs.items():
        first_rows = (_at(output, 0) for output in outputs)
        if (difference := _difference(*first_rows)) > LARGEST_DIFFERENCE:
            yield (
                f"{name} mixes the rows of a batch: one row's outputs change by {difference:.1%} with its neighbours; "
                "use LayerNorm in place of BatchNorm, and no mean over the first axis"
            )
            return


def _of_codes(found: Outputs) -> Iterator[str]:
    """Whether a code leads to the same place as a number and as a one-hot."""
    if found.followed is not None:
        difference = _difference(_at(found.steps, 1), found.followed)
        if difference > LARGEST_DIFFERENCE:
            yield (
                f"follow_code and recurrent_inference differ by {difference:.1%} for the same code; the one-hot of c "
                "must lead where the index num_actions + c does"
            )


def _at(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def _is_finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(x, np.float32)).all() for x in jax.tree.leaves(tree))


def _difference(one: Any, other: Any) -> float:
    """The largest difference between two trees' numbers, as a share of 1 plus their size."""
    pairs = zip(*(map(np.float32, jax.tree.leaves(tree)) for tree in (one, other)), strict=True)
    return max(float(np.abs(x - y).max() / (1.0 + np.abs(x).max())) for x, y in pairs)
