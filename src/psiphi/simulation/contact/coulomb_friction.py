"""Coulomb friction at many contacts at once: which contacts push, stick or slide, and the forces.

With the compliance Omega, c what the rows would do without forces (accelerations, or velocities
before an impact), and x what they do with the forces lambda:

    x = Omega lambda + c
    bilateral rows          x = 0
    normals                 0 <= lambda_n  _|_  x_n >= 0        a contact pushes, or opens
    sticking contacts       |lambda_t| <= mu lambda_n and x_t = 0
    sliding contacts        lambda_t = -mu lambda_n s, where s is the direction in which the contact
                            slides already, or in which x_t starts to slide

Bilateral rows are eliminated. With mu |x_t| added to x_n (de Saxce), sticking is a convex problem;
this term and the friction of sliding contacts are updated until they converge (Cadoux). The work
lambda* x of such forces is never positive.

The functions take arrays of one state: the number of iterations depends on the values, and a tape
has no such loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Relative to the largest eigenvalue, with rows scaled to one: rows below are redundant.
RANK_TOLERANCE = 1e-11
MAX_ROUNDS, UNDAMPED_ROUNDS, MAX_STEPS = 200, 20, 5000
ROUND_TOLERANCE = 1e-10  # of the largest speed: the change in the last round
STEP_TOLERANCE = 1e-12  # of the largest force: the change in the last step
RESIDUAL_TOLERANCE = 1e-6  # of the right-hand side


@dataclass(frozen=True)
class ContactRow:
    """One contact: its rows (the normal, then two tangents or none), mu, and the direction (2,) in
    which it slides, or None."""

    rows: tuple[int, ...]
    mu: float
    slide_direction: np.ndarray | None = None

    @property
    def slides(self) -> bool:
        return self.slide_direction is not None


def least_norm_solution(
    Omega: np.ndarray, right: np.ndarray, scale: np.ndarray | None = None
) -> np.ndarray | None:
    """The least x with Omega x = right, or None if there is no solution. Omega is not symmetric if
    contacts slide."""
    if not len(right):
        return right
    d = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(Omega)) if scale is None else scale, 1e-300))
    scaled = d[:, None] * Omega * d
    x = np.linalg.lstsq(scaled, d * right, rcond=RANK_TOLERANCE)[0]
    residual = scaled @ x - d * right
    limit = RESIDUAL_TOLERANCE * (np.abs(d * right).max() + 1e-12)
    return d * x if np.abs(residual).max() <= limit else None


def forces_in_modes(
    Omega: np.ndarray, c: np.ndarray, bilateral: Sequence[int], contacts: Sequence[ContactRow]
) -> np.ndarray | None:
    """lambda if every contact continues to stick or to slide: a linear problem. The forces may
    pull, or leave their friction cones."""
    rows = [*bilateral, *(r for t in contacts for r in (t.rows[:1] if t.slides else t.rows))]
    expand = np.zeros((len(c), len(rows)))
    expand[rows, np.arange(len(rows))] = 1.0
    for t in contacts:
        if t.slide_direction is not None:
            expand[list(t.rows[1:]), rows.index(t.rows[0])] = -t.mu * t.slide_direction
    reduced = least_norm_solution((Omega @ expand)[rows], -c[rows], np.diag(Omega)[rows])
    return None if reduced is None else expand @ reduced


def coulomb_forces(
    Omega: np.ndarray,
    c: np.ndarray,
    bilateral: Sequence[int],
    contacts: Sequence[ContactRow],
    guess: np.ndarray | None = None,
) -> np.ndarray | None:
    """lambda by Coulomb's law, or None if none is found (with some friction there is no solution:
    Painleve)."""
    unilateral, bilateral = [r for t in contacts for r in t.rows], list(bilateral)
    response = np.zeros((len(bilateral), len(unilateral)))
    constant = np.zeros(len(bilateral))
    if bilateral:
        right_sides = (*Omega[np.ix_(bilateral, unilateral)].T, c[bilateral])
        A = Omega[np.ix_(bilateral, bilateral)]
        columns = [least_norm_solution(A, x) for x in right_sides]
        if any(x is None for x in columns):
            return None
        *each, constant = (np.asarray(x) for x in columns)
        response = np.array(each).T.reshape(len(bilateral), len(unilateral))
    coupling = Omega[np.ix_(unilateral, bilateral)]
    W = Omega[np.ix_(unilateral, unilateral)] - coupling @ response
    b = c[unilateral] - coupling @ constant
    place = {r: i for i, r in enumerate(unilateral)}
    cones = _Cones(
        [ContactRow(tuple(place[r] for r in t.rows), t.mu, t.slide_direction) for t in contacts]
    )
    start = np.zeros(len(unilateral)) if guess is None else np.array(guess[unilateral])
    forces = _solve_in_cones(W, b, cones, start)
    if forces is None:
        return None
    out = np.zeros(len(c))
    out[unilateral] = forces
    out[bilateral] = -(constant + response @ forces)
    return out


@dataclass(frozen=True)
class _Cones:
    """The friction cones of contacts, sorted by mode."""

    contacts: Sequence[ContactRow]

    @cached_property
    def sticking(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The normals (n,), tangents (n, 2) and mu (n,) of contacts that stick."""
        contacts = [t for t in self.contacts if len(t.rows) > 1 and not t.slides]
        tangents = np.array([t.rows[1:] for t in contacts], dtype=int).reshape(-1, 2)
        normals = np.array([t.rows[0] for t in contacts], dtype=int)
        return normals, tangents, np.array([t.mu for t in contacts])

    @cached_property
    def sliding(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The normals (n,), tangents (n, 2) and -mu s (n, 2) of contacts that slide."""
        pairs = [(t, t.slide_direction) for t in self.contacts if t.slide_direction is not None]
        ratios = np.array([-t.mu * direction for t, direction in pairs]).reshape(-1, 2)
        tangents = np.array([t.rows[1:] for t, _ in pairs], dtype=int).reshape(-1, 2)
        return np.array([t.rows[0] for t, _ in pairs], dtype=int), tangents, ratios

    @cached_property
    def pushing(self) -> np.ndarray:
        """The normals of contacts that are frictionless or slide."""
        return np.array(
            [t.rows[0] for t in self.contacts if len(t.rows) == 1 or t.slides], dtype=int
        )

    def project(self, x: np.ndarray) -> np.ndarray:
        """The forces in the cones nearest to x; tangential forces of sliding contacts are left
        unchanged."""
        y = x.copy()
        y[self.pushing] = np.maximum(x[self.pushing], 0.0)
        n, side, mu = self.sticking
        if len(n):
            push, across = x[n], np.hypot(x[side[:, 0]], x[side[:, 1]])
            on_surface = np.maximum(push + mu * across, 0.0) / (1.0 + mu * mu)
            inside = across <= mu * push
            y[n] = np.where(inside, push, on_surface)
            ratio = mu * on_surface / np.where(across > 0.0, across, 1.0)
            y[side] = x[side] * np.where(inside, 1.0, ratio)[:, None]
        return y


def _solve_in_cones(
    W: np.ndarray, b: np.ndarray, cones: _Cones, x: np.ndarray
) -> np.ndarray | None:
    """The forces x that satisfy Coulomb's law with u = W x + b: fixed-point iteration over the
    shift mu |u_t| of the normals and over the friction of sliding contacts."""
    n, side, mu = cones.sticking
    sliding_n, sliding_side, ratios = cones.sliding
    d = np.ones(len(b))  # one scale for each contact, so that cones remain cones
    for t in cones.contacts:
        d[list(t.rows)] = 1.0 / np.sqrt(max(float(np.trace(W[np.ix_(t.rows, t.rows)])), 1e-300))
    W, b, x = d[:, None] * W * d, d * b, x / d
    fixed = sliding_side.reshape(-1)
    free = np.ones(len(b))
    free[fixed] = 0.0
    step = 1.0 / max(float(np.linalg.eigvalsh(W * np.outer(free, free))[-1]), 1e-300)
    shift, size = np.zeros(len(n)), 1.0 + np.abs(b).max(initial=0.0)
    for k in range(MAX_ROUNDS):
        x[fixed] = (ratios * x[sliding_n][:, None]).reshape(-1)
        c = b.copy()
        c[n] += shift
        x = _minimize_in_cones(W, c, cones, x, step, free)
        u = W @ x + b
        new_shift = mu * np.hypot(u[side[:, 0]], u[side[:, 1]])
        friction = (ratios * x[sliding_n][:, None]).reshape(-1)
        change = max(
            np.abs(new_shift - shift).max(initial=0.0),
            np.abs(x[fixed] - friction).max(initial=0.0),
        )
        shift = new_shift if k < UNDAMPED_ROUNDS else (new_shift + shift) / 2.0
        if not np.isfinite(change):
            return None
        if change <= ROUND_TOLERANCE * size:
            return d * x
    return None


def _minimize_in_cones(
    W: np.ndarray, c: np.ndarray, cones: _Cones, x: np.ndarray, step: float, free: np.ndarray
) -> np.ndarray:
    """min x* W x / 2 + c* x over the cones, by projected gradients with Nesterov momentum, which
    restarts where it leads uphill."""
    y, momentum = x, 1.0
    for _ in range(MAX_STEPS):
        new = cones.project(y - step * free * (W @ y + c))
        momentum = 1.0 if (y - new) @ (new - x) > 0.0 else momentum
        next_momentum = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        change = new - x
        y, x, momentum = new + (momentum - 1.0) / next_momentum * change, new, next_momentum
        if np.abs(change).max(initial=0.0) <= STEP_TOLERANCE * (
            np.abs(x).max(initial=0.0) + 1e-300
        ):
            break
    return x
