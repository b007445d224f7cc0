"""Forward dynamics with the articulated inertias of an earlier configuration (S1 section 7).

The solution P of the Riccati equation changes little from one step to the next. Held, with the
other operators at the configuration q,

    D = H P H* + J_m,  G = P H* D^-1,  K = E_phi G,  psi = (I - E_phi (I - G H))^-1
    (I - H psi K)* D^-1 (I - H psi K) = (mass + H phi R phi* H*)^-1
    R = P - E_phi (I - G H) P E_phi* - M        the residual of the Riccati equation at q

So a held P gives the exact dynamics of a robot whose links have the inertias M + R. P stays
positive definite, and with it D and the mass matrix. R grows in proportion to the motion since P
was computed. With X the largest |1 - lambda| of the eigenvalues of the held inverse times mass, the
relative error of accelerations is at most X in the metric of mass + H phi R phi* H*, and each
correction by an inverse dynamics, a + held^-1 (tau - ID(a)), reduces it by X.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import check_robot, real_array, whole_number
from psiphi.model.state_checks import check_unit_quaternions
from psiphi.robot.robot import Robot

if TYPE_CHECKING:
    from psiphi.algebra.expressions.operators import Operators


MOST_CORRECTIONS = 1000


class HeldRiccati:
    """The Riccati solution of one configuration, used at others: `held_riccati`."""

    def __init__(self, robot: Robot, q: np.ndarray):
        self.robot, self.q = robot, q
        self.P = self._operators.P.dense(q)

    def __repr__(self) -> str:
        return f"<HeldRiccati of {self.robot.name!r}>"

    @property
    def _operators(self) -> Operators:
        return self.robot.operators

    def residual(self, q: Numbers) -> np.ndarray:
        """R (..., n, n), block diagonal, in body axes: what the links' inertias seem to gain."""
        q = self._read(q)
        E_phi, M = self._operators.E_phi.dense(q), self._operators.M.dense(q)
        H, D = self._joint_operators(q)
        G = _transpose(np.linalg.solve(D, H @ self.P))
        inside = self.P - G @ (H @ self.P)
        return self.P - E_phi @ inside @ _transpose(E_phi) - M

    def mass_matrix(self, q: Numbers) -> np.ndarray:
        """mass + H phi R phi* H* (..., nv, nv): the mass matrix that the held solution inverts."""
        q = self._read(q)
        Hphi = (self._operators.H @ self._operators.phi).dense(q)
        return self.robot.mass_matrix(q) + Hphi @ self.residual(q) @ _transpose(Hphi)

    def mass_matrix_inverse(self, q: Numbers) -> np.ndarray:
        """(I - H psi K)* D^-1 (I - H psi K) (..., nv, nv) with the held P."""
        q = self._read(q)
        E_phi, (H, D) = self._operators.E_phi.dense(q), self._joint_operators(q)
        G = _transpose(np.linalg.solve(D, H @ self.P))
        eye, one = np.eye(E_phi.shape[-1]), np.eye(H.shape[-2])
        psi_K = np.linalg.solve(eye - E_phi @ (eye - G @ H), E_phi @ G)
        W = one - H @ psi_K
        return _transpose(W) @ np.linalg.solve(D, W)

    def sensitivity(self, q: Numbers) -> np.ndarray:
        """X (...): the largest |1 - lambda| of the eigenvalues of the held inverse times mass.

        It bounds the relative error of accelerations and of the kinetic energy nu* nu / 2, and is
        the factor by which a correction reduces the error; corrections converge if it is below 1.
        """
        q = self._read(q)
        L = np.linalg.cholesky(self.mass_matrix_inverse(q))
        values = np.linalg.eigvalsh(_transpose(L) @ self.robot.mass_matrix(q) @ L)
        return np.abs(1.0 - values).max(axis=-1)

    def forward_dynamics(
        self, q: Numbers, v: Numbers, tau: Numbers, corrections: int = 0
    ) -> np.ndarray:
        """a (..., nv) with the held P, after some corrections by inverse dynamics."""
        q = self._read(q)
        v, tau = (
            real_array(name, x, (self.robot.nv,), f"give {self.robot.nv} numbers")
            for name, x in (("v", v), ("tau", tau))
        )
        inverse = self.mass_matrix_inverse(q)
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1])
        a = np.zeros((*lead, self.robot.nv))
        count = whole_number("corrections", corrections)
        if count > MOST_CORRECTIONS:
            raise StateError(
                f"corrections is {count}, expected at most {MOST_CORRECTIONS}",
                "compute P anew if the error is that large",
            )
        for _ in range(1 + count):
            missing = tau - self.robot.inverse_dynamics(q, v, a)
            a = a + np.einsum("...ij,...j->...i", inverse, missing)
        return a

    def _joint_operators(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """H, and D = H P H* + J_m with the held P."""
        H = self._operators.H.dense(q)
        return H, H @ self.P @ _transpose(H) + self._operators.rotor.dense(q)

    def _read(self, q: Numbers) -> np.ndarray:
        array = real_array("q", q, (self.robot.nq,), f"give {self.robot.nq} numbers")
        check_unit_quaternions(self.robot, "q", array)
        return array


def held_riccati(robot: Robot, q: Numbers) -> HeldRiccati:
    """Dynamics at other configurations with the articulated inertias P of the configuration q.

    Dense matrices, for studies of how long P may be held.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> q = robot.random(seed=0)
    >>> held = pp.estimation.held_riccati(robot, q)
    >>> far = [held.sensitivity(q + step * np.ones(6)) for step in (1e-3, 2e-3)]
    >>> bool(held.sensitivity(q) < 1e-9), round(float(far[1] / far[0]), 1)
    (True, 2.0)
    """
    check_robot("held_riccati", robot, Robot)
    array = real_array("q", q, (robot.nq,), f"give {robot.nq} numbers")
    check_unit_quaternions(robot, "q", array)
    return HeldRiccati(robot, array)


def _transpose(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)
