"""How many games, how long a rollout and how large a batch give the most frames a second on this device.

Frames a second are compared at one replay ratio: whatever is tried, an update follows as many frames times windows as
in the given config, and the ring holds as many frames in all. It grows only where thousands of games, as an accelerator
wants them, would each be left with less than a window needs. The search climbs: it halves and doubles one size after
the other and keeps what is faster, until nothing is or the time is up. A size whose memory plan does not fit is
skipped; if that is the given one, the search begins with half of it.
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

from muzero_jax.arithmetic import devices, precision
from muzero_jax.run.assembly import assemble
from muzero_jax.storage.config import Config, ReplayConfig
from muzero_jax.storage.files import write_whole
from muzero_jax.storage.validation import validate

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
    frames: int  # of all games, for the ring to hold: as many as the config's, or halved until the start fitted
    slower: frozenset[Sizes] = frozenset()  # others, tried or skipped; another session's rates would not compare
    finished: bool = False  # False if the time was up before all neighbours of the fastest were tried


def tune(config: Config, mesh: Mesh, *, minutes: float, cache: Path, say: Callable[[str], None]) -> Config:
    """The config with the fastest sizes found in about `minutes`; tells the curve line by line.

    The result is kept in the file `cache` under this device and config, and found there the next time; a search that
    the time cut short goes on from there. One that had to begin with less is not kept.
    """
    key = _key(config, mesh)
    known = _read(cache)
    kept = known.get(key)
    if kept is not None and kept.finished:
        say(f"autotune: {_words(kept.sizes)}, from {cache}; delete that to search again")
    else:
        kept = kept or Kept(sizes_of(config), ring_frames(config))
        kept = _climb(config, kept, mesh, time.monotonic() + 60 * minutes, say)
        in_time = "" if kept.finished else f" in {minutes:g} minutes"
        say(f"autotune: {_words(kept.sizes)} is the fastest found{in_time}")
        if kept.frames == ring_frames(config):
            _keep(cache, known | {key: kept}, say)
        else:
            say("autotune: not kept, because what did not fit today may fit tomorrow")
    tuned = with_sizes(config, kept.sizes, kept.frames)
    if tuned != config:
        say(f"autotune: the same without a search: {flags(config, tuned)}")
    return tuned


def default_cache() -> Path:
    """Where results are kept: `autotune.json` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muzero_jax" / "autotune.json"


