"""The phase of this process, written down for the watchdog that started it (`apps.commands.guard`)."""

import os
import time
from pathlib import Path

FILE = "MUZERO_JAX_HEARTBEAT"
"""The environment variable that names the file; where there is none, nothing is written."""
CHUNK, ENDED = "a chunk", "the end"
_file = os.environ.get(FILE)
_chunks = [0, 0.0]  # how many have ended, and their seconds in all
_since = [time.monotonic(), ""]


def phase(name: str) -> None:
    """Says what begins now; what went before has ended."""
    if _file is None:
        return
    now = time.monotonic()
    if _since[1] == CHUNK:
        _chunks[0], _chunks[1] = _chunks[0] + 1, _chunks[1] + now - _since[0]
    _since[:] = now, name
    usual = _chunks[1] / _chunks[0] if _chunks[0] else 0.0
    Path(f"{_file}.new").write_text(f"{usual} {name}")
    os.replace(f"{_file}.new", _file)
