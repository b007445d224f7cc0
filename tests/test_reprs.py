"""What a prompt prints: one line for each object, with names and sizes instead of contents."""

import pickle

import numpy as np
import pytest

import psiphi as pp

ARM = pp.load("pelican")
S, Q = ARM.operators, np.zeros(2)
F = ARM.function("forward_dynamics")


def rod():
    b = pp.Builder("rod")
    b.body("rod", mass=1.0)
    b.joint("hinge", "revolute", "world", "rod")
    return b


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: F, "<forward_dynamics of 'pelican': q, v, tau -> a>"),
        (lambda: ARM.function("jacobian", "tool"), "<jacobian tool of 'pelican': q -> J>"),
        (lambda: F.jacobian("q"), "<forward_dynamics: jacobian by q of 'pelican': q, v, tau -> da"),
        (lambda: F.vjp("tau"), "<forward_dynamics: vjp by tau of 'pelican': q, v, tau, a_weight"),
        (lambda: pp.PD(ARM, Q, 10.0, 1.0), "<PD of 'pelican': "),
        (lambda: pp.ComputedTorque(ARM, Q, 10.0, 1.0), "<ComputedTorque of 'pelican'"),
        (lambda: pp.GravityCompensation(ARM), "<GravityCompensation of 'pelican'"),
        (lambda: pp.rollout(ARM, Q, steps=2), "<rollout: q (3, 2), v (3, 2)>"),
        (lambda: pickle.loads(pickle.dumps(pp.rollout(ARM, Q, steps=2))), "<rollout: q (3, 2)"),
        (rod, "<Builder of 'rod': 1 link, 1 joint, 0 frames>"),
        (lambda: pp.prove(S.psi, S.phi), "<not proved: ψ = φ>"),
        (lambda: pp.prove(S.phi @ S.E_phi, S.phi - S.I), "<proved: φ ℰ_φ = φ - I>"),
    ],
)
def test_a_repr_is_one_line(made, text):
    shown = repr(made())
    assert shown.startswith(text) and "\n" not in shown and " at 0x" not in shown
    assert len(shown) < 120
