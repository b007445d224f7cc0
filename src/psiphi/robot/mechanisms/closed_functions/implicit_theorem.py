"""Derivatives of closed chains, by the implicit function theorem on the equations of motion:

    r1 = M a + C v + g - Jc* lambda - J* f_ext - tau = 0        r2 = Jc a + bias = 0

    [da; dlambda] = -K^-1 [dr1; dr2],    K = [ M   -Jc* ]    dr: the change of r for constant a and
                                             [ Jc    0  ]        lambda

r1 and r2 are differentiated like any traced function; factors, pivots and eigenvalues are not.

If rows are redundant, K is singular. The accelerations are still unique. With N = null(Jc),
Y = null(Jc*) and a constant rank,

    da = N y - Jc^+ dr2            (N* M N) y = -N* (dr1 - M Jc^+ dr2)
    dlambda = (Jc*)^+ (M da + dr1) + Y Y* dJc x            Jc x = lambda

where the last term keeps lambda of least norm. The rank is constant if, for every change of the
state that satisfies the constraints, Y* dr2 = 0 (some acceleration still satisfies them) and
Y* dJc N = 0; both are checked. Other changes violate a redundant row, and have no derivative: the
columns of the matrices along them are meaningless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.algebra.expressions.expression import vector
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.loops.closure_types import AXES, ZERO, RelativeMotion
from psiphi.model.spatial.screws import dot
from psiphi.model.spatial.small_matrices import flatten
from psiphi.robot.mechanisms.solve.constraint_solve import omega_stages
from psiphi.robot.mechanisms.solve.delassus_operator import (
    Algebra,
    DelassusOperator,
    f,
    omega_solver,
    u,
)
from psiphi.robot.mechanisms.solve.dense_saddle import (
    INERTIA_TOLERANCE,
    JACOBIAN_RANK_TOLERANCE,
    normalize_rows,
)
from psiphi.robot.mechanisms.solve.rccfd_methods import tau
from psiphi.robot.mechanisms.solve.redundant_constraints import UNMET_TOLERANCE
from psiphi.robot.mechanisms.solve.stage_program import (
    StagePlaces,
    StageProgramCode,
    arguments,
    dynamics_arguments,
    program_of_rules,
)

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

a = vector("a")
STEP = 1e-2  # radians, metres: distance of the neighbouring state that checks the rank
NEWTON_STEPS = 8  # from there back onto the constraints, with the Jacobian of the first state


# -- the functions that are differentiated ---------------------------------------------------------


def equations_of_motion(
    algebra: Algebra, frames: tuple[str, ...], axes: str, forces: bool
) -> StageProgramCode:
    """q, v, tau, (f_ext,) a, lambda -> r1 and r2; with `forces` also the contact wrenches of
    lambda, flat."""
    s, closure = algebra.s, algebra.closure
    force = s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b
    if closure.frames:
        force = force - algebra.B @ f
    if frames:
        force = force - s.B(*frames, axes=axes) @ vector("f_ext", "frame")
    torque = s.H @ s.phi @ force + s.rotor @ a - tau
    balance = algebra.equation(r1=torque - u if closure.mimics else torque)

    def residual(places: StagePlaces) -> StagePlaces:
        c: DelassusOperator = places["c"]
        # a is an input, so the bias of frame constraints is c' = Jc a + bias itself
        rows = [x for state in c.states for x in state.bias]
        mimic_rows = c.apply([0.0] * (6 * len(closure.frames)), places["a"])[len(rows) :]
        return {"r2": rows + mimic_rows, "forces": c.forces(places["lam"])}

    outputs = (Argument("r1", (closure.model.nv,), "v"), Argument("r2", (closure.size,)))
    outputs += (Argument("forces", (6 * len(closure.constraints),)),) * forces
    inputs = (*dynamics_arguments(algebra, frames), *arguments(algebra, "a", "lam"))
    name = f"closed equations of motion {axes} {','.join(frames)}" + " forces" * forces
    stages = {
        "forces": lambda places: places["c"].apply_transpose(places["lam"]),
        "r1": balance,
        "r2": residual,
    }
    return StageProgramCode(
        name, "M a + C v + g - Jc* lambda - tau, Jc a + bias", inputs, outputs, algebra, stages, {}
    )


def constraint_rates(algebra: Algebra) -> StageProgramCode:
    """q, v -> Jc v."""
    inputs, outputs = arguments(algebra, "q", "v"), (Argument("c", (algebra.closure.size,)),)
    return program_of_rules(
        "closed rates",
        "Jc v",
        inputs,
        outputs,
        algebra,
        rates=lambda places: {"c": places["c"].rates(places["v"])},
    )


def saddle_inverse(algebra: Algebra, forces: bool) -> StageProgramCode:
    """q -> the rows of -K^-1 for a, with `forces` also those for lambda, and the ill-conditioning
    of Omega. With X = Jc M^-1,

    -K^-1 = [ X* Omega^-1 X - M^-1   -X* Omega^-1 ]
            [ Omega^-1 X             -Omega^-1    ]
    """
    s, closure = algebra.s, algebra.closure
    nv, m, width = closure.model.nv, closure.size, 6 * len(closure.frames)

    def inverse(places: StagePlaces) -> StagePlaces:
        U, Y = places.get("U", []), places["Y"]
        solve = omega_solver(places["Omega"], places["row scales"])
        M_inv = [Y[i * nv : (i + 1) * nv] for i in range(nv)]
        X = [  # by columns
            places["c"].apply([U[r * nv + i] for r in range(width)], M_inv[i]) for i in range(nv)
        ]
        Omega_inv_X = [solve(column, [])[0] for column in X]
        top = [[0.0] * nv for _ in range(nv)]
        for i in range(nv):
            for k in range(i + 1):
                top[i][k] = top[k][i] = dot(X[i], Omega_inv_X[k]) - M_inv[i][k]
        rows = [[*top[i], *(-x for x in Omega_inv_X[i])] for i in range(nv)]
        if forces:
            Omega_inv = [solve([1.0 if i == k else 0.0 for i in range(m)], [])[0] for k in range(m)]
            rows += [
                [*(column[r] for column in Omega_inv_X), *(-x for x in Omega_inv[r])]
                for r in range(m)
            ]
        return {"inverse": flatten(rows), "ill_conditioning": [solve([0.0] * m, [])[1]]}

    more = {"Y": algebra.equation(Y=s.mass.inv)}
    if closure.frames:
        more["U"] = algebra.equation(U=algebra.J @ s.mass.inv)
    outputs = Argument("inverse", (nv + m * forces, nv + m)), Argument("ill_conditioning", ())
    stages = {**omega_stages(algebra), **more, "inverse": inverse}
    name = "closed inverse" + " forces" * forces
    return StageProgramCode(
        name, "-[M, -Jc*; Jc, 0]^-1", arguments(algebra, "q"), outputs, algebra, stages, {}
    )


# -- the theorem -----------------------------------------------------------------------------------


def dense_saddle_inverse(mass: np.ndarray, Jc: np.ndarray) -> np.ndarray:
    """-K^-1."""
    m, nv = Jc.shape[-2:]
    K = np.zeros((*mass.shape[:-2], nv + m, nv + m))
    K[..., :nv, :nv], K[..., nv:, :nv], K[..., :nv, nv:] = mass, Jc, -_transpose(Jc)
    return -np.linalg.inv(K)


def ranks(Jc: np.ndarray) -> np.ndarray:
    """The rank of Jc (...); 0 if Jc is not finite."""
    finite = np.isfinite(Jc).all(axis=(-2, -1), keepdims=True)
    w = np.linalg.svd(normalize_rows(np.where(finite, Jc, 0.0))[0], compute_uv=False)
    return (w > JACOBIAN_RANK_TOLERANCE * w.max(axis=-1, keepdims=True, initial=0.0)).sum(axis=-1)


class RangeNullSplit:
    """Range and null space of Jc, for states of one rank: Jc = W (W* Jc V) V*.

    Orthonormal bases: V (..., nv, rank) of the row space, N (..., nv, nv - rank) of null(Jc),
    W (..., m, rank) of the range, and Y (..., m, m - rank) of null(Jc*).
    pinv (..., nv, m) = Jc^+ = V (W* Jc V)^-1 W*, and pinv_t = (Jc*)^+ is its transpose.
    """

    def __init__(self, Jc: np.ndarray, rank: int):
        rows, size = normalize_rows(Jc)  # the rank is that of rows of norm one
        U, w, Vt = np.linalg.svd(rows)
        self.V, self.N = _transpose(Vt[..., :rank, :]), _transpose(Vt[..., rank:, :])
        self.W, R = np.linalg.qr(U[..., :rank] * size[..., None])  # Jc = diag(size) U diag(w) Vt
        self.Y = np.linalg.qr(U[..., rank:] / size[..., None])[0]
        self.pinv = self.V @ (np.linalg.solve(R, _transpose(self.W)) / w[..., :rank, None])
        self.pinv_t = _transpose(self.pinv)

    def saddle_inverse(self, mass: np.ndarray) -> np.ndarray:
        """The matrix in place of -K^-1, without the last term of dlambda; NaN if a motion has no
        inertia."""
        inner = _transpose(self.N) @ mass @ self.N
        least = np.linalg.eigvalsh(inner)[..., 0] if inner.shape[-1] else np.ones(mass.shape[:-2])
        valid = (least > INERTIA_TOLERANCE * np.abs(mass).max(axis=(-2, -1)))[..., None, None]
        compliance = self.N @ np.linalg.solve(  # N (N* M N)^-1 N*
            np.where(valid, inner, np.eye(inner.shape[-1])), _transpose(self.N)
        )
        top = np.concatenate([-compliance, compliance @ mass @ self.pinv - self.pinv], axis=-1)
        bottom = self.pinv_t @ (mass @ top + np.eye(*top.shape[-2:]))
        return np.where(valid, np.concatenate([top, bottom], axis=-2), np.nan)

    def is_consistent(self, change: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Whether Y* change = 0, for changes (..., m, k) of rows, relative to `size` (...)."""
        return _max_abs(_transpose(self.Y) @ change) <= UNMET_TOLERANCE * np.maximum(1.0, size)


