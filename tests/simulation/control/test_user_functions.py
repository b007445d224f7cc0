"""A function of (t, q, v) means the same for one motion and in a batch of motions."""

from itertools import product

import numpy as np
import pytest

import psiphi as pp

ROBOT = pp.load("pelican")
NV = ROBOT.nv


def pendulums(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (count, NV)), rng.uniform(-1, 1, (count, NV))


def held(q):
    return ROBOT.gravity(q)


# laws that read one motion; in an array of motions most of them would mean something else
LAWS = {
    "entries": lambda t, q, v: np.array([-5 * q[0], -3 * q[1]]),
    "unpacked": lambda t, q, v: np.array([-a - 0.1 * b for a, b in zip(q, v, strict=True)]),
    "norm": lambda t, q, v: -3 * np.linalg.norm(q) * q - v,
    "sum": lambda t, q, v: -v * np.sum(v**2),
    "largest": lambda t, q, v: np.where(q == q.max(), -1.0, 0.5),
    "sorted": lambda t, q, v: -np.sort(q),
    "reversed": lambda t, q, v: -q[::-1],
    "cumulative": lambda t, q, v: -np.cumsum(q),
    "difference": lambda t, q, v: np.array([q[1] - q[0], q[0] - q[1]]),
    "product": lambda t, q, v: -np.outer(q, v) @ q,
    "matrix": lambda t, q, v: np.array([[-2.0, 1.0], [0.5, -1.0]]) @ q,
    "branch": lambda t, q, v: -q if q[0] > 0.0 else 0.5 * q,
    "any": lambda t, q, v: -v if (v > 0.5).any() else -2.0 * v,
    "robot": lambda t, q, v: held(q) - np.array([v[0], v[1]]),
    "kinetic": lambda t, q, v: -ROBOT.kinetic_energy(q, v) * v,
    "frame": lambda t, q, v: ROBOT.jacobian(q, "tool")[3:].T @ [0.0, 0.1, 0.2] - v,
    "list": lambda t, q, v: [float(-q[0]), float(-v[1])],
    "constant": lambda t, q, v: np.array([0.1, -0.2]),
    "clock": lambda t, q, v: np.sin(10 * t) * np.ones(2),
    "plain": lambda t, q, v: -3.0 * q - 0.5 * v,
    "ellipsis": lambda t, q, v: np.stack([-q[..., 0], -v[..., 1]], -1),
}
OPTIONS = {
    "rk4": dict(method="rk4"),
    "euler, held": dict(method="euler", hold=True),
    "adaptive": dict(method="RK45", rtol=1e-10, atol=1e-10),
    "effort": dict(method="midpoint", effort=[1.0, 0.5]),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(2,), (3,), (2, 2)])
def test_a_batch_moves_as_its_motions_alone(shape, options):
    q, v = (x.reshape(*shape, NV) for x in pendulums(int(np.prod(shape))))
    run = dict(duration=0.05, dt=0.01) | OPTIONS[options]
    # SciPy chooses the steps of a batch for all of it, and some laws jump within a step
    near = 1e-6 if "rtol" in run else 1e-12
    for name, law in LAWS.items():
        motion = pp.simulate(ROBOT, q, v, law, **run)
        for place in np.ndindex(*shape):
            alone = pp.simulate(ROBOT, q[place], v[place], law, **run)
            np.testing.assert_allclose(motion.q[place], alone.q, rtol=0, atol=near, err_msg=name)
            np.testing.assert_allclose(motion.v[place], alone.v, rtol=0, atol=near, err_msg=name)
            np.testing.assert_allclose(motion.tau[place], alone.tau, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["entries", "norm", "sum", "matrix", "robot", "plain"])
def test_a_kernel_means_what_python_means(name):
    q, v = pendulums(2)
    runs = [
        pp.simulate(ROBOT, q, v, LAWS[name], duration=0.05, dt=0.01, compiled=compiled)
        for compiled in (False, True)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-12)


BATCHED = {
    "ellipsis": (lambda t, q, v: np.stack([-5 * q[..., 0], -3 * q[..., 1]], -1), True),
    "norm": (lambda t, q, v: -np.linalg.norm(q, axis=-1, keepdims=True) * q - v, True),
    "constant": (lambda t, q, v: np.array([1.0, 2.0]), True),
    "robot": (lambda t, q, v: ROBOT.gravity(q) - v, True),
    "entries": (lambda t, q, v: np.array([-5 * q[0], -3 * q[1]]), False),
    "norm of all": (lambda t, q, v: -np.linalg.norm(q) * q - v, False),
    "first motion": (lambda t, q, v: np.broadcast_to(-q[0], q.shape), False),
    "order": (lambda t, q, v: -np.sort(q, axis=0), False),
}


