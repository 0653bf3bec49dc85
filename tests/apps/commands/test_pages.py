"""What pages show can be typed, and their Python runs as it stands; only training is replaced."""

import functools
import importlib
import inspect
import re
import shlex

import pytest

import muzero_jax
from muzero_jax import presets
from muzero_jax.algorithm import training
from muzero_jax.apps import start
from muzero_jax.apps.commands import doctor, evaluate, parser, play, tune
from muzero_jax.config.config import Config
from muzero_jax.config.session import Session
from muzero_jax.games import catalogue, outside
from muzero_jax.games.game import Game
from muzero_jax.run.metrics import open_metrics
from muzero_jax.run.run import Result
from scripts import benchmark, export_agent, export_onnx, hardware_report, preview, previews, reproduce
from tests.reference import pages

# --- commands ---------------------------------------------------------------------------------------------------------

by_guide = pytest.mark.parametrize("page", pages.GUIDES, ids=lambda page: page.name)


def read_train(words, *others):
    given = parser.split(words, Config, Session, *others)
    for record in others:
        parser.convert(record, {name: given.pop(name) for name in record.__dataclass_fields__ if name in given})
    config, _ = parser.override(presets.tic_tac_toe(), given), parser.convert(Session, given)
    if not (config.env in catalogue.GAMES or outside.is_outside(config.env) or (pages.ROOT / config.env).exists()):
        raise ValueError(f"there is no game {config.env}")


READERS = {
    "experiments/train.py": read_train,
    "experiments/evaluate.py": evaluate.parse,
    "experiments/play.py": lambda words: play.check(parser.read(play.PlayFlags, words)),
    "experiments/doctor.py": lambda words: parser.read(doctor.DoctorFlags, words),
    "experiments/tune.py": lambda words: read_train(words, tune.TuneFlags),
    "scripts/benchmark.py": lambda words: parser.read(benchmark.Arguments, words),
    "scripts/hardware_report.py": lambda words: parser.read(hardware_report.Arguments, words),
    "scripts/preview.py": preview.read_arguments,
    "scripts/previews.py": lambda words: parser.read(previews.Arguments, words),
    "scripts/export_agent.py": lambda words: parser.read(export_agent.Arguments, words),
    "scripts/export_onnx.py": lambda words: parser.read(export_onnx.Arguments, words),
    "scripts/reproduce.py": lambda words: parser.read(reproduce.Arguments, words),
}


@functools.cache
def complaint(command):
    """What is wrong with a command, or None; a variable of the shell stands for 1, and `...` for nothing."""
    script, *words = shlex.split(re.sub(r"\$\w+", "1", command).replace(" ...", ""))
    if set(words) & {"--help", "-h"}:
        return None
    try:
        READERS[script](words)
    except (ValueError, SystemExit, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return None


@by_guide
def test_every_command_that_a_page_shows_has_flags_that_exist(page, capfd):
    found = {f"{page.name}:{line}: {command}": complaint(command) for line, command in pages.commands(page)}
    assert {where: problem for where, problem in found.items() if problem} == {}, capfd.readouterr().err


# --- Python -----------------------------------------------------------------------------------------------------------

PAGES = [page for page in pages.PAGES if any(pages.blocks(page, "python"))]
GIVEN = {  # what a page says that the reader has: names of a file of examples/, or of our own modules
    "docs/design.md": lambda: vars(training),
    "docs/your-own-game.md": lambda: {**vars(importlib.import_module("examples.nim")), "Game": Game},
    "docs/your-own-network.md": lambda: {
        **vars(importlib.import_module("examples.transformer")),
        "muzero_jax": muzero_jax,
    },
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
    monkeypatch.setattr(start, "train", lambda *arguments: heard_after(arguments[-1]))
    return tmp_path


def heard_after(callbacks):
    """Gives the callbacks a run's one evaluation."""
    callbacks.write({"iteration": 1, "eval/random": 1.0})
    return Result({}, interrupted=False)


DEAR = "your-own-algorithm", "your-own-network"  # whose code other tests run too


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in DEAR)) for page in PAGES], ids=name_of
)
def test_the_python_of_a_page_runs(page, folder):
    given = dict(GIVEN.get(name_of(page), dict)())
    names = dict(given)
    for line, code in pages.blocks(page, "python"):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        if code.rstrip().endswith(": ..."):  # a declaration: the real one has the same parameters
            (name,) = {name for name in given if names[name] is not given[name]}
            assert inspect.signature(names[name]).parameters.keys() == inspect.signature(given[name]).parameters.keys()
            names[name] = given[name]
