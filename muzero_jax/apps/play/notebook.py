"""A game against an agent in a notebook: click a cell, and the agent answers.

The board is made of ipywidgets' buttons, which Jupyter, VS Code and Colab show; CSS cuts them into hexagons where rows
lean. Without widgets the same object shows a picture, and `game.play("c3")` makes a move. Both ways are one: a button
calls `click`, which a test may do without a browser.
"""

from typing import Any

import numpy as np

from muzero_jax.agent import Agent
from muzero_jax.apps.play import board_picture, drawing
from muzero_jax.apps.play.board_picture import INKS
from muzero_jax.apps.play.clicks import known_location
from muzero_jax.apps.play.position import BLACK, WHITE, IllegalMove, Position, new_game
from muzero_jax.apps.play.thinking import Analysis, Thinker, make_thinker
from muzero_jax.apps.play.trained_agent import TrainedAgent
from muzero_jax.games import view
from muzero_jax.games.catalogue import make_notation

SIDE, EMPTY = 44, "#d8c8a4"
"""Pixels of a cell, and the colour of a free one."""
WIDGET = "application/vnd.jupyter.widget-view+json"
STYLE = f"""<style>
.mz-board {{ width: fit-content; padding: 6px; background: #b9a67d; box-shadow: 0 0 0 1px #8f8061; overflow: visible; }}
.mz-edges {{ border: 7px solid {INKS["white"]}; border-block-color: {INKS["black"]}; }}
.mz-cell button, button.mz-cell {{ padding: 0; margin: 1px; width: {SIDE}px; height: {SIDE}px; min-width: 0;
  font-size: 16px; color: #f08c28; border: 0; }}
.mz-cell button:disabled, button.mz-cell:disabled {{ opacity: 1 !important; color: #f08c28 !important; }}
.mz-hex button, button.mz-hex {{ clip-path: polygon(50% 0, 100% 25%, 100% 75%, 50% 100%, 0 75%, 0 25%); }}
</style>"""


def play_against(agent: Agent | TrainedAgent, *, you: str = "", num_simulations: int | None = None) -> "NotebookGame":
    """A game against `agent`, to be shown as the last line of a cell.

    Args:
      agent: of `muzero_jax.load`, or of `agents.load_agent`.
      you: your colour, as the game calls it ("black", "X"); by default the one that moves first.
      num_simulations: the agent's budget a move; by default its own.

    Raises ValueError for a colour that the game has not.
    """
    agent = agent.agent if isinstance(agent, TrainedAgent) else agent
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
        self.thinker, self.position, self.you = thinker, position, you
        self.notation = make_notation(position.environment)
        self.said = ""
        self.panel = _make_panel(self)
        self._answer()

    def click(self, action: int) -> None:
        """Your move, then the agent's; a move that the rules forbid changes nothing but the line below the board."""
        try:
            self.position = self.position.play(action)
        except IllegalMove as error:
            self.said = f"{str(error).capitalize()}."
            self._show()
        else:
            self._answer()

    def play(self, move: str) -> "NotebookGame":
        """Your move as text, such as "c3"; ValueError if there is no such move."""
        self.click(self.notation.read(self.position.state, move.strip()))
        return self

    def undo(self) -> "NotebookGame":
        """Takes your last move back, and what followed it; does nothing where you have made none."""
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
        return board_picture.draw(self.position, self.notation, title=self.said)

    def _answer(self) -> None:
        """The agent's moves, until it is your turn or the game is over."""
        moves, analysis = [], None
        while not self.position.is_over and self.position.colour_to_move != self.you:
            analysis = self.thinker.analyse(self.position)
            moves.append(self.notation.write(self.position.state, analysis.action))
            self.position = self.position.play(analysis.action)
        self.said = self._status(moves, analysis)
        self._show()

    def _status(self, moves: list[str], analysis: Analysis | None) -> str:
        chance = 0.0 if analysis is None else (1 + analysis.value) / 2
        answer = f"It plays {', '.join(moves)} and expects {chance:.0%} of the points. " if moves else ""
        if self.position.is_over:
            return f"{answer}The game is over: {self.position.result}."
        return f"{answer}Your turn: you are {self.position.game.view.colours[self.you]}."

    def _show(self) -> None:
        if self.panel is not None:
            self.panel.show(self)

    def __repr__(self) -> str:
        board = drawing.plain(drawing.draw(self.position, self.notation))
        legal = self.position.legal_actions()
        typed = f'\nor type game.play("{self.notation.write(self.position.state, legal[-1])}")' if legal else ""
        return f"{board}\n{self.said}{typed}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The buttons where a notebook has widgets; a picture and text where it has none."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self.position.environment.board is not None:
            bundle["image/svg+xml"] = self.picture().svg
        return bundle if self.panel is None else bundle | self.panel.bundle()


