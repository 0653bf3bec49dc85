"""Runs of the tiny program through `start.train`, without compiling anything and without playing a match."""

import signal
from dataclasses import replace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps import start
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import compiled, program
from muzero_jax.run.metrics import Callbacks
from muzero_jax.run.run import Run
from muzero_jax.storage import run_directory
from tests.reference import tiny_run
from tests.reference.programs import compiled_before
from tests.reference.tiny_run import CONFIG, on_host

DRAWN = {"wins": 1, "draws": 2, "losses": 1, "games": 4, "score": 0.5, "ci95": [0.2, 0.8]}


def draw_matches(patch):
    """Every match of a run is drawn without being played."""
    patch.setattr(Arena, "play", lambda *arguments, **keywords: DRAWN)
    patch.setattr(Arena, "compile", lambda *arguments, **keywords: None)


@pytest.fixture(scope="session")
def unbroken():
    """States on the host by iteration, of a run of four chunks."""
    state, states = tiny_run.make_init()(), {}
    for _ in range(4):
        state, _ = tiny_run.program()(state, tiny_run.PROGRESS)
        states[int(state.iteration)] = on_host(state)
    return states


def happening_in_chunk(number, event):
    """The program; `event` is called while its chunk `number` runs."""
    calls = []

    def chunk(state, progress):
        calls.append(None)
        if len(calls) == number:
            event()
        return tiny_run.program()(state, progress)

    return chunk


def signalled_in_chunk(number, signum=signal.SIGINT):
    """The program; the process gets a signal, by default a Ctrl-C, while chunk `number` runs."""
    return happening_in_chunk(number, lambda: signal.raise_signal(signum))


def saved_state(run_dir):
    """The newest checkpoint of a run as (iteration, state)."""
    return tiny_run.restore_latest(run_dir / "checkpoints")


@pytest.fixture
def session(monkeypatch, tmp_path):
    """Runs `start.train` in `tmp_path/run` by another program than the compiled one, if given.

    `session.plays` says whether a program was wanted that plays.
    """
    make_init, shared, whole_program = program.make_init, tiny_run.make_init(), tiny_run.program()
    draw_matches(monkeypatch)

    def init_of(algorithm, *others):
        """The shared one for the tiny run's own network, which is the only one with an embedding of width 16."""
        width = jax.eval_shape(algorithm.model.init, jax.random.key(0))
        is_shared = jax.tree.map(jnp.shape, width) == jax.tree.map(jnp.shape, tiny_run.abstract_state().learner.params)
        return shared if is_shared else make_init(algorithm, *others)

    monkeypatch.setattr(compiled, "make_init", init_of)

    def run(compiled_program=None, **changes):
        told = {"memory_analysis": whole_program.memory_analysis, "as_text": whole_program.as_text}

        def make_chunk(algorithm, mesh, *, plays):
            run.plays = plays
            return compiled_before(lambda: Mock(side_effect=compiled_program or whole_program, **told))

        monkeypatch.setattr(compiled, "make_chunk", make_chunk)
        wanted = {name: changes.pop(name) for name in ("resume", "overwrite") if name in changes}
        callbacks = {name: changes.pop(name) for name in ("on_metrics", "on_evaluation") if name in changes}
        config, session = replace(CONFIG, **changes), replace(tiny_run.SESSION, **wanted)
        run_dir = tmp_path / "run"
        with run_directory.opened(run_dir, **wanted, sources=config.sources):
            begun = Run(config, run_dir, make_algorithm(config), tiny_run.mesh(), session, run.said.append)
            return start.train(begun, Callbacks(**callbacks))

    run.directory, run.said = tmp_path / "run", []
    return run
