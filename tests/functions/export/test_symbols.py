"""Functions as SymPy and CasADi expressions, compared with the compiled code, with textbooks, and
with Lagrange's equations."""

import sys

import casadi
import numpy as np
import pytest
import sympy
from sympy import cos, sin

import psiphi as pp
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.robot.catalogue.catalogue import CATALOGUE
from psiphi.robot.robot import Robot
from tests import zoo


def planar(n: int) -> Robot:
    """n links in the plane, gravity along -y."""
    lengths = [0.0, 0.7, 0.6][:n]
    rows = [
        pp.DH(a=a, mass=1.0 + k, com=(0.2 + 0.1 * k, 0, 0), inertia=(0.02, 0.03, 0.04))
        for k, a in enumerate(lengths)
    ]
    return pp.from_dh(rows, gravity=(0, -9.81, 0))


def given(robot, function, rng):
    return [
        robot.random(rng) if arg.name == "q" else rng.standard_normal(arg.shape)
        for arg in function.inputs
    ]


def flat(answers) -> np.ndarray:
    return np.concatenate(
        [
            np.ravel(np.array(x))
            for x in (answers if isinstance(answers, tuple | list) else (answers,))
        ]
    )


def evaluated(found, values) -> np.ndarray:
    """The results of a `Symbolic` at numbers, by SymPy's own code for shared parts."""
    known = {str(symbol): x for symbol, x in found.parameters.items()}
    for name, column in found.inputs.items():
        known |= {
            str(symbol): float(x) for symbol, x in zip(column, np.ravel(values[name]), strict=True)
        }
    for symbol, value in found.shared:
        known[str(symbol)] = sympy.lambdify(list(value.free_symbols), value, "math")(
            *(known[str(x)] for x in value.free_symbols)
        )
    out = []
    for matrix in found.results.values():
        names = list(matrix.free_symbols)
        out.append(
            np.ravel(
                np.array(
                    sympy.lambdify(names, matrix, "numpy")(*(known[str(x)] for x in names)),
                    dtype=float,
                )
            )
        )
    return np.concatenate(out)


def test_forward_dynamics_of_a_panda_in_casadi(rng):
    robot = pp.load("panda")
    f = robot.to_casadi("forward_dynamics")
    assert f.name_in() == ["q", "v", "tau"] and f.name_out() == ["a"]
    q, v, tau = robot.random(rng), rng.standard_normal(9), rng.standard_normal(9)
    a = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(
        np.array(f(q, v, tau)).ravel(), a, rtol=0, atol=1e-14 * np.abs(a).max()
    )
    x = casadi.SX.sym("x", 9)
    slope = casadi.Function("slope", [x], [casadi.jacobian(f(x, v, tau), x)])
    (da_dq,) = (robot.function("forward_dynamics").jacobian("q")(q, v, tau),)
    np.testing.assert_allclose(np.array(slope(q)), da_dq, rtol=0, atol=1e-11 * np.abs(da_dq).max())


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_every_function_in_casadi(name, rng):
    robot = pp.load("pelican")
    frames = ("tool",) if any(word in name for word in ("frame", "jacobian", "compliance")) else ()
    function = robot.function(name, frames)
    numbers = given(robot, function, rng)
    columns = [x.reshape(-1, 1) if x.ndim == 1 else x for x in numbers]
    meant = interpret(function.program, function.tree, *numbers)
    np.testing.assert_allclose(
        flat(function.to_casadi()(*columns)), flat(meant), rtol=1e-11, atol=1e-11
    )


def test_expressions_and_derivatives_in_casadi(rng):
    robot = Robot.of(zoo.free_tree(4, seed=3))
    s, q = robot.operators, robot.random(rng)
    f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    np.testing.assert_allclose(np.array(f.to_casadi()(q)), f(q), rtol=1e-11, atol=1e-11)
    slope = robot.function("gravity").jacobian("q")
    np.testing.assert_allclose(np.array(slope.to_casadi()(q)), slope(q), rtol=1e-11, atol=1e-11)


def test_two_links_as_in_the_textbook():
    """Spong, Hutchinson, Vidyasagar (2006), (7.86) and (7.87)."""
    arm = planar(2)
    m1, m2, c1, c2, I1, I2, l1, g = sympy.symbols("m1 m2 c1x c2x I1zz I2zz l1 g", real=True)
    q1, q2, v1, v2 = sympy.symbols("q1 q2 v1 v2", real=True)
    coupled = m2 * (c2**2 + l1 * c2 * cos(q2)) + I2
    M = [
        [m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cos(q2)) + I1 + I2, coupled],
        [coupled, m2 * c2**2 + I2],
    ]
    found = arm.symbolic("mass_matrix", parameters=True)
    assert found.textbook() == sympy.Matrix(M).applyfunc(sympy.expand)
    h = -m2 * l1 * c2 * sin(q2)
    weight = m2 * c2 * g * cos(q1 + q2)
    bias = [
        2 * h * v1 * v2 + h * v2**2 + (m1 * c1 + m2 * l1) * g * cos(q1) + weight,
        -h * v1**2 + weight,
    ]
    torque = arm.symbolic("bias", parameters=True)
    assert torque.textbook() == sympy.Matrix(bias).applyfunc(sympy.expand)
    assert {str(symbol): x for symbol, x in torque.parameters.items()} == pytest.approx(
        {"m1": 1.0, "m2": 2.0, "c1x": 0.2, "c2x": 0.3, "l1": 0.7, "g": 9.81}
    )
    inverse = arm.symbolic("mass_matrix_inverse", parameters=True).textbook()
    assert (inverse * sympy.Matrix(M)).applyfunc(sympy.simplify) == sympy.eye(2)


