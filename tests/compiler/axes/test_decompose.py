"""Placements as products of axial screws: every one must reproduce the pose it stands for."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi.compiler.axes.axial_screws import IDENTITY, PARALLEL_SINE, denavit_hartenberg, place
from psiphi.model.components import Axes, canonical_axes
from psiphi.model.model import Pose
from tests import zoo
from tests.oracles.reference import axis_rotation

X, Y, Z = np.eye(3)
AXIS = {"x": X, "y": Y, "z": Z}
SEEDS = st.integers(0, 2**32 - 1)
NEAR = [1e-3, 1e-4, 1e-6, 1e-8, 1e-9, 1e-12, 1e-13]


def screw(axis: str, c: float, s: float, length: float) -> Pose:
    assert math.hypot(c, s) == pytest.approx(1.0, abs=1e-15)
    return Pose(axis_rotation(AXIS[axis], math.atan2(s, c)), length * AXIS[axis])


def product(*steps) -> Pose:
    return reduce(Pose.__matmul__, steps, Pose(np.eye(3), np.zeros(3)))


def close(ours: Pose, theirs: Pose, law: str, tolerance: float = 1e-13) -> None:
    np.testing.assert_allclose(ours.matrix, theirs.matrix, rtol=0, atol=tolerance, err_msg=law)


def turn_x(angle: float) -> np.ndarray:
    return axis_rotation(X, angle)


def special_poses() -> dict[str, Pose]:
    """Where two axes stand in no general position."""
    spin = axis_rotation(Z, 0.8)
    flip = turn_x(math.pi)
    quarter = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    return {
        "the same frame": Pose(np.eye(3), np.zeros(3)),
        "coincident axes": Pose(spin, 0.7 * Z),
        "parallel": Pose(spin, np.array([0.3, -0.4, 0.2])),
        "antiparallel": Pose(spin @ flip, np.array([0.3, -0.4, 0.2])),
        "antiparallel, coincident": Pose(flip @ spin, -0.5 * Z),
        "intersecting": Pose(spin @ turn_x(1.1) @ spin, np.zeros(3)),
        "intersecting further on": Pose(turn_x(1.1), 0.4 * Z + 0.3 * turn_x(1.1)[:, 2]),
        "at right angles": Pose(quarter, np.array([0.1, 0.2, 0.3])),
        "crossing at right angles": Pose(spin @ quarter, np.array([0.1, 0.2, 0.3])),
        "steep enough": Pose(turn_x(1.01 * PARALLEL_SINE) @ spin, np.array([0.3, -0.4, 0.2])),
        "far away": Pose(spin @ turn_x(0.9), np.array([300.0, -4e3, 20.0])),
        "tiny": Pose(spin @ turn_x(0.9), np.array([3e-9, -4e-9, 2e-9])),
    }


@pytest.mark.parametrize("name", special_poses())
@pytest.mark.parametrize("ahead", [0.0, 0.6])
def test_denavit_hartenberg_is_the_pose(name, ahead):
    pose = special_poses()[name]
    split = denavit_hartenberg(pose, ahead)
    first, second, last = split
    size = max(1.0, np.abs(pose.translation).max())
    close(
        product(screw("z", *first), screw("x", *second), screw("z", *last)),
        pose,
        name,
        1e-13 * size,
    )


@given(SEEDS)
def test_denavit_hartenberg_of_any_pose(seed):
    rng = np.random.default_rng(seed)
    pose = Pose(zoo.random_rotation(rng), rng.uniform(-1, 1, 3))
    if math.hypot(*pose.rotation[:2, 2]) < PARALLEL_SINE:
        return
    first, second, last = denavit_hartenberg(pose, rng.uniform(-1, 1))
    close(
        product(screw("z", *first), screw("x", *second), screw("z", *last)),
        pose,
        "Z X Z",
        1e-13 / PARALLEL_SINE,
    )


@pytest.mark.parametrize("angle", NEAR)
@pytest.mark.parametrize("around", [0.0, math.pi])
def test_nearly_parallel_axes_have_no_common_normal(angle, around):
    """Their common normal is far away: 1 / angle digits would be lost."""
    assert denavit_hartenberg(Pose(turn_x(around + angle), np.array([0.3, -0.4, 0.2])), 0.0) is None


def test_parallel_axes_share_out_the_shift():
    """d = -ahead: the child's total shift vanishes."""
    pose = Pose(np.eye(3), np.array([0.3, 0.0, 0.5]))
    first, second, last = denavit_hartenberg(pose, 0.6)
    assert (first[2], second[2], last[2]) == (pytest.approx(1.1), 0.3, -0.6)


