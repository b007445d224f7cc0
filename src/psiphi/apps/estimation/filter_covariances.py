"""Covariances and gains of a model, which do not depend on data: two sweeps, on any scalars.

    P-(k) = M + sum phi P+ phi*,   D = H P- H* + R,   G = P- H* D^-1,
    P+ = (I - G H) P- (I - G H)* + G R G*                                            inward
    Lam+(k) = phi* Lam-(p) phi,    Lam- = (I - G H)* Lam+ (I - G H) + H* D^-1 H      outward

An output that is determined by others without noise has no innovation: D is singular, and its
computed value is rounding. So U(k) bounds the rounding error of P-(k), in units of one rounding,
and is propagated inward like the covariance of an error. Output i of a stage, minus its best
prediction from the outputs before it, has the variance d. If d is not above SMALLEST times the
terms it was computed from, the model is refused with an error that names stage and output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi._util.errors import SingularError
from psiphi.apps.estimation.stage_links import Symmetric, TreeShape, cut
from psiphi.compiler.recursions.body_step import compute_gain
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    BodyView,
    Program,
    Sweep,
)
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import maximum
from psiphi.model.spatial.screws import dot, square_root, subtract
from psiphi.model.spatial.small_matrices import flatten

EPSILON = float(np.finfo(float).eps)
SMALLEST = 1e-12  # least variance of an innovation, relative to its terms: four digits are left


def covariance_program(shape: TreeShape) -> Program:
    """The program from the numbers of a model to its gains and covariances."""

    def argument(name: str, place: str) -> Argument:
        return Argument(name, (shape.total(place),), place)

    inputs = argument("q", "q"), argument("covariances", "covariances")
    outputs = argument("gains", "gains"), argument("statistics", "statistics")
    sweeps = Sweep(TIP_TO_BASE, filter_step), Sweep(BASE_TO_TIP, costate_step)
    return Program("covariances", inputs, outputs, sweeps)


def filter_step(body: BodyView) -> None:
    """Tip to base: the Riccati equation in Joseph's form, and the bound of its rounding error."""
    n, m, H = body.link.size, body.link.width, body.H
    M_rows, R_rows = cut(body.input_slice("covariances", "covariances"), n * n, m * m)
    M, R = Symmetric.from_rows(n, M_rows), Symmetric.from_rows(m, R_rows)
    P, U = M, Symmetric([[0.0] * n for _ in range(n)])
    if (P_children := body.children.get("P")) is not None:
        P, U = P + P_children, body.children["U"]
    U = U.plus_diagonal([n * (x + y) for x, y in zip(M.diagonal, P.diagonal, strict=True)])
    gain, _ = compute_gain(P, H, R.rows)  # type: ignore[arg-type]
    L, d_inv = gain.factors
    GH = [small_matrices.apply(small_matrices.transpose(H), row) for row in gain.G]
    T = [subtract(_unit(n, r), GH[r]) for r in range(n)]
    P_plus = P.congruence(T) + R.congruence(gain.G)
    # rounding errors of T itself count twice
    deviation, roots = _deviations(P), [square_root(x) for x in R.diagonal]
    G_abs, H_abs, T_abs = (_absolute(A) for A in (gain.G, H, T))
    of_outputs = small_matrices.apply(H_abs, deviation)
    of_update = [dot(T_abs[r], deviation) + dot(G_abs[r], roots) for r in range(n)]
    of_T = [deviation[r] + dot(G_abs[r], of_outputs) for r in range(n)]
    U_plus = U.congruence(T).plus_diagonal(
        [n * (x * x + EPSILON * (y * y)) for x, y in zip(of_update, of_T, strict=True)]
    )
    body.store(P=P, T=T, gain=gain)
    body.write_part("gains", "gains", [*flatten(gain.G), *flatten(L), *d_inv, *P_plus.flat])
    body.store(innovations=_innovations(H, gain.D, L, d_inv, U))
    if body.link.above:
        phi = body.path[0].phi
        deviation = _deviations(P_plus)
        of_parent = [dot(row, deviation) for row in _absolute(phi)]
        body.send(
            P=P_plus.congruence(phi),
            U=U_plus.congruence(phi).plus_diagonal([len(phi) * x * x for x in of_parent]),
        )


def costate_step(body: BodyView) -> None:
    """Base to tip: the covariances Lam+ and Lam- of the co-states, and c of the multipliers.

    `smoother_covariances.py` computes those of the smoothed states.
    """
    n, m, record = body.link.size, body.link.width, body.record
    Lam_plus = Symmetric([[0.0] * n for _ in range(n)])
    if body.link.above:
        Lam_plus = body.parent["Lam"].congruence(small_matrices.transpose(body.path[0].phi))
    H, T, gain = body.H, record["T"], record["gain"]
    DH = small_matrices.transpose([gain.solve([row[c] for row in H]) for c in range(n)])  # D^-1 H
    HDH = Symmetric.of(n, lambda r, c: dot([row[r] for row in H], [row[c] for row in DH]))
    D_inv = [gain.solve(_unit(m, i)) for i in range(m)]
    c = Lam_plus.congruence(small_matrices.transpose(gain.G)) + Symmetric.of(
        m, lambda r, c: D_inv[c][r]
    )
    body.store(Lam=Lam_plus.congruence(small_matrices.transpose(T)) + HDH)
    variances, scales = record["innovations"]
    P, D = record["P"].flat, flatten(gain.D)
    values = [*P, *Lam_plus.flat, *D, *c.flat, *variances, *scales]
    body.write_part("statistics", "statistics", values)


