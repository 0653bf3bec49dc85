"""What is measured, at which sizes: the full report (at most ten minutes on two cores) and a quick one of about two.

An accelerator gets larger sizes as well: what keeps two cores busy for a millisecond it does in the microseconds that
starting a program takes, and then no dtype is faster than another.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from experiments import presets
from muzero_jax.storage.config import Config, EvaluationConfig
from scripts.report.timing import Limits


class Network(NamedTuple):
    """A network of Hex to measure, and at which batch sizes."""

    name: str
    kind: Literal["mlp", "tower"]
    width: int
    num_blocks: int
    board_size: int
    batches: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Sizes of every table."""

    matrix_sizes: tuple[int, ...]
    vector_sizes: tuple[int, ...]
    networks: tuple[Network, ...]
    precision_matrix: int
    precision_batch: int  # of an MLP
    precision_tower_batch: int
    searches: tuple[tuple[Config, int], ...]  # configs, and games at once
    learners: tuple[Config, ...]
    run: Config
    transfer_bytes: tuple[int, ...]
    particles: tuple[tuple[int, int], ...]  # particles, grid points per side
    particle_steps: int
    limits: Limits
    all_devices: bool = True  # measure search and gradient steps on all devices too, not on one alone


BATCHES = (1, 4, 16, 64, 256, 1024, 4096)


def short_run(iterations: int) -> Config:
    """Hex 5x5's own preset for a short while, with one evaluation at its end; no longer than three minutes."""
    evaluation = EvaluationConfig(interval_minutes=0.0, games=64, final_games=64, opening_plies=1, mcts_simulations=())
    return replace(
        presets.preset("hex", 5),
        minutes=3.0,
        max_iterations=iterations,
        iterations_per_chunk=4,  # the split of the time is told from chunks before the first update
        evaluation=evaluation,
    )


def fewer_updates(config: Config, updates: int) -> Config:
    """The same gradient steps, fewer in one call."""
    return replace(config, optimiser=replace(config.optimiser, updates_per_iteration=updates))


def full() -> Plan:
    """The report proper."""
    large = presets.preset("hex", 9)
    # The networks of the table above them, whatever the preset of that board is by now.
    mlp = replace(presets.preset("hex", 5).network, kind="mlp", width=128, compute_dtype="float32")
    small, wide = (replace(presets.preset("hex", 5), network=replace(mlp, width=width)) for width in (128, 512))
    return Plan(
        matrix_sizes=(64, 128, 256, 512, 1024, 2048, 4096),
        vector_sizes=(10_000, 100_000, 1_000_000, 10_000_000),
        networks=(
            Network("standard", "mlp", 128, 1, 5, BATCHES),
            Network("512-wide", "mlp", 512, 1, 5, BATCHES),
            Network("tower", "tower", large.network.width, large.network.num_blocks, 9, BATCHES),
        ),
        precision_matrix=1024,
        precision_batch=1024,
        precision_tower_batch=64,
        searches=((small, 512), (large, 64), (wide, 512), (small, 64)),  # the last ones give way where time is short
        learners=(fewer_updates(small, 4), fewer_updates(wide, 2)),
        run=short_run(iterations=80),
        transfer_bytes=tuple(2**power for power in (10, 14, 18, 22, 26)),
        particles=((10_000, 50), (10_000, 100), (30_000, 75), (100_000, 50), (100_000, 100)),
        particle_steps=5,
        limits=Limits(call_seconds=1.0, table_seconds=50.0),
    )


def quick() -> Plan:
    """A first look: fewer sizes, one search, one learner, a shorter run."""
    plan = full()
    batches = (1, 64, 1024)
    return replace(
        plan,
        matrix_sizes=(64, 256, 1024),
        vector_sizes=(100_000, 1_000_000),
        networks=tuple(network._replace(batches=batches) for network in plan.networks[:2]),
        precision_matrix=512,
        precision_batch=256,
        searches=plan.searches[-1:],
        learners=(fewer_updates(plan.learners[0], 2),),
        run=short_run(iterations=16),
        transfer_bytes=plan.transfer_bytes[::2],
        particles=((10_000, 50), (30_000, 75)),
        limits=Limits(call_seconds=0.3, table_seconds=12.0),
        all_devices=False,
    )


def for_accelerator(plan: Plan) -> Plan:
    """The same with sizes at which arithmetic takes an accelerator's time; `limits` spare the CPU beside it."""
    return replace(
        plan,
        matrix_sizes=(*plan.matrix_sizes, 8192),
        vector_sizes=(*plan.vector_sizes, 10 * plan.vector_sizes[-1]),
        networks=tuple(n._replace(batches=(*n.batches, 4 * n.batches[-1])) for n in plan.networks),
        precision_matrix=8192,
        precision_batch=65_536,
        precision_tower_batch=1024,
        searches=tuple((config, 8 * games) for config, games in plan.searches),
    )


def choose(*, quick_look: bool, accelerator: bool) -> Plan:
    """The plan that was asked for, for a machine with or without an accelerator."""
    plan = quick() if quick_look else full()
    return for_accelerator(plan) if accelerator else plan
