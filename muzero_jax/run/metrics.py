"""The records of a run: a line of JSON and TensorBoard points per chunk, curves at the end.

A record is a flat dict of plain numbers, whose keys are grouped by a prefix: `selfplay/…`, `train/…`, `time/…`, and
`eval/<opponent>` for a score in [0, 1], `eval/elo` or `eval/openings_right`; `iteration` says where in the run it lies.
`metrics.jsonl` is the truth, and everything else is drawn from it. A resumed run first cuts it back to the checkpoint's
iteration, so no line comes twice. tensorboardX, matplotlib and wandb are imported where they are used, as each takes
its time.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from muzero_jax.own.files import explained, write_whole
from muzero_jax.run import charts

Record = dict[str, Any]
"""Numbers by name; None where a number was not finite."""

FILE, CURVES = "metrics.jsonl", "curves.png"
FLUSH_SECONDS = 30
"""Between two times that TensorBoard's events go to the disk, which is waited for."""
ELO, OPENINGS = "eval/elo", "eval/openings_right"
RETURN, RANDOM_RETURN = "selfplay/mean_return", "selfplay/random_return"
RETURNS = {RETURN: "self-play", RANDOM_RETURN: "random play"}
"""The metrics in place of scores where a game is for one."""
MINUTES, FLOPS = "time/minutes", "total/flops"
LABELS = {MINUTES: "training time (minutes)", FLOPS: "FLOPs of the network"}
LOSSES = {"train/loss": "total"} | {f"train/{name}_loss": name for name in ("policy", "value", "reward")}
RATES = {
    "selfplay/frames_per_second": "frames/s",
    "selfplay/simulations_per_second": "simulations/s",
    "train/updates_per_second": "updates/s",
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")  # Okabe and Ito: safe for all


@contextmanager
def open_metrics(
    run_dir: str | Path, *, resume_from: int = 0, tensorboard: bool = True, others: Sequence[Any] = ()
) -> Iterator[Callable[[Mapping[str, Any]], Record]]:
    """Gives a function that writes a record to `run_dir/metrics.jsonl`, to TensorBoard events there, and to `others`.

    Records hold numbers, or arrays of one number; what is not finite becomes null. The function returns what was
    written. Raises `ValueError` if the disk is full or not writable.

    Args:
      resume_from: the iteration from which the run continues. Later lines are cut off, and all lines if it is 0.
      others: have `write(record)` and `close()`, as `wandb_writer`'s has.
    """
    run_dir, writers = Path(run_dir), list(others)
    with explained("metrics", run_dir):
        records = read_records(run_dir) if resume_from else []
        kept = [record for record in records if record["iteration"] <= resume_from]
        write_whole(run_dir / FILE, "".join(json.dumps(record) + "\n" for record in kept))
        file = (run_dir / FILE).open("a", encoding="utf-8")
        if tensorboard:
            writers.append(_tensorboard_writer(run_dir, resume_from))

    def write(record: Mapping[str, Any]) -> Record:
        plain = {name: _plain(value) for name, value in record.items()}
        with explained("metrics", run_dir):
            file.write(json.dumps(plain, allow_nan=False) + "\n")
            file.flush()
            for writer in writers:
                writer.write(plain)
        return plain

    try:
        yield write
    finally:
        with suppress(OSError):  # what could not be flushed has been reported by `write`
            file.close()
        for writer in writers:
            writer.close()


def _tensorboard_writer(run_dir: Path, resume_from: int) -> Any:
    """Scalars as TensorBoard events, those of a resumed run's lost iterations purged."""
    from tensorboardX import SummaryWriter

    # With no bound on the queue: tensorboardX's thread ends when the disk is full, and nobody empties it any more.
    events = SummaryWriter(str(run_dir), purge_step=resume_from + 1, max_queue=0, flush_secs=FLUSH_SECONDS)

    def write(record: Record) -> None:
        for name, value in _finite(record).items():
            if name != "iteration":
                events.add_scalar(name, value, record.get("iteration"))

    def close() -> None:
        with suppress(OSError):  # on a full disk `metrics.jsonl`, which is the truth, has failed before
            events.close()

    return SimpleNamespace(write=write, close=close)


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
    """The lines of `metrics.jsonl`, oldest first; one that a kill cut short, or that is damaged, is left out."""
    path, records = Path(run_dir) / FILE, []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        with suppress(ValueError, RecursionError):
            records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict) and isinstance(record.get("iteration"), int)]


def last_record(
    run_dir: str | Path, *, up_to_iteration: int, say: Callable[[str], object] = lambda line: None
) -> Record:
    """The newest record not beyond `up_to_iteration`, where counts and times go on; {} and a line if there is none."""
    records = [record for record in read_records(run_dir) if record["iteration"] <= up_to_iteration]
    if not records and up_to_iteration:
        say(f"{Path(run_dir) / FILE} has no record of the run so far; its totals and its minutes count again from here")
    return _finite(records[-1]) if records else {}


