"""A replay buffer that forgets nothing: all frames ever added, in a list, and windows looked up by time."""

import numpy as np


class Replay:
    """Frames are counted from the first one added; `capacity` is how many of the newest may be used."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.ends = []  # [time][game], whether the game ended there

    def add(self, ended):
        """Adds a rollout's ends, [T, B]."""
        self.ends.extend(np.asarray(ended))

    def start_weights(self, window_length, unroll_steps, end_weight):
        """Weight by (time, game) of every window that may be sampled."""
        total = len(self.ends)
        weights = {}
        for time in range(max(0, total - self.capacity), total - window_length + 1):
            for game in range(len(self.ends[0])):
                has_end = any(self.ends[time + k][game] for k in range(unroll_steps))
                weights[time, game] = end_weight if has_end else 1
        return weights
