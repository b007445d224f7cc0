"""Closed systems to test on, closed by construction: the arms stand anywhere, and the object is gripped where their hands are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from theorems.interpreted import Interpreted
from zoo import random_inertia, random_rotation, random_tree

from psiphi.closed import Contact, Loop, System, connect, grasp
from psiphi.functions.robot import Robot
from psiphi.model.builder import Builder
from psiphi.model.model import Body, Frame, Pose, frozen
from psiphi.spatial.quaternion import from_matrix
from psiphi.sweeps.interpreter import interpret

CONTACTS = ("rigid", "line", "soft", "point")


class Uncompiled(System):
    """A system whose functions are what its programs mean."""

    def _circuit(self, method, frames, axes):
        return super()._circuit(method or "free", frames, axes)

    def _call(self, function, values):
        source = function.source
        with np.errstate(all="ignore"):
            results = interpret(source.program, source.tree, *values)
        return results if len(results) > 1 else results[0]


def uncompiled(system: System) -> System:
    """The same system on the interpreter's floor: nothing is compiled."""
    c = system.closure
    return Uncompiled(Interpreted.of(system.robot), c.constraints, c.follows, system.passive, system.object)


@dataclass(frozen=True)
class Closed:
    """A system and a state on its constraints."""

    system: System
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


def _matrix(rotation, translation) -> np.ndarray:
    return Pose(rotation, np.asarray(translation, dtype=float)).matrix


def random_arm(rng: np.random.Generator, n: int, kinds=("revolute",), branching: float = 0.0, free: bool = False) -> Robot:
    """A chain or tree of n joints with a hand on its last body; `free` adds a flying base."""
    model = random_tree(rng, n, ["free", *[str(rng.choice(kinds)) for _ in range(n)]] if free else kinds, branching)
    return with_hand(model, rng)


def with_hand(model, rng: np.random.Generator) -> Robot:
    """The model with a frame "hand" somewhere on its last body."""
    pose = Pose(frozen(random_rotation(rng)), frozen(rng.uniform(-0.3, 0.3, 3)))
    frames = dict(model.frames) | {"hand": Frame("hand", len(model.bodies) - 1, pose)}
    return Robot.of(replace(model, frames=frames))


def contact(rng: np.random.Generator, kind: str) -> Contact:
    direction = rng.standard_normal(3)
    return Contact(kind, axis=direction if kind == "line" else None, normal=direction if kind == "soft" else None)


def held(robots: list[Robot], kinds: list[str], rng: np.random.Generator, speed: float = 1.0, compiled: bool = False) -> Closed:
    """The robots in random states around an object, gripped exactly where their hands are."""
    robots = [robot if compiled else Interpreted.of(robot) for robot in robots]
    qs = [robot.random(rng) for robot in robots]
    bases = [_matrix(random_rotation(rng), rng.uniform(-1, 1, 3)) for _ in robots]
    place = _matrix(random_rotation(rng), rng.uniform(-0.5, 0.5, 3))
    at = []
    for robot, q, base, kind in zip(robots, qs, bases, kinds, strict=True):
        hand = np.linalg.inv(place) @ base @ robot.frame_pose(q, "hand")
        if kind == "point":  # a point contact turns as it likes
            hand[:3, :3] = random_rotation(rng)
        at.append(hand)
    body = Body("box", 2.0, rng.uniform(-0.1, 0.1, 3), random_inertia(rng, 2.0))
    arms = [(robot, base, "hand") for robot, base in zip(robots, bases, strict=True)]
    cell = grasp(arms, body, at, [contact(rng, kind) for kind in kinds])
    cell = cell if compiled else uncompiled(cell)
    free = cell.neutral()[-7:]
    free[:3] = place[:3, 3]
    free[3:] = from_matrix(place[:3, :3])
    q = np.concatenate([*qs, free])
    q, v = cell.project(q, speed * rng.standard_normal(cell.nv))
    return Closed(cell, q, v, rng.standard_normal(cell.nv) * 5.0)


def random_cell(seed: int, arms: int, mixed: bool = True) -> Closed:
    """`arms` random arms, some trees, some on flying bases, every contact kind."""
    rng = np.random.default_rng(seed)
    robots = []
    for i in range(arms):
        kinds = ("revolute", "prismatic", "universal", "spherical") if mixed and i % 2 else ("revolute",)
        n = int(rng.integers(6, 9))
        robots.append(random_arm(rng, n, kinds, branching=0.3 if i % 3 == 2 else 0.0, free=mixed and i % 4 == 3))
    return held(robots, [CONTACTS[(seed + i) % 4] for i in range(arms)], rng)


def four_bar(kind: str = "hinge", lengths=(1.0, 0.4, 0.9, 0.7), axis=(0.0, 0.0, 1.0)) -> System:
    """Ground, crank, coupler, rocker: three hinges about z, the last joint closed by a loop."""
    ground, crank, coupler, rocker = lengths
    b = Builder("four bar", gravity=(0.0, -9.81, 0.0))
    for name, length, mass in (("crank", crank, 1.0), ("coupler", coupler, 2.0), ("rocker", rocker, 1.5)):
        b.body(name, mass=mass, com=(length / 2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]) * mass)
    b.joint("motor", "revolute", "world", "crank", axis=(0, 0, 1))
    b.joint("crank pin", "revolute", "crank", "coupler", xyz=(crank, 0, 0), axis=(0, 0, 1))
    b.joint("pivot", "revolute", "world", "rocker", xyz=(ground, 0, 0), axis=(0, 0, 1))
    b.frame("coupler end", "coupler", xyz=(coupler, 0, 0))
    b.frame("rocker end", "rocker", xyz=(rocker, 0, 0))
    given = {"axis": axis} if kind == "hinge" else {}
    loop = Loop(kind, "coupler end", "rocker end", **given)
    return connect(Robot.of(b.build()), [loop], passive=["crank pin", "pivot"])
