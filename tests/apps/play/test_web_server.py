"""The board in the browser, asked as a page asks it: what is answered, what is refused, and who may ask."""

import functools
import socket
import threading

import numpy as np
import pytest

pytest.importorskip("httpx2", reason="starlette's test client needs httpx2")

from starlette.testclient import TestClient

from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.position import opening_of
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from tests.apps.play.test_tree_picture import hand_made_tree
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


@pytest.fixture
def analyses(monkeypatch):
    """Has an analysis of tic-tac-toe changed by fields, such as its tree."""
    thinker = shared_game("tic_tac_toe").thinker
    analyse = thinker.analyse
    return lambda **fields: monkeypatch.setattr(thinker, "analyse", lambda *a, **b: analyse(*a, **b)._replace(**fields))


# --- the game ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "othello"])
def test_a_whole_game_between_a_person_and_an_agent_stays_legal_and_is_drawn(name):
    client, rng = new(name), np.random.default_rng(0)
    state = client.get("/api/state").json()
    assert state["title"].lower().replace("-", "_").replace(" ", "_") == name
    assert len(state["legal"]) == int(opening(name).legal_action_mask().sum())
    while not state["result"] and state["ply"] < 12:
        assert state["svg"].startswith('<svg class="board') and state["svg"].count('class="cell"') >= 9
        state = post(client, "play", move=str(rng.choice(state["legal"])), ply=state["ply"]).json()
        if not state["result"]:
            state = post(client, "agent-move", ply=state["ply"], seat=1).json()
    assert state["ply"] == len(state["moves"]) >= 5


def test_moves_of_all_kinds_and_an_illegal_one_changes_nothing():
    client = new()
    state = played(client, "a1")
    assert state["squares"][0] == ["X", ".", "."] and state["to_move"] == 1
    for move, says in (("a1", "the rules do not allow a1 here"), ("z9", "there is no move z9")):
        assert error(post(client, "play", move=move)) == says
    assert client.get("/api/state").json() == state
    assert "position has changed" in error(post(client, "play", move="c3", ply=0)), "another tab's board is old"
    assert post(client, "agent-move", ply=1).json()["moves"] == ["a1", "b2"]
    swapped = played(new("hex"), "c1 swap-pieces")
    assert swapped["moves"] == ["c1", "swap-pieces"] and swapped["squares"][2][0] == "O" and swapped["swapped"]
    assert "swap-pieces" not in swapped["legal"] and played(new("hex"), "c1")["buttons"] == ["swap-pieces"]
    assert played(new("go_9x9"), "E5 pass pass")["result"] == "black wins by 73.5"
    chess = new("gardner_chess").get("/api/state").json()
    assert (chess["names"], chess["clicks"], chess["paths"]["a2a3"]) == (["white", "black"], 2, ["a2", "a3"])


def test_a_finished_game_takes_no_move_but_can_be_taken_back():
    client = new()
    state = played(client, "a1 a2 b1 b2 c1")
    assert (state["result"], state["legal"], state["winning_cells"]) == ("X wins", [], [[0, 0], [0, 1], [0, 2]])
    for order, fields in (("play", {"move": "c3"}), ("agent-move", {}), ("analysis", {})):
        assert error(post(client, order, **fields)).startswith("the game is over")
    assert post(client, "undo", colour=0).json()["moves"] == ["a1", "a2", "b1", "b2"]
    assert post(client, "undo", colour=1).json()["moves"] == ["a1", "a2", "b1"]
    assert post(client, "undo").json()["moves"] == ["a1", "a2"]
    assert error(post(new(), "undo", colour=1)) == "there is nothing to take back"


def of_chance(name, most_value):
    """A page's connection to a fresh game of 2048 or backgammon."""
    position, thinker = opening_of(make_environment(name), seed=5), fake_thinker(favourite=1)
    thinker.most_value = most_value
    game = WebGame(position, thinker, make_notation(position.environment))
    return game, TestClient(web_server.make_app(game), base_url="http://127.0.0.1")


def test_2048_has_directions_points_and_values_without_bound():
    game, client = of_chance("2048", float("inf"))
    state = client.get("/api/state").json()
    assert (state["board"], state["num_players"], state["status"]) == ("tiles", 1, "0 points, 0 moves")
    assert state["directions"] == ["left", "up", "right", "down"] and state["clicks"] == 0 and state["buttons"] == []
    while not state["total"]:
        state = post(client, "agent-move", ply=state["ply"]).json()
    analysis = post(client, "analysis").json()
    assert analysis["said"].startswith("Expected from here: +0.04")
    assert analysis["bar"]["first"] == pytest.approx(state["total"] / (state["total"] + 0.04))
    assert len(analysis["policy"]) == len(state["legal"])


