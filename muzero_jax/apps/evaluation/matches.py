"""Matches between two `Player`s, and their results as plain numbers.

A match is a pure function of params and a key. Openings are random, and each is played twice with the seats exchanged,
so that an opening that favours one side favours each player once. Two deterministic players repeat a game from the same
opening, so their openings are drawn without replacement (Hex 5x5 has 25 of one stone), and repeats are left out. The
two seatings are one `scan` over "does A start", so that they compile once; a player is called only if it is to move in
some game. An illegal action must not decide a game (in pgx the other side would win): it is counted, and a legal one is
played instead.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from muzero_jax.apps.evaluation.batches import first_of_each
from muzero_jax.apps.evaluation.elo import Z95
from muzero_jax.apps.evaluation.player import Player, keys_of_chance
from muzero_jax.games.catalogue import check_for_two, hides, needs_key
from muzero_jax.ops.conditional import where_each
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import Environment, EnvState, Params


class MatchResult(NamedTuple):
    """The results of P openings, each played twice: in row 0 A has the first seat, in row 1 B."""

    points: Array  # [2, P] float32, the sum of A's rewards: above 0 won, 0 drawn, below 0 lost
    length: Array  # [2, P] int32, moves after the opening
    illegal_actions: Array  # [2, P] int32, illegal actions that a player chose; should be 0
    moves: Array  # [2, P, 2] uint32, a hash of all moves, including the opening


class Games(NamedTuple):
    """A match in progress: both seatings of P openings; for one seating, leaves lack the first axis."""

    states: EnvState  # leaves [2, P, ...]
    a_id: Array  # [2, P] int32, the player id of A
    result: MatchResult  # so far
    num_moves: Array  # [2, 1] int32, moves since the opening


class Pieces(NamedTuple):
    """A match that is played some moves at a time until every game has ended."""

    begin: Callable[..., Games]  # (key, share = 0); `share` is the number of this device
    advance: Callable[[Params, Params, Array, Games, int], Games]  # by at most that many moves; one key per device
    stochastic: bool  # a player or the game uses the key; else an opening's games repeat


def match_in_pieces(
    environment: Environment, player_a: Player, player_b: Player, *, num_games: int, opening_plies: int
) -> Pieces:
    """A match of `num_games` games: num_games / 2 openings of `opening_plies` uniformly random legal moves.

    The first seat is the side that made the opening's first move. Games do not depend on each other, so the match may
    run under `shard_map` with a share of the games on each device. It comes in pieces, because on a CPU one call for a
    whole match of a large network would use much memory, which XLA frees only at the end of a call.

    Raises ValueError for a single-player game.
    """
    check_for_two(environment, "a match needs")
    assert num_games > 0 and num_games % 2 == 0
    stochastic = is_stochastic(environment, player_a, player_b)

    def begin(key: Array, share: Array | int = 0) -> Games:
        drawn = draw_openings(environment, key, num_games // 2, opening_plies, replace=stochastic, share=share)
        first = drawn.starts.current_player
        zeros = jnp.zeros((2, num_games // 2), jnp.int32)
        states, moves = jax.tree.map(lambda x: jnp.stack([x, x]), (drawn.states, drawn.moves))
        return Games(
            states=states,
            a_id=jnp.stack([first, 1 - first]),
            result=MatchResult(zeros.astype(jnp.float32), zeros, zeros, moves),
            num_moves=jnp.zeros((2, 1), jnp.int32),
        )

    def advance(params_a: Params, params_b: Params, key: Array, games: Games, num_moves: int) -> Games:
        game_key = jax.random.split(key)[1]
        one_move = partial(_one_move, environment, (player_a, params_a), (player_b, params_b))

        def advance_seating(_, seating_and_games):
            seating, games = seating_and_games
            move_key = jax.random.fold_in(game_key, seating)
            return None, play_on(one_move, lambda games: games.states.terminated, games, move_key, num_moves)

        return lax.scan(advance_seating, None, (jnp.arange(2), games))[1]

    return Pieces(begin, advance, stochastic)


def is_stochastic(environment: Environment, *both: Player) -> bool:
    """Whether games of these players from the same opening may differ, because a player or the game uses chance."""
    return any(player.stochastic for player in both) or needs_key(environment)


def summarise(
    result: MatchResult, *, stochastic: bool = False, is_for_points: bool = False
) -> dict[str, float | int | list[float]]:
    """The match as plain numbers, for A; seats are the opening's, and `ci95` is Wilson's interval of the score.

    `distinct_games` differ in their moves or in who made them. Repeats are left out of all figures, unless the match is
    `stochastic`, because then they are independent samples. If the game `is_for_points` (`Game`), or some game ended
    with other points than 1, 0 and -1, `mean_points` of a game measure A, with their `points_interval`; the score,
    which counts a win of any size as 1, may then favour the player who loses points. Games from one opening are taken
    as independent, so intervals are rather too wide. Short lost games (`mean_length_lost`) suggest a blind spot rather
    than weak play.
    """
    is_new = np.stack([np.isin(np.arange(len(moves)), first_of_each(moves)) for moves in np.asarray(result.moves)])
    counts = is_new | stochastic
    points = np.asarray(result.points, np.float64)
    scores = (np.sign(points) + 1) / 2
    as_first, as_second = (float(row[counted].mean()) for row, counted in zip(scores, counts, strict=True))
    points = points[counts]
    lengths = np.asarray(result.length)[counts]
    score = float(scores[counts].mean())
    lengths_lost = lengths[points < 0]
    of_points = {}
    if is_for_points or not np.isin(points, (-1, 0, 1)).all():
        of_points = {
            "mean_points": float(points.mean()),
            "mean_points_ci95": list(points_interval(points)),
            "points_as_first": float(np.asarray(result.points)[0][counts[0]].mean()),
            "points_as_second": float(np.asarray(result.points)[1][counts[1]].mean()),
            "points_won": float(points.clip(0).sum()),
            "points_lost": float((-points).clip(0).sum()),
        }
    return {
        "wins": int((points > 0).sum()),
        "draws": int((points == 0).sum()),
        "losses": int((points < 0).sum()),
        "games": points.size,
        "distinct_games": int(is_new.sum()),
        "score": score,
        "ci95": list(wilson_interval(score, points.size)),
        **of_points,
        "score_as_first": as_first,
        "score_as_second": as_second,
        "mean_length": float(lengths.mean()),
        **({"mean_length_lost": float(lengths_lost.mean())} if lengths_lost.size else {}),
        "illegal_actions": int(np.sum(result.illegal_actions)),
    }


def are_for_points(summaries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one of `summarise`'s dicts has points; then all of them are compared by points."""
    return any("mean_points" in summary for summary in summaries)


