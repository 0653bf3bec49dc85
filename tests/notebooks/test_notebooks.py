"""The notebooks as files, and the first cell, which all share; `.ci/run` executes them in their fast mode."""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from muzero_jax.run import compilation_cache

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
RUN_ALL = runpy.run_path(str(FOLDER / "run_all.py"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_has_the_outputs_of_its_code_and_working_links(path):
    """After a change of a code cell: `python notebooks/run_all.py NAME`."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    assert notebook.metadata["executed_code"] == RUN_ALL["code_hash"](notebook)
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [out for out in outputs if out.output_type == "error" or out.get("name") == "stderr"] == []
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"image/png", "image/svg+xml"} & kinds and RUN_ALL["WIDGET"] not in kinds, "a button that is dead"
    assert path.stat().st_size < RUN_ALL["MOST_BYTES"]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.search(r"\*Runtime: about .+ on two CPU cores\. Estimated for a Colab T4, not measured: .+\.\*", text)
    assert [link for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text) if not (FOLDER / link).exists()] == []


@pytest.fixture
def run_first_cell(monkeypatch, tmp_path):
    """Runs the cell in an empty folder; returns the commands that it would call."""
    (cell,) = {nbformat.read(path, as_version=4).cells[1].source for path in PATHS}
    assert 'ADDRESS = ""' in cell, "there is no address yet"
    commands = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command[1:]))

    def run(address="", installed=False):
        found = importlib.util.find_spec
        if not installed:
            monkeypatch.setattr(importlib.util, "find_spec", lambda name: name != "muzero_jax" and found(name) or None)
        exec(cell.replace('ADDRESS = ""', f"ADDRESS = {address!r}"), {})
        return commands

    return run


def test_where_the_package_is_installed_the_first_cell_shows_the_device(run_first_cell, capsys):
    assert run_first_cell(installed=True) == []
    assert capsys.readouterr().out.startswith("device: 2 CPU devices")


def test_without_the_package_the_first_cell_says_what_to_do(run_first_cell):
    with pytest.raises(ModuleNotFoundError, match="pip install -e the repository, or its wheel"):
        run_first_cell()


@pytest.mark.parametrize("address", ["", "https://somewhere/muzero_jax"])
def test_in_colab_the_first_cell_installs_around_the_jax_that_is_there(run_first_cell, monkeypatch, tmp_path, address):
    """From an address if there is one, else from a wheel that is uploaded, once."""
    wheel, uploads = tmp_path / "muzero_jax-0.1.0-py3-none-any.whl", []
    files = SimpleNamespace(upload=lambda: uploads.append(wheel.touch()))
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(files=files))
    source = f"git+{address}" if address else str(wheel)
    run_first_cell(address)
    assert run_first_cell(address) == 2 * [["-m", "pip", "install", "--quiet", source, "-c", "kept.txt"]]
    assert len(uploads) == (not address)
    kept = {line.split("==")[0] for line in (tmp_path / "kept.txt").read_text().splitlines()}
    assert {"jax", "jaxlib", "numpy"} <= kept and not {"jaxtyping", "flax"} & kept
