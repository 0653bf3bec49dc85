"""Where an agent plays: two CPU devices stand for an accelerator and the CPU beside it, and the clock is ours."""

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.commands import play
from muzero_jax.apps.play import placement

ACCELERATOR, CPU = jax.devices()


@pytest.fixture(autouse=True)
def no_default_device():
    yield
    jax.config.update("jax_default_device", None)


class Watch:
    """A clock that goes on by what a search takes on the default device, ten times that where it compiles."""

    def __init__(self, seconds):
        self.now, self._seconds, self.searches = 0.0, seconds, []

    def __call__(self):
        return self.now

    def search(self, player=None):
        device = jnp.zeros(()).device
        self.now += self._seconds[device] * (1 if device in self.searches else 10)
        self.searches.append(device)


def placed(watch, devices=(ACCELERATOR, CPU)):
    said = []
    player = placement.place(lambda device: f"on {device.id}", watch.search, devices, said.append, clock=watch)
    return player, said


@pytest.mark.parametrize("seconds, fastest", [((0.03, 0.01), CPU), ((0.01, 0.03), ACCELERATOR), ((0.5, 0.4), CPU)])
def test_the_agent_plays_where_a_search_takes_least_and_the_line_says_why(seconds, fastest):
    watch = Watch(dict(zip((ACCELERATOR, CPU), seconds, strict=True)))
    player, said = placed(watch)
    assert player == f"on {fastest.id}" and jnp.zeros(()).device == fastest
    (line,) = said
    assert line.startswith("playing on the CPU")  # both are, here
    assert [f"{1000 * s:.1f} ms" in line for s in seconds] == [True, True], "compilation counts for nothing"


def test_with_a_cpu_alone_nothing_is_measured_said_or_changed():
    watch = Watch({})
    assert placement.candidates() == [ACCELERATOR]
    assert placed(watch, placement.candidates()) == ("on 0", [])
    assert watch.searches == [] and jax.config.jax_default_device is None


class FakeAccelerator:
    platform = "gpu"


def test_the_candidates_are_the_accelerator_and_the_cpu_unless_jax_was_told_to_do_without(monkeypatch):
    accelerator, everything = FakeAccelerator(), jax.devices
    monkeypatch.setattr(jax, "devices", lambda kind=None: everything(kind) if kind else [accelerator])
    assert placement.candidates() == [accelerator, CPU.client.devices()[0]]

    def accelerator_alone(kind=None):
        if kind:
            raise RuntimeError("Unknown backend cpu")
        return [accelerator]

    monkeypatch.setattr(jax, "devices", accelerator_alone)
    assert placement.candidates() == [accelerator]


def test_a_command_on_auto_plays_on_the_faster_device_and_says_so_on_stderr_alone(untrained_run, monkeypatch, capsys):
    monkeypatch.setattr(placement, "candidates", lambda: [ACCELERATOR, CPU])
    monkeypatch.setattr(placement, "median_seconds", lambda search, clock: search() or 1.0 - jnp.zeros(()).device.id)
    position, thinker, _ = play.load(play.Arguments(run=untrained_run))
    position = position.play(thinker.analyse(position).action)
    assert position.state.observation.device == thinker.analyse(position).tree.visits.device == CPU
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1 and "playing on the CPU" in output.err
    jax.config.update("jax_default_device", None)
    play.load(play.Arguments(run=untrained_run, device="cpu"))
    assert jax.config.jax_default_device is None and capsys.readouterr().err == ""
