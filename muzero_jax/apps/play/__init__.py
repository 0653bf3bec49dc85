"""Playing against a trained agent: a game in progress, its notation, and the protocols of people and of programs."""

from muzero_jax import __version__

VERSION = __version__
