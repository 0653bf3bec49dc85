"""Pig by value iteration in plain NumPy: the exact probability of winning, for whoever is to move."""

import numpy as np


def win_probability(target, faces=3):
    """[own points, other's points, gain of this turn] -> probability that the player to move wins; NaN after the end.

    Roll: a 1 gives the turn away, any other face adds to the gain, and reaching the target wins at once. Hold, after a
    gain: it is kept, and the other player is to move.
    """
    own, other, gain = np.indices((target, target, target))
    possible = own + gain < target
    chance = np.where(possible, 0.5, np.nan)
    for _ in range(10_000):
        better = np.maximum(roll(chance, faces), hold(chance))
        better = np.where(possible, better, np.nan)
        if np.nanmax(np.abs(better - chance)) < 1e-12:
            return better
        chance = better
    raise AssertionError("value iteration did not converge")


def roll(chance, faces=3):
    """The probability of winning by rolling now and playing well then."""
    target = len(chance)
    own, other, gain = np.indices(chance.shape)
    total = 1 - chance[other, own, 0]  # a 1
    for face in range(2, faces + 1):
        wins = own + gain + face >= target
        total = total + np.where(wins, 1.0, chance[own, other, np.minimum(gain + face, target - 1)])
    return total / faces


def hold(chance):
    """The probability of winning by holding now; -1 where nothing was gained, so that holding is not legal."""
    own, other, gain = np.indices(chance.shape)
    return np.where(gain > 0, 1 - chance[other, np.minimum(own + gain, len(chance) - 1), 0], -1.0)
