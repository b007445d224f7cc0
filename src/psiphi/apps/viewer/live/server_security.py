"""Restricts the live viewer's server to requests and messages of the viewer's own page.

The server listens on this machine only, but any page in the user's browser can send requests to it.
So a request is answered only if its Host header is a name of this machine, which excludes DNS
rebinding, and a WebSocket is accepted only if its Origin is that host. Messages that are not those
of the viewer's page are dropped and logged; nothing is printed on the user's terminal.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Protocol

LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
MAX_PATH_LENGTH = 1000  # characters
LOG = logging.getLogger("psiphi.viewer")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False  # requests of strangers must not print on the user's terminal


class Headers(Protocol):
    """The headers of a request."""

    def get(self, name: str, default: str, /) -> str: ...
    def get_all(self, name: str, /) -> list[str]: ...


class Request(Protocol):
    """A `Request` of websockets."""

    path: str
    headers: Headers


class Connection(Protocol):
    """A `ServerConnection` of websockets."""

    recv: Callable[..., Awaitable[str | bytes]]

    @property
    def subprotocol(self) -> str | None: ...
    def respond(self, status: HTTPStatus, text: str, /) -> object: ...
    def close(self, code: int, reason: str, /) -> Awaitable[None]: ...


@contextmanager
def restrict_servers() -> Iterator[list[bool]]:
    """In this context, servers that viser starts are restricted.

    Yields a list that is empty until a server has been restricted.
    """
    module, seen = sys.modules["websockets.asyncio.server"], []
    plain = module.serve

    def serve(
        handler: Callable, *args: Any, process_request: Callable | None = None, **options: Any
    ) -> Any:
        seen.append(True)
        return plain(
            _checked_connection(handler),
            *args,
            **{**options, "process_request": _checked_request(process_request), "logger": LOG},
        )

    module.serve = serve  # type: ignore[attr-defined]
    try:
        yield seen
    finally:
        module.serve = plain  # type: ignore[attr-defined]


def refusal(path: str, host: str | None, origin: str | None, socket: bool) -> HTTPStatus | None:
    """The HTTP status with which a request is refused; None if it is accepted.

    >>> refusal("/", "127.0.0.1:8080", None, socket=False) is None
    True
    >>> refusal("/", "127.0.0.1:8080", "http://evil.example", socket=True).phrase
    'Forbidden'
    """
    if host is None or not LOCAL_HOST.fullmatch(host):
        return HTTPStatus.FORBIDDEN
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return HTTPStatus.FORBIDDEN
    if socket and origin is None:
        return HTTPStatus.FORBIDDEN
    return HTTPStatus.NOT_FOUND if len(path) > MAX_PATH_LENGTH or "%00" in path else None


def _checked_request(answer: Callable | None) -> Callable:
    """viser's handler of a request, for accepted requests only."""

    def handle(connection: Connection, request: Request) -> object:
        fields = [request.headers.get_all(name) for name in ("Host", "Origin")]
        host, origin = (
            values[0] if len(values) == 1 else None if not values else "" for values in fields
        )
        socket = request.headers.get("Upgrade", "").lower() == "websocket"
        status = refusal(request.path, host, origin, socket)
        if status is None:
            try:
                return answer(connection, request) if answer is not None else None
            except Exception as error:
                LOG.debug("no answer to %r: %r", request.path[:100], error)
                status = HTTPStatus.NOT_FOUND
        return connection.respond(
            status, f"{status.phrase}: this viewer serves pages of its own machine only.\n"
        )

    return handle


def _checked_connection(handler: Callable) -> Callable:
    """viser's handler of a connection, with valid messages only; errors go to the log."""

    async def handle(connection: Connection) -> None:
        import viser

        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: LOG.debug("%s", context)
        )
        if connection.subprotocol != f"viser-v{viser.__version__}":
            await connection.close(1002, "other version of viser")
            return
        receive = connection.recv

        async def receive_message(*args: Any, **options: Any) -> str | bytes:
            while not _is_message(raw := await receive(*args, **options)):
                LOG.debug("dropped %r", raw[:100])
            return raw

        connection.recv = receive_message
        try:
            await handler(connection)
        except Exception as error:
            LOG.debug("a connection failed: %r", error)

    return handle


def _is_message(raw: str | bytes) -> bool:
    """Whether viser can decode a message, and it sets only values of controls, to valid values."""
    from viser import _messages

    if isinstance(raw, str):  # viser's messages are binary
        return False
    try:
        message = _messages.Message.deserialize(raw)
        updates = getattr(message, "updates", {})
        return set(updates) <= {"value"} and all(_is_value(value) for value in updates.values())
    except Exception:  # msgpack and viser's dataclasses raise many types on invalid data
        return False


def _is_value(value: object) -> bool:
    return isinstance(value, bool | str) or (
        isinstance(value, int | float) and abs(value) < math.inf
    )
