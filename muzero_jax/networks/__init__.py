"""The learned model: representation, dynamics and prediction."""
