"""A game as the page in the browser sees it: one dict per question, nothing of HTTP.

A server has one game, however many pages show it. The page names the ply that it shows, so a click on a board that
has changed since (a second tab, a slow answer) is refused instead of played. The page decides which side is the
agent's: it asks for the agent's moves, so people, agents or both can play.
"""

from functools import partial
from typing import Any

import numpy as np

from muzero_jax.apps.play import clicks, drawing, tree_picture, tree_view
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import WHY_ANOTHER, Analysis, Thinker
from muzero_jax.games.layout import cells_first
from muzero_jax.games.notation import Notation

BUDGETS = (1, 4, 16, 64, 256, 1024)
MOST_SIMULATIONS = 4096
"""A budget is a program to compile and a tree to hold, so a page may not ask for any."""

NUM_LINES, LINE_LENGTH = 4, 6
DIRECTIONS = ("left", "up", "right", "down")
"""Moves that the arrow keys play, where a game has moves of these names."""
PLAIN = "plain"
"""The page of a game that has no board of its own there: its position as text, and a button for each legal move."""


def board_state(position: Position, notation: Notation) -> dict[str, Any]:
    """The board, the moves that clicks on it name, whose turn it is, what is legal and what was played."""
    game, view, squares = position.game, position.game.view, position.squares
    played = _texts(position, notation)
    return {
        "game": position.name,
        "title": game.title,
        "goal": game.goal,
        "board": view.page or PLAIN,
        "text": "" if view.page else drawing.plain(drawing.draw(position, notation)),
        "columns": notation.columns,
        "rows": notation.rows,
        "squares": squares,
        "clicks": _clicks(position, notation, (len(squares), len(squares[0]))),
        "names": view.colours,
        "inks": view.inks,
        "to_move": position.colour_to_move,
        "legal": [notation.write(position.state, action) for action in _distinct(position)],
        "directions": [word for word in DIRECTIONS if _is_read(notation, position, word)],
        "moves": played,
        "movers": [ply.colour for ply in position.plies],
        "ply": len(played),
        "in_turns": position.environment.discount is not None,
        "num_players": position.environment.num_players,
        "total": position.total,
        "checkers": view.checkers and view.checkers(position.state)._asdict(),
        "swapped": position.swapped,
        "result": position.result,
        "winning_cells": position.winning_cells,
    }


def _texts(position: Position, notation: Notation) -> list[str]:
    """The moves so far; a move's text belongs to the position before it."""
    before = (position.start, *(ply.state for ply in position.plies))
    return [notation.write(state, ply.action) for state, ply in zip(before, position.plies, strict=False)]


def _distinct(position: Position) -> list[int]:
    """The legal actions, of which those that are alike are one."""
    return list(dict.fromkeys(position.game.same_as.get(action, action) for action in position.legal_actions()))


def _is_read(notation: Notation, position: Position, word: str) -> bool:
    try:
        notation.read(position.state, word)
    except ValueError:
        return False
    return True


def _clicks(position: Position, notation: Notation, shape: tuple[int, int]) -> list[list[str | None]]:
    """The move that a click on each cell of the picture names, legal or not; None where it names none."""
    board, num_actions = position.environment.board, position.environment.num_actions
    location = cells_first(shape, num_actions)
    if board is not None and board.shape == shape:
        location = np.asarray(board.action_location)
    actions = clicks.clicked_actions(position.game.view.page, shape, location)
    return [[None if a < 0 else notation.write(position.state, a) for a in row] for row in actions.tolist()]


