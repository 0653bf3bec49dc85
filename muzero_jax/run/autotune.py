"""`--autotune`: finds the number of games, rollout length and batch size with the most frames a second on this device.

All sizes keep the replay ratio and the number of frames in the replay buffer. The search is hill climbing: it doubles
and halves one size after the other and keeps what is faster, until nothing is or the time is over.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax.algorithm import make_algorithm
from muzero_jax.config.config import Config, with_values
from muzero_jax.config.fields import differing
from muzero_jax.config.session import Session
from muzero_jax.config.validation import validate
from muzero_jax.run.compiled import check_shares, compile_agent
from muzero_jax.run.machine import is_out_of_memory

TIMED_SECONDS, WORTHWHILE = 3.0, 1.03
"""Seconds of learning iterations that are timed for each choice of sizes; a gain below 3% is noise."""


class TunedSizes(NamedTuple):
    """The sizes that are tuned."""

    num_envs: int
    rollout_length: int
    batch_size: int

    def __str__(self) -> str:
        return ", ".join(f"{name} {size}" for name, size in self._asdict().items())


def tune(config: Config, mesh: Mesh, session: Session, say: Callable[[str], None]) -> Config:
    """The config with the fastest sizes found in about `session.autotune_minutes`.

    Prints what it tries, and the flags of the fastest.

    Raises ValueError if the config's own sizes do not fit in memory.
    """
    best = sizes_of(config)
    deadline = time.monotonic() + 60 * session.autotune_minutes
    rates = {best: measure(config, mesh, session)}
    say(f"autotune: {best}: {rates[best]:,.0f} frames/s, to begin with")
    while time.monotonic() < deadline and (new := [sizes for sizes in neighbours(best) if sizes not in rates]):
        sizes = new[0]
        try:
            rates[sizes] = measure(with_sizes(config, sizes), mesh, session)
            say(f"autotune: {sizes}: {rates[sizes]:,.0f} frames/s, {rates[sizes] / rates[best]:.2f} times the best")
        except (ValueError, RuntimeError) as error:  # impossible sizes, or they do not fit in memory
            if isinstance(error, RuntimeError) and not is_out_of_memory(error):
                raise
            rates[sizes] = 0.0
            say(f"autotune: skips {sizes}: {str(error).partition(chr(10))[0]}")
        if rates[sizes] > WORTHWHILE * rates[best]:
            best = sizes
    tuned = with_sizes(config, best)
    say(f"autotune: the same without a search: {' '.join(differing(tuned, config)) or 'no other flags'}")
    return tuned


def with_sizes(config: Config, sizes: TunedSizes) -> Config:
    """The config with other sizes, the same replay ratio and a buffer of as many frames.

    Raises ValueError if these sizes are impossible, for example because an iteration would need half an update.
    """
    own = config.optimiser
    old = sizes_of(config)
    windows = own.updates_per_iteration * old.batch_size * sizes.num_envs * sizes.rollout_length
    updates = windows / (old.num_envs * old.rollout_length * sizes.batch_size)
    if updates < 1 or updates != int(updates):
        raise ValueError(f"the replay ratio would need {updates:g} updates an iteration")
    share = old.num_envs / sizes.num_envs
    rollout = sizes.rollout_length
    min_frames = int(config.replay.min_frames * share)
    needed = max(min_frames, config.window_length, int(config.replay.replay_length * share))
    changed = {
        "self_play.num_envs": sizes.num_envs,
        "self_play.rollout_length": rollout,
        "replay.replay_length": -(-needed // rollout) * rollout,
        "replay.min_frames": min_frames,
        "optimiser.batch_size": sizes.batch_size,
        "optimiser.updates_per_iteration": int(updates),
        # With larger batches, the same frames make fewer updates, so the warm-up has fewer, too.
        "optimiser.warmup_updates": own.warmup_updates * old.batch_size // sizes.batch_size,
    }
    return validate(with_values(config, changed))


def sizes_of(config: Config) -> TunedSizes:
    """The sizes of a config."""
    return TunedSizes(config.self_play.num_envs, config.self_play.rollout_length, config.optimiser.batch_size)


def neighbours(sizes: TunedSizes) -> list[TunedSizes]:
    """Sizes of which one is doubled or halved, and the others stay."""
    pairs = [(name, other) for name, value in sizes._asdict().items() for other in (2 * value, value // 2)]
    return [sizes._replace(**{name: other}) for name, other in pairs if other]


def measure(config: Config, mesh: Mesh, session: Session) -> float:
    """Frames a second in learning iterations, compiled as the session's run will be.

    Raises ValueError if the run does not fit in memory or on the devices.
    """
    check_shares(config, mesh.size)
    program, init = compile_agent(config, make_algorithm(config), mesh, session, lambda text: None)
    state = init()
    chunks = 0
    progress = np.zeros(config.iterations_per_chunk, np.float32)
    to_learn = -(-(config.iterations_to_learn + 1) // config.iterations_per_chunk)  # one more: the first is slower
    for _ in range(to_learn):
        state, _ = jax.block_until_ready(program.advance(state, progress))
    start = time.perf_counter()
    while (seconds := time.perf_counter() - start) < TIMED_SECONDS:
        state, _ = jax.block_until_ready(program.advance(state, progress))
        chunks += 1
    return chunks * config.iterations_per_chunk * config.self_play.num_envs * config.self_play.rollout_length / seconds
