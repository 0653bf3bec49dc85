"""A game against an agent in a notebook: click a cell, and the agent answers.

The board is the drawing of the web page under transparent ipywidgets buttons, which Jupyter, VS Code and Colab support.
Without widgets the same object shows a picture, and `game.play("c3")` makes a move. Buttons call `click`, so that tests
need no browser.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from muzero_jax.agent import Agent
from muzero_jax.agent.analysis import Analysis
from muzero_jax.apps.play import board_picture, drawing, looks
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.position import BLACK, WHITE, IllegalMove, Position, new_game
from muzero_jax.apps.play.thinking import Thinker, make_thinker
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.view import Cell

WIDGET = "application/vnd.jupyter.widget-view+json"
STYLE = """<style>
.mz-board { position: relative; overflow: visible; }
.mz-cell button, button.mz-cell { position: absolute; margin: 0; min-width: 0; border: 0; background: transparent; }
.mz-cell button:hover:enabled, button.mz-cell:hover:enabled { background: rgb(255 255 255 / 0.3); }
</style>"""


def play_against(agent: Agent, *, you: str = "", num_simulations: int | None = None) -> "NotebookGame":
    """A game against `agent`; make it the last expression of a notebook cell.

    Args:
      agent: from `muzero_jax.load`.
      you: your colour, as the game calls it ("black", "X"); by default the colour that moves first.
      num_simulations: the agent's budget for a move; by default its usual one.

    Raises ValueError for a colour that the game does not have.
    """
    position = new_game(agent.environment)
    colours = position.game.view.colours
    if you and you not in colours:
        raise ValueError(f"{position.game.title} has no colour {you!r}; choose {colours[0]!r} or {colours[1]!r}")
    thinker = make_thinker(agent, num_simulations=num_simulations or agent.num_simulations)
    thinker.prepare(position)  # so that the first answer comes at once
    return NotebookGame(thinker, position, colours.index(you) if you else BLACK)


class NotebookGame:
    """One game at a time between a person and an agent."""

    def __init__(self, thinker: Thinker, position: Position, you: int = BLACK):
        self.thinker = thinker
        self.position = position
        self.you = you
        self.notation = make_notation(position.environment)
        self.said = ""
        self.panel = _make_panel(self)
        self._answer()

    def click(self, action: int) -> None:
        """Plays your move, then the agent's; an illegal move only changes the line below the board."""
        try:
            self.position = self.position.play(action)
        except IllegalMove as error:
            self.said = f"{str(error).capitalize()}."
            self._show()
        else:
            self._answer()

    def play(self, move: str) -> "NotebookGame":
        """Plays your move, given as text such as "c3"; raises ValueError if there is no such move."""
        self.click(self.notation.read(self.position.state, move.strip()))
        return self

    def undo(self) -> "NotebookGame":
        """Takes back your last move and what followed it; does nothing if you have made none."""
        if any(ply.colour == self.you for ply in self.position.plies):
            self.position = self.position.undo(self.you)
            self._answer()
        return self

    def new(self) -> "NotebookGame":
        """Starts again with the colours exchanged."""
        self.you = WHITE if self.you == BLACK else BLACK
        self.position = self.position.new()
        self._answer()
        return self

    def hint(self) -> str:
        """The move that the agent would play in your place, as text."""
        return self.notation.write(self.position.state, self.thinker.analyse(self.position).action)

    def picture(self) -> board_picture.BoardPicture:
        """The board as an SVG."""
        return board_picture.draw(self.seen, self.notation, title=self.said)

    @property
    def seen(self) -> Position:
        """The position as you see it, where something is hidden."""
        return self.position._replace(viewer=self.you)

    def _answer(self) -> None:
        """Plays the agent's moves until it is your turn or the game is over."""
        moves = []
        analysis = None
        while not self.position.is_over and self.position.colour_to_move != self.you:
            analysis, told = self.thinker.analyse(self.position), len(self.seen.told)
            self.position = self.position.play(analysis.action)
            moves += self.seen.texts(self.notation)[told:][-1:]
        self.said = self._status(moves, analysis)
        self._show()

    def _status(self, moves: list[str], analysis: Analysis | None) -> str:
        value, game = 0.0 if analysis is None else analysis.value, self.position.game
        share = f"{value:+.2f} points" if game.is_for_points else f"{(1 + value) / 2:.0%} of the points"
        expects = "" if game.hidden else f" and expects {share}"
        answer = f"It plays {', '.join(moves)}{expects}. " if moves else ""
        if self.position.is_over:
            return f"{answer}The game is over: {self.position.result}."
        return f"{answer}Your turn: you are {self.position.game.view.colours[self.you]}."

    def _show(self) -> None:
        if self.panel is not None:
            self.panel.show(self)

    def __repr__(self) -> str:
        board = drawing.plain(drawing.draw(self.seen, self.notation))
        legal = self.position.legal_actions()
        typed = f'\nor type game.play("{self.notation.write(self.position.state, legal[-1])}")' if legal else ""
        return f"{board}\n{self.said}{typed}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook shows: a picture and text, and buttons if it has widgets."""
        bundle: dict[str, Any] = {"text/plain": repr(self), "image/svg+xml": self.picture().svg}
        return bundle if self.panel is None else bundle | self.panel.bundle()


