"""Environments of jumanji (Bonnet et al. 2024) as rules in pgx's form; imported only when `--env` names one.

- jumanji keeps its random key in the state. Each move gets a new key instead, so that a search with the ground-truth
  model cannot foresee chance.
- Most jumanji environments report their time limit as an end by the rules. So `JumanjiRules` disables their limit, and
  applies it itself as a truncation.
- Observations do not show step counters.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jumanji import registration, specs

from muzero_jax.games import outside_states
from muzero_jax.games.states import WrappedState

NAMES = registration.registered_environments()
NEVER = 2**30
"""A time limit that no episode reaches."""
HIDDEN = ("action_mask", "step_count")
"""Parts of jumanji's observation that the player does not see."""
STATED = {"Game2048-v1": {"/board": 18}}
"""Numbers of values that jumanji does not state: 2048's board holds exponents, of which 17 is the largest possible."""


class JumanjiRules:
    """An environment as jumanji registers it."""

    num_players = 1

    def __init__(self, name: str):
        self._env: Any = registration.make(name)
        if not isinstance(self._env.action_spec, specs.DiscreteArray):
            raise ValueError(f"its actions are of kind {type(self._env.action_spec).__name__}")
        self._num_actions = int(self._env.action_spec.num_values)
        start, _ = jax.eval_shape(self._env.reset, jax.random.key(0))
        self._has_key = "key" in {field.name for field in dataclasses.fields(start)}
        self._limit = getattr(self._env, "time_limit", None)
        if self._limit is not None:
            self._env.time_limit = NEVER
        bounded = [leaf for leaf in _leaves(self._env.observation_spec) if isinstance(leaf[1], specs.BoundedArray)]
        self._num_values = {path: outside_states.num_values(spec.minimum, spec.maximum) for path, spec in bounded}
        self._num_values |= STATED.get(name, {})

    def init(self, key: Array) -> WrappedState:
        """A new episode."""
        inner, timestep = self._env.reset(key)
        return self._made(inner, timestep, False, False)

    def step(self, state: WrappedState, action: Array, key: Array) -> WrappedState:
        """One step, whose randomness comes from `key` only."""
        inner: Any = state.state
        inner = dataclasses.replace(inner, key=jax.random.fold_in(key, 0)) if self._has_key else inner
        inner, timestep = self._env.step(inner, action)
        is_last = timestep.last()
        is_late = timestep.discount > 0
        late = is_last & is_late
        if self._limit is not None:
            late |= inner.step_count >= self._limit
        return self._made(inner, timestep, is_last & ~is_late, late)

    def _made(self, inner, timestep, terminated, truncated) -> WrappedState:
        observation = timestep.observation
        legal = getattr(observation, "action_mask", None)
        legal = jnp.ones(self._num_actions, bool) if legal is None else legal
        leaves = [(jnp.asarray(leaf), self._num_values.get(path)) for path, leaf in _leaves(observation)]
        return outside_states.made(inner, leaves, legal | ~legal.any(), timestep.reward, terminated, truncated)


make_rules = JumanjiRules
"""(name, *options) -> the game's rules (`outside`)."""


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """(path, part) for each part of an observation, or of an observation's specification, except `HIDDEN` ones."""
    if isinstance(value, specs.Spec) and (parts := getattr(value, "_specs", None)):
        fields = dict(parts)
    elif hasattr(value, "_asdict"):
        fields = value._asdict()  # type: ignore
    elif dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        return [(path, value)]
    return [leaf for name, part in fields.items() if name not in HIDDEN for leaf in _leaves(part, f"{path}/{name}")]
