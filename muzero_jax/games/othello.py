"""Othello."""

from muzero_jax.games.game import Game, Points
from muzero_jax.games.layout import Layout, turns_and_mirrors
from muzero_jax.games.notation import PASS, coordinates
from muzero_jax.games.sides import by_passing
from muzero_jax.games.view import Squares, View, signed_stones, stone_difference
from muzero_jax.types import EnvState


def margin(state: EnvState, squares: Squares, komi: float) -> float | None:
    """The difference of stones; None before the end of the game."""
    del komi
    return float(stone_difference(squares)) if state.terminated else None


OTHELLO = Game(
    "othello",
    "Othello",
    goal="A stone turns over the lines of the other colour that it encloses. Most stones at the end win.",
    layout=Layout(symmetries=turns_and_mirrors),
    notation=coordinates(PASS),
    view=View(signed_stones(lambda state: int(state._x.turn)), marks_last=True, page="othello"),
    sides=by_passing("passed"),
    points=Points(margin),
    sgf_number=2,
)
