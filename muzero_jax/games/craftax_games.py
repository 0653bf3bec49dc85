"""Craftax and Craftax-Classic (Matthews et al. 2024) as rules in pgx's form, imported only when `--env` names one.

- The world is seen in part, and any move may have chance, of which nothing is kept in the state. All actions are legal.
- Craftax shows a map as zeros and ones, and some numbers. Here a bit for each step says whether a number reaches it, so
  that a frame of Craftax-Classic takes 220 bytes in the buffer instead of 5,380. Counts are told apart up to 9, the
  light and other shares to a tenth.
- A reward is 1 for the first time that an episode achieves something, in Craftax 1, 3, 5 or 8, and a tenth of each
  point of health. The time limit of 10,000 moves, or 100,000, is a truncation: values bootstrap across it.
- `classic-pixels` is a picture of 63 x 63 pixels. The file of textures that Craftax makes lies in the user's cache.
"""

import importlib
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import platformdirs
from jax import Array

from muzero_jax.games import outside_states
from muzero_jax.games.notation import named
from muzero_jax.games.states import WrappedState
from muzero_jax.games.view import Squares, View

MOST = {"craftax_classic": 1.0, "craftax": 2.1}
"""The largest number that is told apart; in Craftax, 21 points of energy, and ice, which is 2 where fire is 1."""
KEYS = {"w": "up", "a": "left", "s": "down", "d": "right", "f": "do", ".": "noop"}
BLOCKS = {"GRASS": ".", "WATER": "~", "TREE": "T", "PATH": "_", "CRAFTING_TABLE": "t", "SAND": ":", "LAVA": "!"}
"""The signs of blocks in pictures; others have the first letter of their name, in small."""
OTHERS: dict[str, list[str]] = {
    "craftax_classic": ["Z", "C", "S", "*"],
    "craftax": ["", "i", ">", "<", "x", *"M" * 40, ""],
}
"""The signs of the planes after the blocks': zombies, cows, skeletons and arrows; or nothing, a torch, a ladder down or
up or blocked, what moves, and light."""
NAMED = {"classic": "Craftax-Classic", "classic-pixels": "Craftax-Classic, pixels", "full": "Craftax"}
NAMES = list(NAMED)


class Library(NamedTuple):
    """One of the library's two games."""

    environment: Any  # of the observation that is asked for
    draw: Callable[[Any], Array]  # the symbolic observation of a state
    map_shape: tuple[int, int, int]  # of the map in it, which comes first
    signs: list[str]  # of the map's planes, the empty string for one that is not drawn
    actions: list[str]
    achievements: list[str]
    steps: np.ndarray  # ascending; a bit for each says whether a number is larger


class CraftaxRules:
    """One of the games, with its default parameters."""

    num_players = 1

    def __init__(self, name: str):
        library = library_of(name)
        self._env = library.environment
        self._params = self._env.default_params
        self._num_actions = len(library.actions)
        self._map_size = None if name.endswith("pixels") else int(np.prod(library.map_shape))
        self._steps = library.steps

    def init(self, key: Array) -> WrappedState:
        """A new world."""
        observation, inner = self._env.reset_env(jax.random.key_data(key), self._params)
        return self._made(inner, observation, 0.0)

    def step(self, state: WrappedState, action: Array, key: Array) -> WrappedState:
        """One move, without Craftax's automatic reset after the last one."""
        observation, inner, reward, *_ = self._env.step_env(jax.random.key_data(key), state.state, action, self._params)
        return self._made(inner, observation, reward)

    def _made(self, inner: Any, observation: Array, reward: Any) -> WrappedState:
        inner = outside_states.strict(inner)
        ended = self._env.is_terminal(inner.replace(timestep=jnp.zeros_like(inner.timestep)), self._params)
        is_late = inner.timestep >= self._params.max_timesteps
        legal = jnp.ones(self._num_actions, bool)
        leaves = [(self._seen(observation), None)]
        return outside_states.made(inner, leaves, legal, reward, ended, is_late)

    def _seen(self, observation: Array) -> Array:
        if self._map_size is None:
            return jnp.round(255 * observation).astype(jnp.uint8)
        bits, numbers = observation[: self._map_size] > 0.5, observation[self._map_size :]
        return jnp.concatenate([bits, (numbers[:, None] > self._steps).ravel()])


make_rules = CraftaxRules
"""(name, *options) -> the game's rules (`outside`)."""


@cache
def library_of(name: str) -> Library:
    """What craftax has of this name."""
    game = "craftax_classic" if name.startswith("classic") else "craftax"
    kind = "pixels" if name.endswith("pixels") else "symbolic"
    modules: list[Any] = [
        importlib.import_module(f"craftax.{game}.{module}")
        for module in ("constants", "renderer", "envs.craftax_symbolic_env", f"envs.craftax_{kind}_env")
    ]
    constants, renderer, symbolic, made = modules
    signs = [BLOCKS.get(str(block.name)) or str(block.name)[0].lower() for block in constants.BlockType]
    folder = platformdirs.user_cache_path("muzero_jax", ensure_exists=True)
    constants.TEXTURE_CACHE_FILE = str(folder / f"{game}_textures.pbz2")
    title = f"Craftax{'Classic' * (game == 'craftax_classic')}{kind.title()}EnvNoAutoReset"
    with redirect_stdout(io.StringIO()):  # it tells of its textures
        environment = getattr(made, title)()
    return Library(
        environment,
        jax.jit(renderer.render_craftax_symbolic),
        symbolic.get_map_obs_shape(),
        signs + OTHERS[game],
        [action.name.lower() for action in constants.Action],
        [achievement.name.lower().replace("_", " ") for achievement in constants.Achievement],
        steps_to(MOST[game]),
    )


def steps_to(most: float) -> np.ndarray:
    """The steps between numbers that are shares of ten, up to `most`, and square roots of counts, divided by ten."""
    counts, shares = np.arange(1, 10), np.arange(1, round(10 * most) + 1)
    return np.unique(np.round([*(np.sqrt(counts - 0.5) / 10), *(shares / 10 - 0.05)], 3))


def facts(name: str) -> dict[str, Any]:
    """The fields of a `Game` in addition to its name and rules."""
    library = library_of(name)

    def squares(state: Any) -> Squares:
        planes = np.asarray(library.draw(state.state))[: np.prod(library.map_shape)].reshape(library.map_shape) > 0.5
        rows = [[_sign(cell, library.signs) for cell in row] for row in planes]
        rows[len(rows) // 2][len(rows[0]) // 2] = "@"
        return rows

    def caption(state: Any) -> str:
        inner = state.state
        needs = [f"{need} {int(getattr(inner, f'player_{need}'))}" for need in ("health", "food", "drink", "energy")]
        held = {item: np.asarray(count) for item, count in vars(inner.inventory).items()}
        return ", ".join(needs + [f"{item.replace('_', ' ')} {count}" for item, count in held.items() if count.any()])

    return {
        "title": NAMED[name],
        "goal": "Collect, craft and survive: each of the achievements counts once.",
        "notation": named(library.actions, KEYS),
        "view": View(squares, caption=caption),
        "milestones": lambda state: dict(zip(library.achievements, state.state.achievements, strict=True)),
        "costly_start": True,  # 14 times a move, in Craftax-Classic on a CPU
    }


def _sign(cell: np.ndarray, signs: list[str]) -> str:
    """That of the last plane which is drawn: what moves stands on blocks."""
    return "".join(["?", *(signs[plane] for plane in np.flatnonzero(cell))])[-1]
