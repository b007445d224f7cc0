"""The gains of standing, beside the closed form of a rigid body on its feet."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.control.standing_gains import largest_gains, standing_gains

TILT = (0.0, 3.0, -4.0)  # of gravity


@pytest.mark.parametrize("feet", [1, 2, 6])
@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), TILT, (0.0, 0.0, 0.0)], ids=str)
def test_the_feet_together_hold_four_times_what_topples(feet, gravity):
    """n kp = 4 m g h, where h is the height of the centre of mass above the lowest points."""
    up = -np.array(gravity) / (np.linalg.norm(gravity) or 1.0)
    b = pp.Builder("table", gravity=gravity)
    b.body("top", mass=10.0, com=tuple(0.1 * up), inertia=(1.0, 1.0, 1.0))
    b.joint("root", "free", "world", "top")
    for i in range(feet):
        b.body(f"leg{i}", mass=1.0, com=tuple(-0.2 * up), inertia=(0.01, 0.01, 0.01))
        b.joint(f"hip{i}", "revolute", "top", f"leg{i}", axis=(1, 0, 0))
    b.body("arm", mass=2.0, com=tuple(0.3 * up), inertia=(0.01, 0.01, 0.01))
    b.joint("shoulder", "revolute", "top", "arm", axis=(0, 1, 0))
    foot, hand = pp.Sphere(0.05, tuple(-0.45 * up)), pp.Sphere(0.05, tuple(-0.4 * up))
    robot = pp.Robot.of(b.build()).with_contacts({"leg*": [foot, pp.Point()], "arm": hand})
    q = robot.neutral()
    q[:3] = 7.0, 8.0, 9.0
    mass = 10.0 + feet + 2.0
    h = (10.0 * 0.1 - feet * 0.2 + 2.0 * 0.3) / mass + 0.5
    kp, kd = standing_gains(robot, q)
    assert np.isclose(kp * feet, 4.0 * mass * np.linalg.norm(gravity) * h)
    assert np.isclose(kd, 0.025 * kp)


def test_the_largest_gains_are_stable_for_each_joint_alone():
    """Explicit Euler of one joint with these gains does not grow; with ten times them it does."""
    robot, step = pp.load("anymal_c"), 2e-3
    q = robot.neutral()
    mobility = np.diagonal(np.linalg.inv(robot.mass_matrix(q)))
    for factor, grows in ((1.0, False), (10.0, True)):
        for kp, kd, m in zip(*largest_gains(robot, q, step), mobility, strict=True):
            kp, kd = factor * kp, factor * kd
            # v' = v - h m (kp q + kd v), q' = q + h v'
            A = np.array([[1 - step**2 * m * kp, step - step**2 * m * kd], [0, 0]])
            A[1] = -step * m * kp, 1 - step * m * kd
            assert (np.abs(np.linalg.eigvals(A)).max() > 1.0 + 1e-9) == grows
