"""A game as one record: its rules, and what people, programs and networks need to know about it.

pgx has the rules of most games. A `Game` adds what pgx does not say: which cell an action touches, the board's
symmetries, how moves are written and positions drawn, and the score. Every field except the two names has a default, so
that rules alone make a complete game. Each family of games has one file.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pgx
from jax import Array

from muzero_jax.games.layout import Layout
from muzero_jax.games.notation import MakeNotation
from muzero_jax.games.sides import Sides
from muzero_jax.games.view import Cell, Squares, View
from muzero_jax.types import EnvState


class Points(NamedTuple):
    """The score of a game that counts points."""

    margin: Callable[[EnvState, Squares, float], float | None]
    """(state, its squares, komi) -> the first player's lead; None if the position has no score"""
    komi: float = 0.0  # points for the second player, under which agents are trained


Worth = Callable[[EnvState], Array]
"""A heuristic value of a state or afterstate for its current player, in units of reward: [] float32."""


class Game(NamedTuple):
    """One game. `Game(name, title)` is a pgx game whose moves are cells or numbers and whose board is plain text."""

    name: str  # what `--env` calls it
    title: str  # what people call it
    goal: str = ""  # one or two sentences for a player: who aims for what
    rules: Callable[[int | None], Any] | None = (
        None  # board size -> a pgx `Env` or `chance.ListedRules`; None: pgx's own under this name
    )
    turns_alternate: bool = True  # False if a player may move twice, so that no constant discount is right
    sizes: range | None = None  # board sizes that `rules` takes, None being its default; None if there is no choice
    layout: Layout = Layout()
    notation: MakeNotation | None = None  # how moves are written; None: what `view.page` needs
    view: View = View()
    sides: Sides = Sides()
    points: Points | None = None
    is_for_points: bool = False
    """whether rewards are points of any size, so that matches report mean points; False: 1 won, 0 drawn, -1 lost"""
    hidden: bool = False
    """whether the other player sees what one does not: then an observation is what the player to move knows, and no
    search may plan with more"""
    veil: Callable[[EnvState, int], EnvState] = lambda state, player: state
    """(state, seat) -> the state to draw for that player, without what is hidden from them"""
    shows_moves: bool = True  # whether a player sees what the other played
    deals: Callable[[], tuple[EnvState, np.ndarray]] | None = None
    """() -> all starts that the rules may deal, leaves [D, ...], and their probabilities [D]; None: all are alike"""
    costly_start: bool = False
    """whether a fresh game takes much longer to make than a move, as a new world does; self-play then makes only those
    that are needed, which costs an accelerator its CUDA graph"""
    winning_cells: Callable[[Squares], list[Cell]] = lambda squares: []
    """the cells of the chain or rows that won; empty if the game is won in another way"""
    repeats: Callable[[EnvState], bool] | None = None  # whether the last move lost the game by repeating a position
    read_fen: Callable[[str], tuple[EnvState, int]] | None = None  # FEN -> (state, who moves: 0 is the first player)
    protocol: str | None = None  # of this game's programs, in addition to GTP: uci or usi
    variant: str | None = None  # its name in programs that play several games
    sgf_number: int | None = None  # its `GM` in SGF files
    same_as: Mapping[int, int] = MappingProxyType({})  # {action: an equivalent action that replaces it}
    worth: Worth | None = None  # the value of expectimax's leaves
    milestones: Callable[[EnvState], dict[str, Array]] | None = None  # what a single player may have reached


def make_rules(game: Game, board_size: int | None) -> Any:
    """The game's rules: `init`, `step` and `num_players`, or what `chance.ListedRules` has instead of `step`.

    Raises ValueError for a size that the game does not have.
    """
    if board_size is not None and board_size not in (game.sizes or ()):
        choice = f"sizes {game.sizes[0]} to {game.sizes[-1]}" if game.sizes else "one size; leave --board-size out"
        raise ValueError(f"{game.name} has no board of size {board_size}, but {choice}")
    return pgx.make(game.name) if game.rules is None else game.rules(board_size)  # type: ignore


def game_score(game: Game, state: EnvState, lead: float, *, komi: float | None = None) -> str:
    """The result as GTP writes it: `B+3.5`, `W+` (no margin in this game), `0` (a draw).

    Args:
      lead: the first player's lead in rewards, which decides if the game has no points.
      komi: by default the game's.

    Raises ValueError if there is no result yet; Go has a score at any time.
    """
    points = game.points
    margin = points and points.margin(state, game.view.squares(state), points.komi if komi is None else komi)
    if margin is None and not state.terminated:
        raise ValueError("cannot score")
    lead = lead if margin is None else margin
    return f"{'BW'[lead < 0]}+{'' if margin is None else f'{abs(margin):g}'}" if lead else "0"
