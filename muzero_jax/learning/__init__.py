"""The steps of `training.train_iteration`: self-play, replay, targets, losses, gradient steps."""
