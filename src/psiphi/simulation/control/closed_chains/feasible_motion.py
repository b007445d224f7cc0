"""Motions that satisfy the constraints of a closed chain, as rules on any scalars.

With y the independent coordinates, Jc = [Ji Jd] and v = N y',

    N = [1; -Jd^+ Ji]        dN/dt = [0; -Jd^+ dJc/dt N]        v = N y',  a = N y'' + dN/dt y'

Jd^+ = (Jd* Jd)^-1 Jd*, so that redundant rows are allowed. A result is NaN, and `ill_conditioning`
is large, where the independent coordinates do not determine the motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.manifold import Manifold
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import add, dot, square_root, subtract
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.solve.semidefinite_solve import UNSOLVABLE
from psiphi.simulation.control.closed_chains.independent_joints import ChainCoordinates
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.control.task_forces import limited_feedback


def matrix(x: np.ndarray, columns: int) -> list[list]:
    """The rows of a flat matrix."""
    flat = entries(x)
    return [flat[i : i + columns] for i in range(0, len(flat), columns)]


def one_or_nan(ill_conditioning: Any) -> Any:
    """1, or NaN where a solve is ill-conditioned."""
    good = less(ill_conditioning, ILL_CONDITIONED)
    return good / good


class DependentMotion:
    """The dependent velocities and accelerations of a chain in one state."""

    def __init__(self, at: ChainCoordinates, Jc: list[list], Jc_rate: list[list]):
        self.at, self.Jc_rate = at, Jc_rate
        self.own = [[row[i] for i in at.independent] for row in Jc]
        self.columns = [[row[i] for row in Jc] for i in at.dependent]
        self.gram = [[dot(x, y) for y in self.columns] for x in self.columns]
        self.factors = semidefinite_solve.factor(self.gram)
        unused = [1.0 - used for used in self.factors[2]]
        start: Any = 0.0
        for x in unused:
            start = start + UNSOLVABLE * x
        self.ill_conditioning: Any = small_matrices.ill_conditioning(
            self.gram, self.factors[1], start=start
        )

    def velocity(self, y: list) -> list:
        """N y' (nv entries)."""
        return self._whole(y, small_matrices.apply(self.own, y))

    def acceleration(self, y: list, v: list) -> list:
        """N y'' + dN/dt y', with v = N y'."""
        rows = add(small_matrices.apply(self.own, y), small_matrices.apply(self.Jc_rate, v))
        return self._whole(y, rows)

    def _whole(self, y: list, rows: list) -> list:
        """y and x with Jd x = -rows, by coordinate."""
        right = [-dot(column, rows) for column in self.columns]
        x = small_matrices.solve(self.factors[:2], right) if right else []
        by_coordinate = dict(zip(self.at.independent, y, strict=True))
        by_coordinate |= dict(zip(self.at.dependent, x, strict=True))
        return [by_coordinate[i] for i in range(self.at.nv)]


@dataclass(frozen=True)
class FeasibleReference:
    """v_c, a_c: the reference velocity and its derivative, of the independent coordinates, as a
    motion of all: v_c = N v_r, a_c = dv_c/dt."""

    at: ChainCoordinates

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        n = self.at.nv
        return {"Jc": self.at.rows * n, "dJc": self.at.rows * n, "v_r": n, "a_r": n}

    def __call__(self, m: Manifold, Jc, dJc, v_r, a_r) -> Values:
        n, own = self.at.nv, self.at.independent
        motion = DependentMotion(self.at, matrix(Jc, n), matrix(dJc, n))
        mark = one_or_nan(motion.ill_conditioning)
        v = motion.velocity([entries(v_r)[i] for i in own])
        a = motion.acceleration([entries(a_r)[i] for i in own], v)
        return {
            "v_c": stack_entries([x * mark for x in v]),
            "a_c": stack_entries([x * mark for x in a]),
            "ill_conditioning": stack_entries([motion.ill_conditioning]),
        }


