"""Checks of an environment without playing: its functions trace, and shapes and dtypes stay as they are.

The whole run is one compiled program, in which a state after a move takes the place of the one before it. So rules must
be functions that JAX can trace, and `move` must return exactly the kind of state that `init` makes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.own.faults import Fault, guarded
from muzero_jax.types import Afterstate, Environment, Step


def problems(environment: Environment) -> list[str]:
    """The faults, a sentence each; empty where the environment can be compiled."""
    try:
        return list(_problems(environment))
    except Fault as fault:
        return [str(fault)]


def _problems(environment: Environment) -> Iterator[str]:
    key, action = jax.eval_shape(lambda: (jax.random.key(0), jnp.int32(0)))
    state = _traced("init", environment.init, key)
    observation = _traced("observe", environment.observe, state)
    if observation.shape != environment.observation_shape:
        yield (
            f"observe gives an array of shape {observation.shape}, but observation_shape is "
            f"{environment.observation_shape}; make both alike"
        )
    if observation.dtype != bool and not jnp.issubdtype(observation.dtype, jnp.floating):
        yield f"observe gives an array of {observation.dtype}; make it one of bool or float32"
    yield from _unlike("legal", _traced("legal", environment.legal, state), f"bool[{environment.num_actions}]")
    made = {}
    if chance := environment.chance:
        weights = _traced("chance.probabilities", chance.probabilities, state)
        yield from _unlike("chance.probabilities", weights, f"float32[{chance.num_outcomes}]")
        made["chance.move"] = _traced("chance.move", chance.move, state, action), Afterstate
        made["chance.resolve"] = _traced("chance.resolve", chance.resolve, state, action), Step
    made["move"] = _traced("move", environment.move, state, action, key), Step
    for what, (step, record) in made.items():
        if not isinstance(step, record):
            raise Fault(f"{what} returns {type(step).__name__}, but must return a muzero_jax.types.{record.__name__}")
        kinds = {"reward": "float32[]", "discount": "float32[]", "is_last": "bool[]", "awaits_chance": "bool[]"}
        for field in [field for field in kinds if hasattr(step, field)]:
            yield from _unlike(f"{what}, as {field},", getattr(step, field), kinds[field])
        yield from changes(state, step.state, "a move" if what == "move" else what)


def changes(before: Any, after: Any, what: str = "a move") -> list[str]:
    """Leaves of a state whose shape or dtype a move changes, a sentence each; `what` is what made the second state."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        kinds = f"{type(before).__name__} after init, {type(after).__name__} after {what}"
        return [f"{what} makes a state of another structure than init does ({kinds}); make both alike"]
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    return [
        f"the state's {jax.tree_util.keystr(path).lstrip('.')} is {_kind(old)} after init but {_kind(new)} after "
        f"{what}; make both alike"
        for (path, old), new in pairs
        if _kind(old) != _kind(new)
    ]


def _traced(name: str, function: Callable, *arguments: Any) -> Any:
    return guarded(jax.eval_shape, name)(function, *arguments)


def _unlike(what: str, given: Any, kind: str) -> Iterator[str]:
    if _kind(given) != kind:
        yield f"{what} gives {_kind(given)}, but must give {kind}"


def _kind(leaf: Any) -> str:
    """An array's dtype and shape, as `float32[3, 3]`; else the name of a type."""
    return f"{leaf.dtype}{list(leaf.shape)}" if hasattr(leaf, "dtype") else type(leaf).__name__
