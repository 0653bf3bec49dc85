"""Executes notebooks in full and keeps their outputs: python notebooks/run_all.py [NAME ...]

A name may be cut short: 06. In the fast mode (MUZERO_JAX_FAST=1) nothing is learned. Then the notebooks stay as they
are, and what was executed lies in runs/fast. Buttons do not outlive their kernel, so of a game only its picture is
kept. Lines on stderr are left out. The metadata keep a hash of the code that ran, so that a test fails for a notebook
whose code was changed after its outputs were made.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
FAST = FOLDER.parent / "runs" / "fast"
WIDGET = "application/vnd.jupyter.widget-view+json"
MOST_BYTES = 1_000_000
SET_UP, FOLDED = 1, {"cellView": "form", "jupyter": {"source_hidden": True}}
"""The cell that all notebooks share, and how Colab and Jupyter fold it."""


def find(name: str) -> Path:
    """The notebook whose name begins so; ValueError in one sentence if that is none, or several."""
    found = sorted(FOLDER.glob("*.ipynb"))
    named = [path for path in found if path.stem.startswith(name.removesuffix(".ipynb"))]
    if len(named) != 1:
        raise ValueError(f"{name!r} names {len(named)} notebooks; give one of {', '.join(path.stem for path in found)}")
    return named[0]


def code_hash(notebook: nbformat.NotebookNode) -> str:
    """A short SHA-256 of the sources of all code cells, without the set-up and imports, which change no output."""
    code = [cell for number, cell in enumerate(notebook.cells) if cell.cell_type == "code" and number != SET_UP]
    cells = [cell.source.splitlines() for cell in code]
    sources = ["\n".join(line for line in lines if not line.startswith(("from ", "import "))) for lines in cells]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]


def execute(path: Path, folder: Path) -> None:
    """Runs a notebook where it lies and writes it into a folder."""
    start = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=None, store_widget_state=False, resources={"metadata": {"path": FOLDER}})
    client.execute()
    for number, cell in enumerate(notebook.cells):
        cell.metadata = FOLDED if number == SET_UP else {}
        if cell.cell_type == "code":
            cell.outputs = [kept(output) for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {
        "kernelspec": notebook.metadata.kernelspec,
        "language_info": {"name": "python"},
        "executed_code": code_hash(notebook),
    }
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / path.name)
    size = (folder / path.name).stat().st_size
    print(f"{folder / path.name}: {time.perf_counter() - start:.0f} s, {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise ValueError(f"{path.name} has {size} bytes; draw smaller pictures")


def kept(output: dict) -> dict:
    if "data" in output:
        output["data"].pop(WIDGET, None)
        output["metadata"] = {}
    return output


def main(names: list[str]) -> int:
    """Executes the named notebooks, or all; returns the exit status."""
    try:
        paths = [find(name) for name in names] or sorted(FOLDER.glob("*.ipynb"))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in paths:
        execute(path, FAST if os.environ.get("MUZERO_JAX_FAST") == "1" else FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
