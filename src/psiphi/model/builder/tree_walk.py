"""From records to a tree: who hangs on whom, base to tip, depth first, with fixed joints merged. Nothing here recurses."""

from __future__ import annotations

from dataclasses import dataclass, field

from psiphi._util.text import listed, nearest, shown
from psiphi.model.builder.records import DocumentRecord, JointRecord, LinkRecord
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.inertias import RigidPart
from psiphi.model.model import WORLD
from psiphi.model.spatial.transforms import HERE, Place, compose

ROOT_JOINT = "root_joint"


@dataclass
class TreeWalk:
    """The tree in order: moving joint k carries body k; a spot is (body, place on it)."""

    joints: list[JointRecord] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    parts: list[list[RigidPart]] = field(default_factory=list)
    links: dict[str, tuple[int, Place]] = field(default_factory=dict)
    spots: list[tuple[JointRecord | None, LinkRecord]] = field(
        default_factory=list
    )  # the order of the frames
    fixed: dict[str, tuple[int, Place]] = field(default_factory=dict)

    def enter(self, joint: JointRecord | None, link: LinkRecord, body: int, place: Place) -> None:
        """Set `link` at its place: on a new body when its joint moves, welded to `body` when not."""
        if joint is not None and joint.moves:
            self.joints.append(joint)
            self.parents.append(body)
            self.places.append(place)
            self.parts.append([])
            body, place = len(self.parts) - 1, HERE
        elif joint is not None:
            self.fixed[joint.name] = (body, place)
        if body != WORLD:
            self.parts[body].append((link.mass, link.com, link.inertia, place))
        self.links[link.name] = (body, place)
        self.spots.append((joint, link))


def walk_tree(
    links: dict[str, LinkRecord],
    joints: dict[str, JointRecord],
    base: str,
    order: str,
    forest: bool,
    log: ReaderReport,
) -> TreeWalk:
    """Every link once, depth first from the roots; children in the order given, or sorted by joint name."""
    carriers = _carriers(links, joints, forest, log)
    children: dict[str, list[JointRecord]] = {}
    for joint in (
        sorted(joints.values(), key=lambda j: j.name) if order == "name" else joints.values()
    ):
        children.setdefault(joint.parent, []).append(joint)
    roots = [link for name, link in links.items() if name not in carriers]
    _check_roots(roots, links, children, forest, base, log)
    walk = TreeWalk()
    stack = _starts(roots, children, joints, links, base, log)
    while stack:
        joint, link = stack.pop()
        body, place = (
            walk.links[joint.parent] if joint and joint.parent in walk.links else (WORLD, HERE)
        )
        walk.enter(joint, link, body, compose(place, joint.place) if joint else place)
        carried = list(children.get(link.name, []))
        for other in _places_beside(
            joint, children
        ):  # of a body that bends: all its places, then what hangs on them
            walk.enter(other, links[other.child], body, compose(place, other.place))
            carried += children.get(other.child, [])
        stack.extend((x, links[x.child]) for x in reversed(carried) if x.group is None or x.leads)
    if len(walk.links) < len(links):
        _refuse_cycle(links, carriers, walk, log)
    return walk


def _places_beside(
    joint: JointRecord | None, children: dict[str, list[JointRecord]]
) -> list[JointRecord]:
    """The other places of the body that bends, where this is its first."""
    if joint is None or joint.group is None:
        return []
    return [
        other
        for other in children[joint.parent]
        if other.group is joint.group and other is not joint
    ]


def _carriers(
    links: dict[str, LinkRecord], joints: dict[str, JointRecord], forest: bool, log: ReaderReport
) -> dict[str, JointRecord]:
    """The joint that carries each link: at most one."""
    carriers: dict[str, JointRecord] = {}
    for joint in joints.values():
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
                f"its child {shown(joint.child)} already hangs on {carriers[joint.child].label}: a closed loop is no tree",
                "leave this joint out of the tree and declare the loop as a constraint",
            )
        if joint.child == joint.parent:
            log.fail(
                joint,
                f"parent and child are the same link {shown(joint.child)}",
                "correct the parent or the child",
            )
        carriers[joint.child] = joint
    return carriers


def _check_roots(
    roots: list[LinkRecord],
    links: dict[str, LinkRecord],
    children,
    forest: bool,
    base: str,
    log: ReaderReport,
) -> None:
    if not links:
        log.fail(DocumentRecord("robot"), "the robot has no links", "add bodies")
    if not forest and len(roots) > 1:
        log.fail(
            roots[1],
            f"the robot has {len(roots)} roots: {listed([link.name for link in roots])}; expected one",
            "connect the others with joints, or remove them",
        )
    if base == "fixed" and (len(roots) > 1 or ("world" in children and "world" not in links)):
        for root in roots:
            say = (
                log.doubt if root.mass and root.name not in children else log.note
            )  # forgotten, or what others stand on
            say(root, 'has no joint: welded to the world (base="fixed")')


def _starts(
    roots, children, joints, links, base: str, log: ReaderReport
) -> list[tuple[JointRecord | None, LinkRecord]]:
    """Where the walk starts, last first: root links, on a free joint when the base is free, and joints on the world."""
    starts: list[tuple[JointRecord | None, LinkRecord]] = []
    for root in roots:
        joint = None
        if base == "free" and not _flies(root, children.get(root.name, [])):
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
    hung = children.get("world", []) if "world" not in links else []
    starts.extend((joint, links[joint.child]) for joint in hung)
    return starts[::-1]


def _flies(root: LinkRecord, carried: list[JointRecord]) -> bool:
    """Whether a root is but a name for the world, off which all the rest flies, as files of floating robots have it."""
    return not root.has_mass and bool(carried) and all(joint.kind == "free" for joint in carried)


def free_joint(name: str, root: LinkRecord) -> JointRecord:
    """The joint of a floating base: no limits, no losses, on the world."""
    inf = float("inf")
    zero, wide = (0.0,) * 6, (inf,) * 6
    return JointRecord(
        name,
        "free",
        "world",
        root.name,
        lower=(-inf,) * 7,
        upper=(inf,) * 7,
        velocity=wide,
        effort=wide,
        damping=zero,
        friction=zero,
        armature=zero,
        stiffness=zero,
        rest=zero,
        line=root.line,
    )


def _refuse_cycle(
    links, carriers: dict[str, JointRecord], walk: TreeWalk, log: ReaderReport
) -> None:
    """Name a circle of joints: from any link that no root reaches, go up until a link comes twice."""
    name = next(name for name in links if name not in walk.links)
    seen: dict[str, None] = {}
    while name not in seen:
        seen[name] = None
        name = carriers[name].parent
    circle = list(seen)[list(seen).index(name) :]
    log.fail(
        carriers[name],
        f"links hang on each other in a circle: {listed(circle)}",
        "break the circle: one link must be the root; a closed loop is declared as a constraint",
    )