def _innovations(H: list, D: list, L: list, d_inv: list, U: Symmetric) -> tuple[list, list]:
    """For each output, minus its best prediction from those before it: its variance, its scale.

    The scale is the magnitude of the terms from which the variance was computed.
    """
    variances, scales = [], []
    for i in range(len(H)):
        L_inv_row = small_matrices.backward(
            [row[: i + 1] for row in L[: i + 1]], _unit(i + 1, i)
        )  # row i of L^-1
        h = [dot(L_inv_row, [row[c] for row in H[: i + 1]]) for c in range(len(H[0]))]
        roots = [square_root(_magnitude(D[j][j])) for j in range(i + 1)]
        deviation = dot(list(map(_magnitude, L_inv_row)), roots)
        variances.append(1.0 / d_inv[i])
        scales.append(dot(h, U @ h) + deviation * deviation)
    return variances, scales


def _unit(n: int, i: int) -> list:
    return [1.0 if j == i else 0.0 for j in range(n)]


def _magnitude(x: AnyScalar) -> AnyScalar:
    return maximum(x, -x)


def _absolute(A: list) -> list:
    """|A|, entry by entry."""
    return [list(map(_magnitude, row)) for row in A]


def _deviations(P: Symmetric) -> list:
    """Standard deviations."""
    return [square_root(maximum(x, 0.0)) for x in P.diagonal]


@dataclass(frozen=True)
class StageCovariance:
    """Covariances and gain of a stage; arrays have the batch axes of the model in front."""

    P_minus: np.ndarray
    P_plus: np.ndarray
    D: np.ndarray
    G: np.ndarray
    Lam_plus: np.ndarray  # covariance of the co-states on the inner side
    c: np.ndarray  # D^-1 + G* Lam+ G: covariance of the multipliers, S2 (10.3)
    variances: np.ndarray  # of the outputs, minus their best prediction from those before them
    scales: np.ndarray  # magnitude of the terms from which `variances` were computed


def read_covariances(
    shape: TreeShape, gains: np.ndarray, statistics: np.ndarray
) -> list[StageCovariance]:
    """The outputs of the program by stage; a SingularError names an output without innovation."""
    found = []
    parts = shape.parts(gains, "gains"), shape.parts(statistics, "statistics")
    for link, of_gains, of_statistics in zip(shape.links, *parts, strict=True):
        n, m = link.size, link.width
        G, _, _, P_plus = cut(of_gains, n * m, m * m, m, n * n)
        P, Lam, D, c, variances, scales = cut(of_statistics, n * n, n * n, m * m, m * m, m, m)
        P, P_plus, Lam = (_as_matrix(x, n) for x in (P, P_plus, Lam))
        D, G, c = (_as_matrix(x, m) for x in (D, G, c))
        found.append(StageCovariance(P, P_plus, D, G, Lam, c, variances, scales))
    # tips first: a singular stage spoils all stages inboard of it
    for k in reversed(range(len(found))):
        _check_innovations(k, found[k])
    return found


def _as_matrix(x: np.ndarray, columns: int) -> np.ndarray:
    return x.reshape(*x.shape[:-1], x.shape[-1] // columns, columns)


def _check_innovations(k: int, stage: StageCovariance) -> None:
    """Raise for an output that is determined by the outputs before it."""
    batch = stage.variances.shape[:-1]
    overflow = ~np.isfinite(stage.P_minus).all((-1, -2))
    if overflow.any():
        where = element_text(batch, int(np.argmax(overflow)))
        raise SingularError(
            f"its covariance{where} overflows",
            "scale the states, or the transitions",
            element=f"stage {k}",
        )
    bad = ~(stage.variances > SMALLEST * stage.scales)
    if bad.any():
        index = int(np.argmax(bad.any(-1)))
        variance, scale, wrong = (
            x.reshape(-1, x.shape[-1])[index] for x in (stage.variances, stage.scales, bad)
        )
        i = int(np.argmax(wrong))
        others = " and the outputs of its stage before it" if i else ""
        raise SingularError(
            f"output {i}{element_text(batch, index)} is determined by the stages outboard{others}: "
            f"its innovation has the variance {variance[i]:.3g}, not above {SMALLEST:g} of the "
            f"{scale[i]:.3g} it was computed from",
            "give it noise, or leave it out: outputs without noise must be independent",
            element=f"stage {k}",
        )


def element_text(batch: tuple[int, ...], index: int) -> str:
    """The index of a batch element, for an error message; empty without batch axes."""
    if not batch:
        return ""
    return f" of batch element {[int(i) for i in np.unravel_index(index, batch)]}"
