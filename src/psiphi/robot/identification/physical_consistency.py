"""The physically consistent parameters nearest to the measurements.

Parameters pi of a body are consistent if the pseudo-inertia S(pi) is positive definite (Wensing,
Kim and Slotine 2018). The nearest are

    argmin |R (K pi - x)|^2 + WEIGHT sum (tr(S S0^-1) - log det(S S0^-1) - 4)

with x the base parameters by least squares, R* R their information, and S0 the pseudo-inertia of
the robot. The second term is an entropic distance (Lee, Wensing and Park 2019) and a barrier: it is
infinite at inconsistent parameters. The problem is convex; Newton's method finds its solution.
Joint parameters are kept positive in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.parameters.inertial_parameters import from_pseudo_inertia, pseudo_inertia

WEIGHT = 0.25  # of the distance of a body from the prior
JOINT_WEIGHT = 0.08  # of the distance of joint parameters, whose prior is rarely known
# eigenvalues of S0 are raised to this part of the largest, so that thin bodies can grow
LEAST_EIGENVALUE = 1e-3
UNITS = pseudo_inertia(np.eye(10))  # dS / d pi
MARGIN = 1e-9  # least eigenvalue of E; smaller ones count as inconsistent
STEPS = 50  # Newton steps per data weight
TOLERANCE = 1e-6  # decrease of the cost that a Newton step must predict
WEIGHT_GROWTH = 3.0  # of the data weight, from one minimisation to the next


@dataclass(frozen=True)
class KnownBodies:
    """The prior: S0 = C C* (bodies, 4, 4), C^-1, massless bodies, and joint parameters.

    S is measured relative to S0 as E = C^-1 S C^-*. Massless bodies keep their parameters.
    """

    S: np.ndarray
    inverse: np.ndarray
    massless: np.ndarray
    joint_parameters: np.ndarray

    @classmethod
    def of(cls, pi: np.ndarray, bodies: int, floor: np.ndarray) -> KnownBodies:
        """The prior of parameters pi; joint parameters are at least `floor`."""
        S = pseudo_inertia(pi[: 10 * bodies].reshape(bodies, 10))
        massless = ~(S[:, 3, 3] > 0.0)
        S[massless] = np.eye(4)
        S = np.array([_raise_eigenvalues(s) for s in S]).reshape(-1, 4, 4)
        inverse = np.linalg.inv(np.linalg.cholesky(S))
        return cls(S, inverse, massless, np.maximum(pi[10 * bodies :], floor))

    @property
    def initial(self) -> np.ndarray:
        return np.concatenate([from_pseudo_inertia(self.S).ravel(), self.joint_parameters])

    @property
    def fixed(self) -> np.ndarray:
        """Mask of the parameters that are not estimated: those of massless bodies."""
        return np.concatenate(
            [np.repeat(self.massless, 10), np.zeros(len(self.joint_parameters), dtype=bool)]
        )

    def distance(self, pi: np.ndarray) -> float:
        """The distance of pi from the prior; infinite if pi is inconsistent."""
        E, p = self._relative(pi)
        w = np.linalg.eigvalsh(E)
        if not ((p > MARGIN).all() and (w > MARGIN).all()):
            return np.inf
        return float(
            WEIGHT * (w - np.log(w) - 1.0).sum() + JOINT_WEIGHT * (p - np.log(p) - 1.0).sum()
        )

    def quadratic_model(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(F, y): the distance has the Hessian F* F and the gradient F* y.

        For a body with E = L L*, F = L^-1 dE L^-* and y = L* L - 1.
        """
        E, p = self._relative(pi)
        n, m = len(E), len(p)
        L = np.linalg.cholesky(E)
        T = np.linalg.inv(L) @ self.inverse
        columns = (T[:, None] @ UNITS @ np.swapaxes(T, -1, -2)[:, None]).reshape(n, 10, 16)
        F, y = np.zeros((16 * n + m, 10 * n + m)), np.zeros(16 * n + m)
        for k in range(n):
            F[16 * k : 16 * k + 16, 10 * k : 10 * k + 10] = np.sqrt(WEIGHT) * columns[k].T
        y[: 16 * n] = np.sqrt(WEIGHT) * (np.swapaxes(L, -1, -2) @ L - np.eye(4)).ravel()
        F[16 * n :, 10 * n :] = np.sqrt(JOINT_WEIGHT) * np.diag(1.0 / (p * self.joint_parameters))
        y[16 * n :] = np.sqrt(JOINT_WEIGHT) * (p - 1.0)
        return F, y

    def step_length(self, change: np.ndarray) -> float:
        """The largest length of a step that stays inside, at most 1; `change` = F step."""
        n = len(self.S)
        of_bodies = np.linalg.eigvalsh(change[: 16 * n].reshape(n, 4, 4)) / np.sqrt(WEIGHT)
        of_joints = change[16 * n :] / np.sqrt(JOINT_WEIGHT)
        shrinkage = -min(of_bodies.min(initial=0.0), of_joints.min(initial=0.0))
        return min(1.0, 0.9 / shrinkage) if shrinkage > 0.0 else 1.0

    def _relative(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E of the bodies, and the joint parameters divided by their prior."""
        n = len(self.S)
        S = pseudo_inertia(pi[: 10 * n].reshape(n, 10))
        return self.inverse @ S @ np.swapaxes(self.inverse, -1, -2), pi[
            10 * n :
        ] / self.joint_parameters


def _raise_eigenvalues(S: np.ndarray) -> np.ndarray:
    """S with eigenvalues of at least LEAST_EIGENVALUE, in units of the body's mass and size."""
    length = max(np.sqrt(max(np.trace(S[:3, :3]), 0.0) / S[3, 3]), 1e-3)
    size = np.array([length, length, length, 1.0]) * np.sqrt(S[3, 3])
    w, Q = np.linalg.eigh(S / np.outer(size, size))
    return (Q * np.maximum(w, LEAST_EIGENVALUE * w.max())) @ Q.T * np.outer(size, size)


def nearest_consistent(
    known: KnownBodies, K: np.ndarray, R: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """The consistent parameters nearest to the base parameters x.

    The weight of the data starts small and grows to 1, so that Newton's method converges for
    precise data far from the prior.
    """
    RK, pi = np.where(known.fixed, 0.0, R @ K), known.initial
    target = R @ x
    weight = 1.0 / max(1.0, float(np.abs(RK @ pi - target).max(initial=0.0)))
    while weight < 1.0:
        pi = _minimise(known, weight * RK, weight * target, pi)
        weight = min(1.0, WEIGHT_GROWTH * weight)
    return np.where(known.fixed, 0.0, _minimise(known, RK, target, pi))


def _minimise(known: KnownBodies, RK: np.ndarray, target: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """Newton's method; each step is a least-squares problem, which is better conditioned."""
    cost = _cost(known, RK @ pi - target, pi)
    for _ in range(STEPS):
        F, y = known.quadratic_model(pi)
        A = np.vstack([np.sqrt(2.0) * RK, F])
        size = np.linalg.norm(A, axis=0)
        right = np.concatenate([np.sqrt(2.0) * (RK @ pi - target), y])
        # the last column of the factor of [A, right] is Q* right: Q is not formed
        factor: Any = np.linalg.qr(np.column_stack([A / size, right]), mode="r")
        step = -np.linalg.solve(factor[:-1, :-1], factor[:-1, -1]) / size
        predicted = float(((A @ step) ** 2).sum())  # decrease of the cost
        length = known.step_length(F @ step)
        while length > 1e-9:
            new = _cost(known, RK @ (pi + length * step) - target, pi + length * step)
            if new < cost - 0.1 * length * predicted:
                break
            length *= 0.5
        else:
            break
        pi, cost = pi + length * step, new
        if predicted < TOLERANCE * max(1.0, 1e-6 * cost):
            break
    return pi


def _cost(known: KnownBodies, r: np.ndarray, pi: np.ndarray) -> float:
    return float(r @ r) + known.distance(pi)