@dataclass(frozen=True)
class DecoupledMotion:
    """u = N y'' + dN/dt y' with y'' = y_r'' + m^-* (k m* + (dm/dt)*) (y_r' - y'), N* M N = m m*.

    dm/dt = m F with F the lower half of m^-1 d(N* M N)/dt m^-*, its diagonal halved, and
    dM/dt = C + C*.
    """

    at: ChainCoordinates

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        n, rows = self.at.nv, self.at.rows
        return {
            **dict.fromkeys(("Jc", "dJc"), rows * n),
            **dict.fromkeys(("M", "C"), n * n),
            **dict.fromkeys(("v", "v_r", "a_r", "k"), n),
        }

    def __call__(self, m: Manifold, Jc, dJc, M, C, v, v_r, a_r, k) -> Values:
        n, own = self.at.nv, self.at.independent
        motion = DependentMotion(self.at, matrix(Jc, n), matrix(dJc, n))
        d = range(len(own))
        y, y_r, y_rr, gains = ([entries(x)[i] for i in own] for x in (v, v_r, a_r, k))
        units = [[1.0 if i == j else 0.0 for j in d] for i in d]
        N = [motion.velocity(unit) for unit in units]  # columns
        N_rate = [motion.acceleration([0.0 for _ in d], column) for column in N]
        MN, CN = ([small_matrices.apply(matrix(x, n), column) for column in N] for x in (M, C))
        inner = [[dot(x, y) for y in MN] for x in N]
        half = [[dot(N_rate[i], MN[j]) + dot(N[i], CN[j]) for j in d] for i in d]
        rate = [[half[i][j] + half[j][i] for j in d] for i in d]

        L, d_inv = small_matrices.factor(small_matrices.mirror_upper_half(inner))
        root = [square_root(x) for x in d_inv]  # 1 / diag(m)

        def m_inverse(x: list) -> list:
            return [a * b for a, b in zip(root, small_matrices.forward(L, x), strict=True)]

        W = [m_inverse(c) for c in small_matrices.transpose([m_inverse(row) for row in rate])]
        missing = subtract(y_r, y)
        s = [x / r for x, r in zip(small_matrices.multiply_upper(L, missing), root, strict=True)]
        turned = [  # F* s
            0.5 * W[j][j] * s[j] + dot([W[i][j] for i in d if i > j], s[j + 1 :])
            if j + 1 < len(own)
            else 0.5 * W[j][j] * s[j]
            for j in d
        ]
        wanted = [g * x + t for g, x, t in zip(gains, s, turned, strict=True)]
        scaled = [x * r for x, r in zip(wanted, root, strict=True)]
        y_acc = add(y_rr, small_matrices.backward(L, scaled))
        mark = one_or_nan(motion.ill_conditioning)
        a = motion.acceleration(y_acc, motion.velocity(y))
        return {
            "u": stack_entries([x * mark for x in a]),
            "ill_conditioning": stack_entries([motion.ill_conditioning]),
        }


@dataclass(frozen=True)
class TaskMotion:
    """u + M^-1 K* (K M^-1 K*)^+ ([0; x''_ref] - [dJc/dt v; dJ/dt v] - K u),  K = [Jc; J]

    The acceleration nearest to u, by the mass matrix, that satisfies the constraints and moves the
    frame as desired (Gauss).
    """

    at: ChainCoordinates
    rows: int  # of the task: 3 or 6

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        n, m = self.at.nv, self.at.rows
        return {
            **dict.fromkeys(("Jc", "dJc"), m * n),
            "M": n * n,
            "J": 6 * n,
            "u": n,
            "v": n,
            "T_0": 16,
            "twist_0": 6,
            "drift_0": 6,
            "x_ref_0": 16 if self.rows == 6 else 3,
            "r_ref_0": self.rows,
            "gains": 4,
        }

    def __call__(
        self, m: Manifold, Jc, dJc, M, J, u, v, T_0, twist_0, drift_0, x_ref_0, r_ref_0, gains
    ) -> Values:
        n, task = self.at.nv, slice(6 - self.rows, 6)
        K = [*matrix(Jc, n), *matrix(J, n)[task]]
        a, gain = entries(u), entries(gains)
        feedback = limited_feedback(self.rows, entries(T_0), entries(x_ref_0), gain)
        twist, drift = entries(twist_0)[task], entries(drift_0)[task]
        right = [
            -(dot(row, a) + dot(rate, entries(v)))
            for row, rate in zip(K, matrix(dJc, n), strict=False)
        ]
        right += [
            kp_e + gain[1] * (rate_ref - rate) - x
            for kp_e, rate_ref, rate, x in zip(
                feedback, entries(r_ref_0), twist, drift, strict=True
            )
        ]
        mass = small_matrices.factor(matrix(M, n))
        responses = [small_matrices.solve(mass, row) for row in K]
        Omega = [[dot(row, response) for response in responses] for row in K]
        Omega = small_matrices.mirror_upper_half(Omega)
        scales = [_size(Omega, r, self.at.rows) for r in range(len(K))]
        rounding = [semidefinite_solve.ROW_ROUNDING * x for x in scales]
        factors = semidefinite_solve.factor(Omega, rounding)
        forces, ill = semidefinite_solve.solve_factored(factors, Omega, right, rounding)
        mark = one_or_nan(ill)
        change = small_matrices.apply(small_matrices.transpose(responses), forces)
        return {
            "u": stack_entries([(x + y) * mark for x, y in zip(a, change, strict=True)]),
            "ill_conditioning": stack_entries([ill]),
        }


def _size(Omega: list[list], row: int, constraints: int) -> Any:
    """The sum of the diagonal entries of the constraints, or of the task: the size of a row."""
    own = range(constraints) if row < constraints else range(constraints, len(Omega))
    total: Any = 0.0
    for i in own:
        total = total + Omega[i][i]
    return total
