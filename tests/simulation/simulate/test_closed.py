"""Closed chains: constraints kept, grasps lost, and anything that answers like a system."""

from functools import cache

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.model.spatial.rotations import quaternions
from psiphi.simulation.plant import Plant
from psiphi.simulation.simulate.speed_limits import MAX_SPEED, speed_limits
from tests.simulation.simulate.motions import four_bar, pendulum, puma, two_pumas


@pytest.fixture(scope="module")
def bar():
    system = four_bar()
    return system, system.assemble(np.array([0.8, 0.2, 1.6]), hold="motor")


def test_a_four_bar_swings_on_its_constraints(bar):
    system, q = bar
    motion = pp.simulate(system, q, duration=0.3)
    assert motion.residual.shape == (301, 2) and motion.residual.max() < 1e-10
    assert motion.forces.shape == (301, 1, 6) and motion.drift < 1e-9
    assert "constraint residual" in motion.summary() and "largest contact force" in motion.summary()
    drifting = pp.simulate(system, q, duration=1.0, dt=1e-2, projection=False)
    kept = pp.simulate(system, q, duration=1.0, dt=1e-2)
    assert kept.residual.max() < 1e-10 < 1e-9 < drifting.residual.max()


def test_the_same_motion_by_other_methods(bar):
    system, q = bar
    one = pp.simulate(system, q, duration=0.1)
    for options in (dict(method="lie"), dict(method="DOP853", dt=0.01, rtol=1e-10, atol=1e-10)):
        other = pp.simulate(system, q, duration=0.1, **options)
        np.testing.assert_allclose(other.final.q, one.final.q, atol=1e-7)
        assert other.residual.max() < 1e-8


def test_controllers_of_a_closed_chain(bar):
    system, q = bar
    still = pp.simulate(system, q, tau=pp.GravityCompensation(system), duration=0.1)
    assert np.abs(still.v).max() < 1e-9
    by_motor = pp.simulate(system, q, tau=still.tau[0, system.actuated], duration=0.05)
    np.testing.assert_allclose(by_motor.tau, np.broadcast_to(still.tau[0], by_motor.tau.shape))
    goal = system.assemble(q + 0.3 * np.eye(3)[0], hold="motor")
    for control in (
        pp.PD(system, goal, 80.0, 20.0, gravity=True),
        pp.ComputedTorque(system, goal, 100.0, 20.0),
    ):
        moved = pp.simulate(system, q, tau=control, duration=1.5, dt=1e-2)
        np.testing.assert_allclose(moved.final.q, goal, atol=2e-3)
        assert not moved.tau[:, 1:].any(), "only the motor pushes"


def test_files_keep_contact_forces(bar, tmp_path):
    system, q = bar
    motion = pp.simulate(system, q, duration=0.02)
    for name in ("motion.npz", "motion.csv"):
        motion.save(tmp_path / name)
        back = pp.Trajectory.load(tmp_path / name, system)
        assert (back.forces == motion.forces).all() and (back.residual == motion.residual).all()
    assert motion.at(0.0105).forces.shape == (1, 6)


def test_a_start_off_the_constraints_is_refused(bar):
    system, q = bar
    with pytest.raises(StateError, match=r"q0 is not on the constraints.*assemble"):
        pp.simulate(system, q + 0.1, duration=0.1)
    with pytest.raises(StateError, match="v0 is not on the constraints"):
        pp.simulate(system, q, np.ones(3), duration=0.1)


def test_two_arms_in_a_batch():
    cell, start = two_pumas()
    _, turning = cell.project(start, 0.3 * np.ones(cell.nv))
    q, v = np.stack([start, start]), np.stack([turning, 0 * turning])
    motion = pp.simulate(cell, q, v, duration=0.05)
    alone = pp.simulate(cell, start, turning, duration=0.05)
    np.testing.assert_allclose(motion.q[0], alone.q, atol=1e-12)
    assert (
        motion.forces.shape == (2, 51, 2, 6)
        and motion.residual.max() < 1e-11
        and motion.drift.max() < 1e-9
    )


