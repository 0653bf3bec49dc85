"""Matches between two `Player`s, and their results as plain numbers.

A match is a pure function of params and a key. Openings are random, and each is played twice with the seats exchanged,
so an opening that favours one side favours both players once. The two seatings are one `scan` over "does A start", so
they compile once; a player moves only where it is its turn in some game, which `current_player` decides.
An illegal action must never decide a game (pgx lets the other side win): it is counted, and a legal one played instead.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from muzero_jax.arithmetic.legal_actions import uniform_legal_action
from muzero_jax.evaluation.player import Player, keys_of_chance
from muzero_jax.games.catalogue import check_for_two
from muzero_jax.types import Environment, EnvState, Params


class MatchResult(NamedTuple):
    """P openings played twice; row 0 holds the games in which A has the first seat, row 1 those in which B has it."""

    points: Array  # [2, P] float32, the sum of A's rewards: above 0 won, 0 drawn, below 0 lost
    length: Array  # [2, P] int32, moves after the opening
    illegal_actions: Array  # [2, P] int32, how often a player chose an illegal action: must be 0


class Games(NamedTuple):
    """A match in progress: both seatings of P openings. Of one seating, leaves lack the first axis."""

    states: EnvState  # leaves [2, P, ...]
    a_id: Array  # [2, P] int32, which player A is
    result: MatchResult  # so far
    num_moves: Array  # [2, 1] int32, moves since the opening


class Pieces(NamedTuple):
    """A match that is played some moves at a time, until every game has terminated."""

    begin: Callable[[Array], Games]  # from a key
    advance: Callable[[Params, Params, Array, Games, int], Games]  # by at most so many moves; the key is the same


def match_in_pieces(
    environment: Environment, player_a: Player, player_b: Player, *, num_games: int, opening_plies: int
) -> Pieces:
    """A match of `num_games` games: num_games / 2 openings of `opening_plies` uniformly random legal moves.

    The first seat is the side that made the opening's first move. Games are batched on axis 0 and nothing is global, so
    the match may run under `shard_map` with a key and a share of the games for each device. It comes in pieces, because
    on a CPU whole matches of a large network are better not one call: what XLA's library leaves waits until it ends.

    Raises:
        ValueError: an odd number of games or none, a negative opening, or a game that is not for two players.
    """
    check_match(environment, num_games, opening_plies)

    def begin(key: Array) -> Games:
        starts, openings, _ = draw_openings(environment, key, num_games // 2, opening_plies)
        zeros = jnp.zeros((2, num_games // 2), jnp.int32)
        return Games(
            states=jax.tree.map(lambda x: jnp.stack([x, x]), openings),
            a_id=jnp.stack([starts.current_player, 1 - starts.current_player]),
            result=MatchResult(zeros.astype(jnp.float32), zeros, zeros),
            num_moves=jnp.zeros((2, 1), jnp.int32),
        )

    def advance(params_a: Params, params_b: Params, key: Array, games: Games, num_moves: int) -> Games:
        game_key = jax.random.split(key)[1]
        one_move = _make_one_move(environment, player_a, player_b, params_a, params_b)

        def advance_seating(_, seating_and_games):
            seating, games = seating_and_games
            return None, _play_on(one_move, games, jax.random.fold_in(game_key, seating), num_moves)

        return lax.scan(advance_seating, None, (jnp.arange(2), games))[1]

    return Pieces(begin, advance)


def summarise(result: MatchResult) -> dict[str, float | int | list[float]]:
    """The match as plain numbers, for A; seats are the opening's, and `ci95` is Wilson's interval of the score.

    Where a game may count more than 1, as in backgammon, `points_won` and `points_lost` are added up too. Short lost
    games (`mean_length_lost`) tell of a blind spot rather than of weak play.
    """
    points = np.asarray(result.points, np.float64)
    scores = (np.sign(points) + 1) / 2
    score = float(scores.mean())
    counts_more = (np.abs(points) > 1).any()
    earned = {"points_won": _above_zero(points), "points_lost": _above_zero(-points)} if counts_more else {}
    lengths = np.asarray(result.length)
    lost = lengths[points < 0]
    return {
        "wins": int((points > 0).sum()),
        "draws": int((points == 0).sum()),
        "losses": int((points < 0).sum()),
        "games": points.size,
        "score": score,
        "ci95": list(wilson_interval(score, points.size)),
        **earned,
        "score_as_first": float(scores[0].mean()),
        "score_as_second": float(scores[1].mean()),
        "mean_length": float(lengths.mean()),
        **({"mean_length_lost": float(lost.mean())} if lost.size else {}),
        "illegal_actions": int(np.sum(result.illegal_actions)),
    }


def _above_zero(points: np.ndarray) -> float:
    return float(np.maximum(points, 0).sum())


def wilson_interval(score: float, num_games: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval (1927) of a mean of `num_games` results in [0, 1]; wide where there are draws."""
    shrink = 1 / (1 + z**2 / num_games)
    centre = shrink * (score + z**2 / (2 * num_games))
    half_width = shrink * z * float(np.sqrt(score * (1 - score) / num_games + (z / (2 * num_games)) ** 2))
    return max(0.0, centre - half_width), min(1.0, centre + half_width)


