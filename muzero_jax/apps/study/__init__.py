"""Several runs: seeds together in one program, comparison, tuning, live plots."""
