"""Chooses where an agent plays: on the accelerator or on the CPU, whichever searches one position faster.

A search of one position is a long chain of small steps, and an accelerator has a cost for starting each of them. Which
device is faster depends on the network, the budget and the machine, so it is measured with the agent's own search.
Arrays and programs, and with them the kind of convolution, are made for `jax.default_device`.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import jax

Player = TypeVar("Player")
Device = Any
"""A `jax.Device`."""

TIMED_SECONDS = 0.2
"""How long each device is timed after a first call that compiles; at least three calls, because of outliers."""


def candidates() -> list[Device]:
    """The best device that JAX finds; if that is an accelerator, also a CPU, if JAX has one."""
    best = jax.devices()[0]
    if best.platform == "cpu":
        return [best]
    try:
        return [best, jax.devices("cpu")[0]]
    except RuntimeError:
        return [best]


def place(
    seat: Callable[[Device], Player],
    search: Callable[[Player], object],
    devices: Sequence[Device],
    say: Callable[[str], None],
) -> Player:
    """Makes a player on the device where its `search` is fastest, and makes that device JAX's default.

    With only one device, nothing is measured, said or changed.

    Args:
      seat: makes the player with all its arrays on a device, which is the default device meanwhile.
      search: one search; returns when the answer is on the host.
    """
    if len(devices) == 1:
        return seat(devices[0])
    seated = []
    seconds = []
    for device in devices:
        with jax.default_device(device):
            seated.append(seat(device))
            seconds.append(median_seconds(partial(search, seated[-1])))
    best = seconds.index(min(seconds))
    jax.config.update("jax_default_device", devices[best])
    times = ", ".join(f"{d.platform.upper()} {1000 * s:.1f} ms" for d, s in zip(devices, seconds, strict=True))
    say(f"playing on the {devices[best].platform.upper()}, where a search is fastest: {times}")
    return seated[best]


def median_seconds(search: Callable[[], object]) -> float:
    """The median time of a call, from as many calls as TIMED_SECONDS allow and at least three."""
    search()
    times: list[float] = []
    while len(times) < 3 or sum(times) < TIMED_SECONDS:
        start = time.perf_counter()
        search()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
