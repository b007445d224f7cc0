"""`limits="block"`: what is recorded beside the motion, against the motion itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import psiphi as pp

G, MASS, LENGTH, INERTIA = 9.81, 1.0, 0.5, 0.02


@cache
def arm() -> pp.Robot:
    """Two rods that swing in a vertical plane; the first has stops, the second moves freely."""
    b = pp.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.body(name, mass=MASS, com=(LENGTH / 2, 0, 0), inertia=np.diag([1e-3, INERTIA, INERTIA]))
        xyz = (0, 0, 0) if parent == "world" else (LENGTH, 0, 0)
        stops = dict(lower=-0.3, upper=0.3) if parent == "world" else {}
        b.joint(f"{name} hinge", "revolute", parent, name, xyz=xyz, axis=(0, 1, 0), **stops)
    return pp.Robot.of(b.build())


@cache
def pendulum() -> pp.Robot:
    return pp.Robot.of(arm().without("lower"))


def fall(compiled: bool = False, **options) -> pp.Trajectory:
    run = dict(duration=0.6, dt=1e-3, limits="block", compiled=compiled) | options
    return pp.simulate(arm(), [0.2, 0.3], [0.0, 0.0], **run)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["rk4", "euler", "implicit"])
def test_recorded_accelerations_are_those_of_the_motion(compiled, method):
    """a = dv/dt, but where the joint hits its stop: also of the other joint, which is free."""
    motion = fall(compiled, method=method)
    assert motion.a is not None and motion.stop_forces is not None
    slopes = np.gradient(motion.v, motion.t, axis=0)
    away = np.abs(slopes - motion.a).max(axis=1)[1:-1]
    assert (away < 0.5).mean() > 0.99  # one impact
    assert np.median(away) < 0.2  # stops are of order 1
    resting = motion.q[:, 0] == 0.3
    assert resting.sum() > 400
    assert abs(motion.a[resting, 0]).max() == 0.0
    # M a + C v + g = tau + the force of the stop
    wanted = arm().inverse_dynamics(motion.q, motion.v, motion.a)
    assert wanted[300:, 1] == pytest.approx(0.0, abs=1e-9)
    assert motion.stop_forces[300:, 0] == pytest.approx(wanted[300:, 0], abs=0.1)
    assert not motion.stop_forces[:, 1].any()


def test_a_joint_at_rest_has_the_force_of_statics():
    robot = pendulum()
    motion = pp.simulate(robot, [0.3], duration=0.02, limits="block")
    held = robot.gravity(motion.q)
    assert not motion.a.any() and not motion.v.any()
    assert motion.stop_forces[1:] == pytest.approx(held[1:], rel=1e-5)
    assert not motion.stop_work.any()
    pushed = pp.simulate(robot, [0.3], tau=[1.5], duration=0.02, limits="block")
    assert pushed.stop_forces[1:] == pytest.approx(held[1:] - 1.5, rel=1e-5)
    # a torque that lifts it off: no force
    lifted = pp.simulate(robot, [0.3], tau=[-4.0], duration=0.02, limits="block")
    assert not lifted.stop_forces.any()
    assert lifted.a[0] == pytest.approx(robot.forward_dynamics([0.3], [0.0], [-4.0]))


@pytest.mark.parametrize("every", [1, 7])
def test_forces_are_the_change_of_momentum_and_their_work_that_of_energy(every):
    """I (v - v0) = impulses of stop and gravity; E - E0 = work of the stop, to the first order."""
    robot, inertia = pendulum(), INERTIA + MASS * (LENGTH / 2) ** 2
    errors = []
    for dt in (2e-3, 1e-3):
        options = dict(duration=0.7, dt=dt, limits="block", every=every)
        fine = pp.simulate(robot, [-0.2], [0.5], **options | {"every": 1})
        motion = pp.simulate(robot, [-0.2], [0.5], **options)
        weight = -robot.gravity(fine.q)[:, 0]
        weight = dt * (weight.sum() - (weight[0] + weight[-1]) / 2)
        impulse = (np.diff(motion.t) * motion.stop_forces[1:, 0]).sum()
        assert impulse + weight == pytest.approx(inertia * (0.0 - 0.5), abs=5 * dt)
        assert motion.stop_work[-1] == pytest.approx(fine.stop_work[-1], rel=1e-12)
        assert (np.diff(motion.stop_work) <= 1e-12).all()
        errors.append(abs(motion.energy[-1] - motion.energy[0] - motion.stop_work[-1]))
    loss = motion.energy[0] - motion.energy[-1]
    assert errors[1] < 0.02 * loss and errors[1] < 0.6 * errors[0] + 1e-3 * loss
    assert "work of stops" in motion.summary() and "loss" not in motion.summary()


def test_kernel_batch_and_parameters_record_the_same(tmp_path):
    masses = arm().free("mass")
    p = np.stack([masses.parameters(), 2.0 * masses.parameters()])
    q, v = np.array([[0.2, 0.3], [0.2, -0.5]]), np.zeros((2, 2))
    runs = [
        pp.simulate(
            masses.at(p), q, v, duration=0.4, dt=2e-3, every=3, limits="block", compiled=compiled
        )
        for compiled in (True, False)
    ]
    for name in ("a", "stop_forces", "stop_work"):
        np.testing.assert_allclose(*(getattr(run, name) for run in runs), atol=1e-8)
    alone = pp.simulate(masses.at(p[1]), q[1], duration=0.4, dt=2e-3, every=3, limits="block")
    np.testing.assert_allclose(runs[0].element(1).stop_forces, alone.stop_forces, atol=1e-8)
    for file in ("motion.npz", "motion.csv"):
        alone.save(tmp_path / file)
        read = pp.Trajectory.load(tmp_path / file, alone.system)
        assert np.array_equal(read.stop_forces, alone.stop_forces)
        assert np.array_equal(read.stop_work, alone.stop_work)
    assert alone.at(0.1).stop_forces.shape == (2,)
    (tmp_path / "motion.csv.json").unlink()
    bare = pp.Trajectory.load(tmp_path / "motion.csv")
    assert np.array_equal(bare.stop_forces, alone.stop_forces)


def test_stops_are_of_order_one():
    """Halving the step halves the error, whatever the order of the method."""
    ends = [fall(dt=dt, duration=0.4, compiled=True).final.q[1] for dt in (4e-3, 2e-3, 1e-3, 5e-4)]
    steps = np.abs(np.diff(ends))
    assert steps[0] / steps[2] == pytest.approx(4.0, rel=0.5)


def test_a_locked_joint_has_no_acceleration():
    b = pp.Builder("locked")
    b.body("rod", mass=1.0, com=(0.25, 0, 0), inertia=np.diag([1e-3, 0.02, 0.02]))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), lower=0.1, upper=0.1)
    robot = pp.Robot.of(b.build())
    motion = pp.simulate(robot, [0.1], duration=0.01, limits="block")
    assert not motion.a.any()
    assert motion.stop_forces[1:] == pytest.approx(robot.gravity(motion.q)[1:], rel=1e-5)
