"""Checks of an environment without playing: its functions trace, and shapes and dtypes stay as they are.

The whole run is one compiled program, in which a state after a move takes the place of the one before it. So rules must
be functions that JAX can trace, and `move` must return exactly the kind of state that `init` makes.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.own.faults import describe
from muzero_jax.types import Afterstate, Chance, Environment, Step


def problems(environment: Environment) -> list[str]:
    """The faults, a sentence each; empty where the environment can be compiled."""
    key, action = (jax.eval_shape(make) for make in (lambda: jax.random.key(0), lambda: jnp.int32(0)))
    found: list[str] = []

    def trace(name: str, function: Callable, *arguments: Any) -> Any:
        try:
            return jax.eval_shape(function, *arguments)
        except Exception as error:  # whatever somebody's rules raise
            found.append(describe(error, name))
            return None

    state = trace("init", environment.init, key)
    if found:
        return found
    observation, legal = trace("observe", environment.observe, state), trace("legal", environment.legal, state)
    step = trace("move", environment.move, state, action, key)
    if found:
        return found
    if environment.chance is not None:
        after = trace("chance.move", environment.chance.move, state, action)
        weights = trace("chance.probabilities", environment.chance.probabilities, state)
        then = trace("chance.resolve", environment.chance.resolve, state, action)
        if found := found or _of_chance(environment.chance, state, after, weights, then):
            return found
    return [
        *_of_view(environment, observation, legal),
        *_of_step("move", step),
        *changes(state, step.state),
    ]


def _of_chance(chance: Chance, state: Any, after: Any, weights: Any, then: Any) -> list[str]:
    """Faults of the three functions of chance, from what they return."""
    for name, made, kind in (("chance.move", after, Afterstate), ("chance.resolve", then, Step)):
        if not isinstance(made, kind):
            return [f"{name} returns {type(made).__name__}, but must return a muzero_jax.types.{kind.__name__}"]
    found = [
        *_of_step("chance.move", after),
        *_of_numbers("chance.move", {"awaits_chance": after.awaits_chance}, "bool"),
        *changes(state, after.state, "chance.move"),
        *_of_step("chance.resolve", then),
        *changes(state, then.state, "chance.resolve"),
    ]
    if (getattr(weights, "shape", None), str(getattr(weights, "dtype", ""))) != ((chance.num_outcomes,), "float32"):
        given = _kind(weights) if hasattr(weights, "dtype") else type(weights).__name__
        found.append(f"chance.probabilities gives {given}, but must give float32[{chance.num_outcomes}]")
    return found


def changes(before: Any, after: Any, what: str = "a move") -> list[str]:
    """Leaves of a state whose shape or dtype a move changes, a sentence each; `what` is what made the second state."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        return [f"{what} makes a state of another structure than init does: {_difference(before, after)}"]
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    return [
        f"the state's {jax.tree_util.keystr(path).lstrip('.')} is {_kind(old)} after init but {_kind(new)} after "
        f"{what}; make both alike"
        for (path, old), new in pairs
        if _kind(old) != _kind(new)
    ]


def _of_view(environment: Environment, observation: Any, legal: Any) -> list[str]:
    found = []
    if observation.shape != environment.observation_shape:
        found.append(
            f"observe gives an array of shape {observation.shape}, but observation_shape is "
            f"{environment.observation_shape}; make both alike"
        )
    if observation.dtype != bool and not jnp.issubdtype(observation.dtype, jnp.floating):
        found.append(f"observe gives an array of {observation.dtype}; make it one of bool or float32")
    if (legal.shape, legal.dtype) != ((environment.num_actions,), bool):
        found.append(f"legal gives {_kind(legal)}, but must give bool[{environment.num_actions}], True where legal")
    return found


def _of_step(what: str, step: Any) -> list[str]:
    return [
        *_of_numbers(what, {"reward": step.reward, "discount": step.discount}, "float"),
        *_of_numbers(what, {"is_last": step.is_last}, "bool"),
    ]


def _of_numbers(what: str, numbers: dict[str, Any], kind: str) -> list[str]:
    """Fields of a step that are no single number of their kind; `what` gave it."""
    return [
        f"{what} gives a {name} of {_kind(number)}, but it must be a single {'bool' if kind == 'bool' else 'float32'}"
        for name, number in numbers.items()
        if number.shape != () or not str(number.dtype).startswith(kind)
    ]


def _difference(before: Any, after: Any) -> str:
    if type(before) is not type(after):
        return f"{type(after).__name__} in place of {type(before).__name__}"
    return "some field holds another kind of value"


def _kind(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}"
