"""A call in a box: a forked process with so much memory and so many seconds, and what became of
it."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from psiphi._util.errors import Error

MEGA = 1 << 20


class Outcome(NamedTuple):
    """`end`: "answered", "refused" (a psiphi.Error), "escaped" (any other exception), "killed" (a
    signal) or "late"."""

    end: str
    words: str
    seconds: float
    megabytes: float  # that the call added

    @property
    def good(self) -> bool:
        return self.end in ("answered", "refused")


def boxed(call: Callable[[], Any], seconds: float = 10.0, megabytes: float = 1000.0) -> Outcome:
    """Run `call` in a fork of this process; `megabytes` is what it may have beyond what this
    process has now."""
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _inside(call, writing, megabytes)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], seconds)
        data = b""
        while ready and (more := os.read(reading, 1 << 16)):
            data += more
    finally:
        os.close(reading)
    took = time.monotonic() - start
    if not data:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if data:
        end, words, added = json.loads(data)
        return Outcome(end, words, took, added)
    return Outcome(
        "late" if not ready else "killed", f"status {os.waitstatus_to_exitcode(status)}", took, 0.0
    )


def _inside(call: Callable[[], Any], writing: int, megabytes: float) -> None:
    """The child: it never returns into the caller's frames."""
    try:
        before = _peak()
        limit = _address_space() + int(megabytes * MEGA)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        warnings.simplefilter("ignore")
        try:
            end, words = "answered", repr(call())[:200]
        except Error as error:
            end, words = "refused", str(error)[:500]
        except BaseException as error:
            end, words = "escaped", f"{type(error).__name__}: {error}"[:500]
        os.write(writing, json.dumps([end, words, _peak() - before]).encode())
    finally:
        os._exit(0)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
