"""Returns: how a player of a single-player game is measured, by the mean over many episodes and its interval.

An episode's return is the plain sum of its rewards. Episodes run until the rules or a time limit end them, so long ones
count as they do in play. They are shared among the devices and played some moves at a time, as matches are.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from muzero_jax.apps.evaluation.matches import legal_or_first
from muzero_jax.apps.evaluation.player import Player, keys_of_chance
from muzero_jax.apps.evaluation.tables import align
from muzero_jax.games.catalogue import game_of
from muzero_jax.ops.devices import AXIS, shard_map
from muzero_jax.types import Environment, EnvState, Params

MOVES_PER_CALL = 32
CONFIDENCE = 0.95


class Episodes(NamedTuple):
    """P episodes, in progress or over."""

    states: EnvState  # leaves [P, ...]
    total: Array  # [P] float32, rewards so far
    length: Array  # [P] int32, moves so far
    is_over: Array  # [P] bool
    illegal_actions: Array  # [P] int32, how often the player chose an illegal action: must be 0
    num_moves: Array  # [1] int32, moves of the longest


def play(
    environment: Environment,
    player: Player,
    params: Params,
    mesh: Mesh,
    *,
    num_games: int,
    seed: int,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Episodes:
    """At least `num_games` episodes, as many on each device; `report(done, all)` is called on the way.

    Raises ValueError for a game that is not for one player.
    """
    if environment.num_players != 1:
        raise ValueError(
            f"returns are for single-player games, and {environment.name} is a two-player game; play a match"
        )
    begin, advance = _pieces(environment, player, mesh, -(-num_games // mesh.size))
    key, params = jax.device_put((jax.random.key(seed), params), NamedSharding(mesh, PartitionSpec()))
    episodes = begin(key)
    while not (is_over := jax.device_get(episodes.is_over)).all():
        report(int(is_over.sum()), is_over.size)
        episodes = advance(params, key, episodes)
    return jax.device_get(episodes)


def summarise(environment: Environment, episodes: Episodes) -> dict[str, Any]:
    """The episodes as plain numbers; `ci95` is Student's interval of the mean return.

    A game with a `milestone` adds `reached`: the share of episodes that came at least so far.
    """
    returns = np.asarray(episodes.total, np.float64)
    error = float(returns.std(ddof=1) / np.sqrt(returns.size)) if returns.size > 1 else 0.0
    from scipy import stats  # here, because it takes half a second to import

    half_width = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, max(1, returns.size - 1)))
    mean = float(returns.mean())
    milestone = game_of(environment).milestone
    known = {} if milestone is None else {"reached": shares(np.asarray(jax.vmap(milestone)(episodes.states)))}
    return {
        "mean_return": mean,
        "standard_error": error,
        "ci95": [mean - half_width, mean + half_width],
        "min_return": float(returns.min()),
        "median_return": float(np.median(returns)),
        "max_return": float(returns.max()),
        "games": returns.size,
        "mean_length": float(np.mean(episodes.length)),
        "illegal_actions": int(np.sum(episodes.illegal_actions)),
    } | known


def shares(furthest: np.ndarray) -> dict[str, float]:
    """The share of episodes that reached each milestone, or a later one; from the first that not all did pass."""
    reached = {str(mark): float((furthest >= mark).mean()) for mark in np.unique(furthest).tolist()}
    return dict(sorted(reached.items(), key=lambda item: int(item[0])))


def format_table(results: dict[str, dict[str, Any]]) -> str:
    """`summarise`'s fields, a column a player; of what episodes reached, the share of each."""
    marks = sorted({int(mark) for result in results.values() for mark in result.get("reached", {})})
    rows = [["", *results]]
    for field in ("mean_return", "standard_error", "min_return", "median_return", "max_return", "games", "mean_length"):
        rows.append([field, *(f"{result[field]:,.5g}" for result in results.values())])
    rows.insert(2, ["95% interval", *("{:,.5g} to {:,.5g}".format(*result["ci95"]) for result in results.values())])
    for mark in marks:
        rows.append([f"reached {mark}", *(f"{_share(result['reached'], mark):.1%}" for result in results.values())])
    return "\n".join(align(rows, "<>"))


def _share(reached: dict[str, float], mark: int) -> float:
    """The share of episodes that came to a mark that is perhaps another player's."""
    return max((share for name, share in reached.items() if int(name) >= mark), default=0.0)


def _pieces(environment: Environment, player: Player, mesh: Mesh, num_games: int) -> tuple[Callable, Callable]:
    """Episodes that begin, `num_games` on each device, and ones that go on."""

    def own(key):
        return jax.random.fold_in(key, lax.axis_index(AXIS))

    def begin(key):
        states = jax.vmap(environment.init)(jax.random.split(own(key), num_games))
        none = jnp.zeros(num_games, jnp.int32)
        return Episodes(states, jnp.zeros(num_games), none, none > 0, none, jnp.zeros(1, jnp.int32))

    def advance(params, key, episodes):
        stop = episodes.num_moves + MOVES_PER_CALL

        def goes_on(episodes):
            return ~episodes.is_over.all() & (episodes.num_moves < stop).all()

        def move(episodes):
            move_key = jax.random.fold_in(jax.random.fold_in(own(key), 1), episodes.num_moves[0])
            return _one_move(environment, player, params, move_key, episodes)

        return lax.while_loop(goes_on, move, episodes)

    everywhere, games = PartitionSpec(), PartitionSpec(AXIS)
    return (
        jax.jit(shard_map(begin, mesh, (everywhere,), games)),
        jax.jit(shard_map(advance, mesh, (everywhere, everywhere, games), games), donate_argnums=2),
    )


def _one_move(environment: Environment, player: Player, params: Params, key: Array, episodes: Episodes) -> Episodes:
    """One move of every episode that is not over; an illegal action is counted, and the first legal one played."""
    mask = jax.vmap(environment.legal)(episodes.states)
    action, is_legal = legal_or_first(player.act(params, key, episodes.states), mask)
    step = jax.vmap(environment.move)(episodes.states, action, keys_of_chance(key, len(action)))
    active = ~episodes.is_over
    states = jax.tree.map(lambda new, old: jax.vmap(jnp.where)(active, new, old), step.state, episodes.states)
    return Episodes(
        states=states,
        total=episodes.total + jnp.where(active, step.reward, 0.0),
        length=episodes.length + active,
        is_over=episodes.is_over | step.is_last,
        illegal_actions=episodes.illegal_actions + (active & ~is_legal),
        num_moves=episodes.num_moves + 1,
    )
