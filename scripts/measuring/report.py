"""Tables, plots, and chapters of them, as Markdown; numbers as a person reads them."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from muzero_jax.own.files import write_whole
from muzero_jax.run import charts
from scripts.measuring.timing import Sample, Times

NOTHING = "-"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito: safe for all
MARKERS = "osD^vP"


class Plot(NamedTuple):
    """Curves over a size, both axes logarithmic; each point is drawn with its spread."""

    name: str  # of the file, without suffix
    title: str
    x_label: str
    y_label: str
    lines: Times


class Section(NamedTuple):
    """One chapter: what was measured and in which unit, the tables as Markdown, and plots."""

    title: str
    text: str
    tables: Sequence[str]
    plots: Sequence[Plot] = ()


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
    line = "|---" + "|---:" * (len(header) - 1) + "|"
    head, *body = ("| " + " | ".join(row) + " |" for row in (header, *rows))
    return "\n".join([head, line, *body])


def times_table(head: str, times: Times) -> str:
    """A row for each size: the time of every candidate, and how many times faster the first is than each other."""
    first, *others = times
    rows = []
    for size in sorted({size for row in times.values() for size in row}):
        found = {name: row[size] for name, row in times.items() if size in row}
        cells = [seconds(found[name]) if name in found else NOTHING for name in times]
        both = [first in found and name in found for name in others]
        speedups = [
            f"{found[name].median / found[first].median:.2f}x" if known else NOTHING
            for name, known in zip(others, both, strict=True)
        ]
        rows.append([f"{size:,}", *cells, *speedups])
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
    """Writes a report of numbered chapters, and each plot as <stem>-<name>.png in the same folder."""
    parts = ["# Hardware report", fill(text)]
    for number, section in enumerate(sections, 1):
        images = [f"![{plot.title}]({file.stem}-{plot.name}.png)" for plot in section.plots]
        parts += [f"## {number}. {section.title}", fill(section.text), *section.tables, *images]
        for plot in section.plots:
            draw(plot, file.with_name(f"{file.stem}-{plot.name}.png"))
    write_whole(file, "\n\n".join(part for part in (*parts, end) if part) + "\n")


def fill(paragraph: str) -> str:
    """The paragraph in lines of 120 columns."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def draw(plot: Plot, path: Path) -> None:
    """Writes one plot as a PNG."""
    figure = charts.make_figure((6.4, 3.6))
    axes = figure.subplots()
    for (label, points), colour, marker in zip(plot.lines.items(), COLOURS, MARKERS, strict=False):
        middle, low, high = zip(*points.values(), strict=True)
        errors = [[m - x for m, x in zip(middle, low, strict=True)], [x - m for m, x in zip(middle, high, strict=True)]]
        axes.errorbar(list(points), middle, errors, label=label, color=colour, marker=marker, markersize=4, capsize=2)
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label, xscale="log", yscale="log")
    axes.set_title(plot.title, loc="left", fontsize=10, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=90)
