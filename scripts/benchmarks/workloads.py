"""The games, networks and positions that are measured; docs/benchmark.md describes them under the same names.

W1 is self-play of Connect Four with a tower, W2 self-play of tic-tac-toe with an MLP, W3 gradient steps on W1's tower.
The whole iterations are tic-tac-toe with the MLP, and Hex 9x9 with a tower.

Networks are untrained but not as initialised: heads start at zero, under which every search grows the same dull tree,
so all parameters get noise. Positions come from random play, so that games stand at different depths.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm
from muzero_jax.learning import self_play
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.storage.config import Config
from muzero_jax.storage.config import TargetConfig as Targets
from muzero_jax.storage.config_groups import NetworkConfig, OptimiserConfig, ReplayConfig, SearchConfig, SelfPlayConfig
from muzero_jax.types import ActorState, Environment, Model, Params, SearchFn, SearchOutput, SearchRoots, Transition

# float32 on every device, because that is what the programs compute in that ours is measured against.
MLP = NetworkConfig(kind="mlp", width=64, num_bins=3, compute_dtype="float32")
# Two residual blocks of dynamics and two of prediction: a simulation is a tower of 4 blocks with 64 channels.
TOWER = NetworkConfig(kind="tower", width=64, num_blocks=2, num_bins=3, compute_dtype="float32")


def algorithm_of(config: Config) -> Algorithm:
    """A config's game, network and stages."""
    return algorithms.make(config)


def search_of(config: Config, algorithm: Algorithm, *, noise: bool = True) -> SearchFn:
    """Self-play's search by itself."""
    return algorithms.make(config, algorithm.environment, algorithm.model).search(noise=noise)


def workload(env: str, network: NetworkConfig, *, num_envs: int, num_simulations: int, **fields: Any) -> Config:
    """A config whose work is all in play: no exploration, Gumbel search with 16 considered actions."""
    search = SearchConfig(num_simulations=num_simulations, max_num_considered_actions=16, value_scale=0.4)
    games = SelfPlayConfig(num_envs=num_envs, rollout_length=fields.pop("rollout_length", 1), exploration=0.0)
    return Config(env=env, network=network, search=search, self_play=games, **fields)


def w1(num_envs: int = 128) -> Config:
    """W1: Connect Four, tower 64x4, 50 simulations; either program makes four moves of every game in a call."""
    return workload("connect_four", TOWER, num_envs=num_envs, num_simulations=50, rollout_length=4)


def w2(num_envs: int = 512, num_simulations: int = 25) -> Config:
    """W2: tic-tac-toe, MLP of width 64; among 256 to 2,048 games the best number for either program."""
    return workload("tic_tac_toe", MLP, num_envs=num_envs, num_simulations=num_simulations, rollout_length=8)


def w3(batch_size: int = 256) -> Config:
    """W3: the learner on W1's network, K = 5; a window is frame 0 to 10, bootstrapped after 5 moves.

    Ours makes four updates a call, as in a run it makes many, and samples their windows at once: each call's
    temporaries are fresh memory, whose 44,000 page faults cost a tenth of an update's time. The baseline makes one:
    XLA's gradients of its convolutions are 14-30 times slower in a loop, so it has none.
    """
    return with_learning(w1(num_envs=64), Targets(unroll_steps=5, td_steps=5), batch_size, updates=4)


def small_w3() -> Config:
    """W3 with a quarter of the batch, half of the network and of the unroll: it compiles in a third of the time."""
    config = w3(batch_size=64)
    targets = replace(config.targets, unroll_steps=2)
    return replace(config, network=replace(config.network, num_blocks=1), targets=targets)


def with_learning(config: Config, targets: Targets, batch_size: int, updates: int) -> Config:
    """`config` with gradient steps from a buffer of 64 frames a game, which learns at once."""
    return replace(
        config,
        targets=targets,
        replay=ReplayConfig(replay_length=64, min_frames=1, symmetries=False),
        optimiser=OptimiserConfig(batch_size=batch_size, updates_per_iteration=updates, warmup_updates=1),
    )


def whole_iteration(config: Config, *, batch_size: int, updates: int) -> Config:
    """`config` with learning: as much of it as its presets do to self-play, and windows of K + n + 1 = 10 frames.

    Four iterations a chunk, of the tower half the updates that its preset has in two. The baseline has
    no chunks.
    """
    config = with_learning(config, Targets(unroll_steps=4, td_steps=5), batch_size, updates)
    return replace(config, iterations_per_chunk=4)


def hex_tower(num_envs: int = 64) -> Config:
    """Hex 9x9, tower 64x4, 16 simulations: two moves of every game and two updates an iteration."""
    config = workload("hex", TOWER, num_envs=num_envs, num_simulations=16, rollout_length=2, board_size=9)
    return whole_iteration(config, batch_size=64, updates=2)


def with_engine(config: Config, engine: str, policy: str) -> Config:
    """`config` with its tree search by `engine` and `policy`."""
    return replace(config, search=replace(config.search, engine=engine, policy=policy))


def noisy_params(model: Model) -> Params:
    """Parameters as of no particular training: fresh ones plus normal noise of deviation 0.1 on every leaf."""

    @jax.jit
    def init(key):
        init_key, noise_key = jax.random.split(key)
        leaves, structure = jax.tree.flatten(model.init(init_key))
        keys = jax.random.split(noise_key, len(leaves))
        noisy = [x + 0.1 * jax.random.normal(k, x.shape, x.dtype) for x, k in zip(leaves, keys, strict=True)]
        return jax.tree.unflatten(structure, noisy)

    return init(jax.random.key(0))


def random_search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
    """Uniformly random play in the form of a search, to fill boards and replay buffers with."""
    del params
    weights = roots.legal_action_mask.astype(jnp.float32)
    policy = weights / jnp.sum(weights, axis=-1, keepdims=True)
    return SearchOutput(uniform_legal_action(key, roots.legal_action_mask), policy, jnp.zeros(weights.shape[0]))


def random_play(environment: Environment, key: Array, *, num_envs: int, length: int) -> tuple[ActorState, Transition]:
    """Games after `length` random moves each, and the moves: leaves [length, num_envs, ...]."""
    init_key, play_key = jax.random.split(key)
    actor = self_play.init(environment, init_key, num_envs=num_envs)
    play = partial(self_play.rollout, environment=environment, search=random_search, length=length)
    return jax.jit(play)(None, actor, play_key)
