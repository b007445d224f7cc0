"""Tasks in order of importance: a level acts only as far as it does not disturb those before it.

First all tasks are solved at once: where all can be met, the order does not matter. For the other
problems the first level is solved alone, starting from that compromise; then each further level
acts in the null space of the levels before it, and a step is accepted if none of them gets worse.
The result is a local minimum. So where the first level can be met, it is solved again from other
starts, and the lexicographically best result is returned.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np

from psiphi.apps.ik.ik_solver import IKSolver

STEPS, REPAIR_STEPS, ROUNDS = 25, 4, 40
SLOW = 1e-3  # relative gain of a level in a round below which its damping grows:
FIRST_DAMPING, GROWTH, LAST_DAMPING = 1e-2, 5.0, 100.0  # from, by this factor, up to
MAX_STARTS = 8  # of the whole sequence
SAME = 1e-6  # relative increase of a level's energy that does not count as worse


def solve_by_priority(solvers: list[IKSolver], starts: int, from_base: bool) -> IKSolver:
    """`solvers`: of level 1, of levels 1-2, ..., of all levels, and of all tasks at once."""
    *levels, whole = solvers
    whole.solve(starts, from_base)
    left = np.flatnonzero(~whole.solved)
    if not len(left):
        return whole
    first, last = levels[0], levels[-1]
    first.base[left] = whole.q[left]
    first.solve_some(left, starts, True)
    whole.q[left], whole.energy[left], whole.squared_errors[left] = _solve_levels(
        levels, left, first.q[left]
    )
    left = left[first.solved[left]]
    for number in range(1, min(starts, MAX_STARTS)):
        base = whole.problem.starts(whole.base, whole.goal, number)
        again = IKSolver(first.problem, first.goal, base, None, first.tolerance)
        deque(again.start(left, 0, True), maxlen=0)
        met = left[again.solved[left]]
        q, energy, squared_errors = _solve_levels(levels, met, again.q[met])
        better = _is_better_in_order(last, squared_errors, whole.squared_errors[met])
        which = met[better]
        whole.q[which], whole.energy[which] = q[better], energy[better]
        whole.squared_errors[which] = squared_errors[better]
        whole.tries[left] += 1
    return whole


def _solve_levels(
    levels: list[IKSolver], which: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All further levels in turn, from q, which solves the first: q, E, squared errors."""
    for before, level in pairwise(levels):
        q = _refine_level(before, level, which, q)
    accepted, _, energy, squared_errors = levels[-1].run(which, q, 1)
    return accepted, energy, squared_errors


def _refine_level(
    before: IKSolver, solver: IKSolver, which: np.ndarray, q: np.ndarray
) -> np.ndarray:
    """q with the last level of `solver` minimized; the levels before it do not get worse."""
    q, _, _, squared_errors = solver.run(which, q, 1)
    best, errors = np.array(q), np.array(squared_errors)
    active, damping = np.arange(len(which)), np.zeros(len(which))
    for _ in range(ROUNDS):
        problems = which[active]
        trial = solver.run(problems, best[active], STEPS, True, damping[active])[0]
        trial = before.run(problems, trial, REPAIR_STEPS)[0]  # undo what the steps cost the others
        accepted, _, _, new = solver.run(problems, trial, 1)
        better = _is_better(solver, new, errors[active])
        index = active[better]
        old_energy = _level_energies(solver, errors[index])[:, -1]
        gain = 1.0 - _level_energies(solver, new[better])[:, -1] / np.maximum(old_energy, 1e-300)
        best[index], errors[index] = accepted[better], new[better]
        slow = np.ones(len(active), dtype=bool)
        slow[better] = gain < SLOW
        grown = np.maximum(FIRST_DAMPING, GROWTH * damping[active])
        damping[active] = np.where(slow, grown, damping[active])
        active = active[~(slow & (damping[active] > LAST_DAMPING))]
        if not len(active):
            break
    return best


def _is_better(solver: IKSolver, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Whether the last level is better, and no level before it is worse or unmet."""
    before, now = _level_energies(solver, old), _level_energies(solver, new)
    unharmed = now[:, :-1] <= before[:, :-1] * (1.0 + SAME)
    for i, columns in enumerate(_level_columns(solver)[:-1]):
        unharmed[:, i] |= _is_met(solver, new, columns)
    return np.logical_and(unharmed.all(axis=-1), now[:, -1] < before[:, -1])


def _is_better_in_order(solver: IKSolver, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Whether the first level that changed is better."""
    now, before = _level_energies(solver, new), _level_energies(solver, old)
    better, equal = np.zeros(len(new), dtype=bool), np.ones(len(new), dtype=bool)
    for i, columns in enumerate(_level_columns(solver)):
        lower = now[:, i] < before[:, i] * (1.0 - SAME)
        better |= equal & lower & ~_is_met(solver, old, columns)
        equal &= (now[:, i] <= before[:, i] * (1.0 + SAME)) | _is_met(solver, new, columns)
    return better


def _is_met(solver: IKSolver, squared_errors: np.ndarray, columns: list[int]) -> np.ndarray:
    return np.all(squared_errors[:, columns] <= solver.squared_tolerance, axis=-1)


def _level_columns(solver: IKSolver) -> list[list[int]]:
    """The residuals of each level."""
    levels = [task.level for task in solver.problem.tasks for _ in task.units]
    return [[i for i, x in enumerate(levels) if x == level] for level in sorted(set(levels))]


def _level_energies(solver: IKSolver, squared_errors: np.ndarray) -> np.ndarray:
    """(B, levels)."""
    weights = [task.weight(unit) for task in solver.problem.tasks for unit in task.units]
    weighted = squared_errors * np.array(weights)
    energies = [weighted[:, columns].sum(axis=-1) for columns in _level_columns(solver)]
    return np.stack(energies, axis=-1)
