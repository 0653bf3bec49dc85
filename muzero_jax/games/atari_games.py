"""Atari 2600 games of the Arcade Learning Environment (Bellemare et al. 2013) as rules in pgx's form.

ale-py is under the GPL-2.0, and imported only when `--env` names a game.

- The emulator, in C++, runs on the host, and the compiled program calls it for each move of each game (`Console`). Its
  whole state is an array in ours: it is loaded before a move and read after it. So a move is a function of state and
  action, a resumed run goes on to the bit, and a search can plan with the ground-truth model.
- A move holds one of the game's minimal actions for 4 frames, and is shown as the brighter of the last two, in 84 x 84
  greys; an observation has the last four moves, the newest last (Mnih et al. 2015, methods). A game starts after 1 to
  30 frames without an action, then one of "fire" if the game has it. After 108,000 frames it is truncated.
- The reward is what a move adds to the score, not clipped, and a lost life does not end a game; agents of Atari 100k
  mostly learn with both. Nothing is random but the start.
"""

from functools import cache
from typing import Any, NamedTuple

import ale_py
import jax
import jax.numpy as jnp
import numpy as np
from ale_py import roms
from jax import Array

from muzero_jax.games import outside_states
from muzero_jax.games.notation import named
from muzero_jax.games.states import WrappedState
from muzero_jax.games.view import EMPTY, FADING, LIT, PIXELS, Squares, View
from muzero_jax.types import EnvState

SIDE = 84
SKIP = 4  # frames of a move
STACK = 4  # moves in an observation
MOST_WAITS = 30  # frames before a game
MOST_MOVES = 108_000 // SKIP
PACE = 1000 * SKIP / 60  # milliseconds a move, for a person
KEYS = {"w": "up", "a": "left", "s": "down", "d": "right", "f": "fire", ".": "noop"}
FOR_TWO = {"combat", "joust", "maze_craze", "warlords"}
"""Games without a mode for one player, for which the emulator ends the process."""
NAMES = sorted(set(roms.get_all_rom_ids()) - FOR_TWO)


class Emulation(NamedTuple):
    """The emulator's state and how many moves it has made."""

    memory: Array  # [M] uint8
    moves: Array  # [] int32


class Console:
    """A game's emulators, as many as calls at once have needed. Each call loads a state, so any of them will do."""

    def __init__(self, game: str):
        self._path = roms.get_rom_path(game)
        self._idle = [self._new()]  # `pop` and `append` are atomic; a local of the thread would not outlive a call
        legal = self._idle[0].getMinimalActionSet()
        self.actions = [action for action in legal if action.name != "NOOP"] + [ale_py.Action.NOOP]  # to wait is last

    def starts(self) -> tuple[np.ndarray, np.ndarray]:
        """The states [30, M] of all starts, and the screens [30, rows, columns] that they show."""
        emulator, wait = self._new(), self.actions[-1]
        emulator.reset_game()
        found = []
        for _ in range(MOST_WAITS):
            emulator.act(wait)
            waited = emulator.cloneState()
            if ale_py.Action.FIRE in self.actions:
                emulator.act(ale_py.Action.FIRE)
            found.append((_memory(emulator), emulator.getScreenGrayscale()))
            emulator.restoreState(waited)
        memories, screens = zip(*found, strict=True)
        return np.stack(memories), np.stack(screens)

    def play(self, memory: Any, action: Any) -> tuple[np.ndarray, np.ndarray, np.float32, np.bool_]:
        """A move of one game: the emulator's state [M], the brighter of the last two screens, the reward, the end."""
        try:
            emulator = self._idle.pop()
        except IndexError:
            emulator = self._new()
        emulator.restoreState(ale_py.ALEState(np.asarray(memory).tobytes()))
        rewards, screens = [], []
        for _ in range(SKIP):
            rewards.append(emulator.act(self.actions[int(action)]))
            screens.append(emulator.getScreenGrayscale())
        found = _memory(emulator), np.maximum(*screens[-2:]), np.float32(sum(rewards)), np.bool_(emulator.game_over())
        self._idle.append(emulator)
        return found

    def _new(self) -> Any:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        emulator = ale_py.ALEInterface()
        emulator.setFloat("repeat_action_probability", 0.0)
        emulator.setInt("random_seed", 0)  # of the memory of a console that was just switched on
        emulator.loadROM(str(self._path))
        return emulator


