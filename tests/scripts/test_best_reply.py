"""The best reply against opponents whose best reply is known: a perfect one, and ones that move at random."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.apps.evaluation.exact_play import hex_solver
from muzero_jax.games.environment import make_environment
from muzero_jax.ops.legal_actions import uniform_legal_action
from scripts import best_reply

SIZE = 3
ENVIRONMENT = make_environment("hex", board_size=SIZE)
ORACLE = hex_solver.make_oracle(SIZE)
EMPTY = ENVIRONMENT.init(jax.random.key(0))
move = jax.jit(lambda state, action: ENVIRONMENT.move(state, action).state)


@functools.cache
def good_moves(view):
    """The moves that win, where any does, of an observation's bytes."""
    values = ORACLE.action_values(np.frombuffer(view, bool).reshape(ENVIRONMENT.observation_shape))
    return [action for action, value in values.items() if value == max(values.values())]


def choices(state, first_error):
    """What an opponent moves alike often that is perfect as long as there are fewer stones."""
    view = np.asarray(ENVIRONMENT.observe(state))
    if view[..., :2].sum() < first_error:
        return good_moves(view.tobytes())
    return np.flatnonzero(state.legal_action_mask).tolist()


def opponent(first_error):
    """Samples `choices`."""

    @jax.jit
    def at_random(states, draws, allowed):
        return uniform_legal_action(jax.random.key(draws[0]), allowed)

    def act(states, draws):
        views, allowed = np.asarray(states.observation), np.array(states.legal_action_mask)
        for row in np.flatnonzero(views[..., :2].sum((1, 2, 3)) < first_error):
            allowed[row] = np.isin(np.arange(allowed.shape[1]), good_moves(views[row].tobytes()))
        return at_random(states, draws, jnp.asarray(allowed))

    return act


def best_chance(first_error):
    """What the best first player wins, over every line there is."""
    known = {}

    def chance(state):
        if state.terminated:
            return float(state.rewards[EMPTY.current_player] > 0)
        name = np.asarray(state.observation).tobytes(), int(state.current_player)
        if name not in known:
            if state.current_player == EMPTY.current_player:
                legal = np.flatnonzero(state.legal_action_mask)
                known[name] = max(chance(move(state, action)) for action in legal)
            else:
                known[name] = np.mean([chance(move(state, action)) for action in choices(state, first_error)])
        return known[name]

    return np.mean([chance(move(EMPTY, action)) for action in range(SIZE * SIZE)])


def best_reply_to(first_error, samples, say=print):
    return best_reply.best_reply(ENVIRONMENT, ORACLE, opponent(first_error), samples, say)


def test_nobody_who_starts_lost_beats_a_perfect_opponent():
    score = best_reply_to(SIZE * SIZE, (2, 2))
    assert score == pytest.approx([0, 0])


def test_the_best_reply_to_errors_that_come_late_is_that_of_a_search_through_every_line(capsys):
    """Before the fourth stone no move is an error, so what matters lies beyond positions without any."""
    expected = best_chance(first_error=4)
    score = best_reply_to(4, (100, 100, 100, 50))
    assert 0.3 < expected < 0.95
    assert score == pytest.approx([expected, expected], abs=0.04)
    assert "it errs in 0.00% of its moves" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags", [["--samples", "0"], ["--board-size", "1"], ["--board-size", "9"], ["--num-simulations", "0"]]
)
def test_bad_input_is_one_sentence(flags, capsys):
    assert report_errors(best_reply.main, flags) == EXIT_ERROR
    error = capsys.readouterr().err
    assert flags[0] in error and error.count("\n") == 1