@cache
def pinned() -> pp.System:
    """A free body whose corner a ball joint holds: a spherical pendulum, written as a loop."""
    b = pp.Builder("pinned")
    b.body("stone", mass=2.0, com=(0.1, 0.2, -0.5), inertia=np.diag([0.1, 0.2, 0.3]))
    b.joint("fly", "free", "world", "stone")
    b.frame("corner", "stone")
    b.frame("hook", "world")
    return pp.connect(b.build(), [pp.Loop("ball", "corner", "hook")])


@cache
def hand() -> tuple[pp.System, np.ndarray]:
    """A hinge whose hand holds a box by friction, hanging down."""
    b = pp.Builder("hand")
    b.body("arm", mass=1.0, com=(0, 0, -0.3), inertia=np.diag([0.02, 0.02, 0.01]))
    b.joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0))
    b.frame("palm", "arm", xyz=(0, 0, -0.6))
    grip = pp.Contact("rigid", normal=(0, 0, 1), friction=0.8)
    cell = pp.grasp(
        [(b.build(), None, "palm")],
        pp.Body.box(0.5, (0.1, 0.1, 0.1)),
        [np.diag([1.0, -1.0, -1.0, 1.0])],
        [grip],
    )
    return cell, cell.assemble([np.pi, 0, 0, 0.6, 0, 0, 0, 1])


@pytest.mark.parametrize(
    "options", [{}, dict(method="lie"), dict(projection=False), dict(damping=0.3, every=3)]
)
def test_compiled_is_interpreted(options):
    system = pinned()
    q, v = system.neutral(), np.array([1.0, -2.0, 0.5, 0.0, 0.0, 0.0])
    tau = np.random.default_rng(0).standard_normal((3, 20, 6))
    one, other = (
        pp.simulate(system, q, v * np.ones((3, 1)), tau, 0.02, compiled=c, **options)
        for c in (True, False)
    )
    for name in ("t", "q", "v", "a", "tau", "forces", "energy", "residual"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), atol=1e-11, err_msg=name
        )


def test_a_body_on_a_hook_is_a_spherical_pendulum():
    """The loop against the joint: one motion, and the hook's force is what the joint carries."""
    b = pp.Builder("pendulum")
    b.body("stone", mass=2.0, com=(0.1, 0.2, -0.5), inertia=np.diag([0.1, 0.2, 0.3]))
    b.joint("ball", "spherical", "world", "stone")
    robot, system, w = b.build(), pinned(), np.array([1.0, -2.0, 0.5])
    joint = pp.simulate(robot, robot.neutral(), w, duration=0.5)
    loop = pp.simulate(
        system, system.neutral(), np.concatenate([w, np.zeros(3)]), duration=0.5, compiled=True
    )
    np.testing.assert_allclose(loop.q[:, 3:], joint.q, atol=1e-10)
    assert loop.residual.max() < 1e-12 and loop.drift < 1e-10
    force = robot.joint_forces(joint.q, joint.v, joint.a)[:, 0, 3:]  # on the body, in its axes
    R = robot.frame_pose(joint.q, "stone")[:, :3, :3]
    np.testing.assert_allclose(
        np.abs(loop.forces[:, 0, 3:]), np.abs(np.einsum("nij,nj->ni", R, force)), atol=1e-8
    )


def test_rollouts_of_a_closed_chain():
    system = pinned()
    v = np.random.default_rng(1).standard_normal((5, 6)) * [1, 1, 1, 0, 0, 0]
    q, _ = pp.rollout(system, system.neutral(), v, steps=20)
    motion = pp.simulate(system, system.neutral(), v, duration=0.02, compiled=True)
    assert (q == motion.q).all()


