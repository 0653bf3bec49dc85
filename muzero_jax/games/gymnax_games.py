"""Environments of gymnax (Lange 2022) as rules in pgx's form; imported only when `--env` names one."""

import gymnax
import jax
import jax.numpy as jnp
from gymnax.environments.spaces import Discrete
from jax import Array

from muzero_jax.games import outside_states
from muzero_jax.games.states import WrappedState

NAMES = gymnax.registered_envs


class GymnaxRules:
    """An environment with its default parameters. All actions are legal, and any part of a step may be random."""

    num_players = 1

    def __init__(self, name: str):
        self._env, self._params = gymnax.make(name)
        actions = self._env.action_space(self._params)
        seen = self._env.observation_space(self._params)
        if not isinstance(actions, Discrete):
            raise ValueError(f"its actions are {actions}")
        low, high = (0, seen.n - 1) if isinstance(seen, Discrete) else (seen.low, seen.high)
        self._num_actions = actions.n
        self._num_values = outside_states.num_values(low, high)

    def init(self, key: Array) -> WrappedState:
        """A new episode."""
        observation, inner = self._env.reset_env(key, self._params)
        return self._made(inner, observation, 0.0, False, False)

    def step(self, state: WrappedState, action: Array, key: Array) -> WrappedState:
        """One step, without gymnax's automatic reset after the last one."""
        observation, inner, reward, terminated, _ = self._env.step_env(key, state.state, action, self._params)
        truncated = self._env.is_truncated(inner, self._params)
        return self._made(inner, observation, reward, terminated, truncated)

    def _made(self, inner, observation, reward, terminated, truncated) -> WrappedState:
        leaves = [(jnp.asarray(leaf), self._num_values) for leaf in jax.tree.leaves(observation)]
        legal = jnp.ones(self._num_actions, bool)
        return outside_states.made(inner, leaves, legal, reward, terminated, truncated)


make_rules = GymnaxRules
"""(name, *options) -> the game's rules (`outside`)."""