def test_backgammon_says_who_moved_and_six_passes_that_are_alike_are_one():
    game, client = of_chance("backgammon", 3.0)
    state = client.get("/api/state").json()
    assert state["board"] == "points" and not state["in_turns"]
    assert "Value for X (-3 to +3): +0.04" in post(client, "analysis").json()["said"]
    for _ in range(3):
        state = post(client, "agent-move").json()
    assert state["movers"] == [0, 0, 1] and state["to_move"] == 1
    mask = np.zeros(156, bool)
    mask[:6] = True
    game.position = game.position.new(game.position.state.replace(legal_action_mask=mask))
    assert client.get("/api/state").json()["legal"] == ["pass"]
    analysis = post(client, "analysis").json()
    assert (analysis["move"], analysis["notes"], analysis["is_ringed"]) == ("pass", {"pass": "100%"}, True)
    assert post(client, "play", move="pass").json()["moves"] == ["pass"]


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
    assert found["bar"]["first"] == pytest.approx(0.49), "what is good for O is bad for X"
    assert found["lines"] == [{"moves": ["b2"], "visits": None, "value": None}]
    assert post(client, "analysis", num_simulations=2, overlay="prior").json()["notes"]["b2"] == "12%"
    assert post(client, "agent-move", num_simulations=2).json()["moves"] == ["a1", "b2"]
    assert asked == [{"num_simulations": 2}], "the same question is searched once"
    post(client, "analysis")
    assert "there is no tree to draw" in error(client.get("/tree.svg"))


def test_lines_values_and_picture_come_from_the_searchs_tree(analyses):
    client = new()
    analyses(tree=hand_made_tree())
    played(client, "c1")
    assert "no search to draw yet" in error(client.get("/tree.svg"))
    found = post(client, "analysis", num_simulations=10, overlay="values").json()
    assert found["values"] == {"b2": 0.5, "a1": -0.25, "c3": 0.0}
    assert found["notes"] == {"b2": "+0.50", "a1": "-0.25", "c3": "+0.00"}
    assert [line["moves"] for line in found["lines"]] == [["b2", "a1"], ["a1", "b1"], ["c3"]]
    assert [line["visits"] for line in found["lines"]] == [6, 3, 1]
    picture = client.get("/tree.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml") and "<svg" in picture.text
    played(client, "a3")
    assert client.get("/tree.svg").status_code == 400, "that tree was of another position"


def test_the_move_that_it_would_play_stands_first_though_others_have_larger_shares(analyses, monkeypatch):
    client = new()
    analyses(tree=hand_made_tree(), action=0)
    played(client, "c1")
    found = post(client, "analysis", num_simulations=11).json()
    assert found["move"] == "a1" and found["lines"][0]["moves"] == ["a1", "b1"] and "tried most" in found["why"]
    assert max(found["policy"], key=found["policy"].get) == "b2"
    monkeypatch.setattr(shared_game("tic_tac_toe").thinker, "temperature", 0.5)
    assert post(client, "analysis", num_simulations=11).json()["why"].endswith("at temperature 0.5.")


# --- who may ask, and how ---------------------------------------------------------------------------------------------


def test_only_this_machines_own_name_is_answered():
    client = new()
    for host in ("example.org", "127.0.0.1.example.org", "10.0.0.1:8000"):
        assert client.get("/api/state", headers={"host": host}).status_code == 400
        assert client.post("/api/new", json={}, headers={"host": host}).status_code == 400
    for host in ("127.0.0.1:8000", "localhost:8000", "localhost"):
        assert client.get("/api/state", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "body, says",
    [
        (b"", "a move is missing"),
        (b"{", "JSON object"),
        (b"[1]", "JSON object"),
        (b"[" * 9000, "JSON object"),
        (b"\xff\xfe", "JSON object"),
        (b'{"move": "a1", "ply": ' + b"9" * 5000 + b"}", "JSON object"),
        (b'{"move": 3}', "move must be text"),
        (b'{"move": "a1", "ply": true}', "ply must be a whole number"),
        (b'{"move": "a1", "ply": 1e999}', "ply must be a whole number"),
        (b'{"move": "a1", "seat": 2}', "seat must be 0 or 1"),
        (b'{"move": "a1", "colour": 0}', "there is no field colour"),
        (b'{"move": "' + b"a" * 20_000 + b'"}', "at most 10000 bytes"),
        (b'{"move": "<b>\\u0000"}', "there is no move <b>\x00"),
        (b'{"move": "\\ud800"}', "there is no move ?"),
        (b'{"\\udfff": "a1"}', "there is no field ?"),
    ],
)
def test_a_malformed_order_is_one_sentence(body, says):
    assert says in error(new().post("/api/play", content=body, headers=JSON))


