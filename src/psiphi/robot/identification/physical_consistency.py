"""The parameters that bodies can have, nearest to what was measured.

A body can have parameters pi whose pseudo-inertia S(pi) is positive definite (Wensing, Kim and Slotine 2018). The nearest is

    argmin |R (K pi - x)|^2 + WEIGHT sum (tr(S S0^-1) - log det(S S0^-1) - 4)

with x the base parameters by least squares, R* R their information, and S0 that of the robot as it is: how far a body is from
it by the entropy of its density (Lee, Wensing and Park 2019), which no step that leaves the bodies can pass. It is convex:
Newton's steps find the one answer. Numbers of joints are above 0 likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.model.parameters.inertial_parameters import from_pseudo_inertia, pseudo_inertia

WEIGHT = 0.25  # of a body's distance from the robot's own, before data speak
LOOSE = 0.08  # of that of joints' numbers, which are rarely known
LEAST = (
    1e-3  # of the largest: eigenvalues of S0 below are taken for this, so that thin bodies can grow
)
UNITS = pseudo_inertia(np.eye(10))  # dS / d pi
EDGE = 1e-9  # of the robot's own: bodies thinner than this are none
STEPS = 50  # of Newton's, a level
CLOSE = 1e-6  # of a deviation's square: what a step still promises
LOUDER = 3.0  # times, from one level to the next


@dataclass(frozen=True)
class KnownBodies:
    """The robot as it is: S0 (bodies, 4, 4) = C C*, the inverse of C, which bodies have no mass and keep it, and the joints'
    numbers. A body is seen as E = C^-1 S C^-*, which is 1 where it is the robot's own."""

    S: np.ndarray
    inverse: np.ndarray
    massless: np.ndarray
    more: np.ndarray

    @classmethod
    def of(cls, pi: np.ndarray, bodies: int, floor: np.ndarray) -> KnownBodies:
        """Of the parameters pi; joints' numbers are at least `floor`."""
        S = pseudo_inertia(pi[: 10 * bodies].reshape(bodies, 10))
        none = ~(S[:, 3, 3] > 0.0)
        S[none] = np.eye(4)
        S = np.array([_lifted(s) for s in S]).reshape(-1, 4, 4)
        return cls(
            S, np.linalg.inv(np.linalg.cholesky(S)), none, np.maximum(pi[10 * bodies :], floor)
        )

    @property
    def start(self) -> np.ndarray:
        return np.concatenate([from_pseudo_inertia(self.S).ravel(), self.more])

    @property
    def fixed(self) -> np.ndarray:
        """Which parameters stay: those of bodies without mass."""
        return np.concatenate([np.repeat(self.massless, 10), np.zeros(len(self.more), dtype=bool)])

    def distance(self, pi: np.ndarray) -> float:
        """How far pi is from the robot's own; infinite where no body can have it."""
        E, p = self._seen(pi)
        w = np.linalg.eigvalsh(E)
        if not ((p > EDGE).all() and (w > EDGE).all()):
            return np.inf
        return float(WEIGHT * (w - np.log(w) - 1.0).sum() + LOOSE * (p - np.log(p) - 1.0).sum())

    def model(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(F, y): F* F is the second derivative of the distance, F* y the first. With E = L L*, a body has F = L^-1 dE L^-*,
        y = L* L - 1."""
        E, p = self._seen(pi)
        n, m = len(E), len(p)
        L = np.linalg.cholesky(E)
        back = np.linalg.inv(L) @ self.inverse
        own = (back[:, None] @ UNITS @ np.swapaxes(back, -1, -2)[:, None]).reshape(n, 10, 16)
        F, y = np.zeros((16 * n + m, 10 * n + m)), np.zeros(16 * n + m)
        for k in range(n):
            F[16 * k : 16 * k + 16, 10 * k : 10 * k + 10] = np.sqrt(WEIGHT) * own[k].T
        y[: 16 * n] = np.sqrt(WEIGHT) * (np.swapaxes(L, -1, -2) @ L - np.eye(4)).ravel()
        F[16 * n :, 10 * n :] = np.sqrt(LOOSE) * np.diag(1.0 / (p * self.more))
        y[16 * n :] = np.sqrt(LOOSE) * (p - 1.0)
        return F, y

    def reach(self, change: np.ndarray) -> float:
        """How much of a step to take, 1 at most, with `change` = F step: nine tenths of the way to where bodies end."""
        n = len(self.S)
        bodies = np.linalg.eigvalsh(change[: 16 * n].reshape(n, 4, 4)) / np.sqrt(WEIGHT)
        shrinking = -min(
            bodies.min(initial=0.0), change[16 * n :].min(initial=0.0) / np.sqrt(LOOSE)
        )
        return min(1.0, 0.9 / shrinking) if shrinking > 0.0 else 1.0

    def _seen(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E of the bodies, and the joints' numbers, by those of the robot."""
        n = len(self.S)
        S = pseudo_inertia(pi[: 10 * n].reshape(n, 10))
        return self.inverse @ S @ np.swapaxes(self.inverse, -1, -2), pi[10 * n :] / self.more


def _lifted(S: np.ndarray) -> np.ndarray:
    """S with its least eigenvalues lifted, in units of the body's mass and size."""
    size = np.array(
        [*[max(np.sqrt(max(np.trace(S[:3, :3]), 0.0) / S[3, 3]), 1e-3)] * 3, 1.0]
    ) * np.sqrt(S[3, 3])
    w, Q = np.linalg.eigh(S / np.outer(size, size))
    return (Q * np.maximum(w, LEAST * w.max())) @ Q.T * np.outer(size, size)


def nearest(known: KnownBodies, K: np.ndarray, R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The parameters that bodies can have, nearest to the base parameters x.

    Data that are sure of themselves speak softly first, and louder when bodies have followed."""
    RK, pi = np.where(known.fixed, 0.0, R @ K), known.start
    target = R @ x
    voice = 1.0 / max(1.0, float(np.abs(RK @ pi - target).max(initial=0.0)))
    while voice < 1.0:
        pi, voice = _descended(known, voice * RK, voice * target, pi), min(1.0, LOUDER * voice)
    return np.where(known.fixed, 0.0, _descended(known, RK, target, pi))


def _descended(
    known: KnownBodies, RK: np.ndarray, target: np.ndarray, pi: np.ndarray
) -> np.ndarray:
    """Newton's steps, each by least squares: squares of what is sure would drown the rest."""
    cost = _cost(known, RK @ pi - target, pi)
    for _ in range(STEPS):
        F, y = known.model(pi)
        A = np.vstack([np.sqrt(2.0) * RK, F])
        size = np.linalg.norm(A, axis=0)
        Q, T = np.linalg.qr(A / size)
        step = (
            -np.linalg.solve(T, Q.T @ np.concatenate([np.sqrt(2.0) * (RK @ pi - target), y])) / size
        )
        promised = float(((A @ step) ** 2).sum())
        length = known.reach(F @ step)
        while length > 1e-9:
            new = _cost(known, RK @ (pi + length * step) - target, pi + length * step)
            if new < cost - 0.1 * length * promised:
                break
            length *= 0.5
        else:
            break
        pi, cost = pi + length * step, new
        if promised < CLOSE * max(1.0, 1e-6 * cost):
            break
    return pi


def _cost(known: KnownBodies, r: np.ndarray, pi: np.ndarray) -> float:
    return float(r @ r) + known.distance(pi)
