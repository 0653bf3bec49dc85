"""The board in the browser, asked as a page asks it: what is answered, what is refused, and who may ask."""

import functools
import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("httpx2", reason="starlette's test client needs httpx2")

from starlette.testclient import TestClient

from muzero_jax.apps.play import web_server, web_session
from muzero_jax.apps.play.position import new_game, opening_of
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from tests.apps.play.test_tree_picture import hand_made_tree
from tests.reference.play import fake_thinker, notation, opening

NAMES = ["tic_tac_toe", "connect_four", "othello", "hex", "go_9x9", "gardner_chess"]


@functools.cache
def shared_game(name):
    return web_session.WebGame(opening(name), fake_thinker(favourite=4), notation(name))


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


def of_chance(name, most_value=1.0):
    """A page's connection to a fresh game of 2048 or backgammon."""
    position = opening_of(make_environment(name), seed=5)
    thinker = fake_thinker(favourite=1)
    thinker.most_value = most_value
    game = web_session.WebGame(position, thinker, make_notation(position.environment))
    return game, TestClient(web_server.make_app(game), base_url="http://127.0.0.1")


def test_2048_has_directions_points_and_values_without_bound():
    game, client = of_chance("2048", float("inf"))
    state = client.get("/api/state").json()
    assert (state["board"], state["num_players"], state["total"], state["most_value"]) == ("tiles", 1, 0, None)
    assert state["directions"] == ["left", "up", "right", "down"] and state["clicks"] == [[None] * 4] * 4
    moves = 0
    while not state["total"]:
        state = post(client, "agent-move", ply=moves).json()
        moves += 1
    assert state["total"] == game.position.total and state["movers"] == [0] * moves and state["in_turns"]
    state = post(client, "undo", colour=0).json()
    assert state["ply"] == moves - 1
    assert len(post(client, "analysis").json()["policy"]) == len(state["legal"])


def test_backgammon_says_where_checkers_lie_and_who_made_each_move():
    game, client = of_chance("backgammon", 3.0)
    state = client.get("/api/state").json()
    assert state["board"] == "points" and not state["in_turns"] and state["directions"] == []
    assert sum(abs(count) for count in state["checkers"]["points"]) == 30 and state["most_value"] == 3
    assert [left for _, left in state["checkers"]["dice"]] == [True, True]
    for _ in range(3):
        state = post(client, "agent-move").json()
    assert state["movers"] == [0, 0, 1] and state["to_move"] == 1


def test_six_passes_that_are_alike_are_one_move_with_their_shares_together():
    game, client = of_chance("backgammon", 3.0)
    state = game.position.state
    mask = np.zeros(156, bool)
    mask[:6] = True
    game.position = game.position.new(state.replace(legal_action_mask=mask))
    assert client.get("/api/state").json()["legal"] == ["pass"]
    analysis = post(client, "analysis").json()
    assert analysis["move"] == "pass" and analysis["policy"] == {"pass": pytest.approx(1)}
    assert post(client, "play", move="pass").json()["moves"] == ["pass"]


# --- the game ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_board_says_what_the_page_needs_to_draw_it(name):
    state = new(name).get("/api/state").json()
    assert len(state["squares"]) == len(state["rows"]) and len(state["squares"][0]) == len(state["columns"])
    assert state["to_move"] == 0 and state["ply"] == 0 and state["result"] is None
    assert state["title"].lower().replace("-", "_").replace(" ", "_") == name.removesuffix("_9x9")
    assert len(state["legal"]) == int(opening(name).legal_action_mask().sum())


def test_a_move_is_played_and_the_agent_answers():
    client = new()
    state = played(client, "a1")
    assert state["squares"] == [["X", ".", "."], [".", ".", "."], [".", ".", "."]] and state["to_move"] == 1
    answer = post(client, "agent-move", ply=1).json()
    assert answer["moves"] == ["a1", "b2"] and answer["squares"][1][1] == "O" and answer["ply"] == 2


@pytest.mark.parametrize("move, says", [("a1", "the rules do not allow a1 here"), ("z9", "there is no move z9")])
def test_an_illegal_move_is_one_sentence_and_changes_nothing(move, says):
    client = new()
    before = played(client, "a1")
    assert error(post(client, "play", move=move)) == says
    assert client.get("/api/state").json() == before


def test_a_finished_game_takes_no_move_but_can_be_taken_back():
    client = new()
    state = played(client, "a1 a2 b1 b2 c1")
    assert state["result"] == "X wins" and state["legal"] == []
    for order, fields in (("play", {"move": "c3"}), ("agent-move", {}), ("analysis", {})):
        assert error(post(client, order, **fields)).startswith("the game is over")
    assert post(client, "undo").json()["result"] is None


