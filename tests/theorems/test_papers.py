"""Results of the papers that other tests do not name, each as its equation with numbers;
docs/papers.md points here."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.sweeps.interpreter import interpret
from tests.pages import ROOT
from tests.soundness.oracle import STEP, Oracle
from tests.zoo import chain

ARMS = ("iiwa14", "stanford_arm")  # a chain of revolute joints; one that slides, with rotors


@pytest.fixture(params=ARMS)
def arm(request) -> pp.Robot:
    return pp.load(request.param)


def letters(o: Oracle, *names: str) -> list[np.ndarray]:
    """Matrices of an oracle that shares no code with psiphi."""
    return [o[name].m for name in names]


def bias_torque(o: Oracle) -> np.ndarray:
    """C = H phi (M phi* a + b), gravity included: S0 (3.18), S1 (38)."""
    H, phi, M, a, b = letters(o, "H", "phi", "M", "a", "b")
    return (H @ phi @ (M @ phi.T @ a + b)).ravel()


def test_newton_euler_in_two_recursions(arm, rng):
    """S0 (2.24)-(2.30): alpha(k) = phi* alpha(k+1) + H* a + a(k) outward, f(k) = phi f(k-1) + M
    alpha + b inward, T = H f (+ rotors)."""
    q, v, a = arm.random(rng), *rng.standard_normal((2, arm.nv))
    o = Oracle(arm, q, v)
    H, E, M, rotor, bias, b = letters(o, "H", "E_phi", "M", "rotor", "a", "b")
    alpha, f = np.zeros((2, 6 * arm.nv))
    for _ in range(arm.nv):  # each pass reaches one body further
        alpha = E.T @ alpha + H.T @ a + bias.ravel()
    for _ in range(arm.nv):
        f = E @ f + M @ alpha + b.ravel()
    near = dict(rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(arm.joint_forces(q, v, a).ravel(), f, **near)
    np.testing.assert_allclose(arm.inverse_dynamics(q, v, a), H @ f + rotor @ a, **near)


def test_link_and_tip_accelerations_of_fd2(arm, rng):
    """S0 (5.5)-(5.7): alpha = psi* H* D^-1 W T' + phi* a, alpha(0) = B* alpha + a(0)."""
    q, v, tau = arm.random(rng), *rng.standard_normal((2, arm.nv))
    o, tip = Oracle(arm, q, v), arm.frames["tool"]
    H, phi, psi, D, K, a = letters(o, "H", "phi", "psi", "D", "K", "a")
    W = np.eye(arm.nv) - H @ psi @ K
    nu = np.linalg.solve(D, W @ (tau - bias_torque(o)))
    alpha = psi.T @ H.T @ nu + (phi.T @ a).ravel()
    found = arm.forward_dynamics_details(q, v, tau, "FD2")
    near = dict(rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found["a"], W.T @ nu, **near)
    np.testing.assert_allclose(found["link_accelerations"].ravel(), alpha, **near)
    w, R = o.V[tip.body][:3], o.poses[tip.body][0]
    turn = np.cross(w, np.cross(w, tip.pose.translation))
    bias = np.concatenate([np.zeros(3), R @ turn + arm.gravity_vector])
    np.testing.assert_allclose(
        arm.frame_acceleration(q, v, found["a"], "tool"),
        o.B(("tool",), "world").m.T @ alpha + bias,
        **near,
    )


