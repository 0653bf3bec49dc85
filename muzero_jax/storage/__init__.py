"""What lies on disk: configs, checkpoints, run directories."""
