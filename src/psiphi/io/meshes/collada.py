"""Reads COLLADA scenes: units, up axis, node transforms, triangles, polygons, plain colours.

Each geometry is read once, even if many nodes use it.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from psiphi.io.meshes.triangles import Mesh, check_triangle_count, hex_color, merge_vertices
from psiphi.model.spatial.rotations import rotation_about

MAX_NODES, MAX_ELEMENTS, MAX_DEPTH = 10_000, 500_000, 512
BLOCK_CHARACTERS = 1 << 20  # of text that is parsed into numbers at a time
MeshPart = tuple[np.ndarray, np.ndarray]  # vertices, faces


def read_dae(data: bytes) -> list[tuple[Mesh, str | None]]:
    """The visual scene in metres, z up: one mesh per colour; None for no colour or a texture."""
    try:
        parser = ElementTree.XMLParser(target=_LimitedTreeBuilder())
        parser.feed(data)
        root = parser.close()
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML: {error}") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without the namespace
    scene = root.find(".//visual_scene")
    return [] if scene is None else _VisualScene(root).meshes(scene, _unit_transform(root))


class _LimitedTreeBuilder(ElementTree.TreeBuilder):
    """An XML tree with limits on elements and depth. It rejects a DOCTYPE in any encoding."""

    count = depth = 0

    def start(self, tag: str, attrs: dict[str, str]) -> Element:
        self.count, self.depth = self.count + 1, self.depth + 1
        if self.count > MAX_ELEMENTS or self.depth > MAX_DEPTH:
            raise ValueError(
                f"it has more than {MAX_ELEMENTS} elements, or more than {MAX_DEPTH} levels"
            )
        return super().start(tag, attrs)

    def end(self, tag: str) -> Element:
        self.depth -= 1
        return super().end(tag)

    def doctype(self, *_: object) -> None:
        raise ValueError("it declares a DOCTYPE, which is not read")


def _unit_transform(root: Element) -> np.ndarray:
    """(4, 4): from the file's units and axes to metres with z up."""
    unit, up = root.find("asset/unit"), root.find("asset/up_axis")
    T = np.eye(4)
    T[:3, :3] *= float(unit.attrib.get("meter", 1.0)) if unit is not None else 1.0
    if up is not None and (up.text or "").strip() == "Y_UP":
        T[:3, :3] = T[:3, :3] @ [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    return T


class _VisualScene:
    """Walks over the nodes of a scene. It caches geometries and colours: each is read once."""

    def __init__(self, root: Element):
        self.ids = {e.attrib["id"]: e for e in root.iter() if "id" in e.attrib}
        self.geometries: dict[str, list[tuple[Mesh, str]]] = {}
        self.colors: dict[str, str | None] = {}
        self.triangles = 0

    def meshes(self, root: Element, transform: np.ndarray) -> list[tuple[Mesh, str | None]]:
        """All geometry below a node, in the scene's frame: one mesh per colour."""
        placed: dict[str | None, list[MeshPart]] = {}
        stack, seen = [(root, transform)], 0
        while stack:
            node, T = stack.pop()
            for child in node:
                if child.tag in NODE_TRANSFORMS:
                    T = T @ NODE_TRANSFORMS[child.tag](_numbers(child))
            for child in node:
                seen += child.tag in ("node", "instance_node", "instance_geometry")
                if seen > MAX_NODES:
                    raise ValueError(
                        f"its scene has more than {MAX_NODES} nodes, "
                        "or nodes that contain themselves"
                    )
                if child.tag == "node":
                    stack.append((child, T))
                elif child.tag == "instance_node":
                    stack.append((self.ids[child.attrib["url"].lstrip("#")], T))
                elif child.tag == "instance_geometry":
                    self._add_instance(child, T, placed)
        return [(_concatenated(parts), color) for color, parts in placed.items()]

    def _add_instance(
        self, instance: Element, T: np.ndarray, placed: dict[str | None, list[MeshPart]]
    ) -> None:
        """Add a geometry at the pose T to `placed`, by colour."""
        url = instance.attrib["url"].lstrip("#")
        if url not in self.geometries:
            mesh = self.ids[url].find("mesh")
            self.geometries[url] = (
                []
                if mesh is None
                else [(merge_vertices(x), s) for x, s in _triangle_corners(mesh, self.ids)]
            )
        for mesh, symbol in self.geometries[url]:
            self.triangles = check_triangle_count(self.triangles + len(mesh.faces))
            part = mesh.vertices @ T[:3, :3].T + T[:3, 3], mesh.faces
            placed.setdefault(self._color(instance, symbol), []).append(part)

    def _color(self, instance: Element, symbol: str) -> str | None:
        """symbol -> material -> effect -> diffuse colour."""
        bound = {
            e.attrib.get("symbol"): e.attrib.get("target", "")
            for e in instance.iter("instance_material")
        }
        material = bound.get(symbol, symbol).lstrip("#")
        if material not in self.colors:
            self.colors[material] = self._diffuse(self.ids.get(material))
        return self.colors[material]

    def _diffuse(self, material: Element | None) -> str | None:
        link = material.find("instance_effect") if material is not None else None
        effect = self.ids.get(link.attrib.get("url", "").lstrip("#")) if link is not None else None
        color = effect.find(".//diffuse/color") if effect is not None else None
        rgb = np.nan_to_num(_numbers(color)[:3])
        return hex_color(rgb) if len(rgb) == 3 else None


def _concatenated(parts: list[MeshPart]) -> Mesh:
    """One mesh of several parts."""
    starts = np.cumsum([0] + [len(vertices) for vertices, _ in parts])
    faces = [faces + start for (_, faces), start in zip(parts, starts, strict=False)]
    return Mesh(np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces))


