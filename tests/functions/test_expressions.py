"""pp.function: compiled, counted, explained; the papers' algorithms; without sweeps it is dense and
says so."""

import re
from functools import lru_cache

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.cli.expression_parser import derive
from psiphi.robot.catalogue.catalogue import CATALOGUE
from psiphi.robot.robot import Robot
from tests import kalman, zoo

METHODS = ("FD1", "FD2", "FD3", "FD4", "kalman")


@pytest.fixture(scope="module")
def arm():
    return pp.robots.chain(6)


def test_operational_space_inertia_is_compiled_and_o_n():
    flops = {n: pp.function(_osim(pp.robots.chain(n))).flops for n in (10, 20, 30, 40)}
    steps = [flops[n + 10] - flops[n] for n in (10, 20, 30)]
    assert max(steps) <= 1.02 * min(steps), (
        "as many operations for every further ten links, but for near-parallel axes"
    )


def _osim(robot):
    s = robot.operators
    return s.J("tool") @ s.mass.inv @ s.J("tool").T


def test_the_normal_form_runs_in_a_batch(arm):
    f, q = pp.function(_osim(arm)), arm.random(seed=0, size=50)
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
        assert (
            np.abs(robot.forward_dynamics(q, v, tau, method=method) - want).max()
            <= 1e-10 * np.abs(want).max()
        ), method
        got = robot.forward_dynamics(q, v, tau, f_ext=wrench, method=method)
        assert np.abs(got - pushed).max() <= 1e-10 * np.abs(pushed).max(), method


def test_sweeps_are_those_of_the_papers(arm):
    texts = {method: arm.function(method).explain() for method in METHODS}
    assert "fused from 4" in texts["FD1"] and "fused from 4" in texts["FD2"]
    assert all("\nlower to 3 sweeps:" in texts[method] for method in ("FD3", "FD4", "kalman"))


def test_one_letter_has_one_meaning_in_one_print(arm):
    """No output, and no variable of a loop, has the name of something else that the equation
    reads."""
    own = {"D", "P", "V", "Ω", "a_local", "b_local"}  # made by loops, and the equations' own
    for name in (*METHODS, *CATALOGUE):
        try:
            text = arm.function(name).explain()
        except pp.Error:
            text = arm.function(name, ("tool",)).explain()
        equations = [
            line.split(" = ", 1) for line in text.splitlines() if re.match(r"[^\s=]+ = ", line)
        ]
        read = {
            word
            for _, right in equations
            for word in re.findall(r"[^\W\d]\w*[\u0307\u2032]?", right)
        }
        made = set(re.findall(r"^      ([^\s(]+)\(k", text, flags=re.M))
        assert not {left for left, right in equations if left != right} & read - own, text
        assert not made & read - own, text


def near(got, want, what, rtol=1e-10):
    assert np.abs(got - want).max(initial=0.0) <= rtol * np.abs(want).max(initial=0.0) + 1e-14, what


@lru_cache
def of_the_zoo(name):
    return Robot.of(dict(zoo.ZOO)[name]())


@pytest.mark.parametrize("name", [name for name, _ in zoo.ZOO])
def test_kalman_is_the_textbook_filter_and_smoother(name):
    """z±, e⁻, P±, G of S2 Result 8.1 against a Kalman filter, x = z + P λ against Rauch-Tung-
    Striebel, which has no co-states."""
    robot = of_the_zoo(name)
    q, v, _, tau = zoo.random_state(robot, np.random.default_rng(3))
    found = robot.forward_dynamics_details(q, v, tau, "kalman")
    want = kalman.smooth_tree(kalman.of_robot(robot, q, v, tau))
    near(found["z_minus"], np.array([w.prior for w in want]), "z-")
    near(found["z_plus"], np.array([w.posterior for w in want]), "z+")
    near(found["P_minus"], np.array([w.prior_cov for w in want]), "P-")
    near(found["P_plus"], np.array([w.posterior_cov for w in want]), "P+")
    near(found["gains"], np.concatenate([w.gain for w in want], axis=1), "G")
    near(found["innovations"], np.concatenate([w.innovation for w in want]), "e-")
    near(found["forces"], np.array([w.smoothed for w in want]), "x", 1e-9)


