"""The laws of `pp.Ground(law=, smooth=)`, beside dense problems solved by another method."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import psiphi as pp

GRAVITY, DT, MU = 9.81, 2e-3, 0.6
CORNERS = [(x, y, -0.1) for x in (-0.12, 0.1) for y in (-0.08, 0.1)]


@pytest.fixture(scope="module")
def block():
    """A free body with four corners."""
    builder = pp.Builder("block")
    builder.body("link", mass=2.0, inertia=(0.02, 0.03, 0.04), com=(0.01, 0.0, 0.02))
    builder.joint("root", "free", parent="world", child="link")
    return pp.Robot.of(builder.build()).with_contacts({"link": pp.Points(CORNERS)})


@pytest.fixture(scope="module")
def biped():
    """A trunk on two legs of two joints; each foot has four points."""
    builder = pp.Builder("biped")
    builder.body("trunk", mass=5.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("root", "free", parent="world", child="trunk")
    for side, y in (("left", 0.1), ("right", -0.1)):
        parent, at = "trunk", (0, y, -0.1)
        for part, axis in (("thigh", (0, 1, 0)), ("foot", (1, 0, 0))):
            builder.body(f"{side}_{part}", mass=0.5, inertia=(2e-3, 2e-3, 1e-3), com=(0, 0, -0.1))
            builder.joint(f"{side}_{part}", "revolute", parent, f"{side}_{part}", axis=axis, xyz=at)
            parent, at = f"{side}_{part}", (0, 0, -0.2)
    feet = pp.Points([(x, y, -0.2) for x in (-0.05, 0.1) for y in (-0.03, 0.03)])
    return pp.Robot.of(builder.build()).with_contacts({"*_foot": feet})


def states(robot, count, seed=0, depth=1e-3):
    """Random states near the ground, some a little inside."""
    rng = np.random.default_rng(seed)
    turns = 0.05 * rng.standard_normal((count, robot.nv))
    q = robot.on_ground(robot.integrate(robot.neutral(), turns, 1.0))
    q[:, 2] += depth * rng.uniform(-1, 1, count)
    return q, rng.standard_normal((count, robot.nv))


def dense(robot, q, v, dt=DT):
    """The mass matrix, v_f, the rows of the contacts and their c = J v_f + b, without psiphi's
    solver: [normal, x, y] for each point."""
    M, rest = robot.mass_matrix(q), np.zeros_like(v)
    a = np.linalg.solve(M, -robot.inverse_dynamics(q, v, rest)[..., None])[..., 0]
    a[..., 3:6] += np.cross(v[..., :3], v[..., 3:6])  # in the axes at the start of the step
    free, rows, bias = v + dt * a, [], []
    for point in robot.contact_points:
        T, J = robot.frame_pose(q, point.frame), robot.jacobian(q, point.frame)
        lever = T[:, :3, :3] @ np.array(point.center)
        gap = T[:, 2, 3] + lever[:, 2]
        bias.append(np.where(gap < 0, np.maximum(0.2 * gap / dt, -0.1), gap / dt))
        for axis in np.eye(3)[[2, 0, 1]]:
            wrench = np.concatenate([np.cross(lever, axis), np.broadcast_to(axis, lever.shape)], -1)
            rows.append(np.einsum("ni,nij->nj", wrench, J))
    J = np.stack(rows, axis=1)
    c = np.einsum("nij,nj->ni", J, free)
    c[:, ::3] += np.stack(bias, axis=1)
    return M, free, J, c


def at_start(robot, q, after):
    """v after a step in the axes at its start."""
    q1, v1 = after[0], after[1].copy()
    old, new = (robot.frame_pose(x, robot.bodies[0].name) for x in (q, q1))
    turn = np.einsum("nji,njk->nik", old[:, :3, :3], new[:, :3, :3])
    for rows in (slice(0, 3), slice(3, 6)):
        v1[:, rows] = np.einsum("nij,nj->ni", turn, v1[:, rows])
    return v1


def on_cone(z, mu):
    """The point of the friction cone next to z (..., 3)."""
    n, t = z[..., 0], np.linalg.norm(z[..., 1:], axis=-1)
    share = np.maximum(n + mu * t, 0.0) / (1 + mu * mu)
    edge = np.stack([share, *(mu * share / np.maximum(t, 1e-300) * z[..., k] for k in (1, 2))], -1)
    return np.where((t <= mu * n)[..., None], z, edge)


def test_the_convex_law_is_the_minimum_of_its_energy(block):
    """min 1/2 lambda G lambda + c lambda over the cones, by accelerated projected gradients."""
    q, v = states(block, 20)
    M, free, J, c = dense(block, q, v)
    response = np.linalg.solve(M, J.transpose(0, 2, 1))
    G = J @ response
    step = 1.0 / np.linalg.eigvalsh(G)[:, -1]
    lam = ahead = np.zeros_like(c)
    for k in range(20000):
        new = ahead - step[:, None] * (np.einsum("nij,nj->ni", G, ahead) + c)
        new = on_cone(new.reshape(len(q), -1, 3), MU).reshape(c.shape)
        ahead, lam = new + k / (k + 3) * (new - lam), new
    expected = free + np.einsum("nij,nj->ni", response, lam)
    found = block.step(q, v, np.zeros(6), DT, contacts=pp.Ground(friction=MU, law="convex"))
    assert found[2].residual.max() < 1e-6
    np.testing.assert_allclose(at_start(block, q, found), expected, atol=2e-6)
    coulomb = block.step(q, v, np.zeros(6), DT, contacts=pp.Ground(friction=MU))
    assert abs(coulomb[1] - found[1]).max() > 0.1


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_smoothed_impulses_obey_their_law(biped, law):
    """Coulomb: m lambda_n c_n = (m e)^2 / 4 with m = mass / contacts, friction against the sliding,
    inside the cone. Convex: the gradient of a smoothed conjugate, p(y) of the spectral form."""
    q, v = states(biped, 20)
    _, _, J, c = dense(biped, q, v)
    speed = 0.02
    ground = pp.Ground(friction=MU, law=law, smooth=speed)
    found = biped.step(q, v, np.zeros(biped.nv), DT, contacts=ground)
    assert found[2].residual.max() < 1e-6
    lam = DT * found[2].forces[..., [2, 0, 1]]
    bias = c - np.einsum("nij,nj->ni", J, dense(biped, q, v)[1])
    u = np.einsum("nij,nj->ni", J, at_start(biped, q, found)) + bias
    u, m = u.reshape(lam.shape), sum(body.mass for body in biped.bodies) / lam.shape[1]
    if law == "coulomb":
        assert m * lam[..., 0] * u[..., 0] == pytest.approx((m * speed) ** 2 / 4, rel=1e-2)
        across = lam[..., 1] * u[..., 2] - lam[..., 2] * u[..., 1]
        assert abs(across).max() < 1e-6
        assert (lam[..., 1:] * u[..., 1:]).sum(axis=-1).max() <= 1e-9
    else:
        y = lam / m - u  # spectral values of the cone of angle arctan mu
        t = np.linalg.norm(y[..., 1:], axis=-1)
        plus = lambda x: (x + np.sqrt(x * x + speed * speed)) / 2  # noqa: E731
        inner, outer = plus(y[..., 0] - t / MU), plus(y[..., 0] + MU * t)
        expected = (MU**2 * inner + outer) / (1 + MU**2), MU * (outer - inner) / (1 + MU**2)
        assert lam[..., 0] / m == pytest.approx(expected[0], abs=1e-6)
        assert np.linalg.norm(lam[..., 1:], axis=-1) / m == pytest.approx(expected[1], abs=1e-6)
    assert (np.linalg.norm(lam[..., 1:], axis=-1) <= MU * lam[..., 0] + 1e-12).all()


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_smoothed_laws_tend_to_the_rigid_law(block, law):
    """Where its solution is unique: the four corners land and stick."""
    q, v = block.on_ground(block.neutral()), np.array([0.01, 0.02, 0.03, 0.05, -0.02, -0.4])
    rigid = pp.Ground(friction=MU, law=law)
    expected = block.step(q, v, np.zeros(6), DT, contacts=rigid)[1]
    errors = [
        abs(block.step(q, v, np.zeros(6), DT, contacts=replace(rigid, smooth=e))[1] - expected)
        for e in (1e-1, 1e-2, 1e-3, 1e-4)
    ]
    sizes = [error.max() for error in errors]
    assert all(b < 0.5 * a for a, b in pairwise(sizes))
    assert sizes[-1] < 1e-5


def test_a_block_that_slides_lifts_under_the_convex_law_only(block):
    """c_n = mu |c_t| where it slides: it lifts at mu v."""
    puck = block.with_contacts({"link": pp.Points([(0.01, 0.0, 0.02)])})  # at its centre of mass
    q, v = puck.on_ground(puck.neutral()), np.array([0, 0, 0, 1.0, 0, 0])
    gravity = GRAVITY * DT
    for law in ("coulomb", "convex"):
        after = puck.step(q, v, np.zeros(6), DT, contacts=pp.Ground(friction=MU, law=law))[1]
        # u = v - g h + lambda / m, (u_t, u_n) = (1 - mu l, l - g h) with u_n = mu u_t or 0
        push = gravity if law == "coulomb" else (MU + gravity) / (1 + MU**2)
        expected = [1 - MU * push, push - gravity]
        assert after[[3, 5]] == pytest.approx(expected, abs=1e-8)


def test_smoothed_contacts_push_at_a_distance_and_carry_the_weight(block):
    """At rest at a height g: f = m g / 4 each, m' f h g / h = (m' e)^2 / 4."""
    speed, ground = 0.02, pp.Ground(friction=MU, smooth=0.02)
    q = block.on_ground(block.neutral())
    motion = pp.simulate(block, q, duration=0.6, dt=DT, contacts=ground)
    assert motion.forces[-1].sum(axis=0) == pytest.approx([0, 0, 2.0 * GRAVITY], abs=1e-5)
    load = motion.forces[-1, :, 2] * DT
    assert motion.gaps[-1] / DT == pytest.approx(0.5 * speed**2 / 4 / load, rel=1e-3)
    assert (motion.gaps[-1] > 0).all() and motion.contact_residual.max() < 1e-6
    above = block.on_ground(block.neutral())
    above[2] += 0.01
    far = block.step(above, np.zeros(6), np.zeros(6), DT, contacts=ground)[2]
    assert (far.forces[:, 2] > 0).all() and (far.modes == 0).all()


GROUNDS = [
    pp.Ground(friction=MU, smooth=0.05),
    pp.Ground(friction=MU, smooth=0.05, law="convex", stiffness=2e4, damping=50.0),
    pp.Ground(friction=MU, law="convex"),
]


@pytest.mark.parametrize("ground", GROUNDS, ids=["smooth", "smooth convex compliant", "convex"])
def test_derivatives_are_those_of_the_law(block, ground):
    """Also where four corners slip apart, for which the rigid law has no derivative."""
    rng = np.random.default_rng(0)
    q = block.on_ground(block.neutral()) - [0, 0, 2e-4, 0, 0, 0, 0]
    v, tau = np.array([0.05, 0.1, 1.0, 0.4, 0.3, -0.3]), np.full((3, 6), 0.1)
    dq, dv = rng.standard_normal((2, 6))
    dtau, dmu = rng.standard_normal(tau.shape), 0.3

    def motion(s):
        own = replace(ground, friction=MU + s * dmu)
        moved = block.integrate(q, s * dq), v + s * dv
        return pp.rollout(block, *moved, tau + s * dtau, 1e-3, steps=3, contacts=own)

    here, size = motion(0.0), 1e-6
    dq_out, dv_out = here.jvp(q=dq, v=dv, tau=dtau, ground_friction=dmu)
    ahead, behind = motion(size), motion(-size)
    for found, pair in ((dq_out, "q"), (dv_out, "v")):
        expected = (getattr(ahead, pair) - getattr(behind, pair)) / (2 * size)
        np.testing.assert_allclose(found, expected, atol=3e-6 * max(1.0, abs(expected).max()))
    weights = rng.standard_normal(here.q.shape), rng.standard_normal(here.v.shape)
    bars = here.vjp(*weights)
    forward = np.sum(weights[0] * dq_out) + np.sum(weights[1] * dv_out)
    reverse = bars["q"] @ dq + bars["v"] @ dv + np.sum(bars["tau"] * dtau)
    assert reverse + dmu * bars["ground_friction"].sum() == pytest.approx(forward, rel=1e-9)


def test_falls_on_flat_feet_are_solved_at_every_step(biped):
    """The points of a foot are redundant: Newton's method alone runs in circles in some steps, and
    follows the path of smoothed laws there. Results do not depend on the batch."""
    q, v = states(biped, 40, seed=2)
    options = {"steps": 150, "dt": DT, "contacts": pp.Ground(friction=0.7), "damping": 0.2}
    motion = pp.rollout(biped, q, 2.0 * v, **options)
    assert motion.contact_residual.max() < 1e-6
    again = pp.rollout(biped, q[::-1][:13], 2.0 * v[::-1][:13], **options)
    assert np.array_equal(again.q, motion.q[::-1][:13])


@pytest.mark.parametrize("ground", GROUNDS[:2], ids=["smooth", "convex"])
def test_results_do_not_depend_on_the_batch(block, ground):
    q, v = states(block, 11)
    options = {"steps": 20, "dt": DT, "contacts": ground}
    together = pp.rollout(block, q, v, **options)
    assert together.contact_residual.max() < 1e-6
    again = pp.rollout(block, q[::-1], v[::-1], **options)
    assert np.array_equal(again.q[::-1], together.q)
    assert np.array_equal(pp.rollout(block, q[3], v[3], **options).q, together.q[3])


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"law": "Coulomb"}, "expected one of coulomb, convex"),
        ({"law": 3}, "expected one of"),
        ({"smooth": -1e-3}, "at least 0"),
        ({"smooth": np.nan}, "at least 0"),
        ({"smooth": [0.1, 0.2]}, "one finite number"),
        ({"smooth": 1e-9}, "1e-06 to 1 m/s"),
        ({"smooth": 10.0}, "1e-06 to 1 m/s"),
        ({"smooth": True}, "one finite number"),
        ({"smooth": "soft"}, "smooth"),
    ],
)
def test_bad_laws_are_refused(argument, text):
    with pytest.raises(pp.Error, match=text):
        pp.Ground(**argument)
