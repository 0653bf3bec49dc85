"""The notebooks as files, and the first cell, which all share; `.ci/run` executes them in their fast mode."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from muzero_jax.run import compilation_cache

FOLDER = Path(__file__).parent.parent.parent / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
WIDGET = "application/vnd.jupyter.widget-view+json"


def cells(path, kind):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def sources(path, kind):
    return ["".join(cell["source"]) for cell in cells(path, kind)]


def outputs(path):
    return [output for cell in cells(path, "code") for output in cell["outputs"]]


def test_there_are_seven_in_order():
    assert [path.stem[:2] for path in PATHS] == [f"{number:02}" for number in range(1, 8)]


@each
def test_it_begins_with_its_runtime_and_says_what_is_an_estimate(path):
    first = sources(path, "markdown")[0]
    assert re.search(r"\*Runtime: about .+ on two CPU cores\. Estimated for a Colab T4, not measured: .+\.\*", first)


@each
def test_links_lead_to_files(path):
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", "\n".join(sources(path, "markdown")))
    assert [link for link in links if not (FOLDER / link).exists()] == []


@each
def test_it_was_executed_from_top_to_bottom_and_kept_its_pictures(path):
    code, shown = cells(path, "code"), [output.get("data", {}) for output in outputs(path)]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert {"image/png", "image/svg+xml"} & {kind for data in shown for kind in data}
    assert [data for data in shown if "<Figure" in str(data) and "image/png" not in data] == [], "words for a picture"
    assert path.stat().st_size < 1_000_000


@each
def test_no_output_is_a_dead_button_an_error_or_a_warning(path):
    assert [output for output in outputs(path) if WIDGET in output.get("data", {})] == []
    assert [
        output for output in outputs(path) if output["output_type"] == "error" or output.get("name") == "stderr"
    ] == []


@pytest.fixture
def run_all(monkeypatch, tmp_path):
    """notebooks/run_all.py, which executes nothing here."""
    spec = importlib.util.spec_from_file_location("run_all", FOLDER / "run_all.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.NotebookClient, "execute", lambda self: None)
    monkeypatch.setattr(module, "FAST", tmp_path / "runs" / "fast")
    return module


@each
def test_its_outputs_are_newer_than_its_code(run_all, path):
    """After a change of a code cell: `python notebooks/run_all.py NAME`."""
    notebook = nbformat.read(path, as_version=4)
    assert notebook.metadata["executed_code"] == run_all.code_hash(notebook)


def test_the_fast_mode_leaves_the_notebooks_as_they_are(run_all, monkeypatch, tmp_path):
    monkeypatch.setenv("MUZERO_JAX_FAST", "1")
    before = PATHS[5].read_bytes()
    assert run_all.main(["06"]) == 0 and PATHS[5].read_bytes() == before
    assert [path.name for path in (tmp_path / "runs" / "fast").iterdir()] == [PATHS[5].name]


def test_what_opens_the_notebooks_comes_with_their_extra():
    shown = (FOLDER.parent / "docs/install.md").read_text(encoding="utf-8")
    extras = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "`.venv/bin/jupyter lab notebooks` opens them" in shown
    assert "jupyterlab>=4" in extras["optional-dependencies"]["notebook"]
    assert "\njupyterlab==4." in (FOLDER.parent / "constraints.txt").read_text(encoding="utf-8")


def test_a_notebook_that_is_not_there_is_one_sentence(run_all, capsys):
    assert [run_all.main([name]) for name in ("99", "0")] == [2, 2]
    assert "error: '99' names 0 notebooks; give one of 01_quickstart, 02_search_by_hand" in capsys.readouterr().err


def test_all_share_the_first_cell_which_has_no_address_yet():
    (first,) = {sources(path, "code")[0] for path in PATHS}
    assert 'ADDRESS = ""' in first and first.count("MUZERO_JAX_FAST") == 1


@pytest.fixture
def run_first_cell(monkeypatch, capsys):
    """Runs the cell with commands listed and not executed; returns its variables, the commands, and what it printed."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))

    def run(**changes):
        source = sources(PATHS[0], "code")[0]
        for old, new in changes.items():
            source = source.replace(f'{old} = ""', f"{old} = {new!r}")
        variables = {}
        exec(source, variables)
        return variables, commands, capsys.readouterr().out

    return run


def test_where_the_package_is_installed_it_installs_nothing_and_shows_the_device(run_first_cell, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    _, commands, said = run_first_cell()
    assert commands == []
    assert re.search(r"^device: 2 CPU devices", said) and "Change runtime type" in said


@pytest.fixture
def not_installed(monkeypatch, tmp_path):
    """An empty folder, where the package is not found until it is imported."""
    monkeypatch.chdir(tmp_path)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "muzero_jax" else found(name))


def test_without_the_package_it_says_what_to_do(run_first_cell, not_installed):
    with pytest.raises(ModuleNotFoundError, match="pip install -e the repository, or its wheel"):
        run_first_cell()


@pytest.mark.parametrize("address", ["", "https://somewhere/muzero_jax"])
def test_in_colab_it_installs_around_the_jax_that_is_there(
    run_first_cell, not_installed, monkeypatch, tmp_path, address
):
    """An address if there is one, else a wheel that is uploaded, once."""
    wheel = tmp_path / "muzero_jax-0.1.0-py3-none-any.whl"
    uploads = []
    files = SimpleNamespace(upload=lambda: uploads.append(wheel.touch()))
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(files=files))
    for _ in range(2):
        _, commands, _ = run_first_cell(ADDRESS=address)
    source = f"git+{address}" if address else str(wheel)
    assert [command[1:] for command in commands] == 2 * [["-m", "pip", "install", "--quiet", source, "-c", "kept.txt"]]
    assert len(uploads) == (not address)
    kept = dict(line.split("==") for line in (tmp_path / "kept.txt").read_text().splitlines())
    assert {"jax", "jaxlib", "numpy"} <= set(kept) and not {"jaxtyping", "flax"} & set(kept)
