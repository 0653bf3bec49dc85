"""A game that the agent plays against itself, as one SVG that moves: what search thinks at every move, over the board.

A browser, a notebook and a README show it as they show a picture; nothing needs to run.
"""

from collections.abc import Callable, Iterator, Sequence

from muzero_jax.games.notation import Notation
from muzero_jax.play import board_picture
from muzero_jax.play.board_picture import BoardPicture
from muzero_jax.play.position import Position
from muzero_jax.play.thinking import Analysis

SECONDS, LAST_SECONDS = 1.4, 4.0
"""How long a position is shown, and the last one."""
MOST_MOVES = 300
Analyse = Callable[[Position], Analysis]


def film(analyse: Analyse, position: Position, notation: Notation) -> BoardPicture:
    """The game from `position` to its end, `MOST_MOVES` moves at most; ValueError for a game without a board."""
    return animate(list(_pictures(analyse, position, notation)))


def _pictures(analyse: Analyse, position: Position, notation: Notation) -> Iterator[BoardPicture]:
    for _ in range(MOST_MOVES):
        if position.is_over:
            break
        found = analyse(position)
        to_move = position.game.view.inks[position.colour_to_move]
        move = notation.write(position.state, found.action)
        title = f"{to_move} thinks: {move}, value {found.value:+.2f}"
        yield board_picture.draw(position, notation, policy=found.policy, title=title)
        position = position.play(found.action)
    yield board_picture.draw(position, notation, title=position.result or "")


def animate(pictures: Sequence[BoardPicture]) -> BoardPicture:
    """Pictures one after another, again and again, in the room of the largest."""
    total = SECONDS * (len(pictures) - 1) + LAST_SECONDS
    width, height = (max(getattr(picture, side) for picture in pictures) for side in ("width", "height"))
    shown = []
    for number, picture in enumerate(pictures):
        begin = SECONDS * number / total
        end = 1.0 if number == len(pictures) - 1 else SECONDS * (number + 1) / total
        # Where nothing moves (a printed page), the last picture stands.
        still = "inline" if number == len(pictures) - 1 else "none"
        shown.append(
            f'<g display="{still}"><animate attributeName="display" dur="{total:.2f}s" repeatCount="indefinite" '
            f'calcMode="discrete" values="none;inline;none" keyTimes="0;{begin:.4f};{end:.4f}"/>{picture.svg}</g>'
        )
    return board_picture.framed("\n".join(shown), width, height)
