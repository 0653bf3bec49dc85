"""Tree search over a simulator: Gumbel MuZero and PUCT MuZero."""
