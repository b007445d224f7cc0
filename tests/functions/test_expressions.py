"""pp.function: compiled, counted, explained; the papers' algorithms; what cannot be swept is dense and says so."""

import numpy as np
import pytest

import psiphi as pp
import zoo
from psiphi.functions.derive import derive
from psiphi.functions.robot import Robot

METHODS = ("FD1", "FD2", "FD3", "FD4", "kalman")


@pytest.fixture(scope="module")
def arm():
    return pp.robots.chain(6)


def test_operational_space_inertia_is_compiled_and_o_n():
    flops = {n: pp.function(_osim(pp.robots.chain(n))).flops for n in (10, 20, 30, 40)}
    steps = [flops[n + 10] - flops[n] for n in (10, 20, 30)]
    assert max(steps) <= 1.02 * min(steps), "as many operations for every further ten links, but for near-parallel axes"


def _osim(robot):
    s = robot.operators
    return s.J("tool") @ s.mass.inv @ s.J("tool").T


def test_the_normal_form_runs_in_a_batch(arm):
    f, q = pp.function(_osim(arm)), arm.random(0, 50)
    J, M = arm.jacobian(q, "tool"), arm.mass_matrix(q)
    want = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
    assert np.allclose(f(q), want, rtol=1e-10, atol=1e-10 * np.abs(want).max())


def test_default_forward_dynamics_is_found_not_written(arm):
    s, tau = arm.operators, pp.vector("tau")
    f = pp.function(s.mass.inv @ (tau - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)))
    assert f.flops == arm.flops("forward_dynamics") and f.sweeps == 3
    rng = np.random.default_rng(0)
    q, v, torque = rng.normal(size=(3, 9, 6))
    assert np.array_equal(f(q, v, torque), arm.forward_dynamics(q, v, torque))


@pytest.mark.parametrize("name", [name for name, make in zoo.ZOO if make().nv <= 13])
def test_the_papers_algorithms_agree(name):
    robot = Robot.of(dict(zoo.ZOO)[name]())
    q, v, _, tau = zoo.random_state(robot, np.random.default_rng(1))
    want = robot.forward_dynamics(q, v, tau)
    wrench = {"tool": np.arange(6.0)}
    pushed = robot.forward_dynamics(q, v, tau, f_ext=wrench)
    for method in METHODS:
        assert np.abs(robot.forward_dynamics(q, v, tau, method=method) - want).max() <= 1e-10 * np.abs(want).max(), method
        got = robot.forward_dynamics(q, v, tau, f_ext=wrench, method=method)
        assert np.abs(got - pushed).max() <= 1e-10 * np.abs(pushed).max(), method


def test_sweeps_are_those_of_the_papers(arm):
    texts = {method: arm.function(method).explain() for method in METHODS}
    assert "4 as written" in texts["FD1"] and "4 as written" in texts["FD2"]
    assert all("\n3 sweeps:" in texts[method] for method in ("FD3", "FD4", "kalman"))


def test_kalman_returns_innovations_and_residuals(arm):
    rng = np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, 6))
    found = arm.forward_dynamics_details(q, v, tau, "kalman")
    _, D = arm.mass_matrix_factors(q)
    assert np.allclose(found["residuals"], np.linalg.solve(D, found["innovations"]))


def test_explain_names_identities_loops_and_cost(arm):
    text = pp.function(_osim(arm)).explain()
    for part in ("S3 Lemma 3", "B(tool)* ψ* H* D⁻¹ H ψ B(tool)", "for k = tips .. base", "Ω(k)", "flops", "O(N)"):
        assert part in text, part


def test_what_cannot_be_swept_is_dense_and_says_so(arm):
    s = arm.operators
    f, q = pp.function(s.H @ s.S @ s.M @ s.H.T), arm.random(3)
    assert f.dense and f.sweeps == 0 and "dense" in f.explain()
    assert np.allclose(f(q), f.expression.dense(q))


