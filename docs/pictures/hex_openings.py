"""Draws the opening values of docs/larger-boards.md beside perfect play: python docs/pictures/hex_openings.py"""

from pathlib import Path

import numpy as np

from muzero_jax.agent.loading import load
from muzero_jax.apps.evaluation import openings
from muzero_jax.apps.play import board_picture, position, shapes
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.drawing import signed
from muzero_jax.apps.play.looks import HEX
from muzero_jax.apps.play.overlay import Note, Overlay
from muzero_jax.apps.play.position import Position
from muzero_jax.games.catalogue import make_notation

PICTURE = Path(__file__).with_name("hex-openings.svg")
AGENT = "hex"
SIZES = (6, 7)
LOOK = HEX._replace(margins=(1.3, 1.1, 0.85, 0.85))
CELL, HEAD, COLUMN, MARGIN = 46, 34, 530, 8
"""Pixels: a cell, a title, from one board to the next, and around all."""
STRONGEST = 0.65
"""The value with the strongest colour."""
STYLE = ".edge-name{display:none}.board .number{font-size:10.4px}"


def value_notes(values: np.ndarray) -> dict[int, Note]:
    """A note for the value of each first move."""
    return {
        action: Note(signed(value), min(1.0, abs(value) / STRONGEST), "bad" if value < 0 else "good", value)
        for action, value in enumerate(values.ravel().tolist())
    }


def result_notes(wins: np.ndarray) -> dict[int, Note]:
    """A note for the result of each first move in perfect play."""
    return {
        action: Note("win" if is_win else "loss", 0.8, "good" if is_win else "bad", 2.0 * is_win - 1)
        for action, is_win in enumerate(wins.ravel().tolist())
    }


def drawing(empty: Position, notes: dict[int, Note]) -> BoardDrawing:
    """The empty board with a note in every cell."""
    return BoardDrawing(LOOK, empty, make_notation(empty.environment), Overlay(notes))


def main() -> None:
    """A row for each size: the search's values, and the results of perfect play."""
    parts = []
    y = 0.0
    for size in SIZES:
        agent = load(f"agent:{AGENT}", board_size=size)
        found = openings.examine(agent)
        values = np.array(found["values"])
        wrong = [tuple(cell) for cell in found["wrong"]]
        print(openings.format_table(found), f"largest wrong value: {max(abs(values[cell]) for cell in wrong):.3f}")
        empty = position.new_game(agent.environment)
        titles = (
            f"{size}x{size}: values of {AGENT}, {found['num_simulations']} simulations; "
            f"{found['right']} of {found['solved']} right",
            f"{size}x{size}: perfect play",
        )
        columns = (value_notes(values), result_notes(openings.WINS[size]))
        for x, title, notes in zip((MARGIN, MARGIN + COLUMN), titles, columns, strict=True):
            board = drawing(empty, notes)
            left, top, right, bottom = board.bounds
            wide, high = (right - left) * CELL, (bottom - top) * CELL
            marks = "".join(shapes.path("choice", board.outline(cell, 0.08)) for cell in wrong)
            content = board.ground() + board.above() + marks
            parts.append(shapes.element("text", title, "title", x=x, y=y + 22))
            parts.append(board.layer(content, x=x, y=y + HEAD, width=wide, height=high))
        y += HEAD + high + MARGIN
    picture = board_picture.framed("\n".join(parts), 2 * (MARGIN + COLUMN), y, style=STYLE)
    PICTURE.write_text(picture.svg, encoding="utf-8")


if __name__ == "__main__":
    main()
