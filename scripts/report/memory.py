"""Memory: a frame in the replay, and the most that process and device ever held."""

import resource
import sys
from collections.abc import Mapping

from muzero_jax.ops import devices
from muzero_jax.ops.devices import format_bytes
from muzero_jax.storage.config import Config
from scripts.benchmarks.plain_pipeline import PlainGame, frame_bytes
from scripts.measuring.machine import Machine
from scripts.measuring.report import NOTHING, Section, table


def memory_section(machine: Machine, config: Config) -> Section:
    """The chapter on memory, measured here; it comes last, so that the peaks are those of all chapters."""
    text = (
        "A frame is one move of Hex 5x5, as a pipeline in plain Python keeps it and as our replay buffer does. Peaks "
        "are of all chapters together. What a run holds it prints itself, before it begins."
    )
    game = PlainGame(config)
    game.move()
    stats = devices.memory_stats(machine.device)
    held = {
        "peak of this process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT,
        "peak of the device": stats.get("peak_bytes_in_use"),
        "limit of the device": stats.get("bytes_limit"),
    }
    peaks = [(name, format_bytes(size) if size else NOTHING) for name, size in held.items()]
    return Section("Memory", text, [frame_table(frame_bytes(game)), table(("memory", "bytes"), peaks)])


_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


def frame_table(sizes: Mapping[str, float]) -> str:
    """Bytes of a frame in the replay, and how much less ours takes than it would in a pipeline of plain Python."""
    rows = [(name, f"{size:,.0f}", f"{1 - sizes['ours'] / size:.1%}") for name, size in sizes.items()]
    return table(("a frame in the replay", "bytes", "ours saves"), rows)
