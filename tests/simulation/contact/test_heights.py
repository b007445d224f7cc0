"""Grounds of heights, beside planes, dense searches, MuJoCo's height fields and mechanics."""

from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.compiler.ir.lane_blocks import GridLookup
from psiphi.model.contact.height_field import HeightGrid
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import contact_gaps

GRAVITY, DT, SLOPE = 9.81, 1e-3, 0.3
NODES = np.linspace(-5.0, 5.0, 21)
TILTED = np.outer(SLOPE * NODES, np.ones(11))
HILLS = 0.1 * np.sin(2.0 * NODES)[:, None] + 0.05 * np.linspace(-2.0, 2.0, 11) ** 2
SIZE = (10.0, 4.0)


@pytest.fixture(scope="module")
def body():
    """A free body without contact shapes."""
    builder = pp.Builder("body")
    builder.body("link", mass=1.0, inertia=(0.004, 0.004, 0.004))
    builder.joint("root", "free", parent="world", child="link")
    return pp.Robot.of(builder.build())


@pytest.fixture(scope="module")
def ball(body):
    return body.with_contacts({"link": pp.Sphere(0.1)})


@pytest.fixture(scope="module")
def sole(body):
    corners = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    return body.with_contacts({"link": pp.Points(corners)})


@pytest.fixture(params=["ball", "sole"])
def robot(request):
    return request.getfixturevalue(request.param)


def raised(q, z, x=0.0):
    """q with the base moved by x and z."""
    moved = np.array(q)
    moved[..., 0] += x
    moved[..., 2] += z
    return moved


def heights(height, **options):
    return pp.Ground(height=height, size=SIZE, **{"friction": 0.3, **options})


def test_a_plane_of_heights_is_a_plane(robot):
    """On one terrain with a batch: forces, gaps and motion; gaps of points are those along the
    normal."""
    cosine = 1.0 / np.hypot(1.0, SLOPE)
    plane = pp.Ground(friction=0.3, normal=(-SLOPE * cosine, 0.0, cosine))
    q = robot.on_ground(robot.neutral(), plane)
    starts = np.stack([q, raised(q, 0.01), q])
    speeds = np.array([[0.0] * 6, [0.1, 0.2, 0.3, 0.5, 0.5, -0.5], [0, 0, 0, 1.0, 0.3, 0]])
    motions = [
        pp.simulate(robot, starts, speeds, duration=0.2, dt=DT, contacts=ground)
        for ground in (plane, heights(TILTED))
    ]
    for name, tolerance in (("q", 1e-8), ("v", 1e-7), ("forces", 1e-5), ("gaps", 1e-9)):
        found, expected = (getattr(motion, name) for motion in reversed(motions))
        np.testing.assert_allclose(found, expected, atol=tolerance, rtol=0.0, err_msg=name)
    np.testing.assert_array_equal(*(motion.modes for motion in motions))
    with_heights = robot.on_ground(q, heights(TILTED))
    assert np.abs(contact_gaps(GroundContact(robot, plane), with_heights).min()) < 1e-9
    # a lifted terrain carries the same motion
    moved = pp.simulate(
        robot, raised(starts, 3 + SLOPE, 1.0), speeds, duration=0.05, dt=DT,
        contacts=heights(TILTED, point=(0, 0, 3.0)),
    )  # fmt: skip
    np.testing.assert_allclose(moved.v, motions[0].v[:, : moved.v.shape[1]], atol=1e-7)


def test_each_motion_of_a_batch_has_its_terrain(robot):
    """One kernel: the same bits as alone. No energy is made."""
    terrains = np.stack([k * 0.2 * HILLS for k in range(9)])
    q = robot.on_ground(np.tile(robot.neutral(), (9, 1)), heights(terrains))
    v = np.tile([0.3, -0.2, 0.5, 1.0, 0.4, 0.0], (9, 1))
    options = {"steps": 150, "dt": DT}
    states = pp.rollout(robot, q, v, contacts=heights(terrains), **options)
    for k in (0, 4, 8):
        alone = pp.rollout(robot, q[k], v[k], contacts=heights(terrains[k]), **options)
        np.testing.assert_array_equal(states.q[k], alone.q)
    assert states.contact_residual.max() < 1e-6
    energy = robot.kinetic_energy(states.q, states.v) + robot.potential_energy(states.q)
    # a step may let a point come as far as an edge, and undoes the rest of a depth
    assert (energy <= energy[:, :1] + 2e-3).all()
    with pytest.raises(Error, match=r"batch axes \(9,\), and the state \(4,\)"):
        pp.rollout(robot, q[:4], v[:4], contacts=heights(terrains), **options)
    motion = pp.simulate(robot, q, v, duration=20 * DT, dt=DT, contacts=heights(terrains))
    np.testing.assert_allclose(motion.q, states.q[:, :21], atol=1e-12)
    gaps = [contact_gaps(GroundContact(robot, heights(terrains[k])), motion.q[k]) for k in range(9)]
    np.testing.assert_array_equal(motion.gaps, gaps)


