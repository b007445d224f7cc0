"""The builder: order, welding, frames, limits, sizes; and what its calls refuse."""

import time

import numpy as np
import pytest

from psiphi._util.errors import Error, ModelError
from psiphi.model.builder.builder import Builder
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import WORLD, Mimic
from tests.oracles import reference
from tests.zoo import ZOO, random_body, random_rotation

BALL = dict(mass=1.0, inertia=np.eye(3))


def star(order: str) -> list[str]:
    b = Builder("star")
    for name, parent in [("z", "world"), ("b", "z"), ("a", "z"), ("c", "b")]:
        b.body(name, **BALL)
        b.joint(f"to_{name}", "revolute", parent, name)
    return [joint.name for joint in b.build(order=order).joints]


def test_order_is_depth_first():
    assert star("given") == ["to_z", "to_b", "to_c", "to_a"]
    assert star("name") == ["to_z", "to_a", "to_b", "to_c"]


def test_parents_come_first():
    for name, make in ZOO:
        model = make()
        assert all(parent < k for k, parent in enumerate(model.parent)), name
        assert [joint.index for joint in model.joints] == list(range(len(model.bodies)))
        assert model.nq == sum(joint.row.nq for joint in model.joints)


def test_welding_is_exact(rng):
    """A body cut into welded parts has the mass properties of the whole: kinetic energy and gravity
    are the same."""
    whole, cut = Builder("whole"), Builder("cut")
    points = rng.standard_normal((6, 3))
    com = points.mean(0)
    arm = points - com
    inertia = (arm**2).sum() * np.eye(3) - arm.T @ arm
    whole.body("body", 6.0, com, inertia)
    cut.body("body", 1.0, points[0])
    for k, (point, R) in enumerate(
        zip(points[1:], [random_rotation(rng) for _ in range(5)], strict=True)
    ):
        origin = rng.standard_normal(3)
        cut.body(f"part{k}", 1.0, R.T @ (point - origin))
        cut.joint(f"weld{k}", "fixed", "body", f"part{k}", xyz=origin, rotation=R)
    for b in (whole, cut):
        b.joint("joint", "free", "world", "body")
    (a,), (b,) = whole.build().bodies, cut.build().bodies
    assert a.mass == b.mass
    np.testing.assert_allclose(a.com, b.com, atol=1e-14)
    np.testing.assert_allclose(a.inertia, b.inertia, atol=1e-13)


def test_chain_of_welds_composes(rng):
    b, pose = Builder("welds"), np.eye(4)
    random_body(b, rng, "l0")
    b.joint("j0", "revolute", "world", "l0")
    for k in range(1, 6):
        b.body(f"l{k}")
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = random_rotation(rng), rng.standard_normal(3)
        b.joint(f"j{k}", "fixed", f"l{k - 1}", f"l{k}", xyz=step[:3, 3], rotation=step[:3, :3])
        pose = pose @ step
    model = b.build()
    assert model.frames["l5"].body == 0 and len(model.bodies) == 1
    np.testing.assert_allclose(model.frames["l5"].pose.matrix, pose, atol=1e-13)
    np.testing.assert_array_equal(model.frames["j5"].pose.matrix, model.frames["l5"].pose.matrix)


def test_frames():
    b = Builder("frames")
    b.body("foot", **BALL)
    b.body("leg", **BALL)
    b.body("cap", **BALL)
    b.joint("hip", "revolute", "foot", "leg", xyz=(0, 0, 1))
    b.joint("weld", "fixed", "leg", "cap", xyz=(0, 0, 2))
    b.frame("eye", "cap", xyz=(1, 0, 0), rpy=(0, 0, np.pi / 2))
    b.frame("mark", "world", xyz=(5, 0, 0))
    model = b.build()
    assert list(model.frames) == ["world", "foot", "hip", "leg", "weld", "cap", "eye", "mark"]
    assert [frame.body for frame in model.frames.values()] == [WORLD, WORLD, 0, 0, 0, 0, 0, WORLD]
    np.testing.assert_array_equal(model.frames["eye"].pose.translation, [1, 0, 2])
    np.testing.assert_allclose(
        model.frames["eye"].pose.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15
    )
    free = b.build(base="free")
    assert [joint.name for joint in free.joints] == ["root_joint", "hip"] and free.frames[
        "world"
    ].body == WORLD
    assert [body.name for body in free.bodies] == ["foot", "leg"]


def test_two_free_roots():
    b = Builder("two")
    b.body("a", **BALL)
    b.body("b", **BALL)
    assert [joint.name for joint in b.build(base="free").joints] == ["root_joint_a", "root_joint_b"]
    assert b.build().nv == 0 and len(b.build().report) == 2, "both welded to the world, and said so"


