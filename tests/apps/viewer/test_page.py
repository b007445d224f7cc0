"""The page as data: one file, nothing to fetch, every picture in it."""

import json
import os
import re
import threading

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes, viewer
from psiphi._util.errors import StateError
from psiphi.apps.viewer.html_page import page, page_data
from psiphi.model.builder.builder import Builder
from psiphi.simulation.simulate.simulate import simulate
from tests.apps.viewer.robots import swing

SCENE = re.compile(r'<script type="application/json" id="scene">(.*?)</script>', re.DOTALL)


def embedded(text: str) -> dict:
    (found,) = SCENE.findall(text)
    return json.loads(found)


@pytest.fixture(scope="module")
def motion():
    return swing()


def test_the_file_stands_alone(motion, tmp_path):
    path = viewer.html(motion, tmp_path / "puma.html")
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", text), "nothing is fetched"
    assert "{{" not in text
    assert not re.search(r"\b(fetch|import|XMLHttpRequest|WebSocket)\s*\(", text)
    links = set(re.findall(r"https?://[^\"'\s<]+", text))
    assert links <= {"http://www.w3.org/2000/svg"}, "a name, not an address"
    assert list(tmp_path.iterdir()) == [path], "nothing is left beside it"


def test_all_pictures_are_there_and_right(motion):
    """The poses of the page put every frame where the robot's own functions put it."""
    robot, scene = motion.system, viewer.scene(motion)
    d = embedded(page(scene))
    assert d["t"][0] == 0.0 and d["t"][-1] == 0.5 and len(d["t"]) == len(d["poses"]) == 31
    k, last = len(robot.bodies) - 1, np.array(d["poses"][-1]).reshape(-1, 7)
    T = robot.frame_pose(motion.final.q, robot.bodies[k].name)
    assert np.allclose(last[k, :3], T[:3, 3], atol=2e-5)
    assert np.allclose(np.linalg.norm(last[:, 3:], axis=1), 1.0, atol=2e-5)
    assert {piece["body"] for piece in d["pieces"]} >= set(range(6))


def test_plots_and_facts_are_plain_text(motion):
    text = page(viewer.scene(motion))
    for title in ("energy", "joint coordinates", "joint velocities"):
        assert f"<figcaption>{title}<span>" in text
    assert text.count('<svg class="plot"') == 3 and text.count('class="cursor"') == 3
    assert "<td>energy drift</td>" in text and "waist" in text


def test_a_still_robot_and_a_tour():
    robot = pp.load("ur5")
    assert len(page_data(viewer.scene(robot, q=np.zeros(6)))["t"]) == 1
    d = page_data(viewer.scene(robot))
    moved = np.ptp(np.array(d["poses"]).reshape(len(d["t"]), 6, 7), axis=0).max(axis=-1)
    assert (moved > 0.05).all(), "every joint swings"


def test_names_cannot_break_out_of_the_page():
    b = Builder("</script><script>alert(1)</script>")
    b.body("<b>&\"'", mass=1.0, com=(0, 0, -0.5))
    b.joint("</title>", "revolute", parent="world", child="<b>&\"'", axis=(0, 1, 0))
    text = page(viewer.scene(b.build()))
    assert "<script>alert" not in text and "</title><" not in text.replace("</title>\n", "")
    assert embedded(text)["title"].startswith("</script>")


def test_forces_stand_at_their_contacts():
    case = scenes.load("two_arms")
    motion = case.run(duration=0.02)
    d = page_data(viewer.scene(motion))
    cell, arrows = case.system, d["arrows"]
    assert len(arrows["names"]) == 2
    for i, contact in enumerate(cell.contacts):
        assert np.allclose(
            arrows["at"][-1][i], cell.frame_pose(motion.final.q, contact.second)[:3, 3], atol=2e-5
        )
    up = np.array(arrows["force"]).sum(axis=1)[:, 2]
    assert np.allclose(up, 5.0 * 9.81, atol=0.5), "together they carry the box"
    assert np.allclose(d["radius"], viewer.scene(motion).extent[1], atol=1e-4)


def test_the_carried_box_is_drawn_at_its_size():
    case = scenes.load("two_arms")
    (box,) = [
        p
        for p in viewer.scene(case.system, q=case.q0).pieces
        if p.body == len(case.system.bodies) - 1
    ]
    assert box.kind == "box" and np.allclose(sorted(box.size), [0.24, 0.3, 0.4])


def test_a_closed_chain_alone_is_assembled():
    system = scenes.load("four_bar").system
    shown = viewer.scene(system)
    assert len(shown.t) == 1 and np.abs(system.constraint_residual(shown.motion.q[0])).max() < 1e-9
    assert shown.freedom == "3 coordinates, 3 constraint rows"


def test_a_batch_shows_one_element():
    robot = pp.load("acrobot")
    motion = simulate(robot, robot.random(seed=0, size=3), duration=0.1)
    a, b = (page_data(viewer.scene(motion, element=k))["poses"] for k in (0, 2))
    assert a != b
    with pytest.raises(StateError, match="the batch has 3"):
        viewer.scene(motion, element=3)


def test_a_motion_that_diverged_shows_what_is_finite():
    robot = pp.load("acrobot")
    q = np.zeros((4, 2))
    q[2:] = np.nan
    assert len(page_data(viewer.scene(robot, q=q))["t"]) == 2
    with pytest.raises(StateError, match="no finite configuration"):
        viewer.scene(robot, q=np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("thing", "options", "words"),
    [
        ("ur5", {}, "cannot be shown"),
        (None, {}, "the trajectory has no system"),
        (pp.load("ur5"), {"q": [1.0, 2.0]}, r"expected \(times, 6\)"),
        (pp.load("ur5"), {"q": np.zeros((2, 6)), "t": [0.0]}, "one time for each"),
        (pp.load("ur5"), {"shapes": 3}, "expected a URDF file"),
        (pp.load("ur5"), {"q": "home"}, "expected real numbers"),
        (pp.load("ur5"), {"q": np.zeros((3, 6)), "t": [0.0, 2.0, 1.0]}, "do not increase"),
    ],
)
def test_what_cannot_be_shown_is_refused(thing, options, words):
    with pytest.raises(StateError) as refused:
        viewer.scene(thing, **options)
    assert re.search(words, str(refused.value))


def test_a_folder_is_no_page(tmp_path):
    with pytest.raises(StateError, match="is a folder"):
        viewer.html(pp.load("ur5"), tmp_path)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes on this system")
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(
        target=lambda: got.append(pipe.read_text(encoding="utf-8")), daemon=True
    )
    reader.start()
    viewer.html(pp.load("acrobot"), pipe)
    reader.join(timeout=30)
    assert pipe.is_fifo() and got[0].startswith("<!doctype html>")


def test_many_bodies_stay_small():
    text = page(viewer.scene(pp.load("g1")))
    assert len(text) < 1_000_000
