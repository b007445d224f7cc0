"""Robots by name from the clones that robot_descriptions keeps, without importing it."""

import pytest

import psiphi as pp
from psiphi.io.urdf.ros_packages import descriptions
from tests.io.urdf.faulty_urdf import ROBOT

MJCF = """<mujoco model="go2"><worldbody><body name="trunk"><freejoint/>
<geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    for folder, files in (
        ("mujoco_menagerie/unitree_go2", {"go2.xml": MJCF, "go2_mjx.xml": MJCF, "scene.xml": ""}),
        ("mujoco_menagerie/some_arm", {"model.xml": MJCF, "scene_left.xml": ""}),
        ("mujoco_menagerie/unclear", {"a.xml": MJCF, "b.xml": MJCF}),
        ("example-robot-data/robots/sound_description/urdf", {"sound_arm.urdf": ROBOT}),
    ):
        path = tmp_path / folder
        path.mkdir(parents=True)
        for name, text in files.items():
            (path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_names_of_both_repositories(cache):
    found = descriptions()
    assert found["unitree_go2"].endswith("unitree_go2/go2.xml")
    assert found["some_arm"].endswith("model.xml") and "unclear" not in found
    assert {"unitree_go2", "sound_arm"} <= set(pp.robots.names())
    assert pp.load("sound_arm").nv == 3
    pytest.importorskip("mujoco")
    assert pp.load("unitree_go2").nv == 6


def test_without_a_cache_nothing_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "no"))
    assert "unitree_go2" not in descriptions()
    with pytest.raises(pp.ModelError, match="unitree_go2"):
        pp.load("unitree_go2")
