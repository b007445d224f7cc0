"""The quick door: the same bits as the gufunc for plain vectors, the gufunc itself for everything
else, no leaks."""

import gc
import sys
from functools import partial

import numpy as np
import pytest

import psiphi as pp
from psiphi.backends.cpu import scalar_call
from psiphi.functions.compiled_function import QuantityRequest
from psiphi.robot.catalogue.catalogue import quantity_function
from tests.children import in_threads


@pytest.fixture(scope="module")
def arm():
    return pp.robots.puma560()


@pytest.fixture(scope="module")
def step(arm):
    return arm.function("forward_dynamics").scalar_call()


def state(seed=0, *lead):
    return np.random.default_rng(seed).normal(size=(3, *lead, 6))


def test_it_is_there_on_this_platform(arm, step):
    assert (
        type(step).__name__ == "builtin_function_or_method"
        and step is not arm.function("forward_dynamics").ufunc
    )


@pytest.mark.parametrize(
    "name",
    ["forward_dynamics", "inverse_dynamics", "bias", "gravity", "mass_solve", "mass_product"],
)
def test_the_bits_are_the_gufuncs(arm, name):
    function = arm.function(name)
    arrays = state(1)[: function.ufunc.nin]
    assert np.array_equal(function.scalar_call()(*arrays), function.ufunc(*arrays))


@pytest.mark.parametrize("by", [("q",), ("q", "v", "tau")])
def test_matrices_and_tuples_of_them(arm, by):
    """One matrix or several: the gufunc's bits, new arrays every time, and nothing that leaks; by a
    function's own call too."""
    f = arm.function("forward_dynamics").jacobian(*by)
    arrays, step = state(5), f.scalar_call()
    assert type(step).__name__ == "builtin_function_or_method"
    for call in (step, f, f):  # the second call of a function takes the quick way
        got, want = call(*arrays), f.ufunc(*arrays)
        assert type(got) is type(want)
        for x, y in zip(got, want, strict=True) if len(by) > 1 else [(got, want)]:
            assert (
                x.flags.c_contiguous
                and np.array_equal(x, y)
                and not np.shares_memory(x, step(*arrays)[0])
            )
    before = sys.getrefcount(np.ndarray)
    for _ in range(2000):
        step(*arrays)
    assert abs(sys.getrefcount(np.ndarray) - before) < 50 and sys.getrefcount(step(*arrays)) <= 2
    assert f(*state(5, 4))[0].shape == ((4, 6, 6) if len(by) > 1 else (6, 6))
    with pytest.raises(pp.Error, match="q has shape"):
        f(np.zeros(5), *arrays[1:])


@pytest.mark.parametrize("name", ["kinetic_energy", "potential_energy"])
def test_a_number(arm, name):
    """What the gufunc answers: NumPy's number, no array; and nothing that leaks."""
    f = arm.function(name)
    arrays, step = state(6)[: len(f.inputs)], f.scalar_call()
    assert type(step).__name__ == "builtin_function_or_method"
    for call in (step, f, f, partial(getattr(arm, name))):
        got = call(*arrays)
        assert type(got) is np.float64 and got == f.ufunc(*arrays)
    before = sys.getrefcount(np.float64), sys.getrefcount(np.ndarray)
    kept = [step(*arrays) for _ in range(2000)]
    assert sys.getrefcount(kept[7]) <= 3 and len(set(kept)) == 1
    del kept
    assert (
        abs(sys.getrefcount(np.float64) - before[0]) < 50
        and abs(sys.getrefcount(np.ndarray) - before[1]) < 50
    )
    assert step(*state(6, 3)[: len(f.inputs)]).shape == (3,)