def surface(grid, z, u, w):
    """The heights at points in units of the grid; beyond the border those of the border."""
    u, w = np.clip(u, 0, grid.shape[0] - 1), np.clip(w, 0, grid.shape[1] - 1)
    i, j = (np.minimum(np.floor(x), n - 2).astype(int) for x, n in zip((u, w), grid.shape))  # noqa: B905
    x, y, a, c = u - i, w - j, z[i, j], z[i + 1, j + 1]
    low, high = z[i + 1, j], z[i, j + 1]
    below = a + x * (low - a) + y * (c - low)
    return grid.origin[2] + np.where(y < x, below, a + x * (c - high) + y * (high - a))


@pytest.mark.parametrize("radius", [0.1, 0.35, 0.58, 0.7])
def test_the_distance_of_a_sphere_is_that_of_a_dense_search(radius):
    """At places inside the grid, at its border and beyond, above and below the surface."""
    rng = np.random.default_rng(0)
    z = 0.6 * rng.standard_normal((6, 5))
    grid = HeightGrid((6, 5), (-1.0, 2.0, 0.3), (0.5, 0.6))
    m = grid.block_of(radius)
    assert m == {0.1: 2, 0.35: 3, 0.58: 4, 0.7: 5}[radius]
    fine = np.linspace(-1.0, 1.0, 301)
    checked = 0
    for _ in range(60):
        u, w = rng.uniform(-1.5, 6.5), rng.uniform(-1.5, 5.5)
        x, y = grid.origin[0] + u * 0.5, grid.origin[1] + w * 0.6
        center = np.array([x, y, surface(grid, z, u, w) + rng.uniform(-0.3, 0.8)])
        du, dw = np.meshgrid(2.5 * radius * fine / 0.5, 2.5 * radius * fine / 0.6, indexing="ij")
        points = np.stack([x + 0.5 * du, y + 0.6 * dw, surface(grid, z, u + du, w + dw)], axis=-1)
        away = center - points.reshape(-1, 3)
        sizes = np.linalg.norm(away, axis=1)
        k = int(sizes.argmin())
        side = np.sign(center[2] - surface(grid, z, u, w))
        at = np.array(grid.grid_point(list(center), m))
        cells = GridLookup(grid.shape, (m,)).on(at, z.ravel())["cells"]
        touch = grid.touch(list(center), radius, m, list(cells))
        assert np.linalg.norm(touch.normal) == pytest.approx(1.0)
        if sizes[k] < radius:  # what it touches is within the block
            checked += 1
            assert side * (touch.gap + radius) < sizes[k] + 1e-12, "nothing is closer"
            np.testing.assert_allclose(touch.lever, -radius * np.array(touch.normal))
            foot = center - (touch.gap + radius) * np.array(touch.normal)
            u, w = (foot[:2] - grid.origin[:2]) / grid.spacing
            assert foot[2] == pytest.approx(surface(grid, z, u, w), abs=1e-9), "it is on the ground"
        else:
            assert touch.gap > -1e-9 or side < 0
    assert checked > 8


def test_a_table_beyond_its_border_is_the_border():
    table, lookup = np.arange(12.0), GridLookup((3, 4), (1, 2))
    points = np.array([-7.5, 9.0, 1.25, 2.0])
    found = lookup.on(points, table)["cells"]
    np.testing.assert_array_equal(found[:6], [-8, 9, 3, 3, 3, 3])
    np.testing.assert_array_equal(found[6:], [1, 2, 6, 7, 7, 10, 11, 11, 10, 11, 11])
    assert np.isfinite(lookup.on(np.array([np.nan, np.inf, -np.inf, 0.0]), table)["cells"]).all()


