"""One damped Newton step towards all tasks, on any scalars.

    d = d0 + R J* (J R J* + l I)^-1 (e - J d0)      least |J d - e|^2 + l |d - d0|^2 weighted by R^-1

e and J are the rows of all tasks, times the roots of their weights; E = |e|^2 / 2. The damping l is a share of E, so that steps
are short far away and Newton's near the end (Sugihara 2011). R says how easily a coordinate moves: 0 where it stands
at a limit and would leave it (Bertsekas 1982), or may not move. d0 pulls to a posture, in what freedom the tasks leave.

With R = (damping)^-1 this is the forward dynamics of an arm without mass but for inertias at its tips
(rotor inertia l / R, forces e); of few rows and many joints the form above, in the space of the rows, costs less.

Tasks of several levels are done in their order: J' = J N and d = d + R J'* (J' R J'* + l I)^-1 (e - J d) level by level, N
what the levels before leave free; coordinates at a limit that d would leave are taken out, and d is made again.

`wary` are two numbers: whether steps are, and what is added to the damping of the levels behind the first. A wary step
that does not make E less is taken back, and 0.3 of it tried: slower on the way to a solution, but it ends at
the nearest place where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.apps.ik.ik_tasks import Task
from psiphi.model.spatial.branch_free import away_from_bound, choose, less, maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import dot, square_root
from psiphi.model.spatial.small_matrices import apply, factor, solve, transpose
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Values

SHARE, FLOOR = 0.1, 1e-10  # the damping's, of E
LONGEST = 1.5  # rad: of all coordinates together
LONGEST_OF_LOOPS = 0.4  # where embedded loops are closed after every step
SHORTER = 0.3  # of a step that was taken back
PULL = 0.5  # of the way to the posture
RANK = 1000  # how much more a level counts than the next, where a wary step is judged
HUGE = 1e300


@dataclass(frozen=True)
class NewtonStep:
    """The tasks of one robot, and within which bounds and how easily its coordinates move."""

    robot: Robot
    tasks: tuple[Task, ...]
    ease: tuple[float, ...]  # (nv,): R where no limit is near; 0: stays
    bounds: tuple[
        tuple[int, int, float, float], ...
    ]  # (place in q, place in v, lower, upper), of those that have some
    pulled: bool  # whether to a posture

    @property
    def loops(self) -> bool:
        """Whether embedded ones move."""
        return any(task.kind == "kept" for task in self.tasks)

    @property
    def parts(self) -> int:
        return sum(len(task.units) for task in self.tasks)

    @property
    def sizes(self) -> dict[str, int]:
        """Of the places a step reads."""
        nq, nv = self.robot.nq, self.robot.nv
        goal = sum(task.size for task in self.tasks)
        posture = {"posture": nq} if self.pulled else {}
        return {
            "Q": nq,
            "B": nq,
            "D": nv,
            "E": 1,
            "miss": self.parts,
            "goal": goal,
            "wary": 2,
        } | posture

    def rows(self, Q: np.ndarray, goal: np.ndarray) -> tuple[list, list, list, list[int]]:
        """e, J of all tasks, weighted; the square of what each part misses; and the levels of the rows."""
        e, J, miss, levels, numbers = [], [], [], [], entries(goal)
        for task in self.tasks:
            own, numbers = numbers[: task.size], numbers[task.size :]
            for part in task.parts(self.robot, Q, own):
                weight = float(np.sqrt(task.weight(part.unit)))
                e += [weight * x for x in part.residual]
                J += [[weight * x for x in row] for row in part.J]
                miss.append(dot(part.residual, part.residual))
                levels += [task.level] * len(part.residual)
        return e, J, miss, levels

    def begin(self, q: np.ndarray) -> Values:
        """At q, which counts as worse than anything."""
        return {
            "Q": q,
            "B": q,
            "D": np.zeros(self.robot.nv),
            "E": np.full(1, HUGE),
            "miss": np.full(self.parts, HUGE),
        }

    def look(self, Q, B, D, E, miss, goal, wary, posture=None) -> Values:
        """At Q: whether it is taken, and which way to go on. B is the last that was taken, E and miss are its own."""
        m = self.robot.manifold
        e, J, missed, levels = self.rows(Q, goal)
        energy = 0.5 * dot(
            e,
            [float(RANK ** (max(levels) - level)) * x for level, x in zip(levels, e, strict=True)],
        )
        taken = 1.0 - wary[0] * (1.0 - less(energy, E[0]))
        d = self._towards(m, Q, e, J, levels, wary[1], posture)
        return {
            "B": choose(taken, Q, B),
            "D": choose(taken, np.array(d), SHORTER * D),
            "E": choose(taken, np.array([energy]), E),
            "miss": choose(taken, np.array(missed), miss),
        }

    def move(self, B, D) -> Values:
        """From B by D, no further than the limits: the next to look at."""
        m = self.robot.manifold
        q = m.unit(m.exp(B, D)).copy()
        for i, _, lower, upper in self.bounds:
            q[i] = minimum(maximum(q[i], lower), upper)
        return {"Q": q}

    def _towards(self, m, Q, e: list, J: list, levels: list[int], held, posture) -> list:
        """d."""
        if len(set(levels)) > 1:
            return self._cut(self._by_levels(m, Q, e, J, levels, held, posture))
        free = self._free(Q, apply(transpose(J), e))
        return self._cut(self._in_order(e, J, levels, held, *self._start(m, Q, free, posture)))

    def _start(self, m, Q, free: list, posture) -> tuple[list, list]:
        """R of the coordinates that are free, and d0."""
        ease = [f * r for f, r in zip(free, self.ease, strict=True)]
        if posture is None:
            return ease, [0.0] * len(free)
        return ease, [PULL * f * x for f, x in zip(free, entries(m.log(Q, posture)), strict=True)]

    def _cut(self, d: list) -> list:
        """No longer than LONGEST."""
        length = square_root(
            sum((x * x / (r or 1.0) for x, r in zip(d, self.ease, strict=True)), 0.0) + 1e-300
        )
        share = minimum((LONGEST_OF_LOOPS if self.loops else LONGEST) / length, 1.0)
        return [share * x for x in d]

    def _by_levels(self, m, Q, e: list, J: list, levels: list[int], held, posture) -> list:
        """d, level by level, thrice: each time without the coordinates that would leave their limits."""
        free: list = [float(r > 0.0) for r in self.ease]
        d: list = []
        for again in range(3):
            if again:
                free = [f * g for f, g in zip(free, self._free(Q, d), strict=True)]
            d = self._in_order(e, J, levels, held, *self._start(m, Q, free, posture))
        return d

    def _in_order(self, e: list, J: list, levels: list[int], held, ease: list, d: list) -> list:
        """d, to which each level adds what it wants, as far as those before it do not feel it."""
        done: list = []  # (J', R J'*, its factors) of the levels before
        for level in sorted(set(levels)):
            own = [i for i, other in enumerate(levels) if other == level]
            missing = [e[i] - dot(J[i], d) for i in own]
            rows = [J[i] for i in own]
            for projected, eased, factors in done:
                shares = [solve(factors, [dot(row, x) for x in eased]) for row in rows]
                taken = [apply(transpose(projected), share) for share in shares]
                rows = [
                    [x - y for x, y in zip(row, out, strict=True)]
                    for row, out in zip(rows, taken, strict=True)
                ]
            eased = [[r * x for r, x in zip(ease, row, strict=True)] for row in rows]
            A = [
                [dot(a, b) if k <= i else 0.0 for k, b in enumerate(rows)]
                for i, a in enumerate(eased)
            ]
            damping = (
                SHARE * minimum(0.5 * dot([e[i] for i in own], [e[i] for i in own]), 1.0)
                + FLOOR
                + (held if level else 0.0)
            )
            step = apply(transpose(eased), solve(factor(_with_diagonal(A, damping)), missing))
            d = [x + y for x, y in zip(d, step, strict=True)]
            done.append((rows, eased, factor(_with_diagonal(A, FLOOR))))
        return d

    def _free(self, Q, slope: list) -> list:
        """1 where a coordinate may move, 0 where it may not, or stands at a limit and would leave it."""
        free: list = [float(r > 0.0) for r in self.ease]
        for i, k, lower, upper in self.bounds:
            free[k] = free[k] * away_from_bound(Q[i], slope[k], lower, upper)
        return free


def _with_diagonal(A: list, more) -> list:
    return [[x + more if i == k else x for k, x in enumerate(row)] for i, row in enumerate(A)]
