"""Derivatives are proved, not only measured: differentiating an axiom gives a theorem of the rules for motion."""

from __future__ import annotations

import pytest

import psiphi as pp
from psiphi.operators import Operators
from psiphi.rewriting.axioms import AXIOMS, HALVES
from psiphi.rewriting.polynomial import add
from psiphi.rewriting.systems import moving_rules
from zoo import random_tree


@pytest.mark.parametrize("rotors", (True, False))
def test_the_rules_for_motion_are_complete(rotors):
    assert moving_rules(rotors).complete


@pytest.mark.parametrize("axiom", (*AXIOMS, *HALVES), ids=str)
def test_the_derivative_of_an_axiom_is_a_theorem(axiom):
    left, right = (side.dot().poly() for side in axiom.sides)
    for rotors in (True, False):
        assert not moving_rules(rotors).reduce(add(left, right, -1))


def test_proofs_on_a_robot():
    s = Operators(random_tree(2, 4, armature=True))
    W, V = s.I + s.H @ s.phi @ s.K, s.I - s.H @ s.psi @ s.K
    assert pp.prove(s.mass_dot, (W @ s.D @ W.T).dot())
    assert pp.prove(s.mass_dot, (s.mass_half @ s.mass_half.T).dot())
    assert pp.prove((V @ W).dot(), 0 * s.D)
    assert pp.prove((s.psi @ (s.I - s.E_psi)).dot(), 0 * s.P)
    assert pp.prove(s.lambda_dot - s.P_dot, s.Omega_d @ s.P + (s.Omega_d @ s.P).T)
    assert not pp.prove(s.P_dot, s.lambda_dot), "the two derivatives differ by the joint's own motion"
