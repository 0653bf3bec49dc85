"""The game behind the web page: one dict for each request, without HTTP.

A server has one game, although several pages may show it. A page names the ply that it shows, so that a click on an
outdated board (a second tab, a slow answer) is rejected instead of played. The page decides which side is the agent's
by asking for the agent's moves, so people, agents or both can play. Boards and texts are made here.
"""

from typing import Any, Literal

import numpy as np

from muzero_jax.agent.analysis import Analysis, expected_lines
from muzero_jax.apps.play import tree_picture, tree_view
from muzero_jax.apps.play.drawing import counted, judged, signed
from muzero_jax.apps.play.looks import board_of
from muzero_jax.apps.play.overlay import history, of_shares, of_values
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import POINTS

BUDGETS = (1, 4, 16, 64, 256, 1024)
MOST_SIMULATIONS = 4096
"""The largest budget that a page may ask for, because each is a program to compile and a tree in memory."""

NUM_LINES = 4
LINE_LENGTH = 6
DIRECTIONS = ("left", "up", "right", "down")
"""Moves that the arrow keys play, if a game has moves with these names."""
Seat = Literal[0, 1]
Shown = Literal["policy", "values", "prior"]
"""What is drawn over the board: shares of the search, its values, or the network's shares."""


class WebGame:
    """One game against one agent; not for concurrent calls.

    In all methods, `seat` is the side that a person plays, which turns the board (`boards.BoardDrawing`), and `ply` is
    the ply that the page shows: ValueError if the game has moved on since.
    """

    def __init__(self, position: Position, thinker: Thinker, notation: Notation):
        self.position = position
        self.thinker = thinker
        self.notation = notation
        self._remembered: tuple[Any, Analysis] | None = None  # the last question and its analysis
        self._values: dict[int, float] = {}  # of analysed positions, by ply, for the first player

    def state(self, seat: Seat | None = None) -> dict[str, Any]:
        """What the page shows: the board, moves by clicks, whose turn it is, legal moves and moves so far."""
        position = self.position._replace(viewer=seat)
        game = self.position.game
        view = self.position.game.view
        board = board_of(position, self.notation, seat=seat)
        usual = self.thinker.num_simulations
        is_others_turn = position.is_veiled and position.colour_to_move != seat  # whose moves show what they know
        actions = [] if is_others_turn else position.legal_actions()
        legal = {self._write(action): self._same(action) for action in actions}
        clicked = set(board.clicked.values())
        paths = board.paths()
        directions = [word for word in DIRECTIONS if self._is_word(word)]
        return {
            "game": position.name,
            "title": game.title,
            "size": f"{board.height}×{board.width}" if view.page in ("hex", "go") else "",
            "goal": game.goal,
            "board": board.look.kind,
            "svg": board.svg(),
            "squares": position.squares,
            "clicks": board.num_clicks,
            "paths": paths,
            "joint": "/" if view.page == POINTS else "",  # between the two cells of a move, as it is written
            "legal": list(legal),
            "buttons": [m for m, a in legal.items() if a not in clicked and m not in paths and m not in directions],
            "directions": directions,
            "names": view.colours,
            "inks": view.inks,
            "to_move": position.colour_to_move,
            "moves": position.texts(self.notation),
            "movers": [ply.colour for _, ply in position.told],
            "ply": len(position.plies),
            "pace": view.pace,
            "in_turns": position.environment.discount is not None,
            "num_players": position.environment.num_players,
            "status": self._status(),
            "swapped": position.swapped,
            "result": position.result,
            "winning_cells": position.winning_cells,
            "num_simulations": usual,
            "budgets": sorted({*BUDGETS, usual}) if self.thinker.searches else [usual],
        }

    look = state

    def play(self, move: str, ply: int | None = None, seat: Seat | None = None) -> dict[str, Any]:
        """Plays a person's move, in the game's notation; raises ValueError if that is not possible."""
        self._expect(ply)
        action = self._read(move)
        if self.position.repeats(action):
            raise ValueError(f"{move} would repeat an earlier position, which loses the game: play elsewhere")
        return self._go_to(self.position.play(action), seat)

    def agent_move(
        self, num_simulations: int | None = None, ply: int | None = None, seat: Seat | None = None
    ) -> dict[str, Any]:
        """Plays the agent's move for the side to move."""
        self._expect(ply)
        return self._go_to(self.position.play(self._think(num_simulations).action), seat)

    def undo(self, colour: Seat | None = None, seat: Seat | None = None) -> dict[str, Any]:
        """Takes moves back until `colour` is to move again; only one move if it is None."""
        position = self.position.undo(colour)
        self._values = {ply: value for ply, value in self._values.items() if ply <= len(position.plies)}
        return self._go_to(position, seat)

    def new(self, seat: Seat | None = None) -> dict[str, Any]:
        """Starts a new game; in a game with dice, with other dice."""
        self._remembered = None
        self._values.clear()
        return self._go_to(self.position.new(), seat)

    def analysis(
        self,
        num_simulations: int | None = None,
        ply: int | None = None,
        seat: Seat | None = None,
        overlay: Shown = "policy",
    ) -> dict[str, Any]:
        """The agent's analysis of the position: shares of moves, values for the side to move, the best lines."""
        self._expect(ply)
        position = self.position._replace(viewer=seat)
        if position.is_veiled and position.colour_to_move != seat:
            raise ValueError("the agent's thoughts would show what it hides from you: wait for your turn")
        found = self._think(num_simulations)
        numbers = self._numbers(found)
        choice = self._same(found.action)
        values = of_values(numbers["values"], choice, self._largest_shown)
        notes = values if overlay == "values" else of_shares(numbers[overlay], choice)
        board = board_of(position, self.notation, notes, seat)
        texts = {kind: {self._write(a): number for a, number in these.items()} for kind, these in numbers.items()}
        return texts | {
            "ply": len(self.position.plies),
            "move": self._write(choice),
            "notes": {self._write(action): note.text for action, note in notes.notes.items()},
            "svg": board.svg(),
            "is_ringed": board.look.kind != POINTS or board.ends(choice) is None,  # an arrow is no ring
            "num_simulations": found.num_simulations,
            "said": self._said(found),
            "bar": self._bar(found),
            "history": history({} if position.is_veiled else self._values, len(self.position.plies)),
            "why": self.thinker.why,
            "lines": self._lines(found),
        }

    def tree(self) -> str:
        """The tree of the last analysis as SVG; ValueError if the position has none."""
        if self._remembered is None or self._remembered[0][0] != self._played():
            raise ValueError("this position has no search to draw yet: show an overlay first")
        return tree_picture.picture(self._remembered[1], self.position, self.notation).svg

    # --- moves --------------------------------------------------------------------------------------------------------

    def _go_to(self, position: Position, seat: Seat | None) -> dict[str, Any]:
        self.position = position
        return self.state(seat)

    def _same(self, action: int) -> int:
        return self.position.game.same_as.get(action, action)

    def _write(self, action: int) -> str:
        return self.notation.write(self.position.state, self._same(action))

    def _is_word(self, word: str) -> bool:
        """Whether a word is a move of this game."""
        try:
            return self.notation.read(self.position.state, word) >= 0
        except ValueError:
            return False

    def _read(self, move: str) -> int:
        self._expect_more()
        if not self._is_word(move):
            raise ValueError(f"there is no move {move}")
        action = self.notation.read(self.position.state, move)
        if not self.position.legal_action_mask()[action]:
            raise ValueError(f"the rules do not allow {move} here")
        return action

    def _expect(self, ply: int | None) -> None:
        if ply is not None and ply != len(self.position.plies):
            raise ValueError("the position has changed since: look at the board again")

    def _expect_more(self) -> None:
        if self.position.is_over:
            raise ValueError("the game is over: take a move back or start a new game")

    def _played(self) -> tuple[int, ...]:
        return tuple(ply.action for ply in self.position.plies)

    # --- thoughts -----------------------------------------------------------------------------------------------------

    def _think(self, num_simulations: int | None) -> Analysis:
        """An analysis with this budget; the last one if position and budget are the same."""
        self._expect_more()
        budget = self.thinker.num_simulations if num_simulations is None else num_simulations
        if not 1 <= budget <= MOST_SIMULATIONS:
            raise ValueError(f"num_simulations is {budget}, but must be from 1 to {MOST_SIMULATIONS}")
        question = self._played(), budget
        if self._remembered is None or self._remembered[0] != question:
            self._remembered = question, self.thinker.analyse(self.position, num_simulations=budget)
        found = self._remembered[1]
        self._values[len(self.position.plies)] = found.value if self.position.colour_to_move == 0 else -found.value
        return found

    def _numbers(self, found: Analysis) -> dict[str, dict[int, float]]:
        """Both policies over the legal moves (equal moves are added up), and the values of the moves tried."""
        numbers: dict[str, dict[int, float]] = {"policy": {}, "values": {}, "prior": {}}
        for action in self.position.legal_actions():
            for shares, policy in ((numbers["policy"], found.policy), (numbers["prior"], found.prior)):
                shares[self._same(action)] = shares.get(self._same(action), 0.0) + float(policy[action])
        if found.tree is not None:
            root = tree_view.branches(found, depth=1, width=self.position.environment.num_actions)
            numbers["values"] = {self._same(branch.action): branch.q for branch in root.children}
        return numbers

    def _lines(self, found: Analysis) -> list[dict[str, Any]]:
        """The expected lines, the best first; without a tree only the agent's move."""
        state, move, has_chance = self.position.state, self.position.move, self.position.has_chance
        lines = expected_lines(found, state, move, self.notation, has_chance, NUM_LINES, LINE_LENGTH)
        alone = {"moves": [self._write(found.action)], "visits": None, "value": None}
        shown = ({"moves": list(m.moves), "visits": m.visits, "value": signed(m.value)} for m in lines)
        return list(shown) or [alone]

    @property
    def _largest(self) -> float | None:
        """The largest value; None if it is not known."""
        most = self.thinker.most_value
        return most if np.isfinite(most) else None

    @property
    def _largest_shown(self) -> float | None:
        """The largest value; None in a single-player game with points, where it is only the network's bound."""
        return None if self.position.environment.num_players == 1 and self.thinker.most_value > 1 else self._largest

    # --- words --------------------------------------------------------------------------------------------------------

    def _status(self) -> str:
        """The result, or whose turn it is; in a single-player game the points so far."""
        position = self.position
        if position.environment.num_players == 1 and not position.is_over:
            return f"{counted(position.total, 'point')}, {counted(len(position.plies), 'move')}"
        return position.result or f"{position.game.view.colours[position.colour_to_move]} to move"

    def _said(self, found: Analysis) -> str:
        """The value in words: for whom, its range if that is not -1 to 1, after search and by the network."""
        of = "Expected from here"
        most = self._largest
        if self.position.environment.num_players > 1:
            reach = f" (-{most:g} to +{most:g})" if most is not None and most > 1 else ""
            of = f"Value for {self.position.game.view.colours[self.position.colour_to_move]}{reach}"
        return f"{of}: {judged(found)}."

    def _bar(self, found: Analysis) -> float | None:
        """The first player's share of the bar; a single-player game has none.

        Without a known largest value, v / (1 + |v|) stands for v.
        """
        if self.position.environment.num_players == 1:
            return None
        value = found.value if self.position.colour_to_move == 0 else -found.value
        share = value / (self._largest or 1 + abs(value))
        return (1 + min(1.0, max(-1.0, share))) / 2
