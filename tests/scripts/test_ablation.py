"""The plain pipeline of the ablation searches as ours does, and remembers what it played."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax import building
from muzero_jax.algorithm import World
from muzero_jax.arithmetic import precision
from muzero_jax.commands.command_line import report_errors
from muzero_jax.storage.config_groups import NetworkConfig
from scripts import ablation
from scripts.benchmarks import ours, plain_pipeline, workloads
from scripts.measuring import timing
from scripts.measuring.timing import Variant
from tests.scripts.conftest import noise_params

NUM_SIMULATIONS = 24
NETWORK = NetworkConfig(kind="mlp", width=8, num_blocks=0, num_bins=3)
CONFIG = workloads.workload("tic_tac_toe", NETWORK, num_envs=6, num_simulations=NUM_SIMULATIONS, rollout_length=3)
CONFIG = replace(CONFIG, search=replace(CONFIG.search, policy="puct"))


@pytest.fixture(scope="module")
def parts():
    return workloads.parts_of(CONFIG)


@pytest.fixture(scope="module")
def params(parts):
    return noise_params(parts.model)


@pytest.fixture(scope="module")
def game(params):
    """A plain game that has made three moves, without noise at the root."""
    quiet = replace(CONFIG, search=replace(CONFIG.search, dirichlet_fraction=0.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "noisy_params", lambda model: params)
        game = plain_pipeline.PlainGame(quiet)
    for _ in range(3):
        game.move()
    return game


def test_the_python_tree_is_our_puct_tree_visit_for_visit(parts, params, game):
    actor, _ = workloads.random_play(parts.environment, jax.random.key(1), num_envs=6, length=3)
    observation, legal = actor.env_state.observation, actor.env_state.legal_action_mask
    search = building.make_search(CONFIG, World(parts.environment, parts.model), noise=False)
    found = jax.jit(search)(params, jax.random.key(0), parts.environment.roots(actor.env_state))
    for i in range(6):
        root = game.search(np.asarray(observation[i], np.float32), np.asarray(legal[i]))
        np.testing.assert_array_equal(
            plain_pipeline.visit_counts(root), np.round(found.policy[i] * NUM_SIMULATIONS), err_msg=f"position {i}"
        )
        assert root.value == pytest.approx(float(found.value[i]), abs=1e-5)


def test_a_moves_value_is_taken_back_with_alternating_signs(game):
    """Two levels by hand: Q = r + d V with d = -1, and each node's value is the mean of its visits."""
    root = plain_pipeline.Node([0.5, 0.5], 0.2, 0.0, None)
    child, grandchild = (
        plain_pipeline.Node([0.5, 0.5], value, reward, None) for value, reward in ((0.4, 0.1), (0.6, 0.3))
    )

    class Scripted(plain_pipeline.PlainGame):
        def __init__(self):
            self.parts, self.config, self.leaves = game.parts, CONFIG, iter((child, grandchild))

        def select(self, node, actions):
            return 0

        def expand(self, node, action):
            node.children[action] = next(self.leaves)
            return node.children[action]

    scripted = Scripted()
    scripted.simulate(root, [0, 1])
    assert (root.value, root.visits) == (pytest.approx((0.2 + (0.1 - 0.4)) / 2), 2)
    scripted.simulate(root, [0, 1])
    below = 0.3 - 0.6
    assert child.value == pytest.approx((0.4 + below) / 2)
    assert root.value == pytest.approx((0.2 - 0.3 + (0.1 - below)) / 3)


def test_the_plain_game_remembers_every_move_as_legal_float32_frames(game):
    assert len(game.replay) == 3
    for frame in game.replay:
        assert frame["observation"].dtype == np.float32
        assert frame["legal_action_mask"][frame["action"]] == 1.0
        assert frame["search_policy"].sum() == pytest.approx(1.0)
        assert (frame["search_policy"][frame["legal_action_mask"] == 0] == 0).all()


def test_bytes_of_a_plain_frame_are_those_of_its_arrays_and_four_for_each_number():
    frame = {"observation": np.zeros((3, 3, 2), np.float32), "action": 4, "reward": 0.0}
    payload, objects = plain_pipeline.plain_bytes([frame, frame])
    assert payload == 3 * 3 * 2 * 4 + 4 + 4
    assert objects > payload


def test_a_frame_of_our_ring_is_bits_and_the_policy():
    """Tic-tac-toe: 18 cells and 9 legal actions in 3 and 2 bytes, 9 float32 of policy, 4 numbers, 2 bools."""
    assert plain_pipeline.ring_bytes(CONFIG) == 3 + 2 + 36 + 4 * 4 + 2


def test_each_step_is_told_against_the_one_before_and_against_the_first(monkeypatch, game):
    rates = {"plain": [1.0, 2.0], "search": [3.0, 6.0], "program": [30.0, 60.0]}
    monkeypatch.setattr(ablation, "rungs", lambda config: ({name: Variant(lambda: None, 1.0) for name in rates}, game))
    monkeypatch.setattr(timing, "rates", lambda variants, effort: rates)
    report = ablation.ladder(CONFIG)
    ratios = [(s["step"], s["to_step_before"]["median"], s["to_plain"]["median"]) for s in report["steps"]]
    assert ratios == [("plain", 1.0, 1.0), ("search", 3.0, 3.0), ("program", 10.0, 30.0)]
    table = ablation.tables(report | {"has_bfloat16": False, "devices": 2})
    assert "| program | 45 | 10.00x | **30.0x** |" in table and "no units" in table and "of the 2 devices" in table
    assert "No rung" not in ablation.tables(report | {"has_bfloat16": True, "devices": 1})


@pytest.mark.parametrize(
    ("available", "amx", "every"), [(2, True, "+ every device"), (4, True, "+ 3 of 4 devices"), (1, False, None)]
)
def test_each_rung_is_a_step_from_the_one_before(available, amx, every, quick_params, monkeypatch):
    def program(config, num_devices=None):
        return config.self_play.num_envs, num_devices, config.network.compute_dtype

    monkeypatch.setattr(ours, "host_driven_self_play", program)
    monkeypatch.setattr(ours, "self_play", program)
    monkeypatch.setattr(precision, "has_amx", lambda: amx)
    monkeypatch.setattr(jax, "device_count", lambda: available)
    ladder, game = ablation.rungs(CONFIG)
    plain = ladder.pop(ablation.PLAIN)
    plain.run()
    assert len(game.replay) == plain.work == 4
    count, dtype = {4: 3}.get(available, available), CONFIG.network.compute_dtype
    expected = {
        ablation.ONE_GAME: (1, None, dtype),
        ablation.MANY_GAMES: (6, None, dtype),
        ablation.FUSED: (6, 1, dtype),
    }
    expected |= {every: (6, count, dtype)} if every else {}
    expected |= {ablation.BFLOAT16: (6, count, "auto")} if amx else {}
    assert ladder == expected


@pytest.mark.parametrize("arguments", [["--games", "0"], ["--num-simulations", "-1"]])
def test_a_senseless_size_is_one_sentence_and_status_2(arguments, capsys, monkeypatch):
    monkeypatch.setattr(ablation.devices, "configure_devices", lambda: 2)
    assert report_errors(ablation.main, arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("units", [False, True])
def test_a_cpu_has_a_rung_for_bfloat16_if_it_has_units_for_it(monkeypatch, units):
    monkeypatch.setattr(precision, "has_amx", lambda: units)
    assert ablation.has_bfloat16() == units
