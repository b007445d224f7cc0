"""Every form of an equation, lowered to sweeps, has the value of its dense definition: on the zoo,
for every letter."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.equations import FORMS, Equation
from psiphi.compiler.passes import choose
from psiphi.compiler.sweeps.interpreter import interpret
from tests import zoo

SMALL = [(name, make) for name, make in zoo.ZOO if make().nv <= 20]
tau, x = pp.vector("tau"), pp.vector("x")

VECTORS = {
    "forward dynamics": lambda s: s.mass.inv @ (tau - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)),
    "inverse dynamics": lambda s: s.H @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ x + s.a) + s.b),
    "mass times": lambda s: s.mass @ x,
    "mass solve": lambda s: s.mass.inv @ tau,
    "square root": lambda s: s.mass_half @ x,
    "adjoint of the square root": lambda s: s.mass_half.T @ x,
    "inverse square root": lambda s: s.mass_half.inv @ x,
    "its adjoint": lambda s: s.mass_half.inv.T @ x,
    "innovations": lambda s: (s.I - s.H @ s.psi @ s.K) @ tau,
    "velocity of frames": lambda s: s.J("tool", "elbow") @ x,
    "velocity in own axes": lambda s: s.J("tool", axes="frame") @ x,
    "torques of wrenches": lambda s: s.J("tool", "elbow").T @ pp.vector("f", "frame"),
    "acceleration of wrenches": lambda s: s.mass.inv @ s.J("elbow").T @ pp.vector("f", "frame"),
    "frames pushed and watched": lambda s: (
        s.J("tool", "elbow") @ s.mass.inv @ s.J("tool", "elbow").T @ pp.vector("f", "frame")
    ),
    "link velocities": lambda s: s.phi.T @ s.H.T @ x,
    "link accelerations": lambda s: s.phi.T @ (s.H.T @ x + s.a),
    "joint forces": lambda s: s.phi @ (s.M @ s.phi.T @ (s.H.T @ x + s.a) + s.b),
    "bias vectors": lambda s: 2 * (s.P @ s.a) - s.b / 3,
    "one step out": lambda s: s.H @ s.E_phi @ s.E_psi @ s.G @ x,
    "one step in": lambda s: s.G.T @ s.E_phi.T @ s.E_psi.T @ s.H.T @ x,
    "projections": lambda s: s.H @ s.phi @ s.tau_bar @ s.M @ s.tau_bar.T @ s.H.T @ x,
    "link forces in": lambda s: s.H @ s.psi @ pp.vector("z", "link"),
    "link motions in": lambda s: s.H @ s.phi @ s.M @ s.phi.T @ pp.vector("alpha", "link"),
    "rotors and D": lambda s: s.rotor @ x - s.D @ x + s.K.T @ s.psi.T @ s.H.T @ x,
}
MATRICES = {
    "mass": lambda s: s.mass,
    "mass inverse": lambda s: s.mass.inv,
    "innovations factor": lambda s: s.I + s.H @ s.phi @ s.K,
    "its inverse": lambda s: (s.I + s.H @ s.phi @ s.K).inv,
    "square root": lambda s: s.mass_half,
    "jacobian": lambda s: s.J("tool", "elbow"),
    "jacobian transposed": lambda s: s.J("elbow").T,
    "operational space": lambda s: s.J("tool", "elbow") @ s.mass.inv @ s.J("tool", "elbow").T,
    "own axes": lambda s: s.J("tool", axes="frame") @ s.mass.inv @ s.J("tool", axes="frame").T,
    "mixed frames": lambda s: s.J("tool") @ s.mass.inv @ s.J("elbow").T,
    "accelerations of torques": lambda s: s.J("tool", "elbow") @ s.mass.inv,
    "unlike sides": lambda s: s.H @ s.phi @ s.M @ s.phi.T @ s.H.T @ s.D.inv,
    "D": lambda s: s.D,
    "coriolis": lambda s: s.coriolis,
    "no shape of its own": lambda s: s.J("tool") @ s.mass.inv @ s.mass.inv @ s.J("elbow").T,
}


def values(equation, model, rng):
    """Random inputs by name."""
    q, v, *_ = zoo.random_state(model, rng)
    given = {"q": q, "v": v}
    return [given.get(arg.name, rng.normal(size=arg.shape)) for arg in equation.arguments()[0]]


def check(name, make, build, forms=FORMS):
    model, rng = make(), np.random.default_rng(3)
    expression = build(Operators(model))
    seen = []
    for form in forms:
        equation = Equation({"out": expression}, model, forms=(form,))
        try:
            lowered = choose(equation).lowered
        except pp.StateError:
            continue
        inputs = values(equation, model, rng)
        tree = frame_tree(model, lowered.movable_inertia)
        got = interpret(lowered.program("out", tree, *equation.arguments()), tree, *inputs)[0]
        named = {
            arg.name: value for arg, value in zip(equation.arguments()[0], inputs, strict=True)
        }
        want = expression.dense(named.pop("q"), named.pop("v", None), **named)
        scale = np.abs(want).max(initial=0.0) + 1e-3
        assert np.abs(got - want).max(initial=0.0) <= 1e-9 * scale, (name, form)
        seen.append(form)
    assert seen, f"{expression} has no form made of sweeps"


@pytest.mark.parametrize("what", VECTORS)
def test_vector_expressions(what):
    for name, make in SMALL:
        check(f"{what} of {name}", make, VECTORS[what])


@pytest.mark.parametrize("what", MATRICES)
def test_matrix_expressions(what):
    for name, make in SMALL:
        check(f"{what} of {name}", make, MATRICES[what])


def test_what_depends_on_the_links_axes_is_refused():
    s = pp.robots.chain(4).operators
    with pytest.raises(pp.StateError, match=r"takes link forces, phi\.T gives link motions"):
        s.H @ s.phi @ s.phi.T @ s.H.T
