"""Arguments of simulate: errors name the value, what was expected and a remedy; torques and losses
follow their laws."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error, StateError
from tests.simulation.simulate.motions import juggler, pendulum, puma, state

ZERO = np.zeros(6)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (dict(q0=np.zeros(5)), "q0 has shape"),
        (dict(q0="home"), "q0 is 'home'"),
        (dict(v0=np.zeros((6, 1))), "v0 has shape"),
        (dict(q0=np.full(6, np.nan)), "q0.*nan, expected finite"),
        (dict(v0=[0, 0, np.inf, 0, 0, 0]), r"v0\[2\]"),
        (dict(q0=np.zeros((2, 6)), v0=np.zeros((3, 6))), "do not fit together"),
        (dict(duration=-1.0), "duration is -1.0"),
        (dict(duration=np.nan), "duration is nan"),
        (dict(duration=True), "duration is True"),
        (dict(duration=[1.0]), "duration"),
        (dict(duration=0.0105, dt=1e-3), r"10.5 steps of dt 0.001.*duration=0.01"),
        (dict(dt=0.0), "dt is 0.0"),
        (dict(dt=-1e-3), "dt is -0.001"),
        (dict(dt="fast"), "dt"),
        (dict(every=1.5), "every"),
        (dict(method="rk5"), "method is 'rk5'.*did you mean"),
        (dict(method=4), "method is 4"),
        (dict(tau=np.zeros(5)), "tau has shape"),
        (dict(tau=np.zeros((7, 6))), r"expected \(nv,\)"),
        (dict(tau=np.full(6, np.nan)), "not finite"),
        (dict(tau=[1, None]), "tau"),
        (
            dict(q0=np.zeros((10, 6)), tau=np.zeros((10, 6))),
            "one row a step or one a batch element",
        ),
        (dict(damping=-1.0), "damping is -1.0"),
        (dict(friction=[1, 2]), "friction"),
        (dict(friction_speed=0.0), "friction_speed"),
        (dict(effort=-3.0), "effort"),
        (dict(method="RK45", rtol=-1.0), "rtol"),
        (dict(method="RK45", atol="x"), "atol"),
        (dict(system="puma"), "has no nq"),
        (dict(system=None), "has no nq"),
    ],
)
def test_what_is_refused(arguments, why):
    given = dict(system=puma(), q0=ZERO, duration=0.01) | arguments
    with pytest.raises((StateError, ValueError), match=why) as caught:
        pp.simulate(given.pop("system"), given.pop("q0"), **given)
    if isinstance(caught.value, Error):
        assert caught.value.remedy


@pytest.mark.parametrize("answer", [np.zeros(5), np.zeros((2, 6)), "torque", None])
def test_a_torque_function_that_answers_nonsense(answer):
    with pytest.raises(StateError, match=r"tau\(t, q, v\)"):
        pp.simulate(puma(), ZERO, tau=lambda t, q, v: answer, duration=0.01)


def test_a_quaternion_that_is_none():
    q, _ = state(juggler(), 0)
    q[:4] *= 2.0
    with pytest.raises(StateError, match="quaternion of joint 'ball joint' has norm 2"):
        pp.simulate(juggler(), q, duration=0.01)


def test_inputs_are_not_changed_and_not_kept():
    q, v = state(puma(), 1)
    before = q.copy(), v.copy()
    motion = pp.simulate(puma(), q, v, duration=0.01)
    assert (q == before[0]).all() and (v == before[1]).all()
    q[:] = 7.0
    assert (motion.q[0] == before[0]).all()


def test_lists_and_whole_numbers_are_read():
    a = pp.simulate(puma(), [0] * 6, [0] * 6, [1] * 6, duration=0.01)
    b = pp.simulate(puma(), ZERO, tau=np.ones(6), duration=0.01)
    assert (a.q == b.q).all()


def test_torques_by_step_and_by_element():
    robot = pendulum()
    rows = np.array([[1.0], [2.0], [3.0]])
    one = pp.simulate(robot, [0.0], tau=rows, duration=0.03, dt=0.01)
    np.testing.assert_array_equal(one.tau[:, 0], [1.0, 2.0, 3.0, 3.0])
    each = pp.simulate(robot, [[0.0], [0.1]], tau=[[1.0], [2.0]], duration=0.03, dt=0.01)
    np.testing.assert_array_equal(each.tau[:, :, 0], [[1.0] * 4, [2.0] * 4])
    same = pp.simulate(robot, np.zeros((3, 1)), tau=rows[None], duration=0.03, dt=0.01)
    assert (same.tau[1, :3] == rows).all()
    fixed = pp.simulate(robot, np.zeros((3, 1)), tau=rows[:, None], duration=0.03, dt=0.01)
    assert (fixed.tau[:, 0] == rows).all() and (fixed.tau[:, 3] == rows).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_the_models_losses_act_when_asked(compiled):
    """a = M^-1 (tau - g - damping v - friction v / sqrt(v^2 + speed^2)); the model has 0.7, 0.4."""
    robot, M = pendulum(), pendulum().mass_matrix(np.zeros(1))[0, 0]
    start = dict(q0=[0.3], v0=[2.0], duration=0.1, compiled=compiled)
    for options, loss in (
        ({}, lambda v: 0 * v),
        (dict(damping=True), lambda v: 0.7 * v),
        (dict(friction=True), lambda v: 0.4 * v / np.hypot(v, 0.01)),
        (
            dict(damping=2.0, friction=[0.1], friction_speed=1.0),
            lambda v: 2.0 * v + 0.1 * v / np.hypot(v, 1.0),
        ),
    ):
        motion = pp.simulate(robot, **start, **options)
        np.testing.assert_allclose(
            M * motion.a, -robot.gravity(motion.q) - loss(motion.v), rtol=1e-9
        )
        assert not motion.tau.any(), "tau is what the motors do"


def test_losses_take_what_they_should():
    """dE/dt = -damping v^2."""
    motion = pp.simulate(pendulum(), [0.3], [2.0], duration=0.5, damping=True)
    power = 0.7 * motion.v[:, 0] ** 2
    lost = np.concatenate([[0.0], np.cumsum(0.5e-3 * (power[1:] + power[:-1]))])
    np.testing.assert_allclose(motion.energy[0] - motion.energy, lost, atol=1e-5)


def test_effort_limits_act_when_asked():
    robot = pendulum()
    free = pp.simulate(robot, [0.0], tau=[10.0], duration=0.01)
    assert (free.tau == 10.0).all()
    for tau in ([10.0], lambda t, q, v: 10.0 + 0 * v):
        cut = pp.simulate(robot, [0.0], tau=tau, duration=0.01, effort=True)
        assert (cut.tau == 3.0).all()
        assert (pp.simulate(robot, [0.0], tau=tau, duration=0.01, effort=2.0).tau == 2.0).all()


def test_a_model_is_a_system_and_a_robot_without_joints_is_one_too():
    from psiphi.model.builder.builder import Builder

    b = Builder("stone")
    b.body("stone", mass=1.0, inertia=np.eye(3))
    b.joint("fall", "free", parent="world", child="stone")
    motion = pp.simulate(b.build(), [0, 0, 0, 0, 0, 0, 1], duration=1.0)
    np.testing.assert_allclose(motion.final.q[:3], [0, 0, -0.5 * 9.81], rtol=1e-12)


def test_large_robots_run_in_python():
    chain = pp.robots.chain(80)
    motion = pp.simulate(chain, chain.neutral(), np.full(80, 0.1), duration=0.01)
    assert len(motion) == 11 and motion.drift < 1e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(rtol=1e-6), "rtol is given, but rk4 takes fixed steps of dt"),
        (dict(method="euler", atol=1e-6), "atol is given, but euler takes fixed steps"),
        (dict(projection=True), "projection is given, but puma560 has no constraints"),
        (dict(friction_speed=0.1), "friction_speed is given, but there is no friction"),
        (dict(progress="yes"), "progress is 'yes', expected True or a function"),
    ],
)
def test_options_that_would_mean_nothing(options, words):
    with pytest.raises(pp.StateError, match=words):
        pp.simulate(puma(), np.zeros(6), duration=0.01, **options)


@pytest.mark.parametrize(
    "run", [dict(compiled=True), dict(compiled=False), dict(method="DOP853")], ids=str
)
def test_a_motion_that_starts_outside_its_range(run):
    """Panda at 50 rad: an event at once, and a stop at once."""
    robot = pp.load("panda")
    q = np.full((2, robot.nq), 50.0)
    q[1] = np.mean(
        [
            np.concatenate([getattr(joint, side) for joint in robot.joints])
            for side in ("lower", "upper")
        ],
        axis=0,
    )
    stopped = pp.simulate(robot, q, duration=0.01, limits="stop", **run)
    assert {event.where for event in stopped.events if event.t == 0.0} == {(0,)} and stopped.events[
        0
    ].stopped
    assert (
        len(stopped.events) == robot.nq
        and len(stopped.element(0)) == 1
        and len(stopped.element(1)) == 11
    )
    alone = pp.simulate(robot, q[0], duration=0.01, limits="stop", **run)
    assert len(alone) == 1 and alone.events[0].t == 0.0 and alone.events[0].value == 50.0
    noted = pp.simulate(robot, q[0], duration=0.01, limits="record", **run)
    assert len(noted) == 11 and [event.t for event in noted.events[: robot.nq]] == [0.0] * robot.nq


def test_a_run_that_will_not_fit_says_so_before_it_starts(monkeypatch):
    from psiphi.simulation import start_checks as start

    monkeypatch.setattr(start, "free_memory", lambda: 1e6)
    q = np.zeros((100, 6))
    with pytest.raises(
        pp.StateError,
        match=r"1002 samples of 100 motions need 27.3 MB of memory, and 1 MB",
    ) as caught:
        pp.simulate(puma(), q)
    every = int(caught.value.remedy.split("every=")[1].split(",")[0])
    pp.simulate(puma(), q, every=every)
    with pytest.raises(pp.StateError, match=r"need 9.62 MB"):
        pp.rollout(puma(), q)
    out = np.empty((100, 1001, 6)), np.empty((100, 1001, 6))
    assert pp.rollout(puma(), q, out=out)[0] is out[0]


def test_free_memory_is_known():
    from psiphi._util.free_memory import free_memory

    assert 1e6 < free_memory() < 1e16


def test_a_limited_process_says_so_too():
    """`ulimit -v`: what is left of it is what is free."""
    import resource
    import subprocess
    import sys

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    code = (
        "import numpy as np, psiphi as pp; "
        "pp.simulate(pp.robots.puma560(), np.zeros((4096, 6)), duration=10.0)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=limited,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "need 11.1 GB of memory" in run.stderr and "every=" in run.stderr


def test_progress(capsys):
    """True prints a line for each tenth to a stream; a function is called with (t, q, v)."""
    pp.simulate(puma(), np.zeros(6), duration=1.0, compiled=False, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 10 and "100%" in lines[-1] and "\r" not in lines[0]
    pp.simulate(puma(), np.zeros(6), duration=0.1, progress=False)
    assert not capsys.readouterr().err
    seen = []
    pp.simulate(
        puma(),
        np.zeros(6),
        duration=0.1,
        progress=lambda t, q, v: seen.append((t, q.shape, v.shape)),
    )
    assert seen[-1] == (0.1, (6,), (6,))


def test_progress_in_a_notebook(monkeypatch):
    """A kernel's stderr is no terminal, and obeys a carriage return."""
    import io
    import sys
    from types import SimpleNamespace

    from psiphi.simulation.simulate.progress_bar import ProgressBar

    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    )
    stream = io.StringIO()
    with ProgressBar(1.0, stream) as bar:
        bar(0.5, np.zeros(6), np.ones(6))
    assert stream.getvalue().startswith("\r[########........]  50%") and stream.getvalue().endswith(
        " \r"
    )


def calls_of_psiphi(run: Callable[[], object]) -> int:
    """How many of psiphi's Python functions the second call of `run` calls."""
    package, count = str(Path(pp.__file__).parent), 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(package)

    run()
    sys.setprofile(trace)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_one_step_repeats_no_work():
    """Calls of Python functions: their number is exact, while times vary. 250 and 586 when options
    were read again and again."""
    q, tau = puma().random(seed=0), np.ones(6)
    assert calls_of_psiphi(lambda: pp.rollout(puma(), q, tau=tau, steps=1)) <= 225
    assert calls_of_psiphi(lambda: pp.simulate(puma(), q, tau=tau, duration=1e-3)) <= 500


@pytest.mark.parametrize("compiled", [False, True])
def test_progress_gets_the_whole_batch(compiled):
    """One call for all motions: progress has no result that a motion could depend on."""
    seen = []
    pp.simulate(
        puma(),
        np.zeros((3, 6)),
        duration=0.01,
        compiled=compiled,
        progress=lambda t, q, v: seen.append((t, q.shape, v.shape)),
    )
    assert seen[-1] == (0.01, (3, 6), (3, 6))