def _finite(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}


def _plain(value: Any) -> int | float | None:
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return int(number)
    return float(number) if math.isfinite(number) else None


def scores(record: Mapping[str, Any]) -> dict[str, float]:
    """Scores by opponent, if the record has any."""
    keys = (key for key in record if key.startswith("eval/") and key not in (ELO, OPENINGS))
    return {key.removeprefix("eval/"): record[key] for key in keys}


def brings_evaluation(record: Mapping[str, Any]) -> bool:
    """Whether a record says how strong the agent is: by scores, opening values or an Elo among its versions."""
    return any(key.startswith("eval/") for key in record)


def plot_curves(run_dir: str | Path) -> Path:
    """Draws scores, Elo, losses and throughput into `run_dir/curves.png` and returns its path.

    A single-player game has returns instead of scores and Elo. Raises `ValueError` if there is nothing to draw.
    """
    from matplotlib.figure import Figure  # not pyplot, which would change global state

    records = read_records(run_dir)
    if not records:
        raise ValueError(f"there is nothing to draw in {Path(run_dir) / FILE}; train a run first")
    is_for_one = _is_for_one(records)
    figure = Figure(figsize=(10.4 if is_for_one else 15.5, 7.2), layout="constrained")
    panels = figure.subplots(2, 2 if is_for_one else 3)
    if is_for_one:
        for panel, along in zip(panels[:, 0], (MINUTES, FLOPS), strict=True):
            _draw_returns(panel, records, along)
    else:
        for (strength, rating), along in zip(panels.T, (MINUTES, FLOPS), strict=False):
            _draw_scores(strength, records, along)
            _panel(rating, records, {ELO: "Elo"}, "Rating among its own versions", "Elo (first = 0)", along, marker="o")
    loss, speed = panels[:, -1]
    _draw_losses(loss, records)
    _panel(speed, records, RATES, "Throughput", "per second")
    speed.set_yscale("log", nonpositive="mask")
    charts.save(figure, path := Path(run_dir) / CURVES)
    return path


def draw_progress(records: Sequence[Record]) -> Any:
    """Scores (in a single-player game returns) and losses so far, as a figure of matplotlib's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    strength, loss = figure.subplots(1, 2)
    (_draw_returns if _is_for_one(records) else _draw_scores)(strength, records)
    _draw_losses(loss, records)
    return figure


def losses(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The losses that records hold, with their names for a person: the usual ones first, then others, also your own."""
    found = {name for record in records for name in record if name.endswith("_loss")} - {"train/root_value_loss"}
    others = {name: name.removeprefix("train/").removesuffix("_loss") for name in sorted(found - LOSSES.keys())}
    return {name: label for name, label in LOSSES.items() if any(name in record for record in records)} | others


def _is_for_one(records: Sequence[Record]) -> bool:
    """Whether the records are of a single-player game."""
    return any(name in record for record in records for name in RETURNS)


def _draw_returns(axes: Any, records: Sequence[Record], along: str = MINUTES) -> None:
    _panel(axes, records, RETURNS, "Mean return of games that ended", "sum of a game's rewards", along)


def _draw_scores(axes: Any, records: Sequence[Record], along: str = MINUTES) -> None:
    from matplotlib.ticker import PercentFormatter

    opponents = {f"eval/{name}": name for record in records for name in scores(record)}
    shown = opponents | {OPENINGS: "opening values right"}
    _panel(axes, records, shown, "Score", "won, draws counting half", along, marker="o")
    axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle="--")
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _draw_losses(axes: Any, records: Sequence[Record]) -> None:
    _panel(axes, records, losses(records), "Losses", "loss")
    axes.set_yscale("log", nonpositive="mask")


def _panel(
    axes: Any,
    records: Sequence[Record],
    names: Mapping[str, str],
    title: str,
    unit: str,
    along: str = MINUTES,
    **style: Any,
) -> None:
    """One panel: the named metrics along another, each labelled; says so where there is nothing to show."""
    axes.set_prop_cycle(color=COLOURS)
    for key, label in names.items():
        pairs = ((record.get(along), record.get(key)) for record in records)
        points = dict(pair for pair in pairs if None not in pair)  # of two at one place the later: the final match
        if points:
            axes.plot(*zip(*points.items(), strict=True), label=label, markersize=4, **style)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set(xlabel=LABELS[along], ylabel=unit)
    axes.set_xlim(left=0)
    axes.grid(True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False, fontsize="small")
    else:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color="0.5")
