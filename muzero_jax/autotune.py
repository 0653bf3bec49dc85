"""How many games, how long a rollout and how large a batch give the most frames a second on this device.

Frames a second are compared at one replay ratio: whatever is tried, an update follows as many frames times windows as
in the given config, and the ring holds as many frames in all. The search climbs: it halves and doubles one size after
the other and keeps what is faster, until nothing is or the time is up. A size that does not fit is not tried.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax import devices
from muzero_jax.assembly import assemble
from muzero_jax.config import Config, validate
from muzero_jax.files import write_whole

TIMED_SECONDS = 3.0
"""Of iterations that learn, for each size; compilation comes on top."""
WORTHWHILE = 1.03
"""A gain below 3% is noise."""


class Sizes(NamedTuple):
    """What is tuned."""

    num_envs: int
    rollout_length: int
    batch_size: int


class Kept(NamedTuple):
    """What the cache holds of a device and config."""

    sizes: Sizes  # the fastest found
    slower: frozenset[Sizes] = frozenset()  # others that were tried; another session's rates would not compare
    finished: bool = False  # False if the time was up before all neighbours of the fastest were tried


def tune(config: Config, mesh: Mesh, *, minutes: float, cache: Path, say: Callable[[str], None]) -> Config:
    """The config with the fastest sizes found in about `minutes`, `autotune` done; tells the curve line by line.

    The result is kept in the file `cache` under this device and config, and found there the next time; a search that
    the time cut short goes on from there.
    """
    config = replace(config, autotune=False)
    key = _key(config, mesh)
    known = _read(cache)
    kept = known.get(key)
    if kept is not None and kept.finished:
        say(f"autotune: {_words(kept.sizes)}, from {cache}")
        return with_sizes(config, kept.sizes)
    kept = _climb(config, kept or Kept(sizes_of(config)), mesh, time.monotonic() + 60 * minutes, say)
    in_time = "" if kept.finished else f" in {minutes:g} minutes; the next --autotune goes on from there"
    say(f"autotune: {_words(kept.sizes)} is the fastest found{in_time}")
    _keep(cache, known | {key: kept}, say)
    return with_sizes(config, kept.sizes)


def default_cache() -> Path:
    """Where results are kept: `autotune.json` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muzero_jax" / "autotune.json"


