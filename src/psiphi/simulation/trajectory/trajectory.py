"""`Trajectory`: a recorded motion with its torques, forces, energies and events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex, overload

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.validate import batch_place, real_array, robot_of
from psiphi.model.model import Model
from psiphi.model.state_checks import batch_element
from psiphi.simulation.plant import Plant, SimulatedSystem
from psiphi.simulation.trajectory import (
    energy_balance,
    interpolation,
    trajectory_checks,
    trajectory_files,
    trajectory_plots,
    trajectory_summary,
    trajectory_tables,
)
from psiphi.simulation.trajectory.trajectory_tables import SAMPLE_AXES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from psiphi.simulation.forces.external_forces import Push
    from psiphi.simulation.sensors.measurement import Measurement
    from psiphi.simulation.sensors.sensor_models import Sensor


class Event(NamedTuple):
    """An event of a motion.

    `name` is "limit", "grasp lost", "diverged", "contact made", "contact lost" or another change of
    a contact, "contact not solved", or the name of a function given to `simulate`. `what` is the
    joint or contact, `t` the time, `where` the batch element; `stopped` says whether the event
    stopped that element.
    """

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

    t: float | np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray | None = None
    tau: np.ndarray | None = None
    forces: np.ndarray | None = None
    energy: np.ndarray | None = None
    residual: np.ndarray | None = None
    gaps: np.ndarray | None = None
    modes: np.ndarray | None = None
    contact_residual: np.ndarray | float | None = None
    stop_forces: np.ndarray | None = None
    stop_work: np.ndarray | float | None = None


class MotionDerivatives(Protocol):
    """The derivatives of a motion that a compiled kernel computed: a `RolloutResult`."""

    def vjp(
        self, q_weight: Numbers | None, v_weight: Numbers | None, /
    ) -> dict[str, np.ndarray]: ...
    def jvp(
        self, q: Numbers | None, v: Numbers | None, /, **others: Numbers
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def hvp(
        self,
        q_weight: Numbers | None,
        v_weight: Numbers | None,
        q: Numbers | None,
        v: Numbers | None,
        /,
        **others: Numbers,
    ) -> dict[str, np.ndarray]: ...


@with_late_methods
@dataclass(frozen=True, eq=False)
class Trajectory:
    """n samples of a motion, or of a batch of motions.

    t (n,), q (..., n, nq), v, a, tau (..., n, nv), energy (..., n), forces (..., n, contacts, 6),
    residual (..., n, 2): the largest position and velocity error of the constraints. After an
    element of a batch has stopped, its numbers are NaN. With `system=`, the robot or closed chain
    that moved, columns have the names of the joints.

    With a ground, forces (..., n, contacts, 3) on the robot in world axes, gaps in m and modes (0
    open, 1 sticks, 2 slips) (..., n, contacts) are those of the step that follows a sample, and a
    is the change of v in that step by its duration. contact_residual (..., n) in m/s says by how
    much the steps since the sample before violate the laws of contact, at the worst contact.

    With joint stops, stop_forces (..., n, nv) is the mean of their forces over the time since the
    sample before, impacts included, and stop_work (..., n) in J their work since the start.

    >>> import psiphi as pp
    >>> motion = pp.simulate(pp.robots.puma560(), [0.0] * 6, duration=0.1)
    >>> len(motion), motion.q.shape, motion.final.t
    (101, (101, 6), 0.1)
    >>> q, v = [[0.0] * 6, [0.1] * 6], [[1.0] * 6] * 2
    >>> own = pp.Trajectory([0.0, 0.1], q, v, system=pp.load("ur5"))
    >>> own.info["q"][:2]
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
    gaps: np.ndarray | None = None
    modes: np.ndarray | None = None
    contact_residual: np.ndarray | None = None
    stop_forces: np.ndarray | None = None
    stop_work: np.ndarray | None = None
    events: tuple[Event, ...] = ()
    system: Any = None
    info: dict[str, Any] = field(default_factory=dict)  # method, dt, names: JSON values

    def __post_init__(self):
        """Check the arrays against each other and the system, and add the names of the joints."""
        values = {name: getattr(self, name) for name in ("t", *SAMPLE_AXES)}
        arrays = trajectory_checks.check_arrays(values)
        trajectory_checks.check_orders(
            self.system, {name: getattr(self, name) for name in ("q", "v", "a", "tau")}
        )
        nq, nv = (arrays[name].shape[-1] for name in "qv")  # type: ignore[union-attr]
        info = trajectory_checks.complete_info(self.info, self.system, nq, nv)
        events = trajectory_checks.check_events(self.events, Event)
        for name, value in {**arrays, "info": info, "events": events}.items():
            object.__setattr__(self, name, value)

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch; () for one motion."""
        return self.q.shape[:-2]

    @property
    def robot(self) -> Any:
        """The robot that q belongs to; None if the system is unknown."""
        return robot_of(self.system)

    def __len__(self) -> int:
        return len(self.t)

    def __iter__(self) -> Iterator[Sample]:
        return (self[k] for k in range(len(self)))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Trajectory: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Sample | Trajectory:
        """`[k]` is a Sample, `[a:b]` a Trajectory of these samples."""
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
        lead = (slice(None),) * len(self.batch)
        arrays: list[Any] = [None if x is None else x[(*lead, k)] for x in self._arrays()]
        return Sample(float(self.t[k]), *arrays)

    def element(self, *where: int) -> Trajectory:
        """One motion of a batch: `motion.element(3)`."""
        place = batch_place(where, self.batch)
        events = tuple(
            event._replace(where=()) for event in self.events if event.where in (place, ())
        )
        system = None if self.system is None else Plant(self.system).element(self.batch, place)
        arrays = self._changed(lambda x, axis: x[place])
        motion = replace(self, **arrays, events=events, system=system)
        alive = np.isfinite(motion.q).all(axis=-1)
        return motion if alive.all() else motion[: int(np.argmin(alive))]

    @property
    def final(self) -> Sample:
        """The last sample."""
        return self[-1]

    @property
    def drift(self) -> np.ndarray:
        """max |E(t) - E(0)| / largest kinetic energy of each motion, (...).

        This is the integration error if no torques and no losses act.
        """
        return energy_balance.drift(self)

    @property
    def work(self) -> np.ndarray | None:
        """The work of the torques since the start, (..., n), in J; E(t) - E(0) without losses and
        joint stops.

        None if tau is not known or does not belong to v.
        """
        return energy_balance.work(self)

    def at(self, t: Numbers) -> Sample:
        """The motion at a time, or at times (m,), between the samples.

        q moves on the manifold along the cubic in tangent coordinates that matches q and v of both
        neighbours; v is the cubic that matches v and a; other quantities are linear.
        """
        times = real_array("t", t, (), "give a time or times")
        if (
            times.ndim > 1
            or not len(self)
            or (times < self.t[0]).any()
            or (times > self.t[-1]).any()
            or np.isnan(times).any()
        ):
            span = f"covers {self.t[0]:g} to {self.t[-1]:g} s" if len(self) else "has no samples"
            raise StateError(
                f"t is {t!r}, but the trajectory {span}", "give a time, or times (m,), within it"
            )
        when = times if times.ndim else float(times)
        if len(self) == 1:
            k, axis = np.zeros(times.shape, int), len(self.batch)
            only: list[Any] = [None if x is None else np.take(x, k, axis) for x in self._arrays()]
            return Sample(when, *only)
        k = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self) - 2)
        return Sample(when, *interpolation.interpolate(self, times, k))

    def vjp(
        self, q_weight: Numbers | None = None, v_weight: Numbers | None = None
    ) -> dict[str, np.ndarray]:
        """Gradients of the weighted sum of all samples with respect to the initial state and the
        torque or the controller's numbers, as `vjp` of `pp.rollout`. Needs a compiled motion.

        >>> import numpy as np, psiphi as pp
        >>> robot, tau = pp.robots.puma560(), np.ones((50, 6))
        >>> motion = pp.simulate(robot, np.zeros(6), tau=tau, duration=0.05, compiled=True)
        >>> last = np.zeros_like(motion.q)
        >>> last[-1, 0] = 1.0  # the last position of the first joint
        >>> motion.vjp(last)["tau"].shape
        (50, 6)
        """
        return self._motion_derivatives().vjp(q_weight, v_weight)

    def jvp(
        self, q: Numbers | None = None, v: Numbers | None = None, **others: Numbers
    ) -> tuple[np.ndarray, np.ndarray]:
        """(dq, dv), shaped as q and v, for changes of the initial state (q: a tangent vector) and
        of the torque or the controller's numbers.

        >>> import numpy as np, psiphi as pp
        >>> motion = pp.simulate(pp.robots.puma560(), np.zeros(6), duration=0.05, compiled=True)
        >>> motion.jvp(q=np.ones(6))[0].shape
        (51, 6)
        """
        return self._motion_derivatives().jvp(q, v, **others)

    def hvp(
        self,
        q_weight: Numbers | None = None,
        v_weight: Numbers | None = None,
        q: Numbers | None = None,
        v: Numbers | None = None,
        **others: Numbers,
    ) -> dict[str, np.ndarray]:
        """The change of the gradients of `vjp` for changes as in `jvp`: second derivatives times a
        vector.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("pelican")
        >>> motion = pp.simulate(robot, np.zeros(2), duration=0.05, compiled=True)
        >>> motion.hvp(np.ones_like(motion.q), q=np.ones(2))["v"].shape
        (2,)
        """
        return self._motion_derivatives().hvp(q_weight, v_weight, q, v, **others)

    def _motion_derivatives(self) -> MotionDerivatives:
        found = vars(self).get("_derivatives")
        if found is None:
            raise StateError(
                "this motion has no derivatives: they need a compiled kernel for every step, and "
                "no event that stops the motion",
                "use pp.simulate(..., compiled=True) with a number of steps that is a multiple of "
                "every=, or pp.rollout",
            )
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "_derivatives"}

    def summary(self) -> str:
        """The main facts of the motion, as a table of text."""
        return trajectory_summary.summary_text(self)

    def plot(
        self,
        what: str | Sequence[str] = "q v tau energy",
        path: str | os.PathLike[str] | None = None,
        *,
        joints: str | Sequence[str] | None = None,
        limits: bool = False,
    ) -> Figure:
        """A matplotlib figure of the named quantities over time; also written to `path` if given.

        `joints` selects joints by name, "arm_left_*" for instance, or several names; `limits=True`
        adds the joints' ranges (q), largest speeds (v) and efforts (tau) as dashed lines.
        """
        return trajectory_plots.plot(self, what, path, joints, limits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all numbers exactly: .npz (NumPy) has everything, .csv is a plain table.

        A table begins with the names of its columns, "t", "q:elbow_joint", ...; the motions of a
        batch follow each other, numbered by "element". The file name.csv.json beside it has what a
        table cannot hold: events, the shape of a batch.
        """
        trajectory_files.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        system: Model | SimulatedSystem | None = None,
        *,
        max_bytes: int = trajectory_files.MAX_BYTES,
    ) -> Trajectory:
        """Read what `save` wrote, or a .csv table with columns t, q:..., v:...

        More than `max_bytes` of numbers are an error. The file does not contain the system: give it
        for `.at`, `.view` and `.html`.
        """
        arrays, events, info = trajectory_files.load(path, max_bytes)
        if system is not None:
            arrays, info = trajectory_checks.in_joint_order(arrays, info, system)
        return cls(**arrays, events=tuple(map(_event, events)), system=system, info=info)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row per sample, indexed by time (and batch)."""
        return trajectory_tables.to_pandas(self)

    def to_xarray(self) -> Any:
        """An xarray Dataset with named axes and coordinates."""
        return trajectory_tables.to_xarray(self)

    if TYPE_CHECKING:  # implemented in later packages

        def measure(
            self, sensors: Mapping[str, Sensor], seed: int = 0, *, f_ext: Push | None = None
        ) -> dict[str, Measurement]: ...

        def view(self, *, port: int = 8080, sliders: bool | None = None, **options: Any) -> Any: ...

        def html(
            self, path: str | os.PathLike[str], live: bool = False, **options: Any
        ) -> Path: ...

        def _repr_html_(self) -> str: ...

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in SAMPLE_AXES)

    def _with_time_axis(
        self, change: Callable[[np.ndarray, int], np.ndarray], t: np.ndarray
    ) -> Trajectory:
        """The trajectory with new times; `change` is called with each array and its time axis."""
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


def attach_derivatives(motion: Trajectory, derivatives: MotionDerivatives) -> Trajectory:
    """The motion, with its derivatives, which are neither saved nor pickled."""
    object.__setattr__(motion, "_derivatives", derivatives)
    return motion


def _event(row: list) -> Event:
    name, t, what, where, value, stopped = row
    return Event(name, t, what, tuple(where), float("nan") if value is None else value, stopped)