def test_undo_goes_back_to_the_last_choice_of_a_colour():
    client = new()
    played(client, "a1 b1 c1 a2")
    assert post(client, "undo", colour=0).json()["moves"] == ["a1", "b1"]
    assert post(client, "undo", colour=1).json()["moves"] == ["a1"]
    assert error(post(client, "undo", colour=1)) == "there is nothing to take back"
    assert post(client, "undo").json()["moves"] == []


def test_a_swap_and_a_pass_are_moves_that_are_no_cells():
    state = played(new("hex"), "c1 swap-pieces")
    assert state["moves"] == ["c1", "swap-pieces"] and state["squares"][2][0] == "O" and state["to_move"] == 0
    assert "swap-pieces" not in state["legal"]
    assert "pass" in new("go_9x9").get("/api/state").json()["legal"]


def test_go_says_by_how_much():
    assert played(new("go_9x9"), "E5 pass pass")["result"] == "black wins by 73.5"


def test_chess_moves_are_from_square_to_square_and_white_begins():
    client = new("gardner_chess")
    state = client.get("/api/state").json()
    assert state["names"] == ["white", "black"] and "a2a3" in state["legal"]
    assert error(post(client, "play", move="a2a4")) == "the rules do not allow a2a4 here"
    assert played(client, "a2a3")["squares"][2][0] == "P"


def test_two_tabs_cannot_play_for_one_another():
    client = new()
    played(client, "a1")
    assert "position has changed" in error(post(client, "play", move="c3", ply=0))
    assert post(client, "play", move="c3", ply=1).status_code == 200


def test_a_game_without_a_board_of_its_own_on_the_page_is_shown_as_text():
    thinker, environment = shared_game("tic_tac_toe").thinker, make_environment("tic_tac_toe")._replace(name="mine")
    game = web_session.WebGame(new_game(environment), thinker, make_notation(environment))
    state = game.play("a1")
    assert state["board"] == "plain" and state["text"] == "  a b c\n1 1 . .\n2 . . .\n3 . . ."
    assert new().get("/api/state").json()["text"] == ""


# --- what the agent thinks --------------------------------------------------------------------------------------------


def test_an_analysis_gives_shares_values_and_lines_for_legal_moves():
    client = new()
    played(client, "a1")
    thoughts = post(client, "analysis", num_simulations=2).json()
    assert thoughts["move"] == "b2" and thoughts["colour"] == 1 and thoughts["ply"] == 1
    assert "a1" not in thoughts["policy"] and sum(thoughts["policy"].values()) == pytest.approx(1)
    assert thoughts["policy"]["b2"] == max(thoughts["policy"].values())
    assert thoughts["value"] == pytest.approx(0.02) and thoughts["prior_value"] == pytest.approx(0.25)
    assert thoughts["lines"] == [{"moves": ["b2"], "visits": None, "value": None}] and thoughts["num_simulations"] == 2
    assert "there is no tree to draw" in error(client.get("/tree.svg"))


def test_lines_values_and_picture_come_from_the_searchs_tree(monkeypatch):
    client, game = new(), shared_game("tic_tac_toe")
    analyse = game.thinker.analyse
    monkeypatch.setattr(
        game.thinker, "analyse", lambda *args, **options: analyse(*args, **options)._replace(tree=hand_made_tree())
    )
    played(client, "c1")
    assert "no search to draw yet" in error(client.get("/tree.svg"))
    thoughts = post(client, "analysis", num_simulations=10).json()
    assert thoughts["values"] == {"b2": 0.5, "a1": -0.25, "c3": 0.0}
    assert [line["moves"] for line in thoughts["lines"]] == [["b2", "a1"], ["a1", "b1"], ["c3"]]
    assert [line["visits"] for line in thoughts["lines"]] == [6, 3, 1]
    picture = client.get("/tree.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml") and "<svg" in picture.text
    played(client, "a3")
    assert client.get("/tree.svg").status_code == 400, "that tree was of another position"