@dataclass(frozen=True)
class RankPoint:
    """States (n, ...) with redundant constraints, all of one rank, and the terms of their
    derivatives."""

    q: np.ndarray
    v: np.ndarray
    rate: Callable[[np.ndarray, np.ndarray], np.ndarray]  # (q, x) -> d(Jc x)/dq
    Jc: np.ndarray
    split: RangeNullSplit
    positional: np.ndarray  # the rows that constrain positions, not velocities alone

    @cached_property
    def tangent_basis(self) -> np.ndarray:
        """Changes of q that satisfy the rows (n, nv, k)."""
        return tangent_basis(self.Jc, self.split, self.positional)

    def has_constant_rank(self, by_q: np.ndarray, by_v: np.ndarray) -> np.ndarray:
        """Whether the rank is constant along the constraints, and some acceleration satisfies them
        there (n,); `by_q` and `by_v` are the derivatives of r2."""
        split, rate = self.split, self.rate(self.q, self.v) @ self.tangent_basis
        dv = split.pinv @ rate  # -dv/dq, since Jc dv = -d(Jc v)/dq dq
        along = by_q @ self.tangent_basis - by_v @ dv
        size = np.maximum(_max_abs(by_q), _max_abs(by_v) * np.maximum(1.0, _max_abs(dv)))
        constant = split.is_consistent(along, size) & split.is_consistent(by_v @ split.N, size)
        for i in range(split.N.shape[-1]):
            change = self.rate(self.q, split.N[..., i])
            constant &= split.is_consistent(change @ self.tangent_basis, _max_abs(change))
        return constant

    def least_norm_change(self, multipliers: np.ndarray) -> np.ndarray:
        """Y Y* dJc x / dq with Jc x = lambda (n, m, nv): it keeps the multipliers of least norm."""
        x = np.einsum("...ij,...j->...i", self.split.pinv, multipliers)
        return self.split.Y @ (_transpose(self.split.Y) @ self.rate(self.q, x))


