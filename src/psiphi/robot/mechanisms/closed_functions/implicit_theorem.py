"""Derivatives of closed chains, by the implicit function theorem on their equations of motion:

    r1 = M a + C v + g - Jc* lambda - J* f_ext - tau = 0        r2 = Jc a + bias = 0

    [da; dlambda] = -K^-1 [dr1; dr2],      K = [ M   -Jc* ]     dr: the change of r under that of q, v, ..., a and lambda kept
                                               [ Jc    0  ]

r1 and r2 are differentiated as every traced function is; no factor, pivot or eigenvalue ever is. Where rows follow from others,
K has no inverse. Accelerations are still unique, and with N = null(Jc), Y = null(Jc*) and a rank that stays,

    da = N y - Jc^+ dr2,   (N* M N) y = -N* (dr1 - M Jc^+ dr2)      dlambda = (Jc*)^+ (M da + dr1) + Y Y* dJc x,   Jc x = lambda

the last part because lambda is of least norm, and stays so. That the rank stays is looked at: along every change of the state
that keeps the constraints, Y* dr2 = 0 (there are still accelerations that keep them) and Y* dJc N = 0. Along other changes a
redundant row cannot be kept, and nothing is defined: there the matrices mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.algebra.expressions.expression import vector
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.loops.closure_types import AXES, ZERO, Relative
from psiphi.model.spatial.screws import dot
from psiphi.model.spatial.small_matrices import flatten
from psiphi.robot.mechanisms.solve.constraint_solve import compliance
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator, f, solver, u
from psiphi.robot.mechanisms.solve.dense_saddle import FELT, KEPT, comparable
from psiphi.robot.mechanisms.solve.rccfd_methods import tau
from psiphi.robot.mechanisms.solve.redundant_constraints import UNMET
from psiphi.robot.mechanisms.solve.stage_program import (
    StagePlaces,
    StageProgramCode,
    arguments,
    circuit,
    given,
)

a = vector("a")
AWAY = 1e-2  # radians, metres: a state beside another
NEWTON = 8  # steps from it onto the constraints, by their Jacobian where one came from


# -- what is differentiated ---------------------------------------------------------------------------------------------------


def laws(algebra: Algebra, frames: tuple[str, ...], axes: str, forces: bool) -> StageProgramCode:
    """q, v, tau, (f_ext,) a, lambda -> r1 and r2; with `forces` also the contact forces of lambda, in a row."""
    s, closure = algebra.s, algebra.closure
    force = s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b
    if closure.frames:
        force = force - algebra.B @ f
    if frames:
        force = force - s.B(*frames, axes=axes) @ vector("f_ext", "frame")
    torque = s.H @ s.phi @ force + s.rotor @ a - tau
    balance = algebra.equation(r1=torque - u if closure.follows else torque)

    def kept(places: StagePlaces) -> StagePlaces:
        c: DelassusOperator = places["c"]  # of frames that accelerate: their bias is c' itself
        rows = [x for meeting in c.meetings for x in meeting.bias]
        return {
            "r2": rows + c.sense([0.0] * (6 * len(closure.frames)), places["a"])[len(rows) :],
            "forces": c.forces(places["lam"]),
        }

    outputs = (Argument("r1", (closure.model.nv,), "v"), Argument("r2", (closure.size,)))
    outputs += (Argument("forces", (6 * len(closure.constraints),)),) * forces
    inputs = (*given(algebra, frames), *arguments(algebra, "a", "lam"))
    name = f"closed laws {axes} {','.join(frames)}" + " forces" * forces
    stages = {"spread": lambda places: places["c"].spread(places["lam"]), "r1": balance, "r2": kept}
    return StageProgramCode(
        name, "M a + C v + g - Jc* lambda - tau, Jc a + bias", inputs, outputs, algebra, stages, {}
    )


def rates(algebra: Algebra) -> StageProgramCode:
    """q, v -> Jc v."""
    inputs, outputs = arguments(algebra, "q", "v"), (Argument("c", (algebra.closure.size,)),)
    return circuit(
        "closed rates",
        "Jc v",
        inputs,
        outputs,
        algebra,
        rates=lambda places: {"c": places["c"].rates(places["v"])},
    )


def inverse(algebra: Algebra, forces: bool) -> StageProgramCode:
    """q -> the rows of -K^-1 for a, with `forces` those for lambda too, and the strain of Omega. With X = Jc M^-1

    -K^-1 = [ X* Omega^-1 X - M^-1   -X* Omega^-1 ]
            [ Omega^-1 X             -Omega^-1    ]
    """
    s, closure = algebra.s, algebra.closure
    nv, m, width = closure.model.nv, closure.size, 6 * len(closure.frames)

    def solved(places: StagePlaces) -> StagePlaces:
        U, Y, solve = places.get("U", []), places["Y"], solver(places["Omega"], places["reach"])
        rows = [Y[i * nv : (i + 1) * nv] for i in range(nv)]
        columns = [
            places["c"].sense([U[r * nv + i] for r in range(width)], rows[i]) for i in range(nv)
        ]  # of X
        found = [solve(column, [])[0] for column in columns]  # of Omega^-1 X
        top = [[0.0] * nv for _ in range(nv)]
        for i in range(nv):
            for k in range(i + 1):
                top[i][k] = top[k][i] = dot(columns[i], found[k]) - rows[i][k]
        answer = [[*top[i], *(-x for x in found[i])] for i in range(nv)]
        if forces:
            units = [solve([1.0 if i == k else 0.0 for i in range(m)], [])[0] for k in range(m)]
            answer += [
                [*(column[r] for column in found), *(-x for x in units[r])] for r in range(m)
            ]
        return {"answer": flatten(answer), "strain": [solve([0.0] * m, [])[1]]}

    more = {"Y": algebra.equation(Y=s.mass.inv)}
    if closure.frames:
        more["U"] = algebra.equation(U=algebra.J @ s.mass.inv)
    outputs = Argument("answer", (nv + m * forces, nv + m)), Argument("strain", ())
    stages = {**compliance(algebra), **more, "solved": solved}
    name = "closed inverse" + " forces" * forces
    return StageProgramCode(
        name, "-[M, -Jc*; Jc, 0]^-1", arguments(algebra, "q"), outputs, algebra, stages, {}
    )


# -- the theorem --------------------------------------------------------------------------------------------------------------


def regular(mass: np.ndarray, Jc: np.ndarray) -> np.ndarray:
    """-K^-1."""
    m, nv = Jc.shape[-2:]
    K = np.zeros((*mass.shape[:-2], nv + m, nv + m))
    K[..., :nv, :nv], K[..., nv:, :nv], K[..., :nv, nv:] = mass, Jc, -_t(Jc)
    return -np.linalg.inv(K)


def ranks(Jc: np.ndarray) -> np.ndarray:
    """How many rows do not follow from others; none where a row is no number."""
    w = np.linalg.svd(
        comparable(np.where(np.isfinite(Jc).all(axis=(-2, -1), keepdims=True), Jc, 0.0))[0],
        compute_uv=False,
    )
    return (w > KEPT * w.max(axis=-1, keepdims=True, initial=0.0)).sum(axis=-1)


class RangeNullSplit:
    """Jc of some states, all of one rank: Jc = W (W* Jc V) V*, with V (..., nv, rank) motions that rows feel and N (..., nv,
    nv - rank) those that none does, W (..., m, rank) multipliers of least norm and Y (..., m, m - rank) those that do nothing,
    each orthonormal; Jc^+ (..., nv, m) = V (W* Jc V)^-1 W*, and its transpose, (Jc*)^+."""

    def __init__(self, Jc: np.ndarray, rank: int):
        rows, size = comparable(Jc)  # ranks are judged of rows of one size
        U, w, Vt = np.linalg.svd(rows)
        self.V, self.N = _t(Vt[..., :rank, :]), _t(Vt[..., rank:, :])
        self.W, R = np.linalg.qr(
            U[..., :rank] * size[..., None]
        )  # the range of Jc is that of its rows' sizes times U
        self.Y = np.linalg.qr(U[..., rank:] / size[..., None])[0]
        self.inverse = self.V @ (np.linalg.solve(R, _t(self.W)) / w[..., :rank, None])
        self.least = _t(self.inverse)

    def answer(self, mass: np.ndarray) -> np.ndarray:
        """What takes the place of -K^-1, but for the last part of dlambda; NaN where a motion has no inertia."""
        inner = _t(self.N) @ mass @ self.N
        lightest = (
            np.linalg.eigvalsh(inner)[..., 0] if inner.shape[-1] else np.ones(mass.shape[:-2])
        )
        felt = (lightest > FELT * np.abs(mass).max(axis=(-2, -1)))[..., None, None]
        moved = self.N @ np.linalg.solve(
            np.where(felt, inner, np.eye(inner.shape[-1])), _t(self.N)
        )  # N (N* M N)^-1 N*
        top = np.concatenate([-moved, moved @ mass @ self.inverse - self.inverse], axis=-1)
        bottom = self.least @ (mass @ top + np.eye(*top.shape[-2:]))
        return np.where(felt, np.concatenate([top, bottom], axis=-2), np.nan)

    def keeps(self, change: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Whether Y* change = 0, for changes (..., m, k) of rows made of numbers of that size (...)."""
        return np.abs(_t(self.Y) @ change).max(axis=(-2, -1), initial=0.0) <= UNMET * np.maximum(
            1.0, size
        )