def test_limits():
    b = Builder("limits")
    for name in "abcd":
        b.body(name, **BALL)
    b.joint(
        "ja",
        "revolute",
        "world",
        "a",
        lower=-1,
        upper=2.0,
        velocity=3,
        effort=4,
        damping=5,
        friction=6,
        armature=7,
    )
    b.joint("jb", "cylindrical", "a", "b", lower=[-1, -2], upper=1, armature=[1, 2])
    b.joint("jc", "spherical", "b", "c", effort=3)
    b.joint("jd", "revolute", "c", "d", mimic=("ja", 2.0))
    a, b_, c, d = b.build().joints
    assert [
        x[0] for x in (a.lower, a.upper, a.velocity, a.effort, a.damping, a.friction, a.armature)
    ] == [-1, 2, 3, 4, 5, 6, 7]
    assert (
        b_.lower.tolist() == [-1, -2]
        and b_.upper.tolist() == [1, 1]
        and b_.armature.tolist() == [1, 2]
    )
    assert (
        c.lower.tolist() == [-np.inf] * 4
        and c.effort.tolist() == [3] * 3
        and c.damping.tolist() == [0] * 3
    )
    assert d.mimic == Mimic("ja", 2.0, 0.0) and a.mimic is None


def test_arrays_are_read_only():
    model = ZOO[-1][1]()
    for array in (
        model.bodies[0].com,
        model.bodies[0].inertia,
        model.joints[0].lower,
        model.joints[0].pose.translation,
    ):
        with pytest.raises(ValueError):
            array[0] = 1.0


def test_inertia_axes(rng):
    R, b = random_rotation(rng), Builder("axes")
    b.body("a", 1.0, inertia=(1, 0, 0, 2, 0, 2.5), rotation=R)
    b.joint("j", "free", "world", "a")
    np.testing.assert_allclose(
        b.build().bodies[0].inertia, R @ np.diag([1, 2, 2.5]) @ R.T, atol=1e-14
    )


def test_rotation_spellings(rng):
    R, b = random_rotation(rng), Builder("spellings")
    w = np.sqrt(1.0 + np.trace(R)) / 2.0
    x, y, z = (
        (R[2, 1] - R[1, 2]) / (4 * w),
        (R[0, 2] - R[2, 0]) / (4 * w),
        (R[1, 0] - R[0, 1]) / (4 * w),
    )
    rpy = (np.arctan2(R[2, 1], R[2, 2]), np.arcsin(-R[2, 0]), np.arctan2(R[1, 0], R[0, 0]))
    b.body("a", **BALL)
    for name, given in [
        ("matrix", dict(rotation=R)),
        ("quaternion", dict(rotation=(x, y, z, w))),
        ("rpy", dict(rpy=rpy)),
    ]:
        b.frame(name, "a", **given)
        np.testing.assert_allclose(b.build().frames[name].pose.rotation, R, atol=1e-13)


def test_universal_axes():
    b = Builder("universal")
    b.body("a", **BALL)
    b.joint("j", "universal", "world", "a", axis=(0, 1, 1))
    joint = b.build().joints[0]
    assert abs(joint.axis @ joint.axis2) < 1e-15 and abs(np.linalg.norm(joint.axis2) - 1) < 1e-15
    b.joints.clear()
    b.joint("j", "universal", "world", "a", axis=(0, 1, 0), axis2=(0, 2, 0))
    with pytest.raises(ModelError, match="parallel"):
        b.build()


def test_building_twice_gives_equal_models():
    b = Builder("again")
    b.body("a", 1.0, inertia=(1, 0, 0, 1, 0, 3))
    b.joint("j", "revolute", "world", "a", axis=(0, 0, 2))
    assert b.build() == b.build() and b.build().report == b.build().report
    assert b.build(repair="inertia") != b.build(), "repairs do not change the builder"


