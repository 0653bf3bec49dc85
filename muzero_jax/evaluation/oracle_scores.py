"""What a player's moves are worth against exact play, as plain numbers.

Rates are over positions in which a move can be a mistake: where every move keeps the value, being right says nothing.
The yardstick beside every rate is a uniformly random move, which keeps the value in the mean share of moves that do.
"""

from typing import Any

import numpy as np

from muzero_jax.evaluation.matches import wilson_interval
from muzero_jax.evaluation.tables import align, percent, percent_interval
from muzero_jax.games.oracle import ILLEGAL, Solutions

Score = dict[str, Any]


def describe(solutions: Solutions, is_own_play: np.ndarray) -> Score:
    """How many positions there are of each kind; "own play" are those that a player's own games led to."""
    value, can_err = solutions.value, solutions.can_err
    return {
        "positions": len(value),
        "from_own_play": int(is_own_play.sum()),
        "won": int((value > 0).sum()),
        "drawn": int((value == 0).sum()),
        "lost": int((value < 0).sum()),
        "can_err": int(can_err.sum()),
        "can_win_and_err": int((can_err & (value > 0)).sum()),
    }


def score_random(solutions: Solutions, is_own_play: np.ndarray) -> Score:
    """What a uniformly random move scores in the mean, exactly; it has no interval and estimates no value."""
    num_legal = (solutions.action_values != ILLEGAL).sum(axis=1)
    share_kept = solutions.keeps_value.sum(axis=1) / num_legal
    share_lost = (solutions.action_values == -1).sum(axis=1) / num_legal
    rates = _rates(share_kept, share_lost, solutions, is_own_play)
    return {"player": "a random move"} | {name: rate for name, (rate, _) in rates.items()}


def score_player(
    name: str, action: np.ndarray, value: np.ndarray | None, solutions: Solutions, is_own_play: np.ndarray
) -> Score:
    """A player's actions [N], and what it said its positions are worth [N] if it says so.

    `optimal_move_rate`: keeps the position's value, where some legal move would not. `keeps_win_rate`: the same where
    the value is a win, also by the positions' origin. `loses_win_rate`: moves from such a win to a loss.
    `value_error`: mean |value - exact value| over all positions. A rate over no positions is None.
    """
    chosen = solutions.action_values[np.arange(len(action)), action]
    rates = _rates(chosen == solutions.value, chosen == -1, solutions, is_own_play)
    result: Score = {"player": name}
    for rate_name, (rate, num_positions) in rates.items():
        result[rate_name] = rate
        result[f"{rate_name}_ci95"] = None if rate is None else list(wilson_interval(rate, num_positions))
    result["value_error"] = None if value is None else float(np.abs(value - solutions.value).mean())
    result["illegal_actions"] = int((chosen == ILLEGAL).sum())
    return result


def format_table(scores: list[Score]) -> str:
    """One line a player: percentages with their 95% intervals, and the value error."""
    columns = {"optimal_move_rate": "optimal moves", "keeps_win_rate": "keeps a win", "loses_win_rate": "loses a win"}
    rows = [["", *columns.values(), "value error"]]
    for score in scores:
        error = score.get("value_error")
        rates = [_format_rate(score[name], score.get(f"{name}_ci95")) for name in columns]
        rows.append([score["player"], *rates, "" if error is None else f"{error:.3f}"])
    return "\n".join(align(rows))


def _rates(
    keeps: np.ndarray, loses: np.ndarray, solutions: Solutions, is_own_play: np.ndarray
) -> dict[str, tuple[float | None, int]]:
    """Each rate with the number of positions that it is over."""
    can_win_and_err = solutions.can_err & (solutions.value > 0)
    parts = {
        "optimal_move_rate": (keeps, solutions.can_err),
        "keeps_win_rate": (keeps, can_win_and_err),
        "keeps_win_rate_random_play": (keeps, can_win_and_err & ~is_own_play),
        "keeps_win_rate_own_play": (keeps, can_win_and_err & is_own_play),
        "loses_win_rate": (loses, can_win_and_err),
    }
    counts = {name: int(where.sum()) for name, (_, where) in parts.items()}
    return {n: (float(x[where].mean()) if counts[n] else None, counts[n]) for n, (x, where) in parts.items()}


def _format_rate(rate: float | None, interval: list[float] | None) -> str:
    return percent(rate) if interval is None else f"{percent(rate)} {percent_interval(interval)}"
