"""Numbers that are drawn over a board for moves: shares of a policy, or values."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.drawing import signed
from muzero_jax.apps.play.shapes import Point

NOT_SHOWN = 0.005
"""Shares below this are left out."""
MOVES_SHOWN, HEIGHT = 150, 0.15
"""Of the line of values: the most moves (ten seconds of an arcade game), and height / width."""
Numbers = Mapping[int, float] | Sequence[float] | np.ndarray
"""Numbers by action."""


class Note(NamedTuple):
    """The note on a move."""

    text: str
    strength: float  # of its colour, from 0 to 1
    kind: str  # `share`, or a `good` or `bad` value for the player to move
    number: float


class Overlay(NamedTuple):
    """Notes on moves, and the move that the agent would play."""

    notes: Mapping[int, Note] = MappingProxyType({})
    choice: int | None = None


NOTHING = Overlay()


def of_shares(policy: Numbers, choice: int | None = None) -> Overlay:
    """An overlay of a policy's shares; the largest has the strongest colour."""
    numbers = _finite(policy)
    most = max(numbers.values(), default=1.0)
    notes = {
        action: Note(f"{100 * share:.0f}%", share / most, "share", share)
        for action, share in numbers.items()
        if share >= NOT_SHOWN
    }
    return Overlay(notes, choice)


def of_values(values: Numbers, choice: int | None = None, largest: float | None = 1.0) -> Overlay:
    """An overlay of values for the player to move; without `largest`, the largest value has the strongest colour."""
    numbers = _finite(values)
    most = largest or max(map(abs, numbers.values()), default=0.0) or 1.0
    notes = {
        action: Note(signed(value), min(1.0, abs(value) / most), "bad" if value < 0 else "good", value)
        for action, value in numbers.items()
    }
    return Overlay(notes, choice)


def history(values: Mapping[int, float], ply: int) -> str:
    """An SVG line of the first player's value over the last moves, with a line at 0; "" for fewer than two values."""
    shown = {at: values[at] for at in sorted(values) if ply - MOVES_SHOWN < at <= ply}
    if len(shown) < 2:
        return ""
    low, high = min(0.0, *shown.values()), max(0.0, *shown.values())
    first = min(shown)
    scale = HEIGHT / ((high - low) or 1.0)
    points: list[Point] = [((at - first) / (ply - first), (high - value) * scale) for at, value in shown.items()]
    line = shapes.path("values", shapes.outline(points, ""))
    zero = shapes.path("zero", shapes.outline([(0, high * scale), (1, high * scale)], ""))
    frame = f"-0.5 -0.5 {shapes.UNIT + 1} {HEIGHT * shapes.UNIT + 1:g}"
    label = f"Value over the last {len(shown)} moves, from {signed(low)} to {signed(high)}"
    return shapes.element("svg", zero + line, "history", viewBox=frame, role="img", aria_label=label)


def _finite(numbers: Numbers) -> dict[int, float]:
    pairs = numbers.items() if isinstance(numbers, Mapping) else enumerate(numbers)
    return {int(action): float(number) for action, number in pairs if np.isfinite(number)}
