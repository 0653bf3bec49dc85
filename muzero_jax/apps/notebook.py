"""`setup` for notebooks: it chooses devices, and offers a fast mode in which tests execute the notebook."""

import gc
import os
from dataclasses import replace

from jax.sharding import Mesh

from muzero_jax.config.config import Config
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run import compilation_cache
from muzero_jax.run.machine import configure_devices, describe_device


def setup() -> tuple[Mesh, bool]:
    """Chooses and prints the devices, and turns the compilation cache on. Call it before anything else uses JAX.

    Returns:
      the devices as a mesh, and whether this is the fast mode (MUZERO_JAX_FAST=1), in which everything is tiny and
      nothing is learned.
    """
    if is_fast():
        gc.set_threshold(50_000, 20, 20)  # collecting cycles takes a tenth of compile time and finds few
    mesh = make_mesh(configure_devices())
    compilation_cache.enable()
    print("device:", describe_device(mesh.size))
    if mesh.devices.flat[0].platform == "cpu":
        print("That is a CPU, which is enough here; in Colab, 'Runtime > Change runtime type' offers a GPU.")
    return mesh, is_fast()


def is_fast() -> bool:
    """Whether a test executes the notebook."""
    return os.environ.get("MUZERO_JAX_FAST") == "1"


def fast(config: Config) -> Config:
    """The config unchanged; in the fast mode a tiny copy: two iterations of programs that compile quickly.

    In that mode compiling takes most of the time. Therefore symmetries and Muon, which double a program, are left out,
    and the run plays only a random opponent.
    """
    if not is_fast():
        return config
    return replace(
        config,
        minutes=None,
        frames=None,
        updates=None,
        max_iterations=2,
        network=replace(config.network, width=8, num_blocks=0),
        search=replace(config.search, num_simulations=1),
        self_play=replace(config.self_play, num_envs=4),
        replay=replace(config.replay, min_frames=0, symmetries=False),
        targets=replace(config.targets, unroll_steps=1, td_steps=4),
        optimiser=replace(config.optimiser, name="adamw", batch_size=4, updates_per_iteration=1, warmup_updates=0),
        evaluation=replace(config.evaluation, games=4, final_games=4, mcts_simulations=(), num_simulations=1),
    )
