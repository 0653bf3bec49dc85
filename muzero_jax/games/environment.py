"""Games as pure functions: pgx's rules behind one small record, with the reset and the signed discount in one place.

`discount` is computed here and nowhere else, from `current_player` before and after a move and *before* any reset, so
passes and repeated turns get the right sign without counting plies, and no later module asks who is to move or
whether the game is over. Two facts to build on: at a terminal state pgx calls every action legal, and the states that
`step` returns are never terminal.
"""

import difflib
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from jax import Array
from jaxtyping import Float, Int, Shaped

from muzero_jax.games.hex import Hex
from muzero_jax.types import Environment, EnvState, Symmetries, Transition

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
    move = make_move(game.step, gamma=gamma)
    return Environment(
        name=name,
        init=game.init,
        move=move,
        step=with_reset(move, game.init),
        observe=lambda state: state.observation,
        num_actions=num_actions,
        observation_shape=shape,
        num_players=game.num_players,
        discount=-gamma,
        board_shape=shape[:2],
        action_location=jnp.asarray(location, jnp.int32),
        symmetries=_make_symmetries(name, shape, location),
    )


def make_move(
    play: Callable[[EnvState, Array], EnvState], *, gamma: float
) -> Callable[[EnvState, Array], tuple[EnvState, Array, Array]]:
    """`move(state, action) -> (state, reward, discount)` for the player who moved, under the rules of `play`."""

    def move(state: EnvState, action: Int[Array, ""]) -> tuple[EnvState, Float[Array, ""], Float[Array, ""]]:
        new = play(state, action)
        signed_gamma = jnp.where(new.current_player == state.current_player, gamma, -gamma)
        discount = jnp.where(new.terminated, 0.0, signed_gamma).astype(jnp.float32)
        return new, new.rewards[state.current_player], discount

    return move


def with_reset(move: Callable, init: Callable) -> Callable[[EnvState, Array, Array], tuple[EnvState, Array, Array]]:
    """`step(state, action, reset_key)`: `move`, then a fresh game where it ended; reward and discount stay."""

    def step(state: EnvState, action: Array, reset_key: Array) -> tuple[EnvState, Array, Array]:
        moved, reward, discount = move(state, action)
        ended = moved.terminated
        return jax.tree.map(lambda new, old: jnp.where(ended, new, old), init(reset_key), moved), reward, discount

    return step


def transform_observation(symmetries: Symmetries, index: Int[Array, ""], observation: Array) -> Array:
    """One observation [*obs] under symmetry `index`."""
    moved = observation.ravel()[symmetries.observation_permutation[index]]
    return jnp.where(symmetries.observation_flip[index], moved == 0, moved).reshape(observation.shape)


def transform_policy(symmetries: Symmetries, index: Int[Array, ""], policy: Shaped[Array, " A"]) -> Shaped[Array, " A"]:
    """One policy, or legal action mask, under symmetry `index`: new[permutation[a]] = old[a]."""
    return jnp.zeros_like(policy).at[symmetries.action_permutation[index]].set(policy, unique_indices=True)


def augment(window: Transition, key: Array, symmetries: Symmetries) -> Transition:
    """Turns each window (leaves [N, L, ...]) by a random symmetry of the game, the same for all its frames."""
    index = jax.random.randint(key, window.action.shape[:1], 0, symmetries.action_permutation.shape[0])

    def over_frames(transform):
        return jax.vmap(jax.vmap(partial(transform, symmetries), (None, 0)))

    return window._replace(
        observation=over_frames(transform_observation)(index, window.observation),
        legal_action_mask=over_frames(transform_policy)(index, window.legal_action_mask),
        search_policy=over_frames(transform_policy)(index, window.search_policy),
        action=symmetries.action_permutation[index[:, None], window.action],
    )


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
