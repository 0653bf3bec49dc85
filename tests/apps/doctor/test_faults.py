"""Ten faults, planted in runs of Hex 4x4 of a minute: the doctor names each, and nothing in a run without one."""

from dataclasses import replace
from pathlib import Path

import pytest

import muzero_jax
from muzero_jax import presets
from muzero_jax.config.groups import AlgorithmConfig

pytestmark = pytest.mark.slow

FAULTS = str(Path(__file__).parent / "faults.py")
FRAMES = 200_000
NAMED = {
    "value_sign": "value targets have the wrong sign",
    "late_reward": "reward targets are not the rewards of the moves",
    "policy_of_the_other": "policy targets are those of another position",
    "masked_policy": "no policy is learned",
    "no_reconstruction": "the model does not know what a move does",
    "stale_reanalyze": "Reanalyze's values are not those of the network",
    "dead_head": "the value head says the same of all positions",
    "high_learning_rate": "the learning rate is too high",
    "low_replay_ratio": "each position is learned from too rarely",
    "random_moves": "self-play's moves are random",
}


def examine(run_dir, fault):
    config = presets.preset("hex", 4)
    changed = AlgorithmConfig((FAULTS,), (f"fault={fault}",))
    config = replace(config, minutes=None, frames=FRAMES, algorithm=changed)
    config = replace(config, evaluation=replace(config.evaluation, mcts_simulations=(100,)))
    if fault == "stale_reanalyze":
        config = replace(config, replay=replace(config.replay, reanalyze_fraction=0.5))
    muzero_jax.train(config, run_dir, say=lambda line: None)
    return muzero_jax.doctor(run_dir).findings


@pytest.mark.parametrize(("fault", "finding"), NAMED.items())
def test_a_planted_fault_is_named(tmp_path, fault, finding):
    found = examine(tmp_path / "run", fault)
    assert finding in [each.finding for each in found if each.surety != "possible"]


def test_without_a_fault_nothing_is_unusual(tmp_path):
    assert examine(tmp_path / "run", "none") == []
