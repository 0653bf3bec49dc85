"""Giving the other side the move: what a position built from stones needs, and no rule of a game provides.

Programs such as HexGui send a position as `play` commands in scan order, several of one colour in a row. Games in which
a position is its stones (Hex, tic-tac-toe, Connect Four) get the mover's fields exchanged; in Go and Othello the other
side passes. Chess and shogi have no such thing, so there turns must alternate.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from muzero_jax.types import EnvState, Step

Move = Callable[..., Step]
"""`Environment.move`."""


def can_switch(name: str) -> bool:
    """Whether a position of game `name` exists with either side to move."""
    return name in STONE_GAMES or name in PASSES


def switched(name: str, state: EnvState, move: Move) -> EnvState:
    """`state`, which is not over, with the other side to move; a swap is no longer legal.

    Raises ValueError for a game in which `can_switch` says no.
    """
    if name in PASSES:
        return _passed(name, state, move)
    if name not in STONE_GAMES:
        raise ValueError("the other side is to move")
    game = state._x
    game = (
        game._replace(board=-game.board, color=1 - game.color) if name == "hex" else game._replace(color=1 - game.color)
    )
    observation = state.observation.at[..., :2].set(state.observation[..., 1::-1])
    if name == "hex":
        observation = observation.at[..., 2].set(game.color == 1)
    switched_state = state.replace(current_player=1 - state.current_player, observation=observation, _x=game)
    return without_swap(name, switched_state)


def without_swap(name: str, state: EnvState) -> EnvState:
    """Takes Hex's swap away: it answers the first move of a game, not the first stone of a position."""
    if name != "hex" or bool(state.terminated):
        return state
    return state.replace(
        legal_action_mask=state.legal_action_mask.at[-1].set(False),
        observation=state.observation.at[..., 3].set(False),
    )


def reopened(name: str, state: EnvState) -> EnvState:
    """A finished position that takes another stone, as a finished game sent in scan order needs.

    Raises ValueError for a game that is more than its stones.
    """
    if name not in STONE_GAMES:
        raise ValueError("the game is over")
    return state.replace(
        terminated=jnp.zeros_like(state.terminated),
        rewards=jnp.zeros_like(state.rewards),
        legal_action_mask=STONE_GAMES[name](state._x.board),
    )


def closed(state: EnvState, finished: EnvState) -> EnvState:
    """`state` with the end and the result of `finished`: a stone more does not change who won."""
    return state.replace(
        terminated=finished.terminated,
        rewards=finished.rewards,
        legal_action_mask=jnp.ones_like(state.legal_action_mask),
    )


def _passed(name: str, state: EnvState, move: Move) -> EnvState:
    """A pass that no rule sees: legal, and neither first nor second of two that would end the game."""
    mask = state.legal_action_mask.at[-1].set(True)
    passing = _without_passes(name, state).replace(legal_action_mask=mask)
    return _without_passes(name, move(passing, jnp.int32(mask.shape[0] - 1)).state)


def _without_passes(name: str, state: EnvState) -> EnvState:
    zero = {PASSES[name]: jnp.zeros_like(getattr(state._x, PASSES[name]))}
    return state.replace(_x=state._x._replace(**zero))


PASSES = {"othello": "passed", "go_9x9": "consecutive_pass_count", "go_19x19": "consecutive_pass_count"}
"""Games with a pass (their last action), and the field that counts passes."""

STONE_GAMES: dict[str, Callable[[Array], Array]] = {
    "hex": lambda board: jnp.append(board == 0, False),
    "tic_tac_toe": lambda board: board < 0,
    "connect_four": lambda board: board[:7] < 0,
}
"""Games in which stones alone make a position, and the legal actions on a board that is not full."""
