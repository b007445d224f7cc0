"""`pp.path`: closed forms of one mass, SciPy's splines, limits checked by Pinocchio, control."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, make_interp_spline

import psiphi as pp
from psiphi.apps.path_timing.quaternion_splines import QuaternionSpline, check_turns
from psiphi.apps.path_timing.splines import cubic, quintic
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo


def lift(mass: float = 2.0, gravity: float = 9.81) -> pp.Robot:
    """A mass on a vertical rail."""
    b = pp.Builder("lift", gravity=(0, 0, -gravity))
    b.body("cabin", mass=mass)
    b.joint("rail", "prismatic", parent="world", child="cabin", axis=(0, 0, 1))
    return b.build()


@pytest.fixture(scope="module")
def panda() -> pp.Robot:
    return pp.load("panda", lock="panda_finger_*")


@pytest.fixture(scope="module")
def postures(panda) -> np.ndarray:
    middle, half = 0.5 * (panda.lower + panda.upper), 0.4 * (panda.upper - panda.lower)
    return middle + half * np.random.default_rng(4).uniform(-1.0, 1.0, (6, 4, panda.nq))


def test_one_mass_up_and_down():
    """Full force up, then down: (1/a + 1/b) v^2 / 2 = height, a = F/m - g, b = F/m + g."""
    m, g, F, height = 2.0, 9.81, 50.0, 3.0
    a, b = F / m - g, F / m + g
    way = pp.path(lift(m, g), [[0.0], [height]], torque=F, speed=np.inf, points=1000)
    assert way.duration == pytest.approx(np.sqrt(2.0 * height * (1 / a + 1 / b)), rel=2e-3)
    limited = pp.path(lift(m, g), [[0.0], [height]], torque=F, speed=2.0, points=1000)
    assert limited.duration == pytest.approx(height / 2.0 + 2.0 * (1 / a + 1 / b) / 2.0, rel=2e-3)
    q, v, a_now = limited(0.5 * limited.duration)
    assert v == pytest.approx([2.0], rel=1e-6) and abs(a_now[0]) < 1e-6
    assert limited(-1.0)[0] == [0.0] and limited(1e3)[0] == [height] and not limited(1e3)[1].any()


@pytest.mark.parametrize("acceleration", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("through", [(0.0, 1.0, 0.0), (0.0, 1.0, 0.2, 0.9), (0.0, 1.0, 0.999)])
def test_speed_limits_hold_where_a_curve_reverses(through, acceleration):
    """Between two points, where ds/dt may be large because q' is nearly zero; the limit binds."""
    way = pp.path(
        lift(), np.array(through)[:, None], speed=1.0, acceleration=acceleration, torque=np.inf
    )
    _, v, a = way(np.linspace(0.0, way.duration, 50_000))
    assert np.abs(v).max() < 1.0101 and np.abs(a).max() < 1.001 * acceleration
    length = np.abs(np.diff(way.curve(way.s)[0][:, 0])).sum()
    assert way.duration < 1.05 * length + 0.1


def test_minimum_jerk_of_two_postures():
    """q = L (10 x^3 - 15 x^4 + 6 x^5): max speed 15/8 L/T, max acceleration 10/sqrt(3) L/T^2."""
    by_speed = pp.path(
        lift(),
        [[0.0], [3.0]],
        kind="smooth",
        speed=1.5,
        torque=np.inf,
        acceleration=1e6,
        points=1000,
    )
    assert by_speed.duration == pytest.approx(15 / 8 * 3.0 / 1.5, rel=1e-5)
    other = pp.path(
        lift(),
        [[0.0], [3.0]],
        kind="smooth",
        speed=np.inf,
        torque=np.inf,
        acceleration=4.0,
        points=1000,
    )
    assert other.duration == pytest.approx(np.sqrt(10 / np.sqrt(3) * 3.0 / 4.0), rel=1e-5)
    x = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(
        other(x * other.duration)[0][:, 0], 3.0 * (10 * x**3 - 15 * x**4 + 6 * x**5), atol=1e-9
    )


def test_splines_are_those_of_scipy(rng):
    knots, points = np.array([0.0, 0.2, 0.5, 0.6, 1.0]), rng.standard_normal((5, 3))
    s, still = np.linspace(0.0, 1.0, 60), [(1, np.zeros(3)), (2, np.zeros(3))]
    peers = (
        CubicSpline(knots, points, bc_type="natural"),
        make_interp_spline(knots, points, 5, bc_type=(still, still)),
    )
    for make, peer in zip((cubic, quintic), peers, strict=True):
        for order, ours in enumerate(make(knots, points)(s)):
            np.testing.assert_allclose(ours, peer(s, order), atol=1e-9 * 10 ** (2 * order))


