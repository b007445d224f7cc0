"""One damped Newton step towards all tasks, on any scalars.

    d = d0 + R J* (J R J* + l I)^-1 (e - J d0)      min |J d - e|^2 + l |d - d0|^2 weighted by R^-1

e and J are the rows of all tasks, scaled by the roots of their weights; E = |e|^2 / 2. The damping
l is proportional to E: steps are short far from the solution and Newton's close to it (Sugihara
2011). R is the mobility of the coordinates: 0 for those that may not move, and for those at a limit
that the step would violate (Bertsekas 1982). d0 points to a posture; it acts in the freedom that
the tasks leave.

With R = (damping)^-1 this is the forward dynamics of a massless arm with inertias at its tips
(rotor inertia l / R, forces e). With few rows and many joints, the form above, in the space of the
rows, costs less.

Tasks of several levels are solved in order, level by level: J' = J N and
d = d + R J'* (J' R J'* + l I)^-1 (e - J d), N the projector on the null space of the levels before.
Coordinates at a limit that d would violate are then fixed, and d is computed again.

`caution` holds two numbers: 1 for monotone steps or 0, and damping that is added to all levels but
the first. A monotone step that does not reduce E is rejected, and 0.3 of it is tried. Monotone
steps converge more slowly, but where there is no solution they end at the nearest configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.apps.ik.ik_tasks import Task
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import away_from_bound, choose, less, maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import dot, square_root
from psiphi.model.spatial.small_matrices import apply, factor, solve, transpose
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Values

DAMPING, LEAST_DAMPING = 0.1, 1e-10  # damping l = DAMPING E + LEAST_DAMPING
LONGEST = 1.5  # rad: the longest step, all coordinates together
LONGEST_OF_LOOPS = 0.4  # the same where embedded loops are closed after every step
BACKTRACK = 0.3  # length of a step after a rejected one
POSTURE_GAIN = 0.5  # part of the way to the posture in one step
RANK = 1000  # ratio of the weights of successive levels in E of a monotone step
HUGE = 1e300


@dataclass(frozen=True)
class NewtonStep:
    """The tasks of one robot, with bounds and mobilities of its coordinates."""

    robot: Robot
    tasks: tuple[Task, ...]
    mobility: tuple[float, ...]  # (nv,): R away from limits; 0: fixed
    bounds: tuple[tuple[int, int, float, float], ...]  # (index in q, index in v, lower, upper)
    has_posture: bool

    @property
    def moves_loops(self) -> bool:
        """Whether embedded loops move."""
        return any(task.kind == "embedded" for task in self.tasks)

    @property
    def residual_count(self) -> int:
        return sum(len(task.units) for task in self.tasks)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the arguments of `evaluate`."""
        nq, nv = self.robot.nq, self.robot.nv
        sizes = {"Q": nq, "B": nq, "D": nv, "E": 1, "squared_errors": self.residual_count}
        sizes |= {"goal": sum(task.size for task in self.tasks), "caution": 2}
        return sizes | ({"posture": nq} if self.has_posture else {})

    def rows(self, Q: np.ndarray, goal: np.ndarray) -> tuple[list, list, list, list[int]]:
        """Weighted e and J of all tasks, the squared error of each residual, levels of the rows."""
        e, J, squared_errors, levels, numbers = [], [], [], [], entries(goal)
        for task in self.tasks:
            task_goal, numbers = numbers[: task.size], numbers[task.size :]
            for residual in task.residuals(self.robot, Q, task_goal):
                weight = float(np.sqrt(task.weight(residual.unit)))
                e += [weight * x for x in residual.error]
                J += [[weight * x for x in row] for row in residual.J]
                squared_errors.append(dot(residual.error, residual.error))
                levels += [task.level] * len(residual.error)
        return e, J, squared_errors, levels

    def begin(self, q: np.ndarray) -> Values:
        """The state at q before the first evaluation: any configuration is better."""
        return {
            "Q": q,
            "B": q,
            "D": np.zeros(self.robot.nv),
            "E": np.full(1, HUGE),
            "squared_errors": np.full(self.residual_count, HUGE),
        }

    def evaluate(
        self,
        Q: np.ndarray,
        B: np.ndarray,
        D: np.ndarray,
        E: np.ndarray,
        squared_errors: np.ndarray,
        goal: np.ndarray,
        caution: np.ndarray,
        posture: np.ndarray | None = None,
    ) -> Values:
        """Accept or reject Q, and find the next step D.

        B is the last accepted configuration; E and `squared_errors` are those at B.
        """
        e, J, squared, levels = self.rows(Q, goal)
        last = max(levels, default=0)
        ranked = [float(RANK ** (last - level)) * x for level, x in zip(levels, e, strict=True)]
        energy = 0.5 * dot(e, ranked)
        accepted = 1.0 - caution[0] * (1.0 - less(energy, E[0]))
        d = self._step(self.robot.manifold, Q, e, J, levels, caution[1], posture)
        return {
            "B": choose(accepted, Q, B),
            "D": choose(accepted, np.array(d), BACKTRACK * D),
            "E": choose(accepted, np.array([energy]), E),
            "squared_errors": choose(accepted, np.array(squared), squared_errors),
        }

    def advance(self, B: np.ndarray, D: np.ndarray) -> Values:
        """The next configuration to evaluate: B moved by D, within the limits."""
        m = self.robot.manifold
        q = m.unit(m.exp(B, D)).copy()
        for i, _, lower, upper in self.bounds:
            q[i] = minimum(maximum(q[i], lower), upper)
        return {"Q": q}

    def _step(
        self,
        m: Manifold,
        Q: np.ndarray,
        e: list,
        J: list,
        levels: list[int],
        extra_damping: AnyScalar,
        posture: np.ndarray | None,
    ) -> list:
        """d, no longer than LONGEST."""
        if len(set(levels)) > 1:
            d = self._step_within_limits(m, Q, e, J, levels, extra_damping, posture)
        else:
            free = self._free(Q, apply(transpose(J), e))
            R, d0 = self._mobility_and_start(m, Q, free, posture)
            d = self._step_by_levels(e, J, levels, extra_damping, R, d0)
        return self._shortened(d)

    def _step_within_limits(
        self,
        m: Manifold,
        Q: np.ndarray,
        e: list,
        J: list,
        levels: list[int],
        extra_damping: AnyScalar,
        posture: np.ndarray | None,
    ) -> list:
        """d of several levels, three times: each time fixing coordinates that violate a limit."""
        free: list = [float(r > 0.0) for r in self.mobility]
        d: list = []
        for repeated in range(3):
            if repeated:
                free = [f * g for f, g in zip(free, self._free(Q, d), strict=True)]
            R, d0 = self._mobility_and_start(m, Q, free, posture)
            d = self._step_by_levels(e, J, levels, extra_damping, R, d0)
        return d

    def _mobility_and_start(
        self, m: Manifold, Q: np.ndarray, free: list, posture: np.ndarray | None
    ) -> tuple[list, list]:
        """R of the free coordinates, and d0."""
        R = [f * r for f, r in zip(free, self.mobility, strict=True)]
        if posture is None:
            return R, [0.0] * len(free)
        towards = entries(m.log(Q, posture))
        return R, [POSTURE_GAIN * f * x for f, x in zip(free, towards, strict=True)]

    def _shortened(self, d: list) -> list:
        """d, or a shorter step in its direction."""
        squares = (x * x / (r or 1.0) for x, r in zip(d, self.mobility, strict=True))
        length = square_root(sum(squares, 0.0) + 1e-300)
        share = minimum((LONGEST_OF_LOOPS if self.moves_loops else LONGEST) / length, 1.0)
        return [share * x for x in d]

    def _step_by_levels(
        self, e: list, J: list, levels: list[int], extra_damping: AnyScalar, R: list, d: list
    ) -> list:
        """d plus the step of each level in the null space of the levels before it."""
        before: list = []  # (J', J' R, factors of J' R J'*) of the levels before
        for level in sorted(set(levels)):
            index = [i for i, row_level in enumerate(levels) if row_level == level]
            errors = [e[i] - dot(J[i], d) for i in index]
            rows = [J[i] for i in index]
            for projected, JR, factors in before:
                shares = [solve(factors, [dot(row, x) for x in JR]) for row in rows]
                taken = [apply(transpose(projected), share) for share in shares]
                rows = [
                    [x - y for x, y in zip(row, out, strict=True)]
                    for row, out in zip(rows, taken, strict=True)
                ]
            JR = [[r * x for r, x in zip(R, row, strict=True)] for row in rows]
            A = [
                [dot(a, b) if k <= i else 0.0 for k, b in enumerate(rows)] for i, a in enumerate(JR)
            ]
            e_level = [e[i] for i in index]
            damping = DAMPING * minimum(0.5 * dot(e_level, e_level), 1.0) + LEAST_DAMPING
            damping = damping + (extra_damping if level else 0.0)
            step = apply(transpose(JR), solve(factor(_with_diagonal(A, damping)), errors))
            d = [x + y for x, y in zip(d, step, strict=True)]
            before.append((rows, JR, factor(_with_diagonal(A, LEAST_DAMPING))))
        return d

    def _free(self, Q: np.ndarray, direction: list) -> list:
        """1 where a coordinate may move, 0 where it is fixed or at a limit and would violate it."""
        free: list = [float(r > 0.0) for r in self.mobility]
        for i, k, lower, upper in self.bounds:
            free[k] = free[k] * away_from_bound(Q[i], direction[k], lower, upper)
        return free


def _with_diagonal(A: list, added: AnyScalar) -> list:
    return [[x + added if i == k else x for k, x in enumerate(row)] for i, row in enumerate(A)]
