"""The rows of contacts that may open: their normals first, two directions across behind them, in newtons and metres a second.

A contact holds as its own kind (it *grips*) until it is released; then it is a point on the plane of its second frame. The rows
of a system are turned so that a contact's normal, along which the first frame's body is pushed, is a row:

    gap = d . p        d = -normal        lambda_d = the force along d
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psiphi._util.errors import StateError
from psiphi.model.loops.closure_types import RelativeMotion, perpendicular_axes
from psiphi.model.loops.constraints import Constraint
from psiphi.robot.mechanisms.system import System

LAST = 3  # the rows of a kind that hold a point are its last
POINTS = ("sliding", "rough")  # kinds that are a point on a plane
HERE = RelativeMotion(np.eye(3).tolist(), [0.0] * 3, [0.0] * 3, [0.0] * 3)  # one frame in the other
CLOSED = 1e-6  # m, rad: a contact that is open by more is not gripped by its kind


class Contacts:
    """Which contacts of a system may open (`sides`: their friction), which still grip, and the system of those."""

    def __init__(self, system: System):
        self.whole = system
        self.sides = {
            i: c.friction for i, c in enumerate(system.contacts) if c.friction is not None
        }
        if not self.sides:
            remedy = 'pp.Loop("rough", ..., friction=0.5), pp.Contact("point", normal=..., friction=0.5), or ("sliding", friction=0)'
            raise StateError(
                f'contacts="open" came, and no contact of {system.name} can open', remedy
            )
        if system.algebra.is_thin:
            cause = f'contacts="open" came, and {system.object} has no inertia of its own about some axis'
            raise StateError(cause, "give it inertia, as in pp.Body.box(mass, size)")
        self.grips = frozenset(i for i in self.sides if system.contacts[i].kind not in POINTS)
        self._parts: dict[frozenset[int], tuple[System, np.ndarray]] = {}

    def begin(self, q: np.ndarray) -> None:
        """Contacts that are not where their kind would hold them are points on planes from the start."""
        e = self.whole.constraint_residual(q)
        for i in self.grips:
            if np.abs(e[self.whole.closure.slices[i]]).max() > CLOSED:
                self.release(i)

    def release(self, i: int) -> bool:
        """From now on a point on a plane; whether it was not yet."""
        was, self.grips = self.grips, self.grips - {i}
        return self.grips != was

    # -- rows ------------------------------------------------------------------------------------------------------------------

    @property
    def system(self) -> System:
        return self._part[0]

    @property
    def held(self) -> list[int]:
        """Rows that no law of friction bounds: loops, joints that follow, turning that is gripped."""
        own = {r for i in self.sides for r in self.own(i)}
        return [r for r in range(self.system.nc) if r not in own]

    def own(self, i: int) -> tuple[int, ...]:
        """The rows of a contact: its normal, and those across."""
        rows = self.system.closure.slices[i]
        return tuple(
            range(rows.start if rows.stop - rows.start == 1 else rows.stop - LAST, rows.stop)
        )

    def into(self, i: int, constraint: Constraint) -> np.ndarray:
        """The turned rows of a contact by those of its kind, (1 or 3, rows)."""
        normal = np.array(self.sides[i].normal)
        slides = np.array([row.slide for row in constraint.row.rows(constraint.shape, HERE)])
        wanted = np.array([-normal, *perpendicular_axes(normal)])
        return (wanted if len(slides) >= LAST else wanted[:1]) @ slides.T

    @property
    def _part(self) -> tuple[System, np.ndarray]:
        if self.grips not in self._parts:
            whole = self.whole
            kept = tuple(
                c if i in self.grips or i not in self.sides else _point(c)
                for i, c in enumerate(whole.contacts)
            )
            same = kept == whole.contacts
            made = (
                whole
                if same
                else System(whole.robot, kept, whole.closure.mimics, whole.passive, whole.object)
            )
            turn = np.eye(made.nc)
            for i in self.sides:
                rows = made.closure.slices[i]
                block = np.eye(rows.stop - rows.start)
                into = self.into(i, kept[i])
                block[len(block) - len(into) :] = into
                turn[rows, rows] = block
            self._parts[self.grips] = made, turn
        return self._parts[self.grips]

    # -- the algebra, in turned rows -------------------------------------------------------------------------------------------

    def terms(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Free accelerations, Omega, and c' under them."""
        system, turn = self._part
        free, Omega, gap = system.call_function(
            system.terms_function((), "world"), system.state_arrays(q=q, v=v, tau=tau)
        )
        return free, turn @ Omega @ turn.T, turn @ gap

    def omega(self, q: np.ndarray) -> np.ndarray:
        system, turn = self._part
        return turn @ system.call_function(system.delassus_function, (q,)) @ turn.T

    def errors(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._part[1] @ self.system.constraint_residual(q, v)[0]

    def rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._part[1] @ self.system.constraint_residual(q, v)[1]

    def pushed(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """M^-1 Jc* lambda."""
        system, turn = self._part
        return system.multiplier_response(q, turn.T @ lam)[0]

    def wrenches(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """What contacts do to the bodies of their second frames, (l, 6)."""
        system, turn = self._part
        return system.multiplier_response(q, turn.T @ lam)[1]

    def opened(
        self, q: np.ndarray, v: np.ndarray
    ) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """How far, and how fast, every contact is open: along its normal, and across."""
        e, rates = (self._part[1] @ x for x in self.system.constraint_residual(q, v))
        return {i: e[list(self.own(i))] for i in self.sides}, {
            i: rates[list(self.own(i))] for i in self.sides
        }

    def twist(self, i: int, lam: np.ndarray) -> float:
        """By how much (N m) what grips is asked to hold more about its normal than it can; 0 where nothing bounds it."""
        torsion = self.sides[i].torsion
        if torsion is None or i not in self.grips:
            return 0.0
        constraint = self.system.contacts[i]
        rows, normal = self.system.closure.slices[i], np.array(self.sides[i].normal)
        turns = np.array([row.turn for row in constraint.row.rows(constraint.shape, HERE)])
        return abs(float(normal @ turns.T @ lam[rows])) - torsion * max(
            float(lam[self.own(i)[0]]), 0.0
        )


def _point(c: Constraint) -> Constraint:
    """The contact as a point on a plane: rough, or smooth where it has no friction."""
    assert c.friction is not None
    if c.kind in POINTS:
        return c
    return replace(
        c, kind="rough" if c.friction.mu else "sliding", shape=type(c.shape).of(c.friction.normal)
    )
