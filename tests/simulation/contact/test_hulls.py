"""Meshes that touch the ground with points of their convex hulls."""

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.model.contact.convex_hull import support_points
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import contact_gaps

URDF = """<robot name="rock"><link name="rock">
  <inertial><mass value="2"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0 0 0.1" rpy="0.3 0 0"/><geometry>
    <mesh filename="rock.obj" scale="1 2 0.5"/></geometry></collision>
</link></robot>"""


def clouds():
    rng = np.random.default_rng(0)
    turn = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    rim = np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], axis=-1)
    box = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 5)] * 3), axis=-1).reshape(-1, 3)
    ball = rng.standard_normal((600, 3))
    return {
        "points": (rng.standard_normal((300, 3)), None),
        "box": (box * [1.0, 2.0, 0.3], 8),
        "drum": (np.concatenate([rim + np.array([0, 0, z]) for z in (0.0, 0.3, 1.0)]), 48),
        "ball": (ball / np.linalg.norm(ball, axis=1, keepdims=True), 600),
    }


@pytest.mark.parametrize("name", clouds())
def test_points_support_the_cloud_up_to_their_error(name):
    """In any direction no point of the cloud is farther out than the error says; with enough points
    it is zero, and with more of them it does not grow."""
    cloud, corners = clouds()[name]
    directions = np.random.default_rng(1).standard_normal((4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = (directions @ cloud.T).max(axis=1)
    errors = []
    for most in (6, 16, len(cloud)):
        points, error = support_points(cloud, most)
        assert len(points) <= most and set(map(tuple, points)) <= set(map(tuple, cloud))
        missing = (reach - (directions @ points.T).max(axis=1)).max()
        assert missing <= error + 3e-7 and (missing >= 0.3 * error or most > 16)
        errors.append(error)
    assert errors[0] > errors[1] >= errors[2] == 0.0
    assert corners in (len(points), None)


def test_meshes_of_a_file_stand_on_the_ground(tmp_path):
    """The robot stands on the face that it would stand on as a body, with scale and pose."""
    corners = 0.1 * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    faces = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = [*("v {} {} {}".format(*x) for x in corners), "v 0 0 0"]
    lines += ["f {} {} {} {}".format(*face) for face in faces]
    (tmp_path / "rock.obj").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "rock.urdf").write_text(URDF, encoding="utf-8")
    rock = pp.load(tmp_path / "rock.urdf", base="free").with_contacts("collision")
    c, s = np.cos(0.3), np.sin(0.3)
    placed = corners * [1.0, 2.0, 0.5] @ np.array([[1, 0, 0], [0, c, s], [0, -s, c]]) + [0, 0, 0.1]
    found = np.array([point.center for point in rock.contact_points])
    np.testing.assert_allclose(
        found[np.lexsort(found.T.round(9))], placed[np.lexsort(placed.T.round(9))], atol=1e-12
    )
    q = rock.on_ground(rock.neutral())
    motion = pp.simulate(rock, q, duration=1.0, dt=2e-3, contacts=pp.Ground(friction=0.8))
    assert np.abs(motion.final.v).max() < 1e-3
    np.testing.assert_allclose(motion.forces[-1].sum(axis=0), [0, 0, 2 * 9.81], atol=1e-2)
    hills = pp.Ground(height=0.05 * np.sin(np.arange(25.0)).reshape(5, 5), size=(2, 2))
    states = pp.rollout(rock, rock.on_ground(q, hills), steps=100, dt=2e-3, contacts=hills)
    assert states.contact_residual.max() < 1e-4


def test_the_error_of_a_reduced_mesh_is_stated(tmp_path):
    rng = np.random.default_rng(0)
    ball = rng.standard_normal((200, 3))
    ball *= 0.1 / np.linalg.norm(ball, axis=1, keepdims=True)
    lines = ["v {} {} {}".format(*x) for x in ball] + ["f 1 2 3"]
    (tmp_path / "rock.obj").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "rock.urdf").write_text(URDF, encoding="utf-8")
    robot = pp.load(tmp_path / "rock.urdf", base="free")
    with pytest.warns(pp.ModelWarning, match=r"meshes of 1 link .* mm off \(of rock\)"):
        assert len(robot.with_contacts("collision").contact_points) == 8
    with pytest.warns(pp.ModelWarning, match="mm off"):
        assert len(robot.with_contacts("collision", mesh_points=20).contact_points) == 20
    hull = pp.Hull(ball, points=20)
    assert 0.0 < hull.error < pp.Hull(ball, points=8).error < 0.1
    (tmp_path / "rock.obj").unlink()
    with (
        pytest.raises(Error, match="no contact points"),
        pytest.warns(pp.ModelWarning, match="left out"),
    ):
        robot.with_contacts("collision")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"vertices": np.zeros((5, 3))}, "one plane"),
        ({"vertices": np.eye(4)[:, :3] * [1, 1, 0]}, "one plane"),
        ({"vertices": np.eye(3)}, "4 rows"),
        ({"vertices": np.full((4, 3), np.nan)}, "4 rows"),
        ({"vertices": "rock"}, "vertices is 'rock'"),
        ({"points": 3}, "at least 4"),
        ({"points": 5.5}, "points"),
    ],
)
def test_wrong_hulls_are_refused(given, words):
    box = pp.Builder("box")
    box.body("box", mass=1.0, inertia=np.eye(3))
    box.joint("base", "free", "world", "box")
    with pytest.raises(Error, match=words):
        hull = pp.Hull(**{"vertices": np.random.default_rng(0).random((9, 3)), **given})
        box.build().with_contacts({"box": hull})


def test_meshes_of_mujoco_touch_where_they_do_there(tmp_path):
    """The gap is MuJoCo's smallest distance from the floor, with the pose of the geom; the margin
    and friction are those of the file. What has no file is left out of saved ones."""
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(0)
    cloud = " ".join(map(str, (0.1 * rng.standard_normal((12, 3))).ravel()))
    xml = f"""<mujoco><asset><mesh name="m" vertex="{cloud}" scale="1 2 1"/></asset><worldbody>
      <geom type="plane" size="3 3 1" margin="5"/><body name="rock"><freejoint/>
      <geom type="mesh" mesh="m" density="500" pos="0.1 0 0.2" euler="20 30 10" friction="0.7"/>
      </body></worldbody></mujoco>"""
    peer = mujoco.MjModel.from_xml_string(xml)
    rock, data = (
        pp.from_mujoco(peer).with_contacts("collision", mesh_points=12),
        mujoco.MjData(peer),
    )
    assert set(rock.contact_friction) == {0.7}
    ground = GroundContact(rock, pp.Ground())
    for q in rock.random(seed=0, size=10):
        q[2] += 3.0
        data.qpos[:] = [*q[:3], q[6], *q[3:6]]
        mujoco.mj_forward(peer, data)
        lowest = min(contact.dist for contact in data.contact)
        assert contact_gaps(ground, q).min() == pytest.approx(lowest, abs=1e-6)
    rock.save(tmp_path / "rock.urdf")
    assert "mesh" not in (tmp_path / "rock.urdf").read_text(encoding="utf-8")
    rock.html(tmp_path / "rock.html")
