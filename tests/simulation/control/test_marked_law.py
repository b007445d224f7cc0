"""`pp.law` marks a law as a pure function: it compiles, or an error says why not.

Other laws step in Python.
"""

import importlib
import inspect
import math
import pickle
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import psiphi as pp

DOOR = importlib.import_module("psiphi.simulation.simulate.simulate")
ROBOT = pp.load("pelican")
START, STEPS = np.array([0.3, -0.4]), 620
BATCH = np.stack([START, START + 0.1, -START])
GAINS = {"kp": 3.0, "kd": np.array([0.2, 0.1])}


def motion(tau, compiled=None, q=START, steps=STEPS, **options) -> Any:
    options = {"method": "euler"} | options
    return pp.simulate(ROBOT, q, tau=tau, duration=steps * 1e-3, compiled=compiled, **options)


@pytest.fixture
def no_python(monkeypatch):
    """Steps in Python are refused."""

    def refuse(task):
        raise AssertionError("steps in Python")

    monkeypatch.setattr(DOOR, "FixedStepRun", refuse)


def agree(fast, slow):
    for field in ("q", "v", "tau"):
        assert np.abs(getattr(fast, field) - getattr(slow, field)).max() < 1e-10, field


# laws that are pure functions


@pp.law
def spring(t, q, v):
    """A spring and a damper."""
    return -GAINS["kp"] * np.sin(q) - GAINS["kd"] * v + np.cos(t * math.pi)


@pp.law()
def by_statements(t, q, v):
    error, rate = q - START, -v
    tau = -2.0 * error
    tau += rate
    tau[..., 0] = tau[..., 0] * 0.5
    for i, gain in enumerate((1.0, 2.0)):
        tau[..., 1] -= 0.1 * gain * q[..., i]
    pairs = zip((1.0, 2.0), (q[..., 0], v[..., 1]), strict=True)
    return tau - np.stack([k * x for k, x in pairs], axis=-1)


@pp.law
def by_robot(t, q, v):
    inertial = (ROBOT.mass_matrix(q) @ v[..., None])[..., 0]
    return ROBOT.gravity(q) - 0.1 * v + HOLD(t, q, v) / 3.0 - 0.1 * inertial


@pp.law
def by_a_force_at_the_tool(t, q, v):
    J, x = ROBOT.jacobian(q, "tool"), ROBOT.frame_pose(q, "tool")[..., :3, 3]
    f = np.concatenate([0.0 * x, 0.3 - x], axis=-1)
    return (np.swapaxes(J, -1, -2) @ f[..., None])[..., 0] - v


HOLD = pp.PD(ROBOT, np.zeros(2), 3.0, 1.0)


class Mine(pp.PD):
    """A controller that overrides the call."""

    def __call__(self, t, q, v):
        return super().__call__(t, q, v) - 0.1 * v


@dataclass(frozen=True)
class Damper:
    """A callable object, and methods that are marked in the class."""

    kd: float

    def __call__(self, t, q, v):
        return -self.kd * v

    @pp.law
    def cubic(self, t, q, v):
        return -self.kd * v**3 - v

    @pp.law
    @staticmethod
    def plain(t, q, v):
        return -v


class Marked(Damper):
    @pp.law
    def __call__(self, t, q, v):
        return -self.kd * v - q


def scaled(k, t, q, v, d=0.0):
    return -k * q - d * v


PURE = {
    "function": spring,
    "statements": by_statements,
    "robot": by_robot,
    "tool": by_a_force_at_the_tool,
    "lambda": pp.law(lambda t, q, v: -q - v),
    "partial": pp.law(partial(scaled, 2.0, d=0.3)),
    "partial of a marked function": partial(pp.law(scaled), 2.0),
    "bound method": pp.law(Damper(0.4).__call__),
    "object": pp.law(Damper(0.4)),
    "marked method": Damper(0.4).cubic,
    "marked static method": Damper.plain,
    "static method of an object": Damper(0.4).plain,
    "marked __call__": Marked(0.4),
    "controller": pp.law(Mine(ROBOT, np.zeros(2), 3.0, 1.0)),
}


