"""Self-play: a scan of search and step over B games at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.games.legal_actions import uniform_legal_action
from muzero_jax.types import ActorState, Environment, Params, SearchFn, Transition


def init(environment: Environment, key: Array, *, num_envs: int) -> ActorState:
    """B = `num_envs` fresh games."""
    return ActorState(env_state=jax.vmap(environment.init)(jax.random.split(key, num_envs)))


@jax.named_scope("rollout")
def rollout(
    params: Params,
    actor: ActorState,
    key: Array,
    *,
    environment: Environment,
    search: SearchFn,
    length: int,
    exploration: float,
) -> tuple[ActorState, Transition]:
    """Plays T = `length` moves of every game; finished games start afresh.

    Args:
      exploration: probability of a uniformly random legal move instead of the search's. Search gives those positions
        their targets all the same; without them play becomes deterministic and forgets what it no longer meets.

    Returns:
      the games as they stand, and the transitions [T, B, ...]. Each holds the observation from *before* its move, and
      the reward and discount from before any reset, so nothing bleeds from one game into the next.
    """

    def play(env_state, move_key):
        search_key, explore_key, reset_key = jax.random.split(move_key, 3)
        observation = jax.vmap(environment.observe)(env_state)
        with jax.named_scope("search"):
            found = search(params, search_key, observation, env_state.legal_action_mask)
        action, explored = explore(explore_key, found.action, env_state.legal_action_mask, exploration)
        reset_keys = jax.random.split(reset_key, action.shape[0])
        next_state, reward, discount = jax.vmap(environment.step)(env_state, action, reset_keys)
        return next_state, Transition(
            observation=observation,
            legal_action_mask=env_state.legal_action_mask,
            action=action,
            reward=reward,
            discount=discount,
            search_policy=found.policy,
            search_value=found.value,
            explored=explored,
        )

    env_state, trajectory = jax.lax.scan(play, actor.env_state, jax.random.split(key, length))
    return ActorState(env_state), trajectory


def explore(key: Array, action: Array, legal_action_mask: Array, probability: float) -> tuple[Array, Array]:
    """Replaces each action [B] by a uniformly random legal one with `probability`; returns the actions and where."""
    choice_key, random_key = jax.random.split(key)
    explored = jax.random.bernoulli(choice_key, probability, action.shape)
    return jnp.where(explored, uniform_legal_action(random_key, legal_action_mask), action), explored


def statistics(trajectory: Transition) -> dict[str, Array]:
    """Sums over a rollout, to tell a run's throughput and results; a decisive game is one that is not drawn."""
    ended = trajectory.discount == 0
    return {
        "selfplay/games": jnp.sum(ended, dtype=jnp.float32),
        "selfplay/decisive_games": jnp.sum(ended & (trajectory.reward != 0), dtype=jnp.float32),
        "selfplay/frames": jnp.float32(trajectory.action.size),
    }
