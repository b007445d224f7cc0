"""Who waits for a compilation is told what it is, once, and only where somebody watches."""

import io
import time
from types import SimpleNamespace

import pytest

import psiphi as pp
from psiphi.backends import compile_notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(compile_notice, "DELAY", 0.05)
    streams = SimpleNamespace(stderr=Terminal())  # pytest exchanges sys.stderr itself
    monkeypatch.setattr(compile_notice, "sys", streams)
    return streams.stderr


def wait(what, seconds):
    with compile_notice.notice(what):
        time.sleep(seconds)
    return compile_notice.sys.stderr.getvalue()


def test_a_line_after_the_delay(terminal):
    assert wait("gravity of ur5", 0.0) == ""
    line = "psiphi: compiling gravity of ur5; it is kept for later calls and processes\n"
    assert wait("gravity of ur5", 0.5) == line
    terminal.truncate(0)
    with pytest.raises(ZeroDivisionError), compile_notice.notice("gravity of ur5"):
        raise ZeroDivisionError
    time.sleep(0.2)
    assert not terminal.getvalue().strip("\0")


def test_no_line_in_a_log(terminal, monkeypatch):
    monkeypatch.setattr(compile_notice, "sys", SimpleNamespace(stderr=io.StringIO()))
    assert wait("gravity of ur5", 0.2) == ""


def test_names_come_from_the_function_and_the_robot(terminal, monkeypatch, tmp_path):
    """Compiled in an empty cache; a name from a file cannot command the terminal."""
    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_notice, "DELAY", 0.0)
    b = pp.Builder("arm\x1b[2J")
    b.body("rod", mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    robot = b.build()
    robot.forward_dynamics([0.1], [0.0], [0.0])
    told = terminal.getvalue()
    assert "compiling forward_dynamics of arm" in told and "\x1b" not in told
    pp.rollout(robot, [0.1], steps=2)
    assert "compiling motions of arm" in terminal.getvalue()
