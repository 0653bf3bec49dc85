"""What games of random play say of an environment."""

import numpy as np

from muzero_jax.games import random_play
from muzero_jax.games.random_play import Moves


def test_the_mean_return_is_of_whole_games_or_there_is_none():
    """A game of two points in two moves, and one of a point a move that is broken off after three or ends there."""
    over = np.array([[False, False], [False, False], [True, False]])
    for last, mean in ((True, 2.5), (False, None)):
        is_last = np.array([[False, False], [True, False], [True, last]])
        moves = Moves(**dict.fromkeys(Moves._fields))._replace(over=over, reward=np.ones((3, 2)), is_last=is_last)
        assert random_play.mean_return(moves) == mean, "those that end early are no fair sample"