@pytest.mark.parametrize("kind", ["fastest", "smooth"])
def test_limits_hold_and_bind(panda, postures, kind):
    ways = pp.path(panda, postures, kind=kind, acceleration=12.0, points=400)
    peer = Pin(panda)
    for k in range(len(postures)):
        way = pp.path(panda, postures[k], kind=kind, acceleration=12.0, points=400)
        assert way.duration == pytest.approx(ways.duration[k], rel=1e-12), (
            "a path does not depend on the others"
        )
        inside = 0.5 * (way.times[1:] + way.times[:-1])
        q, v, a = way(inside)
        tau = peer.inverse_dynamics(q[::20], v[::20], a[::20])
        used = [np.abs(v) / panda.velocity_limit, np.abs(a) / 12.0, np.abs(tau) / panda.effort]
        assert max(x.max() for x in used) < 1.01
        busy = np.maximum(used[0].max(axis=-1), used[1].max(axis=-1))
        assert np.mean(busy > 0.98) > 0.95 if kind == "fastest" else busy.max() > 0.99
        t = np.linspace(0.1, 0.9, 7) * way.duration
        ahead, behind = way(t + 1e-6), way(t - 1e-6)
        np.testing.assert_allclose((ahead[0] - behind[0]) / 2e-6, way(t)[1], atol=1e-4)
        through = way(np.linspace(0.0, way.duration, 4000))[0]
        for posture in postures[k]:
            assert np.abs(through - posture).max(axis=-1).min() < 0.01
        ends = way(np.array([0.0, way.duration]))
        np.testing.assert_allclose(ends[0], postures[k][[0, -1]], atol=1e-9)
        assert np.abs(ends[1]).max() < 1e-6


def test_small_torque_limits_bind(panda, postures):
    weak = 0.6 * panda.effort
    free, bound = (
        pp.path(panda, postures[0] * 0.5, speed=np.inf, acceleration=40.0, torque=x)
        for x in (np.inf, weak)
    )
    assert bound.duration > 1.02 * free.duration
    q, v, a = bound(np.linspace(0.0, bound.duration, 300))
    assert 0.99 < (np.abs(panda.inverse_dynamics(q, v, a)) / weak).max() < 1.03


def test_a_planners_path(panda, rng):
    """Limits hold between hundreds of noisy postures; thousands need no dense matrix."""
    middle, half = 0.5 * (panda.lower + panda.upper), 0.3 * (panda.upper - panda.lower)
    x = np.linspace(0.0, 1.0, 300)[:, None]
    plan = middle + half * np.sin(
        2.0 * np.pi * (x * rng.uniform(0.3, 1.2, 7) + rng.uniform(0.0, 1.0, 7))
    )
    plan += 1e-3 * rng.standard_normal(plan.shape)
    way = pp.path(panda, plan, acceleration=10.0)
    t = np.linspace(0.0, way.duration, 20_000)
    q, v, a = way(t)
    assert (np.abs(v) / panda.velocity_limit).max() < 1.01 and np.abs(a).max() < 11.5
    fine = pp.path(panda, plan, acceleration=10.0, points=6000)
    assert (
        np.abs(fine(np.linspace(0.0, fine.duration, 20_000))[2]).max() < 10.3
        and fine.duration < way.duration * 1.01
    )
    passed = np.searchsorted(way.s, way.curve.knots)
    np.testing.assert_allclose(way(way.times[passed])[0], plan, atol=1e-9)
    long = pp.path(lift(), np.linspace(0.0, 3.0, 20_000)[:, None], torque=50.0, speed=np.inf)
    assert long.duration == pytest.approx(
        pp.path(lift(), [[0.0], [3.0]], torque=50.0, speed=np.inf, points=1000).duration, rel=1e-3
    )