def printed_fd(o: Oracle, method: str, tau: np.ndarray) -> dict[str, np.ndarray]:
    """The results of S0 FD1 to FD4 by their equations, with the letters of an oracle."""
    names = ("H", "phi", "psi", "D", "K", "G", "P", "M", "E_phi", "a", "b")
    H, phi, psi, D, K, G, P, M, E, a, b = letters(o, *names)
    a, b = a.ravel(), b.ravel()
    n, links = len(tau), len(a)
    if method in ("FD1", "FD2"):  # (4.19)-(4.22), body by body: tip to base, base to tip
        rest, L = tau - bias_torque(o), E @ G
        z, lam = np.zeros(links), np.zeros(links)
        for _ in range(n):  # each pass reaches one body further
            z = E @ z - L @ (H @ z) + L @ rest  # (4.20)
        epsilon = rest - H @ z
        nu = np.linalg.solve(D, epsilon)
        for _ in range(n):
            lam = E.T @ lam - H.T @ (L.T @ lam) + H.T @ nu  # (4.22)
        found = {"a": nu - L.T @ lam, "T": rest, "z": z, "epsilon": epsilon, "nu": nu, "lam": lam}
        zeta = phi.T @ a
        more = {"zeta": zeta, "link_accelerations": lam + zeta}  # (4.22b)
        return found | (more if method == "FD2" else {})
    W, I = np.eye(n) - H @ psi @ K, np.eye(links)
    if method == "FD3":
        zeta = phi.T @ a  # (5.8)
        z = psi @ (K @ tau + M @ zeta + b)
        epsilon = tau - H @ z  # (5.9)
        nu = np.linalg.solve(D, epsilon)
        own = {"zeta": zeta, "z": z, "epsilon": epsilon, "nu": nu, "lam": psi.T @ H.T @ nu}
        return {"a": W.T @ nu, **own}  # (5.10)
    tilde = psi - I  # (5.11)
    nu = np.linalg.solve(D, W @ tau - H @ tilde @ P @ a - H @ psi @ b)  # (5.14)
    z = psi @ K @ tau + tilde @ P @ a + psi @ b  # (5.16)
    alpha = psi.T @ H.T @ nu + psi.T @ (I - G @ H).T @ a  # (5.17)
    own = {"z": z, "epsilon": tau - H @ z, "nu": nu, "link_accelerations": alpha}
    return {"a": W.T @ nu - K.T @ psi.T @ (I - G @ H).T @ a - G.T @ a, **own}  # (5.15)


@pytest.mark.parametrize("method", ["FD1", "FD2", "FD3", "FD4"])
def test_forward_dynamics_as_printed(arm, method, rng):
    """S0 (4.17)-(4.22), (5.8)-(5.10), (5.14)-(5.17): each algorithm is its equations, and returns
    what they name."""
    q, v, tau = arm.random(rng), *rng.standard_normal((2, arm.nv))
    source = arm.function(method).source
    found = interpret(source.program, source.tree, q, v, tau)
    want = printed_fd(Oracle(arm, q, v), method, tau)
    assert [arg.name for arg in source.outputs] == list(want)
    for x, (name, y) in zip(found, want.items(), strict=True):
        near = 1e-8 * (1.0 + np.abs(y).max())
        np.testing.assert_allclose(np.ravel(x), y, rtol=1e-8, atol=near, err_msg=name)


