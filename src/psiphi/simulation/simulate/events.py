"""What is watched for, after every step: divergence, limits, lost grasps, and functions of the user's.

A function g(t, q, v) fires where its value, positive before, is zero or less (or, for one that answers True or False, where
it becomes True). A limit fires where a coordinate leaves its range, "grasp lost" where a contact's ratio exceeds 1, "diverged"
where a number is not finite or a speed exceeds 1e9. The time of all but the last is where the line between the two ends of the
step has its root: to second order in dt. Contacts that open (`contact_events.py`) say themselves when they are made and lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import as_list, as_names
from psiphi.model.components import joint_of_entry
from psiphi.simulation.control.torque_input import read_only
from psiphi.simulation.plant import Plant
from psiphi.simulation.trajectory.trajectory import Event

MADE, LOST, SLIDES, HOLDS = "contact made", "contact lost", "contact slides", "contact holds"
BOUNCES = "contact bounces"
CHANGES = MADE, LOST, SLIDES, HOLDS, BOUNCES  # what may happen to a contact that opens and closes
DIVERGED, LIMIT, GRASP_LOST = "diverged", "limit", "grasp lost"
MAX_SPEED = 1e9
LIMITS = ("ignore", "record", "stop", "block")
DEFAULT_STOP = (DIVERGED, GRASP_LOST)


class ContactChange(NamedTuple):
    """What happened to a contact: `value` is the impulse (N s) that made it, the force (N) it would have needed, or that of
    friction; how long ago, in seconds."""

    name: str
    what: str
    value: float
    ago: float = 0.0


class EventMonitor:
    """All that is watched of one simulation; `events` so far, `alive` (*batch) which elements still run."""

    def __init__(
        self,
        system: Plant,
        batch: tuple[int, ...],
        limits: str,
        functions: Mapping[str, Callable],
        stop: set[str],
    ):
        self.system, self.functions, self.stop = system, functions, stop
        self.alive = np.ones(batch, dtype=bool)
        self.events: list[Event] = []
        self.checks_limits = limits in ("record", "stop")
        self.previous_values: dict[str, np.ndarray] = {}  # values of the functions one step ago
        self.outside = np.zeros((*batch, system.nq), dtype=bool)
        self.slipping = np.zeros((*batch, len(system.contacts)), dtype=bool)
        self.previous_q = np.zeros((*batch, system.nq))  # q one step ago
        self.last_contacts: tuple[float, np.ndarray] | None = (
            None  # when the contacts were looked at last, and their ratios
        )

    @property
    def needs_every_step(self) -> bool:
        """Whether every step must be seen, not only the samples."""
        return self.checks_limits or bool(self.functions) or self.system.has_unilateral_contacts

    @property
    def all_stopped(self) -> bool:
        """Whether nothing runs any more."""
        return self.alive.size > 0 and not self.alive.any()

    def start(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """The initial state: a joint outside its range is an event; a function that is negative has not just become so."""
        self._check_limits(t, t, q, self.alive.copy())
        self.previous_values = {name: self._value(name, t, q, v) for name in self.functions}

    def is_event_free(self, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether nothing can have happened in all these states (of running elements)."""
        calm = bool(is_finite_state(q, v).all())
        with np.errstate(invalid="ignore"):
            inside = not self.checks_limits or not bool(self._outside_limits(q).any())
        quiet = calm and inside and not self.functions and bool(self.alive.all())
        if quiet:  # whatever was outside has come back
            self.outside, self.previous_q = np.zeros_like(self.outside), q[..., -1, :]
        return quiet

    def diverged(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(*batch): which of the elements that still run diverged."""
        return self.alive & ~is_finite_state(q, v)

    def is_sampled(self, was: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(*batch): which of the elements that ran have this state for a sample: it is theirs, or their last that is finite."""
        return was & (self.alive | (np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)))

    def check(self, before: float, t: float, q: np.ndarray, v: np.ndarray) -> bool:
        """Look at the state after a step; True when something stopped."""
        was, wild = self.alive.copy(), self.diverged(q, v)
        self._diverged(wild, t, v)
        self._check_limits(before, t, q, was & ~wild)
        for name in self.functions:
            self._check_function(name, before, t, q, v, was & ~wild)
        return bool((was & ~self.alive).any())

    def diverge(self, where: np.ndarray, t: float, v: np.ndarray) -> None:
        """These elements end here, whatever `stop` says: their next state is not a number."""
        self._diverged(where & self.alive, t, v)
        self.alive &= ~where

    def slips(self, t: float, q: np.ndarray, forces: np.ndarray | None) -> bool:
        """Whether any contact slips or pulls in these states, the last at time t, or did before."""
        ratio = self.system.contact_ratio(q, forces)
        if ratio is None:
            return False
        slipping = bool((ratio > 1.0).any()) or bool(self.slipping.any())
        if not slipping:
            self.last_contacts = t, ratio[..., -1, :]
        return slipping

    def check_contacts(self, t: float, q: np.ndarray, forces: np.ndarray | None) -> bool:
        """Look at the contact forces of a state; True when something stopped."""
        ratio = self.system.contact_ratio(q, forces)
        if ratio is None:
            return False
        was = self.alive.copy()
        for change in self.system.changes():
            self._add(Event(change.name, t - change.ago, change.what, (), change.value))
        lost = ratio > 1.0
        for place in np.argwhere(lost & ~self.slipping & was[..., None]):
            *where, contact = (int(i) for i in place)
            name = str(getattr(self.system.contacts[contact], "name", contact))
            now = float(ratio[tuple(place)])
            since, was_held = (
                (t, now)
                if self.last_contacts is None
                else (self.last_contacts[0], float(self.last_contacts[1][tuple(place)]))
            )
            self._add(
                Event(
                    GRASP_LOST,
                    _crossing_time(since, t, was_held - 1.0, now - 1.0),
                    name,
                    tuple(where),
                    now,
                )
            )
        self.slipping, self.last_contacts = lost, (t, ratio)
        return bool((was & ~self.alive).any())

    def _check_limits(self, before: float, t: float, q: np.ndarray, on: np.ndarray) -> None:
        """A coordinate that was inside crossed its limit in between; `value` is where it is at the end of the step."""
        if not self.checks_limits:
            return
        outside, robot = self._outside_limits(q), self.system.robot
        for place in np.argwhere(outside & ~self.outside & on[..., None]):
            *where, k = (int(i) for i in place)
            old, new = float(self.previous_q[tuple(place)]), float(q[tuple(place)])
            limit = float(robot.lower[k] if new < robot.lower[k] else robot.upper[k])
            joint = joint_of_entry(robot.joints, k, "q")
            self._add(
                Event(
                    LIMIT,
                    _crossing_time(before, t, old - limit, new - limit),
                    joint.name,
                    tuple(where),
                    new,
                )
            )
        self.outside, self.previous_q = outside, q

    def _outside_limits(self, q: np.ndarray) -> np.ndarray:
        """Which coordinates are outside of their ranges."""
        return (q < self.system.robot.lower) | (q > self.system.robot.upper)

    def _check_function(
        self, name: str, before: float, t: float, q: np.ndarray, v: np.ndarray, on: np.ndarray
    ) -> None:
        old, new = self.previous_values[name], self._value(name, t, q, v)
        self.previous_values[name] = new
        for place in np.argwhere((old > 0.0) & (new <= 0.0) & on):
            where = tuple(int(i) for i in place)
            g0, g1 = float(old[where]), float(new[where])
            self._add(
                Event(
                    name,
                    _crossing_time(before, t, g0, g1),
                    name,
                    where,
                    g1 if np.isfinite(g1) else np.nan,
                )
            )

    def _value(self, name: str, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        answer = np.asarray(self.functions[name](t, read_only(q), read_only(v)))
        value = np.where(answer, -np.inf, np.inf) if answer.dtype == bool else answer
        try:
            if answer.dtype.kind not in "biuf":
                raise TypeError
            return np.broadcast_to(value.astype(float), self.alive.shape)
        except (ValueError, TypeError):
            cause = f"event {name!r} answered {answer.dtype} of shape {answer.shape}, expected shape {self.alive.shape}"
            raise StateError(
                cause, "return one number, or True or False, for each batch element"
            ) from None

    def _diverged(self, where: np.ndarray, t: float, v: np.ndarray) -> None:
        """One event an element, of the joint that is fastest, or whose speed is the first that is no number."""
        for place in map(tuple, np.argwhere(where)):
            speeds = np.abs(v[place])
            wild = ~(speeds <= MAX_SPEED)
            k = int(np.argmax(np.where(np.isnan(speeds), np.inf, speeds))) if speeds.size else 0
            joint = next((j.name for j in self.system.robot.joints if k in j.coordinates), "")
            spread = (
                wild.all() and wild.size > 1 and not np.isfinite(speeds).any()
            )  # all at once: no joint stands out
            self._add(Event(DIVERGED, t, "" if spread else joint, tuple(int(i) for i in place)))

    def _add(self, event: Event) -> None:
        stops = event.name in self.stop
        self.events.append(event._replace(stopped=stops))
        if stops:
            self.alive[event.where] = False


def is_finite_state(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(...): whether states are finite, and slower than FASTEST."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(q).all(axis=-1) & (np.abs(v) <= MAX_SPEED).all(axis=-1))


def _crossing_time(before: float, t: float, old: float, new: float) -> float:
    """Where the line from `old` at `before` to `new` at `t` is zero; t where there is no such line."""
    if not (np.isfinite(old) and np.isfinite(new)) or old == new:
        return t
    return before + min(max(old / (old - new), 0.0), 1.0) * (t - before)


def read_functions(events: Any) -> dict[str, Callable]:
    """{name: function}; a list of functions is named by their own names."""
    if isinstance(events, Mapping):
        named = dict(events)
    else:
        each = (
            (events,)
            if callable(events)
            else tuple(as_list("events", events, "give {name: g} with g(t, q, v)"))
        )
        named = {
            getattr(function, "__name__", f"event {i}"): function for i, function in enumerate(each)
        }
        if len(named) != len(each):
            raise StateError("two events have the same name", "give a dict {name: function}")
    for name, function in named.items():
        if not callable(function) or name in (DIVERGED, LIMIT, GRASP_LOST, *CHANGES):
            cause = f"event {shown(name)} is {shown(function)}, expected a function under a name of its own"
            raise StateError(cause, "give {name: g} with g(t, q, v)")
    return named


def read_stop(stop: Any, limits: str, functions: Iterable[str]) -> set[str]:
    """The names of the events that stop a motion."""
    known = {DIVERGED, LIMIT, GRASP_LOST, *CHANGES, *functions}
    words = ", ".join(sorted(map(str, known)))
    if isinstance(stop, bool | np.bool_):
        chosen = known if stop else set()
    else:
        chosen = set(as_names("stop", stop, remedy=f"give True, False, or some of {words}"))
        if chosen - known:
            raise StateError(
                f"stop names {', '.join(map(shown, chosen - known))}", f"there are {words}"
            )
        if LIMIT in chosen and limits == "ignore":
            raise StateError('stop names "limit", and limits are ignored', 'say limits="stop"')
    return chosen | ({LIMIT} if limits == "stop" else set())