def _memory(emulator: Any) -> np.ndarray:
    return np.frombuffer(emulator.cloneState().__getstate__(), np.uint8)


class AtariRules:
    """One of the games. All actions are legal."""

    num_players = 1

    def __init__(self, game: str):
        self._console = console_of(game)
        memories, screens = self._console.starts()
        self._memories, self._starts = memories, np.asarray(jax.vmap(_shrunk)(jnp.asarray(screens)))
        self._moved = (
            jax.ShapeDtypeStruct(memories.shape[1:], np.uint8),
            jax.ShapeDtypeStruct(screens.shape[1:], np.uint8),
            jax.ShapeDtypeStruct((), np.float32),
            jax.ShapeDtypeStruct((), bool),
        )

    def init(self, key: Array) -> WrappedState:
        """A game, after a random number of frames."""
        waits = jax.random.randint(key, (), 0, MOST_WAITS)
        picture = jnp.asarray(self._starts)[waits]
        seen = jnp.repeat(picture[..., None], STACK, axis=-1)
        return self._made(Emulation(jnp.asarray(self._memories)[waits], jnp.int32(0)), seen, 0.0, False)

    def step(self, state: WrappedState, action: Array, key: Array | None = None) -> WrappedState:
        """One move."""
        before: Any = state.state
        # One game a call: JAX copies arguments of 100 kB and more in threads that the program itself may hold on a CPU,
        # and a call for all games then waits forever.
        memory, screen, reward, is_over = jax.pure_callback(
            self._console.play, self._moved, before.memory, action, vmap_method="sequential"
        )
        seen = jnp.concatenate([state.observation[..., 1:], _shrunk(screen)[..., None]], axis=-1)
        return self._made(Emulation(memory, before.moves + 1), seen, reward, is_over)

    def _made(self, emulation: Emulation, seen: Array, reward: Any, is_over: Any) -> WrappedState:
        legal = jnp.ones(len(self._console.actions), bool)
        is_late = emulation.moves >= MOST_MOVES
        return outside_states.made(emulation, [(seen, None)], legal, reward, is_over, is_late)


make_rules = AtariRules
"""(name, *options) -> the game's rules (`outside`)."""


@cache
def console_of(game: str) -> Console:
    """The game's emulators."""
    return Console(game)


def _shrunk(screen: Array) -> Array:
    """A screen [rows, columns] as `SIDE` x `SIDE` means of its areas."""
    rows, columns = (jnp.asarray(_areas(size)) for size in screen.shape)
    means = jnp.einsum("ri,ij,cj->rc", rows, screen.astype(jnp.float32), columns)
    return jnp.round(means).astype(jnp.uint8)


def _areas(size: int) -> np.ndarray:
    """[SIDE, size]: the share of each of `size` pixels in each of `SIDE` equal parts of a line."""
    ends = np.arange(SIDE + 1) * size / SIDE
    overlap = np.minimum(ends[1:, None], np.arange(size) + 1) - np.maximum(ends[:-1, None], np.arange(size))
    return (np.maximum(overlap, 0) * SIDE / size).astype(np.float32)


def pixels(state: EnvState) -> Squares:
    """The newest picture: dark or the background's grey, what is bright, and what is between."""
    newest = np.asarray(state.observation)[..., -1].astype(int)
    background = np.bincount(newest.ravel()).argmax()
    away = np.abs(newest - background)
    return np.where(away > 64, LIT, np.where(away > 16, FADING, EMPTY)).tolist()


def facts(game: str) -> dict[str, Any]:
    """The fields of a `Game` in addition to its name and rules."""
    return {
        "title": game.replace("_", " ").title(),
        "goal": "Score as many points as you can.",
        "notation": named([action.name.lower() for action in console_of(game).actions], KEYS),
        "view": View(pixels, page=PIXELS, pace=PACE),
    }
