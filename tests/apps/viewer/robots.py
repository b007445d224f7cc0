"""Robots and motions to look at."""

from __future__ import annotations

import numpy as np

import psiphi as pp
from psiphi.io.meshes.triangles import Mesh
from psiphi.simulation.simulate.simulate import simulate


def plain(robot: pp.Robot) -> pp.Robot:
    """The robot without its shapes."""
    return pp.Robot.of(robot)


def swing(seconds: float = 0.5):
    """A simulated PUMA."""
    robot = pp.load("puma560")
    return simulate(robot, np.linspace(0.1, 0.6, 6), duration=seconds, dt=2e-3)


def volume(mesh: Mesh) -> float:
    """By the divergence theorem: right only where the faces close up and look outward."""
    a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)
