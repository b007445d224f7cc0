"""What goes wrong in a first motion: starts outside limits, errors in a law, motors of effort 0, a
body at rest."""

import inspect
import warnings

import numpy as np
import pytest

import psiphi as pp

ARM = pp.load("pelican")
PENDULUM = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<origin xyz="0.1 0 0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><joint name="hinge" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="{effort}" velocity="{velocity}"/></joint></robot>"""


@pytest.mark.parametrize("start", [-90.0, 0.786])
def test_a_start_outside_the_limits_is_refused_where_joints_stop(start):
    """Degrees for radians jumped to the limit in one step, without a word."""
    puma = pp.load("puma560")
    q = np.zeros((2, 6))
    q[1, 1] = start
    refused = rf'limits="block": q0 of shoulder is {start:g}, expected -3\.92.*0\.785.*radians'
    for run in (
        lambda: pp.simulate(puma, q, duration=0.002, limits="block", compiled=False),
        lambda: pp.rollout(puma, q, steps=2, limits="block"),
    ):
        with pytest.raises(pp.StateError, match=refused):
            run()
    at_the_limit = puma.upper + 1e-9 * np.isfinite(puma.upper)
    at_the_limit[~np.isfinite(at_the_limit)] = 0.0
    pp.simulate(puma, at_the_limit, duration=0.001, limits="block", compiled=False)


def test_the_error_of_a_law_names_its_line():
    puma = pp.load("puma560")

    def gain(t):
        return 1.0 / (0.002 - t) if t < 0.002 else 1 / 0

    def law(t, q, v):
        return np.full(6, 1e-3 * gain(t))

    line = inspect.getsourcelines(gain)[1] + 1
    with pytest.raises(pp.SimulationError) as caught:
        pp.simulate(puma, np.zeros(6), tau=law, duration=0.01)
    text = str(caught.value)
    assert "ZeroDivisionError" in text and f"see gain, line {line} of" in text
    assert "error.trajectory" in text and "functions of (t, q, v)" not in text
    with pytest.raises(pp.SimulationError, match=r"see <lambda>, line \d+ of .*test_first_mist"):
        pp.simulate(puma, np.zeros(6), tau=lambda t, q, v: 1 / 0, duration=0.01)


def test_motors_of_effort_zero_are_told_when_loaded_and_in_the_summary():
    with pytest.warns(pp.ModelWarning, match=r"effort limit 0 of hinge.*effort=True.*no torque"):
        robot = pp.load(PENDULUM.format(effort=0, velocity=1))
    motion = pp.simulate(robot, [0.0], tau=[5.0], effort=True, duration=0.01, compiled=False)
    assert not motion.tau.any()
    assert "effort limit 0  hinge: the motors give no torque" in motion.summary()
    free = pp.simulate(robot, [0.0], tau=[5.0], duration=0.01, compiled=False)
    assert free.tau.min() == 5.0 and "effort limit" not in free.summary()


def test_the_energy_drift_of_a_body_at_rest_is_zero():
    """Roundings of the potential energy, divided by a kinetic energy of 1e-60 J, were 1e46."""
    b = pp.Builder("stone")
    b.body("stone", mass=3.0, inertia=(1, 1, 1))
    b.joint("slide", "prismatic", "world", "stone", axis=(0, 0, 1))
    robot = b.build()
    t = np.linspace(0.0, 1.0, 5)
    q = 0.7 + 1e-16 * np.arange(5.0)[:, None] * np.array([1.0])
    q[2:] = np.nextafter(0.7, 1.0)
    rest = pp.Trajectory(t, q, np.full((5, 1), 1e-31), system=robot, energy=robot.energy(q, 0 * q))
    assert np.ptp(rest.energy) > 0.0 and rest.drift == 0.0
    moved = pp.Trajectory(t, q + t[:, None], 0 * q, system=robot, energy=robot.energy(q, 0 * q) + t)
    assert moved.drift == np.inf  # a change of energy without motion is none of rounding


