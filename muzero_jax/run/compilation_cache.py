"""Keeps compiled programs on disk, so that the second start of a command takes seconds.

The folder is JAX_COMPILATION_CACHE_DIR, or else in the user's cache folder, with a subfolder for each version of jaxlib
and each machine, because a program that was compiled for another CPU may crash.
"""

import hashlib
from importlib.metadata import version

import jax
import platformdirs

from muzero_jax.run.machine import processor

MOST_BYTES = 1 << 30
"""The limit above which JAX deletes the programs that were used longest ago. Those of one run take some 3 MiB."""
SHORTEST_SECONDS = 0.1
"""Programs that compile faster are not kept, because there are hundreds."""

HOW_LONG = "10 to 60 s the first time, seconds from then on"
"""How long compiling takes, for messages."""


def enable() -> None:
    """Keeps programs from now on; if the folder is not writable, JAX warns and starts stay slow."""
    if not jax.config.jax_compilation_cache_dir:  # type: ignore
        name = f"jaxlib-{version('jaxlib')}-{hashlib.sha256(processor().encode()).hexdigest()[:12]}"
        jax.config.update("jax_compilation_cache_dir", str(platformdirs.user_cache_path("muzero_jax") / name))
        # Not for a folder given to JAX: if it was filled without a limit, it lacks the times of use that a limit needs.
        jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_SECONDS)
