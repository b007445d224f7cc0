"""Coulomb's law at many contacts at once: which of them push, hold and slide, and with what forces.

Of the compliance Omega and what the rows would do by themselves, c (accelerations, or velocities before a blow), with x what
they do in the end:

    x = Omega lambda + c
    bilateral rows          x = 0
    0 <= lambda_n  and  x_n >= 0, one of them zero              a contact pushes, or opens
    |lambda_t| <= mu lambda_n, and x_t = 0 where it is less     it holds sideways
    lambda_t = -mu lambda_n s                                   or it slides along s: as it did, or as x_t begins to

Bilateral rows are eliminated. With mu |x_t| added to x_n (de Saxce) what holds is a convex problem; that, and the friction of
what slides, are found anew until they stay (Cadoux). The work of such forces, lambda* x, is never positive.

On arrays, a state at a time: how many rounds it takes is known when they are over, and a tape has no such loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

RANK = 1e-11  # of the largest eigenvalue, rows scaled to one: less follows from other rows
ROUNDS, HASTE, STEPS = 200, 20, 5000
SETTLED = 1e-10  # of the largest speed: a round that changes less is the last
EXACT = 1e-12  # of the largest force: steps that change less are the last
GOOD = 1e-6  # of what rows would do by themselves: rows left open by more are not solved


@dataclass(frozen=True)
class ContactRow:
    """One contact: its rows (the normal, then two across, or none), mu, and along which way it slides (2,), or None."""

    rows: tuple[int, ...]
    mu: float
    slides: np.ndarray | None = None


def least_norm_solution(
    Omega: np.ndarray, right: np.ndarray, scale: np.ndarray | None = None
) -> np.ndarray | None:
    """Omega x = right with the least x, Omega not symmetric where contacts slide; None where nothing solves it."""
    if not len(right):
        return right
    d = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(Omega)) if scale is None else scale, 1e-300))
    scaled = d[:, None] * Omega * d
    x = np.linalg.lstsq(scaled, d * right, rcond=RANK)[0]
    left = scaled @ x - d * right
    return d * x if np.abs(left).max() <= GOOD * (np.abs(d * right).max() + 1e-12) else None


def forces_in_modes(
    Omega: np.ndarray, c: np.ndarray, held: Sequence[int], touches: Sequence[ContactRow]
) -> np.ndarray | None:
    """lambda of rows that are all held, and of contacts that hold or slide as they do: linear; it may pull, or leave cones."""
    rows = [*held, *(r for t in touches for r in (t.rows if t.slides is None else t.rows[:1]))]
    spread = np.zeros((len(c), len(rows)))
    spread[rows, np.arange(len(rows))] = 1.0
    for t in touches:
        if t.slides is not None:
            spread[list(t.rows[1:]), rows.index(t.rows[0])] = -t.mu * t.slides
    found = least_norm_solution((Omega @ spread)[rows], -c[rows], np.diag(Omega)[rows])
    return None if found is None else spread @ found


def coulomb_forces(
    Omega: np.ndarray,
    c: np.ndarray,
    held: Sequence[int],
    touches: Sequence[ContactRow],
    guess: np.ndarray | None = None,
) -> np.ndarray | None:
    """lambda by Coulomb's law; None where none is found (some friction has no answer at all: Painleve)."""
    own, held = [r for t in touches for r in t.rows], list(held)
    back = np.zeros((len(held), len(own)))
    alone = np.zeros(len(held))
    if held:
        columns = [
            least_norm_solution(Omega[np.ix_(held, held)], x)
            for x in (*Omega[np.ix_(held, own)].T, c[held])
        ]
        if any(x is None for x in columns):
            return None
        *each, alone = (np.asarray(x) for x in columns)
        back = np.array(each).T.reshape(len(held), len(own))
    W = Omega[np.ix_(own, own)] - Omega[np.ix_(own, held)] @ back
    b = c[own] - Omega[np.ix_(own, held)] @ alone
    place = {r: i for i, r in enumerate(own)}
    cones = _Cones([ContactRow(tuple(place[r] for r in t.rows), t.mu, t.slides) for t in touches])
    found = _settled(W, b, cones, np.zeros(len(own)) if guess is None else np.array(guess[own]))
    if found is None:
        return None
    out = np.zeros(len(c))
    out[own] = found
    out[held] = -(alone + back @ found)
    return out


