"""Problems and starts, until all is solved or tried.

A start runs some steps, is dropped where it is solved or comes no nearer, and the next shelf of the library is asked for what
is left. What remains unsolved goes on, warily, from the best place it has seen: the nearest there is, or nearly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.apps.ik import ik_request
from psiphi.apps.ik.ik_tasks import Task
from psiphi.apps.ik.newton_loop import CompiledNewtonLoop
from psiphi.apps.ik.newton_step import NewtonStep
from psiphi.apps.ik.start_seeds import SeedTable
from psiphi.compiler.tape.tape import Tape
from psiphi.model.loops.cluster_joints import COMPOUND
from psiphi.robot.robot import Robot

CHUNK = 2048  # problems at a time: their numbers stay in the cache
STAGES = (7, 3, 4, 6, 10, 10)  # steps until it is looked which problems are solved
PROMISING = 0.02  # E after the first stage, so that a start goes on
GAIN = 0.2  # of E that a stage may leave, so that a start goes on
PATIENT = 0.9  # the same of the start that was asked for
LAST = (30, 20)  # steps of a wary round, rounds
SETTLING = (25, 12)  # steps, rounds of the way to the posture
ENDLESS = 1e30  # stands for no limit: nothing times it is no number
APART = 1e-3  # rad or m: distinct solutions are


class IKProblem:
    """Tasks of one robot, ready to be solved for any goals."""

    def __init__(
        self, robot: Robot, tasks: tuple[Task, ...], limits: bool, moving: bytes, pulled: bool
    ):
        self.robot = robot
        free, slides = np.frombuffer(moving, dtype=bool), ik_request.slides(robot)
        feeling = _felt(robot, tasks)
        felt = feeling & free
        length = max(
            (ik_request.size_of(robot, name) for task in tasks for name in task.frames), default=1.0
        )
        ease = np.where(felt | (free & pulled), np.where(slides, length**2, 1.0), 0.0)
        flat = zip(*(x.tolist() for x in robot.manifold.flat), strict=True)
        ends = (
            [(i, k, float(robot.lower[i]), float(robot.upper[i])) for i, k in flat]
            if limits
            else []
        )
        ends = [end for end in ends if np.isfinite(end[2:]).any() and free[end[1]]]
        self.within = tuple(
            (i, k, max(lower, -ENDLESS), min(upper, ENDLESS)) for i, k, lower, upper in ends
        )
        self.bounds = tuple(
            end for end in self.within if ease[end[1]] > 0.0
        )  # of those that are moved
        units = [
            j
            for j in robot.units
            if felt[j.v_slice].any() and (j.kind != COMPOUND or free[j.v_slice].all())
        ]
        self.where = np.array(
            [i for j in units for i in range(j.q_slice.start, j.q_slice.stop)], int
        )
        moved = [
            k
            for k, j in enumerate(robot.units)
            if j.kind == COMPOUND and (ease[j.v_slice] > 0.0).any()
        ]
        self.tasks = (
            (*tasks, Task("kept", "embedded loops", tie=(limits, tuple(moved)))) if moved else tasks
        )
        self.pursuit = CompiledNewtonLoop(
            NewtonStep(robot, self.tasks, tuple(ease.tolist()), self.bounds, pulled)
        )
        self.library = SeedTable(
            robot, tasks, self.where, self.inside(robot.neutral()), bool(free[feeling].all())
        )

    def inside(self, q: np.ndarray) -> np.ndarray:
        """q with its coordinates within their limits: those that may move, whether a task feels them or not."""
        q = np.array(q)
        for i, _, lower, upper in self.within:
            q[..., i] = np.clip(q[..., i], lower, upper)
        return q

    def starts(self, base: np.ndarray, goal: np.ndarray, number: int) -> np.ndarray:
        """(B, nq)."""
        q = np.array(base)
        if len(self.where):
            q[:, self.where] = self.library.start(goal, number)[:, self.where]
        return q


@lru_cache(maxsize=32)
def problem(*what: Any) -> IKProblem:
    return IKProblem(*what)


def _felt(robot: Robot, tasks: tuple[Task, ...]) -> np.ndarray:
    """(nv,): which coordinates the tasks feel, in whatever configuration: columns of J that are not written as zeros."""
    tape = Tape()
    q = np.array([tape.leaf("q", i) for i in range(robot.nq)], dtype=object)
    goals = [[tape.leaf("goal", i) for i in range(task.size)] for task in tasks]
    J = [
        row
        for task, goal in zip(tasks, goals, strict=True)
        for part in task.parts(robot, q, goal)
        for row in part.J
    ]
    return np.array(
        [any(not isinstance(row[k], float) or row[k] != 0.0 for row in J) for k in range(robot.nv)]
    )


class IKSolver:
    """Some problems under way: the best of each so far."""

    def __init__(
        self,
        problem: IKProblem,
        goal: np.ndarray,
        base: np.ndarray,
        posture: np.ndarray | None,
        tolerance: float,
    ):
        self.problem, self.goal, self.base, self.posture = problem, goal, base, posture
        self.tolerance, self.enough = tolerance, tolerance**2
        count = len(goal)
        self.q, self.energy, self.tries = (
            np.array(base),
            np.full(count, np.inf),
            np.zeros(count, dtype=int),
        )
        self.miss = np.full((count, problem.pursuit.descent.parts), np.inf)

    @property
    def solved(self) -> np.ndarray:
        return self._met(self.miss)

    def _met(self, miss: np.ndarray) -> np.ndarray:
        met = miss[:, 0] <= self.enough if miss.shape[1] else np.ones(len(miss), dtype=bool)
        for column in miss.T[1:]:
            met &= column <= self.enough
        return met

    def run(
        self, which: np.ndarray, q: np.ndarray, steps: int, wary: bool = False, held: Any = 0.0
    ) -> tuple:
        posture = None if self.posture is None else self.posture[which]
        return self.problem.pursuit.run(q, self.goal[which], steps, wary, posture, held)

    def start(
        self, which: np.ndarray, number: int, near: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Start `number` of these problems, CHUNK at a time; yields what was solved: which, and their q."""
        near = near and number == 0
        for k in range(0, len(which), CHUNK):
            some = which[k : k + CHUNK]
            q = (
                self.base[some]
                if near
                else self.problem.starts(self.base[some], self.goal[some], number)
            )
            yield from self._descend(some, q, near)

    def _descend(
        self, which: np.ndarray, q: np.ndarray, patient: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """From q (len(which), nq), as long as it gets better."""
        self.tries[which] += 1
        before = np.full(len(which), np.inf if patient else PROMISING / GAIN)
        for steps in STAGES:
            taken, ahead, energy, miss = self.run(which, q, steps)
            done = self._met(miss)
            going = ~done & (energy < (PATIENT if patient else GAIN) * before)
            self._keep(which, taken, energy, miss, ~going)
            if done.any():
                yield which[done], taken[done]
            if not going.any():
                return
            which, q, before = which[going], ahead[going], energy[going]
        self._keep(which, taken[going], energy[going], miss[going])

    def _keep(
        self,
        which: np.ndarray,
        q: np.ndarray,
        energy: np.ndarray,
        miss: np.ndarray,
        where: Any = True,
    ) -> None:
        """Those that are the best so far; the first solution stays."""
        better = (
            where & (self._met(miss) | (energy < self.energy[which])) & ~self._met(self.miss[which])
        )
        at = which[better]
        self.q[at], self.energy[at], self.miss[at] = q[better], energy[better], miss[better]

    def first(self, starts: int, near: bool) -> None:
        """One solution each."""
        self.first_of(np.arange(len(self.goal)), starts, near)

    def first_of(self, left: np.ndarray, starts: int, near: bool) -> None:
        """One solution of each of these."""
        for number in range(starts):
            deque(self.start(left, number, near), maxlen=0)
            left = left[~self.solved[left]]
            if not len(left):
                return
        self.nearest(left)

    def nearest(self, left: np.ndarray) -> None:
        """The best that was seen, made as good as it gets."""
        steps, rounds = LAST
        for _ in range(rounds):
            before = self.energy[left]
            q, _, energy, miss = self.run(left, self.q[left], steps, wary=True)
            self._keep(left, q, energy, miss)
            left = left[(self.energy[left] < before * (1.0 - 1e-9)) & ~self.solved[left]]
            if not len(left):
                return

    def settle(self) -> None:
        """Solutions as near to the posture as the steps find them."""
        m, (steps, rounds) = self.problem.robot.manifold, SETTLING
        left = np.flatnonzero(self.solved)
        if self.posture is None:
            return
        for _ in range(rounds):
            q, _, energy, miss = self.run(left, self.q[left], steps)
            old, new = (
                np.linalg.norm(m.log(x, self.posture[left]), axis=-1) for x in (self.q[left], q)
            )
            nearer = self._met(miss) & (new < old)
            at = left[nearer]
            self.q[at], self.energy[at], self.miss[at] = q[nearer], energy[nearer], miss[nearer]
            left = at[new[nearer] < old[nearer] * (1.0 - 1e-7) - 1e-12]
            if not len(left):
                return

    def every(self, starts: int, near: bool) -> list[np.ndarray]:
        """All distinct solutions that `starts` starts find, a list of them for each problem."""
        found: list[list[np.ndarray]] = [[] for _ in self.goal]
        each = np.arange(len(self.goal))
        for number in range(starts):
            for which, solutions in self.start(each, number, near):
                for k, solution in zip(which.tolist(), solutions, strict=True):
                    self._add(found[k], solution)
        self.nearest(each[~self.solved])
        return [np.array(some).reshape(-1, self.problem.robot.nq) for some in found]

    def _add(self, known: list[np.ndarray], q: np.ndarray) -> None:
        robot = self.problem.robot
        turns = ~ik_request.slides(robot)
        if known:
            apart = robot.manifold.log(np.array(known), np.broadcast_to(q, (len(known), robot.nq)))
            apart[:, turns] = np.abs((apart[:, turns] + np.pi) % (2.0 * np.pi) - np.pi)
            if (np.abs(apart).max(axis=1) < APART).any():
                return
        known.append(q)
