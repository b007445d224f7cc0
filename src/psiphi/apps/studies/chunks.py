"""Computes the motions of one chunk: final states, samples and failures, one row per motion.

A motion has diverged if its state is not finite or faster than 1e9. Its time is that of the first
such step, and its final state is NaN.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from psiphi.apps.studies.motion_inputs import (
    DIVERGED,
    LIMIT,
    NOT_SOLVED,
    SPEED,
    InputSampler,
    MotionInputs,
)
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.apps.studies.study_sensors import measurements
from psiphi.backends.cuda import driver_bindings
from psiphi.backends.cuda.dlpack import DeviceArray
from psiphi.model.components import joint_of_entry
from psiphi.simulation.rollout.rollout import rollout
from psiphi.simulation.simulate.events import is_finite_state
from psiphi.simulation.simulate.simulate import simulate
from psiphi.simulation.simulation_errors import MotionWarning
from psiphi.simulation.trajectory.trajectory import Trajectory

GPU_ANGLE_LIMIT = 9000.0  # rad: GPU and CPU results are bitwise equal up to 10 000
STATE_BUDGET = 1 << 22  # numbers in the states that are held at once when every step is checked


def simulate_every_step(config: StudyConfig, inputs: MotionInputs) -> Trajectory:
    """The motions of these inputs with every step, as `pp.simulate` records them."""
    return simulate(
        inputs.system,
        inputs.q,
        inputs.v,
        inputs.tau,
        compiled=True,
        duration=config.steps * config.dt,
        dt=config.dt,
        **config.options,
        contacts=inputs.ground or "hold",
    )


class Chunk:
    """Computes chunks of a study. It pickles in a few kB.

    With `use_gpus` the chunks run on the available GPUs in turn; results are bitwise equal to those
    of the CPU.
    """

    def __init__(self, config: StudyConfig, use_gpus: bool = False):
        self.config, self.use_gpus = config, use_gpus
        self.sampler: InputSampler | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"config": self.config, "use_gpus": self.use_gpus, "sampler": None}

    def run(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The stored rows of these motions, by the names of `zarr_store.py`."""
        self.sampler = self.sampler or InputSampler(self.config)
        return self._states(numbers) | self._measurements(numbers)

    def _measurements(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """What the sensors measure, of motions that are simulated with every step, in batches that
        fit STATE_BUDGET."""
        config = self.config
        assert self.sampler is not None
        out = {x.array: np.full((len(numbers), *x.shape), np.nan) for x in config.sensors}
        if not out:
            return out
        fault = self.sampler.motions(numbers).fault
        started = np.flatnonzero(fault == 0)
        numbers_of_state = config.robot.nq + 3 * config.robot.nv
        size = max(1, STATE_BUDGET // ((config.steps + 1) * numbers_of_state))
        for i in range(0, len(started), size):
            rows = started[i : i + size]
            inputs = self.sampler.motions(numbers[rows])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MotionWarning)
                motion = simulate_every_step(config, inputs)
            with np.errstate(all="ignore"):
                found = measurements(config.sensors, motion, numbers[rows], config.seed)
            for name, values in found.items():
                out[name][rows] = values
        return out

    def _states(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The rows of the states and failures."""
        config = self.config
        assert self.sampler is not None
        if config.fail_limits or config.fail_speed < np.inf:
            return self._run_every_step(numbers)
        motions = self.sampler.motions(numbers)
        q, v, residual = self._rollout(motions, config.every or config.steps, numbers)
        rows = self._rows(q, v)
        failed = ~is_finite_state(q[:, -1], v[:, -1]) | self._not_solved(residual).any(axis=-1)
        lost = np.flatnonzero(failed | (motions.fault > 0))
        if len(lost):  # run these again and check every step, to find the time
            again = self._run_every_step(numbers[lost])
            for name in ("cause", "joint", "time", "final_q", "final_v"):
                rows[name][lost] = again[name]
        return rows

    def _run_every_step(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Rows of these motions with every step checked, in batches that fit STATE_BUDGET."""
        config = self.config
        size = max(1, STATE_BUDGET // ((config.steps + 1) * (config.robot.nq + config.robot.nv)))
        parts = [
            self._check_every_step(numbers[i : i + size]) for i in range(0, len(numbers), size)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _check_every_step(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Rows of one batch, with every step checked."""
        config = self.config
        assert self.sampler is not None
        motions = self.sampler.motions(numbers)
        q, v, residual = self._rollout(motions, 1, numbers)
        with np.errstate(invalid="ignore"):
            faults: list[tuple[int, Any, Any]] = [(DIVERGED, ~is_finite_state(q, v), np.abs(v))]
            faults.append((NOT_SOLVED, self._not_solved(residual), np.abs(v)))
            if config.fail_limits:
                lower, upper = config.robot.lower, config.robot.upper
                outside = (q < lower) | (q > upper)
                faults.append((LIMIT, outside.any(axis=-1), outside))
            if config.fail_speed < np.inf:
                faults.append((SPEED, (np.abs(v) > config.fail_speed).any(axis=-1), np.abs(v)))
        step = config.every or config.steps
        rows = self._rows(q[:, ::step], v[:, ::step])
        first = np.full(len(numbers), config.steps + 1)
        for cause, bad, size in faults:
            when = np.where(bad.any(axis=1), bad.argmax(axis=1), config.steps + 1)
            for i in np.flatnonzero(when < first):
                rows["cause"][i], first[i] = cause, when[i]
                of_joint = cause in (LIMIT, SPEED)
                rows["joint"][i] = self._joint(size[i, when[i]], cause) if of_joint else -1
        rows["time"] = np.where(rows["cause"] > 0, first * config.dt, np.nan)
        unstarted = motions.fault > 0
        rows["cause"][unstarted] = motions.fault[unstarted]
        rows["time"][unstarted], rows["joint"][unstarted] = 0.0, -1
        no_end = (rows["cause"] == DIVERGED) | unstarted
        rows["final_q"][no_end], rows["final_v"][no_end] = np.nan, np.nan
        return rows

    def _joint(self, row: np.ndarray, cause: int) -> int:
        """The index of the joint whose coordinate has the largest entry of `row`."""
        return joint_of_entry(
            self.config.robot.joints, int(np.argmax(row)), "q" if cause == LIMIT else "v"
        ).index

    def _not_solved(self, residual: np.ndarray) -> np.ndarray:
        """Where the contacts of a step violate their law by more than the ground tolerates."""
        ground = self.config.ground
        return residual > (np.inf if ground is None else ground.tolerance)

    def _rollout(
        self, motions: MotionInputs, every: int, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, and by how much (n, samples) the steps violate the laws of contact."""
        config, gpus = self.config, driver_bindings.count_gpus() if self.use_gpus else 0
        options = {"steps": config.steps, "dt": config.dt, "every": every, **config.options}
        options["contacts"] = motions.ground
        if not gpus:
            start = motions.system, motions.q, motions.v, motions.tau
            with np.errstate(all="ignore"):
                states = rollout(*start, **options)
            if states.contact_residual is None:
                return states.q, states.v, np.zeros(states.q.shape[:2])
            return states.q, states.v, states.contact_residual
        gpu = int(numbers[0]) // config.chunk % gpus
        q0: Any = DeviceArray.of(motions.q, gpu)
        v0: Any = DeviceArray.of(motions.v, gpu)
        result: Any = rollout(motions.system, q0, v0, motions.tau, **options)
        q, v = (x.host() for x in result)
        residual = np.zeros(q.shape[:2])
        if result.contact_residual is not None:
            residual = result.contact_residual.host()
        far = numbers[~(np.abs(q) < GPU_ANGLE_LIMIT).all(axis=(1, 2))]
        # beyond the limit the CPU takes sines from the C library: compute these on the CPU
        if len(far) and self.sampler is not None:
            again = Chunk(config)._rollout(self.sampler.motions(far), every, far)
            where = np.isin(numbers, far)
            q[where], v[where], residual[where] = again
        return q, v, residual

    def _rows(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        count = len(q)
        rows = {
            "final_q": q[:, -1].copy(),
            "final_v": v[:, -1].copy(),
            "cause": np.zeros(count, np.uint8),
        }
        rows |= {"joint": np.full(count, -1, np.int32), "time": np.full(count, np.nan)}
        return rows | ({"q": q, "v": v} if self.config.every else {})