@dataclass(frozen=True)
class RankPoint:
    """States (n, ...) of a system whose constraints are redundant, all of one rank: what their derivatives are made of."""

    q: np.ndarray
    v: np.ndarray
    rate: Any  # (q, x) -> d(Jc x)/dq
    Jc: np.ndarray
    parts: RangeNullSplit
    held: np.ndarray  # which rows hold positions, not velocities alone

    @cached_property
    def moves(self) -> np.ndarray:
        """Changes of q that keep the rows (n, nv, k)."""
        return moves(self.Jc, self.parts, self.held)

    def smooth(self, by_q: np.ndarray, by_v: np.ndarray) -> np.ndarray:
        """Whether the rank stays along the constraints, and with it accelerations that keep them: (n,)."""
        parts, turned = self.parts, self.rate(self.q, self.v) @ self.moves
        along = by_q @ self.moves - by_v @ (
            parts.inverse @ turned
        )  # v follows: Jc dv = -d(Jc v)/dq dq
        size = np.maximum(_most(by_q), _most(by_v) * np.maximum(1.0, _most(parts.inverse @ turned)))
        found = parts.keeps(along, size) & parts.keeps(by_v @ parts.N, size)
        for i in range(parts.N.shape[-1]):
            there = self.rate(self.q, parts.N[..., i])
            found &= parts.keeps(there @ self.moves, _most(there))
        return found

    def slack(self, multipliers: np.ndarray) -> np.ndarray:
        """Y Y* dJc x / dq, Jc x = lambda (n, m, nv): multipliers stay of least norm."""
        x = np.einsum("...ij,...j->...i", self.parts.inverse, multipliers)
        return self.parts.Y @ (_t(self.parts.Y) @ self.rate(self.q, x))


