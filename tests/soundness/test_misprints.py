"""The 34 printed forms that are wrong (docs/mathematics.md section 13): each refuted, or refused
when written.

Next to each stands the corrected form, which must hold. What cannot be said in the language is
listed with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.expression import Expression, symbol
from psiphi.algebra.expressions.operators import Operators
from tests.soundness.robots import build

TREE = build(
    [
        ("revolute", -1, False),
        ("prismatic", 0, False),
        ("helical", 1, False),
        ("revolute", 1, False),
    ],
    seed=2,
).operators
TURNING = build([("revolute", k - 1, False) for k in range(4)], seed=3).operators
SLIDING = build(
    [("revolute", -1, False), ("prismatic", 0, False), ("prismatic", 1, False)], seed=4
).operators
SLIDE = build([("prismatic", -1, False)], seed=5).operators

Sides = tuple[Expression, Expression]


class Misprint(NamedTuple):
    """A printed form, and its correction; `refused`: the printed form cannot be written."""

    id: str
    printed: str
    s: Operators
    wrong: Callable[[Operators], Sides]
    corrected: Callable[[Operators], Sides]
    refused: bool = False


def W(s: Operators) -> Expression:
    return s.I - s.H @ s.psi @ s.K


def W_L(s: Operators) -> Expression:
    return s.I - s.H @ s.Psi @ s.L


def far(x: Expression, s: Operators) -> Expression:
    return x - s.I


tau, x, x_dot, f, v = (
    pp.vector("tau"),
    pp.vector("x"),
    pp.vector("x_dot"),
    pp.vector("f", "frame"),
    pp.vector("v"),
)


def moved(s: Operators, own: float) -> Expression:
    """a by differentiating V = E* V + H* v as the links turn, `own` times the part of the joint's
    own axis; and gravity."""
    return (s.E_phi.dot("inertial").T @ s.phi.T @ s.H.T + own * s.H.dot("inertial").T) @ v - (
        s.I - s.E_phi
    ).T @ s.g


def free(s: Operators) -> Expression:
    return tau - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)


def tilted(s: Operators, r: Expression, left: Expression, right: Expression) -> Sides:
    return s.psi @ (r - left @ r @ right.T) @ s.phi.T, r + far(s.psi, s) @ r + r @ far(s.phi, s).T


def shaken(s: Operators, rate: Expression) -> Sides:
    """ξ = G* V, its derivative: S1 (36)."""
    V = s.phi.T @ s.H.T @ v
    own = (
        s.D.inv @ s.H @ rate @ s.tau_bar.T @ V
        + s.D.inv @ s.H @ s.P @ far(s.phi, s).T @ s.Omega_d.T @ V
    )
    return (s.G.T @ V).dot(), own + s.G.T @ s.phi.T @ s.H.T @ pp.vector("v_dot")


def skewed(s: Operators, upper: float, lower: float) -> Sides:
    """S1 (48) for ξ: D ξ' + C with C = c ξ + H ψ b, c(k, i) = H ψ(k, i) Π H* for k beyond i, minus
    its transpose before."""
    c = s.H @ far(s.psi, s) @ s.Pi @ s.H.T
    whole = s.H @ s.psi @ (s.lambda_dot @ s.H.T - s.Omega_d @ s.P @ s.psi.T @ s.H.T)
    return whole, upper * c + lower * c.T + s.H @ s.Pi @ s.H.T


def tip(s: Operators) -> Expression:
    return s.D.inv @ s.H @ s.psi @ s.B("tool") @ f


def felt(s: Operators) -> Expression:
    return -s.mass.inv @ s.J("tool").T @ f


r = symbol("r")
MISPRINTS = [
    Misprint(
        "1.7",
        "S0 (3.8): φ for φ* in front of gravity",
        SLIDE,
        lambda s: (s.a, -s.Delta_phi @ s.Delta_phi.T.inv @ s.g),
        lambda s: (s.a, -s.g),
        refused=True,
    ),
    Misprint(
        "1.17",
        "S0 (2.32): factor 2 missing",
        SLIDING,
        lambda s: (s.a, moved(s, 0)),
        lambda s: (s.a, moved(s, 1)),
    ),
    Misprint(
        "1.18",
        "S0 (2.32): w for h θ̇",
        SLIDING,
        lambda s: (s.a, moved(s, -1)),
        lambda s: (s.a, moved(s, 1)),
    ),
    Misprint(
        "1.23",
        "S1, S2: l(k, k-1) reversed",
        TREE,
        lambda s: (s.phi, (s.I - s.S @ s.Delta_phi.inv).inv),
        lambda s: (s.phi, (s.I - s.S @ s.Delta_phi).inv),
    ),
    Misprint(
        "a.45c",
        "S0 Lemma A.1 proof: φ, ψ swapped",
        TREE,
        lambda s: tilted(s, r, s.E_phi, s.E_psi),
        lambda s: tilted(s, r, s.E_psi, s.E_phi),
    ),
    Misprint(
        "a.46b",
        "S0 (a.50) proof: tilde lost",
        TREE,
        lambda s: (s.psi @ s.M @ s.phi.T, s.P + far(s.psi, s) @ s.P + s.P @ s.phi.T),
        lambda s: (s.psi @ s.M @ s.phi.T, s.P + far(s.psi, s) @ s.P + s.P @ far(s.phi, s).T),
    ),
    Misprint(
        "4.16b",
        "S0 abstract: Φ for Ψ",
        TREE,
        lambda s: (s.mass.inv, (s.I - s.H @ s.Phi @ s.L).T @ s.D.inv @ (s.I - s.H @ s.Phi @ s.L)),
        lambda s: (s.mass.inv, W_L(s).T @ s.D.inv @ W_L(s)),
    ),
    Misprint(
        "4.14b",
        "S3 section 6: φ for ψ",
        TREE,
        lambda s: (s.mass_half.inv @ tau, s.D_half.inv @ (s.I - s.H @ s.phi @ s.K) @ tau),
        lambda s: (s.mass_half.inv @ tau, s.D_half.inv @ W(s) @ tau),
    ),
    Misprint(
        "FD1x",
        "S0 (4.20), S4 (5.10b,c): T for T'",
        TREE,
        lambda s: (W(s) @ free(s), tau - s.H @ s.psi @ s.K @ free(s)),
        lambda s: (W(s) @ free(s), free(s) - s.H @ s.psi @ s.K @ free(s)),
    ),
    Misprint(
        "FD3x",
        "S0 FD3, S4 (5.13): inverse for transpose",
        TREE,
        lambda s: (s.mass.inv, W_L(s).inv @ s.D.inv @ W_L(s)),
        lambda s: (s.mass.inv, W_L(s).T @ s.D.inv @ W_L(s)),
    ),
    Misprint(
        "FD4x",
        "S0 FD4 proof: φ~ for ψ~",
        TREE,
        lambda s: _fd4(s, s.phi),
        lambda s: _fd4(s, s.psi),
    ),
    Misprint(
        "6.4c",
        "S4 (6.4c): sign",
        TREE,
        lambda s: (felt(s), W(s).T @ tip(s)),
        lambda s: (felt(s), -W(s).T @ tip(s)),
    ),
    Misprint(
        "s3.25",
        "S3 below (25): Δθ̇ for θ̇",
        TREE,
        lambda s: (
            (s.J("tool") @ x).dot(),
            s.J("tool") @ x_dot + s.J("tool").dot() @ pp.vector("dx"),
        ),
        lambda s: ((s.J("tool") @ x).dot(), s.J("tool") @ x_dot + s.J("tool").dot() @ x),
    ),
    Misprint(
        "6.11g",
        "S4 (6.11g): H missing",
        TREE,
        lambda s: (felt(s), W(s).T @ s.D.inv @ s.psi @ s.B("tool") @ f),
        lambda s: (felt(s), -W(s).T @ tip(s)),
        refused=True,
    ),
    Misprint(
        "6.18e",
        "S4 (6.18e): transpose lost",
        TREE,
        lambda s: (felt(s), -W(s) @ tip(s)),
        lambda s: (felt(s), -W(s).T @ tip(s)),
    ),
    Misprint(
        "2.15x",
        "S4 (5.1d), (b.4c), (b.9a): J θ̇ for J̇ θ̇",
        TREE,
        lambda s: ((s.J("tool") @ x).dot(), s.J("tool") @ x_dot + s.J("tool") @ x),
        lambda s: ((s.J("tool") @ x).dot(), s.J("tool") @ x_dot + s.J("tool").dot() @ x),
    ),
    Misprint(
        "T1.1x",
        "S1 Table 1: trailing Φ",
        TREE,
        lambda s: (s.E_phi.dot(), s.E_phi @ s.Omega_d @ s.phi),
        lambda s: (s.E_phi.dot(), s.E_phi @ s.Omega_d),
    ),
    Misprint(
        "16",
        "S1 (16): dot lost",
        TURNING,
        lambda s: (s.P_dot, s.E_psi @ (s.P + s.Omega_d @ s.P + s.P @ s.Omega_d.T) @ s.E_psi.T),
        lambda s: (s.P_dot, s.E_psi @ (s.P_dot + s.Omega_d @ s.P + s.P @ s.Omega_d.T) @ s.E_psi.T),
    ),
    Misprint(
        "31x",
        "S1 (31), (42), (47): a commutator",
        TURNING,
        lambda s: (s.E_psi @ s.lambda_dot - s.lambda_dot @ s.E_psi, 0 * s.P),
        lambda s: (
            (s.E_psi @ s.lambda_dot - s.lambda_dot @ s.E_psi.T).T,
            s.lambda_dot @ s.E_psi.T - s.E_psi @ s.lambda_dot,
        ),
        refused=True,
    ),
    Misprint(
        "36x",
        "S1 (36): Ṗ for λ̇",
        TURNING,
        lambda s: shaken(s, s.P_dot),
        lambda s: shaken(s, s.lambda_dot),
    ),
    Misprint(
        "48x", "S1 (48): sign", TURNING, lambda s: skewed(s, -1, 1), lambda s: skewed(s, 1, -1)
    ),
    Misprint(
        "48y",
        "S1 (48): for k < i, too",
        TURNING,
        lambda s: skewed(s, 1, 1),
        lambda s: skewed(s, 1, -1),
    ),
    Misprint(
        "T1.1y",
        "S1 (4): Ω_δ skew for a slide",
        SLIDING,
        lambda s: (s.Omega_d, -s.Omega_d.T),
        lambda s: (s.Delta_phi.dot(), s.Delta_phi @ s.Omega_d),
        refused=True,
    ),
]

UNSAID = {
    "1.21": "S2 (4.4): m w x (w x p) missing in the force of b; no letter takes a spatial "
    "vector's force apart",
    "1.22": "S1: m p x v for m w x v in the force of b; the same",
    "1.28": "S0 (b.3): π and Λ turn quaternion rates into spins; rates of q are no letters",
    "6.4d": "S4 (6.4): a loop that begins at k = 2; single bodies are no letters",
    "10.29x": "S2 (10.29): D(k) for D(i) under a sum over i; single blocks are no letters",
    "10.27x": "S2 (10.27): the upper limit of a sum; single blocks are no letters",
    "b.11": "S4 (b.11): the object's A and M(C), and the contact's H(0), are no operators of "
    "a robot (psiphi.grasp has them)",
    "T2.b": "S1 Table 2: an operation count",
    "T2.f": "S1 Table 2: an operation count",
    "T3.3x": "S1 Table 3: an operation count",
    "T3.4x": "S1 Table 3: an operation count",
}


def _fd4(s: Operators, which: Expression) -> Sides:
    left = W_L(s).T @ s.D.inv @ s.H @ s.psi @ s.M @ s.phi.T
    return left, W_L(s).T @ s.D.inv @ s.H @ far(
        which, s
    ) @ s.P + s.L.T @ s.Psi.T @ s.tau_bar.T + s.G.T


@pytest.mark.parametrize("row", MISPRINTS, ids=lambda row: f"{row.id} {row.printed}")
def test_a_printed_form_that_is_wrong(row):
    if row.refused:
        with pytest.raises(pp.StateError) as error:
            pp.prove(*row.wrong(row.s))
        assert error.value.remedy
        return
    proof = pp.prove(*row.wrong(row.s))
    assert not proof and proof.counterexample is not None, str(proof)
    assert abs(proof.counterexample.left - proof.counterexample.right) > 1e-7


@pytest.mark.parametrize("row", MISPRINTS, ids=lambda row: f"{row.id} {row.printed}")
def test_its_corrected_form(row):
    lhs, rhs = row.corrected(row.s)
    assert pp.prove(lhs, rhs).counterexample is None


def test_sign_of_the_tip_force_with_the_factor_put_back():
    """S4 (6.11g) again, H inserted: the sign is wrong, too."""
    proof = pp.prove(felt(TREE), W(TREE).T @ tip(TREE))
    assert not proof and proof.counterexample is not None


def test_there_are_34():
    ids = [row.id for row in MISPRINTS]
    assert len({*ids, *UNSAID}) == len(ids) + len(UNSAID) == 34


def test_the_motion_of_sliding_joints_with_numbers():
    """The corrected (2.32) in letters, against the letter a itself."""
    s, rng = SLIDING, np.random.default_rng(1)
    q, rates = rng.uniform(-1, 1, (2, 3))
    e = moved(s, 1)
    assert np.allclose(e.dense(q, rates), s.a.dense(q, rates), rtol=1e-10, atol=1e-10)
