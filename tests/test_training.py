"""The program: compiled once, without calls of the host, with a donated state; and what an iteration does.

One run of three chunks is looked at from all sides; see `tests/reference/tiny_run.py`.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.learning import replay
from muzero_jax.ops import micro_batches
from muzero_jax.run.program import make_chunk, make_init
from tests.reference import tiny_run
from tests.reference.programs import primitives
from tests.reference.tiny_run import CONFIG, assert_same, on_host

NUM_CHUNKS = 3
ITERATIONS = NUM_CHUNKS * CONFIG.iterations_per_chunk
FIRST_LEARNING = 2  # the third iteration stores frames 9 to 12


@pytest.fixture(scope="module")
def run():
    """States on the host, the first one and that after each chunk; metrics [iterations]; which leaves were donated."""
    program, state = tiny_run.program(), tiny_run.make_init()()
    states, metrics, donated = [on_host(state)], [], []
    for _ in range(NUM_CHUNKS):
        before = state
        with jax.transfer_guard("disallow"):
            state, chunk_metrics = program(state, tiny_run.PROGRESS)
        donated.append([leaf.is_deleted() for leaf in jax.tree.leaves(before)])
        states.append(on_host(state))
        metrics.append(on_host(chunk_metrics))
    metrics = jax.tree.map(lambda *chunks: np.concatenate(chunks), *metrics)
    return SimpleNamespace(states=states, metrics=metrics, donated=donated, last=state)


# --- the program ------------------------------------------------------------------------------------------------------


def test_one_compiled_program_serves_every_chunk(run):
    """Compiled ahead of time, it took its own output three times: same shapes, same types, same places."""
    assert int(run.last.iteration) == ITERATIONS
    wanted = jax.tree.map(lambda x: (x.shape, x.dtype), tiny_run.abstract_state())
    assert jax.tree.map(lambda x: (x.shape, x.dtype), run.last) == wanted


def test_the_program_never_calls_the_host():
    """The run above also ran under a transfer guard; this reads the program itself, loops and branches included."""
    names = primitives(tiny_run.traced().jaxpr.jaxpr)
    assert {"scan", "while", "cond", "shard_map"} <= names and any(name.startswith("psum") for name in names)
    assert {name for name in names if "callback" in name or name in ("infeed", "outfeed", "device_put_host")} == set()


def test_no_two_uses_of_a_whole_chunk_share_a_key():
    with jax.debug_key_reuse(True):
        make_chunk(tiny_run.algorithm(), tiny_run.mesh()).trace(tiny_run.abstract_state(), tiny_run.PROGRESS)


def test_an_update_is_traced_once_although_its_shapes_are_asked_for_too():
    """The branch that only plays and the parts of a batch ask for shapes, which tripled the time of tracing."""
    shared, traced = tiny_run.algorithm(), []

    def update(learner, batch, *progress, **bound):
        traced.append(batch.actions.shape)
        return shared.update(learner, batch, *progress, **bound)

    algorithm = shared._replace(update=update)
    make_chunk(algorithm, tiny_run.mesh()).trace(tiny_run.abstract_state(), tiny_run.PROGRESS)
    assert len(traced) == 1
    micro_batches.mean(lambda rows: traced.append(rows.shape) or rows.sum(), jnp.ones((6, 2)), 2)
    assert traced[1:] == [(2, 2)]


def test_the_whole_state_is_donated(run):
    assert all(all(leaves) for leaves in run.donated)


def test_the_initial_state_has_the_shardings_of_the_program():
    """No leaf moves between devices before the first chunk."""
    state = tiny_run.make_init()()
    wanted = jax.tree.map(lambda x: x.sharding, tiny_run.abstract_state())
    jax.tree.map(lambda leaf, sharding: leaf.sharding.is_equivalent_to(sharding, leaf.ndim) or 1 / 0, state, wanted)
    assert state.replay.transitions.action.sharding.shard_shape((32, 8)) == (32, 4)


# --- what an iteration does -------------------------------------------------------------------------------------------


def test_the_learner_does_not_change_until_the_buffer_holds_min_frames(run):
    assert_same(run.states[0].learner, run.states[1].learner)
    assert run.states[1].replay.num_stored == 8 < CONFIG.replay.min_frames
    before, after = (dict(state.learner.params) for state in run.states[1:3])
    assert before.pop("decoder") and after.pop("decoder")  # unused while reconstruction has no weight
    assert all(jax.tree.leaves(jax.tree.map(lambda x, y: (x != y).any(), before, after)))


def test_the_replay_ratio_is_fixed(run):
    updates, frames = run.metrics["train/updates"], run.metrics["selfplay/frames"]
    np.testing.assert_array_equal(updates, [0] * FIRST_LEARNING + [2] * (ITERATIONS - FIRST_LEARNING))
    np.testing.assert_array_equal(frames, [8 * 4] * ITERATIONS)
    assert run.states[-1].learner.num_updates == updates.sum()


def test_losses_are_finite_and_0_before_learning_starts(run):
    losses = {name: values for name, values in run.metrics.items() if name.startswith("train/")}
    assert {"train/loss", "train/value_loss", "train/reward_loss", "train/policy_loss"} <= set(losses)
    for values in losses.values():
        assert np.isfinite(values).all()
        assert (values[:FIRST_LEARNING] == 0).all()
    assert (losses["train/loss"][FIRST_LEARNING:] > 0).all()


def test_stored_policies_are_distributions_over_legal_actions(run):
    kept = jax.tree.map(lambda x: jnp.asarray(x[:24]), run.states[-1].replay.transitions)
    stored = on_host(replay.unpack(kept, tiny_run.algorithm().environment.observation_shape))
    np.testing.assert_allclose(stored.search_policy.sum(-1), 1, rtol=1e-4)
    assert (stored.search_policy[~stored.legal_action_mask] == 0).all()
    assert np.take_along_axis(stored.legal_action_mask, stored.action[..., None], -1).all()
    assert (np.abs(stored.search_value) <= 1).all()


# --- two devices ------------------------------------------------------------------------------------------------------


def test_two_devices_play_different_games(run):
    actions = run.states[-1].replay.transitions.action[:24]
    assert not (actions[:, :4] == actions[:, 4:]).all()
    assert len(np.unique(actions.T, axis=0)) == 8


def test_two_devices_hold_identical_parameters(run):
    for leaf in jax.tree.leaves(run.last.learner):
        one, other = (np.asarray(shard.data) for shard in leaf.addressable_shards)
        np.testing.assert_array_equal(one, other)


# --- keys -------------------------------------------------------------------------------------------------------------


def test_another_iteration_number_gives_other_games(run):
    """An iteration's key is fold_in(seed, iteration)."""
    iteration = jax.device_put(jnp.int32(100), tiny_run.abstract_state().iteration.sharding)
    state = tiny_run.on_devices(run.states[1])._replace(iteration=iteration)
    other, _ = tiny_run.program()(state, tiny_run.PROGRESS)
    assert (other.replay.transitions.action[8:16] != run.states[2].replay.transitions.action[8:16]).any()


def test_another_seed_gives_other_parameters_and_another_key():
    other = make_init(tiny_run.algorithm(), 1, tiny_run.mesh())()
    state = tiny_run.make_init()()
    params = (on_host(each.learner.params) for each in (other, state))
    assert any(jax.tree.leaves(jax.tree.map(lambda x, y: (x != y).any(), *params)))
    assert (on_host(other.seed_key) != on_host(state.seed_key)).any()
