"""`pp.embed`: a robot whose loops and gears are joints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import check_robot, flag, frozen, names, real, several
from psiphi.model.loops import contacts_and_loops
from psiphi.model.loops.cluster_joints import compound_joint
from psiphi.model.loops.cluster_search import ClusterGroup, gather, order
from psiphi.model.loops.clusters import (
    OUTSIDE,
    Cluster,
    ClusterConstraint,
    ClusterFrame,
    Embedding,
    GearRow,
)
from psiphi.model.loops.constraints import Constraint
from psiphi.model.loops.gears import Gear, checked, in_order
from psiphi.model.loops.independent_coordinates import assembled, settled
from psiphi.model.model import WORLD, Joint, Model
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.robot.embedding.embedding_origin import EmbeddingOrigin
from psiphi.robot.embedding.rotor_bodies import Rotor, mounted
from psiphi.robot.robot import Robot


def embed(
    robot: Model,
    loops: Iterable[Any] | None = None,
    *,
    mimic: bool | None = None,
    rotors: Iterable[Rotor] = (),
    free: str | Iterable[str] = (),
    at: Any = None,
) -> Robot:
    """The robot with its loops as joints: a robot again, with fewer velocities.

    `loops` are `pp.Loop`s between its frames and `pp.Gear`s between its joints; left out, they are the robot's own
    (`robot.loops`, `robot.gears`) and its mimic joints (`mimic=True` adds these to loops that are given). `rotors` are
    `pp.Rotor`s: motors that spin on the links they are mounted on, in place of their joints' armature.

    q keeps a coordinate for every joint; v, tau and all that is by joint has those that are free: joints named in `free`, and
    where a loop leaves a choice, joints with motors first. Loops are closed from `at` (a configuration of the robot, its
    neutral one when left out), and the branch found there is the one that `robot.neutral()` and `robot.random()` have.

    >>> import psiphi as pp
    >>> gripper = pp.load("panda")  # its second finger mimics the first
    >>> robot = pp.embed(gripper)
    >>> gripper.nv - robot.nv
    1
    """
    robot = check_robot("embed", robot, Robot)
    if robot.embedding is not None:
        again = (
            "embed all of them at once"
            if robot.embedding.loops
            else "embed a robot with rigid links"
        )
        raise StateError(f"{robot.embedding.words(robot.name)} already", again)
    if robot.freed is not None:
        raise StateError(
            f"numbers of {robot.name} are inputs", "embed the robot first, then free them"
        )
    spinning = several("rotors", rotors, "give rotors=[pp.Rotor(...)]")
    given = [*robot.loops, *robot.gears] if loops is None else several("loops", loops)
    follows = (loops is None) if mimic is None else flag("mimic", mimic)
    gears = [g for g in given if isinstance(g, Gear)] + (_mimics(robot) if follows else [])
    ties = [
        contacts_and_loops.loop(i, loop, robot)
        for i, loop in enumerate(x for x in given if not isinstance(x, Gear))
    ]
    for tie in ties:
        if tie.friction is not None or tie.kind == "rough":
            cause = f"{tie.name}, a {tie.kind} loop, is a contact: it slides, or opens"
            raise StateError(cause, "an embedded loop holds for ever: pp.connect takes contacts")
    if not ties and not gears and not spinning:
        raise StateError(
            f"{robot.name} has no loop and no mimic joint to embed",
            "give loops=[pp.Loop(...)], or [pp.Gear(...)]",
        )
    start = (
        robot.neutral()
        if at is None
        else real("at", at, (robot.nq,), f"give {robot.nq} numbers, or leave it out")
    )
    if start.shape != (robot.nq,):
        raise StateError(
            f"at has shape {start.shape}, expected ({robot.nq},)", "give one configuration"
        )
    if spinning:
        heavier, more = mounted(robot, spinning)
        whole = heavier.neutral()
        for joint in robot.joints:
            whole[heavier.joint(joint.name).q_slice] = start[joint.q_slice]
        robot, start, gears = heavier, whole, [*gears, *more]
    freely = tuple(names("free", free))
    gears = [checked(robot, i, g) for i, g in enumerate(gears)]
    found = _Embedded(robot, ties, gears, freely, start).robot()
    assert found.embedding is not None
    inside = {k for cluster in found.embedding.clusters for k in cluster.bodies}
    whole = (
        j.name
        for j in found.joints
        if j.index in inside and 0 < j.row.nv == j.v_slice.stop - j.v_slice.start
    )
    loose = tuple(loop for loop in given if not isinstance(loop, Gear))
    return replace(
        found,
        embedding=replace(
            found.embedding, origin=EmbeddingOrigin(robot, loose, tuple(gears), tuple(whole), embed)
        ),
    )


def _mimics(robot: Model) -> list[Gear]:
    return [
        Gear(name, {m.joint: m.multiplier}, m.offset, f"mimic {name}")
        for name, m in robot.mimics.items()
    ]


class _Embedded:
    """A robot on its way to one with clusters."""

    def __init__(
        self,
        robot: Robot,
        ties: list[Constraint],
        gears: list[Gear],
        free: Sequence[str],
        at: np.ndarray,
    ):
        self.source, self.ties, self.gears, self.at = robot, ties, in_order(gears), at
        self.free = [robot.joint(name).index for name in free]
        pairs = [(robot.frame(tie.first).body, robot.frame(tie.second).body) for tie in ties]
        geared = [[robot.joint(name).index for name in (g.joint, *g.leaders)] for g in self.gears]
        self.sets = gather(robot.parent, pairs, geared)
        inside = {k for s in self.sets for k in s.bodies}
        for k in self.free:
            if k not in inside:
                raise StateError(
                    f"joint {robot.joints[k].name} is named free and is in no loop", "leave it out"
                )
        self.order = order(robot.parent, self.sets)
        self.new = {old: k for k, old in enumerate(self.order)} | {WORLD: WORLD}

    def robot(self) -> Robot:
        whole = self._permuted()
        q = np.concatenate([[], *(self.at[self.source.joints[old].q_slice] for old in self.order)])
        clusters = []
        for s in sorted(self.sets, key=lambda s: min(self.new[k] for k in s.bodies)):
            names = [self.ties[i].name for i in s.ties] + [self.gears[i].name for i in s.gears]
            cluster = self._cluster(whole, s)
            own = slice(
                whole.joints[cluster.bodies[0]].q_slice.start,
                whole.joints[cluster.bodies[-1]].q_slice.stop,
            )
            wanted = [
                c
                for old in self.free
                if old in s.bodies
                for c in _coordinates(whole, cluster, self.new[old])
            ]
            q[own] = assembled(whole, cluster, q[own], wanted, names)
            clusters.append(settled(whole, cluster, q[own], wanted, names))
        joints = _reduced(whole, clusters)
        model = replace(whole, joints=joints, embedding=Embedding(tuple(clusters), frozen(q)))
        embedded = replace(Robot.of(model, self.source.shapes), loops=(), gears=())
        return replace(embedded, postures=self._postures(embedded))

    def _postures(self, embedded: Any) -> dict[str, np.ndarray]:
        """Those of the robot, with loops closed from there and followers where their leaders have them; where that can be."""
        kept = {}
        for name, old in self.source.postures.items():
            q = np.concatenate([[], *(old[self.source.joints[k].q_slice] for k in self.order)])
            with np.errstate(all="ignore"):
                closed = embedded.normalize(q)
            joints = (compound_joint(embedded, cluster) for cluster in embedded.embedding.clusters)
            gaps = [x for joint in joints for x in joint.laws.gaps(entries(closed[joint.q_slice]))]
            if all(abs(x) < 1e-9 for x in gaps):
                kept[name] = frozen(closed)
        return kept

    def _permuted(self) -> Model:
        """The spanning tree, the bodies of a cluster next to each other."""
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
        bodies = tuple(robot.bodies[old] for old in self.order)
        return Model(robot.name, bodies, tuple(joints), frames, robot.gravity_vector, robot.report)

    def _cluster(self, whole: Model, s: ClusterGroup) -> Cluster:
        bodies = sorted(self.new[k] for k in s.bodies)
        at = {k: i for i, k in enumerate(bodies)}
        hangs = tuple(at.get(whole.parent[k], OUTSIDE) for k in bodies)
        ties = tuple(
            ClusterConstraint(
                tie.name,
                tie.kind,
                tie.shape,
                *(self._spot(whole, name, at) for name in (tie.first, tie.second)),
                rows=tuple(range(tie.row.size)),
            )
            for tie in (self.ties[i] for i in sorted(s.ties))
        )
        starts = dict(
            zip(
                bodies,
                np.cumsum([0, *(whole.joints[k].row.nv for k in bodies)]).tolist(),
                strict=False,
            )
        )
        number = lambda name: starts[whole.joint(name).index]  # noqa: E731
        gears = tuple(
            GearRow(
                g.name,
                number(g.joint),
                g.offset,
                tuple((number(l), 0.0, cs) for l, cs in g.leaders.items()),
            )
            for g in (self.gears[i] for i in sorted(s.gears))
        )
        armature = tuple(float(x) for k in bodies for x in whole.joints[k].armature)
        each = [
            (joint, i) for joint in (whole.joints[k] for k in bodies) for i in range(joint.row.nv)
        ]
        damping, friction = (
            tuple(float(getattr(joint, word)[i]) for joint, i in each)
            for word in ("damping", "friction")
        )
        springs = tuple(
            (float(joint.stiffness[i]), float(joint.rest[i]), joint.spring) for joint, i in each
        )
        return Cluster(
            bodies[0],
            hangs,
            self.new[s.parent],
            gears,
            ties,
            (),
            (),
            armature,
            damping,
            friction,
            springs,
        )

    def _spot(self, whole: Model, name: str, at: dict[int, int]) -> ClusterFrame:
        """A frame on a body of the cluster; on any other, it moves with the body outside, or is fixed to it."""
        frame = whole.frame(name)
        if frame.body in at:
            return ClusterFrame(at[frame.body], frame.pose.rotation, frame.pose.translation)
        return ClusterFrame(OUTSIDE, frame.pose.rotation, frame.pose.translation)


def _coordinates(model: Model, cluster: Cluster, body: int) -> range:
    """The velocity coordinates of a body's joint, numbered within its cluster."""
    start = sum(model.joints[k].row.nv for k in cluster.bodies if k < body)
    return range(start, start + model.joints[body].row.nv)


REDUCED = ("velocity", "effort", "damping", "friction", "armature", "stiffness", "rest")


def _reduced(model: Model, clusters: Sequence[Cluster]) -> tuple[Joint, ...]:
    """The joints with the velocities that are free."""
    kept = {}
    for cluster in clusters:
        for k in cluster.bodies:
            own = _coordinates(model, cluster, k)
            kept[k] = [c - own.start for c in own if c in cluster.free]
    joints, nv = [], 0
    for joint in model.joints:
        own = kept.get(joint.index, list(range(joint.row.nv)))
        parts = {word: frozen(getattr(joint, word)[own]) for word in REDUCED}
        joints.append(replace(joint, v_slice=slice(nv, nv + len(own)), **parts))
        nv += len(own)
    return tuple(joints)
