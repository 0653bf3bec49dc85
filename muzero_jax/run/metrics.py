"""What a run tells about itself: a line of JSON and TensorBoard points per chunk, curves at the end.

A record is a flat dict of plain numbers. Its keys are grouped by a prefix: `selfplay/…`, `train/…`, `time/…`, and
`eval/<opponent>` for a score in [0, 1] beside `eval/elo`; `iteration` says where in the run it lies. `metrics.jsonl` is
the truth, everything else is drawn from it: a resumed run first cuts it back to the checkpoint's iteration, so no line
comes twice. tensorboardX, matplotlib and wandb are imported where they are used, as each takes its time.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from muzero_jax.storage.files import write_whole

Record = dict[str, Any]
"""Numbers by name; None where a number was not finite."""

FILE = "metrics.jsonl"
ELO = "eval/elo"
LOSSES = {"train/loss": "total"} | {f"train/{name}_loss": name for name in ("policy", "value", "reward")}
RATES = {
    "selfplay/frames_per_second": "frames/s",
    "selfplay/simulations_per_second": "simulations/s",
    "train/updates_per_second": "updates/s",
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")  # Okabe and Ito: safe for all


class MetricsWriter:
    """Writes records to `run_dir/metrics.jsonl`, to TensorBoard events beside it, and to `others`; opened by `with`.

    resume_from: the iteration of the checkpoint that the run goes on from; later lines are cut off, and all lines if it
    is 0. None appends. others: have `write(record)` and `close()`, as `wandb_writer`'s has. Raises `ValueError` if the
    disk is full or not writable.
    """

    def __init__(
        self,
        run_dir: str | Path,
        *,
        resume_from: int | None = None,
        tensorboard: bool = True,
        others: Sequence[Any] = (),
    ):
        self._run_dir = Path(run_dir)
        self._resume_from = resume_from
        self._tensorboard = tensorboard
        self._writers: list[Any] = list(others)

    def __enter__(self) -> "MetricsWriter":
        with self._explained():
            self._run_dir.mkdir(parents=True, exist_ok=True)
            if self._resume_from is not None:
                _cut(self._run_dir, self._resume_from)
            self._file = (self._run_dir / FILE).open("a", encoding="utf-8")
            if self._tensorboard:
                self._writers.append(_TensorBoard(self._run_dir, self._resume_from))
        return self

    def write(self, record: Mapping[str, Any]) -> None:
        """Takes numbers, or arrays of one number, by name; what is not finite becomes null."""
        plain = {name: _plain(value) for name, value in record.items()}
        with self._explained():
            self._file.write(json.dumps(plain, allow_nan=False) + "\n")
            self._file.flush()
            for writer in self._writers:
                writer.write(plain)

    def __exit__(self, *exception: object) -> None:
        with suppress(OSError):  # what could not be flushed has been reported by `write`
            self._file.close()
        for writer in self._writers:
            writer.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            sentence = f"cannot write metrics to {self._run_dir}: {reason}; free space or choose another --run-dir"
            raise ValueError(sentence) from error


class _TensorBoard:
    """Scalars as TensorBoard events, those of a resumed run's lost iterations purged."""

    def __init__(self, run_dir: Path, resume_from: int | None):
        from tensorboardX import SummaryWriter

        purge_step = None if resume_from is None else resume_from + 1
        self._writer = SummaryWriter(str(run_dir), purge_step=purge_step, flush_secs=30)

    def write(self, record: Record) -> None:
        step = record.get("iteration")
        for name, value in _finite(record).items():
            if name != "iteration":
                self._writer.add_scalar(name.replace(":", "_"), value, step)

    def close(self) -> None:
        self._writer.close()


def check_wandb() -> None:
    """Raises `ValueError` if wandb is not installed."""
    try:
        import wandb  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        remedy = 'pip install -e ".[wandb]" -c constraints.txt'
        raise ValueError(f"--wandb needs a package that is missing; run: {remedy}") from error


