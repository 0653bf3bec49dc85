"""Checks a model: its shapes and dtypes first (`contract`), then what it computes.

The model runs on random observations and 20 imagined moves, with fresh parameters and again with noise added to all of
them, because heads may start at zero.
"""

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np
from jaxtyping import Array

from muzero_jax.networks import contract
from muzero_jax.networks.contract import MUZERO
from muzero_jax.own.faults import Fault
from muzero_jax.types import Environment, Model, NetworkOutput, Params

NUM_ROWS = 6
NUM_STEPS = 20
NOISE = 0.1
"""Standard deviation of the noise added to each parameter."""
LARGEST_DIFFERENCE = 1e-3
"""Between one row's outputs in two batches, relative to 1 plus their size; with BatchNorm it is a tenth and more."""
LARGEST_GROWTH = 10.0
"""The factor by which embeddings may grow between the first imagined move and the twentieth."""
QUICKLY: dict = {"xla_llvm_disable_expensive_passes": True}
"""Compiler options that make compiling faster and the program slower."""


def examine(model: Model, environment: Environment) -> list[str]:
    """The faults of a model for a game, a sentence each; empty if none was found."""
    abilities = MUZERO._replace(
        heads=model.heads, num_codes=model.num_codes, encodes_chance=model.encode_chance is not None
    )
    try:
        contract.check(model, environment, abilities)
    except Fault as fault:
        return [str(fault)]
    batch, other = _batches(environment, model.num_codes)
    fresh = jax.jit(model.init, compiler_options=QUICKLY)(jax.random.key(0, impl="rbg"))  # threefry compiles slowly
    run = jax.jit(partial(_run, model), compiler_options=QUICKLY)
    inputs = (fresh, *batch), (disturbed(fresh), *batch), (disturbed(fresh), *other)
    return list(_faults(*(jax.device_get(run(*each)) for each in inputs)))


def disturbed(params: Params) -> Params:
    """The parameters with noise added to each."""
    generator = np.random.default_rng(1)
    return jax.tree.map(lambda x: x + generator.normal(scale=NOISE, size=x.shape).astype(np.float32), params)


def _batches(environment: Environment, num_codes: int) -> Iterator[tuple[Array, Array]]:
    """Two batches of random observations [N, *obs] and actions or codes of chance [steps, N]; both share row 0."""
    generator = np.random.default_rng(0)
    seen = contract.observation_of(environment)
    numbers = generator.random((2, NUM_ROWS, *seen.shape))
    scale = 255 if seen.dtype == np.uint8 else 1
    observation = numbers > 0.5 if seen.dtype == bool else (scale * numbers).astype(seen.dtype)
    num_moves = environment.num_actions + num_codes
    actions = generator.integers(num_moves, size=(2, NUM_STEPS, NUM_ROWS)).astype(np.int32)
    observation[1, 0] = observation[0, 0]
    actions[1, :, 0] = actions[0, :, 0]
    return zip(observation, actions, strict=True)


def _run(model: Model, params: Params, observation: Array, actions: Array) -> dict[str, NetworkOutput]:
    """The outputs of both inferences, leaves [steps, N, ...]."""

    def imagine(embedding, action):
        output = model.recurrent_inference(params, embedding, action)
        return output.embedding, output

    root = model.initial_inference(params, observation)
    steps = jax.lax.scan(imagine, root.embedding, actions)[1]
    return {"initial_inference": jax.tree.map(lambda x: x[None], root), "recurrent_inference": steps}


def _faults(at_first: dict, one: dict, two: dict) -> Iterator[str]:
    """NaN and growth with fresh parameters; and whether the outputs of row 0, which both batches share, are equal."""
    for name, output in at_first.items():
        if not all(np.isfinite(x.astype(np.float32)).all() for x in jax.tree.leaves(output)):
            yield (
                f"{name} gives NaN or infinity with fresh parameters, in {NUM_STEPS} imagined moves; look for a "
                "logarithm or a division by 0, and keep embeddings in a range"
            )
            return
    size = np.abs(at_first["recurrent_inference"].embedding.astype(np.float32)).reshape(NUM_STEPS, -1).max(axis=1)
    if size[-1] > LARGEST_GROWTH * size[0]:
        yield (
            f"embeddings grow {size[-1] / size[0]:.0f}-fold over {NUM_STEPS} imagined moves, and deeper ones without "
            "bound; scale each to [0, 1], for example by muzero_jax.networks.layers.min_max_scale"
        )
    for name in one:
        pairs = zip(*([np.float32(x[0, 0]) for x in jax.tree.leaves(each[name])] for each in (one, two)), strict=True)
        difference = max(float((np.abs(x - y) / (1.0 + np.abs(x).max())).max()) for x, y in pairs)
        if difference > LARGEST_DIFFERENCE:
            yield (
                f"{name} mixes the rows of a batch: one row's outputs change by {difference:.1%} with its neighbours; "
                "use LayerNorm instead of BatchNorm, and no mean over the first axis"
            )
            return
