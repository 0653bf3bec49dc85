"""A wider and deeper network that computes what an agent's does (Net2Net: Chen et al. 2016, arXiv 1511.05641).

    git show 13aefef:muzero_jax/agents/hex.safetensors > narrow.safetensors
    python docs/results/h100-agents/widen.py agent:narrow.safetensors wide.safetensors

For `fully_convolutional` networks of width 32 with a block: the prediction gets twice the channels, and every trunk a
second block. Then noise tells the copies apart.
"""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from muzero_jax.agent import load_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.storage import agent_file

WIDTH, NUM_BLOCKS, NOISE = 64, 2, 0.05


def main(source: str, out: str) -> None:
    """Writes the widened agent to a file."""
    old = load_agent(Path(source))
    config = replace(old.config, network=replace(old.config.network, width=WIDTH, num_blocks=NUM_BLOCKS))
    known = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves(old.params)}
    rng = np.random.default_rng(0)

    def grown(path, fresh):
        name = jax.tree_util.keystr(path)
        if name not in known:  # of a block that is new: its second layer adds nothing at first
            return np.zeros_like(fresh) if any(f"layers_{i}'" in name for i in (3, 5, 7)) else np.asarray(fresh)
        array = widened(name, known[name]) if "prediction" in name else known[name]
        assert array.shape == fresh.shape, f"{name} has {array.shape}, not {fresh.shape}"
        if name.endswith("['kernel']"):
            array = array + NOISE * array.std() * rng.standard_normal(array.shape)
        return array.astype(np.float32)

    fresh = make_algorithm(config).model.init(jax.random.key(0))
    params = jax.tree_util.tree_map_with_path(grown, fresh)
    agent_file.save(out, config, params, iteration=old.iteration)


def leaves(params):
    """Arrays with their paths."""
    return jax.tree_util.tree_leaves_with_path(params)


def widened(name: str, array: np.ndarray) -> np.ndarray:
    """An array of the prediction: its channels are doubled, and what reads a channel takes half of each copy."""
    if name.endswith("['kernel']") and "first" not in name:
        of_pooled = "middles" in name or "['Dense_0']" in name  # these read means and maxima
        parts = np.split(array, 2) if of_pooled else [array]
        axis = array.ndim - 2
        array = np.concatenate([half(part, axis) for part in parts], axis)
    is_output = "['Dense_1']" in name or "['Dense_2']" in name
    return array if is_output else np.concatenate([array, array], array.ndim - 1)


def half(array: np.ndarray, axis: int) -> np.ndarray:
    """Two copies of half of it."""
    return np.concatenate([array, array], axis) / 2


if __name__ == "__main__":
    main(*sys.argv[1:])
