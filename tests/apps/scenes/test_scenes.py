"""Scene files: what they build moves as it should, and a mistake is named with its file and key."""

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes
from psiphi._util.errors import Error
from psiphi.apps.scenes.scene_controllers import law
from psiphi.model.spatial.rotations import logarithm, quaternions

ONE = '[robots.arm]\nrobot = "acrobot"\n'
TWO = """
[robots.left]
robot = "ur5"
at = [-0.7, 0, 0]
q = [-0.264, -1.542, 1.464, 0.078, 1.306, 0.0]
[robots.right]
robot = "ur5"
at = [0.7, 0, 0]
rpy = [0, 0, 3.141592653589793]
q = [-0.264, -1.542, 1.464, 0.078, 1.306, 0.0]
"""
DOG = '[robots.dog]\nrobot = "anymal_c"\n'
BOX = "[object]\nmass = 2.0\nbox = [0.4, 0.3, 0.2]\nat = [0, 0, 0.45]\n"
GRASPS = '[[grasps]]\nrobot = "left"\nframe = "tool"\n[[grasps]]\nrobot = "right"\nframe = "tool"\n'


def load(tmp_path, text: str) -> scenes.SceneSetup:
    file = tmp_path / "scene.toml"
    file.write_text(text, encoding="utf-8")
    return scenes.load(file)


def test_a_robot_alone(tmp_path):
    joints = [joint.name for joint in pp.load("acrobot").joints]
    case = load(tmp_path, f"duration = 0.1\n{ONE}q = {{ {joints[1]} = 0.3 }}\nv = [0.0, 1.0]\n")
    assert (
        case.q0.tolist() == [0.0, 0.3] and case.v0.tolist() == [0.0, 1.0] and case.title == "scene"
    )
    motion = case.run()
    assert motion.t[-1] == pytest.approx(0.1) and motion.drift < 1e-8


def test_a_file_beside_the_scene(tmp_path):
    mass = (
        '<inertial><origin xyz="0 0 -1"/><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    (tmp_path / "own.urdf").write_text(
        f'<robot name="own"><link name="a"/><link name="b">{mass}</link>{joint}</robot>',
        encoding="utf-8",
    )
    case = load(tmp_path, '[robots.x]\nrobot = "own.urdf"\n')
    assert case.system.name == "own" and case.system.nv == 1


def test_the_box_goes_where_the_path_says():
    case = scenes.load("two_arms")
    motion = case.run(duration=1.5)
    start, end = case.q0[-7:], motion.final.q[-7:]
    assert (
        np.allclose(end[:3] - start[:3], [0.0, 0.0, 0.18], atol=1e-4)
        and np.abs(motion.final.v).max() < 3e-3
    )
    assert motion.residual.max() < 1e-9
    still = motion.forces[-1, :, 3:]
    assert np.allclose(still.sum(axis=0), [0, 0, 5.0 * 9.81], atol=0.05), (
        "the contacts carry the weight"
    )
    assert still[0, 0] > 35 and still[1, 0] < -35, "and squeeze"
    assert not motion.tau[:, -6:].any(), "nothing but the arms has motors"


def test_a_reference_is_its_own_derivative():
    case = scenes.load("two_arms")
    target, h = case.tau.reference.sources[0], 1e-5
    assert type(case.tau) is pp.ObjectControl
    for t in (0.4, 2.2, 3.9):
        (T0, V0, _), (_, V1, A1), (T2, V2, _) = (target(t + d) for d in (-h, 0.0, h))
        turned = np.array(logarithm(quaternions(T2[:3, :3] @ T0[:3, :3].T))[0])
        assert np.allclose(np.concatenate([turned, T2[:3, 3] - T0[:3, 3]]) / (2 * h), V1, atol=1e-6)
        assert np.allclose((V2 - V0) / (2 * h), A1, atol=1e-5)
    assert np.allclose(target(99.0)[1], 0.0)


def test_carrying_compiles():
    """The law of the scene runs in the kernel of the motion, and moves it as steps in Python do."""
    case = scenes.load("two_arms")
    one, other = (
        case.run(duration=0.1, method="euler", compiled=compiled) for compiled in (True, False)
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-11)
    np.testing.assert_allclose(one.tau, other.tau, atol=1e-8)


@pytest.mark.parametrize("kind", ["hold", "pd", "computed"])
def test_arms_hold_the_box(tmp_path, kind):
    case = load(
        tmp_path, f'duration = 0.1\ndt = 0.005\n{TWO}{BOX}{GRASPS}[controller]\nkind = "{kind}"\n'
    )
    motion = case.run()
    assert np.abs(motion.v).max() < 1e-9
    assert not np.asarray(motion.tau)[:, -6:].any()
    if kind != "hold":  # pushed away, it comes back
        v0 = case.system.project(case.q0, np.full(18, 0.05))[1]
        back = case.run(v0=v0, duration=1.0, dt=0.01)
        far, end = (np.abs(case.system.difference(case.q0, back.q[k])).max() for k in (10, -1))
        assert end < far / 4