@dataclass(frozen=True)
class _Cones:
    """The rows of contacts that hold (normals, and pairs across), of those without friction, and of those that slide."""

    touches: Sequence[ContactRow]

    @cached_property
    def holding(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        own = [t for t in self.touches if len(t.rows) > 1 and t.slides is None]
        sides = np.array([t.rows[1:] for t in own], dtype=int).reshape(-1, 2)
        return np.array([t.rows[0] for t in own], dtype=int), sides, np.array([t.mu for t in own])

    @cached_property
    def sliding(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        own = [t for t in self.touches if t.slides is not None]
        ways = np.array([-t.mu * t.slides for t in own if t.slides is not None]).reshape(-1, 2)
        sides = np.array([t.rows[1:] for t in own], dtype=int).reshape(-1, 2)
        return np.array([t.rows[0] for t in own], dtype=int), sides, ways

    @cached_property
    def pushing(self) -> np.ndarray:
        """Normals of those that only push, sliding ones among them."""
        return np.array(
            [t.rows[0] for t in self.touches if len(t.rows) == 1 or t.slides is not None], dtype=int
        )

    def nearest(self, x: np.ndarray) -> np.ndarray:
        """The forces in their cones nearest to x; those across what slides are given, and stay."""
        y = x.copy()
        y[self.pushing] = np.maximum(x[self.pushing], 0.0)
        n, side, mu = self.holding
        if len(n):
            push, across = x[n], np.hypot(x[side[:, 0]], x[side[:, 1]])
            on = np.maximum(push + mu * across, 0.0) / (1.0 + mu * mu)  # on the cone's surface
            inside = across <= mu * push
            y[n] = np.where(inside, push, on)
            share = np.where(inside, 1.0, mu * on / np.where(across > 0.0, across, 1.0))
            y[side] = x[side] * share[:, None]
        return y


def _settled(W: np.ndarray, b: np.ndarray, cones: _Cones, x: np.ndarray) -> np.ndarray | None:
    """W x + b by Coulomb's law: with mu |u_t| added to what the normals do, it is the best point of a convex problem."""
    n, side, mu = cones.holding
    slid, along, ways = cones.sliding
    d = np.ones(len(b))  # one scale a contact: cones stay cones
    for t in cones.touches:
        d[list(t.rows)] = 1.0 / np.sqrt(max(float(np.trace(W[np.ix_(t.rows, t.rows)])), 1e-300))
    W, b, x = d[:, None] * W * d, d * b, x / d
    given = along.reshape(-1)
    free = np.ones(len(b))
    free[given] = 0.0
    step = 1.0 / max(float(np.linalg.eigvalsh(W * np.outer(free, free))[-1]), 1e-300)
    shift, size = np.zeros(len(n)), 1.0 + np.abs(b).max(initial=0.0)
    for k in range(ROUNDS):
        x[given] = (ways * x[slid][:, None]).reshape(-1)
        c = b.copy()
        c[n] += shift
        x = _descended(W, c, cones, x, step, free)
        u = W @ x + b
        now = mu * np.hypot(u[side[:, 0]], u[side[:, 1]])
        rubbing = (ways * x[slid][:, None]).reshape(-1)
        change = max(
            np.abs(now - shift).max(initial=0.0), np.abs(x[given] - rubbing).max(initial=0.0)
        )
        shift = now if k < HASTE else (now + shift) / 2.0
        if not np.isfinite(change):
            return None
        if change <= SETTLED * size:
            return d * x
    return None


def _descended(
    W: np.ndarray, c: np.ndarray, cones: _Cones, x: np.ndarray, step: float, free: np.ndarray
) -> np.ndarray:
    """min x* W x / 2 + c* x in the cones: downhill with a memory of the way (Nesterov), which is forgotten where it climbs."""
    y, memory = x, 1.0
    for _ in range(STEPS):
        new = cones.nearest(y - step * free * (W @ y + c))
        memory = 1.0 if (y - new) @ (new - x) > 0.0 else memory
        longer = (1.0 + np.sqrt(1.0 + 4.0 * memory * memory)) / 2.0
        moved = new - x
        y, x, memory = new + (memory - 1.0) / longer * moved, new, longer
        if np.abs(moved).max(initial=0.0) <= EXACT * (np.abs(x).max(initial=0.0) + 1e-300):
            break
    return x
