"""CHIP-8 arcade games of octax (Radji 2025) as rules in pgx's form: the emulator runs inside the compiled program.

- A move holds one key, or none, for 4 frames of 11 instructions; the player sees all 4 frames, each of 64 x 32 pixels.
  Moves share no frames, so none is stored twice, and the replay buffer packs a frame into 256 bytes.
- octax keeps its random key in the state. Each move gets a new key instead, so that a search with the ground-truth
  model cannot foresee chance.
- A game always starts in the same way, and many games have no chance, so that an agent can learn one sequence of moves
  by heart. `octax:pong:sticky` repeats the last move one time in four instead of the chosen one (Machado et al. 2018,
  section 5.2), so that the agent must react to what it sees.
- In some games a single move hardly matters, and no screen shows which key was held in it: the worm goes one step in 7.
  `octax:worm:hold7` holds an action for 7 moves of octax; the player then sees every seventh of their 28 frames.
- octax ends an episode after 4,500 moves, five minutes of play. That is a truncation: values bootstrap across it.
- octax reads the score from a byte of the emulator. When it passes 255, or begins again at 0, octax takes away
  some 250 points; here a reward is taken modulo 256, between -128 and 127.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from string import digits
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from octax import environments

from muzero_jax.games import outside_states
from muzero_jax.games.notation import named
from muzero_jax.games.states import WrappedState
from muzero_jax.games.view import EMPTY, FADING, LIT, PIXELS, Squares, View
from muzero_jax.types import EnvState

STICKY = "sticky"
SHARE_REPEATED = 0.25
PACE = 1000 / 15  # milliseconds a move of octax, for a person who plays or watches
HOLDS = {f"hold{moves}": moves for moves in range(2, 9)}
OPTIONS = STICKY, *HOLDS
WAIT = "wait"
KEYS = {"w": "up", "a": "left", "s": "down", "d": "right", "f": "fire", ".": WAIT}
GAMES_OF_OCTAX = {
    "airplane": ("Airplane", "fire", "Bomb the city, so that the falling plane can land."),
    "blinky": ("Blinky", "up down left right", "Eat all dots of the maze, and stay away from the ghosts."),
    "brix": ("Brix", "left right", "Keep the ball in play, and break the bricks."),
    "cavern": ("Cavern", "up left right down", "Find the way through the cave without touching a wall."),
    "deep": ("Deep8", "left fire right", "Sink the jellyfish before they reach you."),
    "filter": ("Filter", "left right", "Catch the drops that fall from the pipe."),
    "flight_runner": ("Flight Runner", "up left down right", "Fly as far as you can without touching anything."),
    "missile": ("Missile Command", "fire", "Hit eight targets with twelve missiles."),
    "pong": ("Pong", "up down", "Return the ball, on the left; nine points win, and the difference counts."),
    "rocket": ("Rocket", "fire", "Hit the passing UFO with nine rockets."),
    "shooting_stars": ("Shooting Stars", "up down left right", "Collect the stars that fall."),
    "space_flight": ("Space Flight", "up down", "Cross the field of asteroids with one ship."),
    "spacejam": ("Spacejam!", "up down left right", "Fly through the tunnel without touching its walls."),
    "squash": ("Squash", "up down", "Return the ball from the walls of the court."),
    "submarine": ("Submarine", "fire", "Drop depth charges on the submarines."),
    "tank": ("Tank Battle", "down left fire right up", "Hit the moving target with your bombs."),
    "target_shooter": ("Target Shooter", "up left down right fire", "Move the sight onto the targets, and fire."),
    "tetris": ("Tetris", "up left right down", "Complete rows of falling pieces, which up turns."),
    "ufo": ("UFO", "left fire right", "Hit what flies by with fifteen missiles, in three directions."),
    "vertical_brix": ("Vertical Brix", "up down", "Keep the ball in play, and break the wall of bricks."),
    "wipe_off": ("Wipe Off", "left right", "Wipe out as many spots as you can with twenty balls."),
    "worm": ("SuperWorm", "up down left right", "Eat, grow, and do not run into anything."),
}
"""Title, the actions in octax's order, and the goal; every game has one more action, the last, which is to wait."""


UNWRAPPED = "shooting_stars"
"""The game whose score is no byte that wraps: octax takes its scores above 128 for 0."""


