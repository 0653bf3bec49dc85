"""`check_environment`: plays random games of an environment, and names what is wrong with it, a sentence each.

A wrong rule does not stop a run; it teaches a wrong game. So the mistakes that people make with signs, masks and
players are looked for before a run begins. What is certainly wrong is a problem. What is only odd is a doubt: a game in
which who moves last always loses may have its rewards turned round, or may be played that way.
"""

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from muzero_jax.apps.check import promises
from muzero_jax.apps.check.promises import Rules, broken
from muzero_jax.games import random_play, state_shapes
from muzero_jax.games.own_game import environment_from, load_environment
from muzero_jax.games.random_play import Moves
from muzero_jax.games.states import missing_fields
from muzero_jax.own.faults import describe
from muzero_jax.types import Environment

ROUNDING = 1e-5
IDLE = "action {action} was legal after {move} moves but changed nothing; leave it out of the legal actions"


class Findings(NamedTuple):
    """The faults of an environment, a sentence each."""

    problems: list[str]  # certainly wrong
    doubts: list[str]  # wrong, or an unusual game
    is_complete: bool  # False where the time was over before everything was looked at


def check_environment(environment: Any, *, num_games: int = 8, max_moves: int = 1000) -> None:
    """Plays random games of an environment, and raises ValueError with a sentence for each problem that they show.

    A doubt, which may be the game's own way, is a warning instead.

    Args:
      environment: an `Environment`, the path of a file with `make()`, or anything that `make()` may return.
      num_games: random games to play. max_moves: moves after which a game should have ended.
    """
    if isinstance(environment, str | Path):
        environment = load_environment(str(environment))
    elif not isinstance(environment, Environment):
        environment = environment_from(environment, type(environment).__name__)
    problems, doubts, _ = examine(environment, num_games=num_games, max_moves=max_moves)
    if problems:
        raise ValueError("\n".join(f"{environment.name}: {problem}" for problem in problems))
    for doubt in doubts:
        warnings.warn(f"{environment.name}: {doubt}", stacklevel=2)


def examine(
    environment: Environment, *, num_games: int, max_moves: int, seconds: float = float("inf"), largest: float = 1.0
) -> Findings:
    """The findings; after so many `seconds` no further part of the check is begun.

    `largest` is the largest return that the network can say (`--network.support-range`).
    """
    if problems := state_shapes.problems(environment):
        return Findings(problems, [], True)
    start = time.monotonic()
    try:
        moves = random_play.play(environment, num_games=num_games, max_moves=max_moves)
    except Exception as error:  # whatever somebody's rules raise
        return Findings([describe(error, "playing random games")], [], True)
    problems = broken(_problems(environment, moves) | _sizes(moves, largest), moves._asdict())
    problems += promises.view(environment) + promises.chance(environment)
    doubts = broken(_doubts(environment, moves), moves._asdict())
    for look in (promises.purity, promises.symmetries):
        if time.monotonic() - start > seconds:
            return Findings(problems, doubts, False)
        problems += look(environment)
    return Findings(problems, doubts, True)


