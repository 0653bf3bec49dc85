"""How much time a move may take, by GTP's time commands and UCI's `go`."""

import math

MOVES_TO_GO = 30
"""Moves of one colour that a game is expected to last from here, where nothing better is known."""
MARGIN = 0.05
"""Seconds of each move kept for talking."""


def share(left: float, moves_to_go: int, increment: float = 0.0) -> float:
    """Seconds for the next move when `left` must last for `moves_to_go`; never more than what is left."""
    return max(0.0, min(left / max(1, moves_to_go) + 0.8 * increment, left) - MARGIN)


class Clock:
    """Both players' time as GTP has it: main time, then byo-yomi periods of some stones."""

    def __init__(self):
        self._byo_yomi = (0.0, 0)
        self._left: list[tuple[float, int] | None] = [None, None]  # seconds and stones (0: main time), by colour

    def settings(self, main_time: float, byo_yomi_time: float, byo_yomi_stones: int) -> None:
        """GTP's `time_settings`. A byo-yomi of no stones, or no time at all, means no limit."""
        is_limited = (main_time > 0 or byo_yomi_time > 0) and (byo_yomi_stones > 0 or not byo_yomi_time > 0)
        self._byo_yomi = (byo_yomi_time, byo_yomi_stones) if is_limited else (0.0, 0)
        start = (main_time, 0) if main_time > 0 else self._byo_yomi
        self._left = [start, start] if is_limited else [None, None]

    def left(self, colour: int, seconds: float, stones: int) -> None:
        """GTP's `time_left`: seconds of main time if there are no stones, else for that many stones."""
        self._left[colour] = (max(0.0, seconds), stones)

    def allot(self, colour: int) -> float | None:
        """Seconds for the next move of `colour`; None if its time is not limited."""
        left = self._left[colour]
        if left is None:
            return None
        seconds, stones = left
        if stones:
            return share(seconds, stones)
        byo_yomi_time, byo_yomi_stones = self._byo_yomi
        reserve = byo_yomi_time / byo_yomi_stones if byo_yomi_stones else 0.0
        return max(share(seconds, MOVES_TO_GO), min(share(seconds + reserve, 1), share(reserve, 1)))

    def spend(self, colour: int, seconds: float) -> None:
        """Takes the time of a move of ours off the clock, until `time_left` corrects it."""
        left = self._left[colour]
        if left is None:
            return
        remaining = left[0] - seconds
        if left[1]:  # byo-yomi: a period ends with its last stone
            self._left[colour] = (max(0.0, remaining), left[1] - 1) if left[1] > 1 else self._byo_yomi
        else:
            self._left[colour] = (remaining, 0) if remaining > 0 else self._byo_yomi


def seconds_of(text: str) -> float:
    """A finite number of seconds, not negative; ValueError otherwise."""
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError("not a time")
    return value
