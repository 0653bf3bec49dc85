"""Checks an algorithm: traces a whole iteration, then runs its search and its losses on a few positions.

Each stage of the record is wrapped, so that a fault names the stage that failed or returned a wrong shape or dtype.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jax.sharding import PartitionSpec
from jaxtyping import Array

from muzero_jax.algorithm import Algorithm
from muzero_jax.algorithm.training import train_iteration
from muzero_jax.apps.check.model_checks import QUICKLY, disturbed
from muzero_jax.games.catalogue import check_players
from muzero_jax.learning import unroll
from muzero_jax.learning.targets import alive_frames
from muzero_jax.networks import contract
from muzero_jax.ops.mesh import make_mesh, shard_map
from muzero_jax.own.faults import Fault, guarded, require, traced
from muzero_jax.run import program
from muzero_jax.types import Environment, Model, NetworkOutput, SearchOutput, TrainState, Transition

NUM_ROWS = 8
CLOSE = 1e-4
"""Tolerance for losses that must be equal, relative to 1 plus their size."""
NO_STAGES = "environment model min_frames unroll_steps terms optimiser make_search".split()
"""Fields of `Algorithm` that are not wrapped as stages, or are wrapped separately."""
Looked = dict[str, tuple[Any, str]]
"""Arrays that a stage returned, by name, each with the dtype and shape that it must have."""
Look = Callable[..., Looked]
"""(what a stage returned, *its arguments) -> the arrays to check."""


def examine(algorithm: Algorithm) -> list[str]:
    """The faults of an algorithm, a sentence each; empty if none was found. Some begin with `doubt:`."""
    key = jax.random.key(0)  # names `AXIS`
    on_one_device = (make_mesh(1), PartitionSpec(), PartitionSpec())
    try:
        check_players(algorithm.environment)
        watched = guarded(_watched, "reading the terms")(algorithm)
        state = traced("an iteration", partial(program.init, watched), 0)
        iterate = shard_map(partial(train_iteration, algorithm=watched), *on_one_device)
        traced("an iteration", iterate, state, jnp.float32(0.0))
        windows = traced("the windows", shard_map(partial(_windows, watched), *on_one_device), state)
        params = disturbed(jax.jit(algorithm.model.init)(key))  # because heads may start at zero
        run = jax.jit(shard_map(partial(_run, watched, windows), *on_one_device))
        found = guarded(run.lower, "the search or the losses")(params, key).compile(QUICKLY)(params, key)
        return list(_of_values(*jax.device_get(found)))
    except Fault as fault:
        return [str(fault)]


def _watched(algorithm: Algorithm) -> Algorithm:
    """The algorithm with wrapped stages: each raises a Fault with its name if it fails or returns a wrong array."""

    def stage(name: str, function: Any, look: Look) -> Any:
        def run(*arguments: Any, **bound: Any) -> Any:
            found = function(*arguments, **bound)
            for what, (array, kind) in look(found, *arguments).items():
                require(f"{name}: {what}", array, kind)
            return found

        return guarded(run, name)

    def make_search(simulator: Any, num_simulations: int | None, noise: bool) -> Any:
        search = guarded(algorithm.make_search, "make_search")(simulator, num_simulations, noise)
        return stage("the search with noise" if noise else "the search without noise", search, _of_search)

    looks = {"choose": _of_choice, "make_targets": _of_targets, "update": _of_update, "write_back": _of_metrics}
    stages = {name: getattr(algorithm, name) for name in algorithm._fields if name not in NO_STAGES}
    names = [term.name for term in algorithm.terms]
    if twice := [name for name in names if names.count(name) > 1]:
        raise Fault(f"terms holds two losses called {twice[0]}; give each a name of its own")
    losses = [stage(f"the loss {term.name}", term.loss, _of_loss) for term in algorithm.terms]
    return algorithm._replace(
        **{name: stage(name, function, looks.get(name, lambda *_: {})) for name, function in stages.items()},
        model=_alike(algorithm.model, algorithm.environment),
        make_search=make_search,
        terms=tuple(term._replace(loss=loss) for term, loss in zip(algorithm.terms, losses, strict=True)),
    )


def _alike(model: Model, environment: Environment) -> Model:
    """The model, whose dynamics raise a Fault if their outputs have other names or shapes than those of a root."""
    seen = contract.observation_of(environment)

    def recurrent_inference(params: Any, embedding: Array, action: Array) -> NetworkOutput:
        output = model.recurrent_inference(params, embedding, action)
        observation = jax.ShapeDtypeStruct((len(action), *seen.shape), seen.dtype)
        contract.require_alike(jax.eval_shape(model.initial_inference, params, observation), output)
        return output

    return model._replace(recurrent_inference=recurrent_inference)


def _of_search(found: Any, params: Any, key: Array, roots: Any) -> Looked:
    games, actions = roots.legal_action_mask.shape
    counted = {} if found.simulations is None else {"simulations": (found.simulations, f"float32[{games}]")}
    return counted | {
        "action": (found.action, f"int32[{games}]"),
        "policy": (found.policy, f"float32[{games}, {actions}]"),
        "value": (found.value, f"float32[{games}]"),
    }


def _of_choice(found: Any, key: Array, searched: Any, legal: Array, *others: Any) -> Looked:
    moves, is_random = found
    return {
        "the move": (moves, f"int32[{len(legal)}]"),
        "whether it was random": (is_random, f"bool[{len(legal)}]"),
    }


def _of_targets(found: Any, window: Transition, progress: Array) -> Looked:
    windows = len(window.action)
    depths = found.policy_mask.shape[1]
    actions = window.search_policy.shape[-1]
    return {
        "value": (found.value, f"float32[{windows}, {depths}]"),
        "reward": (found.reward, f"float32[{windows}, {depths - 1}]"),
        "policy": (found.policy, f"float32[{windows}, {depths}, {actions}]"),
        "policy_mask": (found.policy_mask, f"float32[{windows}, {depths}]"),
    } | {
        f"extras[{name!r}]": (target, f"{target.dtype}{[windows, *target.shape[1:]]}")
        for name, target in found.extras.items()
    }


def _of_loss(found: Any, outputs: Any, batch: Any) -> Looked:
    return {"one number a window": (found, f"float32[{len(batch.weight)}]")}


def _of_metrics(found: Any, *others: Any) -> Looked:
    _, metrics = found
    if wrong := [name for name in metrics if not name.startswith("train/")]:
        raise Fault(f"the name of the metric {wrong[0]!r} must begin with train/")
    return {f"the metric {name}": (value, f"{value.dtype}[]") for name, value in metrics.items()}


def _of_update(found: Any, given: Any, *others: Any) -> Looked:
    if jax.tree.map(jnp.shape, found[0]) != jax.tree.map(jnp.shape, given):
        raise Fault("update changes the shapes or the structure of the learner's state; return what it was given")
    return _of_metrics(found)


def _windows(algorithm: Algorithm, state: TrainState) -> Transition:
    """A few windows, of which only the shapes are used."""
    sample = jax.tree.map(lambda x: x[0, :1].repeat(NUM_ROWS), algorithm.sample(state.seed_key, state.replay))
    return algorithm.gather(state.replay, sample, num_frames=algorithm.num_frames)


def _run(
    algorithm: Algorithm, shapes: Transition, params: Any, key: Array
) -> tuple[SearchOutput, Array, dict[str, Array], checkify.Error]:
    """A search of openings with half of the legal moves forbidden, their mask, and each term's losses [2, N].

    The two rows of losses are from windows that differ only in the frames after a game's end, so they must be equal.
    The last is what checkify says of the indices in `make_targets`: JAX clamps or fills those outside an array.
    """
    environment = algorithm.environment
    model = algorithm.model
    terms = algorithm.terms
    roots = environment.roots(jax.vmap(environment.init)(jax.random.split(key, NUM_ROWS)))
    drawn = jnp.where(roots.legal_action_mask, jax.random.uniform(key, roots.legal_action_mask.shape), 0.0)
    legal = (drawn > 0.5) | (drawn == drawn.max(axis=1, keepdims=True))
    searched = algorithm.search()(params, key, roots._replace(legal_action_mask=legal))._replace(tree=None)
    ends = jnp.arange(shapes.action.shape[1]) == jnp.arange(NUM_ROWS)[:, None] % 3
    is_past = ~alive_frames(ends)

    def window_with(number: Array) -> Transition:
        def frames(x: Any) -> Array:  # 0, except `number` after the end
            after = is_past[:, : x.shape[1]].reshape(NUM_ROWS, -1, *[1] * (x.ndim - 2))
            return jnp.broadcast_to(after * number, x.shape).astype(x.dtype)

        window = jax.tree.map(frames, shapes)
        return window._replace(is_last=ends, legal_action_mask=jnp.ones_like(window.legal_action_mask))

    def losses(number: Array) -> dict[str, Array]:
        window = window_with(number)
        targets = algorithm.make_targets(window, jnp.float32(0.0))
        batch = algorithm.make_batch(window, targets, jnp.ones(NUM_ROWS), key, num_frames=algorithm.num_frames)
        outputs = unroll.unroll(model, params, batch)._replace(model=model)
        return {term.name: term.loss(outputs, batch) for term in terms}

    make_targets = checkify.checkify(algorithm.make_targets, errors=checkify.index_checks)
    error, _ = make_targets(window_with(jnp.int32(0)), jnp.float32(0.0))
    return searched, legal, jax.lax.map(losses, jnp.arange(2)), error


def _of_values(
    found: SearchOutput, legal: np.ndarray, terms: dict[str, np.ndarray], error: checkify.Error
) -> Iterator[str]:
    policy = found.policy
    total = found.policy.sum(axis=-1)
    if not np.take_along_axis(legal, np.asarray(found.action)[:, None], axis=-1).all():
        yield "the search without noise makes illegal moves; let it choose among the legal ones"
    elif not ((policy >= 0).all() and (abs(total - 1) < CLOSE).all() and (policy[~legal] < CLOSE).all()):
        yield "the search without noise: the policy must be probabilities of legal moves that add up to 1"
    if outside := error.get():
        yield (
            f"doubt: make_targets has an index outside an array ({outside.strip().rstrip('.')}), which JAX clamps or "
            "fills without an error; a window has one observation, or unroll_steps + 1 if a term reads them, and "
            "unroll_steps + td_steps + 1 of all else"
        )
    for name, (each, other) in terms.items():
        if not np.isfinite(each).all():
            yield f"the loss {name} is NaN or infinite; look for a logarithm or a division by 0"
        elif np.abs(each - other).max() > CLOSE * (1 + np.abs(each).max()):
            yield (
                f"the loss {name} depends on what comes after a game's end; mask it there, by targets.policy_mask "
                "(policies), targets.mask (values, rewards) or targets.alive (positions)"
            )
