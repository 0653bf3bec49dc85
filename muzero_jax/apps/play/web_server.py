"""Serves the board in the browser: a page and a few JSON requests, only for users of this machine.

It binds 127.0.0.1, answers only requests for that host, and accepts orders only as JSON, which other sites' pages
cannot send without permission. The page loads nothing from elsewhere. A mistake is status 4xx with a text in `error`.
"""

import os
import socket
import threading
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from muzero_jax.apps.play.web_session import WebGame

HOST = "127.0.0.1"
OWN_NAMES = HOST, "localhost"
"""Allowed names in the Host header; requests from other sites' pages have other names."""
PAGE = Path(__file__).parent / "web"
MOST_BYTES = 10_000
"""The longest order that is accepted, in bytes; the page's orders are far shorter."""
MOST_SAID = 200
"""Characters of an error; limited because errors may repeat parts of the request."""
MISTAKES = ValueError, msgspec.MsgspecError, ClientDisconnect
"""Exceptions for which the client is to blame (status 400)."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PICTURE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


def make_app(game: WebGame) -> Starlette:
    """The application: the page at `/`, the game under `/api`, the last search's tree at `/tree.svg`."""
    lock = threading.Lock()  # the game handles one request at a time

    def ask(question: str, **fields) -> Any:
        with lock:
            return getattr(game, question)(**fields)

    def state(request: Request) -> Response:
        return JSONResponse(ask("state"))

    async def order(request: Request) -> Response:
        name = request.path_params["order"]
        if name not in ORDERS:
            raise HTTPException(404, f"there is no request {name}")
        fields = msgspec.json.decode(await _body(request) or b"{}", type=ORDERS[name])
        answer = await run_in_threadpool(ask, name.replace("-", "_"), **msgspec.structs.asdict(fields))
        return JSONResponse(answer)

    def tree(request: Request) -> Response:
        return Response(ask("tree"), headers=PICTURE_HEADERS, media_type="image/svg+xml")

    app = Starlette(
        routes=[
            Route("/api/state", state),
            Route("/api/{order}", order, methods=["POST"]),
            Route("/tree.svg", tree),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_keep_to_itself)],
        exception_handlers={kind: _refuse for kind in (HTTPException, *MISTAKES, Exception)},
    )
    app.router.redirect_slashes = False  # a surplus slash is an error like any other
    return app


def _order(name: str) -> type[msgspec.Struct]:
    """The type of an order's JSON: an object with the parameters of `WebGame`'s method of that name."""
    method = getattr(WebGame, name.replace("-", "_"))
    kinds = get_type_hints(method)
    _, *parameters = signature(method).parameters.values()
    fields = [
        (each.name, kinds[each.name], msgspec.NODEFAULT if each.default is Parameter.empty else each.default)
        for each in parameters
    ]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True)


ORDERS = {name: _order(name) for name in ("play", "agent-move", "analysis", "undo", "new", "look")}
"""The orders that may be posted under `/api`."""


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1 that accepts connections at once, so that an early browser waits instead of failing.

    Port 0 takes any free port. Raises ValueError if the port cannot be used.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ValueError(f"port {port} cannot be used ({reason}): choose another with --port") from None


def make_server(game: WebGame) -> uvicorn.Server:
    """A server; `run(sockets=[...])` serves until it is interrupted or `should_exit` is set."""
    options = {"log_level": "warning", "lifespan": "off", "ws": "none", "timeout_graceful_shutdown": 1}
    return uvicorn.Server(uvicorn.Config(make_app(game), http="h11", **options))


async def _keep_to_itself(request: Request, answer: RequestResponseEndpoint) -> Response:
    if request.headers.get("host", "").partition(":")[0] in OWN_NAMES:
        response = await answer(request)
    else:
        response = await _refuse(request, HTTPException(400, "this page answers to 127.0.0.1 and localhost only"))
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _refuse(request: Request, mistake: Exception) -> Response:
    """The response for an exception: its own status, 400 for `MISTAKES`, 500 for the server's own failures."""
    if isinstance(mistake, HTTPException):
        status = mistake.status_code
        text = mistake.detail
    elif isinstance(mistake, MISTAKES):
        status = 400
        text = str(mistake)
    else:
        status = 500
        text = "the server failed; its terminal says why"
    return JSONResponse({"error": text[:MOST_SAID]}, status, headers=getattr(mistake, "headers", None))


async def _body(request: Request) -> bytes:
    """The body of an order; raises HTTPException for another content type, ValueError if it is too long."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise HTTPException(415, "a request must be application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise ValueError(f"a request may have at most {MOST_BYTES} bytes")
    return body
