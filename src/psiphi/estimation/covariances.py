"""What a model says before there are data: covariances and gains, one sweep inward, one outward, on numbers.

    P-(k) = M + sum phi P+ phi*,   D = H P- H* + R,   G = P- H* D^-1,   P+ = (I - G H) P- (I - G H)* + G R G*     inward
    Lam+(k) = phi* Lam-(p) phi,    Lam- = (I - G H)* Lam+ (I - G H) + H* D^-1 H,   S = P+ - P+ Lam+ P+            outward

An output that follows from others without noise has no innovation: D is singular, and what floating point finds there is
rounding. So rounding is carried along: U(k) bounds what it has put into P-(k), in units of one rounding, and travels inward as
the error of an estimate does. Output i of a stage, less its best guess from the outputs before it, has the variance d; where d
is not above SMALLEST times what it was computed from, the model is refused and stage and output are named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.errors import SingularError
from psiphi.estimation.linear import LinearTree
from psiphi.estimation.swept import StageLink, Symmetric
from psiphi.steps.gain import Gain, gain
from psiphi.sweeps.drive import drive
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE, Program, Site, Sweep

EPSILON = float(np.finfo(float).eps)
SMALLEST = 1e-12  # of what an innovation's variance was computed from: below it, fewer than four digits are left


@dataclass(frozen=True)
class Known:
    """What is known of a stage without data. `gain` holds D and G as the sweeps use them."""

    P_minus: np.ndarray
    P_plus: np.ndarray
    D: np.ndarray
    G: np.ndarray
    smoothed: np.ndarray
    weights: np.ndarray  # D^-1 + G* Lam+ G: the covariance of the multipliers, S2 (10.3)
    gain: Gain


def covariances(model: LinearTree) -> list[Known]:
    """Of every stage, or a SingularError that names the output without an innovation."""
    found: dict[int, Known] = {}

    def write(site: Site) -> None:
        smooth(site)
        kept = site.kept
        found[site.link.index] = Known(kept["P"], kept["P+"], kept["D"], kept["G"], kept["S"], kept["C"], kept["gain"])

    sweeps = (Sweep(TIP_TO_BASE, condition), Sweep(BASE_TO_TIP, write))
    with np.errstate(all="ignore"):  # what overflows is refused
        drive(Program("covariances", (), (), sweeps), model.swept, {})
    return [found[k] for k in range(len(model.stages))]


def condition(site: Site) -> None:
    """Tip to base: the Riccati equation in Joseph's form, and the bound on its rounding."""
    link: StageLink = site.link
    M, H, R, n = link.M, link.outputs, link.noise, link.size
    P, U = M + site.children.get("P", 0.0), site.children.get("U", 0.0)
    if not np.isfinite(P).all():
        raise SingularError("its covariance overflows", "scale the states, or the transitions", element=f"stage {link.index}")
    U = U + n * np.diag(np.diag(M) + np.diag(P))
    D = H @ P @ H.T + np.diag(R)
    check(link, D, U)
    known, _ = gain(Symmetric(P.tolist()), H.tolist(), R.tolist())  # type: ignore[arg-type]
    G = np.array(known.G)
    T = np.eye(n) - G @ H
    P_plus = _symmetric(T @ P @ T.T + (G * R) @ G.T)
    spread, size = _spread(P), np.eye(n) + np.abs(G) @ np.abs(H)  # rounding in T itself counts twice
    U_plus = T @ U @ T.T + n * (_square(np.abs(T) @ spread + np.abs(G) @ np.sqrt(R)) + EPSILON * _square(size @ spread))
    site.keep(**{"P": P, "P+": P_plus, "D": D, "G": G, "T": T, "gain": known})
    if link.parent >= 0:
        phi = link.phi
        rounding = len(phi) * _square(np.abs(phi) @ _spread(P_plus))
        site.send(P=_symmetric(phi @ P_plus @ phi.T), U=phi @ U_plus @ phi.T + rounding)


def smooth(site: Site) -> None:
    """Base to tip: the co-state's covariance on both sides of the outputs, and the smoothed state's."""
    link, kept = site.link, site.kept
    inside = np.zeros((link.size, link.size))
    if link.parent >= 0:
        inside = link.phi.T @ site.parent["Lam"] @ link.phi
    H, T, G, P_plus = link.outputs, kept["T"], kept["G"], kept["P+"]
    Lam = T.T @ inside @ T + H.T @ np.linalg.solve(kept["D"], H)
    site.keep(C=np.linalg.inv(kept["D"]) + G.T @ inside @ G)
    site.keep(Lam=_symmetric(Lam), S=_positive(P_plus - P_plus @ inside @ P_plus))


def check(link: StageLink, D: np.ndarray, U: np.ndarray) -> None:
    """Each output against those before it: what its innovation is, and what it was computed from."""
    H = link.outputs
    for i in range(len(D)):
        guess = np.linalg.solve(D[:i, :i], D[:i, i])
        rest = np.append(-guess, 1.0)
        h = rest @ H[: i + 1]
        d = D[i, i] - D[i, :i] @ guess
        origin = h @ U @ h + (np.abs(rest) @ np.sqrt(np.abs(np.diag(D)[: i + 1]))) ** 2
        if not d > SMALLEST * origin:
            others = " and its stage's outputs before it" if i else ""
            raise SingularError(
                f"output {i} is known beforehand, from the stages outboard{others}: its innovation has the variance "
                f"{d:.3g}, not above {SMALLEST:g} of the {origin:.3g} it was computed from",
                "give it noise, or leave it out: outputs without noise must not follow from one another",
                element=f"stage {link.index}",
            )


def _spread(P: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(np.diag(P), 0.0))


def _square(a: np.ndarray) -> np.ndarray:
    """diag(a^2): n times it bounds every matrix whose entries are below a_i a_j."""
    return np.diag(a * a)


def _symmetric(P: np.ndarray) -> np.ndarray:
    return (P + P.T) / 2


def _positive(S: np.ndarray) -> np.ndarray:
    """The covariance without the negative variances that rounding leaves where a state is all but known."""
    known = np.diag(S) <= 0.0
    S = np.where(known[:, None] | known, 0.0, _symmetric(S))
    scale = np.where(known, 1.0, _spread(S))
    values, vectors = np.linalg.eigh(S / np.outer(scale, scale))
    if values[0] >= 0.0:
        return S
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return root @ root.T
