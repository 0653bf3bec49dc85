"""Playing against a trained agent: in the terminal, in the browser, in a notebook; and pictures of games."""

from muzero_jax import __version__

VERSION = __version__
