"""Plots on figures of their own, so that nothing global in matplotlib changes."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.measuring.markdown import BarPlot, LinePlot
from scripts.measuring.words import three_digits

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito: safe for all
MARKERS = "osD^vP"


def draw(plot: LinePlot | BarPlot, path: Path) -> None:
    """Writes one plot as a PNG."""
    height = 3.6 if isinstance(plot, LinePlot) else 1.1 + 0.4 * len(plot.bars)
    figure = Figure(figsize=(6.4, height), layout="constrained")
    axes = figure.subplots()
    if isinstance(plot, LinePlot):
        _lines(axes, plot)
    else:
        _bars(axes, plot)
    axes.set_title(plot.title, loc="left", fontsize=10, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=90)


def _lines(axes: Axes, plot: LinePlot) -> None:
    for (label, points), colour, marker in zip(plot.lines.items(), COLOURS, MARKERS, strict=False):
        middle, low, high = zip(*points.values(), strict=True)
        errors = [[m - x for m, x in zip(middle, low, strict=True)], [x - m for m, x in zip(middle, high, strict=True)]]
        axes.errorbar(list(points), middle, errors, label=label, color=colour, marker=marker, markersize=4, capsize=2)
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label, xscale="log", yscale="log")
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    low, high = axes.get_ylim()
    few = high < 20 * low  # too few powers of ten to read the axis by
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:,g}" if few and f"{value:g}"[0] in "246" else "")
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)


def _short(value: float) -> str:
    """1000 -> "1,000", 10000000 -> "10M"."""
    return f"{value / 1e6:,.0f}M" if value >= 1e6 else f"{value:,.0f}"


def _bars(axes: Axes, plot: BarPlot) -> None:
    bars = axes.barh(list(plot.bars), list(plot.bars.values()), color=COLOURS[0], height=0.6)
    axes.bar_label(bars, [three_digits(value) for value in plot.bars.values()], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlabel=plot.x_label)