def test_three_links_beside_lagrange():
    """The kinetic energy, written with positions and differentiated by SymPy: the same matrix, but
    longer."""
    arm, q, v = planar(3), sympy.symbols("q1:4", real=True), sympy.symbols("v1:4", real=True)
    lengths = (*sympy.symbols("l1 l2", real=True), 0)
    T, x, y = 0, sympy.Integer(0), sympy.Integer(0)
    for k in range(3):
        m, c, I = sympy.symbols(f"m{k + 1} c{k + 1}x I{k + 1}zz", real=True)
        angle = sum(q[: k + 1])
        rate = [
            sum(sympy.diff(p + c * f(angle), q[i]) * v[i] for i in range(3))
            for p, f in ((x, cos), (y, sin))
        ]
        T += m * (rate[0] ** 2 + rate[1] ** 2) / 2 + I * sum(v[: k + 1]) ** 2 / 2
        x, y = x + lengths[k] * cos(angle), y + lengths[k] * sin(angle)
    lagrange = sympy.hessian(T, v)
    found = arm.symbolic("mass_matrix", parameters=True)
    ours = found.textbook()
    some = {
        symbol: 0.3 + 0.1 * i for i, symbol in enumerate(sorted(lagrange.free_symbols, key=str))
    }
    np.testing.assert_allclose(
        np.array(ours.subs(some), dtype=float),
        np.array(lagrange.subs(some), dtype=float),
        rtol=1e-12,
    )
    assert sympy.count_ops(ours) < sympy.count_ops(lagrange.applyfunc(sympy.expand))


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse", "bias"])
@pytest.mark.parametrize("parameters", [False, True])
def test_a_puma(name, parameters, rng):
    robot = pp.load("puma560")
    found = robot.symbolic(name, parameters=parameters)
    function = robot.function(name)
    values = dict(
        zip((arg.name for arg in function.inputs), given(robot, function, rng), strict=True)
    )
    np.testing.assert_allclose(
        evaluated(found, values), flat(function(*values.values())), rtol=1e-10, atol=1e-10
    )
    assert found.latex().startswith(r"\begin{aligned}") and bool(found.parameters) is parameters


@pytest.mark.parametrize("seed", range(2))
def test_named_parameters_of_random_trees(seed, rng):
    robot = Robot.of(zoo.random_tree(seed, 4, armature=True))
    for name in ("forward_dynamics", "energy"):
        function = robot.function(name)
        values = dict(
            zip((arg.name for arg in function.inputs), given(robot, function, rng), strict=True)
        )
        found = function.symbolic(parameters=True)
        np.testing.assert_allclose(
            evaluated(found, values), flat(function(*values.values())), rtol=1e-8, atol=1e-8
        )
        assert {"m4", "r1"} & {str(symbol).partition("_")[0] for symbol in found.parameters}


def test_written_out_is_what_shared_parts_say(rng):
    robot = pp.load("pelican")
    found = robot.symbolic("mass_matrix")
    values = robot.random(rng)
    M = found.matrix.subs(dict(zip(found.inputs["q"], values, strict=True)))
    np.testing.assert_allclose(np.array(M, dtype=float), robot.mass_matrix(values), rtol=1e-12)
    assert found[0, 1] == found.matrix[0, 1] and repr(found).startswith("<Symbolic M: M 2 x 2")
    assert found._repr_latex_().startswith("$")


def test_what_is_refused(monkeypatch):
    arm = planar(2)
    with pytest.raises(pp.Error, match="at most 64 bodies"):
        pp.Robot.of(pp.robots.chain(80)).symbolic("gravity")
    with pytest.raises(pp.Error, match="at most 64 bodies"):
        pp.Robot.of(pp.robots.chain(80)).to_casadi("gravity")
    with pytest.raises(pp.Error, match="no symbols"):
        arm.function("gravity").jacobian("q").symbolic(parameters=True)
    with pytest.raises(pp.Error, match="mass_matrix"):
        arm.symbolic("mass_matrx")
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(pp.Error, match=r"needs sympy.*pip install 'sympy"):
        arm.symbolic("gravity")
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(pp.Error, match=r"needs casadi.*pip install 'casadi"):
        arm.to_casadi("gravity")
