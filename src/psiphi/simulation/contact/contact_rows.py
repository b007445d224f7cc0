"""The rows of contacts that may open: the normal, then two tangents, in newtons and metres per
second.

A contact holds as its own kind (it *grips*) until it is released; then it is a point on the plane
of its second frame. The constraint rows of a system are rotated so that the normal of each contact,
along which the body of the first frame is pushed, is a row:

    gap = d . p        d = -normal        lambda_d = the force along d
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psiphi._util.errors import StateError
from psiphi.model.loops.closure_types import RelativeMotion, perpendicular_axes
from psiphi.model.loops.constraints import Constraint
from psiphi.robot.mechanisms.system import System

POINT_ROWS = 3  # the rows of a kind that hold a point are its last
POINT_KINDS = ("sliding", "rough")  # kinds that are a point on a plane
COINCIDENT = RelativeMotion(np.eye(3).tolist(), [0.0] * 3, [0.0] * 3, [0.0] * 3)
GRIP_TOLERANCE = 1e-6  # m, rad: a contact with a larger error does not grip


class Contacts:
    """The contacts of a system that may open, in the state that a motion has left them.

    `frictions` are those of these contacts, by index; `gripping` the contacts that still hold as
    their own kind; `system` has all others as points on planes.
    """

    def __init__(self, system: System):
        self.whole = system
        self.frictions = {
            i: c.friction for i, c in enumerate(system.contacts) if c.friction is not None
        }
        if not self.frictions:
            raise StateError(
                f'contacts="open" is given, but no contact of {system.name} can open',
                'use pp.Loop("rough", ..., friction=0.5), '
                'pp.Contact("point", normal=..., friction=0.5), or ("sliding", friction=0)',
            )
        if system.algebra.is_thin:
            raise StateError(
                f'contacts="open" is given, but {system.object} has no inertia about some axis',
                "give it inertia, as in pp.Body.box(mass, size)",
            )
        self.gripping = frozenset(
            i for i in self.frictions if system.contacts[i].kind not in POINT_KINDS
        )
        self._systems: dict[frozenset[int], tuple[System, np.ndarray]] = {}

    def start(self, q: np.ndarray) -> None:
        """Release the contacts that are not where their kind would hold them."""
        e = self.whole.constraint_residual(q)
        for i in self.gripping:
            if np.abs(e[self.whole.closure.slices[i]]).max() > GRIP_TOLERANCE:
                self.release(i)

    def release(self, i: int) -> bool:
        """Make a contact a point on a plane; returns whether it gripped."""
        before, self.gripping = self.gripping, self.gripping - {i}
        return self.gripping != before

    # -- rows --------------------------------------------------------------------------------------

    @property
    def system(self) -> System:
        return self._rotated_system[0]

    @property
    def bilateral_rows(self) -> list[int]:
        """The rows to which friction does not apply: loops, mimic joints, rotations of gripping
        contacts."""
        unilateral = {r for i in self.frictions for r in self.rows_of(i)}
        return [r for r in range(self.system.nc) if r not in unilateral]

    def rows_of(self, i: int) -> tuple[int, ...]:
        """The rows of a contact: its normal, and its tangents if it has any."""
        rows = self.system.closure.slices[i]
        is_normal_only = rows.stop - rows.start == 1
        return tuple(range(rows.start if is_normal_only else rows.stop - POINT_ROWS, rows.stop))

    def rotation(self, i: int, constraint: Constraint) -> np.ndarray:
        """The rotated rows of a contact by the rows of its kind, (1 or 3, rows)."""
        normal = np.array(self.frictions[i].normal)
        slides = np.array([row.slide for row in constraint.row.rows(constraint.shape, COINCIDENT)])
        axes = np.array([-normal, *perpendicular_axes(normal)])
        return (axes if len(slides) >= POINT_ROWS else axes[:1]) @ slides.T

    @property
    def _rotated_system(self) -> tuple[System, np.ndarray]:
        """The system, and the rotation of its rows, (nc, nc)."""
        if self.gripping not in self._systems:
            whole = self.whole
            contacts = tuple(
                c if i in self.gripping or i not in self.frictions else _as_point(c)
                for i, c in enumerate(whole.contacts)
            )
            system = whole
            if contacts != whole.contacts:
                system = System(
                    whole.robot, contacts, whole.closure.mimics, whole.passive, whole.object
                )
            turn = np.eye(system.nc)
            for i in self.frictions:
                rows = system.closure.slices[i]
                block = np.eye(rows.stop - rows.start)
                rotation = self.rotation(i, contacts[i])
                block[len(block) - len(rotation) :] = rotation
                turn[rows, rows] = block
            self._systems[self.gripping] = system, turn
        return self._systems[self.gripping]

    # -- quantities in rotated rows ----------------------------------------------------------------

    def terms(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The free acceleration a_f, Omega, and the row accelerations Jc a_f + bias."""
        system, turn = self._rotated_system
        a_free, Omega, c = system.call_function(
            system.terms_function((), "world"), system.state_arrays(q=q, v=v, tau=tau)
        )
        return a_free, turn @ Omega @ turn.T, turn @ c

    def omega(self, q: np.ndarray) -> np.ndarray:
        system, turn = self._rotated_system
        return turn @ system.call_function(system.delassus_function, (q,)) @ turn.T

    def position_errors(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        system, turn = self._rotated_system
        return turn @ system.constraint_residual(q, v)[0]

    def velocity_errors(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Jc v."""
        system, turn = self._rotated_system
        return turn @ system.constraint_residual(q, v)[1]

    def response(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """M^-1 Jc* lambda."""
        system, turn = self._rotated_system
        return system.multiplier_response(q, turn.T @ lam)[0]

    def wrenches(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """The wrenches of the contacts on the bodies of their second frames, (l, 6)."""
        system, turn = self._rotated_system
        return system.multiplier_response(q, turn.T @ lam)[1]

    def gaps_and_rates(
        self, q: np.ndarray, v: np.ndarray
    ) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """The position and velocity errors of each contact, along its normal and tangents."""
        system, turn = self._rotated_system
        e, rates = (turn @ x for x in system.constraint_residual(q, v))
        rows = {i: list(self.rows_of(i)) for i in self.frictions}
        return {i: e[r] for i, r in rows.items()}, {i: rates[r] for i, r in rows.items()}

    def torsion_excess(self, i: int, lam: np.ndarray) -> float:
        """By how much (N m) the moment of a gripping contact about its normal exceeds the bound of
        its friction; 0 without a bound."""
        torsion = self.frictions[i].torsion
        if torsion is None or i not in self.gripping:
            return 0.0
        constraint = self.system.contacts[i]
        rows, normal = self.system.closure.slices[i], np.array(self.frictions[i].normal)
        turns = np.array([row.turn for row in constraint.row.rows(constraint.shape, COINCIDENT)])
        push = max(float(lam[self.rows_of(i)[0]]), 0.0)
        return abs(float(normal @ turns.T @ lam[rows])) - torsion * push


def _as_point(c: Constraint) -> Constraint:
    """The contact as a point on a plane: rough, or smooth if it has no friction."""
    assert c.friction is not None
    if c.kind in POINT_KINDS:
        return c
    kind = "rough" if c.friction.mu else "sliding"
    return replace(c, kind=kind, shape=type(c.shape).of(c.friction.normal))
