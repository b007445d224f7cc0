"""Time derivatives of operators: every row of the table against differences, local and inertial,
every joint kind and tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psiphi as pp
from psiphi.algebra.dense.dense_letters import DenseLetters
from psiphi.algebra.derivatives.time_derivative import RATES, table
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import frame, moves_inertia, program
from psiphi.compiler.sweeps.interpreter import interpret
from tests.zoo import ZOO, random_state, trees

EACH = pytest.mark.parametrize("make", [make for _, make in ZOO], ids=[name for name, _ in ZOO])


def slope(value, h=2e-4):
    """d/dt at 0, exact to h^4: central differences at h and 2h."""
    near, far = value(h) - value(-h), value(2 * h) - value(-2 * h)
    return (8 * near - far) / (12 * h)


def close(got, want, message, tolerance=1e-8):
    scale = 1.0 + np.abs(want).max(initial=0.0)
    assert np.abs(got - want).max(initial=0.0) <= tolerance * scale, message


@EACH
def test_every_letter(make):
    model = make()
    s, (q, v, *_) = Operators(model), random_state(model, 1)
    for name in RATES:
        if name != "I":
            letter = getattr(s, name)
            close(
                letter.dot().dense(q, v),
                slope(lambda t, x=letter: x.dense(model.integrate(q, t * v))),
                name,
            )


@EACH
def test_in_inertial_axes(make):
    """D/Dt in body axes, turned into world axes, is the derivative of the components there."""
    model = make()
    s, (q, v, *_) = Operators(model), random_state(model, 2)

    def turned(e, q, rates=None):
        A = axes(model, q)
        X = e.dense(q, rates)
        X = A @ X if e.rows.name == "link" else X
        return X @ A.T if e.cols.name == "link" else X

    for name in RATES:
        letter = getattr(s, name)
        if name != "I" and not letter.term.args[0].row.mixed_axes:
            want = slope(lambda t, x=letter: turned(x, model.integrate(q, t * v)))
            close(turned(letter.dot("inertial"), q, v), want, name)


@EACH
def test_seen_from_the_next_frame(make):
    """S1 (7), (18)-(20): d/dt of the components in the axes of the joint's inboard side, where
    forces are Δ_φ f and motions Δ_φ⁻* V; λ̇ is that of P."""
    model = make()
    s, (q, v, *_) = Operators(model), random_state(model, 3)

    def seen(e, q, rates=None):
        X, shift, sides = e.dense(q, rates), s.Delta_phi.dense(q), ends(e.term)
        back = np.linalg.inv(shift)
        if e.rows.name == "link":
            X = (shift if sides.value(sides.gives) == "force" else back.T) @ X
        if e.cols.name == "link":
            X = X @ (back if sides.value(sides.takes) == "force" else shift.T)
        return X

    for name in ("M", "P", "P_plus", "G", "H", "tau_bar", "E_phi", "psi", "Om", "D"):
        letter = getattr(s, name)
        want = slope(lambda t, x=letter: seen(x, model.integrate(q, t * v)))
        close(seen(letter.dot("next"), q, v), want, name)
    close(s.P.dot("next").dense(q, v), s.lambda_dot.dense(q, v), "λ̇")
    with pytest.raises(pp.StateError, match="forces or motions"):
        pp.vector("y", "link").dot("next")


def axes(model, q):
    """diag(R, R) of every link, R: link axes -> world axes."""
    turns, out = [], np.zeros((6 * len(model.bodies), 6 * len(model.bodies)))
    for k, (parent, joint) in enumerate(
        zip(model.parent, DenseLetters(model, q, np.zeros(model.nv)).motions, strict=True)
    ):
        turns.append(joint.R if parent < 0 else turns[parent] @ joint.R)
        for at in (6 * k, 6 * k + 3):
            out[at : at + 3, at : at + 3] = turns[k]
    return out


@settings(max_examples=15)
@given(trees(max_bodies=6), st.integers(0, 999))
def test_any_expression_on_random_trees(model, seed):
    """Products, adjoints, inverses, frames, vectors: one derivative."""
    s, (q, v, a, x) = Operators(model), random_state(model, seed)
    W = s.I - s.H @ s.psi @ s.K
    vector, held = pp.vector("x"), pp.vector("a")
    expressions = [
        s.mass,
        s.mass.inv,
        s.mass_half,
        s.mass_half.inv,
        W.T @ s.D.inv @ W,
        (s.I + s.H @ s.phi @ s.K).inv,
    ]
    expressions += [
        s.J("tool", "elbow"),
        s.J("tool", axes="frame"),
        s.J("tool") @ s.mass.inv @ s.J("tool").T,
    ]
    expressions += [s.mass @ vector - 2 * (s.D @ held), s.phi.T @ s.H.T @ vector / 3]
    for e in expressions:
        given = {
            name: value for name, value in (("x", x), ("a", a)) if f"vec:{name}@joint" in e.letters
        }
        rate = e.dot(held=("a",) if "a" in given else ())
        along = {"x_dot": a} if "vec:x_dot@joint" in rate.letters else {}
        left = {name: value for name, value in given.items() if f"vec:{name}@joint" in rate.letters}

        def value(t, e=e, given=given):
            moved = {name: array + t * a if name == "x" else array for name, array in given.items()}
            return e.dense(model.integrate(q, t * v), **moved)

        close(rate.dense(q, v, **left, **along), slope(value), str(e), 1e-6)


def test_table_1_as_printed():
    """S1's rows, with the corrections of docs/mathematics.md section 10, where H is constant."""
    model = dict(ZOO)["mixed_arm"]()
    s, (q, v, *_) = Operators(model), random_state(model, 3)
    X = s.Omega_d @ s.P
    I, lam = s.I, s.lambda_dot
    claims = {
        "(4)": (s.E_phi_dot, s.E_phi @ s.Omega_d),
        "D": (s.D_dot, s.H @ lam @ s.H.T),
        "G": (s.G_dot, s.tau_bar @ s.P_dot @ s.H.T @ s.D.inv),
        "tau_bar": (s.tau_bar_dot, -(s.G_dot @ s.H)),
        "E_psi": (s.E_psi_dot, s.E_psi @ (s.Omega_d @ s.tau_bar - s.P_dot @ s.H.T @ s.D.inv @ s.H)),
        "(13)": (s.P_dot, s.E_psi @ lam @ s.E_psi.T),
        "(18)": (lam, s.E_psi @ lam @ s.E_psi.T + X + X.T),
        "lambda": (lam, s.P_dot + X + X.T),
        "(29)": (
            s.mass_half_dot,
            s.H
            @ s.phi
            @ (s.Omega_d @ s.phi @ s.P + (I + s.tau_bar) @ s.P_dot / 2)
            @ s.H.T
            @ s.D_half.inv.T,
        ),
        "(30)": (
            s.mass_half_dot,
            s.H
            @ s.phi
            @ (s.Omega_d @ (s.phi - I) @ s.P + (I + s.tau_bar) @ lam / 2)
            @ s.H.T
            @ s.D_half.inv.T,
        ),
        "Pi": (s.Pi + s.Pi.T, s.P_dot),
    }
    for name, (left, right) in claims.items():
        close(left.dense(q, v), right.dense(q, v), name, 1e-11)


