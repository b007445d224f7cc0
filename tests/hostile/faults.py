"""Things that go wrong around a program: writers that are killed, forks, threads. Each from a seed.

An attack returns how many cases it tried when all went well, and raises AssertionError where
something was lost, wrong or hung. What happens to kernels on disk is in `kernel_faults.py`.
"""

from __future__ import annotations

import os
import random
import resource
import select
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import psiphi as pp
from psiphi import viewer
from psiphi._util.errors import Error
from tests.children import LIMIT

PATIENCE = 60.0  # seconds that a child may take
ROUND = 10  # cases with one robot


def fork(work: Callable[[], object]) -> int:
    """A child that does the work and ends: 0 done, 3 refused in words, 1 anything else."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        work()
        status = 0
    except Error:
        status = 3
    finally:
        os._exit(status)


def status(child: int) -> int | None:
    """How a child ended; None where it hung and had to be killed."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        time.sleep(0.002)
    kill(child)
    return None


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def told(work: Callable[[], bytes]) -> bytes:
    """What a child answers."""
    reading, writing = os.pipe()
    child = fork(lambda: os.write(writing, work()))
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], PATIENCE)  # until it has answered or ended
    data = os.read(reading, 1 << 16) if ready else b""
    end = status(child)
    os.close(reading)
    assert end == 0, f"a process hung or failed: {end}"
    return data


@contextmanager
def folder():
    path = Path(tempfile.mkdtemp(prefix="psiphi-faults-"))
    before = os.environ.get("PSIPHI_CACHE", "")
    os.environ["PSIPHI_CACHE"] = str(path / "cache")
    try:
        yield path
    finally:
        os.environ["PSIPHI_CACHE"] = before
        shutil.rmtree(path, ignore_errors=True)


def answer(robot: pp.Robot) -> bytes:
    q, v = robot.random(seed=1), np.linspace(-1.0, 1.0, robot.nv)
    return robot.forward_dynamics(q, v, v).tobytes()


def fresh(rng: random.Random) -> pp.Robot:
    """A small arm that no cache knows."""
    b = pp.Builder("arm")
    for k in range(2):
        b.body(f"l{k}", 1.0 + rng.random(), com=(0.3, 0, 0), inertia=np.eye(3))
        b.joint(
            f"j{k}",
            "revolute",
            f"l{k - 1}" if k else "world",
            f"l{k}",
            axis=(0, 1, 0),
            xyz=(0.5 * k, 0, 0),
        )
    return b.build()


def killed_page(seed: int) -> int:
    """kill -9 while a page is written: the old one or the new one is there, whole."""
    rng = random.Random(seed)
    with folder() as here:
        path, scene = here / "page.html", viewer.scene(pp.load("acrobot"), q=np.zeros(2))
        viewer.html_page.write_page(scene, path)
        whole = path.read_bytes()
        for _ in range(ROUND):
            child = fork(lambda: [viewer.html_page.write_page(scene, path) for _ in range(1000)])
            time.sleep(rng.random() * 0.05)
            kill(child)
            assert path.read_bytes() == whole, "half a page"
    return ROUND


def page_on_a_full_disk(seed: int) -> int:
    """A disk that takes so many bytes and no more: a page is refused in words, and nothing is left
    of it."""
    rng = random.Random(seed)
    with folder() as here:
        robot, page = pp.load("acrobot"), here / "page.html"
        for _ in range(ROUND):
            limit = rng.choice([0, 1, 100, 4096, 20_000])
            small = lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))  # noqa: E731
            assert status(fork(lambda s=small: (s(), viewer.html(robot, page)))) == 3, (
                "a page on a full disk"
            )
            assert not page.exists(), "half a page"
    return ROUND


def forked(seed: int) -> int:
    """Forks at random moments of another thread's first calls."""
    rng = random.Random(seed)
    with folder():
        os.environ["PSIPHI_CACHE"] = "off"
        robot = fresh(rng)
        expected, cold = answer(pp.Robot.of(robot)), pp.Robot.of(robot)
        worker = threading.Thread(target=lambda: answer(cold))
        worker.start()
        children = []
        for _ in range(5):
            time.sleep(rng.random() * 0.02)
            children.append(fork(lambda: _same(cold, expected)))
        ends = [status(child) for child in children]
        worker.join(LIMIT)
        assert ends == [0] * 5, f"children ended with {ends}"
    return 5


def _same(robot: pp.Robot, expected: bytes) -> None:
    assert answer(robot) == expected


def threads(seed: int) -> int:
    """Sixteen threads, cold robots, shared and their own: the same bits."""
    rng = random.Random(seed)
    with folder():
        robots = [fresh(rng) for _ in range(3)]
        expected = [answer(pp.Robot.of(robot)) for robot in robots]
        cold, start, wrong = (
            [pp.Robot.of(robot) for robot in robots],
            threading.Barrier(16, timeout=LIMIT),
            [],
        )

        def work(i: int) -> None:
            start.wait(LIMIT)
            if answer(cold[i % 3]) != expected[i % 3]:
                wrong.append(i)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE)
        assert not wrong and not any(worker.is_alive() for worker in workers)
    return 16


ATTACKS = {
    "kill -9 while a page is written": killed_page,
    "a page on a full disk": page_on_a_full_disk,
    "forks in another thread's first call": forked,
    "first calls in 16 threads": threads,
}
