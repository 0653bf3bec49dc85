"""A rollout stores its games as they were played, which rules in plain Python check here move by move."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import pig
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import environment_from
from muzero_jax.learning import self_play
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import ActorState, Environment, SearchOutput, Step
from tests.reference import tic_tac_toe as rules

TIC_TAC_TOE = make_environment("tic_tac_toe")
NUM_ENVS, LENGTH = 6, 24


def random_search(params, key, position):
    """Any legal move; the policy and the value say which call it was, to be found again in the trajectory."""
    action = uniform_legal_action(key, position.legal_action_mask)
    policy = jax.nn.one_hot(action, position.legal_action_mask.shape[-1])
    return SearchOutput(action, policy, params * jnp.ones(len(action)))


@pytest.fixture(scope="module")
def rollout():
    """A compiled rollout of 24 moves, without exploration: every game ends at least twice."""
    return jax.jit(partial(self_play.rollout, environment=TIC_TAC_TOE, search=random_search, length=LENGTH))


def begun(environment, num_envs=NUM_ENVS):
    """The beginning of several games."""
    return jax.jit(partial(self_play.init, environment, num_envs=num_envs))(jax.random.key(0))


@pytest.fixture(scope="module")
def start():
    return begun(TIC_TAC_TOE)


@pytest.fixture(scope="module")
def trajectory(rollout, start):
    return jax.device_get(rollout(0.25, start, jax.random.key(1))[1])


def replay(trajectory, game, board=rules.EMPTY):
    """Yields (frame, the board before its move, reward, whether it ended the game) by the rules."""
    for frame in range(LENGTH):
        before = board
        board, reward, over = rules.play(before, int(trajectory.action[frame, game]))
        yield frame, before, reward, over
        if over:
            board = rules.EMPTY


def test_leaves_are_time_major_and_keep_the_games_types(trajectory):
    assert trajectory.in_full is trajectory.state is None  # only where an option asks for them
    leaves = {name: leaf for name, leaf in trajectory._asdict().items() if leaf is not None}
    shapes = {name: (leaf.shape[2:], leaf.dtype) for name, leaf in leaves.items()}
    assert shapes == {
        "observation": ((3, 3, 2), bool),
        "legal_action_mask": ((9,), bool),
        "action": ((), np.int32),
        "reward": ((), np.float32),
        "discount": ((), np.float32),
        "is_last": ((), bool),
        "search_policy": ((9,), np.float32),
        "search_value": ((), np.float32),
        "explored": ((), bool),
    }
    assert {leaf.shape[:2] for leaf in leaves.values()} == {(LENGTH, NUM_ENVS)}


@pytest.mark.parametrize("game", range(NUM_ENVS))
def test_a_frame_has_the_observation_before_its_move_and_the_reward_before_the_reset(trajectory, game):
    """Also for the first move after a reset, when the board is empty."""
    for frame, board, reward, over in replay(trajectory, game):
        assert rules.board_of(trajectory.observation[frame, game]) == board
        assert list(np.nonzero(trajectory.legal_action_mask[frame, game])[0]) == rules.legal_actions(board)
        assert trajectory.reward[frame, game] == reward
        assert trajectory.discount[frame, game] == (0 if over else -1)
        assert trajectory.is_last[frame, game] == over


def test_every_game_ended_more_than_once_so_that_resets_were_tested(trajectory):
    assert ((trajectory.discount == 0).sum(axis=0) >= 2).all()
    assert (trajectory.reward > 0).any()


def test_the_first_player_is_random_in_every_new_game(start):
    """The state is pgx's, before each move."""
    options = {"environment": TIC_TAC_TOE, "search": random_search, "length": LENGTH, "keeps_state": True}
    state = jax.jit(partial(self_play.rollout, **options))(0.25, start, jax.random.key(1))[1].state
    begins, players = np.asarray(state._step_count == 0), np.asarray(state.current_player)
    drawn = [set(players[begins[:, game], game]) for game in range(NUM_ENVS)]
    assert drawn.count({0, 1}) > NUM_ENVS / 2 and set(players[0]) == {0, 1}


def test_search_policy_and_value_are_stored_with_the_position_that_was_searched(trajectory):
    np.testing.assert_array_equal(trajectory.search_policy.argmax(-1), trajectory.action)
    np.testing.assert_array_equal(trajectory.search_value, 0.25)
    assert not trajectory.explored.any()


def test_games_of_one_batch_differ_and_other_keys_play_other_games(rollout, start, trajectory):
    assert len(np.unique(trajectory.action.T, axis=0)) == NUM_ENVS
    other = jax.device_get(rollout(0.25, start, jax.random.key(2))[1])
    assert (other.action != trajectory.action).any(axis=0).all()


def test_the_next_rollout_continues_the_games_where_they_stand(rollout, start, trajectory):
    actor, _ = rollout(0.25, start, jax.random.key(1))
    following = jax.device_get(rollout(0.25, actor, jax.random.key(2))[1])
    for game in range(NUM_ENVS):
        *_, (_, board, _, over) = replay(trajectory, game)
        after = rules.EMPTY if over else rules.play(board, int(trajectory.action[-1, game]))[0]
        assert rules.board_of(following.observation[0, game]) == after


