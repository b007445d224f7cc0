"""Contacts that open, close, slide and hold while a motion goes on: one motion, in steps of Python.

A contact with `friction` is open, holds, or slides on its plane. All of them, with whatever else is held, meet in one Omega:

    c' = Omega lambda + (Jc a_f + bias)      accelerations        c+ = Omega lambda + Jc v      a blow, dv = M^-1 Jc* lambda

and Coulomb's law says which forces there are (`simulation/contact/coulomb_friction.py`). At the begin of a step it decides what every contact does
in it. After the step a point that has come through its plane, or one whose sliding has turned back, is gone back to: there
the velocities jump by the blow (which may push others off), or the point holds, and the rest of the step is gone anew.

A contact holds as its own kind (rigid, line, soft, point) until it first slides or opens; from then on it is a point on the
plane of its second frame. What ends within a step ends there, to second order in it; what begins, begins with a step. Blows
bounce where a contact has restitution (`restitution.py`). Stiff losses are taken explicitly here, and diverge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import one_of
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.contact import coulomb_friction, restitution
from psiphi.simulation.contact.contact_rows import Contacts
from psiphi.simulation.contact.coulomb_friction import ContactRow
from psiphi.simulation.simulate.events import BOUNCES, HOLDS, LOST, MADE, SLIDES, ContactChange

CONTACT_MODES = ("hold", "open")
TOUCH = 1e-9  # m, m/s: nearer and slower than this is touching
PULL = 1e-9  # of the largest force or impulse: less is rounding
MEETINGS = 8  # events within one step, of different times
NEAR = 1e-13
TURNS = 6  # of Newton's method


def read_contacts(system: Any, contacts: Any) -> Any:
    """The system itself, or with contacts that open."""
    return (
        system if one_of("contacts", contacts, CONTACT_MODES) == "hold" else ContactSystem(system)
    )


class ContactSystem:
    """A closed system whose contacts are as a motion has left them: what `Plant` asks for."""

    def __init__(self, system: Any):
        if not isinstance(system, System):
            raise StateError(
                f'contacts="open" came for {shown(system)}', "only closed systems have contacts"
            )
        self.whole, self.robot, self.contacts = system, system.robot, system.contacts
        self.nq, self.nv, self.name, self.passive = (
            system.nq,
            system.nv,
            system.name,
            system.passive,
        )
        self.actuated, self.object, self.dt = system.actuated, system.object, np.inf
        self.rows = Contacts(system)
        self.closed: dict[
            int, np.ndarray | None
        ] = {}  # those that touch: how they slide, or None where they hold
        self._begun = False
        self._changes: list[ContactChange] = []
        self._tau = np.zeros(system.nv)  # what acts in this step
        self._speeds: dict[int, float] = {}  # of sliding, at its begin
        self._last: dict[int, np.ndarray] = {}  # forces at its begin: where the next search starts

    # -- what a plant answers --------------------------------------------------------------------------------------------------

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, forces: bool = False
    ) -> Any:
        """a; with `forces`, as at the begin of a step, Coulomb's law is asked what contacts do."""
        self._tau = tau
        if not self._begun:
            self._begin(q, v)
        if not forces:
            return self._motion(q, v, tau, self._as_they_go(q, v))
        lam = self._decide(q, v, tau)
        return self.rows.terms(q, v, tau)[0] + self.rows.pushed(q, lam), self.rows.wrenches(q, lam)

    def project(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state after a step, with what happened in it."""
        left = self.dt
        for _ in range(MEETINGS):
            since, new, stopped = self._met(q, v, left)
            if not new and not stopped:
                break
            q, v = self._put(*self._drift(q, v, -since))
            for i in stopped:
                self.closed[i] = None
                self._changes.append(
                    ContactChange(
                        HOLDS,
                        self.contacts[i].name,
                        float(np.hypot(*self._last.get(i, np.zeros(3))[1:])),
                        since,
                    )
                )
            v = self._blow(q, v, new, since) if new else v
            q, v = self._put(q, v)
            self._decide(q, v, self._tau, since)
            q, v, left = *self._drift(q, v, since), since
        return self._put(q, v)

    def constraint_residual(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., 2, m); of a contact that may open only what is behind its plane, and goes on."""
        out = np.array(self.whole.constraint_residual(q, v))
        for i, own in enumerate(self.whole.closure.slices[: len(self.contacts)]):
            if i in self.rows.sides:
                turn = self.rows.into(i, self.contacts[i])[:1]
                gap, rate = (out[..., k, own] @ turn[0] for k in (0, 1))
                out[..., :, own] = 0.0
                out[..., 0, own.start] = np.minimum(gap, 0.0)
                out[..., 1, own.start] = np.where(gap <= TOUCH, np.minimum(rate, 0.0), 0.0)
        return out

    def contact_ratio(self, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """What leaves its cone here slides: no contact uses more than all of it."""
        return np.minimum(self.whole.contact_ratio(q, forces), 1.0)

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.whole.energy(q, v)

    def changes(self) -> list[ContactChange]:
        """What has happened since this was asked."""
        out, self._changes = self._changes, []
        return out

    # -- what contacts do ------------------------------------------------------------------------------------------------------

    def _begin(self, q: np.ndarray, v: np.ndarray) -> None:
        """Those that touch and do not leave are closed; they hold where they do not slide."""
        if np.ndim(q) != 1:
            raise StateError(
                f'contacts="open" came for motions of shape {np.shape(q)[:-1]}',
                "simulate one motion at a time",
            )
        self.rows.begin(q)
        gaps, rates = self.rows.opened(q, v)
        for i in self.rows.sides:
            if gaps[i][0] <= TOUCH and rates[i][0] <= TOUCH:
                slip = rates[i][1:]
                sliding = len(slip) and np.hypot(*slip) > TOUCH
                self.closed[i] = slip / np.hypot(*slip) if sliding else None
                if sliding:
                    self.rows.release(i)
            else:
                self.rows.release(i)
        self._begun = True

    def _decide(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, ago: float = 0.0
    ) -> np.ndarray:
        """lambda of this state by Coulomb's law, and what contacts do from here on."""
        while True:
            Omega, c = self.rows.terms(q, v, tau)[1:]
            touches = self._as_they_go(q, v)
            trial = coulomb_friction.forces_in_modes(
                Omega, c, self.rows.held, list(touches.values())
            )
            if trial is not None and self._is_lawful(trial, touches):
                lam = trial
                break
            lam = coulomb_friction.coulomb_forces(
                Omega, c, self.rows.held, list(touches.values()), self._guess(len(c))
            )
            if lam is None:
                raise StateError(
                    "no contact forces obey Coulomb's law in this state",
                    "such friction jams: less of it, or another posture",
                )
            if not self._change(lam, Omega @ lam + c, touches, trial, ago):
                break
        _, rates = self.rows.opened(q, v)
        self._last = {i: lam[list(self.rows.own(i))] for i in self.closed}
        self._speeds = {
            i: float(rates[i][1:] @ way) for i, way in self.closed.items() if way is not None
        }
        return lam

    def _is_lawful(self, lam: np.ndarray, touches: dict[int, ContactRow]) -> bool:
        """Whether contacts that go on as they do neither pull nor leave their cones."""
        size = PULL * (1.0 + np.abs(lam).max(initial=0.0))
        for i, t in touches.items():
            push, *side = lam[list(t.rows)]
            if push < -size or (
                side and t.slides is None and np.hypot(*side) > t.mu * max(push, 0.0) + size
            ):
                return False
            if self.rows.twist(i, lam) > size:
                return False
        return True

    def _change(
        self, lam: np.ndarray, x: np.ndarray, touches: dict[int, ContactRow], trial: Any, ago: float
    ) -> bool:
        """What Coulomb's law says they do; whether that changes the rows, so that it must be asked again."""
        size, fast = (
            PULL * (1.0 + np.abs(lam).max(initial=0.0)),
            PULL * (1.0 + np.abs(x).max(initial=0.0)),
        )
        again = False
        for i, t in touches.items():
            n, side = t.rows[0], list(t.rows[1:])
            name = self.contacts[i].name
            if lam[n] <= size and x[n] > fast:
                del self.closed[i]
                again |= self.rows.release(i)
                self._changes.append(
                    ContactChange(
                        LOST, name, min(float(trial[n]), 0.0) if trial is not None else 0.0, ago
                    )
                )
            elif side and t.slides is None and np.hypot(*x[side]) > fast:
                self.closed[i] = x[side] / np.hypot(*x[side])
                again |= self.rows.release(i)
                self._changes.append(ContactChange(SLIDES, name, float(np.hypot(*lam[side])), ago))
            elif self.rows.twist(i, lam) > size:
                again |= self.rows.release(i)
                self._changes.append(ContactChange(SLIDES, name, float(np.hypot(*lam[side])), ago))
        return again

    def _met(self, q: np.ndarray, v: np.ndarray, left: float) -> tuple[float, list[int], list[int]]:
        """What happened first in the time that is left: how long ago, who came through, and whose sliding turned back."""
        gaps, rates = self.rows.opened(q, v)
        times: dict[int, float] = {}
        for i in self.rows.sides:
            if i not in self.closed and gaps[i][0] < 0.0 and rates[i][0] < 0.0:
                times[i] = min(gaps[i][0] / rates[i][0], left)
        for i, speed in self._speeds.items():
            now = float(rates[i][1:] @ self.closed[i]) if self.closed.get(i) is not None else 1.0
            if now <= 0.0 < speed:
                times[i] = min(left * -now / (speed - now), left)
            elif now < -TOUCH:  # it began to slide with this step, and turned
                times[i] = 0.0
        if not times:
            return 0.0, [], []
        since = max(times.values())
        first = [i for i, t in times.items() if t >= since * (1.0 - 1e-9)]
        return (
            since,
            [i for i in first if i not in self.closed],
            [i for i in first if i in self.closed],
        )

    def _blow(self, q: np.ndarray, v: np.ndarray, new: list[int], ago: float) -> np.ndarray:
        """v after contacts are made: c+ = Omega lambda + Jc v by Coulomb's law; those that it pushes off open."""
        touches = {
            i: ContactRow(self.rows.own(i), self.rows.sides[i].mu)
            for i in sorted({*self.closed, *new})
        }
        Omega, c = self.rows.omega(q), self.rows.rates(q, v)
        up, sprung = restitution.rebound_speeds(self.rows, q, v, self._tau, new, self.dt), c.copy()
        for i, speed in up.items():
            sprung[touches[i].rows[0]] -= speed
        lam = coulomb_friction.coulomb_forces(Omega, sprung, self.rows.held, list(touches.values()))
        if lam is None:
            raise StateError(
                "no impulses obey Coulomb's law where contacts are made",
                "such friction jams: less of it",
            )
        x = Omega @ lam + c
        if up:
            restitution.check_energy(c, x, lam)
        fast = PULL * (1.0 + np.abs(c).max())
        for i, t in touches.items():
            side, name = list(t.rows[1:]), self.contacts[i].name
            if x[t.rows[0]] > fast:
                if self.closed.pop(i, new) is not new:
                    self._changes.append(ContactChange(LOST, name, 0.0, ago))
                elif i in up:
                    self._changes.append(ContactChange(BOUNCES, name, float(lam[t.rows[0]]), ago))
                self.rows.release(i)
                continue
            slip, was = float(np.hypot(*x[side])) if side else 0.0, self.closed.get(i)
            self.closed[i] = x[side] / slip if slip > fast else None
            if i in new:
                self._changes.append(ContactChange(MADE, name, float(lam[t.rows[0]]), ago))
            elif (slip > fast) != (was is not None):
                self.rows.release(i)
                self._changes.append(
                    ContactChange(
                        SLIDES if slip > fast else HOLDS, name, float(np.hypot(*lam[side])), ago
                    )
                )
        return v + self.rows.pushed(q, lam)

    # -- inside ----------------------------------------------------------------------------------------------------------------

    def _as_they_go(self, q: np.ndarray, v: np.ndarray) -> dict[int, ContactRow]:
        """The contacts that are closed; what slides goes on along its way, which is that of the step's begin once it turns."""
        out, rates = {}, None
        for i, way in sorted(self.closed.items()):
            if way is not None:
                rates = rates or self.rows.opened(q, v)[1]
                slip = rates[i][1:]
                length = float(np.hypot(*slip))
                way = slip / length if length > TOUCH and float(slip @ way) > 0.0 else way
            out[i] = ContactRow(self.rows.own(i), self.rows.sides[i].mu, way)
        return out

    def _motion(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, touches: dict[int, ContactRow]
    ) -> np.ndarray:
        """a, contacts going on as they do."""
        free, Omega, c = self.rows.terms(q, v, tau)
        lam = coulomb_friction.forces_in_modes(Omega, c, self.rows.held, list(touches.values()))
        if lam is None:
            raise StateError(
                "no acceleration keeps what contacts and loops hold",
                "start elsewhere, or free that direction",
            )
        return free + self.rows.pushed(q, lam)

    def _guess(self, count: int) -> np.ndarray:
        out = np.zeros(count)
        for i, own in self._last.items():
            if i in self.closed:
                out[list(self.rows.own(i))] = own
        return out

    def _drift(self, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """A part of a step, with the accelerations of its begin: to second order."""
        a = self._motion(q, v, self._tau, self._as_they_go(q, v))
        return self.robot.integrate(q, v + 0.5 * h * a, h), v + h * a

    def _put(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Back onto all that is held: the least change, by the mass matrix. Points that rest on planes rest where they are."""
        kept = [*self.rows.held, *(self.rows.own(i)[0] for i in self.closed)]
        across = {i: self.rows.own(i)[1:] for i, way in self.closed.items() if way is None}
        placed = [*kept, *(r for i, own in across.items() if i in self.rows.grips for r in own)]
        if not placed:
            return q, v
        for _ in range(TURNS):
            e = self.rows.errors(q, v)
            if np.abs(e[placed]).max() < NEAR:
                break
            q = self.robot.integrate(q, self._undone(q, e, placed), 1.0)
        return q, v + self._undone(
            q, self.rows.rates(q, v), [*kept, *(r for own in across.values() for r in own)]
        )

    def _undone(self, q: np.ndarray, c: np.ndarray, rows: list[int]) -> np.ndarray:
        """-M^-1 Jc* Omega^+ c, of some rows."""
        lam = np.zeros(len(c))
        found = coulomb_friction.least_norm_solution(
            self.rows.omega(q)[np.ix_(rows, rows)], -c[rows]
        )
        if found is None:
            raise StateError(
                "nothing closes what contacts and loops hold", "a smaller step, or another posture"
            )
        lam[rows] = found
        return self.rows.pushed(q, lam)
