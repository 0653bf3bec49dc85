"""Whether a game can be drawn and its moves be written: what a person at the board would stumble over.

Training needs neither, so a mistake there would show itself only after the run, in play.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from muzero_jax.games.catalogue import game_of, make_notation
from muzero_jax.games.states import missing_fields
from muzero_jax.games.view import INKS, PAGES, View
from muzero_jax.own.faults import describe
from muzero_jax.types import Environment


def problems(environment: Environment) -> list[str]:
    """Faults of the view and the notation in the opening, a sentence each."""
    view, init = game_of(environment).view, jax.jit(environment.init)
    if missing_fields(jax.eval_shape(init, jax.random.key(0))):
        return []  # loading the file gives such states their fields
    state = jax.device_get(init(jax.random.key(0)))
    looks = {"view.squares": _picture, "notation": _moves}
    return [
        *_names(view),
        *(found for name, look in looks.items() for found in _guarded(look, name, environment, state)),
    ]


def _guarded(look: Callable[..., Iterator[str]], what: str, *arguments: Any) -> list[str]:
    try:
        return list(look(*arguments))
    except Exception as error:  # whatever somebody's functions raise
        return [describe(error, what)]


def _names(view: View) -> Iterator[str]:
    if view.page is not None and view.page not in PAGES:
        yield f"view.page is {view.page!r}, but must be one of {', '.join(PAGES)}; or leave it out"
    if unknown := [ink for ink in view.inks if ink not in INKS]:
        yield f"view.inks has {unknown[0]!r}, but must have two of {', '.join(INKS)}"


def _picture(environment: Environment, state: Any) -> Iterator[str]:
    view = game_of(environment).view
    squares = view.squares(state)
    lengths = {len(row) for row in squares}
    if len(lengths) != 1 or 0 in lengths or not all(isinstance(cell, str) for row in squares for cell in row):
        yield "view.squares must return rows of texts, all of one length, such as [['.', 'X'], ['O', '.']]"
        return
    shape, board = (len(squares), *lengths), environment.board
    if view.page and board and shape != board.shape:
        yield (
            f"view.squares draws {shape[0]} rows of {shape[1]}, but the observation has {board.shape[0]} rows of "
            f"{board.shape[1]}; make both alike, or leave page out"
        )


def _moves(environment: Environment, state: Any) -> Iterator[str]:
    """Legal moves that do not read back as themselves."""
    notation = make_notation(environment)
    for action in np.flatnonzero(np.asarray(environment.legal(state))).tolist():
        text = notation.write(state, action)
        if (back := notation.read(state, text)) != action:
            yield f"the notation writes action {action} as {text!r} and reads that as action {back}; make both agree"
            return
