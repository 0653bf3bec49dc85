"""Giving the other side the move: what a position built from stones needs, and no rule of a game provides.

Programs such as HexGui send a position as `play` commands in scan order, several of one colour in a row. Games in which
a position is its stones (Hex, tic-tac-toe, Connect Four) get the player's fields exchanged; in Go and Othello the other
side passes. Chess and shogi have no such thing, so there turns must alternate.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from muzero_jax.games.states import with_fields
from muzero_jax.types import EnvState, Step

Move = Callable[..., Step]
"""`Environment.move`."""


def _turns_alternate(state: EnvState, move: Move) -> EnvState:
    raise ValueError("the other side is to move")


def _the_end_is_final(state: EnvState) -> EnvState:
    raise ValueError("the game is over")


class Sides(NamedTuple):
    """How a position is built from stones. The default is for games in which it is more than its stones."""

    switched: Callable[[EnvState, Move], EnvState] = _turns_alternate
    """a state that is not over with the other side to move; ValueError where there is none"""
    reopened: Callable[[EnvState], EnvState] = _the_end_is_final
    """a finished state that takes another stone, as a finished game sent in scan order needs; ValueError likewise"""
    without_answers: Callable[[EnvState], EnvState] = lambda state: state
    """a state without the moves that answer a game's first one: a position built from stones has none"""


def by_stones(open_actions: Callable[[Array], Array]) -> Sides:
    """For games in which stones alone make a position; `open_actions` are legal on a board that is not full."""

    def reopened(state: EnvState) -> EnvState:
        return state.replace(
            terminated=jnp.zeros_like(state.terminated),
            rewards=jnp.zeros_like(state.rewards),
            legal_action_mask=open_actions(state._x.board),
        )

    return Sides(switched=lambda state, move: exchanged(state), reopened=reopened)


def by_passing(counter: str) -> Sides:
    """For games whose last action is a pass; `counter` is the field that counts passes."""

    def uncounted(state: EnvState) -> EnvState:
        return state.replace(_x=state._x._replace(**{counter: jnp.zeros_like(getattr(state._x, counter))}))

    def switched(state: EnvState, move: Move) -> EnvState:
        """A pass that no rule sees: legal, and neither first nor second of two that would end the game."""
        mask = state.legal_action_mask.at[-1].set(True)
        return uncounted(move(uncounted(state).replace(legal_action_mask=mask), jnp.int32(mask.shape[0] - 1)).state)

    return Sides(switched=switched)


def exchanged(state: EnvState) -> EnvState:
    """The other side to move, where the first two planes show the stones of the player to move and of the other."""
    return state.replace(
        current_player=1 - state.current_player,
        observation=state.observation.at[..., :2].set(state.observation[..., 1::-1]),
        _x=state._x._replace(color=1 - state._x.color),
    )


def closed(state: EnvState, finished: EnvState) -> EnvState:
    """`state` with the end and the result of `finished`: a stone more does not change who won."""
    return with_fields(
        state,
        terminated=finished.terminated,
        rewards=finished.rewards,
        legal_action_mask=jnp.ones_like(state.legal_action_mask),
    )
