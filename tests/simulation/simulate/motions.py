"""What the simulation tests share: robots, and measures of motions."""

from __future__ import annotations

from functools import cache

import numpy as np

import psiphi as pp
from psiphi_bench import example_robots
from psiphi_bench.rows_of.motions import two_arms


@cache
def ur5() -> pp.Robot:
    return pp.load(example_robots.urdf("UR5"))


@cache
def puma() -> pp.Robot:
    return pp.robots.puma560()


@cache
def pendulum() -> pp.Robot:
    """A rod on a hinge with limits, damping, friction and a weak motor."""
    b = pp.Builder("pendulum")
    b.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=np.diag([0.02, 0.02, 0.001]))
    limits = dict(lower=-1.0, upper=1.0, effort=3.0, damping=0.7, friction=0.4)
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0), **limits)
    return b.build()


@cache
def juggler() -> pp.Robot:
    """Spherical, planar and free joints, and a hinge."""
    b = pp.Builder("juggler")
    kinds = {"ball": "spherical", "sled": "planar", "bird": "free", "arm": "revolute"}
    parents = {"ball": "world", "sled": "world", "bird": "world", "arm": "bird"}
    for k, (name, kind) in enumerate(kinds.items()):
        b.body(name, mass=1.0 + k, com=(0.1, 0.05 * k, -0.2), inertia=np.diag([0.05, 0.07, 0.09]))
        b.joint(
            f"{name} joint",
            kind,
            parent=parents[name],
            child=name,
            xyz=(0.1, k, 0.3),
            axis=(0, 0.6, 0.8),
        )
    return b.build()


@cache
def space_robot() -> pp.Robot:
    return two_arms()


@cache
def four_bar() -> pp.System:
    """A four-bar: three hinges about z, a motor on the first, the last joint closed by a loop."""
    b = pp.Builder("four bar", gravity=(0.0, -9.81, 0.0))
    for name, length, mass in (("crank", 0.4, 1.0), ("coupler", 0.9, 2.0), ("rocker", 0.7, 1.5)):
        b.body(name, mass=mass, com=(length / 2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]) * mass)
    b.joint("motor", "revolute", "world", "crank", axis=(0, 0, 1))
    b.joint("crank pin", "revolute", "crank", "coupler", xyz=(0.4, 0, 0), axis=(0, 0, 1))
    b.joint("pivot", "revolute", "world", "rocker", xyz=(1.0, 0, 0), axis=(0, 0, 1))
    b.frame("coupler end", "coupler", xyz=(0.9, 0, 0))
    b.frame("rocker end", "rocker", xyz=(0.7, 0, 0))
    loop = pp.Loop("hinge", "coupler end", "rocker end", axis=(0, 0, 1))
    return pp.connect(b.build(), [loop], passive=["crank pin", "pivot"])


def two_pumas() -> tuple[pp.System, np.ndarray]:
    """Two PUMAs with a beam across their hands, and a configuration that closes it."""
    q = np.array([0.3, -0.4, 0.5, 0.2, 0.6, -0.1])
    bases = [np.eye(4), np.eye(4)]
    bases[1][:2, 3] = 0.1, 1.0
    hands = [base @ puma().frame_pose(q, "tool") for base in bases]
    place = np.eye(4)
    place[:3, 3] = (hands[0][:3, 3] + hands[1][:3, 3]) / 2
    arms = [(puma(), base, "tool") for base in bases]
    cell = pp.grasp(
        arms,
        pp.Body.box(5.0, (0.1, 1.0, 0.1), "beam"),
        [np.linalg.inv(place) @ hand for hand in hands],
        ["point"] * 2,
    )
    return cell, np.concatenate([q, q, place[:3, 3], [0, 0, 0, 1]])


def state(robot: pp.Robot, seed: int, size=(), speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = (size,) if isinstance(size, int) else size
    return robot.random(rng, size), speed * rng.standard_normal((*size, robot.nv))
