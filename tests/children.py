"""Processes and threads that tests start: each has a limit, and none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
PATHS = (SRC, ROOT, ROOT / "benchmarks")  # psiphi, tests and psiphi_bench
LIMIT = 120.0  # seconds, on a busy machine
FORCED = "PSIPHI_TESTS_AVX2" in os.environ  # in the tests' own processes alone
same_code = pytest.mark.skipif(FORCED, reason="other processes have this processor's own code")


def environment(**changes: str) -> dict[str, str]:
    """Ours, in which Python finds psiphi's sources."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS)), **changes}


def python(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Python with these words, and these changes of the environment, in a process of its own."""
    options = {
        "capture_output": True,
        "text": True,
        "errors": "surrogateescape",
        "stdin": subprocess.DEVNULL,
    }
    return subprocess.run(
        [sys.executable, *words], env=environment(**changes), timeout=LIMIT, **options
    )


@contextmanager
def child(*words: str, **changes: str) -> Iterator[subprocess.Popen[str]]:
    """The same, still running: killed at the limit, which ends its pipes, too, and in any case in
    the end."""
    with started((sys.executable, *words), environment(**changes), subprocess.PIPE) as process:
        yield process


@contextmanager
def started(
    words: Iterable[str], env: dict[str, str], output: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Any program, likewise."""
    options = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
    with subprocess.Popen(
        list(words), env=env, text=True, errors="surrogateescape", **options
    ) as process:
        clock = threading.Timer(LIMIT, process.kill)
        clock.start()
        try:
            yield process
        finally:
            clock.cancel()
            process.kill()


def exit_code(pid: int) -> int:
    """Of a forked child, negative for a signal; one that does not end is killed: -9."""
    deadline = time.monotonic() + LIMIT
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def in_threads(calls: Iterable[Callable[[], object]]) -> None:
    """The calls at the same time, a thread each; what one raises is raised, and all have to end."""
    raised: list[BaseException] = []

    def guarded(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + LIMIT
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if raised:
        raise raised[0]
    assert not any(thread.is_alive() for thread in threads), "a thread does not end"
