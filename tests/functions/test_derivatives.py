"""Derivatives of compiled functions: beside Pinocchio's, beside differences, and beside each other.

Those of every function on trees of every joint kind are in `oracles/test_complex_steps.py`."""

import numpy as np
import pinocchio as pin
import pytest

import psiphi as pp
from psiphi import interop
from psiphi.algebra.expressions.expression import symbol
from psiphi.compiler.autodiff.analytic_rules import forward_dynamics, inverse_dynamics
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.functions import differentiable_function
from psiphi.robot.robot import Robot
from psiphi_bench import example_robots
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo

BESIDE = [("ur5_robot", "fixed"), ("ur5_robot", "free"), ("panda", "fixed")]


def close(got, want, tolerance, what=""):
    assert np.abs(np.asarray(got) - want).max(initial=0.0) <= tolerance * (
        1.0 + np.abs(want).max(initial=0.0)
    ), what


@pytest.mark.parametrize(("name", "base"), BESIDE)
def test_dynamics_beside_pinocchio(name, base):
    file = example_robots.urdf(name)
    robot = pp.load(file, base=base)
    peer = Pin.from_urdf(file, base, robot)
    model, layout = peer.peer, interop.pinocchio(robot, peer.peer)
    data, T = model.createData(), layout.to_v(np.eye(robot.nv)).T
    forward = robot.function("forward_dynamics").jacobian("q", "v", "tau")
    inverse = robot.function("inverse_dynamics").jacobian("q", "v", "a")
    s, tau, a = robot.operators, pp.vector("tau"), pp.vector("a")
    bias = s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)
    expressions = (
        s.mass.inv @ (tau - bias),
        s.H @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b) + s.rotor @ a,
    )
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, (v, x) = robot.random(rng), rng.standard_normal((2, robot.nv))
        for e, f, name in zip(expressions, (forward, inverse), ("tau", "a"), strict=True):
            close(
                pp.derivative(e, "q").dense(q, v, **{name: x}),
                f(q, v, x)[0],
                1e-9,
                "the expression's derivative",
            )
        pin.computeABADerivatives(model, data, layout.to_q(q), layout.to_v(v), layout.to_tau(x))
        for got, want in zip(forward(q, v, x), (data.ddq_dq, data.ddq_dv, data.Minv), strict=True):
            M = np.triu(want) + np.triu(want, 1).T if want is data.Minv else want
            close(T @ got @ T.T, M, 1e-9, name)
        pin.computeRNEADerivatives(model, data, layout.to_q(q), layout.to_v(v), layout.to_v(x))
        M = np.triu(data.M) + np.triu(data.M, 1).T
        for got, want in zip(inverse(q, v, x), (data.dtau_dq, data.dtau_dv, M), strict=True):
            close(T @ got @ T.T, want, 1e-9, name)


def arguments(function, robot, rng):
    return [
        robot.random(rng) if arg.name == "q" else rng.standard_normal(arg.shape)
        for arg in function.source.inputs
    ]


def moved(robot, function, values, changes, h):
    return [
        robot.integrate(x, h * d) if arg.name == "q" else x + h * d
        for arg, x, d in zip(function.source.inputs, values, changes, strict=True)
    ]


def run(function, *values):
    """The function's tape, evaluated on numbers: what the compiled code computes, without
    compiling."""
    return on_tape(function.source.code, function.source.outputs, *values)


def on_tape(code, outputs, *values):
    flat = [np.ravel(x) for x in values]
    numbers = evaluate(
        code.tape, [node for *_, node in code.stores], lambda place, i: flat[int(place)][i]
    )
    results = [np.zeros(arg.size) for arg in outputs]
    for (number, index, _), x in zip(code.stores, numbers, strict=True):
        results[number][index] = x
    return [x.reshape(arg.shape) for arg, x in zip(outputs, results, strict=True)]


def difference(robot, function, values, changes):
    """Five points, error h^4."""
    at = [run(function, *moved(robot, function, values, changes, k * 1e-3)) for k in (-2, -1, 1, 2)]
    return [(w - 8 * x + 8 * y - z) / 12e-3 for w, x, y, z in zip(*at, strict=True)]


