"""Games that begin elsewhere: positions that the rules reach, none of them an end, as many as asked for."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import heads, learning, make_algorithm
from muzero_jax.config.validation import check_resumable, validate
from muzero_jax.games.environment import make_environment
from muzero_jax.learning import self_play, starts
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.run import program
from muzero_jax.types import SearchOutput
from tests.learning.test_self_play import a_point_a_move
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same, on_host
from tests.reference.windows import make_window

GAME = make_environment("tic_tac_toe")
NUM = 512


def random_search(params, key, position):
    action = uniform_legal_action(key, position.legal_action_mask)
    return SearchOutput(action, jax.nn.one_hot(action, 9), params * jnp.ones(len(action)))


def stones(states):
    """The number of stones on each board [...]: both planes of the observation together."""
    return np.asarray(states.observation).sum(axis=(-3, -2, -1))


def begun(kind, num_envs=NUM):
    return jax.jit(partial(self_play.init, GAME, num_envs=num_envs, starts=kind))(jax.random.key(0))


def drawn(kind, actor, seed=1):
    """NUM starts, and the number of moves made before each."""
    kept = actor.extras[starts.KEY].kept
    draw = jax.jit(partial(kind.draw, GAME, num_games=NUM))
    return jax.device_get(draw(kept=kept, key=jax.random.key(seed)))


# --- random moves -----------------------------------------------------------------------------------------------------


def test_random_moves_lead_to_live_positions_of_every_number_of_moves():
    kind = starts.random_moves(share=1.0, most=5)
    states, num_moves = drawn(kind, begun(kind))
    np.testing.assert_array_equal(stones(states), num_moves)
    assert not states.terminated.any()
    share = np.bincount(num_moves, minlength=6) / NUM  # a game that would end by the fifth move stays at four
    np.testing.assert_allclose(share[:4], 1 / 6, atol=0.06)
    assert share[5] > 0 and share[4:].sum() == pytest.approx(2 / 6, abs=0.07)
    assert len(np.unique(states.observation.reshape(NUM, -1), axis=0)) > 150


def test_the_share_of_games_that_begin_elsewhere_is_as_asked():
    kind = starts.random_moves(share=0.25, most=4)
    _, num_moves = drawn(kind, begun(kind))
    assert (num_moves > 0).mean() == pytest.approx(0.25 * 4 / 5, abs=0.06)


def test_a_game_that_would_end_begins_at_the_position_before():
    """Nine random moves always end a game of tic-tac-toe, or fill the board."""
    kind = starts.random_moves(share=1.0, most=9)
    states, num_moves = drawn(kind, begun(kind))
    assert not states.terminated.any() and num_moves.max() == 8


# --- the archive ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archived():
    """An archive of all games after five rollouts of three moves each, and what they were after each."""
    kind = starts.archive(share=0.5, slots=4, weigh=lambda *of: 1.0 + of[-1].observation.sum(axis=(1, 2, 3)))
    play = jax.jit(partial(self_play.rollout, environment=GAME, search=random_search, length=3, starts=kind))
    actor, seen = begun(kind), []
    for seed in range(5):
        actor, _ = play(0.0, actor, jax.random.key(seed))
        seen.append(jax.device_get((actor.env_state.observation, actor.num_moves)))
    return kind, actor, seen


def test_the_archive_has_the_last_positions_of_every_game(archived):
    _, actor, seen = archived
    kept = jax.device_get(actor.extras[starts.KEY].kept)
    for slot, rollout in enumerate((4, 1, 2, 3)):  # the fifth replaced the first
        observation, num_moves = seen[rollout]
        np.testing.assert_array_equal(kept.states.observation[:, slot], observation)
        np.testing.assert_array_equal(kept.num_moves[:, slot], num_moves)
        np.testing.assert_array_equal(kept.weight[:, slot], 1 + observation.sum(axis=(1, 2, 3)))
    assert (kept.count == 5).all() and not kept.states.terminated.any()


def test_positions_are_drawn_in_proportion_to_their_weight(archived):
    """Each of the archive's positions with its number of stones, which its weight exceeds by one."""
    kind, actor, _ = archived
    kept = jax.device_get(actor.extras[starts.KEY].kept)
    count = np.bincount(stones(kept.states).ravel(), minlength=10)
    wanted = count * (1 + np.arange(10))
    found = np.zeros(10)
    for seed in range(8):
        states, num_moves = drawn(kind, actor, seed)
        np.testing.assert_array_equal(stones(states), num_moves)
        found += np.bincount(num_moves, minlength=10)
    found[0] -= 8 * NUM / 2  # those that begin at the beginning
    np.testing.assert_allclose(found / (8 * NUM / 2), wanted / wanted.sum(), atol=0.04)


def test_an_empty_archive_gives_beginnings():
    kind = starts.archive(share=1.0, slots=4)
    states, num_moves = drawn(kind, begun(kind))
    assert not num_moves.any() and not stones(states).any()


def test_the_predicted_regret_is_the_weight_and_never_0():
    model = make_algorithm(replace(CONFIG, self_play=replace(CONFIG.self_play, starts="regret"))).model

    def predict(params, observation):
        found = model.initial_inference(params, observation)
        return found._replace(extras={"regret": jnp.array([[0.5], [0.0], [-1.0]])})

    weigh = partial(
        starts.predicted_regret, GAME, model._replace(initial_inference=predict), output="regret", least=0.125
    )
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 3))
    np.testing.assert_array_equal(jax.jit(weigh)(model.init(jax.random.key(0)), states), [0.5, 0.125, 0.125])


