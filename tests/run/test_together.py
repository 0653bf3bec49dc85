"""Several agents as one program: each equals its run on its own, and all share a checkpoint."""

import json
import signal
from dataclasses import replace
from unittest.mock import Mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.agent import load_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.evaluation import progress
from muzero_jax.apps.study import population, together
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, with_values
from muzero_jax.config.fields import names
from muzero_jax.ops.mesh import make_mesh, shard_map
from muzero_jax.run import metrics, program
from muzero_jax.run.runner import Planned
from muzero_jax.storage import run_directory
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import draw_matches

RATES = 1e-3, 4e-3
LIGHT = with_values(CONFIG, {"targets.unroll_steps": 1, "replay.symmetries": False})
"""The tiny run, quicker to compile."""


def members_of(config):
    """Two agents that differ in the seed and the learning rate."""
    numbers = ({"seed": seed, "optimiser.learning_rate": rate} for seed, rate in enumerate(RATES))
    return [with_values(config, each) for each in numbers]


def compile_side_by_side(members):
    """The agents' program, each on a device of its own."""
    with pytest.MonkeyPatch.context() as accelerator:  # where they are trained side by side
        accelerator.setattr(population, "is_vmapped", lambda config: True)
        return together.compile_together(members, tiny_run.mesh(), tiny_run.SESSION, lambda line: None)


def train_four_chunks(compiled):
    """The state of both by iteration."""
    state, states = compiled.init(), {}
    for chunk in range(1, 5):
        state, _ = compiled.program.advance(state, tiny_run.PROGRESS)
        states[2 * chunk] = tiny_run.on_host(state)
    return states


MEMBERS = members_of(LIGHT)


@pytest.fixture(scope="module")
def compiled():
    return compile_side_by_side(MEMBERS)


@pytest.fixture(scope="module")
def unbroken(compiled):
    return train_four_chunks(compiled)


@pytest.mark.slow
def test_a_member_equals_its_run_alone():
    """On one device. Random numbers and games are the same; only products are rounded differently.

    With a block: without one, rounding chooses the gradient at the kink of min-max scaling, and equal runs drift apart.
    """
    members, mesh = members_of(with_values(CONFIG, {"network.num_blocks": 1})), make_mesh(1)
    algorithm = make_algorithm(members[1])
    chunk = program.make_chunk(algorithm, mesh)
    state = program.make_init(algorithm, 1, mesh)()
    for _ in range(4):
        state, _ = chunk(state, tiny_run.PROGRESS)
    alone = tiny_run.on_host(state)
    member = population.take(train_four_chunks(compile_side_by_side(members))[8], 1)
    jax.tree.map(np.testing.assert_array_equal, alone.actor, member.actor)
    chex.assert_trees_all_close(alone.learner, member.learner, rtol=1e-4, atol=1e-5)


def test_every_number_that_members_may_vary_can_be_an_input_of_the_program():
    """Tracing meets no Python branch on it, and the program uses it."""
    state, usual, fields = tiny_run.abstract_state(), tiny_run.algorithm(), names(Config, "member")

    def chunk(numbers, state):
        varied = with_values(CONFIG, dict(zip(fields, numbers, strict=True)))
        return program.iterate(make_algorithm(varied, usual.environment, usual.model), state, jnp.zeros(1))

    mapped = shard_map(chunk, make_mesh(1), (jax.P(), program.state_specs()), jax.P())
    closed = jax.make_jaxpr(mapped)([jnp.float32(0.5)] * len(fields), state).jaxpr
    (inner,) = [equation.params["jaxpr"] for equation in closed.eqns if "shard_map" in equation.primitive.name]
    used = {id(variable) for equation in inner.eqns for variable in equation.invars}
    unused = [name for name, number in zip(fields, inner.invars, strict=False) if id(number) not in used]
    assert len(fields) > 2 and unused == []


