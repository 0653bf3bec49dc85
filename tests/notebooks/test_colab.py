"""The quickstart as Colab runs it: an environment with Colab's versions, and a folder with the notebook and a wheel.

It installs some 200 MB by pip's usual index, so it is slow, and skipped where no Python 3.12 is at hand.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
IMAGE = {  # what Colab's image holds of what matters here
    "jax": "0.7.2",
    "jaxlib": "0.7.2",
    "flax": "0.11.2",
    "numpy": "2.0.2",
    "optax": "0.2.6",
    "chex": "0.1.90",
    "orbax-checkpoint": "0.11.28",
    "scipy": "1.16.3",
    "matplotlib": "3.10.0",
    "ipykernel": "6.17.1",
    "ipython": "7.34.0",
    "ipywidgets": "7.7.1",
}
KEPT = ("jax", "jaxlib", "numpy")
RUN = """
import sys, nbformat, nbclient
notebook = nbformat.read("quickstart.ipynb", as_version=4)
nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
"""


def colab_python():
    """Python 3.12, as Colab has it."""
    found = shutil.which("python3.12")
    works = found and subprocess.run([found, "--version"], capture_output=True).returncode == 0
    if not works:
        found = next(iter(sorted(Path("~/.pyenv/versions").expanduser().glob("3.12.*/bin/python"))), None)
    return found and str(found)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An environment like Colab's image, whose interpreters find a `google.colab` loaded, as notebooks there do."""
    python = colab_python()
    if python is None:
        pytest.skip("there is no Python 3.12")
    folder = tmp_path_factory.mktemp("colab") / "env"
    subprocess.run([python, "-m", "venv", folder], check=True)
    pins = [f"{name}=={version}" for name, version in IMAGE.items()]
    subprocess.run([folder / "bin/pip", "install", "--quiet", *pins, "nbclient", "setuptools"], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "google" / "colab").mkdir(parents=True)
    for name in ("__init__", "output"):  # jax looks for the second where it finds the first
        (packages / "google" / "colab" / f"{name}.py").touch()
    (packages / "colab.pth").write_text("import google.colab\n")
    return folder


def versions(environment):
    listed = subprocess.run(
        [environment / "bin/pip", "list", "--format", "json"], capture_output=True, text=True, check=True
    )
    return {package["name"]: package["version"] for package in json.loads(listed.stdout)}


@pytest.mark.slow
def test_the_quickstart_runs_in_colabs_image_and_leaves_its_jax_alone(image, tmp_path):
    text = (ROOT / "notebooks/01_quickstart.ipynb").read_text(encoding="utf-8")
    (tmp_path / "quickstart.ipynb").write_text(text)
    subprocess.run([ROOT / "scripts" / "wheel.sh"], check=True)
    for wheel in (ROOT / "dist").glob("muzero_jax-*.whl"):  # uploaded
        shutil.copy(wheel, tmp_path)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"MUZERO_JAX_FAST": "1", "PATH": f"{image / 'bin'}:{os.environ['PATH']}"}
    ran = subprocess.run(
        [image / "bin/python", "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert not (tmp_path / "muzero_jax").exists(), "the wheel is enough"
    assert {name: versions(image)[name] for name in KEPT} == {name: IMAGE[name] for name in KEPT}
