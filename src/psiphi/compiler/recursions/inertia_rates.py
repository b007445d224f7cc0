"""Derivatives of the articulated inertia along the motion (docs/mathematics.md section 10).

    Ṗ(k) = sum phi {Ṗ+ + Omega_d P+ + P+ Omega_d*} phi*        (children; phi turns with V_d = H* v)
    U̇ = Ṗ H* + P Ḣ*,   Ḋ = H U̇ + Ḣ P H*,   Ṗ+ = Ṗ - W G* - G W*  with  W = U̇ - G Ḋ / 2

Omega_d P + P Omega_d* is the derivative of the screws that move inertias: a turn about and a shift
along each axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.recursions import cluster_step
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import ZERO_INERTIA
from psiphi.model.spatial.screw_paths import inertia
from psiphi.model.spatial.screws import IN_PLANE, Inertia, add, cross, dot, is_zero_constant

if TYPE_CHECKING:
    from psiphi.compiler.recursions.body_step import Gain

Plane = tuple[int, int, int]  # the two axes of a plane, and its normal


def inertia_rate(P: Inertia, V: list) -> Inertia:
    """Omega P + P Omega* with Omega = V x*: the rate of P under the velocity V = [w; v], axis by
    axis."""
    out = [[[0.0] * 3 for _ in range(3)] for _ in range(3)]
    for axis, plane in IN_PLANE.items():
        k = "xyz".index(axis)
        for A, B, symmetric in ((out[0], P.I, True), (out[1], P.H, False), (out[2], P.M, True)):
            _turn(A, B, V[k], plane, symmetric)
        _shift(out, P, V[3 + k], plane)
    return Inertia(*out)


def _turn(A: list, B: list, w: AnyScalar, plane: Plane, symmetric: bool) -> None:
    """A += w (e~ B - B e~), e the unit vector of the axis: the derivative of a turn."""
    if is_zero_constant(w):
        return
    i, j, k = plane
    twist, stretch = (
        w * (B[i][j] + B[j][i]) if not symmetric else (w + w) * B[i][j],
        w * (B[i][i] - B[j][j]),
    )
    _add_entries(A, {(i, i): -twist, (j, j): twist, (i, j): stretch, (j, i): stretch})
    _add_entries(
        A,
        {(i, k): -(w * B[j][k]), (j, k): w * B[i][k], (k, i): -(w * B[k][j]), (k, j): w * B[k][i]},
    )


def _shift(out: list, P: Inertia, v: AnyScalar, plane: Plane) -> None:
    """H += v e~ M, I += v (e~ H* - H e~): the derivative of a shift."""
    if is_zero_constant(v):
        return
    i, j, k = plane
    I, H, _ = out
    for c in range(3):
        _add_entries(H, {(i, c): -(v * P.M[j][c]), (j, c): v * P.M[i][c]})
    stretch, sides = v * (P.H[i][i] - P.H[j][j]), (-(v * P.H[k][j]), v * P.H[k][i])
    _add_entries(
        I,
        {
            (i, i): -((v + v) * P.H[i][j]),
            (j, j): (v + v) * P.H[j][i],
            (i, j): stretch,
            (j, i): stretch,
        },
    )
    _add_entries(I, {(i, k): sides[0], (k, i): sides[0], (j, k): sides[1], (k, j): sides[1]})


def _add_entries(A: list, entries: dict[tuple[int, int], Any]) -> None:
    for (r, c), value in entries.items():
        A[r][c] = A[r][c] + value


def quadratic_couple(P: Inertia, V: list, h: list) -> Any:
    """h* V x* P V = -V* (Omega P + P Omega*) V / 2 with Omega = h x*: the rate at which the energy
    of P decreases along h.

    Axis by axis: the derivative of a turn stretches and twists the in-plane blocks of P; that of a
    shift depends on the force only.
    """
    total, w, v = 0.0, V[:3], V[3:]
    for axis, (i, j, k) in IN_PLANE.items():
        turn, shift = h["xyz".index(axis)], h[3 + "xyz".index(axis)]
        if not is_zero_constant(turn):
            total = total - turn * _turn_form(P, w, v, i, j, k)
        if not is_zero_constant(shift):
            total = total + shift * _shift_form(P, w, v, i, j)
    return total


def _turn_form(P: Inertia, w: list, v: list, i: int, j: int, k: int) -> Any:
    """w* [e, I] w / 2 + w* [e, H] v + v* [e, M] v / 2.

    e is the unit vector of axis k, and [e, A] = e~ A - A e~.
    """
    I, H, M = P.I, P.H, P.M
    out = I[i][j] * ((w[j] - w[i]) * (w[j] + w[i])) + (I[i][i] - I[j][j]) * (w[i] * w[j])
    out = out + w[k] * (I[i][k] * w[j] - I[j][k] * w[i])
    out = (
        out
        + (H[i][j] + H[j][i]) * (w[j] * v[j] - w[i] * v[i])
        + (H[i][i] - H[j][j]) * (w[i] * v[j] + w[j] * v[i])
    )
    out = out + M[i][j] * ((v[j] - v[i]) * (v[j] + v[i])) + (M[i][i] - M[j][j]) * (v[i] * v[j])
    out = out + w[k] * (H[k][i] * v[j] - H[k][j] * v[i])
    return out + v[k] * ((H[i][k] * w[j] - H[j][k] * w[i]) + (M[i][k] * v[j] - M[j][k] * v[i]))


def _shift_form(P: Inertia, w: list, v: list, i: int, j: int) -> Any:
    """The (w x F) part of P V along axis k: w_i F_j - w_j F_i with F = H* w + M v."""
    F = [dot([P.H[r][c] for r in range(3)], w) + dot(P.M[c], v) for c in (i, j)]
    return w[i] * F[1] - w[j] * F[0]


def differentiate(body: BodyView) -> None:
    """Tip to base: Ṗ, Ḋ, and the message to the parent's Ṗ. An earlier sweep has stored V_d."""
    if body.is_cluster:
        cluster_step.differentiate(body)
        return
    P, gain, P_plus = body.record["P"], body.record["gain"], body.record["P_plus"]
    P_dot = body.children.get("P+_dot", ZERO_INERTIA)
    H, H_dot = body.H, _joint_rates(body)
    # product rule for U = P H*, D = H U, with dH/dt if the joint map turns (universal joints)
    U_dot = [add(P_dot @ h, P @ d) for h, d in zip(H, H_dot, strict=True)]  # by columns
    D_dot = [[dot(h, u) for u in U_dot] for h in H]
    if body.link.row.Hdot is not None:
        U = [P @ h for h in H]
        D_dot = [
            [x + dot(d, u) for x, u in zip(row, U, strict=True)]
            for row, d in zip(D_dot, H_dot, strict=True)
        ]
    plus = _subtract_joint_rate(P_dot, U_dot, D_dot, gain)
    body.store(P_dot=P_dot, U_dot=U_dot, D_dot=D_dot)
    # phi(p, k) turns with the joint, which adds Omega_d P+ + P+ Omega_d* in the parent's axes
    V_d = small_matrices.apply(small_matrices.transpose(H), body.record["v"])
    body.send(**{"P+_dot": inertia(body.path, plus + inertia_rate(P_plus, V_d))})


