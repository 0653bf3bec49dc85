"""The five MinAtar games of pgx (Young and Tian 2019): single-player games with unlisted chance, which may never end.

Their code in pgx is under the GPL-3.0, unlike everything else here, and is imported only when `--env` names one.

- One time in ten, the game repeats the last action instead of the chosen one. pgx does not show the last action, so a
  player cannot predict the repeat. Here one plane for each action shows it. `minatar-breakout:hidden` is pgx's view.
- Death ends a game. Freeway ends by a hidden timer, and the others may last for ever. An end by time says nothing about
  future rewards, so it is a truncation: values bootstrap across it.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pgx
from jax import Array
from jaxtyping import Bool

from muzero_jax.games.game import Game
from muzero_jax.games.layout import NO_CELLS
from muzero_jax.games.notation import named
from muzero_jax.games.view import EMPTY, Squares, View

State = Any
"""pgx's own state of a game, with its private fields."""
PREFIX = "minatar-"
HIDDEN = ":hidden"
MOST_MOVES = 5_000
"""Moves after which a game is truncated, twice as many as Freeway's own timer allows."""
WORDS = ("wait", "left", "up", "right", "down", "fire")
"""MinAtar's six actions; a game has only those that have an effect in it."""
KEYS = {"w": "up", "a": "left", "s": "down", "d": "right", "f": "fire", ".": "wait"}
FOUR_WAYS = (0, 1, 2, 3, 4)
GAMES_OF_MINATAR = {
    "asterix": ("Asterix", FOUR_WAYS, "@<-$", "Collect the gold, and stay out of the enemies' way."),
    "breakout": ("Breakout", (0, 1, 3), "=o'#", "Keep the ball in play, and break all bricks."),
    "freeway": ("Freeway", (0, 2, 4), "@#12345", "Cross the road as often as you can."),
    "seaquest": ("Seaquest", (*FOUR_WAYS, 5), ">-|'*fs~dD", "Save divers, shoot what swims, and come up for air."),
    "space_invaders": ("Space Invaders", (0, 1, 3, 5), "AMMM|*", "Shoot the aliens before they reach you."),
}
"""Title, actions, the sign that draws each of pgx's planes, and the goal."""


class MinAtarRules:
    """pgx's rules, with the last action in the observation, and with truncation separate from termination."""

    num_players = 1

    def __init__(self, name: str, *, shows_last_action: bool):
        self._env = pgx.make(PREFIX + name)  # type: ignore
        self._actions = jnp.array(GAMES_OF_MINATAR[name][1])
        self._shows_last_action = shows_last_action
        self._ends_by_time = name == "freeway"

    def init(self, key: Array) -> State:
        """A new game."""
        state = self._env.init(key)
        if hasattr(state, "_shot_timer"):  # Asterix has an unused, empty one, which Orbax cannot save
            state = state.replace(_shot_timer=jnp.int32(0))
        return self._seen(state)

    def step(self, state: State, action: Array, key: Array) -> State:
        """One move; the key decides whether the last action is repeated, and what appears."""
        planes = self._env.observation_shape[-1]
        moved = self._env.step(state.replace(observation=state.observation[..., :planes]), action, key)
        ended = moved.terminated & (not self._ends_by_time)
        is_late = moved.terminated | (moved._step_count >= MOST_MOVES)
        return self._seen(moved.replace(terminated=ended, truncated=is_late & ~ended))

    def _seen(self, state: State) -> State:
        """The state with A more planes in its observation [10, 10, C + A], of which the last action's is all ones."""
        if not self._shows_last_action:
            return state
        is_last = jnp.broadcast_to(
            self._actions == state._last_action, (*state.observation.shape[:2], len(self._actions))
        )
        return state.replace(observation=jnp.concatenate([state.observation, is_last], axis=-1))


def squares(state: State, *, signs: str) -> Squares:
    """For each cell, the sign of the first of pgx's C planes that is set."""
    planes: Bool[np.ndarray, "10 10 C"] = np.asarray(state.observation)[..., : len(signs)]
    return [[signs[cell.argmax()] if cell.any() else EMPTY for cell in row] for row in planes]


def make_game(name: str, suffix: str = "") -> Game:
    """A game of MinAtar; with the suffix `HIDDEN`, its observation is pgx's."""
    title, actions, signs, goal = GAMES_OF_MINATAR[name]
    return Game(
        PREFIX + name + suffix,
        title,
        goal=goal,
        rules=lambda board_size: MinAtarRules(name, shows_last_action=suffix != HIDDEN),
        layout=NO_CELLS,
        notation=named([WORDS[action] for action in actions], KEYS),
        view=View(partial(squares, signs=signs)),
    )


MINATAR = tuple(make_game(name) for name in GAMES_OF_MINATAR)
MINATAR_HIDDEN = tuple(make_game(name, HIDDEN) for name in GAMES_OF_MINATAR)