def moves(Jc: np.ndarray, parts: RangeNullSplit, held: np.ndarray) -> np.ndarray:
    """Changes of q that keep the rows which hold positions (n, nv, k); where ranks differ, those that keep all rows."""
    if held.all():
        return parts.N
    own = Jc[:, held]
    found = ranks(own)
    return RangeNullSplit(own, int(found[0])).N if (found == found[0]).all() else parts.N


def lasts(
    system: Any, q: np.ndarray, v: np.ndarray, Jc: np.ndarray, parts: RangeNullSplit
) -> np.ndarray:
    """Whether rows follow from others beside these states as they do here, wherever W* e(q) and W* Jc v stay: (n,). Looked at a
    step away: where rank, errors and rates are those of a chance state beside it, they are those of all."""
    open, rate, directions = (
        system.constraint_residual(q),
        Jc @ v[..., None],
        moves(Jc, parts, holding(system.algebra)),
    )
    away = np.random.default_rng(0).standard_normal(directions.shape[-1])
    near = system.integrate(q, AWAY * (directions @ (away / max(1.0, float(np.linalg.norm(away))))))
    left: Any = 0.0
    for _ in range(NEWTON):  # W* e(q) as it was
        left = system.constraint_residual(near) - open
        near = system.integrate(near, -(parts.inverse @ left[..., None])[..., 0])
    there = system.constraint_jacobian(near)
    good = (np.abs(left).max(axis=-1, initial=0.0) < UNMET * AWAY) & (
        ranks(there) == parts.W.shape[-1]
    )
    own = RangeNullSplit(np.where(good[:, None, None], there, Jc), parts.W.shape[-1])
    moved = v - (own.inverse @ (there @ v[..., None] - rate))[..., 0]
    bias = system.bias_on_constraints(near, np.where(good[:, None], moved, v))[..., None]
    return good & own.keeps(bias, np.abs(bias).max(axis=(-2, -1), initial=0.0))


def holding(algebra: Algebra) -> np.ndarray:
    """Which rows hold positions: all but those that have no integral."""
    still = Relative([list(row) for row in AXES], ZERO, ZERO, ZERO)
    rows = [
        row.error is not None
        for c in algebra.closure.constraints
        for row in c.row.rows(c.shape, still)
    ]
    return np.array(rows + [True] * len(algebra.closure.follows), dtype=bool)


def _most(x: np.ndarray) -> np.ndarray:
    return np.abs(x).max(axis=(-2, -1), initial=0.0)


def _t(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)
