"""A logger of your own, and a run that ends as soon as it is good enough: python examples/logger.py

`on_metrics` and `on_evaluation` take flat dicts of plain numbers, the lines of metrics.jsonl. If one raises an
exception, the run is saved and then ends.
"""

import csv
from pathlib import Path

import muzero_jax
from muzero_jax.run.machine import configure_devices

configure_devices()  # before anything loads a game: a device for each CPU core

COLUMNS: tuple[str, ...] = ("iteration", "time/minutes", "total/games", "train/loss")
CONFIG = muzero_jax.presets.preset("tic_tac_toe", None)


class GoodEnough(Exception):
    """The agent beats random play."""


def stop_when_strong(record):
    """Called with the records of evaluations, whose scores are from 0 to 1."""
    if record.get("eval/random", 0.0) >= 0.9:
        raise GoodEnough(f"{record['eval/random']:.0%} against random play after {record['time/minutes']:.1f} minutes")


def main(config=CONFIG, run_dir="runs/logged"):
    """Trains, and writes some columns of every record to a table next to the run's folder."""
    Path(run_dir).mkdir(parents=True, exist_ok=True)
    with open(f"{run_dir}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        table.writeheader()
        try:
            muzero_jax.train(config, run_dir, overwrite=True, on_metrics=table.writerow, on_evaluation=stop_when_strong)
        except GoodEnough as reason:
            print(f"good enough: {reason}")


if __name__ == "__main__":
    main()
