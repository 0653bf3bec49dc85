"""Random games of any environment, recorded move by move, to learn facts about rules that have no description.

They show whether turns alternate, how long a game lasts and what random play earns. `apps.check.environment` looks for
faults in them. All games are played at the same time, in pieces of one compiled size. Finished games are moved with the
others, so rules must accept moves after the end.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.games.states import FIELDS, in_form
from muzero_jax.types import Environment, EnvState

MOVES_PER_CALL = 64
BOOKKEEPING = (*FIELDS, "_step_count")
"""Fields that are no part of the position."""


class Moves(NamedTuple):
    """T moves of G random games, arrays [T, G]."""

    over: Array  # bool, the game had ended before the move
    has_legal: Array  # bool, some action was legal
    action: Array  # int32
    reward: Array  # float32
    discount: Array  # float32
    is_last: Array  # bool
    player: Array  # int32, who moved
    next_player: Array  # int32, who moves next
    own_reward: Array  # float32, the state's `rewards` of the player who moved
    total_reward: Array  # float32, the sum of the state's `rewards`
    is_same: Array  # bool, the move changed nothing at all
    is_same_position: Array  # bool, the move changed at most fields of `BOOKKEEPING`
    is_over_after: Array  # bool, the state after the move is terminated or truncated
    agrees: Array  # bool, `observe` and `legal` equal the state's fields
    sight: Array  # [T, G, 2] uint32, a hash of what the player to move saw
    next_sight: Array  # [T, G, 2] uint32, of what the next one saw after the move


def play(environment: Environment, *, num_games: int, max_moves: int) -> Moves:
    """Plays random legal moves until all games are over, or for `max_moves` moves."""
    environment = in_form(environment)
    move = _mover(environment.move, environment.observe, environment.legal)
    return watch(environment.init, move, num_games=num_games, max_moves=max_moves)


def watch(init: Callable, move: Callable, *, num_games: int, max_moves: int) -> Any:
    """Records of random games, leaves [T, G, ...], until all games are over, or for `max_moves` moves.

    `move` is (state, whether its game is over, key) -> (the next state, whether the game is over then, what to record).
    """
    start_key, play_key = jax.random.split(jax.random.key(0))
    states = _begin(init, jax.random.split(start_key, num_games))
    over = jnp.zeros(num_games, bool)
    pieces: list[Any] = []
    while not pieces or not bool(over.all()) and len(pieces) * MOVES_PER_CALL < max_moves:
        states, over, piece = _advance(move, jax.random.fold_in(play_key, len(pieces)), states, over)
        pieces.append(jax.device_get(piece))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:max_moves], *pieces)


def random_action(key: Array, mask: Array) -> Array:
    """A random legal action, or 0 if there is none."""
    return jnp.argmax(jnp.where(mask, jax.random.uniform(key, mask.shape), -1.0)).astype(jnp.int32)


def random_starts(environment: Environment, num_games: int = 16) -> tuple[EnvState, bool]:
    """(first states [G, ...], whether some of them are different positions, as after a random deal).

    Only starts of the same player are compared, because pgx draws who begins, and some games keep that in the state.
    """
    starts = _begin(environment.init, jax.random.split(jax.random.key(0), num_games))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(starts) if not _is_key(leaf)]
    alike = np.asarray(starts.current_player) == np.asarray(starts.current_player)[0]
    return starts, any((leaf[alike] != leaf[0]).any() for leaf in leaves)


def check_not_dealt(environment: Environment, what: str) -> None:
    """Raises ValueError, saying that `what` is for games with one start, if this one deals at random."""
    if random_starts(environment)[1]:
        raise ValueError(
            f"{what} is for games with one start, and {environment.name} deals at random; play a match instead"
        )


def turns_alternate(moves: Moves) -> bool:
    """Whether every move that did not end its game gave the turn to the other player."""
    goes_on = ~moves.over & ~moves.is_last
    return bool((moves.player != moves.next_player)[goes_on].all())


def is_for_points(moves: Moves) -> bool:
    """Whether some two-player game ended with other points for its first player than 1, 0 or -1."""
    rewards = np.where(moves.over, 0.0, moves.reward)
    points = np.where(moves.player == moves.player[0], rewards, -rewards).sum(axis=0)
    return not bool(np.isin(points, (-1, 0, 1)).all())


def shows_hidden(moves: Moves) -> bool:
    """Whether the same sight and the same move were followed by different things, in a game without chance in moves.

    Then the player to move did not know all. Of large games too few positions repeat to show it.
    """
    rewards = (moves.reward + 0.0).view(np.uint32)  # 0 and -0 are the same
    numbers = [moves.action.astype(np.uint32), rewards, moves.is_last.astype(np.uint32)]
    columns = np.concatenate([moves.sight, np.stack(numbers, axis=-1), moves.next_sight], axis=-1)
    found = np.unique(columns[~moves.over], axis=0)
    return len(np.unique(found[:, :3], axis=0)) < len(found)


def discount_sizes(moves: Moves) -> list[float]:
    """The distinct |discount|s of moves that did not end a game, ascending, rounded to float32's six digits."""
    sizes = np.abs(moves.discount[~moves.over & (moves.discount != 0)]).astype(float)
    return np.unique(sizes.round(6)).tolist()


