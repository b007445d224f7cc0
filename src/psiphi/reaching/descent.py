"""One damped Newton step towards all tasks, on any scalars.

    d = d0 + R J* (J R J* + l I)^-1 (e - J d0)      least |J d - e|^2 + l |d - d0|^2 weighted by R^-1

e and J are the rows of all tasks, times the roots of their weights; E = |e|^2 / 2. The damping l is a share of E, so that steps
are short far away and Newton's near the end (Sugihara 2011). R says how easily a coordinate moves: 0 where it stands
at a limit and would leave it (Bertsekas 1982), or may not move. d0 pulls to a posture, in what freedom the tasks leave.

With R = (damping)^-1 this is the forward dynamics of an arm without mass but for inertias at its tips
(rotor inertia l / R, forces e); of few rows and many joints the form above, in the space of the rows, costs less.

A `wary` step that does not make E less is taken back, and 0.3 of it tried: slower on the way to a solution, but it ends at
the nearest place where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.control.law import Values
from psiphi.functions.robot import Robot
from psiphi.reaching.tasks import Wish
from psiphi.spatial.choices import choose, least, less, most
from psiphi.spatial.entries import entries
from psiphi.spatial.screws import dot, root
from psiphi.spatial.small import apply, factor, solve, transpose

SHARE, FLOOR = 0.1, 1e-10  # the damping's, of E
LONGEST = 1.5  # rad: of all coordinates together
SHORTER = 0.3  # of a step that was taken back
PULL = 0.5  # of the way to the posture
EDGE = 1e-9  # nearer to a limit is at it
HUGE = 1e300


@dataclass(frozen=True)
class Descent:
    """The tasks of one robot, and within which bounds and how easily its coordinates move."""

    robot: Robot
    tasks: tuple[Wish, ...]
    ease: tuple[float, ...]  # (nv,): R where no limit is near; 0: stays
    bounds: tuple[tuple[int, int, float, float], ...]  # (place in q, place in v, lower, upper), of those that have some
    pulled: bool  # whether to a posture

    @property
    def parts(self) -> int:
        return sum(len(task.units) for task in self.tasks)

    @property
    def sizes(self) -> dict[str, int]:
        """Of the places a step reads."""
        nq, nv = self.robot.nq, self.robot.nv
        goal = sum(task.size for task in self.tasks)
        posture = {"posture": nq} if self.pulled else {}
        return {"Q": nq, "B": nq, "D": nv, "E": 1, "miss": self.parts, "goal": goal, "wary": 1} | posture

    def rows(self, Q: np.ndarray, goal: np.ndarray) -> tuple[list, list, list]:
        """e, J of all tasks, weighted; and the square of what each part misses."""
        e, J, miss, numbers = [], [], [], entries(goal)
        for task in self.tasks:
            own, numbers = numbers[: task.size], numbers[task.size :]
            for part in task.parts(self.robot, Q, own):
                weight = float(np.sqrt(task.weight(part.unit)))
                e += [weight * x for x in part.residual]
                J += [[weight * x for x in row] for row in part.J]
                miss.append(dot(part.residual, part.residual))
        return e, J, miss

    def begin(self, q: np.ndarray) -> Values:
        """At q, which counts as worse than anything."""
        return {"Q": q, "B": q, "D": np.zeros(self.robot.nv), "E": np.full(1, HUGE), "miss": np.full(self.parts, HUGE)}

    def look(self, Q, B, D, E, miss, goal, wary, posture=None) -> Values:
        """At Q: whether it is taken, and which way to go on. B is the last that was taken, E and miss are its own."""
        m = self.robot.manifold
        e, J, missed = self.rows(Q, goal)
        energy = 0.5 * dot(e, e)
        taken = 1.0 - wary[0] * (1.0 - less(energy, E[0]))
        d = self._towards(m, Q, e, J, energy, posture)
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
            q[i] = least(most(q[i], lower), upper)
        return {"Q": q}

    def _towards(self, m, Q, e: list, J: list, energy, posture) -> list:
        """d."""
        free = self._free(Q, apply(transpose(J), e))
        ease, rest = [f * r for f, r in zip(free, self.ease, strict=True)], [0.0] * len(free)
        if posture is not None:
            rest = [PULL * f * x for f, x in zip(free, entries(m.log(Q, posture)), strict=True)]
            e = [x - y for x, y in zip(e, apply(J, rest), strict=True)]
        eased = [[r * x for r, x in zip(ease, row, strict=True)] for row in J]
        A = [[dot(a, b) if k <= i else 0.0 for k, b in enumerate(J)] for i, a in enumerate(eased)]
        damping = SHARE * least(energy, 1.0) + FLOOR
        for i in range(len(A)):
            A[i][i] = A[i][i] + damping
        d = [x + y for x, y in zip(rest, apply(transpose(eased), solve(factor(A), e)), strict=True)]
        length = root(sum((x * x / (r or 1.0) for x, r in zip(d, self.ease, strict=True)), 0.0) + 1e-300)
        share = least(LONGEST / length, 1.0)
        return [share * x for x in d]

    def _free(self, Q, slope: list) -> list:
        """1 where a coordinate may move, 0 where it may not, or stands at a limit and would leave it."""
        free: list = [float(r > 0.0) for r in self.ease]
        for i, k, lower, upper in self.bounds:
            low, high = less(Q[i], lower + EDGE) * less(slope[k], 0.0), less(upper - EDGE, Q[i]) * less(0.0, slope[k])
            free[k] = free[k] * ((1.0 - low) * (1.0 - high))
        return free
