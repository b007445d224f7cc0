"""Derivatives of closed chains, against differences of the dense system (2.11), of other solvers,
and along the constraints."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import SingularError, StateError
from psiphi_bench.closed_cells import (
    ClosedState,
    dense_solution,
    elbows_up,
    facing_pumas,
    four_bar,
    grasping_cell,
    pinocchio_derivatives,
)
from psiphi_bench.interpreted_robot import uncompiled
from tests.robot.mechanisms.cells import pinned_arm

BOTH = ("forward_dynamics", "contact_forces")


def kept(closed: ClosedState, seed: int = 0) -> tuple[list[ClosedState], tuple[np.ndarray, ...]]:
    """States on the constraints along a curve through this one, at 1, -1, 2 and -2 steps, and its
    velocity (dq, dv, dtau)."""
    s, h, rng = closed.system, 3e-5, np.random.default_rng(seed)
    _, w, Vt = np.linalg.svd(s.constraint_jacobian(closed.q))
    free = Vt[(w > 1e-9).sum() :]
    dq, dv, dtau = rng.standard_normal(len(free)) @ free, *rng.standard_normal((2, s.nv))
    states = []
    for x in (h, -h, 2 * h, -2 * h):
        q, _ = s.project(s.integrate(closed.q, x * dq), closed.v)
        states.append(ClosedState(s, *s.project(q, closed.v + x * dv), closed.tau + x * dtau))
    gaps = [s.difference(closed.q, x.q) for x in states]
    return states, (_slope(gaps, h), _slope([x.v for x in states], h), dtau)


def _slope(at: list[np.ndarray], h: float = 3e-5) -> np.ndarray:
    """The derivative of a curve, from its points at h, -h, 2h and -2h: of fourth order."""
    return (8.0 * (at[0] - at[1]) - (at[2] - at[3])) / (12.0 * h)


def agree(
    closed: ClosedState,
    name: str,
    change: tuple[np.ndarray, ...],
    expected: np.ndarray,
    tolerance: float = 1e-8,
) -> None:
    """Jacobian, jvp and vjp of one function against its change for changes of q, v and tau."""
    f, state, size = (
        closed.system.function(name),
        (closed.q, closed.v, closed.tau),
        max(1.0, np.abs(expected).max()),
    )
    value, moved = f.jvp()(*state, *change)
    assert np.abs(moved - expected).max() < tolerance * size, name
    by = sum(J @ x for J, x in zip(f.jacobian()(*state), change, strict=True))
    assert np.abs(by - moved).max() < 1e-11 * size
    w = np.random.default_rng(1).standard_normal(value.shape)
    again, *gradients = f.vjp()(*state, w)
    assert np.array_equal(again, value) and np.array_equal(f(*state), value)
    pulled = sum((g * x).sum() for g, x in zip(gradients, change, strict=True))
    assert abs(pulled - (w * moved).sum()) < 1e-10 * size * len(w)


@pytest.mark.parametrize("kinds", [("line", "soft"), ("point", "rigid")])
def test_derivatives_are_those_of_the_dense_system(kinds):
    """Every kind of contact, revolute and curved joints: forces and accelerations of S4's appendix,
    in world axes."""
    arms = [
        pp.robots.random_tree(6, 7, ("revolute",), 0.0),
        pp.robots.random_tree(4, 8, ("revolute", "universal", "spherical"), 0.0),
    ]
    closed = grasping_cell(arms, kinds, np.random.default_rng(2))
    states, change = kept(closed)
    answers = [dense_solution(state) for state in states]
    for name, values in zip(BOTH, zip(*answers, strict=True), strict=True):
        agree(closed, name, change, _slope(list(values)))


@pytest.mark.parametrize("kind", ["universal", "distance"])
def test_derivatives_of_other_loops_in_every_direction(kind):
    """Where no row is redundant they are those of the function itself, off the constraints too."""
    more = {"universal": {"axis2": (0, 1, 0)}, "distance": {"length": 0.7, "axis": None}}.get(
        kind, {}
    )
    robot = pp.robots.random_tree(5, 5, ("revolute", "universal"), 0.0)
    loop = pp.Loop(kind, robot.bodies[-1].name, "world", **{"axis": (1, 0, 0), **more})
    system, rng = uncompiled(pp.connect(robot, [loop])), np.random.default_rng(3)
    closed = ClosedState(system, system.random(rng), *rng.standard_normal((2, system.nv)))
    change, h = tuple(rng.standard_normal((3, system.nv))), 1e-4
    for name in BOTH:
        f = system.function(name)
        near = [
            (
                system.integrate(closed.q, x * change[0]),
                closed.v + x * change[1],
                closed.tau + x * change[2],
            )
            for x in (h, -h, 2 * h, -2 * h)
        ]
        agree(closed, name, change, _slope([f(*state) for state in near], h), 1e-7)


@cache
def three_legs() -> ClosedState:
    """A plate on three equal legs: eight of fifteen rows count, but all of them once a leg is
    another's no more."""
    b = pp.Builder("three legs", gravity=(0, -9.81, 0))
    b.body("plate", mass=2.0, com=(0.5, 0.1, 0.05), inertia=np.diag([0.1, 0.2, 0.3]))
    for i in range(3):
        b.body(f"leg{i}", mass=1.0 + i, com=(0, 0.3, 0.02 * i), inertia=np.diag([0.02, 0.01, 0.02]))
        b.joint(f"j{i}", "revolute", "world", f"leg{i}", xyz=(i, 0, 0))
        b.frame(f"top{i}", f"leg{i}", xyz=(0, 0.7, 0))
        b.frame(f"plate{i}", "plate", xyz=(i, 0, 0))
    b.joint("free", "free", "world", "plate")
    loops = [pp.Loop("hinge", f"top{i}", f"plate{i}", axis=(0, 0, 1)) for i in range(3)]
    system = uncompiled(pp.connect(b.build(), loops))
    q = system.assemble([0.4, 0.4, 0.4, -0.7 * np.sin(0.4), 0.7 * np.cos(0.4), 0, 0, 0, 0, 1])
    q, v = system.project(q, np.ones(system.nv))
    return ClosedState(system, q, v, np.random.default_rng(1).standard_normal(system.nv))