def longest_game(moves: Moves) -> int:
    """The number of moves of the longest game, at least 1."""
    return max(1, int((~moves.over).sum(axis=0).max()))


def mean_return(moves: Moves) -> float | None:
    """The mean of the games' returns, which are undiscounted sums of rewards.

    None if a game was cut off, because self-play's mean is over whole games, and short games alone are a biased sample.
    """
    returns = np.where(moves.over, 0.0, moves.reward).sum(axis=0)
    return float(returns.mean()) if moves.is_last.any(axis=0).all() else None


def returns(moves: Moves) -> np.ndarray:
    """G_t = r_{t+1} + d_{t+1} G_{t+1} of every move [T, G], for its player; 0 after a game's end."""
    found = np.zeros(moves.over.shape)
    following = found[0]
    for t in reversed(range(len(found))):
        after = np.where(moves.is_last[t], 0, moves.discount[t] * following)
        following = found[t] = np.where(moves.over[t], 0, moves.reward[t] + after)
    return found


@partial(jax.jit, static_argnums=0)
def _begin(init: Callable, keys: Array) -> EnvState:
    return jax.vmap(init)(keys)


@partial(jax.jit, static_argnums=0)
def _advance(move: Callable, key: Array, states: EnvState, over: Array) -> tuple[EnvState, Array, Any]:
    def step(carry, step_key):
        states, over = carry
        states, is_last, shown = jax.vmap(move)(states, over, jax.random.split(step_key, len(over)))
        return (states, over | is_last), shown

    (states, over), shown = jax.lax.scan(step, (states, over), jax.random.split(key, MOVES_PER_CALL))
    return states, over, shown


@functools.lru_cache(maxsize=8)
def _mover(*rules: Callable) -> Callable:
    """`_move` with these rules, cached so that the same rules compile once."""
    return partial(_move, rules)


def _move(rules: tuple, state: EnvState, over: Array, key: Array) -> tuple[EnvState, Array, Moves]:
    """One random move of one game, and its record."""
    move, observe, legal = rules
    choice_key, move_key = jax.random.split(key)
    mask = legal(state)
    action = random_action(choice_key, mask)
    step = move(state, action, move_key)
    after = step.state
    player = state.current_player
    moves = Moves(
        over=over,
        has_legal=mask.any(),
        action=action,
        reward=step.reward,
        discount=step.discount,
        is_last=step.is_last,
        player=player,
        next_player=after.current_player,
        own_reward=after.rewards[player],
        total_reward=after.rewards.sum(),
        is_same=equal(state, after),
        is_same_position=equal(_position(state), _position(after)),
        is_over_after=after.terminated | after.truncated,
        agrees=over | equal((observe(state), mask), (state.observation, state.legal_action_mask)),
        sight=_hashed((state.observation, mask)),
        next_sight=_hashed((after.observation, after.legal_action_mask)),
    )
    return after, step.is_last, moves


def _position(state: EnvState) -> list[Array]:
    """The leaves that hold the position, or the observation if the state has only pgx's six fields."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    own = [leaf for path, leaf in leaves if not path or str(getattr(path[0], "name", "")) not in BOOKKEEPING]
    return own or [leaf for path, leaf in leaves if str(getattr(path[0], "name", "")) == "observation"]


def equal(one: Any, other: Any) -> Array:
    """Whether two trees hold the same numbers, apart from random keys."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    checks = [(x == y).all() for x, y in pairs if not _is_key(x)]
    return jnp.stack(checks).all() if checks else jnp.bool_(True)


def _hashed(tree: Any) -> Array:
    """A hash of a tree of numbers, [2] uint32: for each word a sum of MurmurHash3's finaliser over the numbers."""
    numbers = jnp.concatenate([leaf.ravel().astype(jnp.float32) for leaf in jax.tree.leaves(tree)])
    bits = jax.lax.bitcast_convert_type(numbers, jnp.uint32)
    mixed = bits ^ (jnp.arange(2 * len(bits), dtype=jnp.uint32).reshape(2, -1) * jnp.uint32(2654435769))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> shift)) * jnp.uint32(factor)
    return (mixed ^ (mixed >> 16)).sum(axis=1)


def _is_key(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
