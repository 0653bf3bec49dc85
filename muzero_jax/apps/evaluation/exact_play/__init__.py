"""Solvers of small games: the value of a position after each legal move, under perfect play."""
