"""The board in the browser: a page and a handful of JSON questions, for this machine's own user alone.

It binds 127.0.0.1, answers only to that name, takes orders only as JSON (which other sites' pages cannot send
unasked) and loads nothing from anywhere. Every mistake is status 4xx with one sentence in `error`.
"""

import json
import os
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
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from muzero_jax.play.web_session import WebGame

HOST = "127.0.0.1"
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
            raise HTTPException(404, f"there is no order {name[:32]}")
        if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise HTTPException(415, "orders are taken as application/json only")
        if "transfer-encoding" in request.headers:
            raise ValueError(f"an order must say its length, at most {MOST_BYTES} bytes")
        if int(request.headers.get("content-length", 0)) > MOST_BYTES:
            raise ValueError(f"an order has at most {MOST_BYTES} bytes")
        fields = _fields(await request.body(), ORDERS[name])
        return JSONResponse(await ask(name.replace("-", "_"), **fields))

    async def tree(request: Request) -> Response:
        return Response(await ask("tree"), headers=PICTURE_HEADERS, media_type="image/svg+xml")

    routes = [
        Route("/api/state", state),
        Route("/api/{order}", order, methods=["POST"]),
        Route("/tree.svg", tree),
        Mount("/", StaticFiles(directory=PAGE, html=True)),
    ]
    guards = [
        Middleware(BaseHTTPMiddleware, dispatch=_keep_to_itself),
        Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]),
    ]
    return Starlette(routes=routes, middleware=guards, exception_handlers={HTTPException: _refuse, ValueError: _refuse})


ORDERS: dict[str, dict[str, type]] = {
    "play": {"move": str, "ply": int},
    "agent-move": {"num_simulations": int, "ply": int},
    "analysis": {"num_simulations": int, "ply": int},
    "undo": {"colour": int},
    "new": {},
}
"""What may be posted under `/api`, with the fields it may hold; `WebGame`'s methods of that name."""


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
    config = uvicorn.Config(make_app(game), log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    return uvicorn.Server(config)


async def _keep_to_itself(request: Request, answer: RequestResponseEndpoint) -> Response:
    response = await answer(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _refuse(request: Request, mistake: Exception) -> Response:
    """One sentence in `error`; the status is 400 unless the mistake has its own."""
    return JSONResponse({"error": getattr(mistake, "detail", str(mistake))}, getattr(mistake, "status_code", 400))


def _fields(body: bytes, allowed: dict[str, type]) -> dict[str, Any]:
    """An order's fields, checked for their types; null counts as left out. Raises ValueError for anything else."""
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ValueError("an order is a JSON object")
    fields = {name: value for name, value in fields.items() if value is not None}
    for name, value in fields.items():
        if name not in allowed:
            raise ValueError(f"there is no field {name[:32]}")
        if type(value) is not allowed[name]:
            raise ValueError(f"{name} must be {'text' if allowed[name] is str else 'a whole number'}")
    if "move" in allowed and "move" not in fields:
        raise ValueError("a move is missing")
    return fields