@cache
def bar() -> ClosedState:
    """The bundled four-bar's loop: a hinge, three rows too many wherever it is."""
    system = uncompiled(four_bar())
    q, v = system.project(system.assemble([0.9, -0.4, 1.9], hold=["motor"]), np.ones(3))
    return ClosedState(system, q, v, np.array([2.0, 0.0, 0.0]))


@pytest.mark.parametrize("make", [bar, three_legs])
def test_redundant_constraints(make):
    """Accelerations, and forces of least norm: values by eigenvalues, derivatives by the
    theorem."""
    closed = make()
    assert not closed.system.forward_dynamics_details(closed.q, closed.v, closed.tau)["unique"]
    states, change = kept(closed)
    for name in BOTH:
        f = closed.system.function(name)
        agree(closed, name, change, _slope([f(x.q, x.v, x.tau) for x in states]))


def test_a_change_that_leaves_redundant_constraints_is_refused():
    closed = three_legs()
    s, f = closed.system, closed.system.function("forward_dynamics")
    with pytest.raises(SingularError, match="redundant constraints do not stay redundant"):
        f.jvp("q")(closed.q, closed.v, closed.tau, np.eye(s.nv)[0])  # one leg alone
    agree(bar(), "forward_dynamics", (np.eye(3)[0], np.zeros(3), np.zeros(3)), _bar_slope())


def _bar_slope() -> np.ndarray:
    """A plane loop's rows are redundant off the constraints too: its function can be followed
    there."""
    closed, h = bar(), 1e-4
    f = closed.system.function("forward_dynamics")
    return _slope(
        [f(closed.q + x * np.eye(3)[0], closed.v, closed.tau) for x in (h, -h, 2 * h, -2 * h)], h
    )


