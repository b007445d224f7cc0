"""The tree of moving bodies: links behind fixed joints are welded to the body that carries them.

Links are visited in depth-first order from the base, in a loop: a recursion would overflow the
stack on long chains.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn

from psiphi._util.text import listed, nearest, shown
from psiphi.model.builder.records import DocumentRecord, JointRecord, LinkRecord
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.inertias import RigidPart
from psiphi.model.model import WORLD
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, compose

ROOT_JOINT = "root_joint"


@dataclass
class WeldedTree:
    """The tree in order. Moving joint k carries body k; parts of body k are the links welded to it.

    `links` and `fixed_joints` map names to (body, placement on it). `frame_order` lists all joints
    and links in the order of the frames.
    """

    joints: list[JointRecord] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    places: list[Placement] = field(default_factory=list)
    parts: list[list[RigidPart]] = field(default_factory=list)
    links: dict[str, tuple[int, Placement]] = field(default_factory=dict)
    frame_order: list[tuple[JointRecord | None, LinkRecord]] = field(default_factory=list)
    fixed_joints: dict[str, tuple[int, Placement]] = field(default_factory=dict)

    def add_link(
        self, joint: JointRecord | None, link: LinkRecord, body: int, place: Placement
    ) -> None:
        """Add a link at `place` on `body`: as a new body if its joint moves, else welded to it."""
        if joint is not None and joint.moves:
            self.joints.append(joint)
            self.parents.append(body)
            self.places.append(place)
            self.parts.append([])
            body, place = len(self.parts) - 1, IDENTITY_PLACEMENT
        elif joint is not None:
            self.fixed_joints[joint.name] = (body, place)
        if body != WORLD:
            self.parts[body].append((link.mass, link.com, link.inertia, place))
        self.links[link.name] = (body, place)
        self.frame_order.append((joint, link))


def weld_links(
    links: dict[str, LinkRecord],
    joints: dict[str, JointRecord],
    base: str,
    order: str,
    forest: bool,
    log: ReaderReport,
) -> WeldedTree:
    """Visit every link once, depth first from the roots.

    Children are visited in the order in which they were added (`order="given"`) or by joint name.
    """
    known_faults = len(log.faults)
    carriers = carrier_joints(links, joints, forest, log)
    children: dict[str, list[JointRecord]] = {}
    for joint in (
        sorted(joints.values(), key=lambda j: j.name) if order == "name" else joints.values()
    ):
        children.setdefault(joint.parent, []).append(joint)
    roots = [link for name, link in links.items() if name not in carriers]
    if len(log.faults) == known_faults:
        with log.collect():
            _check_roots(roots, links, children, forest, base, log)
    log.raise_collected()
    tree = WeldedTree()
    stack = _start_links(roots, children, joints, links, base, log)
    while stack:
        joint, link = stack.pop()
        body, place = (
            tree.links[joint.parent]
            if joint and joint.parent in tree.links
            else (WORLD, IDENTITY_PLACEMENT)
        )
        tree.add_link(joint, link, body, compose(place, joint.place) if joint else place)
        carried = list(children.get(link.name, []))
        for other in _other_nodes(joint, children):  # all nodes come before their children
            tree.add_link(other, links[other.child], body, compose(place, other.place))
            carried += children.get(other.child, [])
        stack.extend(
            (x, links[x.child]) for x in reversed(carried) if x.group is None or x.is_first
        )
    if len(tree.links) < len(links):
        _raise_cycle(links, carriers, tree, log)
    return tree


def _other_nodes(
    joint: JointRecord | None, children: dict[str, list[JointRecord]]
) -> list[JointRecord]:
    """The joints of the other nodes of a flexible body, if `joint` is that of its first node."""
    if joint is None or joint.group is None:
        return []
    return [
        other
        for other in children[joint.parent]
        if other.group is joint.group and other is not joint
    ]


def carrier_joints(
    links: Collection[str], joints: dict[str, JointRecord], forest: bool, log: ReaderReport
) -> dict[str, JointRecord]:
    """The joint that carries each link; at most one joint may."""
    carriers: dict[str, JointRecord] = {}
    for joint in joints.values():
        with log.collect():
            _check_carrier(joint, links, carriers, forest, log)
            carriers[joint.child] = joint
    return carriers


def _check_carrier(
    joint: JointRecord,
    links: Collection[str],
    carriers: dict[str, JointRecord],
    forest: bool,
    log: ReaderReport,
) -> None:
    """Raise an error unless both links exist and the child has no other joint."""
    if joint.parent not in links and not (forest and joint.parent == "world"):
        known = [*links, "world"] if forest else links
        log.fail(
            joint,
            f"its parent {shown(joint.parent)} is not a link",
            nearest(joint.parent, known),
        )
    if joint.child not in links:
        log.fail(
            joint, f"its child {shown(joint.child)} is not a link", nearest(joint.child, links)
        )
    if joint.child in carriers:
        log.fail(
            joint,
            f"its child {shown(joint.child)} is already the child of "
            f"{carriers[joint.child].label}: a closed loop is not a tree",
            "leave this joint out of the tree and declare the loop as a constraint",
        )
    if joint.child == joint.parent:
        log.fail(
            joint,
            f"parent and child are the same link {shown(joint.child)}",
            "correct the parent or the child",
        )


def _check_roots(
    roots: list[LinkRecord],
    links: dict[str, LinkRecord],
    children: dict[str, list[JointRecord]],
    forest: bool,
    base: str,
    log: ReaderReport,
) -> None:
    if not links:
        log.fail(DocumentRecord("robot"), "the robot has no links", "add bodies")
    if not forest and len(roots) > 1:
        names = listed([link.name for link in roots])
        log.fail(
            roots[1],
            f"the robot has {len(roots)} roots: {names}; expected one",
            "connect the others with joints, or remove them",
        )
    if base == "fixed" and (len(roots) > 1 or ("world" in children and "world" not in links)):
        for root in roots:
            # A root with mass and without children was probably forgotten.
            report = log.warn if root.mass and root.name not in children else log.note
            report(root, 'has no joint: welded to the world (base="fixed")')


def _start_links(
    roots: list[LinkRecord],
    children: dict[str, list[JointRecord]],
    joints: dict[str, JointRecord],
    links: dict[str, LinkRecord],
    base: str,
    log: ReaderReport,
) -> list[tuple[JointRecord | None, LinkRecord]]:
    """The links that the walk starts from, last first: roots, and children of the world.

    With base="free", a root gets a free joint.
    """
    starts: list[tuple[JointRecord | None, LinkRecord]] = []
    for root in roots:
        joint = None
        if base == "free" and not _is_floating_world(root, children.get(root.name, [])):
            name = (
                ROOT_JOINT
                if len(roots) == 1 and ROOT_JOINT not in joints
                else f"{ROOT_JOINT}_{root.name}"
            )
            while name in joints:
                name += "_"
            joint = free_joint(name, root)
            if root.name == "world":
                log.note(root, 'is called "world" but floats (base="free")')
        starts.append((joint, root))
    on_world = children.get("world", []) if "world" not in links else []
    starts.extend((joint, links[joint.child]) for joint in on_world)
    return starts[::-1]


def _is_floating_world(root: LinkRecord, children: list[JointRecord]) -> bool:
    """Whether a root stands for the world: it has no mass, and all its children are free joints."""
    return not root.has_mass and bool(children) and all(joint.kind == "free" for joint in children)


def free_joint(name: str, root: LinkRecord) -> JointRecord:
    """A free joint from the world to `root`, without limits and losses."""
    inf = float("inf")
    zero, infinite = (0.0,) * 6, (inf,) * 6
    return JointRecord(
        name,
        "free",
        "world",
        root.name,
        lower=(-inf,) * 7,
        upper=(inf,) * 7,
        velocity=infinite,
        effort=infinite,
        damping=zero,
        friction=zero,
        armature=zero,
        stiffness=zero,
        rest=zero,
        line=root.line,
    )


def _raise_cycle(
    links: dict[str, LinkRecord],
    carriers: dict[str, JointRecord],
    tree: WeldedTree,
    log: ReaderReport,
) -> NoReturn:
    """Raise an error that names a cycle: go from an unreached link to parents until one repeats."""
    name = next(name for name in links if name not in tree.links)
    seen: dict[str, None] = {}
    while name not in seen:
        seen[name] = None
        name = carriers[name].parent
    cycle = list(seen)[list(seen).index(name) :]
    log.fail(
        carriers[name],
        f"links form a cycle: {listed(cycle)}",
        "break the cycle: one link must be the root; a closed loop is declared as a constraint",
    )