def test_through_poses(panda, postures):
    """A tool along one line or two in a batch, by Pinocchio; the arm does not change branches."""
    tool, home = "panda_hand_tcp", np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    peer, far = Pin(panda), np.array([[0.0, 0.2, 0.0], [0.1, 0.0, 0.15]])
    poses = np.broadcast_to(panda.frame_pose(home, tool), (2, 5, 4, 4)).copy()
    poses[..., :3, 3] += np.linspace(0.0, 1.0, 5)[:, None] * far[:, None]
    ways = pp.path(panda, {tool: poses}, near=home, acceleration=10.0)
    q = ways(np.linspace(0.0, ways.duration.max(), 3000))[0]
    for k, each in enumerate(poses):
        now = peer.frame_pose(q[:, k], tool)
        for T in each:
            assert np.abs(now - T).max(axis=(-2, -1)).min() < 2e-3
        assert np.abs(q[:, k] - home).max() < 1.0
    points = pp.path(panda, {tool: poses[0, :, :3, 3]}, near=home, acceleration=10.0)
    np.testing.assert_allclose(
        peer.frame_pose(points(1e3)[0], tool)[:3, 3], poses[0, -1, :3, 3], atol=2e-6
    )
    poses[1, 3, :3, 3] += 3.0
    for given, words in (
        ({tool: poses}, r"pose 3 of 5 in batch element 1 cannot be reached"),
        ({tool: poses[0, 0]}, "shape"),
        ({tool: poses[0, :3], "panda_link4": poses[0, :2, :3, 3]}, "2, 3 poses"),
        ({}, "no poses"),
        ({"tol": poses}, "no frame"),
    ):
        with pytest.raises(pp.Error, match=words):
            pp.path(panda, given, near=home, acceleration=10.0)
    with pytest.raises(pp.Error, match="near"):
        pp.path(panda, postures[0], near=home, acceleration=10.0)


def test_a_path_is_a_reference(panda, postures):
    way = pp.path(panda, postures[0], acceleration=8.0)
    control = pp.ComputedTorque(panda, way, kp=400, kd=40)
    options = {"tau": control, "duration": 0.5, "dt": 2e-3}
    compiled, plain = (
        pp.simulate(panda, way(0.0)[0], compiled=flag, **options) for flag in (True, False)
    )
    np.testing.assert_allclose(compiled.q, plain.q, atol=1e-10)
    np.testing.assert_allclose(compiled.q, way(compiled.t)[0], atol=2e-3)
    both = pp.path(panda, postures[:2], acceleration=8.0)
    q, _ = pp.rollout(
        panda,
        postures[:2, 0],
        tau=pp.ComputedTorque(panda, both, kp=400, kd=40),
        steps=100,
        dt=2e-3,
    )
    np.testing.assert_allclose(q[0, -1], way(0.2)[0], atol=2e-3)


REFUSED = [
    ({"postures": [[0.0]]}, "K of at least 2"),
    ({"postures": [[0.0], [np.nan]]}, "not finite"),
    ({"postures": [[0.0], [0.0]]}, "same as the one before"),
    ({"torque": np.inf}, "nothing limits"),
    ({"torque": np.inf, "speed": 1.0}, "nothing limits how"),
    ({"torque": 19.0}, "to stand still"),
    ({"torque": -1.0}, "above 0"),
    ({"torque": True}, "torque is True, expected one or nv = 1 numbers"),
    ({"kind": "fast"}, "did you mean 'fastest'"),
    ({"points": 3}, "10 to"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_bad_arguments(given, words):
    with pytest.raises(pp.Error, match=words):
        pp.path(lift(), **({"postures": [[0.0], [1.0]], "torque": 50.0} | given))


def test_limits_of_zero_in_the_model_are_refused():
    """Many URDF files say effort="0" velocity="0" for unknown limits."""
    b = pp.Builder("pendulum")
    b.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), velocity=0.0)
    with pytest.raises(
        pp.Error, match=r"model pendulum limits the speed of 'hinge' to 0.*give speed="
    ):
        pp.path(b.build(), [[0.0], [1.0]], acceleration=1.0)
    assert pp.path(b.build(), [[0.0], [1.0]], acceleration=1.0, speed=np.inf).duration > 0.0


def test_a_quaternion_of_zeros_is_refused():
    robot = pp.load("ur5", base="free")
    with pytest.raises(pp.Error, match="quaternion of zeros"):
        pp.path(robot, np.zeros((2, robot.nq)), torque=100.0)


