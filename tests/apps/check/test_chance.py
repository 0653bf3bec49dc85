"""What is wrong with a game's listed chance is one sentence."""

import jax
import jax.numpy as jnp
import pytest

from examples import pig
from muzero_jax.apps.check import promises
from muzero_jax.games import chance, state_shapes
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import environment_from


def pig_with(**functions):
    """Pig with a mistake."""
    changed = type("Changed", (pig.Pig,), {name: staticmethod(function) for name, function in functions.items()})
    return environment_from(changed(), "pig")


PIG = pig_with()
LISTED = PIG.chance


def moved_by(**functions):
    """Pig whose listed chance has other functions, of which its move is made."""
    changed = LISTED._replace(**functions)
    return PIG._replace(chance=changed, move=chance.make_move(changed))


def with_move(change):
    return PIG._replace(move=lambda *arguments: change(PIG.move(*arguments)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2048", "backgammon"])
def test_2048_and_backgammon_list_their_chance_well(name):
    assert promises.chance(make_environment(name)) == []


def another_player(state, action):
    return state._replace(current_player=1 - state.current_player), action == 1


@pytest.mark.parametrize(
    "environment, words",
    [
        (pig_with(probabilities=lambda state: jnp.full(3, 0.5)), "sum to 1.5"),
        (pig_with(probabilities=lambda state: jnp.full(3, jnp.nan)), "sum to nan"),
        (pig_with(probabilities=lambda state: jnp.array([1.5, 0.5, -1.0])), "the lowest is -1"),
        (pig_with(move=another_player), "belongs to another player"),
        (moved_by(move=lambda s, a: LISTED.move(s, a)._replace(discount=jnp.float32(-1))), "discount -1 before chance"),
        (with_move(lambda step: step._replace(outcome=None)), "Step.outcome"),
        (with_move(lambda step: step._replace(outcome=jnp.maximum(step.outcome, 0))), "move differs from chance.move"),
        (
            PIG._replace(chance=LISTED._replace(probabilities=lambda state: jnp.array([0.0, 0.5, 0.5]))),
            "an outcome that is possible",
        ),
        (
            PIG._replace(chance=LISTED._replace(resolve=lambda state, outcome: LISTED.resolve(state, 2 - outcome))),
            "move differs from chance.move",
        ),
    ],
)
def test_a_mistake_is_named(environment, words):
    found = promises.chance(environment)
    assert any(words in sentence for sentence in found), found


def widened(state, action):
    after = LISTED.move(state, action)
    return after._replace(state=after.state._replace(gain=after.state.gain.astype(jnp.float32)))


@pytest.mark.parametrize(
    "environment, words",
    [
        (PIG._replace(chance=LISTED._replace(move=widened)), "float32[] after chance.move"),
        (moved_by(probabilities=lambda state: jnp.ones(2) / 2), "chance.probabilities gives float32[2]"),
        (PIG._replace(chance=LISTED._replace(resolve=lambda *_: (0.0,))), "chance.resolve returns tuple"),
    ],
)
def test_shapes_that_differ_are_found_before_anything_runs(environment, words):
    assert any(words in problem for problem in state_shapes.problems(environment))


def test_a_move_without_its_key_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="chance draws from a key"):
        PIG.move(PIG.init(jax.random.key(0)), jnp.int32(1))
