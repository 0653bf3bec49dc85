"""Measures a player of a single-player game: the mean return of many episodes, with its interval.

A return is the undiscounted sum of an episode's rewards. All episodes are played to their end, by the rules or a time
limit, so that the mean is not biased towards short ones; or for `max_moves` moves, if one of them might never end.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from muzero_jax.apps.evaluation.arena import Report, ShardedGames, silent
from muzero_jax.apps.evaluation.matches import legal_or_first, play_on, standard_error, student_interval
from muzero_jax.apps.evaluation.player import Player, keys_of_chance
from muzero_jax.apps.evaluation.tables import align
from muzero_jax.games.catalogue import game_of
from muzero_jax.ops.conditional import where_each
from muzero_jax.types import Environment, EnvState, Params

MOVES_PER_CALL = 32
FIELDS = "mean_return ci95 standard_error min_return median_return max_return games mean_length".split()
"""The fields that the table shows."""


class Episodes(NamedTuple):
    """P episodes, in progress or over."""

    states: EnvState  # leaves [P, ...]
    total: Array  # [P] float32, rewards so far
    length: Array  # [P] int32, moves so far
    is_over: Array  # [P] bool
    illegal_actions: Array  # [P] int32, illegal actions that the player chose; should be 0
    num_moves: Array  # [1] int32, moves of the longest episode


def play(
    environment: Environment,
    player: Player,
    params: Params,
    mesh: Mesh,
    *,
    num_games: int,
    seed: int,
    max_moves: int | None = None,
    report: Report = silent,
) -> Episodes:
    """Plays at least `num_games` episodes, equally many on each device; calls `report(done, all)` on the way.

    After `max_moves` moves an episode is cut off, with the rewards that it has.

    Raises ValueError for a two-player game.
    """
    if environment.num_players != 1:
        raise ValueError(
            f"returns are for single-player games, and {environment.name} is a two-player game; play a match"
        )
    per_device = -(-num_games // mesh.size)

    def is_over(episodes):
        return episodes.is_over

    def begin(key, device):
        states = jax.vmap(environment.init)(jax.random.split(jax.random.fold_in(key, device), per_device))
        none = jnp.zeros(per_device, jnp.int32)
        return Episodes(states, jnp.zeros(per_device), none, none > 0, none, jnp.zeros(1, jnp.int32))

    def advance(params, key, episodes):
        one_move = partial(_one_move, environment, player, params, max_moves)
        return play_on(one_move, is_over, episodes, jax.random.fold_in(key, 1), MOVES_PER_CALL)

    games = ShardedGames(begin, advance, is_over, mesh, axis=0)
    return games.play(params, jax.random.key(seed), report)


def summarise(environment: Environment, episodes: Episodes) -> dict[str, Any]:
    """The episodes as plain numbers; `ci95` is Student's interval of the mean return.

    In a game with `milestones`, `reached` has the share of episodes that reached each, for those that any reached.
    """
    returns = np.asarray(episodes.total, np.float64)
    milestones = game_of(environment).milestones
    shares = {} if milestones is None else jax.tree.map(np.mean, jax.device_get(jax.vmap(milestones)(episodes.states)))
    reached = {name: float(share) for name, share in shares.items() if share > 0}
    return {
        "mean_return": float(returns.mean()),
        "standard_error": standard_error(returns),
        "ci95": list(student_interval(returns)),
        "min_return": float(returns.min()),
        "median_return": float(np.median(returns)),
        "max_return": float(returns.max()),
        "games": returns.size,
        "mean_length": float(np.mean(episodes.length)),
        "illegal_actions": int(np.sum(episodes.illegal_actions)),
    } | ({} if milestones is None else {"reached": reached})


def format_table(results: dict[str, dict[str, Any]]) -> str:
    """A table of `summarise`'s fields and of the shares that reached each milestone, the most frequent one first."""
    rows = [["", *results]]
    for field in FIELDS:
        title = "95% interval" if field == "ci95" else field
        rows.append([title, *(_number(result[field]) for result in results.values())])
    shares = [result.get("reached", {}) for result in results.values()]
    names = dict.fromkeys(name for each in shares for name in each)
    for name in sorted(names, key=lambda name: (*(-each.get(name, 0) for each in shares), len(name), name)):
        rows.append([f"reached {name}", *(f"{each.get(name, 0):.1%}" for each in shares)])
    return "\n".join(align(rows, "<>"))


def _number(value: Any) -> str:
    return "{:,.5g} to {:,.5g}".format(*value) if isinstance(value, list) else f"{value:,.5g}"


def _one_move(
    environment: Environment, player: Player, params: Params, max_moves: int | None, episodes: Episodes, key: Array
) -> Episodes:
    """One move of every unfinished episode; for an illegal action, which is counted, the first legal one is played."""
    mask = jax.vmap(environment.legal)(episodes.states)
    action, is_legal = legal_or_first(player.act(params, key, episodes.states), mask)
    step = jax.vmap(environment.move)(episodes.states, action, keys_of_chance(key, len(action)))
    active = ~episodes.is_over
    states = where_each(active, step.state, episodes.states)
    length = episodes.length + active
    is_cut = jnp.bool_(False) if max_moves is None else length >= max_moves
    return Episodes(
        states=states,
        total=episodes.total + jnp.where(active, step.reward, 0.0),
        length=length,
        is_over=episodes.is_over | step.is_last | is_cut,
        illegal_actions=episodes.illegal_actions + (active & ~is_legal),
        num_moves=episodes.num_moves + 1,
    )
