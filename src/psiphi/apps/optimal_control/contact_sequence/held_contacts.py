"""A semi-implicit step with frames that the world holds, and its slopes, on a tape.

    v1 = v + h FD(q, v, tau) + M^-1 J* lam,    S (J v1 + h/2 dJ/dt v) = 0,    q1 = q exp(h v1)

J has the rows of all contacts, in world axes; S keeps those of contacts that hold in this step. The
term h/2 dJ/dt v makes J v1 the velocity in the middle of the step: a held frame drifts by O(h^3) a
step. A contact that starts to hold stops its frame in one step: lam is then an impact. With c the
rows of S before the impulse,

    Omega = J M^-1 J*,    lam = -(S Omega S)^+ S c

The slopes are those of the step with the force f = lam / h as an external force, [X Y Z], and

    dlam = -(S Omega S)^+ S (J [X Y Z] + dc),    [X Y Z] + M^-1 J* dlam

Rows can be redundant (two points of one rigid foot, the third axis of a planar robot): with Omega
scaled to a diagonal of 1, X^+ = X (X^2 + DAMPING^2)^-1. Redundant contacts share the force.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import dot, square_root
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.contact_space import gram
from psiphi.simulation.linearization.linearize_function import call_traced

DAMPING = 1e-6  # of a scaled Omega
TINY = 1e-20  # of the mean of Omega's diagonal, added to rows that are zero
POINT, POSE = "point", "pose"
ROWS = {POINT: (3, 4, 5), POSE: (0, 1, 2, 3, 4, 5)}  # of velocities: angular first


HeldFrames = tuple[tuple[str, str], ...]  # ((frame, POINT or POSE), ...)


class HeldStep(NamedTuple):
    """The acceleration of a step (nv,), and the forces on the held frames, by rows."""

    a: np.ndarray
    force: list


class HeldSlopes(NamedTuple):
    """Of the velocity after the step by q, v and u; of the forces by (q, v, u)."""

    X: np.ndarray
    Y: np.ndarray
    Z: np.ndarray
    force: list[list]  # (rows, 2 nv + nu)
    free: np.ndarray  # (nv, nu): Z without the contacts
    step: HeldStep | None = None


@dataclass(frozen=True, eq=False)
class HeldContacts:
    """Frames of a robot that can be held, each with POINT (its origin) or POSE."""

    robot: Robot
    contacts: HeldFrames

    @cached_property
    def frames(self) -> tuple[str, ...]:
        return tuple(frame for frame, _ in self.contacts)

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """(contact, row of its velocity) of each row of J."""
        kinds = enumerate(kind for _, kind in self.contacts)
        return [(i, row) for i, kind in kinds for row in ROWS[kind]]

    # -- the step

    def step(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: Any, hold: Any, parameters: Any
    ) -> HeldStep:
        """The step with the contacts that `hold`, one number 0 or 1 for each contact."""
        given = {"q": q, "v": v, "tau": tau} | _named(parameters)
        a = self._call("forward_dynamics", (), **given)
        Y = [
            entries(self._call("half_wrench_response", self.frames, **given, f_ext=wrench))
            for wrench in self._unit_wrenches
        ]
        held = self._each_row(hold)
        c = self._velocities(given, v + h * a, h)
        impulse = _Inverse(gram(Y), held).apply([-x for x in c])
        force = [x / h for x in impulse]
        y = np.array([dot(force, column) for column in zip(*Y, strict=True)], dtype=object)
        change = self._call("half_response", (), **given, y=y)
        return HeldStep(a + change, force)

    def slopes(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        h: Any,
        hold: Any,
        motors: Sequence[int],
        parameters: Any,
    ) -> HeldSlopes:
        """The slopes of the step."""
        n, given = self.robot.nv, {"q": q, "v": v, "tau": tau} | _named(parameters)
        found = self.step(q, v, tau, h, hold, parameters)
        wrench = np.zeros((len(self.contacts), 6), dtype=object)
        for (i, row), f in zip(self.rows, found.force, strict=True):
            wrench[i, row] = f
        dynamics = self._function("forward_dynamics", self.frames)
        jacobian = dynamics.jacobian("q", "v", "tau", "f_ext")
        by_q, by_v, by_tau, by_force = _call(jacobian, **given, f_ext=wrench)
        free = by_tau[:, list(motors)] * h
        X, Y, Z = by_q * h, np.eye(n).astype(object) + by_v * h, free
        place = [6 * i + row for i, row in self.rows]
        J, response = self._call("frame_jacobians", self.frames, **given)[place], by_force[:, place]
        c_q, c_v = self._velocity_slopes(given, v + h * found.a, h)
        moved = np.concatenate([J @ X + c_q, J @ Y + c_v, J @ Z], axis=1)
        inverse = _Inverse((J @ response).tolist(), self._each_row(hold))
        columns = [inverse.apply([-x for x in column]) for column in moved.T]
        change = np.array(columns, dtype=object).T
        pushed = response @ change
        force = (change / h).tolist()
        return HeldSlopes(
            X + pushed[:, :n],
            Y + pushed[:, n : 2 * n],
            Z + pushed[:, 2 * n :],
            force,
            free,
            found,
        )

    # -- parts

    @cached_property
    def _unit_wrenches(self) -> list[np.ndarray]:
        units = []
        for i, row in self.rows:
            unit = np.zeros((len(self.contacts), 6), dtype=object)
            unit[i, row] = 1.0
            units.append(unit)
        return units

    def _each_row(self, hold: Any) -> list:
        return [hold[i] for i, _ in self.rows]

    def _velocities(self, given: dict[str, Any], v1: np.ndarray, h: Any) -> list:
        """J v1 + h/2 dJ/dt v, by rows: h/2 (J a + dJ/dt v) with a = 2 v1 / h."""
        rows, a = [], v1 * (2.0 / h)
        for frame, kind in self.contacts:
            A = self._call("frame_acceleration", (frame,), **given, a=a)
            rows += [(0.5 * h) * A[row] for row in ROWS[kind]]
        return rows

    def _velocity_slopes(
        self, given: dict[str, Any], v1: np.ndarray, h: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of these rows by q and v, v1 being constant."""
        parts, a = [], v1 * (2.0 / h)
        for frame, kind in self.contacts:
            function = self._function("frame_acceleration", (frame,)).jacobian("q", "v")
            by_q, by_v = _call(function, **given, a=a)
            rows = list(ROWS[kind])
            parts.append((by_q[rows], by_v[rows]))
        by_q, by_v = (np.concatenate(part) for part in zip(*parts, strict=True))
        return by_q * (0.5 * h), by_v * (0.5 * h)

    def _function(self, name: str, frames: tuple[str, ...]) -> DifferentiableFunction:
        return self.robot.unbound_function(name, frames)

    def _call(self, name: str, frames: tuple[str, ...], **given: Any) -> Any:
        return _call(self._function(name, frames), **given)