def test_standard_equations(arm, rng):
    """S1 (33) V x; (34), (35) the rate of xi = (I + H phi K)* v; (37), (38) tau = M a + H phi M
    phi* a + H phi b."""
    q, v, tau = arm.random(rng), *rng.standard_normal((2, arm.nv))
    o = Oracle(arm, q, v)
    mass, C = o["mass"].m, bias_torque(o)
    a = np.linalg.solve(mass, tau - C)
    near = dict(rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(arm.forward_dynamics(q, v, tau), a, **near)
    np.testing.assert_allclose(arm.inverse_dynamics(q, v, a), mass @ a + C, **near)
    spin = arm.operators.spin.dense(q, v)
    for k, V in enumerate(o.V):
        w, x = (np.cross(u, np.eye(3)).T for u in (V[:3], V[3:]))
        block = np.block([[w, np.zeros((3, 3))], [x, w]])  # on motions; (33) is minus its adjoint
        np.testing.assert_allclose(spin[6 * k : 6 * k + 6, 6 * k : 6 * k + 6], block, atol=1e-12)
    here, there = (x["H"].m @ x["phi"].m @ x["K"].m for x in (o, o.moving))
    factor = np.eye(arm.nv) + here
    form = arm.diagonalised.unnormalised
    np.testing.assert_allclose(form.velocities(q, v), factor.T @ v, **near)
    rate = there.imag.T / STEP @ v + factor.T @ a
    np.testing.assert_allclose(form.forward_dynamics(q, factor.T @ v, tau), rate, **near)


def test_velocities_outward_forces_inward(arm, rng):
    """S2 (4.4)-(4.10), (5.1)-(5.16): Newton and Euler link by link, in vectors of three."""
    q, v, a = arm.random(rng), *rng.standard_normal((2, arm.nv))
    o, g = Oracle(arm, q, v), arm.gravity_vector
    w, dw, dv, lam = {-1: np.zeros(3)}, {-1: np.zeros(3)}, {-1: -g}, {-1: np.zeros(6)}
    places = {-1: np.zeros(3)} | {k: p for k, (_, p) in enumerate(o.poses)}
    for k, joint in enumerate(arm.joints):  # outward, in world axes
        R, p = o.poses[k]
        turn, slide = (R @ o.maps[k][i : i + 3] for i in (0, 3))
        u, du, inner = v[joint.v_slice], a[joint.v_slice], joint.parent
        arm_k = p - places[inner]
        w[k] = w[inner] + turn @ u  # (5.10)
        dw[k] = dw[inner] + turn @ du + np.cross(w[inner], turn @ u)  # (5.14)
        moved = np.cross(dw[inner], arm_k) + np.cross(w[inner], np.cross(w[inner], arm_k))
        dv[k] = dv[inner] + moved + slide @ du + 2 * np.cross(w[inner], slide @ u)  # (5.12)
    alpha = [np.concatenate([R.T @ dw[k], R.T @ dv[k]]) for k, (R, _) in enumerate(o.poses)]
    near = dict(rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(arm.link_accelerations(q, v, a), alpha, **near)
    for k, joint in enumerate(arm.joints):  # (5.4)-(5.6): derivatives of body coordinates
        own = o.maps[k] @ v[joint.v_slice]
        plus = o.V[k] - own  # V+
        eta = [*np.cross(plus[:3], own[:3]), *(np.cross(plus[3:], own[:3]))]
        eta[3:] += np.cross(plus[:3], own[3:])  # a joint that slides
        inner = lam[-1] if joint.parent < 0 else o.phi(joint.parent, k).T @ lam[joint.parent]
        lam[k] = inner + o.maps[k] @ a[joint.v_slice] + eta
        R, V = o.poses[k][0], o.V[k]
        body = [*(R.T @ dw[k]), *(R.T @ (dv[k] + g) - np.cross(V[:3], V[3:]))]
        np.testing.assert_allclose(lam[k], body, **near)
    f, n = np.zeros((2, arm.nv, 3))
    for k in reversed(range(arm.nv)):  # inward: (4.5), (4.6)
        body, (R, p) = arm.bodies[k], o.poses[k]
        c = R @ body.com
        force = body.mass * (dv[k] + np.cross(dw[k], c) + np.cross(w[k], np.cross(w[k], c)))
        inertia = R @ body.inertia @ R.T
        f[k] += force
        n[k] += inertia @ dw[k] + np.cross(w[k], inertia @ w[k]) + np.cross(c, force)
        if (inner := arm.joints[k].parent) >= 0:
            f[inner] += f[k]
            n[inner] += n[k] + np.cross(p - places[inner], f[k])
    want = [np.concatenate([R.T @ n[k], R.T @ f[k]]) for k, (R, _) in enumerate(o.poses)]
    np.testing.assert_allclose(arm.joint_forces(q, v, a), want, rtol=1e-8, atol=1e-8)


def test_composite_bodies(arm, rng):
    """S2 (7.7)-(7.11): r(k) = M(k) + phi r phi*, M(k, i) = H(k) phi(k, i) r(i) H*(i)."""
    q = arm.random(rng)
    names = ("H", "phi", "E_phi", "M", "rotor")
    H, phi, E, M, rotor = letters(Oracle(arm, q, np.zeros(arm.nv)), *names)
    r = np.zeros_like(M)
    for _ in range(arm.nv):
        r = M + E @ r @ E.T  # tip to base, one body further each time
    mass = np.triu(H @ phi @ r @ H.T)
    want = mass + np.triu(mass, 1).T + rotor
    np.testing.assert_allclose(arm.mass_matrix(q), want, rtol=1e-10, atol=1e-12)


def test_torques_term_by_term(arm, rng):
    """S1 (39): what each joint and each link adds to each torque, by name, beside the blocks of an
    oracle; the terms add up to inverse dynamics."""
    s, q, (v, a) = arm.operators, arm.random(rng), rng.standard_normal((2, arm.nv))
    by_joint, by_acceleration = s.mass.blocks(q), (s.H @ s.phi @ s.M @ s.phi.T).blocks(q)
    by_force = (s.H @ s.phi).blocks(q)
    o = Oracle(arm, q, v)
    H, phi, M, mass, bias, b = letters(o, "H", "phi", "M", "mass", "a", "b")
    near = dict(rtol=1e-9, atol=1e-9)
    for joint in arm.joints:
        row, total = joint.v_slice, mass[joint.v_slice] @ a
        for other in arm.joints:
            block = by_joint[joint.name, other.name]
            np.testing.assert_allclose(block, mass[row, other.v_slice], **near)
        for k, body in enumerate(arm.bodies):
            link, names = slice(6 * k, 6 * k + 6), (joint.name, body.name)
            np.testing.assert_allclose(by_force[names], (H @ phi)[row, link], **near)
            block = by_acceleration[names]
            np.testing.assert_allclose(block, (H @ phi @ M @ phi.T)[row, link], **near)
            total = total + block @ bias[link, 0] + by_force[names] @ b[link, 0]
        torque = arm.inverse_dynamics(q, v, a)[row]
        np.testing.assert_allclose(total, torque, atol=1e-9 * (1.0 + np.abs(torque).max()))


def test_closed_form_of_the_inverse(arm, rng):
    """S2 (10.1)-(10.3): M^-1(k, k) = c_k = D^-1 + G* Lam G, M^-1(k, j) = d_k psi(k, p(j)) K_j with
    d_k = G* Lam - c_k H."""
    q = arm.random(rng)
    names = ("H", "psi", "D", "G", "K", "E_phi", "Om", "mass")
    H, psi, D, G, K, E, Om, mass = letters(Oracle(arm, q, np.zeros(arm.nv)), *names)
    Lam = E.T @ Om @ E  # LamP(k) = phi*(p, k) Om(p) phi(p, k)
    c = np.linalg.inv(D) + G.T @ Lam @ G
    d = G.T @ Lam - c @ H
    upper = np.triu(d @ psi @ K, 1)
    inverse = arm.mass_matrix_inverse(q)
    np.testing.assert_allclose(inverse, np.diag(np.diag(c)) + upper + upper.T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(inverse, np.linalg.inv(mass), rtol=1e-7, atol=1e-9)


def test_tip_inertia_by_the_outward_recursion(arm, rng):
    """S3 (20), S4 (6.8)-(6.10): Om(k) = psi*(p, k) Om(p) psi(p, k) + H* D^-1 H, J M^-1 J* = phi*(1,
    0) Om(1) phi(1, 0)."""
    q = arm.random(rng)
    o = Oracle(arm, q, np.zeros(arm.nv))
    H, D, E = letters(o, "H", "D", "E_psi")
    Om = np.zeros((6 * arm.nv,) * 2)
    for _ in range(arm.nv):
        Om = H.T @ np.linalg.inv(D) @ H + E.T @ Om @ E
    near = dict(rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(arm.operators.Om.dense(q), o["Om"].m, **near)
    B = o.B(("tool",), "world").m
    found = arm.operational_compliance(q, "tool", axes="world")
    np.testing.assert_allclose(found, B.T @ Om @ B, **near)


def test_tip_force_correction(arm, rng):
    """S3 (18): a force f by the tip on its surroundings changes accelerations by -W* D^-1 H psi B
    f."""
    s, q, v = arm.operators, arm.random(rng), rng.standard_normal(arm.nv)
    f, tau = rng.standard_normal(6), rng.standard_normal(arm.nv)
    o = Oracle(arm, q, v)
    H, psi, K, D = letters(o, "H", "psi", "K", "D")
    push = H @ psi @ o.B(("tool",), "world").m @ f
    want = -(np.eye(arm.nv) - H @ psi @ K).T @ np.linalg.solve(D, push)
    W = s.I - s.H @ s.psi @ s.K
    B = s.B("tool", axes="world")
    change = pp.function(-W.T @ s.D.inv @ s.H @ s.psi @ B @ pp.vector("f", "frame"))(q, f)
    found = arm.forward_dynamics(q, v, tau, f_ext={"tool": -f}) - arm.forward_dynamics(q, v, tau)
    near = dict(rtol=1e-7, atol=1e-7 * np.abs(want).max())
    np.testing.assert_allclose(change, want, **near)
    np.testing.assert_allclose(found, want, **near)


def test_two_arms_joined_at_their_tips(rng):
    """S3 (26): f(0) = (Om_1(0) + Om_2(0))^-1 (alpha_2f(0) - alpha_1f(0)), then each arm's tip-force
    correction."""
    arm = pp.load("puma560")
    q1 = np.array([0.2, -0.8, 0.5, 0.3, 0.7, -0.2])
    hand = arm.frame_pose(q1, "tool")
    base = np.diag([-1.0, -1.0, 1.0, 1.0])
    base[:3, 3] = (
        hand[:3, 3] - base[:3, :3] @ hand[:3, 3]
    )  # turned by half a turn about the vertical through the hand
    pair = pp.connect({"one": arm, "two": (arm, base)}, [pp.Loop("ball", "one/tool", "two/tool")])
    q = np.concatenate([q1, q1])
    v = pair.project(q, rng.standard_normal(12))[1]
    tau = rng.standard_normal(12)
    two = pair.robot
    free = two.forward_dynamics(q, v, tau)
    tips = [two.frame_acceleration(q, v, free, f"{name}/tool")[3:] for name in ("one", "two")]
    Om = [two.operational_compliance(q, f"{name}/tool")[3:, 3:] for name in ("one", "two")]
    f = np.linalg.solve(Om[0] + Om[1], tips[1] - tips[0])
    push = np.concatenate([np.zeros(3), f])
    joined = two.forward_dynamics(q, v, tau, f_ext={"one/tool": push, "two/tool": -push})
    assert np.allclose(pair.forward_dynamics(q, v, tau), joined, rtol=1e-8, atol=1e-8)


def test_two_arms_with_one_rigid_tip(rng):
    """S3 (21)-(26) as printed, with wrenches of six numbers: f(0) = Lambda_c (alpha_2f - alpha_1f),
    with the letters of an oracle that shares no code."""
    arm = pp.load("puma560")
    q1, q2 = np.array([[0.2, -0.8, 0.5, 0.3, 0.7, -0.2], [-0.4, -0.5, 0.9, -0.3, 0.4, 0.6]])
    base = arm.frame_pose(q1, "tool") @ np.linalg.inv(arm.frame_pose(q2, "tool"))
    tips = ("one/tool", "two/tool")
    pair = pp.connect({"one": arm, "two": (arm, base)}, [pp.Loop("weld", *tips)])
    q = np.concatenate([q1, q2])
    v, tau = pair.project(q, rng.standard_normal(12))[1], rng.standard_normal(12)
    o = Oracle(pair.robot, q, v)
    free = np.linalg.solve(o["mass"].m, tau - bias_torque(o))  # (24)

    def jacobian(o, tip):
        return (o["H"].m @ o["phi"].m @ o.B((tip,), "world").m).T

    J = [jacobian(o, tip) for tip in tips]
    alpha = [
        own @ free + jacobian(o.moving, tip).imag @ v / STEP
        for own, tip in zip(J, tips, strict=True)
    ]  # (25)
    compliance = sum(own @ np.linalg.solve(o["mass"].m, own.T) for own in J)
    f = np.linalg.solve(compliance, alpha[1] - alpha[0])  # (26)
    a, forces = pair.forward_dynamics(q, v, tau, forces=True)
    want = free + np.linalg.solve(o["mass"].m, (J[0] - J[1]).T @ f)  # (21), (23)
    np.testing.assert_allclose(a, want, rtol=1e-7, atol=1e-7 * np.abs(want).max())
    np.testing.assert_allclose(forces[0], -f, rtol=1e-7, atol=1e-7 * np.abs(f).max())


def test_mobile_base(rng):
    """S0 appendix B (b.1)-(b.8): dq/dt = Lambda(q) w, pi Lambda = 1 with pi = 4 Lambda*, and an arm
    on a free base."""
    robot = pp.load("ur5", base="free")
    q, v = robot.random(rng), rng.standard_normal(robot.nv)
    h = 1e-6
    rate = (robot.integrate(q, v, h)[3:7] - robot.integrate(q, v, -h)[3:7]) / (2 * h)
    x, w = q[3:6], q[6]
    cross = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
    Lambda = 0.5 * np.vstack(
        [w * np.eye(3) + cross, -x]
    )  # for x, y, z, w and velocities in body axes
    assert np.allclose(rate, Lambda @ v[:3], atol=1e-8) and np.allclose(
        4 * Lambda.T @ Lambda, np.eye(3)
    )
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    assert np.allclose(robot.inverse_dynamics(q, v, a), 0.0, atol=1e-8), (
        "no force on the base, none on the joints"
    )


RATES = ["E_phi", "phi", "M", "P", "D", "G", "tau_bar", "E_psi", "psi", "mass", "mass_half"]


@pytest.mark.parametrize("letter", RATES)
def test_rates_of_operators(arm, letter, rng):
    """S1 Table 1, (13)-(21), (29), (30): d/dt in the links' axes, beside complex steps of an
    oracle's letters along the motion."""
    q, v = arm.random(rng), rng.standard_normal(arm.nv)
    want = Oracle(arm, q, v).moving[letter].rate.m
    rate = getattr(arm.operators, letter).dot().dense(q, v)
    np.testing.assert_allclose(rate, want, rtol=1e-7, atol=1e-9 * (1.0 + np.abs(want).max()))


@pytest.mark.parametrize("slides", [False, True])
def test_gradient_of_the_mass_matrix(slides, rng):
    """S1 (32): v* M_q v = 2 H phi (Omega_d (I + phi K H) P - V x* M) V, beside complex steps of an
    oracle's mass matrix; (31), (29): dm/dt nu, with m of the oracle. As printed, without rotors."""
    kinds = ["revolute", "prismatic", "revolute", "prismatic"] if slides else ["revolute"] * 4
    arm = pp.Robot.of(chain("arm", kinds, seed=4))
    q, v, s = arm.random(rng), rng.standard_normal(arm.nv), arm.operators
    want = []
    for step in np.eye(arm.nv):
        ahead = Oracle(arm, q + 1j * STEP * step, v, moves=True)
        want.append(v @ ahead["mass"].m.imag @ v / STEP)
    V = s.phi.T @ s.H.T @ pp.vector("v")
    slope = s.Omega_d @ (s.I + s.phi @ s.K @ s.H) @ s.P
    gradient = 2 * s.H @ s.phi @ (slope + s.spin.T @ s.M) @ V  # spin.T is - V x*
    np.testing.assert_allclose(gradient.dense(q, v), want, rtol=1e-8, atol=1e-8)
    o = Oracle(arm, q, v)
    nu = o["mass_half"].m.T @ v
    rate = o.moving["mass_half"].m.imag @ nu / STEP
    np.testing.assert_allclose(s.mass_half_dot.dense(q, v) @ nu, rate, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("normalised", [True, False])
def test_diagonalised_equations(arm, normalised, rng):
    """S1 (40)-(46): nu' + C(q, nu) = eps, D xi' + C(q, xi) = kappa; the accelerations are those of
    the standard equations."""
    form = arm.diagonalised if normalised else arm.diagonalised.unnormalised
    q, v, tau = arm.random(rng), *rng.standard_normal((2, arm.nv))
    nu = form.velocities(q, v)
    rate, mass = form.forward_dynamics(q, nu, tau), form.mass_matrix(q)
    assert np.isclose(form.kinetic_energy(q, nu), arm.kinetic_energy(q, v)) and np.allclose(
        form.rates(q, nu), v
    )
    assert np.allclose(mass @ rate + form.bias(q, nu), form.forces(q, tau), rtol=1e-8, atol=1e-8)
    a, h = arm.forward_dynamics(q, v, tau), 1e-6
    ahead, behind = (form.velocities(arm.integrate(q, v, step), v + step * a) for step in (h, -h))
    assert np.allclose(rate, (ahead - behind) / (2 * h), atol=1e-5 * np.abs(rate).max())


def test_coriolis_forces_in_nu_do_no_work(rng):
    """S1 (47), (48): without gravity nu* C = 0, and C = c nu + D^-1/2 H psi b with c skew."""
    arm = pp.load("iiwa14", gravity=(0, 0, 0))
    form, s, q = arm.diagonalised, arm.operators, arm.random(rng)
    nu = rng.standard_normal(arm.nv)
    C, c, v = form.bias(q, nu), form.coriolis(q, nu), form.rates(q, nu)
    assert abs(nu @ C) < 1e-12 * np.abs(C).max() and np.allclose(c, -c.T, atol=1e-12)
    rest = (s.D_half.inv @ s.H @ s.psi @ s.b_local).dense(q, v)
    assert np.allclose(c @ nu + rest, C, atol=1e-10)


# -- the page --------------------------------------------------------------------------------------


def rows() -> list[list[str]]:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    lines = [line.replace("\\|", "&#124;") for line in text.splitlines() if line.startswith("| S")]
    return [
        row for line in lines if len(row := [cell.strip() for cell in line.split("|")[1:-1]]) > 2
    ]


def test_every_algorithm_has_its_row():
    named = " ".join(cell for row in rows() for cell in row)
    algorithms = [
        "FD1",
        "FD2",
        "FD3",
        "FD4",
        "RCCFD1",
        "RCCFD2",
        "RCCFD3",
        "CCFD",
        "Result 8.1",
        "KKT",
    ]
    for algorithm in (
        *algorithms,
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 6.1",
        "(10.1)",
        "(b.14)",
    ):
        assert algorithm in named, algorithm
    for paper in ("S0", "S1", "S2", "S3", "S4"):
        assert sum(row[0].startswith(paper) for row in rows()) >= 5, paper


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_row_has_its_test(row):
    assert len(row) == 4 and all(row)
    for test in row[3].split("`")[1::2]:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test


def test_tip_accelerations_are_written_and_proved():
    """S0 (2.27), (5.7): alpha(0) = B* alpha + a(0), alpha = phi* (H* dv/dt + a), a(0) = dB*/dt V,
    with derivatives in body axes."""
    a, v = pp.vector("a"), pp.vector("v")
    for kind in ("universal", "helical", "free"):
        arm = pp.Robot.of(chain(kind, [kind, "revolute"], 3))
        s, q = arm.operators, arm.random(seed=1)
        rates = np.random.default_rng(2).standard_normal((2, arm.nv))
        for axes in ("world", "frame"):
            B, J = s.B("tool", axes=axes), s.J("tool", axes=axes)
            alpha, tip = s.phi.T @ (s.H.T @ a + s.a_local), B.T.dot() @ s.phi.T @ s.H.T @ v
            proof = pp.prove(J @ a + J.dot() @ v, B.T @ alpha + tip)
            assert proof, (kind, axes)
            speed, change = rates
            found = (B.T @ alpha + tip).dense(q, speed, a=change)
            if axes == "world":
                want = arm.frame_acceleration(q, speed, change, "tool")
                np.testing.assert_allclose(found.ravel(), want, atol=1e-9)


@pytest.fixture(scope="module")
def held():
    """Two arms that hold a box: its operators, the tips of the arms, the grips of the box."""
    arm, place = pp.load("puma560"), np.eye(4)
    place[0, 3] = 1.2
    box = pp.Body.box(2.0, (0.4, 0.1, 0.1), "box")
    cell = pp.grasp([(arm, None, "tool"), (arm, place, "tool")], box, [(-0.2, 0, 0), (0.2, 0, 0)])
    s = cell.operators
    tips, grips = ([getattr(x, side) for x in cell.contacts] for side in ("first", "second"))
    return s, tips, grips


def test_closed_chains_are_written_and_proved(held):
    """S4 (3.5), (6.17), (6.21) with Omega = J M^-1 J* + A M(C)^-1 A* (4.7)."""
    s, tips, grips = held
    B, J, A = s.B(*tips), s.J(*tips), s.J(*grips)
    M_inv, W = s.mass.inv, s.I - s.H @ s.psi @ s.K
    object_side = A @ M_inv @ A.T
    Omega = J @ M_inv @ J.T + object_side
    first = M_inv - M_inv @ J.T @ Omega.inv @ J @ M_inv
    second = Omega.inv @ J @ M_inv
    assert pp.prove(s.mass @ first + J.T @ second, s.I), "(3.5a), rows of the arms"
    assert pp.prove(J @ first - object_side @ second, 0 * J), "(3.5a), rows of the contacts"
    tau, f = pp.vector("tau"), s.vector("f", "frame")
    filtered = s.K @ tau + B @ f
    assert pp.prove(M_inv @ (tau - J.T @ f), W.T @ s.D.inv @ (tau - s.H @ s.psi @ filtered)), (
        "(6.17)"
    )
    seen = s.D.inv @ s.H @ s.psi @ B
    bracket = s.D.inv - seen @ Omega.inv @ seen.T
    assert pp.prove(first @ tau, W.T @ bracket @ W @ tau), "(6.21)"
    assert not pp.prove(first @ tau, W.T @ (s.D.inv + seen @ Omega.inv @ seen.T) @ W @ tau)


def test_contacts_that_move_are_written_and_proved(held):
    """S4 (b.5)-(b.8), (b.14) with the sign of (b.11) corrected, for any H(0) of full rank."""
    s, tips, grips = held
    J, A, M_inv = s.J(*tips), s.J(*grips), s.mass.inv
    tau, C, G1 = pp.vector("tau"), pp.vector("C"), s.vector("G1", "frame")
    H = J @ s.symbol("X", "joint") @ J.T  # any operator of frames
    object_side = A @ M_inv @ A.T
    Oi = (J @ M_inv @ J.T + object_side).inv
    Pi = Oi - Oi @ H.T @ (H @ Oi @ H.T).inv @ H @ Oi
    drive = J @ M_inv @ tau + G1
    rate = -((H @ Oi @ H.T).inv @ H @ Oi @ drive)  # dW/dt, (b.5)
    assert pp.prove(Oi @ (drive + H.T @ rate), Pi @ drive), "(b.7)"
    assert pp.prove(H @ Pi, 0 * H), "H(0) f(0) = 0"
    a = M_inv @ (tau - J.T @ Pi @ drive - C)  # (b.8)
    seen, G3 = H @ Oi, -(J.T @ Oi @ G1) - C
    left = seen @ H.T @ rate + seen @ J @ a
    own = seen @ object_side @ Pi @ J @ M_inv @ tau
    relief = (object_side @ Pi - s.I) @ G1
    assert pp.prove(left, own + seen @ (relief - J @ M_inv @ C)), "(b.14), first row"
    assert not pp.prove(left, own + seen @ (relief + J @ M_inv @ C)), "(b.11) as printed"
    second = tau - J.T @ Oi @ J @ M_inv @ tau + G3
    assert pp.prove(J.T @ Oi @ H.T @ rate + s.mass @ a, second), "(b.14), second row"
