"""Things that go wrong around a program: writers that are killed, disks that are full, forks, threads. Each from a seed.

An attack returns when all went well, and raises AssertionError where something was lost, wrong or hung.
"""

from __future__ import annotations

import os
import random
import resource
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
from children import LIMIT
from psiphi import viewer
from psiphi.errors import Error

PATIENCE = 60.0  # seconds that a child may take


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
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


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
    return robot.forward_dynamics(q, v, v).tobytes() + robot.gravity(q).tobytes()


def fresh(rng: random.Random) -> pp.Robot:
    """A small arm that no cache knows."""
    b = pp.Builder("arm")
    for k in range(2):
        b.body(f"l{k}", 1.0 + rng.random(), com=(0.3, 0, 0), inertia=np.eye(3))
        b.joint(f"j{k}", "revolute", f"l{k - 1}" if k else "world", f"l{k}", axis=(0, 1, 0), xyz=(0.5 * k, 0, 0))
    return b.build()


def killed_compiler(seed: int) -> None:
    """kill -9 while a kernel is compiled or written: the next process answers, with the same bits, and the cache is sound."""
    rng = random.Random(seed)
    with folder():
        robot = fresh(rng)
        for _ in range(3):
            child = fork(lambda: answer(pp.Robot.of(robot)))
            time.sleep(rng.random() * 0.15)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        expected = []
        for _ in range(2):
            reading, writing = os.pipe()
            child = fork(lambda w=writing: os.write(w, answer(pp.Robot.of(robot))))
            os.close(writing)
            expected.append(os.read(reading, 1 << 16))
            os.close(reading)
            assert status(child) == 0, "the next process hung or failed"
        assert expected[0] == expected[1] and len(expected[0]) == 32, "other bits after a kill"


def killed_page(seed: int) -> None:
    """kill -9 while a page is written: the old one or the new one is there, whole."""
    rng = random.Random(seed)
    with folder() as here:
        path, scene = here / "page.html", viewer.scene(pp.load("acrobot"), q=np.zeros(2))
        viewer.page.write(scene, path)
        whole = path.read_bytes()
        for _ in range(5):
            child = fork(lambda: [viewer.page.write(scene, path) for _ in range(1000)])
            time.sleep(rng.random() * 0.05)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            assert path.read_bytes() == whole, "half a page"


def full_disk(seed: int) -> None:
    """A disk that takes so many bytes and no more: kernels run without the cache, a page is refused in words."""
    rng = random.Random(seed)
    limit = rng.choice([0, 1, 100, 4096, 20_000])

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with folder() as here:
        robot = fresh(rng)
        assert status(fork(lambda: (small(), answer(robot)))) == 0, "a full disk stopped the dynamics"
        page = here / "page.html"
        assert status(fork(lambda: (small(), viewer.html(robot, page)))) == 3, "a page on a full disk"
        assert not page.exists(), "half a page"
        assert status(fork(lambda: answer(robot))) == 0, "what the full disk left is in the way"


def forked(seed: int) -> None:
    """Forks at random moments of another thread's first calls."""
    rng = random.Random(seed)
    with folder():
        os.environ["PSIPHI_CACHE"] = "off"
        robot = fresh(rng)
        expected, cold = answer(pp.Robot.of(robot)), pp.Robot.of(robot)
        worker = threading.Thread(target=lambda: answer(cold))
        worker.start()
        children = []
        for _ in range(3):
            time.sleep(rng.random() * 0.05)
            children.append(fork(lambda: _same(cold, expected)))
        ends = [status(child) for child in children]
        worker.join(LIMIT)
        assert ends == [0, 0, 0], f"children ended with {ends}"


def _same(robot: pp.Robot, expected: bytes) -> None:
    assert answer(robot) == expected


def threads(seed: int) -> None:
    """Sixteen threads, cold robots, shared and their own: the same bits."""
    rng = random.Random(seed)
    with folder():
        robots = [fresh(rng) for _ in range(3)]
        expected = [answer(pp.Robot.of(robot)) for robot in robots]
        cold, start, wrong = [pp.Robot.of(robot) for robot in robots], threading.Barrier(16, timeout=LIMIT), []

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


def damaged_cache(seed: int) -> None:
    """Entries cut, flipped, exchanged, emptied or replaced by links: built again, with the same bits."""
    rng = random.Random(seed)
    with folder() as here:
        robot = fresh(rng)
        expected = answer(pp.Robot.of(robot))
        for path in sorted((here / "cache").iterdir()):
            data = bytearray(path.read_bytes())
            how = rng.randrange(5)
            if how == 0:
                data = data[: rng.randrange(len(data) + 1)]
            elif how == 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            elif how == 2:
                data = data + b"x"
            elif how == 3:
                path.rename(here / "elsewhere")
                path.symlink_to(here / "elsewhere")
                continue
            else:
                data = bytearray(rng.randbytes(len(data)))
            path.write_bytes(data)
        assert status(fork(lambda: _same(pp.Robot.of(robot), expected))) == 0, "a damaged cache was believed, or stopped it"


ATTACKS = {
    "killed compiler": killed_compiler,
    "killed page": killed_page,
    "full disk": full_disk,
    "forked": forked,
    "threads": threads,
    "damaged cache": damaged_cache,
}
