"""The host's part of a run: the loop around the compiled program, and what it shows and writes."""