def test_a_ball_rolls_over_hills_as_in_mujoco(ball):
    """With MuJoCo's contacts as stiff as they are stable; from the same start."""
    mujoco = pytest.importorskip("mujoco")
    n, side = 41, 2.0
    x = np.linspace(-side, side, n)
    z = 0.15 * x[:, None] ** 2 + 0.1 * x[None, :] ** 2 + 0.05 * x[:, None] * x[None, :]
    low, high = z.min(), z.max()
    xml = f"""<mujoco><option timestep="0.0005" integrator="implicitfast"/>
      <asset><hfield name="h" nrow="{n}" ncol="{n}" size="{side} {side} {high - low} 0.5"/></asset>
      <worldbody><geom type="hfield" hfield="h" pos="0 0 {low}" friction="1 0 0" condim="3"
        solref="0.002 1" solimp="0.99 0.999 0.0001"/>
      <body><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="0.004 0.004 0.004"/>
        <geom type="sphere" size="0.1" friction="1 0 0" solref="0.002 1"
          solimp="0.99 0.999 0.0001"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    model.hfield_data[:] = ((z.T - low) / (high - low)).ravel()  # rows are along y there
    data = mujoco.MjData(model)
    ground = pp.Ground(friction=1.0, height=z, size=(2 * side, 2 * side))
    q = ball.on_ground(np.array([0.8, 0.5, 1.0, 0, 0, 0, 1.0]), ground)
    data.qpos[:] = [*q[:3], 1, 0, 0, 0]
    steps = 800
    states = pp.rollout(ball, q, steps=steps, dt=DT, contacts=ground)
    for _ in range(2 * steps):
        mujoco.mj_step(model, data)
    travelled = np.linalg.norm(states.q[-1, :3] - q[:3])
    assert travelled > 0.4
    assert np.linalg.norm(states.q[-1, :3] - data.qpos[:3]) < 0.03 * travelled


@pytest.mark.parametrize("case", ["ball", "sole", "soft ball"])
def test_derivatives_are_those_of_differences(case, request):
    """While each point stays on its triangle, and each contact in its mode."""
    extra = {"stiffness": 2e3, "damping": 10.0} if case == "soft ball" else {}
    robot = request.getfixturevalue(case.split()[-1])
    rng, ground = np.random.default_rng(0), heights(HILLS, **extra)
    tilt = np.array([0.3, 0.2, 0.1, 0.31, 0.17, 0.0])
    q = robot.on_ground(robot.integrate(robot.neutral(), tilt, 1.0), ground)
    q[2] -= 2e-4
    v, tau = np.array([0.1, 0.2, 0.3, 0.5, 0.3, -0.3]), np.zeros(6)
    dq, dv, dtau = rng.standard_normal((3, 6))

    def motion(s):
        own = replace(ground, friction=0.3 + 0.3 * s)
        start = robot.integrate(q, s * dq), v + s * dv
        return pp.rollout(robot, *start, tau + s * dtau, DT, steps=4, contacts=own)

    here, ahead, behind = motion(0.0), motion(1e-7), motion(-1e-7)
    dQ, dV = here.jvp(q=dq, v=dv, tau=dtau, ground_friction=0.3)
    np.testing.assert_allclose(dQ, (ahead.q - behind.q) / 2e-7, atol=1e-6)
    np.testing.assert_allclose(dV, (ahead.v - behind.v) / 2e-7, rtol=1e-6, atol=1e-4)
    wq, wv = rng.standard_normal(dQ.shape), rng.standard_normal(dV.shape)
    bars = here.vjp(wq, wv)
    assert "ground_height" not in bars
    mu = 0.3 * np.sum(bars["ground_friction"])
    total = bars["q"] @ dq + bars["v"] @ dv + np.sum(bars["tau"] @ dtau) + mu
    assert total == pytest.approx((wq * dQ).sum() + (wv * dV).sum(), rel=1e-9)


def test_a_ball_in_a_groove_rests(ball):
    """It touches one of the two slopes at a time."""
    groove = 0.5 * np.abs(NODES)[:, None] * np.ones(11)
    ground = heights(groove, friction=0.6)
    q = ball.on_ground(ball.neutral(), ground)
    assert q[2] == pytest.approx(0.1 * np.hypot(1.0, 0.5))
    states = pp.rollout(ball, raised(q, 0.02, 0.02), steps=1000, dt=DT, contacts=ground)
    assert np.abs(states.q[-50:, :3] - q[:3]).max() < 1e-3
    assert np.abs(states.v[-1]).max() < 0.05 and states.contact_residual.max() < 1e-6


def test_pages_show_the_terrain(ball, tmp_path):
    from psiphi.apps.viewer.scene import scene

    terrains = np.stack([HILLS, 0.0 * HILLS])
    q = ball.on_ground(np.tile(ball.neutral(), (2, 1)), heights(terrains))
    motion = pp.simulate(ball, q, duration=0.05, dt=DT, contacts=heights(terrains))
    for k, relief in ((0, True), (1, False)):
        view = scene(motion, element=k)
        (ground,) = [piece for piece in view.pieces if piece.is_ground]
        assert view.ground is None and view.slope is None and view.extent[1] < 1.0
        assert (np.ptp(ground.mesh.vertices[:, 2]) > 1e-3) == relief
        arrows = view.motion.arrows
        assert np.linalg.norm(arrows.point[-1, 0] - view.motion.q[-1, :3]) == pytest.approx(0.1)
    motion.html(tmp_path / "page.html")
    motion.save(tmp_path / "motion.npz")
    again = pp.Trajectory.load(tmp_path / "motion.npz", system=ball)
    np.testing.assert_array_equal(again.info["ground"]["height"], terrains)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"height": [[0.0, 1.0]]}, r"shape \(1, 2\)"),
        ({"height": [0.0, 1.0]}, r"shape \(2,\)"),
        ({"height": "hills"}, "'hills'"),
        ({"height": [[0.0, np.nan], [1.0, np.inf]]}, r"2 entries .* first at \(0, 1\)"),
        ({"size": (-1.0, 2.0)}, "size is"),
        ({"size": None}, "size is None"),
        ({"size": 2.0}, "size is"),
        ({"normal": (0, 0.1, 1)}, "normal is"),
        ({"height": None}, "but the ground is a plane"),
    ],
)
def test_wrong_heights_are_refused(given, words):
    with pytest.raises(Error, match=words):
        pp.Ground(**{"height": np.zeros((3, 3)), "size": (1.0, 1.0)} | given)


def test_shapes_without_a_distance_are_refused(body):
    fine = pp.Ground(height=np.zeros((21, 21)), size=(1.0, 1.0))
    wheel, large = (
        body.with_contacts({"link": x}) for x in (pp.Cylinder(0.1, 0.1), pp.Sphere(0.1))
    )
    with pytest.raises(Error, match=r"rim of a cylinder.*heights"):
        pp.rollout(wheel, wheel.neutral(), steps=1, dt=DT, contacts=fine)
    with pytest.raises(Error, match=r"radius 0.1 m.*0.05 m apart.*up to 0.08 m"):
        pp.rollout(large, large.neutral(), steps=1, dt=DT, contacts=fine)


def test_environments_see_forces_in_world_axes(body):
    """On heights each contact has its own axes; those of a plane are the same forces."""
    pytest.importorskip("gymnasium")
    builder = pp.Builder("cart")
    builder.body("link", mass=1.0, inertia=(0.004, 0.004, 0.004))
    builder.body("arm", mass=0.1, inertia=(1e-3, 1e-3, 1e-3))
    builder.joint("root", "free", parent="world", child="link")
    builder.joint("hinge", "revolute", "link", "arm", axis=(0, 1, 0))
    balls = [pp.Sphere(0.1), pp.Sphere(0.1, pose=(0.3, 0, 0))]
    cart = pp.Robot.of(builder.build()).with_contacts({"link": balls})
    cosine, seen = 1.0 / np.hypot(1.0, SLOPE), []
    plane = pp.Ground(friction=0.8, normal=(-SLOPE * cosine, 0.0, cosine))
    q = cart.on_ground(cart.neutral(), plane)
    for ground in (plane, heights(TILTED, friction=0.8)):
        env = pp.environment(
            cart, ground, q0=raised(q, 1e-6), observations=["contact_forces"],
            rewards={"alive": 1.0}, episode_length=0.1,
        ).vector(2)  # fmt: skip
        env.reset(seed=1)
        seen.append(env.step(np.zeros(env.action_space.shape, np.float32))[0])
    assert np.abs(seen[0]).max() > 0.5
    np.testing.assert_allclose(*seen, atol=1e-3)
