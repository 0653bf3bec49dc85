"""Every member of the family trains: AlphaZero, MuZero, Reanalyze, EfficientZero's parts, and each option of search."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.ops import devices
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.storage.config import Config
from muzero_jax.types import TrainState
from tests.reference import tiny_run
from tests.reference.programs import QUICKLY
from tests.reference.tiny_run import CONFIG, PROGRESS, assert_same, on_host


def member(**groups):
    """The tiny run's config with other fields; a group's are given as a dict. The first rollout is a window."""
    replay, self_play = replace(CONFIG.replay, min_frames=0), replace(CONFIG.self_play, rollout_length=8)
    tiny = replace(CONFIG, replay=replay, self_play=self_play, targets=replace(CONFIG.targets, unroll_steps=1))
    changed = {
        name: replace(getattr(tiny, name), **fields) if isinstance(fields, dict) else fields
        for name, fields in groups.items()
    }
    return replace(tiny, **changed)


MEMBERS = {
    "MuZero, values of search": member(search={"policy": "puct"}, targets={"search_value_weight": 1.0}),
    "AlphaZero": member(model="rules", search={"policy": "puct"}),
    "Gumbel AlphaZero, Reanalyze": member(model="rules", replay={"reanalyze_fraction": 1.0}),
    "learned legality": member(model="learned_legality"),
    "learned discount, imagined observations": member(
        network={"kind": "observation", "predict_discount": True}, optimiser={"reconstruction_weight": 1.0}
    ),
    "Reanalyze, a target network": member(replay={"reanalyze_fraction": 0.5}, optimiser={"target_period": 2}),
    "consistency, prioritised": member(optimiser={"consistency_weight": 1.0}, replay={"priority_exponent": 0.6}),
    "playout cap, sampled moves, an averaged target": member(
        self_play={"full_search_share": 0.5, "cheap_simulations": 2, "sampled_moves": 6},
        optimiser={"target_decay": 0.9},
    ),
}


class Trained(NamedTuple):
    """A member before and after two iterations."""

    config: Config
    first: TrainState  # on the host
    state: TrainState
    metrics: dict[str, Any]
    program: Any
    init: Any


# A quarter of a minute each. The short tests have one program with priorities, Reanalyze and a target network at once
# (`test_replay_updates`), and what each of the others adds by itself.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=MEMBERS.values(), ids=MEMBERS)
def trained(request):
    algorithm, mesh = algorithms.make(request.param), devices.make_mesh(1)
    init = make_init(algorithm, 0, mesh)
    program = make_chunk(algorithm, mesh).lower(init.eval_shape(), PROGRESS).compile(QUICKLY)
    state = init.lower().compile(QUICKLY)()  # type: ignore
    first = on_host(state)
    state, metrics = program(state, PROGRESS)
    return Trained(request.param, first, state, jax.device_get(metrics), program, init)


def test_every_member_trains_for_two_iterations(trained):
    """Losses are finite, every parameter that is learned has moved, and games were played."""
    config, first, state, metrics, *_ = trained
    assert all(np.isfinite(values).all() for values in metrics.values())
    assert metrics["train/loss"][1] > 0 and state.learner.num_updates == 2 * config.optimiser.updates_per_iteration
    moved = jax.tree.map(lambda old, new: (old != new).any(), first.learner.params, state.learner.params)
    moved = {name: part for name, part in moved.items() if name != "decoder" or config.optimiser.reconstruction_weight}
    assert all(jax.tree.leaves(moved)), moved
    assert ("dynamics" in moved) == (config.model != "rules")


def test_games_of_self_play_differ(trained):
    """Fewer than a tenth of them repeat another, with every search: noise is drawn for each game alone."""
    actions = trained.state.replay.transitions.action[: int(trained.state.replay.num_stored)]
    assert len(np.unique(actions, axis=1).T) > 0.9 * trained.config.self_play.num_envs


def test_a_member_restored_from_a_checkpoint_goes_on_bit_for_bit(trained, tmp_path):
    """With all that it remembers: priorities, the age of searches, a target network, the rules' states."""
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(2, trained.state)
    _, restored = tiny_run.restore_latest(tmp_path, trained.init.eval_shape())
    assert jax.tree.structure(restored) == jax.tree.structure(trained.state)
    again, _ = trained.program(restored, PROGRESS)
    onward, _ = trained.program(jax.tree.map(jnp.copy, trained.state), PROGRESS)
    assert_same(again, onward)
