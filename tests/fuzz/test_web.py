"""The web's orders of any kind: every answer is JSON with status 200 or 4xx, and a refused order changes nothing."""

import asyncio
import json
from urllib.parse import unquote

from hypothesis import strategies as st

from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.web_session import WebGame
from tests.fuzz import fuzzing
from tests.fuzz.agents import QuickThinker
from tests.fuzz.samples import EXTREME_INTS, disturbed, edited, json_text
from tests.reference.play import notation, opening

THINKER = QuickThinker()
MOVES = "a1 b2 c3 d4 A1 swap-pieces swap pass resign a0 z9 1 K1".split()
FIELDS = {"move": "a1", "ply": 0, "num_simulations": 4, "colour": 1, "seat": 1, "overlay": "prior"}
ORDERS = [*web_server.ORDERS, "state", "resign", "%2e%2e", "play/", "PLAY", "x" * 300, "%00", "%ff", "a%2Fb"]
PATHS = ["/", "/app.js", "/../web_server.py", "//etc/passwd", "/tree.svg", "/api", "/api/", "/%c0%ae", "*", ""]


@st.composite
def bodies(draw):
    """The fields of an order, mostly those that it takes and of their type."""
    fields = draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2, unique=True))
    values = st.sampled_from([*MOVES, *EXTREME_INTS[:8], None, True, 1.0, [], {}]) | st.text(max_size=20)
    good = FIELDS | {"move": draw(st.sampled_from(MOVES[:6])), "ply": draw(st.integers(0, 3))}
    return draw(json_text(edited({name: good[name] for name in fields} or {"move": good["move"]}, values)))


PLAYS = st.sampled_from(MOVES[:6]).map(lambda move: ("POST", "/api/play", {}, json.dumps({"move": move}).encode()))
HEADERS = st.dictionaries(
    st.sampled_from("host content-type content-length transfer-encoding origin".split()),
    st.sampled_from("localhost 127.0.0.1:80 example.org application/json;x text/plain 0 3 -1 ٣ 99999 chunked".split()),
    max_size=1,
)
REQUESTS = st.one_of(
    PLAYS,
    st.tuples(st.just("POST"), st.sampled_from(ORDERS).map("/api/{}".format), HEADERS, bodies()),
    st.tuples(st.just("POST"), st.sampled_from(ORDERS[:5]).map("/api/{}".format), st.just({}), bodies()),
    st.tuples(st.sampled_from("GET POST HEAD DELETE get ÿ".split()), st.sampled_from(PATHS), HEADERS, st.just(b"")),
    st.tuples(st.just("GET"), disturbed(st.sampled_from(PATHS).map(str.encode)), st.just({}), st.just(b"")),
)


class Page:
    """A page's connection to the application, below HTTP: what a server makes of a request's bytes."""

    def __init__(self, app):
        self.app, self.loop = app, asyncio.new_event_loop()

    def ask(self, method, path, headers, body):
        """(status, headers, body) of the answer."""
        raw = path if isinstance(path, bytes) else path.encode()
        headers = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))} | headers
        scope = {
            **{"type": "http", "http_version": "1.1", "scheme": "http", "method": method, "query_string": b""},
            **{"path": unquote(raw.decode("latin-1")), "raw_path": raw, "root_path": ""},
            **{"headers": [(name.encode(), value.encode("utf-8")) for name, value in headers.items()]},
            **{"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
        }
        return self.loop.run_until_complete(self._answer(scope, body))

    async def _answer(self, scope, body):
        said = []
        questions = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if questions:
                return questions.pop()
            return await asyncio.Event().wait()

        async def send(message):
            said.append(message)

        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in said)
        return said[0]["status"], dict(said[0]["headers"]), content


GAME = WebGame(opening("hex"), THINKER, notation("hex"))
PAGE = Page(web_server.make_app(GAME))


@fuzzing.fuzzed(st.lists(REQUESTS, min_size=1, max_size=5))
def test_the_web_api(requests, folder):
    GAME.new()
    for method, path, headers, body in requests:
        before = GAME.position
        status, said, content = PAGE.ask(method, path, headers, body)
        kind = said[b"content-type"].split(b";")[0]
        assert status == 200 or 400 <= status < 500, (status, content)
        if status != 200:
            assert kind == b"application/json" and set(json.loads(content)) == {"error"}, content
            assert 5 < len(json.loads(content)["error"]) < 300 and b"Traceback" not in content
            assert GAME.position is before
        elif kind == b"application/json":
            assert isinstance(json.loads(content), dict)
        assert said[b"cache-control"] == b"no-store"