@pytest.mark.parametrize("name", PURE)
def test_a_marked_law_is_the_same_law_compiled(name, monkeypatch):
    law = PURE[name]
    slow = motion(law, compiled=False)
    monkeypatch.setattr(DOOR, "FixedStepRun", None)
    fast = motion(law)
    assert "in Python" not in fast.info and len(fast) == len(slow)
    agree(fast, slow)
    together = motion(law, q=BATCH)
    assert np.abs(together.q[0] - slow.q).max() < 1e-10
    rolled = pp.rollout(ROBOT, BATCH, tau=law, steps=STEPS, method="euler")
    assert np.array_equal(rolled.q, together.q)


def test_a_marked_law_of_a_closed_chain():
    loop = pp.connect(ROBOT, [pp.Loop("distance", "tool", "world", length=0.3)])
    q = loop.assemble([0.5, 1.0])
    law = pp.law(lambda t, q, v: 0.5 * ROBOT.gravity(q) - v)
    run = partial(pp.simulate, loop, q, tau=law, dt=0.01, method="euler")
    assert np.abs(run(duration=0.2).q - run(duration=0.2, compiled=False).q).max() < 1e-10


def test_motions_of_few_steps_run_in_python(monkeypatch):
    """Where compiling takes longer, as with psiphi's controllers."""
    monkeypatch.setattr(DOOR.compiled_steps, "CompiledRun", None)
    for law in (spring, HOLD):
        assert "in Python" not in motion(law, steps=5).info


def test_gradients_of_motions_under_a_marked_law():
    run = lambda q: pp.rollout(ROBOT, q, np.zeros(2), by_robot, steps=5, dt=0.01)  # noqa: E731
    w, h = np.random.default_rng(0).standard_normal((6, 2)), 1e-6
    want = np.sum(w * (run(START + h).q - run(START - h).q)) / (2.0 * h)
    assert run(START).vjp(w)["q"].sum() == pytest.approx(want, rel=1e-6)
    rolled = pp.rollout(ROBOT, START, tau=spring, steps=STEPS, method="euler")
    simulated, w = motion(spring), np.ones_like(rolled.q)
    for name, slope in rolled.vjp(w).items():
        np.testing.assert_allclose(simulated.vjp(w)[name], slope, rtol=1e-9)


def test_a_law_reads_the_arrays_of_each_call(no_python):
    """A change of a gain acts on the next motion, and does not act on the last one."""
    k = np.array([2.0, 1.0])
    law = pp.law(lambda t, q, v: -k * q - v)
    first = motion(law)
    before = first.tau.copy()
    k *= 10.0
    second = motion(law)
    assert np.abs(second.q - first.q).max() > 1e-3 and np.array_equal(first.tau, before)


# what the mark keeps


def test_a_marked_function_keeps_its_name_docstring_and_signature():
    assert spring.__name__ == "spring" and spring.__doc__ == "A spring and a damper."
    assert list(inspect.signature(spring).parameters) == ["t", "q", "v"]
    assert list(inspect.signature(Damper(1.0).cubic).parameters) == ["t", "q", "v"]
    assert np.array_equal(spring(0.5, q=START, v=BATCH), spring.__wrapped__(0.5, START, BATCH))
    assert pp.law(spring) is spring and pp.law(HOLD) is HOLD, "controllers compile without the mark"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("function", "<pp.law spring(t, q, v)>"),
        ("lambda", "<pp.law <lambda>(t, q, v)>"),
        ("partial", "<pp.law scaled(t, q, v, d=0.3)>"),
        ("object", "<pp.law Damper(t, q, v)>"),
        ("marked method", "<pp.law cubic(t, q, v)>"),
    ],
)
def test_it_shows_what_is_marked(name, text):
    assert repr(PURE[name]).replace("*, ", "") == text


@pytest.mark.parametrize("name", sorted(PURE.keys() - {"lambda", "controller"}))
def test_a_marked_law_pickles_where_the_law_does(name):
    back = pickle.loads(pickle.dumps(PURE[name]))
    assert np.array_equal(back(0.5, START, START), PURE[name](0.5, START, START))
    assert "in Python" not in motion(back).info
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(PURE["lambda"])


@pytest.mark.parametrize("given", [3.0, "hold", START, Damper])
def test_only_functions_are_marked(given):
    with pytest.raises(pp.StateError, match=r"pp\.law of"):
        pp.law(given)


# marked laws that do not compile


def counting():
    calls = []

    def count(t, q, v):
        calls.append(t)
        return -v - 1e-3 * len(calls)

    return count


