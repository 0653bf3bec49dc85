"""A run from a script or a notebook: `muzero_jax.train(config, "runs/x", minutes=5)`.

Importing this starts no JAX backend, so that a CPU still becomes a device for each core.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from muzero_jax.arithmetic import compilation_cache, devices
from muzero_jax.run import budget, display
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.validation import validate

if TYPE_CHECKING:
    from muzero_jax.run.runner import Result


@display.output_may_end()
def train(
    config: Config,
    run_dir: str | Path,
    *,
    minutes: float | None = None,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
    on_metrics: Callable[[dict[str, Any]], object] | None = None,
    on_evaluation: Callable[[dict[str, Any]], object] | None = None,
) -> "Result":
    """Trains an agent in `run_dir`, on as many devices as share its games and batches evenly.

    Args:
      minutes: the budget, in place of those that the config names.
      overwrite: delete the run in `run_dir` first.
      say, on_metrics, on_evaluation: called as `runner.train` says; `say=lambda line: None` prints nothing.

    Raises ValueError in one sentence, as `runner.train` does, or for a config that makes no run.
    """
    if minutes is not None:
        config = replace(config, **dict.fromkeys(budget.FIELDS) | {"minutes": minutes})
    config, run_dir = validate(configs.with_absolute_paths(config)), Path(run_dir)
    run_directory.check(run_dir, overwrite=overwrite)
    available, cores = devices.configure_devices(), devices.usable_cores()
    from muzero_jax.run import runner  # only now, because pgx starts JAX when it is imported

    if jax.default_backend() == "cpu" and available < cores:
        first = "muzero_jax.arithmetic.devices.configure_devices()"
        say(f"JAX has begun with {available} of {cores} cores; to use all of them, call {first} before anything else")
    compilation_cache.enable()
    mesh = devices.make_mesh(devices.largest_divisor(available, *config.shared_sizes))
    session = Session(overwrite=overwrite)
    return runner.train(config, session, run_dir, mesh, say, on_metrics=on_metrics, on_evaluation=on_evaluation)
