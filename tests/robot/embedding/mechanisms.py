"""Mechanisms with loops and gears, and what their dynamics are by Lagrange's multipliers on the
spanning tree.

A mechanism is (robot, loops, options of `pp.embed`). The oracle knows the constraints by what they
say, in world axes, and the spanning tree by psiphi's functions of open trees, which other tests
hold beside Pinocchio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import psiphi as pp
from psiphi._util.validate import frozen
from psiphi.model.loops.gears import Gear

Mechanism = tuple[pp.Robot, list, dict[str, Any]]
RNG = np.random.default_rng


def lump(rng: np.random.Generator, mass: float = 1.0, size: float = 0.2) -> dict[str, Any]:
    """Mass, centre and inertia of a random body."""
    A = rng.standard_normal((4, 3)) * size
    second = A.T @ A / 4.0
    return dict(
        mass=mass * rng.uniform(0.5, 1.5),
        com=0.5 * size * rng.standard_normal(3),
        inertia=np.trace(second) * np.eye(3) - second,
    )


def builder(name: str, rng: np.random.Generator, *rows: tuple) -> pp.Builder:
    """Rows are (body, joint kind, parent, place, axis or (axis, axis2))."""
    b = pp.Builder(name)
    for body, kind, parent, xyz, axis in rows:
        along = (
            {}
            if axis is None
            else dict(axis=axis)
            if np.ndim(axis) == 1
            else dict(axis=axis[0], axis2=axis[1])
        )
        b.body(body, **lump(rng))
        b.joint(f"to {body}", kind, parent=parent, child=body, xyz=xyz, **along)
    return b


def seen(b: pp.Builder, tool: str, elbow: str) -> pp.Robot:
    """With the frames that laws speak of."""
    b.frame("tool", tool, xyz=(0.05, -0.02, 0.1), rpy=(0.3, 0.2, -0.5))
    b.frame("elbow", elbow, xyz=(-0.1, 0.03, 0.02))
    return b.build()


Y = (0.0, 1.0, 0.0)


def fourbar() -> Mechanism:
    """On a shoulder, with a hand on the coupler."""
    b = builder(
        "four-bar",
        RNG(1),
        ("base", "revolute", "world", (0, 0, 0.5), (0.2, 0.3, 1.0)),
        ("crank", "revolute", "base", (0, 0, 0), Y),
        ("coupler", "revolute", "crank", (0.2, 0, 0), Y),
        ("hand", "revolute", "coupler", (0.3, 0, 0.1), (1.0, 0, 0)),
        ("rocker", "revolute", "base", (0.5, 0, 0), Y),
    )
    b.frame("one", "coupler", xyz=(0.5, 0, 0))
    b.frame("two", "rocker", xyz=(0.4, 0, 0))
    return (
        seen(b, "hand", "coupler"),
        [pp.Loop("hinge", "one", "two", axis=Y)],
        dict(at=[0.0, -1.2, 1.0, 0.3, -1.5], free="to crank"),
    )


def sixbar() -> Mechanism:
    """Two loops that share bodies."""
    b = builder(
        "six-bar",
        RNG(2),
        ("crank", "revolute", "world", (0, 0, 0), Y),
        ("coupler", "revolute", "crank", (0.2, 0, 0), Y),
        ("rocker", "revolute", "world", (0.5, 0, 0), Y),
        ("arm", "revolute", "coupler", (0.25, 0, 0.2), Y),
        ("last", "revolute", "world", (0.9, 0, 0.1), Y),
    )
    b.frame("one", "coupler", xyz=(0.5, 0, 0))
    b.frame("two", "rocker", xyz=(0.4, 0, 0))
    b.frame("three", "arm", xyz=(0.5, 0, 0))
    b.frame("four", "last", xyz=(0.45, 0, 0))
    loops = [pp.Loop("hinge", "one", "two", axis=Y), pp.Loop("ball", "three", "four")]
    return seen(b, "arm", "rocker"), loops, dict(at=[-1.2, 1.0, 0.3, -1.5, -1.2], free="to crank")


def ankle() -> Mechanism:
    """A foot on a universal joint, pushed by two cranks through two rods; the cranks are free."""
    b = builder(
        "parallel ankle",
        RNG(3),
        ("shank", "free", "world", (0, 0, 0), None),
        ("foot", "universal", "shank", (0, 0, -0.4), ((0, 1.0, 0), (1.0, 0, 0))),
        ("crank a", "revolute", "shank", (-0.02, 0.06, -0.1), Y),
        ("rod a", "universal", "crank a", (-0.08, 0, 0), ((0, 1.0, 0), (1.0, 0, 0))),
        ("crank b", "revolute", "shank", (-0.02, -0.06, -0.1), Y),
        ("rod b", "universal", "crank b", (-0.08, 0, 0), ((0, 1.0, 0), (1.0, 0, 0))),
        ("toe", "revolute", "foot", (0.1, 0, -0.05), Y),
    )
    for side, y in (("a", 0.05), ("b", -0.05)):
        b.frame(f"end {side}", f"rod {side}", xyz=(0, 0, -0.31))
        b.frame(f"heel {side}", "foot", xyz=(-0.09, y, 0.01))
    loops = [pp.Loop("ball", f"end {side}", f"heel {side}") for side in "ab"]
    return seen(b, "toe", "rod a"), loops, dict(free=["to crank a", "to crank b"])


def differential() -> Mechanism:
    """Two motors that pitch and roll a wrist together, on an arm that moves."""
    b = builder(
        "differential",
        RNG(4),
        ("arm", "revolute", "world", (0, 0, 0), (0.3, 1.0, 0.2)),
        ("pitch", "revolute", "arm", (0.4, 0, 0), Y),
        ("roll", "revolute", "pitch", (0.05, 0, 0), (1.0, 0, 0)),
        ("motor a", "revolute", "arm", (0.1, 0.05, 0), Y),
        ("motor b", "revolute", "arm", (0.1, -0.05, 0), (0.0, 0.8, 0.6)),
    )
    gears = [
        Gear("to pitch", {"to motor a": 0.1, "to motor b": 0.12}),
        Gear("to roll", {"to motor a": 0.2, "to motor b": -0.15}, offset=0.3),
    ]
    return seen(b, "roll", "motor b"), gears, {}


def train() -> Mechanism:
    """A gear train of which each wheel leads the next, and a cam that is no straight line."""
    b = builder(
        "gear train",
        RNG(5),
        ("box", "prismatic", "world", (0, 0, 0), (0.0, 0.6, 0.8)),
        ("one", "revolute", "box", (0.1, 0, 0), (0, 0, 1.0)),
        ("two", "revolute", "box", (0.2, 0, 0), (0, 0, 1.0)),
        ("three", "revolute", "box", (0.3, 0, 0), (0, 1.0, 0)),
        ("lifter", "prismatic", "box", (0.4, 0, 0), (0, 0, 1.0)),
        ("valve", "revolute", "lifter", (0.0, 0.1, 0), (1.0, 0, 0)),
    )
    gears = [
        Gear("to two", {"to one": -2.5}),
        Gear("to three", {"to two": 1.5}, offset=0.1),
        Gear("to lifter", {"to one": (0.1, 0.2, -0.05)}),
    ]
    return seen(b, "valve", "three"), gears, {}


def rssr() -> Mechanism:
    """Crank and rocker that do not lie in a plane, and a rod with a ball at either end, which is
    free to spin."""
    b = builder(
        "RSSR",
        RNG(6),
        ("crank", "revolute", "world", (0, 0, 0), (0, 0, 1.0)),
        ("rod", "spherical", "crank", (0.15, 0, 0), None),
        ("rocker", "revolute", "world", (0.5, 0.1, 0.1), (1.0, 0.2, 0)),
    )
    b.frame("end", "rod", xyz=(0.45, 0.05, 0.1))
    b.frame("tip", "rocker", xyz=(0.0, 0.25, 0.1))
    return seen(b, "rod", "rocker"), [pp.Loop("ball", "end", "tip")], dict(free="to crank")


def nested() -> Mechanism:
    """A four-bar whose coupler carries a geared pair, and a rod of fixed length between two fingers
    there."""
    robot, loops, options = fourbar()
    b = pp.Builder(robot)
    rng = RNG(7)
    for body, parent, xyz, axis in (
        ("left", "hand", (0.05, 0.05, 0), (0, 0, 1.0)),
        ("right", "hand", (0.05, -0.05, 0), (0, 0, 1.0)),
        ("tip", "left", (0.1, 0, 0), (0, 1.0, 0.3)),
    ):
        b.body(body, **lump(rng, 0.3, 0.05))
        b.joint(f"to {body}", "revolute", parent=parent, child=body, xyz=xyz, axis=axis)
    b.frame("p", "tip", xyz=(0.1, 0, 0))
    b.frame("q", "right", xyz=(0.15, 0.02, 0))
    at = dict(zip(robot.joint_names, options["at"], strict=True))
    whole = b.build()
    more = [pp.Loop("distance", "p", "q", length=0.12)]
    start = whole.neutral()
    for name, value in at.items():
        start[whole.joint(name).q_slice] = value
    return whole, [*loops, *more], dict(at=start)


def rotors() -> Mechanism:
    """Rotors on all joints of a four-bar, and of a cam that its crank drives."""
    robot, loops, options = fourbar()
    b = pp.Builder(robot)
    b.body("lifter", **lump(RNG(8)))
    b.joint(
        "to lifter", "prismatic", parent="base", child="lifter", xyz=(0, 0.2, 0), axis=(0.1, 0, 1.0)
    )
    b.body("valve", **lump(RNG(9)))
    b.joint(
        "to valve", "revolute", parent="lifter", child="valve", xyz=(0, 0.2, 0), axis=(1.0, 0, 0)
    )
    heavy = b.build()
    start = heavy.neutral()
    for name, value in zip(robot.joint_names, options["at"], strict=True):
        start[heavy.joint(name).q_slice] = value
    joints = tuple(replace(j, armature=frozen([0.1 + 0.05 * j.index])) for j in heavy.joints)
    heavy = replace(heavy, joints=joints)
    gears = [
        pp.Gear("to lifter", {"to crank": (0.1, 0.05)}),
        pp.Gear("to valve", {"to lifter": 2.0, "to rocker": -0.5}),
    ]
    return heavy, [*loops, *gears], dict(at=start, free="to crank")


def cassie() -> Mechanism:
    """A leg of Cassie's kind on a flying hip: a rod from thigh to heel, which springs, ties knee to
    tarsus; a second one, on a crank at the tarsus, turns the foot."""
    b = builder(
        "leg",
        RNG(11),
        ("hip", "free", "world", (0, 0, 0), None),
        ("thigh", "revolute", "hip", (0, 0.1, 0), (1.0, 0.2, 0)),
        ("knee", "revolute", "thigh", (0.12, 0, -0.1), Y),
        ("shin", "revolute", "knee", (0.06, 0, -0.05), Y),
        ("tarsus", "revolute", "shin", (0.43, 0, 0.02), Y),
        ("heel", "revolute", "tarsus", (-0.01, 0, 0.03), Y),
        ("crank", "revolute", "tarsus", (0.06, 0, 0.01), Y),
        ("plantar", "revolute", "crank", (0.05, 0, 0), Y),
        ("foot", "revolute", "tarsus", (0.41, 0, 0), Y),
    )
    b.frame("achilles", "thigh", xyz=(0.0, 0.0, 0.04))
    b.frame("spur", "heel", xyz=(-0.11, 0.01, 0))
    b.frame("rod end", "plantar", xyz=(0.35, 0, 0))
    b.frame("lug", "foot", xyz=(0.05, 0, 0.01))
    robot = seen(b, "foot", "tarsus")
    at = robot.neutral()
    for name, angle in (
        ("knee", -0.4),
        ("tarsus", 1.2),
        ("crank", 0.9),
        ("plantar", -0.9),
        ("foot", 0.9),
    ):
        at[robot.joint(f"to {name}").q_slice] = angle
    apart = robot.frame_pose(at, "achilles")[:3, 3] - robot.frame_pose(at, "spur")[:3, 3]
    loops = [
        pp.Loop("distance", "achilles", "spur", length=float(np.linalg.norm(apart))),
        pp.Loop("hinge", "rod end", "lug", axis=Y),
    ]
    return robot, loops, dict(at=at, free=["to knee", "to shin", "to heel", "to crank"])


def slider_crank(free: str) -> pp.Robot:
    """A piston, its crank and the rod between; one of the first two drives."""
    b = pp.Builder("slider-crank")
    for body, kind, parent, x, axis in (
        ("crank", "revolute", "world", 0.0, Y),
        ("rod", "revolute", "crank", 0.2, Y),
        ("piston", "prismatic", "world", 0.0, (1, 0, 0)),
    ):
        b.body(body, mass=1.0, inertia=0.01 * np.eye(3))
        b.joint(f"to {body}", kind, parent, body, xyz=(x, 0, 0), axis=axis)
    b.frame("end", "rod", xyz=(0.5, 0, 0))
    return pp.embed(
        b.build(), [pp.Loop("hinge", "end", "piston", axis=Y)], free=free, at=[0.5, -0.7, 0.65]
    )


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    f.__name__: f for f in (fourbar, sixbar, ankle, differential, train, rssr, nested, rotors)
}


def random_mechanism(seed: int) -> Mechanism:
    """A random tree with a random loop or two that leave something to move, closed at a random
    configuration."""
    for attempt in range(100):
        robot, loops, options = _drawn(100 * seed + attempt)
        try:
            pp.embed(robot, loops, **options)
        except pp.ModelError as error:
            assert "no joint can move" in str(error) or "singular" in str(error)
        else:
            return robot, loops, options
    raise AssertionError("none of a hundred moves")


def _drawn(seed: int) -> Mechanism:
    rng = RNG(seed)
    n = int(rng.integers(4, 7))
    robot = pp.robots.random_tree(
        n, seed=seed, kinds=("revolute", "prismatic", "universal", "spherical", "cylindrical")
    )
    b, q = pp.Builder(robot), robot.random(seed=seed)
    loops: list = []
    names = [body.name for body in robot.bodies]
    for i in range(int(rng.integers(1, 3))):
        one, two = rng.choice(n, 2, replace=False)
        kind = str(rng.choice(["ball", "distance", "hinge", "universal"], p=[0.4, 0.3, 0.15, 0.15]))
        place = rng.uniform(-0.3, 0.3, 3)
        b.frame(f"one{i}", names[one], xyz=place)
        T1, T2 = (robot.frame_pose(q, names[k]) for k in (one, two))
        seen = np.linalg.inv(T2) @ T1 @ np.array([*place, 1.0])
        apart = rng.standard_normal(3) if kind == "distance" else np.zeros(3)
        turned = T2[:3, :3].T @ T1[:3, :3]
        b.frame(f"two{i}", names[two], xyz=seen[:3] + apart, rotation=turned)
        more = dict(
            distance=dict(length=float(np.linalg.norm(apart))),
            hinge=dict(axis=rng.standard_normal(3)),
        )
        more["universal"] = dict(axis=(0.6, 0.8, 0.0), axis2=(-0.8, 0.6, 0.0))
        loops.append(pp.Loop(kind, f"one{i}", f"two{i}", **more.get(kind, {})))
    return b.build(), loops, dict(at=q)


# -- the oracle ------------------------------------------------------------------------------------


class Spanning:
    """The spanning tree at a state of the embedded robot."""

    def __init__(
        self, robot: pp.Robot, loops: list, embedded: pp.Robot, q: np.ndarray, v: np.ndarray
    ):
        self.tree, self.loops, self.embedded = robot, loops, embedded
        self.q = self.places(q)
        self.v = self.rates(v)

    def places(self, q: np.ndarray) -> np.ndarray:
        out = np.zeros(self.tree.nq)
        for joint in self.tree.joints:
            out[joint.q_slice] = q[self.embedded.joint(joint.name).q_slice]
        return out

    def rates(self, v: np.ndarray) -> np.ndarray:
        """What all joints do: v at the free ones, and what keeps the loops closed, Y v = 0, at the
        others."""
        self.v, out = np.zeros(self.tree.nv), np.zeros(self.tree.nv)
        free = [self.tree.joint(name).v_slice.start + kept for name, _, kept in self.coordinates()]
        out[free] = [v[own] for _, own, _ in self.coordinates()]
        rest = np.setdiff1d(np.arange(self.tree.nv), free)
        Y, _ = self.rows()
        out[rest] = np.linalg.lstsq(Y[:, rest], -Y[:, free] @ out[free], rcond=1e-11)[0]
        return out

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Y and dY/dt v of all constraints."""
        found = [self.gear(x) if isinstance(x, Gear) else self.loop(x) for x in self.loops]
        return np.concatenate([Y for Y, _ in found]), np.concatenate([g for _, g in found])

    def gear(self, gear: Gear) -> tuple[np.ndarray, np.ndarray]:
        tree = self.tree
        row, bend = np.zeros(tree.nv), 0.0
        row[tree.joint(gear.joint).v_slice] = -1.0
        for name, ratio in gear.leaders.items():
            at, x = tree.joint(name).v_slice.start, self.q[tree.joint(name).q_slice.start]
            slope = np.polynomial.Polynomial([0.0, *np.atleast_1d(ratio)])
            row[at] += slope.deriv()(x)
            bend += slope.deriv(2)(x) * self.v[at] ** 2
        return row[None], np.array([bend])

    def loop(self, loop: pp.Loop) -> tuple[np.ndarray, np.ndarray]:
        tree, q, v = self.tree, self.q, self.v
        J, a, T, V = [], [], [], []
        for name in (loop.first, loop.second):
            J.append(tree.jacobian(q, name))
            a.append(tree.frame_acceleration(q, v, 0.0 * v, name))
            T.append(tree.frame_pose(q, name))
            V.append(J[-1] @ v)
        apart, gap, rel = J[0] - J[1], a[0] - a[1], V[0] - V[1]
        point = apart[3:], gap[3:]
        if loop.kind == "distance":
            p = T[0][:3, 3] - T[1][:3, 3]
            return p[None] @ point[0], np.array([p @ point[1] + rel[3:] @ rel[3:]])
        if loop.kind == "ball":
            return point
        w2 = V[1][:3]
        n = T[1][:3, :3] @ np.asarray(loop.axis, float) / np.linalg.norm(loop.axis)
        if loop.kind == "hinge":
            P = np.eye(3) - np.outer(n, n)
            turn = P @ apart[:3], P @ gap[:3] - (n @ rel[:3]) * np.cross(w2, n)
        else:
            assert loop.kind == "universal"
            m = T[0][:3, :3] @ np.asarray(loop.axis2, float) / np.linalg.norm(loop.axis2)
            x = np.cross(m, n)  # n . m = 0:  (m x n) . (w1 - w2) = 0
            rise = np.cross(np.cross(V[0][:3], m), n) + np.cross(m, np.cross(w2, n))
            turn = x[None] @ apart[:3], np.array([x @ gap[:3] + rise @ rel[:3]])
        return np.concatenate([turn[0], point[0]]), np.concatenate([turn[1], point[1]])

    def acceleration(self, tau: np.ndarray) -> np.ndarray:
        """M a + h = tau + Y* l, Y a + dY/dt v = 0, at the joints that are free."""
        tree = self.tree
        M, h = tree.mass_matrix(self.q), tree.bias(self.q, self.v)
        given = np.zeros(tree.nv)
        for name, own, kept in self.coordinates():
            given[tree.joint(name).v_slice.start + kept] = tau[own]
        Y, gamma = self.rows()
        W = np.linalg.solve(M, Y.T)
        loose = np.linalg.solve(M, given - h)
        force = np.linalg.lstsq(Y @ W, -(Y @ loose + gamma), rcond=1e-11)[0]
        a = loose + W @ force
        out = np.zeros(self.embedded.nv)
        for name, own, kept in self.coordinates():
            out[own] = a[tree.joint(name).v_slice.start + kept]
        return out

    def coordinates(self):
        """(joint, coordinate of the embedded robot, coordinate within the joint)."""
        assert self.embedded.embedding is not None
        inside = {
            k: cluster for cluster in self.embedded.embedding.clusters for k in cluster.bodies
        }
        for joint in self.embedded.joints:
            cluster, kept = inside.get(joint.index), list(range(joint.row.nv))
            if cluster is not None:
                start = sum(
                    self.embedded.joints[k].row.nv for k in cluster.bodies if k < joint.index
                )
                kept = [c - start for c in cluster.free if start <= c < start + joint.row.nv]
            for own, c in zip(range(joint.v_slice.start, joint.v_slice.stop), kept, strict=True):
                yield joint.name, own, c
