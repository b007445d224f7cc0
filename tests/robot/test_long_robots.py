"""What is long: products of forty factors and sums of five hundred terms are derived in seconds,
and right."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.rewriting.normal_form import normalizer
from psiphi.algebra.rewriting.work_budget import (
    DEFAULT_SECONDS,
    UNITS_PER_SECOND,
    current_budget,
    limit_work,
)
from tests.soundness.oracle import Oracle
from tests.zoo import chain, free_tree, random_tree

ARM = pp.robots.puma560()
s, v = ARM.operators, pp.vector("v")


def power(X, n):
    return X if n == 1 else power(X, n - 1) @ X


def mass_and_D(robot, q):
    return robot.mass_matrix(q) + robot.operators.D.dense(q)


@pytest.mark.parametrize("n", [12, 40])
def test_many_factors_on_a_vector(n):
    f = pp.function(power(s.mass + s.D, n) @ v)
    q, x = ARM.random(seed=0), np.random.default_rng(0).normal(size=(4, 6))
    want = np.linalg.matrix_power(mass_and_D(ARM, q), n) @ x[..., None]
    assert np.allclose(f(q, x), want[..., 0], rtol=1e-10)
    assert not f.dense and "factor by factor" in f.explain()
    assert f.flops == n * pp.function((s.mass + s.D) @ v).flops, "one part, n times"


def test_many_factors_as_a_matrix_and_as_a_row():
    X, q = power(s.mass + s.D, 12), ARM.random(seed=1)
    want = np.linalg.matrix_power(mass_and_D(ARM, q), 12)
    assert np.allclose(pp.function(X)(q), want, rtol=1e-10)
    x = np.arange(6.0)
    assert np.allclose(pp.function(v.T @ X)(q, x), x @ want, rtol=1e-10)


def test_many_factors_among_others():
    """Sums of long products, multiples of them, letters that do not go through joints, words of
    more than 200 letters."""
    q, x, y = ARM.random(seed=2), np.ones(6), np.arange(6.0)
    M, D = ARM.mass_matrix(q), s.D.dense(q)
    J = ARM.jacobian(q, "tool")
    w = pp.vector("w")
    long = pp.function(2 * power(s.mass + s.D, 10) @ v - s.J("tool").T @ s.J("tool") @ w / 4)
    assert np.allclose(
        long(q, x, y), 2 * np.linalg.matrix_power(M + D, 10) @ x - J.T @ J @ y / 4, rtol=1e-10
    )
    tall = pp.function(power(s.mass, 45) @ v)
    assert np.allclose(tall(q, x), np.linalg.matrix_power(M, 45) @ x, rtol=1e-9) and not tall.dense


def test_many_factors_of_a_large_robot():
    """A thousand bodies have no matrices over links: O(N), or nothing."""
    chain = pp.robots.chain(1000)
    o, q, x = chain.operators, np.zeros(1000), np.ones(1000)
    once, often = pp.function((o.mass.inv + o.D) @ v), pp.function(power(o.mass.inv + o.D, 12) @ v)
    want = x
    for _ in range(12):
        want = once(q, want)
    assert np.allclose(often(q, x), want, rtol=1e-9)


def test_five_hundred_terms():
    names = [f"x{i}" for i in range(500)]
    terms = [(i + 1) * s.mass.inv @ pp.vector(name) for i, name in enumerate(names)]
    f, q, x = (
        pp.function(sum(terms[1:], terms[0])),
        ARM.random(seed=3),
        np.random.default_rng(1).normal(size=(500, 6)),
    )
    assert np.allclose(
        f(q, *x), np.linalg.solve(ARM.mass_matrix(q), np.arange(1.0, 501.0) @ x), rtol=1e-9
    )
    whole = s.mass.inv @ sum(
        ((i + 1) * pp.vector(name) for i, name in enumerate(names[1:], 1)), pp.vector(names[0])
    )
    assert pp.prove(sum(terms[1:], terms[0]), whole)


def work(e) -> float:
    """Units of rewriting that it takes to derive an expression, counted, not timed
    (`algebra/rewriting/work_budget.py`)."""
    with limit_work(DEFAULT_SECONDS):
        normalizer(e).derivation(e)
        purse = current_budget.get()
        assert purse is not None
        return DEFAULT_SECONDS * UNITS_PER_SECOND - purse.left


def test_work_grows_no_faster_than_its_square():
    """Sums told term by term: twice the terms take at most four times the work, and five hundred
    stay within the budget."""
    names = [f"x{i}" for i in range(500)]
    sums = [
        sum((s.mass.inv @ pp.vector(x) for x in names[1:n]), s.mass.inv @ pp.vector(names[0]))
        for n in (125, 250, 500)
    ]
    small, middle, large = (work(e) for e in sums)
    assert (
        middle < 4.2 * small and large < 4.2 * middle and large < DEFAULT_SECONDS * UNITS_PER_SECOND
    )


def test_what_is_too_long_to_be_told_is_said_so():
    f = pp.function(power(s.mass + s.D, 40) @ v)
    assert f.derivation.steps == () and str(f.derivation).strip() == str(f.expression)
    claim = pp.prove(power(s.mass + s.D, 40), power(s.mass, 40), budget=1.0)
    assert (
        not claim
        and claim.counterexample is not None
        and "= 0" not in str(claim)
        and "budget of 1 s" in str(claim)
    )


@pytest.mark.parametrize("frames", [("tool",), ("tool", "elbow")], ids=len)
@pytest.mark.parametrize("axes", ["frame", "world"])
@pytest.mark.parametrize("inertia", [True, False], ids=["mass.inv", "J J*"])
def test_the_compliance_of_frames_is_linear(axes, inertia, frames):
    """J M^-1 J* and J J*: one constant a link from 20 bodies on, in a tape or in loops."""
    flops = {}
    for n in (20, 80, 320):
        tree = random_tree(2, n, ("revolute",), 0.2) if n == 80 else None
        model = tree or chain("chain", ["revolute"] * n, 1)
        o = pp.Robot.of(model).operators
        J = o.J(*frames, axes=axes)
        f = pp.function(J @ o.mass.inv @ J.T if inertia else J @ J.T)
        flops[n] = f.flops / n
        if n == 80:
            q = model.random(seed=0, size=2)
            oracle = Oracle(model, q[1], np.zeros(model.nv))
            J_T = oracle["H"].m @ oracle["phi"].m @ oracle.B(frames, axes).m
            want = J_T.T @ (np.linalg.solve(oracle["mass"].m, J_T) if inertia else J_T)
            np.testing.assert_allclose(f(q)[1], want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
    assert flops[320] < 1.1 * flops[20]


def test_columns_of_several_branches_meet():
    """Children send columns and poses of different frames: loops keep them apart."""
    model = free_tree(80, 3)
    o, q = pp.Robot.of(model).operators, model.random(seed=0, size=2)
    A, B = o.J("tool", "elbow", axes="frame"), o.J("elbow", "tool")
    oracle = Oracle(model, q[1], np.zeros(model.nv))
    H_phi, mass = oracle["H"].m @ oracle["phi"].m, oracle["mass"].m
    a = (H_phi @ oracle.B(("tool", "elbow"), "frame").m).T
    b = (H_phi @ oracle.B(("elbow", "tool"), "world").m).T
    cases = {
        A: a,
        A.T: a.T,
        A @ o.mass.inv @ A.T + 0.1 * o.I: a @ np.linalg.solve(mass, a.T) + 0.1 * np.eye(12),
        o.J("tool", axes="frame") @ o.mass.inv @ B.T: a[:6] @ np.linalg.solve(mass, b.T),
    }
    for expression, want in cases.items():
        f = pp.function(expression)
        np.testing.assert_allclose(f(q)[1], want, rtol=1e-8, atol=1e-8, err_msg=str(expression))
        assert f.flops < 300 * 80
