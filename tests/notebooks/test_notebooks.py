"""The notebooks as files, and their set-up; `.ci/run` executes them in their fast mode."""

import re
import runpy
import shlex

import nbformat
import pytest

from muzero_jax import presets
from muzero_jax.apps import notebook
from muzero_jax.config.validation import validate
from tests.reference.pages import ROOT

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


def test_all_notebooks_begin_with_the_same_folded_install_cell():
    """If the package is missing, it installs the wheel beside the notebook and keeps the installed jax."""
    ((source, metadata),) = {
        (cell.source, str(cell.metadata)) for cell in (nbformat.read(path, as_version=4).cells[1] for path in PATHS)
    }
    assert metadata == str(RUN_ALL["FOLDED"])
    (install,) = re.findall(r"^    (%pip install .*)$", source, flags=re.MULTILINE)
    assert shlex.split(install)[3:] == ["./muzero_jax-*.whl", "jax=={importlib.metadata.version('jax')}"]


def test_the_fast_mode_is_tiny_and_otherwise_a_config_stays_as_it_is(monkeypatch):
    config = presets.hex_any(5)
    monkeypatch.delenv("MUZERO_JAX_FAST", raising=False)
    assert notebook.fast(config) == config
    monkeypatch.setenv("MUZERO_JAX_FAST", "1")
    tiny = validate(notebook.fast(config))
    assert tiny.max_iterations == 2 and tiny.self_play.num_envs == 4 and tiny.env == "hex"