@pytest.mark.parametrize(
    "name",
    ["diagonalised_motion", "diagonalised_inverse_dynamics", "unnormalised_motion", "mass_pivots"],
)
def test_diagonalised_dynamics_have_them_too(name):
    """jvp by differences, vjp its adjoint, the Hessian the change of the gradient."""
    robot = Robot.of(pp.robots.random_tree(2, 3, ("universal", "spherical"), 0.4))
    f, rng = robot.function(name), np.random.default_rng(1)
    values, names = arguments(f, robot, rng), [arg.name for arg in f.inputs]
    changes = [rng.standard_normal(robot.nv if arg.name == "q" else arg.shape) for arg in f.inputs]
    results = run(f.jvp(), *values, *changes)
    moved_by = results[len(results) // 2 :]
    for got, want in zip(moved_by, difference(robot, f, values, changes), strict=True):
        close(got, want, 3e-7, name)
    weights = [rng.standard_normal(x.shape) for x in moved_by]
    gradients = run(f.vjp(), *values, *weights)[len(moved_by) :]
    along = sum(np.sum(g * d) for g, d in zip(gradients, changes, strict=True))
    close(along, sum(np.sum(w * x) for w, x in zip(weights, moved_by, strict=True)), 1e-9, name)
    bent = run(f.vjp().jvp(*names), *values, *weights, *changes)[-len(names) :]
    close(
        run(f.hessian(), *values, *weights)[0] @ np.concatenate(changes),
        np.concatenate(bent),
        1e-9,
        name,
    )


CONSTANT = ("revolute", "spherical", "prismatic", "planar", "helical")


@pytest.mark.parametrize(
    ("axes", "base", "kinds"),
    [("world", "free", CONSTANT), ("frame", "free", CONSTANT), ("world", "fixed", ("universal",))],
)
def test_wrenches_ride_on_the_composites(axes, base, kinds):
    """All methods give the same derivative, and the sweeps cost less than the tape; a wrench on the
    ground has no effect."""
    robot = Robot.of(pp.robots.random_tree(4 if kinds is CONSTANT else 3, 1, kinds, 0.4, base))
    rng, on = np.random.default_rng(0), (robot.bodies[-1].name, robot.bodies[1].name, "world")
    for name in ("forward_dynamics", "inverse_dynamics"):
        f = robot.function(name, on, axes)
        values, w = arguments(f, robot, rng), rng.standard_normal(robot.nv)
        changes = [
            rng.standard_normal(robot.nv if arg.name == "q" else arg.shape)
            for arg in f.source.inputs
        ]
        (slope,), flops = difference(robot, f, values, changes), {}
        for kind, more in (("jvp", changes), ("vjp", [w]), ("jacobian", [])):
            asked = getattr(f, kind)().source.request
            for sweeps, lines in asked.candidates():
                results = on_tape(lines, asked.arguments()[1], *values, *more)
                flops.setdefault(sweeps is not None, {})[kind] = lines.count.flops
                if kind == "jvp":
                    close(results[1], slope, 1e-7, name)
                elif kind == "vjp":
                    close(
                        sum(np.sum(g * d) for g, d in zip(results[1:], changes, strict=True)),
                        w @ slope,
                        1e-7,
                        name,
                    )
                    assert not results[4][2].any()
                else:
                    close(
                        sum(J @ np.ravel(d) for J, d in zip(results, changes, strict=True)),
                        slope,
                        1e-7,
                        name,
                    )
        assert all(flops[True][kind] < flops[False][kind] for kind in ("jvp", "vjp", "jacobian")), (
            flops
        )


def test_wrenches_beside_pinocchio():
    """Constant in the axes of the link that they act on, as Pinocchio's are."""
    file = example_robots.urdf("ur5_robot")
    robot = pp.load(file, base="free")
    model = Pin.from_urdf(file, "free", robot).peer
    layout, data, rng = (
        interop.pinocchio(robot, model),
        model.createData(),
        np.random.default_rng(3),
    )
    T = layout.to_v(np.eye(robot.nv)).T
    q, (v, tau), wrench = (
        robot.random(rng),
        rng.standard_normal((2, robot.nv)),
        rng.standard_normal((1, 6)),
    )
    loads = [pin.Force.Zero() for _ in range(model.njoints)]
    joint = model.getJointId("elbow_joint")
    loads[joint] = pin.Force(wrench[0, 3:], wrench[0, :3])
    on = robot.bodies[robot.joint_names.index("elbow_joint")].name
    state = layout.to_q(q), layout.to_v(v), layout.to_tau(tau)
    pin.computeABADerivatives(model, data, *state, loads)
    ours = run(
        robot.function("forward_dynamics", (on,), "frame").jacobian("q", "v"), q, v, tau, wrench
    )
    for got, want in zip(ours, (data.ddq_dq, data.ddq_dv), strict=True):
        close(T @ got @ T.T, want, 1e-9)
    pin.computeRNEADerivatives(model, data, *state[:2], layout.to_v(tau), loads)
    ours = run(
        robot.function("inverse_dynamics", (on,), "frame").jacobian("q", "v"), q, v, tau, wrench
    )
    for got, want in zip(ours, (data.dtau_dq, data.dtau_dv), strict=True):
        close(T @ got @ T.T, want, 1e-9)


def test_second_derivatives():
    robot = Robot.of(pp.robots.random_tree(3, 1, ("revolute", "spherical", "prismatic"), 0.4))
    function, rng = robot.function("forward_dynamics"), np.random.default_rng(0)
    values, w = arguments(function, robot, rng), rng.standard_normal(robot.nv)
    H = function.hessian("q", "v")(*values, w)
    gradient = lambda *given: np.concatenate(function.vjp("q", "v")(*given, w)[1:])  # noqa: E731
    for k in range(2 * robot.nv):
        d = np.eye(2 * robot.nv)[k]
        changes = [d[: robot.nv], d[robot.nv :], np.zeros(robot.nv)]
        at = [gradient(*moved(robot, function, values, changes, h * 1e-3)) for h in (-2, -1, 1, 2)]
        close(H[:, k], (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / 12e-3, 1e-6)


def test_expressions_have_them_too():
    robot = pp.robots.puma560()
    s, v, tau = robot.operators, pp.vector("v"), pp.vector("tau")
    f = pp.function(v.T @ s.mass @ v / 2)
    q, x = robot.random(seed=0), np.ones(6)
    momentum = f.jacobian("v")(q, x)
    close(momentum, robot.mass_product(q, x), 1e-12)
    g = pp.function(s.mass.inv @ tau)
    close(g.jacobian("tau")(q, x), robot.mass_matrix_inverse(q), 1e-12)
    with pytest.raises(pp.StateError, match="no derivatives"):
        pp.function((s.I + s.mass @ s.mass).inv @ tau).jvp("q")


def test_batches_and_single_precision():
    robot = pp.robots.puma560()
    f = robot.function("inverse_dynamics").jacobian("q")
    q, (v, a) = (
        robot.random(seed=0, size=(4, 5)),
        np.random.default_rng(0).standard_normal((2, 5, 6)),
    )
    J = f(q, v, a)
    assert J.shape == (4, 5, 6, 6) and np.array_equal(J[2, 3], f(q[2, 3], v[3], a[3]))
    single = f(*(x.astype(np.float32) for x in (q, v, a)))
    assert single.dtype == np.float32 and np.abs(single - J).max() < 1e-3 * np.abs(J).max()
    out = np.empty_like(J)
    assert f(q, v, a, out=out) is out and np.array_equal(out, J)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda f: f.jacobian("tauu"), "did you mean 'tau'"),
        (lambda f: f.jvp(3), "not an argument"),
        (lambda f: f.vjp("q", "q"), "twice"),
        (
            lambda f: f.jvp("q")(np.zeros(6), np.zeros(6)),
            r"got 2 arguments, expected \(q, v, tau, dq\)",
        ),
        (lambda f: f.jacobian("q")(np.zeros(5), np.zeros(6), np.zeros(6)), "shape"),
        (lambda f: f.jacobian("q")(np.zeros(6), np.zeros(6), np.array(["x"] * 6)), "real numbers"),
    ],
)
def test_words(ask, why):
    with pytest.raises(pp.StateError, match=why):
        ask(pp.robots.puma560().function("forward_dynamics"))