def test_where_the_rank_changes_nothing_is_derived():
    """An arm stretched to its pin: alone it is an error, in a batch that element is NaN; by torques
    it has a derivative."""
    system = uncompiled(pinned_arm(pin=(2.0, 0.0, 0.0)))
    rest, f = np.zeros(2), system.function("forward_dynamics")
    for derivative, more in (
        (f.jacobian("q"), ()),
        (f.jvp("q"), (np.ones(2),)),
        (f.vjp("v"), (np.ones(2),)),
    ):
        with pytest.raises(SingularError, match="no derivative here"):
            derivative(rest, rest, rest, *more)
    by_tau = f.jacobian("tau")(rest, rest, rest)
    np.testing.assert_allclose(
        by_tau,
        _slope([f(rest, rest, x * np.eye(2)) for x in (1.0, -1.0, 2.0, -2.0)], 1.0).T,
        atol=1e-12,
    )
    off = system.function("forward_dynamics").jacobian("q")(
        np.array([[0.0, 0.0], [0.3, -0.7]]), rest, rest
    )
    assert np.isnan(off[0]).all() and np.isfinite(off[1]).all()


def test_welds_agree_with_pinocchio():
    """Along changes that keep the constraints, where alone both mean the same; in a batch."""
    cell, rng = uncompiled(facing_pumas()), np.random.default_rng(4)
    q, v = cell.project(elbows_up(cell), rng.standard_normal(cell.nv))
    closed = ClosedState(cell, q, v, rng.standard_normal(cell.nv))
    _, change = kept(closed)
    theirs, layout = pinocchio_derivatives(closed)
    expected = sum(
        J @ turn(x, q)
        for J, turn, x in zip(
            theirs, (layout.to_v, layout.to_v, layout.to_tau), change, strict=True
        )
    )
    batch = [np.stack([x, x]) for x in (q, v, closed.tau)]
    found = sum(
        J[1] @ x
        for J, x in zip(cell.function("forward_dynamics").jacobian()(*batch), change, strict=True)
    )
    assert np.abs(layout.to_v(found, q) - expected).max() < 1e-9 * np.abs(expected).max()


