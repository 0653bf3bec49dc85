"""Other sources of a new run: stored games to learn from, and weights to begin with."""
