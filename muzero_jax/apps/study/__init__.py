"""Several runs: comparison, tuning, live plots."""
