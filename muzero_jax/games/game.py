"""A game as one record: its rules, and all that people, programs and the networks need to know of it.

pgx has the rules of most games. What it does not say stands here, a file for each family of games: which cell an action
touches, how the board may be turned, how moves are written and positions drawn, and who has how many points. Every
field but the names has a default, so that rules alone make a game that works everywhere.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pgx
from jax import Array

from muzero_jax.games.layout import Layout
from muzero_jax.games.notation import MakeNotation
from muzero_jax.games.sides import Sides
from muzero_jax.games.view import Cell, Squares, View
from muzero_jax.types import EnvState


class Points(NamedTuple):
    """The score of a game that has one, beyond who won."""

    margin: Callable[[EnvState, Squares, float], float | None]
    """(state, its squares, komi) -> the first player's lead; None where the position has no score"""
    komi: float = 0.0  # points for the second player, under which agents are trained


Worth = Callable[[EnvState], Array]
"""A simple estimate of what a state or afterstate is worth to its current player, in units of reward: [] float32."""


class Game(NamedTuple):
    """One game. `Game(name, title)` is a game of pgx with cells or numbers for moves and plain text for a board."""

    name: str  # what `--env` calls it
    title: str  # what people call it
    goal: str = ""  # one or two sentences for a player: who aims for what
    rules: Callable[[int | None], Any] | None = (
        None  # board size -> a pgx `Env` or `chance.ListedRules`; None: pgx's own under this name
    )
    turns_alternate: bool = True  # False where a player may move twice, so that no constant discount is right
    sizes: range | None = None  # board sizes that `rules` takes, None being its default; None if there is no choice
    layout: Layout = Layout()
    notation: MakeNotation | None = None  # how moves are written; None: as the board on the page needs it
    view: View = View()
    sides: Sides = Sides()
    points: Points | None = None
    winning_cells: Callable[[Squares], list[Cell]] = lambda squares: []
    """the chain or rows that won a game, none where it is won in another way"""
    repeats: Callable[[EnvState], bool] | None = None  # whether the last move lost the game by repeating a position
    read_fen: Callable[[str], tuple[EnvState, int]] | None = None  # FEN -> (state, who moves: 0 is the first player)
    protocol: str | None = None  # that its programs speak besides GTP: uci or usi
    variant: str | None = None  # its name in programs that play several games by that protocol
    sgf_number: int | None = None  # its `GM` in SGF files
    same_as: Mapping[int, int] = MappingProxyType({})  # actions that always do what another does: {action: that one}
    worth: Worth | None = None  # what expectimax asks where it looks no further
    milestone: Callable[[EnvState], Array] | None = None  # how far one player came, as [] int32 that never falls


def make_rules(game: Game, board_size: int | None) -> Any:
    """The game's rules: `init`, `step` and `num_players`, or what `chance.ListedRules` has in place of `step`."""
    return pgx.make(game.name) if game.rules is None else game.rules(board_size)  # type: ignore


def score(game: Game, state: EnvState, lead: float, *, komi: float | None = None) -> str:
    """The result as GTP writes it: `B+3.5`, `W+` (no margin in this game), `0` (a draw).

    Args:
      lead: of the first player in rewards, which decides where the game has no points.
      komi: by default the game's.

    Raises ValueError where there is none yet; Go has a score at any time.
    """
    points = game.points
    margin = points and points.margin(state, game.view.squares(state), points.komi if komi is None else komi)
    if margin is None and not state.terminated:
        raise ValueError("cannot score")
    lead = lead if margin is None else margin
    return f"{'BW'[lead < 0]}+{'' if margin is None else f'{abs(margin):g}'}" if lead else "0"
