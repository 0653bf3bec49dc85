"""Measures agents: players, matches, ratings, exact play, fidelity of the model."""
