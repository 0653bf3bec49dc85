"""What comes from outside, mostly right and a little wrong: it is read, or refused in one sentence that names it.

The short tests try 10 examples of each surface, the same in every run; the slow ones 300, others in every run.
"""

import functools
import io
import json
import math
import re
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from starlette.testclient import TestClient

from muzero_jax import agent as agents
from muzero_jax.apps.engines import gtp, protocol, uci
from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games.game_files import read_games
from muzero_jax.storage import agent_file, checkpoint, run_directory, validation
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config
from tests.reference.play import fake_thinker, notation, opening

PIECES = "\0|\r|\n| |\x1b[2J|\u2028|٣|\\|[|]|(;|../|-1|1e999|nan|null|~no-such-user/x".encode().split(b"|")
PIECES += [b"\xff", b"9" * 5000, b"a" * 70_000, b"[" * 3000]
NUMBERS = [0, -1, 2**31, 2**64, 10**400, 1e300, math.inf, math.nan]
TEXTS = ["", "hex", "mine.py", "../mine.py", "/dev/zero", "~", "\ud800.py", "a\0.py", "agent:../x", "\x1b[2J"]
ODD = st.sampled_from([*NUMBERS, *TEXTS, None, True, [], {}]) | st.text(max_size=5) | st.integers(-10, 1000)
CONFIG = json.loads(configs.to_json(Config(env="tic_tac_toe")))


# --- examples ---------------------------------------------------------------------------------------------------------


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
    """Nested dicts with up to three values changed or taken away, or keys put where none belongs."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw(st.integers(0, 3))):
        place = tree
        while inner := [key for key in place if isinstance(place[key], dict) and place[key]]:
            if draw(st.booleans()):
                break
            place = place[draw(st.sampled_from(inner))]
        key = draw(st.sampled_from([*sorted(place), ""]) | st.text(max_size=8))
        if draw(st.booleans()):
            place[key] = draw(ODD)
        else:
            place.pop(key, None)
    return tree


def as_bytes(tree):
    return json.dumps(tree).encode()


def fuzzed(strategy):
    """Makes a check of (example, a folder of its own) two tests, a short one and a slow one."""

    def decorate(check):
        @pytest.mark.parametrize("examples", [10, pytest.param(300, marks=pytest.mark.slow)])
        def test(examples, tmp_path):
            settings = hypothesis.settings(
                max_examples=examples,
                derandomize=examples == 10,
                database=None,
                deadline=timedelta(seconds=20),
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            settings(hypothesis.given(strategy)(lambda example: check(example, tmp_path)))()

        test.__doc__ = check.__doc__
        return test

    return decorate


def read(call, *names):
    """What a call returns; None if it refuses by a ValueError of one printable line that holds the names."""
    try:
        return call()
    except ValueError as error:
        sentence = str(error)
    assert 3 < len(sentence) < 2000 and sentence.isprintable(), sentence
    assert all(str(name) in sentence for name in names), sentence
    return None


def lay_trap(folder):
    """A Python file that leaves a mark if it runs."""
    mark = f"open({str(folder / 'mark')!r}, 'w').close()"
    (folder / "mine.py").write_text(f"{mark}\ndef make(*_, **__): raise SystemExit\nmake_model = change = make\n")


# --- files ------------------------------------------------------------------------------------------------------------


CONFIGS = disturbed(edited(CONFIG).map(as_bytes))


@fuzzed(CONFIGS)
def test_configs(text, folder):
    """A config is one again after it is written, and no file that it names runs."""
    lay_trap(folder)
    (folder / configs.FILE).write_bytes(text)
    config = read(lambda: configs.inspect(folder), folder / configs.FILE)
    read(lambda: configs.load(folder), folder / configs.FILE)
    if config is not None:
        assert configs.from_json(configs.to_json(config)) == config and configs.describe(config)
        read(lambda: validation.validate(config))
        if config.own_files:
            assert read(lambda: agents.load_agent(folder)) is None
    assert not (folder / "mark").exists()


PARAMS = {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.zeros(3, np.float32)}
ABSTRACT = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, PARAMS))
TENSORS = {
    "['kernel']": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "['bias']": {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]},
}
METADATA = {"format": agent_file.FORMAT, "format_version": "1", "name": "x", "iteration": "7", "config": "{}"}


@st.composite
def agent_files(draw):
    """A file in the format of safetensors."""
    odd = draw(st.sampled_from(["tensors", "metadata", "bytes", "config", "config", "config", "none"]))
    tensors = draw(edited(TENSORS)) if odd == "tensors" else TENSORS
    metadata = draw(edited(METADATA)) if odd == "metadata" else dict(METADATA)
    if odd == "config":
        metadata["config"] = draw(CONFIGS).decode("utf-8", "replace")
    text = as_bytes(tensors | {"__metadata__": metadata})
    content = len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in PARAMS.values())
    return draw(disturbed(st.just(content))) if odd == "bytes" else content


@fuzzed(agent_files())
def test_agent_files(content, folder):
    lay_trap(folder)
    file = folder / "x.safetensors"
    file.write_bytes(content)
    stored = read(lambda: agent_file.read(file), file)
    if stored is not None:
        assert isinstance(stored.config, Config)
        read(lambda: stored.params(ABSTRACT), file)
        if stored.config.own_files:
            assert read(lambda: agents.load_agent(file)) is None
    assert not (folder / "mark").exists()


@functools.cache
def saved():
    """The files of a checkpoint of the weights, by name."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save_params(folder, 7, PARAMS)
        return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


