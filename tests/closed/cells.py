"""Closed systems to test on; arms around an object come from `psiphi.bench.cells`."""

from __future__ import annotations

import numpy as np

from psiphi.bench.cells import CONTACTS, Closed, dense_answer, held, pinocchio_answer, random_cell
from psiphi.bench.interpreted import Interpreted, uncompiled
from psiphi.closed import Loop, System, connect
from psiphi.functions.robot import Robot
from psiphi.model.builder import Builder
from psiphi.robots import random_tree

__all__ = ["CONTACTS", "Closed", "Interpreted", "dense_answer", "four_bar", "held", "pair", "pinocchio_answer", "random_cell"]
__all__ += ["uncompiled"]


def pair(*kinds: str, seed: int = 3) -> Closed:
    """Two arms of seven hinges with a box."""
    rng = np.random.default_rng(seed)
    arms = [random_tree(7, int(rng.integers(1 << 30)), "revolute", 0.0) for _ in kinds]
    return held(arms, kinds, rng)


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
