"""MuZero as one accelerated JAX program: pgx games, our own tree search, Flax networks, Optax.

- `train(config, "runs/x")` trains an agent; `presets.preset("hex", 5)` returns the `Config` to start from.
- `load("runs/x")` returns an `Agent`, which chooses moves; `make_environment("hex", board_size=5)` returns a game.
- `Algorithm` is what a file of your own changes, and `Term` is a loss; `Game` is your own game with its notation.
- `notebook.setup()` is the first line of a notebook.
- `check` finds faults in your own game, network or algorithm, and `doctor("runs/x")` says why a run does not learn.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muzero_jax import presets
    from muzero_jax.agent import Agent, load
    from muzero_jax.algorithm import Algorithm
    from muzero_jax.apps import notebook
    from muzero_jax.apps.check.check import check
    from muzero_jax.apps.doctor.doctor import doctor
    from muzero_jax.apps.train import train
    from muzero_jax.config.config import Config
    from muzero_jax.games.environment import make_environment
    from muzero_jax.games.game import Game
    from muzero_jax.learning.losses import Term

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "Algorithm",
    "Config",
    "Game",
    "Term",
    "check",
    "doctor",
    "load",
    "make_environment",
    "notebook",
    "presets",
    "train",
]

_HOMES = {
    "Agent": "agent:Agent",
    "Algorithm": "algorithm:Algorithm",
    "Config": "config.config:Config",
    "Game": "games.game:Game",
    "Term": "learning.losses:Term",
    "check": "apps.check.check:check",
    "doctor": "apps.doctor.doctor:doctor",
    "load": "agent:load",
    "make_environment": "games.environment:make_environment",
    "notebook": "apps.notebook:",
    "presets": "presets:",
    "train": "apps.train:train",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that importing the package does not start JAX."""
    if name in _HOMES:
        return resolve_name(f"muzero_jax.{_HOMES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return sorted(["__version__", *__all__])
