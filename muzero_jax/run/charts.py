"""Pictures by matplotlib: the curves of a run, and functions that make and write any figure.

Figures do not use pyplot, so that no global state changes; matplotlib is imported late, because that takes time.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from muzero_jax.own.files import check_writable, write_whole
from muzero_jax.run import metrics
from muzero_jax.run.metrics import FLOPS, MINUTES, Record

KINDS = (".png", ".svg", ".pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")  # Okabe-Ito, colour-blind safe
LABELS = {MINUTES: "training time (minutes)", FLOPS: "FLOPs of the network"}


class Chart(NamedTuple):
    """Metrics of a run over its time or its FLOPs."""

    title: str
    unit: str
    shown: Mapping[str, str]  # metrics, with their labels
    along: str = MINUTES
    scale: Literal["linear", "log", "share"] = "linear"


def check_path(path: Path) -> None:
    """Raises ValueError if no picture can be written to `path`; call it before a long computation."""
    if path.suffix not in KINDS:
        raise ValueError(f"cannot draw --plot {path}: its name must end in {', '.join(KINDS)}")
    check_writable(path, "--plot")


def save(figure: Any, path: Path, **options: Any) -> None:
    """Writes a figure, with options of matplotlib's `savefig`; an old file stays until the new one is complete."""
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], dpi=120, **options)
    write_whole(path, picture.getvalue())


def make_figure(size: tuple[float, float]) -> Any:
    """An empty figure, its size in inches."""
    from matplotlib.figure import Figure  # not pyplot, which would change global state

    return Figure(figsize=size, layout="constrained")


def plot_curves(run_dir: str | Path) -> Path:
    """Draws scores, Elo, losses and throughput into `run_dir/curves.png` and returns its path.

    A single-player game has returns instead of scores and Elo. Raises `ValueError` if there is nothing to draw.
    """
    path = Path(run_dir) / metrics.CURVES
    records = metrics.read_records(run_dir)
    if not records:
        raise ValueError(f"there is nothing to draw for {path}; train a run first")
    by_time, by_flops = (_strength(records, along) for along in (MINUTES, FLOPS))
    strength = [by_time, by_flops] if len(by_time) > 1 else [by_time + by_flops]
    right = [_losses(records), Chart("Throughput", "per second", metrics.RATES, scale="log")]
    save(_draw([*strength, right], records), path)
    return path


def draw_progress(records: Sequence[Record]) -> Any:
    """Scores (in a single-player game, returns) and losses so far, as a matplotlib figure."""
    return _draw([_strength(records, MINUTES)[:1], [_losses(records)]], records)


def _strength(records: Sequence[Record], along: str) -> list[Chart]:
    """The panels that show an agent's strength."""
    if any(name in record for record in records for name in metrics.RETURNS):
        return [Chart("Mean return of games that ended", "sum of a game's rewards", metrics.RETURNS, along)]
    opponents = {f"eval/{name}": metrics.opponent_of(name) for record in records for name in metrics.scores(record)}
    boards = sorted({name for record in records for name in record if name.startswith(metrics.OPENINGS)})
    shown = opponents | {
        name: name.replace(metrics.OPENINGS, "opening-value accuracy").replace("_", " ") for name in boards
    }
    if any(metrics.EXPLOITABILITY in record for record in records):
        found = {metrics.EXPLOITABILITY: "exploitability"}
        return [Chart("What a best response wins", "points a game", found, along, scale="log")]
    if any(metrics.is_points(name) for name in opponents):
        return [Chart("Mean points", "points a game", shown, along)]
    return [
        Chart("Score", "won, draws counting half", shown, along, scale="share"),
        Chart("Rating among its own versions", "Elo (first = 0)", {metrics.ELO: "Elo"}, along),
    ]


def _losses(records: Sequence[Record]) -> Chart:
    return Chart("Losses", "loss", metrics.losses(records), scale="log")


def _draw(columns: list[list[Chart]], records: Sequence[Record]) -> Any:
    """One figure of all panels, which are given column by column."""
    figure = make_figure((5.2 * len(columns), 3.6 * len(columns[0])))
    grid = figure.subplots(len(columns[0]), len(columns), squeeze=False)
    for axes, panel in zip(grid.T.flat, sum(columns, []), strict=True):
        _draw_panel(axes, panel, records)
    return figure


def _draw_panel(axes: Any, panel: Chart, records: Sequence[Record]) -> None:
    """Draws a labelled line for each metric, or "not measured" if there are no points."""
    from matplotlib.ticker import PercentFormatter

    axes.set_prop_cycle(color=COLOURS)
    for key, label in panel.shown.items():
        pairs = ((record.get(panel.along), record.get(key)) for record in records)
        points = dict(pair for pair in pairs if None not in pair)  # the later of two at one place, from the final match
        marker = "o" if key.startswith("eval/") else ""
        if points:
            axes.plot(*zip(*points.items(), strict=True), label=label, marker=marker, markersize=4)
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set(xlabel=LABELS[panel.along], ylabel=panel.unit)
    axes.set_xlim(left=0)
    axes.grid(True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False, fontsize="small")
    else:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color="0.5")
    if panel.scale == "log":
        axes.set_yscale("log", nonpositive="mask")
    if panel.scale == "share":
        axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle="--")
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
