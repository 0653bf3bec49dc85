"""Input from outside that is slightly wrong is read, or refused with one error message that names it.

The short tests try 10 examples of each surface, the same in every run; the slow ones 300, others in every run.
"""

import contextlib
import functools
import io
import json
import math
import re

import hypothesis
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import strategies as st
from starlette.testclient import TestClient

from muzero_jax.agent import load_agent
from muzero_jax.apps.engines import gtp, protocol, uci
from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.config import config_file, validation
from muzero_jax.config.config import Config, describe
from muzero_jax.storage import agent_file
from tests.reference.play import fake_thinker, notation, opening

PIECES = [*"\0|\r|\n|\x1b[2J|٣|\\|[|]|(;|../|-1|1e999|nan|null".encode().split(b"|"), b"\xff", b"9" * 5000, b"[" * 3000]
ODD = st.sampled_from([0, -1, 2**64, math.inf, math.nan, "", "mine.py", "../mine.py", "/dev/zero", "a\0.py", None, []])


@st.composite
def disturbed(draw, contents):
    """Half of the contents as they are; others with an odd piece, a part cut out, or twice, or without an end."""
    content = draw(contents)
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        place, length = draw(st.integers(0, len(content))), draw(st.integers(0, 20))
        before, after = content[:place], content[place:]
        changed = [before + draw(st.sampled_from(PIECES)) + after, before + after[length:], content + after, before]
        content = draw(st.sampled_from(changed))
    return content


@st.composite
def edited(draw, tree):
    """JSON of a dict, or of one of its inner dicts, with up to two values that are odd or of no known key."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from([tree, *(inner for inner in tree.values() if isinstance(inner, dict))]))
        place[draw(st.sampled_from([*place, ""]))] = draw(ODD)
    return json.dumps(tree).encode()


def fuzzed(strategy):
    """Makes a check of (example, a folder of its own) two tests, a short one and a slow one."""

    def decorate(check):
        @pytest.mark.parametrize("examples", [10, pytest.param(300, marks=pytest.mark.slow)])
        def test(examples, tmp_path):
            usual = {"database": None, "deadline": None, "suppress_health_check": list(hypothesis.HealthCheck)}
            settings = hypothesis.settings(max_examples=examples, derandomize=examples == 10, **usual)
            with contextlib.chdir(tmp_path):  # where a relative path leads to the trap, too
                settings(hypothesis.given(strategy)(lambda example: check(example, tmp_path)))()

        return test

    return decorate


def read(call, name=""):
    """What a call returns; None if it refuses by a ValueError of one printable line that holds the name."""
    try:
        return call()
    except ValueError as error:
        assert str(name) in str(error) and 3 < len(str(error)) < 2000 and str(error).isprintable(), str(error)


# --- files ------------------------------------------------------------------------------------------------------------

USUAL = json.loads(config_file.to_json(Config(env="tic_tac_toe")))
CONFIGS = disturbed(st.sampled_from(["hex", "mine.py"]).flatmap(lambda env: edited(USUAL | {"env": env})))


@st.composite
def agent_files(draw):
    """A file in the format of safetensors: of a config that is a little wrong, or of bytes that are."""
    metadata = {"format": agent_file.FORMAT, "format_version": "1", "name": "x", "iteration": "7"}
    metadata["config"] = draw(CONFIGS).decode("utf-8", "replace")
    content = safetensors.numpy.save({"['bias']": np.zeros(3, np.float32)}, metadata)
    return draw(st.just(content) | disturbed(st.just(content)))


@fuzzed(agent_files())
def test_a_damaged_agent_file_is_read_or_refused_and_runs_no_code(content, folder):
    """A config that can be read survives writing and reading."""
    mark = f"open({str(folder / 'mark')!r}, 'w').close()"
    (folder / "mine.py").write_text(f"{mark}\ndef make(*_, **__): raise SystemExit\nmake_model = change = make\n")
    file = folder / "x.safetensors"
    file.write_bytes(content)
    stored = read(lambda: agent_file.read(file), file)
    if stored is not None:
        assert config_file.from_json(config_file.to_json(stored.config)) == stored.config and describe(stored.config)
        read(lambda: validation.validate(stored.config))
        if stored.config.own_files:
            assert read(lambda: load_agent(file)) is None
    assert not (folder / "mark").exists()


# --- protocols --------------------------------------------------------------------------------------------------------

ARGUMENTS = """b w blue a1 c3 1a swap-pieces resign 0 4 -1 7.5 1e999 nan ９ /dev/zero ~/x infinite nodes movetime btime
    searchmoves 0000 name value Simulations fen 5/5/5/5/5 - startpos moves 99999999999999999999""".split()
GTP = """play genmove reg_genmove all_legal_moves komi known_command boardsize time_left time_settings loadsgf name quit
    list_commands clear_board undo showboard final_score muzero-policy muzero-value muzero-variation # 7 007"""
