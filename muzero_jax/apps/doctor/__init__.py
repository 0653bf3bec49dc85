"""What is wrong with a run: measurements of its records, its games and its learning, and what they mean."""
