"""The model as a value, and its configuration space: places, moves, names, and what its calls
refuse."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi._util.errors import StateError
from psiphi.model.builder.builder import Builder
from psiphi.model.model import IDENTITY, WORLD, Model, Pose
from tests.oracles import reference
from tests.zoo import ZOO, random_rotation, trees

EVERY_KIND = dict(ZOO)["every_kind"]()
SEEDS = st.integers(0, 2**32 - 1)


def at_rest(model: Model) -> np.ndarray:
    return np.zeros(model.nv)


# -- poses -----------------------------------------------------------------------------------------


def test_poses_compose(rng):
    A, B = (Pose(random_rotation(rng), rng.standard_normal(3)) for _ in range(2))
    np.testing.assert_allclose((A @ B).matrix, A.matrix @ B.matrix, atol=1e-14)
    np.testing.assert_allclose((A @ A.inv).matrix, np.eye(4), atol=1e-14)
    np.testing.assert_allclose((IDENTITY @ A).matrix, A.matrix)


# -- the configuration space -----------------------------------------------------------------------


@given(trees(), SEEDS)
def test_integrate_moves_along_v(model, seed):
    """No time, no way; out and back is home; half and half is the whole; a batch is its
    elements."""
    rng = np.random.default_rng(seed)
    q, v = model.random(rng, 3), 0.3 * rng.standard_normal((3, model.nv))
    near = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(model.integrate(q, v, 0.0), q, **near)
    np.testing.assert_allclose(model.integrate(model.integrate(q, v), -v), q, **near)
    np.testing.assert_allclose(
        model.integrate(model.integrate(q, v, 0.5), v, 0.5), model.integrate(q, v), **near
    )
    np.testing.assert_allclose(model.difference(q, model.integrate(q, v)), v, **near)
    np.testing.assert_array_equal(model.integrate(q, v)[1], model.integrate(q[1], v[1]))
    np.testing.assert_array_equal(
        model.integrate(q, v, [1.0, 0.5, 0.0])[1], model.integrate(q[1], v[1], 0.5)
    )
    np.testing.assert_array_equal(model.integrate(q[0], v)[2], model.integrate(q[0], v[2]))
    np.testing.assert_allclose(model.normalize(q), q, **near)


@given(trees(), SEEDS)
def test_random_configurations_are_configurations(model, seed):
    q = model.random(seed, (2, 3))
    assert q.shape == (2, 3, model.nq) and np.isfinite(q).all()
    np.testing.assert_array_equal(model.random(seed, (2, 3)), q)
    np.testing.assert_array_equal(model.random(np.random.default_rng(seed), [2, 3]), q)
    for joint in model.joints:
        if joint.row.nq != joint.row.nv:
            np.testing.assert_allclose(
                np.linalg.norm(q[..., joint.q_slice][..., -4:], axis=-1), 1.0, rtol=1e-14
            )
    np.testing.assert_array_equal(model.normalize(model.neutral()), model.neutral())


def test_random_stays_within_limits():
    b = Builder("bounded")
    limits = [(-0.5, 0.25), (2.0, 3.0), (50.0, 51.0), (-np.inf, -100.0)]
    for k, (lower, upper) in enumerate(limits):
        b.body(f"b{k}", 1.0, inertia=np.eye(3))
        b.joint(
            f"j{k}", "prismatic", f"b{k - 1}" if k else "world", f"b{k}", lower=lower, upper=upper
        )
    q = b.build().random(seed=0, size=1000)
    for k, (lower, upper) in enumerate(limits):
        assert (
            lower <= q[:, k].min()
            and q[:, k].max() <= upper
            and np.ptp(q[:, k]) > 0.5 * min(upper - lower, 1.0)
        )


def test_quaternions_of_any_length_are_normalized():
    q = EVERY_KIND.random(seed=1)
    for factor in (2.0, 1e-3, 1e100):
        scaled = q.copy()
        for joint in EVERY_KIND.joints:
            if joint.row.nq != joint.row.nv:
                scaled[joint.q_slice.stop - 4 : joint.q_slice.stop] *= factor
        np.testing.assert_allclose(EVERY_KIND.normalize(scaled), q, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_bad_number_stays_in_its_batch_element():
    q, v = EVERY_KIND.random(seed=0, size=3), np.full((3, EVERY_KIND.nv), 0.1)
    bad = q.copy()
    bad[1] = np.nan
    for call in (
        lambda q: EVERY_KIND.integrate(q, v),
        lambda q: EVERY_KIND.difference(q, q[0]),
        EVERY_KIND.normalize,
    ):
        np.testing.assert_array_equal(call(bad)[::2], call(q)[::2])
        assert np.isnan(call(bad)[1]).any()
    bad[1] = 0.0
    assert np.isnan(EVERY_KIND.normalize(bad)[1]).any(), (
        "a quaternion of length zero points nowhere"
    )


BAD = [
    None,
    "home",
    ["1"] * 99,
    1.0,
    [],
    {},
    [[1.0], [1.0, 2.0]],
    np.zeros(5),
    np.zeros((99, 2)),
    np.zeros(99) + 0j,
    object(),
]


@pytest.mark.parametrize("value", BAD, ids=lambda x: type(x).__name__)
def test_moves_refuse_what_is_no_configuration(value):
    model = EVERY_KIND
    q, v = model.neutral(), at_rest(model)
    for name, call in {
        "q": lambda: model.integrate(value, v),
        "v": lambda: model.integrate(q, value),
        "q0": lambda: model.difference(value, q),
        "q1": lambda: model.difference(q, value),
        "q ": lambda: model.normalize(value),
    }.items():
        with pytest.raises(StateError, match=f"^{name}") as caught:
            call()
        assert caught.value.remedy and "inhomogeneous" not in str(caught.value)


def test_other_arguments_of_moves():
    model = EVERY_KIND
    q, v = model.neutral(), at_rest(model)
    for dt in (None, "soon", 1j, [1.0, None], {}):
        with pytest.raises(StateError, match=r"^dt"):
            model.integrate(q, v, dt)
    for shapes in ([(2,), (3,), ()], [(2,), (), (3,)]):
        a, b, c = shapes
        with pytest.raises(StateError, match="batch axes"):
            model.integrate(np.tile(q, (*a, 1)), np.tile(v, (*b, 1)), np.ones(c))
    with pytest.raises(StateError, match=r"q0 \(2,\), q1 \(3,\)"):
        model.difference(np.tile(q, (2, 1)), np.tile(q, (3, 1)))
    for rng in ("seed", 1.5, -1, object()):
        with pytest.raises(StateError, match=r"^rng is"):
            model.random(rng)
    for size in (-1, 2.5, "many", True, (2, -1), ("a",), {}):
        with pytest.raises(StateError, match=r"^size is"):
            model.random(0, size)
    assert model.random(0, np.int64(2)).shape == (2, model.nq) and model.random(
        seed=0, size=0
    ).shape == (0, model.nq)


# -- names -----------------------------------------------------------------------------------------


def test_names_are_found_or_the_nearest_told():
    model = dict(ZOO)["welded_arm"]()
    assert model.frame("hand").name == "hand" and model.frame("world").body == WORLD
    assert model.joint("joint_upper").index == 0
    for name, call in (("hnad", model.frame), ("joint_uper", model.joint)):
        with pytest.raises(StateError, match="did you mean"):
            call(name)
    for name in (None, 0, b"hand", ["hand"], np.array(["a", "b"]), model.frames["hand"]):
        for call in (model.frame, model.joint):
            with pytest.raises(StateError, match="give its name"):
                call(name)
    with pytest.raises(StateError, match="use one of"):
        model.frame("")


def test_a_wrong_name_among_many_is_told_at_once():
    model = replace(
        EVERY_KIND,
        frames={
            f"frame_{k}": replace(EVERY_KIND.frames["tool"], name=f"frame_{k}")
            for k in range(50_000)
        },
    )
    with pytest.raises(StateError, match="did you mean"):
        model.frame("fraem_77")


# -- a model is a value ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "make"), ZOO, ids=[name for name, _ in ZOO])
def test_models_travel(name, make, rng):
    model = make()
    again = pickle.loads(pickle.dumps(model))
    assert (
        again == model
        and hash(again) == hash(model)
        and again.digest == model.digest
        and repr(again) == repr(model)
    )
    assert copy.deepcopy(model) is copy.copy(model) is model
    q = model.random(rng)
    tool = reference.frame_pose(model, q, "tool").matrix
    np.testing.assert_array_equal(reference.frame_pose(again, q, "tool").matrix, tool)
    for thing in (*again.bodies, *again.joints, *again.frames.values()):
        for value in vars(thing).values():
            for array in value if isinstance(value, Pose) else (value,):
                assert not isinstance(array, np.ndarray) or not array.flags.writeable
    with pytest.raises(TypeError):
        again.frames["new"] = again.frames["tool"]


def test_the_digest_tells_models_apart():
    """Every number and name counts; the model's own name, its report and its history do not."""
    model = dict(ZOO)["every_kind"]()
    body, joint = model.bodies[2], model.joints[2]
    others = [
        replace(model, gravity_vector=np.array([0.0, 0.0, -9.8])),
        *(
            replace(model, bodies=(*model.bodies[:2], replace(body, **change), *model.bodies[3:]))
            for change in (
                dict(mass=body.mass + 1e-12),
                dict(com=body.com + 1e-12),
                dict(inertia=body.inertia * 2),
                dict(name="b"),
            )
        ),
        *(
            replace(model, joints=(*model.joints[:2], replace(joint, **change), *model.joints[3:]))
            for change in (
                dict(name="j"),
                dict(pitch=1.0),
                dict(axis=-joint.axis),
                dict(pose=IDENTITY),
                dict(armature=joint.armature + 1),
                dict(upper=np.ones(1)),
                dict(kind="continuous"),
            )
        ),
        replace(
            model, frames={name: frame for name, frame in model.frames.items() if name != "tool"}
        ),
    ]
    assert len({model.digest, *(other.digest for other in others)}) == len(others) + 1
    assert replace(model, name="other", report=("line",)).digest == model.digest


def test_names_with_bars_are_not_confused():
    def two(body: str, joint: str) -> Model:
        b = Builder("bars")
        b.body(body, 1.0, inertia=np.eye(3))
        b.joint(joint, "revolute", "world", body)
        return b.build()

    assert two("a|b", "c") != two("a", "b|c")


def test_a_number_that_stands_alone_is_refused():
    """robot.random(10) could be ten configurations, or one of seed 10; by name nothing is said."""
    for bare in (10, np.int64(10), 0):
        with pytest.raises(
            StateError,
            match=rf"random\({bare}\) is ambiguous.*seed={bare} or size={bare}",
        ):
            EVERY_KIND.random(bare)
    assert (
        EVERY_KIND.random(seed=10).shape
        == EVERY_KIND.random(np.random.default_rng(0)).shape
        == (EVERY_KIND.nq,)
    )
    assert (
        EVERY_KIND.random(size=10).shape
        == EVERY_KIND.random(np.random.default_rng(0), 10).shape
        == (10, EVERY_KIND.nq)
    )
    assert (EVERY_KIND.random(10, ()) == EVERY_KIND.random(seed=10)).all()
    assert (EVERY_KIND.random(3, 2) == EVERY_KIND.random(seed=3, size=2)).all()
