"""The host's side of a run: the loop around the compiled program, and what a user sees of it."""