def with_sizes(config: Config, sizes: Sizes) -> Config:
    """The config with other sizes, the replay ratio kept, and the number of frames in the ring as near as it can be.

    Raises:
      ValueError: no run can be made of it, for example because a ring of so many games is shorter than a window.
    """
    old = sizes_of(config)
    windows_per_frame = config.optimiser.updates_per_iteration * old.batch_size / (old.num_envs * old.rollout_length)
    updates = round(windows_per_frame * sizes.num_envs * sizes.rollout_length / sizes.batch_size, 6)
    if updates < 1 or updates != int(updates):
        raise ValueError(f"{_words(sizes)} would need {updates:g} updates an iteration; choose sizes that divide")
    ring = config.replay.replay_length * old.num_envs // sizes.num_envs
    return validate(
        replace(
            config,
            self_play=replace(config.self_play, num_envs=sizes.num_envs, rollout_length=sizes.rollout_length),
            replay=replace(config.replay, replay_length=ring // sizes.rollout_length * sizes.rollout_length),
            optimiser=replace(
                config.optimiser,
                batch_size=sizes.batch_size,
                updates_per_iteration=int(updates),
                # Larger batches make fewer updates of as many frames, so the schedule counts fewer, too.
                warmup_updates=config.optimiser.warmup_updates * old.batch_size // sizes.batch_size,
                decay_updates=max(1, config.optimiser.decay_updates * old.batch_size // sizes.batch_size),
            ),
        )
    )


def sizes_of(config: Config) -> Sizes:
    """The sizes of a config."""
    return Sizes(config.self_play.num_envs, config.self_play.rollout_length, config.optimiser.batch_size)


def neighbours(sizes: Sizes) -> Iterator[Sizes]:
    """Each size doubled and halved, the others as they are."""
    for name, value in sizes._asdict().items():
        for other in (2 * value, value // 2):
            if other:
                yield sizes._replace(**{name: other})


def _climb(config: Config, start: Kept, mesh: Mesh, deadline: float, say: Callable[[str], None]) -> Kept:
    """Goes from the fastest sizes to a faster neighbour while there is one; tries none of the slower ones again."""
    best = start.sizes
    rates = dict.fromkeys(start.slower, 0.0) | {best: _measure(with_sizes(config, best), mesh)}
    say(f"autotune: {_words(best)}: {rates[best]:,.0f} frames/s, to begin with")
    improved = True
    while improved:
        improved = False
        for sizes in neighbours(best):
            if sizes in rates or not _is_possible(config, sizes, mesh):
                continue
            if time.monotonic() > deadline:
                return Kept(best, frozenset(rates) - {best})
            try:
                rates[sizes] = _measure(with_sizes(config, sizes), mesh)
            except (ValueError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and not devices.is_out_of_memory(error):
                    raise
                rates[sizes] = 0.0
            gain = rates[sizes] / rates[best]
            say(f"autotune: {_words(sizes)}: {rates[sizes]:,.0f} frames/s, {gain:.2f}x the best so far")
            if gain > WORTHWHILE:
                best, improved = sizes, True
                break
    return Kept(best, finished=True)


def _is_possible(config: Config, sizes: Sizes, mesh: Mesh) -> bool:
    """Whether a run of these sizes can be made, and shared among the devices."""
    if sizes.num_envs % mesh.size or sizes.batch_size % mesh.size:
        return False
    try:
        with_sizes(config, sizes)
    except ValueError:
        return False
    return True


def _measure(config: Config, mesh: Mesh) -> float:
    """Frames a second of iterations that learn; raises ValueError if the run does not fit in memory."""
    config = replace(config, iterations_per_chunk=1)
    run = assemble(config, mesh, lambda text: None)
    state, chunk = run.init(), run.program
    for _ in range(config.iterations_to_learn + 1):  # one that learns already: the first is slower
        state, _ = chunk(state)
    jax.block_until_ready(state)
    start = time.perf_counter()
    for count in itertools.count(1):
        state, _ = chunk(state)
        jax.block_until_ready(state)
        seconds = time.perf_counter() - start
        if seconds > TIMED_SECONDS:
            return count * config.self_play.num_envs * config.self_play.rollout_length / seconds
    raise AssertionError


def _words(sizes: Sizes) -> str:
    return f"{sizes.num_envs} games, rollouts of {sizes.rollout_length}, batches of {sizes.batch_size}"


def _key(config: Config, mesh: Mesh) -> str:
    """Names the device and all that speed depends on."""
    groups = ("env", "board_size", "network", "search", "self_play", "replay", "targets", "optimiser")
    fields = {name: value for name, value in dataclasses.asdict(config).items() if name in groups}
    text = json.dumps([devices.describe_device(mesh.size), jax.__version__, fields])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(cache: Path) -> dict[str, Kept]:
    """The results kept so far; none if the file is missing or spoilt."""
    try:
        kept = json.loads(cache.read_text(encoding="utf-8"))
        return {key: _from_json(entry) for key, entry in kept.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _from_json(entry: dict) -> Kept:
    return Kept(Sizes(*entry["sizes"]), frozenset(Sizes(*sizes) for sizes in entry["slower"]), bool(entry["finished"]))


def _keep(cache: Path, results: dict[str, Kept], say: Callable[[str], None]) -> None:
    """Writes the results, or says why that cannot be."""
    entries = {
        key: {"sizes": kept.sizes, "slower": sorted(kept.slower), "finished": kept.finished}
        for key, kept in results.items()
    }
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cache, json.dumps(entries, indent=2))
        say(f"autotune: kept in {cache}; delete that to search again")
    except OSError as error:
        say(f"autotune: not kept for the next time, because {cache} cannot be written: {error.strerror or error}")
