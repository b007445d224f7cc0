"""What a first-time user gets wrong: one sentence and a remedy, at once, and never a hang."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from tests.simulation.simulate.motions import puma, state, ur5

ADAPTIVE = ["DOP853", "RK23", "LSODA", "Radau", "BDF"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (dict(events=3), "events is 3, expected a list"),
        (dict(events={"none": lambda t, q, v: None}), "returned None, expected a real number"),
        (dict(stop=3), "stop is 3, expected a list.*True, False"),
        (dict(stop=None), "stop is None"),
        (dict(stop=[1, "a"]), "stop holds 1"),
        (dict(stop="limit"), 'give limits="stop"'),
        (dict(friction=1.0, friction_speed=[1, 2]), "friction_speed is"),
        (dict(every=0), "every is 0"),
        (dict(hold="no"), "hold is 'no', expected True or False"),
        (dict(projection=3), "projection is 3"),
        (dict(progress=3), "progress is 3"),
        (dict(tau=0.0), "tau is the number 0.0"),
        (dict(method="RK4"), "did you mean 'rk4'"),
        (dict(method="dop853"), "did you mean 'DOP853'"),
        (dict(duration=1e15), "need .* of memory"),
        (dict(tau=pp.PD(pp.load("pelican"), np.zeros(2), 1, 1)), "made for pelican"),
        (dict(tau=lambda t, q: q), "tau, events and progress are functions of"),
    ],
)
def test_wrong_options_are_refused(options, why):
    with pytest.raises((StateError, pp.SimulationError), match=why):
        pp.simulate(puma(), np.zeros(6), **{"duration": 0.01, **options})


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda r: pp.simulate("ur5", np.zeros(6)), r"pp.load\('ur5'\)"),
        (lambda r: pp.simulate(pp.scenes.load("four_bar"), np.zeros(3)), "case.run"),
        (lambda r: pp.GravityCompensation("ur5"), "pp.load"),
        (lambda r: pp.PD(r, np.full(6, np.nan), 1, 1), "not finite"),
        (lambda r: pp.OperationalSpace("ur5", "tool0", np.zeros(3)), "expected a robot"),
        (lambda r: pp.OperationalSpace(r, "tool", "there"), "the target"),
        (lambda r: pp.OperationalSpace(r, "tool", [0, 0, np.nan]), "not finite"),
        (lambda r: pp.OperationalSpace(r, "tool", np.zeros(3), kp="a"), "kp is 'a'"),
        (lambda r: pp.OperationalSpace(r, "tool", np.zeros(3), kd=-1), "kd is -1"),
        (lambda r: pp.OperationalSpace(r, "tool", np.zeros(3), fade=0), "fade is 0"),
    ],
)
def test_wrong_systems_and_controllers_are_refused(make, why):
    with pytest.raises(StateError, match=why):
        make(puma())


def test_false_of_numpy_cuts_no_torques():
    motion = pp.simulate(puma(), np.zeros(6), tau=np.ones(6), duration=0.01, effort=np.False_)
    assert (motion.tau == 1.0).all()


def test_stop_true_stops_at_limits_too():
    robot = pp.load("panda")
    start = np.array([0, -0.5, 0, -2.3, 0, 2.0, 0.7, 0.02, 0.02])
    motion = pp.simulate(robot, start, duration=0.5, dt=5e-3, limits="record", stop=True)
    assert motion.events[-1].stopped and motion.final.t < 0.5


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("when", [-1.0, 0.02])
def test_nan_ends_adaptive_steps_as_an_event(method, when):
    """At the first derivative or later; alone, and in one element of a batch."""

    def bad(t, q, v):
        return np.where(t > when, np.nan, 0.0) * np.ones(6)

    def half(t, q, v):
        return np.stack([bad(t, q, v), np.zeros(6)])

    half = pp.law(half, batched=True, pure=False)

    alone = pp.simulate(
        puma(), np.zeros(6), tau=bad, duration=0.04, dt=0.01, method=method, rtol=1e-6, atol=1e-6
    )
    assert [event.name for event in alone.events] == ["diverged"] and alone.final.t <= max(
        when, 0.0
    ) + 1e-9
    both = pp.simulate(
        puma(),
        np.zeros((2, 6)),
        tau=half,
        duration=0.04,
        dt=0.01,
        method=method,
        rtol=1e-6,
        atol=1e-6,
    )
    assert [event.where for event in both.events] == [(0,)] and both.final.t == 0.04
    assert np.isnan(both.q[0, -1]).all() and np.isfinite(both.q[1]).all()


def test_an_empty_batch_has_the_same_samples_everywhere(tmp_path):
    for method in ("rk4", "RK45"):
        motion = pp.simulate(puma(), np.zeros((0, 6)), duration=0.05, dt=0.01, method=method)
        assert motion.q.shape == (0, 6, 6)
    motion.save(tmp_path / "none.csv")
    back = pp.Trajectory.load(tmp_path / "none.csv", puma())
    assert back.q.shape == motion.q.shape and (back.t == motion.t).all()


def test_an_error_inside_keeps_one_remedy():
    """Not a sentence in a sentence."""
    with pytest.raises(pp.SimulationError) as caught:
        pp.simulate(
            puma(),
            np.zeros(6),
            tau=lambda t, q, v: np.zeros(6 if t < 0.02 else 5),
            duration=0.1,
            dt=0.01,
        )
    assert str(caught.value).count("Remedy") == 1 and "error.trajectory" in caught.value.remedy


# -- operational space near singularities


@pytest.mark.parametrize("where", ["point", "pose", "out of reach"])
def test_operational_space_stays_bounded_from_anywhere(where):
    robot = ur5()
    pose = robot.frame_pose(np.array([0.0, -1.0, 1.4, 0.2, 0.8, 0.0]), "tool0")
    target = {"point": pose[:3, 3], "pose": pose, "out of reach": np.array([2.0, 0.0, 0.3])}[where]
    control = pp.OperationalSpace(robot, "tool0", target)
    q = np.concatenate(
        [
            robot.random(np.random.default_rng(7), 14),
            np.zeros((1, 6)),
            [[0, -np.pi / 2, 0, 0, 0, 0]],
        ]
    )
    motion = pp.simulate(robot, q, tau=control, duration=2.0, dt=4e-3, every=10)
    assert not motion.events and np.abs(motion.v).max() < 150.0
    if where == "point":
        assert (
            np.linalg.norm(
                robot.frame_pose(motion.q[:, -1], "tool0")[:, :3, 3] - target, axis=-1
            ).max()
            < 0.01
        )


def test_far_targets_are_approached_at_the_speed_that_was_given():
    robot, q = ur5(), np.array([0.2, -1.0, 1.2, -0.8, -1.2, 0.3])
    goal = robot.frame_pose(q, "tool0")[:3, 3] + [0.0, -0.4, 0.0]
    motion = pp.simulate(
        robot,
        q,
        tau=pp.OperationalSpace(robot, "tool0", goal, speed=0.2, posture=q),
        duration=1.0,
        dt=2e-3,
    )
    speeds = np.linalg.norm(robot.frame_velocity(motion.q, motion.v, "tool0")[:, 3:], axis=-1)
    assert 0.19 < speeds.max() < 0.2001


# -- energy balance


def test_the_summary_speaks_of_drift_only_where_nothing_drives_or_brakes():
    q, v = state(puma(), 0)
    free = pp.simulate(puma(), q, v, duration=0.05).summary()
    assert "energy drift" in free and "work" not in free
    driven = pp.simulate(puma(), q, v, np.ones(6), duration=0.05).summary()
    assert "work of torques" in driven and "energy balance" in driven and "drift" not in driven
    braked = pp.simulate(puma(), q, v, duration=0.05, damping=1.0).summary()
    assert "loss" in braked and "drift" not in braked and "work" not in braked


@pytest.mark.parametrize("hold", [True, False])
def test_energy_changes_by_the_work_of_the_torques(hold):
    q, v = state(puma(), 1, 2)
    control = pp.PD(puma(), np.zeros(6), 20.0, 5.0, gravity=True)
    motion = pp.simulate(puma(), q, v, control, duration=0.5, hold=hold)
    gap = motion.energy - motion.energy[:, :1] - motion.work
    assert np.abs(gap).max() < 1e-4 * np.ptp(motion.energy)


def test_losses_are_what_friction_took():
    """dE/dt = -damping v . v of an undriven arm."""
    q, v = state(puma(), 2)
    motion = pp.simulate(puma(), q, v, duration=0.5, damping=2.0)
    power = 2.0 * np.einsum("ti,ti->t", motion.v, motion.v)
    lost = np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(motion.t))
    assert f"{lost:.3g}" in motion.summary()


# -- trajectories


@pytest.fixture(scope="module")
def motion():
    return pp.simulate(puma(), np.zeros((2, 6)), duration=0.01)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda m, d: m.element("a"), "element"),
        (lambda m, d: m.plot(None), "cannot plot None"),
        (lambda m, d: m.plot(path=d / "no" / "x.png"), "cannot write"),
        (lambda m, d: m.plot(path=d / "x.doc"), "cannot write"),
        (lambda m, d: m.save(None), "expected a path"),
        (lambda m, d: m.save(d / "no" / "x.npz"), "cannot write .*x.npz': No such file"),
        (lambda m, d: m.html(d / "no" / "x.html"), "cannot write .*: No such file"),
        (lambda m, d: m.html(None), "expected a path"),
        (lambda m, d: m.html(d / "x.html", element="a"), "element"),
        (lambda m, d: m.html(d / "x.html", frames="a"), "frames"),
    ],
)
def test_what_trajectories_refuse(motion, tmp_path, call, why):
    with pytest.raises(pp.Error, match=why):
        call(motion, tmp_path)
    assert not list(tmp_path.iterdir()), "nothing half-written stays"


def test_plots_take_lists_of_names(motion):
    assert len(motion.plot(["q", "v"]).axes) == 2


def test_a_file_is_loaded_with_its_own_system(motion, tmp_path):
    motion.save(tmp_path / "m.npz")
    with pytest.raises(StateError, match=r"panda has nq=9.*'puma560'"):
        pp.Trajectory.load(tmp_path / "m.npz", pp.load("panda"))
    with pytest.raises(StateError, match=r"pp\.load"):
        pp.Trajectory.load(tmp_path / "m.npz", "puma560")


def test_shapes_travel_with_the_robot():
    robot = pp.load("ur5")
    assert robot.shapes
    assert pickle.loads(pickle.dumps(robot)).shapes == robot.shapes
    assert pp.Robot.of(robot).shapes == robot.shapes
    assert replace(robot, gravity_vector=np.zeros(3)).shapes == robot.shapes
    control = pp.OperationalSpace(robot, "tool", np.zeros(3))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(control))(0.0, *state(robot, 0)), control(0.0, *state(robot, 0))
    )
    cell = pp.scenes.load("two_arms").system
    assert len(pickle.loads(pickle.dumps(cell)).robot.shapes) == len(cell.robot.shapes) > 0
