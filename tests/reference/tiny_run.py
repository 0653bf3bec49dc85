"""One training run small enough to test with, its program compiled once for all tests that ask about runs.

Tic-tac-toe on two devices: 8 games, 4 moves an iteration, 2 iterations a chunk; learning begins in the second chunk.
"""

import functools

import jax
import numpy as np

import muzero_jax.run.program
from muzero_jax.agent import make_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.groups import (
    EvaluationConfig,
    NetworkConfig,
    OptimiserConfig,
    ReplayConfig,
    SearchConfig,
    SelfPlayConfig,
    TargetConfig,
)
from muzero_jax.config.session import Session
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps

CONFIG = Config(
    env="tic_tac_toe",
    minutes=1000.0,
    iterations_per_chunk=2,
    network=NetworkConfig(width=16, num_blocks=0, num_bins=3),
    search=SearchConfig(num_simulations=4, max_num_considered_actions=4),
    self_play=SelfPlayConfig(num_envs=8, rollout_length=4),
    replay=ReplayConfig(replay_length=32, min_frames=12),
    targets=TargetConfig(unroll_steps=2, td_steps=4),
    optimiser=OptimiserConfig(batch_size=8, updates_per_iteration=2, warmup_updates=0),
    evaluation=EvaluationConfig(interval_minutes=0.0, games=4, final_games=4, num_simulations=2, mcts_simulations=()),
)


PROGRESS = np.zeros(CONFIG.iterations_per_chunk, np.float32)
"""The progress that a chunk's program takes beside the state; no schedule of the run reads it."""

SESSION = Session(devices=2, tensorboard=False, checkpoint_minutes=1e-9)  # a checkpoint after every chunk


@functools.cache
def mesh():
    return make_mesh(2)


@functools.cache
def algorithm():
    return make_algorithm(CONFIG)


def agent(num_simulations=2, params=None):
    return make_agent(CONFIG, algorithm(), num_simulations=num_simulations, params=params)


def openings(num_games, environment=None):
    """The openings of several games, as a search is asked about them."""
    environment = environment or algorithm().environment
    begin = jax.jit(lambda keys: environment.roots(jax.vmap(environment.init)(keys)))
    return begin(jax.random.split(jax.random.key(0), num_games))


@functools.cache
def abstract_state():
    return make_init().eval_shape()


@functools.cache
def make_init():
    return muzero_jax.run.program.make_init(algorithm(), CONFIG.seed, mesh())


@functools.cache
def traced():
    """`make_chunk` of the run, traced: `.jaxpr` is the program as text."""
    return muzero_jax.run.program.make_chunk(algorithm(), mesh()).trace(abstract_state(), PROGRESS)


@functools.cache
def program():
    """The run's program, compiled ahead of time as the host loop does it: it cannot compile a second time."""
    return traced().lower().compile()


def save(run_dir, state):
    """Makes `run_dir` a run, whose one checkpoint holds the state as that of iteration 6."""
    run_dir.mkdir()
    config_file.save(CONFIG, run_dir)
    with Checkpointer(run_dir / "checkpoints") as checkpoints:
        checkpoints.save(6, state)


def restore_latest(checkpoints, abstract=None):
    """The newest checkpoint of a folder of them as (step, state)."""
    step = checkpoint_steps(checkpoints)[-1]
    with Checkpointer(checkpoints) as opened:
        return step, opened.restore(step, abstract or abstract_state())


def on_host(tree):
    """A copy as NumPy arrays, keys as their words; outlives the donation of the state."""

    def copy(leaf):
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.array(jax.random.key_data(leaf) if is_key else leaf)

    return jax.tree.map(copy, tree)


def on_devices(state, abstract=None):
    """A state that `on_host` copied, as a program takes it: lying as `abstract` says, by default as the tiny run's."""
    state = state._replace(seed_key=jax.random.wrap_key_data(jax.numpy.asarray(state.seed_key)))
    return jax.tree.map(lambda x, like: jax.device_put(x, like.sharding), state, abstract or abstract_state())


def assert_same(one, other):
    """Bit for bit, in every leaf."""
    one, other = (jax.tree_util.tree_leaves_with_path(on_host(tree)) for tree in (one, other))
    for (path, x), (_, y) in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y, err_msg=jax.tree_util.keystr(path))