NAMES = [None, "007", "٣", "9" * 200, "-1", "8.saving", "9.orbax-checkpoint-tmp", "mark.py"]


CHANGED = st.deferred(lambda: st.sampled_from(sorted(saved()))).flatmap(
    lambda name: st.tuples(st.just(name), disturbed(st.just(saved()[name])))
)


@fuzzed(st.tuples(CHANGED, st.sampled_from(NAMES), disturbed(st.just(b'{"iteration": 7}'))))
def test_checkpoints(example, folder):
    """Weights of the right shapes or a sentence, whatever lies beside them; nothing there is changed."""
    (changed, content), other, summary = example
    run, checkpoints = folder / "run", folder / "run" / "checkpoints"
    shutil.rmtree(run, ignore_errors=True)
    for name, usual in saved().items():
        (checkpoints / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoints / name).write_bytes(content if name == changed else usual)
    (run / configs.FILE).write_text("{}")
    (run / run_directory.SUMMARY).write_bytes(summary)
    if other:
        (checkpoints / other).mkdir(exist_ok=True)
    before = sorted(run.rglob("*"))
    steps = checkpoint.checkpoint_steps(checkpoints)
    found = read(lambda: checkpoint.restore_params(checkpoints, ABSTRACT, step=7), checkpoints)
    if found is not None:
        assert found[0] in steps and jax.tree.map(np.shape, found[1]) == jax.tree.map(np.shape, PARAMS)
    assert run_directory.versions_in(checkpoints) == [checkpoints / str(step) for step in steps]
    assert run_directory.has_ended(run, 7) in (True, False)
    assert sorted(run.rglob("*")) == before


MOVES = "a1 b2 c3 d4 a2 0 4 16 swap-pieces swap pass resign a0 z9 ٣ 99999999 1-0 a1,b2 # \\] 4:4".split()
PROPERTY = st.tuples(st.sampled_from("B W B W SZ GM AB C PB Black é".split()), st.sampled_from(MOVES))
NODES = st.lists(PROPERTY.map("{0[0]}[{0[1]}]".format), max_size=6).map(lambda each: ";" + ";".join(each))
DEEP = st.sampled_from(["(;B[", "(;(;)[", "(;B[a1]"]).map(lambda piece: piece * 1000)
LINES = st.lists(st.lists(st.sampled_from(MOVES), max_size=6).map(" ".join), max_size=5).map("\n".join)
TREES = st.lists(NODES, min_size=1, max_size=3).map(lambda branches: f"(;SZ[4]({')('.join(branches)}))")
SGF, TEXT = (TREES | NODES.map("({})".format) | DEEP).map(str.encode), LINES.map(str.encode)


