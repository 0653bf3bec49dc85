"""Hex of any size with the swap rule."""

import jax.numpy as jnp

from muzero_jax.games.game import Game
from muzero_jax.games.hex_rules import MAX_SIZE, MIN_SIZE, NEIGHBOUR_PAIRS, Hex
from muzero_jax.games.layout import Grid, Layout
from muzero_jax.games.notation import SWAP, coordinates
from muzero_jax.games.sides import Move, by_stones, exchanged
from muzero_jax.games.view import FIRST, SECOND, Cell, Squares, View, signed_stones
from muzero_jax.types import EnvState

DEFAULT_SIZE = 11
COLOR_PLANE = 2  # of the observation: the color of the player to move, whether a swap is legal
SWAP_PLANE = 3


def symmetries(cells: Grid) -> list[Grid]:
    """The board, its half turn, and the transposes of both, which exchange the players' edges and so their colors."""
    half_turn = cells[::-1, ::-1]
    return [cells, half_turn, cells.T, half_turn.T]


def switched(state: EnvState, move: Move) -> EnvState:
    """The same stones with the other side to move: negates the mover's board, and sets the plane of its color."""
    del move
    state = exchanged(state)
    game = state._x._replace(board=-state._x.board)
    return without_swap(state.replace(_x=game, observation=state.observation.at[..., COLOR_PLANE].set(game.color == 1)))


def without_swap(state: EnvState) -> EnvState:
    """Makes the swap illegal, because it may answer the first move of a game, but not of a set-up position."""
    if bool(state.terminated):
        return state
    return state.replace(
        legal_action_mask=state.legal_action_mask.at[-1].set(False),
        observation=state.observation.at[..., SWAP_PLANE].set(False),
    )


def winning_chain(squares: Squares) -> list[Cell]:
    """A shortest chain that joins the two edges of its colour, in order; empty if the game is not won."""
    last = len(squares) - 1
    for stone, axis in ((FIRST, 0), (SECOND, 1)):  # the coordinate that goes from 0 to `last` along the chain
        stones = {(r, c) for r, row in enumerate(squares) for c, cell in enumerate(row) if cell == stone}
        chains = [[cell] for cell in sorted(stones) if cell[axis] == 0]
        stones.difference_update(chain[0] for chain in chains)
        for chain in chains:  # breadth first: the loop appends to its own list
            row, column = chain[-1]
            if chain[-1][axis] == last:
                return chain
            beside = {(row + down, column + right) for down, right in NEIGHBOUR_PAIRS.reshape(-1, 2).tolist()} & stones
            stones -= beside
            chains += [[*chain, cell] for cell in sorted(beside)]
    return []


HEX = Game(
    "hex",
    "Hex",
    goal="Black joins top and bottom; white joins left and right. White's first move may be a swap: "
    "black's stone becomes white's, mirrored.",
    rules=lambda board_size: Hex(size=DEFAULT_SIZE if board_size is None else board_size),
    sizes=range(MIN_SIZE, MAX_SIZE + 1),
    layout=Layout(symmetries=symmetries, negated=((2, COLOR_PLANE), (3, COLOR_PLANE))),
    notation=coordinates(SWAP),
    view=View(
        signed_stones(lambda state: int(state._x.color)), marks_last=True, leans=True, has_edges=True, page="hex"
    ),
    sides=by_stones(lambda board: jnp.append(board == 0, False))._replace(
        switched=switched, without_answers=without_swap
    ),
    winning_cells=winning_chain,
    sgf_number=11,
)
