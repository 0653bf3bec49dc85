"""Games from files, with their moves as text: SGF, or one game a line.

docs/offline.md describes the text format.
"""

import re
from pathlib import Path
from typing import NamedTuple

from muzero_jax.games import sgf

SUFFIXES = ".sgf", ".txt"
"""The endings of the files that a folder is searched for; a file named directly may have any ending."""
_BETWEEN = re.compile(r"[\s,\[\]]+")
_RESULT = re.compile(r"1-0|0-1|1/2-1/2|\*|[BW]\+\S*|draw|resign", re.IGNORECASE)


class StoredGame(NamedTuple):
    """The moves of one game, from its opening on."""

    name: str  # the file and number: "games.txt, game 3"
    moves: tuple[str, ...]
    colours: tuple[int, ...] | None = None  # who made each move, if the file says it: 0 is the first player
    size: int | None = None  # of the board, if the file says it

    @property
    def is_sgf(self) -> bool:
        """Whether its moves are in SGF's notation."""
        return self.colours is not None


def read_games(source: Path) -> list[StoredGame]:
    """All games with at least one move, from a file or from every SGF and text file in a folder and its subfolders.

    Raises ValueError if there are none, or if a file ending in .sgf is not SGF.
    """
    files = [source]
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    elif not source.is_file():
        raise ValueError(f"there is no {source}; name the folder of a run, or games in a file or a folder")
    games = [game for file in files for game in _read(file) if game.moves]
    if not games:
        what = "games in files *.sgf or *.txt, nor is it a run" if source.is_dir() else "moves of a game"
        raise ValueError(f"{source} holds no {what}; docs/offline.md explains the formats")
    return games


def _read(file: Path) -> list[StoredGame]:
    text = file.read_text(encoding="utf-8", errors="replace")
    return _read_sgf(file, text) if file.suffix.lower() == ".sgf" else _read_lines(file, text)


def _read_lines(file: Path, text: str) -> list[StoredGame]:
    """One game a line; results are dropped, because the rules imply them."""
    lines = (line.strip() for line in text.splitlines())
    games = []
    for number, line in enumerate((line for line in lines if line and not line.startswith("#")), start=1):
        words = [word for word in _BETWEEN.split(line) if word]
        while words and _RESULT.fullmatch(words[-1]):
            words.pop()
        games.append(StoredGame(f"{file}, game {number}", tuple(words)))
    return games


def _read_sgf(file: Path, text: str) -> list[StoredGame]:
    games = []
    for number, game in enumerate(sgf.split(text) or [text], start=1):
        name = f"{file}, game {number}"
        try:
            size, moves = sgf.read(game)
        except ValueError as error:
            raise ValueError(f"{name}: {error}; correct or remove the file") from None
        if any(move.is_setup for move in moves):
            raise ValueError(f"{name}: it begins with stones that were set up, instead of an empty board; remove it")
        played = [move for move in moves if move.text.lower() != "resign"]
        colours = tuple(move.colour for move in played)
        games.append(StoredGame(name, tuple(move.text for move in played), colours, size))
    return games