def _problems(environment: Environment, moves: Moves) -> Rules:
    m, is_for_two, constant = moves, environment.num_players == 2, environment.discount
    played, d, passes_turn = ~m.over, m.discount, m.player != m.next_player
    goes_on = played & ~m.is_last
    names_players = is_for_two and not missing_fields(jax.eval_shape(environment.init, jax.random.key(0)))
    wrong = names_players & goes_on & (d * np.where(passes_turn, -1, 1) < 0)
    changes_nothing = played & m.has_legal & m.is_same
    is_punished = played & m.has_legal & ~m.is_same & m.is_same_position & m.is_last & (m.reward < 0)
    return {
        f"a random game had not ended after {len(m.over)} moves; end it by a rule, or by a time limit (truncated, or "
        "is_last with a discount that is not 0)": ~(m.over | m.is_last)[-1:],
        "after {move} moves of a random game no action is legal, yet the game goes on; end it before that, or make a "
        "pass legal": played & ~m.has_legal,
        IDLE: is_for_two & changes_nothing,
        "action {action} was legal after {move} moves, but the rules punished its player with {reward:g} and did not "
        "carry it out; leave it out of the legal actions": is_punished,
        "a move's reward is {reward:g}, but the state's rewards say {own_reward:g}; a reward is for the player who "
        "moved": played & (np.abs(m.reward - m.own_reward) > ROUNDING),
        "the rewards of both players sum to {total_reward:g} after a move; what one wins, the other must lose": (
            is_for_two & played & (np.abs(m.total_reward) > ROUNDING)
        ),
        "a move has the discount {discount:g}; it must be from -1 to 1": played & ~(np.abs(d) <= 1 + ROUNDING),
        "a move has the discount 0, which ends a game, but is_last is False; make is_last True there": (
            goes_on & (d == 0)
        ),
        "the discount after a move is {discount:g}, but the same player moves next; it must be positive then": (
            wrong & ~passes_turn
        ),
        "the discount after a move is {discount:g}, but the other player moves next; it must be negative then": (
            wrong & passes_turn
        ),
        "the discount is never negative, but this is a game for two; it must be negative where the turn changes": (
            goes_on & (is_for_two and not wrong.any() and (d[goes_on] > 0).all())
        ),
        "the discount after a move is {discount:g}, but this is a game for one; it must be positive": (
            goes_on & (d < 0) & (environment.num_players == 1)
        ),
        f"environment.discount is {constant}, but a move has {{discount:g}}; set it to None if turns do not always "
        "alternate": goes_on & (constant is not None and np.abs(d - constant) > ROUNDING),
        "a finished game that is moved on is not finished any more; let it stay as it is": m.over & ~m.is_over_after,
        "moving a finished game on gives a reward or a discount that is no number; let it give 0": (
            m.over & ~(np.isfinite(m.reward) & np.isfinite(d))
        ),
        "is_last of a move is {is_last}, but that its state says that the game is over is {is_over_after}; make both "
        "alike": played & (m.is_last != m.is_over_after),
        "observe or legal differs from the state's own observation or legal_action_mask, which play and matches read; "
        "make them alike": ~m.agrees,
    }


def _sizes(moves: Moves, largest: float) -> Rules:
    """Rewards and returns that the network cannot say."""
    most, played, returns = largest * (1 + ROUNDING), ~moves.over, np.zeros(moves.over.shape)
    following = returns[0]
    for t in reversed(range(len(returns))):  # G_t = r_{t+1} + d_{t+1} G_{t+1}
        after = np.where(moves.is_last[t], 0, moves.discount[t] * following)
        following = returns[t] = np.where(played[t], moves.reward[t] + after, 0)
    remedy = f"so that it lies in [-{largest:g}, {largest:g}], or train with a larger --network.support-range"
    is_large, total = played & ~(np.abs(moves.reward) <= most), returns.flat[np.abs(returns).argmax()]
    return {
        f"a move is rewarded with {{reward:g}}; scale it {remedy}": is_large,
        f"the rewards of a random game add up to {total:g}; scale the sum {remedy}": (
            (np.abs(returns) > most) & ~is_large.any()
        ),
    }


def _doubts(environment: Environment, moves: Moves) -> Rules:
    """An idle move in a game for one, and a game for two in which nobody ever wins by a move."""
    played, is_for_two = ~moves.over, environment.num_players == 2
    lost = played & moves.is_last & (moves.reward < 0)
    return {
        IDLE: (not is_for_two) & played & moves.has_legal & moves.is_same,  # perhaps a step against a wall
        f"whoever made the last move lost in all {lost.sum()} random games that were decided; a reward is for the "
        "player who moved, so check its sign unless these are the rules": (
            is_for_two & lost & ~(played & (moves.reward > 0)).any()
        ),
    }
