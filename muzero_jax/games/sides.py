"""Gives the move to the other side, outside the rules, so that programs can build a position stone by stone.

Programs such as HexGui send a position as `play` commands in scan order, several of one colour in a row. In games whose
position is its stones (Hex, tic-tac-toe, Connect Four), the players' fields are exchanged; in Go and Othello, one side
passes. Chess and shogi have neither, so their turns must alternate.
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
    """How a position is built from stones. The defaults refuse, for games whose position is more than its stones."""

    switched: Callable[[EnvState, Move], EnvState] = _turns_alternate
    """an unfinished state, with the other side to move; ValueError if the game has no such thing"""
    reopened: Callable[[EnvState], EnvState] = _the_end_is_final
    """a finished state that accepts another stone, for finished games sent in scan order; ValueError likewise"""
    without_answers: Callable[[EnvState], EnvState] = lambda state: state
    """a state without moves that may only answer a game's first move (Hex's swap)"""


def by_stones(open_actions: Callable[[Array], Array]) -> Sides:
    """`Sides` for games whose position is its stones; `open_actions` gives the legal actions of an unfinished board."""

    def reopened(state: EnvState) -> EnvState:
        return state.replace(
            terminated=jnp.zeros_like(state.terminated),
            rewards=jnp.zeros_like(state.rewards),
            legal_action_mask=open_actions(state._x.board),
        )

    return Sides(switched=lambda state, move: exchanged(state), reopened=reopened)


def by_passing(counter: str) -> Sides:
    """`Sides` for games whose last action is a pass; `counter` is the field that counts passes."""

    def uncounted(state: EnvState) -> EnvState:
        return state.replace(_x=state._x._replace(**{counter: jnp.zeros_like(getattr(state._x, counter))}))

    def switched(state: EnvState, move: Move) -> EnvState:
        """A pass that is always legal and does not count towards the two passes that end a game."""
        mask = state.legal_action_mask.at[-1].set(True)
        return uncounted(move(uncounted(state).replace(legal_action_mask=mask), jnp.int32(mask.shape[0] - 1)).state)

    return Sides(switched=switched)


def exchanged(state: EnvState) -> EnvState:
    """The other side to move, in games whose first two planes are the mover's and the opponent's stones."""
    return state.replace(
        current_player=1 - state.current_player,
        observation=state.observation.at[..., :2].set(state.observation[..., 1::-1]),
        _x=state._x._replace(color=1 - state._x.color),
    )


def closed(state: EnvState, finished: EnvState) -> EnvState:
    """`state` with the end and the result of `finished`, because another stone does not change who won."""
    return with_fields(
        state,
        terminated=finished.terminated,
        rewards=finished.rewards,
        legal_action_mask=jnp.ones_like(state.legal_action_mask),
    )
