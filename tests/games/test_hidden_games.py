"""Games with hidden information: rules beside plain Python, observations as information states, what is hidden."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import presets
from muzero_jax.agent import make_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.evaluation import players
from muzero_jax.apps.evaluation.players import PlayerSpec
from muzero_jax.apps.play.notebook import play_against
from muzero_jax.apps.play.position import new_game
from muzero_jax.apps.play.thinking import make_thinker
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.config.config import Config, with_values
from muzero_jax.games import random_play
from muzero_jax.games.catalogue import game_of, hides, make_notation
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import random_games
from muzero_jax.games.poker import open_card
from tests.reference import phantom

HIDDEN = ("kuhn_poker", "leduc_holdem", "liars_dice", "liars_dice_2", "phantom_tic_tac_toe", "dark_hex")
PHANTOM = ("phantom_tic_tac_toe", "abrupt_phantom_tic_tac_toe", "dark_hex", "abrupt_dark_hex")
NUM_GAMES = 24


def played(name, seed=0):
    """Random games: for each a list of (state before, action, step)."""
    environment = make_environment(name)
    move = jax.jit(environment.move)
    rng = np.random.default_rng(seed)
    for game in range(NUM_GAMES):
        state, moves = environment.init(jax.random.key(game)), []
        while not state.terminated:
            action = int(rng.choice(np.flatnonzero(state.legal_action_mask)))
            step = move(state, jnp.int32(action))
            moves.append((state, action, step))
            state = step.state
        yield moves


@pytest.mark.parametrize("name", PHANTOM)
def test_phantom_games_follow_plain_rules(name):
    for moves in played(name):
        game = phantom.Game(is_hex=name.endswith("hex"), abrupt=name.startswith("abrupt"))
        for state, action, step in moves:
            assert int(state.current_player) == game.player
            assert np.flatnonzero(state.legal_action_mask).tolist() == game.legal()
            reward = game.play(action)
            assert float(step.reward) == reward
            assert bool(step.is_last) == game.over
            if not game.over:
                same = int(step.state.current_player) == int(state.current_player)
                assert float(step.discount) == (1 if same else -1)


@pytest.mark.parametrize("name", [name for name in HIDDEN if name not in PHANTOM])
def test_an_observation_is_all_that_a_player_has_seen_and_done_and_nothing_else(name):
    """Two situations look alike if and only if the player has seen and done the same."""
    history_of, sight_of = {}, {}
    for moves in played(name):
        first = int(moves[0][0].current_player)
        lived = {0: (), 1: ()}
        for state, action, _ in moves:
            seat = int(state.current_player) != first
            sight = seat, np.asarray(state.observation).tobytes()
            lived[seat] += (sight,)
            assert history_of.setdefault(sight, lived[seat]) == lived[seat]
            assert sight_of.setdefault(lived[seat], sight) == sight
            lived[seat] += (action,)


@pytest.mark.parametrize("name", PHANTOM)
def test_an_observation_of_a_phantom_game_is_what_became_of_the_own_tries_in_any_order(name):
    tries_of, sight_of = {}, {}
    orders = set()
    for moves in played(name):
        tried = {0: (), 1: ()}
        for state, action, step in moves:
            seat = int(state.current_player)
            tries, sight = (seat, frozenset(tried[seat])), np.asarray(state.observation).tobytes()
            orders.add((seat, tried[seat]))
            assert tries_of.setdefault(sight, tries) == tries
            assert sight_of.setdefault(tries, sight) == sight
            tried[seat] += ((action, bool(step.state.stones[seat, action])),)
    assert len(orders) > len(sight_of)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_holdem", "liars_dice"])
def test_of_a_position_that_a_player_may_see_only_the_own_hand_is_shown(name):
    environment = make_environment(name)
    game = game_of(environment)
    state = environment.init(jax.random.key(0))
    first = int(state.current_player)
    both = game.view.hands(state)
    own, other = (game.view.hands(game.veil(state, player)) for player in (first, 1 - first))
    assert own == (both[0], "?") and other == ("?", both[1])


def test_the_best_hand_wins_in_leduc_and_the_first_player_may_act_twice():
    seen = {"pair": 0, "high": 0, "equal": 0, "twice": 0}
    for moves in played("leduc_holdem"):
        state, action, step = moves[-1]
        seat = int(state.current_player)
        mine, others, table = np.asarray(state.game._cards)[[seat, 1 - seat, 2]].tolist()
        assert int(open_card(step.state.game)) == (table if int(state.game._round) else -1), "a fold opens nothing"
        if action == 2:
            assert step.reward < 0
            continue
        strength = [(card == table, card) for card in (mine, others)]
        assert np.sign(step.reward) == (strength[0] > strength[1]) - (strength[0] < strength[1])
        seen["equal" if mine == others else "pair" if table in (mine, others) else "high"] += 1
        seen["twice"] += any(step.discount > 0 for _, _, step in moves)
    assert min(seen.values()) > 0


@pytest.mark.parametrize("name", ["liars_dice", "liars_dice_2"])
def test_returns_of_liars_dice_are_those_of_whole_games(name):
    """Every bid may be the next higher one, and then somebody must say `liar`: random games are much shorter."""
    assert presets.preset(name).targets.td_steps == make_environment(name).num_actions


def test_liars_dice_count_the_wild_face():
    rules = game_of(make_environment("liars_dice_2")).rules(None)
    state = rules.init(jax.random.key(0))._replace(dice=jnp.array([[1, 5], [1, 3]]))  # 2 and a wild 6; 2 and 4
    for bid, holds in ((6 * 2 + 1, True), (6 * 3 + 1, False), (6 * 1 + 3, True), (6 * 2 + 3, False)):
        called = rules.step(rules.step(state, jnp.int32(bid)), jnp.int32(24))
        assert called.rewards.tolist() == ([1, -1] if holds else [-1, 1]), bid
    assert rules.step(state, jnp.int32(5)).legal_action_mask.tolist() == [False] * 6 + [True] * 19
    assert not state.legal_action_mask[-1], "nothing to doubt yet"


@pytest.mark.parametrize("name", HIDDEN)
def test_deals_are_those_that_are_dealt(name):
    environment = make_environment(name)
    deals = game_of(environment).deals
    if deals is None:
        assert name in PHANTOM
        return
    states, chance = deals()
    assert chance.sum() == pytest.approx(1) and (states.current_player == 0).all()
    listed = {np.asarray(x).tobytes() for x in hands_of(states)}
    dealt = jax.vmap(environment.init)(jax.random.split(jax.random.key(0), 512))
    found = [np.asarray(x).tobytes() for x in hands_of(dealt)]
    assert set(found) <= listed
    if name != "liars_dice_2":
        share = {hand: found.count(hand) / 512 for hand in listed}
        of_list = dict.fromkeys(listed, 0.0)
        for hand, probability in zip(hands_of(states), chance, strict=True):
            of_list[np.asarray(hand).tobytes()] += probability
        assert all(abs(share[hand] - of_list[hand]) < 0.06 for hand in listed)


def hands_of(states):
    return states.dice if hasattr(states, "dice") else states.game._cards


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_holdem", "liars_dice", "phantom_tic_tac_toe"])
def test_random_games_show_that_something_is_hidden(name):
    assert random_play.shows_hidden(random_games(make_environment(name)))


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "animal_shogi"])
def test_random_games_show_that_nothing_is_hidden(name):
    assert not random_play.shows_hidden(random_games(make_environment(name)))
    assert not hides(make_environment(name))


# --- what then holds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["rules", "learned"])
def test_a_search_is_refused_where_something_is_hidden(model):
    with pytest.raises(ValueError, match="hides"):
        make_algorithm(Config(env="kuhn_poker", model=model))
    searching = {"search.policy": "none", "model": "none", "evaluation.mcts_simulations": (100,)}
    with pytest.raises(ValueError, match="hides"):
        make_algorithm(with_values(Config(env="kuhn_poker"), searching))


def test_players_that_look_ahead_are_refused_and_the_policy_head_is_drawn_from():
    config = presets.preset("kuhn_poker")
    agent = make_agent(config)
    agent = agent._replace(params=agent.model.init(jax.random.key(0)))
    for kind in ("mcts", "rules", "sampled", "expectimax"):
        with pytest.raises(ValueError, match="hides"):
            players.enter(PlayerSpec(kind, num_simulations=4), agent)
    for kind in ("agent", "head"):
        entrant = players.enter(PlayerSpec(kind), agent)
        assert entrant.player.stochastic
        states = jax.vmap(agent.environment.init)(jnp.repeat(jax.random.key(0), 4000))
        actions = entrant.player.act(agent.params, jax.random.key(1), states)
        prior = agent.network(states.observation[:1]).policy[0]
        np.testing.assert_allclose(np.bincount(actions, minlength=2) / 4000, prior, atol=0.03)
    greedy = players.enter(PlayerSpec("greedy"), agent)
    assert not greedy.player.stochastic


def test_a_player_sees_neither_hidden_stones_nor_hidden_moves_until_the_end():
    position = new_game(make_environment("dark_hex"))
    notation = make_notation(position.environment)
    position = position.play(4).play(4).play(0)  # white finds black's stone, and plays elsewhere
    black, white = (position._replace(viewer=colour) for colour in (0, 1))
    assert not any("O" in row for row in black.squares)
    assert [row.count("X") for row in white.squares] == [0, 1, 0]
    assert black.texts(notation) == ["b2", "?"], "the number of tries would tell that white found the stone"
    assert white.texts(notation) == ["?", "b2", "a1"]
    assert black.last_action is None and white.last_action == 0
    for action in (1, 3, 7):  # black joins top and bottom
        position = position.play(action)
    assert position.is_over
    assert position._replace(viewer=0).texts(notation).count("?") == 0


def test_neither_the_page_nor_the_notebook_shows_what_is_hidden():
    config = presets.preset("dark_hex")
    agent = make_agent(config)
    agent = agent._replace(params=agent.model.init(jax.random.key(0)))
    game = WebGame(new_game(agent.environment), make_thinker(agent, num_simulations=1), agent.notation)
    state = game.play("b2", seat=0)
    assert state["legal"] == [] and state["moves"] == ["b2"], "the agent's moves show what it knows"
    with pytest.raises(ValueError, match="wait for your turn"):
        game.analysis(seat=0)
    while game.position.colour_to_move == 1:
        state = game.agent_move(seat=0)
    assert len(state["budgets"]) == 1 and "simulation" not in game.analysis(seat=0)["said"], "nothing searches"
    stones = sum(row.count("O") for row in state["squares"])
    assert stones == 0 and set(state["moves"][1:]) == {"?"} and len(state["legal"]) == 8
    assert state["svg"] != game.state()["svg"], "without a seat both sides are shown"
    in_notebook = play_against(agent, you="black")
    in_notebook.play("b2")
    assert "O" not in repr(in_notebook).split("Your turn")[0].replace("\n", "") and "expects" not in in_notebook.said
