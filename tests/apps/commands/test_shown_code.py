"""What pages show in Python runs as it stands, from the repository's root; a training is handed over, and not run.

Blocks of one page share their names, as for a reader who types one after the other.
"""

import functools
import importlib
import inspect
import re

import pytest

import muzero_jax
from muzero_jax import training
from muzero_jax.apps import start
from muzero_jax.games.game import Game
from muzero_jax.run import compilation_cache
from muzero_jax.run.metrics import open_metrics
from muzero_jax.run.run import Result
from tests.reference import pages

PAGES = [page for page in pages.PAGES if any(pages.blocks(page, "python"))]
GIVEN = {  # what a page says that the reader has: names of a file of examples/, or of our own modules
    "docs/design.md": lambda: vars(training),
    "docs/your-own-game.md": lambda: {**vars(importlib.import_module("examples.nim")), "Game": Game},
    "docs/your-own-network.md": lambda: {
        **vars(importlib.import_module("examples.transformer")),
        "muzero_jax": muzero_jax,
    },
}
VALUE = r"-?[01]\.\d+(e-\d+)?"
PRINTED = {
    "README.md": rf"\d+\n{VALUE}\ngame +Connect Four\n(.+\n)+",
    "docs/api.md": rf"{VALUE} .+\ngame +Tic-tac-toe\n(.+\n)+1\.0\n",
    "docs/play.md": rf"[a-e][1-5] {VALUE}\n",
    "docs/results/hex-sizes/README.md": "".join(
        rf"{board}x{board} {slope} Elo .+\n" for board, slope in {5: 486, 6: 367, 7: 1380, 9: 1157}.items()
    ),
    "docs/your-own-algorithm.md": r"\[\]\n",
    "docs/your-own-game.md": r"\[\]\n",
    "docs/your-own-network.md": r"(\[\]\n){2}",
}


def name_of(page):
    """A page as readers know it: docs/api.md."""
    return str(page.relative_to(pages.ROOT))


@pytest.fixture(scope="module")
def load():
    """`muzero_jax.load`, which compiles one agent's search once for all pages."""
    return functools.cache(muzero_jax.load)


@pytest.fixture
def folder(load, monkeypatch, tmp_path):
    """A clone in which the reader trained the run that pages speak of."""
    for name in ("docs", "examples", "muzero_jax"):
        (tmp_path / name).symlink_to(pages.ROOT / name)
    run_dir = tmp_path / "runs" / "hex-5-seed0"
    run_dir.mkdir(parents=True)
    with open_metrics(run_dir, tensorboard=False) as write:
        write({"total/frames": 64, "train/value_loss": 0.5})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(muzero_jax, "load", load, raising=False)
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(start, "train", lambda *arguments: heard_after(arguments[-1]))
    return tmp_path


def heard_after(callbacks):
    """A run's one evaluation, which its callbacks hear."""
    callbacks.write({"iteration": 1, "eval/random": 1.0})
    return Result({}, interrupted=False)


DEAR = "your-own-algorithm", "your-own-network"  # whose code other tests run too


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in DEAR)) for page in PAGES], ids=name_of
)
def test_the_python_of_a_page_runs_and_prints_what_the_page_promises(page, folder, capsys):
    given = dict(GIVEN.get(name_of(page), dict)())
    names = dict(given)
    for line, code in pages.blocks(page, "python"):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        if code.rstrip().endswith(": ..."):  # a declaration: the real one has the same parameters
            (name,) = {name for name in given if names[name] is not given[name]}
            assert inspect.signature(names[name]).parameters.keys() == inspect.signature(given[name]).parameters.keys()
            names[name] = given[name]
    assert re.fullmatch(PRINTED.get(name_of(page), ""), capsys.readouterr().out)