def test_inverses_no_identity_resolves_are_inverted_by_numbers(arm):
    s = arm.operators
    f, q = pp.function((s.mass + s.D).inv), arm.random(3, 4)
    assert not f.dense and f.sweeps > 0 and "inverses by numbers" in f.explain()
    assert np.allclose(f(q), np.linalg.inv((s.mass + s.D).dense(q)), rtol=1e-12)


def test_matrices_of_links_and_rows_of_vectors_are_those_of_the_dense_operators():
    """In link space entries are in link axes, which no sweep keeps: single letters of the papers, too, are what they say."""
    robot = pp.robots.puma560()
    s, v, q, speed = robot.operators, pp.vector("v"), robot.random(6, 3), np.arange(6.0)
    tool = s.B("tool")
    plain = [s.H, s.M, s.P, s.G, s.K, s.tau_bar, s.H.T, s.G.T, tool, tool.T, s.psi @ tool, s.P @ s.H.T, s.phi @ s.M @ s.phi.T]
    for e in plain:
        assert np.allclose(pp.function(e)(q), e.dense(q), rtol=1e-12, atol=1e-12), e
    for e in (v.T @ s.mass @ v, v.T @ s.mass, v @ v.T @ s.mass):
        assert np.allclose(pp.function(e)(q, speed), e.dense(q, v=speed), rtol=1e-12), e


def test_samples_of_the_inverse_mass_matrix_cost_o_n(arm):
    s = arm.operators
    draw = pp.function(s.mass_half.inv.T @ pp.vector("x"))
    q, rng = arm.random(4), np.random.default_rng(5)
    samples = draw(q, rng.standard_normal((200_000, 6)))
    want = arm.mass_matrix_inverse(q)
    assert np.abs(np.cov(samples.T) - want).max() <= 0.02 * np.abs(want).max()


def test_singular_frames_follow_the_policy_each_by_itself():
    robot = pp.robots.puma560()
    q = robot.random(0, 4)
    q[2, 4] = 0.0  # the wrist's axes line up
    exact = robot.operational_space_inertia(q, "tool", policy="exact")
    assert np.isnan(exact[2]).all() and np.isfinite(exact[[0, 1, 3]]).all()
    pseudo, damped = (robot.operational_space_inertia(q, "tool", policy=p) for p in ("pseudo", "damped"))
    assert np.isfinite(pseudo).all() and np.isfinite(damped).all()
    X = robot.operational_compliance(q, "tool")
    assert np.allclose(pseudo[2] @ X[2] @ pseudo[2], pseudo[2], rtol=1e-6, atol=1e-6 * np.abs(pseudo[2]).max())
    assert np.allclose(exact[[0, 1, 3]], np.linalg.inv(X[[0, 1, 3]]), rtol=1e-6)
    with pytest.raises(pp.StateError, match="policy"):
        robot.operational_space_inertia(q, "tool", policy="maybe")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("J @ mass.inv @", "not an expression"),
        ("J @ masss.inv", "did you mean 'mass'"),
        ("__import__('os')", "not part of the algebra"),
        ("J.inv", "square"),
        ("3", "number"),
        ("phi @ tau", "link"),
        ("mass[0]", "not part of the algebra"),
        ("1 / 0", "has no value"),
        ("2 / mass", "has no value"),
        ("2 @ 3", "has no value"),
        ("(2).inv", "not part of the algebra"),
        ("+".join(["mass"] * 3000), "nested too deeply"),
    ],
)
def test_derive_refuses_what_is_no_algebra(text, words):
    with pytest.raises(pp.Error, match=words):
        derive(pp.robots.puma560(), text)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f, q: f(), "argument"),
        (lambda f, q: f(q, q), "expected"),
        (lambda f, q: f(q[:3]), "shape"),
        (lambda f, q: f("q"), "q"),
    ],
)
def test_wrong_arguments_of_a_function(arm, call, words):
    with pytest.raises((pp.Error, TypeError), match=words):
        call(pp.function(_osim(arm)), arm.neutral())


def test_function_wants_an_expression_of_a_robot():
    with pytest.raises(pp.StateError, match="expected an operator expression"):
        pp.function(3)
    with pytest.raises(pp.StateError, match="no robot"):
        pp.function(pp.vector("tau"))
