"""What learning writes into the replay buffer, in the run's own program: priorities, fresh targets and their age.

One run of three chunks on two devices, with priorities, Reanalyze and a target network.
"""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.learning import priorities
from muzero_jax.run import program
from muzero_jax.storage.checkpoint import Checkpointer
from tests.reference import tiny_run
from tests.reference.tiny_run import assert_same, on_host

CONFIG = replace(
    tiny_run.CONFIG,
    replay=replace(
        tiny_run.CONFIG.replay,
        priority_exponent=1.0,
        importance_exponent=0.5,
        reanalyze_fraction=0.5,
        symmetries=False,  # which would only lengthen compiling
    ),
    optimiser=replace(tiny_run.CONFIG.optimiser, target_period=3),
)
REST = 2
"""Iterations until learning begins."""


@pytest.fixture(scope="module")
def run():
    """States on the host, the first one and that after each chunk of two iterations; metrics [iterations]."""
    algorithm, mesh = make_algorithm(CONFIG), tiny_run.mesh()
    state = program.make_init(algorithm, CONFIG.seed, mesh)()
    chunk = program.make_chunk(algorithm, mesh)
    states, metrics = [on_host(state)], []
    for _ in range(3):
        state, chunk_metrics = chunk(state, tiny_run.PROGRESS)
        states.append(on_host(state))
        metrics.append(on_host(chunk_metrics))
    metrics = jax.tree.map(lambda *chunks: np.concatenate(chunks), *metrics)
    rings = [state.replay for state in states]
    return SimpleNamespace(rings=rings, learners=[state.learner for state in states], metrics=metrics, last=state)


# --- what the buffer keeps --------------------------------------------------------------------------------------------


def test_priorities_are_sharded_like_the_frames(run):
    """Half of the games each, in the first state and after the last chunk."""
    wanted = program.make_init(make_algorithm(CONFIG), 0, tiny_run.mesh()).eval_shape().replay
    for ring in (wanted, run.last.replay):
        for leaf in (ring.priority, ring.transitions.action):
            assert leaf.sharding.shard_shape((32, 8)) == (32, 4)


# --- before learning starts -------------------------------------------------------------------------------------------


def test_before_learning_starts_nothing_is_written_back(run):
    """All priorities are those of new frames."""
    ring = run.rings[1]
    np.testing.assert_array_equal(ring.priority, (np.arange(32)[:, None] < 8) * np.ones((1, 8)))
    assert all((values[:REST] == 0).all() for name, values in run.metrics.items() if name.startswith("train/"))


# --- while it learns --------------------------------------------------------------------------------------------------


def test_sampled_windows_get_their_own_priority_and_empty_slots_have_priority_0(run):
    ring = run.rings[3]
    assert (ring.priority[:24] >= priorities.FLOOR).all() and (ring.priority[24:] == 0).all()
    assert len(np.unique(ring.priority[:18])) > 10
    assert (ring.transitions.search_value[24:] == 0).all() and not ring.transitions.search_policy[24:].any()


def test_frames_too_new_to_start_a_window_have_the_highest_priority_of_both_devices(run):
    """Frames 16 to 19 were played in the first iteration after the second chunk; windows of 7 start up to frame 17."""
    highest = run.rings[2].priority.max()
    assert highest > 1 and run.rings[3].priority.shape[1] == 8
    np.testing.assert_array_equal(run.rings[3].priority[18:20], highest)
    assert len(np.unique(run.rings[3].priority[20:24])) == 1


def test_fresh_targets_are_written_back_to_some_frames_and_the_games_stay_as_played(run):
    """Some frames' targets differ from those after the chunk before."""
    before, after = run.rings[2].transitions, run.rings[3].transitions
    for name in ("observation", "legal_action_mask", "action", "reward", "discount", "is_last", "explored"):
        np.testing.assert_array_equal(getattr(before, name)[:16], getattr(after, name)[:16])
    is_fresh = (before.search_policy != after.search_policy)[:16].any(axis=-1)
    assert 0 < is_fresh.mean() < 1
    np.testing.assert_allclose(after.search_policy[:24].sum(-1), 1, rtol=1e-4)


def test_metrics_report_staleness_priorities_and_importance_weights(run):
    learned = {name: values[REST:] for name, values in run.metrics.items()}
    stale = learned["train/stale_value"]  # at first the target network is the one that played
    assert stale[0] == 0 and (stale[1:] > 0).all() and (learned["train/stale_policy"] <= 1).all()
    assert (learned["train/priority"] > 0).all()
    weight = learned["train/importance_weight"]
    assert weight[0] == 1 and (weight[1:] < 1).all() and (weight > 0).all()  # at first all priorities are 1


def test_the_target_network_lags_behind_the_learner_and_moves(run):
    """Two updates an iteration from the third on, a copy at every third update: 7 and 8 are not copied yet."""
    before, after = run.learners[2], run.learners[3]
    assert (before.num_updates, after.num_updates) == (4, 8)
    differs = [
        jax.tree.map(lambda x, y: (x != y).any(), learner.params, learner.target_params) for learner in run.learners
    ]
    assert (
        not any(jax.tree.leaves(differs[0])) and any(jax.tree.leaves(differs[2])) and any(jax.tree.leaves(differs[3]))
    )
    moved = jax.tree.map(lambda x, y: (x != y).any(), before.target_params, after.target_params)
    assert any(jax.tree.leaves(moved))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after.params))


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_a_checkpoint_keeps_priorities_and_the_target_network(run, tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(6, run.last)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), run.last)
    _, restored = tiny_run.restore_latest(tmp_path, shapes)
    assert jax.tree.structure(restored) == jax.tree.structure(run.last)
    assert_same(restored, run.last)
