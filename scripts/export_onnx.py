"""Writes an agent's networks as ONNX: onnx/bin/python scripts/export_onnx.py agent:hex_5x5 --out networks

`initial.onnx` is the initial inference of a position, `recurrent.onnx` the recurrent inference of a move. The export
needs jax2onnx in a separate virtual environment, because of its older orbax-checkpoint (docs/play.md).
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
import jax.numpy as jnp

from muzero_jax.agent import load_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.algorithm.playing import unbounded_simulator
from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.config.fields import Fact
from muzero_jax.own.trust import Trust
from muzero_jax.run.machine import configure_devices
from muzero_jax.types import SearchRoots

OF_ROOT = ("prior", "value", "embedding")
OF_MOVE = ("prior", "value", "embedding", "reward", "discount")


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Which agent to export, and where to."""

    agent: Annotated[str, Fact(positional=True)]
    """agent:NAME, a run's directory, or a .safetensors file"""
    out: Path
    """folder for the files; it is made if there is none"""
    trust_code: bool = False
    """run the Python files that somebody else's run or agent names; read these files first"""


def load(name: str, *, trust_code: bool = False) -> Any:
    """The agent, computing in float32; ValueError if its networks cannot be exported."""

    def build(config):
        return make_algorithm(replace(config, network=replace(config.network, compute_dtype="float32")))

    agent = load_agent(Path(name), build=build, trust=Trust(all_code=trust_code))
    if not agent.config.learns_dynamics or agent.model.num_codes:
        raise ValueError(f"{name} has no learned model, or one with codes of chance; choose an agent with a plain one")
    return agent


def networks(agent: Any) -> dict[str, tuple[Callable, dict[str, jax.ShapeDtypeStruct], tuple[str, ...]]]:
    """By file name: the function, its inputs and the names of its outputs, which are fields of the search's nodes.

    Priors are probabilities, and values and rewards are scalars, so a search needs no support and no softmax.
    """
    environment = agent.environment
    simulator = unbounded_simulator(agent.config, agent.environment, agent.model)
    any_action = jnp.ones((1, environment.num_actions), bool)  # unused by learned models
    no_chance = jax.random.key(0)

    def initial(observation):
        node = simulator.root(agent.params, SearchRoots(observation, any_action, None))
        return tuple(getattr(node, name) for name in OF_ROOT)

    def recurrent(parent, action):
        node = simulator.expand(agent.params, no_chance, action, parent)
        return tuple(getattr(node, name) for name in OF_MOVE)

    observation = jax.ShapeDtypeStruct((1, *environment.observation_shape), jnp.float32)  # bytes as shares of 255
    parent = jax.eval_shape(initial, observation)[OF_ROOT.index("embedding")]
    move = {"parent": parent, "action": jax.ShapeDtypeStruct((1,), jnp.int32)}
    return {"initial": (initial, {"observation": observation}, OF_ROOT), "recurrent": (recurrent, move, OF_MOVE)}


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = parser.read(Arguments, arguments, __doc__)
    configure_devices(1, "cpu")
    agent = load(a.agent, trust_code=a.trust_code)
    if find_spec("jax2onnx") is None:
        raise ValueError("the export needs jax2onnx, in a separate environment; docs/play.md has the commands")
    from jax2onnx import to_onnx  # pyright: ignore[reportMissingImports]

    a.out.mkdir(parents=True, exist_ok=True)
    for name, (function, inputs, outputs) in networks(agent).items():
        file = a.out / f"{name}.onnx"
        to_onnx(function, list(inputs.values()), input_names=list(inputs), output_names=list(outputs),
                return_mode="file", output_path=str(file))  # fmt: skip
        print(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "close other programs"))
