"""The records of a run: a line of JSON and TensorBoard points for each chunk.

A record is a flat dict of plain numbers, whose keys are grouped by a prefix: `selfplay/…`, `train/…`, `time/…`, and
`eval/<opponent>` for a score in [0, 1], `eval/elo` or `eval/openings_right`; `iteration` says where in the run it lies.
`metrics.jsonl` is the truth, and curves are drawn from it (`charts`). A resumed run first cuts it back to the
checkpoint's iteration, so no line comes twice. tensorboardX and wandb are imported late, as each takes its time.
"""

import importlib.util
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from muzero_jax.own.files import explained, write_whole

Record = dict[str, Any]
"""Numbers by name; None where a number was not finite."""

FILE, CURVES = "metrics.jsonl", "curves.png"
FLUSH_SECONDS = 30
"""Between two times that TensorBoard's events go to the disk, which is waited for."""
ELO, OPENINGS = "eval/elo", "eval/openings_right"
RETURN, RANDOM_RETURN = "selfplay/mean_return", "selfplay/random_return"
RETURNS = {RETURN: "self-play", RANDOM_RETURN: "random play"}
"""The metrics instead of scores in a single-player game."""
MINUTES, FLOPS = "time/minutes", "total/flops"
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
    """Gives a function that writes a record to `run_dir/metrics.jsonl` and TensorBoard events there.

    Records hold numbers, or arrays of one number; what is not finite becomes null. Raises `ValueError` if the disk is
    full or not writable.

    Args:
      resume_from: the iteration from which the run continues. Later lines are cut off, and all lines if it is 0.
      wandb_config: the config that Weights & Biases shows, where records go there too.
      callbacks: are called with every record once it is written.
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
    """Calls a user's functions with what `metrics.jsonl` gets: loggers, live plots, trials that end early.

    What a function raises ends the run as Ctrl-C does: it is kept until the run is saved, and nothing more is called.

    Args:
      on_metrics: called with every record once it is written, a copy; what it returns is not looked at.
      on_evaluation: the same, but only with records that say how strong the agent is; the last has the final matches.
    """

    def __init__(
        self,
        on_metrics: Callable[[Record], object] | None = None,
        on_evaluation: Callable[[Record], object] | None = None,
    ):
        self._on_metrics, self._on_evaluation = on_metrics, on_evaluation
        self.error: BaseException | None = None

    def write(self, record: Record) -> None:
        """Calls `on_metrics`, and `on_evaluation` if the record has scores, opening values or an Elo."""
        is_evaluation = any(key.startswith("eval/") for key in record)
        called = [self._on_metrics, self._on_evaluation if is_evaluation else None]
        try:
            for function in filter(None, called):
                function(dict(record))
        except BaseException as error:  # also `sys.exit()`: the run is saved first
            self.error = error

    def raise_error(self, run_dir: Path) -> None:
        """Raises what a function has raised, with a note that says where the run is saved."""
        if self.error is not None:
            self.error.add_note(f"(the run is saved in {run_dir}; --resume continues it)")
            raise self.error


def _close(file: Any) -> None:
    """Closes a file; what a full disk did not let it flush has been reported by the last write."""
    with suppress(OSError):
        file.close()


@contextmanager
def _tensorboard(run_dir: Path, resume_from: int) -> Iterator[Callable[[Record], None]]:
    """Writes scalars as TensorBoard events, those of a resumed run's lost iterations purged."""
    from tensorboardX import SummaryWriter

    # With no bound on the queue: tensorboardX's thread ends when the disk is full, and nobody empties it any more.
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
    """Writes to Weights & Biases, under the name of the run's folder."""
    import wandb  # pyright: ignore[reportMissingImports]

    name = run_dir.name
    run = wandb.init(project="muzero_jax", name=name, id=name, dir=str(run_dir), config=dict(config), resume="allow")
    try:
        yield lambda record: run.log(_finite(record), step=record["iteration"])
    finally:
        run.finish()


def read_records(run_dir: str | Path) -> list[Record]:
    """The lines of `metrics.jsonl`, oldest first, without one that a kill cut short."""
    path, records = Path(run_dir) / FILE, []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line))
    return records


def last_record(run_dir: str | Path, *, up_to_iteration: int) -> Record:
    """The newest record not beyond `up_to_iteration`, where counts and times go on; empty if there is none."""
    records = [record for record in read_records(run_dir) if record["iteration"] <= up_to_iteration]
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
    keys = (key for key in record if key.startswith("eval/") and not key.startswith((ELO, OPENINGS)))
    return {key.removeprefix("eval/"): record[key] for key in keys}


def losses(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The losses that records hold, with their names for a person: the usual ones first, then others, also your own."""
    found = {name for record in records for name in record if name.endswith("_loss")} - {"train/root_value_loss"}
    others = {name: name.removeprefix("train/").removesuffix("_loss") for name in sorted(found - LOSSES.keys())}
    return {name: label for name, label in LOSSES.items() if any(name in record for record in records)} | others
