"""Checks without playing that an environment's functions can be traced, and that moves keep shapes and dtypes.

The whole run is one compiled program, in which the state after a move replaces the one before it. So rules must be
functions that JAX can trace, and `move` must return exactly the kind of state that `init` makes.
"""

from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.own.faults import Fault, kind_of, require, traced
from muzero_jax.types import Afterstate, Environment, Step

KINDS = {"reward": "float32[]", "discount": "float32[]", "is_last": "bool[]", "awaits_chance": "bool[]"}


def check(environment: Environment) -> None:
    """Raises Fault if the environment cannot be compiled."""
    key, action = jax.eval_shape(lambda: (jax.random.key(0), jnp.int32(0)))
    state = traced("init", environment.init, key)
    observation = traced("observe", environment.observe, state)
    if observation.dtype not in (bool, jnp.uint8) and not jnp.issubdtype(observation.dtype, jnp.floating):
        raise Fault(f"what observe gives (the observation) must be bool, uint8 or float32, but is {observation.dtype}")
    require(
        "what observe gives (the observation)", observation, f"{observation.dtype}{list(environment.observation_shape)}"
    )
    legal = traced("legal", environment.legal, state)
    require("what legal gives (legal_action_mask)", legal, f"bool[{environment.num_actions}]")
    if hasattr(state, "legal_action_mask") and hasattr(state, "rewards"):  # of a state in pgx's form each player's
        given: Any = state.rewards
        if not (getattr(given, "shape", ()) and len(given) >= environment.num_players):
            require("rewards", given, f"float32[{environment.num_players}]")
    if chance := environment.chance:
        weights = traced("chance.probabilities", chance.probabilities, state)
        require("what chance.probabilities gives", weights, f"float32[{chance.num_outcomes}]")
        _check_move(state, "chance.move", chance.move, Afterstate, action)
        _check_move(state, "chance.resolve", chance.resolve, Step, action)
    _check_move(state, "move", environment.move, Step, action, key)


def _check_move(state: Any, name: str, function: Any, record: type, *arguments: Any) -> None:
    step = traced(name, function, state, *arguments)
    if not isinstance(step, record):
        raise Fault(f"{name} returns {type(step).__name__}, but must return a muzero_jax.types.{record.__name__}")
    for field in [field for field in KINDS if hasattr(step, field)]:
        require(f"{field}, as {name} gives it,", getattr(step, field), KINDS[field])
    check_alike(state, step.state, "a move" if name == "move" else name)


def check_alike(before: Any, after: Any, what: str = "a move") -> None:
    """Raises Fault if `what` changes a state's structure, or the shape or dtype of a leaf."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        kinds = f"{type(before).__name__} after init, {type(after).__name__} after {what}"
        raise Fault(f"{what} makes a state of another structure than init ({kinds}); give both the same structure")
    for (path, old), new in zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True):
        if kind_of(old) != kind_of(new):
            name = jax.tree_util.keystr(path).lstrip(".")
            raise Fault(
                f"the state's {name} is {kind_of(old)} after init but {kind_of(new)} after {what}; make both the same"
            )
