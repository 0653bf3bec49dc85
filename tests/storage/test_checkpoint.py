"""Checkpoints: whole states come back as they were, and no accident costs more than the newest one."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax.algorithm import make_algorithm
from muzero_jax.config.config import with_values
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run import program
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps, restore_params, save_params
from tests.reference.tiny_run import CONFIG, assert_same, restore_latest


def make_state(num_devices=2, optimiser="adamw"):
    """The state of a tiny run: typed keys, pgx states, optax states, bools and bytes, split over devices and not."""
    algorithm = make_algorithm(with_values(CONFIG, {"optimiser.name": optimiser}))
    generator = np.random.default_rng(0)

    def fill(leaf):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.device_put(jax.random.key(7), leaf.sharding)
        return jax.device_put(generator.integers(0, 2, leaf.shape).astype(leaf.dtype), leaf.sharding)

    return jax.tree.map(fill, program.make_init(algorithm, 0, make_mesh(num_devices)).eval_shape())


def abstract(tree):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), tree)


def at_iteration(state, iteration):
    return state._replace(iteration=jnp.full_like(state.iteration, iteration))


@pytest.fixture(scope="module")
def state():
    return make_state()


@pytest.mark.parametrize("before, after, optimiser", [(2, 2, "adamw"), (2, 1, "adafactor"), (1, 2, "muon")])
def test_whole_state_comes_back_bit_for_bit_on_the_shardings_asked_for(before, after, optimiser, tmp_path):
    """Also on other devices than it was saved from, with every optimiser: each has a structure of its own."""
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, make_state(before, optimiser))
    wanted = make_state(after, optimiser)
    _, restored = restore_latest(tmp_path, abstract(wanted))
    assert jax.tree.structure(restored) == jax.tree.structure(wanted)
    assert_same(restored, wanted)
    for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype and a.sharding.is_equivalent_to(b.sharding, a.ndim)
    changed = jax.jit(lambda state: jax.tree.map(lambda x: x, state), donate_argnums=0)(restored)
    assert_same(changed, wanted)


@pytest.mark.parametrize("field, is_agents", [("target_params", False), ("average_params", True)])
def test_other_weights_come_back_too_and_an_average_is_the_agents(state, field, is_agents, tmp_path):
    params = state.learner.params
    others = jax.tree.map(lambda x: 1 - x, params)
    followed = state._replace(learner=state.learner._replace(**{field: others}))
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, followed)
    assert_same(restore_latest(tmp_path, abstract(followed))[1], followed)
    assert_same(restore_params(tmp_path, abstract(params))[1], others if is_agents else params)


def test_versions_hold_only_params_and_are_read_by_step(state, tmp_path):
    params = state.learner.params
    for step in (0, 3, 1, 3):  # all zeros at first
        save_params(tmp_path, step, jax.tree.map(lambda x, step=step: x * step, params))
    assert checkpoint_steps(tmp_path) == [0, 1, 3]
    for step in (0, 3):
        scaled = jax.tree.map(lambda x, step=step: x * step, params)
        assert_same(restore_params(tmp_path, abstract(params), step=step)[1], scaled)
    with pytest.raises(ValueError, match="no checkpoint 9 in"):
        restore_params(tmp_path, abstract(params), step=9)


def test_a_path_may_lead_through_its_parent(state, tmp_path):
    (tmp_path / "here").mkdir()
    folder, params = tmp_path / "here" / ".." / "there", state.learner.params
    with Checkpointer(folder) as checkpoints:
        checkpoints.save(1, state)
    save_params(folder / "versions", 2, params)
    assert_same(restore_latest(folder, abstract(state))[1], state)
    assert_same(restore_params(folder, abstract(params))[1], params)
    assert_same(restore_params(folder / "versions", abstract(params))[1], params)


def test_the_newest_saves_are_kept_although_saves_overlap(tmp_path, state):
    with Checkpointer(tmp_path / "new", keep=2) as checkpoints:
        assert list(tmp_path.iterdir()) == []  # opening makes nothing
        for step in range(1, 6):
            checkpoints.save(step, at_iteration(state, step))
        checkpoints.save(5, at_iteration(state, 55))
    assert restore_latest(tmp_path / "new", abstract(state))[1].iteration == 55
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["4", "5"]


def test_arrays_may_be_donated_as_soon_as_save_returns(state, tmp_path):
    overwrite = jax.jit(lambda x: x * 0 - 1, donate_argnums=0)
    split = NamedSharding(make_mesh(2), PartitionSpec("data"))
    params = {"w": jax.device_put(jnp.arange(2_000_000, dtype=jnp.float32), split)}
    with Checkpointer(tmp_path) as checkpoints:
        shapes = abstract(params)
        checkpoints.save(1, state._replace(learner=state.learner._replace(params=params)))
        overwrite(params["w"]).block_until_ready()
    np.testing.assert_array_equal(restore_params(tmp_path, shapes)[1]["w"], np.arange(2_000_000, dtype=np.float32))


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_can_be_read(state, tmp_path):
    directory = tmp_path / "checkpoints"
    with Checkpointer(directory) as checkpoints:
        for step in (1, 2):
            checkpoints.save(step, at_iteration(state, step))
    (directory / "2" / "params" / "manifest.ocdbt").unlink()
    for read in (restore_latest, lambda *of: restore_params(of[0], abstract(state.learner.params))):
        with pytest.raises(ValueError, match=rf"^checkpoint {directory}/2 cannot be read.*; delete it"):
            read(directory, abstract(state))
    shutil.rmtree(directory / "2")
    assert restore_latest(directory, abstract(state))[0] == 1
