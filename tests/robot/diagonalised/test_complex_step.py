"""Derivatives to the last digit: the sweeps run on complex numbers, d/dt f = Im f(q + i h q') / h,
with nothing subtracted."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import frame, moves_inertia, program
from psiphi.compiler.sweeps.tree_loop import run_program
from tests.model.spatial import on_arrays as quat
from tests.zoo import ZOO, random_state

STEP = 1e-30
x = pp.vector("x")
EXPRESSIONS = {
    "mass": lambda s: s.mass @ x,
    "its inverse": lambda s: s.mass.inv @ x,
    "its root": lambda s: s.mass_half @ x,
    "nu of v": lambda s: s.mass_half.T @ x,
    "eps of tau": lambda s: s.mass_half.inv @ x,
    "D and its root": lambda s: s.D @ x + s.D_half.T @ x - s.D_half.inv @ x,
    "gains": lambda s: s.H @ s.psi @ s.E_phi @ s.tau_bar @ s.G @ x,
}


def rates_of_q(model, q, v):
    """dq/dt of the joint velocities v, exactly."""
    out = np.zeros(model.nq)
    for joint in model.joints:
        own, w = q[joint.q_slice], v[joint.v_slice]
        if joint.kind == "planar":
            c, s = np.cos(own[2]), np.sin(own[2])
            out[joint.q_slice] = [c * w[1] - s * w[2], s * w[1] + c * w[2], w[0]]
        elif joint.row.nq == joint.row.nv:
            out[joint.q_slice] = w
        else:
            turn = quat.multiply(own[-4:], np.append(w[:3] / 2, 0.0))
            out[joint.q_slice] = (
                np.concatenate([quat.rotate(own[3:], w[3:]), turn])
                if joint.kind == "free"
                else turn
            )
    return out


@pytest.mark.parametrize("name", dict(ZOO))
def test_along_the_motion(name):
    model = dict(ZOO)[name]()
    s, (q, v, given, _) = Operators(model), random_state(model, 5)
    moved = list(q + 1j * STEP * rates_of_q(model, q, v))
    for what, build in EXPRESSIONS.items():
        expression = build(s)
        equation = Equation({"out": expression}, model, forms=("as written",))
        tree = frame(model, moves_inertia(equation))
        found = run_program(program(equation, tree), tree, {"q": moved, "x": list(given)})
        got = np.array([found["out", i] for i in range(model.nv)])
        want = expression.dot(held=("x",)).dense(q, v, x=given)
        np.testing.assert_allclose(
            np.imag(got) / STEP, want, rtol=0, atol=1e-11 * (1.0 + np.abs(want).max()), err_msg=what
        )