def test_wrenches_motors_and_free_numbers():
    """f_ext in either axes; torques of motors alone; numbers that are inputs."""
    closed = bar()
    s, state = closed.system, (closed.q, closed.v, closed.tau)
    for axes in ("world", "frame"):
        f = s.function("contact_forces", ("rocker end",), axes)
        load, change = np.random.default_rng(0).standard_normal((2, 1, 6))
        expected = (
            f(*state, load + change) - f(*state, load - change)
        ) / 2.0  # forces are affine in loads
        np.testing.assert_allclose(f.jvp("f_ext")(*state, load, change)[1], expected, atol=1e-12)
        by_load = f.jacobian("q", "f_ext")(*state, load)[1]
        np.testing.assert_allclose(by_load @ change.ravel(), expected, atol=1e-12)
    g = s.function("forward_dynamics")
    whole, motors = g.jacobian("tau")(*state), g.jacobian("tau")(closed.q, closed.v, [2.0])
    assert motors.shape == (3, 1) and np.allclose(motors, whole[:, :1])
    assert g.vjp("q", "tau")(closed.q, closed.v, [2.0], np.ones(3))[2].shape == (1,)
    assert np.allclose(g.jvp("tau")(closed.q, closed.v, [2.0], [1.0])[1], whole[:, 0])
    light = pp.load("pelican").free("mass")
    loop = pp.Loop("distance", "tool", "world", length=0.3)
    given, baked = (
        pp.connect(light, [loop]).at(2.0 * light.parameters()),
        pp.connect(light.baked(2.0 * light.parameters()), [loop]),
    )
    there = baked.assemble([0.5, 1.0]), np.zeros(2), np.ones(2)
    found, wanted = (
        x.function("forward_dynamics").vjp("q")(*there, np.ones(2))[1]
        for x in (given, uncompiled(baked))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("name", BOTH)
def test_second_derivatives_are_those_of_the_gradients(name):
    """A ball and hinges, a wrench, a joint without motor: the Hessian, and derivatives of
    derivatives, against differences."""
    b = pp.Builder("hung")
    for i, kind in enumerate(("spherical", "revolute", "revolute")):
        b.body(f"b{i}", mass=1.0 + i, com=(0.1, 0.2, -0.3), inertia=np.diag([0.3, 0.4, 0.2]))
        b.joint(
            f"j{i}",
            kind,
            f"b{i - 1}" if i else "world",
            f"b{i}",
            axis=(1, i, 0),
            xyz=(0.2, 0.1, -0.5),
        )
    loop = pp.Loop("distance", "b2", "world", length=1.0)
    system, rng = (
        uncompiled(pp.connect(b.build(), [loop], passive=["j2"])),
        np.random.default_rng(5),
    )
    f, motors = system.function(name, ("b1",)), system.na
    assert motors == 4
    state = (
        system.random(rng),
        rng.standard_normal(5),
        rng.standard_normal(motors),
        rng.standard_normal((1, 6)),
    )
    w, names = rng.standard_normal(f.outputs[0].shape), ("q", "v", "tau", "f_ext")
    x = dict(
        zip(
            names,
            (
                *rng.standard_normal((2, 5)),
                rng.standard_normal(motors),
                rng.standard_normal((1, 6)),
            ),
            strict=True,
        )
    )

    def near(h: float) -> list[np.ndarray]:
        return [
            system.integrate(state[0], h * x["q"]),
            *(s + h * x[n] for n, s in zip(names[1:], state[1:], strict=True)),
        ]

    h = 1e-4
    ahead = [f.vjp()(*near(y), w) for y in (h, -h, 2 * h, -2 * h)]
    slopes = [_slope(list(values), h) for values in zip(*ahead, strict=True)]
    found = f.vjp().jvp(*names)(*state, w, *x.values())
    size = max(np.abs(y).max() for y in slopes)
    for one, other in zip(found[len(slopes) :], slopes, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8 * size)
    whole = f.hessian()(*state, w)
    change, along = (
        np.concatenate([np.ravel(y) for y in parts]) for parts in (x.values(), found[-4:])
    )
    np.testing.assert_allclose(whole @ change, along, atol=1e-11 * size)
    assert f.hessian("q", "tau")(np.stack([state[0]] * 2), *state[1:], w).shape == (2, 9, 9)
    pushed = f.jvp().jvp(*names)(*state, *x.values(), *x.values())[
        3
    ]  # twice along one vector: w* of it is a number of both
    assert abs((w * pushed).sum() - change @ along) < 1e-9 * size
    pulled = f.jvp().vjp("q")(*state, *x.values(), 0 * w, w)[
        2
    ]  # the other order: the transpose, by q
    np.testing.assert_allclose(pulled, (whole.T @ change)[:5], atol=1e-10 * size)


@pytest.mark.parametrize(
    ("name", "motors"),
    [("forward_dynamics", False), ("forward_dynamics", True), ("contact_forces", True)],
)
def test_second_derivatives_where_rows_follow_in_every_posture(name, motors):
    """A plane loop of hinges, on and off its constraints: accelerations are those of the rows that
    are left, forces those of least norm."""
    closed, rng, names = bar(), np.random.default_rng(6), ("q", "v", "tau", "f_ext")
    f, load = closed.system.function(name, ("rocker end",)), rng.standard_normal((1, 6))
    tau = closed.tau[closed.system.actuated] if motors else closed.tau
    w, change = (
        rng.standard_normal(f.outputs[0].shape),
        [*rng.standard_normal((2, 3)), rng.standard_normal(tau.shape), rng.standard_normal((1, 6))],
    )
    for q, v in ((closed.q, closed.v), (closed.q + 0.1, rng.standard_normal(3))):
        state, h = (q, v, tau, load), 1e-3
        near = [
            [y + x * d for y, d in zip(state, change, strict=True)] for x in (h, -h, 2 * h, -2 * h)
        ]
        expected = _slope(
            [np.concatenate([x.ravel() for x in f.vjp()(*at, w)[1:]]) for at in near], h
        )
        size, flat = np.abs(expected).max(), np.concatenate([x.ravel() for x in change])
        np.testing.assert_allclose(f.hessian()(*state, w) @ flat, expected, atol=1e-8 * size)
        along = f.vjp().jvp(*names)(*state, w, *change)[-4:]
        np.testing.assert_allclose(
            np.concatenate([x.ravel() for x in along]), expected, atol=1e-8 * size
        )


@pytest.mark.parametrize("name", BOTH)
def test_second_derivatives_along_the_constraints(name):
    """Three equal legs: rows follow as the mechanism is closed. Along a curve on the constraints,
    of velocity x, the second derivative of w . a is x* H x + g . x'."""
    closed, rng, h = three_legs(), np.random.default_rng(3), 4e-3
    s, f, state = closed.system, closed.system.function(name), (closed.q, closed.v, closed.tau)
    _, w, Vt = np.linalg.svd(s.constraint_jacobian(closed.q))
    free = Vt[(w > 1e-9).sum() :]
    (dq, dv, dtau), weight = (
        (rng.standard_normal(len(free)) @ free, *rng.standard_normal((2, s.nv))),
        rng.standard_normal(f.outputs[0].shape),
    )
    first, second = (
        np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h),
        np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * h * h),
    )
    curve = []
    for x in np.arange(-3, 4) * h:
        q, _ = s.project(s.integrate(closed.q, x * dq), closed.v)
        curve.append((*s.project(q, closed.v + x * dv), closed.tau + x * dtau))
    path = np.array([np.concatenate([s.difference(closed.q, q), *others]) for q, *others in curve])
    values = np.array([(weight * f(*at)).sum() for at in curve])
    x, gradient, H = (
        first @ path,
        np.concatenate(f.vjp()(*state, weight)[1:]),
        f.hessian()(*state, weight),
    )
    size = np.abs(values).max() + np.abs(H).max()
    assert gradient @ x == pytest.approx(first @ values, abs=1e-7 * size)
    assert x @ H @ x + gradient @ (second @ path) == pytest.approx(second @ values, abs=1e-6 * size)
    parts = np.split(x, 3)
    along = f.vjp().jvp("q", "v", "tau")(*state, weight, *parts)
    np.testing.assert_allclose(np.concatenate(along[1:4]), gradient, atol=1e-9 * size)
    np.testing.assert_allclose(np.concatenate(along[-3:]), H @ x, atol=1e-9 * size)
    twice = f.jvp().jvp("q", "v", "tau")(*state, *parts, *parts)
    assert (weight * twice[-1]).sum() == pytest.approx(x @ H @ x, abs=1e-8 * size)
    both = f.hessian("tau", "q")(np.stack([closed.q] * 2), closed.v, closed.tau, weight)
    order = [*range(2 * s.nv, 3 * s.nv), *range(s.nv)]
    np.testing.assert_allclose(both[1], H[np.ix_(order, order)], atol=1e-9 * size)


