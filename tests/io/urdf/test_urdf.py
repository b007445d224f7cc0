"""The URDF reader: every field arrives, spellings of the source, paths of meshes, and speed."""

import os
import time

import numpy as np
import pytest

from psiphi._util.errors import ModelError
from psiphi.io.urdf.urdf import load_shapes, load_urdf, read_urdf
from psiphi.model.model import Mimic
from tests.children import python
from tests.io.urdf.faulty_urdf import HEAVY, ROBOT, apply, joint, link, meshed


def test_every_field_arrives():
    model = load_urdf(ROBOT)
    shoulder, wrist, grip = model.joints[0], model.joints[1], model.joints[2]
    assert [j.name for j in model.joints] == ["shoulder", "wrist", "grip"]
    assert [j.kind for j in model.joints] == ["revolute", "continuous", "prismatic"]
    assert (shoulder.lower, shoulder.upper, shoulder.velocity, shoulder.effort) == (-2, 2, 3, 80)
    assert (shoulder.damping, shoulder.friction, shoulder.armature) == (0.1, 0.2, 0)
    assert (
        wrist.lower == -np.inf and wrist.mimic == Mimic("shoulder", 2.0, 0.1) and grip.mimic is None
    )
    np.testing.assert_allclose(
        shoulder.pose.rotation[:, 0], [np.cos(1.5), 0, -np.sin(1.5)], atol=1e-15
    )
    arm = model.bodies[0]
    c, s = np.cos(0.2), np.sin(0.2)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    np.testing.assert_allclose(
        arm.inertia, R @ np.array([[0.1, 0.01, 0], [0.01, 0.12, 0], [0, 0, 0.08]]) @ R.T, atol=1e-15
    )
    assert arm.mass == 2.5 and arm.com.tolist() == [0.1, 0, 0.3]
    assert model.bodies[2].mass == 1.1, "the tool is welded to the finger"
    assert set(model.frames) == {
        "world",
        *("base", "arm", "hand", "finger", "tool"),
        *("shoulder", "wrist", "grip", "weld"),
    }


@pytest.mark.parametrize(
    ("kind", "ours"),
    [("floating", "free"), ("planar", "planar"), ("spherical", "spherical"), ("ball", "spherical")],
)
def test_joint_types(kind, ours):
    moving = joint("j", "a", "b", kind, '<axis xyz="0 1 0"/>')
    model = load_urdf(f'<robot name="r">{link("a")}{link("b")}{moving}</robot>')
    assert model.joints[0].kind == ours
    assert model.joints[0].axis.tolist() == ([0, 1, 0] if kind == "planar" else [0, 0, 1])


def test_the_axis_is_x_unless_given():
    assert load_urdf(apply('<axis xyz="0 0 1"/>', "")).joints[0].axis.tolist() == [1, 0, 0]


def test_quaternion_origin():
    model = load_urdf(apply('rpy="0 1.5 0"', 'quat_xyzw="0 0 0.6 0.8"'))
    np.testing.assert_allclose(model.joints[0].pose.rotation[:2, 0], [0.28, 0.96], atol=1e-15)


