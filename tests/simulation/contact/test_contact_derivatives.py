"""Derivatives of motions on a ground, beside closed forms and central differences."""

from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp

GRAVITY, DT, MU = 9.81, 1e-3, 0.3
RIGID = pp.Ground(friction=MU)
LANDS = [0, 0, 0, 0, 0, -0.3]


def on_ground(robot, deeper=2e-4, q=None):
    """The robot a little inside the ground: the law has a corner where the gap is zero."""
    q = robot.on_ground(robot.neutral() if q is None else q)
    q[2] -= deeper
    return q


def free_body(shape, inertia):
    builder = pp.Builder("body")
    builder.body("link", mass=1.0, inertia=inertia)
    builder.joint("root", "free", parent="world", child="link")
    return pp.Robot.of(builder.build()).with_contacts({"link": shape})


@pytest.fixture(scope="module")
def sphere():
    return free_body(pp.Sphere(0.1), (0.004, 0.004, 0.004))


@pytest.fixture(scope="module")
def cube():
    corners = [[x, y, -0.1] for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    return free_body(pp.Points(corners), (0.04 / 6,) * 3)


@pytest.fixture(scope="module")
def walker():
    """A body on two legs of two joints, with point feet."""
    builder = pp.Builder("walker")
    builder.body("trunk", mass=5.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("root", "free", parent="world", child="trunk")
    for side, y in (("left", 0.1), ("right", -0.1)):
        thigh, shank = f"{side}_thigh", f"{side}_shank"
        limb = {"mass": 0.5, "inertia": (2e-3, 2e-3, 1e-3), "com": (0, 0, -0.1)}
        builder.body(thigh, **limb)
        builder.body(shank, **limb)
        builder.joint(
            f"{side}_hip", "revolute", parent="trunk", child=thigh, axis=(0, 1, 0), xyz=(0, y, -0.1)
        )
        builder.joint(
            f"{side}_knee", "revolute", parent=thigh, child=shank, axis=(0, 1, 0), xyz=(0, 0, -0.2)
        )
        builder.frame(f"{side}_foot", shank, xyz=(0, 0, -0.2))
    return pp.Robot.of(builder.build()).with_contacts({"*_foot": pp.Sphere(0.02)})


def close(found, expected, tolerance=1e-6):
    limit = tolerance * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=limit)


def agree(robot, q, v, tau, ground=RIGID, dt=DT, **options):
    """jvp against central differences, and vjp against jvp. Returns the motion."""
    rng = np.random.default_rng(0)
    dq, dv = rng.standard_normal((2, robot.nv))
    dtau, dmu = rng.standard_normal(np.shape(tau)), 0.3

    def motion(s):
        moved = robot.integrate(q, s * dq), v + s * dv
        own = replace(ground, friction=ground.friction + s * dmu)
        return pp.rollout(robot, *moved, tau + s * dtau, dt, contacts=own, **options)

    here = motion(0.0)
    dq_out, dv_out = here.jvp(q=dq, v=dv, tau=dtau, ground_friction=dmu)
    ahead, behind = motion(1e-6), motion(-1e-6)
    close(dq_out, (ahead.q - behind.q) / 2e-6)
    close(dv_out, (ahead.v - behind.v) / 2e-6)
    weights = rng.standard_normal(here.q.shape), rng.standard_normal(here.v.shape)
    bars = here.vjp(*weights)
    forward = np.sum(weights[0] * dq_out) + np.sum(weights[1] * dv_out)
    reverse = bars["q"] @ dq + bars["v"] @ dv + np.sum(bars["tau"] * dtau)
    close(reverse + dmu * bars["ground_friction"].sum(), forward, 1e-9)
    return here


def test_a_sliding_sphere_has_the_derivatives_of_coulombs_law(sphere):
    """v+ = v - mu lambda d, where d is the direction of slip and lambda the impulse of landing."""
    q, v = on_ground(sphere, 0.0), np.array([0, 0, 0, 3.0, 4.0, -0.5])
    q[2] += 1e-5  # the last part of the way down: c_n = -gap / h
    motion = pp.rollout(sphere, q, v, np.zeros(6), dt=DT, steps=1, contacts=RIGID)
    impulse = 0.5 + GRAVITY * DT - 1e-5 / DT
    weight = np.zeros_like(motion.q)
    weight[1, 0] = 1.0 / DT  # of the speed along x
    bars = motion.vjp(weight)
    close(bars["ground_friction"], [-0.6 * impulse], 1e-10)
    # the direction of slip turns with v_y and the spin, the impulse grows with the speed of landing
    turn = MU * impulse / 5.0
    spin = [0.048 * turn, 0.064 * turn, 0.0]
    close(bars["v"], [*spin, 1 - 0.64 * turn, 0.48 * turn, 0.6 * MU], 1e-10)
    close(bars["tau"][3:], DT * bars["v"][3:], 1e-12)
    close(bars["q"][5], 0.6 * MU / DT, 1e-10)


@pytest.mark.parametrize(
    "ground",
    [
        RIGID,
        pp.Ground(friction=MU, stiffness=1e4, damping=30.0),
        pp.Ground(friction=MU, restitution=0.5),
    ],
    ids=["rigid", "compliant", "rebounds"],
)
def test_derivatives_of_each_mode_agree_with_differences(sphere, ground):
    q = on_ground(sphere)
    for v in ([0, 0, 0, 1, 0.3, -0.3], [0.2, 3, 0.1, 0.3, 0, -0.3], [0.1, 0.2, 0.3, 0, 0, 2.0]):
        agree(sphere, q, np.array(v, dtype=float), np.full(6, 0.1), ground, steps=1)
    v, tau = np.array([0.2, 3, 0.1, 0.5, 0, -0.3]), np.full((4, 6), 0.1)
    agree(sphere, q, v, tau, ground, steps=4)
    agree(sphere, q, v, tau, ground, steps=4, every=2)


def test_redundant_corners_have_derivatives_while_they_hold(cube):
    """A has rank 6 of 12; a corner more or less changes nothing."""
    tau = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06])
    agree(cube, on_ground(cube), np.array(LANDS, dtype=float), tau, steps=2)


