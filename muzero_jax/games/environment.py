"""Games as pure functions: pgx's rules behind one small record, with the signed discount in one place.

`discount` is computed here and nowhere else, from `current_player` before and after a move, so passes and repeated
turns get the right sign without counting plies, and no later module asks who is to move. At a terminal state pgx calls
every action legal, so nobody may draw from its mask there.
"""

import difflib
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from jax import Array
from jaxtyping import Int

from muzero_jax.games.hex import Hex
from muzero_jax.types import Board, Environment, EnvState, Step, Symmetries

GAMES = (
    "tic_tac_toe",
    "connect_four",
    "othello",
    "hex",
    "go_9x9",
    "go_19x19",
    "chess",
    "gardner_chess",
    "animal_shogi",
    "shogi",
)
DEFAULT_HEX_SIZE = 11
COLOR_PLANE = 2  # of Hex's observation: the color of the mover


def make_environment(name: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The game `name` as pure functions of one state; `board_size` (2 to 19, by default 11) is for Hex alone.

    Raises:
        ValueError: an unknown or unsupported game, a size for a game that has one size only, or a gamma outside (0, 1].
    """
    _check_arguments(name, board_size, gamma)
    game = Hex(size=DEFAULT_HEX_SIZE if board_size is None else board_size) if name == "hex" else pgx.make(name)
    state = jax.eval_shape(game.init, jax.random.key(0))
    shape, num_actions = state.observation.shape, state.legal_action_mask.shape[0]
    location = _action_location(name, shape[:2], num_actions)
    return Environment(
        name=name,
        init=game.init,
        move=make_move(game.step, gamma=gamma),
        observe=lambda state: state.observation,
        legal=lambda state: state.legal_action_mask,
        num_actions=num_actions,
        observation_shape=shape,
        num_players=game.num_players,
        discount=-gamma,
        board=Board(shape[:2], jnp.asarray(location, jnp.int32), _make_symmetries(name, shape, location)),
    )


def make_move(play: Callable[..., EnvState], *, gamma: float) -> Callable[..., Step]:
    """`Environment.move` of rules in pgx's form: `play(state, action, key)`. A game without chance needs no key."""

    def move(state: EnvState, action: Int[Array, ""], key: Array | None = None) -> Step:
        new = play(state, action, key)
        signed_gamma = jnp.where(new.current_player == state.current_player, gamma, -gamma)
        discount = jnp.where(new.terminated, 0.0, signed_gamma).astype(jnp.float32)
        return Step(new, new.rewards[state.current_player], discount, new.terminated | new.truncated)

    return move


def _check_arguments(name: str, board_size: int | None, gamma: float) -> None:
    if name not in GAMES:
        if name in pgx.available_envs():
            reason = "is a game of pgx that is not supported yet, because it has chance, hidden cards or no board"
            raise ValueError(f"{name!r} {reason}; choose one of {', '.join(GAMES)}.")
        closest = difflib.get_close_matches(name.lower().replace("-", "_"), GAMES, n=1, cutoff=0.0)[0]
        raise ValueError(f"There is no game {name!r} (did you mean {closest!r}?); choose one of {', '.join(GAMES)}.")
    if board_size is not None and name != "hex":
        raise ValueError(f"Only hex has a choice of board size; leave the board size out for {name}.")
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma discounts later rewards and must be above 0 and at most 1, not {gamma}.")


def _action_location(name: str, board_shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """The cell of the observation, row * W + column, that each action touches; -1 for a pass and for Hex's swap.

    A column of Connect Four is its top cell. Chess names the square that the piece leaves, shogi the one it comes to,
    animal shogi the one it leaves or, for a drop, comes to: the squares that pgx's labels are made of. Chess and shogi
    number them down the files, which `observe` turns by a quarter.
    """
    height, width = board_shape
    actions = np.arange(num_actions)
    if name in ("chess", "gardner_chess"):
        file, rank = np.divmod(actions // (num_actions // (height * width)), height)
        return (height - 1 - rank) * width + file
    if name in ("shogi", "animal_shogi"):
        file, rank = np.divmod(actions % (height * width), height)
        return rank * width + (width - 1 - file)
    return np.where(actions < height * width, actions, -1)


def _make_symmetries(name: str, observation_shape: tuple[int, ...], location: Int[np.ndarray, " A"]) -> Symmetries:
    """Symmetry g fills cell c from cell `sources[g][c]`; an action goes where its cell goes."""
    height, width, num_planes = observation_shape
    sources = _cell_sources(name, np.arange(height * width).reshape(height, width))
    num_symmetries = len(sources)
    observation_permutation = (sources[..., None] * num_planes + np.arange(num_planes)).reshape(num_symmetries, -1)
    observation_flip = np.zeros((num_symmetries, height * width, num_planes), bool)
    if name == "hex":
        observation_flip[2:, :, COLOR_PLANE] = True
    action_permutation = np.tile(np.arange(len(location)), (num_symmetries, 1))
    if num_symmetries > 1:
        (cell_actions,) = np.nonzero(location >= 0)
        action_at = np.full(height * width, -1)
        action_at[location[cell_actions]] = cell_actions
        destinations = np.argsort(sources, axis=1)
        action_permutation[:, cell_actions] = action_at[destinations[:, location[cell_actions]]]
    return Symmetries(
        observation_permutation=jnp.asarray(observation_permutation, jnp.int32),
        observation_flip=jnp.asarray(observation_flip.reshape(num_symmetries, -1)),
        action_permutation=jnp.asarray(action_permutation, jnp.int32),
    )


def _cell_sources(name: str, cells: Int[np.ndarray, "H W"]) -> Int[np.ndarray, "G N"]:
    """Each symmetry as the grid of cells that it reads from; the identity first.

    Hex: a half turn keeps both players' edges, a transposition swaps them and so the colors; the last two are the
    transpositions. Chess and shogi have none: their starting positions tell left from right.
    """
    half_turn = cells[::-1, ::-1]
    if name in ("tic_tac_toe", "othello", "go_9x9", "go_19x19"):
        grids = [np.rot90(image, quarter_turns) for image in (cells, cells.T) for quarter_turns in range(4)]
    elif name == "hex":
        grids = [cells, half_turn, cells.T, half_turn.T]
    elif name == "connect_four":
        grids = [cells, cells[:, ::-1]]
    else:
        grids = [cells]
    return np.stack([grid.ravel() for grid in grids])
