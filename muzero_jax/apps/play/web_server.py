"""The board in the browser: a page and a handful of JSON questions, for this machine's own user alone.

It binds 127.0.0.1, answers only to that name, takes orders only as JSON (which other sites' pages cannot send
unasked) and loads nothing from anywhere. Every mistake is status 4xx with one sentence in `error`.
"""

import json
import os
import re
import socket
import threading
from pathlib import Path
from typing import Any

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
OWN_NAMES = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
"""The names that this machine may have in a Host header; a page of another site would name its own."""
PAGE = Path(__file__).parent / "web"
MOST_BYTES = 10_000
"""The longest order that is read; the page sends none so long."""

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
    lock = threading.Lock()  # the game answers one question at a time

    async def ask(question: str, **fields) -> Any:
        def answer():
            with lock:
                return getattr(game, question)(**fields)

        return await run_in_threadpool(answer)

    async def state(request: Request) -> Response:
        return JSONResponse(await ask("state"))

    async def order(request: Request) -> Response:
        name = request.path_params["order"]
        if name not in ORDERS:
            raise HTTPException(404, f"there is no request {name[:32]}")
        _check_headers(request)
        fields = _fields(await request.body(), ORDERS[name])
        return JSONResponse(await ask(name.replace("-", "_"), **fields))

    async def tree(request: Request) -> Response:
        return Response(await ask("tree"), headers=PICTURE_HEADERS, media_type="image/svg+xml")

    app = Starlette(
        routes=[
            Route("/api/state", state),
            Route("/api/{order}", order, methods=["POST"]),
            Route("/tree.svg", tree),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_keep_to_itself)],
        exception_handlers={kind: _refuse for kind in (HTTPException, ValueError, ClientDisconnect, Exception)},
    )
    app.router.redirect_slashes = False  # an address with a slash too many is a mistake like any other
    return app


ORDERS: dict[str, dict[str, type]] = {
    "play": {"move": str, "ply": int, "seat": int},
    "agent-move": {"num_simulations": int, "ply": int, "seat": int},
    "analysis": {"num_simulations": int, "ply": int, "seat": int, "overlay": str},
    "undo": {"colour": int, "seat": int},
    "new": {"seat": int},
    "look": {"seat": int},
}
"""The orders that may be posted under `/api`, with their fields; `WebGame`'s methods of that name."""


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1 that takes connections at once, so that a browser that is early waits for its answer.

    Port 0 takes any that is free. Raises ValueError if the port is not to be had.
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"--port is {port}, but must be from 0 to 65535")
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ValueError(f"port {port} cannot be used ({reason}): choose another with --port") from None


def make_server(game: WebGame) -> uvicorn.Server:
    """A server that `run(sockets=[...])` runs until it is interrupted or `should_exit` is set."""
    options = {"log_level": "warning", "lifespan": "off", "ws": "none", "timeout_graceful_shutdown": 1}
    return uvicorn.Server(uvicorn.Config(make_app(game), http="h11", **options))


async def _keep_to_itself(request: Request, answer: RequestResponseEndpoint) -> Response:
    if OWN_NAMES.fullmatch(request.headers.get("host", "")):
        response = await answer(request)
    else:
        response = await _refuse(request, HTTPException(400, "this page answers to 127.0.0.1 and localhost only"))
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _refuse(request: Request, mistake: Exception) -> Response:
    """One sentence in `error`: 400, or the mistake's own status, or 500 for what is no mistake of the asker's."""
    if isinstance(mistake, HTTPException):
        status, text = mistake.status_code, mistake.detail
    elif isinstance(mistake, (ValueError, ClientDisconnect)):
        status, text = 400, str(mistake)
    else:
        status, text = 500, "the server failed; its terminal says why"
    sayable = text.encode("utf-8", "replace").decode()  # JSON can hold half of a surrogate pair; UTF-8 cannot
    return JSONResponse({"error": sayable}, status, headers=getattr(mistake, "headers", None))


def _check_headers(request: Request) -> None:
    """Raises HTTPException or ValueError unless an order is JSON of a stated length that is not too long."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise HTTPException(415, "a request must be application/json")
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers or not re.fullmatch("[0-9]+", length):
        raise ValueError(f"a request must have a Content-Length of at most {MOST_BYTES}")
    if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
        raise ValueError(f"a request may have at most {MOST_BYTES} bytes")


def _fields(body: bytes, allowed: dict[str, type]) -> dict[str, Any]:
    """An order's fields, checked for their types; null counts as left out. Raises ValueError for anything else."""
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ValueError("a request must be a JSON object")
    fields = {name: value for name, value in fields.items() if value is not None}
    for name, value in fields.items():
        if name not in allowed:
            raise ValueError(f"there is no field {name[:32]}")
        if type(value) is not allowed[name]:
            raise ValueError(f"{name} must be {'text' if allowed[name] is str else 'a whole number'}")
        if name in ("seat", "colour") and value not in (0, 1):
            raise ValueError(f"{name} must be 0 or 1")
    if "move" in allowed and "move" not in fields:
        raise ValueError("a move is missing")
    return fields
