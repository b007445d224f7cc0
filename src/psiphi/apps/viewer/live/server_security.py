"""Who may talk to the live viewer, and what they may say.

Its server listens on this machine only, but every page in the user's browser can reach this machine. So a request is answered
only when its Host is this machine by name (a rebound name of the outer world is not), and a connection is made only for a page
of the viewer's own: its Origin is that very Host. What comes in and is no message of the viewer's page is dropped without a
word on the user's terminal.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
MAX_PATH_LENGTH = 1000  # letters of a path
LOG = logging.getLogger("psiphi.viewer")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False  # strangers do not write on the user's terminal


@contextmanager
def restrict_servers() -> Iterator[list[bool]]:
    """While this lasts, a viser server that starts gets the gate; the list that is given is empty until one has."""
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
    """Why a request is not answered; None when it is.

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
    """viser's answer to a request, where one is due."""

    def asked(connection: Any, request: Any) -> Any:
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
            status, f"{status.phrase}: this viewer is for pages of its own machine.\n"
        )

    return asked


def _checked_connection(handler: Callable) -> Callable:
    """viser's handler of a connection; what a stranger breaks stays in the log."""

    async def talked(connection: Any) -> None:
        import viser

        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: LOG.debug("%s", context)
        )
        if connection.subprotocol != f"viser-v{viser.__version__}":
            await connection.close(1002, "another version")
            return
        hear = connection.recv

        async def heard(*args: Any, **options: Any) -> Any:
            while not _is_message(raw := await hear(*args, **options)):
                LOG.debug("dropped %r", raw[:100])
            return raw

        connection.recv = heard
        try:
            await handler(connection)
        except Exception as error:
            LOG.debug("a connection broke: %r", error)

    return talked


def _is_message(raw: Any) -> bool:
    """One of viser's own, which changes a control's value to something that can be one."""
    from viser import _messages

    try:
        message: Any = _messages.Message.deserialize(raw)
        updates = getattr(message, "updates", {})
        return set(updates) <= {"value"} and all(_is_value(value) for value in updates.values())
    except Exception:  # whatever msgpack and viser's dataclasses make of junk
        return False


def _is_value(value: Any) -> bool:
    return isinstance(value, bool | str) or (
        isinstance(value, int | float) and abs(value) < math.inf
    )
