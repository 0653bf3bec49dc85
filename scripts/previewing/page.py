"""The figures of docs/accelerators.md: presets by accelerator, previewed one by one and kept after each."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from muzero_jax.ops.devices import format_bytes
from muzero_jax.own.files import write_whole
from scripts.documentation.tables import table
from scripts.measuring import machine
from scripts.previewing.targets import TARGETS

Record = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "results" / "accelerators.json"
GAMES = {
    "Hex 5x5": "--env hex --board-size 5",
    "Hex 9x9": "--env hex --board-size 9",
    "Connect Four": "--env connect_four",
    "Othello": "--env othello",
    "tic-tac-toe": "--env tic_tac_toe",
    "Go 9x9": "--env go_9x9",
    "2048 with the rules": "--env 2048 --model rules",
    "backgammon": "--env backgammon",
}
"""The presets, the most useful first."""
ON = {"T4": "t4", "H100": "h100", "v5e": "v5e", "A100": "a100"}
SEVERAL = {
    "Hex 5x5, 2 x H100": "--target h100 --devices 2 --env hex --board-size 5",
    "Hex 5x5, v5e 2x2": "--target v5e --devices 4 --env hex --board-size 5",
}


def cases() -> dict[str, str]:
    """The flags of every preview by its name, the most useful first: two boards, several devices, then all games."""
    every = {
        f"{game}, {on}": f"--target {target} {flags}" for game, flags in GAMES.items() for on, target in ON.items()
    }
    return dict(list(every.items())[: 2 * len(ON)]) | SEVERAL | every


def read() -> dict[str, Record]:
    """What was previewed so far, in the order of the presets."""
    found = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    names = [f"{game}, {on}" for game in GAMES for on in ON]
    return {name: found[name] for name in [*names, *SEVERAL] if name in found}


def make(script: str) -> int:
    """Previews what has no record of this commit, each in a process of its own, and keeps it after each.

    Raises ValueError at the end, with their names, if some failed.
    """
    failed = []
    for name, flags in stale(read(), machine.commit()).items():
        print(name, flush=True)
        command = [sys.executable, script, "--json", *shlex.split(flags)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            failed.append(name)
        else:
            write_whole(RECORDS, json.dumps(read() | {name: json.loads(done.stdout)}, indent=1) + "\n")
    if failed:
        raise ValueError(f"these previews failed, see above: {'; '.join(failed)}")
    return 0


def stale(records: dict[str, Record], commit: str | None) -> dict[str, str]:
    """The flags of what lacks a record of a commit; what was previewed before must not make that commit another."""
    here = _clean(commit)
    kept = {name for name, record in records.items() if _clean(record.get("commit")) == here}
    return {name: flags for name, flags in cases().items() if name not in kept}


def _clean(commit: str | None) -> str:
    return (commit or "").removesuffix("-dirty")


def tables(which: str) -> str:
    """One of the page's tables."""
    heads, rows = {"targets": _targets, "kernels": _kernels, "time": _time, "sizes": _sizes, "several": _several}[
        which
    ]()
    return table(heads, rows)


Table = tuple[Sequence[str], Iterable[Sequence[str]]]


def _single() -> Iterable[tuple[str, str, Record]]:
    """The records of one device: preset, accelerator, record."""
    names = [(name.rpartition(", "), record) for name, record in read().items() if name not in SEVERAL]
    return [(preset, on, record) for (preset, _, on), record in names]


def _targets() -> Table:
    heads = ("accelerator", "TFLOP/s float32", "bfloat16", "GB/s", "memory", "for a run", "a launch", "a wait")
    return heads, [
        (
            target.title,
            f"{target.peak['float32'] / 1e12:g}",
            "-"
            if target.peak["bfloat16"] == target.peak["float32"] and target.chip
            else f"{target.peak['bfloat16'] / 1e12:g}",
            f"{target.bandwidth / 1e9:g}",
            format_bytes(target.memory),
            format_bytes(target.available),
            f"{1e6 * target.launch:g} us" if target.chip else "-",
            f"{1e6 * target.wait:g} us" if target.chip else "-",
        )
        for target in TARGETS.values()
    ]


def _kernels() -> Table:
    heads = (
        "preset",
        "accelerator",
        "games",
        "search",
        "simulation",
        "move",
        "update",
        "iteration",
        "waits a move",
    )
    names = ("simulation", "move", "update", "iteration")
    return heads, [
        (
            preset,
            on,
            f"{record['games']:,}",
            record["engine"],
            *(f"{record['per'][name]['kernels']:,.0f}" if name in record["per"] else "" for name in names),
            f"{record['per']['move']['waits']:,.0f}" if on != "v5e" else "-",
        )
        for preset, on, record in _single()
    ]


def _time() -> Table:
    heads = (
        "preset",
        "accelerator",
        "games",
        "ms by FLOPs",
        "by bytes",
        "by launches without graphs",
        "bound",
        "frames/s at best",
        "busy",
    )
    return heads, [
        (
            preset,
            on,
            f"{record['games']:,}",
            *(f"{1e3 * seconds:,.1f}" if seconds else "-" for seconds in record["iteration"]["seconds"].values()),
            record["sizes"][0]["limit"],
            f"{record['sizes'][0]['frames_per_second']:,.0f}",
            f"{record['sizes'][0]['busy']:.0%}" if on != "v5e" else "-",
        )
        for preset, on, record in _single()
    ]


def _sizes() -> Table:
    heads = ("preset", "accelerator", "games", "memory", *(f"x {times}" for times in (4, 16, 64)))
    return heads, [
        (
            preset,
            on,
            f"{record['games']:,}",
            format_bytes(record["sizes"][0]["memory"]),
            *(
                f"{format_bytes(size['memory'])}, {size['frames_per_second']:,.0f} frames/s"
                if size["fits"]
                else "does not fit"
                for size in record["sizes"][1:]
            ),
        )
        for preset, on, record in _single()
    ]


def _several() -> Table:
    heads = ("program", "collectives of an update", "of an iteration besides", "memory of a device")
    return heads, [
        (
            name,
            *(_collectives(record, turn) for turn in ("update", "iteration")),
            format_bytes(record["sizes"][0]["memory"]),
        )
        for name, record in read().items()
        if name in SEVERAL
    ]


def _collectives(record: Record, name: str) -> str:
    found = [kind for loop in record["loops"] if loop["name"] == name for kind in loop["collectives"]]
    return ", ".join(f"{kind} of {format_bytes(size)}" for kind, size in found) or "none"
