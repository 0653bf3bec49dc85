"""What learning writes into the replay buffer, in the run's own program: priorities, fresh targets and their age.

One run of three chunks on two devices, with priorities, Reanalyze and a target network; then learning from games that
are over.
"""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from muzero_jax import algorithm as algorithms
from muzero_jax import training
from muzero_jax.learning import priorities, replay
from muzero_jax.networks.value_transform import Support
from muzero_jax.ops import devices
from muzero_jax.run import program
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import OptimiserConfig, ReplayConfig, SearchConfig, SelfPlayConfig, TargetConfig
from muzero_jax.types import Environment
from tests.reference import tiny_run
from tests.reference.models import make_network
from tests.reference.tiny_run import assert_same, on_host
from tests.reference.windows import make_window

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
    algorithm, mesh = algorithms.make(CONFIG), tiny_run.mesh()
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


# --- what the ring keeps ----------------------------------------------------------------------------------------------


def test_priorities_and_ages_lie_over_the_devices_as_the_frames_do(run):
    """Half of the games each, in the first state and after every chunk."""
    wanted = program.make_init(algorithms.make(CONFIG), 0, tiny_run.mesh()).eval_shape().replay
    for ring in (wanted, run.last.replay):
        for leaf in (ring.priority, ring.transitions.search_age, ring.transitions.action):
            assert leaf.sharding.shard_shape((32, 8)) == (32, 4)


def test_without_these_options_the_ring_keeps_nothing_of_them():
    ring = tiny_run.abstract_state().replay
    assert ring.priority is None and ring.transitions.search_age is None


# --- while learning rests ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played():
    """The ring after a chunk without these options, from the same keys."""
    return on_host(tiny_run.program()(tiny_run.make_init()(), tiny_run.PROGRESS)[0].replay)


def test_while_learning_rests_the_ring_holds_what_was_played_and_nothing_else(run, played):
    ring = run.rings[1]
    jax.tree.map(np.testing.assert_array_equal, ring.transitions._replace(search_age=None), played.transitions)
    np.testing.assert_array_equal(ring.priority, (np.arange(32)[:, None] < 8) * np.ones((1, 8)))
    np.testing.assert_array_equal(ring.transitions.search_age[:8], np.repeat([2, 1], 4)[:, None] * np.ones((1, 8)))
    assert all((values[:REST] == 0).all() for name, values in run.metrics.items() if name.startswith("train/"))


# --- while it learns --------------------------------------------------------------------------------------------------


def test_windows_that_were_drawn_have_priorities_of_their_own_and_no_frame_that_is_not_stored_has_one(run):
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


def test_half_of_each_batch_is_searched_again_and_written_back(run):
    """What was played stays; some frames' targets differ from those after the chunk before, and are young."""
    before, after = run.rings[2].transitions, run.rings[3].transitions
    for name in ("observation", "legal_action_mask", "action", "reward", "discount", "is_last", "explored"):
        np.testing.assert_array_equal(getattr(before, name)[:16], getattr(after, name)[:16])
    is_fresh = (before.search_policy != after.search_policy)[:16].any(axis=-1)
    assert 0 < is_fresh.mean() < 1
    assert (after.search_age[:16][is_fresh] <= 2).all()
    assert (after.search_age[:16] > 2).any()
    np.testing.assert_allclose(after.search_policy[:24].sum(-1), 1, rtol=1e-4)


def test_the_metrics_say_how_stale_targets_are_and_what_weighs_how_much(run):
    learned = {name: values[REST:] for name, values in run.metrics.items()}
    assert (learned["train/stale_iterations"] > 0).all() and (learned["train/stale_iterations"] < 6).all()
    stale = learned["train/stale_value"]  # at first the target network is the one that played
    assert stale[0] == 0 and (stale[1:] > 0).all() and (learned["train/stale_policy"] <= 1).all()
    assert (learned["train/priority"] > 0).all()
    weight = learned["train/importance_weight"]
    assert weight[0] == 1 and (weight[1:] < 1).all() and (weight > 0).all()  # at first all priorities are 1


def test_the_target_network_is_the_learners_of_the_last_third_update(run):
    """Two updates an iteration, learning from the third on: 3 and 6 were copied, and 7 and 8 not yet."""
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


def test_a_checkpoint_keeps_priorities_ages_and_the_target_network(run, tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(6, run.last)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), run.last)
    _, restored = tiny_run.restore_latest(tmp_path, shapes)
    assert jax.tree.structure(restored) == jax.tree.structure(run.last)
    assert_same(restored, run.last)


# --- learning from games that are over --------------------------------------------------------------------------------

CORRIDOR_LENGTH, GAMMA = 5, 0.7
CORRIDOR = Environment(
    name="corridor",
    init=lambda key: jnp.int32(0),
    move=None,  # type: ignore  # no one plays here
    observe=lambda state: jnp.arange(CORRIDOR_LENGTH) == state,
    legal=lambda state: jnp.ones(2, bool),
    num_actions=2,
    observation_shape=(CORRIDOR_LENGTH,),
    num_players=1,
    discount=GAMMA,
)
"""Five moves for one player; the last of them gives 1, whatever the actions are."""


