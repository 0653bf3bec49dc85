"""Presets can do what they are for: every one is traced at its full size, and one of each kind plays and learns."""

import math
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax import presets
from muzero_jax.algorithm import make_algorithm
from muzero_jax.config.config import flat
from muzero_jax.config.validation import validate
from muzero_jax.games import random_play
from muzero_jax.games.environment import make_environment
from muzero_jax.ops.devices import device_kind, made_for
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from scripts.previewing.targets import TARGETS
from tests.reference.programs import QUICKLY

DEAR = "tic_tac_toe", "othello", "go_9x9", "backgammon"
PRESETS = [pytest.param(env, marks=pytest.mark.slow) if env in DEAR else env for env in presets.GAMES]
KINDS = {"a small board": ("hex", 5), "a larger one": ("hex", 8), "a tower": ("animal_shogi", None)}


@pytest.mark.parametrize("env", PRESETS)
def test_a_preset_is_traced_at_its_full_size(env):
    """Finds sizes that contradict, without compiling; a chunk returns the shapes that it takes."""
    config = replace(presets.preset(env, None), iterations_per_chunk=2)
    algorithm, mesh = make_algorithm(config), make_mesh(1)
    first = make_init(algorithm, 0, mesh).eval_shape()
    state, metrics = jax.eval_shape(make_chunk(algorithm, mesh), first, abstract_progress(2))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), first
    )
    assert metrics["train/loss"].shape == (2,)


ACCELERATORS = {"t4": ("small GPU", 9), "h100": ("large GPU", 11), "v5e": ("TPU", 9)}
"""Target of the preview: (kind of device, board size of Hex)."""


@pytest.mark.parametrize("name", ACCELERATORS)
def test_hex_on_an_accelerator_prints_the_board_size_and_settings_for_its_kind(name, capsys):
    kind, board_size = ACCELERATORS[name]
    with made_for(TARGETS[name]):
        assert device_kind() == kind
        config = presets.preset("hex", None)
    size, settings = capsys.readouterr().out.splitlines()
    assert config.board_size == board_size and f"board size: {board_size}x{board_size}" in size
    assert settings.startswith(f"settings: for a {kind}: {config.self_play.num_envs:,} games")


@pytest.mark.parametrize("kind", presets.TIMES)
@pytest.mark.parametrize(("env", "board_size"), KINDS.values(), ids=KINDS)
def test_a_device_changes_only_sizes_and_search_and_never_the_replay_ratio(env, board_size, kind):
    config = presets.preset(env, board_size)
    found, _ = presets.suited(config, kind)
    times = presets.TIMES[kind].get(config.network.kind, 1)
    assert (found.self_play.num_envs, found.optimiser.batch_size) == (
        times * config.self_play.num_envs,
        times * config.optimiser.batch_size,
    )
    assert found.search.engine == ("own" if config.model == "rules" else "passes")
    changed = {name for name, value in flat(found).items() if value != flat(config)[name]}
    wider = {"network.width", "network.num_blocks"} & changed
    assert changed - wider <= {"self_play.num_envs", "optimiser.batch_size", "search.engine"}
    assert bool(wider) == (kind == "large GPU" and config.network.kind == "fully_convolutional")
    assert validate(found) == found


@pytest.mark.parametrize("env", ["backgammon", "leduc_holdem", "2048"])
def test_returns_of_random_play_are_within_what_the_presets_values_can_be(env):
    """A gammon counts twice, and a backgammon three times."""
    moves = random_play.play(make_environment(env), num_games=16, max_moves=512)
    assert 1 < np.abs(random_play.returns(moves)).max() <= presets.preset(env).network.support_range


@pytest.mark.slow
@pytest.mark.parametrize(("env", "board_size"), KINDS.values(), ids=KINDS)
def test_a_preset_plays_and_learns_for_two_iterations(env, board_size):
    """With few games and a narrow network: all else is the preset's own."""
    whole = presets.preset(env, board_size)
    length = whole.self_play.rollout_length
    config = replace(
        whole,
        network=replace(whole.network, width=16),
        self_play=replace(whole.self_play, num_envs=4),
        replay=replace(whole.replay, replay_length=length * math.ceil(whole.window_length / length), min_frames=0),
        optimiser=replace(whole.optimiser, batch_size=4, updates_per_iteration=1),
    )
    algorithm, mesh = make_algorithm(config), make_mesh(1)
    init = make_init(algorithm, 0, mesh)
    program = make_chunk(algorithm, mesh).lower(init.eval_shape(), abstract_progress(2)).compile(QUICKLY)
    state, metrics = program(init.lower().compile(QUICKLY)(), np.zeros(2, np.float32))  # type: ignore
    assert np.isfinite(jax.device_get(metrics["train/loss"])).all()
    assert int(state.replay.num_stored) == 2 * length
