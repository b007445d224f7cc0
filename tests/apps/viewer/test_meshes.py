"""Mesh files: read, scaled, made smaller; broken ones refused by name."""

import struct

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import ModelError
from psiphi.apps.viewer import scene
from psiphi.io.meshes.mesh_files import read_mesh
from psiphi.io.meshes.triangles import Mesh, merge_vertices, simplified
from psiphi.model.builder.builder import Builder
from tests.apps.viewer.robots import volume

TETRA = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def binary_stl() -> bytes:
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *TETRA[face].ravel(), 0) for face in FACES)
    return b"\0" * 80 + struct.pack("<I", len(FACES)) + rows


def text_stl() -> bytes:
    corner = "vertex {} {} {}\n".format
    facets = (
        "facet normal 0 0 0\nouter loop\n"
        + "".join(corner(*TETRA[i]) for i in face)
        + "endloop\nendfacet\n"
        for face in FACES
    )
    return ("solid t\n" + "".join(facets) + "endsolid t\n").encode()


def obj() -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in TETRA] + [
        "vt 0 0",
        "f 1/1 3/1 2/1",
        "f 1 2 4",
        "f -4 -1 -2",
        "f 2 3 4",
    ]
    return "\n".join(lines).encode()


DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema">
<asset><unit meter="0.5"/><up_axis>{up}</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique><phong><diffuse>
<color>1 0.5 0 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="f" count="12">0 0 0 4 0 0 0 1 0 0 0 2</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<polylist count="4" material="paint">
<input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>
<vcount>3 3 3 3</vcount><p>0 9 2 9 1 9  0 9 1 9 3 9  0 9 3 9 2 9  1 9 2 9 3 9</p></polylist>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="x">
<node><translate>0 0 4</translate><rotate>0 0 1 90</rotate>
<instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="paint" target="#m"/></technique_common></bind_material>
</instance_geometry></node>
</visual_scene></library_visual_scenes></COLLADA>"""


@pytest.mark.parametrize(
    ("ending", "data"), [(".stl", binary_stl()), (".STL", text_stl()), (".obj", obj())]
)
def test_the_same_body_from_every_format(tmp_path, ending, data):
    path = tmp_path / f"tetra{ending}"
    path.write_bytes(data)
    ((mesh, color),) = read_mesh(str(path))
    assert len(mesh.vertices) == 4 and len(mesh.faces) == 4 and color is None
    assert np.isclose(volume(mesh), 1 / 6)


@pytest.mark.parametrize("up", ["Z_UP", "Y_UP"])
def test_collada_has_units_axes_and_nodes(tmp_path, up):
    path = tmp_path / "tetra.dae"
    path.write_text(DAE.format(up=up), encoding="utf-8")
    ((mesh, color),) = read_mesh(str(path))
    assert np.isclose(volume(mesh), 1 / 6) and color == "#ff8000"
    x, y, z = (
        np.array([0, 2, 2]),
        np.array([-0.5, 0, 2]),
        np.array([0, 0, 3]),
    )  # half as long, turned, lifted
    for corner in (x, y, z):
        here = corner if up == "Z_UP" else corner[[0, 2, 1]] * [1, -1, 1]
        assert np.linalg.norm(mesh.vertices - here, axis=1).min() < 1e-12


def test_collada_that_holds_itself_ends(tmp_path):
    path = tmp_path / "loop.dae"
    path.write_text(
        DAE.format(up="Z_UP").replace("<node>", '<node id="n"><instance_node url="#n"/>'),
        encoding="utf-8",
    )
    with pytest.raises(ModelError, match="contain themselves"):
        read_mesh(str(path))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.stl", b"", "no triangles"),
        ("a.stl", b"solid\nvertex 1 2 x\n", "cannot be read"),
        ("a.obj", b"v 0 0 0\nf 1 2 3\n", "invalid ones"),
        ("a.obj", b"v 0 0 0\nv 0 0 1\nv 0 1 0\nf -9 2 3\n", "invalid ones"),
        ("a.obj", b"v nan 0 0\nv 0 0 1\nv 0 1 0\nf 1 2 3\n", "invalid ones"),
        ("a.dae", b"<COLLADA/>", "no triangles"),
        ("a.dae", b"<COLLADA>", "not XML"),
        ("a.dae", b"<!DOCTYPE x><COLLADA/>", "DOCTYPE"),
        ("a.glb", b"glTF", "expected .stl, .obj, .dae"),
    ],
)
def test_broken_meshes_are_refused_by_name(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelError, match=words) as refused:
        read_mesh(str(path))
    assert name in str(refused.value) and refused.value.remedy


def test_a_mirrored_mesh_still_faces_outward():
    mesh = Mesh(TETRA, FACES)
    assert np.isclose(volume(mesh.scaled((-2.0, 1.0, 1.0))), 2 / 6)


def test_reduction_keeps_the_shape():
    u, v = np.meshgrid(
        np.linspace(0, 2 * np.pi, 121)[:-1], np.linspace(0, np.pi, 61)[1:-1], indexing="ij"
    )
    ball = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], axis=-1)
    rolled = np.roll(ball, -1, axis=0)
    quads = np.stack(
        [ball[:, :-1], ball[:, 1:], rolled[:, :-1], rolled[:, :-1], ball[:, 1:], rolled[:, 1:]],
        axis=2,
    )
    mesh = merge_vertices(quads.reshape(-1, 3))
    small = simplified(mesh, 1500)
    assert 300 < len(small.faces) <= 1500 < len(mesh.faces)
    assert abs(volume(small) / volume(mesh) - 1) < 0.05
    assert simplified(small, 10_000) is small


def test_a_urdf_with_a_mesh_is_dressed_in_it(tmp_path):
    (tmp_path / "t.stl").write_bytes(binary_stl())
    (tmp_path / "bad.stl").write_bytes(b"solid")
    file = tmp_path / "r.urdf"
    visual = (
        '<visual><geometry><mesh filename="{}" scale="0.1 0.1 0.1"/></geometry></visual>'.format
    )
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    mass = f'<inertial><mass value="1"/>{inertia}</inertial>'
    ends = '<parent link="base"/><child link="{0}"/>'
    joint = f'<joint name="j{{0}}" type="continuous">{ends}</joint>'.format
    links = (
        f'<link name="a">{mass}{visual("t.stl")}</link>'
        f'<link name="b">{mass}{visual("bad.stl")}</link>'
    )
    file.write_text(
        f'<robot name="r"><link name="base"/>{links}{joint("a")}{joint("b")}</robot>',
        encoding="utf-8",
    )
    robot = pp.load(file)
    shown = scene(robot)
    (piece,) = [piece for piece in shown.pieces if piece.kind == "mesh"]
    assert robot.bodies[piece.body].name == "a" and np.isclose(piece.mesh.vertices.max(), 0.1)
    assert any("bad.stl" in note for note in shown.notes)
    assert not any(piece.kind == "mesh" for piece in scene(robot, meshes=False).pieces)
    bare = Builder("r2")
    bare.body("a", mass=1.0, com=(0.1, 0, 0))
    bare.joint("j", "revolute", parent="world", child="a")
    assert any(piece.kind == "mesh" for piece in scene(bare.build(), shapes=file).pieces)