def points_of(summary: Mapping[str, Any]) -> tuple[float, float, float]:
    """(mean points of a game, ends of their interval) of `summarise`'s dict.

    In a match without points a win is 1 and a loss -1.
    """
    low, high = summary.get("mean_points_ci95", [2 * end - 1 for end in summary["ci95"]])
    return summary.get("mean_points", 2 * summary["score"] - 1), low, high


def points_interval(points: Float[np.ndarray, " N"]) -> tuple[float, float]:
    """Student's 95% interval of the mean; if all games ended alike, Wilson's, as if another end were worth -points."""
    if np.ptp(points):
        return student_interval(points)
    end = abs(float(points[0])) or 1.0
    low, high = wilson_interval((float(points[0]) / end + 1) / 2, points.size)
    return end * (2 * low - 1), end * (2 * high - 1)


def student_interval(samples: Float[np.ndarray, " N"]) -> tuple[float, float]:
    """Student's 95% interval of the mean; the mean itself for one sample."""
    from scipy import stats  # here, because it takes half a second to import

    half_width = standard_error(samples) * float(stats.t.ppf(0.975, max(1, samples.size - 1)))
    return float(samples.mean()) - half_width, float(samples.mean()) + half_width


def standard_error(samples: Float[np.ndarray, " N"]) -> float:
    """The standard error of the mean; 0 for one sample."""
    return float(samples.std(ddof=1) / np.sqrt(samples.size)) if samples.size > 1 else 0.0


def wilson_interval(score: float, num_games: int | float) -> tuple[float, float]:
    """Wilson's score interval (1927) of a mean of `num_games` results in [0, 1]; with draws it is too wide."""
    z = Z95
    shrink = 1 / (1 + z**2 / num_games)
    centre = shrink * (score + z**2 / (2 * num_games))
    half_width = shrink * z * float(np.sqrt(score * (1 - score) / num_games + (z / (2 * num_games)) ** 2))
    return max(0.0, centre - half_width), min(1.0, centre + half_width)


class Openings(NamedTuple):
    """P random openings."""

    starts: EnvState  # leaves [P, ...], before the first move
    states: EnvState  # leaves [P, ...], after the last
    moves: Array  # [P, 2] uint32, a hash of the moves
    actions: Array  # [plies, P] int32, -1 for a move taken back because it ended the game