class WebGame:
    """One game against one agent; only one call at a time."""

    def __init__(self, position: Position, thinker: Thinker, notation: Notation):
        self.position, self.thinker, self.notation = position, thinker, notation
        self._remembered: tuple[Any, Analysis] | None = None  # the last analysis, and of what

    def state(self) -> dict[str, Any]:
        """The answer of `board_state`, and the budgets that the page offers."""
        usual, most = self.thinker.num_simulations, self.thinker.most_value
        return board_state(self.position, self.notation) | {
            "num_simulations": usual,
            "budgets": sorted({*BUDGETS, usual}),
            "most_value": most if np.isfinite(most) else None,
        }

    def play(self, move: str, ply: int | None = None) -> dict[str, Any]:
        """A person's move, in the game's notation; ValueError says in one sentence why not."""
        self._expect(ply)
        action = self._read(move)
        if self.position.repeats(action):
            raise ValueError(f"{move} would repeat an earlier position, which loses the game: play elsewhere")
        return self._go_to(self.position.play(action))

    def agent_move(self, num_simulations: int | None = None, ply: int | None = None) -> dict[str, Any]:
        """The agent's move for the side to move."""
        self._expect(ply)
        return self._go_to(self.position.play(self._think(num_simulations).action))

    def undo(self, colour: int | None = None) -> dict[str, Any]:
        """Takes moves back until `colour` is to choose again; one move where it is None."""
        return self._go_to(self.position.undo(colour))

    def new(self) -> dict[str, Any]:
        """Starts again; in a game with dice the same moves may then lead elsewhere."""
        self._remembered = None
        return self._go_to(self.position.new())

    def analysis(self, num_simulations: int | None = None, ply: int | None = None) -> dict[str, Any]:
        """The agent's analysis of the position: shares of moves, values for the side to move, the best lines."""
        self._expect(ply)
        analysis = self._think(num_simulations)
        return {
            "ply": len(self.position.plies),
            "colour": self.position.colour_to_move,
            "move": self._write(analysis.action),
            "why": self._why(),
            "policy": self._shares(analysis.policy),
            "prior": self._shares(analysis.prior),
            "value": analysis.value,
            "prior_value": analysis.prior_value,
            "num_simulations": analysis.num_simulations,
            "seconds": analysis.seconds,
            **self._lines(analysis),
        }

    def tree(self) -> str:
        """The tree of the last analysis as SVG; ValueError if the position has none."""
        if self._remembered is None or self._remembered[0][0] != self._played():
            raise ValueError("this position has no search to draw yet: show an overlay first")
        return tree_picture.of_analysis(self._remembered[1], self.position, self.notation).svg

    def _go_to(self, position: Position) -> dict[str, Any]:
        self.position = position
        return self.state()

    def _read(self, move: str) -> int:
        self._expect_more()
        try:
            action = self.notation.read(self.position.state, move)
        except ValueError:
            raise ValueError(f"there is no move {move[:16]}") from None
        if not self.position.legal_action_mask()[action]:
            raise ValueError(f"the rules do not allow {move} here")
        return action

    def _write(self, action: int) -> str:
        return self.notation.write(self.position.state, self.position.game.same_as.get(action, action))

    def _shares(self, policy) -> dict[str, float]:
        shares = dict.fromkeys(map(self._write, self.position.legal_actions()), 0.0)
        for action in self.position.legal_actions():
            shares[self._write(action)] += float(policy[action])
        return shares

    def _why(self) -> str:
        """Why the move that the agent would play need not have the largest share."""
        temperature = self.thinker.temperature
        return f"The move is drawn from the shares, at temperature {temperature:g}." if temperature else WHY_ANOTHER

    def _lines(self, analysis: Analysis) -> dict[str, Any]:
        """`values` of the moves that search tried, and its `lines`, the best first; without a tree the move alone."""
        if analysis.tree is None:
            return {"values": {}, "lines": [{"moves": [self._write(analysis.action)], "visits": None, "value": None}]}
        look = partial(tree_view.branches, analysis.tree, analysis.action, most=analysis.most_value)
        every = look(depth=1, width=self.position.environment.num_actions)
        # Where the tree does not say when chance acts, no real move follows the first.
        is_certain = analysis.tree.is_chance is not None or self.position.dice is None
        root = look(depth=LINE_LENGTH if is_certain else 1, width=NUM_LINES, width_below=1)
        lines = [
            {"moves": [branch.text for branch in line if branch.is_legal], "visits": line[0].visits, "value": line[0].q}
            for line in tree_view.lines(tree_view.named(root, self.position, self.notation))
        ]
        return {"values": {self._write(branch.action): branch.q for branch in every.children}, "lines": lines}

    def _think(self, num_simulations: int | None) -> Analysis:
        """An analysis, or the last one where the question is the same."""
        self._expect_more()
        budget = self.thinker.num_simulations if num_simulations is None else num_simulations
        if not 1 <= budget <= MOST_SIMULATIONS:
            raise ValueError(f"num_simulations is {budget}, but must be from 1 to {MOST_SIMULATIONS}")
        question = self._played(), budget
        if self._remembered is None or self._remembered[0] != question:
            self._remembered = question, self.thinker.analyse(self.position, num_simulations=budget)
        return self._remembered[1]

    def _expect_more(self) -> None:
        if self.position.is_over:
            raise ValueError("the game is over: take a move back or start a new game")

    def _played(self) -> tuple[int, ...]:
        return tuple(ply.action for ply in self.position.plies)

    def _expect(self, ply: int | None) -> None:
        if ply is not None and ply != len(self.position.plies):
            raise ValueError("the position has changed since: look at the board again")
