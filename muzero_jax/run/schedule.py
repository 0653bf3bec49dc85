"""The span of the learning rate's schedule, which lies in the state because a run's pace decides it."""

import jax
import numpy as np

from muzero_jax.types import TrainState


def with_span(state: TrainState, span: int) -> TrainState:
    """The state with another span of the learning rate's schedule, where the old one lay."""
    placed = jax.device_put(np.int32(span), state.learner.schedule_span.sharding)
    return state._replace(learner=state.learner._replace(schedule_span=placed))
