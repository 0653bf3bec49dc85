"""Several runs as one program: each member is the run that it would be alone, and keeps a folder of its own."""

import json
import shutil
import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.apps.study import population, together
from muzero_jax.apps.study.together import Planned
from muzero_jax.ops import devices
from muzero_jax.run import metrics, program
from muzero_jax.run.driver import Chunk, drive
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN

RATES = 1e-3, 4e-3
WITH_A_BLOCK = configs.with_values(CONFIG, {"network.num_blocks": 1})
"""Without one, rounding chooses the gradient at the kink of min-max scaling, and equal runs drift apart."""
MEMBERS = [configs.with_values(WITH_A_BLOCK, {"seed": seed, "optimiser.learning_rate": RATES[seed]}) for seed in (0, 1)]


@pytest.fixture(scope="module")
def ready():
    """The program of two members, each on a device of its own, which differ in the seed and the learning rate."""
    with pytest.MonkeyPatch.context() as accelerator:  # where members are trained side by side
        accelerator.setattr(population, "is_vmapped", lambda config: True)
        return together.assemble(MEMBERS, tiny_run.mesh(), tiny_run.SESSION, lambda line: None)


@pytest.fixture(scope="module")
def unbroken(ready):
    """The members' states by iteration, of four chunks."""
    members, states = population.Population(ready.init(), ready.numbers, ready.program, ready.abstract, ready.mesh), {}
    for chunk in range(1, 5):
        members.advance(tiny_run.PROGRESS)
        states[2 * chunk] = [tiny_run.on_host(members.state(index)) for index in (0, 1)]
    return states


