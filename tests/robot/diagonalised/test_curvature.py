"""S1 section 1: M = L* L with dQ = L dq exists where the Riemann symbols of M vanish."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.builder.builder import Builder
from tests.soundness.oracle import STEP, Oracle
from tests.zoo import chain


def two_links(offset: float) -> pp.Robot:
    """Two parallel hinges; the second link's centre of mass is `offset` from its hinge."""
    builder = Builder("two_links")
    builder.body("upper", mass=1.3, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.02, 0.03]))
    builder.body("fore", mass=0.7, com=(offset, 0, 0), inertia=np.diag([0.02, 0.03, 0.05]))
    builder.joint("shoulder", "revolute", parent="world", child="upper", axis=(0, 0, 1))
    builder.joint(
        "elbow", "revolute", parent="upper", child="fore", axis=(0, 0, 1), xyz=(0.8, 0, 0)
    )
    return pp.Robot.of(builder.build())


def polar_arm(inertia: float) -> pp.Robot:
    """A slide on a turning arm of moment of inertia I: M = diag(I + m r^2, m)."""
    builder = Builder("polar_arm")
    builder.body("arm", mass=1.0, inertia=inertia * np.eye(3))
    builder.body("slider", mass=2.0, inertia=1e-12 * np.eye(3))
    builder.joint("turn", "revolute", parent="world", child="arm", axis=(0, 0, 1))
    builder.joint("slide", "prismatic", parent="arm", child="slider", axis=(1, 0, 0))
    return pp.Robot.of(builder.build())


@pytest.mark.parametrize("offset", [0.4, 0.0])
def test_two_hinges(offset):
    """M = [[alpha + 2 beta c, delta + beta c], [., delta]]: R_1212 = beta c (alpha delta - delta^2
    - beta^2) / det M; flat if the second link's centre of mass is on its hinge."""
    form, q = two_links(offset).diagonalised, np.array([[0.3, 0.9], [-0.2, 2.1], [0.5, -0.4]])
    delta, beta, c = 0.05 + 0.7 * offset**2, 0.7 * 0.8 * offset, np.cos(q[:, 1])
    alpha = 0.03 + 1.3 * 0.04 + 0.7 * 0.64 + delta
    det = (alpha + 2 * beta * c) * delta - (delta + beta * c) ** 2
    R = form.riemann_symbols(q)
    want = beta * c * (alpha * delta - delta**2 - beta**2) / det
    np.testing.assert_allclose(R[:, 0, 1, 0, 1], want, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(R, -np.swapaxes(R, 1, 2), atol=1e-12)
    assert (form.is_flat(q) == (offset == 0.0)).all()


@pytest.mark.parametrize("inertia", [0.5, 1e-12])
def test_a_slide_on_a_hinge(inertia):
    """R_1212 = -I m / (I + m r^2): flat if only a point mass moves, in polar coordinates."""
    form, q = polar_arm(inertia).diagonalised, np.array([[0.3, 0.6], [1.0, -1.1]])
    R = form.riemann_symbols(q)[:, 0, 1, 0, 1]
    np.testing.assert_allclose(R, -2.0 * inertia / (inertia + 2.0 * q[:, 1] ** 2), atol=1e-9)
    assert (form.is_flat(q) == (inertia < 1e-6)).all()


def test_symbols_of_an_arm():
    """Gamma from complex steps of an oracle's mass matrix; R has the symmetries of a curvature."""
    arm = pp.Robot.of(chain("arm", ["revolute", "prismatic", "revolute", "revolute"], seed=2))
    form, q, n = arm.diagonalised, arm.random(seed=0), arm.nv
    steps = [Oracle(arm, q + 1j * STEP * e, np.zeros(n), moves=True) for e in np.eye(n)]
    d = np.array([o["mass"].m.imag / STEP for o in steps])  # d[i, k, j]
    want = (np.einsum("ikj->kij", d) + np.einsum("jki->kij", d) - d) / 2
    np.testing.assert_allclose(form.christoffel_symbols(q), want, rtol=1e-9, atol=1e-9)
    R = form.riemann_symbols(q)
    near = dict(atol=1e-10 * np.abs(R).max())
    np.testing.assert_allclose(R, -np.einsum("abcd->bacd", R), **near)
    np.testing.assert_allclose(R, np.einsum("abcd->cdab", R), **near)
    np.testing.assert_allclose(
        sum(np.einsum(f"a{x}->abcd", R) for x in ("bcd", "cdb", "dbc")), 0.0, **near
    )
    assert not form.is_flat(q)


def test_slides_are_flat_and_turning_axes_refused():
    gantry = pp.Robot.of(chain("gantry", ["prismatic"] * 3, seed=1))
    assert gantry.diagonalised.is_flat(np.zeros((2, 3))).all()
    with pytest.raises(pp.StateError, match="q' = v"):
        pp.load("ur5", base="free").diagonalised.riemann_symbols(np.zeros(13))
