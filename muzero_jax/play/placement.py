"""Where an agent plays: on whichever of the accelerator and the CPU searches one position sooner.

A search of one position is a long chain of small steps. An accelerator pays for starting each of them and a CPU does
not, so which is faster depends on the network, the budget and the machine: it is measured, on the agent's own search.
Whoever seats the agent makes arrays and traces programs for `jax.default_device`, as the convolution does.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax

Player = TypeVar("Player")
Clock = Callable[[], float]
Device = Any
"""A `jax.Device`."""

TIMED_SECONDS = 0.2
"""How long each device searches, but three times at least, so that one slow call does not decide.

The call that compiles comes on top.
"""


class Placement(NamedTuple):
    """What was found out about each device."""

    device: Device  # the fastest
    seconds: list[float]  # of a search, by candidate


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
    *,
    clock: Clock = time.perf_counter,
) -> Player:
    """Seats a player where its `search` takes least time, and makes that JAX's default device.

    Nothing is measured, said or changed where there is one device to choose from.

    Args:
      seat: makes the player with everything that it holds on a device, which is the default one meanwhile.
      search: returns when the answer is on the host.
    """
    if len(devices) == 1:
        return seat(devices[0])
    seated = {}

    def searches_on(device: Device) -> Callable[[], object]:
        seated[device] = seat(device)
        return lambda: search(seated[device])

    device, seconds = compare(devices, searches_on, clock)
    jax.config.update("jax_default_device", device)
    say(describe(devices, device, seconds))
    return seated[device]


def compare(
    devices: Sequence[Device], searches_on: Callable[[Device], Callable[[], object]], clock: Clock
) -> Placement:
    """Times the search of every device, with that as the default device; of equals, the first is the fastest."""
    seconds = []
    for device in devices:
        with jax.default_device(device):
            seconds.append(median_seconds(searches_on(device), clock))
    return Placement(devices[seconds.index(min(seconds))], seconds)


def median_seconds(search: Callable[[], object], clock: Clock) -> float:
    """The median of the calls that TIMED_SECONDS allow, at least three; the first call compiles and is not counted."""
    search()
    times: list[float] = []
    while len(times) < 3 or sum(times) < TIMED_SECONDS:
        start = clock()
        search()
        times.append(clock() - start)
    return statistics.median(times)


def describe(devices: Sequence[Device], chosen: Device, seconds: Sequence[float]) -> str:
    """One line: where the agent plays, and why."""
    times = ", ".join(f"{d.platform.upper()} {1000 * s:.1f} ms" for d, s in zip(devices, seconds, strict=True))
    return f"playing on the {chosen.platform.upper()}, where a search is fastest: {times}"
