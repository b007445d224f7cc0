"""Small or plain files that a careless reader makes much of: each a name and its bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

POINTS = " ".join(f"{(7 * i) % 101} {(11 * i) % 103} {(13 * i) % 107}" for i in range(1000))
CORNERS = " ".join(f"{i % 1000} {(i * 7 + 1) % 1000} {(i * 13 + 2) % 1000}" for i in range(1000))


def dae(scene: str, points: str = POINTS, corners: str = CORNERS, more: str = "") -> bytes:
    return f"""<COLLADA><asset/><library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="f">{points}</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<triangles><input semantic="VERTEX" source="#v" offset="0"/><p>{corners}</p></triangles></mesh></geometry></library_geometries>
{more}<library_visual_scenes><visual_scene>{scene}</visual_scene></library_visual_scenes></COLLADA>""".encode()  # noqa: E501


INSTANCE = '<node><instance_geometry url="#g"/></node>'


def nested(depth: int, wide: int) -> bytes:
    """Nodes that hold `wide` instances of the next: wide ** depth in all."""
    nodes = (
        "".join(
            f'<node id="n{k}">' + f'<instance_node url="#n{k + 1}"/>' * wide + "</node>"
            for k in range(depth)
        )
        + f'<node id="n{depth}"><instance_geometry url="#g"/></node>'
    )
    return dae(
        '<node><instance_node url="#n0"/></node>', more=f"<library_nodes>{nodes}</library_nodes>"
    )


MESHES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "one mesh, 3000 times": (".dae", lambda: dae(INSTANCE * 3000)),
    "one mesh, 20 000 times": (".dae", lambda: dae(INSTANCE * 20_000)),
    "nodes of nodes": (".dae", lambda: nested(8, 10)),
    "elements without end": (".dae", lambda: dae("<a/>" * 3_000_000)),
    "deep nodes": (".dae", lambda: dae("<node>" * 100_000 + "</node>" * 100_000)),
    "many numbers": (".dae", lambda: dae(INSTANCE, points="10 " * 15_000_000)),
    "many corners": (".dae", lambda: dae(INSTANCE, corners="1 2 3 " * 5_000_000)),
    "a corner far out": (".dae", lambda: dae(INSTANCE, corners="1 2 999999999999999999999")),
    "numbers of another kind": (".dae", lambda: dae(INSTANCE, points="0x1 nan inf 1_0 ۱")),
    "polygons of billions": (
        ".dae",
        lambda: (
            dae(INSTANCE)
            .replace(b"triangles", b"polylist")
            .replace(b"<p>", b"<vcount>9999999999</vcount><p>")
        ),
    ),
    "a doctype in another encoding": (
        ".dae",
        lambda: (
            '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY b '
            '"x">]><COLLADA>&b;</COLLADA>'.encode("utf-16")
        ),
    ),
    "colours to look for": (
        ".dae",
        lambda: dae(
            (
                '<node><instance_geometry url="#g"><instance_material symbol="" '
                'target="#m"/></instance_geometry></node>'
            )
            * 1900,
            more='<material id="m"><instance_effect url="#e"/></material><effect id="e">'
            + "<a/>" * 100_000
            + "</effect>",
        ),
    ),
    "an entity bomb": (
        ".dae",
        lambda: b'<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]><COLLADA>&c;</COLLADA>',
    ),
    "one polygon": (".obj", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf" + b" 1" * 10_000_000),
    "many vertices": (".obj", lambda: b"v 0 0 0\n" * 6_000_000),
    "many faces": (".obj", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\n" + b"f 1 2 3\n" * 6_000_000),
    "one endless line": (".obj", lambda: b"# " + b"x" * 100_000_000),
    "huge indices": (".obj", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 " + b"9" * 4000),
    "words without end": (".stl", lambda: b"solid x " + b"ab " * 30_000_000),
    "vertices without end": (".stl", lambda: b"solid x " + b"vertex 1 2 3 " * 7_000_000),
    "empty lines": (".obj", lambda: b"\n" * 60_000_000),
    "a count that lies": (".stl", lambda: b"\0" * 80 + struct.pack("<I", 2**32 - 1) + b"\0" * 50),
    "many triangles": (
        ".stl",
        lambda: b"\0" * 80 + struct.pack("<I", 2_600_000) + b"\1" * (50 * 2_600_000),
    ),
}


def links(count: int) -> str:
    return "".join(f'<link name="l{i}"/>' for i in range(count))


URDFS: dict[str, Callable[[], bytes]] = {
    "elements without end": lambda: (
        b"<robot name='r'><link name='a'>" + b"<a/>" * 5_000_000 + b"</link></robot>"
    ),
    "as many elements as may be": lambda: (
        b"<robot name='r'><link name='a'/><gazebo>" + b"<a/>" * 3_900_000 + b"</gazebo></robot>"
    ),
    "attributes without end": lambda: (
        b"<robot name='r'><link name='a' "
        + b" ".join(b"x%d=''" % i for i in range(2_000_000))
        + b"/></robot>"
    ),
    "one long attribute": lambda: (
        b"<robot name='" + b"x" * 60_000_000 + b"'><link name='a'/></robot>"
    ),
    "many long names": lambda: (
        b"<robot name='r'>"
        + b"".join(b"<link name='%s%d'/>" % (b"x" * 10_000, i) for i in range(3000))
        + b"</robot>"
    ),
    "deep elements": lambda: (
        b"<robot name='r'>" + b"<a>" * 1_000_000 + b"</a>" * 1_000_000 + b"</robot>"
    ),
    "roots without end": lambda: b"<robot name='r'>" + links(300_000).encode() + b"</robot>",
    "text without end": lambda: (
        b"<robot name='r'><link name='a'>" + b"x " * 25_000_000 + b"</link></robot>"
    ),
    "a number of a million digits": lambda: (
        b"<robot name='r'><link name='a'><inertial><mass value='"
        + b"1" * 1_000_000
        + b"'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' "
        b"izz='1'/></inertial></link></robot>"
    ),
    "comments without end": lambda: (
        b"<robot name='r'><link name='a'/>" + b"<!---->" * 8_000_000 + b"</robot>"
    ),
    "mimics in a row": lambda: _mimics(20_000),
    "shapes without end": lambda: (
        b"<robot name='r'><link name='a'>"
        + b"<visual><geometry><sphere radius='1'/></geometry></visual>" * 200_000
        + b"</link></robot>"
    ),
    "materials without end": lambda: (
        b"<robot name='r'>"
        + b"".join(
            b"<material name='m%d'><color rgba='1 1 1 1'/></material>" % i for i in range(200_000)
        )
        + b"<link name='a'/></robot>"
    ),
}


def _mimics(count: int) -> bytes:
    inertial = (
        "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' "
        "izz='1'/></inertial>"
    )
    bodies = "".join(f"<link name='l{i}'>{inertial}</link>" for i in range(count + 1))
    joints = "".join(
        f"<joint name='j{i}' type='continuous'><parent link='l{i}'/><child link='l{i + 1}'/>"
        f"<mimic joint='j{(i + 1) % count}'/></joint>"
        for i in range(count)
    )
    return f"<robot name='r'>{bodies}{joints}</robot>".encode()


SCENES: dict[str, Callable[[], bytes]] = {
    "deep lists": lambda: b"a = " + b"[" * 100_000 + b"]" * 100_000,
    "deep tables": lambda: b"a = " + b"{a=" * 50_000 + b"1" + b"}" * 50_000,
    "deep keys": lambda: b"[" + b".".join([b"a"] * 100_000) + b"]",
    "many tables": lambda: b"".join(b"[robots.r%d]\nfile='x'\n" % i for i in range(30_000)),
    "a number of a million digits": lambda: b"duration = " + b"1" * 1_000_000,
    "a date": lambda: b"duration = 1979-05-27T07:32:00Z",
    "not text": lambda: bytes(range(256)),
    "more than may be": lambda: b"#" * (1 << 20) + b"\n\n",
    "many robots": lambda: b"".join(b"[robots.r%d]\nrobot='ur5'\n" % i for i in range(3000)),
    "a robot of itself": lambda: b"[robots.a]\nrobot='two_arms'\n",
}


LARGE = {  # take seconds to make or to read: for `make torture`
    "elements without end",
    "many numbers",
    "many corners",
    "one polygon",
    "many vertices",
    "many faces",
    "one endless line",
    "words without end",
    "vertices without end",
    "empty lines",
    "many triangles",
    "as many elements as may be",
    "attributes without end",
    "many long names",
    "roots without end",
    "comments without end",
    "mimics in a row",
    "shapes without end",
    "materials without end",
    "many robots",
    "many tables",
}
