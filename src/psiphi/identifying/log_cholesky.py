"""The parameters that bodies can have, nearest to what was measured (log-Cholesky: Rucker and Wensing 2022).

A body's pseudo-inertia is S = C L L* C*, S0 = C C* that of the robot as it is, L lower triangular with diagonal exp(theta):
every theta is a body, theta = 0 the robot's own. Numbers of joints are p0 exp(theta). Damped steps of Gauss and Newton minimise

    |R (K pi(theta) - x)|^2 + |theta / spread|^2

with x the base parameters by least squares and R* R their information: in units of their standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.functions.parametrised import from_pseudo_inertia, pseudo_inertia

LOWER = np.tril_indices(4)
DIAGONAL = [i for i, (r, c) in enumerate(zip(*LOWER, strict=True)) if r == c]
SPREAD = 2.0  # how far log parameters may be from the robot's own, before data speak
WIDE = 5.0  # of joints' numbers, which are rarely known
LEAST = 1e-3  # of the largest: eigenvalues of S0 below are taken for this, so that thin bodies can grow
STEPS, CLOSE = 100, 1e-10


@dataclass(frozen=True)
class Chart:
    """Where theta = 0 is: the factors C (bodies, 4, 4) of what there is, and the numbers of joints."""

    C: np.ndarray
    massless: np.ndarray
    more: np.ndarray

    @classmethod
    def about(cls, pi: np.ndarray, bodies: int, floor: np.ndarray) -> Chart:
        """About the parameters pi; joints' numbers are at least `floor`."""
        S = pseudo_inertia(pi[: 10 * bodies].reshape(bodies, 10))
        none = ~(S[:, 3, 3] > 0.0)
        S[none] = np.eye(4)
        return cls(np.array([_factor(s) for s in S]).reshape(-1, 4, 4), none, np.maximum(pi[10 * bodies :], floor))

    @property
    def spread(self) -> np.ndarray:
        return np.concatenate([np.full(10 * len(self.C), SPREAD), np.full(len(self.more), WIDE)])

    def parameters(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """pi, and d pi / d theta."""
        n = len(self.C)
        own = theta[: 10 * n].reshape(n, 10)
        L = np.zeros((n, 4, 4))
        L[:, LOWER[0], LOWER[1]] = own
        L[:, range(4), range(4)] = np.exp(own[:, DIAGONAL])
        units = np.zeros((10, 4, 4))
        units[range(10), LOWER[0], LOWER[1]] = 1.0
        dL = np.broadcast_to(units, (n, 10, 4, 4)).copy()
        for i, k in enumerate(DIAGONAL):
            dL[:, k, i, i] = L[:, i, i]
        CL, CdL = self.C @ L, self.C[:, None] @ dL
        half = CdL @ np.swapaxes(CL, -1, -2)[:, None]
        slopes = from_pseudo_inertia(half + np.swapaxes(half, -1, -2))  # (n, 10 thetas, 10)
        pi = from_pseudo_inertia(CL @ np.swapaxes(CL, -1, -2))
        pi[self.massless], slopes[self.massless] = 0.0, 0.0
        more = self.more * np.exp(theta[10 * n :])
        J = np.zeros((len(theta), len(theta)))
        for k in range(n):
            J[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = slopes[k].T
        J[10 * n :, 10 * n :] = np.diag(more)
        return np.concatenate([pi.ravel(), more]), J


def _factor(S: np.ndarray) -> np.ndarray:
    """C with C C* = S, its least eigenvalues lifted, in units of the body's mass and size."""
    size = np.array([*[max(np.sqrt(max(np.trace(S[:3, :3]), 0.0) / S[3, 3]), 1e-3)] * 3, 1.0]) * np.sqrt(S[3, 3])
    w, Q = np.linalg.eigh(S / np.outer(size, size))
    lifted = (Q * np.maximum(w, LEAST * w.max())) @ Q.T
    return np.linalg.cholesky(lifted) * size[:, None]


def nearest(chart: Chart, K: np.ndarray, R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The parameters pi that bodies can have, nearest to the base parameters x."""
    RK, target, spread = R @ K, R @ x, chart.spread
    theta, damping = np.zeros(len(spread)), 1e-3
    pi, slopes = chart.parameters(theta)
    cost = _cost(RK @ pi - target, theta / spread)
    for _ in range(STEPS):
        J, r = RK @ slopes, RK @ pi - target
        normal, right = J.T @ J + np.diag(spread**-2.0), J.T @ r + theta / spread**2
        step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), right)
        step *= min(1.0, 2.0 / max(np.abs(step).max(initial=0.0), 1e-300))  # a factor of e^2 at most, at once
        trial, trial_slopes = chart.parameters(theta + step)
        new = _cost(RK @ trial - target, (theta + step) / spread)
        if not new < cost:
            damping *= 10.0
            if damping > 1e12:
                break
            continue
        done = cost - new < CLOSE * max(cost, 1.0)
        theta, pi, slopes, cost, damping = theta + step, trial, trial_slopes, new, max(damping / 10.0, 1e-12)
        if done:
            break
    return pi


def _cost(r: np.ndarray, prior: np.ndarray) -> float:
    return float(r @ r + prior @ prior)
