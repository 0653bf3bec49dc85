"""The board in the browser, asked as a page asks it: what is answered, what is refused, and who may ask."""

import functools
import socket

import pytest

pytest.importorskip("httpx2", reason="starlette's test client needs httpx2")

from starlette.testclient import TestClient

from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.web_session import WebGame
from tests.apps.play.test_pictures import hand_made_tree
from tests.reference.play import fake_thinker, notation, opening

JSON = {"content-type": "application/json"}


@functools.cache
def shared_game(name):
    return WebGame(opening(name), fake_thinker(favourite=4), notation(name))


def new(name="tic_tac_toe"):
    """A page's connection to a fresh game; one program a game for the whole file."""
    shared_game(name).new()
    return TestClient(web_server.make_app(shared_game(name)), base_url="http://127.0.0.1")


def post(client, order, **fields):
    return client.post(f"/api/{order}", json=fields)


def played(client, text):
    for move in text.split():
        answer = post(client, "play", move=move)
        assert answer.status_code == 200, answer.text
    return client.get("/api/state").json()


def error(answer, status=400):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"} and "Traceback" not in answer.text
    return answer.json()["error"]


# --- the game ---------------------------------------------------------------------------------------------------------


def test_moves_and_swaps_are_played_and_an_illegal_move_changes_nothing():
    client = new()
    state = played(client, "a1")
    assert state["squares"][0] == ["X", ".", "."] and state["to_move"] == 1
    for move in ("a1", "z9"):
        assert move in error(post(client, "play", move=move))
    assert client.get("/api/state").json() == state
    assert "position has changed" in error(post(client, "play", move="c3", ply=0)), "another tab's board is old"
    assert post(client, "agent-move", ply=1).json()["moves"] == ["a1", "b2"]
    swapped = played(new("hex"), "c1 swap-pieces")
    assert swapped["moves"] == ["c1", "swap-pieces"] and swapped["squares"][2][0] == "O" and swapped["swapped"]
    assert "swap-pieces" not in swapped["legal"] and played(new("hex"), "c1")["buttons"] == ["swap-pieces"]


def test_a_finished_game_takes_no_move_but_can_be_taken_back():
    client = new()
    state = played(client, "a1 a2 b1 b2 c1")
    assert (state["result"], state["legal"], state["winning_cells"]) == ("X wins", [], [[0, 0], [0, 1], [0, 2]])
    for order, fields in (("play", {"move": "c3"}), ("agent-move", {}), ("analysis", {})):
        assert error(post(client, order, **fields)).startswith("the game is over")
    assert post(client, "undo", colour=1).json()["moves"] == ["a1", "a2", "b1"], "the other side's answer goes too"
    assert post(client, "undo", colour=0).json()["moves"] == ["a1", "a2"]
    assert post(client, "undo").json()["moves"] == ["a1"]
    assert error(post(new(), "undo", colour=1)) == "there is nothing to take back"


# --- what the agent thinks --------------------------------------------------------------------------------------------


def test_an_analysis_gives_shares_values_and_the_board_with_them(monkeypatch):
    client, game = new(), shared_game("tic_tac_toe")
    played(client, "a1")
    asked, analyse = [], game.thinker.analyse
    monkeypatch.setattr(game.thinker, "analyse", lambda *a, **b: asked.append(b) or analyse(*a, **b))
    found = post(client, "analysis", num_simulations=2).json()
    assert (found["move"], found["ply"], found["num_simulations"]) == ("b2", 1, 2)
    assert "a1" not in found["policy"] and sum(found["policy"].values()) == pytest.approx(1)
    assert found["notes"]["b2"] == "36%" and ">36%</text>" in found["svg"]
    assert found["said"] == "Value for O: +0.02 after 2 simulations, +0.25 at first sight."
    assert found["bar"] == pytest.approx(0.49), "what is good for O is bad for X"
    assert post(client, "analysis", num_simulations=2, overlay="prior").json()["notes"]["b2"] == "12%"
    assert post(client, "agent-move", num_simulations=2).json()["moves"] == ["a1", "b2"]
    assert asked == [{"num_simulations": 2}], "the same question is searched once"


def test_lines_values_and_picture_come_from_the_searchs_tree(monkeypatch):
    client, thinker = new(), shared_game("tic_tac_toe").thinker
    analyse = thinker.analyse
    monkeypatch.setattr(thinker, "analyse", lambda *a, **b: analyse(*a, **b)._replace(tree=hand_made_tree()))
    played(client, "c1")
    found = post(client, "analysis", num_simulations=10, overlay="values").json()
    assert found["values"] == {"b2": 0.5, "a1": -0.25, "c3": 0.0}
    assert found["notes"] == {"b2": "+0.50", "a1": "-0.25", "c3": "+0.00"}
    assert [line["moves"] for line in found["lines"]] == [["b2", "a1"], ["a1", "b1"], ["c3"]]
    picture = client.get("/tree.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml") and "<svg" in picture.text
    played(client, "a3")
    assert client.get("/tree.svg").status_code == 400, "that tree was of another position"


# --- who may ask, and how ---------------------------------------------------------------------------------------------


def test_only_requests_to_a_local_host_name_are_answered():
    client = new()
    for host in ("example.org", "127.0.0.1.example.org", "10.0.0.1:8000"):
        assert client.get("/api/state", headers={"host": host}).status_code == 400
        assert client.post("/api/new", json={}, headers={"host": host}).status_code == 400
    for host in ("127.0.0.1:8000", "localhost:8000", "localhost"):
        assert client.get("/api/state", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "method, path, headers, body, status",
    [
        ("POST", "/api/analysis", JSON, b'{"num_simulations": 1000000000}', 400),
        ("POST", "/api/play", JSON, [b"[" * 9000] * 2, 400),  # too long, in chunks and without a length
        ("POST", "/api/play", JSON, b'{"move": "\\ud800"}', 400),
        ("POST", "/api/look", JSON, b'{"colour": 1}', 400),  # no field of that order
        ("POST", "/api/new", {"content-type": "text/plain"}, None, 415),  # as a form of another site would
        ("POST", "/app.js", {}, None, 405),
        ("GET", "/../web_server.py", {}, None, 404),
        ("GET", "/%00%ff" + "x" * 5000, {}, None, 404),
        ("GET", "/tree.svg", {}, None, 400),  # before any search
    ],
)
def test_a_bad_request_gets_a_json_error_with_its_status(method, path, headers, body, status):
    """More of them are in `tests/fuzz`."""
    answer = new().request(method, path, headers=headers, content=body)
    assert len(error(answer, status)) > 5
    assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_loads_nothing_from_other_hosts():
    client = new()
    policy = client.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    for path in ("/", *(f"/{path.name}" for path in web_server.PAGE.iterdir())):
        answer = client.get(path)
        assert answer.status_code == 200 and not any(word in answer.text for word in ("http:", "https:", "//cdn"))
    assert "style=" not in client.get("/api/state").json()["svg"], "which the policy forbids"


def test_the_server_listens_only_on_localhost_and_a_port_in_use_is_an_error():
    with web_server.listen(0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        socket.create_connection((host, port), timeout=5).close()  # a browser may come before the server runs
        with pytest.raises(ValueError, match="--port"):
            web_server.listen(port)