def test_second_derivatives_that_are_not_there():
    """A change that rows do not allow; a posture of lower rank, in a batch that one alone."""
    legs, stretched, rest = three_legs(), uncompiled(pinned_arm(pin=(2.0, 0.0, 0.0))), np.zeros(2)
    f, g = stretched.function("forward_dynamics"), legs.system.function("forward_dynamics")
    away, ones = np.eye(legs.system.nv)[0], np.ones(legs.system.nv)
    with pytest.raises(SingularError, match="no second derivative here"):
        f.hessian("q")(rest, rest, rest, np.ones(2))
    with pytest.raises(SingularError, match="do not stay redundant along this change"):
        g.vjp("q").jvp("q")(legs.q, legs.v, legs.tau, ones, away)  # one leg alone
    both = f.hessian("q")(np.array([[0.0, 0.0], [0.3, -0.7]]), rest, rest, np.ones(2))
    assert np.isnan(both[0]).all() and np.isfinite(both[1]).all()
    two = g.vjp("q").jvp("tau", "q")(
        legs.q, legs.v, legs.tau, ones, ones, np.stack([0 * away, away])
    )
    assert all(np.isfinite(x[0]).all() and np.isnan(x[1]).all() for x in two)


def test_linearisation_of_a_closed_chain():
    """x' = A x + B dtau along the constraints: the growth of a small change of a motion."""
    closed = bar()
    A, B = closed.system.linearize(closed.q, closed.v, closed.tau)
    states, (dq, dv, dtau) = kept(closed)
    f = closed.system.function("forward_dynamics")
    grown = A @ np.concatenate([dq, dv]) + B @ dtau
    np.testing.assert_allclose(grown[:3], dv, atol=1e-12)
    np.testing.assert_allclose(grown[3:], _slope([f(x.q, x.v, x.tau) for x in states]), atol=1e-7)
    assert closed.system.linearize(closed.q, closed.v, [2.0])[1].shape == (6, 1)