@pytest.mark.parametrize("kind", ["fastest", "smooth"])
def test_spherical_planar_and_free_joints(kind, rng):
    """Spherical, planar, free: q passes the postures, v and a are its derivatives, torques hold."""
    robot = pp.Robot.of(zoo.chain("mixed", ["spherical", "revolute", "planar", "free"], seed=5))
    through = robot.integrate(robot.random(seed=2), 0.4 * rng.standard_normal((4, robot.nv)))
    through[1, robot.joints[0].q_slice] *= -1.0  # the same rotation
    own = 400.0 * np.ones(robot.nv)
    way = pp.path(robot, through, kind=kind, torque=own, acceleration=20.0, speed=3.0, points=400)
    t = np.linspace(0.0, way.duration, 300)[1:-1]
    q, v, a = way(t)
    np.testing.assert_allclose(robot.normalize(q), q, atol=1e-12)
    h = 1e-6 * way.duration
    (back, v_back, _), (ahead, v_ahead, _) = way(t - h), way(t + h)
    inside = np.abs(a - way(t - h)[2]).max(axis=-1) < 1e-2 * np.abs(a).max()  # not over a switch
    np.testing.assert_allclose(
        v, robot.difference(back, ahead) / (2 * h), atol=1e-5 * np.abs(v).max()
    )
    np.testing.assert_allclose(
        a[inside], ((v_ahead - v_back) / (2 * h))[inside], atol=1e-2 * np.abs(a).max()
    )
    assert inside.mean() > 0.9
    tau = Pin(robot).inverse_dynamics(q, v, a)
    assert (
        (np.abs(v) <= 3.0 * 1.001).all()
        and (np.abs(a) <= 20.0 * 1.02).all()
        and (np.abs(tau) <= 400.0 * 1.02).all()
    )
    reached = max((np.abs(tau) / own).max(), (np.abs(v) / 3.0).max(), (np.abs(a) / 20.0).max())
    assert reached > 0.98, "as fast as the limits allow"
    near = way(np.linspace(0.0, way.duration, 4000))[0]
    for posture in through:
        far = np.abs(robot.difference(near, np.broadcast_to(posture, near.shape))).max(axis=-1)
        assert far.min() < 5e-3
    assert np.abs(robot.difference(way(way.duration)[0], through[-1])).max() < 1e-9


def test_one_rotation_of_a_spherical_joint(rng):
    """A spherical joint that turns about one axis, in closed form: tan of the half angle."""
    b = pp.Builder("top", gravity=(0, 0, 0))
    b.body("top", mass=1.0, inertia=np.eye(3))
    b.joint("ball", "spherical", parent="world", child="top")
    top = b.build()
    angle = 1.2
    way = pp.path(
        top,
        [[0, 0, 0, 1.0], [0, 0, np.sin(angle / 2), np.cos(angle / 2)]],
        acceleration=1.0,
        points=2000,
    )
    q, v, a = way(0.5 * way.duration)
    np.testing.assert_allclose(q, [0, 0, np.sin(angle / 4), np.cos(angle / 4)], atol=1e-6)
    assert np.abs(v[:2]).max() < 1e-12 and np.abs(a).max() <= 1.001
    assert way.duration >= 2.0 * np.sqrt(angle / 1.0) * 0.999, (
        "no faster than bang-bang about one axis"
    )
    assert way.duration == pytest.approx(2.0 * np.sqrt(angle), rel=2e-3)


def test_a_turn_too_far_is_refused():
    robot = pp.Robot.of(zoo.chain("ball", ["spherical"], seed=1))
    curve = QuaternionSpline(
        cubic(np.array([0.0, 1.0]), np.array([[0, 0, 0, 1.0], [0, 0.1, 0, -1.0]])), robot.manifold
    )
    with pytest.raises(pp.Error, match="half a turn"):
        check_turns(robot, curve, np.linspace(0.0, 1.0, 50))


def test_a_batch_of_robots_is_refused():
    """As many parameter sets as a path has points: each point would use other parameters."""
    light = pp.load("ur5").free("inertia", links="wrist_3_link")
    postures = [[0, -1, 1, 0, 1, 0], [1, -1.5, 1, 0, 1, 0]]
    assert pp.path(light.at(light.parameters()), postures, acceleration=10.0).s.shape == (201,)
    many = light.at(light.randomised(201, seed=0))
    for call in (
        lambda: pp.path(many, postures, acceleration=10.0),
        lambda: pp.reach(many, {"tool": (0.3, 0.3, 0.4)}),
    ):
        with pytest.raises(
            pp.StateError, match=r"parameters of shape \(201, 10\), expected one set"
        ):
            call()
