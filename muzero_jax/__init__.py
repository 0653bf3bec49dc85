"""MuZero as one accelerated JAX program: pgx games, our own tree search, Flax networks, Optax.

`muzero_jax.train(config, "runs/x")` trains an agent from Python; see `run.start`.
`muzero_jax.load("runs/x")` gives a trained agent to ask for moves; see `play.trained_agent`.
`muzero_jax.presets.preset("hex", 5)` gives the config with which a game begins; see `commands.presets`.
`muzero_jax.check_environment(environment)` names what is wrong with a game of your own; see `building.checks`.
`muzero_jax.check_model(model, environment)` says what is wrong with a network of your own; see `building.checks`.
`muzero_jax.check_algorithm(algorithm, world, config)` does so for an algorithm of your own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muzero_jax.building.checks.algorithm import check_algorithm
    from muzero_jax.building.checks.environment import check_environment
    from muzero_jax.building.checks.model import check_model
    from muzero_jax.commands import presets
    from muzero_jax.play.trained_agent import load
    from muzero_jax.run.start import train

__version__ = "0.1.0"
__all__ = ["check_algorithm", "check_environment", "check_model", "load", "presets", "train"]

_HOMES = {
    "check_algorithm": "muzero_jax.building.checks.algorithm",
    "check_environment": "muzero_jax.building.checks.environment",
    "check_model": "muzero_jax.building.checks.model",
    "load": "muzero_jax.play.trained_agent",
    "train": "muzero_jax.run.start",
}


def __getattr__(name: str) -> Any:
    """Imports what a name needs when it is first asked for: importing the package alone starts no JAX."""
    if name == "presets":
        return import_module("muzero_jax.commands.presets")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
