"""Contacts that open and close while a motion goes on: sliding ones that are one-sided, of one motion, in steps of Python.

At the begin of a step a closed contact that would have to pull is lost. After it a point that has come through its plane is
made: the motion goes back to where it came through, v jumps by the impulse that stops it there, without bouncing, and the rest
of the step is gone anew:

    Omega lambda = -Jc v        dv = M^-1 Jc* lambda

Contacts that this impulse would have to pull are lost. In between, those that are closed hold exactly. What is made is right to
second order in the step, what is lost is lost when the next step begins. Stiff losses are taken explicitly here, and diverge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from psiphi.closed.system import System
from psiphi.errors import StateError
from psiphi.wording import nearest, shown

MADE, LOST = "contact made", "contact lost"
WORDS = ("hold", "open")
TOUCH = 1e-9  # m, m/s: nearer and slower than this is touching
PULL = 1e-9  # of the largest force or impulse: less is rounding


class Change(NamedTuple):
    """What happened to a contact: `value` is the impulse (N s) that made it, or the force (N) it would have needed; how long
    ago, in seconds."""

    name: str
    what: str
    value: float
    ago: float = 0.0


def read_contacts(system: Any, contacts: Any) -> Any:
    """The system itself, or with contacts that open."""
    if not isinstance(contacts, str) or contacts not in WORDS:
        raise StateError(f"contacts is {shown(contacts)}, expected one of {', '.join(WORDS)}", nearest(contacts, WORDS))
    return system if contacts == "hold" else Touching(system)


class Touching:
    """A closed system some of whose contacts are open, as a motion has left them: what `Plant` asks for."""

    def __init__(self, system: Any):
        if not isinstance(system, System):
            raise StateError(f'contacts="open" came for {shown(system)}', "only closed systems have contacts")
        self.whole, self.robot, self.contacts = system, system.robot, system.contacts
        self.nq, self.nv, self.name, self.passive = system.nq, system.nv, system.name, system.passive
        self.actuated, self.object = system.actuated, system.object
        self.sides = {i: c.friction for i, c in enumerate(self.contacts) if c.friction is not None and not c.friction.mu}
        if not self.sides:
            remedy = 'pp.Contact("sliding", normal=..., friction=0), or pp.Loop("sliding", ..., friction=0)'
            raise StateError(f'contacts="open" came, and no contact of {system.name} can open', remedy)
        self.closed: set[int] | None = None  # of those; not known before the first step
        self._parts: dict[frozenset[int], Any] = {}
        self._changes: list[Change] = []
        self._tau = np.zeros(system.nv)  # what acts in this step

    # -- what a plant answers --------------------------------------------------------------------------------------------------

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, forces: bool = False) -> Any:
        """a; with `forces`, as at the begin of a step, contacts that would have to pull are lost."""
        self._tau = tau
        if self.closed is None:
            self.closed = self._touched(q, v)
        if not forces:
            return self._part(self.closed).forward_dynamics(q, v, tau)
        while True:
            a, wrenches = self._answer(q, v, tau)
            pushes = {i: float(self._normal(i, q) @ wrenches[i, 3:]) for i in self.closed}
            worst = min(pushes, key=lambda i: pushes[i], default=-1)
            if worst < 0 or pushes[worst] >= -PULL * (1.0 + np.abs(wrenches).max()):
                return a, wrenches
            self._lose(worst, pushes[worst])

    def project(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state on all planes that are closed, those that it has come through among them."""
        closed = self._touched(q, v) if self.closed is None else self.closed
        gaps, rates = self._gaps(q, v)
        new = {i for i in self.sides if i not in closed and gaps[i] < 0.0 and rates[i] < 0.0}
        self.closed = closed
        if not new:
            return self._put(q, v)
        since = max(gaps[i] / rates[i] for i in new)  # how long ago the first came through
        q, v = self._drift(q, v, -since)
        self.closed = closed | new
        while True:
            there, after = self._put(q, v)
            impulses = self._impulses(there, after - v)
            worst = min(impulses, key=lambda i: impulses[i], default=-1)
            if worst < 0 or impulses[worst] >= -PULL * (1.0 + max(map(abs, impulses.values()))):
                break
            if worst in new:
                self.closed = self.closed - {worst}
            else:
                self._lose(worst, impulses[worst])
        self._changes += [Change(MADE, self.contacts[i].name, impulses[i], since) for i in sorted(new & self.closed)]
        return self._put(*self._drift(there, after, since))

    def _put(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Back onto the planes that are closed."""
        part = self._part(self.closed or set())
        return part.project(q, v) if isinstance(part, System) else (q, v)

    def _drift(self, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """A part of a step, with the accelerations of its begin: to second order."""
        a = self._part(self.closed or set()).forward_dynamics(q, v, self._tau)
        return self.robot.integrate(q, v + 0.5 * h * a, h), v + h * a

    def constraint_residual(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., 2, m); of a contact that may open only what is behind its plane, and goes on."""
        out = np.array(self.whole.constraint_residual(q, v))
        for i, sign in self._signs.items():
            gap, rate = (sign * out[..., k, self._row(i)] for k in (0, 1))
            out[..., 0, self._row(i)] = np.minimum(gap, 0.0)
            out[..., 1, self._row(i)] = np.where(gap <= TOUCH, np.minimum(rate, 0.0), 0.0)
        return out

    def contact_ratio(self, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
        return self.whole.contact_ratio(q, forces)

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.whole.energy(q, v)

    def changes(self) -> list[Change]:
        """What has happened since this was asked."""
        out, self._changes = self._changes, []
        return out

    # -- inside ----------------------------------------------------------------------------------------------------------------

    @property
    def _signs(self) -> dict[int, float]:
        """gap = sign * error of the row: the normal points into the second body, the first is behind it."""
        return {i: -float(np.dot(self.contacts[i].shape.axis, side.normal)) for i, side in self.sides.items()}

    def _row(self, i: int) -> int:
        return self.whole.closure.slices[i].start

    def _gaps(self, q: np.ndarray, v: np.ndarray) -> tuple[dict[int, float], dict[int, float]]:
        """How far, and how fast, each is open."""
        rows = self.whole.constraint_residual(q, v)
        found = [{i: float(sign * rows[k, self._row(i)]) for i, sign in self._signs.items()} for k in (0, 1)]
        return found[0], found[1]

    def _touched(self, q: np.ndarray, v: np.ndarray) -> set[int]:
        """Those that touch, and do not leave."""
        if np.ndim(q) != 1:
            raise StateError(f'contacts="open" came for motions of shape {np.shape(q)[:-1]}', "simulate one motion at a time")
        gaps, rates = self._gaps(q, v)
        return {i for i in self.sides if gaps[i] <= TOUCH and rates[i] <= TOUCH}

    def _part(self, closed: set[int]) -> Any:
        """The system of these contacts, and of all that cannot open; the robot alone where there are none."""
        key = frozenset(closed)
        if key not in self._parts:
            whole = self.whole
            held = [c for i, c in enumerate(self.contacts) if i in closed or i not in self.sides]
            bare = not held and not whole.closure.follows
            made = self.robot if bare else System(self.robot, held, whole.closure.follows, self.passive, self.object)
            self._parts[key] = made
        return self._parts[key]

    def _answer(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a, and the wrenches of all contacts; those of open ones are zero."""
        assert self.closed is not None
        part, out = self._part(self.closed), np.zeros((len(self.contacts), 6))
        if not isinstance(part, System):
            return part.forward_dynamics(q, v, tau), out
        a, wrenches = part.forward_dynamics(q, v, tau, forces=True)
        out[[i for i in range(len(self.contacts)) if i in self.closed or i not in self.sides]] = wrenches
        return a, out

    def _normal(self, i: int, q: np.ndarray) -> np.ndarray:
        """Along which a contact pushes its second body, in world axes."""
        return self.robot.frame_pose(q, self.contacts[i].second)[:3, :3] @ np.array(self.sides[i].normal)

    def _impulses(self, q: np.ndarray, dv: np.ndarray) -> dict[int, float]:
        """Of contacts that may open, along their normals: M dv = Jc* lambda."""
        closed = self.closed or set()
        part = self._part(closed)
        if not isinstance(part, System):
            return {}
        lam = np.linalg.lstsq(part.constraint_jacobian(q).T, self.robot.mass_matrix(q) @ dv)[0]
        kept = [i for i in range(len(self.contacts)) if i in closed or i not in self.sides]
        return {i: float(self._signs[i] * lam[part.closure.slices[k].start]) for k, i in enumerate(kept) if i in self.sides}

    def _lose(self, i: int, value: float) -> None:
        assert self.closed is not None
        self.closed = self.closed - {i}
        self._changes.append(Change(LOST, self.contacts[i].name, value))