def _named(parameters: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {PARAMETERS: parameters[0]} if len(parameters) else {}


def _call(function: Any, **given: Any) -> Any:
    """The results of a function for inputs by name; others are ignored."""
    return call_traced(function, [np.asarray(given[x.name]) for x in function.source.inputs])


class _Inverse:
    """(S Omega S)^+ of a symmetric matrix; S has 1 or 0 on its diagonal."""

    def __init__(self, omega: list[list], held: list):
        count = len(held)
        mean = sum((omega[i][i] for i in range(1, count)), omega[0][0]) * (TINY / count)
        scale = [s / square_root(omega[i][i] + mean) for i, s in enumerate(held)]
        self.scale = scale
        self.X = [[omega[i][j] * (scale[i] * scale[j]) for j in range(count)] for i in range(count)]
        A = [[dot(row, column) for column in self.X] for row in self.X]
        for i, s in enumerate(held):
            A[i][i] = A[i][i] + (1.0 - s) + DAMPING * DAMPING
        self.factors = small_matrices.factor(A)

    def apply(self, b: list) -> list:
        """The product with a vector."""
        L, d = self.factors
        x = small_matrices.apply(self.X, [s * y for s, y in zip(self.scale, b, strict=True)])
        y = small_matrices.forward(L, x)
        z = small_matrices.backward(L, [a * p for a, p in zip(y, d, strict=True)])
        return [s * a for s, a in zip(self.scale, z, strict=True)]
