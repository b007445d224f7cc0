"""Robots in nu and xi: agreement with the standard form, with S1's recursions and with Pinocchio;
skewness; energy; frames."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psiphi as pp
from psiphi_bench.interpreted_robot import Interpreted
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.peers.pinocchio_peer import Pin
from tests.robot.diagonalised.kozlowski import recurse
from tests.zoo import ZOO, chain, random_state, random_tree, trees

ONE = ("revolute", "continuous", "prismatic", "helical")
EACH = pytest.mark.parametrize("name", dict(ZOO))
COMPILED = ("universal", "spherical", "massless_gimbal", "welded_arm")


@cache
def robot_of(name: str) -> pp.Robot:
    return (pp.Robot if name in COMPILED else Interpreted).of(dict(ZOO)[name]())


def forms(robot):
    return robot.diagonalised, robot.diagonalised.unnormalised


def close(got, want, message="", tolerance=1e-10):
    scale = 1.0 + np.abs(want).max(initial=0.0)
    assert np.abs(got - want).max(initial=0.0) <= tolerance * scale, message


def agrees(robot, seed):
    """Accelerations recovered from nu' are those of the standard form; every map has its
    undoing."""
    q, v, _, tau = random_state(robot, seed)
    wrench = {"tool": np.random.default_rng(seed).standard_normal(6)}
    for f_ext in (None, wrench):
        a = robot.forward_dynamics(q, v, tau, f_ext=f_ext)
        for d in forms(robot):
            nu = d.velocities(q, v)
            rate = d.forward_dynamics(q, nu, tau, f_ext=f_ext)
            close(d.acceleration(q, nu, rate), a, f"{d}: acceleration")
            close(d.inverse_dynamics(q, nu, rate, f_ext=f_ext), tau, f"{d}: torques")
            rates, again = d.motion(q, nu, tau, f_ext=f_ext)
            close(rates, v, f"{d}: rates")
            close(again, rate, f"{d}: motion")
            close(d.rates(q, nu), v, f"{d}: v of nu")
            close(d.torques(q, d.forces(q, tau)), tau, f"{d}: forces")
            close(d.forces(q, tau) @ nu, tau @ v, f"{d}: power")
            push = rate if d.normalised else d.mass_matrix(q) @ rate
            close(push + d.bias(q, nu, f_ext=f_ext), d.forces(q, tau), f"{d}: nu' + C = eps")
            close(d.energy(q, nu), robot.energy(q, v), f"{d}: energy")


@EACH
def test_the_zoo(name):
    agrees(robot_of(name), 7)


@settings(max_examples=20)
@given(trees(max_bodies=7), st.integers(0, 2**32 - 1))
def test_random_trees(model, seed):
    agrees(Interpreted.of(model), seed)


@EACH
def test_no_gravity_no_power(name):
    """nu* C(q, nu) = 0 without gravity: half the kinetic energy's rate is eps* nu alone."""
    robot = type(robot_of(name)).of(replace(robot_of(name).model, gravity_vector=np.zeros(3)))
    d, (q, v, *_) = robot.diagonalised, random_state(robot, 3)
    nu = d.velocities(q, v)
    C = d.bias(q, nu)
    assert abs(nu @ C) <= 1e-12 * (1.0 + np.linalg.norm(nu) * np.linalg.norm(C))
    x = d.unnormalised
    xi = x.velocities(q, v)
    D_dot = robot.operators.D_dot.dense(q, v)
    close(xi @ x.bias(q, xi), xi @ D_dot @ xi / 2, "xi* C = xi* D' xi / 2")


