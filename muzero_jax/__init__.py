"""MuZero as one accelerated JAX program: pgx games, mctx search, Flax networks, an Optax learner.

`muzero_jax.load("runs/x")` gives a trained agent to ask for moves; see `play.trained_agent`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muzero_jax.play.trained_agent import load

__version__ = "0.1.0"
__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """Imports what `load` needs when it is first asked for: importing the package alone starts no JAX."""
    if name == "load":
        from muzero_jax.play.trained_agent import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
