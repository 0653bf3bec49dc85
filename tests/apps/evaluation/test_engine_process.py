"""A program on pipes never keeps us waiting, and never outlives us."""

import time

import pytest

from muzero_jax.apps.engines import engine_process
from muzero_jax.apps.engines.engine_process import EngineError
from tests.reference import engines


def answer(process, line, seconds=20.0):
    process.send(line)
    return process.read(time.monotonic() + seconds)


@pytest.fixture
def start():
    """Starts programs, which have ended when the test is over."""
    running = []

    def start(*arguments):
        running.append(engines.started(*arguments))
        return running[-1]

    yield start
    for process in running:
        process.close(politely=False)
        assert engines.is_gone(process._process.pid)


def test_a_line_is_answered_by_a_line(start):
    process = start("gtp")
    assert [answer(process, "name"), answer(process, "protocol_version")] == ["= Fake", ""]


def test_what_it_writes_to_stderr_is_drained(start):
    """A pipe holds 64 KiB: a program whose complaints nobody reads would stop there."""
    process = start("gtp", "--noise", 1_000_000)
    assert answer(process, "name") == "= Fake"


def test_a_program_that_ends_is_named_with_how_it_ended_and_what_it_said(start):
    process = start("gtp", "--then", "die")
    sentence = r"the engine gtp:fake ended \(exit status 3\) when asked 'genmove b'; it said 'out of luck'"
    with pytest.raises(EngineError, match=f"^{sentence}$"):
        answer(process, "genmove b")
    with pytest.raises(EngineError, match=r"ended \(exit status 3\) when asked 'genmove w'"):
        answer(process, "genmove w")


def test_a_program_that_hangs_is_given_up_in_time(start):
    process = start("gtp", "--then", "hang")
    with pytest.raises(EngineError, match="did not answer 'genmove b' in time .--engine-seconds allows more.$"):
        answer(process, "genmove b", seconds=0.2)


def test_a_program_that_never_stops_talking_is_given_up_in_time(start, monkeypatch):
    monkeypatch.setattr(engine_process, "GRACE_SECONDS", 0.1)
    process = start("gtp", "--then", "flood")
    process.send("genmove b")
    deadline = time.monotonic() + 0.3
    with pytest.raises(EngineError, match="did not answer 'genmove b' in time .*; it said 'and another thing"):
        while True:
            process.read(deadline)


def test_a_program_whose_answer_has_no_end_is_given_up(start, monkeypatch):
    monkeypatch.setattr(engine_process, "MOST_ANSWERED", 10)
    process = start("gtp", "--then", "flood")
    process.send("genmove b")
    with pytest.raises(EngineError, match="says more than 10 lines to 'genmove b'"):
        while True:
            process.read(time.monotonic() + 10**20)  # as --engine-seconds may say


def test_a_program_that_obeys_quit_ends_by_itself(start):
    process = start("gtp")
    assert answer(process, "name")
    process.close()
    process.close()
    assert process._process.returncode == 0


def test_a_program_that_does_not_obey_is_killed(start, monkeypatch):
    monkeypatch.setattr(engine_process, "QUIT_SECONDS", 0.1)
    process = start("gtp", "--stays")
    assert answer(process, "name")
    process.close()
    assert process._process.returncode == -9


def test_what_a_wrapper_started_ends_with_it():
    process = engine_process.start(["/bin/sh", "-c", "sleep 60 & echo $!; wait"])
    child = int(process.read(time.monotonic() + 20))
    assert engines.is_alive(child)
    process.close(politely=False)
    assert engines.is_gone(child)


def test_a_file_that_is_no_program_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "engine"
    file.write_text("no program")
    with pytest.raises(EngineError, match="^the engine mine cannot be started: Permission denied$"):
        engine_process.start([str(file)], "mine")


def test_what_it_says_is_quoted_without_control_characters_and_not_at_length(start):
    process = start("gtp", "--then", f"say \x1b[31m{'a' * 500}")
    assert answer(process, "genmove b") == "[31m" + "a" * 500
    with pytest.raises(EngineError) as error:
        process.read(time.monotonic())
    assert "aaa...'" in str(error.value) and len(str(error.value)) < 300
