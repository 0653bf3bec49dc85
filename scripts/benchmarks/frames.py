"""What a frame costs in the replay: as the plain pipeline keeps it, and as our ring does."""

import math
import sys
from typing import Any

import jax

from muzero_jax import training
from muzero_jax.arithmetic import devices
from muzero_jax.storage.config import Config
from scripts.benchmarks import workloads
from scripts.measuring.markdown import Table


def plain_bytes(replay: list[dict[str, Any]]) -> tuple[float, float]:
    """Bytes a frame: of the arrays and numbers alone (4 each), and of the Python objects that hold them."""
    payload = sum(getattr(value, "nbytes", 4) for frame in replay for value in frame.values())
    objects = sum(sys.getsizeof(frame) + sum(map(sys.getsizeof, frame.values())) for frame in replay)
    return payload / len(replay), objects / len(replay)


def ring_bytes(config: Config) -> float:
    """Bytes of a frame in our replay ring."""
    parts = workloads.parts_of(config)
    ring = training.abstract_state(config, parts, devices.make_mesh(1)).replay.transitions
    frames = config.replay.replay_length * config.self_play.num_envs
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(ring)) / frames


def saved(replay: list[dict[str, Any]], config: Config) -> dict[str, float]:
    """Bytes a frame of either, and the shares that ours saves."""
    (payload, objects), own = plain_bytes(replay), ring_bytes(config)
    sizes = {"plain": payload, "plain_as_python_objects": objects, "ours": own}
    return sizes | {"saved": 1 - own / payload, "saved_of_objects": 1 - own / objects}


def table(memory: dict[str, float]) -> Table:
    """From `saved`."""
    rows = {
        "float32 arrays, numbers of 4 bytes": (memory["plain"], f"**{memory['saved']:.1%}**"),
        "the same as Python objects": (memory["plain_as_python_objects"], f"**{memory['saved_of_objects']:.1%}**"),
        "our ring": (memory["ours"], ""),
    }
    header = ("a frame in the replay", "bytes", "ours saves")
    return Table(header, [(name, f"{size:,.0f}", share) for name, (size, share) in rows.items()])
