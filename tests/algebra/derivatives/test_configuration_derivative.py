"""Derivatives of expressions are expressions: beside central differences of the dense matrices, on
trees of every joint."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.letters import VectorLetter
from psiphi.algebra.expressions.operator_properties import random_values
from psiphi.apps.cli.expression_parser import derive
from tests import zoo

TREES = {
    "universal": zoo.chain("bent", ["revolute", "universal", "spherical"], seed=1),
    "screws": zoo.chain("screws", ["helical", "universal", "cylindrical", "prismatic"], seed=2),
    "planar": zoo.chain("table", ["planar", "spherical", "continuous"], seed=3),
    "forest": zoo.random_tree(7, 4, ["revolute", "free"], armature=True, forest=True),
}
ROBOTS = {name: pp.Robot.of(model) for name, model in TREES.items()}


def expressions(s, frame):
    v, a, tau, f = s.vector("v"), s.vector("a"), s.vector("tau"), s.vector("f", "frame")
    J = s.J(frame)
    needs = s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b
    return {
        "velocities": (s.phi.T @ s.H.T @ v, "qv"),
        "inverse dynamics": (s.H @ s.phi @ (needs - s.B(frame) @ f) + s.rotor @ a, "qvaf"),
        "forward dynamics": (
            s.mass.inv @ (tau - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)),
            ("q", "v", "tau"),
        ),
        "energy": (v.T @ s.mass @ v / 2 + s.U, "qv"),
        "frame velocity": (J @ v, "qv"),
        "in own axes": (s.J(frame, axes="frame") @ v, "q"),
        "Coriolis": (s.coriolis @ a, "qv"),
        "momentum": (s.E_0 @ s.phi @ s.M @ s.phi.T @ s.H.T @ v, "q"),
        "link accelerations": (s.phi.T @ (s.H.T @ a + s.a), "qv"),
        "compliance": (J @ s.mass.inv @ J.T @ f, "q"),
        "turning frames": (J.dot() @ v, "qv"),
    }


def needed(e, values):
    names = {x.word for x in e.letters if isinstance(x, VectorLetter) and x.is_input}
    return {
        k: x
        for k, x in values.items()
        if k in names or (k == "v" and any(y.needs_velocity for y in e.letters))
    }


def differences(robot, e, by, q, values, h=1e-5):
    """d e / d by, all columns at once: differences of fourth order."""

    def moved(x):
        if by == "q":
            return e.dense(robot.integrate(q, x), **values)
        return e.dense(q, **{**values, by: values[by] + x})

    n = robot.nv if by == "q" else len(values[by])
    x = h * np.eye(n)
    return np.moveaxis(
        (8 * (moved(x) - moved(-x)) - moved(2 * x) + moved(-2 * x)) / (12 * h), 0, -1
    )


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("name", expressions(pp.robots.puma560().operators, "tool"))
def test_derivatives_are_those_of_the_matrices(name, tree):
    robot = ROBOTS[tree]
    e, names = expressions(robot.operators, list(robot.frames)[-1])[name]
    q, values = robot.random(seed=1), random_values(e, np.random.default_rng(1))
    for by in names:
        d = pp.derivative(e, by)
        dense = d.dense(q, **needed(d, values))
        expected = differences(robot, e, by, q, values)
        size = 1.0 + np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(dense, expected, atol=2e-8 * size, err_msg=by)


@pytest.mark.parametrize("tree", TREES)
def test_they_compile_to_what_they_mean(tree):
    robot = ROBOTS[tree]
    s, x, w = robot.operators, pp.vector("x"), pp.vector("w")
    table = expressions(s, list(robot.frames)[-1])
    names = (
        ("inverse dynamics", "forward dynamics")
        if tree == "screws"
        else ("energy", "frame velocity", "turning frames")
    )
    for name in names:
        e, (by, *_) = table[name]
        d = pp.derivative(e, by)
        seed = pp.vector("w", "frame") if e.rows.name == "frame" else w
        for form in (d, d @ x, *([d.T @ seed] if e.rows.name != "one" else [])):
            f = pp.function(form)
            assert not f.dense, (name, form)
            q, values = robot.random(seed=2), random_values(form, np.random.default_rng(2))
            answer = f(q, *(values[arg.name] for arg in f.inputs[1:]))
            expected = form.dense(q, **needed(form, values))
            np.testing.assert_allclose(
                answer, expected, atol=1e-9 * (1.0 + np.abs(expected).max()), err_msg=name
            )


def test_along_a_vector_operators_too():
    """d X[x] is X's time derivative with x in the place of v; and of vectors the matrix times x."""
    robot = ROBOTS["universal"]
    s, x, v = robot.operators, pp.vector("x"), pp.vector("v")
    rng = np.random.default_rng(3)
    q, given = robot.random(seed=3), rng.standard_normal(robot.nv)
    for X in (s.phi, s.H, s.E_phi, s.mass, s.mass.inv, s.J("world", list(robot.frames)[-1])):
        np.testing.assert_allclose(
            pp.derivative(X, "q", along=x).dense(q, x=given), X.dot().dense(q, given), atol=1e-9
        )
        np.testing.assert_allclose(
            pp.derivative(X, "q", along=v).dense(q, given), X.dot().dense(q, given), atol=1e-9
        )
    e = s.mass @ v
    u = rng.standard_normal(robot.nv)
    once = pp.derivative(e, "q", along="x").dense(q, v=given, x=u)
    np.testing.assert_allclose(once, pp.derivative(e, "q").dense(q, v=given) @ u, atol=1e-10)