@pytest.mark.slow
def test_a_member_equals_its_run_alone(ready, unbroken):
    """Alone on one device. Whatever is random is the same, and so are the games; products are rounded otherwise."""
    mesh = devices.make_mesh(1)
    algorithm = algorithms.make(MEMBERS[1])
    chunk = program.make_chunk(algorithm, mesh)
    state = program.make_init(algorithm, 1, mesh)()
    for _ in range(4):
        state, _ = chunk(state, tiny_run.PROGRESS)
    alone, member = tiny_run.on_host(state), unbroken[8][1]
    jax.tree.map(np.testing.assert_array_equal, alone.actor, member.actor)
    for one, other in zip(jax.tree.leaves(alone.learner), jax.tree.leaves(member.learner), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_members_state_has_the_shapes_of_its_checkpoint_alone(ready, unbroken):
    alone = program.make_init(algorithms.make(MEMBERS[0]), 0, devices.make_mesh(1)).eval_shape()
    assert jax.tree.map(jnp.shape, unbroken[2][0]).learner.params == jax.tree.map(jnp.shape, alone).learner.params


@pytest.mark.parametrize("name", population.NUMBERS)
def test_each_number_can_be_an_input_of_the_program_and_changes_it(name):
    """It meets no branch of Python; and what is traced depends on it."""
    state, usual = tiny_run.abstract_state(), tiny_run.algorithm()

    def chunk(number, state):
        varied = configs.with_values(CONFIG, {name: number})
        algorithm = algorithms.make(varied, usual.environment, usual.model)
        return program.iterate(algorithm, state, jnp.zeros(1))

    mapped = devices.shard_map(chunk, devices.make_mesh(1), (jax.P(), program.state_specs()), jax.P())
    closed = jax.make_jaxpr(mapped)(jnp.float32(0.5), state).jaxpr
    used = {variable for equation in closed.eqns for variable in equation.invars}
    assert closed.invars[0] in used
    (inner,) = [equation.params["jaxpr"] for equation in closed.eqns if "shard_map" in equation.primitive.name]
    assert any(inner.invars[0] in equation.invars for equation in inner.eqns)


@pytest.mark.parametrize(
    ("members", "available", "games", "shape"),
    [(8, 2, 512, (2, 1)), (4, 8, 512, (4, 2)), (3, 2, 512, (1, 2)), (3, 8, 4, (3, 2)), (1, 4, 6, (1, 3))],
)
def test_devices_first_get_members_and_then_share_games(members, available, games, shape):
    assert population.mesh_shape(members, available, games) == shape


# --- the loops --------------------------------------------------------------------------------------------------------


def counting(limit, log, name, error=None):
    """A loop of `limit` chunks, or one that fails after as many."""
    iteration = 0
    while iteration < limit:
        if (yield np.array([iteration])) is None:
            break
        iteration += 1
    log.append((name, iteration))
    if error:
        raise error
    return iteration


@pytest.mark.parametrize(
    ("first", "ends"),
    [((3, None), [3, 3, 3]), ((2, ValueError("diverged")), ["diverged", 5, 5]), ((0, None), [0, 0, 0])],
)
def test_all_loops_stop_with_the_first_that_ends_and_go_on_without_one_that_fails(first, ends):
    log, chunks = [], []
    loops = [counting(limit, log, n, error) for n, (limit, error) in enumerate([first, (5, None), (9, None)])]
    found = drive(loops, lambda progress: chunks.append(*progress) or [Chunk({}, 0.0, 0.0, True)] * 3)
    assert [str(end) if isinstance(end, ValueError) else end for end in found] == ends
    assert chunks == list(range(max(end for end in ends if isinstance(end, int))))


# --- whole sessions ---------------------------------------------------------------------------------------------------


@pytest.fixture
def session(monkeypatch, tmp_path, ready):
    """Trains the members in `tmp_path`, without compiling anything; `event(calls)` happens before each chunk."""
    monkeypatch.setattr(Arena, "play", lambda *arguments, **keywords: DRAWN)
    monkeypatch.setattr(Arena, "compile", lambda *arguments, **keywords: None)
    monkeypatch.setattr(metrics, "plot_curves", lambda run_dir: (run_dir / metrics.CURVES).touch())

    def run(event=lambda calls: None, resume=False, **changes):
        calls = []

        def compiled(numbers, states, progress):
            calls.append(states)
            changed = event(calls)
            return ready.program(numbers, states if changed is None else changed, progress)

        monkeypatch.setattr(together, "assemble", lambda *arguments: ready._replace(program=compiled))
        runs = [Planned(f"seed {c.seed}", replace(c, **changes), tmp_path / f"seed{c.seed}") for c in MEMBERS]
        wanted = replace(tiny_run.SESSION, resume=resume)
        return together.train(runs, wanted, tiny_run.mesh(), lambda line: None)

    return run


def saved(run_dir, ready):
    with Checkpointer(run_dir / "checkpoints") as checkpoints:
        return checkpoints.restore_latest(ready.abstract)


def test_each_member_has_its_folder_with_metrics_checkpoints_and_summary(session, tmp_path, ready, unbroken):
    results = session(max_iterations=8)
    for seed, result in enumerate(results):
        run_dir = tmp_path / f"seed{seed}"
        assert json.loads((run_dir / "summary.json").read_text()) == result.summary and result.summary["finished"]
        assert configs.inspect(run_dir).optimiser.learning_rate == RATES[seed]
        iteration, state = saved(run_dir, ready)
        assert iteration == 8
        assert_same(state, unbroken[8][seed])
    lines = [metrics.read_records(tmp_path / f"seed{seed}")[-2]["train/loss"] for seed in (0, 1)]
    assert lines[0] != lines[1]


def test_ctrl_c_saves_all_after_the_same_chunk_and_they_go_on_as_if_unbroken(session, tmp_path, ready, unbroken):
    results = session(lambda calls: signal.raise_signal(signal.SIGINT) if len(calls) == 2 else None, max_iterations=8)
    assert all(result.interrupted for result in results)
    assert [checkpoint_steps(tmp_path / f"seed{seed}" / "checkpoints")[-1] for seed in (0, 1)] == [4, 4]
    session(resume=True, max_iterations=8)
    for seed in (0, 1):
        assert_same(saved(tmp_path / f"seed{seed}", ready)[1], unbroken[8][seed])


@pytest.mark.slow
def test_a_member_without_the_newest_checkpoint_takes_all_back_to_the_one_before(session, tmp_path, ready, unbroken):
    session(max_iterations=6)
    shutil.rmtree(tmp_path / "seed1" / "checkpoints" / "6")
    session(resume=True, max_iterations=8)
    for seed in (0, 1):
        assert_same(saved(tmp_path / f"seed{seed}", ready)[1], unbroken[8][seed])


def test_a_member_that_diverges_leaves_the_other_as_it_is(session, tmp_path, ready, unbroken):
    def spoil(calls):
        states = calls[-1]
        broken = jax.tree.map(lambda x: x.at[1].multiply(jnp.nan), states.learner.params)
        return states._replace(learner=states.learner._replace(params=broken)) if len(calls) == 3 else None

    good, bad = session(spoil, max_iterations=8)
    assert good.summary["finished"] and "not finite at iteration 6" in str(bad)
    assert_same(saved(tmp_path / "seed0", ready)[1], unbroken[8][0])
    assert_same(saved(tmp_path / "seed1", ready)[1], unbroken[4][1])


def test_members_without_a_checkpoint_in_common_are_an_error_that_says_what_to_do(session, tmp_path, ready):
    session(max_iterations=4)
    for step in (2, 4):
        (tmp_path / "seed1" / "checkpoints" / str(step)).rename(tmp_path / f"{step}.away")
    with pytest.raises(ValueError, match="no checkpoint of one iteration in common; leave out --together"):
        session(resume=True, max_iterations=8)
