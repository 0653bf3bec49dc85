"""Reads SGF files (FF[4]) as moves and stones, and writes a game's moves as SGF.

The main line of a game is everything up to the first closing bracket, because a tree lists its main variation first. Go
writes points as two letters; other games use their own notation, as HexGui does.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

FIRST, SECOND = 0, 1
"""Colours, by who moves first; SGF calls them black and white."""
_TOKEN = re.compile(r"\s*(?:([();])|([A-Za-z]+)|\[([^\]\\]*(?:\\.[^\]\\]*)*)\])", re.DOTALL)
_OPENED = re.compile(r"\s*\[")


class SgfMove(NamedTuple):
    """One move, or one stone of a set-up."""

    colour: int
    text: str
    is_setup: bool


def read(text: str) -> tuple[int | None, list[SgfMove]]:
    """The board's size, if stated, and the moves and stones of the main line; ValueError if the text is not SGF."""
    start = text.find("(;")
    if start < 0:
        raise ValueError("it is not SGF")
    size = None
    moves = []
    name = ""
    end = start
    while (token := _TOKEN.match(text, end)) and token[1] != ")":
        end = token.end()
        if token[2]:
            name = "".join(c for c in token[2] if c.isupper())
        elif token[3] is not None and name == "SZ":
            size = int(re.split("[:x]", token[3])[0]) if re.match("[0-9]{1,2}(:|x|$)", token[3].strip()) else None
        elif token[3] is not None and name in ("B", "W", "AB", "AW"):
            value = re.sub(r"\\(.)", r"\1", token[3]).strip()
            moves.append(SgfMove(FIRST if name.endswith("B") else SECOND, value, name.startswith("A")))
        elif token[3] is not None and name == "AE":
            raise ValueError("it takes stones off the board")
    if not token:
        raise ValueError("it is not SGF")
    return size, moves


def split(text: str) -> list[str]:
    """The text of each game of a file; most files hold one."""
    games = []
    start = text.find("(;")
    while start >= 0:
        depth = 0
        end = start
        while token := _TOKEN.match(text, end):
            end = token.end()
            depth += {"(": 1, ")": -1}.get(token[1], 0)
            if not depth:
                break
        if depth and _OPENED.match(text, end):  # an unclosed value: the rest of the file belongs to it
            end = len(text)
        games.append(text[start:end])
        start = text.find("(;", end)
    return games


def write(properties: Mapping[str, str | int | None], moves: Iterable[tuple[int, str]]) -> str:
    """A game as SGF: the root's properties, except those that are None, then (colour, text) of each move."""
    root = {"FF": 4, "CA": "UTF-8"} | dict(properties)
    head = "".join(f"{name}[{_escaped(str(value))}]" for name, value in root.items() if value is not None)
    body = "".join(f"\n;{'BW'[colour]}[{_escaped(text)}]" for colour, text in moves)
    return f"(;{head}{body})\n"


def _escaped(text: str) -> str:
    return re.sub(r"([\\\]])", r"\\\1", text)