@EACH
def test_skew(name):
    """c is skew in nu, c + c* = D' in xi, and C = c nu + D^-1/2 H psi b."""
    robot = robot_of(name)
    s, (q, v, *_) = robot.operators, random_state(robot, 4)
    push = (s.H @ s.psi).dense(q) @ s.b_local.dense(q, v)
    for d in forms(robot):
        nu = d.velocities(q, v)
        c = d.coriolis(q, nu)
        close(c + c.T, 0.0 * c if d.normalised else s.D_dot.dense(q, v), f"{d}: skew", 1e-12)
        b = np.linalg.solve(s.D_half.dense(q), push) if d.normalised else push
        close(c @ nu + b, d.bias(q, nu), f"{d}: C", 1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_kozlowskis_recursions(seed):
    """S1's own recursions, on trees of joints of one coordinate, gravity included; and (48) entry
    by entry."""
    model = random_tree(seed, 6, kinds=ONE, branching=0.5 * (seed % 2), forest=seed == 3)
    robot, (q, v, *_) = Interpreted.of(model), random_state(model, seed)
    want, (d, x) = recurse(model, q, v), forms(robot)
    close(d.velocities(q, v), want.nu, "nu", 1e-12)
    close(x.velocities(q, v), want.xi, "xi", 1e-12)
    close(d.bias(q, want.nu), want.C_nu, "C(theta, nu)", 1e-12)
    close(x.bias(q, want.xi), want.C_xi, "C(theta, xi)", 1e-12)
    close(d.coriolis(q, want.nu), want.skew, "(48)", 1e-12)


def test_the_papers_equation_compiles():
    """(40): C = D^-1/2 H psi (E_psi lam - lam E_psi* - X + X* + 2 V x* M) V / 2, as an expression
    of v."""
    robot = pp.Robot.of(random_tree(5, 5, kinds=ONE, branching=0.4))
    s, v = robot.operators, pp.vector("v")
    V, X = s.phi.T @ s.H.T @ v, s.Omega_d @ s.P
    middle = (
        s.E_psi @ s.lambda_dot
        - s.lambda_dot @ s.E_psi.T
        - X
        + s.P @ s.Omega_d.T
        - 2 * (s.spin.T @ s.M)
    )
    normalised = pp.function(s.D_half.inv @ s.H @ s.psi @ middle @ V / 2)
    xi = v + s.K.T @ V
    plain = pp.function(s.H @ s.psi @ (s.lambda_dot @ s.H.T @ xi - (X + s.spin.T @ s.M) @ V))
    assert not normalised.dense and not plain.dense
    q, rates, *_ = random_state(robot, 1)
    for f, d in zip((normalised, plain), forms(robot), strict=True):
        close(f(q, rates), d.bias(q, d.velocities(q, rates)) - d.gravity(q), "(40), (44)", 1e-12)


def test_pinocchio_on_a_tree():
    """nu = U* v with mass = U U*, U upper triangular, from Pinocchio's mass matrix; nu' from its
    accelerations."""
    model = random_tree(8, 6, kinds=("revolute", "prismatic"), branching=0.4)
    robot, peer, (q, v, _, tau) = Interpreted.of(model), Pin(model), random_state(model, 2)
    d, h = robot.diagonalised, 2e-4

    def nu(t):
        """Reversed Cholesky: U U* = M."""
        M = peer.mass_matrix(model.integrate(q, t * v))[::-1, ::-1]
        return np.linalg.cholesky(M)[::-1, ::-1].T @ (v + t * a)

    a = peer.forward_dynamics(q, v, tau)
    close(d.velocities(q, v), nu(0.0), "nu", 1e-12)
    slope = (8 * (nu(h) - nu(-h)) - (nu(2 * h) - nu(-2 * h))) / (12 * h)
    close(d.forward_dynamics(q, nu(0.0), tau), slope, "nu'", 1e-8)


@pytest.mark.parametrize("name", ("screwless_tree", "floating", "mixed_rotors"))
def test_mujoco(name):
    """Accelerations recovered from nu' and xi' beside mj_forward's, kinetic energies too: rotors,
    wrenches, free bases."""
    arm = lambda: chain(name, ["universal", "prismatic", "revolute"], seed=3, armature=True)  # noqa: E731
    model = {**dict(ZOO), "mixed_rotors": arm}[name]()
    robot, peer, (q, v, _, tau) = Interpreted.of(model), Mj(model), random_state(model, 4)
    wrench = {"tool": np.linspace(-1.0, 1.0, 6)}
    want, energy = (
        peer.forward_dynamics(q, v, tau, f_ext=wrench),
        peer.energy(q, v) - peer.energy(q, 0 * v),
    )
    for d in forms(robot):
        nu = d.velocities(q, v)
        close(
            d.acceleration(q, nu, d.forward_dynamics(q, nu, tau, f_ext=wrench)),
            want,
            f"{d}: acceleration",
            1e-9,
        )
        close(d.kinetic_energy(q, nu), energy, f"{d}: kinetic energy", 1e-9)


def test_axes_of_wrenches():
    """A wrench in the frame's own axes is the turned one in the world's."""
    robot = Interpreted.of(random_tree(4, 5))
    q, v, _, tau = random_state(robot, 5)
    R, own = robot.frame_pose(q, "tool")[:3, :3], np.linspace(-1.0, 1.0, 6)
    world = {"tool": np.concatenate([R @ own[:3], R @ own[3:]])}
    for d in forms(robot):
        nu = d.velocities(q, v)
        for verb in (d.forward_dynamics, d.inverse_dynamics):
            close(
                verb(q, nu, tau, f_ext={"tool": own}, axes="frame"),
                verb(q, nu, tau, f_ext=world),
                verb.__name__,
                1e-11,
            )
        close(
            d.bias(q, nu, f_ext={"tool": own}, axes="frame"),
            d.bias(q, nu, f_ext=world),
            "bias",
            1e-11,
        )


def test_the_robots_other_verbs():
    """What the robot answers of v and dv/dt is answered of nu and nu'; what speaks of places is the
    robot's."""
    robot = Interpreted.of(random_tree(4, 5))
    q, v, a, tau = random_state(robot, 6)
    a = robot.forward_dynamics(q, v, tau)
    for d in forms(robot):
        nu = d.velocities(q, v)
        rate = d.forward_dynamics(q, nu, tau)
        close(d.frame_acceleration(q, nu, rate, "tool"), robot.frame_acceleration(q, v, a, "tool"))
        close(d.link_accelerations(q, nu, rate), robot.link_accelerations(q, v, a))
        close(d.joint_forces(q, nu, rate), robot.joint_forces(q, v, a))
        close(d.mass_matrix(q) @ d.mass_matrix_inverse(q), np.eye(robot.nv))
        close(d.center_of_mass(q), robot.center_of_mass(q))
    with pytest.raises(pp.StateError, match=r"no 'inverse_dynamic'.*inverse_dynamics"):
        d.inverse_dynamic  # noqa: B018
    assert not hasattr(d, "joints")


def test_frames():
    robot = pp.robots.puma560()
    q, v, *_ = random_state(robot, 6, (3,))
    for d in forms(robot):
        nu = d.velocities(q, v)
        V = robot.frame_velocity(q, v, "tool")
        close(d.frame_velocity(q, nu, "tool"), V)
        close(np.einsum("...ij,...j->...i", d.jacobian(q, "tool"), nu), V)
    J = robot.diagonalised.jacobian(q, "tool")
    close(J @ np.swapaxes(J, -1, -2), robot.operational_compliance(q, "tool"), "J J* = J M^-1 J*")


def test_batches_and_large_chains():
    robot = pp.robots.puma560()
    q, v, _, tau = random_state(robot, 1, (4, 3))
    d = robot.diagonalised
    nu = d.velocities(q, v)
    rates, rate = d.motion(q, nu, tau)
    assert rates.shape == rate.shape == (4, 3, 6)
    np.testing.assert_array_equal(rate[2, 1], d.motion(q[2, 1], nu[2, 1], tau[2, 1])[1])
    np.testing.assert_allclose(
        d.motion(q, nu, tau, dtype=np.float32)[1], rate, rtol=2e-3, atol=2e-2
    )
    long = pp.robots.chain(70)
    q, v, _, tau = random_state(long, 2)
    nu = long.diagonalised.velocities(q, v)
    rate = long.diagonalised.forward_dynamics(q, nu, tau)
    close(long.diagonalised.acceleration(q, nu, rate), long.forward_dynamics(q, v, tau), "in loops")


def test_a_reference_moves_with_the_robot():
    robot = Interpreted.of(
        chain("kinds", ["universal", "revolute", "spherical"], seed=3, armature=True)
    )
    q, v, a, x = random_state(robot, 9)
    for d in forms(robot):
        now, rate = d.reference(q, d.velocities(q, v), x, a)
        value = lambda t, d=d: d.velocities(robot.integrate(q, t * v), x + t * a)  # noqa: E731
        h = 2e-4
        close(now, value(0.0))
        close(
            rate,
            (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h),
            "d nu_ref/dt",
            1e-8,
        )


def test_what_is_said_of_mistakes():
    robot = pp.robots.puma560()
    d, q, nu = robot.diagonalised, np.zeros(6), np.ones(6)
    with pytest.raises(pp.StateError, match="nu"):
        d.forward_dynamics(q, np.zeros(5), nu)
    with pytest.raises(pp.StateError, match="no frame 'hand'"):
        d.jacobian(q, "hand")
    with pytest.raises(pp.StateError, match="f_ext"):
        d.bias(q, nu, f_ext=[1, 2, 3])
    with pytest.raises(pp.StateError, match="expected finite numbers"):
        d.rates(q, nu * np.nan, check=True)
    for energy, cause in (
        (-1e6, "leaves .* for it"),
        (np.nan, "leaves .* for it"),
        ("much", "expected real numbers"),
    ):
        with pytest.raises(pp.StateError, match=cause):
            d.at_energy(q, nu, energy)
    for verb in (
        d.kinetic_energy,
        d.energy,
        d.coriolis,
        d.unnormalised.kinetic_energy,
        lambda q, nu: d.at_energy(q, nu, 9.0),
    ):
        for wrong in (np.zeros(5), 1.0, "nu"):
            with pytest.raises(pp.StateError, match=r"(nu|xi) (has shape|is)"):
                verb(q, wrong)
        with pytest.raises(pp.StateError, match="q has shape"):
            verb(np.zeros(5), nu)
    with pytest.raises(pp.StateError, match="expected finite numbers"):
        d.kinetic_energy(q, nu * np.nan, check=True)
    with pytest.raises(pp.StateError, match=r"no function 'moton'.*'motion'"):
        d.flops("moton")
    assert np.isclose(d.energy(q, d.at_energy(q, nu, 100.0)), 100.0)
    assert repr(d) == "<puma560 in nu>" and d.unnormalised.unnormalised.normalised is False
    assert np.array_equal(d.mass_matrix(q), np.eye(6)) and d.flops("motion") == robot.flops(
        "diagonalised_motion"
    )