def test_right_angles_are_exact():
    """cos 90 degrees is 0, not 6e-17: zeros save operations."""
    for name in ("at right angles", "parallel", "antiparallel", "the same frame"):
        _, (c, s, _), _ = denavit_hartenberg(special_poses()[name], 0.0)
        assert {abs(c), abs(s)} == {0.0, 1.0}, name


@pytest.mark.parametrize("kind", zoo.KINDS)
def test_canonical_axes(kind, rng):
    """z along the first axis before the motion, along the last one after it; the twist leads from
    one to the other."""
    model = zoo.chain(kind, [kind] * 3, seed=5)
    for joint in model.joints:
        axes = canonical_axes(joint)
        for Q in (axes.before, axes.after):
            np.testing.assert_allclose(Q @ Q.T, np.eye(3), atol=1e-14)
            assert np.linalg.det(Q) == pytest.approx(1.0)
        if joint.row.axes:
            np.testing.assert_allclose(axes.before[:, 2], joint.axis, atol=1e-15)
        if joint.row.axes == 2:
            np.testing.assert_allclose(axes.after[:, 2], joint.axis2, atol=1e-14)
        np.testing.assert_allclose(
            axes.before @ turn_x(math.atan2(*axes.twist[::-1])), axes.after, atol=1e-14
        )
        if kind == "planar":
            np.testing.assert_allclose(axes.before[:, 0], joint.axis2, atol=1e-14)


def placed(poses, gauges, screws, movable):
    """`place`, checked: own Z, then each child's screws, is the child's pose (and its own Z)."""
    own, placements = place(poses, gauges, screws, movable)
    assert movable or own == IDENTITY
    for pose, gauge, is_screw, placement in zip(poses, gauges, screws, placements, strict=True):
        path = [
            screw("z", *own),
            *(screw(*step) for step in placement.fixed),
            screw("z", *placement.offset),
        ]
        size = max(1.0, np.abs(pose.translation).max())
        close(
            product(*path),
            product(pose, screw("z", *gauge)),
            "parent's axes, screws, offset = pose, child's axes",
            1e-12 * size,
        )
        assert is_screw or placement.offset == IDENTITY
        assert placement.gauge == gauge
        assert all(step[1:] != IDENTITY for step in placement.fixed), "no idle screws"
    return own, placements


@given(SEEDS)
def test_place_moves_axes_without_moving_bodies(seed):
    rng = np.random.default_rng(seed)
    special = list(special_poses().values())
    poses, gauges, screws = [], [], []
    for _ in range(rng.integers(0, 4)):
        general = Pose(zoo.random_rotation(rng), rng.uniform(-1, 1, 3))
        poses.append(special[rng.integers(len(special))] if rng.random() < 0.5 else general)
        screws.append(bool(rng.random() < 0.7))
        angle = rng.uniform(-3, 3)
        gauges.append(
            (math.cos(angle), math.sin(angle), rng.uniform(-1, 1)) if screws[-1] else IDENTITY
        )
    placed(poses, gauges, screws, movable=bool(rng.random() < 0.5))


@pytest.mark.parametrize("angle", NEAR)
def test_nearly_parallel_axes_keep_plain_shifts(angle):
    """No length in the placement is larger than the distance of the two frames."""
    pose = Pose(turn_x(angle) @ axis_rotation(Z, 0.3), np.array([0.3, -0.4, 0.2]))
    own, (placement,) = placed([pose], [IDENTITY], [True], True)
    assert (
        own == IDENTITY
        and all(abs(step[3]) <= 0.5 for step in placement.fixed)
        and abs(placement.offset[2]) <= 0.5
    )


def test_a_serial_revolute_arm_costs_two_screws_a_link(rng):
    """The first Z goes to the parent's axes, the last into the joint's own coordinate: X(alpha, a)
    alone remains."""
    for _ in range(10):
        pose = Pose(zoo.random_rotation(rng), rng.uniform(-1, 1, 3))
        if math.hypot(*pose.rotation[:2, 2]) > PARALLEL_SINE:
            _, (placement,) = placed([pose], [IDENTITY], [True], True)
            assert [step[0] for step in placement.fixed] == ["x"]


def test_axes_default_to_no_twist():
    assert Axes(np.eye(3), np.eye(3)).twist == (1.0, 0.0)
