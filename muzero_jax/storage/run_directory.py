"""The folders of runs: that of a new run, the run to resume, and the version of a run that a path names.

    RUN               the newest checkpoint
    RUN/versions/N    the weights after iteration N, saved at an evaluation and kept
    RUN/checkpoints/N the weights in one of the last checkpoints

A version is named by its path, so that a shell completes it and `RUN/versions/*` names them all. This module starts no
JAX backend. A process that trains holds the folder with `opened`, and only `make_room` deletes its content.
"""

import errno
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import filelock

from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.own.files import from_home, read_json, write_whole
from muzero_jax.storage import agent_file
from muzero_jax.storage.checkpoint import checkpoint_steps

CHECKPOINTS = "checkpoints"
VERSIONS = "versions"
PROFILE = "profile"
SUMMARY = "summary.json"
LOCK = ".lock"
ALGORITHM = "algorithm.py"
"""A copy of the user's own algorithm, which tells runs apart and never runs."""


class Saved(NamedTuple):
    """What a path names: a run, one of its folders of versions, or a version in it."""

    run_dir: Path
    folder: Path | None = None  # of versions; None for the run itself
    name: str = ""  # of a version in `folder`; empty for the folder


def begun(run_dir: Path) -> int | None:
    """When the run in a folder began, which distinguishes two runs; None if there is none."""
    file = run_dir / config_file.FILE
    return file.stat().st_mtime_ns if holds_run(run_dir) else None


def find_saved(path: Path) -> Saved | None:
    """What `path` names, whether or not the version exists; None if it is not in a run."""
    if holds_run(path):
        return Saved(path)
    folder, name = (path.parent, path.name) if path.name.isdecimal() else (path, "")
    is_saved = folder.name in (CHECKPOINTS, VERSIONS) and holds_run(folder.parent)
    return Saved(folder.parent, folder, name) if is_saved else None


def version_of(saved: Saved) -> int | None:
    """The iteration of a version, None for a run; ValueError lists the existing versions."""
    if saved.folder is None:
        return None
    steps = [str(step) for step in checkpoint_steps(saved.folder)]
    if saved.name in steps:
        return int(saved.name)
    known = ", ".join(steps) or "there are none"
    raise ValueError(f"{saved.folder / saved.name} is no version; name one of those in {saved.folder}: {known}")


def versions_in(path: Path) -> list[Path] | None:
    """The paths of all versions, oldest first, if `path` is a run's folder of versions; else None."""
    saved = find_saved(path)
    is_folder = saved is not None and saved.folder == path
    return [path / str(step) for step in checkpoint_steps(path)] if is_folder else None


def holds_run(path: Path) -> bool:
    """Whether a folder holds a run."""
    return (path / config_file.FILE).exists()


def default(config: Config) -> Path:
    """A run's default folder: runs/<game>[-<size>][-<model>][-offline]-seed<seed>, with no part for a default model."""
    size = "".join(f"-{side}" for side in config.boards)
    model = "" if config.model == Config.model else f"-{config.model}"
    offline = "-offline" if config.offline else ""
    return Path("runs") / f"{config.env_name}{size}{model}{offline}-seed{config.seed}"


def newest(env: str | None, board_size: int | None, seed: int | None) -> Path:
    """The most recently saved run in `runs` with this game, size and seed (None: any); ValueError if there is none."""
    given = {"env": env, "board_size": board_size, "seed": seed}
    wanted = {name: value for name, value in given.items() if value is not None}
    found = [path for path in Path("runs").glob("*") if _is_of(path, wanted)]
    if not found:
        words = " and ".join(f"{name} {value}" for name, value in wanted.items())
        raise ValueError(
            f"there is no run{' with ' if words else ''}{words} to resume in runs; leave out --resume to start one, or "
            "name its folder with --run-dir"
        )
    return max(found, key=_written_at)


def _is_of(run_dir: Path, wanted: dict[str, str | int]) -> bool:
    """Whether a run's config has the wanted values; False if the config cannot be read."""
    try:
        config = config_file.inspect(run_dir)
    except ValueError:
        return False
    return all(getattr(config, name) == value for name, value in wanted.items())


def _written_at(run_dir: Path) -> float:
    """When a run last wrote a checkpoint, or else its config."""
    checkpoints = run_dir / CHECKPOINTS
    return (checkpoints if checkpoints.exists() else run_dir / config_file.FILE).stat().st_mtime


