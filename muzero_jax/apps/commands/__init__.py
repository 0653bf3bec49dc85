"""The commands train, tune, evaluate and play, which `experiments/*.py` and `python -m muzero_jax` start."""
