"""A game in progress: colours, swap, positions built from stones, undo, results."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.play import placement
from muzero_jax.apps.play.position import BLACK, WHITE, IllegalMove, opening_of
from muzero_jax.games.environment import make_environment
from muzero_jax.games.random_play import random_starts
from tests.reference.nim import make_nim, make_state
from tests.reference.play import fake_thinker, notation, opening, played
from tests.reference.tiny_run import assert_same

SIZE = 4
SWAP = SIZE * SIZE


def drawn(position):
    return "/".join("".join(row) for row in position.squares)


# --- turns and colours ------------------------------------------------------------------------------------------------


def test_after_a_swap_white_owns_the_mirrored_stone_and_black_is_to_move():
    position = played("hex", "b:b3 w:swap-pieces")
    assert drawn(position) == "..../..O./..../...."  # c2: row and column of b3 exchanged
    assert position.colour_to_move == BLACK and not position.legal_action_mask()[SWAP]
    assert [ply.colour for ply in position.plies] == [BLACK, WHITE]
    assert position.swapped and not position.undo().swapped and not position.play(0).swapped


def test_a_finished_game_and_an_illegal_action_are_refused_and_change_nothing():
    over, position = played("tic_tac_toe", "b:a1 w:a2 b:b1 w:b2 b:c1"), played("hex", "b:a1 w:b2")
    assert over.is_over and over.winner == BLACK and not over.legal_action_mask().any() and over.undo().winner is None
    for ask in (lambda: over.play(8, BLACK), lambda: over.play(8, WHITE), lambda: over.seen_by(WHITE)):
        with pytest.raises(IllegalMove, match="over"):
            ask()
    for action in (-1, 0, 17, 10**9):
        with pytest.raises(IllegalMove):
            position.play(action)
    assert drawn(position) == "X.../.O../..../...." and len(position.plies) == 2


def test_every_game_begins_with_a_deal_of_its_own():
    """A heap of 1 to 9 stones, dealt at random."""
    dealt = make_nim(9)._replace(init=lambda key: make_state(jax.random.randint(key, (), 1, 10), jnp.int32(0)))
    position, heaps = opening_of(dealt, seed=3), []
    for _ in range(8):
        heaps.append(int(position.state.stones))
        position = position.new()
    assert len(set(heaps)) > 3 and int(opening_of(dealt, seed=3).state.stones) == heaps[0]
    assert opening_of(make_nim(9)).dice is None, "nothing is dealt"


def test_no_throw_is_made_of_the_key_of_the_deal():
    """In this game the deal and a throw are one number of their key."""
    draw = partial(jax.random.randint, shape=(), minval=1, maxval=2**30)

    def move(state, action, key):
        return make_nim(9).move(state, action)._replace(state=make_state(draw(key), 1 - state.current_player))

    dealt = make_nim(9)._replace(init=lambda key: make_state(draw(jax.random.split(key)[1]), jnp.int32(0)), move=move)
    position = opening_of(dealt, seed=3)
    thrown = [int(position.play(0).state.stones), int(position.play(0).play(0).state.stones)]
    assert int(position.state.stones) not in thrown


@pytest.mark.parametrize(("name", "is_dealt"), [("hex", False), ("go_9x9", False), ("chess", False), ("2048", True)])
def test_who_begins_is_no_deal(name, is_dealt):
    """pgx draws it, and Hex, Go and chess also keep it in the state."""
    assert random_starts(make_environment(name))[1] == is_dealt


# --- positions built from stones --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_any_game_of_hex_can_be_built_in_scan_order_also_when_it_is_won(seed):
    generator, game = np.random.default_rng(seed), opening("hex")
    for _ in range([3, 9, 16, 16][seed]):
        if not game.is_over:
            game = game.play(int(generator.choice(game.legal_action_mask()[:SWAP].nonzero()[0])))
    built = opening("hex")
    for action, cell in enumerate(drawn(game).replace("/", "")):
        if cell != ".":
            built = built.play(action, BLACK if cell == "X" else WHITE)
    assert (built.is_over, built.winner, drawn(built)) == (game.is_over, game.winner, drawn(game))
    if not game.is_over:
        one, other = (position.seen_by(game.colour_to_move) for position in (built, game))
        np.testing.assert_array_equal(one.observation, other.observation)
        np.testing.assert_array_equal(one.legal_action_mask, other.legal_action_mask)


def test_the_other_side_passes_if_a_colour_moves_twice():
    position = played("go_9x9", "b:C3 b:pass b:D3 b:pass b:E3 w:E4 w:D4")
    assert not position.is_over and position.colour_to_move == BLACK
    assert drawn(position).split("/")[5:7] == ["...OO....", "..XXX...."]
    assert played("go_9x9", "b:C3 w:pass b:pass").is_over
    taken = played("go_9x9", "b:A2 w:A1 b:B1")  # stones that are built have their liberties
    assert drawn(taken).endswith("X......../.X.......")
    position = played("othello", "b:d3 w:c3 w:e3")
    assert drawn(position).split("/")[2:5] == ["..OOO...", "...OO...", "...XO..."]
    assert position.colour_to_move == BLACK and position.legal_action_mask(WHITE).any()


# --- undo -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, text",
    [
        ("hex", "b:b3 w:swap-pieces w:c1 b:d4 b:a1"),
        ("othello", "b:d3 w:c3 w:e3 b:d2"),
        ("go_9x9", "b:A2 w:A1 b:B1 b:pass w:pass"),
    ],
)
def test_undo_restores_every_state_exactly(name, text):
    words = text.split()
    position = played(name, text)
    for count in reversed(range(len(words))):
        position, before = position.undo(), played(name, " ".join(words[:count]))
        assert_same(position.state, before.state)
        assert (position.in_turns, position.colour_to_move) == (before.in_turns, before.colour_to_move)
    with pytest.raises(ValueError, match="there is nothing to take back"):
        position.undo()


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, moves, result, score, cells",
    [
        ("tic_tac_toe", "b:a1 w:a2 b:b1 w:b2 b:c1", "X wins", "B+", [(0, 0), (0, 1), (0, 2)]),
        ("tic_tac_toe", "b:a1 w:b2 b:c3 w:b1 b:b3 w:a3 b:c1 w:c2 b:a2", "a draw", "0", []),
        ("connect_four", "b:a w:b b:a w:b b:a w:b b:a", "red wins", "B+", [(2, 0), (3, 0), (4, 0), (5, 0)]),
        ("go_9x9", "b:E5 w:pass b:pass", "black wins by 73.5", "B+73.5", []),
        ("go_9x9", "b:pass", None, "W+7.5", []),
        # White has swapped, and still joins left and right.
        ("hex", "b:b3 w:swap b:a1 w:a2 b:a3 w:b2 b:a4 w:d2", "white wins", "W+", [(1, 0), (1, 1), (1, 2), (1, 3)]),
    ],
)
def test_a_result_has_the_games_own_names_a_score_as_gtp_writes_it_and_the_cells_that_won(
    name, moves, result, score, cells
):
    position = played(name, moves)
    assert (position.result, position.score(), position.winning_cells) == (result, score, cells)
    assert position.undo().winning_cells == [] and position.undo().result is None


# --- asking an agent --------------------------------------------------------------------------------------------------


def test_an_agent_is_asked_for_a_colour_with_that_colours_legal_actions():
    position, thinker = played("hex", "w:b2"), fake_thinker(favourite=SWAP)
    for colour in (BLACK, WHITE):
        analysis = thinker.analyse(position, colour)
        assert analysis.action == SWAP - 1 and analysis.policy[SWAP] == 0 and analysis.policy[5] == 0
    assert thinker.analyse(played("hex", "b:b2")).action == SWAP
    assert analysis.best(2)[0] == SWAP - 1 and analysis.policy.sum() == pytest.approx(1)
    found = fake_thinker(favourite=4, num_simulations=170, first_sight=-1.2).analyse(opening("tic_tac_toe"))
    assert (found.value, found.prior_value) == (1.0, -1.0), "no value is beyond a win"
    assert found.best(2) == [4, 0] and found._replace(action=8).best(3) == [8, 4, 0]
    position = played("tic_tac_toe", "b:a1")
    assert fake_thinker(favourite=1).line(position, 4) == [1, 8, 7, 6] and drawn(position) == "X../.../..."


def test_the_agent_repeats_no_position_in_go():
    """White took a ko; pgx lets black take back after a pass and calls that lost, so the agent does something else."""
    position = played("go_9x9", "b:B2 w:C2 b:A1 w:D1 b:C1 w:B1 b:pass")
    assert drawn(position).endswith("/.XO....../XO.O.....")
    retake = notation("go_9x9").read(position.state, "C1")
    assert position.legal_action_mask(BLACK)[retake] and position.repeats(retake, BLACK)
    assert fake_thinker(favourite=retake).analyse(position, BLACK).action != retake
    assert fake_thinker(favourite=retake - 1).analyse(position, BLACK).action == 81  # B1 is taken: the last, a pass


def test_moves_are_drawn_at_a_temperature_and_the_same_with_the_same_seed():
    position = opening("tic_tac_toe")

    def draws(temperature, seed):
        thinker = fake_thinker(favourite=4, temperature=temperature, seed=seed)
        return [thinker.analyse(position).action for _ in range(30)]

    assert set(draws(0.0, 0)) == {4}
    assert draws(1.0, 0) == draws(1.0, 0) != draws(1.0, 1)
    assert len(set(draws(2.0, 0))) > 4
    assert draws(0.05, 0).count(4) == 30


def test_a_time_limit_chooses_a_simulation_count_that_fits_it():
    position, thinker = opening("tic_tac_toe"), fake_thinker(most_simulations=100)
    thinker.prepare(position, 60.0)
    assert thinker.analyse(position, seconds=60.0).num_simulations == 64
    assert thinker.analyse(position, seconds=0.0).num_simulations < 64
    assert thinker.analyse(position).num_simulations == 4
    assert thinker.analyse(position, num_simulations=7).num_simulations == 7


# --- where an agent plays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds, fastest", [((0.03, 0.01), 1), ((0.01, 0.03), 0)])
def test_an_agent_plays_on_the_device_with_the_fastest_search_and_says_the_times(monkeypatch, seconds, fastest):
    """Two CPU devices stand for an accelerator and the CPU beside it. A first search compiles: ten times as long."""
    now, searched, said = [0.0], [], []
    monkeypatch.setattr(placement, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def search(player):
        device = jnp.zeros(()).device
        now[0] += seconds[device.id] * (1 if device in searched else 10)
        searched.append(device)

    try:
        player = placement.place(lambda device: device.id, search, jax.devices(), said.append)
        assert player == fastest and jnp.zeros(()).device == jax.devices()[fastest]
    finally:
        jax.config.update("jax_default_device", None)
    (line,) = said
    assert [f"{1000 * s:.1f} ms" in line for s in seconds] == [True, True], "compilation counts for nothing"