def test_words_about_functions():
    robot = pp.robots.puma560()
    with pytest.raises(pp.StateError, match="sum of log d"):
        robot.function("mass_log_det")
    with pytest.raises(pp.StateError, match="frame_jacobians takes several"):
        robot.function("jacobian", ("tool", "world"))


def changes(f, robot, given, by, d, h=1e-3):
    """The change of all results of f along d, by differences of the sixth order."""
    total = 0.0
    for k, c in ((1, 45.0), (2, -9.0), (3, 1.0)):
        for sign in (1.0, -1.0):
            moved = [
                x + sign * k * h * d if arg.name == by else x
                for arg, x in zip(f.inputs, given, strict=True)
            ]
            found = f(*moved)
            total = total + sign * c * np.concatenate(
                [x.ravel() for x in (found if isinstance(found, tuple) else (found,))]
            )
    return total / (60.0 * h)


@pytest.mark.parametrize("name", ["dq", "dv", "out_weight", "ddq", "u", "v"])
@pytest.mark.parametrize("dynamics", [inverse_dynamics, forward_dynamics])
def test_vectors_may_be_called_as_changes_and_weights_are(name, dynamics):
    """Sweeps call the change of q dq: a user's vector of that name is not this change. And v is the
    velocity everywhere, also in the place of a torque or an acceleration."""
    robot, rng = pp.robots.puma560(), np.random.default_rng(0)
    f = pp.function(dynamics(robot.model, pp.vector(name)))
    given, d, w = [rng.standard_normal(arg.shape) for arg in f.inputs], *rng.standard_normal((2, 6))
    for by in ("q", "v", name):
        want = changes(f, robot, given, by, d)
        close(f.jvp(by)(*given, d)[1], want, 1e-9)
        close(f.jacobian(by)(*given) @ d, want, 1e-9)
        close(f.vjp(by)(*given, w)[1] @ d, w @ want, 1e-9)


