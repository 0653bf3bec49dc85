"""Files on disk: agents, checkpoints, run directories."""
