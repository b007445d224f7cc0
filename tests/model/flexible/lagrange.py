"""Flexible trees by Lagrange's equations, from positions alone: complex steps for rates, central
differences for the rest.

Shares nothing with psiphi but the definition of a place on a bent body: ρ = r + U η + ½ η* Q η, R
the Cayley map of Θ η.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

G = np.array([0.0, 0.0, -9.81])


def skew(x: Any) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def cayley(theta: np.ndarray) -> np.ndarray:
    S = 0.5 * skew(theta)
    return np.linalg.solve(np.eye(3) - S, np.eye(3) + S)


def turned(axis: Any, angle: Any) -> np.ndarray:
    S = skew(np.asarray(axis) / np.linalg.norm(axis))
    return np.eye(3) + np.sin(angle) * S + (1.0 - np.cos(angle)) * S @ S


@dataclass
class Node:
    """Mass, inertia, and where a place is, in the body's axes: shapes by the body's coordinates."""

    r: np.ndarray
    mass: float = 0.0
    J: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    U: np.ndarray | None = None
    T: np.ndarray | None = None
    Q: np.ndarray | None = None

    def at(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.U is None:
            return np.eye(3), self.r
        p = self.r + self.U @ eta
        if self.Q is not None:
            p = p + 0.5 * np.einsum("cij,i,j->c", self.Q, eta, eta)
        return np.eye(3) if self.T is None else cayley(self.T @ eta), p


@dataclass
class Part:
    """A body on node `on` of part `parent` (None: the world): a joint, then nodes that move by
    `modes` coordinates."""

    parent: int | None
    on: int
    xyz: Any
    kind: str
    axis: Any
    nodes: list[Node]
    modes: int = 0


class Lagrange:
    """The parts in the order of the robot's coordinates."""

    def __init__(self, parts: list[Part]):
        self.parts = parts
        self.nv = sum((part.kind != "weld") + part.modes for part in parts)

    def places(self, x: np.ndarray) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        found: list[list[tuple[np.ndarray, np.ndarray]]] = []
        i = 0
        for part in self.parts:
            R, p = (np.eye(3), np.zeros(3)) if part.parent is None else found[part.parent][part.on]
            p = p + R @ np.asarray(part.xyz, dtype=float)
            if part.kind == "revolute":
                R = R @ turned(part.axis, x[i])
            elif part.kind == "prismatic":
                p = p + R @ (np.asarray(part.axis) / np.linalg.norm(part.axis)) * x[i]
            i += part.kind != "weld"
            eta = x[i : i + part.modes]
            i += part.modes
            found.append([(R @ Ri, p + R @ pi) for Ri, pi in (node.at(eta) for node in part.nodes)])
        return found

    def mass(self, x: np.ndarray) -> np.ndarray:
        here = self.places(x)
        Jv = [[np.zeros((3, self.nv)) for _ in part.nodes] for part in self.parts]
        Jw = [[np.zeros((3, self.nv)) for _ in part.nodes] for part in self.parts]
        for j in range(self.nv):
            y = x.astype(complex)
            y[j] += 1e-30j
            for a, row in enumerate(self.places(y)):
                for b, (R, p) in enumerate(row):
                    S = R.imag / 1e-30 @ here[a][b][0].real.T
                    Jv[a][b][:, j], Jw[a][b][:, j] = p.imag / 1e-30, (S[2, 1], S[0, 2], S[1, 0])
        M = np.zeros((self.nv, self.nv))
        for a, part in enumerate(self.parts):
            for b, node in enumerate(part.nodes):
                R = here[a][b][0]
                M += node.mass * Jv[a][b].T @ Jv[a][b] + Jw[a][b].T @ R @ node.J @ R.T @ Jw[a][b]
        return M

    def potential(self, x: np.ndarray) -> Any:
        """Of gravity."""
        rows = zip(self.parts, self.places(x), strict=True)
        return -sum(
            node.mass * (G @ p)
            for part, row in rows
            for node, (_, p) in zip(part.nodes, row, strict=True)
        )

    def gravity(self, x: np.ndarray) -> np.ndarray:
        return np.array([self.potential(x + 1e-30j * e).imag / 1e-30 for e in np.eye(self.nv)])

    def bias(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """d/dt (M v) - ½ ∂(v* M v) + ∂U."""
        out = _rate(lambda t: self.mass(x + t * v)) @ v + self.gravity(x)
        for j, e in enumerate(np.eye(self.nv)):
            out[j] -= 0.5 * v @ _rate(lambda t, e=e: self.mass(x + t * e)) @ v
        return out

    def tip(self, x: np.ndarray, part: int, node: int) -> np.ndarray:
        R, p = self.places(x)[part][node]
        out = np.eye(4)
        out[:3, :3], out[:3, 3] = R, p
        return out


def _rate(f: Callable[[float], np.ndarray], h: float = 4e-3) -> np.ndarray:
    return (45.0 * (f(h) - f(-h)) - 9.0 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (
        60.0 * h
    )
