"""`muzero_jax.train(config, "runs/x", minutes=5)` trains from a program or a notebook, like `experiments/train.py`.

Importing this module starts no JAX backend, so that `train` can still make each CPU core a device.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from muzero_jax.config.config import Config
from muzero_jax.config.paths import with_absolute_paths
from muzero_jax.config.session import Session
from muzero_jax.run import budget
from muzero_jax.run.machine import configure_devices, usable_cores
from muzero_jax.run.metrics import Callbacks

if TYPE_CHECKING:
    from muzero_jax.algorithm import Algorithm
    from muzero_jax.run.run import Result


def train(
    config: Config,
    run_dir: str | Path,
    *,
    minutes: float | None = None,
    algorithm: "Algorithm | None" = None,
    overwrite: bool = False,
    trust_code: bool = False,
    say: Callable[[str], None] = print,
    on_metrics: Callable[[dict[str, Any]], object] | None = None,
    on_evaluation: Callable[[dict[str, Any]], object] | None = None,
) -> "Result":
    """Trains an agent in `run_dir`, on as many devices as can share its games and batches evenly.

    Args:
      minutes: the budget, instead of the budget in the config.
      algorithm: your own game, network or algorithm, instead of those of the config (`make_algorithm`). The run stores
        no code of it, so pass it again to load the run (`muzero_jax.load(..., algorithm=...)`). Python files that the
        config names are loaded without that.
      overwrite: delete the run in `run_dir` first.
      trust_code: run the Python files that the source of `init_from` names; those that the config names run anyway.
      say: called with each line of output; `say=lambda line: None` prints nothing.
      on_metrics, on_evaluation: called as `run.metrics.Callbacks` says.

    Raises ValueError as `start.train` does, or for a config that makes no run.
    """
    if minutes is not None:
        config = replace(config, **dict.fromkeys(budget.FIELDS) | {"minutes": minutes})
    session = Session(run_dir=os.fspath(run_dir), overwrite=overwrite, trust_code=trust_code)
    available = configure_devices()
    cores = usable_cores()
    from muzero_jax.apps import start  # imported late, because importing pgx starts JAX

    if jax.default_backend() == "cpu" and available < cores:
        first = "muzero_jax.run.machine.configure_devices()"
        say(f"JAX has begun with {available} of {cores} cores; to use all of them, call {first} before anything else")
    build = None if algorithm is None else lambda config: algorithm
    with start.prepare(with_absolute_paths(config), session, available, say, build=build) as run:
        return start.train(run, Callbacks(on_metrics, on_evaluation))