def draw_openings(
    environment: Environment, key: Array, num_openings: int, plies: int, *, replace: bool, share: Array | int = 0
) -> Openings:
    """Openings of `plies` uniformly random legal moves; a match with the same key begins with them.

    Without replacement, openings that are equal so far take different legal moves in turn, in random order, so that
    none is repeated before all with the same start have occurred; a dealt start counts as one of its own. `share` is
    the number of the device, if several share the openings of a key.
    """
    start_key, move_key = jax.random.split(jax.random.split(jax.random.fold_in(key, share))[0])
    starts = jax.vmap(environment.init)(jax.random.split(start_key, num_openings))
    place = share * num_openings + jnp.arange(num_openings)
    usual = environment.observe(environment.init(jax.random.key(0)))  # on all devices the same
    is_usual = jax.vmap(lambda start: (environment.observe(start) == usual).all() & (not hides(environment)))(starts)
    moves = jnp.stack([jnp.where(is_usual, 0, place + 1), 0 * place], axis=1).astype(jnp.uint32)

    def play_ply(openings, ply_key):
        states, moves, place = openings
        if replace:
            actions = uniform_legal_action(ply_key, states.legal_action_mask)
        else:
            actions, place = jax.vmap(_deal, (None, 0, 0, 0))(key, moves, states.legal_action_mask, place)
        moved = jax.vmap(environment.move)(states, actions, keys_of_chance(ply_key, len(actions))).state
        states = where_each(moved.terminated, states, moved)
        actions = jnp.where(moved.terminated, -1, actions)  # the opening is a ply shorter
        return (states, _add_moves(moves, actions), place), actions

    (states, moves, _), actions = lax.scan(play_ply, (starts, moves, place), jax.random.split(move_key, plies))
    return Openings(starts, states, moves, actions)


def _deal(key: Array, moves: Array, legal_action_mask: Array, place: Array) -> tuple[Array, Array]:
    """(action, new place) of an opening by its place among those with the same moves so far."""
    order = jax.random.uniform(jax.random.fold_in(key, moves[0]), legal_action_mask.shape)
    num_legal = legal_action_mask.sum()
    return jnp.argsort(jnp.where(legal_action_mask, order, 2.0))[place % num_legal], place // num_legal


def _add_moves(moves: Array, actions: Array) -> Array:
    """Hashes [P, 2] of moves, extended by one move in each game; an action below 0 leaves a hash unchanged."""
    hashed = jax.vmap(jax.random.fold_in)(jax.random.wrap_key_data(moves, impl="threefry2x32"), actions)
    return jnp.where(actions[:, None] < 0, moves, jax.random.key_data(hashed))


def _one_move(
    environment: Environment, a: tuple[Player, Params], b: tuple[Player, Params], games: Games, key: Array
) -> Games:
    """One move in every unfinished game of a seating."""
    states = games.states
    result = games.result

    def choose(player, params, key, is_on_move):
        no_move = jnp.zeros(is_on_move.shape, jnp.int32)
        return lax.cond(is_on_move.any(), lambda: player.act(params, key, states), lambda: no_move)

    active = ~states.terminated
    a_is_to_move = states.current_player == games.a_id
    player_a, params_a = a
    player_b, params_b = b
    keys = jax.random.split(key)
    on_move = jnp.stack([active & a_is_to_move, active & ~a_is_to_move])
    if player_a is player_b:  # a search takes long to compile, so it is compiled once
        params = jax.tree.map(lambda *both: jnp.stack(both), params_a, params_b)
        action_a, action_b = lax.map(lambda seat: choose(player_a, *seat), (params, keys, on_move))
    else:
        action_a = choose(player_a, params_a, keys[0], on_move[0])
        action_b = choose(player_b, params_b, keys[1], on_move[1])
    action, is_legal = legal_or_first(jnp.where(a_is_to_move, action_a, action_b), states.legal_action_mask)
    after, reward, *_ = jax.vmap(environment.move)(states, action, keys_of_chance(key, len(action)))
    result = MatchResult(
        points=result.points + active * jnp.where(a_is_to_move, reward, -reward),
        length=result.length + active,
        illegal_actions=result.illegal_actions + (active & ~is_legal),
        moves=_add_moves(result.moves, jnp.where(active, action, -1)),
    )
    return games._replace(states=after, result=result, num_moves=games.num_moves + 1)


def play_on(one_move: Callable, is_over: Callable, games: Any, key: Array, num_moves: int) -> Any:
    """Plays games until all are over, by at most `num_moves` moves; `games.num_moves` counts them.

    `one_move(games, key)` makes a move in each unfinished game; `is_over(games)` says which have ended.
    """
    stop = games.num_moves + num_moves

    def goes_on(games):
        return ~is_over(games).all() & (games.num_moves < stop).all()

    def play(games):
        return one_move(games, jax.random.fold_in(key, games.num_moves[0]))

    return lax.while_loop(goes_on, play, games)


def legal_or_first(action: Array, legal_action_mask: Array) -> tuple[Array, Array]:
    """(the action if it is legal, else the first legal one; whether it was legal). Out of range is illegal."""
    num_actions = legal_action_mask.shape[-1]
    rows = jnp.arange(action.shape[0])
    is_legal = (action >= 0) & (action < num_actions) & legal_action_mask[rows, jnp.clip(action, 0, num_actions - 1)]
    return jnp.where(is_legal, action, jnp.argmax(legal_action_mask, axis=-1)), is_legal