@pytest.mark.parametrize("method", ["euler", "lie"])
def test_linearisation_of_a_step(method):
    """x after a step of a closed chain, beside steps from states that keep the constraints;
    batches, motors alone, tensors."""
    closed = bar()
    system, dt = closed.system, 1e-2
    A, B = system.linearize(closed.q, closed.v, closed.tau, dt, method)
    states, change = kept(closed)
    ends = [pp.rollout(system, x.q, x.v, x.tau, dt, 1, method) for x in (closed, *states)]
    moved = _slope(
        [np.concatenate([system.difference(ends[0].q[-1], x.q[-1]), x.v[-1]]) for x in ends[1:]]
    )
    np.testing.assert_allclose(
        A @ np.concatenate(change[:2]) + B @ change[2], moved, atol=1e-7 * np.abs(moved).max()
    )
    both = system.linearize(np.stack([closed.q] * 2), closed.v, [2.0], dt, method)
    assert both[1].shape == (2, 6, 1) and np.allclose(
        both[1][0], system.linearize(closed.q, closed.v, [2.0], dt, method)[1]
    )
    torch = pytest.importorskip("torch")
    theirs = system.linearize(
        *(torch.tensor(x) for x in (closed.q, closed.v, closed.tau)), dt, method
    )
    assert all(
        np.allclose(x, y, rtol=1e-12, atol=1e-14) for x, y in zip(theirs, (A, B), strict=True)
    )
    for wrong, words in (
        ([dt, dt], "take a single dt"),
        (-dt, "dt is -0.01, expected finite numbers above 0"),
    ):
        with pytest.raises(pp.Error, match=words):
            system.linearize(closed.q, closed.v, closed.tau, wrong, method)


@pytest.mark.parametrize("lead", [(0,), (2, 0), (1,)])
def test_empty_batches(lead):
    """No state is a batch like any other: of every derivative, results of the right shapes."""
    closed = bar()
    for name in (*BOTH, "inverse_dynamics"):
        f = closed.system.function(name)
        last = f.inputs[2].name
        for made in (
            f,
            f.jacobian(),
            f.jvp(),
            f.vjp(),
            f.hessian("q", last),
            f.vjp("q").jvp("v"),
            f.pullback("q"),
        ):
            found = made(*(np.zeros((*lead, *arg.shape)) for arg in made.inputs))
            shapes = [x.shape for x in (found if isinstance(found, tuple) else (found,))]
            assert shapes == [(*lead, *arg.shape) for arg in made.outputs], made.name


