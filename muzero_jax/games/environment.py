"""Games as pure functions: pgx's rules behind one small record, with the reset and the signed discount in one place.

`discount` is computed here and nowhere else, from `current_player` before and after a move and *before* any reset, so
passes and repeated turns get the right sign without counting plies, and no later module asks who is to move or
whether the game is over. Two facts to build on: at a terminal state pgx calls every action legal, and the states that
`step` returns are never terminal.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Shaped

from muzero_jax.games.catalogue import GAMES, find
from muzero_jax.games.game import Game, make_rules
from muzero_jax.games.layout import Layout
from muzero_jax.types import Environment, EnvState, Symmetries, Transition


def make_environment(name: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The game `name` as pure functions of one state; `board_size` (2 to 19, by default 11) is for Hex alone.

    Raises:
        ValueError: an unknown or unsupported game, a size for a game that has one size only, or a gamma outside (0, 1].
    """
    return environment_of(find(name), board_size=board_size, gamma=gamma)


def environment_of(game: Game, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """As `make_environment`, for any game, in the catalogue or not."""
    _check_arguments(game, board_size, gamma)
    rules = make_rules(game, board_size)
    state = jax.eval_shape(rules.init, jax.random.key(0))
    shape, num_actions = state.observation.shape, state.legal_action_mask.shape[0]
    location = game.layout.action_location(shape[:2], num_actions)
    move = make_move(rules.step, gamma=gamma)
    return Environment(
        name=game.name,
        init=rules.init,
        move=move,
        step=with_reset(move, rules.init),
        observe=lambda state: state.observation,
        num_actions=num_actions,
        observation_shape=shape,
        num_players=rules.num_players,
        discount=-gamma,
        board_shape=shape[:2],
        action_location=jnp.asarray(location, jnp.int32),
        symmetries=_make_symmetries(game.layout, shape, location),
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


def _check_arguments(game: Game, board_size: int | None, gamma: float) -> None:
    if board_size is not None and game.sizes is None:
        sized = ", ".join(other.name for other in GAMES.values() if other.sizes)
        raise ValueError(f"Only {sized} has a choice of board size; leave the board size out for {game.name}.")
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma discounts later rewards and must be above 0 and at most 1, not {gamma}.")


def _make_symmetries(layout: Layout, observation_shape: tuple[int, ...], location: Int[np.ndarray, " A"]) -> Symmetries:
    """Symmetry g fills cell c from cell `sources[g][c]`; an action goes where its cell goes."""
    height, width, num_planes = observation_shape
    cells = np.arange(height * width).reshape(height, width)
    sources = np.stack([grid.ravel() for grid in layout.symmetries(cells)])
    num_symmetries = len(sources)
    observation_permutation = (sources[..., None] * num_planes + np.arange(num_planes)).reshape(num_symmetries, -1)
    observation_flip = np.zeros((num_symmetries, height * width, num_planes), bool)
    for symmetry, plane in layout.negated:
        observation_flip[symmetry, :, plane] = True
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
