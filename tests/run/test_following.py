"""How process 0 leads the others, and how they follow; `commands.test_distributed` has real processes."""

import signal
from types import SimpleNamespace
from unittest.mock import Mock

from muzero_jax.apps.evaluation import matches
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import following, processes
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.types import TrainState
from tests.run.conftest import DRAWN

PLAY = Arena.play


def test_process_0_speaks_while_it_plays_the_final_matches(session, monkeypatch):
    """XLA lets the others wait for its next word for 30 minutes at most, and a match may take longer."""
    told = []
    monkeypatch.setattr(processes, "tell", lambda word, argument=0: told.append(word))

    def play(params_a, params_b, key, report):
        report(0, 4)
        report(2, 4)
        return ()

    monkeypatch.setattr(Arena, "_make_match", lambda *_: SimpleNamespace(play=play, stochastic=False))
    monkeypatch.setattr(Arena, "play", PLAY)
    monkeypatch.setattr(matches, "summarise", lambda *_, **__: DRAWN)
    assert session(max_iterations=4).summary["strength"] == {"random": DRAWN}
    assert told == [following.RUN_CHUNK, following.RUN_CHUNK, following.WAIT, following.WAIT, following.END]


def test_the_others_do_what_they_are_told_and_wait_on(monkeypatch):
    words = iter([following.WAIT, following.RUN_CHUNK, following.WAIT, following.RUN_CHUNK, following.END])
    monkeypatch.setattr(processes, "listen", lambda: (next(words), 0))
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # they would ignore Ctrl-C from now on
    program = Mock(return_value=(Mock(spec=TrainState), {}))
    following.follow(program, Mock(spec=Checkpointer), Mock(spec=TrainState), 2)
    assert program.call_count == 2 and next(words, None) is None
