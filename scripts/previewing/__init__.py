"""What `scripts/preview.py` reads from programs that were compiled for accelerators which are not there."""