def test_a_computed_law_is_the_controller_of_that_name():
    """On the bundled four-bar: the torques of `pp.ComputedTorque`, which are those of the
    acceleration that M u + C v + g causes."""
    case = scenes.load("four_bar")
    system, q0 = case.system, case.q0
    control = law("computed", system, q0, 100.0, 20.0)
    assert type(control) is pp.ComputedTorque
    q, v = system.project(
        system.integrate(q0, np.array([0.1, 0.0, 0.0])), np.array([1.0, 0.0, 0.0])
    )
    u = 100.0 * system.difference(q, q0) - 20.0 * v
    a = system.forward_dynamics(q, v, system.robot.inverse_dynamics(q, v, u))
    meant = system.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(control(0.0, q, v), meant, atol=1e-8 * np.abs(meant).max())
    one, other = (
        pp.simulate(system, q0, tau=control, duration=0.05, compiled=compiled).final
        for compiled in (True, False)
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-9)


def test_contacts_of_every_kind(tmp_path):
    grips = (
        GRASPS.replace(
            'frame = "tool"\n[[', 'frame = "tool"\ncontact = "soft"\nnormal = [1, 0, 0]\n[[', 1
        )
        + 'contact = "point"\n'
    )
    case = load(tmp_path, TWO + BOX + grips)
    assert [c.kind for c in case.system.contacts] == ["soft", "ball"]


def test_the_four_bar_turns():
    """The crank has its given angle and speed, the loop is closed, and the crank turns fully."""
    case = scenes.load("four_bar")
    assert case.q0[0] == pytest.approx(0.4) and case.v0[0] == pytest.approx(20.0)
    assert np.abs(case.system.constraint_residual(case.q0, case.v0)).max() < 1e-10
    motion = case.run(duration=1.0)
    assert motion.residual.max() < 1e-8 and motion.drift < 1e-6
    assert motion.q[-1, 0] - motion.q[0, 0] > 2 * np.pi


