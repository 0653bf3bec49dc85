"""A user's functions that are called with a run's records: for loggers, live plots and trials that end early."""

from collections.abc import Callable
from pathlib import Path

from muzero_jax.run.metrics import Record, brings_evaluation

Callback = Callable[[Record], object]
"""Takes one record; what it returns is not looked at."""


class Callbacks:
    """Calls a user's functions with what `metrics.jsonl` gets; one of the writers of `metrics.open_metrics`.

    What a function raises ends the run as Ctrl-C does. It is kept until the run is saved; nothing is called any more.

    Args:
      on_metrics: called with every record (`metrics.Record`) once it is written.
      on_evaluation: the same, but only with records that bring an evaluation; the last has the final matches.
    """

    def __init__(self, on_metrics: Callback | None = None, on_evaluation: Callback | None = None):
        self._on_metrics, self._on_evaluation = on_metrics, on_evaluation
        self.error: BaseException | None = None

    def write(self, record: Record) -> None:
        """Calls `on_metrics`, and `on_evaluation` if the record brings an evaluation; each may change its own copy."""
        self._call("on_metrics", self._on_metrics, record)
        if brings_evaluation(record):
            self._call("on_evaluation", self._on_evaluation, record)

    def _call(self, name: str, function: Callback | None, record: Record) -> None:
        if function is None or self.error is not None:
            return
        try:
            function(dict(record))
        except BaseException as error:  # also `sys.exit()`: the run is saved first
            error.add_note(f"({name} raised this at iteration {record['iteration']}, and the run ended)")
            self.error = error

    def close(self) -> None:
        """Does nothing: what a user has opened stays open."""

    def raise_error(self, run_dir: Path) -> None:
        """Raises what a function has raised, with a note that says where the run is saved."""
        if self.error is not None:
            self.error.add_note(
                f"(the run is saved in {run_dir}; train.py --resume --run-dir {run_dir} goes on with it)"
            )
            raise self.error
