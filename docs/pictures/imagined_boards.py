"""Draws the real and imagined boards of docs/model.md: python docs/pictures/imagined_boards.py

It also prints after which first stones each agent imagines the swap wrongly.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.agent import Agent
from muzero_jax.agent.loading import load
from muzero_jax.apps.play import board_picture, position, shapes
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.looks import HEX
from muzero_jax.apps.play.position import BLACK, Position
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.notation import SWAP

PICTURE = Path(__file__).with_name("imagined-boards.svg")
AGENTS = ("hex", "hex_5x5")
SIZE = 5
MOVES = ("b1", SWAP, "c3", "b5", "d4", "d3", "c4", "c5")
"""After the swap, the policy head's first choices of `hex`."""
HEADS = {0: "at the beginning", 1: "after b1", 2: "after the swap", 4: "after 4 moves", 8: "after 8 moves"}
LOOK = HEX._replace(margins=(0.8, 0.85, 0.8, 0.85))
CELL, NAMES, HEAD, CAPTION, GAP = 26, 84, 32, 30, 2
"""Pixels: a cell, the rows' names, the columns' names, the line below a board, and between boards."""
UNSURE = 0.02
"""The least probability, and distance from certainty, that is written on a stone."""


def games(moves: Sequence[str], agent: Agent) -> list[Position]:
    """The real position before the first move and after each."""
    notation = make_notation(agent.environment)
    found = [position.new_game(agent.environment)]
    for move in moves:
        found.append(found[-1].play(notation.read(found[-1].state, move)))
    return found


def imagined(agent: Agent, line: Sequence[Position]) -> list[np.ndarray]:
    """What the model imagines along the moves from the first position: probabilities of the observation's bits."""
    model = agent.model
    output = model.initial_inference(agent.params, jnp.asarray(line[0].state.observation)[None])
    outputs = [output]
    for real in line[1:]:
        output = model.recurrent_inference(agent.params, output.embedding, jnp.array([real.last_action]))
        outputs.append(output)
    return [np.asarray(jax.nn.sigmoid(model.reconstruct(agent.params, o.embedding)[0])) for o in outputs]


def wrong_cells(bits: np.ndarray, real: Position) -> np.ndarray:
    """The cells [size, size] whose content is wrong after rounding."""
    return ((bits > 0.5) != np.asarray(real.state.observation))[..., :2].any(-1)


def drawing(real: Position) -> BoardDrawing:
    """The real board without labels."""
    notation = make_notation(real.environment)._replace(columns=[], rows=[])
    return BoardDrawing(LOOK, real, notation)


def stones(board: BoardDrawing, bits: np.ndarray, wrong: np.ndarray) -> Iterator[str]:
    """Stones as opaque as they are probable, with the number if it is not nearly 0 or 1; wrong cells are outlined."""
    own, other = ("black", "white") if board.position.colour_to_move == BLACK else ("white", "black")
    for cell in board.every:
        at = board.centre(cell)
        for ink, probability in zip((own, other), bits[cell][:2], strict=True):
            if probability >= UNSURE:
                yield shapes.element("g", shapes.circle(at, LOOK.radius, f"stone {ink}"), opacity=float(probability))
            if UNSURE <= probability <= 1 - UNSURE:
                yield shapes.text(f"{probability:.0%}", at, "number", 0.36)
        if wrong[cell]:
            yield shapes.path("choice", board.outline(cell, 0.06))


def text(content: str, x: float, y: float, anchor: str = "middle", weight: str = "400") -> str:
    """A line of text of the picture."""
    return shapes.element("text", content, x=x, y=y, text_anchor=anchor, font_weight=weight)


def main() -> None:
    """Three rows: the game, and what two agents imagine of it."""
    agents = [load(f"agent:{name}", board_size=SIZE) for name in AGENTS]
    line = games(MOVES, agents[0])
    dreams = [imagined(agent, line) for agent in agents]
    left, top, right, bottom = drawing(line[0]).bounds
    wide, high = (right - left) * CELL, (bottom - top) * CELL
    tops = [HEAD + row * (high + 8) + max(0, row - 1) * (CAPTION - 8) for row in range(3)]
    parts = []
    for column, (depth, head) in enumerate(HEADS.items()):
        board = drawing(line[depth])
        x = NAMES + column * (wide + GAP)
        wrongs = [wrong_cells(dream[depth], line[depth]) for dream in dreams]
        drawn = [board.above(), *("".join(stones(board, d[depth], w)) for d, w in zip(dreams, wrongs, strict=True))]
        rights = (f"{SIZE**2 - wrong.sum()} of {SIZE**2} cells right" for wrong in wrongs)
        captions = ["", *(said if depth else "seen, not imagined" for said in rights)]
        parts.append(text(head, x + wide / 2, 20, weight="700"))
        for y, content, caption in zip(tops, drawn, captions, strict=True):
            parts.append(board.layer(board.ground() + content, x=x, y=y, width=wide, height=high))
            parts.append(text(caption, x + wide / 2, y + high + 14))
    for y, names in zip(tops, (("the game",), *((name, "imagines") for name in AGENTS)), strict=True):
        parts += [text(name, 8, y + high / 2 + 18 * index, "start", "700") for index, name in enumerate(names)]
    width = NAMES + len(HEADS) * (wide + GAP)
    height = tops[-1] + high + CAPTION
    picture = board_picture.framed("\n".join(parts), width, height, style=".edge-name{display:none}")
    PICTURE.write_text(picture.svg, encoding="utf-8")
    report(agents, dreams, line)


def report(agents: Sequence[Agent], dreams: Sequence[list[np.ndarray]], line: Sequence[Position]) -> None:
    """Prints the picture's least certain cells, and the first stones whose swap is imagined wrongly."""
    cells = make_notation(agents[0].environment)
    for name, agent, dream in zip(AGENTS, agents, dreams, strict=True):
        for depth, real in enumerate(line):
            truth = np.asarray(real.state.observation)[..., :2]
            of_truth = np.where(truth, dream[depth][..., :2], 1 - dream[depth][..., :2])
            wrong = wrong_cells(dream[depth], real).sum()
            print(f"{name}, depth {depth}: {wrong} cells wrong, least probability of the truth {of_truth.min():.4f}")
        names = [cells.write(line[0].state, cell) for cell in range(SIZE**2)]
        lines = {stone: games((stone, SWAP), agent) for stone in names}
        wrong = [stone for stone, real in lines.items() if wrong_cells(imagined(agent, real)[-1], real[-1]).any()]
        print(f"{name}: the swap is imagined wrongly after {len(wrong)} of {SIZE**2} stones: {' '.join(wrong)}")


if __name__ == "__main__":
    main()
