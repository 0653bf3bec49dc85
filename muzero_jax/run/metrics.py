"""The records of a run: a line of JSON and TensorBoard points for each chunk.

A record is a flat dict of plain numbers, whose keys have a prefix: `selfplay/…`, `train/…`, `time/…`, `total/…`, and
`eval/<opponent>` for a score in [0, 1], `eval/points/<opponent>` instead for mean points in a game for points,
`eval/elo` or `eval/openings_right`; `iteration` is its place in the run.
Curves are drawn from `metrics.jsonl` (`charts`). A resumed run first cuts it back to the checkpoint's iteration, so
that no iteration appears twice. tensorboardX and wandb are imported late, because that takes time.
"""

import importlib.util
import json
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from muzero_jax.own.files import explained, write_whole

Record = dict[str, Any]
"""Numbers by name; None for a number that was not finite."""

FILE = "metrics.jsonl"
CURVES = "curves.png"
WANDB_ID = "wandb-id.txt"
FLUSH_SECONDS = 30
"""Seconds between two writes of TensorBoard's events, because the run waits for each."""
ELO = "eval/elo"
OPENINGS = "eval/openings_right"
EXPLOITABILITY = "eval/exploitability"
POINTS = "eval/points/"
"""Before an opponent: the mean points of a game against it."""
RETURN = "selfplay/mean_return"
RANDOM_RETURN = "selfplay/random_return"
RETURNS = {RETURN: "self-play", RANDOM_RETURN: "random play"}
"""The metrics that a single-player game has instead of scores."""
MINUTES = "time/minutes"
FLOPS = "total/flops"
LOSSES = {"train/loss": "total"} | {f"train/{name}_loss": name for name in ("policy", "value", "reward")}
RATES = {
    "selfplay/frames_per_second": "frames/s",
    "selfplay/simulations_per_second": "simulations/s",
    "train/updates_per_second": "updates/s",
}


