"""Small files that are whole or absent: a full disk or a kill never leaves half of one."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec


@contextmanager
def explained(what: str, folder: Path) -> Iterator[None]:
    """Turns a failure to write `what` into `folder` into a ValueError that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write {what} to {folder}: {reason}; free space or choose another folder") from error


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes text or bytes to a hidden file next to `path` and renames it, so that an old file stays until then.

    The folder may be a stranger's: the hidden file has a random name and is new, so that no link in the folder leads
    the write elsewhere. Raises ValueError if the disk is full or not writable.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    data = content.encode("utf-8") if isinstance(content, str) else content
    with explained(path.name, path.parent):
        try:
            with partial.open("xb") as file:
                file.write(data)
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise


def read_json(path: Path, kind: Any, *, remedy: str = "restore it from a copy, or delete it") -> Any:
    """The content of a JSON file, checked to be of the type `kind`; ValueError names a damaged file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged ({error}); {remedy}") from error


def check_writable(file: Path, flag: str) -> None:
    """Raises ValueError if `file`, the value of `flag`, cannot be written; call it before hours of computing."""
    if file.exists() and not file.is_file():
        raise ValueError(f"{flag} {file} exists but is not a file; name another")
    with explained(f"{flag} {file.name}", file.parent), tempfile.TemporaryFile(dir=file.parent):
        pass


def make_new_folder(folder: Path, flag: str) -> None:
    """Makes `folder`, the value of `flag`; ValueError if it is not empty or cannot be made."""
    with explained(flag, folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ValueError(f"{flag} {folder} is not empty; name a new folder")


def from_home(path: str | Path) -> Path:
    """The path with ~ or ~USER replaced by the home folder; ValueError if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{path} names the home folder of an unknown user; write the whole path, or ./~ for a name with ~"
        ) from None