def with_sizes(config: Config, sizes: Sizes, frames: int) -> Config:
    """The config with other sizes, the replay ratio kept.

    Args:
      frames: of all games, that the ring should hold. It holds more if that is too little for so many games.

    Raises:
      ValueError: no run can be made of it, for example because an iteration would not have a whole number of updates.
    """
    old = sizes_of(config)
    windows_per_frame = config.optimiser.updates_per_iteration * old.batch_size / (old.num_envs * old.rollout_length)
    updates = round(windows_per_frame * sizes.num_envs * sizes.rollout_length / sizes.batch_size, 6)
    if updates < 1 or updates != int(updates):
        raise ValueError(f"the replay ratio would need {updates:g} updates an iteration; choose sizes that divide")
    return validate(
        replace(
            config,
            self_play=replace(config.self_play, num_envs=sizes.num_envs, rollout_length=sizes.rollout_length),
            replay=_ring(config, sizes, frames),
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


def _ring(config: Config, sizes: Sizes, frames: int) -> ReplayConfig:
    """A ring of `frames` shared by the games, of which the first update waits for as large a part as in the config.

    It grows where a game's part is too short for every frame to begin a window once, but no longer, up to a
    whole rollout, than a game's part is in the config, which somebody found long enough.
    """
    own, rollout, part = config.replay.replay_length, sizes.rollout_length, frames // sizes.num_envs
    if rollout > max(own, part):
        raise ValueError(f"rollouts of {rollout} are longer than the {max(own, part)} frames of a game in the ring")
    min_frames = config.replay.min_frames * frames // (own * sizes.num_envs)
    needed = max(min_frames, min(own, config.window_length - 1 + rollout))
    length = max(part // rollout, -(-needed // rollout)) * rollout
    return replace(config.replay, replay_length=length, min_frames=min_frames)


def flags(config: Config, tuned: Config) -> str:
    """The flags that turn `config` into `tuned`, whose groups alone may differ."""
    values = dataclasses.asdict(config)
    changed = {
        f"--{group}.{name}".replace("_", "-"): value
        for group, fields in dataclasses.asdict(tuned).items()
        if isinstance(fields, dict)
        for name, value in fields.items()
        if value != values[group][name]
    }
    return " ".join(f"{flag} {value}" for flag, value in changed.items())


def sizes_of(config: Config) -> Sizes:
    """The sizes of a config."""
    return Sizes(config.self_play.num_envs, config.self_play.rollout_length, config.optimiser.batch_size)


def ring_frames(config: Config) -> int:
    """The frames of all games in the ring."""
    return config.replay.replay_length * config.self_play.num_envs


def neighbours(sizes: Sizes) -> Iterator[Sizes]:
    """Each size doubled and halved, the others as they are."""
    for name, value in sizes._asdict().items():
        for other in (2 * value, value // 2):
            if other:
                yield sizes._replace(**{name: other})


def _climb(config: Config, start: Kept, mesh: Mesh, deadline: float, say: Callable[[str], None]) -> Kept:
    """Goes from the fastest sizes to a faster neighbour while there is one; tries none of the slower ones again."""
    begun, rate = _begin(config, start, mesh, say)
    best, rates = begun.sizes, dict.fromkeys(begun.slower, 0.0) | {begun.sizes: rate}
    improved = True
    while improved:
        improved = False
        for sizes in neighbours(best):
            if sizes in rates:
                continue
            if time.monotonic() > deadline:
                return Kept(best, begun.frames, frozenset(rates) - {best})
            rates[sizes], reason = _rate(config, sizes, begun.frames, mesh)
            if reason:
                say(f"autotune: skips {_words(sizes)}: {reason}")
                continue
            gain = rates[sizes] / rates[best]
            say(f"autotune: {_words(sizes)}: {rates[sizes]:,.0f} frames/s, {gain:.2f}x the best so far")
            if gain > WORTHWHILE:
                best, improved = sizes, True
                break
    return Kept(best, begun.frames, finished=True)


def _begin(config: Config, start: Kept, mesh: Mesh, say: Callable[[str], None]) -> tuple[Kept, float]:
    """The start and its frames a second; if it does not fit, the first of its halves that does.

    Raises ValueError with the reason why the start does not fit, if no half does either.
    """
    first_reason = ""
    for begun in _halves(start):
        rate, reason = _rate(config, begun.sizes, begun.frames, mesh)
        first_reason = first_reason or reason
        if not reason:
            if begun != start:
                say(f"autotune: begins with less, because {_words(start.sizes)} do not fit: {first_reason}")
            say(f"autotune: {_words(begun.sizes)}: {rate:,.0f} frames/s, to begin with")
            return begun, rate
    raise ValueError(f"neither {_words(start.sizes)} nor halves of that fit: {first_reason}")


def _halves(start: Kept) -> Iterator[Kept]:
    """The start, then games, batch and ring halved together while they are even: the number of updates stays whole."""
    yield start
    sizes, frames = start.sizes, start.frames
    while sizes.num_envs % 2 == sizes.batch_size % 2 == 0:
        sizes = sizes._replace(num_envs=sizes.num_envs // 2, batch_size=sizes.batch_size // 2)
        frames //= 2
        yield Kept(sizes, frames)  # what was slower with the larger ring may have been too large


def _rate(config: Config, sizes: Sizes, frames: int, mesh: Mesh) -> tuple[float, str]:
    """Frames a second; or 0 and the reason why a run of these sizes cannot be made, shared among devices, or held.

    The reason as text: an exception would keep alive what the run had allocated.
    """
    try:
        devices.check_divisible("--self-play.num-envs", sizes.num_envs, mesh.size)
        devices.check_divisible("--optimiser.batch-size", sizes.batch_size, mesh.size)
        return _measure(with_sizes(config, sizes, frames), mesh), ""
    except ValueError as error:
        return 0.0, str(error)
    except RuntimeError as error:
        if not devices.is_out_of_memory(error):
            raise
        return 0.0, "the device's memory is full"


def _measure(config: Config, mesh: Mesh) -> float:
    """Frames a second of iterations that learn; raises ValueError if the run does not fit in memory."""
    run = assemble(config, mesh, lambda text: None)
    state, chunk = run.init(), run.program
    iterations = config.iterations_to_learn + 1  # one that learns already: the first is slower
    for _ in range(-(-iterations // config.iterations_per_chunk)):
        state, _ = chunk(state)
    jax.block_until_ready(state)
    start = time.perf_counter()
    for count in itertools.count(1):
        state, _ = chunk(state)
        jax.block_until_ready(state)
        seconds = time.perf_counter() - start
        if seconds > TIMED_SECONDS:
            frames = config.self_play.num_envs * config.self_play.rollout_length * config.iterations_per_chunk
            return count * frames / seconds
    raise AssertionError


def _words(sizes: Sizes) -> str:
    return f"{sizes.num_envs} games, rollouts of {sizes.rollout_length}, batches of {sizes.batch_size}"


def _key(config: Config, mesh: Mesh) -> str:
    """Names the device and all that speed depends on."""
    game, chunk = ("env", "board_size"), ("iterations_per_chunk",)
    matters = (*game, "network", "search", "self_play", "replay", "targets", "optimiser", *chunk)
    fields = {name: value for name, value in dataclasses.asdict(config).items() if name in matters}
    fields["network"]["compute_dtype"] = precision.resolve(config.network.compute_dtype).compute_dtype
    text = json.dumps([devices.describe_device(mesh.size), jax.__version__, fields])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(cache: Path) -> dict[str, Kept]:
    """The results kept so far; none if the file is missing, spoilt, or of a version that could not reach all sizes."""
    try:
        kept = json.loads(cache.read_text(encoding="utf-8"))
        return {key: _from_json(entry) for key, entry in kept.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _from_json(entry: dict) -> Kept:
    slower = frozenset(Sizes(*sizes) for sizes in entry["slower"])
    return Kept(Sizes(*entry["sizes"]), int(entry["frames"]), slower, bool(entry["finished"]))


def _keep(cache: Path, results: dict[str, Kept], say: Callable[[str], None]) -> None:
    """Writes the results, or says why that cannot be."""
    entries = {key: kept._asdict() | {"slower": sorted(kept.slower)} for key, kept in results.items()}
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cache, json.dumps(entries, indent=2))
        say(f"autotune: kept in {cache}, where the next --autotune goes on; delete that to search again")
    except OSError as error:
        say(f"autotune: not kept for the next time, because {cache} cannot be written: {error.strerror or error}")
