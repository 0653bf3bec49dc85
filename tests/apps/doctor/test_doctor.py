"""The doctor: what it measures by hand-worked numbers, and that it names faults that are planted in a run."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from muzero_jax import presets
from muzero_jax.apps.doctor import doctor, games, learning, records
from muzero_jax.apps.doctor.findings import SIGNS, find
from muzero_jax.run.metrics import read_records
from muzero_jax.types import Targets, Transition
from tests.reference import tiny_run

SOUND = {  # of a run of Hex 5x5
    "updates": 2268.0,
    "samples_per_frame": 1.4,
    "usual_samples_per_frame": 1.5,
    "learning_rate": 2e-3,
    "usual_learning_rate": 2e-3,
    "learning_rate_left": 0.1,
    "usual_learning_rate_left": 0.1,
    "has_ended": 1.0,
    "clipped_share": 0.02,
    "jump_share": 0.0,
    "value_loss_varies": 0.33,
    "policy_loss_varies": 0.48,
    "evaluation_games": 128.0,
    "untrained_weights": 0.0,
    "wrong_observations": 0.0,
    "wrong_legal_moves": 0.0,
    "wrong_rewards": 0.0,
    "wrong_discounts": 0.0,
    "illegal_moves": 0.0,
    "random_share": 0.1,
    "follows_search": 1.0,
    "games": 244.0,
    "cut_off_share": 0.0,
    "rewarded_games": 1.0,
    "commonest_opening": 0.2,
    "first_player_wins": 0.49,
    "update_to_weight": 0.003,
    "value_spread": 0.68,
    "target_spread": 1.0,
    "target_error": 0.0,
    "flipped_target_error": 2.0,
    "value_agrees": 0.73,
    "value_agrees_within": 0.15,
    "policy_target_distance": 0.0,
    "policy_target_of_next": 0.89,
    "policy_target_illegal": 0.0,
    "policies_learned": 1.0,
    "prior_entropy": 0.36,
    "target_entropy": 0.21,
    "reward_target_error": 0.0,
    "reward_error": 0.15,
    "imagined_agrees": 1.0,
    "stale_value": 0.01,
    "search_beats_head": 0.59,
}
SICK = [  # what changes, and a word of what must be found
    ({"wrong_rewards": 0.1}, "rewards"),
    ({"wrong_observations": 0.1}, "observations"),
    ({"illegal_moves": 0.1}, "illegal"),
    ({"follows_search": 0.0}, "random"),
    ({"random_share": 0.9}, "random"),
    ({"target_error": 2.0, "flipped_target_error": 0.0}, "wrong sign"),
    ({"reward_target_error": 1.0}, "reward targets"),
    ({"policy_target_distance": 0.9, "policy_target_of_next": 0.0}, "another position"),
    ({"policy_target_distance": 0.7}, "not the search's"),
    ({"policies_learned": 0.0}, "no policy"),
    ({"untrained_weights": 2.0}, "not trained"),
    ({"value_spread": 0.0}, "value head"),
    ({"stale_value": 0.9}, "Reanalyze"),
    ({"learning_rate": 2e-2}, "learning rate is too high"),
    ({"update_to_weight": 0.03}, "learning rate is too high"),
    ({"samples_per_frame": 0.15}, "too rarely"),
    ({"samples_per_frame": 15.0}, "too often"),
    ({"value_agrees": -0.6}, "opposite"),
    ({"prior_entropy": 1.0}, "learns no policy"),
    ({"imagined_agrees": 0.1}, "what a move does"),
    ({"reward_error": 1.0}, "foresee rewards"),
    ({"rewarded_games": 0.0}, "hardly ever"),
    ({"search_beats_head": 0.2}, "improve"),
    ({"commonest_opening": 1.0}, "alike"),
    ({"cut_off_share": 0.9}, "time limit"),
    ({"first_player_wins": 1.0, "value_agrees": 0.2}, "one side"),
    ({"clipped_share": 0.9}, "unstable"),
    ({"jump_share": 0.5}, "unstable"),
    ({"learning_rate_left": 1.0}, "never fell"),
    ({"value_loss_varies": 0.0}, "does not move"),
    ({"updates": 20.0}, "hardly learned"),
    ({"evaluation_games": 8.0}, "too short"),
]


def test_a_sound_run_has_no_sign_and_a_number_that_is_missing_is_none():
    assert find(SOUND) == []
    assert find({}) == []


@pytest.mark.parametrize(("changes", "word"), SICK)
def test_each_sign_is_found_alone(changes, word):
    (found,) = find(SOUND | changes, ["head.kernel"])
    assert word in found.finding
    assert "nan" not in found.evidence


def test_every_sign_has_an_example():
    seen = {finding.finding for changes, _ in SICK for finding in find(SOUND | changes)}
    assert seen == {sign.finding for sign in SIGNS}


def test_certain_findings_come_first():
    found = find(SOUND | {"evaluation_games": 8.0, "reward_error": 1.0, "illegal_moves": 0.5})
    assert [each.surety for each in found] == ["certain", "likely", "possible"]


def window(**leaves) -> Transition:
    """Windows of a game with two actions, from their rewards, discounts and ends [N, L]."""
    reward, discount, is_last = (np.array(leaves[name]) for name in ("reward", "discount", "is_last"))
    rest = {
        "observation": np.zeros((*reward.shape, 1)),
        "legal_action_mask": np.ones((*reward.shape, 2), bool),
        "action": np.zeros(reward.shape, np.int32),
        "search_policy": np.full((*reward.shape, 2), 0.5),
        "search_value": np.zeros(reward.shape),
        "explored": np.zeros(reward.shape, bool),
    }
    return Transition(**rest | {"reward": reward, "discount": discount, "is_last": is_last})


def test_outcomes_are_returns_for_who_moves_first_and_known_up_to_a_stop():
    w = window(
        reward=[[0.0, 0, 1, 9], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]],
        discount=[[-1.0, -1, 0, 0], [-1, 0, -1, -1], [-1, -1, -1, -1], [-1, -1, 0, -1]],
        is_last=[[False, False, True, True], [False, True, False, False], [False] * 4, [False, False, True, False]],
    )
    stops = np.zeros((4, 4), bool)
    stops[3, 1] = True
    outcome, moves_left, is_known = learning.outcomes(w, stops)
    assert is_known.tolist() == [True, True, False, False]
    assert outcome[is_known].tolist() == [1.0, -1.0]  # the winner made the last move
    assert moves_left[is_known].tolist() == [3, 2]


def test_target_errors_are_shares_of_the_result_apart_for_odd_and_even():
    count = learning.ENOUGH
    w = window(
        reward=[[0.0, 1.0]] * count + [[1.0, 0.0]] * count,
        discount=[[-1.0, 0.0]] * count + [[0.0, 0.0]] * count,
        is_last=[[False, True]] * count + [[True, False]] * count,
    )
    value = np.concatenate([np.full(count, 1.0), np.full(count, 1.0)])  # right at the end, wrong a move before
    found = learning.of_values(looked(w, value))
    assert found["target_error"] == 2.0  # of the worse of both sides
    assert found["flipped_target_error"] == 0.0


def looked(w: Transition, value: np.ndarray) -> learning.Looked:
    """A batch of windows whose value targets at the root are `value`; its network knows nothing."""
    nothing = np.zeros((len(value), 1))
    one = nothing[:, 0]
    policy = w.search_policy[:, :1]
    targets = Targets(nothing[:, :0], value[:, None], policy, *[nothing + 1] * 3, nothing[:, :0])
    return learning.Looked(
        window=w,
        policy=policy,
        targets=targets,
        found_value=one,
        fresh_value=one,
        seen_value=nothing,
        seen_policy=policy,
        imagined_value=nothing,
        imagined_reward=nothing,
        stops=np.zeros(w.action.shape, bool),
        step_size=one[0],
    )


def test_weights_that_only_decayed_are_untrained():
    key = jax.random.key(0)
    first = {"a": jax.random.normal(key, (3, 4)), "b": jnp.zeros(3), "c": jnp.ones(2), "d": jnp.ones((2, 2))}
    last = {"a": 0.3 * first["a"], "b": jnp.zeros(3), "c": jnp.array([1.0, 1.1]), "d": first["d"].at[0, 0].set(2.0)}
    assert learning.untrained(last, first) == ["a", "b"]


def test_whole_games_and_their_results():
    played = jax.tree.map(
        np.transpose,
        window(
            reward=[[0.0, 1, 0, 0], [1, 0, 0, 1]],
            discount=[[-1.0, 0, -1, -1], [0, -1, -1, 0]],
            is_last=[[False, True, False, False], [True, False, False, True]],
        )._replace(observation=None, legal_action_mask=None, search_policy=None),
    )
    found = games.whole_games(played.is_last)
    assert found == [(0, 1, 0), (0, 0, 1), (1, 3, 1)]
    assert [games.result_for_the_first(played, *game) for game in found] == [-1.0, 1.0, 1.0]


def test_a_stored_reward_that_the_rules_do_not_give_is_seen():
    environment = tiny_run.algorithm().environment
    states = jax.vmap(environment.init)(jax.random.split(jax.random.key(0), 2))
    actions = np.array([[0, 4], [1, 0], [4, 1], [2, 8], [8, 2]], np.int32)  # the first wins in the fifth move
    moves = []
    at = states
    for action in actions:
        moved = jax.vmap(environment.move)(at, action)
        seen = jax.vmap(environment.observe)(at), jax.vmap(environment.legal)(at)
        moves.append((*seen, moved.reward, moved.discount, moved.is_last))
        at = moved.state
    observation, legal, reward, discount, is_last = (np.stack(leaf) for leaf in zip(*moves, strict=True))
    stored = window(reward=reward, discount=discount, is_last=is_last)
    stored = stored._replace(observation=observation, legal_action_mask=legal, action=actions)
    assert set(games.compare_with_rules(environment, states, stored).values()) == {0.0}
    late = stored._replace(reward=np.roll(reward, 1, axis=0))
    found = games.compare_with_rules(environment, states, late)
    assert found["wrong_rewards"] == pytest.approx(2 / 10)
    assert found["wrong_discounts"] == 0


def test_records_are_read_beside_the_preset():
    usual = presets.preset("tic_tac_toe")
    config = replace(usual, optimiser=replace(usual.optimiser, max_gradient_norm=1.0))
    lines = [
        {"train/loss": loss, "train/gradient_norm": norm, "train/learning_rate": rate}
        | {"train/value_loss": 1.0, "total/updates": updates, "total/frames": 100.0 * updates}
        for loss, norm, rate, updates in ((1.0, 0.5, 1e-3, 1), (2.0, 2.0, 4e-3, 2), (1.0, 0.5, 1e-3, 4))
    ]
    found = records.measure(config, [{"eval/random": 0.5}, *lines], usual)
    assert found["jump_share"] == 0.5
    assert found["clipped_share"] == 0.5  # of the later half, here two records
    assert found["learning_rate"] == 4e-3
    assert found["learning_rate_left"] == 0.25
    assert found["samples_per_frame"] == config.optimiser.batch_size / 100
    assert records.measure(config, [], usual) == {}


def test_a_run_became_better_if_any_of_its_scores_did():
    def of(*scores):
        return [
            {"iteration": number, "eval/random": by_chance, "eval/mcts:100": mcts}
            for number, (by_chance, mcts) in enumerate(scores)
        ]

    assert records.have_risen(of((0.4, 0.0), (0.55, 0.05)))
    assert records.have_risen(of((0.95, 0.1), (0.95, 0.1)))
    assert not records.have_risen(of((0.5, 0.1), (0.55, 0.0)))
    assert records.have_risen([]) and records.have_risen(of((0.3, 0.0)))  # one evaluation shows no change


def test_the_doctor_examines_a_run_of_a_second(tmp_path):
    config = replace(tiny_run.CONFIG, minutes=None, frames=256)
    muzero_jax.train(config, tmp_path / "run", say=lambda line: None)
    found = muzero_jax.doctor(tmp_path / "run")
    assert [each for each in found.findings if each.surety == "certain"] == []
    assert "it has hardly learned yet" in [each.finding for each in found.findings]
    assert json.loads(json.dumps(found.result(), allow_nan=False))["iteration"] == found.iteration
    assert {found.numbers[f"wrong_{what}"] for what in ("rewards", "discounts", "observations", "legal_moves")} == {0}
    assert found.iteration == read_records(tmp_path / "run")[-1]["iteration"]
    assert found.result()["numbers"] == found.numbers
    assert str(tmp_path / "run") in found.text()


def test_a_run_without_a_checkpoint_is_examined_with_untrained_weights(saved_run, monkeypatch):
    monkeypatch.setattr(doctor, "checkpoint_steps", lambda folder: [])
    monkeypatch.setattr(doctor, "match_with_head", lambda *_: 0.5)
    said = []
    found = doctor.examine(saved_run, say=said.append)
    assert found.iteration == 0 and "no checkpoint" in " ".join(said)
    assert {found.numbers[f"wrong_{what}"] for what in ("rewards", "discounts")} == {0}
