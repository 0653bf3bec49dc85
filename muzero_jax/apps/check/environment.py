"""`check_environment`: plays random games of an environment, and names what is wrong with it, a sentence each.

A wrong rule does not stop a run; it teaches a wrong game. So the mistakes that people make with signs, masks and
players are looked for before a run begins. What is certainly wrong is a problem. What is only odd is a doubt: a game in
which who moves last always loses may have its rewards turned round, or may be played that way.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from muzero_jax.apps.check import chance, functions, view
from muzero_jax.games import random_play, state_shapes
from muzero_jax.games.own_game import environment_from, load_environment
from muzero_jax.games.random_play import Moves
from muzero_jax.games.states import missing_fields
from muzero_jax.own.faults import describe
from muzero_jax.types import Environment

ROUNDING = 1e-5


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
    if not isinstance(environment, Environment):
        is_path = isinstance(environment, str | Path)
        environment = load_environment(str(environment)) if is_path else _environment_of(environment)
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
    problems = [sentence for look in LOOKS for sentence in look(environment, moves)]
    problems += [*_sizes(moves, largest)] + view.problems(environment) + chance.problems(environment)
    doubts = list(_oddities(environment, moves))
    for look in (functions.purity, functions.symmetries):
        if time.monotonic() - start > seconds:
            return Findings(problems, doubts, False)
        problems += look(environment)
    return Findings(problems, doubts, True)


def _environment_of(made: Any) -> Environment:
    return environment_from(made, type(made).__name__)


def _first(where: Array | np.ndarray) -> tuple[int, int] | None:
    """The earliest (move, game) where [T, G] holds; None if it does nowhere."""
    found = np.argwhere(where)
    return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


def _endless(environment: Environment, moves: Moves) -> Iterator[str]:
    del environment
    over_at_last = moves.over[-1] | moves.is_last[-1]
    if not over_at_last.all():
        yield (
            f"a random game had not ended after {len(moves.over)} moves; end it by a rule, or by a time limit "
            "(truncated, or is_last with a discount that is not 0)"
        )


def _no_legal_move(environment: Environment, moves: Moves) -> Iterator[str]:
    del environment
    if at := _first(~moves.over & ~moves.has_legal):
        yield (
            f"after {at[0]} moves of a random game no action is legal, yet the game goes on; end it before that, or "
            "make a pass legal"
        )


def _illegal_moves(environment: Environment, moves: Moves) -> Iterator[str]:
    """Moves that the mask allows and the rules do not."""
    played = ~moves.over & moves.has_legal
    if environment.num_players == 2:
        yield from _idle_moves(moves)
    if at := _first(played & ~moves.is_same & moves.is_same_position & moves.is_last & (moves.reward < 0)):
        yield (
            f"action {moves.action[at]} was legal after {at[0]} moves, but the rules punished its player with "
            f"{moves.reward[at]:g} and did not carry it out; leave it out of the legal actions"
        )


def _rewards(environment: Environment, moves: Moves) -> Iterator[str]:
    played = ~moves.over
    if at := _first(played & (np.abs(moves.reward - moves.own_reward) > ROUNDING)):
        yield (
            f"a move's reward is {moves.reward[at]:g}, but the state's rewards say "
            f"{moves.own_reward[at]:g}; a reward is for the player who moved"
        )
    if environment.num_players == 2 and (at := _first(played & (np.abs(moves.total_reward) > ROUNDING))):
        yield (
            f"the rewards of both players sum to {moves.total_reward[at]:g} after a move; what one wins, the other "
            "must lose"
        )


def _sizes(moves: Moves, largest: float) -> Iterator[str]:
    """Rewards and returns that the network cannot say."""
    played, most = ~moves.over, largest * (1 + ROUNDING)
    remedy = f"so that it lies in [-{largest:g}, {largest:g}], or train with a larger --network.support-range"
    if at := _first(played & ~(np.abs(moves.reward) <= most)):
        yield f"a move is rewarded with {moves.reward[at]:g}; scale it {remedy}"
        return
    returns = _returns(moves)
    if np.abs(returns).max() > most:
        total = returns.flat[np.abs(returns).argmax()]
        yield f"the rewards of a random game add up to {total:g}; scale the sum {remedy}"


def _returns(moves: Moves) -> np.ndarray:
    """G_t = r_{t+1} + d_{t+1} G_{t+1} of every move; 0 after a game's end."""
    returns = np.zeros((len(moves.over) + 1, moves.over.shape[1]))
    for t in reversed(range(len(moves.over))):
        after = np.where(moves.is_last[t], 0, returns[t + 1])
        returns[t] = np.where(moves.over[t], 0, moves.reward[t] + moves.discount[t] * after)
    return returns