@pytest.mark.parametrize("name", [name for name, _ in zoo.ZOO])
def test_kalman_returns_what_s2_defines(name):
    """S2 (8.1)-(8.13), equation by equation, among the results; the mechanics by Newton and
    Euler."""
    robot = of_the_zoo(name)
    q, v, _, tau = zoo.random_state(robot, np.random.default_rng(4))
    f, s = robot.forward_dynamics_details(q, v, tau, "kalman"), robot.operators
    E, H, M, D = (x.dense(q) for x in (s.E_phi, s.H, s.M, s.D))
    eta, xi = f["eta"].ravel(), f["xi"].ravel()
    z, z_plus, lam, lam_plus = (
        f[x].ravel() for x in ("z_minus", "z_plus", "lambda_minus", "lambda_plus")
    )
    P, P_plus, G = np.zeros_like(M), np.zeros_like(M), np.zeros((len(M), robot.nv))
    for k, joint in enumerate(robot.joints):
        own = slice(6 * k, 6 * k + 6)
        P[own, own], P_plus[own, own], G[own, joint.v_slice] = (
            f["P_minus"][k],
            f["P_plus"][k],
            f["gains"][:, joint.v_slice],
        )
    near(z, E @ z_plus + xi, "(8.3)")
    near(P, E @ P_plus @ E.T + M, "(8.4)")
    near(G @ D, P @ H.T, "(8.5)")
    near(f["innovations"], tau - H @ z, "(8.6)")
    near(z_plus, z + G @ f["innovations"] + P_plus @ eta, "(8.7)")
    near(D @ f["residuals"], f["innovations"], "(8.8)")
    near(P_plus, P - G @ H @ P, "(8.9)")
    near(lam_plus, E.T @ lam, "(8.10), (8.11)")
    near(f["a"], f["residuals"] - G.T @ (lam_plus + eta), "(8.12)")
    near(lam, lam_plus + eta + H.T @ f["a"], "(8.13)")
    near(f["forces"].ravel(), z + P @ lam, "(8.1) outside the joint")
    near(f["forces"].ravel(), z_plus + P_plus @ lam_plus, "(8.1) inside the joint")
    near(f["a"], robot.forward_dynamics(q, v, tau), "forward dynamics")
    near(f["forces"], robot.joint_forces(q, v, f["a"]), "Newton and Euler's forces")
    V = (s.phi.T @ s.H.T @ s.vector("v")).dense(q, v).reshape(-1, 6)
    body = robot.link_accelerations(q, v, f["a"]) + s.g.dense(q).reshape(-1, 6)
    body[:, 3:] -= np.cross(V[:, :3], V[:, 3:])
    near(f["lambda_minus"], body, "accelerations as derivatives of body coordinates")


def test_the_biases_of_the_kalman_form_are_those_of_s2():
    """S2 (5.6): η = [ω⁺ × h; v⁺ × h] u̇; (4.4) corrected: ξ = [ω × I ω + m p × (ω × v); m ω × (v +
    ω × p)] less the weight."""
    robot = of_the_zoo("serial_arm")
    q, v, _, tau = zoo.random_state(robot, np.random.default_rng(5))
    f, s = robot.forward_dynamics_details(q, v, tau, "kalman"), robot.operators
    V = (s.phi.T @ s.H.T @ s.vector("v")).dense(q, v).reshape(-1, 6)
    for k, (joint, body) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        h, rate, w, u, p, m = np.array(joint.axis), v[k], V[k, :3], V[k, 3:], body.com, body.mass
        near(
            f["eta"][k], np.concatenate([np.cross(w - h * rate, h), np.cross(u, h)]) * rate, "(5.6)"
        )
        I = body.inertia + m * (p @ p * np.eye(3) - np.outer(p, p))
        weight = m * s.g.dense(q).reshape(-1, 6)[k, 3:]
        moment = np.cross(w, I @ w) + m * np.cross(p, np.cross(w, u)) - np.cross(p, weight)
        force = m * np.cross(w, u + np.cross(w, p)) - weight
        near(f["xi"][k], np.concatenate([moment, force]), "(4.4)")


def test_kalman_with_wrenches_batches_and_float32(arm):
    rng = np.random.default_rng(2)
    q, v, tau, wrench = (
        rng.normal(size=(4, 6)),
        rng.normal(size=6),
        rng.normal(size=(3, 1, 6)),
        rng.normal(size=(3, 4, 6)),
    )
    f = arm.forward_dynamics_details(q, v, tau, "kalman", f_ext={"tool": wrench})
    assert (
        f["z_plus"].shape == (3, 4, 6, 6)
        and f["P_plus"].shape == (4, 6, 6, 6)
        and f["gains"].shape == (4, 6, 6)
    )
    near(
        f["forces"], arm.joint_forces(q, v, f["a"], f_ext={"tool": wrench}), "wrenches are among xi"
    )
    one = arm.forward_dynamics_details(q[2], v, tau[1, 0], "kalman", f_ext={"tool": wrench[1, 2]})
    assert all(
        np.array_equal(f[x][1, 2], one[x]) for x in one if x not in ("P_minus", "P_plus", "gains")
    )
    assert all(np.array_equal(f[x][2], one[x]) for x in ("P_minus", "P_plus", "gains"))
    small = arm.forward_dynamics_details(q, v, tau, "kalman", dtype=np.float32)
    large = arm.forward_dynamics_details(q, v, tau, "kalman")
    for name, value in small.items():
        assert value.dtype == np.float32
        near(value, large[name], name, 1e-3)