def has_ended(run_dir: Path, iteration: int | None = None) -> bool:
    """Whether a run's summary says that it is finished, with its final matches at `iteration` (None: any)."""
    summary = read_summary(run_dir)
    return bool(summary.get("finished")) and iteration in (None, summary.get("iteration"))


def reopen(run_dir: Path) -> None:
    """Marks a run's summary as not finished, because the run is continued."""
    summary = read_summary(run_dir)
    if summary.get("finished"):
        write_whole(run_dir / SUMMARY, json.dumps(summary | {"finished": False}, indent=2))


def read_summary(run_dir: Path) -> dict[str, Any]:
    """A run's summary; empty if there is none."""
    file = run_dir / SUMMARY
    return read_json(file, dict[str, Any]) if file.exists() else {}


@contextmanager
def opened(
    run_dir: Path, *, resume: bool = False, overwrite: bool = False, sources: Iterable[str] = ()
) -> Iterator[None]:
    """Checks a run's folder, makes it if needed, and keeps other processes from training there.

    `overwrite` does not delete the old run: the caller does by `make_room`, once nothing can refuse the new run. Raises
    ValueError like `check` and `locked`.
    """
    check(run_dir, resume=resume, overwrite=overwrite, sources=sources)
    with locked(run_dir):
        yield


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Makes a folder if needed, and keeps other processes from training there; the lock ends with the process.

    A folder in which nothing was saved is removed at the end. Raises ValueError if another process trains there, or if
    the folder is not writable.
    """
    lock = filelock.FileLock(run_dir / LOCK, blocking=False)
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise ValueError(
            f"another process is training in {run_dir}; wait until it has ended, or choose another --run-dir"
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):  # some network folders have no locks
            raise ValueError(f"cannot write to {run_dir}: {error.strerror}; choose another --run-dir") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if not _content(run_dir):
                (run_dir / LOCK).unlink(missing_ok=True)
                run_dir.rmdir()
        lock.release()


def check(run_dir: Path, *, resume: bool = False, overwrite: bool = False, sources: Iterable[str] = ()) -> None:
    """Raises ValueError unless the folder is absent or empty, or holds a run and `resume` or `overwrite` is set.

    `sources` are what the new run reads (`Config.sources`), so `overwrite` must not delete them. The folder is neither
    made nor changed.
    """
    is_run = holds_run(run_dir)
    if resume and not is_run:
        raise ValueError(f"there is no run to resume in {run_dir}; leave out --resume to start one")
    if is_run and not (resume or overwrite):
        raise ValueError(
            f"{run_dir} holds a run already: --resume continues it, --overwrite deletes it first; "
            "or choose another --run-dir"
        )
    if not is_run and run_dir.exists() and (not run_dir.is_dir() or _content(run_dir)):
        raise ValueError(f"{run_dir} exists but holds no run; choose another --run-dir")
    if is_run and (link := _link_in(run_dir)):
        raise ValueError(
            f"{link} is a link, through which training would write or delete elsewhere; put what it leads to there"
        )
    if is_run and overwrite:
        config_file.inspect(run_dir)  # other programs write a config.json too: never delete theirs
        lost = [
            each
            for each in sources
            if (agent_file.find(each) or from_home(each)).resolve().is_relative_to(run_dir.resolve())
        ]
        if lost:
            raise ValueError(f"--overwrite would delete {lost[0]}, which the new run reads; choose another --run-dir")


def _link_in(run_dir: Path) -> Path | None:
    """A link among the files that training replaces, continues or deletes; None if there is none."""
    kept = [run_dir / name for name in (CHECKPOINTS, VERSIONS, PROFILE)]
    inside = (path for folder in kept if not folder.is_symlink() for path in folder.rglob("*"))
    return next((path for path in (*run_dir.iterdir(), *inside) if path.is_symlink()), None)


def make_room(run_dir: Path) -> None:
    """Deletes the run, if there is one, in a folder that this process has locked."""
    if holds_run(run_dir):
        config_file.inspect(run_dir)  # never another program's folder
        for path in _content(run_dir):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def make_room_for_all(run_dirs: Iterable[Path]) -> None:
    """Deletes the runs in all these folders, or none: ValueError if another process trains in one of them."""
    there = [run_dir for run_dir in run_dirs if run_dir.exists()]
    with ExitStack() as locks:
        for run_dir in there:
            locks.enter_context(locked(run_dir))
        for run_dir in there:
            make_room(run_dir)


def _content(run_dir: Path) -> list[Path]:
    """The content of a folder, except the lock, which this process may hold."""
    return [path for path in run_dir.iterdir() if path.name != LOCK]
