"""Every built-in controller as a kernel: the same numbers as its equation in Python, on robots and
closed chains."""

import pickle
import sys

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from tests.simulation.rollout.test_rollout import agree, both
from tests.simulation.simulate.motions import four_bar, juggler, pendulum, puma, state, two_pumas

CURVED = {
    "PD": lambda r, goal: pp.PD(r, goal, 30.0, 5.0, gravity=True),
    "PD moving": lambda r, goal: pp.PD(
        r, lambda t: r.integrate(goal, np.sin(3 * t) * np.ones(r.nv)), np.arange(1.0, 1 + r.nv), 5
    ),
    "computed torque": lambda r, goal: pp.ComputedTorque(r, goal, 30.0, 5.0),
    "operational space": lambda r, goal: pp.OperationalSpace(
        r, "arm", r.frame_pose(goal, "arm"), posture=goal, passive=()
    ),
}


@pytest.mark.parametrize("law", CURVED)
@pytest.mark.parametrize("method", ["euler", "rk4", "lie"])
def test_gains_on_curved_joints(law, method):
    """Spherical, planar and free joints: errors along the shortest path, for either quaternion
    sign."""
    robot = juggler()
    q, v = state(robot, 1, 9)
    goal, _ = state(robot, 2)
    goal[robot.joint("ball joint").q_slice] *= -1.0
    goal[robot.joint("sled joint").q_slice.start + 2] += 9.0
    agree(*both(robot, q, v, CURVED[law](robot, goal), method=method))


def circle(t):
    x = 0.3 * np.array([np.cos(t), np.sin(t), 1.0])
    return x, 0.3 * np.array([-np.sin(t), np.cos(t), 0.0])


def test_a_ball_comes_home():
    """The error of computed torque on a ball joint decays from any start, also beyond half a
    turn."""
    b = pp.Builder("ball")
    b.body("top", mass=2.0, com=(0.1, 0, 0.2), inertia=np.diag([0.1, 0.12, 0.05]))
    b.joint("ball", "spherical", parent="world", child="top")
    robot = b.build()
    q = robot.random(seed=3, size=64)
    goal = robot.random(seed=4)
    motion = pp.simulate(
        robot,
        q,
        tau=pp.ComputedTorque(robot, goal, 100, 20),
        duration=2.0,
        dt=2e-3,
        every=100,
        compiled=True,
    )
    assert np.abs(robot.difference(motion.final.q, goal)).max() < 1e-5


@pytest.mark.parametrize("policy", ["faded", "pseudo", "exact", "damped"])
@pytest.mark.parametrize("rows", [3, 6])
def test_operational_space(policy, rows):
    robot = puma()
    q, v = state(robot, 1, 5)
    goal = robot.frame_pose(robot.random(seed=3), "tool")
    target = goal[:3, 3] if rows == 3 else goal
    fast, slow = both(robot, q, v, pp.OperationalSpace(robot, "tool", target, policy=policy))
    agree(fast, slow)


@pytest.mark.parametrize(
    "options",
    [dict(hold=True), dict(method="euler"), dict(effort=20.0), dict(damping=0.3, every=4)],
)
def test_operational_space_along_a_path(options):
    robot = puma()
    q, v = state(robot, 3, 3)
    agree(*both(robot, q, v, pp.OperationalSpace(robot, "tool", circle, speed=0.0), **options))
    goals = robot.frame_pose(robot.random(seed=5, size=3), "tool")
    agree(*both(robot, q, v, pp.OperationalSpace(robot, "tool", goals), **options))


def test_through_a_singularity():
    """A straight elbow, an aligned wrist and an unreachable target: equal motions with bounded
    velocities."""
    robot = puma()
    control = pp.OperationalSpace(robot, "tool", np.array([2.0, 0.1, 0.5]))
    fast, slow = both(robot, np.zeros((2, 6)), None, control, duration=0.5, dt=5e-3)
    agree(fast, slow)
    assert np.isfinite(fast.q).all() and np.abs(fast.v).max() < 50.0
    robot = pendulum()
    fast, slow = both(
        robot, np.zeros(1), None, pp.OperationalSpace(robot, "rod", np.eye(4), policy="exact")
    )
    assert len(fast.events) == len(slow.events) == 1, (
        "exact says so: six rows of one joint have no inverse"
    )


@pytest.mark.parametrize("policy", ["faded", "pseudo", "damped"])
def test_a_point_no_joint_moves(policy):
    """The origin of the first link lies on its axis, so the task has no effect on the torques."""
    robot = puma()
    control = pp.OperationalSpace(
        robot, robot.bodies[0].name, np.ones(3), policy=policy, posture=np.ones(6)
    )
    q, v = state(robot, 1, 5)
    rest = 10.0 * (1.0 - q) - 6.0 * v
    np.testing.assert_allclose(
        control(0.0, q, v), robot.inverse_dynamics(q, v, rest), rtol=1e-9, atol=1e-9
    )
    agree(*both(robot, q, v, control))


