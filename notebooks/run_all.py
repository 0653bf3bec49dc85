"""Executes notebooks in full and keeps their outputs: python notebooks/run_all.py [NAME ...]

Buttons do not outlive their kernel, so of a game only its picture is kept. Lines on stderr are left out.
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"
MOST_BYTES = 1_000_000


def execute(path: Path) -> None:
    """Runs a notebook in its folder and writes it back."""
    start = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=None, store_widget_state=False, resources={"metadata": {"path": FOLDER}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [kept(output) for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    nbformat.write(notebook, path)
    size = path.stat().st_size
    print(f"{path.name}: {time.perf_counter() - start:.0f} s, {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise ValueError(f"{path.name} has {size} bytes; draw smaller pictures")


def kept(output: dict) -> dict:
    if "data" in output:
        output["data"].pop(WIDGET, None)
        output["metadata"] = {}
    return output


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        execute(FOLDER / f"{name}.ipynb")