@pytest.mark.parametrize("name", BATCHED)
def test_a_batched_law_is_compared_with_single_motions(name):
    law, is_right = BATCHED[name]
    q, v = pendulums(2)
    run = dict(duration=0.02, dt=0.01, method="RK45")
    if is_right:
        motion = pp.simulate(ROBOT, q, v, pp.law(law, batched=True), **run)
        expected = pp.simulate(ROBOT, q, v, law, **run)
        np.testing.assert_allclose(motion.q, expected.q, rtol=0, atol=1e-12)
    else:
        with pytest.raises(
            pp.StateError, match=r"marked as batched, and (returns other values|raises)"
        ):
            pp.simulate(ROBOT, q, v, pp.law(law, batched=True), **run)


def test_a_batched_law_is_called_once_a_stage():
    calls = []

    @pp.law(batched=True, pure=False)
    def law(t, q, v):
        calls.append(q.shape)
        return -v

    q, v = pendulums(5)
    pp.simulate(ROBOT, q, v, law, duration=0.02, dt=0.01, method="euler")
    assert set(calls) == {(5, NV)} and len(calls) <= 4


def test_internal_state_is_not_shared_between_motions():
    """An integral belongs to one motion; a batch would sum the errors of all of them."""

    class Integral:
        total = 0.0

        def __call__(self, t, q, v):
            self.total = self.total + 0.01 * q
            return -self.total

    q, v = pendulums(3)
    run = dict(duration=0.02, dt=0.01, method="euler")
    with pytest.raises(pp.StateError, match="would share its internal state") as error:
        pp.simulate(ROBOT, q, v, Integral(), **run)
    assert "pp.law(batched=True, pure=False)" in str(error.value)
    whole = pp.simulate(ROBOT, q, v, pp.law(Integral(), batched=True, pure=False), **run)
    for k in range(3):
        alone = pp.simulate(ROBOT, q[k], v[k], Integral(), **run)
        np.testing.assert_allclose(whole.q[k], alone.q, rtol=0, atol=1e-12)


def test_a_number_means_the_same_in_a_batch():
    """0 for all motors, a number for the only motor; other numbers are refused, as alone."""
    run = dict(duration=0.02, dt=0.01, method="euler")
    for states in (pendulums(1)[0][0], pendulums(2)[0], pendulums(3)[0]):
        for law in (lambda t, q, v: -q[0], lambda t, q, v: float(-v[1]) - 1.0):
            with pytest.raises(pp.StateError, match=r"expected( shape)? \(2,\)"):
                pp.simulate(ROBOT, states, tau=law, **run)
        zero = pp.simulate(ROBOT, states, tau=lambda t, q, v: 0, **run)
        np.testing.assert_array_equal(zero.q, pp.simulate(ROBOT, states, **run).q)
    q = pendulums(3)[0]
    one = pp.simulate(ROBOT, q, tau=lambda t, q, v: -q[0], passive="elbow", **run)
    row = pp.simulate(ROBOT, q, tau=lambda t, q, v: [-q[0], 0.0], **run)
    np.testing.assert_allclose(one.q, row.q, rtol=0, atol=1e-15)


def test_as_many_motions_as_joints_are_not_mistaken_for_their_coordinates():
    """With two motions of two joints, an array (2,) of an event may be q or a number a motion."""
    run = dict(duration=0.02, dt=0.01, method="euler")
    gains = np.array([[1.0, 2.0], [3.0, 4.0]])
    for wrong in (
        dict(tau=lambda t, q, v: np.outer(q, v)),
        dict(tau=lambda t, q, v: -gains * q),
        dict(events=lambda t, q, v: q - 0.1),
        dict(events=lambda t, q, v: v < 0.1),
    ):
        with pytest.raises(
            pp.StateError, match=r"as many motions as joint coordinates, 2.*batched"
        ):
            pp.simulate(ROBOT, pendulums(2)[0], **wrong, **run)
        with pytest.raises(pp.StateError, match="expected"):
            pp.simulate(ROBOT, pendulums(2)[0][0], **wrong, **run)
    marked = pp.law(lambda t, q, v: -gains * q, batched=True, pure=False)
    motion = pp.simulate(ROBOT, pendulums(2)[0], tau=marked, **run)
    for k in range(2):
        alone = pp.simulate(
            ROBOT, pendulums(2)[0][k], tau=lambda t, q, v, k=k: -gains[k] * q, **run
        )
        np.testing.assert_allclose(motion.q[k], alone.q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["counter", "integral", "memory"])
