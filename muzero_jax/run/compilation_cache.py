"""Compiled programs kept on disk between processes, so that the second start of a command takes seconds.

They lie in the user's cache folder, in a subfolder for each version of jaxlib and each machine, because a program that
was compiled for another CPU may crash; or where JAX_COMPILATION_CACHE_DIR says.
"""

import hashlib
from importlib.metadata import version

import jax
import platformdirs

from muzero_jax.ops.devices import machine

MOST_BYTES = 1 << 30
"""Beyond, JAX deletes what was used longest ago. A run's programs take some 3 MiB."""
SHORTEST_SECONDS = 0.1
"""Programs that compile faster are not kept: there are hundreds."""

HOW_LONG = "10 to 60 s the first time, seconds from then on"
"""The words of a command that compiles."""


def enable() -> None:
    """Keeps programs from now on; JAX warns if nothing can be written there, and starts stay slow."""
    if not jax.config.jax_compilation_cache_dir:  # type: ignore
        name = f"jaxlib-{version('jaxlib')}-{hashlib.sha256(machine().encode()).hexdigest()[:12]}"
        jax.config.update("jax_compilation_cache_dir", str(platformdirs.user_cache_path("muzero_jax") / name))
        # Not for a folder that JAX was given: what it filled without a limit lacks the times of use that one asks for.
        jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_SECONDS)
