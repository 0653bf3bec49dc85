"""The host's loop alone: what it asks for between chunks, with all around it replaced."""

from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest

from muzero_jax.run import processes
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.driver import Chunk
from muzero_jax.run.loop import Loop
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import Checkpointer
from tests.reference.tiny_run import CONFIG


@pytest.mark.parametrize("num_processes, matches", [(1, 3), (2, 0)])
def test_several_processes_play_no_match_while_they_train(num_processes, matches, monkeypatch, tmp_path):
    """Though the config asks for matches after every minute, which is how long a chunk takes here."""
    monkeypatch.setattr(processes, "count", lambda: num_processes)
    evaluation = replace(CONFIG.evaluation, interval_minutes=1.0)
    config = replace(CONFIG, minutes=3.0, evaluation=evaluation, iterations_per_chunk=1)
    configs.save(config, tmp_path)  # else the folder counts as deleted
    clock, totals = MagicMock(spec=Clock, minutes=0.0), MagicMock(spec=Totals)
    reporter = MagicMock(clock=clock, totals=totals, callbacks=MagicMock(error=None))
    reporter.spent.return_value = totals.add.return_value = {}
    held, versions = MagicMock(), MagicMock()
    checkpoints = MagicMock(spec=Checkpointer, directory=tmp_path)
    loop = Loop(
        config,
        MagicMock(checkpoint_minutes=0.0),
        tmp_path,
        held,
        versions,
        compiling=MagicMock(),
        checkpoints=checkpoints,
        reporter=reporter,
        profiler=MagicMock(),
        interrupt=MagicMock(requested=False),
    )
    steps = loop.run(1)
    asked = [next(steps)]
    with pytest.raises(StopIteration) as end:
        for minutes in (1.0, 2.0, 3.0):
            clock.minutes = minutes
            asked.append(steps.send(Chunk({}, 60.0, minutes, is_typical=True)))
    np.testing.assert_allclose(asked, [[0], [1 / 3], [2 / 3]])
    assert end.value.value == 4
    assert versions.measure.call_count == matches
    checkpoints.save.assert_called()
