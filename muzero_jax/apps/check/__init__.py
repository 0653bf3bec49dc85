"""Checks of the user's own game, network or algorithm: each returns its faults as sentences."""
