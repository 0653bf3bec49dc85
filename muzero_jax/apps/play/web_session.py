"""A game as the page in the browser sees it: one dict per question, nothing of HTTP.

A server has one game, however many pages show it. The page names the ply that it shows, so a click on a board that
has changed since (a second tab, a slow answer) is refused instead of played. The page decides which side is the
agent's: it asks for the agent's moves, so people, agents or both can play. Boards and sentences are made here; the
page shows them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from muzero_jax.apps.play import overlay as overlays
from muzero_jax.apps.play import tree_picture, tree_view
from muzero_jax.apps.play.board_picture import board_of
from muzero_jax.apps.play.boards import Board, svg
from muzero_jax.apps.play.drawing import signed
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Analysis, Thinker
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import POINTS

BUDGETS = (1, 4, 16, 64, 256, 1024)
MOST_SIMULATIONS = 4096
"""A budget is a program to compile and a tree to hold, so a page may not ask for any."""

NUM_LINES, LINE_LENGTH = 4, 6
DIRECTIONS = ("left", "up", "right", "down")
"""Moves that the arrow keys play, where a game has moves of these names."""
OVERLAYS = ("policy", "values", "prior")


def board_state(position: Position, notation: Notation, seat: int | None = None) -> dict[str, Any]:
    """The board, the moves that clicks on it name, whose turn it is, what is legal and what was played.

    Args:
      seat: the side that the person plays, as in `boards.Board`.
    """
    game, view, board = position.game, position.game.view, board_of(position, notation, seat=seat)
    legal, played, paths = _distinct(position), position.texts(notation), board.paths()
    texts = [notation.write(position.state, action) for action in legal]
    clicked, directions = set(board.clicked.values()), [w for w in DIRECTIONS if _is_read(notation, position, w)]
    is_sized = view.page in ("hex", "go")
    return {
        "game": position.name,
        "title": game.title,
        "size": f"{board.height}×{board.width}" if is_sized else "",
        "goal": game.goal,
        "board": board.kind,
        "svg": svg(board),
        "squares": position.squares,
        "paths": paths,
        "joint": "/" if view.page == POINTS else "",
        "clicks": board.num_clicks,
        "names": view.colours,
        "inks": view.inks,
        "to_move": position.colour_to_move,
        "legal": texts,
        "buttons": [
            text
            for text, action in zip(texts, legal, strict=True)
            if action not in clicked and text not in paths and text not in directions
        ],
        "directions": directions,
        "moves": played,
        "movers": [ply.colour for ply in position.plies],
        "ply": len(played),
        "in_turns": position.environment.discount is not None,
        "num_players": position.environment.num_players,
        "total": position.total,
        "status": _status(position),
        "swapped": position.swapped,
        "result": position.result,
        "winning_cells": position.winning_cells,
    }


def _status(position: Position) -> str:
    """The result, or whose turn it is; in a single-player game the points so far."""
    if position.is_over:
        return position.result or ""
    if position.environment.num_players == 1:
        return f"{_points(position.total)}, {len(position.plies)} moves"
    return f"{position.game.view.colours[position.colour_to_move]} to move"


def _points(total: float) -> str:
    return f"{round(total, 2):,.10g} point{'' if total == 1 else 's'}"


def _distinct(position: Position) -> list[int]:
    """The legal actions, of which those that are alike are one."""
    return list(dict.fromkeys(position.game.same_as.get(action, action) for action in position.legal_actions()))


def _is_read(notation: Notation, position: Position, word: str) -> bool:
    try:
        notation.read(position.state, word)
    except ValueError:
        return False
    return True


class WebGame:
    """One game against one agent; only one call at a time. `seat` is everywhere that of `board_state`."""

    def __init__(self, position: Position, thinker: Thinker, notation: Notation):
        self.position, self.thinker, self.notation = position, thinker, notation
        self._remembered: tuple[Any, Analysis] | None = None  # the last analysis, and of what

    def state(self, seat: int | None = None) -> dict[str, Any]:
        """The answer of `board_state`, and the budgets that the page offers."""
        usual = self.thinker.num_simulations
        return board_state(self.position, self.notation, seat) | {
            "num_simulations": usual,
            "budgets": sorted({*BUDGETS, usual}),
            "most_value": self._most_value,
        }

    look = state

    def play(self, move: str, ply: int | None = None, seat: int | None = None) -> dict[str, Any]:
        """A person's move, in the game's notation; ValueError says in one sentence why not."""
        self._expect(ply)
        action = self._read(move)
        if self.position.repeats(action):
            raise ValueError(f"{move} would repeat an earlier position, which loses the game: play elsewhere")
        return self._go_to(self.position.play(action), seat)

    def agent_move(
        self, num_simulations: int | None = None, ply: int | None = None, seat: int | None = None
    ) -> dict[str, Any]:
        """The agent's move for the side to move."""
        self._expect(ply)
        return self._go_to(self.position.play(self._think(num_simulations).action), seat)

    def undo(self, colour: int | None = None, seat: int | None = None) -> dict[str, Any]:
        """Takes moves back until `colour` is to choose again; one move where it is None."""
        return self._go_to(self.position.undo(colour), seat)

    def new(self, seat: int | None = None) -> dict[str, Any]:
        """Starts again; in a game with dice the same moves may then lead elsewhere."""
        self._remembered = None
        return self._go_to(self.position.new(), seat)

    def analysis(
        self,
        num_simulations: int | None = None,
        ply: int | None = None,
        seat: int | None = None,
        overlay: str = OVERLAYS[0],
    ) -> dict[str, Any]:
        """The agent's analysis of the position: shares of moves, values for the side to move, the best lines.

        Args:
          overlay: which of `OVERLAYS` is drawn over the board and written on the buttons.
        """
        self._expect(ply)
        if overlay not in OVERLAYS:
            raise ValueError(f"overlay must be one of {', '.join(OVERLAYS)}")
        analysis, position = self._think(num_simulations), self.position
        numbers = self._numbers(analysis)
        noted = self._overlay(analysis, overlay, numbers[overlay])
        board = board_of(position, self.notation, noted, seat)
        texts = {kind: {self._write(a): number for a, number in these.items()} for kind, these in numbers.items()}
        return texts | {
            "ply": len(position.plies),
            "colour": position.colour_to_move,
            "move": self._write(analysis.action),
            "notes": {self._write(action): note.text for action, note in noted.notes.items()},
            "svg": svg(board),
            "is_ringed": self._is_ringed(board),
            "value": analysis.value,
            "prior_value": analysis.prior_value,
            "num_simulations": analysis.num_simulations,
            "said": self._said(analysis),
            "bar": self._bar(analysis),
            "why": self.thinker.why,
            "lines": self._lines(analysis),
        }

    def tree(self) -> str:
        """The tree of the last analysis as SVG; ValueError if the position has none."""
        if self._remembered is None or self._remembered[0][0] != self._played():
            raise ValueError("this position has no search to draw yet: show an overlay first")
        return tree_picture.of_analysis(self._remembered[1], self.position, self.notation).svg

    def _go_to(self, position: Position, seat: int | None) -> dict[str, Any]:
        self.position = position
        return self.state(seat)

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
        return self.notation.write(self.position.state, self._same(action))

    def _same(self, action: int) -> int:
        return self.position.game.same_as.get(action, action)

    def _numbers(self, analysis: Analysis) -> dict[str, dict[int, float]]:
        """Both policies over the legal moves, of which those that are alike are one, and values of the moves tried."""
        shares: dict[str, dict[int, float]] = {"policy": {}, "prior": {}}
        for action in self.position.legal_actions():
            for kind, policy in (("policy", analysis.policy), ("prior", analysis.prior)):
                shares[kind][self._same(action)] = shares[kind].get(self._same(action), 0.0) + float(policy[action])
        if analysis.tree is None:
            return shares | {"values": {}}
        width = self.position.environment.num_actions
        root = tree_view.branches(analysis.tree, analysis.action, most=analysis.most_value, depth=1, width=width)
        return shares | {"values": {self._same(branch.action): branch.q for branch in root.children}}

    def _overlay(self, analysis: Analysis, kind: str, numbers: Mapping[int, float]) -> overlays.Overlay:
        choice = self._same(analysis.action)
        if kind != "values":
            return overlays.of_shares(numbers, choice)
        return overlays.of_values(numbers, choice, None if self._is_open_ended else self._most_value)

    def _is_ringed(self, board: Board) -> bool:
        """Whether the agent's move is marked on the board or on a button; an arrow is no ring."""
        choice = board.overlay.choice
        return choice is not None and (board.page != POINTS or board.ends(choice) is None)

    @property
    def _most_value(self) -> float | None:
        """The largest value, None where it is not known."""
        most = self.thinker.most_value
        return most if np.isfinite(most) else None

    @property
    def _is_open_ended(self) -> bool:
        """Whether this is a single-player game with points: the largest value is only what the network can say."""
        return self.position.environment.num_players == 1 and not (self.thinker.most_value <= 1)

    def _said(self, analysis: Analysis) -> str:
        """The value in words: whose it is, or of what, and its range where that is not from -1 to 1."""
        most, position = self._most_value, self.position
        of = "Expected from here"
        if position.environment.num_players > 1:
            reach = f" (-{most:g} to +{most:g})" if most is not None and most > 1 else ""
            of = f"Value for {position.game.view.colours[position.colour_to_move]}{reach}"
        after = f"{signed(analysis.value)} after {analysis.num_simulations} simulations"
        return f"{of}: {after}, {signed(analysis.prior_value)} at first sight."

    def _bar(self, analysis: Analysis) -> dict[str, Any]:
        """The first player's part of the bar, and what it is a part of.

        In a single-player game with points it is those so far among those that are expected in the end. Where no
        largest value is known, it is by v / (1 + |v|) in place of v.
        """
        if self._is_open_ended:
            total = self.position.total
            end = total + max(0.0, analysis.value)
            of = f"{_points(total)} so far, of those expected in the end"
            return {"first": max(0.0, total) / end if end > 0 else 0.0, "of": of}
        value = analysis.value if self.position.colour_to_move == 0 else -analysis.value
        most = 1 + abs(value) if self._most_value is None else self._most_value
        return {"first": (1 + min(1.0, max(-1.0, value / most))) / 2, "of": ""}

    def _lines(self, analysis: Analysis) -> list[dict[str, Any]]:
        """How the game may go on, the best line first; without a tree the move alone."""
        if analysis.tree is None:
            return [{"moves": [self._write(analysis.action)], "visits": None, "value": None}]
        limits = {"width": NUM_LINES, "length": LINE_LENGTH, "most": analysis.most_value}
        lines = tree_view.expected(analysis.tree, analysis.action, self.position, self.notation, **limits)
        return [
            {"moves": [move.text for move in line], "visits": line[0].visits, "value": signed(line[0].q)}
            for line in lines
        ]

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
