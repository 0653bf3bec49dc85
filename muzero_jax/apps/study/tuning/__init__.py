"""Tuning by Optuna."""