def _triangle_corners(mesh: Element, ids: dict[str, Element]) -> list[tuple[np.ndarray, str]]:
    """(3 n, 3) corners of each group of triangles, with the symbol of its material."""
    out = []
    for group in mesh:
        if group.tag not in ("triangles", "polylist", "polygons"):
            continue
        entry = {e.attrib["semantic"]: e for e in group.findall("input")}["VERTEX"]
        stride = 1 + max(int(e.attrib.get("offset", 0)) for e in group.findall("input"))
        position = next(
            e
            for e in ids[entry.attrib["source"][1:]].findall("input")
            if e.attrib["semantic"] == "POSITION"
        )
        numbers = ids[position.attrib["source"][1:]].find("float_array")
        points = _numbers(numbers).reshape(-1, 3)
        for p in group.findall("p"):
            corner = _numbers(p).astype(int)[int(entry.attrib.get("offset", 0)) :: stride]
            counts = group.find("vcount")
            sizes = _numbers(counts).astype(int) if counts is not None else None
            if group.tag == "polygons":
                sizes = np.array([len(corner)])
            index = corner if sizes is None else _fan_corners(corner, sizes)
            check_triangle_count(len(index) // 3)
            if index.size and not 0 <= index.min() <= index.max() < len(points):
                raise ValueError(f"a triangle uses vertex {index.max()} of {len(points)}")
            out.append((points[index], group.attrib.get("material", "")))
    return out


def _numbers(element: Element | None) -> np.ndarray:
    """The numbers in the text of an element."""
    text = (element.text or "") if element is not None else ""
    blocks, start = [], 0
    while start < len(text):  # by blocks: a list of words takes much more memory than numbers
        gap = WHITESPACE.search(text, start + BLOCK_CHARACTERS)
        end = len(text) if gap is None else gap.start()
        blocks.append(np.array(text[start:end].split(), dtype=float))
        start = end + 1
    return np.concatenate(blocks) if blocks else np.empty(0)


WHITESPACE = re.compile(r"\s")


def _fan_corners(corner: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The corners of polygons, cut into fans of triangles."""
    if (sizes < 0).any() or sizes.sum() > len(corner):
        raise ValueError(f"its polygons have {sizes.sum()} corners, but {len(corner)} are given")
    starts, fans = np.cumsum(sizes) - sizes, np.maximum(sizes - 2, 0)
    first = np.repeat(starts, fans)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(fans) - fans, fans)
    return corner[np.stack([first, second, second + 1], axis=1).ravel()]


def _rotation(v: np.ndarray) -> np.ndarray:
    """(4, 4) of <rotate> x y z degrees."""
    T = np.eye(4)
    T[:3, :3] = rotation_about(np.radians(v[3]) / (np.linalg.norm(v[:3]) or 1.0) * v[:3])
    return T


def _translation(v: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = v
    return T


NODE_TRANSFORMS = {
    "matrix": lambda v: v.reshape(4, 4),
    "translate": _translation,
    "rotate": _rotation,
    "scale": lambda v: np.diag([*v, 1.0]),
}