@pytest.mark.parametrize("limit", [0.5, [1.0, 30.0, 5.0, 0.1, np.inf, 0.0]])
def test_effort_limits_cut_controllers(limit):
    robot = puma()
    q, v = state(robot, 2, 4)
    for control in (
        pp.GravityCompensation(robot),
        pp.PD(robot, np.zeros(6), 100.0, 10.0),
        pp.ComputedTorque(robot, np.ones(6)),
    ):
        fast, slow = both(robot, q, v, control, effort=limit)
        agree(fast, slow)
        assert (np.abs(fast.tau) <= limit).all() and (
            np.abs(fast.tau[..., 1]) == np.broadcast_to(limit, 6)[1]
        ).any()


CHAINED = {
    "nothing": lambda s, q: None,
    "torque": lambda s, q: np.linspace(-1.0, 1.0, s.na),
    "gravity": lambda s, q: pp.GravityCompensation(s),
    "PD": lambda s, q: pp.PD(s, q, 50.0, 5.0),
    "PD and gravity": lambda s, q: pp.PD(
        s, lambda t: s.integrate(q, 0.1 * np.sin(t) * np.ones(s.nv)), 50.0, 5.0, gravity=True
    ),
    "computed torque": lambda s, q: pp.ComputedTorque(s, q),
}


@pytest.mark.parametrize(
    ("law", "effort"),
    [*((law, False) for law in CHAINED), *((law, 30.0) for law in ("gravity", "computed torque"))],
)
def test_closed_chains_under_control(law, effort):
    """The effort limit clips what a law returns: a law of q alone, and one that also solves."""
    system, q = two_pumas()
    agree(*both(system, q, None, CHAINED[law](system, q), effort=effort))


@pytest.mark.parametrize("law", CHAINED)
def test_redundant_constraints_compile(law):
    """The hinge of the four-bar has three redundant rows; the motor drives the crank."""
    system = four_bar()
    q = system.assemble([0.5, 0.3, 1.0])
    v = system.project(q, [1.0, 0.0, 0.0])[1]
    fast, slow = both(system, np.tile(q, (3, 1)), v, CHAINED[law](system, q), duration=0.2, dt=2e-3)
    for name in ("q", "v", "a", "tau", "forces"):
        x, y = getattr(fast, name), getattr(slow, name)
        np.testing.assert_allclose(x, y, atol=1e-9 * (1.0 + np.abs(y).max()), err_msg=name)
    assert fast.residual.max() < 1e-11


def test_a_driven_four_bar_follows_its_crank():
    """Computed torque with one motor: the crank follows its target, the constraints move the
    rest."""
    system = four_bar()
    start = system.assemble([0.5, 0.3, 1.0])

    def path(t):
        return system.assemble(np.array([0.5 + 0.2 * np.sin(t), *start[1:]]), hold=["motor"])

    ways = {t: path(t) for t in (0.0, 0.5, 1.0)}
    control = pp.ComputedTorque(system, lambda t: path(t), 400.0, 40.0)
    motion = pp.simulate(system, start, tau=control, duration=0.5, dt=1e-2, compiled=True)
    assert np.abs(motion.final.q - ways[0.5]).max() < 0.05 and motion.residual.max() < 1e-10
    assert (motion.tau[:, 1:] == 0.0).all(), "no motor, no torque"


def test_what_neither_motor_nor_contact_turns_moves_as_it_must():
    """A beam held at two points cannot be turned about the line between them: the rest of the
    motion is controlled, in the kernel as in Python."""
    system, q = two_pumas()
    own = system.joint("beam/free").v_slice
    spun = system.integrate(q, 0.1 * np.eye(system.nv)[own][1])
    fast, slow = both(system, q, None, pp.ComputedTorque(system, spun), duration=8e-3)
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-12)
    assert np.isfinite(fast.q).all() and (fast.tau[:, own] == 0.0).all()


@pytest.mark.parametrize("every", [1, 4])
def test_motions_of_a_batch_are_each_their_own(every):
    system, q = two_pumas()
    spun = system.integrate(q, 0.1 * np.eye(system.nv)[system.joint("beam/free").v_slice][1])
    goals, starts = np.array([[q, spun], [q, q]]), np.tile(q, (2, 2, 1))
    Q, V = pp.rollout(system, starts, tau=pp.ComputedTorque(system, goals), steps=8, every=every)
    alone = pp.rollout(system, q, tau=pp.ComputedTorque(system, q), steps=8, every=every)[0]
    assert np.isfinite(Q).all() and np.isfinite(V).all()
    assert (Q[0, 0] == alone).all() and (Q[1] == alone).all()