def test_internal_state_is_found_later_too(kind):
    """At rest the first values agree: the function is asked again at its calls 1, 2, 4, 8, ..."""
    state = {"calls": 0, "sum": np.zeros(NV), "last": np.zeros(NV)}

    def law(t, q, v):
        state["calls"] += 1
        state["sum"] = state["sum"] + v
        change, state["last"] = v - state["last"], v.copy()
        return {"counter": -state["calls"] * v, "integral": -state["sum"], "memory": -change}[kind]

    with pytest.raises(pp.Error, match="would share its internal state"):
        pp.simulate(ROBOT, pendulums(3)[0], tau=law, duration=0.2, dt=0.01)


EVENTS = {
    "entry": lambda t, q, v: q[0] - 0.3,
    "norm": lambda t, q, v: np.linalg.norm(q) - 0.6,
    "flag": lambda t, q, v: q[0] < 0.2,
    "height": lambda t, q, v: float(ROBOT.frame_pose(q, "tool")[2, 3]) + 0.3,
    "all": lambda t, q, v: bool((v < 0.0).all()),
    "time": lambda t, q, v: 0.025 - t,
}


@pytest.mark.parametrize("name, compiled", list(product(EVENTS, (False, True))))
def test_events_of_a_batch_are_those_of_its_motions(name, compiled):
    q, v = pendulums(6)
    q, v = np.abs(q), -np.abs(v)
    options = dict(duration=0.4, dt=0.01, events={name: EVENTS[name]}, compiled=compiled)
    for stop in ((), [name]):
        motion = pp.simulate(ROBOT, q, v, stop=stop, **options)
        for k in range(6):
            alone = pp.simulate(ROBOT, q[k], v[k], stop=stop, **options)
            found = [(e.t, e.value) for e in motion.events if e.where == (k,)]
            expected = [(e.t, e.value) for e in alone.events]
            np.testing.assert_allclose(found, expected, atol=1e-9)
            moved = motion.q[k, : len(alone)]  # a motion that has stopped is NaN
            np.testing.assert_allclose(moved, alone.q, rtol=0, atol=1e-9)


def test_a_batched_event():
    q, v = pendulums(4)
    run = dict(duration=0.1, dt=0.01)
    right = pp.simulate(
        ROBOT, q, v, events={"e": pp.law(lambda t, q, v: q[..., 0], batched=True)}, **run
    )
    expected = pp.simulate(ROBOT, q, v, events={"e": lambda t, q, v: q[0]}, **run)
    assert [e[:4] for e in right.events] == [e[:4] for e in expected.events]
    with pytest.raises(pp.StateError, match="marked as batched"):
        pp.simulate(ROBOT, q, v, events={"e": pp.law(lambda t, q, v: q[0, 0], batched=True)}, **run)


def test_words():
    q, v = pendulums(3)
    run = dict(duration=0.02, dt=0.01)
    whole = np.ones((4, NV))
    with pytest.raises(pp.StateError, match=r"\(3, 4, 2\), expected \(3, 2\).*batched=True"):
        pp.simulate(ROBOT, q, v, lambda t, q, v: whole, **run)
    with pytest.raises(pp.StateError, match=r"shapes \(1,\) and \(2,\)"):
        pp.simulate(ROBOT, q, v, lambda t, q, v: q if q[0] > 0 else q[:1], **run)
    with pytest.raises(pp.StateError, match="marks nothing"):
        pp.law(lambda t, q, v: v, pure=False)
    with pytest.raises(pp.StateError, match="batched is 'yes'"):
        pp.law(batched="yes")


def test_no_motions_at_all():
    motion = pp.simulate(
        ROBOT, np.zeros((0, NV)), tau=LAWS["entries"], duration=0.02, dt=0.01, events=EVENTS
    )
    assert motion.q.shape == (0, 3, NV) and not motion.events


@pytest.mark.parametrize("axis", [None, -1, 0])
def test_norms_compile(axis):
    law = pp.law(lambda t, q, v: -3 * np.linalg.norm(q, axis=axis) * q - v)
    q, v = pendulums(2)
    runs = [
        pp.simulate(ROBOT, q, v, law, duration=0.05, dt=0.01, compiled=c) for c in (True, False)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-12)


def test_functions_that_read_numbers_of_all_motions():
    """Gains by motion, or a robot with parameters by motion: each motion has its own."""
    gains = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    q, v = pendulums(3)
    run = dict(duration=0.03, dt=0.01)
    motion = pp.simulate(ROBOT, q, v, lambda t, q, v: -gains * q, **run)
    for k in range(3):
        alone = pp.simulate(ROBOT, q[k], v[k], lambda t, q, v, k=k: -gains[k] * q, **run)
        np.testing.assert_allclose(motion.q[k], alone.q, rtol=0, atol=1e-12)
