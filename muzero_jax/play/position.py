"""A game in progress: what was played, who is to move, what is legal, and how it ended.

Colours are the players': black moves first and stays black. A swap in Hex changes stones, not players: white takes
black's stone off and gets its mirror image, and black is to move. In chess, black is still the first mover here;
its people call that colour white. `play` for a colour that is not to move builds a position from stones, as
`games.sides` can.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from muzero_jax.games.catalogue import find_or_plain
from muzero_jax.games.game import Game
from muzero_jax.games.sides import closed
from muzero_jax.games.view import Squares
from muzero_jax.types import Environment, EnvState

BLACK, WHITE = 0, 1
RESIGN = -1
"""An entry of `moves` that ended the game without touching the board."""


class IllegalMove(ValueError):
    """A move that the rules do not allow; the message says why."""


class Ply(NamedTuple):
    """One move, and the position that it led to."""

    colour: int
    action: int
    state: EnvState
    in_turns: bool  # every move so far was made by the side to move


class Position:
    """A game of `environment`, from its start or from any state; undo is exact, for every state is kept.

    `game` says how it is drawn, written and scored; by default what the catalogue says of the environment's name.
    Raises ValueError for a game that is not for two players.
    """

    def __init__(self, environment: Environment, game: Game | None = None):
        if environment.num_players != 2:
            raise ValueError(f"{environment.name} has {environment.num_players} player(s); only two can play here")
        self.environment, self.game = environment, game or find_or_plain(environment.name)
        self._move = jax.jit(environment.move)
        self._initial = jax.tree.map(jnp.asarray, environment.init(jax.random.key(0)))  # pgx's Othello holds an int
        self.reset()

    def reset(self, state: EnvState | None = None, colour: int = BLACK) -> None:
        """A new game; or one that goes on from `state`, with `colour` to move."""
        self._start = self._initial if state is None else state
        player = int(self._start.current_player)
        self._players = (player, 1 - player) if colour == BLACK else (1 - player, player)
        self.plies: list[Ply] = []

    @property
    def name(self) -> str:
        """The game's."""
        return self.environment.name

    @property
    def state(self) -> EnvState:
        """pgx's state after the last move."""
        return self.plies[-1].state if self.plies else self._start

    @property
    def in_turns(self) -> bool:
        """Whether the sides moved in turns, so that this is a game and not just a position."""
        return not self.plies or self.plies[-1].in_turns

    @property
    def colour_to_move(self) -> int:
        """BLACK or WHITE, also after the end."""
        return self._players.index(int(self.state.current_player))

    @property
    def is_over(self) -> bool:
        """Whether the game has ended. pgx calls every action legal then, so this and not the mask decides."""
        return bool(self.state.terminated)

    @property
    def winner(self) -> int | None:
        """BLACK or WHITE; None for a draw or while the game goes on."""
        rewards = np.asarray(self.state.rewards)[list(self._players)]
        return None if rewards[BLACK] == rewards[WHITE] else int(rewards.argmax())

    @property
    def squares(self) -> Squares:
        """The board as the game's `View` shows it."""
        return self.game.view.squares(self.state)

    def seen_by(self, colour: int) -> EnvState:
        """The position with `colour` to move, as its search wants it; raises IllegalMove if there is none."""
        if self.is_over:
            raise IllegalMove("the game is over")
        return self._ready(colour)

    def legal_action_mask(self, colour: int | None = None) -> Bool[np.ndarray, " A"]:
        """What `colour` (by default the side to move) may play; nothing once the game is over."""
        if self.is_over:
            return np.zeros(self.environment.num_actions, bool)
        return np.asarray(self.seen_by(self.colour_to_move if colour is None else colour).legal_action_mask)

    def play(self, action: int, colour: int | None = None) -> None:
        """Makes a move for `colour`, by default the side to move; raises IllegalMove and changes nothing otherwise."""
        colour = self.colour_to_move if colour is None else colour
        before = self._ready(colour)
        if not 0 <= action < self.environment.num_actions or not before.legal_action_mask[action]:
            raise IllegalMove("illegal move")
        in_turns = self.in_turns and before is self.state
        state, _, _ = self._move(before, jnp.int32(action))
        if not in_turns:
            state = self.game.sides.settled(state)
        if self.is_over:
            state = closed(state, self.state)
        self.plies.append(Ply(colour, action, state, in_turns))

    def resign(self, colour: int) -> None:
        """Ends the game in favour of the other side; raises IllegalMove if it is over."""
        if self.is_over:
            raise IllegalMove("the game is over")
        rewards = jnp.ones(2).at[self._players[colour]].set(-1.0)
        state = self.state.replace(terminated=jnp.ones_like(self.state.terminated), rewards=rewards)
        self.plies.append(Ply(colour, RESIGN, state, self.in_turns))

    def undo(self) -> None:
        """Takes the last move back; raises ValueError if there is none."""
        if not self.plies:
            raise ValueError("cannot undo")
        self.plies.pop()

    def snapshot(self) -> Any:
        """All there is to remember; for `restore`."""
        return self._start, self._players, list(self.plies)

    def restore(self, snapshot: Any) -> None:
        """Goes back to a `snapshot`."""
        self._start, self._players, plies = snapshot
        self.plies = list(plies)

    def repeats(self, colour: int, action: int) -> bool:
        """Whether a legal move loses the game by repeating an earlier position, as in Go."""
        if self.game.repeats is None:
            return False
        state, _, _ = self._move(self.seen_by(colour), jnp.int32(action))
        return self.game.repeats(state)

    def _ready(self, colour: int) -> EnvState:
        """The state from which `colour` can move: this one if it is to move, else one built for it."""
        state, sides = self.state, self.game.sides
        if self.is_over and self.in_turns:
            raise IllegalMove("the game is over")
        try:
            state = sides.reopened(state) if self.is_over else state
            return state if colour == self.colour_to_move else sides.switched(state, self._move)
        except ValueError as error:
            raise IllegalMove(str(error)) from None

    def score(self, komi: float | None = None) -> str:
        """The result as GTP writes it: `B+3.5`, `W+` (no margin in this game), `B+R` (resigned), `0` (a draw).

        Raises ValueError where there is none yet; Go has a score at any time. By default the komi is the game's.
        """
        if self.plies and self.plies[-1].action == RESIGN:
            return f"{'BW'[1 - self.plies[-1].colour]}+R"
        points = self.game.points
        margin = points and points.margin(self.state, self.squares, points.komi if komi is None else komi)
        if margin is not None:
            return f"{'BW'[margin < 0]}+{abs(margin):g}" if margin else "0"
        if not self.is_over:
            raise ValueError("cannot score")
        return "0" if self.winner is None else f"{'BW'[self.winner]}+"
