"""Problems of inverse kinematics and their solver, which tries starts until all are solved.

A start runs a few steps at a time and ends when it is solved or makes too little progress. The next
start takes the problems that are left. Problems without a solution then continue from their best
configuration with monotone steps, which end close to the nearest configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from psiphi.apps.ik import ik_request
from psiphi.apps.ik.ik_tasks import Task
from psiphi.apps.ik.newton_loop import CompiledNewtonLoop
from psiphi.apps.ik.newton_step import NewtonStep
from psiphi.apps.ik.start_seeds import SeedTable
from psiphi.compiler.tape.tape import Tape
from psiphi.model.loops.cluster_joints import COMPOUND
from psiphi.robot.robot import Robot

CHUNK = 2048  # problems at a time: their arrays fit in the cache
STAGES = (7, 3, 4, 6, 10, 10)  # steps of a start between two checks
PROMISING = 0.02  # a start continues if E is below this after the first stage,
GAIN = 0.2  # and if each later stage reduces E to this share
PATIENT_GAIN = 0.9  # the same for the start at `near`
REFINE = (30, 20)  # steps of a monotone round, rounds
POSTURE_ROUNDS = (25, 12)  # steps of a round towards the posture, rounds
NO_LIMIT = 1e30  # stands for infinity: 0 times infinity is NaN
DISTINCT = 1e-3  # rad or m: least distance of two distinct solutions


class IKProblem:
    """Tasks of one robot, compiled for any goals."""

    def __init__(
        self,
        robot: Robot,
        tasks: tuple[Task, ...],
        limits: bool,
        moving: bytes,
        has_posture: bool,
    ):
        self.robot = robot
        free, slides = np.frombuffer(moving, dtype=bool), ik_request.translational(robot)
        relevant = _task_coordinates(robot, tasks)
        used = relevant & free
        frames = [name for task in tasks for name in task.frames]
        length = max((ik_request.length_scale(robot, name) for name in frames), default=1.0)
        mobility = np.where(used | (free & has_posture), np.where(slides, length**2, 1.0), 0.0)
        flat = zip(*(x.tolist() for x in robot.manifold.flat), strict=True)
        ends = [
            (i, k, float(robot.lower[i]), float(robot.upper[i]))
            for i, k in (flat if limits else ())
        ]
        self.limits = tuple(
            (i, k, max(lower, -NO_LIMIT), min(upper, NO_LIMIT))
            for i, k, lower, upper in ends
            if np.isfinite([lower, upper]).any() and free[k]
        )
        bounds = tuple(end for end in self.limits if mobility[end[1]] > 0.0)
        seeded = [
            joint
            for joint in robot.units
            if used[joint.v_slice].any() and (joint.kind != COMPOUND or free[joint.v_slice].all())
        ]
        index = [i for joint in seeded for i in range(joint.q_slice.start, joint.q_slice.stop)]
        self.seed_index = np.array(index, int)
        loops = tuple(
            k
            for k, joint in enumerate(robot.units)
            if joint.kind == COMPOUND and (mobility[joint.v_slice] > 0.0).any()
        )
        embedded = Task("embedded", "embedded loops", constraint=(limits, loops))
        self.tasks = (*tasks, embedded) if loops else tasks
        step = NewtonStep(robot, self.tasks, tuple(mobility.tolist()), bounds, has_posture)
        self.newton_loop = CompiledNewtonLoop(step)
        base = self.clip_to_limits(robot.neutral())
        ranked = bool(free[relevant].all())
        self.seed_table = SeedTable(robot, tasks, self.seed_index, base, ranked)

    def clip_to_limits(self, q: np.ndarray) -> np.ndarray:
        """q with all coordinates that may move within their limits."""
        q = np.array(q)
        for i, _, lower, upper in self.limits:
            q[..., i] = np.clip(q[..., i], lower, upper)
        return q

    def starts(self, base: np.ndarray, goal: np.ndarray, number: int) -> np.ndarray:
        """(B, nq): start `number` of each problem."""
        q = np.array(base)
        if len(self.seed_index):
            q[:, self.seed_index] = self.seed_table.start(goal, number)[:, self.seed_index]
        return q


@lru_cache(maxsize=32)
def cached_problem(
    robot: Robot, tasks: tuple[Task, ...], limits: bool, moving: bytes, has_posture: bool
) -> IKProblem:
    """The problem of these tasks; `moving` is the mask of the coordinates (nv,) as bytes."""
    return IKProblem(robot, tasks, limits, moving, has_posture)


def _task_coordinates(robot: Robot, tasks: tuple[Task, ...]) -> np.ndarray:
    """(nv,): whether any task depends on a coordinate: its column of J is not structurally zero."""
    tape = Tape()
    q = np.array([tape.leaf("q", i) for i in range(robot.nq)], dtype=object)
    goals = [[tape.leaf("goal", i) for i in range(task.size)] for task in tasks]
    J = [
        row
        for task, goal in zip(tasks, goals, strict=True)
        for residual in task.residuals(robot, q, goal)
        for row in residual.J
    ]
    return np.array(
        [any(not isinstance(row[k], float) or row[k] != 0.0 for row in J) for k in range(robot.nv)]
    )


class IKSolver:
    """A batch of problems, with the best configuration of each so far."""

    def __init__(
        self,
        problem: IKProblem,
        goal: np.ndarray,
        base: np.ndarray,
        posture: np.ndarray | None,
        tolerance: float,
    ):
        self.problem, self.goal, self.base, self.posture = problem, goal, base, posture
        self.tolerance, self.squared_tolerance = tolerance, tolerance**2
        count = len(goal)
        self.q, self.energy = np.array(base), np.full(count, np.inf)
        self.tries = np.zeros(count, dtype=int)
        self.squared_errors = np.full((count, problem.newton_loop.step.residual_count), np.inf)

    @property
    def solved(self) -> np.ndarray:
        """(B,): whether every residual is within the tolerance."""
        return self._within_tolerance(self.squared_errors)

    def _within_tolerance(self, squared_errors: np.ndarray) -> np.ndarray:
        if not squared_errors.shape[1]:
            return np.ones(len(squared_errors), dtype=bool)
        within = squared_errors[:, 0] <= self.squared_tolerance
        for column in squared_errors.T[1:]:
            within &= column <= self.squared_tolerance
        return within

    def run(
        self,
        which: np.ndarray,
        q: np.ndarray,
        steps: int,
        monotone: bool = False,
        extra_damping: np.ndarray | float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Steps of the problems `which` from q; see `CompiledNewtonLoop.run`."""
        posture = None if self.posture is None else self.posture[which]
        loop = self.problem.newton_loop
        return loop.run(q, self.goal[which], steps, monotone, posture, extra_damping)

    def start(
        self, which: np.ndarray, number: int, from_base: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Run start `number` of these problems, CHUNK at a time; yields solved ones and their q.

        If `from_base`, start 0 is the base configuration.
        """
        from_base = from_base and number == 0
        for k in range(0, len(which), CHUNK):
            chunk = which[k : k + CHUNK]
            q = self.base[chunk]
            if not from_base:
                q = self.problem.starts(q, self.goal[chunk], number)
            yield from self._descend(chunk, q, from_base)

    def _descend(
        self, which: np.ndarray, q: np.ndarray, patient: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Run stages from q (len(which), nq) as long as E decreases enough."""
        self.tries[which] += 1
        before = np.full(len(which), np.inf if patient else PROMISING / GAIN)
        for number, steps in enumerate(STAGES, 1):
            accepted, following, energy, squared_errors = self.run(which, q, steps)
            done = self._within_tolerance(squared_errors)
            active = ~done & (energy < (PATIENT_GAIN if patient else GAIN) * before)
            stops = ~active if number < len(STAGES) else np.ones(len(which), dtype=bool)
            self._record(which, accepted, energy, squared_errors, stops)
            if done.any():
                yield which[done], accepted[done]
            if not active.any():
                return
            which, q, before = which[active], following[active], energy[active]

    def _record(
        self,
        which: np.ndarray,
        q: np.ndarray,
        energy: np.ndarray,
        squared_errors: np.ndarray,
        mask: np.ndarray | bool = True,
    ) -> None:
        """Keep configurations that are the best so far; the first solution of a problem stays."""
        better = self._within_tolerance(squared_errors) | (energy < self.energy[which])
        better = mask & better & ~self._within_tolerance(self.squared_errors[which])
        self._set(which[better], q[better], energy[better], squared_errors[better])

    def _set(
        self, which: np.ndarray, q: np.ndarray, energy: np.ndarray, squared_errors: np.ndarray
    ) -> None:
        self.q[which], self.energy[which], self.squared_errors[which] = q, energy, squared_errors

    def solve(self, starts: int, from_base: bool) -> None:
        """Find one solution of each problem."""
        self.solve_some(np.arange(len(self.goal)), starts, from_base)

    def solve_some(self, left: np.ndarray, starts: int, from_base: bool) -> None:
        """Find one solution of each of these problems."""
        for number in range(starts):
            deque(self.start(left, number, from_base), maxlen=0)
            left = left[~self.solved[left]]
            if not len(left):
                return
        self.refine(left)

    def refine(self, left: np.ndarray) -> None:
        """Improve the best configuration of these problems by monotone steps."""
        steps, rounds = REFINE
        for _ in range(rounds):
            before = self.energy[left]
            q, _, energy, squared_errors = self.run(left, self.q[left], steps, monotone=True)
            self._record(left, q, energy, squared_errors)
            left = left[(self.energy[left] < before * (1.0 - 1e-9)) & ~self.solved[left]]
            if not len(left):
                return

    def approach_posture(self) -> None:
        """Move solutions as close to the posture as further steps bring them."""
        if self.posture is None:
            return
        m, (steps, rounds) = self.problem.robot.manifold, POSTURE_ROUNDS
        left = np.flatnonzero(self.solved)
        for _ in range(rounds):
            q, _, energy, squared_errors = self.run(left, self.q[left], steps)
            old, new = (
                np.linalg.norm(m.log(x, self.posture[left]), axis=-1) for x in (self.q[left], q)
            )
            nearer = self._within_tolerance(squared_errors) & (new < old)
            left = left[nearer]
            self._set(left, q[nearer], energy[nearer], squared_errors[nearer])
            left = left[new[nearer] < old[nearer] * (1.0 - 1e-7) - 1e-12]
            if not len(left):
                return

    def find_all(self, starts: int, from_base: bool) -> list[np.ndarray]:
        """All distinct solutions that `starts` starts find, (solutions, nq) for each problem."""
        found: list[list[np.ndarray]] = [[] for _ in self.goal]
        problems = np.arange(len(self.goal))
        for number in range(starts):
            for which, solutions in self.start(problems, number, from_base):
                for k, solution in zip(which.tolist(), solutions, strict=True):
                    self._add_distinct(found[k], solution)
        self.refine(problems[~self.solved])
        return [np.array(solutions).reshape(-1, self.problem.robot.nq) for solutions in found]

    def _add_distinct(self, known: list[np.ndarray], q: np.ndarray) -> None:
        """Append q unless it is close to a known solution, angles modulo 2 pi."""
        robot = self.problem.robot
        angles = ~ik_request.translational(robot)
        if known:
            gap = robot.manifold.log(np.array(known), np.broadcast_to(q, (len(known), robot.nq)))
            gap[:, angles] = np.abs((gap[:, angles] + np.pi) % (2.0 * np.pi) - np.pi)
            if (np.abs(gap).max(axis=1) < DISTINCT).any():
                return
        known.append(q)
