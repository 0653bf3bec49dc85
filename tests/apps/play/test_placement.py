"""Where an agent plays: two CPU devices stand for an accelerator and the CPU beside it, and the clock is ours."""

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.commands import play
from muzero_jax.apps.play import placement, thinking
from tests.reference.play import fake_thinker

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
    assert [f"{1000 * s:.1f} ms" in line for s in seconds] == [True, True]


def test_compilation_counts_for_nothing_and_the_time_is_a_fraction_of_a_second():
    watch = Watch({ACCELERATOR: 0.011, CPU: 0.02})
    _, (line,) = placed(watch)
    assert line.endswith("CPU 11.0 ms, CPU 20.0 ms") and jnp.zeros(()).device == ACCELERATOR
    assert watch.now == pytest.approx(10 * (0.011 + 0.02) + 2 * placement.TIMED_SECONDS, abs=0.04)


def test_one_slow_call_does_not_decide():
    watch = Watch({CPU: 0.01})
    delays = iter([0, 5.0, 0, 0])  # the first call compiles

    def search():
        watch.search()
        watch.now += next(delays, 0)

    with jax.default_device(CPU):
        assert placement.median_seconds(search, watch) == pytest.approx(0.01)
    assert len(watch.searches) == 4


def test_measuring_draws_none_of_the_moves_that_the_seed_foretells(untrained_run, monkeypatch):
    monkeypatch.setattr(thinking, "make_thinker", lambda agent, **options: fake_thinker(**options))
    arguments = play.Arguments(run=untrained_run, temperature=1.0, seed=5, num_simulations=4)

    def moves(devices):
        monkeypatch.setattr(placement, "candidates", lambda: devices)
        position, thinker, _ = play.load(arguments)
        return [thinker.analyse(position).action for _ in range(8)]

    assert moves([ACCELERATOR, CPU]) == moves([ACCELERATOR])


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