def _joint_rates(body: BodyView) -> list:
    row = body.link.row
    return (
        [[0.0] * 6 for _ in body.H]
        if row.Hdot is None
        else row.Hdot(body.joint_input("q"), body.record["v"], body.link)
    )


def _subtract_joint_rate(P_dot: Inertia, U_dot: list, D_dot: list, gain: Gain) -> Inertia:
    """Ṗ+ = Ṗ - W G* - G W*, W = U̇ - G Ḋ / 2; the zero rows of P+ stay zero."""
    G, n = gain.G, len(D_dot)
    half = [[0.5 * x for x in row] for row in D_dot]
    W = [
        [U_dot[i][r] - dot(G[r], [half[j][i] for j in range(n)]) for i in range(n)]
        for r in range(6)
    ]
    entry = {}
    for r in range(6):
        for c in range(r, 6):  # symmetric
            value = 0.0
            if r not in gain.zero_rows and c not in gain.zero_rows:
                value = P_dot.entry(r, c)
                for i in range(n):
                    value = value - W[r][i] * G[c][i]
                    value = value - G[r][i] * W[c][i]
            entry[r, c] = entry[c, r] = value
    return Inertia.from_entries(entry)


def split_rate(body: BodyView) -> None:
    """Tip to base, by rows: Pi(k) with Pi + Pi* = Ṗ.

    Pi(k) = sum phi {tau_bar Pi tau_bar* + P+ (Omega_d* - Ḣ* G*)} phi*
    """
    if body.is_cluster:
        cluster_step.split_rate(body, DenseRows)
        return
    gain, P_plus = body.record["gain"], body.record["P_plus"]
    Pi = body.children.get("Pi") or [[0.0] * 6 for _ in range(6)]
    body.store(Pi=Pi)
    V_d, H_dot, G = (
        small_matrices.apply(small_matrices.transpose(body.H), body.record["v"]),
        _joint_rates(body),
        small_matrices.transpose(gain.G),
    )
    # tau_bar Pi tau_bar*: project the columns, then the rows
    rows = small_matrices.transpose(
        [gain.project(body.H, column) for column in small_matrices.transpose(Pi)]
    )
    rows = [gain.project(body.H, row) for row in rows]
    # + P+ (Omega_d* - Ḣ* G*), column by column
    eye = [[1.0 if r == c else 0.0 for c in range(6)] for r in range(6)]
    for c, e in enumerate(eye):
        column = _omega_adjoint(V_d, e)
        for h, g in zip(H_dot, G, strict=True):
            column = [x - y * g[c] for x, y in zip(column, h, strict=True)]
        for r, value in enumerate(P_plus @ column):
            rows[r][c] = rows[r][c] + value
    body.send(Pi=DenseRows(_congruence(body.path, rows)))


