"""What `pp.study` gives: final states, samples, failures, quantiles, and every motion again by its number."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.text import count_of, shown
from psiphi._util.validate import flag, is_list, read_array, whole_number
from psiphi._util.validate import path as path_text
from psiphi.apps.studies.motion_inputs import CAUSES, InputSampler
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.apps.studies.zarr_store import StudyStore
from psiphi.simulation.simulate.simulate import simulate
from psiphi.simulation.simulation_errors import MotionWarning
from psiphi.simulation.trajectory.trajectory import Trajectory
from psiphi.simulation.trajectory.trajectory_tables import coordinate_names


class States(NamedTuple):
    """q (..., nq), v (..., nv); t, where there are several of a motion."""

    q: np.ndarray
    v: np.ndarray
    t: np.ndarray | None = None


class StudyFailure(NamedTuple):
    """A motion that failed: its number, why, of which joint, and when."""

    motion: int
    cause: str
    joint: str
    time: float


@with_late_methods
class Study:
    """A finished study, in its folder."""

    def __init__(self, asked: StudyConfig, kept: StudyStore, own_folder: Any = None):
        self.asked, self.kept, self._folder = asked, kept, own_folder

    @property
    def title(self) -> str:
        return self.asked.title

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.kept.folder

    @property
    def motions(self) -> int:
        """How many motions it has."""
        return self.asked.motions

    @property
    def final(self) -> States:
        """q (motions, nq), v (motions, nv) at the end; NaN where a motion diverged."""
        return States(self.kept.read("final_q"), self.kept.read("final_v"))

    @property
    def samples(self) -> States:
        """q (motions, samples, nq), v, and their times t, where `keep` asked for them: arrays of Zarr, read where sliced."""
        if not self.asked.every:
            raise StateError("this study kept no samples", "ask for them: [keep] every = 10")
        self.kept.check_finished()
        t = self.asked.every * self.asked.dt * np.arange(self.asked.samples)
        return States(self.kept.group["q"], self.kept.group["v"], t)

    @property
    def failures(self) -> list[StudyFailure]:
        """The motions that failed, in order."""
        cause, joint, time = (self.kept.read(name) for name in ("cause", "joint", "time"))
        names = [j.name for j in self.asked.robot.joints]
        each = np.flatnonzero(cause)
        return [
            StudyFailure(
                int(i), CAUSES[cause[i]], names[joint[i]] if joint[i] >= 0 else "", float(time[i])
            )
            for i in each
        ]

    def quantiles(self, levels: Any = None) -> States:
        """Of the final states that there are: q (levels, nq), v (levels, nv); the study's own levels when none are given.

        >>> import psiphi as pp
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
        >>> study.quantiles([0.25, 0.75]).v.shape
        (2, 2)
        """
        wanted, fault = read_array(self.asked.quantiles if levels is None else levels, None)
        if fault or wanted.ndim > 1 or not ((wanted >= 0.0) & (wanted <= 1.0)).all():
            raise StateError(
                f"levels is {shown(levels)}, expected numbers from 0 to 1", "give [0.05, 0.5, 0.95]"
            )
        final = self.final
        alive = np.isfinite(final.q).all(axis=-1)
        if not alive.any():
            raise StateError("no motion has a final state: all diverged", "look at .failures")
        return States(*(np.quantile(x[alive], wanted, axis=0) for x in (final.q, final.v)))

    def drawn(self, numbers: Any) -> dict[str, np.ndarray]:
        """What varied, as it was drawn for these motions: by "word:name:coordinate".

        >>> import psiphi as pp
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
        >>> list(study.drawn(range(4)))
        ['v:shoulder:0', 'v:elbow:0']
        """
        return InputSampler(self.asked).drawn(self._numbers(numbers))

    def motion(self, i: int, quiet: bool = False) -> Trajectory:
        """Motion i again, alone: the same numbers to the last bit, with every step; `quiet`: no warning where it diverges.

        >>> import psiphi as pp
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
        >>> motion = study.motion(3)
        >>> len(motion), bool((motion.final.q == study.final.q[3]).all())
        (11, True)
        """
        asked = self.asked
        starts = InputSampler(asked).alone(int(self._numbers([i])[0]))
        if starts.fault:
            raise StateError(
                f"motion {i} has {CAUSES[int(starts.fault)]}", "look at study.drawn([i])"
            )
        time = {"duration": asked.steps * asked.dt, "dt": asked.dt}
        with warnings.catch_warnings():
            if flag("quiet", quiet):
                warnings.simplefilter("ignore", MotionWarning)
            return simulate(
                starts.system,
                starts.q,
                starts.v,
                starts.tau,
                compiled=True,
                **time,
                **asked.options,
            )

    if TYPE_CHECKING:  # implemented in a later module

        def report(self, path: str | os.PathLike[str], worst: int = 5) -> Path: ...

    def summary(self) -> str:
        """How many motions there are, and how they ended, in a sentence.

        >>> import psiphi as pp
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
        >>> study.summary()
        'acrobot: 4 motions; none failed'
        """
        failed = self.failures
        many = Counter(failure.cause for failure in failed)
        told = ", ".join(f"{n} {cause}" for cause, n in many.most_common()) or "none failed"
        return f"{self.title}: {count_of(self.motions, 'motion')}; {told}"

    def worst(self, count: int = 5) -> list[int]:
        """Motions to look at: failures first, by time, then those whose end lies farthest out, in quartile distances.

        >>> import psiphi as pp
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
        >>> len(study.worst(2))
        2
        """
        count, failed = whole_number("count", count), self.failures
        early = [
            failure.motion for failure in sorted(failed, key=lambda x: (x.time, x.motion))[:count]
        ]
        return [*early, *self._outer(count - len(early), {failure.motion for failure in failed})]

    def _outer(self, count: int, without: set[int]) -> list[int]:
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
        >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
        >>> study.labels()
        {'q': ['shoulder', 'elbow'], 'v': ['shoulder', 'elbow']}
        """
        return coordinate_names(self.asked.robot)

    def _numbers(self, given: Any) -> np.ndarray:
        each = given if is_list(given) else [given]
        numbers = np.array([whole_number("a motion's number", i) for i in each], dtype=object)
        if any(i >= self.asked.motions for i in numbers):
            raise StateError(
                f"motion {max(numbers)} of {self.asked.motions}", "they are numbered from 0"
            )
        return numbers.astype(np.int64)

    def __repr__(self) -> str:
        return f"<Study {self.title!r}: {self.asked.motions} motions in {os.fspath(self.folder)!r}>"

    def __len__(self) -> int:
        return self.asked.motions


def a_folder(out: Any) -> Path:
    """The folder of a study."""
    text = path_text("out", out, "a folder", 'give out="name.study"')
    try:
        if text and b"\0" not in os.fsencode(text):
            return Path(text)
    except UnicodeEncodeError:  # half a character
        pass
    raise StateError(f"out is {shown(out)}, expected a folder", 'give out="name.study"')
