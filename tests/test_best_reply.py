"""The best reply against opponents whose best reply is known: a perfect one, and one that moves at random."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.environment import make_environment
from muzero_jax.legal_actions import uniform_legal_action
from muzero_jax.oracles import hex as hex_oracle
from scripts import best_reply

SIZE = 2
ENVIRONMENT = make_environment("hex", board_size=SIZE)
ORACLE = hex_oracle.make_oracle(SIZE)
move = jax.jit(lambda state, action: ENVIRONMENT.move(state, action)[0])


def perfect(states, draws):
    """A winning move wherever there is one."""
    results = [ORACLE.action_values(view) for view in np.asarray(jax.vmap(ENVIRONMENT.observe)(states))]
    return jnp.array([max(result, key=result.__getitem__) for result in results])


@jax.jit
def at_random(states, draws):
    """Uniformly over the legal actions."""
    return uniform_legal_action(jax.random.key(draws[0]), states.legal_action_mask)


def best_chance(state, leader):
    """What `leader` wins against `at_random` by the best play, over every line there is."""
    if state.terminated:
        return float(state.rewards[leader] > 0)
    chances = [best_chance(move(state, action), leader) for action in np.flatnonzero(state.legal_action_mask)]
    return max(chances) if state.current_player == leader else float(np.mean(chances))


def test_nobody_who_starts_lost_beats_a_perfect_opponent():
    score = best_reply.best_reply(ENVIRONMENT, ORACLE, perfect, (2, 2), print)
    assert score.as_first == pytest.approx([0, 0])
    assert score.both_seats == pytest.approx([0.5, 0.5])


def test_the_best_reply_to_random_moves_is_that_of_a_search_through_every_line(capsys):
    empty = ENVIRONMENT.init(jax.random.key(0))
    openings = [move(empty, action) for action in range(SIZE * SIZE)]
    expected = np.mean([best_chance(state, empty.current_player) for state in openings])
    score = best_reply.best_reply(ENVIRONMENT, ORACLE, at_random, (2000, 1000), print)
    assert 0.3 < expected < 0.95
    assert score.as_first == pytest.approx([expected, expected], abs=0.03)
    assert "MCTS errs in" in capsys.readouterr().out


def test_without_a_sample_there_is_one_sentence(capsys):
    with pytest.raises(ValueError, match="asked at least once"):
        best_reply.main(["--board-size", "2", "--samples", "0"])