class DenseRows(list):
    """A matrix by rows; sums are entry by entry."""

    def insert_body(self, index: int, count: int) -> DenseRows:
        """The block diagonal matrix of a cluster with this matrix at body `index`."""
        n = len(self)
        return DenseRows(
            [x if index == i == j else 0.0 for j in range(count) for x in self[r]]
            for i in range(count)
            for r in range(n)
        )

    def __add__(self, other: DenseRows) -> DenseRows:  # type: ignore[override]
        return DenseRows([add(x, y) for x, y in zip(self, other, strict=True)])


def _congruence(path: list, A: list) -> list:
    """phi A phi*."""
    for step in reversed(path):
        A = small_matrices.transpose([step.force(column) for column in small_matrices.transpose(A)])
        A = [step.force(row) for row in A]
    return A


def _omega_adjoint(V: list, x: list) -> list:
    """Omega* x = -V x x with Omega = V x*."""
    return cross(x[:3], V[:3]) + add(cross(x[:3], V[3:]), cross(x[3:], V[:3]))


def _theta(body: BodyView) -> list:
    """Theta = L^-1 dL/dt for D = L L*: the lower triangle of L^-1 Ḋ L^-*, its diagonal halved."""
    gain, D_dot = body.record["gain"], body.record["D_dot"]
    n = len(D_dot)
    if n == 1:
        return [[gain.factors[1][0] * (0.5 * D_dot[0][0])]]
    columns = small_matrices.transpose(
        [gain.half_inverse(column) for column in small_matrices.transpose(D_dot)]
    )
    X = [gain.half_inverse(row) for row in columns]
    return [
        [X[i][j] if j < i else 0.5 * X[i][i] if i == j else 0.0 for j in range(n)] for i in range(n)
    ]


def half_rate(body: BodyView, x: list) -> list:
    """Theta x."""
    return small_matrices.apply(_theta(body), x)


def half_rate_adjoint(body: BodyView, x: list) -> list:
    """Theta* x."""
    return small_matrices.apply(small_matrices.transpose(_theta(body)), x)
