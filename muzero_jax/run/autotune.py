"""Finds how many games, how long a rollout and how large a batch give the most frames a second on this device.

All sizes are compared at one replay ratio: an update follows as many frames times windows as in the given config, and
the buffer holds as many frames in all. The search climbs: it halves and doubles one size after the other and keeps what
is faster, until nothing is or the time is up. Sizes that do not fit in memory are skipped.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax import algorithm as algorithms
from muzero_jax.ops import devices
from muzero_jax.run.compiled import compile_agent
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config, flat
from muzero_jax.storage.config_groups import ReplayConfig
from muzero_jax.storage.validation import validate

TIMED_SECONDS = 3.0
"""Measured for each size, of iterations that learn; compilation comes on top."""
WORTHWHILE = 1.03
"""A gain below 3% is noise."""


class Sizes(NamedTuple):
    """The sizes that are tuned."""

    num_envs: int
    rollout_length: int
    batch_size: int

    def __str__(self) -> str:
        return f"{self.num_envs} games, rollouts of {self.rollout_length}, batches of {self.batch_size}"


def tune(config: Config, mesh: Mesh, *, minutes: float, say: Callable[[str], None]) -> Config:
    """The config with the fastest sizes found in about `minutes`.

    Says line by line what it tries, and at last the flags that make the same run without a search. Raises ValueError if
    the config's own sizes do not fit in memory.
    """
    tuned = with_sizes(config, _climb(config, mesh, time.monotonic() + 60 * minutes, say))
    if tuned != config:
        say(f"autotune: the same without a search: {flags(config, tuned)}")
    return tuned


def with_sizes(config: Config, sizes: Sizes) -> Config:
    """The config with other sizes but the same replay ratio and, if that is enough for so many games, the same buffer.

    Raises ValueError if no run can be made of it, for example because an iteration would need half an update.
    """
    old, own = sizes_of(config), config.optimiser
    windows = own.updates_per_iteration * old.batch_size * sizes.num_envs * sizes.rollout_length
    updates = windows / (old.num_envs * old.rollout_length * sizes.batch_size)
    if updates < 1 or updates != int(updates):
        raise ValueError(f"the replay ratio would need {updates:g} updates an iteration; choose sizes that divide")
    optimiser = replace(
        own,
        batch_size=sizes.batch_size,
        updates_per_iteration=int(updates),
        # Larger batches make fewer updates of as many frames, so the schedule counts fewer, too.
        warmup_updates=own.warmup_updates * old.batch_size // sizes.batch_size,
    )
    self_play = replace(config.self_play, num_envs=sizes.num_envs, rollout_length=sizes.rollout_length)
    return validate(replace(config, self_play=self_play, replay=_ring(config, sizes), optimiser=optimiser))


def _ring(config: Config, sizes: Sizes) -> ReplayConfig:
    """As many frames in all as in the config, or more where every game needs them to begin a window at each frame."""
    own, rollout = config.replay.replay_length, sizes.rollout_length
    share = own * config.self_play.num_envs // sizes.num_envs
    if rollout > max(own, share):
        raise ValueError(f"rollouts of {rollout} are longer than the {max(own, share)} frames of a game in the buffer")
    min_frames = config.replay.min_frames * config.self_play.num_envs // sizes.num_envs
    needed = max(min_frames, min(own, config.window_length - 1 + rollout))
    length = max(share // rollout, -(-needed // rollout)) * rollout
    return replace(config.replay, replay_length=length, min_frames=min_frames)


def flags(config: Config, tuned: Config) -> str:
    """The flags that turn `config` into `tuned`."""
    old, new = flat(config), flat(tuned)
    return " ".join(f"--{name} ".replace("_", "-") + str(new[name]) for name in new if new[name] != old[name])


def sizes_of(config: Config) -> Sizes:
    """The sizes of a config."""
    return Sizes(config.self_play.num_envs, config.self_play.rollout_length, config.optimiser.batch_size)


def neighbours(sizes: Sizes) -> Iterator[Sizes]:
    """Each size doubled and halved, the others as they are."""
    for name, value in sizes._asdict().items():
        yield from (sizes._replace(**{name: other}) for other in (2 * value, value // 2) if other)


def _climb(config: Config, mesh: Mesh, deadline: float, say: Callable[[str], None]) -> Sizes:
    """Goes from the fastest sizes to a faster neighbour while there is one; tries nothing twice."""
    best = sizes_of(config)
    rates = {best: _measure(config, mesh)}
    say(f"autotune: {best}: {rates[best]:,.0f} frames/s, to begin with")
    while sizes := next((sizes for sizes in neighbours(best) if sizes not in rates), None):
        if time.monotonic() > deadline:
            say(f"autotune: the time is up; {best} is the fastest found so far")
            return best
        rates[sizes], reason = _rate(config, sizes, mesh)
        gain = rates[sizes] / rates[best]
        rate = f"{rates[sizes]:,.0f} frames/s, {gain:.2f}x the best so far"
        say(f"autotune: skips {sizes}: {reason}" if reason else f"autotune: {sizes}: {rate}")
        if gain > WORTHWHILE:
            best = sizes
    say(f"autotune: {best} is the fastest found")
    return best


def _rate(config: Config, sizes: Sizes, mesh: Mesh) -> tuple[float, str]:
    """Frames a second and ""; or 0 and the reason why there can be no run of these sizes.

    The reason is text, because an exception would keep alive what the run had allocated.
    """
    try:
        devices.check_divisible("--self-play.num-envs", sizes.num_envs, mesh.size)
        devices.check_divisible("--optimiser.batch-size", sizes.batch_size, mesh.size)
        return _measure(with_sizes(config, sizes), mesh), ""
    except ValueError as error:
        return 0.0, str(error)
    except RuntimeError as error:
        if not devices.is_out_of_memory(error):
            raise
        return 0.0, "the device's memory is full"


def _measure(config: Config, mesh: Mesh) -> float:
    """Frames a second of iterations that learn; raises ValueError if the run does not fit in memory."""
    run = compile_agent(config, algorithms.make(config), mesh, Session(), lambda text: None)
    state = run.init()
    iterations = config.iterations_to_learn + 1  # one that learns already: the first is slower
    progress = np.zeros(config.iterations_per_chunk, np.float32)
    for _ in range(-(-iterations // config.iterations_per_chunk)):
        state, _ = jax.block_until_ready(run.program.advance(state, progress))
    chunks, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < TIMED_SECONDS:
        state, _ = jax.block_until_ready(run.program.advance(state, progress))
        chunks += 1
    return chunks * config.iterations_per_chunk * config.self_play.num_envs * config.self_play.rollout_length / seconds
