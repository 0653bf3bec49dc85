"""Files on disk: configs, checkpoints, run directories."""