def test_arguments_of_derivatives_of_derivatives_have_names_of_their_own():
    """What a third derivative is taken by is one of them, the first or the second change of q."""
    robot, rng = pp.robots.puma560(), np.random.default_rng(1)
    f = robot.function("gravity")
    for second in (f.jvp("q").jvp("q"), f.vjp("q").vjp("q"), f.vjp("q").jvp("q")):
        names = [arg.name for arg in second.inputs]
        assert len(set(names)) == len(names), names
        assert len({arg.name for arg in second.outputs}) == len(second.outputs)
        given, d = [rng.standard_normal(arg.shape) for arg in second.inputs], rng.standard_normal(6)
        for by in names[1:]:
            third = second.jvp(by)(*given, d)
            got = np.concatenate([x.ravel() for x in third[len(second.outputs) :]])
            close(got, changes(second, robot, given, by, d), 1e-8)


@pytest.mark.parametrize("name", ["parameters", "added"])
def test_names_of_a_robots_own_numbers_are_taken(name):
    for make in (pp.vector, symbol):
        with pytest.raises(pp.StateError, match=f"'{name}' is the name of an input"):
            make(name)


def test_a_quaternion_of_zeros_has_no_derivative():
    robot = pp.load("free_flyer")
    q, v = np.stack([robot.neutral(), 0 * robot.neutral()]), np.ones(robot.nv)
    for call in (robot.function("momentum"), robot.function("momentum").jacobian("q")):
        with pytest.raises(pp.StateError, match="quaternion"):
            call(q[1], v)
        with np.errstate(all="ignore"):
            found = call(q, v)
        assert np.isnan(found[1]).any() and np.array_equal(found[0], call(q[0], v)), (
            "in a batch, NaN in that element alone"
        )


def test_what_has_none_says_so():
    big = pp.robots.chain(300)
    with pytest.raises(pp.StateError, match="up to 256 bodies"):
        big.function("energy").vjp("q")(big.neutral(), np.zeros(300), 1.0)
    with pytest.raises(pp.StateError, match="derivatives of mass_product"):
        pp.robots.chain(70).function("mass_matrix").jvp("q")(*np.zeros((2, 70)))


def test_large_robots_without_loops_are_written_out():
    """Beside differences, and the mass matrix, which is the Hessian of the kinetic energy."""
    big, rng = pp.robots.chain(66), np.random.default_rng(0)
    q, (v, d) = big.random(rng), rng.standard_normal((2, 66))
    c, h = big.function("center_of_mass"), 1e-6
    slope = c.jacobian("q")(q)
    close(slope @ d, (c(q + h * d) - c(q - h * d)) / (2 * h), 1e-6)
    out = np.zeros((2, 66, 66))
    assert big.function("kinetic_energy").hessian("v")(np.stack([q, q]), v, 1.0, out=out) is out
    close(out[1], big.mass_matrix(q), 1e-10)


