"""Events, checked after every step: divergence, limits, lost grasps, user-defined functions.

An event g(t, q, v) is recorded if g, positive before, is zero or less (or, if g returns booleans,
becomes True). "limit" is recorded if a coordinate leaves its range, "grasp lost" if a contact's
ratio exceeds 1, "diverged" if a number is not finite or a speed exceeds its limit
(`speed_limits.py`). The time of an event is the root of the line between the values at both ends of
the step, which is second order in dt; that of "diverged" is the end of the step. Contacts that open
(`contact_events.py`) report their own events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import as_list, as_names
from psiphi.model.components import joint_of_entry
from psiphi.simulation.control.user_function import UserFunction
from psiphi.simulation.plant import Plant
from psiphi.simulation.simulate.speed_limits import MAX_SPEED, fastest_coordinate
from psiphi.simulation.trajectory.trajectory import Event

MADE, LOST, SLIDES, HOLDS = "contact made", "contact lost", "contact slides", "contact holds"
BOUNCES = "contact bounces"
CHANGES = MADE, LOST, SLIDES, HOLDS, BOUNCES  # of contacts that open
NOT_SOLVED = "contact not solved"  # with a ground
DIVERGED, LIMIT, GRASP_LOST = "diverged", "limit", "grasp lost"
LIMITS = ("ignore", "record", "stop", "block")
DEFAULT_STOP = (DIVERGED, GRASP_LOST)


class ContactChange(NamedTuple):
    """A change of a contact. `value` is the impulse (N s) that closed it, the normal force (N) it
    would have needed, or the friction force (N); `ago` is the time since then, in seconds."""

    name: str
    what: str
    value: float
    ago: float = 0.0


class EventMonitor:
    """Records the `events` of a simulation; `alive` (*batch) are the elements that still run."""

    def __init__(
        self,
        system: Plant,
        batch: tuple[int, ...],
        limits: str,
        functions: Mapping[str, Callable],
        stop: set[str],
        max_speed: np.ndarray | float = MAX_SPEED,
    ):
        self.system, self.stop, self.max_speed = system, stop, max_speed
        self.functions = {
            name: UserFunction(g, batch, f"event {name!r}:") for name, g in functions.items()
        }
        self.alive = np.ones(batch, dtype=bool)
        self.events: list[Event] = []
        self.checks_limits = limits in ("record", "stop")
        self.previous_values: dict[str, np.ndarray] = {}  # of the functions, one step ago
        self.rises: dict[str, float] = {}  # times at which functions first rose through zero
        self.negative: dict[str, np.ndarray] = {}  # (*batch): whether they were negative before
        self.outside = np.zeros((*batch, system.nq), dtype=bool)
        self.slipping = np.zeros((*batch, len(system.contacts)), dtype=bool)
        self.previous_q = np.zeros((*batch, system.nq))  # q one step ago
        # time and contact ratios of the last check
        self.last_contacts: tuple[float, np.ndarray] | None = None

    @property
    def needs_every_step(self) -> bool:
        """Whether every step must be checked, not only the samples."""
        return self.checks_limits or bool(self.functions) or self.system.has_unilateral_contacts

    @property
    def unseen_rises(self) -> dict[str, float]:
        """The functions that rose through zero and never fell: no event, perhaps by mistake."""
        recorded = {event.name for event in self.events}
        return {name: t for name, t in self.rises.items() if name not in recorded}

    @property
    def all_stopped(self) -> bool:
        """Whether all elements have stopped."""
        return self.alive.size > 0 and not self.alive.any()

    def start(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Check the initial state: a joint outside its range is an event, a negative function is
        not."""
        self._check_limits(t, t, q, self.alive.copy())
        for name in self.functions:
            self.previous_values[name] = value = self._value(name, t, q, v)
            self.negative[name] = (value < 0.0) & (value > -np.inf)
            _check_number(name, value, t, self.alive)

    def is_event_free(self, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether no event can have happened in the states (*batch, m, n); needs no functions."""
        is_finite = bool(is_finite_state(q, v, self.max_speed).all())
        with np.errstate(invalid="ignore"):
            is_inside = not self.checks_limits or not bool(self._outside_limits(q).any())
        is_free = is_finite and is_inside and not self.functions and bool(self.alive.all())
        if is_free:  # coordinates that were outside their range are inside again
            self.outside, self.previous_q = np.zeros_like(self.outside), q[..., -1, :]
        return is_free

    def diverged(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(*batch): the running elements that have diverged."""
        return self.alive & ~is_finite_state(q, v, self.max_speed)

    def is_sampled(self, was_alive: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(*batch): the elements of `was_alive` that still run or whose last state is finite."""
        finite = np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)
        return was_alive & (self.alive | finite)

    def check(self, before: float, t: float, q: np.ndarray, v: np.ndarray) -> bool:
        """Check the state after the step from `before` to t; True if an element stopped."""
        was_alive, diverged = self.alive.copy(), self.diverged(q, v)
        self._add_diverged(diverged, t, v)
        self._check_limits(before, t, q, was_alive & ~diverged)
        for name in self.functions:
            self._check_function(name, before, t, q, v, was_alive & ~diverged)
        return bool((was_alive & ~self.alive).any())

    def diverge(self, where: np.ndarray, t: float, v: np.ndarray) -> None:
        """Stop these elements, whatever `stop` says: they have no finite next state."""
        self._add_diverged(where & self.alive, t, v)
        self.alive &= ~where

    def slips(self, t: float, q: np.ndarray, forces: np.ndarray | None) -> bool:
        """Whether a contact slips or pulls in the states (*batch, m, nq), the last of which is at
        time t, or did so before."""
        ratio = self.system.contact_ratio(q, forces)
        if ratio is None:
            return False
        slipping = bool((ratio > 1.0).any()) or bool(self.slipping.any())
        if not slipping:
            self.last_contacts = t, ratio[..., -1, :]
        return slipping

    def check_contacts(self, t: float, q: np.ndarray, forces: np.ndarray | None) -> bool:
        """Check the contact forces of a state; True if an element stopped."""
        ratio = self.system.contact_ratio(q, forces)
        if ratio is None:
            return False
        was_alive = self.alive.copy()
        for change in self.system.changes():
            self._add(Event(change.name, t - change.ago, change.what, (), change.value))
        lost = ratio > 1.0
        before, last_ratio = (t, ratio) if self.last_contacts is None else self.last_contacts
        for place in map(tuple, np.argwhere(lost & ~self.slipping & was_alive[..., None])):
            *where, contact = (int(i) for i in place)
            name = str(getattr(self.system.contacts[contact], "name", contact))
            old, new = float(last_ratio[place]), float(ratio[place])
            time = _crossing_time(before, t, old - 1.0, new - 1.0)
            self._add(Event(GRASP_LOST, time, name, tuple(where), new))
        self.slipping, self.last_contacts = lost, (t, ratio)
        return bool((was_alive & ~self.alive).any())

    def _check_limits(self, before: float, t: float, q: np.ndarray, running: np.ndarray) -> None:
        """Record the coordinates that crossed their limits; `value` is that after the step."""
        if not self.checks_limits:
            return
        outside, robot = self._outside_limits(q), self.system.robot
        for place in map(tuple, np.argwhere(outside & ~self.outside & running[..., None])):
            *where, k = (int(i) for i in place)
            old, new = float(self.previous_q[place]), float(q[place])
            limit = float(robot.lower[k] if new < robot.lower[k] else robot.upper[k])
            joint = joint_of_entry(robot.joints, k, "q")
            time = _crossing_time(before, t, old - limit, new - limit)
            self._add(Event(LIMIT, time, joint.name, tuple(where), new))
        self.outside, self.previous_q = outside, q

    def _outside_limits(self, q: np.ndarray) -> np.ndarray:
        """(..., nq): the coordinates outside their ranges."""
        return (q < self.system.robot.lower) | (q > self.system.robot.upper)

    def _check_function(
        self, name: str, before: float, t: float, q: np.ndarray, v: np.ndarray, running: np.ndarray
    ) -> None:
        old, new = self.previous_values[name], self._value(name, t, q, v)
        self.previous_values[name] = new
        _check_number(name, new, t, running)
        if (running & self.negative[name] & (new > 0.0)).any():
            self.rises.setdefault(name, t)
        self.negative[name] = self.negative[name] | ((new < 0.0) & (new > -np.inf))
        for place in np.argwhere((old > 0.0) & (new <= 0.0) & running):
            where = tuple(int(i) for i in place)
            g0, g1 = float(old[where]), float(new[where])
            time, value = _crossing_time(before, t, g0, g1), g1 if np.isfinite(g1) else np.nan
            self._add(Event(name, time, name, where, value))

    def _value(self, name: str, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """g(t, q, v) as floats (*batch); True is -inf, False is inf."""
        result = np.asarray(self.functions[name](t, q, v))
        value = np.where(result, -np.inf, np.inf) if result.dtype == bool else result
        try:
            if result.dtype.kind not in "biuf":
                raise TypeError
            return np.broadcast_to(value.astype(float), self.alive.shape)
        except (ValueError, TypeError):
            what = f"{result.dtype} of shape {result.shape}, expected shape {self.alive.shape}"
            if not result.ndim:
                what = f"{shown(result[()])}, expected a real number, or True or False"
            raise StateError(
                f"event {name!r} returned {what}",
                "return one number, or True or False, for each batch element",
            ) from None

    def _add_diverged(self, where: np.ndarray, t: float, v: np.ndarray) -> None:
        """Record one event per element, with its fastest joint, or the first one whose speed is
        not a number."""
        for place in map(tuple, np.argwhere(where)):
            speeds = np.abs(v[place])
            too_fast = ~(speeds <= self.max_speed)
            k = fastest_coordinate(self.system, v[place]) if speeds.size else 0
            joint = next((j.name for j in self.system.robot.joints if k in j.coordinates), "")
            # if no speed is finite, no joint stands out
            all_at_once = too_fast.all() and too_fast.size > 1 and not np.isfinite(speeds).any()
            name = "" if all_at_once else joint
            self._add(Event(DIVERGED, t, name, tuple(int(i) for i in place)))

    def _add(self, event: Event) -> None:
        stops = event.name in self.stop
        self.events.append(event._replace(stopped=stops))
        if stops:
            self.alive[event.where] = False


def _check_number(name: str, value: np.ndarray, t: float, running: np.ndarray) -> None:
    """Refuse values that are not numbers: they have no sign, and the event would be lost."""
    for where in np.argwhere(np.isnan(value) & running)[:1]:
        motion = f" of motion {', '.join(map(str, where))}" if len(where) else ""
        raise StateError(
            f"event {name!r} is not a number at t = {t:.6g} s{motion}",
            "return a number wherever the motion may go, for instance with np.maximum(x, 0) in a "
            "square root",
        )


def is_finite_state(
    q: np.ndarray, v: np.ndarray, max_speed: np.ndarray | float = MAX_SPEED
) -> np.ndarray:
    """(...): whether states are finite, with speeds of at most `max_speed`."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(q).all(axis=-1) & (np.abs(v) <= max_speed).all(axis=-1))


def _crossing_time(before: float, t: float, old: float, new: float) -> float:
    """The root of the line from `old` at `before` to `new` at t; t if there is none."""
    if not (np.isfinite(old) and np.isfinite(new)) or old == new:
        return t
    return before + min(max(old / (old - new), 0.0), 1.0) * (t - before)


def read_functions(
    events: Mapping[str, Callable] | Iterable[Callable] | Callable,
) -> dict[str, Callable]:
    """{name: function}; functions in a list have their own names."""
    remedy = "give {name: g} with g(t, q, v)"
    if isinstance(events, Mapping):
        named = dict(events)
    else:
        functions = (events,) if callable(events) else tuple(as_list("events", events, remedy))
        named = {getattr(g, "__name__", f"event {i}"): g for i, g in enumerate(functions)}
        if len(named) != len(functions):
            raise StateError("two events have the same name", "give a dict {name: function}")
    for name, function in named.items():
        if not isinstance(name, str):
            raise StateError(f"event {shown(name)} is not a name", remedy)
        if name in (DIVERGED, LIMIT, GRASP_LOST, NOT_SOLVED, *CHANGES):
            raise StateError(f"event {shown(name)} has the name of a built-in event", remedy)
        if not callable(function):
            raise StateError(f"event {shown(name)} is {shown(function)}, not a function", remedy)
    return named


def read_stop(
    stop: bool | str | Iterable[str],
    limits: str,
    functions: Iterable[str],
    on_ground: bool = False,
) -> set[str]:
    """The names of the events that stop a motion. Contacts with a ground report theirs after it."""
    known = {DIVERGED, LIMIT, GRASP_LOST, *functions, *(() if on_ground else CHANGES)}
    words = ", ".join(sorted(map(str, known)))
    if isinstance(stop, bool | np.bool_):
        chosen = known if stop else set()
    else:
        chosen = set(as_names("stop", stop, remedy=f"give True, False, or some of {words}"))
        if chosen - known:
            unknown = ", ".join(map(shown, chosen - known))
            raise StateError(f"stop has unknown events: {unknown}", f"known events are {words}")
        if LIMIT in chosen and limits == "ignore":
            raise StateError('stop has "limit", but limits are ignored', 'give limits="stop"')
    return chosen | ({LIMIT} if limits == "stop" else set())
