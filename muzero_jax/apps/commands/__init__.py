"""The commands that users type: train, evaluate, play. `experiments/*.py` and `python -m muzero_jax` start these."""
