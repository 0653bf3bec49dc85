"""What pages show can be typed: every command's flags are read by the real command line, and nothing is run."""

import functools
import re
import shlex
import tomllib

import pytest

from muzero_jax import presets
from muzero_jax.apps.commands import evaluate_flags, parser, play, tune
from muzero_jax.games import catalogue
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config
from scripts import benchmark, export_agent, export_onnx, hardware_report, preview, reproduce
from tests.reference import pages

by_guide = pytest.mark.parametrize("page", pages.GUIDES, ids=lambda page: page.name)


def read_train(words, *others):
    given = parser.split(words, Config, Session, *others)
    for record in others:
        parser.convert(record, {name: given.pop(name) for name in record.__dataclass_fields__ if name in given})
    config, _ = parser.override(presets.tic_tac_toe(), given), parser.convert(Session, given)
    if config.env not in catalogue.GAMES and not (pages.ROOT / config.env).exists():
        raise ValueError(f"there is no game {config.env}")


READERS = {
    "experiments/train.py": read_train,
    "experiments/evaluate.py": lambda words: evaluate_flags.parse(words, ""),
    "experiments/play.py": lambda words: play.check(parser.read(play.Arguments, words)),
    "experiments/tune.py": lambda words: read_train(words, tune.Arguments),
    "scripts/benchmark.py": benchmark.read_arguments,
    "scripts/hardware_report.py": lambda words: parser.read(hardware_report.Arguments, words),
    "scripts/preview.py": preview.read_arguments,
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


@by_guide
def test_a_page_names_only_scripts_and_extras_that_exist(page):
    text = pages.read(page)
    scripts = {name for name in re.findall(r"(?<![\w/])((?:scripts|experiments)/[\w/]+\.(?:py|sh))", text)}
    assert {name for name in scripts if not (pages.ROOT / name).exists()} == set()
    extras = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\.\[(\w+)\]", text)) <= set(extras)
