"""Writes an agent's networks as ONNX: python scripts/export_onnx.py agent:hex_5x5 --out hex_5x5_page

`initial.onnx` judges a position, `recurrent.onnx` imagines a move. For Hex and Connect Four `index.html` beside them
plays in a browser, opened from the disk, without a server (docs/play.md).
"""

import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.apps.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import tyro

from muzero_jax.apps.commands import flag_reader
from muzero_jax.apps.commands.command_line import report_errors

GAMES = ("hex", "connect_four")
"""Those that the page has the rules of."""
BUDGETS = (16, 32, 64, 128, 256)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Which agent, and where to."""

    agent: Annotated[str, tyro.conf.Positional]
    """agent:NAME, a run's directory, or a .safetensors file"""
    out: Path
    """folder for the files; it is made where there is none"""
    page: bool = True
    """write the page, too"""
    trust_code: bool = False
    """run the Python files that somebody else's run or agent names; read them first"""
    runtime: Path | None = None
    """onnxruntime-web as npm packs it; default: npm fetches it"""


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = flag_reader.read(Arguments, arguments, description=__doc__)
    if find_spec("onnx") is None:
        raise ValueError("the export needs the package onnx: pip install -e '.[onnx]' -c constraints.txt")
    if a.runtime and not a.runtime.is_file():
        raise ValueError(f"there is no file {a.runtime}; leave --runtime out, and npm fetches it")
    from muzero_jax.ops import devices

    devices.configure_devices(1, "cpu")
    agent = load(a.agent, trust_code=a.trust_code)
    check(agent.config, a.page)
    a.out.mkdir(parents=True, exist_ok=True)
    networks = {name: model.SerializeToString() for name, model in export(agent).items()}
    for name, data in networks.items():
        (a.out / f"{name}.onnx").write_bytes(data)
        print(f"wrote {a.out / name}.onnx ({len(data) / 1e6:.1f} MB)")
    if a.page:
        from scripts.browser import page

        page.write(a.out, description(agent), networks, a.runtime)
        print(f"wrote {a.out / 'index.html'}: open it in a browser")
    return 0


def load(name: str, *, trust_code: bool = False) -> Any:
    """The agent, computing in float32 whatever it was trained in: a graph is for any device."""
    from muzero_jax import agent as agents
    from muzero_jax import building
    from muzero_jax.own.trust import Trust

    def build(config):
        network = replace(config.network, compute_dtype="float32")
        return building.build(replace(config, network=network))

    return agents.load_agent(Path(name), build=build, trust=Trust(all_code=trust_code))


def check(config: Any, page: bool) -> None:
    """Raises ValueError for an agent whose model or search the files cannot hold."""
    if config.model == "rules":
        raise ValueError(
            "the agent plans with the ground-truth model, so it has no dynamics to export; choose a learned model"
        )
    if page and config.env not in GAMES:
        raise ValueError(f"the page knows the rules of {' and '.join(GAMES)} alone; add --no-page for the networks")
    if page and (config.algorithm.file or config.search.policy != "gumbel"):
        raise ValueError("the page searches as Gumbel MuZero over all actions; add --no-page for the networks alone")


def export(agent: Any) -> dict[str, Any]:
    """The two networks as ONNX models: what the search's simulator says of a root, and of a move.

    Priors are probabilities, values and rewards scalars, so a search needs no support and no softmax.
    """
    import jax
    import jax.numpy as jnp

    from muzero_jax.building.searches import unbounded_simulator
    from muzero_jax.types import SearchRoots
    from scripts.browser import graph

    environment, params = agent.environment, agent.params
    if agent.model.num_codes:
        raise ValueError("the agent has codes of chance, and the exported search walks moves alone; choose another")
    simulator = unbounded_simulator(agent.config, agent.world)
    of_root = ("prior", "value", "embedding")
    any_action, no_chance = jnp.ones((1, environment.num_actions), bool), jax.random.key(0)  # no learned model asks

    def initial(observation):
        node = simulator.root(params, SearchRoots(observation, any_action, None))
        return {name: getattr(node, name) for name in of_root}

    def recurrent(parent, action):
        node = simulator.expand(params, no_chance, action, parent)
        return {name: getattr(node, name) for name in (*of_root, "reward", "discount")}

    observation = jax.ShapeDtypeStruct((1, *environment.observation_shape), jnp.float32)
    parent = jax.eval_shape(initial, observation)["embedding"]
    action = jax.ShapeDtypeStruct((1,), jnp.int32)
    return {
        "initial": graph.export(initial, {"observation": observation}, environment.num_actions),
        "recurrent": graph.export(recurrent, {"parent": parent, "action": action}, environment.num_actions),
    }


def description(agent: Any) -> dict[str, Any]:
    """What the page must know of the agent besides its networks."""
    from muzero_jax.apps.play.position import new_game
    from muzero_jax.apps.play.thinking import WHY_ANOTHER
    from muzero_jax.apps.play.web_session import board_state
    from muzero_jax.building.searches import num_considered
    from muzero_jax.games.catalogue import make_notation
    from muzero_jax.storage import agent_file

    config, environment, search = agent.config, agent.environment, agent.config.search
    opening, notation = new_game(environment), make_notation(environment)
    state = board_state(opening, notation) | {"num_simulations": agent.num_simulations}
    name, budgets = Path(agent.name.removeprefix(agent_file.PREFIX)).stem, sorted({*BUDGETS, agent.num_simulations})
    return {
        "state": state | {"goal": f"{state['goal']} You play against {name}.", "budgets": budgets},
        "moves": [notation.write(opening.state, action) for action in range(environment.num_actions)],
        "why": WHY_ANOTHER,
        "game": environment.name,
        "size": environment.observation_shape[0],
        "observationShape": [1, *environment.observation_shape],
        "considered": {budget: num_considered(config, environment, budget) for budget in budgets},
        "improvedValue": search.improved_value,
        "bound": agent.model.bound,
        "sigma": {
            "valueScale": search.value_scale,
            "maxvisitInit": search.maxvisit_init,
            "rescaleValues": search.rescale_values,
        },
    }


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "close other programs"))