def test_the_mass_matrix_rate_is_coriolis():
    """dM/dt = C + C*, with C the operator of `robot.coriolis`."""
    for name in ("every_kind", "rotors", "forest"):
        model = dict(ZOO)[name]()
        s, (q, v, *_) = Operators(model), random_state(model, 4)
        C = s.coriolis.dense(q, v)
        close(s.mass_dot.dense(q, v), C + C.T, name, 1e-11)


def test_frames_that_move():
    """dJ/dt v is what `frame_acceleration` answers at zero acceleration."""
    robot = pp.robots.puma560()
    s, (q, v, *_) = robot.operators, random_state(robot, 5)
    close(
        s.J("tool").dot().dense(q, v) @ v, robot.frame_acceleration(q, v, 0 * v, "tool"), "J", 1e-12
    )
    compiled = pp.function(s.mass_half_dot @ pp.vector("x"))
    close(compiled(q, v, v), s.mass_half_dot.dense(q, v) @ v, "compiled", 1e-12)


@pytest.mark.parametrize("name", ("every_kind", "rotors", "forest"))
def test_inertial_derivatives_run_as_sweeps(name):
    """omega~ is one matrix for forces and motions, at the links' own origins: sweeps, which move
    these, must know."""
    model = dict(ZOO)[name]()
    s, (q, v, x, _) = Operators(model), random_state(model, 8)
    V = s.phi.T @ s.H.T @ pp.vector("x")
    for e in (
        s.H.dot("inertial") @ s.M @ V,
        s.H @ s.P.dot("inertial") @ V,
        s.H @ s.phi.dot("inertial") @ s.P @ V,
    ):
        assert not pp.function(e).dense
        equation = Equation({"out": e}, model, forms=("as written",))
        tree = frame(model, moves_inertia(equation))
        close(
            interpret(program(equation, tree), tree, q, v, x)[0], e.dense(q, v, x=x), str(e), 1e-12
        )


