"""Self-play: a scan of search and step over B games at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.types import ActorState, Environment, Params, SearchFn, Transition


def init(environment: Environment, key: Array, *, num_envs: int) -> ActorState:
    """B = `num_envs` fresh games."""
    return ActorState(env_state=jax.vmap(environment.init)(jax.random.split(key, num_envs)))


def rollout(
    params: Params, actor: ActorState, key: Array, *, environment: Environment, search: SearchFn, length: int
) -> tuple[ActorState, Transition]:
    """Plays T = `length` moves of every game; finished games start afresh.

    Returns:
      the games as they stand, and the transitions [T, B, ...]. Each holds the observation from *before* its move, and
      the reward and discount from before any reset, so nothing bleeds from one game into the next.
    """

    def play(env_state, move_key):
        search_key, reset_key = jax.random.split(move_key)
        observation = jax.vmap(environment.observe)(env_state)
        found = search(params, search_key, observation, env_state.legal_action_mask)
        reset_keys = jax.random.split(reset_key, found.action.shape[0])
        next_state, reward, discount = jax.vmap(environment.step)(env_state, found.action, reset_keys)
        return next_state, Transition(
            observation=observation,
            legal_action_mask=env_state.legal_action_mask,
            action=found.action,
            reward=reward,
            discount=discount,
            search_policy=found.policy,
            search_value=found.value,
        )

    env_state, trajectory = jax.lax.scan(play, actor.env_state, jax.random.split(key, length))
    return ActorState(env_state), trajectory


def statistics(trajectory: Transition) -> dict[str, Array]:
    """Sums over a rollout from which a run's throughput and results are told; `first_wins` counts nothing but wins
    of whoever made the game's last move."""
    ended = trajectory.discount == 0
    return {
        "selfplay/games": jnp.sum(ended, dtype=jnp.float32),
        "selfplay/decisive_games": jnp.sum(ended & (trajectory.reward != 0), dtype=jnp.float32),
        "selfplay/frames": jnp.float32(trajectory.action.size),
    }
