"""The motions of one chunk, computed: final states, samples, and failures, each a row.

A motion that diverged has the time of the first step whose state is not finite or faster than 1e9, and NaN as its final state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.apps.studies.motion_inputs import DIVERGED, LIMIT, SPEED, InputSampler, MotionInputs
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.backends.cuda import cuda_driver
from psiphi.backends.cuda.dlpack import DeviceArray
from psiphi.model.components import joint_of_entry
from psiphi.simulation.rollout.rollout import rollout
from psiphi.simulation.simulate.events import is_finite_state

FAR = 9000.0  # rad: up to 10 000 the bits of cards are the host's
MEMORY = 1 << 22  # numbers of states that are looked at together


class Chunk:
    """One study's chunks; it pickles in some kB, and works wherever psiphi is. With `cards` motions run on graphics cards where
    there are some, a chunk on each in turn: what comes back are the host's bits."""

    def __init__(self, asked: StudyConfig, cards: bool = False):
        self.asked, self.cards = asked, cards
        self.starter: InputSampler | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"asked": self.asked, "cards": self.cards, "starter": None}

    def run(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """All that is kept of these motions, by the names of `zarr_store.py`."""
        asked = self.asked
        self.starter = self.starter or InputSampler(asked)
        if asked.fail_limits or asked.fail_speed < np.inf:
            return self._watched(numbers)
        starts = self.starter.starts(numbers)
        q, v = self._rolled(starts, asked.every or asked.steps, numbers)
        rows = self._rows(q, v)
        lost = np.flatnonzero(~is_finite_state(q[:, -1], v[:, -1]) | (starts.fault > 0))
        if len(lost):  # again, every step: when was it?
            again = self._watched(numbers[lost])
            for name in ("cause", "joint", "time", "final_q", "final_v"):
                rows[name][lost] = again[name]
        return rows

    def _watched(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The same, looking at every step, of as many motions at a time as MEMORY has room for."""
        asked = self.asked
        size = max(1, MEMORY // ((asked.steps + 1) * (asked.robot.nq + asked.robot.nv)))
        parts = [self._seen(numbers[i : i + size]) for i in range(0, len(numbers), size)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _seen(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """These together."""
        asked = self.asked
        assert self.starter is not None
        starts = self.starter.starts(numbers)
        q, v = self._rolled(starts, 1, numbers)
        with np.errstate(invalid="ignore"):
            faults: list[tuple[int, Any, Any]] = [(DIVERGED, ~is_finite_state(q, v), np.abs(v))]
            if asked.fail_limits:
                lower, upper = asked.robot.lower, asked.robot.upper
                outside = (q < lower) | (q > upper)
                faults.append((LIMIT, outside.any(axis=-1), outside))
            if asked.fail_speed < np.inf:
                faults.append((SPEED, (np.abs(v) > asked.fail_speed).any(axis=-1), np.abs(v)))
        step = asked.every or asked.steps
        rows = self._rows(q[:, ::step], v[:, ::step])
        first = np.full(len(numbers), asked.steps + 1)
        for cause, bad, why in faults:
            when = np.where(bad.any(axis=1), bad.argmax(axis=1), asked.steps + 1)
            for i in np.flatnonzero(when < first):
                rows["cause"][i], first[i] = cause, when[i]
                rows["joint"][i] = -1 if cause == DIVERGED else self._joint(why[i, when[i]], cause)
        rows["time"] = np.where(rows["cause"] > 0, first * asked.dt, np.nan)
        never = starts.fault > 0
        rows["cause"][never], rows["time"][never], rows["joint"][never] = (
            starts.fault[never],
            0.0,
            -1,
        )
        gone = (rows["cause"] == DIVERGED) | never
        rows["final_q"][gone], rows["final_v"][gone] = np.nan, np.nan
        return rows

    def _joint(self, row: np.ndarray, cause: int) -> int:
        """The joint whose coordinate is the most to blame."""
        return joint_of_entry(
            self.asked.robot.joints, int(np.argmax(row)), "q" if cause == LIMIT else "v"
        ).index

    def _rolled(
        self, starts: MotionInputs, every: int, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        asked, cards = self.asked, cuda_driver.count_gpus() if self.cards else 0
        options = {"steps": asked.steps, "dt": asked.dt, "every": every, **asked.options}
        if not cards:
            with np.errstate(all="ignore"):
                return rollout(starts.system, starts.q, starts.v, starts.tau, **options)
        turn = int(numbers[0]) // asked.chunk % cards
        there: Any = rollout(
            starts.system,
            DeviceArray.of(starts.q, turn),
            DeviceArray.of(starts.v, turn),
            starts.tau,
            **options,
        )
        q, v = (x.host() for x in there)
        far = numbers[~(np.abs(q) < FAR).all(axis=(1, 2))]
        if (
            len(far) and self.starter is not None
        ):  # angles whose sines the host takes from the C library, or none at all
            again = Chunk(asked)._rolled(self.starter.starts(far), every, far)
            where = np.isin(numbers, far)
            q[where], v[where] = again
        return q, v

    def _rows(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        count = len(q)
        rows = {
            "final_q": q[:, -1].copy(),
            "final_v": v[:, -1].copy(),
            "cause": np.zeros(count, np.uint8),
        }
        rows |= {"joint": np.full(count, -1, np.int32), "time": np.full(count, np.nan)}
        return rows | ({"q": q, "v": v} if self.asked.every else {})