def test_small_pivots_do_not_add_up():
    """A door on two pins 3 mm apart: no step is singular, however many there are."""
    b = pp.Builder("door")
    b.body("leaf", mass=2.0, com=(0.1, 0.2, -0.5), inertia=np.diag([0.1, 0.2, 0.3]))
    b.joint("fly", "free", "world", "leaf")
    for name, body in (("pin", "leaf"), ("eye", "world")):
        b.frame(name, body)
        b.frame(f"{name} above", body, xyz=(0, 0, 0.003))
    system = pp.connect(
        b.build(), [pp.Loop("ball", "pin", "eye"), pp.Loop("ball", "pin above", "eye above")]
    )
    v = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    motion = pp.simulate(system, system.neutral(), v, duration=1.0, every=100, compiled=True)
    np.testing.assert_allclose(motion.v[:, 2], 1.0, atol=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_box_on_a_palm_slips_when_it_is_swung(compiled):
    """The palm is vertical and swings ever faster: the tangential force exceeds the friction."""
    cell, q = hand()
    tau = np.zeros((200, cell.nv))
    tau[:, 0] = np.linspace(0.0, 20.0, 200)
    motion = pp.simulate(cell, q, tau=tau, duration=0.2, every=50, compiled=compiled)
    (event,) = motion.events
    assert (event.name, event.what, event.stopped) == (
        "grasp lost",
        "contact 1",
        True,
    ) and event.value > 1.0
    ratio = cell.contact_ratio(motion.q, motion.forces)[:, 0]
    assert (
        motion.final.t == event.t
        and ratio[-1] == pytest.approx(event.value, rel=1e-9)
        and (ratio[:-1] <= 1.0).all()
    )
    seen = pp.simulate(cell, q, tau=tau, duration=0.2, every=50, compiled=compiled, stop=False)
    assert seen.events[0].t == event.t and seen.final.t == 0.2


class Held:
    """A pendulum held at rest by a contact until it is pulled too hard: only the protocol."""

    contacts = (type("Contact", (), {"name": "hand"})(),)

    def __init__(self, grip: float):
        self.robot, self.nq, self.nv, self.grip = pendulum(), 1, 1, grip

    def forward_dynamics(self, q, v, tau, forces=False):
        wrench = np.zeros((*np.shape(q)[:-1], 1, 6))
        wrench[..., 0, 1] = -(tau - self.robot.gravity(q))[..., 0]
        return (np.zeros_like(v), wrench) if forces else np.zeros_like(v)

    def contact_ratio(self, q, forces):
        return np.abs(forces[..., 1]) / self.grip

    def constraint_residual(self, q, v):
        return np.stack([0 * q, v], axis=-2)

    def project(self, q, v):
        return q, 0 * v


@pytest.mark.parametrize("options", [{}, dict(method="RK45", dt=0.01)], ids=["fixed", "adaptive"])
def test_a_lost_grasp_stops_or_is_recorded(options):
    """The torque grows by 10 N m a second; the hand holds 2."""
    system = Held(2.0)
    options = dict(dt=1e-3) | options
    motion = pp.simulate(
        system, [0.0], tau=lambda t, q, v: np.array([10.0 * t]), duration=1.0, **options
    )
    (event,) = motion.events
    assert (event.name, event.what, event.stopped) == ("grasp lost", "hand", True)
    assert event.t == pytest.approx(0.2, abs=1e-12) and event.value > 1.0, "located within the step"
    assert event.t <= motion.final.t <= event.t + 1.5 * options["dt"]
    assert motion.energy is None and (motion.v == 0.0).all() and motion.forces.shape[1:] == (1, 6)
    seen = pp.simulate(
        system, [0.0], tau=lambda t, q, v: np.array([10.0 * t]), duration=1.0, stop=False, **options
    )
    assert seen.final.t == 1.0 and [e.t for e in seen.events] == [event.t]
    batch = pp.simulate(
        system, [[0.0], [0.0]], tau=[[1.0], [3.0]], duration=0.01, **options | dict(dt=1e-3)
    )
    assert [e.where for e in batch.events] == [(1,)]


def test_other_velocities():
    """A system whose v is not the joints': here u = 2 dq/dt, so a_u = 2 a."""

    class Doubled:
        robot = puma()
        nq = nv = 6

        def velocity(self, q, u):
            return u / 2

        def forward_dynamics(self, q, u, tau):
            return 2 * self.robot.forward_dynamics(q, u / 2, tau)

        def energy(self, q, u):
            return self.robot.energy(q, u / 2)

    q, v = puma().random(seed=0), np.ones(6)
    for method in ("euler", "rk4", "lie"):
        plain = pp.simulate(puma(), q, v, duration=0.1, method=method, compiled=False)
        doubled = pp.simulate(Doubled(), q, 2 * v, duration=0.1, method=method)
        np.testing.assert_allclose(doubled.q, plain.q, atol=1e-12)
        np.testing.assert_allclose(doubled.v, 2 * plain.v, atol=1e-11)
        np.testing.assert_allclose(doubled.at(0.0505).q, plain.at(0.0505).q, atol=1e-9)
    assert doubled.drift == pytest.approx(plain.drift, rel=0.1)


@pytest.mark.parametrize("normalised", [True, False])
def test_diagonalised_velocities(normalised):
    """The same motion in nu (or xi), with the joints' damping."""
    robot, q, v = puma(), puma().random(seed=0), np.ones(6)
    system = robot.diagonalised if normalised else robot.diagonalised.unnormalised
    plain = pp.simulate(robot, q, v, 5 * np.ones(6), duration=0.1, damping=0.5, compiled=False)
    other = pp.simulate(
        system, q, system.velocities(q, v), 5 * np.ones(6), duration=0.1, damping=0.5
    )
    np.testing.assert_allclose(other.q, plain.q, atol=1e-10)
    np.testing.assert_allclose(other.energy, plain.energy, rtol=1e-9)
    assert "puma560" in other.summary()


def test_a_system_without_a_robot():
    class Odd:
        robot = "none"
        nq = nv = 1
        forward_dynamics = None

    with pytest.raises(StateError, match="has no robot"):
        pp.simulate(Odd(), [0.0], duration=0.1)


@pytest.fixture(scope="module")
def reaching():
    """A controller that pulls a box to a place 1.5 m higher, which the arm cannot reach."""
    bent = np.array([0.1, -0.8, 0.6, 0.2, 0.5, 0.0])
    cell = pp.grasp([(puma(), None, "tool")], pp.Body.box(2.0, (0.2, 0.1, 0.1)), [np.eye(4)])
    hold = [joint.name for joint in cell.joints[:6]]
    place = puma().frame_pose(bent, "tool")
    q = cell.assemble([*bent, *place[:3, 3], *quaternions(place[:3, :3])], hold=hold)
    there = cell.frame_pose(q, cell.object)
    there[2, 3] += 1.5
    return cell, q, pp.ObjectControl(cell, there, kp=25.0, kd=10.0)


def test_an_arm_that_is_driven_beyond_its_reach_stops(reaching):
    """A stretched arm has speeds without bound. The motion ends when a joint turns by a revolution
    per step, and says where and when."""
    cell, q, control = reaching
    run = dict(tau=control, duration=1.0, dt=1e-2, compiled=False)
    with pytest.warns(pp.MotionWarning, match=r"at t = 0\.\d+ s, at joint 'puma560/.*stretched"):
        motion = pp.simulate(cell, q, **run)
    (event,) = motion.events
    assert event.name == "diverged" and event.stopped and event.t == motion.final.t < 0.3
    assert event.what.startswith("puma560/")
    assert np.abs(motion.v[:-1]).max() < 2.0 * np.pi / 1e-2, "only the last sample is too fast"


def test_an_error_at_a_singular_posture_names_joint_and_time(reaching):
    cell, q, control = reaching
    run = dict(tau=control, duration=1.0, dt=1e-2, compiled=False, stop=())
    with pytest.raises(pp.SimulationError, match=r"after t = 0\.\d+ s.*joint then was puma560/"):
        pp.simulate(cell, q, **run)


def test_only_turning_joints_in_loops_have_a_limit():
    """Sliders, and a spindle beside the loop, keep the limit of all motions."""
    builder = pp.Builder("slider crank and spindle")
    for name in ("crank", "rod", "slider", "spindle"):
        builder.body(name, mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]))
    builder.joint("motor", "revolute", "world", "crank")
    builder.joint("pin", "revolute", "crank", "rod", xyz=(0.3, 0, 0))
    builder.joint("rail", "prismatic", "world", "slider", axis=(1, 0, 0), xyz=(1.0, 0, 0))
    builder.joint("drill", "revolute", "slider", "spindle")
    builder.frame("end", "rod", xyz=(0.7, 0, 0))
    builder.frame("wrist", "slider")
    system = pp.connect(builder.build(), [pp.Loop("hinge", "end", "wrist", axis=(0, 0, 1))])
    found = speed_limits(Plant(system), "rk4", 1e-3)
    assert found.tolist() == [2e3 * np.pi, 2e3 * np.pi, MAX_SPEED, MAX_SPEED]
    assert (speed_limits(Plant(system), "DOP853", 1e-3) == MAX_SPEED).all()
    assert (speed_limits(Plant(pendulum()), "rk4", 1.0) == MAX_SPEED).all()
