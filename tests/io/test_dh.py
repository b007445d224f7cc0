"""from_dh: frames against the products of elementary matrices, dynamics against Pinocchio, and
words for broken rows."""

from math import inf, nan, pi

import numpy as np
import pinocchio as pin
import pytest

from psiphi._util.errors import ModelError, SingularError
from psiphi.io.dh import DH, cos_sin, from_dh
from psiphi.model.model import IDENTITY, Pose
from tests.oracles import reference

CONVENTIONS = ["modified", "standard"]


def rot(axis: str, angle: float) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = reference.axis_rotation(np.eye(3)["xyz".index(axis)], angle)
    return T


def trans(axis: str, distance: float) -> np.ndarray:
    T = np.eye(4)
    T["xyz".index(axis), 3] = distance
    return T


def step(row: DH, q: float, convention: str) -> np.ndarray:
    """T(i-1, i) as the textbooks write it."""
    theta, d = (row.theta, row.d + q) if row.kind == "prismatic" else (row.theta + q, row.d)
    if convention == "modified":
        return rot("x", row.alpha) @ trans("x", row.a) @ rot("z", theta) @ trans("z", d)
    return rot("z", theta) @ trans("z", d) @ trans("x", row.a) @ rot("x", row.alpha)


def random_rows(rng: np.random.Generator, n: int = 5) -> list[DH]:
    rows = []
    for _ in range(n):
        A = 0.2 * rng.standard_normal((3, 3))
        S = A @ A.T
        alpha, theta = rng.choice([0.0, pi / 2, -pi / 2, pi, rng.uniform(-pi, pi)], 2)
        a, d, mass, armature = rng.uniform(0.1, 0.5, 4)
        kind = str(rng.choice(["revolute", "prismatic", "continuous"]))
        inertia = np.trace(S) * np.eye(3) - S
        rows.append(
            DH(alpha, a, d, theta, kind, mass, rng.uniform(-0.2, 0.2, 3), inertia, armature)
        )
    return rows