def test_matrices_in():
    """Wrenches, (frames, 6): plain, transposed, strided ones at once; what does not fit goes the
    slow way, or is refused."""
    robot = pp.load("panda")
    frames = ["panda_link3", "panda_link7"]
    f = robot.function("inverse_dynamics", tuple(frames))
    rng = np.random.default_rng(3)
    vectors, wrenches = rng.normal(size=(3, robot.nv)), rng.normal(size=(2, 6))
    step, wide = f.scalar_call(), np.zeros((4, 12))
    wide[1:3, ::2] = wrenches
    want = f.ufunc(*vectors, wrenches)
    for given in (
        wrenches,
        np.asfortranarray(wrenches),
        wide[1:3, ::2],
        wrenches[::-1].copy()[::-1],
        wrenches.tolist(),
    ):
        assert np.array_equal(step(*vectors, given), want) and np.array_equal(
            f(*vectors, given), want
        )
    by_name = dict(zip(frames, wrenches, strict=True))
    assert all(
        np.array_equal(robot.inverse_dynamics(*vectors, f_ext=by_name), want) for _ in range(3)
    )
    assert np.array_equal(step(*vectors, np.stack([wrenches] * 3)), np.stack([want] * 3))
    for wrong in (wrenches[:1], wrenches[:, :5], wrenches[0]):
        with pytest.raises(pp.Error, match="f_ext"):
            f(*vectors, wrong)


def odd_arguments():
    q, v, tau = state(2)
    wide = np.zeros((6, 3))
    wide[:, 1] = v
    packed = np.zeros(6, dtype=[("byte", "i1"), ("x", "f8")])
    packed["x"] = tau
    return {
        "lists": (list(q), list(v), list(tau)),
        "strided": (q, wide[:, 1], tau),
        "reversed": (q[::-1].copy()[::-1], v, tau),
        "unaligned": (q, v, packed["x"]),
        "read only": (np.frombuffer(q.tobytes()), v, tau),
        "foreign byte order": (q.astype(">f8"), v, tau),
        "float32": (q.astype("f4"), v.astype("f4"), tau.astype("f4")),
        "mixed": (q, v.astype("f4"), tau),
        "batch": state(2, 5),
        "broadcast": (q, v, state(3, 4)[2]),
        "subclass": (q.view(np.ma.MaskedArray), v, tau),
    }


@pytest.mark.parametrize("what", odd_arguments())
def test_whatever_comes_is_answered_as_the_gufunc_does(arm, step, what):
    arrays = odd_arguments()[what]
    want = arm.function("forward_dynamics").ufunc(*arrays)
    got = step(*arrays)
    assert type(got) is type(want) and np.array_equal(got, want)


@pytest.mark.parametrize(
    "arrays", [(), (np.zeros(6),) * 2, (np.zeros(5),) * 3, (np.zeros(6), np.zeros(6), None)]
)
def test_wrong_arguments_fail_as_in_numpy(step, arrays):
    with pytest.raises((TypeError, ValueError)):
        step(*arrays)


def test_keywords_go_to_numpy(step):
    out = np.empty(6)
    assert step(*state(), out=out) is out


def test_nothing_leaks_and_references_stay_even(step):
    q, v, tau = state(4)
    before = [sys.getrefcount(x) for x in (q, v, tau, tau.dtype, np.ndarray)]
    for _ in range(2000):
        step(q, v, tau)
    after = [sys.getrefcount(x) for x in (q, v, tau, tau.dtype, np.ndarray)]
    assert all(abs(x - y) < 50 for x, y in zip(before, after, strict=True))
    assert sys.getrefcount(step(q, v, tau)) <= 2


def test_it_outlives_the_robot():
    step = quantity_function(
        pp.robots.chain(3).model, QuantityRequest("forward_dynamics")
    ).scalar_call()
    gc.collect()
    assert np.isfinite(step(*np.ones((3, 3)))).all()


def test_functions_come_and_go():
    model = pp.robots.chain(2).model
    for _ in range(50):
        quantity_function(model, QuantityRequest("forward_dynamics")).scalar_call()(
            *np.ones((3, 2))
        )
    gc.collect()


def test_threads_share_it(step):
    arrays = [state(k) for k in range(8)]
    want = [step(*a) for a in arrays]
    wrong = []

    def work(k):
        wrong.extend(k for _ in range(500) if not np.array_equal(step(*arrays[k]), want[k]))

    in_threads(partial(work, k) for k in range(8))
    assert not wrong


def test_where_its_assumptions_fail_the_gufunc_serves(arm, monkeypatch):
    monkeypatch.setattr(scalar_call, "_function_table", lambda: None)
    function = arm.function("forward_dynamics")
    assert function.scalar_call().__closure__[0].cell_contents is function.ufunc
