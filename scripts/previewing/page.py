"""The figures of docs/accelerators.md: presets by accelerator, previewed one by one and kept after each."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from muzero_jax.storage.files import write_whole

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "results" / "accelerators.json"
GAMES = {
    "Hex 5x5": "--env hex --board-size 5",
    "Hex 9x9": "--env hex --board-size 9",
    "Connect Four": "--env connect_four",
    "Othello": "--env othello",
    "tic-tac-toe": "--env tic_tac_toe",
    "Go 9x9": "--env go_9x9",
}
"""The presets, the most useful first."""
ON = {"T4": "t4", "H100": "h100", "v5e": "v5e", "A100": "a100"}
OTHERS = {
    "Hex 5x5, loop_free, T4": "--target t4 --env hex --board-size 5 --search.engine loop_free",
    "Hex 5x5, 2 H100": "--target h100 --devices 2 --env hex --board-size 5",
    "Hex 5x5, v5e 2x2": "--target v5e --devices 4 --env hex --board-size 5",
}


def cases() -> dict[str, str]:
    """The flags of every preview by its name; those first that say most."""
    first = {f"{game}, {title}": f"--target {ON[title]} {GAMES[game]}" for game in list(GAMES)[:2] for title in ON}
    every = {
        f"{game}, {title}": f"--target {target} {flags}"
        for game, flags in GAMES.items()
        for title, target in ON.items()
    }
    return first | OTHERS | every


def read() -> dict[str, Any]:
    """What was previewed so far."""
    return json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}


def make(script: str) -> int:
    """Previews what is missing, each in a process of its own, and keeps it after each."""
    for name, flags in cases().items():
        if name in (records := read()):
            continue
        print(name, flush=True)
        done = subprocess.run(
            [sys.executable, script, "--json", *shlex.split(flags)], stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            raise ValueError(f"the preview of {name} failed with status {done.returncode}; see above")
        write_whole(RECORDS, json.dumps(records | {name: json.loads(done.stdout)}, indent=1) + "\n")
    return 0
