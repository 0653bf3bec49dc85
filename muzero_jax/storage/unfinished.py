"""Folders that are whole or absent: how a save that is killed, or fails, leaves the checkpoints before it as they are.

A save is written to a hidden folder and renamed when it is whole. Beside it lies an empty one: if that is gone at the
end, somebody deleted the run meanwhile, and what the save made again is no checkpoint.
"""

import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

QUIET, LONGEST_WAIT = 0.3, 3.0  # seconds


def replace_folder(source: Path, target: Path) -> None:
    """Renames `source` to `target`; at no moment is `target` half written."""
    replaced = target.with_name(f".saving-instead-of-{target.name}")
    if target.exists():
        target.rename(replaced)
    source.rename(target)
    shutil.rmtree(replaced, ignore_errors=True)


def mark(saving: Path) -> Path:
    """An empty folder that lies beside a save while it is written."""
    return saving.with_name(f"{saving.name}.begun")


@contextmanager
def still_there(folder: Path) -> Iterator[None]:
    """Raises FileNotFoundError if `mark`'s folder is gone at the end: somebody deleted all, and Orbax made it anew."""
    try:
        yield
    except Exception as error:
        if folder.exists():
            raise
        raise FileNotFoundError(str(folder)) from error
    folder.rmdir()


def remove_unfinished(directory: Path) -> None:
    """Deletes what killed or failed saves left behind."""
    for path in directory.glob(".saving-*"):
        shutil.rmtree(path, ignore_errors=True)


def _remove_made_again(directory: Path) -> None:
    """Deletes what Orbax made again of a folder that somebody deleted, and of the run's around it.

    Its first failed write ends the save, while others go on and make their folders: so until none came for a while.
    """
    quiet_since, end = time.monotonic(), time.monotonic() + LONGEST_WAIT
    while time.monotonic() < min(quiet_since + QUIET, end):
        if directory.exists():
            quiet_since = time.monotonic()
        remove_unfinished(directory)
        for folder in (directory, directory.parent):
            with suppress(OSError):  # it holds something
                folder.rmdir()
        time.sleep(QUIET / 10)


@contextmanager
def writing(directory: Path, *, cleans: bool = True) -> Iterator[None]:
    """Makes a failure to write one sentence, without Orbax's own tracebacks; another error (a bug) stays as it is.

    `cleans` says whether a failure's remains are deleted, which only one of several processes may do.
    """
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    except Exception as error:
        if cleans:
            remove_unfinished(directory)
        if any(sign in str(error) for sign in ("No space left", "quota", "File too large")):
            problem = "disk full; free space"
        elif isinstance(error, FileNotFoundError):
            if cleans:
                _remove_made_again(directory)
            problem = "the folder was deleted or moved; put it back"
        elif isinstance(error, OSError) or any(sign in str(error) for sign in ("PERMISSION_DENIED", "Read-only")):
            problem = "not writable; change its permissions"
        else:
            raise
        raise ValueError(f"cannot write checkpoints to {directory}: {problem} or choose another --run-dir") from error
    finally:
        logger.setLevel(level)
