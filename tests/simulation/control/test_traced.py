"""Traces of user-defined laws: compiled, they give the same numbers, or an error says why not."""

import math

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.control import law_trace
from psiphi.simulation.control.law_trace import TracedLaw

ROBOTS = {
    "puma560": pp.robots.puma560,
    "every kind": lambda: pp.robots.random_tree(
        8, 5, ("revolute", "spherical", "prismatic", "planar", "universal"), 0.4
    ),
}


def spring(robot):
    return lambda t, q, v: -3.0 * v - 2.0 * np.sin(v) + 0.5


def pushed(robot):
    return lambda t, q, v: robot.gravity(q) - 4.0 * v + np.sin(5.0 * t) * np.arange(robot.nv)


def mixed(robot):
    pd = pp.PD(robot, robot.neutral(), 20.0, 3.0)
    return lambda t, q, v: (
        pd(t, q, v) + robot.bias(q, v) / 2 + robot.mass_product(q, np.cos(v)) * (1 + t)
    )


def operational(robot):
    frame = list(robot.frames)[-1]

    def law(t, q, v):
        J, V = robot.jacobian(q, frame), robot.frame_velocity(q, v, frame)
        return -2.0 * J.T @ V - v / np.sqrt(1.0 + v @ v)

    return law


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("law", [spring, pushed, mixed, operational])
def test_compiled_and_asked_in_python(name, law):
    robot = ROBOTS[name]()
    tau, rng = law(robot), np.random.default_rng(2)
    q, v = robot.random(rng, 3), 0.3 * rng.standard_normal((3, robot.nv))
    for method in ("euler", "rk4"):
        fast = pp.simulate(robot, q[0], v[0], tau, duration=0.02, method=method, compiled=True)
        slow = pp.simulate(robot, q[0], v[0], tau, duration=0.02, method=method, compiled=False)
        for field in ("q", "v", "tau"):
            got, want = getattr(fast, field), getattr(slow, field)
            assert np.abs(got - want).max() <= 1e-9 * (1 + np.abs(want).max()), (method, field)
    Q, _ = pp.rollout(robot, q, v, tau, steps=20)
    alone = pp.simulate(robot, q[2], v[2], tau, duration=0.02, compiled=False)
    assert np.abs(Q[2] - alone.q).max() <= 1e-9


def test_other_numbers_are_another_kernel():
    """Two functions of one name: the tape is part of the kernel's name."""
    robot = pp.robots.puma560()
    ends = [
        pp.rollout(robot, robot.neutral(), None, lambda t, q, v, k=k: -k * v, steps=30)[1][-1]
        for k in (1.0, 30.0)
    ]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


class Remembers:
    """An integrator: the result depends on previous calls."""

    def __init__(self):
        self.total = 0.0

    def __call__(self, t, q, v):
        self.total = self.total + q
        return -self.total


