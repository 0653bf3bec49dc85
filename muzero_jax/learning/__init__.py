"""What `training.train_iteration` is made of: self-play, replay, targets, losses, gradient steps."""