def tangent_basis(Jc: np.ndarray, split: RangeNullSplit, positional: np.ndarray) -> np.ndarray:
    """Changes of q that satisfy the positional rows (n, nv, k); if their ranks differ between
    states, those that satisfy all rows."""
    if positional.all():
        return split.N
    rows = Jc[:, positional]
    of_rows = ranks(rows)
    return RangeNullSplit(rows, int(of_rows[0])).N if (of_rows == of_rows[0]).all() else split.N


def rank_is_constant(
    system: System, q: np.ndarray, v: np.ndarray, Jc: np.ndarray, split: RangeNullSplit
) -> np.ndarray:
    """Whether the same rows are redundant near these states, at constant W* e(q) and W* Jc v (n,).

    Checked at one random neighbouring state, which stands for all of them: the rank, the position
    errors and the bias must be consistent there.
    """
    errors, rates = system.constraint_residual(q), Jc @ v[..., None]
    directions = tangent_basis(Jc, split, position_rows(system.algebra))
    random = np.random.default_rng(0).standard_normal(directions.shape[-1])
    step = directions @ (random / max(1.0, float(np.linalg.norm(random))))
    near = system.integrate(q, STEP * step)
    change: Any = 0.0
    for _ in range(NEWTON_STEPS):  # restore W* e(q)
        change = system.constraint_residual(near) - errors
        near = system.integrate(near, -(split.pinv @ change[..., None])[..., 0])
    near_Jc, rank = system.constraint_jacobian(near), split.W.shape[-1]
    good = np.abs(change).max(axis=-1, initial=0.0) < UNMET_TOLERANCE * STEP
    good = good & (ranks(near_Jc) == rank)
    near_split = RangeNullSplit(np.where(good[:, None, None], near_Jc, Jc), rank)
    near_v = v - (near_split.pinv @ (near_Jc @ v[..., None] - rates))[..., 0]
    bias = system.bias_on_constraints(near, np.where(good[:, None], near_v, v))[..., None]
    return good & near_split.is_consistent(bias, _max_abs(bias))


def position_rows(algebra: Algebra) -> np.ndarray:
    """The rows (m,) that constrain positions: those with a position error."""
    at_rest = RelativeMotion([list(row) for row in AXES], ZERO, ZERO, ZERO)
    rows = [
        row.error is not None
        for c in algebra.closure.constraints
        for row in c.row.rows(c.shape, at_rest)
    ]
    return np.array(rows + [True] * len(algebra.closure.mimics), dtype=bool)


def _max_abs(x: np.ndarray) -> np.ndarray:
    """max |x_ij| over the last two axes."""
    return np.abs(x).max(axis=(-2, -1), initial=0.0)


def _transpose(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)
