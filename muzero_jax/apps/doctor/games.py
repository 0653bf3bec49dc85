"""What self-play with a run's last weights shows, and whether what it stores agrees with the rules."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Bool, Float

from muzero_jax.algorithm import Algorithm
from muzero_jax.apps.doctor.records import Numbers
from muzero_jax.games.catalogue import needs_key
from muzero_jax.learning import replay
from muzero_jax.ops.mesh import make_mesh, shard_map
from muzero_jax.run import program
from muzero_jax.types import Environment, EnvState, TrainState, Transition

OPENING = 6
"""Moves by which openings are told apart."""
LEAST_PREFERENCE = 0.02
"""Policies that prefer their moves less are too near uniform to tell whether moves follow them."""
CLOSE = 1e-6


def play(algorithm: Algorithm, state: TrainState, num_rollouts: int) -> tuple[TrainState, Transition]:
    """Plays with the run's own self-play; returns the state, whose buffer has the moves, and the moves [T, B, ...]."""
    parts = program.state_specs()
    everywhere = PartitionSpec()

    def advance(state: TrainState, key: Array) -> tuple[TrainState, Transition]:
        actor, moves = algorithm.play(state.learner.params, state.actor, key)
        return state._replace(actor=actor, replay=replay.add(state.replay, moves)), moves._replace(state=None)

    step = jax.jit(shard_map(advance, make_mesh(1), (parts, everywhere), (parts, everywhere)))
    played = []
    for key in jax.random.split(jax.random.key(0), num_rollouts):
        state, moves = step(state, key)
        played.append(jax.device_get(moves))
    return state, jax.tree.map(lambda *parts: np.concatenate(parts), *played)


def compare_with_rules(environment: Environment, first: EnvState, played: Transition) -> Numbers:
    """How many of the stored [T, B, ...] differ from what the rules say, up to the first end of each game.

    `first` are the positions [B, ...] before. Games with chance are left out, because they cannot be played again.
    """
    if needs_key(environment):
        return {}

    def step(state: EnvState, action: Array) -> tuple[EnvState, tuple[Array, ...]]:
        seen = jax.vmap(environment.observe)(state), jax.vmap(environment.legal)(state)
        moved = jax.vmap(environment.move)(state, action)
        return moved.state, (*seen, moved.reward, moved.discount, moved.is_last)

    again = jax.jit(lambda actions: jax.lax.scan(step, first, actions)[1])(jnp.asarray(played.action))
    observation, legal, reward, discount, is_last = jax.device_get(again)
    in_first_game = np.cumsum(is_last, axis=0) - is_last == 0

    def wrong(stored: Any, true: Any) -> float:
        distance = np.abs(np.asarray(stored, np.float32) - np.asarray(true, np.float32))
        differs = np.reshape(distance > CLOSE, (*in_first_game.shape, -1)).any(-1)
        return float(np.mean(differs, where=in_first_game))

    return {
        "wrong_observations": wrong(played.observation, observation),
        "wrong_legal_moves": wrong(played.legal_action_mask, legal),
        "wrong_rewards": wrong(played.reward, reward),
        "wrong_discounts": wrong(played.discount, discount),
    }


def measure(played: Transition, num_players: int) -> Numbers:
    """The numbers of moves [T, B, ...] of self-play."""
    legal = np.asarray(played.legal_action_mask)
    policy = np.asarray(played.search_policy)
    action = np.asarray(played.action)[..., None]
    of_played = np.take_along_axis(policy, action, -1)[..., 0]
    by_search = (policy**2).sum(-1)
    by_chance = 1 / legal.sum(-1)
    is_choice = (legal.sum(-1) > 1) & ~played.explored
    found = {
        "illegal_moves": 1 - float(np.take_along_axis(legal, action, -1).mean()),
        "random_share": float(played.explored.mean()),
    }
    preference = float((by_search - by_chance)[is_choice].mean()) if is_choice.any() else 0.0
    if preference > LEAST_PREFERENCE:
        found["follows_search"] = float((of_played - by_chance)[is_choice].mean()) / preference
    lasts = whole_games(played.is_last)
    found["games"] = float(len(lasts))
    if not lasts:
        return found
    found["mean_length"] = float(np.mean([end - start + 1 for start, end, _ in lasts]))
    found["cut_off_share"] = float(np.mean([played.discount[end, b] != 0 for _, end, b in lasts]))
    found["rewarded_games"] = float(
        np.mean([(played.reward[start : end + 1, b] != 0).any() for start, end, b in lasts])
    )
    openings = Counter(
        tuple(played.action[start : min(end + 1, start + OPENING), b].tolist()) for start, end, b in lasts
    )
    found["commonest_opening"] = max(openings.values()) / len(lasts)
    results = [result_for_the_first(played, *game) for game in lasts]
    if num_players == 2 and any(results):
        found["first_player_wins"] = float(np.mean([result > 0 for result in results if result]))
    return found


def whole_games(is_last: Bool[Any, "T B"]) -> list[tuple[int, int, int]]:
    """The games [T, B] that were played to their end: (first move, last move, which of the B games)."""
    found = []
    for b in range(is_last.shape[1]):
        ends = np.nonzero(is_last[:, b])[0].tolist()
        starts = [0, *[end + 1 for end in ends]]
        found += [(start, end, b) for start, end in zip(starts, ends, strict=False)]
    return found


def result_for_the_first(played: Transition, start: int, end: int, b: int) -> float:
    """A game's return, for the player who made its first move."""
    return returned(played.reward[start : end + 1, b], played.discount[start : end + 1, b])


def returned(reward: Float[Any, " T"], discount: Float[Any, " T"]) -> float:
    """The return of a game's moves to its end, for the player who makes the first."""
    return float((np.cumprod([1.0, *discount[:-1]]) * reward).sum())


def entropy(policy: Float[Any, "*n A"], legal: Bool[Any, "*n A"]) -> float:
    """The mean entropy of policies [..., A], as a share of the largest possible one, where there is a choice."""
    count = legal.sum(-1)
    entropies = -(policy * np.log(np.maximum(policy, 1e-12))).sum(-1) / np.log(np.maximum(count, 2))
    return float(entropies[count > 1].mean()) if (count > 1).any() else 0.0
