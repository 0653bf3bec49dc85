"""MuZero as one accelerated JAX program: pgx games, mctx search, Flax networks, an Optax learner."""

__version__ = "0.1.0"
