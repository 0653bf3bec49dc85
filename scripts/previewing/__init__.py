"""Parts of `scripts/preview.py`, which reads programs that were compiled for accelerators elsewhere."""
