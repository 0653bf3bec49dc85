"""Which Python files may run: data never names code that then runs.

A run's `config.json` and an agent's file name the Python files of a game, network or algorithm of one's own, and may
come from a stranger. A file that such data names runs only if

- the user named that very file in this call, or said that they trust the code (`--trust-code`), or
- this user has trained with it: training notes its path and the SHA-256 of its text in the user's data folder.

So one's own runs load as ever. A file that has changed since then is as good as a stranger's, because a download may
have replaced it. Jupyter signs notebooks and Hugging Face asks for `trust_remote_code` for the same reason.
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
    """The user's consent to run code in this call; by default none."""

    all_code: bool = False
    """--trust-code: whatever file the data names"""
    named: frozenset[str] = frozenset()
    """paths of the files that the user named themselves"""


OWN_FILES_ALONE = Trust()
"""Only files run that this user trained with."""


def check(files: Iterable[str], source: str | Path, trust: Trust) -> None:
    """Raises ValueError, in one sentence, for the first of the `files` that must not run; `source` named them.

    A file that does not exist passes: whoever loads it says so.
    """
    for file in files:
        name = shown(file, longest=1000)  # a stranger's
        if not python_file.is_path(file):
            raise ValueError(f"{source} names {name} as code, but it is no Python file (.py); it is not run")
        try:
            path, is_there = Path(file).resolve(), Path(file).exists()
        except (OSError, ValueError) as error:  # too long, or of characters that no name has
            raise ValueError(f"{source} names {name} as code, which is not a file name; correct it") from error
        if trust.all_code or path in {Path(name).resolve() for name in trust.named} or not is_there:
            continue
        if not (path.is_file() and _note_of(path).exists()):
            name = shown(path, longest=1000)
            what = f"{source} would run the Python file {name}, with which you have never trained"
            if any(_notes().glob(f"{_path_hash(path)}-*")):
                what = f"{name} has changed since you trained with it, and {source} would run it"
            raise ValueError(f"{what}; read it, then add --trust-code (in Python: trust_code=True)")


def note(files: Iterable[str]) -> str | None:
    """Remembers that this user trains with these files as they are now; returns a sentence if that fails."""
    for path in (Path(file).resolve() for file in files):
        try:
            place = _note_of(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, f"{path}\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return f"cannot record {path} as yours ({reason}); add --trust-code to commands that load this run"
    return None


def _note_of(path: Path) -> Path:
    """Where it is noted that this user trained with this file, of this text."""
    return _notes() / f"{_path_hash(path)}-{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _path_hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode("utf-8", errors="surrogateescape")).hexdigest()


def _notes() -> Path:
    """A folder with a small file for each pair of path and text, so that processes need no lock to add one."""
    return platformdirs.user_data_path("muzero_jax") / "trained_with"