def _levels(game: str) -> list[str]:
    """The names of a game: `pong`, or one for each level: `cavern1`, `cavern2`, ..."""
    roms = Path(environments.get_rom_path("Tank.ch8")).parent
    levels = [rom.stem for rom in roms.iterdir() if re.fullmatch(rf"{game}\d+", rom.stem)]
    return sorted(levels, key=lambda name: (len(name), name)) or [game]


NAMES = [name for game in GAMES_OF_OCTAX for name in _levels(game)]


class Played(NamedTuple):
    """The emulator, and the last move."""

    emulator: Any
    action: Array  # [] int32


class OctaxRules:
    """A game of octax. All actions are legal."""

    num_players = 1

    def __init__(self, level: str, *options: str):
        self._env = _environment(level)
        self._wraps = level != UNWRAPPED
        self._is_sticky = STICKY in options
        self._moves = _moves(options)

    def init(self, key: Array) -> WrappedState:
        """A new episode."""
        emulator, frames, _ = self._env.reset(jax.random.key_data(key))
        wait = jnp.int32(self._env.num_actions - 1)
        return self._made(Played(outside_states.strict(emulator), wait), frames, 0.0, False, False)

    def step(self, state: WrappedState, action: Array, key: Array) -> WrappedState:
        """One move, whose randomness comes from `key` only."""
        before: Any = state.state
        chance_key, repeat_key = jax.random.split(key)
        if self._is_sticky:
            action = jnp.where(jax.random.bernoulli(repeat_key, SHARE_REPEATED), before.action, action)
        emulator = before.emulator.replace(rng=jax.random.key_data(chance_key))
        emulator, (frames, rewards, terminated, truncated) = jax.lax.scan(
            lambda emulator, _: self._hold(emulator, action), outside_states.strict(emulator), length=self._moves
        )
        is_over = terminated | truncated
        counts = jnp.cumsum(is_over) - is_over == 0  # moves up to the end of the episode, and with it
        after = Played(emulator, jnp.asarray(action, jnp.int32))
        seen = frames.reshape(-1, *frames.shape[2:])[self._moves - 1 :: self._moves]
        ends = (jnp.any(end & counts) for end in (terminated, truncated))
        return self._made(after, seen, jnp.sum(rewards * counts), *ends)

    def _hold(self, emulator: Any, action: Array) -> tuple[Any, tuple[Array, ...]]:
        """One move of octax: the emulator, and (frames, reward, terminated, truncated)."""
        with _quiet():
            emulator, frames, reward, terminated, truncated, _ = self._env.step(emulator, action)
        reward = (reward + 128) % 256 - 128 if self._wraps else reward
        return outside_states.strict(emulator), (frames, reward, terminated, truncated)

    def _made(self, played: Played, frames: Array, reward, terminated, truncated) -> WrappedState:
        legal = jnp.ones(self._env.num_actions, bool)
        seen = [(frames.transpose(2, 1, 0), None)]  # rows, columns, frames from the oldest to the newest
        return outside_states.made(played, seen, legal, reward, terminated, truncated)


make_rules = OctaxRules
"""(name, *options) -> the game's rules (`outside`)."""


@cache
def _environment(game: str) -> Any:
    """octax's environment, made once because making it runs the game's first instructions."""
    with _quiet():
        return environments.create_environment(game)[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Ignores the FutureWarnings of octax's scatters, which write int32 into bools and bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def pixels(state: EnvState) -> Squares:
    """The newest frame, and pixels lit only in the move's other frames, because many games erase and redraw things."""
    frames = np.asarray(state.observation)
    return np.where(frames[..., -1], LIT, np.where(frames.any(-1), FADING, EMPTY)).tolist()


def facts(level: str, *options: str) -> dict[str, Any]:
    """The fields of a `Game` in addition to its name and rules."""
    game = level.rstrip(digits)
    moves = _moves(options)
    title, words, goal = GAMES_OF_OCTAX[game]
    said = [STICKY] * (STICKY in options) + [f"moves of {moves}"] * (moves > 1)
    return {
        "title": ", ".join([f"{title} {level.removeprefix(game)}".strip(), *said]),
        "goal": goal,
        "notation": named([*words.split(), WAIT], KEYS),
        "view": View(pixels, page=PIXELS, pace=PACE * moves),
    }


def _moves(options: Sequence[str]) -> int:
    """Moves of octax for which an action is held."""
    return max((HOLDS.get(option, 1) for option in options), default=1)