def test_a_sliding_block_of_two_hundred_steps(cube):
    """x = v t - mu g h^2 n (n + 1) / 2, whichever corners carry the load."""
    q, v = cube.on_ground(cube.neutral()), [0, 0, 0, 1.0, 0, 0]
    motion = pp.rollout(cube, q, v, dt=DT, steps=200, contacts=RIGID)
    weight = np.zeros_like(motion.q)
    weight[-1, 0] = 1.0
    bars = motion.vjp(weight)
    close(bars["v"][3], 0.2, 1e-9)
    close(bars["ground_friction"].sum(), -GRAVITY * DT**2 * 200 * 201 / 2, 1e-9)


def test_corners_that_slip_apart_have_no_derivative(cube):
    """How they share the load decides the friction, and the law does not say it."""
    q, turns = on_ground(cube), [0, 0, 1.0, 1.0, 0.3, -0.3]
    motion = pp.rollout(cube, q, turns, dt=DT, steps=1, contacts=RIGID)
    with pytest.raises(pp.SingularError, match="share the load"):
        motion.vjp(np.ones_like(motion.q))
    motion = pp.rollout(cube, q, np.array([turns, LANDS]), dt=DT, steps=1, contacts=RIGID)
    bars = motion.vjp(np.ones_like(motion.q))
    assert np.isnan(bars["v"][0]).all() and np.isfinite(bars["v"][1]).all()
    soft = pp.Ground(friction=MU, stiffness=1e5, damping=100.0)
    agree(cube, q, np.array(turns), np.full(6, 0.01), soft, steps=1)


def test_a_walking_robot(walker):
    """Feet land, stick, slip and lift off."""
    posture = walker.neutral()
    posture[7:] = [0.4, -0.8, 0.2, -0.5]
    q, rng = on_ground(walker, q=posture), np.random.default_rng(3)
    v, modes = np.zeros(10), set()
    for speed, mu in ((0.02, 2.0), (0.3, 0.3), (0.02, 0.3), (0.3, 2.0)):
        v[:6], tau = speed * rng.standard_normal(6), rng.standard_normal((5, 10))
        ground = pp.Ground(friction=mu)
        motion = agree(walker, q, v, tau, ground, dt=2e-3, steps=5)
        modes |= set(walker.step(q, v, tau[0], 2e-3, contacts=ground)[2].modes.tolist())
    assert {1, 2} <= modes
    assert motion.contact_residual.max() < 1e-9


def test_losses_of_joints_on_a_ground(walker):
    """Implicit dampers and springs, and joint friction, whose name the ground's friction shares."""
    posture, joints = walker.neutral(), np.repeat([0.0, 1.0], [6, 4])
    posture[7:] = [0.4, -0.8, 0.2, -0.5]
    q, dv = on_ground(walker, q=posture), np.random.default_rng(2).standard_normal(10)
    losses = {"damping": 30.0 * joints, "friction": 0.3 * joints, "springs": 200.0 * joints}

    def motion(s):
        run = {"dt": 2e-3, "steps": 5, "contacts": RIGID}
        return pp.rollout(walker, q, 0.1 * joints + s * dv, **losses, **run)

    _, along = motion(0.0).jvp(v=dv)
    close(along, (motion(1e-6).v - motion(-1e-6).v) / 2e-6)