def test_the_move_that_it_would_play_stands_first_though_others_have_more_visits(monkeypatch):
    client, game = new(), shared_game("tic_tac_toe")
    analyse = game.thinker.analyse
    monkeypatch.setattr(
        game.thinker, "analyse", lambda *args, **options: analyse(*args)._replace(tree=hand_made_tree(), action=0)
    )
    played(client, "c1")
    thoughts = post(client, "analysis", num_simulations=11).json()
    assert thoughts["move"] == "a1" and thoughts["lines"][0]["moves"] == ["a1", "b1"]
    assert max(thoughts["policy"], key=thoughts["policy"].get) == "b2" and "tried most" in thoughts["why"]
    monkeypatch.setattr(game.thinker, "temperature", 0.5)
    thoughts = post(client, "analysis", num_simulations=11).json()
    assert thoughts["why"] == "The move is drawn from the shares, at temperature 0.5."


def test_the_page_gets_the_goal_the_colours_the_swap_and_the_cells_that_won():
    state = played(new("hex"), "b3 swap-pieces")
    assert "Black joins top and bottom" in state["goal"] and state["inks"] == ["black", "white"]
    assert state["swapped"] and state["winning_cells"] == []
    state = played(new(), "a1 a2 b1 b2 c1")
    assert state["winning_cells"] == [[0, 0], [0, 1], [0, 2]] and state["inks"] == ["red", "blue"]
    assert not state["swapped"]


def test_the_same_question_is_searched_once(monkeypatch):
    client, game = new(), shared_game("tic_tac_toe")
    asked = []
    analyse = game.thinker.analyse
    monkeypatch.setattr(
        game.thinker, "analyse", lambda *args, **options: asked.append(options) or analyse(*args, **options)
    )
    played(client, "b1")
    post(client, "analysis", num_simulations=3)
    post(client, "agent-move", num_simulations=3)
    assert asked == [{"num_simulations": 3}]


@pytest.mark.parametrize("budget", [0, -1, 10**9])
def test_a_budget_out_of_range_is_refused(budget):
    assert "must be from 1 to 4096" in error(post(new(), "analysis", num_simulations=budget))


# --- who may ask, and how ---------------------------------------------------------------------------------------------


def test_only_this_machines_own_name_is_answered():
    client = new()
    for host in ("example.org", "127.0.0.1.example.org", "10.0.0.1:8000"):
        assert client.get("/api/state", headers={"host": host}).status_code == 400
        assert client.post("/api/new", json={}, headers={"host": host}).status_code == 400
    for host in ("127.0.0.1:8000", "localhost:8000", "localhost"):
        assert client.get("/api/state", headers={"host": host}).status_code == 200


def test_orders_come_as_json_only_so_other_sites_cannot_send_them():
    client = new()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post("/api/play", content=b'{"move": "a1"}', headers={"content-type": kind})
        assert error(answer, 415) == "orders are taken as application/json only"
    assert client.get("/api/state").json()["ply"] == 0


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "body, says",
    [
        (b"", "a move is missing"),
        (b"{", "an order is a JSON object"),
        (b"[1]", "an order is a JSON object"),
        (b"[" * 9000, "an order is a JSON object"),
        (b'{"move": 3}', "move must be text"),
        (b'{"move": "a1", "ply": true}', "ply must be a whole number"),
        (b'{"move": "a1", "ply": 1e999}', "ply must be a whole number"),
        (b'{"move": "a1", "ply": ' + b"9" * 5000 + b"}", "an order is a JSON object"),
        (b'{"move": "a1", "colour": 0}', "there is no field colour"),
        (b'{"move": "' + b"a" * 20_000 + b'"}', "an order has at most 10000 bytes"),
        (b"\xff\xfe", "an order is a JSON object"),
        (b'{"move": "<b>\\u0000"}', "there is no move <b>\x00"),
        (b'{"move": "\\ud800"}', "there is no move ?"),
        (b'{"\\udfff": "a1"}', "there is no field ?"),
    ],
)
def test_a_malformed_order_is_one_sentence(body, says):
    assert error(new().post("/api/play", content=body, headers=JSON)) == says


