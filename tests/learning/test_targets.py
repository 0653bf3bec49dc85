"""Value, reward and policy targets: against loops, by hand, and by how they relate to each other."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.learning import targets
from muzero_jax.types import Targets
from tests.reference import targets as reference
from tests.reference.programs import alone, on_devices
from tests.reference.windows import make_window, random_window

pytestmark = pytest.mark.usefixtures("strict_rank_promotion")

K = 3
make_on_device = jax.jit(
    partial(targets.make, stop_at_exploration=True),
    static_argnames=("unroll_steps", "td_steps", "td_lambda", "stop_at_exploration", "search_value_weight"),
)


def make(window, **how):
    """`targets.make` of a window, on the host."""
    return jax.device_get(make_on_device(window, **how))


unroll_actions = jax.jit(targets.unroll_actions, static_argnames="unroll_steps")
monte_carlo = partial(make, unroll_steps=K, td_steps=8, td_lambda=1.0)


def pad(values, length, fill):
    return [list(values) + [fill] * (length - len(values))]


def one_game(reward, discount, **leaves):
    """One window that starts with these moves; what follows is another game, with a reward of 9 on every move."""
    length = K + 8 + 1
    fills = {"search_value": 5.0, "explored": False}
    leaves = {name: pad(values, length, fills[name]) for name, values in leaves.items()}
    return make_window(pad(reward, length, 9.0), pad(discount, length, -1.0), **leaves)


# --- against loops ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("td_lambda", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("td_steps", [1, 4])
def test_targets_equal_their_definitions_in_plain_loops(td_steps, td_lambda):
    window = random_window(td_steps, num_windows=40, length=K + td_steps + 1)
    found = make(window, unroll_steps=K, td_steps=td_steps, td_lambda=td_lambda)
    expected = reference.make(window, unroll_steps=K, td_steps=td_steps, td_lambda=td_lambda)
    for one, other in zip((found.reward, found.value, found.policy_mask), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.policy, window.search_policy[:, : K + 1])


def test_a_windows_targets_do_not_depend_on_the_other_windows():
    window, others = jax.device_get([random_window(seed, num_windows=40, length=K + 4 + 1) for seed in (1, 2)])
    mixed = jax.tree.map(lambda x, y: np.concatenate([y[:5], x[5:6], y[6:]]), window, others)
    both = [make(w, unroll_steps=K, td_steps=4, td_lambda=0.7) for w in (window, mixed)]
    for one, other in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_array_equal(one[5], other[5])


# --- signs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves_to_the_end", [1, 2, 3, 4, 5])
def test_value_target_alternates_backwards_from_the_winners_move_at_odd_and_even_starts(moves_to_the_end):
    """Whoever makes the last move wins. Where in the game a window starts must not matter (no parity)."""
    reward = [0.0] * (moves_to_the_end - 1) + [1.0]
    discount = [-1.0] * (moves_to_the_end - 1) + [0.0]
    value = monte_carlo(one_game(reward, discount)).value[0]
    expected = [(-1.0) ** (moves_to_the_end - 1 - k) if k < moves_to_the_end else 0.0 for k in range(K + 1)]
    np.testing.assert_array_equal(value, expected)


def test_value_target_flips_sign_only_where_the_mover_changes():
    """Frames 0 and 1 are the same player's, frame 2 the other's, who passes and moves again and loses 1 at frame 3."""
    value = monte_carlo(one_game([0, 0, 0, -1], [1, -1, 1, 0])).value[0]
    np.testing.assert_array_equal(value, [1, 1, -1, -1])


def test_value_target_is_the_movers_own_score_however_turns_pass():
    """Random zero-sum games in which either player may move next, scored per player without any sign."""
    generator = np.random.default_rng(3)
    for moves in (1, 4, 8):
        player = generator.integers(2, size=moves)
        for_first = generator.normal(size=moves)
        player_reward = np.stack([for_first, -for_first], axis=-1)
        discount = [0.9 if a == b else -0.9 for a, b in zip(player[:-1], player[1:], strict=True)] + [0.0]
        found = monte_carlo(one_game(player_reward[np.arange(moves), player], discount))
        expected = (reference.returns_by_player(player, player_reward, 0.9) + [0.0] * K)[: K + 1]
        np.testing.assert_allclose(found.value[0], expected, rtol=1e-4, atol=1e-5)


# --- relations between n, lambda and Monte-Carlo ----------------------------------------------------------------------


def test_lambda_1_over_the_whole_game_is_monte_carlo_and_ignores_search_values():
    returns = [2 + 0.5 * (-1 + 0.5 * 4), -1 + 0.5 * 4, 4, 0]
    window = one_game([2, -1, 4], [0.5, 0.5, 0], search_value=[7, 7, 7])
    np.testing.assert_allclose(monte_carlo(window).value[0], returns)


def test_one_step_targets_are_reward_plus_the_discounted_next_search_value():
    window = make_window([[1, 2, 3, 0, 0]], [[0.5, -0.5, 1, 1, 1]], search_value=[[9, 4, 6, -2, 8]])
    value = make(window, unroll_steps=K, td_steps=1, td_lambda=1.0).value[0]
    np.testing.assert_allclose(value, [1 + 0.5 * 4, 2 - 0.5 * 6, 3 - 2, 0 + 8])


def test_a_window_without_an_end_bootstraps_instead_of_pretending_that_the_game_ended():
    """If a game goes on beyond the window, the search value stands for the rest."""
    window = make_window([[0.0] * 8], [[1.0] * 8], search_value=[[0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4]])
    value = make(window, unroll_steps=K, td_steps=4, td_lambda=1.0).value[0]
    np.testing.assert_allclose(value, [0.1, 0.2, 0.3, 0.4])


def test_consistent_search_values_are_a_fixed_point_for_every_lambda():
    """If search values already are Monte-Carlo returns, every lambda gives them back, despite a random move."""
    window = one_game([0, 0.5, 0, 0.25], [-1, -1, 1, 0], explored=[False, True, False, False])
    window = window._replace(search_value=window.search_value.at[0, :4].set(jnp.array([-0.25, 0.25, 0.25, 0.25])))
    for td_lambda in (0.0, 0.4, 1.0):
        value = make(window, unroll_steps=K, td_steps=8, td_lambda=td_lambda).value[0]
        np.testing.assert_allclose(value, [-0.25, 0.25, 0.25, 0.25], rtol=1e-6)


def test_returns_are_cut_at_explored_moves():
    """The random move at frame 2 throws the game away: frames before it bootstrap from its search value, 0.8."""
    window = one_game([0, 0, 0, 1], [-1, -1, -1, 0], search_value=[0, 0, 0.8, 0], explored=[False, False, True, False])
    np.testing.assert_allclose(monte_carlo(window).value[0], [0.8, -0.8, 0.8, 1.0])
    through = make(window, unroll_steps=K, td_steps=8, td_lambda=1.0, stop_at_exploration=False)
    np.testing.assert_allclose(through.value[0], [-1.0, 1.0, -1.0, 1.0])  # and by it the game was lost


# --- ends -------------------------------------------------------------------------------------------------------------


def test_a_window_that_starts_on_the_last_move_keeps_its_reward_and_policy():
    found = monte_carlo(one_game([-1.0], [0.0]))
    np.testing.assert_array_equal(found.reward[0], [-1, 0, 0])
    np.testing.assert_array_equal(found.value[0], [-1, 0, 0, 0])
    np.testing.assert_array_equal(found.policy_mask[0], [1, 0, 0, 0])


# --- what belongs to which step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_reward_k_is_of_action_k_and_policy_and_value_k_are_of_position_k(start):
    """An episode of four moves with rewards 1, 10, 100 and 1000, action a and policy a at move a, from every start."""
    reward, discount = np.array([1.0, 10.0, 100.0, 1000.0, 7.0, 7.0]), np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    returns, policies = [1111.0, 1110.0, 1100.0, 1000.0], np.eye(6)
    length = 2 * (K + 1)
    frames = np.minimum(start + np.arange(length), 5)  # frames 4 and 5 are the next episode's
    window = make_window(
        reward[frames][None],
        discount[frames][None],
        num_actions=6,
        action=frames[None],
        search_policy=policies[frames][None],
        search_value=np.full((1, length), 5.0),
    )
    found = make(window, unroll_steps=K, td_steps=4, td_lambda=1.0)
    moves = 4 - start
    past = [0.0] * K
    np.testing.assert_array_equal(found.reward[0], [*reward[start:4], *past][:K])
    np.testing.assert_array_equal(found.value[0], [*returns[start:], *past][: K + 1])
    np.testing.assert_array_equal(found.policy[0, :moves], policies[start:4])
    np.testing.assert_array_equal(found.policy_mask[0], (np.arange(K + 1) < moves).astype(np.float32))
    actions = np.asarray(unroll_actions(window, jax.random.key(0), unroll_steps=K))[0]
    np.testing.assert_array_equal(actions[: min(moves, K)], np.arange(start, 4)[:K])


# --- the actions to unroll --------------------------------------------------------------------------------------------


def test_actions_are_those_played_up_to_the_end_and_uniform_past_it():
    num_windows, num_actions = 3000, 5
    shape = (num_windows, K + 2)
    window = make_window(np.zeros(shape), np.tile([-1.0, 0.0, 1.0, 1.0, 1.0], (num_windows, 1)), num_actions)
    window = window._replace(action=jnp.full(shape, 4, jnp.int32))
    actions = np.asarray(unroll_actions(window, jax.random.key(0), unroll_steps=K))
    assert actions.shape == (num_windows, K) and actions.dtype == np.int32
    np.testing.assert_array_equal(actions[:, :2], 4)
    counts = np.bincount(actions[:, 2], minlength=num_actions)
    assert len(counts) == num_actions
    np.testing.assert_allclose(counts, num_windows / num_actions, rtol=0.15)


# --- time limits ------------------------------------------------------------------------------------------------------


def cut(after, moves=6):
    """A window of a single-player game with reward 1 a move, cut off by a time limit after some moves; values 5."""
    window = one_game([1.0] * moves, [0.5] * moves, search_value=[5.0] * moves)
    return window._replace(is_last=window.is_last.at[0, after - 1].set(True))


def test_at_a_time_limit_the_return_bootstraps_from_the_last_position_that_was_searched():
    """Cut after three moves: G_2 = nu_2 = 5, G_1 = 1 + 5 / 2, G_0 = 1 + 3.5 / 2; an end by the rules has no 5."""
    found = monte_carlo(cut(after=3))
    np.testing.assert_allclose(found.value[0, :3], [2.75, 3.5, 5.0])
    ended = monte_carlo(one_game([1.0] * 3, [0.5, 0.5, 0.0], search_value=[5.0] * 3))
    np.testing.assert_allclose(ended.value[0, :3], [1.75, 1.5, 1.0])


def test_past_a_time_limit_everything_is_masked_and_past_an_end_only_the_policy():
    found = monte_carlo(cut(after=2))
    np.testing.assert_array_equal(found.mask[0], [1, 1, 0, 0])
    np.testing.assert_array_equal(found.policy_mask[0], [1, 1, 0, 0])
    ended = one_game([1.0] * 2, [0.5, 0.0])
    ended = ended._replace(is_last=ended.is_last.at[0, 2].set(True))  # the next game is cut, which is not this one's
    found = monte_carlo(ended)
    np.testing.assert_array_equal(found.mask[0], [1, 1, 1, 1])
    np.testing.assert_array_equal(found.policy_mask[0], [1, 1, 0, 0])


# --- what options change ----------------------------------------------------------------------------------------------


def test_the_value_target_is_a_mixture_of_the_return_and_the_searchs_own_value():
    """Return 1 and search value 0.2 of the first position: a quarter of the latter makes 0.8; past the end it is 0."""
    window = one_game([1.0], [0.0], search_value=[0.2])
    found = [monte_carlo(window, search_value_weight=weight).value[0] for weight in (0.0, 0.25, 1.0)]
    np.testing.assert_allclose(found, [[1, 0, 0, 0], [0.8, 0, 0, 0], [0.2, 0, 0, 0]], rtol=1e-6)


def test_policies_of_cheap_searches_are_not_learned_from_and_values_are():
    window = one_game([0.0, 0.0, 1.0], [-1.0, -1.0, 0.0])
    in_full = np.isin(np.arange(window.action.shape[1]), [1, 5])
    found = monte_carlo(window._replace(in_full=in_full[None]))
    np.testing.assert_array_equal(found.policy_mask, [[0, 1, 0, 0]])
    np.testing.assert_array_equal(found.alive, [[1, 1, 1, 0]])
    np.testing.assert_array_equal(found.value, monte_carlo(window).value)


@pytest.mark.parametrize("num_devices", [1, 2])
def test_policy_weights_of_full_searches_sum_to_the_number_of_live_frames(num_devices):
    """Four games, of which three go on: 1 of 4 and 2 of 3 searches were full, so these weigh 4 and 1.5."""
    full, alive = np.array([[1, 0], [0, 1], [0, 1], [0, 0]], np.float32), np.ones((4, 2), np.float32)
    alive[3, 1] = 0
    wanted = Targets(*[None] * 3, full, alive, *[None] * 2)  # type: ignore
    share = jax.tree.map(lambda x: x.reshape(num_devices, -1, 2), wanted)
    found = np.reshape(on_devices(targets.weigh_policies, share).policy_mask, (4, 2))
    np.testing.assert_allclose(found, [[4, 0], [0, 1.5], [0, 1.5], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), alive.sum(axis=0))


def test_policy_weights_are_0_without_a_full_search_and_1_if_all_searches_are_full():
    window = one_game([0.0, 0.0, 1.0], [-1.0, -1.0, 0.0])
    make_targets = partial(targets.make, unroll_steps=K, td_steps=8, td_lambda=1.0, stop_at_exploration=True)
    make = partial(targets.make_batch, unroll_steps=K, num_frames=1)
    for in_full, weights in ((False, [0, 0, 0, 0]), (True, [1, 1, 1, 0])):
        each = window._replace(in_full=np.full(window.action.shape, in_full))
        batch = alone(lambda w: make(w, make_targets(w), jnp.ones(1), jax.random.key(0)), each)
        np.testing.assert_array_equal(np.asarray(batch.targets.policy_mask)[0], weights)


def test_the_discounts_of_the_moves_are_targets_up_to_the_end():
    window = one_game([0.0, 1.0], [0.9, 0.0])
    np.testing.assert_allclose(monte_carlo(window).discount, [[0.9, 0.0, 0.0]])
