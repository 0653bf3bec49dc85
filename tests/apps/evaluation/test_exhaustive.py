"""The walk is a proof only if it visits everything: its counts are those of a recursion in plain Python."""

import jax.numpy as jnp
import pytest

from muzero_jax.apps.evaluation import exhaustive
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.games.environment import make_environment
from tests.reference import tic_tac_toe as rules
from tests.reference.nim import best_actions, make_nim

TIC_TAC_TOE = make_environment("tic_tac_toe")
PLAYERS = {"perfect": rules.perfect_action, "first legal": rules.first_legal_action}


@pytest.fixture(scope="module")
def walked():
    """Each player as each colour."""
    results = {}
    for name, choose in PLAYERS.items():
        player, table = rules.make_player(name, choose)
        for moves_first in (True, False):
            results[name, moves_first] = exhaustive.walk(TIC_TAC_TOE, player, table, moves_first=moves_first)
    return results


@pytest.mark.parametrize("moves_first", [True, False])
@pytest.mark.parametrize("name", PLAYERS)
def test_counts_agree_with_a_recursion_in_plain_python(walked, name, moves_first):
    assert tuple(walked[name, moves_first]) == rules.walk(PLAYERS[name], moves_first)


@pytest.mark.parametrize("moves_first", [True, False])
def test_a_perfect_player_never_loses(walked, moves_first):
    result = walked["perfect", moves_first]
    assert result.losses == 0
    assert result.wins > 0 and result.draws > 0


@pytest.mark.parametrize("moves_first", [True, False])
def test_a_player_of_the_first_legal_move_can_be_beaten(walked, moves_first):
    assert walked["first legal", moves_first].losses > 0


def test_the_batch_size_changes_speed_only():
    player, table = rules.make_player("first legal", rules.first_legal_action)
    small = exhaustive.walk(TIC_TAC_TOE, player, table, moves_first=True, batch_size=7)
    assert tuple(small) == rules.walk(rules.first_legal_action, True)


def test_an_illegal_move_is_an_error_and_not_a_result():
    always_centre = Player("always the centre", lambda params, key, states: jnp.full(states.terminated.shape, 4))
    with pytest.raises(ValueError, match="always the centre chose an illegal move"):
        exhaustive.walk(TIC_TAC_TOE, always_centre, None, moves_first=True)


def test_nim_is_won_by_whoever_leaves_a_multiple_of_four():
    """From 6 stones the first player takes 2; the other one then loses whatever it does."""
    nim = make_nim(6)
    best = jnp.array([best_actions(stones)[0] if best_actions(stones) else 0 for stones in range(7)], jnp.int32)
    player = Player("knows nim", lambda params, key, states: params[states.stones])
    first, second = (exhaustive.walk(nim, player, best, moves_first=moves_first) for moves_first in (True, False))
    assert (first.wins, first.losses) == (3, 0)
    assert second.losses > 0
    both = exhaustive.examine(nim, player, best)
    assert both["wins"] == first.wins + second.wins and both["positions"] == first.positions + second.positions
    assert (both["losses_as_first"], both["losses_as_second"]) == (0, second.losses) and both["draws"] == 0
    assert both["score"] == both["wins"] / both["games"] == both["wins"] / (both["wins"] + both["losses"])