def test_gains_and_masses_on_a_ground(walker):
    """The gradient with respect to a controller's numbers and the robot's masses."""
    free = walker.free("mass")
    posture = walker.neutral()
    posture[7:] = [0.4, -0.8, 0.2, -0.5]
    q, p = on_ground(walker, q=posture), free.parameters()

    def motion(p, kp=30.0):
        robot = free.at(p)
        law = pp.PD(robot, posture, kp=kp, kd=0.5)
        return pp.rollout(robot, q, tau=law, dt=2e-3, steps=20, every=5, contacts=RIGID)

    here = motion(p)
    w = np.random.default_rng(0).standard_normal(here.v.shape)
    bars, dp = here.vjp(None, w), np.arange(1.0, len(p) + 1.0)
    by_p = np.sum(w * (motion(p + 1e-6 * dp).v - motion(p - 1e-6 * dp).v)) / 2e-6
    by_kp = np.sum(w * (motion(p, 30.0 + 1e-5).v - motion(p, 30.0 - 1e-5).v)) / 2e-5
    close(bars["parameters"] @ dp, by_p)
    close(bars["kp"].sum(), by_kp)


def test_torch_and_jax_have_the_same_derivatives(sphere):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    q, v, tau = on_ground(sphere), np.array([0.1, 0.2, 0.3, 0.4, 0.1, -0.2]), np.full((3, 6), 0.1)
    run = {"dt": DT, "steps": 3, "contacts": RIGID}
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, v, tau)]
    f = lambda q, v, tau: tuple(pp.rollout(sphere, q, v, tau, **run))  # noqa: E731
    checked = {"eps": 1e-7, "atol": 1e-4, "rtol": 1e-5}
    assert torch.autograd.gradcheck(f, inputs, **checked, check_forward_ad=True)
    with jax.enable_x64(True):
        loss = lambda v, tau: (pp.rollout(sphere, q, v, tau, **run).v[-1] ** 2).sum()  # noqa: E731
        gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))(v, tau)
    motion = pp.rollout(sphere, q, v, tau, **run)
    weight = np.zeros_like(motion.v)
    weight[-1] = 2.0 * motion.v[-1]
    bars = motion.vjp(None, weight)
    close(gradient[0], bars["v"], 1e-12)
    close(gradient[1], bars["tau"], 1e-12)
    other = pp.simulate(sphere, q, v, tau=tau[0], duration=3 * DT, dt=DT, contacts=RIGID)
    close(other.vjp(None, weight)["v"], bars["v"], 1e-12)


def test_steps_of_torch_and_jax(sphere):
    """Also from far inside the ground, where steps may lead and motions may not start."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    q, v, tau = on_ground(sphere, 0.01), np.array([0.1, 0.2, 0.3, 0.4, 0.1, -0.2]), np.full(6, 0.1)
    expected = sphere.step(q, v, tau, DT, contacts=RIGID)
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, v, tau)]
    after = sphere.step(*inputs, DT, contacts=RIGID)
    for x, y in zip((*after[:2], *after[2]), (*expected[:2], *expected[2]), strict=True):
        assert np.array_equal(x.detach(), y)
    assert not after[2].forces.requires_grad
    f = lambda *x: sphere.step(*x, DT, contacts=RIGID)[:2]  # noqa: E731
    assert torch.autograd.gradcheck(f, inputs, eps=1e-7, atol=1e-4, rtol=1e-5)
    (after[1] ** 2).sum().backward()
    with jax.enable_x64(True):
        step = lambda v: sphere.step(q, v, tau, DT, contacts=RIGID)  # noqa: E731
        close(
            jax.jit(jax.grad(lambda v: (step(v)[1] ** 2).sum()))(v), inputs[1].grad.numpy(), 1e-12
        )
        close(jax.jit(lambda v: step(v)[2].forces)(v), expected[2].forces, 1e-12)
    light = sphere.free("mass")
    p = torch.tensor(light.parameters(), dtype=torch.float64, requires_grad=True)
    light.at(p).step(q, v, tau, DT, contacts=RIGID)[1].sum().backward()
    at = lambda e: light.at(light.parameters() + e).step(q, v, tau, DT, contacts=RIGID)  # noqa: E731
    close(p.grad.numpy(), [(at(1e-6)[1].sum() - at(-1e-6)[1].sum()) / 2e-6])
    with pytest.raises(pp.StateError, match="dt is an array"):
        sphere.step(*inputs, np.full(2, DT), contacts=RIGID)


def test_what_has_no_derivative_says_so(cube, sphere):
    q = on_ground(cube)
    rough = pp.Ground(friction=MU, iterations=1)
    motion = pp.rollout(cube, q, [1, 2, 1, 1, 0.3, -0.3], steps=3, contacts=rough)
    with pytest.raises(pp.SingularError, match="tolerance"):
        motion.vjp(np.ones_like(motion.q))
    motion = pp.rollout(sphere, on_ground(sphere), LANDS, steps=1, contacts=RIGID)
    with pytest.raises(pp.StateError, match="second derivatives"):
        motion.hvp(np.ones_like(motion.q), q=np.ones(6))
    many = free_body(pp.Points(np.random.default_rng(0).standard_normal((19, 3))), (0.1, 0.1, 0.1))
    motion = pp.rollout(many, on_ground(many), steps=1, contacts=RIGID)
    with pytest.raises(pp.StateError, match="19 contact points"):
        motion.vjp(np.ones_like(motion.q))