def test_hessians_by_many_parameters_are_made_of_columns(monkeypatch):
    """Derivatives that are too long to be written out: the same numbers, in batches, for tensors,
    and with out=."""
    light = pp.load("pelican").free("mass", "com")
    f, rng = light.function("forward_dynamics"), np.random.default_rng(0)
    given = *rng.standard_normal((3, 2, 2)), light.parameters(), rng.standard_normal((2, 2))
    whole, out = f.hessian("q", "parameters")(*given), np.empty((2, 10, 10))
    monkeypatch.setattr(differentiable_function, "MAX_HESSIAN", 0)
    rows = light.function("forward_dynamics").make_derivative("hessian", ("q", "parameters"))
    assert (
        isinstance(rows, differentiable_function.HessianByColumns) and rows(*given, out=out) is out
    )
    close(out, whole, 1e-13)
    close(rows(*(x[0] if x.ndim > 1 else x for x in given)), whole[0], 1e-13)
    assert rows(*(x[:0] if x.ndim > 1 else x for x in given)).shape == (0, 10, 10)
    torch = pytest.importorskip("torch")
    close(rows(torch.tensor(given[0]), *given[1:]).numpy(), whole, 1e-13)
    assert not isinstance(
        f.make_derivative("hessian", ("q", "v")), differentiable_function.HessianByColumns
    )


def test_large_robots_have_them_in_loops():
    """Forward and inverse dynamics of more than 64 bodies, a tree with rotors: compared with
    differences, and with each other."""
    rng = np.random.default_rng(4)
    robot = Robot.of(zoo.random_tree(5, 66, ["revolute"], 0.03, armature=True))
    assert len(robot.bodies) > 64
    q, (v, x, w, dv, dx), dq = (
        robot.random(rng),
        rng.standard_normal((5, robot.nv)),
        rng.standard_normal(robot.nv),
    )
    for name, last in (("forward_dynamics", "tau"), ("inverse_dynamics", "a")):
        f, h = robot.function(name), 1e-6
        y, *bars = f.vjp("q", "v", last)(q, v, x, w)
        again, dy = f.jvp("q", "v", last)(q, v, x, dq, dv, dx)
        there, back = (f(robot.integrate(q, s * dq), v + s * dv, x + s * dx) for s in (h, -h))
        close(dy, (there - back) / (2 * h), 1e-6, name)
        close([w @ dy], [bars[0] @ dq + bars[1] @ dv + bars[2] @ dx], 1e-9, "the adjoint")
        assert np.array_equal(y, f(q, v, x)) and np.array_equal(again, y)
        assert "in loops" in f.vjp("q").explain()
    load, pull = rng.standard_normal((2, 1, 6))
    f = robot.function("forward_dynamics", (robot.bodies[-1].name,))
    _, _, by_load = f.vjp("q", "f_ext")(q, v, x, load, w)
    close(by_load, (w @ f.jacobian("f_ext")(q, v, x, load)).reshape(1, 6), 1e-9, "wrenches, too")
    close(
        [(by_load * pull).sum()],
        [w @ (f(q, v, x, load + pull) - f(q, v, x, load - pull)) / 2],
        1e-9,
    )
    f, want = robot.function("inverse_dynamics").jacobian("a"), robot.mass_matrix(q)
    out = np.zeros((2, robot.nv, robot.nv))
    assert f(np.stack([q, q]), v, x, out=out) is out
    close(out, np.stack([want, want]), 1e-9)


def test_gradients_grow_as_the_chain():
    """Value and gradient of forward dynamics: a fixed number of flops per link, and as much code
    for a thousand links as for a hundred."""
    counts, texts = zip(*(_gradient_of_chain(n) for n in (100, 200, 1000)), strict=True)
    assert (counts[2] - counts[1]) / 800 == pytest.approx((counts[1] - counts[0]) / 100, rel=0.01)
    assert texts[2] < 1.2 * texts[0]


def _gradient_of_chain(n):
    source = pp.robots.chain(n).function("forward_dynamics").vjp("q", "v", "tau").source
    return source.count.flops, len(source.ir())


def test_value_and_gradient_cost_a_few_values():
    """Reverse mode on the tape: less than three times the cost of the value, for any number of
    arguments."""
    for name in ("ur5", "panda"):
        robot = pp.load(name)
        f = robot.function("forward_dynamics")
        assert f.vjp("q", "v", "tau").count.flops < 3.0 * f.count.flops