@pytest.mark.parametrize(
    "method, path, headers, status, says",
    [
        ("GET", "/nowhere", {}, 404, "there is nothing at /nowhere"),
        ("GET", "/web_server.py", {}, 404, "there is nothing at /web_server.py"),
        ("GET", "/%00%ff" + "x" * 5000, {}, 404, "there is nothing at /"),
        ("GET", "/api/state/", {}, 404, "there is nothing at /api/state/"),
        ("POST", "/app.js", {}, 405, "POST cannot be used at /app.js"),
        ("GET", "/api/play", {}, 405, "GET cannot be used at /api/play"),
        ("DELETE", "/api/state", {}, 405, "DELETE cannot be used at /api/state"),
        ("POST", "/api/resign", JSON, 404, "there is no order resign"),
        ("POST", "/api/state", JSON, 404, "there is no order state"),
        ("POST", "/api/new", {"content-type": "text/plain"}, 415, "orders are taken as application/json only"),
        ("POST", "/api/new", JSON | {"content-length": "many"}, 400, "an order must say its length"),
        ("POST", "/api/new", JSON | {"content-length": "-1"}, 400, "an order must say its length"),
        ("POST", "/api/new", JSON | {"content-length": "9" * 5000}, 400, "an order has at most 10000 bytes"),
        ("GET", "/", {"host": "example.org"}, 400, "this page answers to 127.0.0.1 and localhost only"),
        ("GET", "/", {"host": ""}, 400, "this page answers to 127.0.0.1 and localhost only"),
        ("GET", "/nowhere", {"host": "127.0.0.1:8000@example.org"}, 400, "this page answers to 127.0.0.1"),
        ("GET", "/tree.svg", {}, 400, "this position has no search to draw yet"),
    ],
)
def test_every_mistake_is_one_sentence_of_json_with_a_status_of_its_own(method, path, headers, status, says):
    answer = new().request(method, path, headers=headers)
    assert error(answer, status).startswith(says)
    assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"


def test_a_fault_of_the_servers_own_is_json_too(monkeypatch):
    new()
    monkeypatch.setattr(shared_game("tic_tac_toe"), "state", lambda: 1 // 0)
    app = web_server.make_app(shared_game("tic_tac_toe"))
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    assert error(client.get("/api/state"), 500) == "the server failed; its terminal says why"


@pytest.mark.parametrize(
    "request_line_and_headers",
    [
        b"POST /api/new HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: many",
        b"GET / HTTP/1.1",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org",
        b"GET /\xff HTTP/1.1\r\nHost: localhost",
        b"GET /\xed\xa0\x80 HTTP/1.1\r\nHost: localhost",
        b"nothing of the kind",
    ],
)
def test_what_is_no_http_is_answered_in_json_by_the_real_server(server_address, request_line_and_headers):
    with socket.create_connection(server_address, timeout=10) as connection:
        connection.sendall(request_line_and_headers + b"\r\n\r\n")
        answer = b"".join(iter(functools.partial(connection.recv, 4096), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"content-type: application/json" in head.lower()
    assert set(json.loads(body)) == {"error"}


@pytest.fixture(scope="module")
def server_address():
    listener = web_server.listen(0)
    server = web_server.make_server(shared_game("tic_tac_toe"))
    thread = threading.Thread(target=functools.partial(server.run, sockets=[listener]))
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join()
    listener.close()


def test_an_order_without_a_length_has_no_body_or_is_refused():
    client = new()
    request = client.build_request("POST", "/api/new", headers=JSON)
    del request.headers["content-length"]
    assert client.send(request).status_code == 200
    answer = client.post("/api/new", content=iter([b"{}"]), headers=JSON)
    assert error(answer) == "an order must say its length, at most 10000 bytes"


def test_the_page_loads_nothing_from_anywhere_else():
    client = new()
    page = client.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    for path in ("/", *(f"/{name}" for name in web_server.FILES if name != "index.html")):
        answer = client.get(path)
        assert answer.status_code == 200
        outside = answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in outside and "https:" not in outside and "//cdn" not in outside
    assert client.get("/../web_server.py").status_code == 404


def test_all_files_of_the_page_are_beside_the_module_that_serves_them():
    assert {path.name for path in web_server.PAGE.iterdir()} == set(web_server.FILES)
    assert web_server.PAGE.parent == Path(web_server.__file__).parent


def test_the_server_listens_on_this_machine_alone_and_a_taken_port_is_one_sentence():
    with web_server.listen(0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(ValueError, match=f"port {port} cannot be used .*: choose another with --port"):
            web_server.listen(port)
    with pytest.raises(ValueError, match="--port is 70000"):
        web_server.listen(70000)


def test_a_browser_that_connects_before_the_server_runs_is_not_refused():
    with web_server.listen(0) as listener:
        socket.create_connection(listener.getsockname(), timeout=5).close()


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_game_between_two_agents_stays_legal(name):
    client = new(name)
    rng = np.random.default_rng(0)
    for _ in range(12):
        state = client.get("/api/state").json()
        if state["result"]:
            break
        state = post(client, "play", move=str(rng.choice(state["legal"])), ply=state["ply"]).json()
        if not state["result"]:
            assert post(client, "agent-move", ply=state["ply"]).json()["ply"] == state["ply"] + 1
