"""One operation of Orbax: of all processes together, or of one alone."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from orbax.checkpoint import v1 as ocp

_alone = itertools.count(1 << 20)


@contextmanager
def options(*, is_alone: bool) -> Iterator[Any]:
    """Orbax's options for one operation; `is_alone` keeps it from waiting for other processes.

    Each process numbers its operations, and the barriers of all are called by that number. So where there are several,
    an operation that one does alone gets numbers of its own, and leaves the common ones as they were.
    """
    context = ocp.Context()
    if not is_alone or jax.process_count() == 1:
        yield context
        return
    from orbax.checkpoint._src.futures import synchronization  # there is no public way; one process never comes here

    context.multiprocessing.primary_host = jax.process_index()
    context.multiprocessing.active_processes = {jax.process_index()}
    ids = synchronization.OperationIdGenerator
    before = ids._operation_id_counter, ids._operation_id
    ids._operation_id_counter = _alone
    try:
        yield context
    finally:
        ids._operation_id_counter, ids._operation_id = before
