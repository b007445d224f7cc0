"""The live viewer: on this machine only, with sliders, and refused kindly without its extra."""

import signal
import socket
import urllib.request

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes, viewer
from psiphi._util.errors import Error
from psiphi.apps.viewer.live import viser_viewer
from tests.apps.viewer.browser import colors, differing, page, picture
from tests.apps.viewer.robots import swing
from tests.children import child, python


@pytest.fixture
def viser():
    return pytest.importorskip(
        "viser", reason="viser is not installed (pip install 'psiphi[viewer]')"
    )


def free_port() -> int:
    """A port that the system would give now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_it_listens_on_this_machine_only(viser):
    with viewer.view(pp.load("ur5"), port=free_port()) as shown:
        assert shown.url.startswith("http://127.0.0.1:") and shown.server.get_host() == "127.0.0.1"
        assert b"<html" in urllib.request.urlopen(shown.url, timeout=20).read(10_000).lower()
        shown.pose(np.full(6, 0.3))
        T = pp.load("ur5").frame_pose(np.full(6, 0.3), "wrist_3_link")
        assert np.allclose(shown._bodies[-1].position, T[:3, 3], atol=1e-9)
    shown.close()  # twice is no harm


def test_a_motion_is_placed_at_its_times(viser):
    motion = swing(0.2)
    with viewer.view(motion, port=free_port()) as shown:
        shown.seek(0.2)
        T = motion.system.frame_pose(motion.final.q, motion.system.bodies[-1].name)
        assert np.allclose(shown._bodies[-1].position, T[:3, 3], atol=1e-9)
        assert shown.time.value == pytest.approx(0.2)


@pytest.mark.parametrize("port", [-1, 0, 99_999, "a"])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(Error, match="port is"):
        viewer.view(pp.load("ur5"), port=port)


def test_a_port_that_is_taken_is_passed_over(viser, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with viewer.view(pp.load("acrobot"), port=port) as shown:
            assert shown.server.get_port() > port
        monkeypatch.setattr(viser_viewer, "PORTS", port)  # as if it were the last
        with pytest.raises(Error, match=f"no port from {port}"):
            viewer.view(pp.load("acrobot"), port=port)


def test_what_a_viewer_cannot_show_is_refused(viser):
    with viewer.view(swing(0.1), port=free_port()) as shown:
        nq = shown.scene.model.nq
        for call in (
            lambda: shown.seek("a"),
            lambda: shown.seek(np.nan),
            lambda: shown.pose(np.zeros(nq + 1)),
        ):
            with pytest.raises(Error):
                call()
        with pytest.raises(Error, match="finite"):
            shown.pose(np.full(nq, np.nan))


def test_the_sliders_show_the_joints_own_coordinates(viser):
    robot = pp.load("panda")  # its elbow cannot be straight: the robot is not shown at q = 0
    with viewer.view(robot, port=free_port()) as shown:
        home, elbow = shown.scene.motion.q[-1], robot.joint("panda_joint4")
        slider = shown._sliders[elbow.name]
        assert home[3] != 0.0 and slider.value == pytest.approx(home[3])
        assert (slider.min, slider.max) == pytest.approx((elbow.lower[0], elbow.upper[0]))
        slider.value = -1.0
        T = robot.frame_pose(np.where(np.arange(robot.nq) == 3, -1.0, home), "panda_link7")
        assert np.allclose(shown._bodies[6].position, T[:3, 3], atol=1e-9)


def test_a_slider_of_a_closed_chain_keeps_the_loop_closed(viser):
    case = scenes.load("four_bar")
    with viewer.view(case.system, q=case.q0, port=free_port()) as shown:
        asked = []
        shown.pose = asked.append
        shown._on_joint_slider(case.q0, 0, 0.3, "motor")
        (q,) = asked
        assert (
            q[0] == pytest.approx(case.q0[0] + 0.3)
            and np.abs(case.system.constraint_residual(q)).max() < 1e-9
        )


def test_in_the_browser_the_slider_moves_the_robot(viser):
    with page() as opened, viewer.view(swing(0.5), port=free_port()) as shown:
        opened.goto(shown.url)
        box = (0, 150, 600, 560)
        first = _settled(opened, box)
        assert colors(first) > 300
        slider = opened.locator("[role=slider]").first
        slider.focus()
        slider.press("End")
        for _ in range(50):
            if shown.now == pytest.approx(0.5):
                break
            opened.wait_for_timeout(100)
        assert shown.now == pytest.approx(0.5), "the slider's word has arrived"
        opened.wait_for_timeout(500)
        assert differing(first, _settled(opened, box)) > 1500


def _settled(opened, box) -> np.ndarray:
    """The picture once it stays the same."""
    last = picture(opened, box)
    for _ in range(60):
        opened.wait_for_timeout(500)
        now = picture(opened, box)
        if colors(now) > 300 and differing(last, now) < 20:
            return now
        last = now
    return last


def test_without_the_extra_a_sentence_names_it():
    lines = [
        "import sys",
        "sys.modules['viser'] = None",
        "import psiphi as pp",
        "from psiphi import viewer",
    ]
    code = "\n".join([*lines, "viewer.view(pp.load('acrobot'))"])
    done = python("-c", code)
    assert done.returncode == 1 and "pip install 'viser" in done.stderr
    assert issubclass(Error, ValueError)


SERVES = """
import signal, sys
from psiphi.apps.cli import main as cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore SIGINT
sys.exit(cli.main(["view", "acrobot", "--port", sys.argv[1]]))
"""


def test_the_command_serves_until_it_is_interrupted(viser):
    with child("-c", SERVES, str(free_port())) as process:
        assert process.stdout and process.stderr
        line = process.stdout.readline()
        assert line.startswith("open http://127.0.0.1:") and "Ctrl-C" in line
        url = line.split()[1].rstrip(";")
        assert b"<html" in urllib.request.urlopen(url, timeout=20).read(10_000).lower()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (0, 130)
        assert "Traceback" not in process.stderr.read()