def test_words_about_what_cannot_be_had():
    s = four_bar()
    f = s.function("forward_dynamics")
    for call, words in (
        (lambda: s.function("mass_matrix"), "no function 'mass_matrix'"),
        (
            lambda: s.function("inverse_dynamics", frames=("motor",)),
            "wrenches on motor.*leave frames out",
        ),
        (lambda: f.jacobian("u"), "not an argument"),
        (lambda: f.vjp("q", "q"), "an argument twice"),
        (lambda: f.jacobian("q").vjp("q"), "has no vjp"),
        (
            lambda: f.vjp("q")(s.neutral(), np.zeros(3), np.zeros(3)),
            "got 3 arguments, expected .q, v, tau, a_weight.",
        ),
        (lambda: f.jvp("q")(s.neutral(), np.zeros(3), np.zeros(3), np.zeros(4)), "dq has shape"),
        (
            lambda: f.jacobian("q")(np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(3)),
            "batch axes do not fit",
        ),
    ):
        with pytest.raises((StateError, SingularError), match=words):
            call()


def test_parameters_one_set_an_element_in_every_derivative():
    """A system made for other parameters has functions of its own; second derivatives take the sets
    along."""
    light = pp.load("pelican").free("mass")
    chain = pp.connect(light, [pp.Loop("distance", "tool", "world", length=0.3)])
    sets = light.parameters() * np.array([[1.0, 1.0], [1.2, 0.9], [0.7, 1.5], [1.1, 2.0]])
    q = np.tile(chain.at(sets[0]).assemble([0.5, 1.0]), (4, 1))
    rest, ones = np.zeros((4, 2)), np.ones((4, 2))
    asked = {
        "value": (lambda f: f, (q, rest, ones)),
        "jacobian": (lambda f: f.jacobian("q"), (q, rest, ones)),
        "vjp and jvp": (lambda f: f.vjp("q").jvp("q"), (q, rest, ones, ones, ones)),
        "hessian": (lambda f: f.hessian("q", "tau"), (q, rest, ones, ones)),
    }
    for name, (made, values) in asked.items():
        found = made(chain.at(sets).function("forward_dynamics"))(*values)
        each = [
            made(chain.at(p).function("forward_dynamics"))(*(x[i] for x in values))
            for i, p in enumerate(sets)
        ]
        for part, alone in zip(
            *((x if isinstance(x, tuple) else (x,)) for x in (found, _stacked(each))), strict=True
        ):
            assert np.allclose(part, alone, rtol=1e-12, atol=1e-12), name
    first, second = (
        chain.at(p).function("forward_dynamics")(q[0], rest[0], ones[0]) for p in sets[:2]
    )
    assert np.abs(first - second).max() > 1e-3


def _stacked(each):
    return (
        tuple(map(np.stack, zip(*each, strict=True)))
        if isinstance(each[0], tuple)
        else np.stack(each)
    )