def test_a_quadruped_stands_on_the_ground_of_a_scene(tmp_path):
    """Its place is not given, so it starts on its feet, and a controller of that name keeps it."""
    ground = "duration = 0.2\ndt = 0.002\n[ground]\nfriction = 0.6\n"
    case = load(tmp_path, f'{ground}{DOG}[controller]\nkind = "stand"\n')
    case.check()
    motion = case.run()
    assert case.q0[2] == case.system.on_ground(case.system.neutral())[2] and case.on_ground
    assert abs(motion.q[-1, 2] - case.q0[2]) < 1e-2 and motion.contact_residual.max() < 1e-6
    shapes = 'contacts = { "*_FOOT" = [{ box = [0.1, 0.1, 0.02], at = [0, 0, -0.1] }] }\n'
    shod = load(tmp_path, ground + DOG + shapes)
    assert len(shod.system.contact_points) == 32 and shod.q0[2] > case.q0[2]
    feet = 'contacts = { "*_FOOT" = { sphere = 0.03 } }\npairs = [["LF_FOOT", "RF_FOOT"]]\n'
    paired = load(tmp_path, ground + DOG + feet).system.contact_pairs
    assert [pair.name for pair in paired] == ["LF_FOOT|RF_FOOT"]
    points = "contacts = { base = { points = [[0, 0, -1], [0, 0, 1]] } }\n"
    given = load(tmp_path, ground + DOG + points + "q = { root_joint = [0, 0, 0.5, 0, 0, 0, 1] }\n")
    assert given.q0[2] == 0.5 and not given.on_ground
    with pytest.raises(Error, match="inside the ground"):
        given.check()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 3\n" + ONE, ["scene.toml: title: is 3", "expected text"]),
        ("x == 1", ["scene.toml: it is not TOML", "line 1"]),
        ("", ["robots: is missing"]),
        ("[robots]\n", ["robots: is empty"]),
        ("[robots.a]\n", ["robots.a.robot: is missing"]),
        ('[robots.a]\nrobot = "pandaa"\n', ["robots.a.robot", "'panda'"]),
        ('[robots.a]\nrobot = "no.urdf"\n', ["robots.a.robot", "no.urdf"]),
        (ONE + "q = [1.0]\n", ["robots.arm.q", "2 numbers"]),
        (ONE + "q = { nojoint = 1.0 }\n", ["robots.arm.q.nojoint", "no joint 'nojoint'"]),
        (ONE + "colour = 1\n", ["robots.arm.colour: no such key"]),
        ("durations = 1.0\n" + ONE, ["durations: no such key", "duration"]),
        (
            ONE + '[controller]\nkind = "hold"\nkp = 5.0\n',
            ["controller.kp: no such key", "there are kind"],
        ),
        (
            ONE + '[controler]\nkind = "hold"\n',
            ["controler: no such key", "did you mean 'controller'"],
        ),
        (ONE.replace("[robots", "every = 2.5\n[robots", 1), ["every: is 2.5", "whole number"]),
        ("duration = -1.0\n" + ONE, ["duration", "more than 0"]),
        ('dt = "fast"\n' + ONE, ["dt: is 'fast'", "finite number"]),
        ("hold = 1\n" + ONE, ["hold: is 1", "true or false"]),
        (ONE + BOX, ["object", "nothing holds it"]),
        (TWO, ["nothing connects them"]),
        (
            TWO + BOX + GRASPS.split("[[grasps]]")[1].join(["[[grasps]]", ""]),
            ["'right' holds nothing"],
        ),
        (TWO + GRASPS, ["object: is missing"]),
        (TWO + BOX.replace("0.4", "-0.4") + GRASPS, ["object.box", "positive"]),
        (TWO + BOX + GRASPS.replace('"tool"', '"tol"'), ["grasps[0].frame: is 'tol'", "tool"]),
        (TWO + BOX + GRASPS.replace('"left"', '"leff"'), ["grasps[0].robot", "left"]),
        (
            TWO + BOX + GRASPS + '[[grasps]]\nrobot = "left"\nframe = "tool"\nat = [0, 0, 1]\n',
            ["grasps[2].frame", "already"],
        ),
        (
            ONE + '[[robots.arm.springs]]\njoints = "*"\nstiffness = 3\n',
            ["robots.arm.springs", "springs = true"],
        ),
        (
            ONE + '[[robots.arm.elastic]]\njoints = "*"\nstiffness = 3\nrotor = 1\n',
            ["robots.arm.elastic", "springs = true"],
        ),
        (
            TWO + BOX + GRASPS + 'contact = "glue"\n',
            ["grasps[1].contact", "rigid, point, line, soft"],
        ),
        (
            TWO + BOX + GRASPS + '[[loops]]\nkind = "weld"\n',
            ["loops: cannot be combined with grasps"],
        ),
        (ONE + '[controller]\nkind = "carry"\n', ["controller.kind: carry needs an object"]),
        (
            ONE + '[controller]\nkind = "magic"\n',
            ["controller.kind: is 'magic'", "none, hold, pd, computed, stand, carry"],
        ),
        (ONE + '[[controller]]\nkind = "pd"\n', ["controller", "expected a table"]),
        (ONE + "at = [1, 0, 0]\n", ["robots.arm", "world's origin"]),
        ("grasps = 3\n" + ONE, ["grasps", "[[grasps]]"]),
        (ONE + "[ground]\n", ["ground", "no contact points", "contacts ="]),
        (DOG + "[ground]\nfriction = -0.1\n", ["ground.friction", "at least 0"]),
        (DOG + "[ground]\nfriction = nan\n", ["ground.friction: friction is nan"]),
        (DOG + "[ground]\nmu = 0.5\n", ["ground.mu: no such key", "friction"]),
        (DOG + 'contacts = "feet"\n', ["robots.dog.contacts", "'feet'"]),
        (DOG + "contacts = {}\n", ["robots.dog.contacts", "no contact points"]),
        (DOG + 'contacts = { "*_FOT" = { sphere = 0.03 } }\n', ["robots.dog.contacts", "_FOT"]),
        (DOG + "contacts = { LF_FOOT = { at = [0, 0, 1] } }\n", ["LF_FOOT", "has no shape"]),
        (DOG + "contacts = { LF_FOOT = { sphere = -1.0 } }\n", ["radius of a sphere is -1"]),
        (DOG + "contacts = { LF_FOOT = { points = [[0, 0]] } }\n", ["points.0", "3 numbers"]),
        (DOG + 'pairs = [["LF_FOOT", "RF_FOOT"]]\n', ["robots.dog.pairs", "without contacts"]),
        (
            DOG + 'pairs = ["LF_FOOT"]\ncontacts = { "*_FOOT" = { sphere = 0.03 } }\n',
            ["robots.dog.pairs", "'LF_FOOT'"],
        ),
        ('contacts = "hold"\n[ground]\n' + DOG, ["contacts", "[ground]"]),
        (TWO + BOX + GRASPS + "[ground]\n", ["ground", "for robots"]),
    ],
)
def test_mistakes_are_named(tmp_path, text, words):
    with pytest.raises(Error) as refused:
        load(tmp_path, text)
    message = str(refused.value)
    assert "scene.toml" in message and refused.value.remedy
    assert all(word in message for word in words), message


def test_files_that_are_no_scenes(tmp_path):
    with pytest.raises(Error, match="folder"):
        scenes.load(tmp_path)
    with pytest.raises(Error, match="no such scene file"):
        scenes.load(tmp_path / "absent.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Error, match="UTF-8"):
        scenes.load(tmp_path / "b.toml")
    with pytest.raises(Error, match="two_arms"):
        scenes.load("two_armz")


def test_paths_in_order(tmp_path):
    path = "[[controller.path]]\nt = 2.0\n[[controller.path]]\nt = 1.0\n"
    with pytest.raises(Error, match="order the stops"):
        load(tmp_path, TWO + BOX + GRASPS + f'[controller]\nkind = "carry"\n{path}')
