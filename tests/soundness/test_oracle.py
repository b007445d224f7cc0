"""The oracle against itself: its tables against derivatives, its letters against the laws that
define them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.soundness import robots
from tests.soundness.oracle import (
    BUILD,
    LETTER_SPACES,
    STEP,
    Oracle,
    back,
    carried,
    coordinate_rate,
    cross,
    displacement,
    joint_map,
)
from tests.soundness.recipes import letter, read, text
from tests.soundness.robots import Joint
from tests.soundness.writing import draw_recipe
from tests.zoo import KINDS

TREE = [
    ("universal", -1, False),
    ("spherical", 0, True),
    ("helical", 1, False),
    ("planar", 0, False),
    ("free", -1, True),
]


@pytest.fixture(
    params=[[Joint(kind)] for kind in KINDS] + [TREE],
    ids=lambda joints: joints[0][0] if len(joints) == 1 else "tree",
)
def oracle(request) -> Oracle:
    robot = robots.build(request.param, seed=4)
    q, v = robots.state(robot, 4, 1)
    return Oracle(robot, q[0], v[0])


def near(a, b) -> bool:
    return np.allclose(a, b, rtol=1e-11, atol=1e-11)


def test_joint_maps_are_derivatives_of_displacements(oracle):
    """X⁻¹ dX/dt = (H* v) ×*, X of the displacement alone."""
    for j in oracle.model.joints:
        q, v = oracle.q[j.q_slice], oracle.v[j.v_slice]
        later = displacement(j, q + 1j * STEP * coordinate_rate(j, q, v))
        X, X1 = carried(*displacement(j, q)), carried(*later)
        assert near(back(X) @ X1.imag / STEP, -cross(joint_map(j, q) @ v).T), j.kind


def test_the_riccati_equation_and_the_recursions(oracle):
    o, eye = oracle, np.eye(6 * oracle.count)
    P, H, phi, psi = (o[x].m for x in ("P", "H", "phi", "psi"))
    assert near(phi @ (eye - o["E_phi"].m), eye) and near(psi @ (eye - o["E_psi"].m), eye)
    assert near(o["M"].m, P - o["E_psi"].m @ P @ o["E_phi"].m.T)
    W = np.eye(len(H)) - H @ psi @ o["K"].m
    assert near(W.T @ o["D_inv"].m @ W @ o["mass"].m, np.eye(len(H)))


def test_newton_euler_in_both_conventions(oracle):
    """M φ* a + b is the same force in either; dM/dt - 2 C is skew, and C v is the bias without
    gravity."""
    o = oracle
    H, phi, M, g = (o[x].m for x in ("H", "phi", "M", "g"))
    bias = [
        H @ phi @ (M @ phi.T @ o[a].m + o[b].m) for a, b in (("a", "b"), ("a_local", "b_local"))
    ]
    assert near(*bias)
    assert near(o["coriolis"].m @ o.v[:, None], bias[0] + H @ phi @ M @ g)
    S = o.moving["mass"].rate.m - 2.0 * o["coriolis"].m
    assert near(S, -S.T)


def test_rates_of_the_articulated_inertia(oracle):
    o = oracle
    assert near(o["Pi"].m + o["Pi"].m.T, o["P_dot"].m)
    X = o["Omega_d"].m @ o["P"].m
    assert near(o["lambda_dot"].m, o["P_dot"].m + X + X.T)
    L, T = o["D_half"].m, o["D_rate"].m
    assert near(L @ L.T, o["D"].m) and near(L @ (T + T.T) @ L.T, o.moving["D"].rate.m)


def test_every_letter_of_the_language_has_a_value():
    """And nothing else has: a new letter needs a row here."""
    from psiphi.algebra.expressions.letters import LETTERS, STATE_VECTORS

    known = set(LETTERS) | {x.word for x in STATE_VECTORS} | {"mass", "coriolis", "mass_half"}
    assert known - {"I"} == set(BUILD) == set(LETTER_SPACES)


def test_letters_of_psiphi(oracle):
    """`.dense` of every letter, to a few spreads of the blurred oracle."""
    o = oracle
    other = Oracle(o.model, o.q, o.v, blur=np.random.default_rng(0))
    for name in BUILD:
        e = getattr(o.model.operators, name.removesuffix("_inv"))
        found = (e.inv if name.endswith("_inv") else e).dense(o.q, o.v).reshape(o[name].m.shape)
        tolerance = 100.0 * np.abs(other[name].m - o[name].m).max() + 1e-12
        assert np.abs(found - o[name].m).max() <= tolerance, name


def test_recipes_are_read_as_they_are_written():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        node = draw_recipe(lambda options, rng=rng: options[int(rng.integers(len(options)))])
        assert text(read(text(node))) == text(node)
    assert (
        read("s.B('tool', axes='frame').T @ (2 * s.phi.T.inv)").args[1].args[1]
        == letter("phi").T.inv
    )
