"""Previews the presets on GPUs, and makes the tables of docs/accelerators.md: python scripts/previews.py

Each row is a call of `scripts/preview.py --json`, half a minute to four minutes. Its record is kept in
docs/results/previews.json with date, commit and versions, so that the tables can be made again without compiling, and
every row says when it was made. With --check, only that the presets of small boards are one CUDA graph each, for which
the host never waits, without additions by atomics; `scripts/check.sh --previews` calls it. Needs the extra `preview`,
in a virtual environment of its own.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.own.files import write_whole
from scripts.benchmarks import report
from scripts.benchmarks.report import ROOT, Record

RECORDS = ROOT / "docs" / "results" / "previews.json"
PAGE = ROOT / "docs" / "accelerators.md"
PRESETS = {
    "Hex 5x5": "--env hex --board-size 5",
    "Hex 9x9": "--env hex --board-size 9",
    "Connect Four": "--env connect_four",
    "Othello": "--env othello",
    "tic-tac-toe": "--env tic_tac_toe",
    "Pong": "--env octax:pong",
}
TARGETS = ("t4", "h100")
ONE_GRAPH = ("tic-tac-toe", "Hex 5x5", "Connect Four")
"""Presets whose whole chunk must be one graph."""
MOST_STARTS = 3
BEGIN = "<!-- made by scripts/previews.py -->"
END = "<!-- end -->"


@dataclass(frozen=True)
class Arguments:
    """What to preview."""

    presets: tuple[str, ...] = tuple(PRESETS)
    """the presets, by their titles in the table"""
    targets: tuple[str, ...] = TARGETS
    """the accelerators, as scripts/preview.py names them"""
    table: bool = False
    """only make the table again, from the records"""
    check: bool = False
    """only check that small boards are one graph on an H100; no record is kept"""


def main(arguments: list[str]) -> int:
    """Runs the command; 1 if a check failed."""
    a = parser.read(Arguments, arguments, __doc__)
    if a.check:
        faults = [fault for title in ONE_GRAPH for fault in faults_of(title, preview(title, "h100"))]
        print("\n".join(faults) or f"one graph each: {', '.join(ONE_GRAPH)}")
        return 1 if faults else 0
    records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    for title in () if a.table else a.presets:
        for target in a.targets:
            records[f"{title}, {target}"] = preview(title, target)
            write_whole(RECORDS, json.dumps(records, indent=1) + "\n")
            print(f"{title}, {target}: made", flush=True)
    page = PAGE.read_text(encoding="utf-8")
    made = f"{BEGIN}\n\n{table(records)}\n\n{END}"
    write_whole(PAGE, re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: made, page, flags=re.DOTALL))
    return 0


def preview(title: str, target: str) -> Record:
    """One preset on one accelerator; ValueError for an unknown preset, or if it cannot be compiled."""
    if title not in PRESETS:
        raise ValueError(f"there is no preset {title!r}; choose one of {', '.join(PRESETS)}")
    command = [sys.executable, "scripts/preview.py", "--json", "--target", target, *PRESETS[title].split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{title}, {target}: {(done.stderr.strip() or f'status {done.returncode}').splitlines()[-1]}")
    return json.loads(done.stdout)


def faults_of(title: str, record: Record) -> list[str]:
    """What keeps a program from being one graph with sums in a fixed order, a sentence each."""
    host = record["host"]
    adds = record["iteration"]["scatter_adds"]
    faults = []
    if host["starts"] > MOST_STARTS or host["waits"]:
        faults.append(f"{title}: {host['starts']:,.0f} starts and {host['waits']:,.0f} waits in two iterations")
    if adds:
        faults.append(f"{title}: {adds:,.0f} kernels an iteration add by atomics")
    return faults


def table(records: dict[str, Record]) -> str:
    """The records as a Markdown table."""
    header = ["preset", "GPU", "games", "kernels", "GB", "atomics", "ms by FLOPs", "ms by bytes", "frames/s at best"]
    header += ["starts, waits", "made"]
    rows = []
    for name, record in records.items():
        title, target = name.rsplit(", ", 1)
        done = record["iteration"]
        host = record["host"]
        rows.append(
            [
                title,
                target.upper(),
                f"{record['games']:,}",
                f"{done['kernels']:,.0f}",
                f"{done['size'] / 1e9:.1f}",
                f"{done['scatter_adds']:,.0f}",
                f"{1e3 * done['seconds']['FLOPs']:.1f}",
                f"{1e3 * done['seconds']['bytes']:.1f}",
                f"{record['frames_per_second']:,.0f}",
                f"{host['starts']:,.0f}, {host['waits']:,.0f}" if host else "-",  # a TPU has no such count
                record["date"][:10],
            ]
        )
    return report.table(header, rows)


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "preview fewer --presets"))