class Panel:
    """The buttons: `cells` by their number, `others` by action."""

    def __init__(self, widgets: Any, game: NotebookGame):
        self._widgets, self._game = widgets, game
        position, look = game.position, game.position.game.view
        rows, columns = len(position.squares), len(position.squares[0])
        self.cells = {cell: self._cell(cell, look.leans) for cell in range(rows * columns)}
        num_actions = position.environment.num_actions
        self.others = {action: self._button(action) for action in range(rows * columns, num_actions)}
        self.line, new, undo = (
            widgets.HTML(),
            widgets.Button(description="New game"),
            widgets.Button(description="Undo"),
        )
        new.on_click(lambda pressed: game.new())
        undo.on_click(lambda pressed: game.undo())
        goal = widgets.HTML(f"{STYLE}<b>{position.game.title}</b>: {position.game.goal}")
        cells = list(self.cells.values())
        lines = [self._row(cells[row * columns : (row + 1) * columns], row * look.leans) for row in range(rows)]
        board = widgets.VBox(lines)
        for name in ("mz-board", "mz-edges")[: 1 + look.has_edges]:
            board.add_class(name)
        self.box = widgets.VBox([goal, board, self.line, widgets.HBox([*self.others.values(), undo, new])])

    def bundle(self) -> dict[str, Any]:
        """The widgets' parts that a notebook shows."""
        return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}}

    def show(self, game: NotebookGame) -> None:
        """Makes the buttons say how the game stands."""
        position, legal = game.position, set(game.position.legal_actions())
        look, columns, won = position.game.view, len(position.squares[0]), set(position.winning_cells)
        last = position.plies[-1].action if position.plies and look.marks_last else None
        stones = {view.EMPTY: EMPTY, view.FIRST: INKS[look.inks[0]], view.SECOND: INKS[look.inks[1]]}
        for number, button in self.cells.items():
            cell = position.squares[number // columns][number % columns]
            mark = "★" if divmod(number, columns) in won else "●" if number == last else ""
            button.style.button_color = stones.get(cell, EMPTY)
            button.description = mark if cell in stones else cell
            button.disabled = number not in legal
        for action, button in self.others.items():
            button.layout.display = None if action in legal else "none"
        self.line.value = game.said

    def _row(self, buttons: list[Any], half_cells: int) -> Any:
        """A row, which leans to the right by half a cell for each row above it; hexagons reach into the row above."""
        overlap = -SIDE // 4 if half_cells else 0
        margin = f"{overlap}px 0 0 {half_cells * (SIDE + 2) // 2}px"
        return self._widgets.HBox(buttons, layout=self._widgets.Layout(margin=margin, overflow="visible"))

    def _cell(self, number: int, is_hexagon: bool) -> Any:
        side = f"{SIDE}px"
        button = self._widgets.Button(layout=self._widgets.Layout(width=side, height=side, padding="0", margin="1px"))
        if number < self._game.position.environment.num_actions:
            button.tooltip = self._game.notation.write(self._game.position.state, number)
        for name in ("mz-cell", "mz-hex")[: 1 + is_hexagon]:
            button.add_class(name)
        button.on_click(lambda pressed: self._game.click(number))
        return button

    def _button(self, action: int) -> Any:
        game = self._game
        button = self._widgets.Button(description=game.notation.write(game.position.state, action))
        button.on_click(lambda pressed: game.click(action))
        return button


MOST_OTHERS = 4
"""Actions beside the cells that get a button of their own."""


def _make_panel(game: NotebookGame) -> Panel | None:
    """The buttons of a game whose actions are cells and few others; None for other games, and without ipywidgets."""
    board = game.position.environment.board
    try:
        import ipywidgets
    except ImportError:
        return None
    if board is None:
        return None
    location = known_location(game.position.game.view.page, board.shape, np.asarray(board.action_location))
    num_cells = board.shape[0] * board.shape[1]
    first = location[:num_cells]
    is_cells = np.array_equal(first, np.arange(len(first))) and len(location) <= num_cells + MOST_OTHERS
    return Panel(ipywidgets, game) if is_cells else None
