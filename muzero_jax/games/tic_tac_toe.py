"""Tic-tac-toe."""

from muzero_jax.games.game import Game
from muzero_jax.games.layout import Layout, turns_and_mirrors
from muzero_jax.games.notation import coordinates
from muzero_jax.games.sides import by_stones
from muzero_jax.games.view import View, numbered_stones, rows_of

TIC_TAC_TOE = Game(
    "tic_tac_toe",
    "Tic-tac-toe",
    goal="Three of your marks in a row, column or diagonal win.",
    layout=Layout(symmetries=turns_and_mirrors),
    notation=coordinates(),
    view=View(numbered_stones(3, 3), colours=("X", "O"), inks=("red", "blue"), marks_last=True, page="tic_tac_toe"),
    sides=by_stones(lambda board: board < 0),
    winning_cells=rows_of(3),
)
