"""`check_environment` says in a sentence what is wrong with listed chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import pig
from muzero_jax.apps.check import promises
from muzero_jax.apps.check.environment import check_environment
from muzero_jax.games import chance, state_shapes
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import environment_from


def of(rules):
    return environment_from(rules, "pig")


class Changed(pig.Pig):
    """Pig with a mistake."""

    def __init__(self, **functions):
        for name, function in functions.items():
            setattr(self, name, function)


def test_pig_has_no_fault(recwarn):
    check_environment("examples/pig.py")
    assert not list(recwarn)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2048", "backgammon"])
def test_2048_and_backgammon_list_their_chance_well(name):
    assert promises.chance(make_environment(name)) == []


def test_a_game_without_listed_chance_is_not_looked_at():
    assert promises.chance(make_environment("tic_tac_toe")) == []


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"probabilities": lambda state: jnp.full(3, 0.5)},
            "probabilities sum to 1.5 after a move",
        ),
        ({"probabilities": lambda state: jnp.full(3, jnp.nan)}, "probabilities sum to nan after a move"),
        ({"probabilities": lambda state: jnp.array([1.5, 0.5, -1.0])}, "the lowest is -1"),
        (
            {"move": lambda state, action: (state._replace(current_player=1 - state.current_player), action == 1)},
            "belongs to another player than the one who moved",
        ),
    ],
)
def test_probabilities_and_afterstates_are_looked_at(changes, sentence):
    found = promises.chance(of(Changed(**changes)))
    assert any(sentence in problem for problem in found), found


def test_a_move_that_differs_from_what_chance_says_is_found():
    environment = of(pig.Pig())
    loaded = environment.chance._replace(probabilities=lambda state: jnp.array([0.0, 0.5, 0.5]))
    (found,) = promises.chance(environment._replace(chance=loaded))
    assert "calls impossible" in found
    other = chance.make_move(environment.chance._replace(resolve=lambda s, o: environment.chance.resolve(s, 2 - o)))
    (found,) = promises.chance(environment._replace(move=other))
    assert "move differs from chance.move followed by chance.resolve" in found
    silent = environment._replace(move=lambda *arguments: environment.move(*arguments)._replace(outcome=None))
    (found,) = promises.chance(silent)
    assert "move does not say in Step.outcome what chance did" in found
    loud = environment._replace(
        move=lambda *a: (step := environment.move(*a))._replace(outcome=jnp.maximum(step.outcome, 0))
    )
    (found,) = promises.chance(loud)
    assert "move differs from chance.move followed by chance.resolve" in found


def test_a_sign_before_chance_acts_is_found():
    environment = of(pig.Pig())
    listed = environment.chance
    after = listed._replace(move=lambda s, a: listed.move(s, a)._replace(discount=jnp.float32(-1)))
    (found, *_) = promises.chance(environment._replace(chance=after, move=chance.make_move(after)))
    assert "chance.move gives the discount -1 before chance acts" in found


def test_shapes_that_differ_between_state_and_afterstate_are_found_before_anything_runs():
    environment = of(pig.Pig())
    listed = environment.chance

    def widened(state, action):
        after = listed.move(state, action)
        return after._replace(state=after.state._replace(gain=after.state.gain.astype(jnp.float32)))

    found = state_shapes.problems(environment._replace(chance=listed._replace(move=widened)))
    assert any("gain is int32[] after init but float32[] after chance.move" in problem for problem in found)
    few = listed._replace(probabilities=lambda state: jnp.ones(2) / 2)
    found = state_shapes.problems(environment._replace(chance=few, move=chance.make_move(few)))
    assert any("chance.probabilities gives float32[2], but must give float32[3]" in problem for problem in found)
    tuples = listed._replace(resolve=lambda state, outcome: (state, 0.0))
    found = state_shapes.problems(environment._replace(chance=tuples))
    assert any("chance.resolve returns tuple, but must return a muzero_jax.types.Step" in problem for problem in found)


def test_symmetries_of_a_game_with_chance_are_refused():
    environment = make_environment("2048")
    symmetries = make_environment("tic_tac_toe").board.symmetries
    turned = environment._replace(board=environment.board._replace(symmetries=symmetries))
    (found,) = promises.symmetries(turned)
    assert "a symmetry would have to turn what chance does as well" in found


def test_a_move_without_its_key_is_refused_in_a_sentence():
    environment = of(pig.Pig())
    state = environment.init(jax.random.key(0))
    with pytest.raises(ValueError, match="chance draws from a key"):
        environment.move(state, jnp.int32(1))
    assert np.asarray(environment.move(state, jnp.int32(1), jax.random.key(0)).outcome) in (0, 1, 2)