def test_sources(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(ROBOT, encoding="utf-8")
    expected = load_urdf(ROBOT)
    assert (
        load_urdf(file)
        == load_urdf(str(file))
        == load_urdf(ROBOT.encode())
        == load_urdf("\n  " + ROBOT)
        == expected
    )
    latin = ROBOT.replace('version="1.0"', 'version="1.0" encoding="latin-1"').replace(
        "sound", "söund"
    )
    for data in (
        ROBOT.encode("utf-16"),
        b"\xef\xbb\xbf" + ROBOT.encode(),
        ROBOT.replace("\n", "\r\n").encode(),
    ):
        file.write_bytes(data)
        assert load_urdf(file) == expected
    file.write_bytes(latin.encode("latin-1"))
    assert load_urdf(file).name == load_urdf(latin).name == "söund"


def test_lines_in_messages_survive_every_source(tmp_path):
    bad = apply('value="2.5"', 'value="x"')
    line = bad[: bad.index('value="x"')].count("\n") + 1
    (tmp_path / "robot.urdf").write_bytes(bad.encode("utf-16"))
    for source, shift in [(bad, 0), (tmp_path / "robot.urdf", 0), ("\n\n" + bad, 2)]:
        with pytest.raises(ModelError) as caught:
            load_urdf(source)
        assert caught.value.line == line + shift


def test_base_and_gravity():
    heavy = apply('<link name="base"/>', link("base"))
    free = load_urdf(heavy, base="free", gravity=(0, 0, -1.62))
    assert free.nv == 9 and free.joints[0].name == "root_joint" and free.gravity_vector[2] == -1.62
    assert load_urdf(heavy).nv == 3


def test_armature():
    assert [j.armature[0] for j in load_urdf(ROBOT, armature=0.5).joints] == [0.5] * 3
    assert [j.armature[0] for j in load_urdf(ROBOT, armature={"wrist": 0.5}).joints] == [0, 0.5, 0]
    assert (
        load_urdf(apply("<dynamics", '<dynamics armature="0.7"'), armature=0.5).joints[0].armature
        == 0.7
    )
    for name in ("wirst", "weld"):
        with pytest.raises(ModelError, match="not a moving joint"):
            load_urdf(ROBOT, armature={name: 0.5})


def test_read_urdf_can_be_changed():
    builder, shapes = read_urdf(ROBOT)
    builder.body("camera", 0.2)
    builder.joint("mount", "fixed", "hand", "camera", xyz=(0, 0, 0.1))
    assert builder.build().bodies[1].mass == 1.2
    assert [(shape.link, shape.role, shape.kind, shape.size) for shape in shapes] == [
        ("arm", "visual", "cylinder", (0.1, 0.5)),
        ("arm", "collision", "mesh", (1.0, 1.0, 1.0)),
    ]
    assert shapes[0].color == (0.5, 0.5, 0.5, 1) and shapes[1].filename == "package://sound/arm.stl"


def test_meshes_inside(tmp_path):
    package = tmp_path / "pkg"
    (package / "urdf").mkdir(parents=True)
    file = package / "urdf" / "robot.urdf"
    for name in (
        "arm.stl",
        "./sub/../arm.stl",
        "package://pkg/meshes/arm.stl",
        "package://elsewhere/arm.stl",
        f"file://{file}",
    ):
        file.write_text(meshed(name), encoding="utf-8", errors="surrogateescape")
        assert load_urdf(file).nv == 3, name
    file.write_text(meshed("../meshes/arm.stl"), encoding="utf-8")
    assert any("outside" in line for line in load_urdf(file).report)
    (package / "meshes").mkdir()
    assert load_urdf(file).nv == 3, "pkg/urdf beside pkg/meshes"
    file.write_text(meshed("../other/arm.stl"), encoding="utf-8")
    (package / "package.xml").touch()
    assert load_urdf(file).nv == 3, "inside the folder of package.xml"
    file.write_text(
        meshed(f"{tmp_path}/shared/arm.stl"), encoding="utf-8", errors="surrogateescape"
    )
    assert any("outside" in line for line in load_urdf(file).report)
    assert load_urdf(file, packages={"shared": tmp_path / "shared"}).nv == 3
    assert load_urdf(file, packages=[tmp_path]).nv == 3


def test_a_mesh_whose_name_the_locale_lacks(tmp_path):
    (tmp_path / "bras").mkdir()
    (tmp_path / "bras" / os.fsdecode("é.stl".encode())).touch()
    (tmp_path / "robot.urdf").write_text(meshed("bras/é.stl"), encoding="utf-8")
    code = "import os, sys\nfrom psiphi.io.urdf.urdf import load_shapes\n"
    code += (
        "print([os.path.isfile(shape.path) for shape in load_shapes(sys.argv[1]) if "
        "shape.filename])"
    )
    done = python("-c", code, str(tmp_path / "robot.urdf"), LC_ALL="C", PYTHONUTF8="0")
    assert (done.stdout, done.stderr) == ("[True]\n", "")


def test_shapes(tmp_path):
    file = tmp_path / "sound" / "robot.urdf"
    file.parent.mkdir()
    file.write_text(ROBOT, encoding="utf-8")
    cylinder, mesh = load_shapes(file)
    assert cylinder.path is None and cylinder.pose.rotation.tolist() == np.eye(3).tolist()
    assert mesh.path == str(tmp_path / "sound" / "arm.stl")
    for name, path in [
        ("../arm.stl", tmp_path / "arm.stl"),
        ("file:///a/arm.stl", "/a/arm.stl"),
        ("http://a/arm.stl", None),
    ]:
        file.write_text(meshed(name), encoding="utf-8")
        assert load_shapes(file)[1].path is None
        assert load_shapes(file, allow_outside=True)[1].path == (path and str(path))
    named = ROBOT.replace('<color rgba="0.5 0.5 0.5 1"/>', "").replace(
        "</robot>", '<material name="grey"><color rgba="1 0 0 1"/></material></robot>'
    )
    assert load_shapes(named)[0].color == (1, 0, 0, 1)


def test_a_link_called_world():
    text = ROBOT.replace('"base"', '"world"')
    model = load_urdf(text)
    assert model.nv == 3 and model.frames["world"].body == -1
    assert model.report == load_urdf(ROBOT).report
    heavy = text.replace('<link name="world"/>', link("world"))
    assert any('called "world" but floats' in line for line in load_urdf(heavy, base="free").report)


def chain_text(n: int, wide: bool = False) -> str:
    pieces = ['<robot name="chain">', *(link(f"l{k}") for k in range(n + 1))]
    inside = (
        '<origin xyz="0 0 1" rpy="0.1 0 0"/><axis xyz="0 1 0"/><limit lower="-1" '
        'upper="1" effort="1" velocity="1"/>'
    )
    pieces += [
        joint(f"j{k}", "l0" if wide else f"l{k}", f"l{k + 1}", "revolute", inside) for k in range(n)
    ]
    return "\n".join([*pieces, "</robot>"])


@pytest.mark.parametrize("wide", [False, True], ids=["deep", "wide"])
def test_ten_thousand_links(wide):
    text = chain_text(10_000, wide)
    start = time.perf_counter()
    model = load_urdf(text)
    assert time.perf_counter() - start < 60.0  # it ends; speed is measured in benchmarks
    assert model.nv == 10_000 and model.bodies[5].mass == 1.0


def test_a_wrong_name_among_many_is_told_at_once():
    text = chain_text(10_000).replace('<child link="l5000"/>', '<child link="nobody"/>')
    start = time.perf_counter()
    with pytest.raises(ModelError, match="'nobody' is not a link"):
        load_urdf(text)
    assert time.perf_counter() - start < 60.0


def test_heavy_is_sound():
    assert HEAVY in ROBOT
