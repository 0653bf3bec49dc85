"""A game that the agent plays against itself, as one animated SVG: the board with the search policy at every move.

A browser, a notebook and a README show it like any picture, without scripts. Readers that prefer reduced motion, or do
not animate SVG, show the last picture.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from muzero_jax.agent.analysis import Analysis
from muzero_jax.apps.play import board_picture
from muzero_jax.apps.play.board_picture import BoardPicture, framed
from muzero_jax.apps.play.drawing import signed
from muzero_jax.apps.play.position import Position
from muzero_jax.games.notation import Notation

SECONDS, LAST_SECONDS, MOST_SECONDS = 1.4, 4.0, 120.0
"""The longest time for a position; the time of the last one; the longest time of all others together."""
MOST_MOVES = 20_000
MOST_PICTURES = 300
Analyse = Callable[[Position], Analysis]


def film(analyse: Analyse, position: Position, notation: Notation, most_pictures: int = MOST_PICTURES) -> BoardPicture:
    """The game from `position` to its end, at most `MOST_MOVES` moves.

    Of a game with more than `most_pictures` moves, that many are shown, evenly spaced, and the end. Of an arcade game
    from pixels, the first `most_pictures` moves are shown at the speed of play.
    """
    pace = position.game.view.pace
    moments = list(islice(_moments(analyse, position), most_pictures if pace else MOST_MOVES))
    count = min(len(moments), most_pictures)
    shown = [moments[index * len(moments) // count] for index in range(count)]
    end = moments[-1][0].play(moments[-1][1].action) if moments else position
    last = board_picture.draw(end, notation, title=end.result or "to be continued")
    return animate([*(_picture(*moment, notation) for moment in shown), last], pace / 1000 if pace else SECONDS)


def _moments(analyse: Analyse, position: Position) -> Iterator[tuple[Position, Analysis]]:
    """Every position in which a move is made, with the agent's analysis."""
    while not position.is_over:
        found = analyse(position)
        yield position, found
        position = position.play(found.action)


def _picture(position: Position, found: Analysis, notation: Notation) -> BoardPicture:
    move = notation.write(position.state, position.game.same_as.get(found.action, found.action))
    if position.environment.num_players == 1:
        title = f"{position.total:,.10g} points: {move}, {signed(found.value)} expected"
    else:
        to_move = position.game.view.inks[position.colour_to_move]
        title = f"{to_move} thinks: {move}, value {signed(found.value)}"
    return board_picture.draw(position, notation, policy=found.policy, title=title)


def animate(pictures: Sequence[BoardPicture], most_seconds: float = SECONDS) -> BoardPicture:
    """Pictures one after another in a loop, as large as the largest; a ground that all share is drawn once."""
    seconds = min(most_seconds, MOST_SECONDS / max(1, len(pictures) - 1))
    total = seconds * (len(pictures) - 1) + LAST_SECONDS
    width, height = (max(getattr(picture, side) for picture in pictures) for side in ("width", "height"))
    grounds = {picture.ground for picture in pictures}
    ground = grounds.pop() if len(grounds) == 1 else ""
    style = (
        f".moment{{visibility:hidden;animation:{total:.4f}s step-end infinite shown}}"
        f".moment:last-child{{visibility:visible;animation-name:end}}"
        f"@keyframes shown{{0%{{visibility:visible}}{100 * seconds / total:.3f}%{{visibility:hidden}}}}"
        f"@keyframes end{{0%{{visibility:visible}}{100 * LAST_SECONDS / total:.3f}%{{visibility:hidden}}}}"
        f"@media (prefers-reduced-motion: reduce){{.moment{{animation:none}}}}"
    )
    frames = [
        f'<g class="moment" style="animation-delay:{seconds * number - total * (number > 0):.4f}s">'
        f"{picture.above if ground else picture.ground + picture.above}</g>"
        for number, picture in enumerate(pictures)
    ]
    return framed("\n".join(frames), width, height, ground, style)
