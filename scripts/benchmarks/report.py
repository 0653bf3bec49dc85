"""Tables, plots and numbers for people, and a description of the machine."""

import math
import os
import platform
import shlex
import subprocess
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.own.files import write_whole
from muzero_jax.run import charts
from muzero_jax.run.machine import describe_device

ROOT = Path(__file__).resolve().parents[2]
NOTHING = "-"
Record = dict[str, Any]
"""A measured case, as `suites.measure` makes it."""


class Section(NamedTuple):
    """One chapter: a text, tables as Markdown, and plots by title, each from cases of growing size."""

    title: str
    text: str
    tables: Sequence[str]
    plots: Mapping[str, Sequence[Record]] = {}


def three_digits(value: float) -> str:
    """1234.5 -> "1,234", 12.34 -> "12.3", 0.01234 -> "0.0123"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are aligned to the right."""
    head, *body = ("| " + " | ".join(row) + " |" for row in (header, *rows))
    return "\n".join([head, "|---" + "|---:" * (len(header) - 1) + "|", *body])


def columns_table(corner: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """A Markdown table from columns: {title: {name of the row: cell}}."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = ((name, *(column.get(name, NOTHING) for column in columns.values())) for name in names)
    return table((corner, *columns), rows)


def rates_table(records: Sequence[Record]) -> str:
    """A Markdown table with a column for each case of a suite, and a row for each rate and ratio, with spreads."""
    columns = {record["case"]: dict(_cells(record)) for record in records}
    return columns_table(f"{records[0]['suite']}: {records[0]['unit']}", columns)


def _cells(record: Record) -> Iterator[tuple[str, str]]:
    for name, rate in record["rates"].items():
        yield name, f"{three_digits(rate['median'])} ({rate['spread']:.0%})"
    for ratio in record["ratios"]:
        aim = f", aim {ratio['aim']:g}" if ratio["aim"] is not None else ""
        yield (
            f"{ratio['numerator']} / {ratio['denominator']}",
            f"**{ratio['median']:.2f}x** ({ratio['spread']:.0%}{aim})",
        )


def size_of(record: Record) -> int:
    """The size that is a case's name."""
    return int(record["case"].replace(",", ""))


def crossover(records: Sequence[Record], first: str, second: str) -> str:
    """In words, the size from which the second has the higher median rate at all larger sizes.

    Between two sizes, the ratio's logarithm is interpolated linearly in the size's logarithm.
    """
    rates = {size_of(record): record["rates"] for record in records}
    lag = {size: math.log(of[first]["median"] / of[second]["median"]) for size, of in rates.items()}
    sizes = list(lag)
    behind = [size for size in lag if lag[size] >= 0]
    if not behind:
        return f"ahead from the smallest, {sizes[0]:,}"
    last = behind[-1]
    if last == sizes[-1]:
        return f"never, up to {last:,}"
    following = sizes[sizes.index(last) + 1]
    at = last * (following / last) ** (lag[last] / (lag[last] - lag[following]))
    return f"between {last:,} and {following:,}, near {three_digits(float(f'{at:.2g}'))}"


def write(file: Path, text: str, sections: Sequence[Section], end: str) -> None:
    """Writes a report of numbered chapters, and each plot as <stem>-<title>.png in the same folder."""
    parts = ["# Hardware report", fill(text)]
    for number, section in enumerate(sections, 1):
        parts += [f"## {number}. {section.title}", fill(section.text), *section.tables]
        for title, records in section.plots.items():
            image = file.with_name(f"{file.stem}-{title.replace(',', '').replace(' ', '-')}.png")
            draw(image, title, records)
            parts.append(f"![{title}]({image.name})")
    write_whole(file, "\n\n".join(part for part in (*parts, end) if part) + "\n")


def fill(paragraph: str) -> str:
    """The paragraph in lines of 120 columns."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def draw(path: Path, title: str, records: Sequence[Record]) -> None:
    """Writes a plot of the rates by size as a PNG, both axes logarithmic."""
    figure = charts.make_figure((6.4, 3.6))
    axes = figure.subplots()
    sizes = [size_of(record) for record in records]
    for name, colour in zip(records[0]["rates"], charts.COLOURS, strict=False):
        axes.plot(sizes, [record["rates"][name]["median"] for record in records], "o-", label=name, color=colour)
    axes.set(xlabel="size", ylabel=records[0]["unit"], xscale="log", yscale="log")
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)
    charts.save(figure, path)


# --- the machine ------------------------------------------------------------------------------------------------------


def describe(arguments: Sequence[str]) -> dict[str, Any]:
    """Hardware, versions, commit and command of a measurement; `arguments` are the command's, script first."""
    script, *others = arguments
    return {
        "date": datetime.now().isoformat(" ", "minutes"),
        "hardware": describe_device(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in "jax jaxlib flax optax mctx pgx numpy scipy".split()},
        "commit": commit(),
        "command": shlex.join(["python", f"scripts/{Path(script).name}", *others]),
    }


def commit() -> str | None:
    """The measured commit, with "-dirty" if the clone has changes; None without git."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or None
