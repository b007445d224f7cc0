"""A headless Firefox for tests of pages, driven by Marionette (JSON over a socket).

Without Firefox the tests skip and say why.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.children import LIMIT, started

NAMES = ("firefox", "firefox-esr")


class Firefox:
    """One window: `open(url)`, `run(script, ...)`."""

    def __init__(self, connection: socket.socket):
        self.socket, self.words, self.count = connection, connection.makefile("rb"), 0
        self._read()  # it introduces itself
        self.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {}})
        self.ask("WebDriver:SetTimeouts", script=1000 * LIMIT, pageLoad=1000 * LIMIT)

    def open(self, url: str, ready: str) -> None:
        """Open a page and wait until the script is true: Firefox answers before it has loaded."""
        self.ask("WebDriver:Navigate", url=url)
        deadline = time.monotonic() + LIMIT
        while not (self.run("return location.href") == url and self.run(ready)):
            assert time.monotonic() < deadline, f"{url} does not open"
            time.sleep(0.2)

    def run(self, script: str, *given: Any) -> Any:
        """The value of a function's body on `arguments`."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=list(given), sandbox=None)[
            "value"
        ]

    def ask(self, command: str, **given: Any) -> Any:
        self.count += 1
        message = json.dumps([0, self.count, command, given]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, answer = self._read()
        assert error is None, error
        return answer

    def _read(self) -> Any:
        size = b""
        while (digit := self.words.read(1)) != b":":
            assert digit, "Firefox has hung up"
            size += digit
        return json.loads(self.words.read(int(size)))


@contextmanager
def firefox() -> Iterator[Firefox]:
    path = os.environ.get("PSIPHI_FIREFOX") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            "no Firefox on this machine: apt-get install firefox-esr, or name it in PSIPHI_FIREFOX"
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "user.js").write_text('user_pref("marionette.port", 0);\n', encoding="utf-8")
        words = [path, "--headless", "--marionette", "--no-remote", "--profile", folder]
        address = words, {**os.environ, "HOME": folder}
        with (
            started(*address),
            socket.create_connection(("127.0.0.1", _port(folder)), timeout=LIMIT) as connection,
        ):
            yield Firefox(connection)


def _port(folder: str) -> int:
    """The one it has taken, once it says so."""
    file, deadline = Path(folder, "MarionetteActivePort"), time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if file.exists() and (text := file.read_text(encoding="utf-8").strip()):
            return int(text)
        time.sleep(0.2)
    raise AssertionError("Firefox does not answer")