def test_the_papers_algorithms_tell_of_large_robots_too():
    """Larger than what is written out: no kernel of a hundred thousand lines, but the same
    numbers."""
    robot = pp.robots.chain(80)
    q, v, tau = np.random.default_rng(6).normal(size=(3, 80))
    f, a = robot.forward_dynamics_details(q, v, tau, "kalman"), robot.forward_dynamics(q, v, tau)
    near(f["a"], a, "details", 1e-9)
    near(
        f["forces"],
        f["z_plus"] + np.einsum("kij,kj->ki", f["P_plus"], f["lambda_plus"]),
        "(8.1)",
        1e-9,
    )
    near(robot.forward_dynamics_details(q, v, tau, "FD4")["a"], a, "FD4", 1e-9)
    near(robot.forward_dynamics(q, v, tau, method="kalman"), a, "a alone", 1e-9)


def test_explain_names_identities_loops_and_cost(arm):
    text = pp.function(_osim(arm)).explain()
    for part in (
        "S3 Lemma 3",
        "B(tool)* ψ* H* D⁻¹ H ψ B(tool)",
        "for k = tips .. base",
        "Ω(k)",
        "flops",
        "O(N)",
    ):
        assert part in text, part


def test_what_cannot_be_swept_is_dense_and_says_so(arm):
    s = arm.operators
    f, q = pp.function(s.H @ s.S @ s.M @ s.H.T), arm.random(seed=3)
    assert f.dense and f.sweeps == 0 and "dense" in f.explain()
    assert np.allclose(f(q), f.expression.dense(q))


def test_inverses_no_identity_resolves_are_inverted_by_numbers(arm):
    s = arm.operators
    f, q = pp.function((s.mass + s.D).inv), arm.random(seed=3, size=4)
    assert not f.dense and f.sweeps > 0 and "numerical inverses" in f.explain()
    assert np.allclose(f(q), np.linalg.inv((s.mass + s.D).dense(q)), rtol=1e-12)


def test_matrices_of_links_and_rows_of_vectors_are_those_of_the_dense_operators():
    """In link space, entries are in link axes, which sweeps do not use: single letters of the
    papers have their own values."""
    robot = pp.robots.puma560()
    s, v, q, speed = robot.operators, pp.vector("v"), robot.random(seed=6, size=3), np.arange(6.0)
    tool = s.B("tool")
    plain = [
        s.H,
        s.M,
        s.P,
        s.G,
        s.K,
        s.tau_bar,
        s.H.T,
        s.G.T,
        tool,
        tool.T,
        s.psi @ tool,
        s.P @ s.H.T,
        s.phi @ s.M @ s.phi.T,
    ]
    for e in plain:
        assert np.allclose(pp.function(e)(q), e.dense(q), rtol=1e-12, atol=1e-12), e
    for e in (v.T @ s.mass @ v, v.T @ s.mass, v @ v.T @ s.mass):
        assert np.allclose(pp.function(e)(q, speed), e.dense(q, v=speed), rtol=1e-12), e


def test_samples_of_the_inverse_mass_matrix_cost_o_n(arm):
    s = arm.operators
    draw = pp.function(s.mass_half.inv.T @ pp.vector("x"))
    q, rng = arm.random(seed=4), np.random.default_rng(5)
    samples = draw(q, rng.standard_normal((200_000, 6)))
    want = arm.mass_matrix_inverse(q)
    assert np.abs(np.cov(samples.T) - want).max() <= 0.02 * np.abs(want).max()


def test_singular_frames_follow_the_policy_each_by_itself():
    robot = pp.robots.puma560()
    q = robot.random(seed=0, size=4)
    q[2, 4] = 0.0  # the wrist's axes line up
    exact = robot.operational_space_inertia(q, "tool", policy="exact")
    assert np.isnan(exact[2]).all() and np.isfinite(exact[[0, 1, 3]]).all()
    pseudo, damped = (
        robot.operational_space_inertia(q, "tool", policy=p) for p in ("pseudo", "damped")
    )
    assert np.isfinite(pseudo).all() and np.isfinite(damped).all()
    X = robot.operational_compliance(q, "tool")
    assert np.allclose(
        pseudo[2] @ X[2] @ pseudo[2], pseudo[2], rtol=1e-6, atol=1e-6 * np.abs(pseudo[2]).max()
    )
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
