"""Contacts that open, close, slide and stick during a motion: a single motion, in steps of Python.

A contact with `friction` is open, sticks, or slides on its plane. All contacts, together with all
other constraints, share one Omega:

    accelerations    c' = Omega lambda + (Jc a_f + bias)
    impacts          c+ = Omega lambda + Jc v,    dv = M^-1 Jc* lambda

Coulomb's law determines the forces (`simulation/contact/coulomb_friction.py`). At the start of a
step it decides the mode of every contact in that step. After the step, if a point has passed
through its plane or the sliding of a contact has reversed, the state is integrated back to that
event. There an impact changes the velocities (and may open other contacts), or the point sticks;
then the rest of the step is repeated.

A contact holds as its own kind (rigid, line, soft, point) until it first slides or opens; from then
on it is a point on the plane of its second frame. Modes end within a step, to second order in its
length; they start with a step. Contacts with restitution bounce (`restitution.py`). Stiff losses
are explicit here, and diverge.

A body that rocks makes and loses contacts faster and faster, infinitely often before it rests. A
contact that an impact opens for less than two steps is held instead: its velocity becomes 0, by an
impulse that is at most that of gravity in a step.
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

CONTACT_MODES = ("hold", "open")  # the values of the option `contacts`
TOUCH_TOLERANCE = 1e-9  # m, m/s: a contact closer and slower than this touches
FORCE_TOLERANCE = 1e-9  # of the largest force, impulse or speed
MAX_EVENTS = 8  # in one step, at different times
CLOSURE_TOLERANCE = 1e-13
NEWTON_STEPS = 6


def read_contacts(system: object, contacts: object) -> Any:
    """The system itself, or a `ContactSystem` for contacts="open"."""
    if not isinstance(contacts, str):
        raise StateError(
            f"contacts is {shown(contacts)}, expected a ground or {' or '.join(CONTACT_MODES)}",
            "give contacts=pp.Ground(friction=0.8) for a robot on the ground",
        )
    mode = one_of("contacts", contacts, CONTACT_MODES)
    return system if mode == "hold" else ContactSystem(system)


class ContactSystem:
    """A closed chain with contacts in the modes that a motion has left them in, for `Plant`.

    `closed` has the contacts that touch: the direction (2,) in which each slides, or None if it
    sticks.
    """

    def __init__(self, system: object):
        if not isinstance(system, System):
            raise StateError(
                f'contacts="open" is given for {shown(system)}', "only closed systems have contacts"
            )
        self.whole, self.robot, self.contacts = system, system.robot, system.contacts
        self.nq, self.nv, self.name = system.nq, system.nv, system.name
        self.passive, self.actuated, self.object = system.passive, system.actuated, system.object
        self.dt = np.inf
        self.rows = Contacts(system)
        self.closed: dict[int, np.ndarray | None] = {}
        self._started = False
        self._changes: list[ContactChange] = []
        # of this step: the torque, and the sliding speeds and contact forces at its start
        self._tau = np.zeros(system.nv)
        self._slide_speeds: dict[int, float] = {}
        self._forces: dict[int, np.ndarray] = {}
        self._impulses = np.zeros((len(self.contacts), 6))  # since the last call of `impulses`

    # -- methods that `Plant` calls ----------------------------------------------------------------

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, forces: bool = False
    ) -> Any:
        """a in the present modes. With `forces`, at the start of a step: a and the contact forces,
        with the modes by Coulomb's law."""
        self._tau = tau
        if not self._started:
            self._start(q, v)
        if not forces:
            return self._acceleration(q, v, tau, self._active_contacts(q, v))
        lam = self._update_modes(q, v, tau)
        a = self.rows.terms(q, v, tau)[0] + self.rows.response(q, lam)
        return a, self.rows.wrenches(q, lam)

    def project(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state after a step, with the events in that step."""
        remaining = self.dt
        for _ in range(MAX_EVENTS):
            ago, made, stopped = self._first_event(q, v, remaining)
            if not made and not stopped:
                break
            q, v = self._project_state(*self._integrate(q, v, -ago))
            for i in stopped:
                self.closed[i] = None
                friction = float(np.hypot(*self._forces.get(i, np.zeros(3))[1:]))
                self._report(i, HOLDS, friction, ago)
            v = self._impact(q, v, made, ago) if made else v
            q, v = self._project_state(q, v)
            self._update_modes(q, v, self._tau, ago)
            q, v, remaining = *self._integrate(q, v, ago), ago
        else:
            raise StateError(
                f"{self.name}: contacts change more than {MAX_EVENTS} times in a step",
                "give a smaller dt; or, for a robot with contact shapes (robot.with_contacts), "
                "contacts=pp.Ground(...), whose steps contain any number of impacts",
            )
        return self._project_state(q, v)

    def constraint_residual(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., 2, m); of contacts that may open, only the penetration and its rate."""
        out = np.array(self.whole.constraint_residual(q, v))
        for i, rows in enumerate(self.whole.closure.slices[: len(self.contacts)]):
            if i in self.rows.frictions:
                normal = self.rows.rotation(i, self.contacts[i])[0]
                gap, rate = (out[..., k, rows] @ normal for k in (0, 1))
                out[..., :, rows] = 0.0
                out[..., 0, rows.start] = np.minimum(gap, 0.0)
                touching_rate = np.where(gap <= TOUCH_TOLERANCE, np.minimum(rate, 0.0), 0.0)
                out[..., 1, rows.start] = touching_rate
        return out

    def contact_ratio(self, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """At most 1: a contact that would exceed its friction slides."""
        return np.minimum(self.whole.contact_ratio(q, forces), 1.0)

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.whole.energy(q, v)

    def changes(self) -> list[ContactChange]:
        """The changes since the last call."""
        out, self._changes = self._changes, []
        return out

    def impulses(self) -> np.ndarray:
        """The impulses of impacts since the last call, as `forces`, in N s."""
        out, self._impulses = self._impulses, np.zeros_like(self._impulses)
        return out

    # -- modes of contacts -------------------------------------------------------------------------

    def _report(self, i: int, event: str, value: float, ago: float) -> None:
        self._changes.append(ContactChange(event, self.contacts[i].name, value, ago))

    def _start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Close the contacts that touch and do not separate; they stick unless they slide."""
        if np.ndim(q) != 1:
            raise StateError(
                f'contacts="open" is given for motions of shape {np.shape(q)[:-1]}',
                "simulate one motion at a time",
            )
        self.rows.start(q)
        gaps, rates = self.rows.gaps_and_rates(q, v)
        for i in self.rows.frictions:
            if gaps[i][0] <= TOUCH_TOLERANCE and rates[i][0] <= TOUCH_TOLERANCE:
                slip = rates[i][1:]
                slides = len(slip) and np.hypot(*slip) > TOUCH_TOLERANCE
                self.closed[i] = slip / np.hypot(*slip) if slides else None
                if slides:
                    self.rows.release(i)
            else:
                self.rows.release(i)
        self._started = True

    def _update_modes(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, ago: float = 0.0
    ) -> np.ndarray:
        """lambda of this state by Coulomb's law; sets the modes of the contacts."""
        while True:
            Omega, c = self.rows.terms(q, v, tau)[1:]
            contacts, bilateral = self._active_contacts(q, v), self.rows.bilateral_rows
            active = list(contacts.values())
            trial = coulomb_friction.forces_in_modes(Omega, c, bilateral, active)
            if trial is not None and self._satisfies_coulomb(trial, contacts):
                lam = trial
                break
            guess = self._guess(len(c))
            lam = coulomb_friction.coulomb_forces(Omega, c, bilateral, active, guess)
            if lam is None:
                raise StateError(
                    "no contact forces satisfy Coulomb's law in this state: friction jams",
                    "give less friction, or start from another posture",
                )
            if not self._change_modes(lam, Omega @ lam + c, contacts, trial, ago):
                break
        _, rates = self.rows.gaps_and_rates(q, v)
        self._forces = {i: lam[list(self.rows.rows_of(i))] for i in self.closed}
        self._slide_speeds = {
            i: float(rates[i][1:] @ direction)
            for i, direction in self.closed.items()
            if direction is not None
        }
        return lam

    def _satisfies_coulomb(self, lam: np.ndarray, contacts: dict[int, ContactRow]) -> bool:
        """Whether no contact pulls or leaves its friction cone."""
        size = FORCE_TOLERANCE * (1.0 + np.abs(lam).max(initial=0.0))
        for i, t in contacts.items():
            push, *friction = lam[list(t.rows)]
            if push < -size:
                return False
            limit = t.mu * max(push, 0.0) + size
            if friction and not t.slides and np.hypot(*friction) > limit:
                return False
            if self.rows.torsion_excess(i, lam) > size:
                return False
        return True

    def _change_modes(
        self,
        lam: np.ndarray,
        x: np.ndarray,
        contacts: dict[int, ContactRow],
        trial: np.ndarray | None,
        ago: float,
    ) -> bool:
        """Set the modes by the solution of Coulomb's law; x are the accelerations of the rows.
        Returns whether the rows have changed, so that the law must be solved again."""
        small_force = FORCE_TOLERANCE * (1.0 + np.abs(lam).max(initial=0.0))
        small_rate = FORCE_TOLERANCE * (1.0 + np.abs(x).max(initial=0.0))
        again = False
        for i, t in contacts.items():
            n, side = t.rows[0], list(t.rows[1:])
            if lam[n] <= small_force and x[n] > small_rate:
                del self.closed[i]
                again |= self.rows.release(i)
                self._report(i, LOST, min(float(trial[n]), 0.0) if trial is not None else 0.0, ago)
            elif side and not t.slides and np.hypot(*x[side]) > small_rate:
                self.closed[i] = x[side] / np.hypot(*x[side])
                again |= self.rows.release(i)
                self._report(i, SLIDES, float(np.hypot(*lam[side])), ago)
            elif self.rows.torsion_excess(i, lam) > small_force:
                again |= self.rows.release(i)
                self._report(i, SLIDES, float(np.hypot(*lam[side])), ago)
        return again

    def _first_event(
        self, q: np.ndarray, v: np.ndarray, remaining: float
    ) -> tuple[float, list[int], list[int]]:
        """The first event in the `remaining` time: how long ago it was, the contacts that are made
        in it, and those whose sliding reverses."""
        gaps, rates = self.rows.gaps_and_rates(q, v)
        times: dict[int, float] = {}
        for i in self.rows.frictions:
            if i not in self.closed and gaps[i][0] < 0.0 and rates[i][0] < 0.0:
                times[i] = min(gaps[i][0] / rates[i][0], remaining)
        for i, speed in self._slide_speeds.items():
            direction = self.closed.get(i)
            now = float(rates[i][1:] @ direction) if direction is not None else 1.0
            if now <= 0.0 < speed:
                times[i] = min(remaining * -now / (speed - now), remaining)
            elif now < -TOUCH_TOLERANCE:  # it started to slide with this step, and reversed
                times[i] = 0.0
        if not times:
            return 0.0, [], []
        ago = max(times.values())
        first = [i for i, t in times.items() if t >= ago * (1.0 - 1e-9)]
        made = [i for i in first if i not in self.closed]
        return ago, made, [i for i in first if i in self.closed]

    def _impact(self, q: np.ndarray, v: np.ndarray, new: list[int], ago: float) -> np.ndarray:
        """v after the contacts `new` are made: c+ = Omega lambda + Jc v by Coulomb's law. Contacts
        that the impact separates open."""
        contacts = {
            i: ContactRow(self.rows.rows_of(i), self.rows.frictions[i].mu)
            for i in sorted({*self.closed, *new})
        }
        Omega, c = self.rows.omega(q), self.rows.velocity_errors(q, v)
        rebounds = restitution.rebound_speeds(self.rows, q, v, self._tau, new, self.dt)
        shifted = c.copy()
        for i, speed in rebounds.items():
            shifted[contacts[i].rows[0]] -= speed
        bilateral = self.rows.bilateral_rows
        lam = coulomb_friction.coulomb_forces(Omega, shifted, bilateral, list(contacts.values()))
        if lam is None:
            raise StateError(
                "no impulses satisfy Coulomb's law where contacts are made: friction jams",
                "give less friction",
            )
        x = Omega @ lam + c
        if rebounds:
            restitution.check_energy(c, x, lam)
        small_rate = FORCE_TOLERANCE * (1.0 + np.abs(c).max())
        opened = {i for i, t in contacts.items() if x[t.rows[0]] > small_rate}
        if opened - rebounds.keys():
            lam = self._hold(q, v, contacts, opened, rebounds, Omega, x, lam)
            x = Omega @ lam + c
        self._impulses += self.rows.wrenches(q, lam)
        for i, t in contacts.items():
            push, side = float(lam[t.rows[0]]), list(t.rows[1:])
            if x[t.rows[0]] > small_rate:
                if self.closed.pop(i, new) is not new:
                    self._report(i, LOST, 0.0, ago)
                elif i in rebounds:
                    self._report(i, BOUNCES, push, ago)
                self.rows.release(i)
                continue
            slip, direction = float(np.hypot(*x[side])) if side else 0.0, self.closed.get(i)
            self.closed[i] = x[side] / slip if slip > small_rate else None
            if i in new:
                self._report(i, MADE, push, ago)
            elif (slip > small_rate) != (direction is not None):
                self.rows.release(i)
                friction = float(np.hypot(*lam[side]))
                self._report(i, SLIDES if slip > small_rate else HOLDS, friction, ago)
        return v + self.rows.response(q, lam)

    def _hold(
        self,
        q: np.ndarray,
        v: np.ndarray,
        contacts: dict[int, ContactRow],
        opened: set[int],
        rebounds: dict[int, float],
        Omega: np.ndarray,
        x: np.ndarray,
        lam: np.ndarray,
    ) -> np.ndarray:
        """The impulses of an impact in which the contacts `opened` that would close again within
        two steps stay closed; x are the velocities of the rows after the impulses lam."""
        small_rate = FORCE_TOLERANCE * (1.0 + np.abs(x).max())
        ahead = x + self.dt * self.rows.terms(q, v, self._tau)[2]
        rows = list(contacts.values())
        bilateral = self.rows.bilateral_rows
        later = coulomb_friction.coulomb_forces(Omega, ahead, bilateral, rows)
        if later is None:
            return lam
        normal_speeds = {i: (Omega @ later + ahead)[contacts[i].rows[0]] for i in opened}
        apart = {i for i, speed in normal_speeds.items() if speed > small_rate}
        apart |= rebounds.keys()
        if opened <= apart:
            return lam
        closed = []
        for i, t in contacts.items():
            if i not in apart:
                side = x[list(t.rows[1:])]
                slip = float(np.hypot(*side)) if len(side) else 0.0
                closed.append(ContactRow(t.rows, t.mu, side / slip if slip > small_rate else None))
        more = coulomb_friction.forces_in_modes(Omega, x, bilateral, closed)
        return lam if more is None else lam + more

    # -- integration and projection ----------------------------------------------------------------

    def _active_contacts(self, q: np.ndarray, v: np.ndarray) -> dict[int, ContactRow]:
        """The closed contacts. Sliding ones have their present direction, or that of the start of
        the step once they have reversed."""
        out, rates = {}, None
        for i, direction in sorted(self.closed.items()):
            if direction is not None:
                rates = rates or self.rows.gaps_and_rates(q, v)[1]
                slip = rates[i][1:]
                speed = float(np.hypot(*slip))
                if speed > TOUCH_TOLERANCE and float(slip @ direction) > 0.0:
                    direction = slip / speed
            out[i] = ContactRow(self.rows.rows_of(i), self.rows.frictions[i].mu, direction)
        return out

    def _acceleration(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, contacts: dict[int, ContactRow]
    ) -> np.ndarray:
        """a with the contacts in their present modes."""
        a_free, Omega, c = self.rows.terms(q, v, tau)
        active = list(contacts.values())
        lam = coulomb_friction.forces_in_modes(Omega, c, self.rows.bilateral_rows, active)
        if lam is None:
            raise StateError(
                "no acceleration satisfies the constraints of contacts and loops",
                "start from another configuration, or free that direction",
            )
        return a_free + self.rows.response(q, lam)

    def _guess(self, count: int) -> np.ndarray:
        """The forces of the start of the step, as a first guess."""
        out = np.zeros(count)
        for i, forces in self._forces.items():
            if i in self.closed:
                out[list(self.rows.rows_of(i))] = forces
        return out

    def _integrate(self, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """A part of a step, of second order."""
        a = self._acceleration(q, v, self._tau, self._active_contacts(q, v))
        return self.robot.integrate(q, v + 0.5 * h * a, h), v + h * a

    def _project_state(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state projected onto the constraints: the least change, by the mass matrix. Sticking
        points on planes keep their position."""
        rows = self.rows
        common = [*rows.bilateral_rows, *(rows.rows_of(i)[0] for i in self.closed)]
        sticking = [i for i, direction in self.closed.items() if direction is None]
        tangents = {i: rows.rows_of(i)[1:] for i in sticking}
        of_positions = [*common, *(r for i in tangents if i in rows.gripping for r in tangents[i])]
        of_velocities = [*common, *(r for some in tangents.values() for r in some)]
        if not of_positions:
            return q, v
        for _ in range(NEWTON_STEPS):
            e = rows.position_errors(q, v)
            if np.abs(e[of_positions]).max() < CLOSURE_TOLERANCE:
                break
            q = self.robot.integrate(q, self._correction(q, e, of_positions), 1.0)
        return q, v + self._correction(q, rows.velocity_errors(q, v), of_velocities)

    def _correction(self, q: np.ndarray, c: np.ndarray, rows: list[int]) -> np.ndarray:
        """-M^-1 Jc* Omega^+ c, of some rows."""
        lam = np.zeros(len(c))
        Omega = self.rows.omega(q)[np.ix_(rows, rows)]
        found = coulomb_friction.least_norm_solution(Omega, -c[rows])
        if found is None:
            raise StateError(
                "the constraints of contacts and loops cannot be closed",
                "give a smaller dt, or another posture",
            )
        lam[rows] = found
        return self.rows.response(q, lam)
