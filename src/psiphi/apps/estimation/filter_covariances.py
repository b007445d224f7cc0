"""What a model says before there are data: covariances and gains, one sweep inward, one outward, on any scalars.

    P-(k) = M + sum phi P+ phi*,   D = H P- H* + R,   G = P- H* D^-1,   P+ = (I - G H) P- (I - G H)* + G R G*     inward
    Lam+(k) = phi* Lam-(p) phi,    Lam- = (I - G H)* Lam+ (I - G H) + H* D^-1 H                                   outward

An output that follows from others without noise has no innovation: D is singular, and what floating point finds there is
rounding. So rounding is carried along: U(k) bounds what it has put into P-(k), in units of one rounding, and travels inward as
the error of an estimate does. Output i of a stage, less its best guess from the outputs before it, has the variance d; where d
is not above SMALLEST times what it was computed from, the model is refused and stage and output are named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
SMALLEST = 1e-12  # of what an innovation's variance was computed from: below it, fewer than four digits are left


def covariance_program(shape: TreeShape) -> Program:
    """Numbers of a model in, gains and covariances out."""
    inputs = Argument("q", (shape.total("q"),), "q"), Argument("own", (shape.total("own"),), "own")
    outputs = (
        Argument("gains", (shape.total("gains"),), "gains"),
        Argument("more", (shape.total("more"),), "more"),
    )
    sweeps = Sweep(TIP_TO_BASE, condition), Sweep(BASE_TO_TIP, smooth)
    return Program("covariances", inputs, outputs, sweeps)


def condition(body: BodyView) -> None:
    """Tip to base: the Riccati equation in Joseph's form, and the bound on its rounding."""
    n, m, H = body.link.size, body.link.width, body.H
    own, R = cut(body.input_slice("own", "own"), n * n, m)
    M = Symmetric.read(n, own)
    P, U = M, Symmetric([[0.0] * n for _ in range(n)])
    if (below := body.children.get("P")) is not None:
        P, U = P + below, body.children["U"]
    U = U.plus_diagonal([n * (x + y) for x, y in zip(M.diagonal, P.diagonal, strict=True)])
    known, _ = compute_gain(P, H, R)  # type: ignore[arg-type]
    L, d_inv = known.factors
    T = [
        subtract(_unit(n, r), small_matrices.apply(small_matrices.transpose(H), known.G[r]))
        for r in range(n)
    ]
    noise = Symmetric.of(
        n, lambda r, c: dot(known.G[r], [x * y for x, y in zip(R, known.G[c], strict=True)])
    )
    P_plus = P.seen_by(T) + noise
    # rounding in T itself counts twice
    spread, roots = _spread(P), [square_root(x) for x in R]
    G = [list(map(_size, row)) for row in known.G]
    felt = small_matrices.apply([list(map(_size, row)) for row in H], spread)
    moved = [dot(list(map(_size, T[r])), spread) + dot(G[r], roots) for r in range(n)]
    inner = [spread[r] + dot(G[r], felt) for r in range(n)]
    U_plus = U.seen_by(T).plus_diagonal(
        [n * (x * x + EPSILON * (y * y)) for x, y in zip(moved, inner, strict=True)]
    )
    body.store(P=P, T=T, gain=known)
    body.write_part("gains", "gains", [*flatten(known.G), *flatten(L), *d_inv, *P_plus.flat])
    body.store(innovations=_innovations(H, known.D, L, d_inv, U))
    if body.link.above:
        phi = body.path[0].phi
        spread = _spread(P_plus)
        along = [dot(list(map(_size, row)), spread) for row in phi]
        body.send(
            P=P_plus.seen_by(phi),
            U=U_plus.seen_by(phi).plus_diagonal([len(phi) * x * x for x in along]),
        )


def smooth(body: BodyView) -> None:
    """Base to tip: the co-state's covariance on both sides of the outputs. The smoothed state's: `smoother_covariances.py`."""
    n, m, kept = body.link.size, body.link.width, body.record
    inside = Symmetric([[0.0] * n for _ in range(n)])
    if body.link.above:
        inside = body.parent["Lam"].seen_by(small_matrices.transpose(body.path[0].phi))
    H, T, known = body.H, kept["T"], kept["gain"]
    weighted = small_matrices.transpose(
        [known.solve([row[c] for row in H]) for c in range(n)]
    )  # D^-1 H
    measured = Symmetric.of(
        n, lambda r, c: dot([row[r] for row in H], [row[c] for row in weighted])
    )
    columns = [known.solve(_unit(m, i)) for i in range(m)]
    weights = inside.seen_by(small_matrices.transpose(known.G)) + Symmetric.of(
        m, lambda r, c: columns[c][r]
    )
    body.store(Lam=inside.seen_by(small_matrices.transpose(T)) + measured)
    D, (variances, origins) = known.D, kept["innovations"]
    body.write_part(
        "more",
        "more",
        [*kept["P"].flat, *inside.flat, *flatten(D), *weights.flat, *variances, *origins],
    )


