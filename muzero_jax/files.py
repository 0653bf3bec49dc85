"""Small files that are whole or absent: a full disk or a kill never leaves half of one."""

from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Writes `text` to a hidden neighbour of `path` and renames it; what was there before stays until then."""
    partial = path.with_name(f".{path.name}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
