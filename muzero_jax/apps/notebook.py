"""What a notebook begins with: its devices, and the fast mode in which tests execute it."""

import gc
import os
from dataclasses import replace

from jax.sharding import Mesh

from muzero_jax.ops import devices
from muzero_jax.run import compilation_cache
from muzero_jax.storage.config import Config


def setup() -> tuple[Mesh, bool]:
    """Chooses the devices, before anything else touches JAX, keeps compiled programs, and prints what it found.

    Returns:
      the devices as a mesh, and whether this is the fast mode (MUZERO_JAX_FAST=1), where everything is tiny and nothing
      is learned.
    """
    if is_fast():
        gc.set_threshold(50_000, 20, 20)  # to look for cycles, of which compiling makes few, takes a tenth of its time
    mesh = devices.make_mesh(devices.configure_devices())
    compilation_cache.enable()
    print("device:", devices.describe_device(mesh.size))
    if mesh.devices.flat[0].platform == "cpu":
        print("That is a CPU, which is enough here; in Colab, 'Runtime > Change runtime type' offers a GPU.")
    return mesh, is_fast()


def is_fast() -> bool:
    """Whether a test executes the notebook."""
    return os.environ.get("MUZERO_JAX_FAST") == "1"


def fast(config: Config) -> Config:
    """The config as it is; in the fast mode two iterations of the smallest programs that still do all of its steps.

    Such a notebook spends its time on compiling. So the parts that double a program, such as symmetries and Muon, are
    left out, and a run plays random opponents only.
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
