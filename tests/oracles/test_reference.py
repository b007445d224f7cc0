"""The second opinion itself: against Pinocchio on every joint kind, and against laws that need no
peer."""

import numpy as np
import pytest
from hypothesis import given

from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo
from tests.oracles import reference

ROBOTS = pytest.mark.parametrize(
    "make", [thunk for _, thunk in zoo.ZOO], ids=[name for name, _ in zoo.ZOO]
)
MUJOCO_ROBOTS = pytest.mark.parametrize(
    "make", [t for _, t in zoo.mujoco_zoo()], ids=[name for name, _ in zoo.mujoco_zoo()]
)
MUJOCO_ROTORS = [
    kind for kind in zoo.MUJOCO_KINDS if kind not in ("free", "planar")
]  # its slides would need equal rotors
STEP = 1e-4


def assert_close(ours, theirs, message: str, tolerance: float = 1e-10) -> None:
    """|ours - theirs| within tolerance of the largest entry, or of one."""
    scale = max(1.0, np.abs(theirs).max(initial=0.0))
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=tolerance * scale, err_msg=message)


def agree(model, peer, seed: int = 0, tolerance: float = 1e-10) -> None:
    """Every quantity of the reference equals the peer's."""
    q, v, a, tau = zoo.random_state(model, seed)
    f_ext = {"tool": np.array([0.3, -0.2, 0.5, 4.0, -3.0, 2.0]), "elbow": np.ones(6)}
    pairs = {
        "inverse dynamics": [
            x(q, v, a, f_ext) for x in (_of(model, "inverse_dynamics"), peer.inverse_dynamics)
        ],
        "forward dynamics": [
            x(q, v, tau, f_ext) for x in (_of(model, "forward_dynamics"), peer.forward_dynamics)
        ],
        "mass matrix": [x(q) for x in (_of(model, "mass_matrix"), peer.mass_matrix)],
        "bias": [x(q, v) for x in (_of(model, "bias"), peer.bias)],
        "gravity": [x(q) for x in (_of(model, "gravity"), peer.gravity)],
        "energy": [x(q, v) for x in (_of(model, "energy"), peer.energy)],
        "centre of mass": [x(q) for x in (_of(model, "center_of_mass"), peer.center_of_mass)],
        "pose": [_of(model, "frame_pose")(q, "tool").matrix, peer.frame_pose(q, "tool")],
    }
    for axes in ("world", "frame"):
        pairs[f"velocity, {axes} axes"] = [
            x(q, v, "tool", axes) for x in (_of(model, "frame_velocity"), peer.frame_velocity)
        ]
        pairs[f"Jacobian, {axes} axes"] = [
            x(q, "elbow", axes) for x in (_of(model, "jacobian"), peer.jacobian)
        ]
    for name, (ours, theirs) in pairs.items():
        assert_close(ours, theirs, name, tolerance)


def _of(model, name: str):
    function = getattr(reference, name)
    return lambda *args: function(model, *args)


@ROBOTS
def test_zoo_agrees_with_pinocchio(make):
    model = make()
    agree(model, Pin(model))


@MUJOCO_ROBOTS
def test_zoo_agrees_with_mujoco(make):
    model = make()
    agree(model, Mj(model), tolerance=1e-8)


@given(model=zoo.trees(max_bodies=6))
def test_random_trees_agree_with_pinocchio(model):
    agree(model, Pin(model))


@given(model=zoo.trees(max_bodies=6, kinds=zoo.MUJOCO_KINDS, armature=False))
def test_random_trees_agree_with_mujoco(model):
    agree(model, Mj(model), tolerance=1e-8)


@given(model=zoo.trees(max_bodies=6, kinds=MUJOCO_ROTORS, armature=True))
def test_random_trees_with_rotors_agree_with_mujoco(model):
    agree(model, Mj(model), tolerance=1e-8)


@ROBOTS
def test_power_is_the_rate_of_energy(make):
    """d/dt E = tau . v along the motion, with rotors and gravity: inverse dynamics and energy know
    nothing of each other."""
    model = make()
    q, v, _, tau = zoo.random_state(model, 1)
    a = reference.forward_dynamics(model, q, v, tau)

    def energy(t):
        return reference.energy(model, model.integrate(q, v, t), v + t * a)

    # any curve with this q, v and a at t = 0 has the same rate there
    rate = (8 * (energy(STEP) - energy(-STEP)) - (energy(2 * STEP) - energy(-2 * STEP))) / (
        12 * STEP
    )
    assert_close(rate, tau @ v, "power", 1e-6)


@ROBOTS
def test_velocity_is_the_rate_of_integrate(make):
    """Joint velocities mean what `integrate` does: the reference's frame velocity by differences of
    its frame poses."""
    model = make()
    q, v, *_ = zoo.random_state(model, 2)
    ahead, behind = (
        reference.frame_pose(model, model.integrate(q, v, t), "tool") for t in (STEP, -STEP)
    )
    here, V = reference.frame_pose(model, q, "tool"), reference.frame_velocity(model, q, v, "tool")
    spin = (ahead.rotation - behind.rotation) / (2 * STEP) @ here.rotation.T
    assert_close(np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), V[:3], "angular velocity", 1e-5)
    assert_close(
        (ahead.translation - behind.translation) / (2 * STEP), V[3:], "linear velocity", 1e-5
    )


@ROBOTS
def test_integrate_and_difference_undo_each_other(make, rng):
    model = make()
    q0, q1, v = model.random(rng, 5), model.random(rng, 5), rng.uniform(-1.0, 1.0, (5, model.nv))
    assert_close(model.difference(q0, model.integrate(q0, v)), v, "difference after integrate")
    reached = model.integrate(q0, model.difference(q0, q1))
    for k in range(5):
        ours, wanted = reference.poses(model, reached[k]), reference.poses(model, q1[k])
        assert_close(
            [x.matrix for x in ours], [x.matrix for x in wanted], "integrate after difference"
        )
    assert_close(model.normalize(reached), reached, "integrate keeps quaternions at unit length")
    assert_close(model.integrate(q0, 0 * v), q0, "standing still")


@ROBOTS
def test_neutral_is_the_joint_frame(make):
    """The neutral configuration leaves every link at its joint frame."""
    model = make()
    for joint in model.joints:
        place = reference.joint_motion(
            joint, model.neutral()[joint.q_slice], np.zeros(joint.row.nv)
        ).pose
        assert_close(place.matrix, np.eye(4), f"neutral {joint.kind}")
