"""What a search or a network says of moves, as it is written over a board: shares of a policy, or values."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.play.drawing import signed

NOT_SHOWN = 0.005
"""Smaller shares are left out."""
Numbers = Mapping[int, float] | Sequence[float] | np.ndarray
"""By action."""


class Note(NamedTuple):
    """The note on a move."""

    text: str
    strength: float  # from 0 to 1: how strongly its colour shows
    kind: str  # the colour: of a `share`, or of a `good` or a `bad` value, for the player to move
    number: float


class Overlay(NamedTuple):
    """Notes on moves, and the move that the agent would play."""

    notes: Mapping[int, Note] = MappingProxyType({})
    choice: int | None = None


NOTHING = Overlay()


def of_shares(policy: Numbers, choice: int | None = None) -> Overlay:
    """The shares of a policy, the largest in the strongest colour."""
    numbers = _finite(policy)
    most = max(numbers.values(), default=1.0)
    notes = {
        action: Note(f"{100 * share:.0f}%", share / most, "share", share)
        for action, share in numbers.items()
        if share >= NOT_SHOWN
    }
    return Overlay(notes, choice)


def of_values(values: Numbers, choice: int | None = None, largest: float | None = 1.0) -> Overlay:
    """Values for the player to move; where no `largest` is known, that of these values has the strongest colour."""
    numbers = _finite(values)
    most = largest or max(map(abs, numbers.values()), default=0.0) or 1.0
    notes = {
        action: Note(signed(value), min(1.0, abs(value) / most), "bad" if value < 0 else "good", value)
        for action, value in numbers.items()
    }
    return Overlay(notes, choice)


def _finite(numbers: Numbers) -> dict[int, float]:
    pairs = numbers.items() if isinstance(numbers, Mapping) else enumerate(numbers)
    return {int(action): float(number) for action, number in pairs if np.isfinite(number)}
