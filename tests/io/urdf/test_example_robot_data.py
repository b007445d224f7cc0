"""The 77 URDF files of example-robot-data: each agrees with Pinocchio, or is refused where
Pinocchio has no answer."""

from pathlib import Path

import numpy as np
import pytest

from psiphi._util.errors import Error, ModelError, SingularError
from psiphi.io.urdf.urdf import load_urdf
from psiphi.model.model import WORLD, Model
from tests.zoo import example_robots

pin = pytest.importorskip("pinocchio")

# what has no finite answer: (error, the element it names, words of the cause)
REFUSED = {
    "bluevolta_bravo7_gripper": (SingularError, "joint 'bravo_finger1_joint'", "mass or inertia"),
    "bravo7_gripper": (SingularError, "joint 'bravo_finger1_joint'", "mass or inertia"),
    "falcon_bravo7_gripper": (SingularError, "joint 'bravo_finger1_joint'", "mass or inertia"),
    "romeo": (SingularError, "joint 'LFinger21'", "mass or inertia"),
    "romeo_laas_small": (SingularError, "joint 'l_gripper_joint'", "mass or inertia"),
    "falcon": (ModelError, "joint 'top_propeller_joint'", "'Z_propeller' is not a link"),
    "ur3": (ModelError, "robot", "no <link>"),
}
FILES = [Path(file) for file in example_robots()]
GOOD = [file for file in FILES if file.stem not in REFUSED]


def ids(file: Path) -> str:
    return file.stem


def test_all_files_are_here():
    assert len(FILES) == 77 and len(GOOD) == 70


@pytest.mark.parametrize("file", [file for file in FILES if file.stem in REFUSED], ids=ids)
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_refused(file, base):
    kind, element, words = REFUSED[file.stem]
    with pytest.raises(kind) as caught:
        load_urdf(file, base)
    error = caught.value
    assert isinstance(error, Error) and error.file == str(file) and error.element == element
    assert error.line and error.remedy and words in error.cause


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("file", GOOD, ids=ids)
def test_agrees_with_pinocchio(file, base):
    model = load_urdf(file, base)
    theirs = (
        pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
        if base == "free"
        else pin.buildModelFromUrdf(str(file))
    )
    assert [joint.name for joint in model.joints] == list(theirs.names)[1:], "joint names and order"
    assert model.nv == theirs.nv
    assert model.nq == theirs.nq - sum(joint.kind == "continuous" for joint in model.joints), (
        "a continuous joint is one angle"
    )
    assert [joint.v_slice.start for joint in model.joints] == [
        joint.idx_v for joint in list(theirs.joints)[1:]
    ]
    assert list(model.parent) == [parent - 1 for parent in list(theirs.parents)[1:]]
    same_bodies(model, theirs)
    same_frames(model, theirs)


def same_bodies(model: Model, theirs) -> None:
    for k, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True), 1):
        place, inertia = theirs.jointPlacements[k], theirs.inertias[k]
        np.testing.assert_allclose(joint.pose.rotation, place.rotation, atol=1e-14)
        np.testing.assert_allclose(joint.pose.translation, place.translation, atol=1e-14)
        assert body.mass == pytest.approx(inertia.mass, rel=1e-14, abs=1e-14)
        if body.mass > 0.0:
            np.testing.assert_allclose(body.com, inertia.lever, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(body.inertia, inertia.inertia, rtol=1e-11, atol=1e-13)
        if joint.kind != "free":
            axis = (
                theirs.joints[k].createData().S[:3]
                if joint.kind == "prismatic"
                else theirs.joints[k].createData().S[3:]
            )
            np.testing.assert_allclose(joint.axis, np.ravel(axis), atol=1e-14)
            limited = joint.kind in ("revolute", "prismatic")
            i = theirs.joints[k].idx_q
            assert not limited or joint.lower[0] == theirs.lowerPositionLimit[i]
            assert not limited or joint.upper[0] == theirs.upperPositionLimit[i]


def same_frames(model: Model, theirs) -> None:
    for frame in theirs.frames:
        if frame.type != pin.FrameType.BODY or frame.name == "universe":
            continue
        ours = model.frames[frame.name]
        assert ours.body == frame.parentJoint - 1 if frame.parentJoint else ours.body == WORLD
        np.testing.assert_allclose(ours.pose.rotation, frame.placement.rotation, atol=1e-14)
        np.testing.assert_allclose(ours.pose.translation, frame.placement.translation, atol=1e-14)


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - {"falcon", "ur3"}))
def test_the_remedy_helps(name):
    """What the error advises makes the model load."""
    file = next(file for file in FILES if file.stem == name)
    model = load_urdf(file, armature=1e-3, repair="all", allow_outside=True)
    assert all(joint.armature[0] == 1e-3 for joint in model.joints)