def test_no_key_of_a_rollout_is_used_twice():
    """As JAX itself checks while it traces, in a game whose every beginning and every move draws a number."""

    def move(state, action, key):
        return Step(jax.random.uniform(key), jnp.float32(0), jnp.float32(-1), jnp.bool_(False))

    def search_twice(params, key, position):
        return random_search(random_search(params, key, position).value, key, position)

    environment = TIC_TAC_TOE._replace(
        init=jax.random.uniform,
        move=move,
        observe=lambda state: state,
        legal=lambda state: jnp.ones(9, bool),
    )
    choose = partial(self_play.choose, exploration=0.5)
    play = partial(self_play.rollout, environment=environment, length=2, choose=choose)
    inputs = jnp.float32(0.25), begun(environment), jax.random.key(1)
    with jax.debug_key_reuse(True):
        jax.eval_shape(partial(play, search=random_search), *inputs)
        with pytest.raises(jax.errors.KeyReuseError):
            jax.eval_shape(partial(play, search=search_twice), *inputs)


# --- exploration ------------------------------------------------------------------------------------------------------


def explore(seed, mask, probability):
    """The moves and which of them were random, after a search that chose 2 in every game."""

    @jax.jit
    def choose(key, mask):
        found = SearchOutput(jnp.full(4096, 2, jnp.int32), jnp.zeros((4096, 6)), jnp.zeros(4096))
        return self_play.choose(key, found, mask, jnp.zeros(4096, jnp.int32), exploration=probability)

    return jax.device_get(choose(jax.random.key(seed), mask))


MASK = np.tile([True, False, True, False, True, False], (4096, 1))


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_exploration_plays_only_legal_actions_and_at_the_given_rate(probability):
    action, explored = explore(0, MASK, probability)
    assert action.dtype == jnp.int32 and explored.dtype == bool
    assert set(np.unique(action)) <= {0, 2, 4}
    assert abs(float(explored.mean()) - probability) < 0.03
    np.testing.assert_array_equal(action[~explored], 2)


def test_explored_actions_are_uniform_over_the_legal_ones():
    action, explored = explore(1, MASK, 0.25)
    shares = np.bincount(action[explored], minlength=6) / explored.sum()
    np.testing.assert_allclose(shares, [1 / 3, 0, 1 / 3, 0, 1 / 3, 0], atol=0.06)


# --- statistics -------------------------------------------------------------------------------------------------------


def statistics(trajectory):
    before = self_play.ActorState(None, np.zeros(NUM_ENVS, np.int32))
    after = before._replace(num_moves=np.int32(moves_made(before.num_moves, trajectory.is_last)))
    return jax.jit(self_play.statistics)(trajectory, before, after)


def test_statistics_count_games_and_decisive_games_by_the_rules(trajectory):
    ends = [(reward, over) for game in range(NUM_ENVS) for _, _, reward, over in replay(trajectory, game)]
    counted = statistics(trajectory)
    assert counted["selfplay/games"] == sum(over for _, over in ends)
    assert counted["selfplay/decisive_games"] == sum(over and reward != 0 for reward, over in ends)
    assert counted["selfplay/frames"] == LENGTH * NUM_ENVS


def test_finished_frames_are_the_lengths_of_the_games_that_ended(trajectory):
    """All games began with the rollout here, so the lengths of those that ended can be counted one by one."""
    lengths = []
    for game in range(NUM_ENVS):
        ends = np.flatnonzero(np.asarray(trajectory.is_last)[:, game])
        lengths += np.diff(ends, prepend=-1).tolist()
    assert statistics(trajectory)["selfplay/finished_frames"] == sum(lengths)


def moves_made(before, is_last):
    """Moves made in each game that is in progress after a rollout, from those `before` it, in a plain loop."""
    counts = [int(count) for count in before]
    for frame in np.asarray(is_last):
        counts = [0 if over else count + 1 for count, over in zip(counts, frame, strict=True)]
    return counts


def test_a_rollout_counts_the_moves_of_games_in_progress(rollout, start, trajectory):
    once, _ = rollout(0.25, start, jax.random.key(1))
    twice, more = rollout(0.25, once, jax.random.key(2))
    assert once.num_moves.tolist() == moves_made(start.num_moves, trajectory.is_last)
    assert twice.num_moves.tolist() == moves_made(once.num_moves, more.is_last)
    assert 0 < max(once.num_moves) < 9


def a_point_a_move(num_moves, *, last_discount=0.0):
    """A game for one that lasts so many moves, each of which earns a point; 1 as its last discount: a time limit."""

    def move(state, action, key):
        is_last = state == num_moves - 1
        return Step(state + 1, jnp.float32(1), jnp.where(is_last, last_discount, 1.0), is_last)

    return Environment(
        name="points",
        init=lambda key: jnp.int32(0),
        move=move,
        observe=lambda state: state[None],
        legal=lambda state: jnp.ones(2, bool),
        num_actions=2,
        observation_shape=(1,),
        num_players=1,
        discount=1.0,
    )