@pytest.mark.parametrize("kind", ["hinge", "distance"])
def test_derivatives_by_parameters(kind):
    """Masses of a four-bar: by differences, each element of a batch with its own; a hinge has three
    rows too many."""
    light = four_bar().robot.free("mass")
    more = {"axis": (0, 0, 1)} if kind == "hinge" else {"length": 0.3}
    system, p = (
        pp.connect(light, [pp.Loop(kind, "coupler end", "rocker end", **more)]),
        light.parameters() + 0.1,
    )
    q, v = system.at(p).project(system.at(p).assemble([0.9, -0.4, 1.9], hold=["motor"]), np.ones(3))
    tau, h, rng = np.array([2.0, 0.0, 0.0]), 1e-5, np.random.default_rng(0)
    for name in BOTH if kind == "hinge" else BOTH[:1]:
        f = system.at(p).function(name)
        near = [system.at(p + h * d).function(name)(q, v, tau) for d in (*np.eye(3), *-np.eye(3))]
        slope = np.stack(
            [(x - y) / (2.0 * h) for x, y in zip(near[:3], near[3:], strict=True)], axis=-1
        )
        found = f.jacobian("parameters")(q, v, tau)
        np.testing.assert_allclose(found, slope, rtol=1e-7, atol=1e-8)
        change, w = rng.standard_normal(3), rng.standard_normal(found.shape[:-1])
        np.testing.assert_allclose(
            f.jvp("parameters")(q, v, tau, change)[1], found @ change, rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(
            f.vjp("tau", "parameters")(q, v, tau, w)[2],
            (w[..., None] * found).reshape(-1, 3).sum(0),
            rtol=1e-10,
            atol=1e-12,
        )
    if kind == "distance":
        return
    both = (
        system.at(np.stack([p, 2.0 * p]))
        .function("forward_dynamics")
        .jacobian("parameters")(q, v, tau)
    )
    assert both.shape == (2, 3, 3)
    np.testing.assert_allclose(
        both[0],
        system.at(p).function("forward_dynamics").jacobian("parameters")(q, v, tau),
        rtol=1e-12,
    )


def test_parameters_that_have_no_derivative():
    system = four_bar()
    with pytest.raises(StateError, match="not an argument"):
        system.function("forward_dynamics").jacobian("parameters")
    light = system.robot.free("offsets")
    loop = pp.connect(light, [pp.Loop("hinge", "coupler end", "rocker end", axis=(0, 0, 1))]).at(
        light.parameters()
    )
    q = loop.assemble([0.9, -0.4, 1.9], hold=["motor"])
    with pytest.raises(SingularError, match="do not stay redundant"):
        loop.function("forward_dynamics").jacobian("parameters")(q, np.zeros(3), np.zeros(3))


def test_inverse_dynamics_has_derivatives():
    """Beside differences of the method along the constraints, rows to spare and all; second ones of
    the gradient."""
    closed = bar()
    s, (q, v), rng = four_bar(), (closed.q, closed.v), np.random.default_rng(0)
    a, w = s.complete(q, v, rng.standard_normal(3)), rng.standard_normal(3)
    f = s.function("inverse_dynamics")
    np.testing.assert_allclose(f(q, v, a), s.inverse_dynamics(q, v, a), rtol=1e-12, atol=1e-12)
    states, _ = kept(closed)
    near = [(x.q, x.v, s.complete(x.q, x.v, a)) for x in states]
    change = [
        _slope([s.difference(q, x[0]) for x in near]),
        *(_slope([x[i] for x in near]) for i in (1, 2)),
    ]
    moved = sum(J @ x for J, x in zip(f.jacobian()(q, v, a), change, strict=True))
    np.testing.assert_allclose(
        moved, _slope([s.inverse_dynamics(*x) for x in near]), rtol=1e-8, atol=1e-8
    )
    gradient = lambda *x: np.concatenate(f.vjp()(*x, w)[1:])  # noqa: E731
    assert gradient(q, v, a) @ np.concatenate(change) == pytest.approx(w @ moved, rel=1e-9)
    bend = f.hessian()(q, v, a, w) @ np.concatenate(change)
    np.testing.assert_allclose(bend, _slope([gradient(*x) for x in near]), rtol=1e-7, atol=1e-7)
    with pytest.raises(StateError, match="does not satisfy"):
        f.jacobian("a")(q, v, a + 1.0)
    both = f(np.stack([q, q]), v, np.stack([a, a + 1.0]))
    assert np.isfinite(both[0]).all() and np.isnan(both[1]).all()
    free = pp.connect(s.robot, [pp.Loop("ball", "coupler end", "rocker end")]).function(
        "inverse_dynamics"
    )
    np.testing.assert_allclose(free(q, v, a), s.robot.inverse_dynamics(q, v, a), rtol=1e-12)
