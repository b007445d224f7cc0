"""Hybrid dynamics and parts of robots, beside dense solves with Pinocchio's torques."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo
from tests.robot.embedding.mechanisms import slider_crank

PUSH = {"tool": np.array([0.3, -0.2, 0.5, 4.0, -3.0, 2.0]), "elbow": np.arange(6.0)}
MODELS = {
    "kinds": lambda: zoo.random_tree(7, 8, kinds=[k for k in zoo.KINDS if k != "fixed"]),
    "rotors": lambda: zoo.random_tree(4, 6, kinds=["revolute", "prismatic"], armature=True),
    "floating": lambda: zoo.free_tree(5, 2),
}


@pytest.fixture(scope="module", params=list(MODELS))
def case(request):
    """A robot, a state with torques and accelerations, M and the bias, dense."""
    model = MODELS[request.param]()
    robot, peer = Robot.of(model), Pin(model)
    q, v, a, tau = zoo.random_state(robot, np.random.default_rng(1))
    each = [peer.inverse_dynamics(q, 0 * v, e) for e in np.eye(robot.nv)]
    M = np.stack(each, axis=-1) - peer.inverse_dynamics(q, 0 * v, 0 * v)[:, None]
    bias = peer.inverse_dynamics(q, v, 0 * a, PUSH)
    return robot, q, v, tau, a, M, bias


def dense(M, bias, tau, a, held):
    """The rows of the free coordinates, solved; the torques of all."""
    a = np.where(held, a, 0.0)
    free = ~held
    a[free] = np.linalg.solve(M[np.ix_(free, free)], (tau - bias - M @ a)[free])
    return a, np.where(held, M @ a + bias, tau)


def close(got, want):
    scale = 1.0 + np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0.0, atol=1e-8 * scale)


def test_held_joints_follow_and_the_others_are_driven(case):
    """Any set of joints, none and all, with wrenches; what is ignored may be NaN."""
    robot, q, v, tau, a, M, bias = case
    rng = np.random.default_rng(0)
    sets = [robot.joint_names, robot.joint_names[:1], robot.joint_names[-1:]]
    sets += [[x for x in robot.joint_names if rng.random() < 0.5] or sets[1] for _ in range(4)]
    for names in sets:
        held = np.zeros(robot.nv, dtype=bool)
        for name in names:
            held[robot.joint(name).v_slice] = True
        given = np.where(held, np.nan, tau), np.where(held, a, np.nan)
        got = robot.hybrid_dynamics(q, v, *given, list(names), f_ext=PUSH)
        for x, want in zip(got, dense(M, bias, tau, a, held), strict=True):
            close(x, want)
        np.testing.assert_array_equal(got[0][held], a[held])
        np.testing.assert_array_equal(got[1][~held], tau[~held])
    nobody = robot.hybrid_dynamics(q, v, tau, a, np.zeros(robot.nv), f_ext=PUSH)
    close(nobody[0], robot.forward_dynamics(q, v, tau, f_ext=PUSH))


def test_what_is_held_may_differ_within_a_batch(case):
    """Also within one joint of several coordinates."""
    robot, q, v, tau, a, M, bias = case
    held = np.random.default_rng(2).random((6, robot.nv)) < 0.5
    got = robot.hybrid_dynamics(q, v, tau, a, held, f_ext=PUSH)
    for i in range(6):
        for x, want in zip(got, dense(M, bias, tau, a, held[i]), strict=True):
            close(x[i], want)


def test_a_part_with_the_rest_locked_moved_and_carried_along(case):
    robot, q, v, tau, a, M, bias = case
    part = robot.part(robot.joint_names[1:4])
    rows, others = part.coordinates, part.other_coordinates
    block = M[np.ix_(rows, rows)]
    assert sorted([*rows, *others]) == list(range(robot.nv)) and part.nv == len(rows)
    close(part.mass_matrix(q), block)
    for rest, a_rest in ((None, 0.0 * a[others]), (a[others], a[others])):
        coupling = M[np.ix_(rows, others)] @ a_rest
        want = np.linalg.solve(block, (tau - bias)[rows] - coupling)
        close(part.forward_dynamics(q, v, tau[rows], rest, f_ext=PUSH), want)
        torque = block @ a[rows] + coupling + bias[rows]
        close(part.inverse_dynamics(q, v, a[rows], rest, f_ext=PUSH), torque)
    torques = np.zeros(robot.nv)
    torques[rows] = tau[rows]
    carried = np.linalg.solve(M, torques - bias)
    got = part.forward_dynamics(q, v, tau[rows], "free", f_ext=PUSH)
    close(got, carried[rows])
    close(part.inverse_dynamics(q, v, carried[rows], "free", f_ext=PUSH), tau[rows])
    close(part.bias(q, v), robot.bias(q, v)[rows])
    close(part.gravity(q), robot.gravity(q)[rows])
    close(part.jacobian(q, "tool"), robot.jacobian(q, "tool")[:, rows])


def test_a_locked_rest_is_a_locked_robot():
    """As the robot without the joints of the rest, in batches."""
    robot = pp.load("ur5")
    part, q = robot.part(["elbow_joint", "wrist_*"]), robot.random(seed=1)
    locked = robot.lock(["shoulder_*"], at=q)
    rng = np.random.default_rng(0)
    own, tau = rng.standard_normal((2, 5, 4))
    v = np.zeros((5, 6))
    v[:, part.coordinates] = own
    got = part.forward_dynamics(q, v, tau)
    close(got, locked.forward_dynamics(q[part.coordinates], own, tau))


def test_parameters_and_embedded_loops():
    robot = Robot.of(zoo.chain("arm", ["revolute", "prismatic", "revolute"], 2))
    light = robot.free("mass")
    p = 1.3 * light.parameters()
    q, v, tau, a = np.random.default_rng(0).standard_normal((4, 3))
    held = robot.joint_names[:1]
    heavy = light.at(p)
    got = light.hybrid_dynamics(q, v, tau, a, held, parameters=p)
    for x, y in zip(got, heavy.hybrid_dynamics(q, v, tau, a, held), strict=True):
        close(x, y)
    close(heavy.inverse_dynamics(q, v, got[0]), got[1])
    crank = slider_crank("to crank")
    q, v, tau, a = crank.random(seed=0), np.array([0.3]), np.array([1.0]), np.array([2.0])
    close(crank.hybrid_dynamics(q, v, tau, a, "to crank")[1], crank.inverse_dynamics(q, v, a))


def test_long_robots_and_single_precision():
    robot = pp.robots.chain(70)
    q, v, tau, a = np.random.default_rng(0).standard_normal((4, 70))
    names = robot.joint_names[10:40]
    found, torque = robot.hybrid_dynamics(q, v, tau, a, names)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, found), torque, rtol=1e-6, atol=1e-6)
    robot = pp.load("ur5")
    q, v, tau, a = np.random.default_rng(0).standard_normal((4, 6))
    held = np.array([1, 0, 0, 1, 0, 0])
    single = robot.hybrid_dynamics(*(x.astype(np.float32) for x in (q, v, tau, a)), held)
    for x, y in zip(single, robot.hybrid_dynamics(q, v, tau, a, held), strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3 * np.abs(y).max())


def test_derivatives_of_torch():
    torch = pytest.importorskip("torch")
    robot = Robot.of(zoo.chain("arm", ["revolute", "prismatic", "revolute"], 2))
    rng = np.random.default_rng(0)
    values = [torch.tensor(x, requires_grad=True) for x in rng.standard_normal((4, 3))]
    held = np.array([False, True, False])
    assert torch.autograd.gradcheck(lambda *x: robot.hybrid_dynamics(*x, held), values)
    part = robot.part(robot.joint_names[::2])
    q, v, tau, rest = (*values[:2], values[2][:2], values[3][:1])
    got = part.forward_dynamics(q, v, tau, rest)
    plain = part.forward_dynamics(*(x.detach().numpy() for x in (q, v, tau, rest)))
    close(got.detach().numpy(), plain)


@pytest.mark.parametrize(
    ("held", "match"),
    [("elbo", "elbow_joint"), ([0.5] * 6, "booleans"), ([True] * 5, "booleans"), (3, "names")],
)
def test_unknown_joints_and_masks(held, match):
    robot = pp.load("ur5")
    with pytest.raises(pp.StateError, match=match):
        robot.hybrid_dynamics(*np.zeros((4, 6)), held)


def test_vectors_of_the_wrong_size():
    part = pp.load("ur5").part("wrist_*")
    zero = np.zeros(6)
    for bad in ({"tau": zero}, {"tau": np.zeros(3), "rest": zero}, {"tau": zero[:3], "rest": "no"}):
        with pytest.raises(pp.StateError):
            part.forward_dynamics(zero, zero, **bad)
