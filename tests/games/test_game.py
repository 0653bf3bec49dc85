"""A game needs no more than rules: everything else has a default that works."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest

from muzero_jax.apps.play import drawing
from muzero_jax.apps.play.position import BLACK, WHITE, IllegalMove, new_game
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games import catalogue
from muzero_jax.games.environment import environment_of
from muzero_jax.games.game import Game
from tests.reference.play import fake_thinker


class RowState(NamedTuple):
    """Two players fill a row of three cells, each from the left or from the right; who fills it up wins."""

    current_player: Any
    observation: Any  # [1, 3, 2] bool, what the mover filled and what the other did
    rewards: Any
    terminated: Any
    truncated: Any
    legal_action_mask: Any

    def replace(self, **fields):
        return self._replace(**fields)


class RowRules:
    """Action 0 fills the leftmost free cell, action 1 the rightmost."""

    num_players = 2

    def init(self, key):
        del key
        nothing = jnp.zeros((1, 3, 2), bool)
        return RowState(jnp.int32(0), nothing, jnp.zeros(2), jnp.bool_(False), jnp.bool_(False), jnp.ones(2, bool))

    def step(self, state, action, key):
        del key
        free = ~state.observation.any(axis=-1)[0]
        cell = jnp.where(action == 0, jnp.argmax(free), 2 - jnp.argmax(free[::-1]))
        observation = state.observation.at[0, cell, 0].set(True)[..., ::-1]
        won = free.sum() == 1
        rewards = jnp.where(won, jnp.where(jnp.arange(2) == state.current_player, 1.0, -1.0), 0.0)
        return RowState(1 - state.current_player, observation, rewards, won, jnp.bool_(False), jnp.ones(2, bool))


ROW = Game("row", "Row", rules=lambda board_size: RowRules())


@pytest.fixture(scope="module")
def environment():
    return environment_of(ROW)


def test_a_game_of_rules_alone_has_an_environment_with_no_symmetry_but_the_identity(environment):
    assert (environment.name, environment.num_actions, environment.board.shape) == ("row", 2, (1, 3))
    assert environment.board.action_location.tolist() == [0, 1]
    assert environment.board.symmetries.action_permutation.tolist() == [[0, 1]]
    assert environment.board.symmetries.observation_permutation.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert not environment.board.symmetries.observation_flip.any()


@pytest.mark.parametrize("game", [ROW, None], ids=["its record", "no record"])
def test_it_is_played_by_action_numbers_on_a_plain_board(environment, game):
    environment = environment._replace(game=game)
    position, moves = new_game(environment), catalogue.make_notation(environment)
    position = position.play(moves.read(position.state, "1"))
    assert moves.write(position.state, 1) == "1"
    assert drawing.plain(drawing.draw(position, moves)) == " . . 1"  # plane 1: filled by who is not to move
    with pytest.raises(ValueError, match="not a number from 0 to 1"):
        moves.read(position.state, "a1")
    with pytest.raises(IllegalMove, match="the other side is to move"):
        position.play(0, BLACK)
    with pytest.raises(ValueError, match="cannot score"):
        position.score()
    position = position.play(0)
    position = position.play(0)
    assert (position.is_over, position.winner, position.score()) == (True, BLACK, "B+")
    with pytest.raises(IllegalMove, match="the game is over"):
        position.play(0, WHITE)


def test_it_has_a_plain_board_in_the_browser_and_no_choice_of_size(environment):
    game = WebGame(new_game(environment), fake_thinker(favourite=0), catalogue.make_notation(environment))
    state = game.play("1")
    assert (state["board"], state["squares"], state["legal"]) == ("plain", [[".", ".", "1"]], ["0", "1"])
    assert state["buttons"] == ["0", "1"] and state["clicks"] == 0
    with pytest.raises(ValueError, match="row has no board of size 4, but one size; leave the board size out"):
        environment_of(ROW, board_size=4)