class GamePanel:
    """The widgets: the drawing, a button over each of its `cells`, and buttons of `others` by action."""

    def __init__(self, widgets: Any, game: NotebookGame, board: BoardDrawing):
        self._widgets = widgets
        self._game = game
        self.picture = widgets.HTML()
        self.line = widgets.HTML()
        self.cells = {cell: self._cell(board, cell, action) for cell, action in board.clicked.items()}
        rest = set(range(game.position.environment.num_actions)) - set(board.clicked.values())
        self.others = {
            action: self._button(board.write(action), partial(game.click, action)) for action in sorted(rest)
        }
        goal = widgets.HTML(f"{STYLE}<b>{game.position.game.title}</b>: {game.position.game.goal}")
        drawn = widgets.Box([self.picture, *self.cells.values()])
        drawn.add_class("mz-board")
        below = [self._button("Undo", game.undo), self._button("New game", game.new)]
        self.box = widgets.VBox([goal, drawn, self.line, widgets.HBox([*self.others.values(), *below])])

    def bundle(self) -> dict[str, Any]:
        """The widgets as a part of a MIME bundle."""
        return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}}

    def show(self, game: NotebookGame) -> None:
        """Updates the widgets to the present position."""
        board = looks.board_of(game.seen, game.notation)
        legal = set(game.position.legal_actions())
        self.picture.value = board_picture.draw(game.seen, game.notation).svg
        for cell, button in self.cells.items():
            button.disabled = board.clicked[cell] not in legal
        for action, button in self.others.items():
            button.layout.display = None if action in legal else "none"
        self.line.value = game.said

    def _cell(self, board: BoardDrawing, cell: Cell, action: int) -> Any:
        button = self._button("", partial(self._game.click, action))
        button.tooltip = board.write(action)
        place = {side: f"{pixels:.0f}px" for side, pixels in board_picture.place_of(board, cell).items()}
        button.layout = self._widgets.Layout(padding="0", **place)
        button.add_class("mz-cell")
        return button

    def _button(self, text: str, press: Callable[[], object]) -> Any:
        button = self._widgets.Button(description=text)
        button.on_click(lambda pressed: press())
        return button


MOST_OTHERS = 4
"""The most actions without a cell; a game with more gets no buttons at all."""


def _make_panel(game: NotebookGame) -> GamePanel | None:
    """The buttons of a game in which clicks play all but a few moves; else, or without ipywidgets, None."""
    board = looks.board_of(game.position, game.notation)
    clicked = set(board.clicked.values())
    num_actions = game.position.environment.num_actions
    try:
        import ipywidgets
    except ImportError:
        return None
    return GamePanel(ipywidgets, game, board) if clicked and num_actions - len(clicked) <= MOST_OTHERS else None
