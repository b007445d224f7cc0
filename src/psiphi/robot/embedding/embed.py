"""`pp.embed`: a robot with its loops and gears embedded as joints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import as_list, as_names, check_robot, flag, frozen, real_array
from psiphi.model.loops import contacts_and_loops
from psiphi.model.loops.cluster_joints import cluster_joint
from psiphi.model.loops.cluster_search import ClusterGroup, body_order, find_clusters
from psiphi.model.loops.clusters import (
    OUTSIDE,
    Cluster,
    ClusterConstraint,
    ClusterFrame,
    Embedding,
    GearRow,
)
from psiphi.model.loops.constraints import Constraint
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear, check_gear, sort_gears
from psiphi.model.loops.independent_coordinates import assemble_loops, choose_coordinates
from psiphi.model.model import WORLD, Joint, Model
from psiphi.model.named_parts import NamedParts
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.robot.embedding.embedding_origin import EmbeddingOrigin
from psiphi.robot.embedding.rotor_bodies import Rotor, mount_rotors
from psiphi.robot.robot import Robot


def embed(
    robot: Model,
    loops: Iterable[Loop | Gear] | None = None,
    *,
    mimic: bool | None = None,
    rotors: Iterable[Rotor] = (),
    free: str | Iterable[str] = (),
    at: Numbers | None = None,
) -> Robot:
    """The robot with its loops embedded as joints: a robot with fewer velocity coordinates.

    `loops` are `pp.Loop`s between frames and `pp.Gear`s between joints. The default are
    `robot.loops`, `robot.gears` and the mimic joints; `mimic=True` adds the mimic joints to given
    loops. `rotors` are `pp.Rotor`s: motors that spin on their links, in place of the armature of
    their joints.

    q has coordinates for every joint; v, tau and other joint vectors only the independent ones.
    These are the joints named in `free`, then joints with motors. Loops are closed near `at`, a
    configuration of the robot, by default its neutral one; `robot.neutral()` and `robot.random()`
    return configurations of the same assembly branch.

    >>> import psiphi as pp
    >>> gripper = pp.load("panda")  # its second finger mimics the first
    >>> robot = pp.embed(gripper)
    >>> gripper.nv - robot.nv
    1
    """
    robot = check_robot("embed", robot, Robot)
    if robot.embedding is not None:
        remedy = (
            "embed all loops in one call"
            if robot.embedding.has_loops
            else "embed a robot with rigid links"
        )
        raise StateError(f"{robot.embedding.describe(robot.name)} already", remedy)
    if robot.freed is not None:
        raise StateError(
            f"{robot.name} has free parameters", "embed the robot first, then call free"
        )
    rotor_list = as_list("rotors", rotors, "give rotors=[pp.Rotor(...)]")
    given = [*robot.loops, *robot.gears] if loops is None else as_list("loops", loops)
    use_mimics = (loops is None) if mimic is None else flag("mimic", mimic)
    gears = [g for g in given if isinstance(g, Gear)] + (_mimic_gears(robot) if use_mimics else [])
    loop_list = [loop for loop in given if not isinstance(loop, Gear)]
    ties = [contacts_and_loops.read_loop(i, loop, robot) for i, loop in enumerate(loop_list)]
    for tie in ties:
        if tie.friction is not None or tie.kind == "rough":
            cause = f"{tie.name}, a {tie.kind} loop, is a contact: it can slide or open"
            raise StateError(cause, "use pp.connect: an embedded loop never opens")
    if not ties and not gears and not rotor_list:
        raise StateError(
            f"{robot.name} has no loop and no mimic joint to embed",
            "give loops=[pp.Loop(...)] or loops=[pp.Gear(...)]",
        )
    start = (
        robot.neutral()
        if at is None
        else real_array("at", at, (robot.nq,), f"give {robot.nq} numbers, or leave it out")
    )
    if start.shape != (robot.nq,):
        raise StateError(
            f"at has shape {start.shape}, expected ({robot.nq},)", "give one configuration"
        )
    if rotor_list:
        with_rotors, rotor_gears = mount_rotors(robot, rotor_list)
        full_start = with_rotors.neutral()
        for joint in robot.joints:
            full_start[with_rotors.joint(joint.name).q_slice] = start[joint.q_slice]
        robot, start, gears = with_rotors, full_start, [*gears, *rotor_gears]
    free_names = tuple(as_names("free", free))
    gears = [check_gear(robot, i, g) for i, g in enumerate(gears)]
    embedded = _Embedder(robot, ties, gears, free_names, start).robot()
    assert embedded.embedding is not None
    in_clusters = {k for cluster in embedded.embedding.clusters for k in cluster.bodies}
    fully_free = tuple(
        j.name
        for j in embedded.joints
        if j.index in in_clusters and 0 < j.row.nv == j.v_slice.stop - j.v_slice.start
    )
    origin = EmbeddingOrigin(robot, tuple(loop_list), tuple(gears), fully_free, embed)
    return replace(embedded, embedding=replace(embedded.embedding, origin=origin))


def _mimic_gears(robot: Model) -> list[Gear]:
    return [
        Gear(name, {m.joint: m.multiplier}, m.offset, f"mimic {name}")
        for name, m in robot.mimics.items()
    ]


class _Embedder:
    """Rearranges a robot so that bodies of a cluster are consecutive, and embeds the clusters.

    `order` lists the old index of each new body; `new` is the inverse map.
    """

    def __init__(
        self,
        robot: Robot,
        ties: list[Constraint],
        gears: list[Gear],
        free: Sequence[str],
        at: np.ndarray,
    ):
        self.source, self.ties, self.gears, self.at = robot, ties, sort_gears(gears), at
        self.free = [robot.joint(name).index for name in free]
        pairs = [(robot.frame(tie.first).body, robot.frame(tie.second).body) for tie in ties]
        geared = [[robot.joint(name).index for name in (g.joint, *g.leaders)] for g in self.gears]
        self.groups = find_clusters(robot.parent, pairs, geared)
        in_groups = {k for group in self.groups for k in group.bodies}
        for k in self.free:
            if k not in in_groups:
                raise StateError(
                    f"free names joint {robot.joints[k].name}, which is in no loop", "leave it out"
                )
        self.order = body_order(robot.parent, self.groups)
        self.new = {old: k for k, old in enumerate(self.order)} | {WORLD: WORLD}

    def robot(self) -> Robot:
        tree = self._permuted_tree()
        q = self._permuted_q(self.at)
        clusters = []
        for group in sorted(self.groups, key=lambda x: min(self.new[k] for k in x.bodies)):
            names = [self.ties[i].name for i in group.ties]
            names += [self.gears[i].name for i in group.gears]
            cluster = self._cluster(tree, group)
            first, last = (tree.joints[cluster.bodies[k]] for k in (0, -1))
            part = slice(first.q_slice.start, last.q_slice.stop)
            free = [
                c
                for old in self.free
                if old in group.bodies
                for c in _cluster_coordinates(tree, cluster, self.new[old])
            ]
            q[part] = assemble_loops(tree, cluster, q[part], free, names)
            clusters.append(choose_coordinates(tree, cluster, q[part], free, names))
        joints = _reduced_joints(tree, clusters)
        model = replace(tree, joints=joints, embedding=Embedding(tuple(clusters), frozen(q)))
        embedded = replace(Robot.of(model, self.source.shapes), loops=(), gears=())
        return replace(embedded, postures=self._postures(embedded))

    def _postures(self, embedded: Robot) -> dict[str, np.ndarray]:
        """The postures of the robot whose loops can be closed, with loops closed."""
        assert embedded.embedding is not None
        clusters = [cluster_joint(embedded, cluster) for cluster in embedded.embedding.clusters]
        postures = {}
        for name, old in self.source.postures.items():
            with np.errstate(all="ignore"):
                q = embedded.normalize(self._permuted_q(old))
            errors = (
                x
                for joint in clusters
                for x in joint.kinematics.closure_errors(entries(q[joint.q_slice]))
            )
            if all(abs(x) < 1e-9 for x in errors):
                postures[name] = frozen(q)
        return postures

    def _permuted_q(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([[], *(q[self.source.joints[old].q_slice] for old in self.order)])

    def _permuted_tree(self) -> Model:
        """The spanning tree with the bodies of a cluster next to each other."""
        robot, joints, nq, nv = self.source, [], 0, 0
        for k, old in enumerate(self.order):
            joint = robot.joints[old]
            row = joint.row
            joints.append(
                replace(
                    joint,
                    index=k,
                    parent=self.new[joint.parent],
                    q_slice=slice(nq, nq + row.nq),
                    v_slice=slice(nv, nv + row.nv),
                    mimic=None,
                )
            )
            nq, nv = nq + row.nq, nv + row.nv
        frames = {
            name: replace(frame, body=self.new[frame.body]) for name, frame in robot.frames.items()
        }
        parts = NamedParts(robot.bodies[old] for old in self.order), NamedParts(joints)
        return Model(robot.name, *parts, frames, robot.gravity_vector, robot.report)

    def _cluster(self, tree: Model, group: ClusterGroup) -> Cluster:
        """The cluster of a group of bodies, before its coordinates are chosen."""
        bodies = sorted(self.new[k] for k in group.bodies)
        numbers = {k: i for i, k in enumerate(bodies)}
        ties = tuple(
            ClusterConstraint(
                tie.name,
                tie.kind,
                tie.shape,
                *(_cluster_frame(tree, name, numbers) for name in (tie.first, tie.second)),
                rows=tuple(range(tie.row.size)),
            )
            for tie in (self.ties[i] for i in sorted(group.ties))
        )
        counts = np.cumsum([0, *(tree.joints[k].row.nv for k in bodies)]).tolist()
        starts = dict(zip(bodies, counts, strict=False))
        coordinate = lambda name: starts[tree.joint(name).index]  # noqa: E731
        gears = []
        for gear in (self.gears[i] for i in sorted(group.gears)):
            terms: Any = tuple((coordinate(name), 0.0, cs) for name, cs in gear.leaders.items())
            gears.append(GearRow(gear.name, coordinate(gear.joint), gear.offset, terms))
        joints = [tree.joints[k] for k in bodies]
        each = [(joint, i) for joint in joints for i in range(joint.row.nv)]
        return Cluster(
            bodies[0],
            parents=tuple(numbers.get(tree.parent[k], OUTSIDE) for k in bodies),
            parent=self.new[group.parent],
            gears=tuple(gears),
            ties=ties,
            free=(),
            bound=(),
            armature=tuple(float(x) for joint in joints for x in joint.armature),
            damping=tuple(float(joint.damping[i]) for joint, i in each),
            friction=tuple(float(joint.friction[i]) for joint, i in each),
            springs=tuple(
                (float(joint.stiffness[i]), float(joint.rest[i]), joint.spring) for joint, i in each
            ),
        )


def _cluster_frame(tree: Model, name: str, numbers: dict[int, int]) -> ClusterFrame:
    """A frame relative to its body in the cluster, or to the body outside."""
    frame = tree.frame(name)
    body = numbers.get(frame.body, OUTSIDE)
    return ClusterFrame(body, frame.pose.rotation, frame.pose.translation)


def _cluster_coordinates(model: Model, cluster: Cluster, body: int) -> range:
    """The velocity coordinates of the joint of a body, numbered within its cluster."""
    start = sum(model.joints[k].row.nv for k in cluster.bodies if k < body)
    return range(start, start + model.joints[body].row.nv)


JOINT_VECTORS = ("velocity", "effort", "damping", "friction", "armature", "stiffness", "rest")


def _reduced_joints(model: Model, clusters: Sequence[Cluster]) -> tuple[Joint, ...]:
    """The joints with their independent velocity coordinates only."""
    independent = {}
    for cluster in clusters:
        for k in cluster.bodies:
            numbers = _cluster_coordinates(model, cluster, k)
            independent[k] = [c - numbers.start for c in numbers if c in cluster.free]
    joints, nv = [], 0
    for joint in model.joints:
        chosen = independent.get(joint.index, list(range(joint.row.nv)))
        vectors = {name: frozen(getattr(joint, name)[chosen]) for name in JOINT_VECTORS}
        joints.append(replace(joint, v_slice=slice(nv, nv + len(chosen)), **vectors))
        nv += len(chosen)
    return tuple(joints)
