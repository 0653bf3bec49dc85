"""Connect Four."""

from muzero_jax.games.game import Game
from muzero_jax.games.layout import Layout
from muzero_jax.games.sides import by_stones
from muzero_jax.games.view import View, numbered_stones, rows_of

COLOURS = "red", "yellow"
HEIGHT, WIDTH = 6, 7

CONNECT_FOUR = Game(
    "connect_four",
    "Connect Four",
    goal="A stone falls to the lowest free cell of its column. Four in a row win: level, upright or diagonal.",
    # A column's action is the number of its top cell.
    layout=Layout(symmetries=lambda cells: [cells, cells[:, ::-1]]),
    view=View(numbered_stones(HEIGHT, WIDTH), colours=COLOURS, inks=COLOURS, page="connect_four"),
    sides=by_stones(lambda board: board[:WIDTH] < 0),
    winning_cells=rows_of(4),
)
