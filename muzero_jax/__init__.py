"""MuZero as one accelerated JAX program: pgx games, our own tree search, Flax networks, Optax.

- `train(config, "runs/x")` trains an agent; `presets.preset("hex", 5)` gives the `Config` with which a game begins.
- `load("runs/x")` gives an `Agent`, to ask for moves; `make_environment("hex", board_size=5)` gives a game.
- `Algorithm` and `Term`, a loss, are what a file of your own changes; `Game` is a game of your own with its notation.
- `notebook.setup()` is what a notebook begins with.
- `check` says what is wrong with a game, a network or an algorithm of your own.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muzero_jax import presets
    from muzero_jax.algorithm import Algorithm
    from muzero_jax.apps import notebook
    from muzero_jax.apps.check.check import check
    from muzero_jax.apps.play.trained_agent import TrainedAgent as Agent
    from muzero_jax.apps.play.trained_agent import load
    from muzero_jax.apps.train import train
    from muzero_jax.games.environment import make_environment
    from muzero_jax.games.game import Game
    from muzero_jax.learning.losses import Term
    from muzero_jax.storage.config import Config

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "Algorithm",
    "Config",
    "Game",
    "Term",
    "check",
    "load",
    "make_environment",
    "notebook",
    "presets",
    "train",
]

_HOMES = {
    "Agent": "apps.play.trained_agent:TrainedAgent",
    "Algorithm": "algorithm:Algorithm",
    "Config": "storage.config:Config",
    "Game": "games.game:Game",
    "Term": "learning.losses:Term",
    "check": "apps.check.check:check",
    "load": "apps.play.trained_agent:load",
    "make_environment": "games.environment:make_environment",
    "notebook": "apps.notebook:",
    "presets": "presets:",
    "train": "apps.train:train",
}


def __getattr__(name: str) -> Any:
    """Imports what a name needs when it is first asked for: importing the package alone starts no JAX."""
    if name in _HOMES:
        return resolve_name(f"muzero_jax.{_HOMES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return sorted(["__version__", *__all__])
