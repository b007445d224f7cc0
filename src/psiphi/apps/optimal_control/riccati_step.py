"""One step of the Riccati recursion of DDP, in blocks of nv, on any scalars.

A semi-implicit step is two steps, first of the velocity and then of the configuration:

    w = dv + h (a_q delta + a_v dv + a_tau du)
    A = T E,  B = T [0; Z],  T = [Ad J; 0 I],  E = [I 0; X Y],
    X = h a_q,  Y = I + h a_v,  Z = h a_tau S

With P~ = T* P T, G = P~22 [X Y Z], the blocks of Q = l + [A B]* P [A B] cost 16 nv^3 instead of
42 nv^3. Torques close to a bound that the gradient would violate are masked: F = 0 there, and k is
the step to the bound,

    H = F (Quu + mu D) F + (I - F),   k = -H^-1 F Qu + (I - F) (bound - u),   K = -H^-1 F Qux
    p = Qx + Qux* F k,   P = Qxx + Qux* F K
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import maximum, minimum
from psiphi.model.spatial.screws import dot, square_root
from psiphi.model.spatial.small_matrices import apply, product, transpose

Matrix = list[list[Any]]


class StepSlopes(NamedTuple):
    """The derivatives of one step, in blocks."""

    Ad: Matrix  # of the new configuration by the old one
    J: Matrix  # of the new configuration by the new velocity
    X: Matrix
    Y: Matrix
    Z: Matrix


class CostSlopes(NamedTuple):
    """The derivatives of the cost of one step, and of lam* d2f if it is added."""

    x: list
    u: list
    xx: Matrix
    ux: Matrix
    uu: Matrix


@dataclass
class RiccatiResult:
    """Gains, the cost to go, and what the step says about the solution."""

    k: list
    K: Matrix
    p: list
    P: Matrix
    decrease: Any  # expected, of a full step: Qu* F H^-1 F Qu / 2
    residual: Any  # max F Qu_i^2 / Quu_ii
    pivot: Any  # the least pivot of H, divided by its diagonal entry; 1 if it was not asked for


def riccati_step(
    p: list,
    P: Matrix,
    step: StepSlopes,
    cost: CostSlopes,
    mask: Callable[[list], tuple[list, list]] | None,
    damping: Matrix,
    with_pivot: bool = False,
) -> RiccatiResult:
    """Gains and the cost to go before the step, from those after it.

    `mask` maps Qu to F and to the steps of masked torques to their bounds.
    """
    n, m = len(step.X), len(cost.u)
    Qx, Qu, Qxx, Qux, Quu = _quadratic_model(p, P, step, cost, n)
    free, to_bound = mask(Qu) if mask is not None else ([1.0] * m, [0.0] * m)
    H = [
        [
            (Quu[i][j] + damping[i][j]) * (free[i] * free[j])
            if i != j
            else (Quu[i][i] + damping[i][i]) * free[i] + (1.0 - free[i])
            for j in range(m)
        ]
        for i in range(m)
    ]
    L, d = small_matrices.factor(H)
    rows = [[free[i] * y for y in (*Qux[i], Qu[i])] for i in range(m)]
    reduced = transpose([small_matrices.forward(L, list(c)) for c in zip(*rows, strict=True)])
    scaled = [[d[i] * y for y in row] for i, row in enumerate(reduced)]
    columns, scaled_columns = transpose(reduced), transpose(scaled)
    last = scaled_columns[-1]
    P_new: Matrix = [[0.0] * (2 * n) for _ in range(2 * n)]
    for i in range(2 * n):
        for j in range(i, 2 * n):
            P_new[i][j] = P_new[j][i] = Qxx[i][j] - dot(columns[i], scaled_columns[j])
    p_new = [Qx[i] - dot(columns[i], last) for i in range(2 * n)]
    solution = [small_matrices.backward(L, list(c)) for c in scaled_columns]
    K = [[-solution[j][i] for j in range(2 * n)] for i in range(m)]
    k = [to_bound[i] - solution[-1][i] for i in range(m)]
    residual: Any = 0.0
    pivot: Any = 1.0
    for i in range(m):
        gradient = free[i] * Qu[i]
        residual = maximum(residual, gradient * gradient / Quu[i][i])
        if with_pivot:
            pivot = minimum(pivot, 1.0 / (d[i] * square_root(H[i][i] * H[i][i])))
    return RiccatiResult(k, K, p_new, P_new, 0.5 * dot(columns[-1], last), residual, pivot)


def _quadratic_model(
    p: list, P: Matrix, step: StepSlopes, cost: CostSlopes, n: int
) -> tuple[list, list, Matrix, Matrix, Matrix]:
    """Qx, Qu, Qxx, Qux, Quu."""
    R, (X, Y, Z) = range(n), step[2:]
    p1, p2, P11, P12, P22 = _before_configuration(p, P, step.Ad, step.J, n)
    GX, GY, GZ = (product(P22, M) for M in (X, Y, Z))
    P21 = transpose(P12)
    half = [[P21[i][j] + 0.5 * GX[i][j] for j in R] for i in R]
    W, Xt, Yt, Zt = product(transpose(X), half), transpose(X), transpose(Y), transpose(Z)
    both = [[P12[i][j] + GX[j][i] for j in R] for i in R]  # P12 + X* P22
    Q12, GYt, m = product(both, Y), transpose(GY), len(cost.u)
    Qxx: Matrix = [[0.0] * (2 * n) for _ in range(2 * n)]
    for i in R:
        for j in R:
            Qxx[i][n + j] = Qxx[n + j][i] = cost.xx[i][n + j] + Q12[i][j]
        for j in range(i, n):
            Qxx[i][j] = Qxx[j][i] = cost.xx[i][j] + P11[i][j] + (W[i][j] + W[j][i])
            velocity = cost.xx[n + i][n + j] + dot(Yt[i], GYt[j])
            Qxx[n + i][n + j] = Qxx[n + j][n + i] = velocity
    Ux, Uv = product(Zt, transpose(both)), product(Zt, GY)
    Qux = [[x + y for x, y in zip(cost.ux[i], (*Ux[i], *Uv[i]), strict=True)] for i in range(m)]
    GZt, Quu = transpose(GZ), [[0.0] * m for _ in range(m)]
    for i in range(m):
        for j in range(i, m):
            Quu[i][j] = Quu[j][i] = cost.uu[i][j] + dot(Zt[i], GZt[j])
    Qx = [cost.x[i] + p1[i] + dot(Xt[i], p2) for i in R]
    Qx += [cost.x[n + i] + dot(Yt[i], p2) for i in R]
    Qu = [cost.u[i] + dot(Zt[i], p2) for i in range(m)]
    return Qx, Qu, Qxx, Qux, Quu


def _before_configuration(
    p: list, P: Matrix, Ad: Matrix, J: Matrix, n: int
) -> tuple[list, list, Matrix, Matrix, Matrix]:
    """T* p and the blocks of T* P T: the cost to go when only the velocity has moved."""
    R = range(n)
    P11, P12, P22 = [r[:n] for r in P[:n]], [r[n:] for r in P[:n]], [r[n:] for r in P[n:]]
    turned = product(P11, Ad)  # P11 Ad
    Adt, Jt = transpose(Ad), transpose(J)
    crossing = [  # P11 J + P12
        [x + y for x, y in zip(a, b, strict=True)]
        for a, b in zip(product(P11, J), P12, strict=True)
    ]
    mixed = product(Jt, crossing)  # J* (P11 J + P12)
    new11: Matrix = [[0.0] * n for _ in R]
    new22: Matrix = [[0.0] * n for _ in R]
    turned_columns, P12_J = transpose(turned), product(Jt, P12)
    for i in R:
        for j in range(i, n):
            new11[i][j] = new11[j][i] = dot(Adt[i], turned_columns[j])
            new22[i][j] = new22[j][i] = P22[i][j] + (mixed[i][j] + P12_J[j][i])
    first = apply(Adt, p[:n])
    second = [x + y for x, y in zip(p[n:], apply(Jt, p[:n]), strict=True)]
    return first, second, new11, product(Adt, crossing), new22