def _discounts(environment: Environment, moves: Moves) -> Iterator[str]:
    played, d = ~moves.over, moves.discount
    goes_on = played & ~moves.is_last
    if at := _first(played & ~(np.abs(d) <= 1 + ROUNDING)):
        yield f"a move has the discount {d[at]:g}; it must be from -1 to 1"
    if at := _first(goes_on & (d == 0)):
        yield "a move has the discount 0, which ends a game, but is_last is False; make is_last True there"
    is_same = moves.player == moves.next_player
    if _names_players(environment) and (at := _first(goes_on & (d * np.where(is_same, 1, -1) < 0))):
        who, sign = ("same player moves", "positive") if is_same[at] else ("other player moves", "negative")
        yield f"the discount after a move is {d[at]:g}, but the {who} next; it must be {sign} then"
    elif environment.num_players == 2 and goes_on.any() and (d[goes_on] > 0).all():
        yield "the discount is never negative, but this is a game for two; it must be negative where the turn changes"
    elif environment.num_players == 1 and (at := _first(goes_on & (d < 0))):
        yield f"the discount after a move is {d[at]:g}, but this is a game for one; it must be positive"
    constant = environment.discount
    if constant is not None and (at := _first(goes_on & (np.abs(d - constant) > ROUNDING))):
        yield (
            f"environment.discount is {constant:g}, but a move has {d[at]:g}; set it to None if turns do not always "
            "alternate"
        )


def _names_players(environment: Environment) -> bool:
    """Whether the states of a game for two say who is to move."""
    state = jax.eval_shape(environment.init, jax.random.key(0))
    return environment.num_players == 2 and not missing_fields(state)


def _ends(environment: Environment, moves: Moves) -> Iterator[str]:
    """Faults of a finished game that is moved on, as searches do."""
    del environment
    if moves.over.any() and not moves.is_over_after[moves.over].all():
        yield "a finished game that is moved on is not finished any more; let it stay as it is"
    if not np.isfinite([moves.reward[moves.over], moves.discount[moves.over]]).all():
        yield "moving a finished game on gives a reward or a discount that is no number; let it give 0"
    if at := _first(~moves.over & (moves.is_last != moves.is_over_after)):
        yield (
            f"a state says that its game {'is over' if moves.is_over_after[at] else 'goes on'}, but is_last of the "
            f"move is {bool(moves.is_last[at])}; make both alike"
        )


def _views(environment: Environment, moves: Moves) -> Iterator[str]:
    del environment
    if not moves.agrees.all():
        yield (
            "observe or legal differs from the state's own observation or legal_action_mask, which play and matches "
            "read; make them alike"
        )


def _idle_moves(moves: Moves) -> Iterator[str]:
    """Moves that change nothing: between two a mistake, in a game for one perhaps a step against a wall."""
    if at := _first(~moves.over & moves.has_legal & moves.is_same):
        yield (
            f"action {moves.action[at]} was legal after {at[0]} moves but changed nothing; leave it out of the legal "
            "actions"
        )


def _oddities(environment: Environment, moves: Moves) -> Iterator[str]:
    """An idle move in a game for one, and a game for two in which nobody ever wins by a move."""
    if environment.num_players == 1:
        yield from _idle_moves(moves)
    last = moves.reward[~moves.over & moves.is_last]
    if environment.num_players == 2 and (last < 0).any() and not (moves.reward[~moves.over] > 0).any():
        yield (
            f"whoever made the last move lost in all {(last < 0).sum()} random games that were decided; a reward is "
            "for the player who moved, so check its sign unless these are the rules"
        )


LOOKS: tuple[Callable[[Environment, Moves], Iterator[str]], ...] = (
    _endless,
    _no_legal_move,
    _illegal_moves,
    _rewards,
    _discounts,
    _ends,
    _views,
)
