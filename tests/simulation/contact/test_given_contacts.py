"""Contacts that the user gives, beside the same contacts of shapes and of MuJoCo."""

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import frame_poses

DT, RADIUS = 1e-3, 0.1
CORNERS = np.array([(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.1, 0.1)])


def bodies(*names):
    builder = pp.Builder("bodies")
    for k, name in enumerate(names):
        builder.body(name, mass=1.0 + k, inertia=0.005 * np.eye(3))
        builder.joint(f"root {name}", "free", parent="world", child=name)
    return pp.Robot.of(builder.build())


@pytest.fixture(scope="module")
def box():
    return bodies("box")


@pytest.fixture(scope="module")
def two():
    return bodies("a", "b")


def corners_on(robot, z=0.0):
    """find= for the corners of a box on the plane at the height z."""

    def find(q):
        T = robot.frame_pose(q, "box")
        points = T[..., None, :3, 3] + np.einsum("...ij,kj->...ki", T[..., :3, :3], CORNERS)
        normals = np.broadcast_to([0.0, 0.0, 1.0], points.shape)
        return points, normals, points[..., 2] - z

    return find


def tumbling(count=5):
    rng = np.random.default_rng(0)
    q = np.zeros((count, 7))
    q[:, 2], q[:, 6] = 0.1 + 0.01 * (np.arange(count) % 2), 1.0
    return q, 0.5 * rng.standard_normal((count, 6))


@pytest.mark.parametrize("law", [{}, {"restitution": 0.5}, {"stiffness": 2e4, "damping": 20.0}])
def test_corners_of_a_box_are_the_same_given_or_as_shapes(box, law):
    """Steps and motions of a batch, with everything that is recorded."""
    q, v = tumbling()
    sole = box.with_contacts({"box": pp.Points(CORNERS)})
    ground = pp.Ground(friction=0.4, **law)
    pairs, find = [("box", "world")] * 4, corners_on(box)
    touch = pp.GivenContacts(pairs=pairs, find=find, friction=0.4, **law)
    tau = np.zeros((5, 6))
    expected, found = (
        robot.step(q, v, tau, DT, contacts=contacts)
        for robot, contacts in ((sole, ground), (box, touch))
    )
    for x, y in zip([*expected[:2], *expected[2]], [*found[:2], *found[2]], strict=True):
        np.testing.assert_allclose(y, x, atol=1e-9)
    motions = [
        pp.simulate(robot, q, v, duration=0.1, dt=DT, contacts=contacts)
        for robot, contacts in ((sole, ground), (box, touch))
    ]
    for name in ("q", "v", "gaps"):  # rebounds of redundant corners amplify rounding
        np.testing.assert_allclose(getattr(motions[1], name), getattr(motions[0], name), atol=1e-5)
    total = [motion.forces.sum(axis=-2) for motion in motions]
    np.testing.assert_allclose(total[1], total[0], atol=1e-3)
    assert motions[1].info["contacts"] == ["box", "box#2", "box#3", "box#4"]
    assert [e.name for e in motions[0].events] == [e.name for e in motions[1].events]


def test_a_pair_of_spheres_is_the_same_given_or_as_shapes(two):
    """The force is on the link of the first frame, the opposite one on that of the second. The law
    and the order of the numbers are those of the pair: the bits are equal."""
    pair = two.with_contacts(
        {"a": pp.Sphere(RADIUS), "b": pp.Sphere(RADIUS)}, pairs=[("a", "b")], ground=()
    )
    rng = np.random.default_rng(1)
    q = np.tile(two.neutral(), (6, 1))
    q[:, 7:10] = [0.15, 0.1, 0.08] + 0.01 * rng.standard_normal((6, 3))
    v = rng.standard_normal((6, 12))
    v[:, 3:6] += 2.0 * q[:, 7:10]
    contacts = GroundContact(pair, pp.Ground(friction=0.6))
    touch = pp.GivenContacts(pairs=[("a", "b")], friction=0.6)
    at = [contacts.pairs[0].approach(*places(contacts, x)) for x in q]
    given = touch.at([[x.point] for x in at], [[x.normal] for x in at], [[x.gap] for x in at])
    expected = pair.step(q, v, np.zeros(12), DT, contacts=contacts.ground)
    found = two.step(q, v, np.zeros(12), DT, contacts=given)
    assert np.abs(expected[2].forces).max() > 1.0
    np.testing.assert_allclose(found[1], expected[1], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found[2].forces, expected[2].forces, atol=1e-8)
    alone = touch.at([at[2].point], [at[2].normal], [at[2].gap])
    one = two.step(q[2], v[2], np.zeros(12), DT, contacts=alone)
    np.testing.assert_array_equal(one[1], found[1][2])
    with pytest.raises(Error, match=r"do not fit together: q \(3,\).*given \(6,\)"):
        two.step(q[:3], v[:3], np.zeros(12), DT, contacts=given)
    slippery = touch.at([at[2].point], [at[2].normal], [at[2].gap], friction=[0.0])
    _, _, smooth = two.step(q[2], v[2], np.zeros(12), DT, contacts=slippery)
    np.testing.assert_allclose(np.cross(smooth.forces[0], at[2].normal), 0.0, atol=1e-9)
    assert len(two.__dict__["_contact_steps"]) == 1, "the step is made once"


def places(contacts, q):
    T = frame_poses(contacts, q).reshape(-1, 4, 4)
    return [(x[:3, :3], x[:3, 3]) for x in T]


