"""Sensors of studies: what `measure` says of each motion, whatever the chunks."""

import numpy as np
import pytest

import psiphi as pp

SENSORS = {
    "imu": pp.IMU("lower_link", rate=300, noise=[0.1] * 3 + [0.2] * 3, drift=0.3),
    "torque": pp.JointTorque("elbow", bias=0.5),
}
STUDY = {
    "motions": 7,
    "seed": 5,
    "duration": 0.05,
    "damping": True,
    "controller": {"kind": "pd", "kp": 30.0, "kd": 2.0},
    "vary": {
        "q": {"uniform": [-1.0, 1.0]},
        "mass": {"uniform": [0.8, 1.2], "relative": True},
        "kp": {"uniform": [20.0, 40.0]},
    },
}


@pytest.fixture(scope="module")
def robot():
    return pp.load("acrobot")


@pytest.fixture(scope="module")
def study(robot):
    return pp.study(
        robot, **STUDY, sensors=SENSORS | {"imu": pp.IMU(robot.bodies[-1].name, rate=300)}
    )


def noisy(robot):
    errors = {"noise": [0.1] * 3 + [0.2] * 3, "drift": 0.3}
    return {"imu": pp.IMU(robot.bodies[-1].name, rate=300, **errors), "torque": SENSORS["torque"]}


def test_it_is_what_each_motion_measures(robot, study):
    """Beside `measure` of the motions simulated one by one: their masses, gains and torques."""
    for name, sensor in study.config.spec["sensors"].items():
        assert sensor["kind"] in ("imu", "joint_torque"), name
    for i in (0, 4, 6):
        motion = study.motion(i)
        found = motion.measure(
            {"imu": pp.IMU(robot.bodies[-1].name, rate=300), "torque": pp.JointTorque("elbow")}
        )
        imu, torque = study.measured("imu"), study.measured("torque")
        assert np.allclose(imu.t, found["imu"].t) and imu.t.shape == (16,)
        assert np.allclose(imu.value[i], found["imu"].value, atol=1e-9)
        assert np.allclose(torque.value[i], found["torque"].value + 0.5, atol=1e-9)
        assert torque.value.shape == (7, 51, 1)
    assert np.ptp(study.measured("imu").value[:, -1, 3]) > 1e-3, "motions differ"


def test_errors_depend_on_the_motion_and_not_on_the_chunk(robot):
    whole, parts = (
        pp.study(robot, **STUDY, sensors=noisy(robot), chunk=chunk).measured("imu").value[:]
        for chunk in (7, 2)
    )
    np.testing.assert_array_equal(whole, parts)
    exact = pp.study(robot, **STUDY, sensors={"imu": pp.IMU(robot.bodies[-1].name, rate=300)})
    errors = whole - exact.measured("imu").value[:]
    assert np.isfinite(errors).all()
    white = np.diff(errors[..., :3], axis=1)  # of noise 0.1 and a drift of 0.3 / sqrt(300)
    assert abs(white.std() / np.sqrt(2 * 0.1**2 + 0.3**2 / 300) - 1.0) < 0.2
    assert np.unique(errors[:, 0, 0]).size == 7, "each motion has its own errors"
    far = noisy(robot)["imu"].errors.disturb(
        np.zeros((2, 3, 6)), 0.1, 1, "imu", np.array([1, 1 + (1 << 24)])
    )
    assert not np.allclose(far[0], far[1]), "numbers beyond the counter's range"


def test_a_motion_that_fails_has_no_measurements(robot):
    """NaN from the time at which it diverged, and of a motion that cannot start."""
    study = pp.study(
        robot,
        motions=4,
        duration=0.02,
        start={"v": [1e200, 0.0]},
        vary={"v": {"*": {"grid": [0.0, 1e200]}}},
        sensors={"imu": {"kind": "imu", "frame": robot.bodies[-1].name}},
    )
    value = study.measured("imu").value[:]
    failed = {failure.motion for failure in study.failures}
    assert failed and len(failed) < 4
    for i in range(4):
        assert np.isfinite(value[i]).all() != (i in failed)


def test_what_is_refused(robot):
    def refused(match, **sensor):
        with pytest.raises(pp.Error, match=match):
            pp.study(robot, motions=2, duration=0.01, sensors={"one": sensor})

    refused("expected one of imu", kind="camera")
    refused("frame", kind="imu")
    refused("no frame|no body", kind="imu", frame="nose")
    refused("has no contacts", kind="contact_force")
    refused("speed", kind="imu", frame=robot.bodies[-1].name, speed=3)
    refused("noise", kind="imu", frame=robot.bodies[-1].name, noise=-1.0)
    with pytest.raises(pp.Error, match="not a name"):
        pp.study(robot, motions=2, duration=0.01, sensors={"a/b": {"kind": "joint_torque"}})
    with pytest.raises(pp.StateError, match="no sensor"):
        pp.study(robot, motions=2, duration=0.01).measured("imu")


def test_arrays_outlive_a_study_without_a_folder(robot):
    """Its folder is deleted with the study: what it returned stays."""
    values = (
        pp.study(robot, **STUDY, sensors={"torque": SENSORS["torque"]}).measured("torque").value
    )
    states = pp.study(robot, **STUDY, keep={"every": 10}).samples
    assert np.isfinite(values[:]).all() and np.isfinite(states.q[:]).all()
