"""Tables, plots and numbers as a person reads them, and the machine that figures are of."""

import math
import os
import platform
import shlex
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.ops import devices
from muzero_jax.own.files import write_whole
from muzero_jax.run import charts
from scripts.benchmarks.timing import Sample, Times

ROOT = Path(__file__).resolve().parents[2]
NOTHING = "-"
STYLES = tuple(zip(("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"), "osD^vP", strict=True))
"""Colours of Okabe and Ito, which all can tell apart, and markers."""


class Section(NamedTuple):
    """One chapter: what was measured and in which unit, tables as Markdown, and a plot of curves over a size."""

    title: str
    text: str
    tables: Sequence[str]
    plots: Mapping[str, tuple[str, str, Times]] = {}  # by title: the axes' labels, and the curves


def three_digits(value: float) -> str:
    """1234.5 -> "1,234", 12.34 -> "12.3", 0.01234 -> "0.0123"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def seconds(sample: Sample) -> str:
    """Median (first quartile to third) in the unit that suits the median."""
    unit, scale = next((u for u in (("us", 1e6), ("ms", 1e3)) if sample.median * u[1] < 1000), ("s", 1.0))
    median, low, high = (three_digits(scale * value) for value in sample)
    return f"{median} ({low} to {high}) {unit}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others lean to the right."""
    head, *body = ("| " + " | ".join(row) + " |" for row in (header, *rows))
    return "\n".join([head, "|---" + "|---:" * (len(header) - 1) + "|", *body])


def times_table(head: str, times: Times) -> str:
    """A row for each size: the time of every candidate, and how many times faster the first is than each other."""
    first, *others = times
    rows = []
    for size in sorted({size for row in times.values() for size in row}):
        found = {name: row[size] for name, row in times.items() if size in row}
        cells = [seconds(found[name]) if name in found else NOTHING for name in times]
        for name in others:
            known = first in found and name in found
            cells.append(f"{found[name].median / found[first].median:.2f}x" if known else NOTHING)
        rows.append([f"{size:,}", *cells])
    return table([head, *times, *(f"{first} over {name}" for name in others)], rows)


def crossover(first: Mapping[int, Sample], second: Mapping[int, Sample]) -> str:
    """From which size on the second is ahead at all larger ones, by medians; equal times count as not ahead.

    Between two sizes the logarithm of the ratio is taken to be linear in the size's logarithm.
    """
    sizes = sorted(first.keys() & second.keys())
    lag = {size: math.log(second[size].median / first[size].median) for size in sizes}
    behind = [size for size in sizes if lag[size] >= 0]
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
        for title, plot in section.plots.items():
            image = file.with_name(f"{file.stem}-{title.lower().replace(' ', '-')}.png")
            draw(image, title, *plot)
            parts.append(f"![{title}]({image.name})")
    write_whole(file, "\n\n".join(part for part in (*parts, end) if part) + "\n")


def fill(paragraph: str) -> str:
    """The paragraph in lines of 120 columns."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def draw(path: Path, title: str, x_label: str, y_label: str, lines: Times) -> None:
    """Writes one plot as a PNG, both axes logarithmic; each point has its spread."""
    figure = charts.make_figure((6.4, 3.6))
    axes = figure.subplots()
    for (label, points), (colour, marker) in zip(lines.items(), STYLES, strict=False):
        middle, low, high = zip(*points.values(), strict=True)
        errors = [[m - x for m, x in zip(middle, low, strict=True)], [x - m for m, x in zip(middle, high, strict=True)]]
        axes.errorbar(list(points), middle, errors, label=label, color=colour, marker=marker, markersize=4, capsize=2)
    axes.set(xlabel=x_label, ylabel=y_label, xscale="log", yscale="log")
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=90)


# --- the machine ------------------------------------------------------------------------------------------------------


def describe(arguments: Sequence[str]) -> dict[str, Any]:
    """Hardware and versions, without which no figure must be read, and nothing that names the machine's owner.

    `arguments` are the command's, script first.
    """
    script, *others = arguments
    return {
        "date": datetime.now().isoformat(" ", "minutes"),
        "hardware": devices.describe_device(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in "jax jaxlib flax optax mctx pgx numpy scipy".split()},
        "commit": commit(),
        "command": shlex.join(["python", f"scripts/{Path(script).name}", *map(_without_owner, others)]),
    }


def _without_owner(argument: str) -> str:
    """The argument without the folders of who called."""
    flag, equals, value = argument.rpartition("=")
    leads_outside = value.startswith(("/", "~")) or ".." in Path(value).parts
    return f"{flag}{equals}{Path(value).name}" if leads_outside else argument


def commit() -> str | None:
    """The commit whose code is measured, with "-dirty" if the clone was changed since; None outside of our clone."""
    asked = "git rev-parse --show-prefix && git describe --always --dirty --exclude='*'"
    done = subprocess.run(asked, shell=True, cwd=ROOT, capture_output=True, text=True)
    above, _, found = done.stdout.partition("\n")
    return found.strip() if done.returncode == 0 and not above else None  # above: the folder that somebody has us in
