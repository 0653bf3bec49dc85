"""A run's budget in minutes, frames, updates, FLOPs or iterations; the run ends when the first of them is spent."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from muzero_jax.config.config import Config
from muzero_jax.config.fields import names
from muzero_jax.run.flops import Flops
from muzero_jax.run.metrics import FLOPS, MINUTES, Record, last_record
from muzero_jax.storage.checkpoint import checkpoint_steps
from muzero_jax.storage.run_directory import CHECKPOINTS, has_ended

FIELDS = {name: name.removeprefix("max_") for name in names(Config, "budget")}
"""The config's fields of budgets, with their units."""
SPENT = {
    "minutes": MINUTES,
    "frames": "total/frames",
    "updates": "total/updates",
    "flops": FLOPS,
    "max_iterations": "iteration",
}
"""The metric of each that says how much of it is spent."""


def describe(config: Config) -> str:
    """The budget in words: "15 minutes", or "15 minutes or 1,000,000 frames"."""
    given = ((getattr(config, field), unit) for field, unit in FIELDS.items())
    return " or ".join(amount(value, unit) for value, unit in given if value is not None)


def amount(value: int | float, unit: str) -> str:
    """A part of a budget in words: "15 minutes", "3.7e+12 FLOPs"."""
    return f"{value:.3g} FLOPs" if unit == "flops" else f"{value:,.15g} {unit}"


def progress(config: Config, done: Record, flops: Flops) -> np.ndarray:
    """The spent share of the budget, from 0 to 1, before each iteration of a chunk: [I] float32.

    Minutes are the clock's at the chunk's start. All other budgets depend only on the work so far: a resumed run equals
    an uninterrupted one, and goes on from the share that is spent if its iterations cost more or less now.

    Args:
      done: a record of the run before the chunk, as in `spent`.
      flops: of an iteration; `at_times` is what learning adds.
    """
    ahead = np.arange(config.iterations_per_chunk)
    learned = np.maximum(done.get("iteration", 0) + ahead - (config.iterations_to_learn - 1), 0)
    learning = learned - learned[0]
    costs = {
        "minutes": 0 * ahead,
        "frames": ahead * config.self_play.num_envs * config.self_play.rollout_length,
        "updates": learning * config.optimiser.updates_per_iteration,
        "flops": ahead * flops.always + learning * flops.at_times,
        "max_iterations": ahead,
    }
    shares = [(amount + costs[field]) / limit for field, limit, amount in _limits(config, done)]
    return np.clip(np.max(shares, axis=0), 0.0, 1.0, dtype=np.float32)


def spent(config: Config, done: Record) -> str | None:
    """The field of the config whose budget is spent; None if something is left of each.

    Args:
      done: a record of the run, with its minutes, totals and iteration.
    """
    return next((field for field, limit, amount in _limits(config, done) if amount >= limit), None)


def _limits(config: Config, done: Record) -> Iterator[tuple[str, float, float]]:
    """The field of each given budget, its limit, and how much of it is spent."""
    for field in FIELDS:
        if (limit := getattr(config, field)) is not None:
            yield field, limit, done.get(SPENT[field], 0)


def larger(config: Config, field: str, factor: float = 2.0) -> str:
    """The flag of a budget `factor` times as large: "--minutes 30"."""
    value = factor * getattr(config, field)
    return f"--{field.replace('_', '-')} {max(1, round(value)) if value >= 1 else max(0.01, round(value, 2)):.15g}"


def check_left(config: Config, run_dir: Path) -> None:
    """Raises ValueError if a run to resume has played its final matches and its budget is spent."""
    steps = checkpoint_steps(run_dir / CHECKPOINTS)
    if not steps or not has_ended(run_dir, steps[-1]):
        return
    if field := spent(config, {"iteration": steps[-1]} | last_record(run_dir, up_to_iteration=steps[-1])):
        had = amount(getattr(config, field), FIELDS[field])
        raise ValueError(f"the budget of {had} is spent; give {larger(config, field)} to continue")


def check_learned(config: Config, done: Record) -> None:
    """Raises ValueError, which says what to do, if a run ended without an update."""
    if done["total/updates"]:
        return
    field = spent(config, done) or "minutes"
    iteration = done["iteration"]
    factor = max(2.0, 3 * config.iterations_to_learn / max(iteration, 1))
    raise ValueError(
        f"this run made no updates, because learning begins with iteration {config.iterations_to_learn} and its budget "
        f"of {describe(config)} ended at {iteration}; continue with --resume {larger(config, field, factor)}"
    )
