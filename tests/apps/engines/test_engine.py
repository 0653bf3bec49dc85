"""A program on pipes never keeps us waiting, and never outlives us."""

import sys
import time

import pytest

from muzero_jax.apps.engines import engine
from muzero_jax.apps.engines.engine import EngineError, EngineProcess
from tests.reference import engines


def answer(process, line):
    process.send(line, is_move=True)
    return process.read()


@pytest.fixture
def start():
    """Starts programs, which have ended when the test is over."""
    running = []

    def start(*arguments, **options):
        running.append(engines.started("gtp", *arguments, **options))
        return running[-1]

    yield start
    for process in running:
        process.close(politely=False)
        assert engines.is_gone(process._process.pid)


def test_a_line_is_answered_by_a_line(start):
    process = start()
    assert [answer(process, "name"), answer(process, "protocol_version")] == ["= Fake", ""]


def test_megabytes_on_stderr_stop_nobody(start):
    """A pipe holds 64 KiB: a program whose complaints nobody reads would stop there."""
    process = start("--noise", 5_000_000)
    assert [answer(process, "name"), answer(process, "version")] == ["= Fake", ""]


def test_a_program_that_ends_is_named_with_how_it_ended_and_what_it_said(start):
    process = start("--then", "die")
    for command in ("genmove b", "genmove w"):  # it stays so
        with pytest.raises(EngineError, match=rf"gtp:fake ended \(exit status 3\) .* '{command}'; .*'out of luck'$"):
            answer(process, command)


@pytest.mark.parametrize(
    "then, seconds, fault",
    [
        ("hang", 0.3, "'genmove b' in time .--engine-seconds"),
        ("flood", 0.3, "'genmove b' in time .*'and another thing"),
        ("flood", 1e20, "10,000 bytes"),
    ],
)
def test_a_program_that_does_not_answer_is_given_up(start, monkeypatch, then, seconds, fault):
    monkeypatch.setattr(engine, "GRACE_SECONDS", 0.1)
    if seconds > 1:
        monkeypatch.setattr(engine, "MOST_BYTES", 10_000)
    process, begin = start("--then", then, seconds=seconds), time.monotonic()
    process.send("genmove b", is_move=True)
    with pytest.raises(EngineError, match=fault):
        while True:
            process.read()
    assert time.monotonic() < begin + 10.0


def test_a_program_that_obeys_quit_ends_by_itself(start):
    process = start()
    assert answer(process, "name")
    process.close()
    process.close()
    assert process._process.returncode == 0


def test_a_program_that_does_not_obey_is_killed(start, monkeypatch):
    monkeypatch.setattr(engine, "QUIT_SECONDS", 0.1)
    process = start("--stays")
    assert answer(process, "name")
    process.close()
    assert process._process.returncode == -9


@pytest.mark.parametrize("end", ["wait", "exit"])
def test_what_a_wrapper_started_ends_with_it(end):
    process = EngineProcess(["/bin/sh", "-c", f"sleep 60 >&- 2>&- & echo $!; {end}"], "wrapped", seconds=20.0)
    child = int(process.read())
    assert engines.is_alive(child)
    if end == "exit":
        with pytest.raises(EngineError, match="exit status 0"):
            process.read()
    process.close(politely=False)
    assert engines.is_gone(child)


def test_a_file_that_is_no_program_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "engine"
    file.write_text("no program")
    with pytest.raises(EngineError, match="mine cannot be started: Permission denied$"):
        EngineProcess([str(file)], "mine", seconds=20.0)


def test_what_it_says_is_quoted_without_control_characters_and_not_at_length(start):
    process = start("--then", f"say \x1b[31m{'a' * 500}", seconds=0.3)
    with pytest.raises(EngineError) as error:
        assert answer(process, "genmove b") == "[31m" + "a" * 500
        process.read()
    assert "aaa...'" in str(error.value) and len(str(error.value)) < 300


def test_a_line_without_an_end_is_read_when_its_program_ends():
    process = EngineProcess([sys.executable, "-c", "print('bye', end='')"], "brief", seconds=20.0)
    assert process.read() == "bye"
    with pytest.raises(EngineError, match="ended"):
        process.read()
    process.close()
