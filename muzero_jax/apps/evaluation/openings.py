"""Opening values: an agent's value of every first move of Hex, and how many agree with the solved results.

The swap is not allowed here, so that a first move is judged as a move and not as an offer to swap. The agent never
meets such positions in self-play, so it must generalise. The share of right values, the opening-value accuracy, needs
no opponent and rises with training.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from muzero_jax.agent import Agent
from muzero_jax.games.hex import without_swap
from muzero_jax.games.notation import LETTERS
from muzero_jax.ops.mesh import placed_shapes
from muzero_jax.types import Environment, EnvState, Params, SearchRoots

WIDTH, SHIFT = 7, 4
"""Characters of a value, and by which each row is indented: half of a cell."""
_ROWS = {
    3: "LLW WWW WLL",
    4: "LLLW LLWL LWLL WLLL",
    5: "LLLLW LWWWW LWWWL WWWWL WLLLL",
    6: "LLLLLW LWWWWW WWWWWW WWWWWW WWWWWL WLLLLL",
    7: "LLLLLLW LLWLWWW LWWWWWL WWWWWWW LWWWWWL WWWLWLL WLLLLLL",
}
WINS = {size: np.array([[cell == "W" for cell in row] for row in rows.split()]) for size, rows in _ROWS.items()}
"""By board size: [size, size] bool, whether a first move there wins without the swap (with the swap, the other player
should take such a stone). 3x3 to 5x5 by an exhaustive solver, 6x6 and 7x7 by a proof-number solver. Row 1 first; the
first player joins top and bottom."""


def opening_positions(environment: Environment) -> EnvState:
    """The positions after every first move, row by row, without the swap: leaves [cells, ...]."""
    opening = environment.init(jax.random.key(0))
    move = jax.jit(environment.move)
    states = [without_swap(move(opening, jnp.int32(cell)).state) for cell in range(environment.num_actions - 1)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


class OpeningValues:
    """An agent's search of every opening on `device`, compiled once for all weights.

    Raises ValueError for a game that is not Hex.
    """

    def __init__(self, agent: Agent, device: Any = None):
        self._environment = agent.environment
        search = agent.search_fn()
        if not is_hex(self._environment):
            name = self._environment.name
            raise ValueError(f"evaluate.py openings is for Hex, and {agent.name} plays {name}; name a run of Hex")
        self._placed = SingleDeviceSharding(device or jax.devices()[0])
        self._values = jax.jit(lambda params, roots: -search(params, jax.random.key(0), roots).value)

    @functools.cached_property
    def _roots(self) -> SearchRoots:
        return jax.device_put(self._environment.roots(opening_positions(self._environment)), self._placed)

    def compile(self, params: Params) -> None:
        """Compiles for params of these shapes (or `jax.ShapeDtypeStruct`s); JAX caches the result for `values`."""
        shapes = placed_shapes(params, self._placed)
        self._values.lower(shapes, self._roots).compile()

    def values(self, params: Params) -> np.ndarray:
        """The value of every first move for the player who makes it: [size, size], in [-1, 1]."""
        values = self._values(jax.device_put(params, self._placed), self._roots)
        return np.asarray(values, np.float64).reshape(self._environment.observation_shape[:2])


def is_hex(environment: Environment) -> bool:
    """Whether this is our Hex, of any size, and not a user's own game with that name."""
    return environment.name == "hex" and environment.board is not None


def solved_openings(agent: Agent, device: Any = None) -> OpeningValues | None:
    """The agent's `OpeningValues` if its game is Hex of a solved size, else None."""
    environment = agent.environment
    is_solved = is_hex(environment) and environment.observation_shape[0] in WINS
    return OpeningValues(agent, device) if is_solved else None


def examine(agent: Agent) -> dict[str, Any]:
    """The value of every first move for the player who makes it; on solved sizes also how many are right.

    Raises ValueError for a game that is not Hex.
    """
    values = OpeningValues(agent).values(agent.params)
    known = judge(values) if len(values) in WINS else {}
    return {"size": len(values), "num_simulations": agent.num_simulations, "values": values.tolist()} | known


def judge(values: np.ndarray) -> dict[str, Any]:
    """How many values [size, size] have the sign of the solved result, and the cells of wrong values."""
    wrong = (values > 0) != WINS[len(values)]
    return {"right": int((~wrong).sum()), "solved": int(wrong.size), "wrong": np.argwhere(wrong).tolist()}


def share_right(judged: dict[str, Any]) -> float:
    """The opening-value accuracy: the share of right values."""
    return judged["right"] / judged["solved"]


def format_table(result: dict[str, Any]) -> str:
    """The values on Hex's slanted board; wrong values stand in brackets."""
    wrong = set(map(tuple, result.get("wrong", ())))
    columns = "".join(f"{letter:^{WIDTH + 1}}" for letter in LETTERS[: len(result["values"])])
    lines = ["Value of every first move for the player who makes it, without the swap:", "", f"    {columns.rstrip()}"]
    for row, values in enumerate(result["values"]):
        cells = (_show(value, (row, column) in wrong) for column, value in enumerate(values))
        lines.append(f"{row + 1:>2} {' ' * SHIFT * row} {' '.join(cells)}")
    if "right" in result:
        lines += ["", f"{result['right']} of {result['solved']} opening values are right; wrong ones stand in brackets"]
    else:
        lines += ["", f"the openings of {result['size']}x{result['size']} are not solved"]
    return "\n".join(lines)


def _show(value: float, is_wrong: bool) -> str:
    return f"[{value:+.2f}]" if is_wrong else f" {value:+.2f} "
