"""What is watched for, what stops, and that nothing computed is lost."""

import sys

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.simulation.simulation_errors import Interrupted
from tests.simulation.simulate.motions import pendulum, puma, state

RUNS = [dict(compiled=True), dict(compiled=False), dict(method="DOP853")]
IDS = ["compiled", "python", "adaptive"]


@pytest.mark.parametrize("run", RUNS, ids=IDS)
def test_a_limit_stops_or_is_recorded(run):
    robot = pendulum()
    free = pp.simulate(robot, [0.0], [5.0], duration=1.0, dt=1e-3, **run)
    assert not free.events and free.q.max() > 1.0, "limits are ignored unless asked for"
    seen = pp.simulate(robot, [0.0], [5.0], duration=1.0, dt=1e-3, limits="record", **run)
    np.testing.assert_array_equal(seen.q, free.q)
    crossings = [e for e in seen.events if e.name == "limit"]
    assert (
        len(crossings)
        == 1
        + ((free.q[1:, 0] > 1.0) & (free.q[:-1, 0] <= 1.0)).sum()
        - 1
        + (free.q[:, 0] < -1.0).any()
    )
    stopped = pp.simulate(robot, [0.0], [5.0], duration=1.0, dt=1e-3, limits="stop", **run)
    (event,) = stopped.events
    assert (event.name, event.what, event.stopped) == ("limit", "hinge", True)
    assert stopped.q[-1, 0] > 1.0 >= stopped.q[-2, 0] and stopped.t[-2] <= event.t <= stopped.t[-1]
    np.testing.assert_array_equal(stopped.q, free.q[: len(stopped)])


def test_every_crossing_is_recorded_in_pieces_of_any_size(monkeypatch):
    """Out of the range and back, several times: the kernel finds the events of the Python steps."""
    start = dict(q0=[[0.0], [0.9]], v0=[[4.8], [1.0]], duration=4.0, dt=5e-3, limits="record")
    wanted = pp.simulate(pendulum(), **start, compiled=False).events
    assert len(wanted) > 4
    for piece in (1e-9, 1e-6, 1.0):
        monkeypatch.setattr(
            sys.modules["psiphi.simulation.compiled_rollout.rollout_runner"], "PIECE_SECONDS", piece
        )
        found = pp.simulate(pendulum(), **start, compiled=True).events
        assert [(e.what, e.t, e.where) for e in found] == [(e.what, e.t, e.where) for e in wanted]


@pytest.mark.parametrize("run", RUNS[:2], ids=IDS[:2])
def test_a_stop_between_two_samples_is_a_sample(run):
    stopped = pp.simulate(
        pendulum(), [0.0], [5.0], duration=1.0, dt=1e-3, every=50, limits="stop", **run
    )
    dense = pp.simulate(pendulum(), [0.0], [5.0], duration=1.0, dt=1e-3, limits="stop", **run)
    assert stopped.final.t == dense.final.t and (stopped.final.q == dense.final.q).all()
    np.testing.assert_array_equal(stopped.q[:-1], dense.q[::50])


@pytest.mark.parametrize("run", RUNS, ids=IDS)
def test_one_of_a_batch_stops_and_the_others_go_on(run):
    robot = pendulum()
    v = np.array([[1.0], [5.0], [4.5]])
    motion = pp.simulate(robot, np.zeros((3, 1)), v, duration=0.5, dt=1e-3, limits="stop", **run)
    alone = [pp.simulate(robot, [0.0], x, duration=0.5, dt=1e-3, limits="stop", **run) for x in v]
    assert [event.where for event in motion.events] == [(1,), (2,)]
    for k, one in enumerate(alone):
        np.testing.assert_allclose(
            motion.element(k).q, one.q, atol=1e-7 if "method" in run else 1e-14
        )
    assert np.isnan(motion.q[1, -1]).all() and np.isfinite(motion.q[0]).all()
    assert "energy" in motion.summary()


