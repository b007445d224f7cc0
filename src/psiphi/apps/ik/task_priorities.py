"""Tasks in their order: what a level asks for is done as far as those before it do not feel it.

All at once first: where everything can be met, there is no order. Of what is left, the first level by itself, from the best
compromise; then level by level along what those before leave free, and a step is kept when none of them got worse. Where that
ends is a local minimum: so where the first level can be met, it is met again from other starts, and the best in order is kept.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np

from psiphi.apps.ik.ik_solver import IKSolver

STEPS, MENDING, ROUNDS = 25, 4, 40
SLOW = 1e-3  # of its energy: a level that gains less in a round is held more,
HOLD = (1e-2, 5.0, 100.0)  # from here on, by this factor, and up to here
TRIES = 8  # starts of the whole order
SAME = 1e-6  # of a level's energy: more is worse


def in_order(hunts: list[IKSolver], starts: int, near: bool) -> IKSolver:
    """`hunts`: of the first level, of the first two, ..., of all (with the same order), and of all at once."""
    *levels, whole = hunts
    whole.first(starts, near)
    left = np.flatnonzero(~whole.solved)
    if not len(left):
        return whole
    first, last = levels[0], levels[-1]
    first.base[left] = whole.q[left]
    first.first_of(left, starts, True)
    whole.q[left], whole.energy[left], whole.miss[left] = _followed(levels, left, first.q[left])
    left = left[first.solved[left]]
    for number in range(1, min(starts, TRIES)):
        again = IKSolver(
            first.problem,
            first.goal,
            whole.problem.starts(whole.base, whole.goal, number),
            None,
            first.tolerance,
        )
        deque(again.start(left, 0, True), maxlen=0)
        some = left[again.solved[left]]
        q, energy, miss = _followed(levels, some, again.q[some])
        ahead = _ahead(last, miss, whole.miss[some])
        at = some[ahead]
        whole.q[at], whole.energy[at], whole.miss[at] = q[ahead], energy[ahead], miss[ahead]
        whole.tries[left] += 1
    return whole


def _followed(levels: list[IKSolver], which: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """From q, where the first level is done: all others, one after the other; q, E, and what is missed."""
    for before, level in pairwise(levels):
        q = _refined(before, level, which, q)
    taken, _, energy, miss = levels[-1].run(which, q, 1)
    return taken, energy, miss


def _refined(before: IKSolver, hunt: IKSolver, which: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The last level of a hunt made as good as it gets, from q; those before it stay as they are, or get better."""
    best, _, _, miss = hunt.run(which, q, 1)
    best, miss, going, held = (
        np.array(best),
        np.array(miss),
        np.arange(len(which)),
        np.zeros(len(which)),
    )
    for _ in range(ROUNDS):
        some = which[going]
        ahead = hunt.run(some, best[going], STEPS, True, held[going])[0]
        ahead = before.run(some, ahead, MENDING)[0]  # what the steps cost those before
        taken, _, _, new = hunt.run(some, ahead, 1)
        better = _better(hunt, new, miss[going])
        at = going[better]
        gain = 1.0 - _energy(hunt, new[better])[:, -1] / np.maximum(
            _energy(hunt, miss[at])[:, -1], 1e-300
        )
        best[at], miss[at] = taken[better], new[better]
        slow = np.ones(len(going), dtype=bool)
        slow[better] = gain < SLOW
        held[going] = np.where(slow, np.maximum(HOLD[0], HOLD[1] * held[going]), held[going])
        arrived = slow & (held[going] > HOLD[2])
        going = going[~arrived]
        if not len(going):
            break
    return best


def _better(hunt: IKSolver, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """No level before the last is worse (or it is met), and the last is better."""
    before, now = _energy(hunt, old), _energy(hunt, new)
    kept = now[:, :-1] <= before[:, :-1] * (1.0 + SAME)
    for i, columns in enumerate(_columns(hunt)[:-1]):
        kept[:, i] |= (new[:, columns] <= hunt.enough).all(axis=-1)
    return kept.all(axis=-1) & (now[:, -1] < before[:, -1])


def _ahead(hunt: IKSolver, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The first level that is not as good as before is better."""
    now, before = _energy(hunt, new), _energy(hunt, old)
    ahead, level = np.zeros(len(new), dtype=bool), np.ones(len(new), dtype=bool)
    for i, columns in enumerate(_columns(hunt)):
        ahead |= (
            level
            & (now[:, i] < before[:, i] * (1.0 - SAME))
            & ~(old[:, columns] <= hunt.enough).all(axis=-1)
        )
        level &= (now[:, i] <= before[:, i] * (1.0 + SAME)) | (new[:, columns] <= hunt.enough).all(
            axis=-1
        )
    return ahead


def _columns(hunt: IKSolver) -> list[list[int]]:
    """Which parts are of which level."""
    levels = [task.level for task in hunt.problem.tasks for _ in task.units]
    return [[i for i, own in enumerate(levels) if own == level] for level in sorted(set(levels))]


def _energy(hunt: IKSolver, miss: np.ndarray) -> np.ndarray:
    """(B, levels)."""
    weights = np.array([task.weight(unit) for task in hunt.problem.tasks for unit in task.units])
    return np.stack(
        [(miss[:, columns] * weights[columns]).sum(axis=-1) for columns in _columns(hunt)], axis=-1
    )
