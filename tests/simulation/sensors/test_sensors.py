"""IMUs beside MuJoCo and closed forms; joint torques beside the balance of every joint; noise."""

import mujoco
import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Controller, Law, Step
from psiphi_bench.peers.mujoco_peer import Mj
from tests import zoo
from tests.functions.call_cases import gymnast
from tests.robot.embedding.mechanisms import slider_crank

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("kind", ["tree", "floating"])
def test_an_imu_reads_what_mujocos_accelerometer_and_gyro_read(kind):
    kinds = [x for x in zoo.MUJOCO_KINDS if x != "fixed"]
    model = zoo.random_tree(11, 5, kinds=kinds) if kind == "tree" else zoo.free_tree(4, 3)
    robot, peer = Robot.of(model), Mj(model)
    for seed in range(3):
        q, v, a, _ = zoo.random_state(robot, np.random.default_rng(seed))
        peer.inverse_dynamics(q, v, a)
        mujoco.mj_rnePostConstraint(peer.peer, peer.data)
        site, kind_of = peer.peer.site("tool").id, mujoco.mjtObj.mjOBJ_SITE
        want, rate = np.zeros(6), np.zeros(6)
        mujoco.mj_objectAcceleration(peer.peer, peer.data, kind_of, site, want, True)
        mujoco.mj_objectVelocity(peer.peer, peer.data, kind_of, site, rate, True)
        got = robot.frame_imu(q, v, a, "tool")
        np.testing.assert_allclose(got[:3], rate[:3], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(got[3:], want[3:], rtol=1e-9, atol=1e-8)


def test_an_imu_at_rest_falling_and_on_a_turntable():
    """9.81 upwards; nothing; r w^2 towards the axis."""
    robot = gymnast()
    q, rest = robot.random(seed=1), np.zeros(robot.nv)
    for frame in ("tool", "floor"):
        R = robot.frame_pose(q, frame)[:3, :3]
        np.testing.assert_allclose(
            robot.frame_imu(q, rest, rest, frame), [0, 0, 0, *(9.81 * R[2])], atol=1e-12
        )
    b = pp.Builder("stone")
    b.body("stone", 1.0, com=(0, 0, 0), inertia=np.diag([1.0, 2.0, 3.0]))
    b.joint("float", "free", "world", "stone")
    stone = b.build()
    q, v = stone.random(seed=1), np.arange(6.0)
    falls = stone.forward_dynamics(q, v, np.zeros(6))
    np.testing.assert_allclose(
        stone.frame_imu(q, v, falls, "stone"), [0, 1, 2, 0, 0, 0], atol=1e-12
    )
    b = pp.Builder("turntable", gravity=(0, 0, 0))
    b.body("table", 1.0, inertia=np.eye(3))
    b.joint("axle", "revolute", "world", "table")
    b.frame("rim", "table", xyz=(0.5, 0, 0), rpy=(0, 0, 0.3))
    y = b.build().frame_imu([0.7], [4.0], [0.0], "rim")
    inward = -8.0 * np.array([np.cos(0.3), -np.sin(0.3), 0.0])
    np.testing.assert_allclose(y, [0, 0, 4.0, *inward], atol=1e-12)


def test_an_imu_on_a_robot_with_an_embedded_loop():
    """The specific force of the piston is its acceleration, on a line, and gravity."""
    robot = slider_crank("to crank")
    q, v, a, h = robot.random(seed=2), np.array([0.7]), np.array([-1.1]), 1e-4
    ahead, here, behind = (
        robot.frame_pose(robot.integrate(q, s * h * v + s * s * h * h * a / 2), "piston")
        for s in (1, 0, -1)
    )
    second = (ahead - 2 * here + behind)[:3, 3] / h**2
    want = here[:3, :3].T @ (second - robot.gravity_vector)
    np.testing.assert_allclose(robot.frame_imu(q, v, a, "piston")[3:], want, atol=1e-5)
    with pytest.raises(pp.StateError, match="embedded loops"):
        pp.JointTorque()(robot, q, v, a)


def balance(motion, damping):
    """tau - damping v - rotor a, at each sample: what is left for the link."""
    rotor = np.concatenate([joint.armature for joint in motion.robot.joints])
    return motion.tau - damping * motion.v - rotor * motion.a


def test_joint_torques_are_what_the_motors_leave_to_the_links():
    """M a + C v + g - J* f_ext is the sum of all other torques on the joint, in any motion."""
    robot = Robot.of(zoo.chain("arm", ["revolute", "prismatic", "revolute"], 4, armature=True))
    push = {"tool": lambda t: [0.1, 0.2, 0.3, 5.0 * t, -2.0, 1.0]}
    tau = np.array([[1.0, 2.0, -0.5], [0.0, 1.0, 0.3]])
    motion = pp.simulate(
        robot, robot.random(seed=0, size=2), tau=tau, duration=0.1, damping=0.3, f_ext=push
    )
    sensors = {"all": pp.JointTorque(), "last": pp.JointTorque(robot.joint_names[2:], rate=250)}
    found, want = motion.measure(sensors, f_ext=push), balance(motion, 0.3)
    np.testing.assert_allclose(found["all"].value, want, atol=1e-9)
    assert found["last"].value.shape == (2, 26, 1)
    np.testing.assert_allclose(found["last"].value[..., 0], want[:, ::4, 2], atol=1e-9)
    with pytest.raises(pp.StateError, match="f_ext="):
        motion.measure(sensors)


def test_joint_torques_of_a_closed_chain_and_on_a_ground():
    """Forces of loops and of the ground act on the links that they touch."""
    case = pp.scenes.load("four_bar")
    chain = pp.simulate(case.system, case.q0, case.v0, duration=0.05, damping=0.2)
    got = chain.measure({"torque": pp.JointTorque()})["torque"].value
    np.testing.assert_allclose(got, balance(chain, 0.2), atol=1e-9)
    b = pp.Builder("hopper")
    for name in ("trunk", "leg", "foot"):
        b.body(name, 1.0, com=(0, 0, -0.1), inertia=0.02 * np.eye(3))
    b.joint("float", "free", "world", "trunk")
    b.joint("hip", "revolute", "trunk", "leg", axis=(0, 1, 0), armature=0.01)
    b.joint("knee", "revolute", "leg", "foot", xyz=(0, 0, -0.3), axis=(0, 1, 0), armature=0.01)
    b.frame("sole", "foot", xyz=(0.02, 0, -0.3), rpy=(0.1, 0.2, 0.3))
    robot = b.build().with_contacts({"sole": [pp.Sphere(0.05), pp.Sphere(0.04)]})
    ground = pp.Ground(normal=(0.1, 0.0, 1.0), point=(0, 0, 0.2))
    q = robot.on_ground([0, 0, 1.0, 0, 0, 0, 1, 0.4, -0.8], ground)
    tau = np.array([0.0] * 6 + [-2.0, 1.0])
    motion = pp.simulate(robot, q, tau=tau, duration=0.02, dt=1e-4, contacts=ground)
    assert np.abs(motion.forces).max() > 5.0
    got = motion.measure({"torque": pp.JointTorque()})["torque"].value
    want = balance(motion, 0.0)
    np.testing.assert_allclose(got[1:], want[1:], atol=1e-3 * np.abs(motion.forces).max())
    feet = motion.measure({"feet": pp.ContactForce("sole*", rate=1000)})["feet"]
    np.testing.assert_array_equal(feet.value, motion.forces[::10][: len(feet.t)])


def test_joint_torques_of_fingers_that_hold_a_box():
    """The forces of pairs act on both links: the box is held by what the motors press."""
    b = pp.Builder("hand")
    for side, x in (("left", -0.06), ("right", 0.06)):
        b.body(side, mass=0.2, inertia=1e-4 * np.eye(3))
        b.joint(side, "prismatic", "world", side, xyz=(x, 0, 1), axis=(-np.sign(x), 0, 0))
    b.body("box", mass=1.0, inertia=1e-3 * np.eye(3))
    b.joint("box", "free", "world", "box", xyz=(0, 0, 1))
    tips, sides = pp.Sphere(0.01), ("left", "right")
    shapes = {"left": tips, "right": tips, "box": pp.Box(0.1)}
    hand = b.build().with_contacts(shapes, pairs=[(side, "box") for side in sides], ground=())
    tau = np.zeros(8)
    tau[:2] = 20.0
    motion = pp.simulate(hand, hand.neutral(), tau=tau, duration=0.1, contacts=pp.Ground())
    got = motion.measure({"torque": pp.JointTorque()})["torque"].value
    np.testing.assert_allclose(got[5:, :2], 20.0, atol=1e-6)
    np.testing.assert_allclose(got[5:, 2:], 0.0, atol=1e-6)


def test_rates_between_samples_and_at_them():
    robot = Robot.of(zoo.chain("arm", ["revolute", "spherical"], 4))
    fine = pp.simulate(robot, robot.random(seed=0), np.ones(4), duration=0.2)
    coarse = pp.simulate(robot, robot.random(seed=0), np.ones(4), duration=0.2, every=4)
    for motion in (fine, coarse):
        found = motion.measure({"imu": pp.IMU("tool", rate=333.0)})["imu"]
        assert found.t.shape == (67,) and found.t[-1] == pytest.approx(66 / 333)
        at = fine.at(found.t)
        want = robot.frame_imu(at.q, at.v, robot.forward_dynamics(at.q, at.v, np.zeros(4)), "tool")
        np.testing.assert_allclose(found.value, want, atol=1e-2)
    every = fine.measure({"imu": pp.IMU("tool")})["imu"]
    np.testing.assert_array_equal(every.value, robot.frame_imu(fine.q, fine.v, fine.a, "tool"))


def test_noise_bias_and_drift():
    """Their sizes; the same for a motion alone and in a batch; other seeds and names differ."""
    robot = Robot.of(zoo.chain("pendulum", ["revolute"], 2))
    q = robot.random(seed=0, size=3)
    motions = pp.simulate(robot, q, duration=2.0, dt=1e-3, every=10)

    def read(motion, seed=5, name="imu", **errors):
        return motion.measure({name: pp.IMU("tool", **errors)}, seed=seed)[name]

    white = read(motions, noise=[0.1] * 3 + [2.0] * 3, bias=[0.0] * 5 + [4.0], rate=1000)
    errors = (white.value - white.exact).reshape(-1, 6)
    np.testing.assert_allclose(errors.std(axis=0), [0.1] * 3 + [2.0] * 3, rtol=0.05)
    np.testing.assert_allclose(errors.mean(axis=0), [0, 0, 0, 0, 0, 4.0], atol=0.15)
    assert np.abs(np.corrcoef(errors.T) - np.eye(6)).max() < 0.06, "independent channels"
    lag = (errors[1:, 0] * errors[:-1, 0]).mean() / 0.01
    assert abs(lag) < 0.06, "white"
    walk = read(motions, drift=0.3, rate=1000)
    ends = (walk.value - walk.exact)[:, -1]
    steps = np.diff(walk.value - walk.exact, axis=1)
    np.testing.assert_allclose(steps.std(), 0.3 * np.sqrt(1e-3), rtol=0.03)
    assert not (walk.value - walk.exact)[:, 0].any() and 0.1 < ends.std() < 1.0
    alone = read(motions.element(0), noise=1.0)
    np.testing.assert_array_equal(alone.value, read(motions, noise=1.0).value[0])
    for other in (read(motions, noise=1.0, seed=6), read(motions, noise=1.0, name="other")):
        assert np.abs(other.value[0] - alone.value).max() > 1.0


def test_exact_values_have_derivatives_of_torch():
    robot = Robot.of(zoo.chain("arm", ["revolute", "prismatic"], 4))
    q, v, a = (torch.tensor(x, requires_grad=True) for x in np.random.default_rng(0).random((3, 2)))
    for sensor in (pp.IMU("tool"), pp.JointTorque()):
        assert torch.autograd.gradcheck(lambda *x, s=sensor: s(robot, *x), (q, v, a))


def test_a_sensor_in_a_law_and_in_a_compiled_rollout():
    """Feedback of the specific force: the same law in Python and compiled."""
    robot = Robot.of(zoo.chain("arm", ["revolute", "prismatic"], 4))

    class Damped(Controller):
        def __init__(self):
            super().__init__(robot)
            own = Step(no_acceleration), Step("frame_imu", {"a": "zero"}, "tool")
            self.law = Law((*own, Step(force, sizes={"y": 6})), ())

    law = Damped()
    motion = pp.simulate(robot, [0.1, 0.2], [1.0, -0.5], law, duration=0.05, compiled=False)
    q, v = pp.rollout(robot, [0.1, 0.2], [1.0, -0.5], law, steps=50)
    np.testing.assert_allclose(q, motion.q, atol=1e-12)
    y = robot.frame_imu(motion.q[0], motion.v[0], np.zeros(2), "tool")
    np.testing.assert_allclose(motion.tau[0], [-0.1 * y[0], -0.1 * y[3]], atol=1e-12)


def no_acceleration(m, v):
    return {"zero": 0.0 * v}


def force(m, y):
    return {"tau": np.stack([-0.1 * y[..., 0], -0.1 * y[..., 3]], axis=-1)}


@pytest.mark.parametrize(
    ("sensors", "match"),
    [
        ("imu", "by name"),
        ([pp.IMU("tool")], "by name"),
        ({"imu": pp.IMU("tol")}, "tool"),
        ({"imu": pp.IMU("tool", noise=[0.1, 0.2])}, "6 channels"),
        ({"torque": pp.JointTorque("elbow")}, "no joints"),
        ({"force": pp.ContactForce()}, "no contacts"),
    ],
)
def test_what_is_refused(sensors, match):
    robot = Robot.of(zoo.chain("pendulum", ["revolute"], 2))
    motion = pp.simulate(robot, [0.1], duration=0.01)
    with pytest.raises(pp.StateError, match=match):
        motion.measure(sensors)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"noise": -1.0}, {"drift": np.nan}])
def test_faulty_numbers_are_refused(wrong):
    with pytest.raises(pp.StateError):
        pp.IMU("tool", **wrong)
