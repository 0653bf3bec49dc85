"""A game in progress: what was played, who is to move, what is legal, and how it ended.

BLACK is the first player and WHITE the second, also in chess, where people call the first player white. A swap in Hex
changes stones, not players: white takes black's stone off and gets its mirror image, and black is to move. `play` for a
colour that is not to move builds a position from stones, if `games.sides` can do that in this game. Positions are
immutable, so an earlier one can be kept to go back to.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool

from muzero_jax.games.catalogue import check_for_two, game_of, make_notation, needs_key
from muzero_jax.games.game import Game, game_score
from muzero_jax.games.notation import Notation
from muzero_jax.games.random_play import random_starts
from muzero_jax.games.sides import Move, closed
from muzero_jax.games.states import with_fields
from muzero_jax.games.view import Cell, Squares
from muzero_jax.types import Environment, EnvState

BLACK = 0
WHITE = 1
RESIGN = -1
"""The `action` of a ply that ended the game by resignation."""


class IllegalMove(ValueError):
    """A move that the rules do not allow; the message says why."""


class Ply(NamedTuple):
    """One move, and the position that it led to."""

    colour: int
    action: int
    state: EnvState
    in_turns: bool  # whether every move so far was made by the side to move


class Position(NamedTuple):
    """A game from its start, or from any state, up to here. Methods such as `play` and `undo` return a new position."""

    environment: Environment
    game: Game  # how it is drawn, written and scored
    move: Move  # the environment's, compiled once for all positions of a game
    opening: EnvState
    start: EnvState  # before the first of `plies`
    players: tuple[int, int]  # pgx's numbers of BLACK and WHITE
    plies: tuple[Ply, ...] = ()
    dice: int | None = None  # seed of the deal and of chance in this game; None if it has neither
    has_chance: bool = False  # whether moves have random outcomes; else only the start may be dealt
    viewer: int | None = None  # BLACK or WHITE, whose information is shown until the game ends; None: all of it

    def new(self, state: EnvState | None = None, colour: int = BLACK) -> "Position":
        """A new game, with another seed of chance; or a game from `state`, with `colour` to move."""
        start = self.opening if state is None else state
        dice = None if self.dice is None else self.dice + 1
        if dice is not None and state is None:
            start = jax.jit(self.environment.init)(_keys(dice)[0])
        player = int(start.current_player)
        players = (player, 1 - player) if colour == BLACK else (1 - player, player)
        return self._replace(start=start, players=players, plies=(), dice=dice)

    @property
    def name(self) -> str:
        """The game's name."""
        return self.environment.name

    @property
    def state(self) -> EnvState:
        """pgx's state after the last move."""
        return self.plies[-1].state if self.plies else self.start

    @property
    def in_turns(self) -> bool:
        """Whether the sides moved in turns; False for a position built from stones."""
        return not self.plies or self.plies[-1].in_turns

    @property
    def colour_to_move(self) -> int:
        """BLACK or WHITE, also after the game's end."""
        return self.players.index(int(self.state.current_player))

    @property
    def is_over(self) -> bool:
        """Whether the game has ended. The mask cannot tell, because pgx then marks every action as legal."""
        return bool(self.state.terminated)

    @property
    def winner(self) -> int | None:
        """BLACK or WHITE; None for a draw, while the game goes on, and in a single-player game."""
        if self.environment.num_players == 1:
            return None
        rewards = np.asarray(self.state.rewards)[list(self.players)]
        return None if rewards[BLACK] == rewards[WHITE] else int(rewards.argmax())

    @property
    def total(self) -> float:
        """The sum of the rewards so far, each for the player who moved."""
        return float(sum(np.asarray(ply.state.rewards)[self.players[ply.colour]] for ply in self.plies))

    @property
    def is_veiled(self) -> bool:
        """Whether something is hidden from the viewer."""
        return self.viewer is not None and self.game.hidden and not self.is_over

    @property
    def shown(self) -> EnvState:
        """The state to draw, without what is hidden from the viewer."""
        return self.game.veil(self.state, self.players[self.viewer]) if self.is_veiled else self.state  # type: ignore

    @property
    def squares(self) -> Squares:
        """The board as the game's `View` shows it."""
        return self.game.view.squares(self.shown)

    @property
    def last_action(self) -> int | None:
        """The last move; None before the first, after a resignation, and if the viewer did not see it."""
        if not self.plies or self._is_resigned or self._is_unseen(self.plies[-1]):
            return None
        return self.plies[-1].action

    @property
    def winning_cells(self) -> list[Cell]:
        """The cells of the winning chain or rows; empty before the end, after resignation, and in most games."""
        is_played_out = self.is_over and self.winner is not None and not self._is_resigned
        return self.game.winning_cells(self.squares) if is_played_out else []

    @property
    def swapped(self) -> bool:
        """Whether the last move was Hex's swap."""
        return bool(self.plies) and self.plies[-1].action == make_notation(self.environment).swap

    @property
    def result(self) -> str | None:
        """The result in words, `white wins by 7.5`; None before the end."""
        if not self.is_over:
            return None
        if self.environment.num_players == 1:
            return f"game over: {self.total:,.10g} points"
        if self.winner is None:
            return "a draw"
        margin = self.score()[2:]
        if self.game.is_for_points and not self._is_resigned:
            margin = f"{float(np.abs(self.state.rewards).max()):g}"
        how = " by resignation" if self._is_resigned else f" by {margin}" if margin else ""
        return f"{self.game.view.colours[self.winner]} wins{how}"

    def texts(self, notation: Notation) -> list[str]:
        """The moves of `told` as text; `?` for those that the viewer did not see."""
        before = (self.start, *(ply.state for ply in self.plies))
        return ["?" if self._is_unseen(ply) else notation.write(before[i], ply.action) for i, ply in self.told]

    @property
    def told(self) -> list[tuple[int, Ply]]:
        """The moves so far with their places, of a turn that the viewer did not see only the first.

        The number of its tries would tell how many stones the other side found.
        """
        unseen = [self._is_unseen(ply) for ply in self.plies]
        return [(i, ply) for i, ply in enumerate(self.plies) if not (i and unseen[i] and unseen[i - 1])]

    def seen_by(self, colour: int | None = None) -> EnvState:
        """The state with `colour` (by default the side to move) to move; raises IllegalMove if there is none."""
        if self.is_over:
            raise IllegalMove("the game is over")
        return self._ready(self.colour_to_move if colour is None else colour)

    def legal_action_mask(self, colour: int | None = None) -> Bool[np.ndarray, " A"]:
        """The legal moves of `colour` (by default the side to move); all False once the game is over."""
        if self.is_over:
            return np.zeros(self.environment.num_actions, bool)
        return np.asarray(self.seen_by(colour).legal_action_mask)

    def legal_actions(self, colour: int | None = None) -> list[int]:
        """The actions of `legal_action_mask`."""
        return [int(action) for action in self.legal_action_mask(colour).nonzero()[0]]

    def play(self, action: int, colour: int | None = None) -> "Position":
        """The position after a move of `colour` (by default the side to move); raises IllegalMove."""
        colour = self.colour_to_move if colour is None else colour
        before = self._ready(colour)
        if not 0 <= action < self.environment.num_actions or not before.legal_action_mask[action]:
            raise IllegalMove("illegal move")
        in_turns = self.in_turns and before is self.state
        state = self.move(before, jnp.int32(action), self._key).state
        if not in_turns:
            state = self.game.sides.without_answers(state)
        if self.is_over:
            state = closed(state, self.state)
        return self._replace(plies=(*self.plies, Ply(colour, action, state, in_turns)))

    def resign(self, colour: int) -> "Position":
        """The position after `colour` resigns; raises IllegalMove if the game is over."""
        if self.is_over:
            raise IllegalMove("the game is over")
        rewards = jnp.ones(2).at[self.players[colour]].set(-1.0)
        state = with_fields(self.state, terminated=jnp.ones_like(self.state.terminated), rewards=rewards)
        return self._replace(plies=(*self.plies, Ply(colour, RESIGN, state, self.in_turns)))

    def undo(self, colour: int | None = None) -> "Position":
        """The position before the last move, or before the last of `colour`; raises ValueError if there is none."""
        for index in reversed(range(len(self.plies))):
            if colour in (None, self.plies[index].colour):
                return self._replace(plies=self.plies[:index])
        raise ValueError("there is nothing to take back")

    def repeats(self, action: int, colour: int | None = None) -> bool:
        """Whether a legal move would lose the game by repeating an earlier position, as in Go."""
        if self.game.repeats is None:
            return False
        return self.game.repeats(self.move(self.seen_by(colour), jnp.int32(action)).state)

    @property
    def _key(self) -> Array | None:
        """The key of the next move: by seed and move number only, so that taking back does not change the dice."""
        return None if self.dice is None else jax.random.fold_in(_keys(self.dice)[1], len(self.plies))

    def _is_unseen(self, ply: Ply) -> bool:
        return self.is_veiled and not self.game.shows_moves and ply.colour != self.viewer

    @property
    def _is_resigned(self) -> bool:
        return bool(self.plies) and self.plies[-1].action == RESIGN

    def _ready(self, colour: int) -> EnvState:
        """The state from which `colour` can move: the present one, or one made by `games.sides`."""
        state = self.state
        sides = self.game.sides
        if self.is_over and self.in_turns:
            raise IllegalMove("the game is over")
        try:
            state = sides.reopened(state) if self.is_over else state
            return state if colour == self.colour_to_move else sides.switched(state, self.move)
        except ValueError as error:
            raise IllegalMove(str(error)) from None

    def score(self, komi: float | None = None) -> str:
        """The result as GTP writes it: `B+3.5`, `W+` (no margin in this game), `B+R` (resigned), `0` (a draw).

        Raises ValueError if there is none yet; Go has a score at any time. The default komi is the game's.
        """
        if self._is_resigned:
            return f"{'BW'[1 - self.plies[-1].colour]}+R"
        rewards = np.asarray(self.state.rewards)[list(self.players)]
        return game_score(self.game, self.state, float(rewards[BLACK] - rewards[WHITE]), komi=komi)


def new_game(environment: Environment, seed: int = 0) -> Position:
    """The opening of a two-player game; `seed` is for chance. Raises ValueError for other games."""
    check_for_two(environment, "play needs")
    return opening_of(environment, seed)


def opening_of(environment: Environment, seed: int = 0) -> Position:
    """The opening of any game; `seed` as in `new_game`."""
    starts, are_dealt = random_starts(environment)
    opening = jax.tree.map(lambda leaf: leaf[0], starts)
    has_chance = needs_key(environment)
    first = Position(
        environment=environment,
        game=game_of(environment),
        move=jax.jit(environment.move),
        opening=opening,
        start=opening,
        players=(BLACK, WHITE),
        dice=seed if has_chance or are_dealt else None,
        has_chance=has_chance,
    )
    return first.new()


def _keys(dice: int) -> Array:
    """The key of the deal, and the one of which the keys of all moves are made."""
    return jax.random.split(jax.random.key(dice))
