"""Derivatives are proved, not only measured: differentiating an axiom gives a theorem of the rules
for motion."""

from __future__ import annotations

import pytest

import psiphi as pp
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.terms import add
from psiphi.algebra.rewriting.identities import HALVES, axioms
from psiphi.algebra.rewriting.rule_sets import motion_rules
from tests.zoo import random_tree


@pytest.mark.parametrize("rotors", (True, False))
def test_the_rules_for_motion_are_complete(rotors):
    assert motion_rules(rotors).complete


@pytest.mark.parametrize("axiom", (*axioms(), *axioms(HALVES)), ids=str)
def test_the_derivative_of_an_axiom_is_a_theorem(axiom):
    left, right = (side.dot().poly() for side in axiom.sides)
    for rotors in (True, False):
        assert not motion_rules(rotors).reduce(add(left, right, -1))


def test_proofs_on_a_robot():
    s = Operators(random_tree(2, 4, armature=True))
    W, V = s.I + s.H @ s.phi @ s.K, s.I - s.H @ s.psi @ s.K
    assert pp.prove(s.mass_dot, (W @ s.D @ W.T).dot())
    assert pp.prove(s.mass_dot, (s.mass_half @ s.mass_half.T).dot())
    assert pp.prove((V @ W).dot(), 0 * s.D)
    assert pp.prove((s.psi @ (s.I - s.E_psi)).dot(), 0)
    assert pp.prove(s.lambda_dot - s.P_dot, s.Omega_d @ s.P + (s.Omega_d @ s.P).T)
    assert pp.prove(s.P.dot("next"), s.lambda_dot), "S1 (18), (20)"
    assert pp.prove((s.Delta_phi @ s.G).dot(), s.Delta_phi @ s.G.dot("next")), "S1 (7)"
    assert not pp.prove(s.P_dot, s.lambda_dot), (
        "the two derivatives differ by the joint's own motion"
    )


def test_table_1_is_proved():
    """S1's rows and (13), (18), (29), (30) as printed (docs/mathematics.md section 10), for joints
    of one coordinate."""
    s = Operators(random_tree(2, 4, kinds=("revolute", "prismatic"), armature=False))
    X, lam, I = s.Omega_d @ s.P, s.lambda_dot, s.I
    H_P = s.H.T @ s.D_half.inv.T
    claims = [
        (s.E_phi_dot, s.E_phi @ s.Omega_d),
        (
            s.phi.dot("inertial"),
            s.phi_dot + s.phi @ (s.omega @ s.E_phi - s.E_phi @ s.omega) @ s.phi,
        ),
        (s.H.dot("inertial"), -(s.H @ s.omega)),
        (s.M.dot("inertial"), s.omega @ s.M + s.M @ s.omega.T),
        (s.D_dot, s.H @ s.P_dot @ s.H.T),
        (s.D_dot, s.H @ lam @ s.H.T),
        (s.G_dot, s.tau_bar @ s.P_dot @ s.H.T @ s.D.inv),
        (s.tau_bar_dot, -(s.G_dot @ s.H)),
        (s.E_psi_dot, s.E_psi @ (s.Omega_d @ s.tau_bar - s.P_dot @ s.H.T @ s.D.inv @ s.H)),
        (s.P_dot, s.E_psi @ lam @ s.E_psi.T),
        (lam, s.E_psi @ lam @ s.E_psi.T + X + X.T),
        (
            s.mass_half_dot,
            s.H @ s.phi @ (s.Omega_d @ s.phi @ s.P + (I + s.tau_bar) @ s.P_dot / 2) @ H_P,
        ),
        (
            s.mass_half_dot,
            s.H @ s.phi @ (s.Omega_d @ (s.phi - I) @ s.P + (I + s.tau_bar) @ lam / 2) @ H_P,
        ),
    ]
    for left, right in claims:
        assert pp.prove(left, right), f"{left} = {right}"
    turning = Operators(random_tree(2, 3, kinds=("universal",)))
    assert not pp.prove(turning.tau_bar_dot, -(turning.G_dot @ turning.H)), (
        "a joint map that changes shows"
    )


def test_what_velocities_make_of_frames():
    """(J v)' = B* φ* (H* v' + a_local) + Ḃ* φ* H* v: along the joint's own motion nothing turns,
    V_d × V_d = 0."""
    s, v, v_dot = Operators(random_tree(2, 4, armature=True)), pp.vector("v"), pp.vector("v_dot")
    J, B = s.J("tool"), s.B("tool")
    assert pp.prove(s.Omega_d.T @ s.H.T @ v, 0)
    assert pp.prove(s.Omega_d.T @ s.phi.T @ s.H.T @ v + s.H_dot.T @ v, s.a_local)
    assert pp.prove(
        (J @ v).dot(), B.T @ s.phi.T @ (s.H.T @ v_dot + s.a_local) + B.dot().T @ s.phi.T @ s.H.T @ v
    )
    assert not pp.prove((J @ v).dot(), B.T @ s.phi.T @ (s.H.T @ v_dot + s.a_local))