RUN = dict(q0=[0.1, 0.2], duration=0.05)


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize(
    "g", [lambda t, q, v: np.nan, lambda t, q, v: np.nan if t > 0.02 else 1.0 - t, "batch"]
)
def test_an_event_that_is_not_a_number_is_refused(g, compiled):
    """NaN has no sign: the event would be lost."""
    run = dict(RUN, compiled=compiled)
    if g == "batch":
        run["q0"] = [[0.1, 0.2], [0.3, 0.2]]
        with pytest.raises(pp.Error, match=r"event 'g' is not a number at t = .* of motion 1"):
            pp.simulate(ARM, events={"g": lambda t, q, v: np.nan if q[0] > 0.2 else 1.0}, **run)
        return
    with pytest.raises(pp.Error, match="event 'g' is not a number at t = "):
        pp.simulate(ARM, events={"g": g}, **run)


@pytest.mark.parametrize("q0", [[0.1, 0.2], [[0.1, 0.2], [0.3, 0.2]]])
def test_an_event_that_only_rises_is_told(q0):
    for rise in (lambda t, q, v: t - 0.02, lambda t, q, v: 1e3 * (t - 0.0213)):
        with pytest.warns(pp.MotionWarning, match=r"event 'late' rose through zero.*return -g"):
            motion = pp.simulate(ARM, q0, duration=0.05, events={"late": rise})
        assert not motion.events
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for quiet in (
            lambda t, q, v: 0.02 - t,  # falls
            lambda t, q, v: t,  # starts at zero: a ball thrown from the floor
            lambda t, q, v: (t - 0.01) * (t - 0.03) * 1e4 * (-1 if t > 1 else 1),  # falls, rises
            lambda t, q, v: t < 0.02,  # a condition that ends
            lambda t, q, v: -1.0,
        ):
            pp.simulate(ARM, q0, duration=0.05, events={"e": quiet})


def test_what_events_and_pushes_return_is_shown():
    for events, words in (
        (lambda t, q, v: None, "returned None, expected a real number"),
        (lambda t, q, v: 1j, r"returned .*1j.*, expected a real number"),
        (lambda t, q, v: q, r"returned float64 of shape \(2,\)"),
        ({3: lambda t, q, v: 1.0}, "event 3 is not a name"),
    ):
        with pytest.raises(pp.Error, match=words):
            pp.simulate(ARM, events=events, **RUN)
    with pytest.raises(pp.Error, match=r"wrenches of f_ext of the time t"):
        pp.simulate(ARM, f_ext={"tool": lambda t, q, v: np.zeros(6)}, **RUN)
    with pytest.raises(pp.Error, match=r"progress are functions of \(t, q, v\)"):
        pp.simulate(ARM, progress=lambda: None, **RUN)


def test_a_law_that_gives_nan_is_named_as_the_cause():
    def law(t, q, v):
        return np.sqrt(0.02 - t) * np.ones(2)

    for q0 in ([0.1, 0.2], [[0.1, 0.2], [0.3, 0.2]]):
        with (
            np.errstate(all="ignore"),
            pytest.warns(pp.MotionWarning, match=r"The law gave NaN at t = 0\.0205 s"),
        ):
            pp.simulate(ARM, q0, tau=law, duration=0.05)
    with pytest.warns(pp.MotionWarning, match=r"^((?!NaN).)*$"):
        pp.simulate(ARM, [0.1, 0.2], tau=lambda t, q, v: 1e4 * v + 1e9, duration=0.05)


def test_errors_of_a_law_that_is_traced_name_its_line():
    def wrong(t, q, v):
        return q * missing  # noqa: F821

    def number(t, q, v):
        return -float(q[0]) * v

    for law, words in (
        (wrong, r"the torque wrong failed: NameError.*see wrong, line \d+ of .*test_first"),
        (number, r"cannot be traced.*see number, line \d+ of .*test_first.*help\(pp\.law\)"),
        (lambda t: 0, r"failed: TypeError.*a law is a function of \(t, q, v\)"),
        (lambda t, q, v: q * np.nan, "computes with NaN"),
        (lambda t, q, v: [np.nan, 0.0], "computes with NaN"),
    ):
        with np.errstate(all="ignore"), pytest.raises(pp.StateError, match=words):
            pp.rollout(ARM, [0.1, 0.2], tau=law, steps=3)
