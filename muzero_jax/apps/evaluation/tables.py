"""Text tables: aligned columns, and tables that several commands print."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muzero_jax.apps.evaluation.matches import are_for_points, points_of

REPEATED = "Neither player plays at random, so repeated games are left out; --opening-plies gives more openings."


def align(rows: Iterable[Iterable[str]], sides: str = ">") -> list[str]:
    """The rows as lines, with columns as wide as their widest cell and two blanks apart.

    `sides` has < (left) or > (right) for each column; the last one also applies to all further columns.
    """
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    formats = [f"{side}{width}" for side, width in zip(sides.ljust(len(widths), sides[-1]), widths, strict=True)]
    return ["  ".join(map(format, row, formats)).rstrip() for row in cells]


def fields(record: dict) -> str:
    """A line for each field: name and value, floats with three decimals."""
    texts = {name: f"{value:.3f}" if isinstance(value, float) else str(value) for name, value in record.items()}
    return "\n".join(align(texts.items(), "><"))


def strength(matches: Mapping[str, Mapping[str, Any]]) -> str:
    """A player's scores, or mean points, against opponents, from `matches.summarise`'s dicts by the opponent's name."""
    is_for_points = are_for_points(matches.values())
    measure = "points a game" if is_for_points else "score"
    rows = [["opponent", measure, "95% interval", "won / drawn / lost", "distinct games"]]
    for opponent, match in matches.items():
        games = f"{match['wins']} / {match['draws']} / {match['losses']}"
        value, low, high = (
            map(signed, points_of(match)) if is_for_points else map(percent, (match["score"], *match["ci95"]))
        )
        rows.append([opponent, value, f"{low} to {high}", games, str(match.get("distinct_games", "-"))])
    return "\n".join(["Strength (colours balanced, every opening played from both sides)", *align(rows, "<")])


def signed(mean: float | None) -> str:
    """Mean points of a game, with their sign."""
    return "-" if mean is None else f"{mean:+.3f}"


def percent(share: float | None, missing: str = "-") -> str:
    """A share in [0, 1] in per cent, with one decimal; `missing` for None."""
    return missing if share is None else f"{100 * share:.1f}%"


def percent_interval(ends: Sequence[float]) -> str:
    """The ends of an interval of shares, in per cent."""
    return f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def summary_table(rows: Sequence[Mapping[str, str]], title: str) -> None:
    """Prints `rows`, whose keys are the columns, under `title`."""
    lines = align([rows[0], *(row.values() for row in rows)], "<") if rows else []
    print("\n".join([title, *lines]))
