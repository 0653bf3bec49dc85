"""An agent that never compiles: it plays the first legal move on an odd budget and the last on an even one."""

import numpy as np

from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.types import SearchOutput


class QuickThinker(Thinker):
    """The thinker itself, but for the compiled program of a search: an example costs no compilation at any budget."""

    def __init__(self):
        super().__init__(lambda budget: None, _no_head, None, num_simulations=4)  # type: ignore

    def _compile(self, budget):
        def think(params, state, mask):
            mask = np.asarray(mask)
            legal = np.flatnonzero(mask)
            policy = (mask / mask.sum()).astype(np.float32)
            return (legal[0] if budget % 2 else legal[-1], policy, np.float32(0.25), policy, np.float32(0.5)), None

        return think


def _no_head(params, key, position):
    mask = position.legal_action_mask
    return SearchOutput(None, mask / mask.sum(axis=1, keepdims=True), mask[:, 0] * 0.0)