@pytest.mark.parametrize(
    ("members", "available", "games", "shape"),
    [(8, 2, 512, (2, 1)), (4, 8, 512, (4, 2)), (3, 2, 512, (1, 2)), (3, 8, 4, (3, 2)), (1, 4, 6, (1, 3))],
)
def test_devices_first_get_members_and_then_share_games(members, available, games, shape):
    assert population.mesh_shape(members, available, games) == shape


# --- whole sessions ---------------------------------------------------------------------------------------------------


@pytest.fixture
def session(monkeypatch, tmp_path, compiled):
    """Trains the agents in `tmp_path`, without compiling anything; `event(calls)` happens before each chunk."""
    draw_matches(monkeypatch)

    def run(event=lambda calls: None, resume=False, **changes):
        calls = []

        def advance(state, progress):
            calls.append(state)
            changed = event(calls)
            return compiled.program.advance(state if changed is None else changed, progress)

        own = compiled._replace(program=compiled.program._replace(advance=advance))
        monkeypatch.setattr(together, "compile_together", lambda *arguments: own)
        agents = [Planned(replace(c, **changes), tmp_path / f"seed{c.seed}", f"seed {c.seed}") for c in MEMBERS]
        with run_directory.opened(agents[0].folder, resume=resume):
            return together.train(agents, replace(tiny_run.SESSION, resume=resume), tiny_run.mesh(), lambda line: None)

    return run


def saved(tmp_path, compiled):
    return tiny_run.restore_latest(tmp_path / "seed0" / "together" / "checkpoints", compiled.abstract)


def test_each_member_has_a_folder_with_metrics_and_summary_and_all_share_one_checkpoint_and_one_set_of_matches(
    session, tmp_path, compiled, unbroken, monkeypatch
):
    monkeypatch.setattr(progress, "Arena", made := Mock(wraps=progress.Arena))
    results = session(max_iterations=8)
    made.assert_called_once()
    for seed, result in enumerate(results):
        run_dir = tmp_path / f"seed{seed}"
        assert json.loads((run_dir / "summary.json").read_text()) == result.summary and result.summary["finished"]
        assert config_file.inspect(run_dir).optimiser.learning_rate == RATES[seed]
        weights = load_agent(run_dir).params
        assert_same(weights, population.take(unbroken[8], seed).learner.params)
    iteration, state = saved(tmp_path, compiled)
    assert iteration == 8
    assert_same(state, unbroken[8])
    lines = [metrics.read_records(tmp_path / f"seed{seed}")[-2] for seed in (0, 1)]
    assert lines[0]["train/loss"] != lines[1]["train/loss"]
    assert [line["train/learning_rate"] for line in lines] == pytest.approx(RATES)


def test_ctrl_c_saves_all_members_after_one_chunk_and_they_resume_bit_for_bit(session, tmp_path, compiled, unbroken):
    results = session(lambda calls: signal.raise_signal(signal.SIGINT) if len(calls) == 2 else None, max_iterations=8)
    assert all(result.interrupted for result in results)
    assert saved(tmp_path, compiled)[0] == 4
    session(resume=True, max_iterations=8)
    assert_same(saved(tmp_path, compiled)[1], unbroken[8])


def test_a_member_that_diverges_does_not_change_the_other_and_the_clock_goes_on(session, tmp_path, unbroken):
    def spoil(calls):
        states = calls[-1]
        broken = jax.tree.map(lambda x: x.at[1].multiply(jnp.nan), states.learner.params)
        return states._replace(learner=states.learner._replace(params=broken)) if len(calls) == 3 else None

    good, bad = session(spoil, max_iterations=8)
    assert good.summary["finished"] and "not finite at iteration 6" in str(bad)
    assert_same(load_agent(tmp_path / "seed0").params, population.take(unbroken[8], 0).learner.params)
    minutes = [metrics.read_records(tmp_path / f"seed{seed}")[-1]["time/minutes"] for seed in (0, 1)]
    assert minutes[0] > minutes[1]
    session(resume=True, max_iterations=10)
    assert metrics.read_records(tmp_path / "seed0")[-1]["time/minutes"] > minutes[0]