@pytest.mark.parametrize("last_discount", [0.0, 1.0])
def test_rules_and_time_limits_end_an_episodes_return_and_length(last_discount):
    """Twelve moves of two games of five moves: four end, and two are in their third move."""
    environment = a_point_a_move(5, last_discount=last_discount)
    start = begun(environment, 2)
    play = jax.jit(partial(self_play.rollout, environment=environment, search=random_search, length=12))
    after, frames = play(0.0, start, jax.random.key(1))
    assert after.return_so_far.tolist() == after.num_moves.tolist() == after.env_state.tolist() == [2, 2]
    found = self_play.statistics(frames, start, after)
    assert (found["selfplay/games"], found["selfplay/finished_returns"], found["selfplay/finished_frames"]) == (
        4,
        20,
        20,
    )


def test_a_return_counts_every_move_of_a_game_however_long_it_is():
    """A point a move: game 0 is in its 239th move of 240, game 1 begins; of four rollouts of 60 moves the first ends
    game 0 and the last ends game 1.
    """
    environment = a_point_a_move(240)
    start = begun(environment, 2)
    actor = ActorState(jnp.array([238, 0]), jnp.array([238, 0]), jnp.array([238.0, 0.0]))
    assert jax.tree.map(jnp.shape, actor) == jax.tree.map(jnp.shape, start)
    play = jax.jit(partial(self_play.rollout, environment=environment, search=random_search, length=60))
    games, finished = [], []
    for index in range(4):
        after, frames = play(0.0, actor, jax.random.key(index))
        counted = self_play.statistics(frames, actor, after)
        games.append(counted["selfplay/games"])
        finished.append(counted["selfplay/finished_returns"])
        actor = after
    assert (games, finished) == ([1, 0, 0, 1], [240, 0, 0, 240])
    assert actor.return_so_far.tolist() == [238, 0]


def test_fresh_games_made_only_where_one_ended_are_the_same(trajectory, start):
    environment = TIC_TAC_TOE._replace(costly_start=True)
    play = jax.jit(partial(self_play.rollout, environment=environment, search=random_search, length=LENGTH))
    jax.tree.map(np.testing.assert_array_equal, play(0.25, start, jax.random.key(1))[1], trajectory)
    numbers = TIC_TAC_TOE._replace(init=lambda key: jax.random.bits(key))
    keys = jax.random.split(jax.random.key(2), 40)
    fresh = jax.vmap(numbers.init)(keys)
    for ended in (np.zeros(40, bool), np.arange(40) == 39, np.arange(40) % 3 > 0, np.ones(40, bool)):
        moved = Step(fresh + 1, jnp.zeros(40), jnp.zeros(40), jnp.asarray(ended))
        games, num_moves = jax.jit(self_play.begin_few(numbers))(keys, moved)
        np.testing.assert_array_equal(games[ended], fresh[ended])
        assert not num_moves.any()


def test_two_player_games_have_no_return(start, trajectory):
    assert start.return_so_far is None and "selfplay/finished_returns" not in statistics(trajectory)


def test_after_the_sampled_moves_of_a_game_the_likeliest_action_is_played(start):
    """The search draws its action at random, and likes the last legal one best."""

    def search(params, key, position):
        found, legal = random_search(params, key, position), position.legal_action_mask
        return found._replace(policy=legal * (1.0 + jnp.arange(9)))

    play = jax.jit(
        partial(
            self_play.rollout,
            environment=TIC_TAC_TOE,
            search=search,
            length=LENGTH,
            choose=partial(self_play.choose, exploration=0.0, sampled_moves=2),
        )
    )
    played = jax.device_get(play(0.25, start, jax.random.key(1))[1])
    likeliest = played.search_policy.argmax(-1)
    for game in range(NUM_ENVS):
        for frame, board, *_ in replay(played, game):
            if np.count_nonzero(board) >= 2:
                assert played.action[frame, game] == likeliest[frame, game]
    assert (played.action != likeliest).any()


def test_a_frame_has_an_outcome_of_chance_only_if_the_game_lists_outcomes(trajectory):
    """Pig: a die for every roll, nothing for a hold; a game without chance has no leaf."""
    environment = environment_from(pig.make(), "pig")
    start = begun(environment)
    play = jax.jit(partial(self_play.rollout, environment=environment, search=random_search, length=LENGTH))
    frames = jax.device_get(play(0.25, start, jax.random.key(1))[1])
    rolled = frames.action == pig.ROLL
    assert set(frames.outcome[rolled].tolist()) == {0, 1, 2} and (frames.outcome[~rolled] == -1).all()
    assert (frames.discount[rolled & (frames.outcome == 0)] == -1).all()
    assert trajectory.outcome is None