def test_derivatives_are_differentiable_once_more():
    """The gradient of the energy, and of it: the second derivative along a change, differences of
    the first."""
    for tree in ("planar", "screws"):
        robot = ROBOTS[tree]
        s, v, w = robot.operators, pp.vector("v"), pp.vector("w")
        a = pp.vector("a")
        torque = s.H @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b)
        for gradient in (
            pp.derivative(v.T @ s.mass @ v / 2 + s.U, "q").T,
            pp.derivative(torque, "q").T @ w,
        ):
            q, values = robot.random(seed=4), random_values(gradient, np.random.default_rng(4))
            for by in "qv":
                if tree == "screws" and by == "q" and "w" in values:
                    with pytest.raises(pp.StateError, match="third derivative"):
                        pp.derivative(gradient, by)
                    continue
                second = pp.derivative(gradient, by)
                expected = differences(robot, gradient, by, q, values)
                size = 1.0 + np.abs(expected).max()
                np.testing.assert_allclose(
                    second.dense(q, **needed(second, values)), expected, atol=2e-8 * size
                )


def test_what_they_say():
    s, v, a = pp.robots.puma560().operators, pp.vector("v"), pp.vector("a")
    needs = s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b
    assert str(pp.derivative(s.phi @ needs, "q")).startswith("φ ℰ_φ ⟦φ (M φ* (H* v̇ + a) + b)⟧ H*")
    assert str(pp.derivative(s.H @ s.phi @ needs, "a")) == "H φ M φ* H*"
    assert str(pp.derivative(v.T @ s.mass @ v / 2, "v")) == "v* (H φ M φ* H* + J_m)"
    d = pp.derivative(s.mass @ v, "q")
    assert eval(repr(d), {"s": s}) == d
    assert "⟦" not in d.latex() and r"\times" in d.latex()
    assert "⟦" in pp.function(pp.derivative(s.H @ s.phi @ needs, "q") @ v).explain()


