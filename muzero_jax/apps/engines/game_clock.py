"""The clocks of a game with time limits, and the time that a move may take."""

from muzero_jax.apps.engines.protocol import MOVES_TO_GO, share


class GameClock:
    """Both players' clocks as in GTP: main time, then byo-yomi periods for a number of stones each."""

    def __init__(self):
        self._byo_yomi = (0.0, 0)
        self._start: tuple[float, int] | None = None
        self._left: list[tuple[float, int] | None] = [None, None]  # seconds and stones (0: main time), by colour

    def settings(self, main_time: float, byo_yomi_time: float, byo_yomi_stones: int) -> None:
        """GTP's `time_settings`. A byo-yomi of no stones, or no time at all, means no limit."""
        is_limited = (main_time > 0 or byo_yomi_time > 0) and (byo_yomi_stones > 0 or not byo_yomi_time > 0)
        self._byo_yomi = (byo_yomi_time, byo_yomi_stones) if is_limited else (0.0, 0)
        start = (main_time, 0) if main_time > 0 else self._byo_yomi
        self._start = start if is_limited else None
        self.restart()

    def restart(self) -> None:
        """Both clocks as at the beginning of a game."""
        self._left = [self._start, self._start]

    def left(self, colour: int, seconds: float, stones: int) -> None:
        """GTP's `time_left`: seconds of main time if there are no stones, else for that many stones."""
        self._left[colour] = (seconds, stones)

    def allot(self, colour: int) -> float | None:
        """Seconds for the next move of `colour`; None if its time is not limited."""
        if (left := self._left[colour]) is None:
            return None
        reserve = 0.0 if left[1] else share(*self._byo_yomi)  # after the main time
        return max(share(left[0], left[1] or MOVES_TO_GO), reserve)

    def spend(self, colour: int, seconds: float) -> None:
        """Takes the time of a move of ours off the clock, until `time_left` corrects it."""
        if (left := self._left[colour]) is None:
            return
        remaining = max(0.0, left[0] - seconds)
        stones = left[1] - 1
        is_spent = stones == 0 or stones < 0 and not remaining  # a period ends with its last stone
        self._left[colour] = self._byo_yomi if is_spent else (remaining, max(0, stones))
