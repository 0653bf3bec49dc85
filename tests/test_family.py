"""Every member of the family trains: AlphaZero, MuZero, Reanalyze, EfficientZero's parts, and each option of search."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax import building
from muzero_jax.arithmetic import devices
from muzero_jax.run.program import make_chunk, make_init
from tests.reference.programs import QUICKLY
from tests.reference.tiny_run import CONFIG, on_host


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
    "consistency": member(optimiser={"consistency_weight": 1.0}),
    "playout cap, sampled moves, an averaged target": member(
        self_play={"full_search_share": 0.5, "cheap_simulations": 2, "sampled_moves": 2},
        optimiser={"target_decay": 0.9},
    ),
}


@pytest.fixture(scope="module", params=MEMBERS.values(), ids=MEMBERS)
def trained(request):
    """A member's config, its first state, and the state and the metrics after two iterations."""
    parts, mesh = building.make_parts(request.param), devices.make_mesh(1)
    init = make_init(parts, 0, mesh)
    program = make_chunk(parts, mesh, num_iterations=2).lower(init.eval_shape()).compile(QUICKLY)
    state = init.lower().compile(QUICKLY)()  # type: ignore
    first = on_host(state)
    state, metrics = program(state)
    return request.param, first, on_host(state), jax.device_get(metrics)


def test_every_member_trains_for_two_iterations(trained):
    """Losses are finite, every parameter that is learned has moved, and games were played."""
    config, first, state, metrics = trained
    assert all(np.isfinite(values).all() for values in metrics.values())
    assert metrics["train/loss"][1] > 0 and state.learner.num_updates == 2 * config.optimiser.updates_per_iteration
    moved = jax.tree.map(lambda old, new: (old != new).any(), first.learner.params, state.learner.params)
    moved = {name: part for name, part in moved.items() if name != "decoder" or config.optimiser.reconstruction_weight}
    assert all(jax.tree.leaves(moved)), moved
    assert ("dynamics" in moved) == (config.model != "rules")