@pytest.mark.parametrize(
    "method, path, headers, status, says",
    [
        ("GET", "/nowhere", {}, 404, "Not Found"),
        ("GET", "/web_server.py", {}, 404, "Not Found"),
        ("GET", "/../web_server.py", {}, 404, "Not Found"),
        ("GET", "/%00%ff" + "x" * 5000, {}, 404, "Not Found"),
        ("GET", "/api/state/", {}, 404, "Not Found"),
        ("POST", "/app.js", {}, 405, "Method Not Allowed"),
        ("GET", "/api/play", {}, 404, "Not Found"),
        ("POST", "/api/resign", JSON, 404, "there is no request resign"),
        ("POST", "/api/new", {"content-type": "text/plain"}, 415, "must be application/json"),
        ("POST", "/api/new", {"content-type": "multipart/form-data"}, 415, "must be application/json"),
        ("POST", "/api/new", JSON | {"content-length": "many"}, 400, "Content-Length"),
        ("POST", "/api/new", JSON | {"content-length": "-1"}, 400, "Content-Length"),
        ("POST", "/api/new", JSON | {"content-length": "9" * 5000}, 400, "at most 10000 bytes"),
        ("GET", "/nowhere", {"host": "127.0.0.1:8000@example.org"}, 400, "127.0.0.1 and localhost only"),
        ("GET", "/tree.svg", {}, 400, "no search to draw yet"),
    ],
)
def test_every_mistake_is_one_sentence_of_json_with_a_status_of_its_own(method, path, headers, status, says):
    answer = new().request(method, path, headers=headers)
    assert says in error(answer, status)
    assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("fields, says", [({"num_simulations": 10**9}, "4096"), ({"overlay": "tree"}, "overlay")])
def test_an_analysis_out_of_range_is_refused(fields, says):
    assert says in error(post(new(), "analysis", **fields))


def test_an_order_without_a_length_has_no_body_or_is_refused():
    client = new()
    request = client.build_request("POST", "/api/new", headers=JSON)
    del request.headers["content-length"]
    assert client.send(request).status_code == 200
    assert "Content-Length" in error(client.post("/api/new", content=iter([b"{}"]), headers=JSON))


def test_a_fault_of_the_servers_own_is_json_too(monkeypatch):
    new()
    monkeypatch.setattr(shared_game("tic_tac_toe"), "state", lambda: 1 // 0)
    app = web_server.make_app(shared_game("tic_tac_toe"))
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    assert error(client.get("/api/state"), 500) == "the server failed; its terminal says why"


def test_the_real_server_answers_what_is_no_http_with_400():
    with web_server.listen(0) as listener:
        server = web_server.make_server(shared_game("tic_tac_toe"))
        thread = threading.Thread(target=functools.partial(server.run, sockets=[listener]))
        thread.start()
        try:
            for request in (
                b"POST /api/new HTTP/1.1\r\nHost: localhost\r\nContent-Length: many",
                b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org",
                b"GET /\xff HTTP/1.1\r\nHost: localhost",
                b"nothing of the kind",
            ):
                with socket.create_connection(listener.getsockname(), timeout=10) as connection:
                    connection.sendall(request + b"\r\n\r\n")
                    assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
        finally:
            server.should_exit = True
            thread.join()


def test_the_page_loads_nothing_from_anywhere_else():
    client = new()
    policy = client.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    for path in ("/", *(f"/{path.name}" for path in web_server.PAGE.iterdir())):
        answer = client.get(path)
        assert answer.status_code == 200 and not any(word in answer.text for word in ("http:", "https:", "//cdn"))
    assert "style=" not in client.get("/api/state").json()["svg"], "which the policy forbids"


def test_the_server_listens_on_this_machine_alone_and_a_port_that_cannot_be_had_is_refused():
    with web_server.listen(0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        socket.create_connection((host, port), timeout=5).close()  # a browser may come before the server runs
        for given in (port, 70000):
            with pytest.raises(ValueError, match="--port"):
                web_server.listen(given)