def pinocchio_arm(rows: list[DH], convention: str) -> pin.Model:
    """The same arm by hand: mass in the row's own link frame, wherever the convention puts it."""
    model, joint, carry = pin.Model(), 0, np.eye(4)
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    for k, row in enumerate(rows):
        before, after = (
            rot("x", row.alpha) @ trans("x", row.a),
            rot("z", row.theta) @ trans("z", row.d),
        )
        place, link = (
            (before @ after, np.eye(4))
            if convention == "modified"
            else (carry @ after, trans("x", row.a) @ rot("x", row.alpha))
        )
        kind = pin.JointModelPZ() if row.kind == "prismatic" else pin.JointModelRZ()
        joint = model.addJoint(joint, kind, pin.SE3(place), f"j{k}")
        model.appendBodyToJoint(
            joint, pin.Inertia(row.mass, np.array(row.com), np.array(row.inertia)), pin.SE3(link)
        )
        carry = link
    model.armature = np.array([row.armature for row in rows])
    return model


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_frames_are_the_products_of_the_book(convention, seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    tool = rot("z", 0.3) @ trans("x", 0.2) @ rot("x", -1.0)
    arm = from_dh(rows, tool=tool, convention=convention)
    q, T = rng.uniform(-2, 2, len(rows)), np.eye(4)
    for index, (row, angle) in enumerate(zip(rows, q, strict=True), start=1):
        T = T @ step(row, angle, convention)
        name = f"link{index}" if convention == "modified" else f"link{index}_end"
        assert np.allclose(reference.frame_pose(arm, q, name).matrix, T, atol=1e-13)
    assert np.allclose(reference.frame_pose(arm, q, "tool").matrix, T @ tool, atol=1e-13)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_dynamics_are_pinocchio_s(convention, seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    arm, peer = from_dh(rows, convention=convention), pinocchio_arm(rows, convention)
    data = peer.createData()
    for _ in range(3):
        q, v, a = rng.uniform(-2, 2, (3, len(rows)))
        M = pin.crba(peer, data, q)
        assert np.allclose(
            reference.mass_matrix(arm, q), np.triu(M) + np.triu(M, 1).T, rtol=1e-11, atol=1e-12
        )
        assert np.allclose(
            reference.gravity(arm, q),
            pin.computeGeneralizedGravity(peer, data, q),
            rtol=1e-11,
            atol=1e-12,
        )
        assert np.allclose(
            reference.inverse_dynamics(arm, q, v, a),
            pin.rnea(peer, data, q, v, a),
            rtol=1e-11,
            atol=1e-12,
        )


def test_quarter_turns_leave_exact_zeros():
    arm = from_dh(
        [
            DH(alpha=k * pi / 2, a=0.1, d=0.2, theta=-k * pi / 2, mass=1.0, inertia=(1, 1, 1))
            for k in range(-4, 5)
        ]
    )
    for joint in arm.joints:
        assert np.isin(joint.pose.rotation, [-1.0, 0.0, 1.0]).all()
        zeros = [x for x in (*joint.pose.rotation.flat, *joint.pose.translation) if x == 0]
        assert not np.signbit(zeros).any(), "a negative zero would change the digest"
    assert cos_sin(pi / 3) == pytest.approx((0.5, 3**0.5 / 2))


def test_rows_may_be_dicts_and_inertias_short():
    full = DH(mass=1.0, inertia=[[1, 0.1, 0.2], [0.1, 1.1, 0.3], [0.2, 0.3, 1.2]])
    six = {"mass": 1, "inertia": (1, 0.1, 0.2, 1.1, 0.3, 1.2)}
    assert from_dh([full]) == from_dh([six])
    assert from_dh([{"mass": 1, "inertia": (1, 2, 3)}]) == from_dh(
        [DH(mass=1.0, inertia=np.diag([1, 2, 3]))]
    )


def test_names_limits_and_drives_arrive():
    row = DH(
        kind="prismatic",
        mass=1.0,
        lower=-0.1,
        upper=0.4,
        velocity=2.0,
        effort=30.0,
        damping=0.5,
        friction=0.2,
        armature=3.0,
    )
    arm = from_dh(
        [DH(mass=1.0, com=(0.1, 0, 0), name="waist"), row], name="slider", gravity=(0, 0, -1.62)
    )
    assert (arm.name, [b.name for b in arm.bodies], [j.name for j in arm.joints]) == (
        "slider",
        ["link1", "link2"],
        ["waist", "joint2"],
    )
    assert arm.gravity_vector.tolist() == [0, 0, -1.62]
    joint = arm.joint("joint2")
    got = [
        getattr(joint, key)[0]
        for key in ("lower", "upper", "velocity", "effort", "damping", "friction", "armature")
    ]
    assert got == [-0.1, 0.4, 2.0, 30.0, 0.5, 0.2, 3.0]
    assert arm.joint("waist").lower == -inf


def test_a_free_base_carries_the_arm():
    link = DH(a=0.3, mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
    arm = from_dh([link, link], base={"mass": 10.0, "inertia": (1, 1, 1)})
    assert [joint.kind for joint in arm.joints] == ["free", "revolute", "revolute"]
    assert arm.bodies[0].name == "base" and arm.bodies[0].mass == 10.0
    with pytest.raises(SingularError, match="root_joint"):
        from_dh([link, link], base="free")


def test_a_tool_may_be_a_pose():
    pose = Pose(np.eye(3), np.array([0.0, 0.0, 0.1]))
    link = DH(mass=1.0, com=(0.1, 0, 0))
    assert from_dh([link], tool=pose) == from_dh([link], tool=trans("z", 0.1))
    assert from_dh([link], tool=IDENTITY) == from_dh([link])


OK = {"mass": 1.0, "com": (0.1, 0, 0)}
BROKEN = {
    "no rows": ([], {}, "empty"),
    "one row": (DH(), {}, "list of rows"),
    "a string": ("DH", {}, "list of rows"),
    "a number": (3, {}, "list of rows"),
    "a tuple row": ([(0, 0, 0, 0)], {}, "row 1.*DH or a dict"),
    "a misspelt field": ([OK, OK | {"aplha": 0}], {}, "row 2.*'aplha'.*did you mean 'alpha'"),
    "a foreign field": ([{7: 0}], {}, "row 1.*unknown field 7"),
    "a string angle": ([OK | {"alpha": "pi/2"}], {}, "row 1.*alpha is 'pi/2', expected numbers"),
    "a true angle": ([OK | {"alpha": True}], {}, "alpha is True"),
    "a missing length": ([OK | {"a": None}], {}, "a is None"),
    "a complex offset": ([OK | {"d": 1j}], {}, "d is 1j"),
    "NaN": ([OK, OK | {"theta": nan}], {}, "row 2.*theta is nan"),
    "an infinite length": ([OK | {"a": inf}], {}, "a is inf, expected finite"),
    "a length beyond floats": ([OK | {"a": 10**400}], {}, "a is 1000"),
    "a NaN limit": ([OK | {"lower": nan}], {}, "lower limit is nan"),
    "a short com": ([OK | {"com": (0, 0)}], {}, "com is \\(0, 0\\)"),
    "a com of words": ([OK | {"com": ("0", "0", "1")}], {}, "com is"),
    "a NaN com": ([OK | {"com": (0, 0, nan)}], {}, "com.*finite"),
    "four moments": ([OK | {"inertia": (1, 1, 1, 0)}], {}, "inertia is .*ixx, ixy"),
    "a ragged inertia": ([OK | {"inertia": [[1, 0], [0]]}], {}, "inertia is"),
    "a lopsided inertia": (
        [OK | {"inertia": [[1, 1, 0], [0, 1, 0], [0, 0, 1]]}],
        {},
        "link1.*not symmetric",
    ),
    "a kind of another world": (
        [OK | {"kind": "prizmatic"}],
        {},
        "row 1.*did you mean 'prismatic'",
    ),
    "a kind of the table but not of DH": (
        [OK | {"kind": "spherical"}],
        {},
        "expected one of revolute",
    ),
    "an unhashable kind": ([OK | {"kind": ["revolute"]}], {}, "row 1.*kind"),
    "an empty name": ([OK | {"name": ""}], {}, "row 1.*name"),
    "a name twice": ([OK | {"name": "j"}, OK | {"name": "j"}], {}, "joint 'j'.*already"),
    "a joint called tool": ([OK | {"name": "tool"}], {}, "frame 'tool'.*already"),
    "a negative mass": ([OK | {"mass": -1}], {}, "link1.*mass is -1"),
    "limits crossed": ([OK | {"lower": 1, "upper": -1}], {}, "joint1.*above upper"),
    "a flat tool": ([OK], {"tool": np.eye(3)}, "(?s)tool.*4x4"),
    "a scaled tool": ([OK], {"tool": 2 * np.eye(4)}, "(?s)tool.*4x4"),
    "a mirrored tool": (
        [OK],
        {"tool": np.diag([1, 1, -1, 1])},
        "tool.*rotation is not orthonormal",
    ),
    "an unknown convention": (
        [OK],
        {"convention": "modifed"},
        "convention.*did you mean 'modified'",
    ),
    "an unknown base": ([OK], {"base": "floating"}, "base is 'floating'"),
    "a base of numbers": ([OK], {"base": np.ones(3)}, "base is"),
    "a base with a length": ([OK], {"base": {"mass": 1, "a": 1}}, "base is"),
    "gravity in a string": ([OK], {"gravity": "down"}, "gravity"),
}


@pytest.mark.parametrize(("rows", "options", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_rows_are_refused_in_words(rows, options, words):
    with pytest.raises(ModelError, match=words) as refused:
        from_dh(rows, **options)
    assert "Remedy: " in str(refused.value)