class Counts:
    """The result depends on the number of calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t, q, v):
        self.calls += 1
        return -v * self.calls


def branching(t, q, v):
    return -v if q[0] > 0.0 else v


@pytest.mark.parametrize(
    ("tau", "why"),
    [
        (branching, "a branch depends on a number"),
        (lambda t, q, v: np.full(6, max(q[0], 0.0)), "a branch depends on a number"),
        (lambda t, q, v: np.maximum(np.array([*q]), 0.0), "a branch depends on a number"),
        (lambda t, q, v: np.where(q, v, -v), "np.where needs a comparison"),
        (lambda t, q, v: np.floor(q), "cannot be traced"),
        (lambda t, q, v: np.where(v > 0, np.sqrt(v), 0.0), "differ"),
        (lambda t, q, v: np.linalg.solve(np.eye(6), q), "cannot be traced"),
        (lambda t, q, v: np.full(6, math.sin(t)), "cannot be traced"),
        (lambda t, q, v: np.zeros(6) if t == 0 else -v, "== compares a number"),
        (lambda t, q, v: np.ones(6) * (t == 0.01), "== compares a number"),
        (lambda t, q, v: -v * (q != 0.5), "== compares a number"),
        (lambda t, q, v: -v if 0.25 in q else v, "== compares a number"),
        (lambda t, q, v: -v * {0.013: 5.0}.get(t, 0.0), "is hashed"),
        (lambda t, q, v: -v * (t in {0.013}), "is hashed"),
        (lambda t, q, v: np.zeros(6) if not v.any() else -v, "branch|cannot be traced|differ"),
        (lambda t, q, v: np.zeros((2, 6)), "shape"),
        (lambda t, q, v: None, "shape|numbers"),
        (Remembers(), "internal state"),
        (Counts(), "internal state"),
    ],
)
def test_what_leaves_no_tape_says_why(tau, why):
    robot = pp.robots.puma560()
    with pytest.raises(pp.StateError, match=why):
        pp.rollout(robot, robot.neutral(), None, tau, steps=2)
    with pytest.raises(pp.StateError, match=why):
        pp.simulate(robot, robot.neutral(), tau=tau, duration=0.002, compiled=True)


def test_a_law_that_means_something_else_for_a_batch():
    """v[0] is the first coordinate, also in a batch."""
    robot = pp.robots.puma560()
    q, rng = robot.neutral(), np.random.default_rng(0)
    first, careful = lambda t, q, v: -v[0] * np.ones(6), lambda t, q, v: -v[..., :1] * np.ones(6)

    def alone(t, q, v):
        return -v[0] * np.arange(7)[1:] + (
            v @ np.ones((6, 6)) if v.ndim == 1 else np.zeros((2, 3, 4))
        )

    v = rng.standard_normal((3, 6))
    assert pp.rollout(robot, q, v[0], first, steps=3)[0].shape == (4, 6)
    for k, both in enumerate(pp.rollout(robot, q, v, first, steps=3)[0]):
        assert np.abs(both - pp.rollout(robot, q, v[k], first, steps=3)[0]).max() < 1e-12
    kernel, python = (
        pp.simulate(robot, q, v, first, duration=0.003, compiled=way) for way in (True, False)
    )
    assert np.abs(kernel.q - python.q).max() < 1e-12
    together = pp.rollout(robot, q, v, careful, steps=5)[0]
    slow = pp.simulate(robot, q, v, careful, duration=0.005, compiled=False)
    assert np.abs(together - slow.q).max() < 1e-12
    one = pp.rollout(robot, q, v[1], alone, steps=5)[0]
    assert np.abs(pp.rollout(robot, q, v, alone, steps=5)[0][1] - one).max() < 1e-12


def test_powers_lists_and_absolute_values():
    robot = pp.robots.puma560()
    law = TracedLaw(
        robot, lambda t, q, v: list(-2.0 * v**3 + abs(q) ** 0.5 / (1 + t**2) ** 1.5 + 3**-1 * v**-2)
    )
    q, v = -np.linspace(0.1, 1, 6), np.linspace(-1.0, 1.0, 6)
    assert np.allclose(law(0.5, q, v), -2.0 * v**3 + np.abs(q) ** 0.5 / 1.25**1.5 + v**-2.0 / 3)
    assert np.allclose(law(0.5, np.stack([q, q]), np.stack([v, v])), law(0.5, q, v))


@pytest.mark.parametrize(
    "tau", [lambda t, q, v: [0.5, -0.1], lambda t, q, v: 0.0, lambda t, q, v: [np.sin(t), 0.0]]
)
def test_laws_that_do_not_look_at_the_state(tau):
    """One torque for all motions and samples."""
    robot = pp.load("pelican")
    for q in (np.zeros(2), np.zeros((3, 2))):
        fast, slow = (
            pp.simulate(robot, q, tau=tau, duration=0.01, compiled=way) for way in (True, False)
        )
        assert fast.tau.shape == (*q.shape[:-1], 11, 2) and np.abs(fast.q - slow.q).max() < 1e-12
        assert np.array_equal(fast.tau, slow.tau)


def test_torques_of_the_motors_alone():
    """A floating base has no motor: its six zeros may be left out."""
    robot = pp.load("free_flyer")
    motors = robot.nv - 6
    q, v = robot.neutral(), np.zeros(robot.nv)
    tau = lambda t, q, v: -v[6:] + 0.1  # noqa: E731
    fast, slow = (
        pp.simulate(robot, q, v, tau, duration=0.02, compiled=way) for way in (True, False)
    )
    assert (
        motors > 0
        and np.abs(fast.q - slow.q).max() < 1e-10
        and np.abs(fast.tau - slow.tau).max() < 1e-10
    )


def test_a_motion_says_why_its_steps_ran_in_python():
    robot = pp.load("pelican")

    def switching(t, q, v):
        return -q if q[0] > 0.0 else q

    motion = pp.simulate(robot, np.ones(2), tau=switching, duration=0.01)
    assert "in Python: the torque is switching, a Python function; mark it" in motion.summary()
    for other in (
        {"tau": switching, "compiled": False},
        {"tau": pp.GravityCompensation(robot)},
        {},
    ):  # as asked; or no matter
        assert "in Python" not in pp.simulate(robot, np.ones(2), duration=0.01, **other).info


def assembled(t, q, v):
    tau = -2.0 * q
    tau += np.maximum(v, 0.0)
    tau[0] -= np.sign(v[1]) * q[0]
    return tau


def decisions(robot):
    """Laws with maxima, selections and elementary functions, as newcomers write them."""
    pd = pp.PD(robot, np.zeros(2), 20.0, 3.0)
    return {
        "assembled": assembled,
        "maxima": lambda t, q, v: np.maximum(q, v) - np.minimum(q, 0.3) - v * np.max(np.abs(q)),
        "clip": lambda t, q, v: np.clip(-5 * q - v, -1, 1) + (3 * v).clip(-0.5, None),
        "where": lambda t, q, v: np.where((q > 0) & (v < 0.5) | ~(q <= -1), -v, 2 * q),
        "masks": lambda t, q, v: -np.sign(v) * 0.3 * (np.abs(v) >= 0.2) * ((q > 0) * (v > 0)),
        "time": lambda t, q, v: np.where(t < 0.1, -v, 1.0) * np.exp(-3 * t),
        "entries": lambda t, q, v: [np.clip(3 * q[0], -1, 1) * np.tanh(v[1] / 0.1), max(0.0, 1.0)],
        "angles": lambda t, q, v: np.array([np.arctan2(q[1], v[0]), np.arctan(9 * v[1])]),
        "arcs": lambda t, q, v: np.arcsin(0.3 * np.sin(q)) + np.arccos(0.3 * np.cos(v)),
        "powers": lambda t, q, v: np.exp(q) + np.sinh(v) - np.cosh(q) + np.hypot(q, v),
        "robot": lambda t, q, v: np.clip(robot.gravity(q), -1, 1) + np.minimum(pd(t, q, v), 2.0),
        "any": lambda t, q, v: np.where((q > 0.5).any(), np.tan(v), -v),
    }


@pytest.mark.parametrize("name", decisions(pp.load("pelican")))
def test_laws_that_decide_are_those_of_numpy(name):
    """Comparisons and selections without branches; elementary functions to some roundings."""
    robot = pp.load("pelican")
    function = decisions(robot)[name]
    law, rng = TracedLaw(robot, function), np.random.default_rng(1)
    for size in (1e-3, 1.0, 3.0):
        for _ in range(10):
            t, q, v = rng.random(), *(size * rng.standard_normal((2, 2)))
            want = np.asarray(function(t, q, v), dtype=float)
            np.testing.assert_allclose(law(t, q, v), want, rtol=1e-13, atol=1e-14)


def test_a_law_that_decides_compiles_with_its_derivative():
    robot = pp.load("pelican")

    def law(t, q, v):
        return np.clip(-5.0 * q, -1.0, 1.0) - 0.1 * np.tanh(v / 0.05)

    runs = [
        pp.simulate(robot, [0.3, -0.1], tau=law, duration=0.05, compiled=way)
        for way in (True, False)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    start = np.array([0.3, -0.1])
    slope = pp.rollout(robot, start, tau=law, steps=20).vjp(np.eye(21)[20][:, None] * [1.0, 0.0])
    ends = [
        pp.rollout(robot, start + h, tau=law, steps=20)[0][-1, 0] for h in ([1e-6, 0], [-1e-6, 0])
    ]
    assert abs((ends[0] - ends[1]) / 2e-6 - slope["q"][0]) < 1e-7


def test_a_law_is_compared_once_and_traced_anew(monkeypatch):
    """Comparing a law with its trace took most of the time of a short rollout. Gains that changed
    since are those of the next rollout."""
    robot, compared = pp.load("pelican"), []
    check = law_trace._check_trace
    monkeypatch.setattr(
        law_trace, "_check_trace", lambda *args: (compared.append(args), check(*args))
    )
    gains = {"kp": 3.0}

    def law(t, q, v):
        return -gains["kp"] * q - 0.25 * v + robot.gravity(q)

    def end():
        return pp.rollout(robot, [0.3, -0.2], tau=law, steps=20)[0][-1]

    first = end()
    np.testing.assert_array_equal(end(), first)
    assert len(compared) == 1
    gains["kp"] = 40.0
    slow = pp.simulate(robot, [0.3, -0.2], tau=law, duration=0.02, compiled=False)
    np.testing.assert_allclose(end(), slow.final.q, atol=1e-12)
    assert abs(slow.final.q - first).max() > 1e-4 and len(compared) == 2
    for _ in range(2):  # a law that is refused is refused again
        with pytest.raises(pp.StateError, match="internal state"):
            pp.rollout(robot, [0.3, -0.2], tau=Counts(), steps=2)
