"""COLLADA scenes into triangles: units, up axis, nodes with their moves, triangles and polygons, plain colours."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from psiphi.viewer.meshes import Mesh, joined

MAX_NODES = 10_000


def read_dae(path: str) -> list[tuple[Mesh, str | None]]:
    """The whole visual scene, in metres, z up: a mesh for each colour, None where it has none (or a picture)."""
    with open(path, "rb") as file:
        data = file.read()
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError("it declares a DOCTYPE or entities, which are not read")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML: {error}") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without the namespace
    ids = {e.attrib["id"]: e for e in root.iter() if "id" in e.attrib}
    parts: dict[str | None, list[np.ndarray]] = {}
    for scene in root.iterfind(".//visual_scene"):
        _dae_node(scene, _whole(root), ids, parts)
        break
    return [(joined(np.concatenate(corners)), color) for color, corners in parts.items()]


def _whole(root: Element) -> np.ndarray:
    """From the file's units and axes to metres and z up."""
    unit, up = root.find("asset/unit"), root.find("asset/up_axis")
    whole = np.eye(4)
    whole[:3, :3] *= float(unit.attrib.get("meter", 1.0)) if unit is not None else 1.0
    if up is not None and (up.text or "").strip() == "Y_UP":
        whole[:3, :3] = whole[:3, :3] @ [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    return whole


def _dae_node(root: Element, whole: np.ndarray, ids: dict[str, Element], parts: dict[str | None, list[np.ndarray]]) -> None:
    """Corners of the geometries under a node, carried to the scene."""
    stack, seen = [(root, whole)], 0
    while stack:
        node, T = stack.pop()
        seen += 1
        if seen > MAX_NODES:
            raise ValueError(f"its scene has more than {MAX_NODES} nodes, or nodes within themselves")
        for child in node:
            if child.tag in DAE_MOVES:
                T = T @ DAE_MOVES[child.tag](_numbers(child))
        for child in node:
            if child.tag == "node":
                stack.append((child, T))
            elif child.tag == "instance_node":
                stack.append((ids[child.attrib["url"].lstrip("#")], T))
            elif child.tag == "instance_geometry":
                mesh = ids[child.attrib["url"].lstrip("#")].find("mesh")
                for corners, symbol in _dae_corners(mesh, ids) if mesh is not None else ():
                    parts.setdefault(_color(child, symbol, ids), []).append(corners @ T[:3, :3].T + T[:3, 3])


def _color(instance: Element, symbol: str, ids: dict[str, Element]) -> str | None:
    """symbol -> material -> effect -> its diffuse colour."""
    bound = {e.attrib.get("symbol"): e.attrib.get("target", "") for e in instance.iter("instance_material")}
    material = ids.get(bound.get(symbol, symbol).lstrip("#"))
    link = material.find("instance_effect") if material is not None else None
    effect = ids.get(link.attrib.get("url", "").lstrip("#")) if link is not None else None
    color = effect.find(".//diffuse/color") if effect is not None else None
    rgb = _numbers(color)[:3]
    return "#" + "".join(f"{round(255 * min(max(x, 0.0), 1.0)):02x}" for x in rgb) if len(rgb) == 3 else None


def _dae_corners(mesh: Element, ids: dict[str, Element]) -> list[tuple[np.ndarray, str]]:
    """Corners of loose triangles, with the symbol of their material."""
    out = []
    for group in mesh:
        if group.tag not in ("triangles", "polylist", "polygons"):
            continue
        entry = {e.attrib["semantic"]: e for e in group.findall("input")}["VERTEX"]
        stride = 1 + max(int(e.attrib.get("offset", 0)) for e in group.findall("input"))
        position = next(e for e in ids[entry.attrib["source"][1:]].findall("input") if e.attrib["semantic"] == "POSITION")
        numbers = ids[position.attrib["source"][1:]].find("float_array")
        points = _numbers(numbers).reshape(-1, 3)
        for p in group.findall("p"):
            corner = _numbers(p).astype(int)[int(entry.attrib.get("offset", 0)) :: stride]
            counts = group.find("vcount")
            sizes = _numbers(counts).astype(int).tolist() if counts is not None else None
            if group.tag == "polygons":
                sizes = [len(corner)]
            out.append((points[corner if sizes is None else _fans(corner, sizes)], group.attrib.get("material", "")))
    return out


def _numbers(element: Element | None) -> np.ndarray:
    return np.array((element.text or "").split() if element is not None else [], dtype=float)


def _fans(corner: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Polygons as fans of triangles."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    fan = [(s, s + k, s + k + 1) for s, n in zip(starts, sizes, strict=False) for k in range(1, n - 1)]
    return corner[np.array(fan, dtype=int).ravel()]


def _rotation(v: np.ndarray) -> np.ndarray:
    """<rotate> x y z degrees: Rodrigues' formula."""
    axis, angle = v[:3] / (np.linalg.norm(v[:3]) or 1.0), np.radians(v[3])
    K = np.cross(np.eye(3), axis)  # K x = axis x x
    T = np.eye(4)
    T[:3, :3] += np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return T


def _shift(v: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = v
    return T


DAE_MOVES = {
    "matrix": lambda v: v.reshape(4, 4),
    "translate": _shift,
    "rotate": _rotation,
    "scale": lambda v: np.diag([*v, 1.0]),
}
