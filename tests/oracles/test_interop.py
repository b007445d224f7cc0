"""Conversions to the peers' conventions: round trips, what must not change, the peers' own numbers
against the reference."""

# pyright: reportAttributeAccessIssue=false
# (both peers are compiled modules without stubs)

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from psiphi import interop
from psiphi._util.errors import StateError
from psiphi.model.builder.builder import Builder
from psiphi_bench.peers.mujoco_peer import Mj, mujoco_model
from psiphi_bench.peers.peer import Unsupported
from psiphi_bench.peers.pinocchio_peer import Pin, pinocchio_model
from tests import zoo
from tests.oracles import reference

PEERS = pytest.mark.parametrize("peer", [interop.pinocchio, interop.mujoco])
PAIRS = [(interop.pinocchio, *row) for row in zoo.ZOO] + [
    (interop.mujoco, *row) for row in zoo.mujoco_zoo()
]
EACH = pytest.mark.parametrize(
    ("peer", "make"), [(p, t) for p, _, t in PAIRS], ids=[f"{p.__name__}-{n}" for p, n, _ in PAIRS]
)


def close(ours, theirs, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(
        ours, theirs, rtol=tolerance, atol=tolerance * max(1.0, np.abs(theirs).max(initial=0.0))
    )


@EACH
def test_round_trips(make, peer, rng):
    """from_x undoes to_x for every quantity, over leading axes."""
    model = make()
    L = peer(model)
    q, v, a, tau = zoo.random_state(model, rng, (2, 3))
    M, J, x = (
        rng.standard_normal((2, 3, k, n)) for k, n in ((model.nv, model.nv), (6, model.nv), (1, 6))
    )
    Q, V = L.to_q(q), L.to_v(v, q)
    close(L.from_q(Q), q)
    close(L.from_v(V, Q), v)
    close(L.from_a(L.to_a(a, q, v), Q, V), a)
    close(L.from_tau(L.to_tau(tau, q), Q), tau)
    close(L.from_mass_matrix(L.to_mass_matrix(M, q), Q), M)
    close(L.from_bias(L.to_bias(tau, M, q, v), L.to_mass_matrix(M, q), Q, V), tau)
    close(L.from_jacobian(L.to_jacobian(J, q), Q), J)
    close(L.from_spatial(L.to_spatial(x)), x)


@EACH
def test_what_must_not_change(make, peer, rng):
    """Power, kinetic energy, the equation of motion and frame velocities are the same in either
    convention."""
    model = make()
    L = peer(model)
    q, v, a, bias = zoo.random_state(model, rng)
    J = rng.standard_normal((6, model.nv))
    M = J.T @ J + np.eye(model.nv)
    tau = M @ a + bias
    Q, V, A, T = L.to_q(q), L.to_v(v, q), L.to_a(a, q, v), L.to_tau(tau, q)
    close(T @ V, tau @ v)
    close(V @ L.to_mass_matrix(M, q) @ V, v @ M @ v)
    close(T, L.to_mass_matrix(M, q) @ A + L.to_bias(bias, M, q, v))
    close(L.to_jacobian(J, q) @ V, np.roll(J @ v, 3))
    assert Q.shape == (L.nq,) and V.shape == (L.nv,)


@EACH
def test_acceleration_is_the_rate_of_velocity(make, peer, rng):
    """a' = d/dt v' along q(t), v(t) = v + t a."""
    model, h = make(), 1e-5
    L = peer(model)
    q, v, a, _ = zoo.random_state(model, rng)
    ahead, behind = (L.to_v(v + t * a, model.integrate(q, v, t)) for t in (h, -h))
    close(L.to_a(a, q, v), (ahead - behind) / (2 * h), 1e-7)


@PEERS
def test_one_state_meets_a_batch(peer, rng):
    model = zoo.random_tree(3, 6, kinds=zoo.MUJOCO_KINDS)
    L = peer(model)
    q, v, a, _ = zoo.random_state(model, rng, (4,))
    one = np.stack([L.to_a(a[0], qk, v[0]) for qk in q])
    close(L.to_a(a[0], q, v[0]), one)
    close(
        L.to_mass_matrix(np.eye(model.nv), q),
        np.broadcast_to(np.eye(model.nv), (4, model.nv, model.nv)),
    )


def assert_peer_speaks_psiphi(model, peer, seed: int, tolerance: float) -> None:
    """The peer's numbers, converted, are the reference's, over a batch."""
    q, v, a, tau = zoo.random_state(model, seed, (2,))
    wrench = np.random.default_rng(seed).standard_normal((2, 6))
    for k, answers in enumerate(
        zip(
            peer.mass_matrix(q),
            peer.jacobian(q, "tool"),
            peer.inverse_dynamics(q, v, a, {"elbow": wrench}),
            peer.forward_dynamics(q, v, tau, {"elbow": wrench}),
            peer.bias(q, v),
            strict=True,
        )
    ):
        M, J, torque, acceleration, bias = answers
        close(M, reference.mass_matrix(model, q[k]), tolerance)
        close(J, reference.jacobian(model, q[k], "tool"), tolerance)
        close(
            torque,
            reference.inverse_dynamics(model, q[k], v[k], a[k], {"elbow": wrench[k]}),
            tolerance,
        )
        close(
            acceleration,
            reference.forward_dynamics(model, q[k], v[k], tau[k], {"elbow": wrench[k]}),
            tolerance,
        )
        close(bias, reference.bias(model, q[k], v[k]), tolerance)


@pytest.mark.parametrize("seed", range(8))
def test_pinocchio_speaks_psiphi(seed):
    model = zoo.random_tree(seed, 7, forest=seed % 2 == 1, armature=seed % 3 == 2)
    assert_peer_speaks_psiphi(model, Pin(model), seed, 1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_mujoco_speaks_psiphi(seed):
    model = zoo.random_tree(seed, 7, kinds=zoo.MUJOCO_KINDS, forest=seed % 2 == 1)
    assert_peer_speaks_psiphi(model, Mj(model), seed, 1e-8)


def two_arms(names: list[str]):
    """A forest whose arms stand in the given order; an arm's numbers depend on its name only."""
    builder = Builder("arms")
    for name in names:
        rng = np.random.default_rng(ord(name))
        for part, parent, kind in (
            (f"{name}1", "world", "free"),
            (f"{name}2", f"{name}1", "continuous"),
        ):
            zoo.random_body(builder, rng, part)
            zoo.random_joint(builder, rng, kind, parent, part)
    builder.frame("tool", "a2", xyz=(0.1, 0.2, 0.3))
    builder.frame("elbow", "b1")
    return builder.build()


@pytest.mark.parametrize("wrap", [Pin, Mj])
def test_joints_are_matched_by_name(wrap):
    """The peer has the arms the other way round; its model, or the list of its joint names, sets
    things right."""
    model, other = two_arms(["a", "b"]), two_arms(["b", "a"])
    peer = wrap(model)
    peer.peer = {Pin: pinocchio_model, Mj: mujoco_model}[wrap](other)
    peer.data = peer.peer.createData() if wrap is Pin else mujoco.MjData(peer.peer)
    convert = {Pin: interop.pinocchio, Mj: interop.mujoco}[wrap]
    for order in (peer.peer, [joint.name for joint in other.joints]):
        peer.layout = convert(model, order)
        assert_peer_speaks_psiphi(model, peer, 5, 1e-8)


@PEERS
def test_a_free_base_may_have_another_name(peer):
    model = zoo.chain("floating", ["free", "continuous"], 1)
    L = peer(model, ["root_joint", "joint_b1"])
    assert [slot.joint.name for slot in L.slots] == ["joint_b0", "joint_b1"]


def test_an_unnamed_free_joint_of_mujoco():
    """MJCF files often leave the floating base's joint without a name."""
    xml = """<mujoco><worldbody><body><joint name="spin"/><geom size="1"/></body>
    <body><freejoint/><geom size="1"/></body></worldbody></mujoco>"""
    builder = Builder("pair")
    for name, kind in (("base", "free"), ("spin", "revolute")):
        builder.body(f"{name}_link", mass=1.0, inertia=np.eye(3))
        builder.joint(name, kind, "world", f"{name}_link")
    L = interop.mujoco(builder.build(), mujoco.MjModel.from_xml_string(xml))
    close(L.to_q([1, 2, 3, 0, 0, 0, 1, 0.5]), [0.5, 1, 2, 3, 1, 0, 0, 0])


def test_a_continuous_joint_kept_as_one_angle():
    """Pinocchio may hold an unlimited joint as a plain revolute one, and a limited one as (cos,
    sin)."""
    model, peer = zoo.chain("wheels", ["continuous", "revolute"], 1), pin.Model()
    peer.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "joint_b0")
    peer.addJoint(1, pin.JointModelRUBX(), pin.SE3.Identity(), "joint_b1")
    close(interop.pinocchio(model, peer).to_q([0.3, 0.4]), [0.3, np.cos(0.4), np.sin(0.4)])


def test_pinocchio_and_mujoco_layouts_in_numbers():
    """One floating body, a quarter turn about z, moving along its own x: the table of the docs,
    spelt out."""
    builder = Builder("puck")
    builder.body("puck", mass=1.0, inertia=np.eye(3))
    builder.joint("float", "free", "world", "puck")
    model, h = builder.build(), np.sqrt(0.5)
    q, v = [1, 2, 3, 0, 0, h, h], [0.1, 0.2, 0.3, 5, 0, 0]
    close(interop.pinocchio(model).to_q(q), q)
    close(interop.pinocchio(model).to_v(v), [5, 0, 0, 0.1, 0.2, 0.3])
    close(interop.mujoco(model).to_q(q), [1, 2, 3, h, 0, 0, h])
    close(interop.mujoco(model).to_v(v, q), [0, 5, 0, 0.1, 0.2, 0.3])
    close(interop.mujoco(model).to_a(np.zeros(6), q, v), [-0.3 * 5, 0, -0.2 * 5, 0, 0, 0])
    close(interop.pinocchio(model).to_spatial([1, 2, 3, 4, 5, 6]), [4, 5, 6, 1, 2, 3])


def test_refusals():
    """What came, what was expected, what to do."""
    arm, floating = zoo.chain("arm", ["helical"], 1), zoo.chain("floating", ["free"], 1)
    with pytest.raises(StateError, match="MuJoCo has no helical joint"):
        interop.mujoco(arm)
    with pytest.raises(StateError, match=r"q is missing.*depends on it.*pass q="):
        interop.mujoco(floating).to_v(np.zeros(6))
    with pytest.raises(StateError, match=r"v has shape \(5,\), expected \(..., 6\)"):
        interop.pinocchio(floating).to_v(np.zeros(5))
    with pytest.raises(StateError, match="no joint 'joint_b0'"):
        interop.pinocchio(arm, ["elbow", "wrist"])
    with pytest.raises(StateError, match=r"has wrist. Remedy: name each joint of arm once"):
        interop.pinocchio(arm, ["joint_b0", "wrist"])
    with pytest.raises(StateError, match="has a name twice"):
        interop.pinocchio(arm, ["joint_b0", "joint_b0"])
    with pytest.raises(StateError, match="fill 1 of Pinocchio's 6"):
        sample = pin.buildSampleModelManipulator()
        sample.names[1] = "joint_b0"
        interop.pinocchio(zoo.chain("arm", ["revolute"], 1), sample)


ROBOTS = [
    path
    for path in zoo.example_robots()
    if path.name in ("panda.urdf", "pr2.urdf", "solo12.urdf", "ur5_robot.urdf")
]


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_pinocchio_reads_the_same_robot(path, base):
    """Both libraries read the file themselves: order of joints, merged links, free base and frames
    included."""
    peer = Pin.from_urdf(path, base)
    model = peer.model
    q, v, a, _ = zoo.random_state(model, 1)
    close(peer.inverse_dynamics(q, v, a), reference.inverse_dynamics(model, q, v, a), 1e-10)
    for frame in list(model.frames)[:: max(1, len(model.frames) // 8)]:
        close(peer.frame_pose(q, frame), reference.frame_pose(model, q, frame).matrix, 1e-10)
        V = reference.frame_velocity(model, q, v, frame, "frame")
        close(peer.frame_velocity(q, v, frame, "frame"), V, 1e-10)


def test_peers_say_what_they_cannot_do():
    with pytest.raises(Unsupported, match="helical"):
        Mj(zoo.chain("arm", ["helical"], 1))
    with pytest.raises(Unsupported, match="rotors"):
        Mj(zoo.chain("sled", ["planar"], 1, armature=True))
