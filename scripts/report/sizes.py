"""What is measured, at which sizes: the full report (at most ten minutes on two cores) and a quick one of about two.

An accelerator gets larger sizes as well: what keeps two cores busy for a millisecond it does in the microseconds that
starting a program takes, and then no dtype is faster than another.
"""

from dataclasses import replace
from typing import NamedTuple

from muzero_jax import presets
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import EvaluationConfig
from scripts.measuring.timing import Limits


class Sizes(NamedTuple):
    """Sizes of every table."""

    matrices: tuple[int, ...]
    vectors: tuple[int, ...]
    networks: dict[str, Config]  # by the name that tables use
    batches: tuple[int, ...]
    precision_matrix: int
    precision_batches: dict[str, int]  # by the network's kind
    searches: tuple[tuple[Config, int], ...]  # configs, and games at once; the last give way where time is short
    learners: tuple[Config, ...]
    run: Config
    transfers: tuple[int, ...]  # bytes
    particles: tuple[tuple[int, int], ...]  # particles, grid points a side
    particle_steps: int
    limits: Limits
    all_devices: bool = True  # measure search and gradient steps on all devices too, not on one alone


def choose(*, quick: bool, accelerator: bool) -> Sizes:
    """The full or the quick sizes, for a machine with or without an accelerator."""
    sizes = _quick(_full()) if quick else _full()
    if not accelerator:
        return sizes
    return sizes._replace(  # the limits spare the CPU of that machine
        matrices=(*sizes.matrices, 8192),
        vectors=(*sizes.vectors, 10 * sizes.vectors[-1]),
        batches=(*sizes.batches, 4 * sizes.batches[-1]),
        precision_matrix=8192,
        precision_batches={"mlp": 65_536, "tower": 1024},
        searches=tuple((config, 8 * games) for config, games in sizes.searches),
    )


def _full() -> Sizes:
    small, tower = presets.preset("hex", 5), replace(presets.tower("hex", num_bins=2), board_size=9)
    mlp = replace(small.network, kind="mlp", compute_dtype="float32")
    standard, wide = (replace(small, network=replace(mlp, width=width)) for width in (128, 512))
    exact_tower = replace(tower, network=replace(tower.network, compute_dtype="float32"))
    return Sizes(
        matrices=(64, 128, 256, 512, 1024, 2048, 4096),
        vectors=(10_000, 100_000, 1_000_000, 10_000_000),
        networks={"standard": standard, "512-wide": wide, "tower": exact_tower},
        batches=(1, 4, 16, 64, 256, 1024, 4096),
        precision_matrix=1024,
        precision_batches={"mlp": 1024, "tower": 64},
        searches=((standard, 512), (tower, 64), (wide, 512), (standard, 64)),
        learners=(_fewer_updates(standard, 4), _fewer_updates(wide, 2)),
        run=_short_run(iterations=80),
        transfers=tuple(2**power for power in (10, 14, 18, 22, 26)),
        particles=((10_000, 50), (10_000, 100), (30_000, 75), (100_000, 50), (100_000, 100)),
        particle_steps=5,
        limits=Limits(call_seconds=1.0, table_seconds=50.0),
    )


def _quick(full: Sizes) -> Sizes:
    return full._replace(
        matrices=full.matrices[:5:2],
        vectors=full.vectors[1:3],
        networks={name: config for name, config in full.networks.items() if name != "tower"},
        batches=(1, 64, 1024),
        precision_matrix=512,
        precision_batches={"mlp": 256},
        searches=full.searches[-1:],
        learners=(_fewer_updates(full.learners[0], 2),),
        run=_short_run(iterations=16),
        transfers=full.transfers[::2],
        particles=full.particles[:3:2],
        limits=Limits(call_seconds=0.3, table_seconds=12.0),
        all_devices=False,
    )


def _fewer_updates(config: Config, updates: int) -> Config:
    return replace(config, optimiser=replace(config.optimiser, updates_per_iteration=updates))


def _short_run(iterations: int) -> Config:
    """Hex 5x5's own preset for at most three minutes, with one evaluation at its end."""
    evaluation = EvaluationConfig(interval_minutes=0.0, games=64, final_games=64, opening_plies=1, mcts_simulations=())
    config = replace(presets.preset("hex", 5), minutes=3.0, max_iterations=iterations, evaluation=evaluation)
    # Chunks of four: the chunks before the first update give the split of the time.
    return replace(config, iterations_per_chunk=4)