def test_velocities_are_asked_for():
    """No letter made of velocities is taken at rest unasked: not dense, not compiled, not in tests
    of adjoints and proofs."""
    robot = pp.robots.puma560()
    s, (q, v, *_) = robot.operators, random_state(robot, 5)
    x = np.linspace(-1.0, 1.0, 36)
    for e in (s.M.dot("inertial"), s.Om_dot, s.P_dot, s.spin, s.omega, s.J("tool").dot()):
        with pytest.raises(pp.StateError, match="depends on the velocity"):
            e.dense(q)
        assert pp.dot_test(e, rng=0).left != 0.0
    for e in (s.M.dot("inertial"), s.Om_dot):
        close(pp.function(e @ pp.vector("x", "link"))(q, v, x), e.dense(q, v) @ x, str(e), 1e-12)


def test_body_forces_beside_derivatives():
    """A first sweep with nothing to do is dropped: what differentiates P moves with the rest."""
    robot = pp.robots.puma560()
    s, (q, v, x, _) = robot.operators, random_state(robot, 6)
    e = s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b) + s.D_rate @ pp.vector("x")
    close(pp.function(e)(q, v, x), e.dense(q, v, x=x), "KeyError D_dot", 1e-12)


def test_held():
    s, tau = pp.robots.puma560().operators, pp.vector("tau")
    assert (
        str((s.D @ tau).dot(held="tau"))
        == str((s.D @ tau).dot(held=("tau",)))
        != str((s.D @ tau).dot())
    )
    for held, cause in (("tua", "no such vector"), (3, "expected names of vectors")):
        with pytest.raises(pp.StateError, match=cause):
            (s.D @ tau).dot(held=held)


def test_what_is_refused():
    s = pp.robots.puma560().operators
    for e in (s.spin, s.gyro, s.Omega_d, s.P_dot, s.phi.T @ s.a):
        with pytest.raises(pp.StateError, match="needs accelerations"):
            pp.time_derivative(e)
    with pytest.raises(pp.StateError, match="expected one of local, inertial"):
        s.phi.dot("world")
    with pytest.raises(pp.StateError, match="no derivative seen from the inertial frame"):
        s.L.dot("inertial")
    W = s.I - s.H @ s.Psi @ s.L  # from joints to joints: numbers, and every derivative the same
    assert str(W.dot("inertial")) == str(W.dot())
    with pytest.raises(pp.StateError, match="time_derivative of a int"):
        pp.time_derivative(3)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no operator 'Q_dot'"):
        getattr(s, "Q_dot")  # noqa: B009


def test_the_table_prints():
    rows = {row[0]: row for row in table()}
    assert rows["φ"][1:3] == ("φ ℰ_φ Ω_δ φ", "ω̃ φ - φ ω̃") and rows["M"][1] == "0"
    assert all(source for *_, source in rows.values())
    assert (0 * pp.robots.puma560().operators.M).dense(np.zeros(6)).shape == (36, 36)