def wandb_writer(run_dir: str | Path, *, project: str = "muzero_jax", config: Mapping[str, Any] | None = None) -> Any:
    """A writer to Weights & Biases, named after the run's folder. Raises `ValueError` if wandb is not installed."""
    check_wandb()
    import wandb  # pyright: ignore[reportMissingImports]

    name = Path(run_dir).name
    run = wandb.init(project=project, name=name, id=name, dir=str(run_dir), config=dict(config or {}), resume="allow")
    return SimpleNamespace(write=lambda record: run.log(_finite(record), step=record["iteration"]), close=run.finish)


def read_records(run_dir: str | Path) -> list[Record]:
    """The lines of `metrics.jsonl`, oldest first; a last line that a kill cut short is left out."""
    path = Path(run_dir) / FILE
    records = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line))
    return records


def last_record(run_dir: str | Path, *, up_to_iteration: int) -> Record:
    """The newest record that is not beyond `up_to_iteration`, or {}; counts and times go on from it."""
    records = [record for record in read_records(run_dir) if record.get("iteration", 0) <= up_to_iteration]
    return _finite(records[-1]) if records else {}


def _finite(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}


def _cut(run_dir: Path, iteration: int) -> None:
    """Drops the lines beyond `iteration`; all of them if it is 0, as the run then starts anew."""
    if (run_dir / FILE).exists():
        kept = [record for record in read_records(run_dir) if iteration and record.get("iteration", 0) <= iteration]
        write_whole(run_dir / FILE, "".join(json.dumps(record) + "\n" for record in kept))


def _plain(value: Any) -> int | float | None:
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return int(number)
    return float(number) if math.isfinite(number) else None


def scores(record: Mapping[str, Any]) -> dict[str, float]:
    """Score by opponent, of a record that has any."""
    return {key[len("eval/") :]: record[key] for key in record if key.startswith("eval/") and key != ELO}


def plot_curves(run_dir: str | Path) -> Path:
    """Draws `metrics.jsonl` into `run_dir/curves.png` and returns its path: scores, Elo, losses and throughput.

    Draws on a figure of its own, so that nothing global in matplotlib changes. Raises `ValueError` if there is nothing
    to draw.
    """
    from matplotlib.figure import Figure

    records = read_records(run_dir)
    if not records:
        raise ValueError(f"there is nothing to draw in {Path(run_dir) / FILE}; train a run first")
    figure = Figure(figsize=(11, 7.2))
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
    (strength, rating), (loss, speed) = figure.subplots(2, 2)
    opponents = {f"eval/{name}": name for record in records for name in scores(record)}
    only = next(iter(opponents.values())) if len(opponents) == 1 else ""  # with more, a legend goes on with the title
    _panel(strength, records, opponents, f"Score against {only}", "score (%)", scale=100, marker="o")
    strength.axhline(50, color="0.6", linewidth=0.8, linestyle="--", zorder=1)
    strength.set_ylim(-3, 103)
    _panel(rating, records, {ELO: "Elo"}, "Rating among the run's own versions", "Elo (first version = 0)", marker="o")
    _panel(loss, records, LOSSES, "Losses", "loss (log scale)", log=True)
    _panel(speed, records, RATES, "Throughput", "per second (log scale)", log=True)
    path = Path(run_dir) / "curves.png"
    figure.savefig(path, dpi=120)
    return path


def _panel(axes: Any, records: list[Record], names: Mapping[str, str], title: str, unit: str, **style: Any) -> None:
    """One panel: the named metrics over minutes, each labelled; says so where there is nothing to show."""
    scale, log = style.get("scale", 1), style.get("log", False)
    line = {"linewidth": 1.6, "marker": style.get("marker"), "markersize": 4, "zorder": 2}
    for colour, (key, label) in zip(COLOURS, names.items(), strict=False):
        points = [(record.get("time/minutes"), record.get(key)) for record in records]
        points = [(x, y * scale) for x, y in points if x is not None and y is not None and not (log and y <= 0)]
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(x, y, color=colour, label=label, **line)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set(xlabel="training time (minutes)", ylabel=unit)
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    if not axes.lines:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color="0.5")
        return
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    if len(names) > 1:  # over the panel, where there are no curves
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=min(len(names), 4),
            frameon=False,
            fontsize=8.5,
            borderaxespad=0.2,
            handlelength=1.1,
            handletextpad=0.4,
            columnspacing=1.0,
        )
