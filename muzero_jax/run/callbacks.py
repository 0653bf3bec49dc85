"""A user's functions that are called with a run's records: for loggers, live plots and trials that end early."""

from collections.abc import Callable
from pathlib import Path

from muzero_jax.run.metrics import Record, brings_evaluation

Callback = Callable[[Record], object]
"""Takes one record; what it returns is not looked at."""


class Callbacks:
    """Calls a user's functions with what `metrics.jsonl` gets.

    What a function raises ends the run as Ctrl-C does: it is kept until the run is saved, and nothing more is called.

    Args:
      on_metrics: called with every record (`metrics.Record`) once it is written.
      on_evaluation: the same, but only with records that bring an evaluation; the last has the final matches.
    """

    def __init__(self, on_metrics: Callback | None = None, on_evaluation: Callback | None = None):
        self._on_metrics, self._on_evaluation = on_metrics, on_evaluation
        self.error: BaseException | None = None

    def write(self, record: Record) -> None:
        """Calls `on_metrics`, and `on_evaluation` if the record brings an evaluation; each may change its own copy."""
        called = [self._on_metrics, self._on_evaluation if brings_evaluation(record) else None]
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
