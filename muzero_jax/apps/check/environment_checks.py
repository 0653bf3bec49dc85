"""Checks an environment by random games: rewards, signs of discounts, legal action masks and ends."""

from typing import NamedTuple

import numpy as np

from muzero_jax.apps.check import promises
from muzero_jax.apps.check.promises import Rules, broken
from muzero_jax.games import random_play, state_shapes
from muzero_jax.games.catalogue import check_players, hides, needs_key
from muzero_jax.games.own_game import NUM_GAMES
from muzero_jax.games.random_play import Moves
from muzero_jax.games.states import in_form
from muzero_jax.own.faults import Fault, guarded
from muzero_jax.types import Environment

MOST_MOVES = 1000
"""A random game that lasts longer is a problem."""
ROUNDING = 1e-5
IDLE = "action {action} was legal after {move} moves but changed nothing; leave it out of the legal actions"


class Findings(NamedTuple):
    """The faults of an environment, a sentence each."""

    problems: list[str]  # certainly wrong
    doubts: list[str]  # wrong, or an unusual game


def examine(environment: Environment, *, max_moves: int = MOST_MOVES, largest: float = 1.0) -> Findings:
    """Plays random games; `largest` is the largest return that the network can predict (`--network.support-range`)."""
    try:
        check_players(environment)
        state_shapes.check(environment)
        environment = in_form(environment)  # as loading a file does
        moves = guarded(random_play.play, "playing random games")(environment, num_games=NUM_GAMES, max_moves=max_moves)
    except Fault as fault:
        return Findings([str(fault)], [])
    if environment.num_players == 2 and (others := set(moves.player[~moves.over].tolist()) - {0, 1}):
        return Findings([f"current_player is {max(others)} in some position; it must be 0 or 1"], [])
    problems = broken(_problems(environment, moves) | _sizes(moves, largest), moves._asdict())
    for look in (promises.view, promises.chance, promises.symmetries):
        problems += look(environment)
    return Findings(problems, broken(_doubts(environment, moves), moves._asdict()))


def _problems(environment: Environment, moves: Moves) -> Rules:
    m = moves
    is_for_two = environment.num_players == 2
    constant = environment.discount
    d = moves.discount
    played = ~m.over
    goes_on = ~m.over & ~m.is_last
    sign = np.where(is_for_two & (m.player != m.next_player), -1, 1)
    wrong = goes_on & (d * sign < 0)
    return {
        f"a random game had not ended after {len(m.over)} moves; end it by a rule, or by a time limit (truncated, or "
        "is_last with a discount that is not 0)": ~(m.over | m.is_last)[-1:],
        "after {move} moves no action is legal, yet the game goes on; end it, or make a pass legal": (
            played & ~m.has_legal
        ),
        IDLE: is_for_two & played & m.has_legal & m.is_same,
        "a move's reward is {reward:g}, but the state's rewards say {own_reward:g}; a reward is for the player who "
        "moved": played & (np.abs(m.reward - m.own_reward) > ROUNDING),
        "the rewards of both players sum to {total_reward:g} after a move; what one wins, the other must lose": (
            is_for_two & played & (np.abs(m.total_reward) > ROUNDING)
        ),
        "a move has the discount {discount:g}; it must be from -1 to 1": played & ~(np.abs(d) <= 1 + ROUNDING),
        "a move has the discount 0, which ends a game, but is_last is False": goes_on & (d == 0),
        "the discount after a move is {discount:g}; where the other player moves next it must be negative, else "
        "positive": wrong,
        "the discount is never negative, but this is a two-player game; it must be negative where the turn changes "
        "(if you write step: current_player never changes)": (
            goes_on & (is_for_two and not wrong.any() and (d[goes_on] > 0).all())
        ),
        f"environment.discount is {constant}, but a move has {{discount:g}}; set it to None if turns do not always "
        "alternate": goes_on & (constant is not None and np.abs(d - constant) > ROUNDING),
        "a finished game that is moved on must stay finished, and give numbers for reward and discount": (
            m.over & ~(m.is_over_after & np.isfinite(m.reward) & np.isfinite(d))
        ),
        "is_last of a move is {is_last}, but its state says {is_over_after} of the end; make both alike": (
            played & (m.is_last != m.is_over_after)
        ),
        "observe or legal differs from the state's own observation or legal_action_mask, which play and matches read; "
        "make them alike": ~m.agrees,
    }


def _sizes(moves: Moves, largest: float) -> Rules:
    """Rewards and returns that lie outside the network's support."""
    most = largest * (1 + ROUNDING)
    played = ~moves.over
    returns = random_play.returns(moves)
    remedy = f"so that it lies in [-{largest:g}, {largest:g}], or train with a larger --network.support-range"
    is_large = played & ~(np.abs(moves.reward) <= most)
    total = returns.flat[np.abs(returns).argmax()]
    return {
        f"a move is rewarded with {{reward:g}}; scale it {remedy}": is_large,
        f"the rewards of a random game add up to {total:g}; scale the sum {remedy}": (
            (np.abs(returns) > most) & ~is_large.any()
        ),
    }


def _doubts(environment: Environment, moves: Moves) -> Rules:
    played = ~moves.over
    is_for_two = environment.num_players == 2
    lost = played & moves.is_last & (moves.reward < 0)
    may_hide = is_for_two and not needs_key(environment) and not hides(environment)
    return {
        "equal observations and equal moves were followed by different things; if the players see different things say "
        "Game(hidden=True) (docs/hidden-information.md), else let the observation show more": (
            played & (may_hide and random_play.shows_hidden(moves))
        ),
        "action {action} was legal after {move} moves and ended the game with {reward:g} for its player, but moved "
        "nothing; leave it out of the legal actions if it is illegal, and keep it if it gives up, as a fold does": (
            lost & moves.has_legal & ~moves.is_same & moves.is_same_position
        ),
        IDLE: (not is_for_two) & played & moves.has_legal & moves.is_same,  # perhaps a step against a wall
        f"whoever made the last move lost in all {lost.sum()} random games that were decided; a reward is for the "
        "player who moved, so check its sign unless these are the rules": (
            is_for_two & lost & ~(played & (moves.reward > 0)).any()
        ),
    }
