"""A game of one's own in one file: what `make()` may return, and one error message for each fault."""

import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts
from muzero_jax.apps.play import drawing
from muzero_jax.apps.play.position import new_game
from muzero_jax.games import random_play, states
from muzero_jax.games.catalogue import game_of, hides, make_notation
from muzero_jax.games.environment import environment_of
from muzero_jax.games.own_game import load_environment
from muzero_jax.games.random_play import Moves
from tests.reference import drop

CHECKS = "from tests.apps.check.test_environment "
PIG = "from examples import pig\nclass make(pig.Pig):\n    {}"


@pytest.fixture
def write(tmp_path):
    """Writes a file with a game; returns its path."""

    def save(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return save


def test_rules_in_pgxs_form_make_a_game_that_is_named_after_the_file(write):
    path = write(CHECKS + "import Heap as make", "last_stone.py")
    environment = load_environment(path)
    assert (environment.name, game_of(environment).title) == ("last_stone", "Last stone")
    assert (environment.num_actions, environment.observation_shape, environment.num_players) == (2, (1,), 2)
    assert environment.board is None and environment.discount == -1.0
    assert load_environment(path, gamma=0.5).discount == -0.5


def test_a_file_named_like_a_catalogue_game_does_not_get_that_games_drawing(write):
    environment = load_environment(write(CHECKS + "import Heap as make", "tic_tac_toe.py"))
    assert drawing.plain(drawing.draw(new_game(environment), make_notation(environment))) == " 5"


def test_a_game_of_only_rules_has_no_symmetry_except_the_identity_and_one_size():
    environment = environment_of(drop.DROP)
    assert environment.board.action_location.tolist() == [0, 1, 2]
    symmetries = environment.board.symmetries
    assert symmetries.action_permutation.tolist() == [[0, 1, 2]] and not symmetries.observation_flip.any()
    assert symmetries.observation_permutation.tolist() == [list(range(12))]
    with pytest.raises(ValueError, match="leave --board-size out"):
        environment_of(drop.DROP, board_size=4)


def test_a_game_record_brings_its_title_its_notation_and_its_drawing(write):
    path = write("""
        from muzero_jax.games.notation import Notation, words
        from tests.reference.drop import DROP

        def make():
            return DROP._replace(notation=lambda *_: Notation(*words(["left", "middle", "right"]), [], []))
    """)
    environment = load_environment(path)
    position, moves = new_game(environment), make_notation(environment)
    position = position.play(moves.read(position.state, "right"))
    assert position.game.title == "Drop" and drawing.plain(drawing.draw(position, moves)) == " . . .\n . . B"


def test_an_environment_with_bare_states_is_playable_and_stays_at_its_end(write):
    """Its states have no player, no mask and no end; the discount says who moves next."""
    path = write("""
        import jax.numpy as jnp
        from muzero_jax.types import Environment, Step

        def move(stones, action, key=None):
            left = jnp.maximum(stones - 1 - action, 0)
            return Step(left, jnp.float32(left == 0), jnp.where(left == 0, 0.0, -1.0), left == 0)

        def make():
            return Environment("bare", lambda key: jnp.int32(3), move, lambda s: jnp.float32(s)[None],
                               lambda s: jnp.arange(1, 3) <= s, 2, (1,), 2, -1.0)
    """)
    environment = load_environment(path)
    position = new_game(environment).play(0)
    assert position.colour_to_move == 1 and position.legal_actions() == [0, 1]
    position = position.play(1)
    assert position.is_over and position.winner == 1 and np.asarray(position.state.rewards).tolist() == [-1.0, 1.0]
    again = environment.move(position.state, jnp.int32(0))
    assert (again.reward, again.discount, again.is_last) == (0, 0, True)
    assert environment.legal(again.state).all() and again.state.rewards.tolist() == [0.0, 0.0]


def test_a_time_limit_ends_a_game_for_play_and_keeps_its_discount_for_learning(write):
    path = write("""
        from tests.apps.check.test_environment import Heap

        class Mine(Heap):
            def step(self, state, action, key):
                after = super().step(state, action, key)
                return after._replace(truncated=after.stones == 3)

        make = Mine
    """)
    environment = load_environment(path, gamma=0.5)
    step = environment.move(environment.init(jax.random.key(0)), jnp.int32(1))
    assert (step.discount, step.is_last, step.state.terminated) == (-0.5, True, True)
    assert new_game(environment).play(1).result == "a draw"
    own_legal = states.final(environment._replace(legal=lambda state: jnp.zeros(2, bool)))
    assert own_legal.legal(step.state).all(), "searches go on from there, and ask what is legal"


def test_a_file_may_return_an_environment_of_pgx_which_rollout_mcts_can_play(write):
    """A file's states keep their observation in rollouts, because its rules may read it."""
    environment = load_environment(write("import pgx\ndef make(): return pgx.make('tic_tac_toe')"))

    @jax.jit
    def look(key):
        states = jax.vmap(environment.init)(jax.random.split(key, 2))
        states = jax.vmap(environment.move, (0, None))(states, jnp.int32(4)).state
        return rollout_mcts(environment, key, states, num_simulations=8)

    assert not look(jax.random.key(0)).policy[:, 4].any()


def test_an_environment_of_the_catalogue_keeps_its_game(write):
    text = (
        "from muzero_jax.games.environment import make_environment\ndef make(): return make_environment('kuhn_poker')"
    )
    environment = load_environment(write(text, "mine.py"))
    assert hides(environment) and game_of(environment).deals is not None and game_of(environment).is_for_points


@pytest.mark.parametrize(
    "text, says",
    [
        ("def make(): return 3", "returns an object of type int"),
        ("import a_file_beside_it", "installed packages only"),
        (CHECKS + "import Heap\nclass make(Heap):\n    def mask(self, stones):\n        1 / 0", "ZeroDivision.*FILE:4"),
        (CHECKS + "import Heap\nclass make(Heap):\n    num_players = 3", "FILE: .* is a game for 3 players"),
        (PIG.format("resolve = property()"), "FILE has num_outcomes, but no resolve"),
        (PIG.format("def move(self, state, action): return state"), "chance.move raised ValueError: .* unpack"),
    ],
)
def test_a_file_without_a_valid_game_gives_an_error_that_names_it(write, text, says):
    path = write(text)
    with pytest.raises(ValueError, match=says.replace("FILE", path)):
        load_environment(path)


@pytest.mark.parametrize("options, flag", [({"board_size": 4}, "--board-size"), ({"gamma": 0.9}, "--targets.discount")])
def test_board_size_and_gamma_are_refused_if_the_file_returns_an_environment(write, options, flag):
    path = write("from tests.reference.nim import make_nim\ndef make(): return make_nim(9)")
    assert load_environment(path).name == "nim"
    with pytest.raises(ValueError, match=f"leave {flag} out"):
        load_environment(path, **options)


def test_the_mean_return_is_none_unless_every_game_ended():
    """One reward a move: a game of two moves, and one that ends after three or is cut off there."""
    over = np.array([[False, False], [False, False], [True, False]])
    for last, mean in ((True, 2.5), (False, None)):
        is_last = np.array([[False, False], [True, False], [True, last]])
        moves = Moves(**dict.fromkeys(Moves._fields))._replace(over=over, reward=np.ones((3, 2)), is_last=is_last)
        assert random_play.mean_return(moves) == mean, "those that end early are no fair sample"