def _innovations(H, D, L, d_inv, U) -> tuple[list, list]:
    """Each output less its best guess from those before it: the variance, and what that was computed from."""
    variances, origins = [], []
    for i in range(len(H)):
        rest = small_matrices.backward(
            [row[: i + 1] for row in L[: i + 1]], _unit(i + 1, i)
        )  # row i of L^-1
        h = [dot(rest, [row[c] for row in H[: i + 1]]) for c in range(len(H[0]))]
        scatter = dot(list(map(_size, rest)), [square_root(_size(D[j][j])) for j in range(i + 1)])
        variances.append(1.0 / d_inv[i])
        origins.append(dot(h, U @ h) + scatter * scatter)
    return variances, origins


def _unit(n: int, i: int) -> list:
    return [1.0 if j == i else 0.0 for j in range(n)]


def _size(x):
    return maximum(x, -x)


def _spread(P: Symmetric) -> list:
    return [square_root(maximum(x, 0.0)) for x in P.diagonal]


@dataclass(frozen=True)
class StageCovariance:
    """What is known of a stage without data; arrays have the model's batch axes in front."""

    P_minus: np.ndarray
    P_plus: np.ndarray
    D: np.ndarray
    G: np.ndarray
    inside: np.ndarray  # Lam+, the covariance of the co-states on the inner side
    weights: np.ndarray  # c = D^-1 + G* Lam+ G: the covariance of the multipliers, S2 (10.3)
    variances: np.ndarray  # of the outputs, each less its best guess from those before it
    origins: np.ndarray  # what these were computed from


def read_known(shape: TreeShape, gains: np.ndarray, more: np.ndarray) -> list[StageCovariance]:
    """What the program has found, by stages; or a SingularError that names the output without an innovation."""
    found = []
    for link, first, second in zip(
        shape.links, shape.parts(gains, "gains"), shape.parts(more, "more"), strict=True
    ):
        n, m = link.size, link.width
        G, _, _, P_plus = cut(first, n * m, m * m, m, n * n)
        P, Lam, D, C, variances, origins = cut(second, n * n, n * n, m * m, m * m, m, m)
        P, P_plus, Lam = (_matrix(x, n) for x in (P, P_plus, Lam))
        found.append(
            StageCovariance(
                P, P_plus, _matrix(D, m), _matrix(G, m), Lam, _matrix(C, m), variances, origins
            )
        )
    for k in reversed(
        range(len(found))
    ):  # tips first: what is inboard of a singular stage is no news
        _check(k, found[k])
    return found


def _matrix(x: np.ndarray, columns: int) -> np.ndarray:
    return x.reshape(*x.shape[:-1], x.shape[-1] // columns, columns)


def _check(k: int, known: StageCovariance) -> None:
    """Each output against those before it: what its innovation is, and what it was computed from."""
    lead = known.variances.shape[:-1]
    wild = ~np.isfinite(known.P_minus).all((-1, -2))
    if wild.any():
        where = element_of(lead, int(np.argmax(wild)))
        raise SingularError(
            f"its covariance{where} overflows",
            "scale the states, or the transitions",
            element=f"stage {k}",
        )
    bad = ~(known.variances > SMALLEST * known.origins)
    if bad.any():
        at = int(np.argmax(bad.any(-1)))
        d, origin, wrong = (
            x.reshape(-1, x.shape[-1])[at] for x in (known.variances, known.origins, bad)
        )
        i = int(np.argmax(wrong))
        others = " and its stage's outputs before it" if i else ""
        raise SingularError(
            f"output {i}{element_of(lead, at)} is known beforehand, from the stages outboard{others}: its innovation has the "
            f"variance {d[i]:.3g}, not above {SMALLEST:g} of the {origin[i]:.3g} it was computed from",
            "give it noise, or leave it out: outputs without noise must not follow from one another",
            element=f"stage {k}",
        )


def element_of(lead: tuple[int, ...], at: int) -> str:
    """Which element of a batch, in words; nothing where there is no batch."""
    return f" of batch element {[int(i) for i in np.unravel_index(at, lead)]}" if lead else ""
