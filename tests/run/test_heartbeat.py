"""What the watchdog reads: the phase, since when, and the seconds that chunks take."""

from muzero_jax.apps.commands import guard
from muzero_jax.run import heartbeat


def test_the_usual_seconds_are_the_mean_of_the_chunks_that_ended(tmp_path, monkeypatch):
    clock = iter([10.0, 13.0, 14.0, 19.0])
    monkeypatch.setattr(heartbeat, "_file", str(tmp_path / "phase"))
    monkeypatch.setattr(heartbeat, "_chunks", [0, 0.0])
    monkeypatch.setattr(heartbeat, "_since", [0.0, ""])
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: next(clock))
    for name in (heartbeat.CHUNK, "saving", heartbeat.CHUNK, "an evaluation"):
        heartbeat.phase(name)
    beat = guard.read(tmp_path / "phase")
    assert (beat.phase, beat.usual_seconds) == ("an evaluation", (3 + 5) / 2) and beat.seconds_ago < 60


def test_without_a_watchdog_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    heartbeat.phase(heartbeat.CHUNK)
    assert list(tmp_path.iterdir()) == []