def test_identities_of_derivatives_are_proved():
    """d(M M⁻¹ x) = 0, d(ψ's own identity) through φ, and the power of the weights."""
    s, v, tau, x = pp.robots.puma560().operators, pp.vector("v"), pp.vector("tau"), pp.vector("x")
    M = s.mass
    lhs = pp.derivative(M.inv @ tau, "q", along=x)
    assert pp.prove(lhs, -M.inv @ pp.derivative(M, "q", along=x) @ M.inv @ tau)
    assert pp.prove(pp.derivative(s.phi @ s.phi.inv, "q", along=x), 0)
    assert pp.prove(pp.derivative(v.T @ M @ v / 2, "v"), v.T @ M)
    assert not pp.prove(pp.derivative(M @ v, "q"), s.coriolis)


def test_typed():
    robot = pp.robots.puma560()
    f = derive(robot, "derivative(mass @ v, 'q')")
    assert f.expression == pp.derivative(robot.operators.mass @ pp.vector("v"), "q")
    along = derive(robot, "derivative(mass, 'q', along='x') @ v").expression
    assert along == pp.derivative(robot.operators.mass, "q", along="x") @ pp.vector("v")
    for text in (
        "derivative(mass @ v, q)",
        "derivative(mass @ v)",
        "derivative(mass @ v, 'q', by='v', at='x')",
    ):
        with pytest.raises(pp.StateError):
            derive(robot, text)


def test_around_inverses_that_no_identity_knows():
    """Khatib's inertia of an arm's hand, and how the force that it asks for changes."""
    robot = pp.robots.puma560()
    s, f = robot.operators, pp.vector("f", "frame")
    J = s.J("tool")
    e = (J @ s.mass.inv @ J.T).inv @ f
    d = pp.derivative(e, "q")
    q, values = robot.random(seed=5), {"f": np.arange(6.0)}
    expected = differences(robot, e, "q", q, values)
    np.testing.assert_allclose(
        pp.function(d)(q, values["f"]), expected, atol=1e-6 * (1.0 + np.abs(expected).max())
    )


def test_letters_made_of_vectors_can_be_written():
    s, v = pp.robots.puma560().operators, pp.vector("v")
    V = s.phi.T @ s.H.T @ v
    q, rates = np.full(6, 0.4), np.arange(6.0)
    np.testing.assert_allclose(s.cross(V).dense(q, v=rates), s.spin.dense(q, rates), atol=1e-12)
    assert pp.dot_test(s.cross(V)) and pp.dot_test(s.form("turn", "u", "f", y=V))
    for wrong in (
        lambda: s.cross(v),
        lambda: s.cross(s.phi),
        lambda: s.cross(s.b),
        lambda: s.form("crossing", "y", "f", u=V),
        lambda: s.form("cross", "y", "y", u=V),
        lambda: s.form("cross", "y", "f"),
    ):
        with pytest.raises(pp.StateError):
            wrong()


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda s: pp.derivative(s.mass, "q"), "three axes"),
        (
            lambda s: pp.derivative(s.mass @ pp.vector("v"), "tau"),
            "by 'tau': it has no such vector",
        ),
        (lambda s: pp.derivative(3, "q"), "derivative of a int"),
        (lambda s: pp.derivative(s.D @ pp.vector("v"), "q"), "D has no derivative by q"),
        (lambda s: pp.derivative(s.psi, "q", along="x"), "ψ has no derivative by q"),
        (lambda s: pp.derivative(s.E_c @ s.phi @ s.b, "q"), "ℰ_c has no derivative by q"),
        (lambda s: pp.derivative(s.rotor @ pp.vector("v"), "q"), "does not depend on q"),
        (
            lambda s: pp.derivative(s.mass @ pp.vector("v"), "q", along=s.phi),
            "expected a joint vector",
        ),
        (lambda s: pp.derivative(s.mass @ pp.vector("v"), "q", along=7), "along is 7"),
        (lambda s: pp.derivative(s.P_dot @ s.a, "v"), "has no derivative by v"),
    ],
)
def test_what_has_no_derivative_says_so(call, cause):
    with pytest.raises(pp.StateError, match=cause):
        call(pp.robots.puma560().operators)
