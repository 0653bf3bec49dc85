"""One operation of Orbax: of all processes together, or of one alone."""

import jax
from orbax.checkpoint import v1 as ocp


def options(*, is_alone: bool) -> ocp.Context:
    """Orbax's options; `is_alone` keeps it from waiting for other processes."""
    context = ocp.Context()
    if is_alone and jax.process_count() > 1:
        context.multiprocessing.primary_host = jax.process_index()
        context.multiprocessing.active_processes = {jax.process_index()}
    return context