@fuzzed(st.tuples(st.just("games.sgf"), disturbed(SGF)) | st.tuples(st.just("games.txt"), disturbed(TEXT)))
def test_game_files(example, folder):
    """Games for training, and the one that `loadsgf` goes to the end of."""
    file = folder / example[0]
    file.write_bytes(example[1])
    games = read(lambda: read_games(file), file)
    assert games is None or all(game.moves and game.name.startswith(str(file)) for game in games)
    answer = gtp.GtpSession(opening("hex"), thinker(), notation("hex")).answer(f"loadsgf {file}")
    assert answer.startswith(("= ", "? cannot load file")), answer


# --- protocols --------------------------------------------------------------------------------------------------------

ARGUMENTS = """b w black blue a1 b2 c3 d4 A1 e1 a0 1a swap-pieces pass resign 0 1 4 -1 7.5 0.0001 1e308 1e999 nan inf
    1_0 ９ /dev/null /dev/zero ~/x infinite ponder depth nodes movetime wtime 60 btime searchmoves e2e4 0000 name value
    Simulations fen 5/5/5/5/5 - startpos moves 99999999999999999999""".split()
GTP = """play genmove reg_genmove all_legal_moves komi known_command boardsize time_left time_settings loadsgf name quit
    list_commands clear_board undo showboard final_score muzero-policy muzero-value muzero-variation # 7 007"""
UCI = "position position go go setoption uci isready ucinewgame stop ponderhit quit debug"
PLAYS = "play b a1|play w b2|play b c3|genmove w|7 play w swap-pieces|position startpos moves a1 b2|go".split("|")


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
def test_gtp(lines, folder):
    """One well-formed answer a command, which is no internal error; what is refused leaves the position as it was."""
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
def test_uci(lines, folder):
    """As GTP; every `go` is answered by a move, now or when it is stopped."""
    session = uci.UciSession(opening("tic_tac_toe"), thinker(), notation("tic_tac_toe"))
    for line in lines:
        before, answer = session.position, session.answer(line)
        kinds = r"(info|bestmove|id|option|uciok|readyok)\b[^\n\x00-\x08\x0b-\x1f]*\n"
        assert re.fullmatch(f"({kinds})*", answer) and "internal error" not in answer, (line, answer)
        assert "info string" not in answer or session.position is before
        if line.split()[:1] == ["go"]:
            assert ("bestmove" in answer) != (session.held is not None), (line, answer)


FIELDS = {"move": "a1", "ply": 0, "num_simulations": 1, "colour": 1, "seat": 1, "overlay": "prior"}
BODIES = {
    order: edited({name: FIELDS[name] for name in fields}).map(as_bytes) for order, fields in web_server.ORDERS.items()
}
ORDERS = st.sampled_from(sorted(BODIES)).flatmap(
    lambda order: st.tuples(st.just("POST"), st.just(f"/api/{order}"), st.just({}), disturbed(BODIES[order]))
)
PATHS = ["/api/play", "/api/nothing", "/api/state", "/", "/tree.svg", "/%2e%2e/x", "/api/"]
HEADERS = [{}, {"host": "example.org"}, {"content-type": "text/plain"}, {"origin": "http://example.org"}]
ODD_REQUESTS = st.tuples(*map(st.sampled_from, ("POST GET HEAD DELETE".split(), PATHS, HEADERS)), BODIES["play"])
REQUESTS = ORDERS | ORDERS | ODD_REQUESTS


@fuzzed(st.lists(REQUESTS, min_size=1, max_size=5))
def test_the_web_api(requests, folder):
    """Every answer has status 200, or 4xx with one sentence, after which the game is as it was."""
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