@pytest.mark.parametrize("run", RUNS, ids=IDS)
def test_functions_fire_where_they_cross_zero(run):
    robot = pendulum()
    events = {
        "upright": lambda t, q, v: 0.5 - q[..., 0],
        "fast": lambda t, q, v: np.abs(v[..., 0]) > 5.0,
    }
    motion = pp.simulate(robot, [0.0], [4.9], duration=1.0, dt=1e-3, events=events, **run)
    first = next(event for event in motion.events if event.name == "upright")
    assert abs(motion.at(first.t).q[0] - 0.5) < 1e-5, "to second order in dt"
    stopped = pp.simulate(
        robot, [0.0], [4.9], duration=1.0, dt=1e-3, events=events, stop=True, **run
    )
    assert stopped.events[-1].stopped and stopped.final.t < 1.0
    named = pp.simulate(
        robot, [0.0], [4.9], duration=1.0, dt=1e-3, events=events, stop="fast", **run
    )
    assert [e.stopped for e in named.events if e.name == "upright"] in (
        [False],
        [False] * 2,
        [False] * 3,
    )


@pytest.mark.parametrize("run", RUNS[:2], ids=IDS[:2])
def test_divergence_stops_and_keeps_what_is_finite(run):
    robot = pendulum()
    stiff = pp.PD(robot, [0.0], kp=0.0, kd=1e7)  # far too stiff for the step
    with pytest.warns(
        pp.MotionWarning,
        match=r"diverged at t = .* s, at joint 'hinge': .* a smaller step \(dt=0.001\), or",
    ):
        motion = pp.simulate(robot, [0.1], tau=stiff, duration=1.0, dt=1e-2, **run)
    (event,) = motion.events
    assert (
        event.name == "diverged" and event.stopped and len(motion) < 101 and event.what == "hinge"
    )
    assert (
        np.isfinite(motion.q).all()
        and np.isfinite(motion.v).all()
        and "diverged: hinge" in motion.summary()
    )
    with pytest.warns(pp.MotionWarning):
        both = pp.simulate(robot, [[0.1], [0.0]], tau=stiff, duration=1.0, dt=1e-2, **run)
    assert [event.where for event in both.events] == [(0,)]
    assert (both.element(1).q == 0.0).all() and len(both.element(1)) == 101


def test_a_controller_that_fails_leaves_the_motion():
    def tau(t, q, v):
        if t > 0.0505:
            raise ZeroDivisionError("no torque today")
        return 0 * v

    with pytest.raises(
        pp.SimulationError, match=r"after t = 0.05 s: ZeroDivisionError: no torque today"
    ) as caught:
        pp.simulate(puma(), np.zeros(6), tau=tau, duration=1.0)
    assert len(caught.value.trajectory) == 51 and caught.value.trajectory.energy is not None
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("method", ["rk4", "DOP853"])
def test_control_c_leaves_the_motion(method):
    def tau(t, q, v):
        if t > 0.0505:
            raise KeyboardInterrupt
        return 0 * v

    with pytest.raises(KeyboardInterrupt) as caught:
        pp.simulate(puma(), np.zeros(6), tau=tau, duration=1.0, method=method)
    assert isinstance(caught.value, Interrupted) and 2 < len(caught.value.trajectory) <= 51


def test_control_c_between_the_pieces_of_a_compiled_rollout(monkeypatch):
    monkeypatch.setattr(
        sys.modules["psiphi.simulation.compiled_rollout.rollout_runner"], "PIECE_SECONDS", 1e-9
    )

    def progress(t, q, v):
        if t > 0.0205:
            raise KeyboardInterrupt

    monkeypatch.setattr("psiphi.simulation.simulate.simulation_problem.REPORT_INTERVAL", 0.0)
    with pytest.raises(KeyboardInterrupt) as caught:
        pp.simulate(puma(), np.zeros((3, 6)), duration=1.0, compiled=True, progress=progress)
    assert caught.value.trajectory.q.shape == (3, 22, 6)


@pytest.mark.parametrize("what", ["tau", "events"])
def test_nobody_changes_the_state(what):
    def meddle(t, q, v):
        q[...] = 0.0
        return 0 * v

    with pytest.raises(ValueError, match="read-only"):
        pp.simulate(puma(), np.ones(6), duration=0.1, **{what: meddle})


@pytest.mark.parametrize("method", ["rk4", "RK45"])
def test_a_controller_that_fails_at_once_says_why(method):
    with pytest.raises(
        pp.SimulationError, match="failed at the first step: ZeroDivisionError: division by zero"
    ) as caught:
        pp.simulate(puma(), np.zeros(6), tau=lambda t, q, v: 1 / 0, duration=1.0, method=method)
    assert (
        isinstance(caught.value.__cause__, ZeroDivisionError) and len(caught.value.trajectory) == 0
    )


