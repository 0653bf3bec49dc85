"""The walk is a proof only if it visits everything: its counts are those of a recursion in plain Python."""

import jax.numpy as jnp
import pytest

from muzero_jax.apps.evaluation import exhaustive
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.games.environment import make_environment
from tests.reference import tic_tac_toe as rules
from tests.reference.nim import best_actions, make_nim

TIC_TAC_TOE = make_environment("tic_tac_toe")


@pytest.mark.parametrize("moves_first", [True, False])
@pytest.mark.parametrize("choose, is_beaten", [(rules.perfect_action, False), (rules.first_legal_action, True)])
def test_counts_agree_with_a_recursion_in_plain_python(choose, is_beaten, moves_first):
    player, table = rules.make_player("tic-tac-toe", choose)
    found = exhaustive.walk(TIC_TAC_TOE, player, table, moves_first=moves_first)
    assert tuple(found) == rules.walk(choose, moves_first)
    assert (found.losses > 0) == is_beaten and found.wins > 0


def test_an_illegal_move_is_an_error_and_not_a_result():
    always_centre = Player("always the centre", lambda params, key, states: jnp.full(states.terminated.shape, 4))
    with pytest.raises(ValueError, match="illegal move"):
        exhaustive.walk(TIC_TAC_TOE, always_centre, None, moves_first=True)


def test_nim_is_won_by_whoever_leaves_a_multiple_of_four():
    """From 6 stones the first player takes 2; the other one then loses whatever it does."""
    best = jnp.array([best_actions(stones)[0] if best_actions(stones) else 0 for stones in range(7)], jnp.int32)
    player = Player("knows nim", lambda params, key, states: params[states.stones])
    first, second = (exhaustive.walk(make_nim(6), player, best, moves_first=moves) for moves in (True, False))
    assert (first.wins, first.losses) == (3, 0) and second.losses > 0
    both = exhaustive.examine(make_nim(6), player, best)
    assert both["wins"] == first.wins + second.wins and both["positions"] == first.positions + second.positions
    assert (both["losses_as_first"], both["losses_as_second"]) == (0, second.losses) and both["draws"] == 0
    assert both["score"] == both["wins"] / both["games"] == both["wins"] / (both["wins"] + both["losses"])
