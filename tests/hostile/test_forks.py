"""A fork at any moment of another thread's first call: the child answers, with the same bits, and
does not wait for ever."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import psiphi as pp
from tests.children import LIMIT

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
PATIENCE = 30.0  # seconds that a child may take


def finished(child: int) -> int | None:
    """The child's status; None when it had to be ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def answers(robot: pp.Robot) -> bytes:
    q, v = robot.random(seed=1), np.linspace(-1.0, 1.0, robot.nv)
    return b"".join([robot.forward_dynamics(q, v, v).tobytes(), robot.mass_matrix(q).tobytes()])


def fork_while(busy, ask, pauses) -> list[int | None]:
    """Start `busy` in a thread, fork after each pause, let the child `ask`; the children's
    statuses."""
    worker = threading.Thread(target=busy)
    worker.start()
    ends = []
    for pause in pauses:
        time.sleep(pause)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = ask()
            finally:
                os._exit(status)
        ends.append(child)
    ends = [finished(child) for child in ends]
    worker.join(LIMIT)
    return ends


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", "off")


@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_a_fork_while_another_thread_compiles(name):
    expected, robot = answers(pp.load(name)), pp.load(name)
    ends = fork_while(
        lambda: answers(robot), lambda: int(answers(robot) != expected), [0.005, 0.02, 0.05]
    )
    assert ends == [0] * 3


def test_a_fork_while_another_thread_rewrites_and_another_function_is_asked_for():
    robot = pp.load("ur5")
    expected = answers(pp.load("ur5"))

    def busy():
        s = robot.operators
        pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)(robot.neutral())
        pp.prove(s.mass, s.mass.T)

    assert fork_while(busy, lambda: int(answers(robot) != expected), [0.001, 0.02]) == [0, 0]


def test_every_lock_is_remade():
    """Each lock that a thread may hold at a fork is free in the child: loops of gufuncs, the pool,
    cached properties."""
    robot = pp.load("acrobot")
    loops = robot.function("gravity").ufunc.__dict__["_psiphi"].loops
    held, go = threading.Event(), threading.Event()

    def hold():
        with loops[0].lock:
            held.set()
            go.wait(PATIENCE)

    worker = threading.Thread(target=hold)
    worker.start()
    held.wait(LIMIT)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.isfinite(robot.gravity(np.zeros(2))).all() else 1)
    status = finished(child)
    go.set()
    worker.join(LIMIT)
    assert status == 0


def test_many_threads_on_different_robots():
    """Cold starts of four robots in sixteen threads: the same bits as one after the other."""
    names = ["acrobot", "pelican", "puma560", "ur5"]
    expected = {name: answers(pp.load(name)) for name in names}
    robots, wrong = {name: pp.load(name) for name in names}, []
    start = threading.Barrier(16, timeout=LIMIT)

    def work(name):
        start.wait(LIMIT)
        if answers(robots[name]) != expected[name]:
            wrong.append(name)

    workers = [threading.Thread(target=work, args=(names[i % len(names)],)) for i in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT)
    assert not wrong
