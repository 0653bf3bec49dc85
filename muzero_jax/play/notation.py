"""Moves as text: each game's standard notation, and plain action numbers for every game.

| game | a move | special |
|---|---|---|
| Go | `D4`: column letter without I, row 1 at the bottom | `pass` |
| Hex | `d4`: column letter, row 1 at the top | `swap-pieces` |
| Othello, tic-tac-toe | `d4`, as in Hex | `pass` in Othello |
| Connect Four | `d`, the column | |
| chess, Gardner chess | `e2e4`, `e7e8q`: long algebraic, as UCI has it | |

Shogi and animal shogi have action numbers only. Reading is case-blind; what is written reads back as the same action.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from muzero_jax.play import chess_moves
from muzero_jax.types import Environment, EnvState

STANDARD, ACTION = "standard", "action"
HEX_SWAP = "swap-pieces"
PASS = "pass"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
GO_LETTERS = LETTERS.replace("i", "")


class Notation(NamedTuple):
    """How moves of one game are written. A state is needed because a promotion looks like a pawn's move."""

    write: Callable[[EnvState, int], str]  # (state, action) -> text
    read: Callable[
        [EnvState, str], int
    ]  # (state, text) -> action; ValueError if it is no move on any board of the game
    columns: list[str]  # labels of the board's columns, from the left
    rows: list[str]  # labels of its rows, from the top


def make_notation(environment: Environment, kind: str = STANDARD) -> Notation:
    """The notation of a game; `kind` is STANDARD or ACTION."""
    name, (height, width) = environment.name, environment.board.shape
    downward = [str(row + 1) for row in range(height)]
    columns, rows = list(LETTERS[:width]), downward
    if name.startswith("go_"):
        columns, rows = [letter.upper() for letter in GO_LETTERS[:width]], downward[::-1]
    elif name in chess_moves.SIZES:
        rows = downward[::-1]
    elif name in ("shogi", "animal_shogi"):
        columns = [str(width - column) for column in range(width)]
    write, read = _moves(name, environment, columns, rows) if kind == STANDARD else _numbers(environment.num_actions)
    return Notation(write, read, columns, rows)


def _moves(name: str, environment: Environment, columns: list[str], rows: list[str]) -> tuple[Callable, Callable]:
    if name == "connect_four":
        return _words(columns)
    if name in chess_moves.SIZES:
        return chess_moves.writer(name), chess_moves.reader(name)
    if name in ("shogi", "animal_shogi"):
        return _numbers(environment.num_actions)
    cells = [column + row for row in rows for column in columns]
    return _words(cells + {"hex": [HEX_SWAP], "tic_tac_toe": []}.get(name, [PASS]))


def _words(names: list[str]) -> tuple[Callable, Callable]:
    """One word an action."""
    actions = {word.lower(): action for action, word in enumerate(names)}
    if HEX_SWAP in actions:
        actions["swap"] = actions[HEX_SWAP]

    def read(state: EnvState, text: str) -> int:
        del state
        if text.lower() not in actions:
            raise ValueError("invalid coordinate")
        return actions[text.lower()]

    return lambda state, action: names[action], read


def _numbers(num_actions: int) -> tuple[Callable, Callable]:
    """pgx's own numbers."""

    def read(state: EnvState, text: str) -> int:
        del state
        if not re.fullmatch("[0-9]{1,6}", text) or int(text) >= num_actions:
            raise ValueError(f"invalid action: not a number from 0 to {num_actions - 1}")
        return int(text)

    return lambda state, action: str(action), read