@pytest.mark.parametrize("run", RUNS, ids=IDS)
def test_progress_is_reported(run, monkeypatch):
    monkeypatch.setattr("psiphi.simulation.simulate.simulation_problem.REPORT_INTERVAL", 0.0)
    seen = []
    pp.simulate(
        puma(),
        np.zeros(6),
        duration=0.01,
        progress=lambda t, q, v: seen.append((t, q.shape, v.shape)),
        **run,
    )
    assert seen[-1] == (0.01, (6,), (6,)) and seen == sorted(seen)


def test_joints_that_end_at_their_limits():
    """limits="block": positions stay in range, energy only decreases, and a joint leaves its stop
    as soon as it is pulled."""
    robot = pendulum()
    motion = pp.simulate(robot, [0.5], [4.0], duration=2.0, dt=1e-3, limits="block")
    assert motion.q.max() == 1.0 and motion.final.q[0] < 1.0
    hit = int(np.argmax(motion.q[:, 0] == 1.0))
    assert motion.energy[hit] < motion.energy[hit - 1] - 0.1
    assert np.diff(motion.energy[hit:]).max() < 1e-6
    pushed = pp.simulate(robot, [0.5], [4.0], [30.0], duration=0.5, dt=1e-3, limits="block")
    assert pushed.final.q[0] == 1.0 and pushed.final.v[0] == 0.0


def test_an_inelastic_impact_takes_the_least_energy_it_can():
    """The velocity after it is the nearest, in the mass matrix, that does not leave the range."""
    from psiphi.simulation.forces.joint_limit_impact import JointStops
    from psiphi.simulation.plant import Plant

    robot, stops = puma(), JointStops(Plant(puma()))
    lower, upper = (
        np.array([getattr(j, side)[0] for j in robot.joints]) for side in ("lower", "upper")
    )
    if not np.isfinite(upper).all():
        pytest.skip("the arm has no limits")
    q, v = state(robot, 3, speed=2.0)
    q[1], q[2], v[1], v[2] = upper[1] + 0.01, lower[2] - 0.01, 1.0, -1.5
    q1, v1 = stops(q, v)
    assert q1[1] == upper[1] and q1[2] == lower[2] and v1[1] <= 1e-12 and v1[2] >= -1e-12
    impulse = robot.mass_matrix(q1) @ (v1 - v)
    np.testing.assert_allclose(impulse[[0, 3, 4, 5]], 0.0, atol=1e-9)
    assert impulse[1] <= 1e-12 and impulse[2] >= -1e-12


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (dict(limits="bounce"), "limits is 'bounce'"),
        (dict(events={"limit": lambda t, q, v: 1.0}), "name of a built-in event"),
        (dict(events={"mine": 3}), "not a function"),
        (dict(events=lambda t, q, v: np.zeros(3)), "shape"),
        (
            dict(stop="mine"),
            "known events are contact bounces, contact holds, contact lost, contact made, "
            "contact slides, diverged, grasp lost, limit",
        ),
        (dict(limits="block", method="RK45"), "does not work with RK45"),
    ],
)
def test_what_is_refused(options, why):
    with pytest.raises((StateError, pp.SimulationError), match=why):
        pp.simulate(pendulum(), [0.0], duration=0.01, **options)


@pytest.mark.parametrize("run", RUNS, ids=IDS)
def test_limits_are_located_within_the_step(run):
    """The times at which a wheel of constant speed and a falling pendulum reach their limits are
    second order."""
    b = pp.Builder("wheel", gravity=(0, 0, 0))
    b.body("disc", mass=1.0, inertia=np.eye(3))
    b.joint(
        "axle", "revolute", parent="world", child="disc", axis=(0, 0, 1), lower=-0.123, upper=0.456
    )
    motion = pp.simulate(
        b.build(), [[0.0], [0.0]], [[1.0], [-1.0]], duration=1.0, dt=0.05, limits="record", **run
    )
    assert [round(event.t, 9) for event in motion.events] == [0.123, 0.456] and [
        e.where for e in motion.events
    ] == [(1,), (0,)]
    times = []
    for dt in (4e-2, 2e-2, 1e-2, 1e-4):
        fall = pp.simulate(pendulum(), [0.5], [4.0], duration=0.4, dt=dt, limits="stop", **run)
        times.append(fall.events[0].t)
        assert fall.final.t - dt <= fall.events[0].t <= fall.final.t
    assert (np.abs(np.array(times[:3]) - times[3]) < 1.5 * np.array([4e-2, 2e-2, 1e-2]) ** 2).all()