def small_config(td_steps=1, batch_size=32, **ring):
    return Config(
        search=SearchConfig(num_simulations=2, max_num_considered_actions=2, value_scale=0.5),
        self_play=SelfPlayConfig(num_envs=4),
        replay=ReplayConfig(symmetries=False, **ring),
        targets=TargetConfig(unroll_steps=1, td_steps=td_steps, discount=GAMMA),
        optimiser=OptimiserConfig(
            batch_size=batch_size, updates_per_iteration=4, weight_decay=0.0, learning_rate=5e-3, warmup_updates=0
        ),
    )


def ring_of(algorithm, window):
    """A full ring, of which nothing was ever drawn."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[2:], x.dtype), window)
    length, games = window.action.shape
    empty = replay.init(
        shapes,
        num_envs=games,
        replay_length=length,
        is_prioritised=algorithm.init_replay(shapes).priority is not None,
        is_reanalyzed=algorithm.init_replay(shapes).transitions.search_age is not None,
    )
    full = replay.add(empty._replace(priority=None), window)
    return full._replace(priority=None if empty.priority is None else jnp.ones((length, games)))


def learn(config, window, iterations):
    """Learns on one device for so many iterations; returns the network's values of its positions, the ring, metrics."""
    shape = window.observation.shape[2:]
    environment = CORRIDOR._replace(observation_shape=shape)
    model = make_network("mlp", environment, Support(-1.0, 1.0, 21), width=16)
    algorithm = algorithms.make(config, environment, model)

    def iterate(carry, key):
        *carry, metrics = training.learn(*carry, jnp.float32(0.0), key, algorithm=algorithm)
        return tuple(carry), metrics

    def run(ring, key):
        learner = algorithm.init_learner(model, algorithm.optimiser, key)
        carry, metrics = jax.lax.scan(iterate, (learner, ring), jax.random.split(key, iterations))
        value = model.to_scalar(model.initial_inference(carry[0].params, jnp.eye(shape[0], dtype=bool)).value_logits)
        return value, carry[1], metrics

    everywhere = PartitionSpec()
    run = jax.jit(devices.shard_map(run, devices.make_mesh(1), (everywhere, everywhere), everywhere))
    return jax.device_get(run(ring_of(algorithm, window), jax.random.key(0)))


def corridor_window():
    """30 frames of four games, played long ago: their search knew nothing."""
    position = (np.arange(30)[:, None] + np.arange(4)) % CORRIDOR_LENGTH
    is_end = position == CORRIDOR_LENGTH - 1
    observation = np.eye(CORRIDOR_LENGTH)[position] > 0
    action = np.random.default_rng(0).integers(2, size=position.shape)
    window = make_window(is_end, np.where(is_end, 0.0, GAMMA), num_actions=2, action=action)
    return window._replace(observation=jnp.asarray(observation)), position


@pytest.mark.slow
def test_with_reanalyze_a_stored_game_teaches_values_that_its_own_searches_never_knew():
    """One-move returns: without fresh values only the last position's is learned, whose reward is seen.

    With them values spread backwards, a move a search. Half of each batch is searched, and the ring keeps it.
    """
    window, position = corridor_window()
    true_value = GAMMA ** np.arange(CORRIDOR_LENGTH - 1, -1, -1)
    stale, ring, _ = learn(small_config(), window, 100)
    np.testing.assert_allclose(stale, [0, 0, 0, 0, 1], atol=0.1)
    assert not ring.transitions.search_value.any()

    value, ring, metrics = learn(small_config(reanalyze_fraction=0.5), window, 100)
    np.testing.assert_allclose(value, true_value, atol=0.02)
    np.testing.assert_allclose(ring.transitions.search_value, true_value[position], atol=0.02)
    assert metrics["train/stale_value"][-20:].mean() < 0.01 < metrics["train/stale_value"][:5].max()
    assert metrics["train/stale_iterations"][-20:].mean() < 4


@pytest.mark.slow
def test_with_priorities_a_rare_surprise_is_learned_in_updates_that_hardly_see_it_otherwise():
    """Games of one move: two of 448 frames give 1, all others 0, and no search foresaw it."""
    is_rare = np.zeros((30, 16), bool)
    is_rare[3, 5] = is_rare[20, 11] = True
    window = make_window(is_rare, np.zeros((30, 16)), num_actions=2)
    window = window._replace(observation=jnp.stack([is_rare, ~is_rare], axis=-1))
    plain, _, _ = learn(small_config(batch_size=16), window, 30)
    value, ring, metrics = learn(
        small_config(batch_size=16, priority_exponent=1.0, importance_exponent=0.0), window, 30
    )
    assert value[0] > 0.8 and value[0] > 2 * plain[0] and abs(value[1]) < 0.1
    np.testing.assert_allclose(ring.priority[is_rare], 1 + priorities.FLOOR, rtol=1e-5)
    share = 2 * 1.01 / (2 * 1.01 + 446 * 0.01)  # of draws, once every window was drawn once
    assert metrics["train/priority"][-5:].mean() == pytest.approx(share, abs=0.15)
