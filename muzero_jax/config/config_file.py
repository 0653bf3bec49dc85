"""`config.json`, in which a run's folder keeps its config; agents' files hold the same text."""

import dataclasses
import json
from pathlib import Path

from muzero_jax.config.config import Config
from muzero_jax.config.fields import decode
from muzero_jax.own import trust
from muzero_jax.own.files import write_whole
from muzero_jax.own.trust import OWN_FILES_ALONE, Trust

FILE = "config.json"
"""The file whose presence makes a folder a run's."""


def to_json(config: Config) -> str:
    """The config as JSON text."""
    return json.dumps(dataclasses.asdict(config), indent=2)


def from_json(text: str) -> Config:
    """The inverse of `to_json`; ValueError names a key that this version does not know, or a value out of range.

    The text may name a stranger's Python files, so call `trust.check` with its `own_files` before you build anything.
    """
    try:
        values = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    return decode(Config, values)


def save(config: Config, run_dir: Path) -> None:
    """Writes a run's `config.json`, which makes the folder a run's."""
    write_whole(run_dir / FILE, to_json(config))


def load(run_dir: Path, trust_in: Trust = OWN_FILES_ALONE) -> Config:
    """The config of a run, in order to build it.

    Raises ValueError like `inspect`, and for a Python file that must not run (`own.trust`).
    """
    config = inspect(run_dir)
    trust.check(config.own_files, run_dir / FILE, trust_in)
    return config


def inspect(run_dir: Path) -> Config:
    """The config of a run, only to look at: do not build it, because it may name a stranger's Python files.

    Raises ValueError, which names the file, if the folder holds no run of muzero_jax.
    """
    file = run_dir / FILE
    if not file.is_file():
        raise ValueError(
            f"{run_dir} holds no run (there is no {file}); train one with experiments/train.py, or where an agent is "
            "enough write agent:NAME for an included one"
        )
    return read(file, "choose another folder (--run-dir when training), or restore or delete this one yourself")


def read(file: Path, remedy: str) -> Config:
    """The config in a JSON file, only to look at; ValueError names the file and the remedy."""
    try:
        return from_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        problem = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"{file} is not a config of muzero_jax: {problem}; {remedy}") from error