def test_shapes_of_the_robot_act_as_well(two):
    """Body a stands on the ground by its own points, b on a by given contacts."""
    robot = two.with_contacts({"a": pp.Points(CORNERS)})

    def find(q):
        T = robot.frame_pose(q, "b")
        points = T[..., None, :3, 3] + np.einsum("...ij,kj->...ki", T[..., :3, :3], CORNERS)
        top = robot.frame_pose(q, "a")[..., 2, 3, None] + 0.1
        return points, np.broadcast_to([0.0, 0.0, 1.0], points.shape), points[..., 2] - top

    touch = pp.GivenContacts(pairs=[("b", "a")] * 4, find=find, friction=0.5)
    q = robot.on_ground(robot.neutral(), touch)
    q[9] = q[2] + 0.2
    motion = pp.simulate(robot, q, duration=0.1, dt=2e-3, contacts=touch)
    forces = motion.forces[-1]
    np.testing.assert_allclose(forces[:4].sum(axis=0), [0, 0, 3.0 * 9.81], atol=1e-4)
    np.testing.assert_allclose(forces[4:].sum(axis=0), [0, 0, 2.0 * 9.81], atol=1e-4)
    np.testing.assert_allclose(motion.q[-1], q, atol=1e-6)


def test_mujoco_supplies_the_contacts_of_a_mesh():
    """A tetrahedron, a mesh, comes to rest on a face: MuJoCo finds its contacts."""
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><asset><mesh name="m" vertex="0 0 .2  .2 0 -.1  -.1 .18 -.1  -.1 -.18 -.1"/>
      </asset><worldbody><geom type="plane" size="3 3 1" margin="0.02"/><body><freejoint/>
      <geom type="mesh" mesh="m" density="100" margin="0.02"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data, most = mujoco.MjData(model), 4
    builder = pp.Builder("tetrahedron")
    builder.body("link", mass=float(model.body_mass[1]), inertia=np.diag(model.body_inertia[1]))
    builder.joint("root", "free", "world", "link")
    robot = pp.Robot.of(builder.build())

    def contacts(q):
        data.qpos[:] = [*q[:3], q[6], *q[3:6]]
        mujoco.mj_forward(model, data)
        points, normals = np.zeros((most, 3)), np.tile([0.0, 0.0, 1.0], (most, 1))
        gaps = np.ones(most)  # of contacts that are not there
        for k, found in enumerate(data.contact[:most]):
            points[k], normals[k], gaps[k] = found.pos, found.frame[:3], found.dist
        return points, normals, gaps

    touch = pp.GivenContacts(pairs=[("link", "world")] * most, friction=0.6)
    q, v = np.array([0.0, 0.0, 0.2, 0.1, 0.05, 0.0, 0.9937]), np.zeros(6)
    q[3:7] /= np.linalg.norm(q[3:7])
    for _ in range(700):
        q, v, state = robot.step(q, v, np.zeros(6), DT, contacts=touch.at(*contacts(q)))
    assert np.abs(v).max() < 1e-6
    weight = 9.81 * model.body_mass[1]
    np.testing.assert_allclose(state.forces.sum(axis=0), [0, 0, weight], atol=1e-6)


def test_what_is_not_there_is_refused(box):
    touch = pp.GivenContacts(pairs=[("box", "world")], friction=0.5)
    q, v = box.neutral(), np.zeros(6)
    good = {"points": [[0, 0, 0]], "normals": [[0, 0, 1]], "gaps": [0.0]}

    def simulated(contacts):
        return pp.simulate(box, q, duration=0.01, dt=DT, contacts=contacts)

    def replaced(find):
        return pp.GivenContacts(pairs=[("box", "world")], find=find)

    def stepped(pairs):
        given = pp.GivenContacts(pairs=pairs).at(**good)
        return box.step(q, v, v, DT, contacts=given)

    for words, given in (
        (r"points is of shape \(3,\)", {"points": [0, 0, 0]}),
        (r"gaps is of shape \(2,\)", {"gaps": [0.0, 0.0]}),
        ("a normal has the length 2", {"normals": [[0, 0, 2]]}),
        ("gaps has entries that are not finite", {"gaps": [np.nan]}),
        ("normals is 'up'", {"normals": "up"}),
        ("friction is", {"friction": [-1.0]}),
    ):
        with pytest.raises(Error, match=words):
            touch.at(**{**good, **given})
    for words, call in (
        ("no points, normals and gaps", lambda: box.step(q, v, v, DT, contacts=touch)),
        ("step by step", lambda: pp.rollout(box, q, steps=1, dt=DT, contacts=touch)),
        ("of one configuration", lambda: simulated(touch.at(**good))),
        ("find returned 3", lambda: simulated(replaced(lambda q: 3))),
        ("find: points", lambda: simulated(replaced(lambda q: (0.0, 0.0, 0.0)))),
        ("pairs is", lambda: pp.GivenContacts()),
        ("pairs has", lambda: pp.GivenContacts(pairs=["box"])),
        ("on one body", lambda: stepped([("box", "box")])),
        ("'hand'", lambda: stepped([("hand", "world")])),
        (
            "live page: given",
            lambda: box.with_contacts({"box": pp.Point()}).html(
                "x.html", live=True, contacts=touch
            ),
        ),
    ):
        with pytest.raises(Error, match=words):
            call()