def test_the_regret_of_a_position_by_hand():
    """Returns of -1, 1, and unknown after a random move, against values 0.5, 0.5 and 0.2; the range is 2."""
    own = replace(CONFIG.targets, unroll_steps=2, td_steps=2, stop_at_exploration=True)
    config = replace(
        CONFIG,
        network=replace(CONFIG.network, support_range=2.0),
        self_play=replace(CONFIG.self_play, starts="regret"),
        targets=own,
    )
    window = make_window(
        [[0.0, 1, 0, 0, 0]],
        [[-1.0, 0, 1, 1, 1]],
        search_value=[[0.5, 0.5, 0.2, 0, 0]],
        explored=[[False, False, True, False, False]],
    )
    target = learning.build_targets(config)(window, jnp.float32(0)).extras["regret"]
    np.testing.assert_allclose(target, [[0.75, 0.25, np.nan]], rtol=1e-6)
    missed = heads.known_squares(jnp.full((1, 3, 1), 0.25), target[..., None])
    np.testing.assert_allclose(missed, [[0.25, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("model", ["learned", "rules"])
def test_regret_is_learned_with_either_model(model):
    config = replace(CONFIG, model=model, self_play=replace(CONFIG.self_play, starts="regret"))
    algorithm = make_algorithm(config)
    assert "regret" in [term.name for term in algorithm.terms]
    output = jax.eval_shape(
        algorithm.model.initial_inference,
        jax.eval_shape(algorithm.model.init, jax.random.key(0)),
        jnp.zeros((2, 3, 3, 2)),
    )
    assert output.extras["regret"].shape == (2, 1)


def test_a_run_keeps_its_archive_when_its_share_changes_but_cannot_gain_or_lose_one():
    def shared(share):
        return replace(CONFIG, self_play=replace(CONFIG.self_play, starts="archive", start_share=share))

    check_resumable(shared(0.25), shared(0.5))
    for now, then in ((CONFIG, shared(0.5)), (shared(0.5), CONFIG)):
        with pytest.raises(ValueError, match="starts"):
            check_resumable(now, then)
    check_resumable(replace(CONFIG, self_play=replace(CONFIG.self_play, start_share=0.1)), CONFIG)
    with pytest.raises(ValueError, match="start-share 1"):
        validate(shared(1.0))


# --- what a run counts ------------------------------------------------------------------------------------------------


def test_lengths_are_counted_of_games_that_began_at_the_beginning():
    """By the observations: an empty board begins a game, and any other position after an end does not."""
    kind = starts.random_moves(share=0.5, most=4)
    play = jax.jit(partial(self_play.rollout, environment=GAME, search=random_search, length=40, starts=kind))
    before = begun(kind, num_envs=16)
    after, trajectory = jax.device_get(play(0.0, before, jax.random.key(3)))
    lengths = []
    for game in range(16):
        start, is_whole = 0, True
        for frame in range(40):
            if frame == start:
                is_whole = not trajectory.observation[frame, game].any()
            if trajectory.is_last[frame, game]:
                lengths += [frame + 1 - start] * is_whole
                start = frame + 1
    found = self_play.statistics(trajectory, before, after)
    assert found["selfplay/whole_games"] == len(lengths) < found["selfplay/games"] == trajectory.is_last.sum()
    assert found["selfplay/finished_frames"] == sum(lengths)


def test_returns_are_counted_of_games_that_began_at_the_beginning():
    """Five moves of a point each, so that a game that began later would return less."""
    environment = a_point_a_move(5)
    kind = starts.random_moves(share=0.5, most=3)
    start = jax.jit(partial(self_play.init, environment, num_envs=16, starts=kind))(jax.random.key(0))
    play = jax.jit(partial(self_play.rollout, environment=environment, search=random_search, length=20, starts=kind))
    after, frames = play(0.0, start, jax.random.key(1))
    found = self_play.statistics(frames, start, after)
    assert found["selfplay/finished_returns"] == 5 * found["selfplay/whole_games"] == found["selfplay/finished_frames"]
    assert 0 < found["selfplay/whole_games"] < found["selfplay/games"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "archive", "regret"])
def test_a_run_with_such_starts_learns_on_two_devices_and_resumes_bit_for_bit(kind, tmp_path):
    config = replace(CONFIG, self_play=replace(CONFIG.self_play, starts=kind, start_moves=3, start_slots=2))
    algorithm = make_algorithm(config)
    init = program.make_init(algorithm, config.seed, tiny_run.mesh())
    chunk = program.make_chunk(algorithm, tiny_run.mesh())
    state = init()
    for _ in range(3):
        state, metrics = chunk(state, tiny_run.PROGRESS)
    assert (np.asarray(metrics["selfplay/whole_games"]) < np.asarray(metrics["selfplay/games"])).any()
    if kind == "regret":
        assert (np.asarray(metrics["train/regret_loss"]) > 0).all()
    with tiny_run.Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(6, state)
    _, restored = tiny_run.restore_latest(tmp_path, init.eval_shape())
    assert_same(on_host(restored), on_host(state))
    assert_same(on_host(chunk(restored, tiny_run.PROGRESS)[0]), on_host(chunk(state, tiny_run.PROGRESS)[0]))
