"""The scripts that use the package as a library do what they say: a loop, a logger, an agent that analyses.

The examples of a game and of a network are tested in test_nim.py and in commands/test_own_network.py.
"""

import ast
import csv
import runpy
from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import pytest

from examples import logger, training_loop
from muzero_jax import agent as agents
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import compilation_cache, metrics, program
from muzero_jax.storage import agent_file
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import tiny_run
from tests.reference.programs import compiled_before
from tests.run.conftest import DRAWN, Replaced

EXAMPLES = Path(training_loop.__file__).parent


@pytest.fixture
def tiny_program(monkeypatch):
    """The tiny run's program in the place of those that would be compiled, and matches that are not played."""

    def make_init(*arguments):
        return tiny_run.make_init()

    def make_chunk(*arguments, **options):
        signature(program.make_chunk).bind(*arguments, **options)
        return tiny_run.program()

    ready = compiled_before(lambda: Replaced(tiny_run.program()))
    monkeypatch.setattr(program, "make_init", make_init)
    monkeypatch.setattr(program, "make_chunk", lambda *_, **options: ready)
    monkeypatch.setattr(training_loop, "program", SimpleNamespace(make_init=make_init, make_chunk=make_chunk))
    monkeypatch.setattr(Arena, "play", lambda *_, **options: DRAWN)
    monkeypatch.setattr(Arena, "compile", lambda *_, **options: None)
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)


def code_lines(path):
    """Lines that are neither blank nor of the docstring."""
    docstring = ast.parse(path.read_text()).body[0]
    return [line for line in path.read_text().splitlines()[docstring.end_lineno :] if line.strip()]


def test_a_loop_of_ones_own_trains_an_agent_that_can_be_loaded(tiny_program, tmp_path, capsys):
    file = tmp_path / "mine.safetensors"
    training_loop.main(tiny_run.CONFIG, num_chunks=3, file=str(file))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["2", "4", "6"]
    assert lines[0].endswith("loss 0.000") and not lines[2].endswith("loss 0.000"), "it learns from the second chunk on"
    assert lines[3] == f"python experiments/play.py --agent {file}"
    agent = agents.load_agent(file)
    assert (agent.iteration, agent.config) == (6, tiny_run.CONFIG)
    state = tiny_run.make_init()()
    for _ in range(3):
        state, _ = tiny_run.program()(state, tiny_run.PROGRESS)
    tiny_run.assert_same(agent.params, state.learner.params)


def test_the_loop_fits_in_20_lines():
    functions = [node for node in ast.parse((EXAMPLES / "training_loop.py").read_text()).body if hasattr(node, "args")]
    assert [node.name for node in functions] == ["main"]
    assert functions[0].end_lineno - functions[0].lineno < 20


def test_a_logger_of_ones_own_has_a_row_for_every_record(tiny_program, tmp_path):
    logger.main(replace(tiny_run.CONFIG, max_iterations=4), tmp_path / "run")
    with (tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    records = metrics.read_records(tmp_path / "run")
    assert [row["iteration"] for row in rows] == [str(record["iteration"]) for record in records] == ["2", "4", "4"]
    assert list(rows[0]) == list(logger.COLUMNS) and float(rows[1]["train/loss"]) == records[1]["train/loss"]


def test_the_logger_ends_a_run_that_is_good_enough_and_it_is_saved(tiny_program, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Arena, "play", lambda *_, **options: DRAWN | {"score": 0.95})
    evaluation = replace(tiny_run.CONFIG.evaluation, interval_minutes=1e-9)
    config = replace(tiny_run.CONFIG, max_iterations=100, evaluation=evaluation)
    logger.main(config, tmp_path / "run")
    assert "good enough: 95% against random play after " in capsys.readouterr().out
    assert checkpoint_steps(tmp_path / "run" / "checkpoints")[-1] < 100


def test_an_agent_is_loaded_and_says_its_moves_and_values_in_ten_lines(monkeypatch, capsys):
    """With the agent of tic-tac-toe, which plays perfectly, in place of that of Hex, whose search compiles longer."""
    find = agent_file.find
    monkeypatch.setattr(agent_file, "find", lambda name: find(name.replace("hex_5x5", "tic_tac_toe")))
    runpy.run_path(str(EXAMPLES / "analyse.py"))
    moves = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len({move for move, *_ in moves}) == len(moves) == 9, "perfect play ends in a draw, with a full board"
    assert all(abs(float(value)) < 0.1 for _, _, value, *_ in moves)
    assert len(code_lines(EXAMPLES / "analyse.py")) <= 10
