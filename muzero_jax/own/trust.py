"""Which Python files may run, so that data from a stranger cannot run code.

A run's `config.json` and an agent's file name the Python files of the user's own game, network or algorithm, and both
may come from a stranger. A file that they name runs only if

- the user named the same file in this call, or trusts all code (`--trust-code`), or
- this user has trained with it: training records its path and the SHA-256 of its text in the user's data folder.

So your own runs load without a flag. A file that changed after the training needs the flag, because a download may have
replaced it. Jupyter signs notebooks and Hugging Face has `trust_remote_code` for the same reason.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import platformdirs

from muzero_jax.own import python_file
from muzero_jax.own.faults import shown
from muzero_jax.own.files import write_whole


class Trust(NamedTuple):
    """The code that the user allows to run in this call; by default none."""

    all_code: bool = False
    """--trust-code: any file that the data names"""
    named: frozenset[str] = frozenset()
    """paths of the files that the user named themselves"""


OWN_FILES_ALONE = Trust()
"""Allows only files with which this user trained."""


def check(files: Iterable[str], source: str | Path, trust: Trust) -> None:
    """Raises ValueError for the first of the `files`, which `source` names, that must not run.

    A file that does not exist passes, because loading it raises an error.
    """
    for file in files:
        name = shown(file, longest=1000)  # from a stranger
        if not python_file.is_path(file):
            raise ValueError(f"{source} names {name} as code, but it is no Python file (.py); it is not run")
        try:
            path = Path(file).resolve()
            is_there = Path(file).exists()
        except (OSError, ValueError) as error:  # too long, or impossible characters
            raise ValueError(f"{source} names {name} as code, which is not a file name; correct it") from error
        if trust.all_code or path in {Path(name).resolve() for name in trust.named} or not is_there:
            continue
        if not (path.is_file() and _note_of(path, path.read_bytes()).exists()):
            name = shown(path, longest=1000)
            what = f"{source} would run the Python file {name}, with which you have never trained"
            if any(_notes().glob(f"{_path_hash(path)}-*")):
                what = f"{name} has changed since you trained with it, and {source} would run it"
            raise ValueError(f"{what}; read it, then add --trust-code (in Python: trust_code=True)")


def note(files: Iterable[str]) -> str | None:
    """Records that this user trains with these files as they ran; returns an error message if that fails."""
    for file in files:
        path = Path(file).resolve()
        try:
            place = _note_of(path, python_file.source_that_ran(file))
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, f"{path}\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return f"cannot record {path} as yours ({reason}); add --trust-code to commands that load this run"
    return None


def _note_of(path: Path, source: bytes) -> Path:
    """The file whose existence records that this user trained with this path and text."""
    return _notes() / f"{_path_hash(path)}-{hashlib.sha256(source).hexdigest()}"


def _path_hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode("utf-8", errors="surrogateescape")).hexdigest()


def _notes() -> Path:
    """A folder with a small file for each pair of path and text, so that processes can add one without a lock."""
    return platformdirs.user_data_path("muzero_jax") / "trained_with"
