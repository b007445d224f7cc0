"""What a simulation leaves: the motion, what drove it, and what went wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.validate import real_array, robot_of
from psiphi.model.state_checks import batch_element
from psiphi.simulation.plant import Plant
from psiphi.simulation.trajectory import (
    energy_balance,
    interpolation,
    trajectory_checks,
    trajectory_files,
    trajectory_plots,
    trajectory_tables,
)
from psiphi.simulation.trajectory import trajectory_summary as summary
from psiphi.simulation.trajectory.trajectory_tables import SAMPLE_AXES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Event(NamedTuple):
    """Something that happened: `name` ("limit", "grasp lost", "contact made" and what else contacts do, "diverged", or the name
    of a function given to simulate), of `what` (a joint, a contact), at time `t`, in batch element `where`, with `value`;
    whether it `stopped` that element."""

    name: str
    t: float
    what: str = ""
    where: tuple[int, ...] = ()
    value: float = float("nan")
    stopped: bool = False

    def __str__(self) -> str:
        number = "" if self.value != self.value else f" ({self.value:.6g})"
        when = f"at t = {self.t:.6g} s{batch_element(self.where)}"
        return f"{self.name}: {self.what or 'system'}{number} {when}{', stopped' * self.stopped}"


class Sample(NamedTuple):
    """One instant of a trajectory."""

    t: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray | None = None
    tau: np.ndarray | None = None
    forces: np.ndarray | None = None
    energy: np.ndarray | None = None
    residual: np.ndarray | None = None


@with_late_methods
@dataclass(frozen=True, eq=False)
class Trajectory:
    """n samples of a motion; a batch of motions has its axes in front, as everywhere.

    t (n,), q (..., n, nq), v, a, tau (..., n, nv), energy (..., n), forces (..., n, contacts, 6), residual (..., n, 2):
    the constraints' largest position and velocity error. After an element of a batch has stopped its numbers are NaN.
    With `system=`, the robot or closed chain that moved, its columns bear the joints' names.

    >>> import psiphi as pp
    >>> motion = pp.simulate(pp.robots.puma560(), [0.0] * 6, duration=0.1)
    >>> len(motion), motion.q.shape, motion.final.t
    (101, (101, 6), 0.1)
    >>> mine = pp.Trajectory([0.0, 0.1], [[0.0] * 6, [0.1] * 6], [[1.0] * 6] * 2, system=pp.load("ur5"))
    >>> mine.info["q"][:2]
    ['shoulder_pan_joint', 'shoulder_lift_joint']
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray | None = None
    tau: np.ndarray | None = None
    forces: np.ndarray | None = None
    energy: np.ndarray | None = None
    residual: np.ndarray | None = None
    events: tuple[Event, ...] = ()
    system: Any = None
    info: dict[str, Any] = field(default_factory=dict)  # method, dt, names: plain values

    def __post_init__(self):
        """Arrays that fit together, and the joints' names; a motion that does not fit its system is refused."""
        fit = trajectory_checks.check_arrays(
            {name: getattr(self, name) for name in ("t", *SAMPLE_AXES)}
        )
        trajectory_checks.check_orders(
            self.system, {name: getattr(self, name) for name in ("q", "v", "a", "tau")}
        )
        nq, nv = (fit[name].shape[-1] for name in "qv")  # type: ignore[union-attr]
        named = trajectory_checks.complete_info(self.info, self.system, nq, nv)
        for name, value in {
            **fit,
            "info": named,
            "events": trajectory_checks.check_events(self.events, Event),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch; () for one motion."""
        return self.q.shape[:-2]

    @property
    def robot(self) -> Any:
        """The robot whose q this is; None when the system is not known."""
        return robot_of(self.system)

    def __len__(self) -> int:
        return len(self.t)

    def __iter__(self) -> Iterator[Sample]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: int | slice) -> Any:
        """`[k]` is one Sample, `[a:b]` a Trajectory of these samples."""
        if isinstance(index, slice):
            return self._with_time_axis(
                lambda x, axis: x[(slice(None),) * axis + (index,)], t=self.t[index]
            )
        try:
            k = range(len(self))[index]
        except (TypeError, IndexError):
            raise StateError(
                f"sample {index!r} of {len(self)}", "give a whole number or a slice"
            ) from None
        arrays: list[Any] = [None if x is None else x[(*self._lead, k)] for x in self._arrays()]
        return Sample(float(self.t[k]), *arrays)

    def element(self, *where: int) -> Trajectory:
        """One motion of a batch: `motion.element(3)`."""
        try:
            own = tuple(range(n)[i] for i, n in zip(where, self.batch, strict=True))
        except (TypeError, ValueError, IndexError):
            raise StateError(
                f"element {where} of a batch of shape {self.batch}", "give one index a batch axis"
            ) from None
        events = tuple(
            event._replace(where=()) for event in self.events if event.where in (own, ())
        )
        system = None if self.system is None else Plant(self.system).element(self.batch, own)
        one = replace(self, **self._changed(lambda x, axis: x[own]), events=events, system=system)
        alive = np.isfinite(one.q).all(axis=-1)
        return one if alive.all() else one[: int(np.argmin(alive))]

    @property
    def final(self) -> Sample:
        """The last sample."""
        return self[-1]

    @property
    def drift(self) -> np.ndarray:
        """max |E(t) - E(0)| / largest kinetic energy, of each motion (...): an error where nothing drives or brakes it."""
        return energy_balance.drift(self)

    @property
    def work(self) -> np.ndarray | None:
        """The work of the torques since the start, (..., n), J: E(t) - E(0) where nothing is lost. None where tau has none."""
        return energy_balance.work(self)

    def at(self, t: Any) -> Sample:
        """The motion at a time, or at times (m,), between the samples.

        q runs on the manifold along the cubic in tangent coordinates that meets q and v at both neighbours; v is the cubic
        of v and a, everything else is linear.
        """
        times = real_array("t", t, (), "give a time or times")
        if (
            times.ndim > 1
            or not len(self)
            or (times < self.t[0]).any()
            or (times > self.t[-1]).any()
            or np.isnan(times).any()
        ):
            span = f"{self.t[0]:g} to {self.t[-1]:g} s" if len(self) else "nothing"
            raise StateError(
                f"t is {t!r}, and the trajectory covers {span}",
                "give a time, or a row of times, within it",
            )
        when = times if times.ndim else float(times)
        if len(self) == 1:
            k, axis = np.zeros(times.shape, int), len(self.batch)
            only: list[Any] = [None if x is None else np.take(x, k, axis) for x in self._arrays()]
            return Sample(when, *only)
        k = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self) - 2)
        return Sample(when, *interpolation.interpolate(self, times, k))

    def vjp(self, q_weight: Any = None, v_weight: Any = None) -> dict[str, np.ndarray]:
        """Gradients of the weighted sum of all samples, by the beginning and by what drove the motion, as `pp.rollout` has
        them: of motions whose steps a compiled kernel took.

        >>> import numpy as np, psiphi as pp
        >>> motion = pp.simulate(pp.robots.puma560(), np.zeros(6), tau=np.ones((50, 6)), duration=0.05, compiled=True)
        >>> last = np.zeros_like(motion.q)
        >>> last[-1, 0] = 1.0  # where the first joint ends
        >>> motion.vjp(last)["tau"].shape
        (50, 6)
        """
        return self._derived().vjp(q_weight, v_weight)

    def jvp(self, q: Any = None, v: Any = None, **others: Any) -> tuple[np.ndarray, np.ndarray]:
        """(dq, dv), shaped as q and v, for changes of the beginning (q: a tangent vector) and of what drove the motion.

        >>> import numpy as np, psiphi as pp
        >>> motion = pp.simulate(pp.robots.puma560(), np.zeros(6), duration=0.05, compiled=True)
        >>> motion.jvp(q=np.ones(6))[0].shape
        (51, 6)
        """
        return self._derived().jvp(q, v, **others)

    def hvp(
        self,
        q_weight: Any = None,
        v_weight: Any = None,
        q: Any = None,
        v: Any = None,
        **others: Any,
    ) -> dict[str, np.ndarray]:
        """What those gradients change by, for changes as `jvp` takes them: second derivatives times a vector.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("pelican")
        >>> motion = pp.simulate(robot, np.zeros(2), duration=0.05, compiled=True)
        >>> motion.hvp(np.ones_like(motion.q), q=np.ones(2))["v"].shape
        (2,)
        """
        return self._derived().hvp(q_weight, v_weight, q, v, **others)

    def _derived(self) -> Any:
        found = vars(self).get("_rolled")
        if found is None:
            cause = "this motion has no derivatives: they are there where a compiled kernel took every step, and none stopped it"
            raise StateError(
                cause,
                "pp.simulate(..., compiled=True), with steps that are a multiple of every=; or pp.rollout",
            )
        return found

    def _with_derivatives(self, rolled: Any) -> Trajectory:
        """This motion, with what knows its derivatives: they are not written into files, nor sent to other processes."""
        object.__setattr__(self, "_rolled", rolled)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "_rolled"}

    def summary(self) -> str:
        """What happened, as a table of text."""
        return summary.summary_text(self)

    def plot(
        self,
        what: str | Sequence[str] = "q v tau energy",
        path: str | os.PathLike[str] | None = None,
        *,
        joints: str | Sequence[str] | None = None,
        limits: bool = False,
    ) -> Figure:
        """A matplotlib figure of the named quantities over time; `path` also writes it to a file.

        `joints` picks by name, "arm_left_*" for instance, or several of these; `limits=True` adds the joints' ranges (q), their
        largest speeds (v) and efforts (tau) as dashed lines.
        """
        return trajectory_plots.plot(self, what, path, joints, limits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all numbers, exactly: .npz (NumPy) holds everything, .csv is a plain table.

        A table begins with the names of its columns, "t", "q:elbow_joint", ...; the motions of a batch follow each other,
        numbered by "element". What no table holds (events, the shape of a batch) stands in name.csv.json beside it.
        """
        trajectory_files.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        system: Any = None,
        *,
        max_bytes: int = trajectory_files.MAX_BYTES,
    ) -> Trajectory:
        """What `save` wrote, or any table with columns t, q:..., v:... in .csv; more than `max_bytes` of numbers are refused.

        The file does not hold the system: give it again for `.at`, `.view` and `.html`.
        """
        arrays, events, info = trajectory_files.load(path, max_bytes)
        if system is not None:
            arrays, info = trajectory_checks.in_joint_order(arrays, info, system)
        return cls(**arrays, events=tuple(map(_event, events)), system=system, info=info)

    def to_pandas(self) -> Any:
        """A pandas DataFrame: a row a sample, indexed by time (and batch), a column a number."""
        return trajectory_tables.to_pandas(self)

    def to_xarray(self) -> Any:
        """An xarray Dataset with named axes and coordinates."""
        return trajectory_tables.to_xarray(self)

    if TYPE_CHECKING:  # implemented in a later package

        def view(self, *, port: int = 8080, sliders: bool | None = None, **options: Any) -> Any: ...

        def html(
            self, path: str | os.PathLike[str], live: bool = False, **options: Any
        ) -> Path: ...

        def _repr_html_(self) -> str: ...

    @property
    def _lead(self) -> tuple[slice, ...]:
        return (slice(None),) * len(self.batch)

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in SAMPLE_AXES)

    def _with_time_axis(
        self, change: Callable[[np.ndarray, int], np.ndarray], t: np.ndarray
    ) -> Trajectory:
        """All arrays changed along the time axis."""
        return replace(self, t=t, **self._changed(change))

    def _changed(self, change: Callable[[np.ndarray, int], np.ndarray]) -> dict[str, Any]:
        axis = len(self.batch)
        return {
            name: None if x is None else change(x, axis)
            for name, x in zip(SAMPLE_AXES, self._arrays(), strict=True)
        }

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        span = f"{self.t[0]:g} to {self.t[-1]:g} s, " if len(self) else ""
        return f"<Trajectory: {span}{len(self)} samples{batch}, {len(self.events)} events>"


def _event(row: list) -> Event:
    name, t, what, where, value, stopped = row
    return Event(name, t, what, tuple(where), float("nan") if value is None else value, stopped)