def by_number(t, q, v):
    return -v if q[0] > 0.0 else -2.0 * v


REFUSED = {
    "branches": (lambda: by_number, "by_number cannot be traced: TypeError: a branch depends"),
    "other functions": (lambda: lambda t, q, v: np.floor(-v), "cannot be traced"),
    "mathematics of numbers": (lambda: lambda t, q, v: np.full(2, math.sin(t)), "cannot be traced"),
    "a table": (lambda: lambda t, q, v: -{0.0: 2.0}.get(t, 1.0) * v, "is hashed"),
    "a memory": (counting, "count has another trace each time: it has internal state"),
    "random numbers": (lambda: lambda t, q, v: -v * np.random.random(), "another trace"),
    "a kind of number": (lambda: lambda t, q, v: -v if type(t) is float else v, "its trace differ"),
    "an error": (lambda: lambda t, q, v: ROBOT.no_such * v, "failed: AttributeError.*no_such"),
    "another shape": (lambda: lambda t, q, v: np.zeros(3), r"returns shape \(3,\)"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("steps", [2, STEPS])
def test_a_marked_law_that_cannot_be_traced_is_an_error(name, steps):
    """The error is that of compiled=True, for short motions too; compiled=False accepts the law."""
    make, why = REFUSED[name]
    for options in ({}, {"compiled": True}):
        with pytest.raises(pp.StateError, match=why) as caught:
            motion(pp.law(make()), steps=steps, **options)
        remedy = "see <lambda>, line" if name == "an error" else "compiled=False"
        assert remedy in caught.value.remedy and str(caught.value).count("Remedy") == 1
    if name not in ("an error", "another shape"):
        assert len(motion(pp.law(make()), compiled=False, steps=2)) == 3


def test_an_error_of_a_robot_has_one_remedy():
    with pytest.raises(pp.StateError, match="no_frame") as caught:
        motion(pp.law(lambda t, q, v: ROBOT.jacobian(q, "no_frame")[0]))
    assert str(caught.value).count("Remedy") == 1


def test_several_motions_at_once():
    """q[0] is a coordinate, also in a batch."""
    first = pp.law(lambda t, q, v: -q[0] * np.ones(2) - v)
    assert np.abs(motion(first).q - motion(first, compiled=False).q).max() < 1e-10
    together = motion(first, q=BATCH)
    assert np.abs(together.q[1] - motion(first, q=BATCH[1]).q).max() < 1e-12
    single = pp.law(lambda t, q, v: -np.diag([1.0, 2.0]) @ q)
    together = motion(single, q=BATCH, steps=3)
    assert np.abs(together.q[1] - motion(single, q=BATCH[1], steps=3).q).max() < 1e-12
    slow = motion(single, q=BATCH, compiled=False, steps=3)
    assert np.abs(together.q - slow.q).max() < 1e-12


def test_steps_that_no_kernel_takes_run_in_python():
    """The law is not traced there."""
    law = pp.law(counting())
    assert "in Python" not in motion(law, method="RK45", steps=20).info
    robot = ROBOT.diagonalised
    moved = pp.simulate(robot, START, tau=pp.law(counting()), duration=0.01)
    assert moved.info["in Python"] == "only robots and closed chains have compiled rollouts"


# laws that are not marked


@pytest.mark.parametrize("make", [counting, lambda: by_number, lambda: spring.__wrapped__])
def test_other_laws_step_in_python(make, monkeypatch):
    """They are called exactly as with compiled=False; the summary says how to compile them."""
    plain, told = motion(make()), motion(make(), compiled=False)
    assert np.array_equal(plain.q, told.q) and np.array_equal(plain.tau, told.tau)
    mark = "mark it with @pp.law if it is a pure function of t, q, v"
    why = f"the torque is {make().__name__}, a Python function; {mark}"
    assert plain.info["in Python"] == why and f"in Python: {why}\n" in plain.summary()
    assert "in Python" not in told.info, "that was asked for"


def test_other_laws_may_change_with_events():
    target = np.zeros(2)

    def turn(t, q, v):
        target[0] = t
        return 1.0

    def law(t, q, v):
        return -(q - target) - v

    ends = []
    for compiled in (None, False):
        target[:] = 0.0
        ends.append(motion(law, compiled, events={"turn": turn}).q[-1])
    assert np.array_equal(*ends)
