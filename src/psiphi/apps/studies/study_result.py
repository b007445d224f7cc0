"""The result of `pp.study`: final states, samples, failures, quantiles, single motions."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.text import count_of, nearest, shown
from psiphi._util.validate import flag, is_list, read_array, whole_number
from psiphi._util.validate import path as path_text
from psiphi.apps.studies.chunks import simulate_every_step
from psiphi.apps.studies.motion_inputs import CAUSES, InputSampler
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.apps.studies.zarr_store import StudyStore
from psiphi.simulation.simulation_errors import MotionWarning
from psiphi.simulation.trajectory.trajectory import Trajectory
from psiphi.simulation.trajectory.trajectory_tables import coordinate_names


class States(NamedTuple):
    """q (..., nq), v (..., nv), and the times t of samples."""

    q: np.ndarray
    v: np.ndarray
    t: np.ndarray | None = None


class StudyMeasurement(NamedTuple):
    """The times (n,) and values (motions, n, *channels) that a sensor measured."""

    t: np.ndarray
    value: np.ndarray


class StudyFailure(NamedTuple):
    """A failed motion: its number, the cause, the joint and the time."""

    motion: int
    cause: str
    joint: str
    time: float


@with_late_methods
class Study:
    """A finished study and its folder."""

    def __init__(
        self,
        config: StudyConfig,
        store: StudyStore,
        temporary: TemporaryDirectory[str] | None = None,
    ):
        self.config, self.store = config, store
        self._temporary = temporary  # deleted with this object

    @property
    def title(self) -> str:
        return self.config.title

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return self.store.folder

    @property
    def motions(self) -> int:
        """The number of motions."""
        return self.config.motions

    @property
    def final(self) -> States:
        """Final q (motions, nq) and v (motions, nv); NaN for motions that diverged."""
        return States(self.store.read("final_q"), self.store.read("final_v"))

    @property
    def samples(self) -> States:
        """q (motions, samples, nq), v and times t, if `keep` is set: Zarr arrays, read lazily (of a
        study without a folder: NumPy arrays)."""
        if not self.config.every:
            raise StateError("this study stored no samples", "set [keep] every = 10")
        t = self.config.every * self.config.dt * np.arange(self.config.samples)
        return States(self._array("q"), self._array("v"), t)

    def measured(self, sensor: str) -> StudyMeasurement:
        """The times (n,) and measured values (motions, n, *channels) of a sensor of `[sensors]`: a
        Zarr array, read lazily (of a study without a folder: a NumPy array). NaN after a motion
        diverged.

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> torque = pp.JointTorque(rate=200, noise=0.01)
        >>> study = pp.study(
        ...     pp.load("acrobot"), motions=4, duration=0.1, vary=vary, sensors={"torque": torque}
        ... )
        >>> study.measured("torque").value[2].shape
        (21, 2)
        """
        known = {x.name: x for x in self.config.sensors}
        if not isinstance(sensor, str) or sensor not in known:
            raise StateError(f"this study has no sensor {shown(sensor)}", nearest(sensor, known))
        found = known[sensor]
        return StudyMeasurement(found.times, self._array(found.array))

    def _array(self, name: str) -> Any:
        """A Zarr array, read lazily. The folder of a temporary study is deleted with this object,
        so that its arrays are read at once."""
        if self._temporary is not None:
            return self.store.read(name)
        self.store.check_finished()
        return self.store.group[name]

    @property
    def failures(self) -> list[StudyFailure]:
        """The failed motions, by number."""
        cause, joint, time = (self.store.read(name) for name in ("cause", "joint", "time"))
        names = [j.name for j in self.config.robot.joints]
        each = np.flatnonzero(cause)
        return [
            StudyFailure(
                int(i), CAUSES[cause[i]], names[joint[i]] if joint[i] >= 0 else "", float(time[i])
            )
            for i in each
        ]

    def quantiles(self, levels: Numbers | None = None) -> States:
        """Quantiles of the finite final states: q (levels, nq), v (levels, nv).

        The default levels are those of the study.

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
        >>> study.quantiles([0.25, 0.75]).v.shape
        (2, 2)
        """
        values, fault = read_array(self.config.quantiles if levels is None else levels, None)
        if fault or values.ndim > 1 or not ((values >= 0.0) & (values <= 1.0)).all():
            raise StateError(
                f"levels is {shown(levels)}, expected numbers from 0 to 1", "pass [0.05, 0.5, 0.95]"
            )
        final = self.final
        alive = np.isfinite(final.q).all(axis=-1)
        if not alive.any():
            raise StateError("no motion has a final state: all diverged", "see study.failures")
        return States(*(np.quantile(x[alive], values, axis=0) for x in (final.q, final.v)))

    def drawn(self, numbers: int | Iterable[int]) -> dict[str, np.ndarray]:
        """The samples of the varied parameters for these motions, by "word:name:coordinate".

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
        >>> list(study.drawn(range(4)))
        ['v:shoulder:0', 'v:elbow:0']
        """
        return InputSampler(self.config).drawn(self._numbers(numbers))

    def motion(self, i: int, quiet: bool = False) -> Trajectory:
        """Simulate motion i again, with every step. The final state is bitwise equal.

        `quiet` suppresses the warning if it diverges.

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
        >>> motion = study.motion(3)
        >>> len(motion), bool((motion.final.q == study.final.q[3]).all())
        (11, True)
        """
        config = self.config
        inputs = InputSampler(config).single(int(self._numbers([i])[0]))
        if inputs.fault:
            raise StateError(
                f"motion {i} cannot start: {CAUSES[int(inputs.fault)]}", "see study.drawn([i])"
            )
        with warnings.catch_warnings():
            if flag("quiet", quiet):
                warnings.simplefilter("ignore", MotionWarning)
            return simulate_every_step(config, inputs)

    if TYPE_CHECKING:  # implemented in a later module

        def report(self, path: str | os.PathLike[str], worst: int = 5) -> Path: ...

    def summary(self) -> str:
        """The number of motions and of failures by cause, on one line.

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
        >>> study.summary()
        'acrobot: 4 motions; none failed'
        """
        failed = self.failures
        counts = Counter(failure.cause for failure in failed)
        failures = ", ".join(f"{n} {cause}" for cause, n in counts.most_common()) or "none failed"
        return f"{self.title}: {count_of(self.motions, 'motion')}; {failures}"

    def worst(self, count: int = 5) -> list[int]:
        """The motions to inspect: failures by time, then the outliers among the final states.

        Distances from the median are measured in interquartile ranges.

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
        >>> len(study.worst(2))
        2
        """
        count, failed = whole_number("count", count), self.failures
        early = [
            failure.motion for failure in sorted(failed, key=lambda x: (x.time, x.motion))[:count]
        ]
        return [*early, *self._outliers(count - len(early), {failure.motion for failure in failed})]

    def _outliers(self, count: int, without: set[int]) -> list[int]:
        final = self.final
        x = np.concatenate([final.q, final.v], axis=-1)
        alive = np.asarray(np.isfinite(x).all(axis=-1))
        if count <= 0 or not alive.any():
            return []
        low, middle, high = np.quantile(x[alive], [0.25, 0.5, 0.75], axis=0)
        far = np.abs(x - middle) / np.maximum(high - low, 1e-300)
        far = np.where(alive, np.where(high > low, far, 0.0).max(axis=-1), -1.0)
        order = np.argsort(-far, kind="stable")[: count + len(without)]
        return [int(i) for i in order if alive[i] and int(i) not in without][:count]

    def labels(self) -> dict[str, list[str]]:
        """The names of the coordinates of q and v.

        >>> import psiphi as pp
        >>> vary = {"v": {"uniform": [0.0, 1.0]}}
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
        >>> study.labels()
        {'q': ['shoulder', 'elbow'], 'v': ['shoulder', 'elbow']}
        """
        return coordinate_names(self.config.robot)

    def _numbers(self, value: int | Iterable[int]) -> np.ndarray:
        """Checked motion numbers."""
        values = value if is_list(value) else [value]
        numbers = np.array([whole_number("a motion's number", i) for i in values], dtype=object)
        if any(i >= self.config.motions for i in numbers):
            raise StateError(
                f"motion {max(numbers)} of {self.config.motions}", "numbers begin with 0"
            )
        return numbers.astype(np.int64)

    def __repr__(self) -> str:
        return (
            f"<Study {self.title!r}: {self.config.motions} motions in {os.fspath(self.folder)!r}>"
        )

    def __len__(self) -> int:
        return self.config.motions


def folder_path(out: str | os.PathLike[str]) -> Path:
    """The argument `out` as a path. Raises a StateError if it is not a valid folder name."""
    text = path_text("out", out, "a folder", 'pass out="name.study"')
    try:
        if text and b"\0" not in os.fsencode(text):
            return Path(text)
    except UnicodeEncodeError:  # a lone surrogate
        pass
    raise StateError(f"out is {shown(out)}, expected a folder", 'pass out="name.study"')
