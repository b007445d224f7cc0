"""The letters made of velocities, lowered to sweeps, have the values of their dense definitions."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import choose
from psiphi.compiler.sweeps.interpreter import interpret
from tests.zoo import ZOO, random_state

x = pp.vector("x")
LETTERS = {
    "Omega_d": lambda s: s.H @ s.phi @ s.Omega_d @ s.M @ s.phi.T @ s.H.T @ x,
    "Omega_d*": lambda s: s.H @ s.phi @ s.M @ s.Omega_d.T @ s.phi.T @ s.H.T @ x,
    "spin*": lambda s: s.H @ s.phi @ s.spin.T @ s.M @ s.phi.T @ s.H.T @ x,
    "P+": lambda s: s.H @ s.phi @ s.P_plus @ s.phi.T @ s.H.T @ x,
    "P'": lambda s: s.H @ s.phi @ s.P_dot @ s.phi.T @ s.H.T @ x,
    "lambda'": lambda s: s.H @ s.phi @ s.lambda_dot @ s.phi.T @ s.H.T @ x,
    "Theta": lambda s: s.D_rate @ x - s.D_rate.T @ x,
    "Pi": lambda s: s.H @ s.phi @ (s.Pi + 2 * s.Pi.T) @ s.phi.T @ s.H.T @ x,
    "H'": lambda s: s.H_dot @ s.phi @ s.M @ s.phi.T @ s.H.T @ x,
    "U°": lambda s: s.H @ s.phi @ s.U_ring @ x + s.U_ring.T @ s.phi.T @ s.H.T @ x,
    "a and b, local": lambda s: s.H @ s.phi @ (s.P @ s.a_local + s.b_local),
    "couple and gravity": lambda s: s.couple + s.H @ s.P @ s.g,
    "behind E_phi": lambda s: (
        s.H @ (s.psi + s.phi) @ (s.K @ x + s.E_phi @ s.P_plus @ s.a_local + s.b_local)
    ),
    "G'": lambda s: s.G_dot.T @ s.phi.T @ s.H.T @ x,
    "m'": lambda s: s.mass_half_dot @ x,
    "M'": lambda s: s.mass_dot @ x,
}


@pytest.mark.parametrize("robot", ("every_kind", "forest", "rotors", "welded_arm"))
@pytest.mark.parametrize("letter", LETTERS)
def test_sweeps_have_the_dense_value(letter, robot):
    model = dict(ZOO)[robot]()
    expression = LETTERS[letter](Operators(model))
    equation = Equation({"out": expression}, model, forms=("as written",))
    lowered, (q, v, given, _) = choose(equation).lowered, random_state(model, 1)
    values, (inputs, outputs) = {"q": q, "v": v, "x": given}, equation.arguments()
    tree = frame_tree(model, lowered.movable_inertia)
    got = interpret(
        lowered.program("out", tree, inputs, outputs), tree, *(values[arg.name] for arg in inputs)
    )[0]
    want = expression.dense(q, v, **({"x": given} if "vec:x@joint" in expression.letters else {}))
    assert np.abs(got - want).max() <= 1e-11 * (1.0 + np.abs(want).max())


def test_the_new_form_of_coriolis_forces():
    """C = W couple + H psi U° xi, without gravity, is S1's form of it (docs/mathematics.md section
    11)."""
    for name, make in ZOO:
        model = make()
        s, (q, v, *_) = Operators(model), random_state(model, 6)
        xi = (v + (s.K.T @ s.phi.T @ s.H.T).dense(q) @ v)[:, None]
        W = (s.I - s.H @ s.psi @ s.K).dense(q)
        C = W @ s.couple.dense(q, v)[:, None] + (s.H @ s.psi @ s.U_ring).dense(q, v) @ xi
        G_dot, V = s.G_dot.dense(q, v), (s.phi.T @ s.H.T).dense(q) @ v[:, None]
        above = (
            V - s.H.dense(q).T @ v[:, None]
        )  # V+: that is written for joints without rotors, where G* H* = I
        force = s.E_psi @ s.P @ s.a_local - s.spin.T @ s.M @ s.phi.T @ s.H.T @ pp.vector("v")
        lift = (s.H @ s.psi @ force).dense(q, v)[:, None]
        turn = s.D.dense(q) @ (
            G_dot.T @ above - s.G.dense(q).T @ s.H_dot.dense(q, v).T @ v[:, None]
        )
        assert np.abs(C - (lift - turn)).max() <= 1e-10 * (1.0 + np.abs(C).max()), name