@contextmanager
def open_metrics(
    run_dir: str | Path,
    *,
    resume_from: int = 0,
    tensorboard: bool = True,
    wandb_config: Mapping[str, Any] | None = None,
    callbacks: "Callbacks | None" = None,
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Gives a function that writes a record to `run_dir/metrics.jsonl` and to TensorBoard events in `run_dir`.

    Records hold numbers, or arrays of one number; a number that is not finite becomes null. Raises `ValueError` if the
    disk is full or not writable.

    Args:
      resume_from: the iteration from which the run continues. Later lines are removed; if it is 0, all lines.
      wandb_config: the config to show in Weights & Biases; None: no records go there.
      callbacks: called with every record after it is written.
    """
    run_dir = Path(run_dir)
    with ExitStack() as opened:
        with explained("metrics", run_dir):
            records = read_records(run_dir) if resume_from else []
            kept = [record for record in records if record["iteration"] <= resume_from]
            write_whole(run_dir / FILE, "".join(json.dumps(record) + "\n" for record in kept))
            file = (run_dir / FILE).open("a", encoding="utf-8")
            opened.callback(_close, file)
            others = [opened.enter_context(_tensorboard(run_dir, resume_from))] if tensorboard else []
        if wandb_config is not None:
            others.append(opened.enter_context(_wandb(run_dir, wandb_config)))
        if callbacks is not None:
            others.append(callbacks.write)

        def write(record: Mapping[str, Any]) -> None:
            plain = {name: _plain(value) for name, value in record.items()}
            with explained("metrics", run_dir):
                file.write(json.dumps(plain, allow_nan=False) + "\n")
                file.flush()
                for write_other in others:
                    write_other(plain)

        yield write


class Callbacks:
    """Calls a user's functions with the records of `metrics.jsonl`: loggers, live plots, trials that end early.

    An exception in a function ends the run like Ctrl-C, and is raised again after the run is saved.

    Args:
      on_metrics: called with a copy of every record after it is written; its result is ignored.
      on_evaluation: the same, but only for records of evaluations; the last has the final matches.
    """

    def __init__(
        self,
        on_metrics: Callable[[Record], object] | None = None,
        on_evaluation: Callable[[Record], object] | None = None,
    ):
        self._on_metrics = on_metrics
        self._on_evaluation = on_evaluation
        self.error: BaseException | None = None

    def write(self, record: Record) -> None:
        """Calls `on_metrics`, and `on_evaluation` if the record has scores, opening values or an Elo."""
        called = [self._on_metrics, self._on_evaluation if is_evaluation(record) else None]
        try:
            for function in filter(None, called):
                function(dict(record))
        except BaseException as error:  # also SystemExit, because the run is saved first
            self.error = error

    def raise_error(self, run_dir: Path) -> None:
        """Raises the exception of a function, if any, with a note that says where the run is saved."""
        if self.error is not None:
            self.error.add_note(f"(the run is saved in {run_dir}; --resume continues it)")
            raise self.error


def _close(file: Any) -> None:
    """Closes a file, ignoring a full disk, which the last write has already reported."""
    with suppress(OSError):
        file.close()


@contextmanager
def _tensorboard(run_dir: Path, resume_from: int) -> Iterator[Callable[[Record], None]]:
    """Writes scalars as TensorBoard events, and purges those after iteration `resume_from`."""
    from tensorboardX import SummaryWriter

    # The queue has no limit, because tensorboardX's thread ends when the disk is full, and a full queue would block.
    events = SummaryWriter(str(run_dir), purge_step=resume_from + 1, max_queue=0, flush_secs=FLUSH_SECONDS)

    def write(record: Record) -> None:
        for name, value in _finite(record).items():
            if name != "iteration":
                events.add_scalar(name, value, record["iteration"])

    try:
        yield write
    finally:
        _close(events)


def check_wandb() -> None:
    """Raises `ValueError` if wandb is not installed."""
    if importlib.util.find_spec("wandb") is None:
        remedy = 'pip install -e ".[wandb]" -c constraints.txt'
        raise ValueError(f"--wandb needs a package that is missing; run: {remedy}")


@contextmanager
def _wandb(run_dir: Path, config: Mapping[str, Any]) -> Iterator[Callable[[Record], None]]:
    """Writes to Weights & Biases, under the name of the run's folder and an id that is kept in it.

    The name is no id: runs of several folders may have it, and would share one curve.
    """
    import wandb  # pyright: ignore[reportMissingImports]

    kept = run_dir / WANDB_ID
    if not kept.exists():
        write_whole(kept, secrets.token_hex(8))
    own = {"name": run_dir.name, "id": kept.read_text(encoding="utf-8"), "dir": str(run_dir)}
    run = wandb.init(project="muzero_jax", config=dict(config), resume="allow", **own)
    try:
        yield lambda record: run.log(_finite(record), step=record["iteration"])
    finally:
        run.finish()


def read_records(run_dir: str | Path) -> list[Record]:
    """The records of `metrics.jsonl`, oldest first, except a line that a kill left incomplete."""
    path = Path(run_dir) / FILE
    records = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line))
    return records


def last_record(run_dir: str | Path, *, up_to_iteration: int) -> Record:
    """The newest record up to `up_to_iteration`, from which counts and times continue; empty if there is none.

    It has the newest mean return, even if no game has ended since.
    """
    records = [record for record in read_records(run_dir) if record["iteration"] <= up_to_iteration]
    if not records:
        return {}
    returns = [record[RETURN] for record in records if record.get(RETURN) is not None]
    return ({RETURN: returns[-1]} if returns else {}) | _finite(records[-1])


def is_evaluation(record: Mapping[str, Any]) -> bool:
    """Whether a record has scores, opening values or an Elo."""
    return any(key.startswith("eval/") for key in record)


def last_evaluation(run_dir: str | Path) -> Record:
    """The newest record of an evaluation; empty if there is none."""
    records = [record for record in read_records(run_dir) if is_evaluation(record)]
    return _finite(records[-1]) if records else {}


def _finite(record: Record) -> Record:
    return {name: value for name, value in record.items() if value is not None}


def _plain(value: Any) -> int | float | None:
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return int(number)
    return float(number) if math.isfinite(number) else None


def scores(record: Mapping[str, Any]) -> dict[str, float]:
    """Scores by opponent, if the record has any; in a game for points, mean points by `points/<opponent>`."""
    keys = (key for key in record if key.startswith("eval/") and not key.startswith((ELO, OPENINGS, EXPLOITABILITY)))
    return {key.removeprefix("eval/"): record[key] for key in keys}


def key_of(metric: str) -> str:
    """The key of a metric, which may lack its "eval/": "mcts:100", "points/mcts:100"."""
    return metric if "/" in metric and not metric.startswith("points/") else f"eval/{metric}"


def is_points(metric: str) -> bool:
    """Whether a metric is mean points of a game."""
    return key_of(metric).startswith(POINTS)


def is_measured(metric: str) -> bool:
    """Whether an evaluation measured a metric of one version, so that the last is the run's."""
    return key_of(metric).startswith("eval/") and not key_of(metric).startswith(ELO)


def is_share(metric: str) -> bool:
    """Whether a metric is a share in [0, 1] that an evaluation measured."""
    return is_measured(metric) and not key_of(metric).startswith((POINTS, EXPLOITABILITY))


def opponent_of(metric: str) -> str:
    """The opponent of a score or of mean points: "mcts:100"."""
    return key_of(metric).removeprefix(POINTS).removeprefix("eval/")


def losses(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The losses in the records, with their labels: first the standard ones, then others, such as your own."""
    found = {name for record in records for name in record if name.endswith("_loss")} - {"train/root_value_loss"}
    others = {name: name.removeprefix("train/").removesuffix("_loss") for name in sorted(found - LOSSES.keys())}
    return {name: label for name, label in LOSSES.items() if any(name in record for record in records)} | others