BAD_CALLS = [
    ("name None", lambda b: b.body(None), "expected text"),
    ("name empty", lambda b: b.body(""), "expected text"),
    ("mass text", lambda b: b.body("x", mass="1"), "expected numbers"),
    ("mass None", lambda b: b.body("x", mass=None), "expected numbers"),
    ("mass nan", lambda b: b.body("x", mass=np.nan), "finite"),
    ("mass array", lambda b: b.body("x", mass=[1, 2]), "expected numbers"),
    ("mass complex", lambda b: b.body("x", mass=1j), "expected numbers"),
    ("com short", lambda b: b.body("x", com=(0, 0)), "expected 3"),
    ("com scalar", lambda b: b.body("x", com=0.0), "expected numbers"),
    ("com text", lambda b: b.body("x", com="0 0 0"), "expected numbers"),
    ("com huge", lambda b: b.body("x", com=(0, 0, 1e300)), "finite"),
    ("inertia shape", lambda b: b.body("x", inertia=(1, 2, 3, 4)), "expected 6"),
    ("inertia ragged", lambda b: b.body("x", inertia=((1, 0, 0), (0, 1))), "expected"),
    ("inertia skew", lambda b: b.body("x", inertia=((1, 1, 0), (0, 1, 0), (0, 0, 1))), "symmetric"),
    ("kind", lambda b: b.joint("j", "revolut", "world", "a"), "'revolute'"),
    ("kind None", lambda b: b.joint("j", None, "world", "a"), "no joint kind"),
    ("kind list", lambda b: b.joint("j", ["revolute"], "world", "a"), "no joint kind"),
    ("parent None", lambda b: b.joint("j", "revolute", None, "a"), "expected text"),
    ("axis", lambda b: b.joint("j", "revolute", "world", "a", axis=(0, 0)), "expected 3"),
    (
        "rotation and rpy",
        lambda b: b.joint("j", "revolute", "world", "a", rpy=(0, 0, 0), rotation=np.eye(3)),
        "both",
    ),
    (
        "rotation scaled",
        lambda b: b.joint("j", "revolute", "world", "a", rotation=2 * np.eye(3)),
        "singular values",
    ),
    (
        "rotation mirrored",
        lambda b: b.joint("j", "revolute", "world", "a", rotation=-np.eye(3)),
        "right-handed",
    ),
    (
        "rotation quaternion",
        lambda b: b.joint("j", "revolute", "world", "a", rotation=(0, 0, 0, 2)),
        "length 2",
    ),
    ("rotation size", lambda b: b.joint("j", "revolute", "world", "a", rotation=(0, 0, 0)), "3x3"),
    ("limit nan", lambda b: b.joint("j", "revolute", "world", "a", lower=np.nan), "lower limit"),
    ("limit count", lambda b: b.joint("j", "revolute", "world", "a", lower=[0, 1]), "expected 1"),
    ("effort negative", lambda b: b.joint("j", "revolute", "world", "a", effort=-1), "effort"),
    (
        "armature infinite",
        lambda b: b.joint("j", "revolute", "world", "a", armature=np.inf),
        "armature",
    ),
    ("mimic", lambda b: b.joint("j", "revolute", "world", "a", mimic=3), "mimic"),
    (
        "mimic multiplier",
        lambda b: b.joint("j", "revolute", "world", "a", mimic=("k", "x")),
        "mimic multiplier",
    ),
    ("link twice", lambda b: b.body("a"), "already a link"),
    ("gravity", lambda b: Builder("b", gravity=(0, 0)), "gravity"),
    ("frame on nothing", lambda b: (b.frame("f", "nobody"), b.build()), "not a link"),
    ("frame like a link", lambda b: (b.frame("a", "a"), b.build()), "already a frame"),
    ("frame twice", lambda b: (b.frame("f", "a"), b.frame("f", "a")), "already a frame"),
    ("base", lambda b: b.build(base="loose"), "one of fixed, free"),
    ("order", lambda b: b.build(order="random"), "one of given, name"),
    ("repair", lambda b: b.build(repair="inertias"), "'inertia'"),
    ("repair list", lambda b: b.build(repair=["mass"]), "no repair 'mass'"),
    ("no bodies", lambda b: Builder("empty").build(), "no links"),
    (
        "axis2",
        lambda b: (b.joint("j", "revolute", "world", "a", axis2=(1, 0, 0)), b.build()),
        "one axis",
    ),
]


@pytest.mark.parametrize(("name", "call", "words"), BAD_CALLS, ids=[row[0] for row in BAD_CALLS])
def test_bad_calls(name, call, words):
    b = Builder("bad", file="bad.py")
    b.body("a", line=7, **BALL)
    with pytest.raises(Error) as caught:
        call(b)
    assert words in str(caught.value) and caught.value.remedy and caught.value.element


@pytest.mark.parametrize("kind", JOINTS)
def test_every_kind_stands_in_the_model(kind, rng):
    b = Builder(kind)
    random_body(b, rng, "a")
    b.joint("j", kind, "world", "a", axis=(1, 2, 2), armature=0.5)
    model = b.build()
    M = reference.mass_matrix(model, model.random(rng))
    assert np.linalg.eigvalsh(M)[0] > 0.5, "the armature is in the mass matrix"


def lattice(n: int, wide: bool, kind: str = "revolute") -> Builder:
    b = Builder("lattice")
    for k in range(n):
        b.body(f"l{k}", 1.0, (0.0, 0.1, 0.5), (0.1, 0, 0, 0.1, 0, 0.1))
        b.joint(
            f"j{k}",
            kind,
            "world" if k == 0 else "l0" if wide else f"l{k - 1}",
            f"l{k}",
            (0, 0, 1),
            rpy=(0, 0.1, 0),
        )
    return b


@pytest.mark.parametrize("wide", [False, True], ids=["deep", "wide"])
@pytest.mark.parametrize("kind", ["revolute", "fixed"])
def test_ten_thousand_links(wide, kind):
    start = time.perf_counter()
    model = lattice(10_000, wide, kind).build()
    assert time.perf_counter() - start < 60.0  # it ends; speed is measured in benchmarks
    assert model.nv == (10_000 if kind == "revolute" else 0) and len(model.frames) == 20_001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wide", "links"), [(False, 100_000), (True, 30_000)], ids=["deep", "wide"]
)
def test_hundred_thousand_links(wide, links):
    assert lattice(links, wide).build().nv == links
