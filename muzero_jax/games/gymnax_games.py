"""Environments of gymnax (Lange 2022) as rules in pgx's form; imported when one is asked for."""

import gymnax
import jax
import jax.numpy as jnp
from gymnax.environments.spaces import Discrete
from jax import Array

from muzero_jax.games import outside
from muzero_jax.games.outside import State

NAME = "gymnax"


class Rules:
    """An environment with its default parameters. All actions are legal; its key may decide anything."""

    num_players = 1

    def __init__(self, name: str):
        try:
            self._env, self._params = gymnax.make(name)
        except Exception as error:  # one loads its pictures from the network
            raise outside.refused(NAME, name, f"it cannot be made here ({type(error).__name__})") from error
        space = self._env.action_space(self._params)
        count = space.n if isinstance(space, Discrete) else space
        self._num_actions = outside.check_discrete(NAME, name, count, self._trace)

    def init(self, key: Array) -> State:
        """A new episode."""
        observation, inner = self._env.reset_env(key, self._params)
        no = jnp.bool_(False)
        return self._made(inner, observation, jnp.float32(0.0), no, no)

    def step(self, state: State, action: Array, key: Array) -> State:
        """One step, without gymnax's own reset at an end."""
        observation, inner, reward, terminated, _ = self._env.step_env(key, state.inner, action, self._params)
        truncated = self._env.is_truncated(inner, self._params)
        return self._made(inner, observation, reward, terminated, truncated)

    def _made(self, inner, observation, reward, terminated, truncated) -> State:
        leaves = [(jnp.asarray(leaf), self._num_values) for leaf in jax.tree.leaves(observation)]
        legal = jnp.ones(self._num_actions, bool)
        return outside.made(inner, outside.seen(leaves), legal, reward, terminated, truncated)

    def _trace(self) -> None:
        jax.eval_shape(self._env.reset_env, jax.random.key(0), self._params)
        space = self._env.observation_space(self._params)
        low, high = (0, space.n - 1) if isinstance(space, Discrete) else (space.low, space.high)
        self._num_values = outside.num_values(low, high)


def make_rules(name: str) -> Rules:
    """The rules of an environment; ValueError in one sentence if there is none of that name, or it does not fit."""
    if name not in gymnax.registered_envs:
        raise outside.unknown(NAME, name, gymnax.registered_envs)
    return Rules(name)
