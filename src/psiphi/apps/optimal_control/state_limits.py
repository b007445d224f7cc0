"""Limits of positions and speeds: an augmented Lagrangian, or a penalty.

    h rho max(0, s + c)^2 / 2 at each node, c <= 0 the limit, rho s its multiplier
    s <- max(0, s + c) after some iterations, and rho <- GROWTH rho where this is not enough

Each problem has its own rho, multipliers and rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from psiphi.apps.optimal_control.ddp_solver import (
    FIRST_DAMPING,
    Motions,
    ProblemNumbers,
    Solver,
    SolverState,
)

if TYPE_CHECKING:
    from psiphi.apps.optimal_control.optimal_control import OptimalControl
    from psiphi.apps.optimal_control.optimal_motion import OptimalMotion

FIRST, GROWTH, LAST = 1.0, 5.0, 1e5  # rho, as shares of `limit_weight`
ROUND = 20  # iterations between two updates
KEPT = 1e-6  # rad, m, rad/s or m/s: a limit passed by this counts as kept
SLOW = 0.3  # rho grows where a round leaves more than this share of what was beyond a limit
STEADY = 1e-4  # relative change of the multipliers below which they are found


def without_limits(problem: OptimalControl, numbers: ProblemNumbers, count: int) -> ProblemNumbers:
    """The numbers with weight 0 for all limits: for motions whose cost is not yet compared."""
    if not problem.limits:
        return numbers
    return _with_limits(
        numbers, np.zeros(count), np.zeros((count, problem.steps + 1, len(problem.limits)))
    )


def _with_limits(numbers: ProblemNumbers, rho: np.ndarray, shift: np.ndarray) -> ProblemNumbers:
    limits = {"rho": rho[:, None, None], "final_shift": shift[:, -1:]}
    return ProblemNumbers(numbers.constant | limits, numbers.per_node | {"shift": shift[:, :-1]})


@dataclass
class StateLimits:
    """The limits of a batch of problems, with rho (B,) and shifts s (B, N + 1, limits)."""

    problem: OptimalControl
    given: ProblemNumbers
    rho: np.ndarray
    shift: np.ndarray
    before: np.ndarray  # (B,): what was beyond the limits after the last round

    @classmethod
    def start(
        cls,
        problem: OptimalControl,
        given: ProblemNumbers,
        count: int,
        near: OptimalMotion | None,
        batch: tuple[int, ...],
        steps_later: int,
    ) -> StateLimits:
        nodes = problem.steps + 1
        rho = np.full(count, FIRST * problem.limit_weight if problem.limits else 0.0)
        shift = np.zeros((count, nodes, len(problem.limits)))
        if near is not None and problem.limits:
            index = np.minimum(np.arange(nodes) + steps_later, nodes - 1)
            rho = np.array(np.broadcast_to(near.penalty, batch)).reshape(count)
            shape = (*batch, nodes, len(problem.limits))
            lam = np.broadcast_to(near.multipliers, shape).reshape(count, *shape[-2:])[:, index]
            shift = lam / rho[:, None, None]
        return cls(problem, given, rho, shift, np.full(count, np.inf))

    @property
    def numbers(self) -> ProblemNumbers:
        """The numbers of the problems with those of their limits."""
        if not self.problem.limits:
            return self.given
        return _with_limits(self.given, self.rho, self.shift)

    @property
    def multipliers(self) -> np.ndarray:
        """rho s, (B, N + 1, limits)."""
        return self.rho[:, None, None] * self.shift

    def excess(self, x: Motions) -> np.ndarray:
        """c (B, N + 1, limits): positive beyond a limit."""
        state = np.concatenate([self.problem.robot.manifold.positions(x.q), x.v], axis=-1)
        index, sign, bound = (np.array(row) for row in zip(*self.problem.limits, strict=True))
        return sign * (state[..., index.astype(int)] - bound)

    def violation(self, x: Motions) -> np.ndarray:
        """(B,): how far the states are beyond their limits."""
        if not self.problem.limits:
            return np.zeros(len(x.u))
        return np.maximum(self.excess(x), 0.0).max(axis=(-1, -2))

    def solve(
        self,
        solver: Solver,
        x: Motions,
        progress: SolverState,
        iterations: int,
        tolerance: float,
        record: Callable[[np.ndarray, Motions], None],
    ) -> None:
        """Solve all problems; x, progress and the multipliers are changed in place."""
        if not self.problem.limits:
            solver.solve(x, self.numbers, progress, iterations, tolerance, record)
            return
        self._refresh_costs(solver, x)
        if self.problem.limit_kind == "soft":
            solver.solve(x, self.numbers, progress, iterations, tolerance, record)
            return
        while iterations > 0 and not progress.done.all():
            before = progress.iterations.copy()
            solver.solve(x, self.numbers, progress, ROUND, tolerance, record, iterations)
            ran = progress.iterations > before
            self._update(x, progress, ran, iterations, tolerance)
            self._refresh_costs(solver, x)

    def _update(
        self,
        x: Motions,
        progress: SolverState,
        ran: np.ndarray,
        iterations: int,
        tolerance: float,
    ) -> None:
        """New multipliers for the problems that ran; done are those whose limits are kept. A small
        tolerance of the costs asks for accurate multipliers, too."""
        share = min(1.0, max(tolerance / 1e-7, 1e-4))
        most, accuracy = KEPT * share, STEADY * share
        excess = self.excess(x)
        new = np.maximum(0.0, self.shift + excess)
        size = np.maximum(new.max(axis=(-1, -2)), 1e-12)
        change = np.abs(new - self.shift).max(axis=(-1, -2))
        steady = change <= np.maximum(accuracy * size, most)
        beyond = np.maximum(excess, 0.0).max(axis=(-1, -2))
        kept = beyond <= most
        met = ran & progress.converged & steady & kept
        again = ran & ~met & (progress.iterations < iterations)
        largest = LAST * self.problem.limit_weight
        stalls = again & ~kept & (beyond > SLOW * self.before)
        grow = np.where(stalls & (self.rho * GROWTH <= largest), GROWTH, 1.0)
        self.before = np.where(ran, beyond, self.before)
        shift = np.where(again[:, None, None], new / grow[:, None, None], self.shift)
        self.shift, self.rho = shift, self.rho * grow
        progress.done = np.where(ran, ~again, progress.done)
        progress.converged = np.where(ran, met, progress.converged)
        progress.damping = np.where(again, FIRST_DAMPING, progress.damping)

    def costs(self, solver: Solver, x: Motions) -> np.ndarray:
        """(B,): the costs, with the penalty of soft limits, without that of kept ones."""
        if self.problem.limit_kind != "kept":
            return x.cost
        running, final = solver.term_costs(replace(x, d=None), self.given)
        return np.add.reduce([*running.T, *final.T])

    def _refresh_costs(self, solver: Solver, x: Motions) -> None:
        """The costs of the motions with the new multipliers."""
        running, final = solver.term_costs(replace(x, d=None), self.given)
        total = np.add.reduce([*running.T, *final.T])
        rows = np.maximum(0.0, self.shift + self.excess(x))
        penalty = 0.5 * self.rho * solver.dt * np.einsum("bij,bij->b", rows, rows)
        x.cost = total + penalty
