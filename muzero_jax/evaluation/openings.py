"""What an agent thinks of every first stone of Hex, and whether it is right where that is solved.

The other player answers without the swap, so a stone is worth what it is worth on the board. In its own games an agent
never met one stone without the swap, so it generalises here. No opponent is needed, and the share that is right rises
with training.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.evaluation.players import Agent
from muzero_jax.games import hex_openings
from muzero_jax.games.hex import settled
from muzero_jax.games.notation import LETTERS
from muzero_jax.types import Environment, EnvState

WIDTH, SHIFT = 7, 4
"""Characters of a value, and by how much a row leans: half of a cell."""


def first_stones(environment: Environment) -> EnvState:
    """The positions after every first stone, row by row, the swap being no longer allowed: leaves [cells, ...]."""
    opening, move = environment.init(jax.random.key(0)), jax.jit(environment.move)
    states = [settled(move(opening, jnp.int32(cell)).state) for cell in range(environment.num_actions - 1)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def examine(agent: Agent) -> dict[str, Any]:
    """The value of every first stone for who places it, and where it is solved, how many verdicts are right.

    Raises ValueError for a game that is not Hex.
    """
    environment = agent.parts.environment
    if environment.name != "hex" or environment.board is None:
        raise ValueError(f"openings are those of Hex, and {agent.name} plays {environment.name}; name a run of Hex")
    search = jax.jit(lambda *inputs: agent.search()(*inputs).value)
    replies = search(agent.params, jax.random.key(0), environment.look(first_stones(environment)))
    size = environment.board.shape[0]
    values = -np.asarray(replies, np.float64).reshape(size, size)
    wins = hex_openings.WINS.get(size)
    known = {} if wins is None else judge(values, wins)
    return {"size": size, "num_simulations": agent.num_simulations, "values": values.tolist()} | known


def judge(values: np.ndarray, wins: np.ndarray) -> dict[str, Any]:
    """How many values [size, size] have the sign of the solved verdicts, and the cells of those that have not."""
    wrong = (values > 0) != wins
    return {"right": int((~wrong).sum()), "solved": int(wins.size), "wrong": np.argwhere(wrong).tolist()}


def format_table(result: dict[str, Any]) -> str:
    """The board, leaning as Hex's does; a verdict that is wrong stands in brackets."""
    wrong = set(map(tuple, result.get("wrong", ())))
    columns = "".join(f"{letter:^{WIDTH + 1}}" for letter in LETTERS[: len(result["values"])])
    lines = ["Value of every first stone for who places it, without the swap:", "", f"    {columns.rstrip()}"]
    for row, values in enumerate(result["values"]):
        cells = (_show(value, (row, column) in wrong) for column, value in enumerate(values))
        lines.append(f"{row + 1:>2} {' ' * SHIFT * row} {' '.join(cells)}")
    if "right" in result:
        lines += ["", f"{result['right']} of {result['solved']} verdicts are right; wrong ones stand in brackets"]
    else:
        lines += ["", f"no verdicts of {result['size']}x{result['size']} are known"]
    return "\n".join(lines)


def _show(value: float, is_wrong: bool) -> str:
    return f"[{value:+.2f}]" if is_wrong else f" {value:+.2f} "