class Openings(NamedTuple):
    """P random openings."""

    starts: EnvState  # leaves [P, ...], before the first move
    states: EnvState  # leaves [P, ...], after the last
    actions: Array  # [plies, P] int32, -1 in the place of a move that was taken back


def draw_openings(environment: Environment, key: Array, num_openings: int, plies: int) -> Openings:
    """Openings of `plies` uniformly random moves; the match that has the same key begins with them."""
    start_key, move_key = jax.random.split(jax.random.split(key)[0])
    starts = jax.vmap(environment.init)(jax.random.split(start_key, num_openings))
    return Openings(starts, *_play_opening(environment, starts, move_key, plies))


def _play_opening(environment: Environment, states: EnvState, key: Array, plies: int) -> tuple[EnvState, Array]:
    """`plies` uniformly random moves; one that would end its game is taken back, so that opening is a ply shorter."""

    def play_ply(states, ply_key):
        actions = uniform_legal_action(ply_key, states.legal_action_mask)
        moved = jax.vmap(environment.move)(states, actions, keys_of_chance(ply_key, len(actions))).state
        states = jax.tree.map(lambda old, new: jax.vmap(jnp.where)(moved.terminated, old, new), states, moved)
        return states, jnp.where(moved.terminated, -1, actions)

    return lax.scan(play_ply, states, jax.random.split(key, plies))


def _make_one_move(
    environment: Environment, player_a: Player, player_b: Player, params_a: Params, params_b: Params
) -> Callable[[Games, Array], Games]:
    """`one_move(games, key)`: one move in every game of a seating that goes on."""

    def choose(player, params, key, states, is_on_move):
        no_move = jnp.zeros(is_on_move.shape, jnp.int32)
        return lax.cond(is_on_move.any(), lambda: player.act(params, key, states), lambda: no_move)

    def one_move(games, key):
        states, result = games.states, games.result
        active, a_is_to_move = ~states.terminated, states.current_player == games.a_id
        key_a, key_b = jax.random.split(key)
        action_a = choose(player_a, params_a, key_a, states, active & a_is_to_move)
        action_b = choose(player_b, params_b, key_b, states, active & ~a_is_to_move)
        action, is_legal = _legal(jnp.where(a_is_to_move, action_a, action_b), states.legal_action_mask)
        states, reward, *_ = jax.vmap(environment.move)(states, action, keys_of_chance(key, len(action)))
        result = MatchResult(
            points=result.points + active * jnp.where(a_is_to_move, reward, -reward),
            length=result.length + active,
            illegal_actions=result.illegal_actions + (active & ~is_legal),
        )
        return games._replace(states=states, result=result, num_moves=games.num_moves + 1)

    return one_move


def _play_on(one_move: Callable[[Games, Array], Games], games: Games, key: Array, num_moves: int) -> Games:
    """Plays the games of a seating on, by at most `num_moves` moves."""
    stop = games.num_moves + num_moves

    def goes_on(games):
        return ~games.states.terminated.all() & (games.num_moves < stop).all()

    def play(games):
        return one_move(games, jax.random.fold_in(key, games.num_moves[0]))

    return lax.while_loop(goes_on, play, games)


def _legal(action: Array, legal_action_mask: Array) -> tuple[Array, Array]:
    """(the action, or the first legal one in its place; whether it was legal). An action out of range is illegal."""
    num_actions = legal_action_mask.shape[-1]
    rows = jnp.arange(action.shape[0])
    is_legal = (action >= 0) & (action < num_actions) & legal_action_mask[rows, jnp.clip(action, 0, num_actions - 1)]
    return jnp.where(is_legal, action, jnp.argmax(legal_action_mask, axis=-1)), is_legal


def check_match(environment: Environment, num_games: int, opening_plies: int) -> None:
    """Raises ValueError in one sentence for a match that cannot be fair, or not be played."""
    if num_games < 2 or num_games % 2:
        raise ValueError(f"A match plays every opening from both seats, so its games must be even, not {num_games}.")
    if opening_plies < 0:
        raise ValueError(f"An opening has 0 or more plies, not {opening_plies}.")
    check_for_two(environment, "a match needs")
