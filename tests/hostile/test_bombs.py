"""Small files that a careless reader makes much of: refused or read within seconds and a few
hundred megabytes."""

import os
from pathlib import Path

import pytest

from psiphi import scenes
from psiphi.apps.viewer.geometry import urdf_visuals
from psiphi.apps.viewer.html_page import page_data
from psiphi.apps.viewer.scene import scene
from psiphi.io.meshes.mesh_files import read_mesh
from psiphi.robot.load import load
from tests.hostile import bombs
from tests.hostile.boxed import boxed

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="memory is measured on Linux"
)
SECONDS, MEGABYTES = 60.0, 600.0  # on a busy machine; the quick ones take less than one
QUICK_MESHES = [name for name in bombs.MESHES if name not in bombs.LARGE]
QUICK_URDFS = [name for name in bombs.URDFS if name not in bombs.LARGE]


def tried(path: Path, make, read, **limits):
    path.write_bytes(make())
    outcome = boxed(
        lambda: (read(path), None)[1],
        limits.get("seconds", SECONDS),
        limits.get("megabytes", MEGABYTES),
    )
    assert outcome.good, outcome
    return outcome


@pytest.mark.parametrize("name", QUICK_MESHES)
def test_meshes(name, tmp_path):
    ending, make = bombs.MESHES[name]
    tried(tmp_path / f"bomb{ending}", make, lambda path: read_mesh(str(path)))


@pytest.mark.parametrize("name", QUICK_URDFS)
def test_descriptions(name, tmp_path):
    tried(tmp_path / "bomb.urdf", bombs.URDFS[name], load)


@pytest.mark.parametrize("name", [name for name in bombs.SCENES if name not in bombs.LARGE])
def test_scenes(name, tmp_path):
    assert tried(tmp_path / "bomb.toml", bombs.SCENES[name], scenes.load).end == "refused"


def test_instances_share_their_mesh(tmp_path):
    """The same file on fifty links is read once, drawn from one mesh, and stands in the page
    once."""
    (tmp_path / "part.dae").write_bytes(bombs.dae(bombs.INSTANCE * 3))
    visual = '<visual><geometry><mesh filename="part.dae"/></geometry></visual>'
    links = "".join(f'<link name="l{i}">{visual}</link>' for i in range(50))
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l0"/><child link="l{i}"/></joint>'
        for i in range(1, 50)
    )
    (tmp_path / "robot.urdf").write_text(
        f'<robot name="r">{links}{joints}</robot>', encoding="utf-8"
    )
    robot = load(tmp_path / "robot.urdf")
    pieces, _, notes = urdf_visuals.link_visuals(robot)
    assert len(pieces) == 50 and len({id(piece.mesh) for piece in pieces}) == 1 and not notes
    shown = page_data(scene(robot))
    assert (
        len(shown["meshes"]) == 1
        and [piece["mesh"] for piece in shown["pieces"] if "mesh" in piece] == [0] * 50
    )


def test_a_scene_of_too_many_triangles_says_what_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(urdf_visuals, "MAX_TRIANGLES", 1500)
    for i in range(4):
        (tmp_path / f"p{i}.dae").write_bytes(bombs.dae(bombs.INSTANCE))
    visuals = "".join(
        f'<visual><geometry><mesh filename="p{i}.dae"/></geometry></visual>' for i in range(4)
    )
    (tmp_path / "robot.urdf").write_text(
        f'<robot name="r"><link name="a">{visuals}</link></robot>', encoding="utf-8"
    )
    pieces, _, notes = urdf_visuals.link_visuals(load(tmp_path / "robot.urdf"))
    assert len(pieces) == 2 and "more than 1500 triangles" in notes[0]
