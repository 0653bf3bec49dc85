"""Where an agent plays: on whichever of the accelerator and the CPU searches one position sooner.

A search of one position is a long chain of small steps. An accelerator pays for starting each of them and a CPU does
not, so which is faster depends on the network, the budget and the machine: it is measured, on the agent's own search.
Arrays are made and programs are traced for `jax.default_device`, as the convolution is.
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
"""How long each device searches after a first call that compiles; at least three times, so that no slow call counts."""


def candidates() -> list[Device]:
    """The best device that JAX finds; if that is an accelerator, a CPU too, unless JAX has none."""
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
    """Seats a player where its `search` takes least time, and makes that JAX's default device; of equals, the first.

    Nothing is measured, said or changed where there is one device to choose from.

    Args:
      seat: makes the player with everything that it holds on a device, which is the default one meanwhile.
      search: returns when the answer is on the host.
    """
    if len(devices) == 1:
        return seat(devices[0])
    seated, seconds = [], []
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
    """The median time of a call, as many as TIMED_SECONDS allow."""
    search()
    times: list[float] = []
    while len(times) < 3 or sum(times) < TIMED_SECONDS:
        start = time.perf_counter()
        search()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