UCI = "position position go go setoption uci isready ucinewgame stop ponderhit quit debug"
PLAYS = "play b a1|play w b2|play b resign|genmove w|7 play w swap-pieces|position startpos moves a1 b2|go".split("|")


def lines(commands):
    """Several lines of a command and some arguments, as a session reads them."""
    line = st.tuples(st.sampled_from(commands.split()), st.lists(st.sampled_from(ARGUMENTS), max_size=3))
    line = disturbed((st.sampled_from(PLAYS) | line.map(lambda line: " ".join([line[0], *line[1]]))).map(str.encode))
    text = st.lists(line, min_size=1, max_size=8).map(b"\n".join)
    return text.map(lambda text: list(protocol.read_lines(io.BytesIO(text))))


@functools.cache
def thinker():
    """An agent whose programs are compiled once: it has two budgets."""
    found = fake_thinker(num_simulations=4, most_simulations=4)
    found.nearest = lambda budget: 4 if budget > 1 else 1
    return found


@fuzzed(lines(GTP))
def test_every_gtp_command_gets_one_well_formed_answer(lines, folder):
    """No answer is an internal error, and a refused command leaves the position as it was."""
    session = gtp.GtpSession(opening("hex"), thinker(), notation("hex"))
    for line in lines:
        (number, command), before = gtp.parse(line), session.position
        answer = session.answer(line)
        assert (answer is None) == (not number and not command)
        if answer is not None:
            assert re.fullmatch(r"[=?][0-9]* [^\n\x00-\x08\x0b-\x1f]*(\n[^\n]+)*\n\n", answer), answer
            assert answer[1:].startswith(number) and "internal error" not in answer, (line, answer)
            assert answer[0] == "=" or session.position is before


@fuzzed(lines(UCI))
def test_every_uci_line_gets_well_formed_answers(lines, folder):
    """As with GTP; every `go` gives a move now, or holds it for `stop`."""
    session = uci.UciSession(opening("tic_tac_toe"), thinker(), notation("tic_tac_toe"))
    for line in lines:
        before, answer = session.position, session.answer(line)
        kinds = r"(info|bestmove|id|option|uciok|readyok)\b[^\n\x00-\x08\x0b-\x1f]*\n"
        assert re.fullmatch(f"({kinds})*", answer) and "internal error" not in answer, (line, answer)
        assert "info string" not in answer or session.position is before
        if line.split()[:1] == ["go"]:
            assert ("bestmove" in answer) != (session.held is not None), (line, answer)


FIELDS = {"move": "a1", "ply": 0, "num_simulations": 1, "colour": 1, "seat": 1, "overlay": "prior"}
ORDERS = st.sampled_from(sorted(web_server.ORDERS)).flatmap(
    lambda order: st.tuples(
        st.just("POST"),
        st.just(f"/api/{order}"),
        st.just({}),
        disturbed(edited({name: FIELDS[name] for name in web_server.ORDERS[order].__struct_fields__})),
    )
)
PATHS = ["/api/play", "/api/nothing", "/api/state", "/", "/%2e%2e/x", "/api/"]
HEADERS = [{}, {"host": "example.org"}, {"content-type": "text/plain"}, {"origin": "http://example.org"}]
REQUESTS = ORDERS | st.tuples(*map(st.sampled_from, ("POST GET HEAD DELETE".split(), PATHS, HEADERS, [b"", b"{}"])))


@fuzzed(st.lists(REQUESTS, min_size=1, max_size=5))
def test_every_web_request_succeeds_or_gets_a_4xx_error_that_changes_nothing(requests, folder):
    game = WebGame(opening("hex"), thinker(), notation("hex"))
    json_body = {"content-type": "application/json"}
    client = TestClient(web_server.make_app(game), base_url="http://localhost", headers=json_body)
    for method, path, headers, content in requests:
        before = game.position
        answer = client.request(method, path, headers=headers, content=content)
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
        if answer.status_code != 200:
            assert method == "HEAD" or 5 < len(answer.json()["error"]) < 300
            assert game.position is before