def test_strained_motions_are_those_of_python(monkeypatch):
    """If every step counts as ill-conditioned, all motions run in Python, with their own
    torques."""
    system = four_bar()
    q = system.assemble([0.5, 0.3, 1.0])
    tau = np.zeros((3, 20, 3))
    tau[:, :, 0] = np.arange(3.0)[:, None]
    meant = pp.simulate(system, np.tile(q, (3, 1)), tau=tau, duration=0.02, every=5, compiled=False)
    monkeypatch.setattr(
        sys.modules["psiphi.simulation.compiled_rollout.rollout_runner"], "ILL_CONDITIONED", 0.0
    )
    found = pp.simulate(system, np.tile(q, (3, 1)), tau=tau, duration=0.02, every=5, compiled=True)
    np.testing.assert_allclose(found.q, meant.q, atol=1e-13)
    assert np.abs(found.q[2] - found.q[0]).max() > 1e-6


def test_rollouts_of_every_controller():
    robot = puma()
    q, v = state(robot, 6, 40)
    goal = robot.frame_pose(robot.random(seed=1), "tool")
    for control in (
        pp.GravityCompensation(robot),
        pp.PD(robot, np.ones(6), 9, 1),
        pp.OperationalSpace(robot, "tool", goal),
    ):
        many, _ = pp.rollout(robot, q, v, control, steps=20)
        few, _ = pp.rollout(robot, q[3:7], v[3:7], control, steps=20)
        one, _ = pp.rollout(robot, q[5], v[5], control, steps=20)
        assert (many[3:7] == few).all() and (many[5] == one).all(), "to the last bit, in any batch"


@pytest.mark.parametrize("rows", [3, 6])
def test_operational_space_of_no_motion(rows):
    robot = puma()
    control = pp.OperationalSpace(robot, "tool", np.zeros(3) if rows == 3 else np.eye(4))
    for compiled in (True, False):
        assert pp.simulate(
            robot, np.zeros((2, 0, 6)), tau=control, duration=0.01, compiled=compiled
        ).tau.shape == (2, 0, 11, 6)


def test_every_element_has_its_own_posture():
    """Also for the torques of the samples, and if there are as many samples as elements."""
    robot = puma()
    q, v = state(robot, 3, 3)
    postures, _ = state(robot, 4, 3)
    fast, slow = both(
        robot, q, v, pp.OperationalSpace(robot, "tool", np.ones(3), posture=postures), duration=2e-3
    )
    assert fast.q.shape == (3, 3, 6)
    agree(fast, slow)


@pytest.mark.parametrize("target", [lambda t: np.ones((2, 3)), lambda t: np.ones((2, 1, 3))])
def test_a_moving_target_that_does_not_fit(target):
    robot = puma()
    q, _ = state(robot, 3, 3)
    with pytest.raises(StateError, match=r"batch axes \(2,.*\), the initial state \(3,\)"):
        pp.simulate(
            robot, q, tau=pp.OperationalSpace(robot, "tool", target), duration=0.01, compiled=True
        )


def test_what_operational_space_refuses():
    robot = puma()
    for pose in (
        np.zeros((4, 4)),
        2.0 * np.eye(4),
        np.diag([1.0, 1.0, -1.0, 1.0]),
        lambda t: np.zeros((5, 4, 4)),
    ):
        with pytest.raises(StateError, match="the target is not a pose"):
            pp.OperationalSpace(robot, "tool", pose)
    with pytest.raises(StateError, match="posture holds numbers that are not finite"):
        pp.OperationalSpace(robot, "tool", np.ones(3), posture=np.full(6, np.nan))


def test_controllers_of_equal_systems():
    """A closed chain equals its pickled copy, but not the same chain with other motors."""
    system = four_bar()
    q = system.assemble([0.5, 0.3, 1.0])
    control = pp.ComputedTorque(system, q)
    again = pickle.loads(pickle.dumps(control))
    assert again.robot == system and hash(again.robot) == hash(system)
    assert (
        pp.rollout(system, q, tau=again, steps=3)[0]
        == pp.rollout(system, q, tau=control, steps=3)[0]
    ).all()
    other = type(system)(system.robot, system.closure.constraints, passive=("pivot",))
    assert other != system
    with pytest.raises(StateError, match="another system"):
        pp.rollout(other, q, tau=control, steps=3)
