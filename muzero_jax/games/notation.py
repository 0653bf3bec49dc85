"""Moves as text: a game's standard notation, and plain action numbers for every game.

| game | a move | special |
|---|---|---|
| Go | `D4`: column letter without I, row 1 at the bottom | `pass` |
| Hex | `d4`: column letter, row 1 at the top | `swap-pieces` |
| Othello, tic-tac-toe | `d4`, as in Hex | `pass` in Othello |
| Connect Four | `d`, the column | |
| chess, Gardner chess | `e2e4`, `e7e8q`: long algebraic, as UCI has it | |
| shogi, animal shogi | `7g7f`, `8h2b+`, `P*5e`: as USI has it | |

Other games have words (backgammon, 2048, arcade games) or action numbers. Reading inverts writing and ignores case.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from muzero_jax.games.view import COLUMNS
from muzero_jax.types import EnvState

STANDARD, ACTION = "standard", "action"
"""Kinds of notation: the game's own, and action numbers."""
SWAP = "swap-pieces"
PASS = "pass"
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Write = Callable[[EnvState, int], str]
"""(state, action) -> text. It needs the state because a queen's and a pawn's move to the last rank are one action."""
Read = Callable[[EnvState, str], int]
"""(state, text) -> action; ValueError if it is no move on any board of the game."""


class Notation(NamedTuple):
    """How moves of one game are written on one board."""

    write: Write
    read: Read
    columns: list[str]  # labels of the board's columns, from the left
    rows: list[str]  # labels of its rows, from the top
    read_sgf: Callable[[str], int] | None = None  # text -> action, if SGF files write moves differently
    swap: int | None = None  # the action that exchanges the sides, if there is one
    write_sgf: Callable[[int], str] | None = None  # the inverse of `read_sgf`


MakeNotation = Callable[[tuple[int, int], int], Notation]
"""(board shape, number of actions) -> the notation of that board."""


def coordinates(*others: str, letters: str = LETTERS, upward: bool = False) -> MakeNotation:
    """Coordinates for games whose actions are the cells and then `others`; `upward` puts row 1 at the bottom."""

    def make(shape: tuple[int, int], num_actions: int) -> Notation:
        columns, rows = _labels(shape, letters, upward)
        names = [column + row for row in rows for column in columns] + list(others)
        return Notation(*words(names, {"swap": SWAP}), columns, rows, swap=num_actions - 1 if SWAP in others else None)

    return make


def of_page(page: str | None) -> MakeNotation:
    """The default notation for a kind of board, `View.page`.

    It is letters if actions are the columns of a `COLUMNS` board; coordinates if they are the cells, or the cells and
    one more, which keeps its number; else numbers.
    """

    def make(shape: tuple[int, int], num_actions: int) -> Notation:
        num_cells = shape[0] * shape[1]
        is_lettered = shape[1] <= len(LETTERS)
        if page == COLUMNS and num_actions == shape[1] and is_lettered:
            columns, rows = _labels(shape)
            return Notation(*words(columns), columns, rows)
        if page != COLUMNS and num_actions - num_cells in (0, 1) and is_lettered:
            return coordinates(*map(str, range(num_cells, num_actions)))(shape, num_actions)
        return Notation(*numbers(num_actions), [], [])  # labels would look like the names of moves

    return make


def words(
    names: list[str], keys: Mapping[str, str] = MappingProxyType({}), mistake: str = "invalid coordinate"
) -> tuple[Write, Read]:
    """One word for each action; `keys` maps further texts to words, for reading only. Others raise `mistake`."""
    actions = {word.lower(): action for action, word in enumerate(names)}
    actions |= {key: actions[word] for key, word in keys.items() if word in actions}

    def read(state: EnvState, text: str) -> int:
        del state
        if text.lower() not in actions:
            raise ValueError(mistake)
        return actions[text.lower()]

    return lambda state, action: names[action], read


def named(names: list[str], keys: Mapping[str, str] = MappingProxyType({})) -> MakeNotation:
    """`words` for a game whose board has no labels."""
    return lambda shape, num_actions: Notation(*words(names, keys, "unknown word"), [], [])


def as_written(write: Write, num_actions: int, form: str, *, like: str, optional: str = "") -> Read:
    """The inverse of `write`. If several actions have the same text, a legal one is preferred.

    Args:
      form: a regular expression that every move matches. like: examples of it.
      optional: an ending that may be left out.
    """

    def read(state: EnvState, text: str) -> int:
        if not re.fullmatch(form, text, re.IGNORECASE | re.ASCII):
            raise ValueError(f"invalid move: not of the form {like}")
        for action in (*np.flatnonzero(state.legal_action_mask).tolist(), *range(num_actions)):
            word = write(state, action).lower()
            if text.lower() in (word, word.removesuffix(optional)):
                return action
        raise ValueError("illegal move")

    return read


def numbers(num_actions: int) -> tuple[Write, Read]:
    """Moves written as the action's number."""

    def read(state: EnvState, text: str) -> int:
        del state
        if not re.fullmatch("[0-9]{1,6}", text) or int(text) >= num_actions:
            raise ValueError(f"invalid action: not a number from 0 to {num_actions - 1}")
        return int(text)

    return lambda state, action: str(action), read


def _labels(shape: tuple[int, int], letters: str = LETTERS, upward: bool = False) -> tuple[list[str], list[str]]:
    downward = [str(row + 1) for row in range(shape[0])]
    return list(letters[: shape[1]]), downward[::-1] if upward else downward
