"""Big batches on several threads give the same bits as one call, whatever the shapes, types and
outputs."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings

import numpy as np
import pytest

from psiphi._util.errors import Error
from psiphi.backends.cpu import gufunc as gufuncs
from psiphi.backends.cpu import threads
from psiphi.backends.cpu.gufunc import gufunc
from psiphi.backends.cpu.threads import get_threads, run, set_threads
from psiphi.backends.llvm import jit
from tests.backends.cpu.native_loops import BEGIN
from tests.children import exit_code, in_threads

# x <- 3.5 x (1 - x), `steps` times for each of the 3 numbers of a row: nothing but arithmetic
LOGISTIC = (
    BEGIN
    + """  %cells = mul i64 %n, 3
  br label %cell
cell:
  %c = phi i64 [0, %entry], [%c.next, %store]
  %go = icmp slt i64 %c, %cells
  br i1 %go, label %start, label %done
start:
  %i = sdiv i64 %c, 3
  %k = srem i64 %c, 3
  %a = mul i64 %i, %in.step
  %b = mul i64 %k, %in.core
  %ab = add i64 %a, %b
  %x.at = getelementptr i8, ptr %in, i64 %ab
  %x0 = load {real}, ptr %x.at
  br label %iterate
iterate:
  %t = phi i64 [0, %start], [%t.next, %iterate]
  %x = phi {real} [%x0, %start], [%x3, %iterate]
  %x1 = fsub {real} 1.0, %x
  %x2 = fmul {real} %x, %x1
  %x3 = fmul {real} %x2, 3.5
  %t.next = add i64 %t, 1
  %more = icmp slt i64 %t.next, {steps}
  br i1 %more, label %iterate, label %store
store:
  %d = mul i64 %i, %out.step
  %e = mul i64 %k, %out.core
  %de = add i64 %d, %e
  %y.at = getelementptr i8, ptr %out, i64 %de
  store {real} %x3, ptr %y.at
  %c.next = add i64 %c, 1
  br label %cell
done:
  ret void
}}
"""
)
BIG = 10**9  # flops of a row that make any batch a big one


def compiled(real: str, steps: int) -> jit.Address:
    return jit.load_object(
        jit.compile_ir(LOGISTIC.format(real=real, steps=steps)), ["loop"]
    ).address("loop")


@pytest.fixture(scope="module")
def logistic():
    return gufunc(
        "logistic", "(3)->(3)", {"f": compiled("float", 20), "d": compiled("double", 20)}, b"", 1, 1
    )


def arrays(args, dims, steps, cores, kind=np.float64):
    """The operands of a loop call as NumPy arrays; `cores` are their core shapes."""
    pointers = ctypes.cast(args, ctypes.POINTER(ctypes.c_void_p))
    sizes = ctypes.cast(dims, ctypes.POINTER(ctypes.c_ssize_t))
    strides, at, made = ctypes.cast(steps, ctypes.POINTER(ctypes.c_ssize_t)), len(cores), []
    for i, core in enumerate(cores):
        steps_of = (strides[i], *(strides[at + k] for k in range(len(core))))
        at += len(core)
        made.append(
            np.asarray(
                gufuncs._StridedMemory(pointers[i], (sizes[0], *core), steps_of, np.dtype(kind).str)
            )
        )
    return made


kept = []


def python_gufunc(signature, body, nin, nout):
    """A gufunc whose loop is Python: `body(*operands)`."""
    cores = [tuple(int(dim) for dim in core) for core in gufuncs.core_dims(signature)]
    function = gufuncs._LOOP(
        lambda args, dims, steps, data: body(*arrays(args, dims, steps, cores))
    )
    kept.append(function)
    return gufunc(
        "f", signature, {"d": ctypes.cast(function, ctypes.c_void_p).value}, b"", nin, nout
    )


@pytest.fixture
def two():
    """Several operands and outputs: y = q + t (a row's sum of v), z = outer(q, v)."""

    def body(q, v, t, y, z):
        rows.append(len(q))
        y[...] = q + (t * v.sum(axis=1))[:, None]
        z[...] = q[:, :, None] * v[:, None, :]

    return python_gufunc("(3),(2),()->(3),(3,2)", body, 3, 2)


rows = []


@pytest.fixture(autouse=True)
def three_threads():
    set_threads(3)
    rows.clear()
    yield
    set_threads(None)


# -- the same bits ---------------------------------------------------------------------------------

SHAPES = [
    (1000,),
    (10, 100),
    (100, 10),
    (7, 11, 13),
    (1, 1000),
    (1000, 1),
    (2, 3),
    (1,),
    (0,),
    (5, 0),
    (),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["d", "f", "i"])
def test_one_operand(logistic, shape, kind):
    x = np.random.default_rng(1).uniform(size=(*shape, 3)).astype(kind)
    for view in (x, np.asfortranarray(x), x[..., ::-1], x[::-1], x.astype(">f8")):
        got, expected = run(logistic, (view,), flops=BIG), logistic(view)
        assert (
            got.dtype == expected.dtype
            and got.shape == expected.shape
            and got.tobytes() == expected.tobytes()
        )


BATCHES = [
    [(1000,), (1000,), (1000,)],
    [(1000,), (), ()],
    [(), (1000,), (1,)],
    [(100, 1), (10,), ()],
    [(1, 100), (10, 1), (1,)],
    [(4, 1, 50), (3, 50), (4, 3, 1)],
    [(10, 100), (10, 100), ()],
    [(3, 4), (), (5, 1, 1)],
    [(0,), (1,), ()],
    [(), (), ()],
]


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("threads_", [1, 2, 3, 8])
def test_several_operands_and_outputs(two, batches, threads_):
    set_threads(threads_)
    rng = np.random.default_rng(2)
    args = [
        rng.normal(size=batch + core) for batch, core in zip(batches, [(3,), (2,), ()], strict=True)
    ]
    got, expected = run(two, args, flops=BIG), two(*args)
    assert isinstance(got, tuple) and len(got) == 2
    assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))


def test_lists_and_numbers(two):
    args = ([[1.0, 2.0, 3.0]] * 500, [4, 5], 2.0)
    got, expected = run(two, args, flops=BIG), two(*args)
    assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
    assert len(rows) > 2  # and it was cut


def test_slices_begin_at_multiples_of_rows(two):
    run(two, (np.ones((10, 100, 3)), np.ones((10, 100, 2)), np.ones((10, 100))), flops=BIG)
    assert len(rows) > 1 and sum(rows) == 1000
    assert sum(count % threads.ROW_MULTIPLE != 0 for count in rows) <= 1


# -- outputs ---------------------------------------------------------------------------------------


def test_given_outputs(two, logistic):
    rng = np.random.default_rng(3)
    args = [rng.normal(size=(1000, 3)), rng.normal(size=(1000, 2)), 0.5]
    y, z = two(*args)
    out = np.zeros((1000, 3)), np.zeros((1000, 4, 2))[:, 1:]
    got = run(two, args, out=out, flops=BIG)
    assert (
        got[0] is out[0]
        and got[1] is out[1]
        and np.array_equal(out[0], y)
        and np.array_equal(out[1], z)
    )
    got = run(two, args, out=(None, out[1]), flops=BIG)
    assert np.array_equal(got[0], y) and got[1] is out[1]

    x, single = rng.uniform(size=(1000, 3)), np.empty((1000, 3), np.float32)
    assert run(logistic, (x,), out=single, flops=BIG) is single
    assert np.array_equal(single, logistic(x).astype(np.float32))
    assert run(logistic, (x,), out=(single,), flops=BIG) is single
    assert run(logistic, (x[0],), out=single[0], flops=BIG).base is single


def test_dtype(logistic):
    x = np.random.default_rng(4).uniform(size=(1000, 3))
    got = run(logistic, (x,), dtype=np.float32, flops=BIG)
    assert got.dtype == np.float32 and np.array_equal(got, logistic(x, dtype=np.float32))
    assert run(logistic, (x[0],), dtype="f", flops=BIG).dtype == np.float32


@pytest.mark.parametrize("shift", [0, 1, 7])
def test_outputs_that_overlap_arguments(logistic, shift):
    memory = np.random.default_rng(5).uniform(size=(1000 + shift, 3))
    expected = logistic(memory[:1000].copy())
    got = run(logistic, (memory[:1000],), out=memory[shift:], flops=BIG)
    assert np.array_equal(got, expected)


def test_errors_are_numpys_own(logistic, two):
    x = np.ones((1000, 3))
    for args, options in [
        ((np.ones((1000, 4)),), {}),
        ((np.ones((1000, 3), complex),), {}),
        ((x,), {"out": np.empty((999, 3))}),
        ((x,), {"out": np.empty((1000, 3), int)}),
        ((x,), {"dtype": "complex"}),
        ((x, x, x), {}),
        ((), {}),
        (([[1.0, 2.0, "x"]] * 9,), {}),
    ]:
        with pytest.raises(Exception) as expected:
            logistic(*args, **options)
        with pytest.raises(expected.type) as got:
            run(logistic, args, flops=BIG, **options)
        assert str(got.value) == str(expected.value)
    with pytest.raises(ValueError, match="broadcast"):
        run(two, (np.ones((5, 3)), np.ones((6, 2)), 1.0), flops=BIG)


# -- other people's arrays -------------------------------------------------------------------------


def test_foreign_arrays_decide_for_themselves(logistic):
    class Units:
        ndim, shape = 2, (1000, 3)

        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return "mine", ufunc, method, options

    class Sub(np.ndarray):
        pass

    assert run(logistic, (Units(),), flops=BIG) == ("mine", logistic, "__call__", {})
    sub = np.ones((1000, 3)).view(Sub)
    assert type(run(logistic, (sub,), flops=BIG)) is Sub
    assert type(run(logistic, (sub[0],), flops=BIG)) is Sub
    masked = np.ma.masked_array(np.full((1000, 3), 0.5), mask=False)
    assert type(run(logistic, (masked,), flops=BIG)) is type(logistic(masked))


# -- threads ---------------------------------------------------------------------------------------


def test_slices_run_at_the_same_time():
    barrier, names = threading.Barrier(3, timeout=20), set()

    def body(x, y):
        names.add(threading.current_thread().name)
        if len(names) <= 3 and not done:
            barrier.wait()
            done.append(1)
        y[...] = x

    done = []
    f = python_gufunc("(3)->(3)", body, 1, 1)
    x = np.random.default_rng(6).normal(size=(96, 3))  # three slices
    assert np.array_equal(run(f, (x,), flops=BIG), x)
    assert len(names) == 3 and not barrier.broken


def test_small_batches_stay_on_this_thread(two):
    run(two, (np.ones((1000, 3)), np.ones(2), 1.0), flops=1000)
    run(two, (np.ones((10, 10, 3)), np.ones((10, 2)), 1.0), flops=1000)
    assert rows[0] == 1000
    set_threads(1)
    rows.clear()
    run(two, (np.ones((1000, 3)), np.ones(2), 1.0), flops=BIG)
    assert rows == [1000]


def test_many_callers_and_nested_calls(logistic):
    x = np.random.default_rng(7).uniform(size=(500, 3))
    expected, results = logistic(x), []

    def body(a, b):
        results.append(np.array_equal(run(logistic, (x,), flops=BIG), expected))
        b[...] = a

    nested = python_gufunc("(3)->(3)", body, 1, 1)
    in_threads([lambda: run(nested, (x,), flops=BIG)] * 8)
    assert len(results) >= 8 and all(results)


def test_the_error_state_of_numpy_goes_along(logistic):
    x = np.full((1000, 3), 1e200)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        run(logistic, (x,), flops=BIG)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        run(logistic, (x,), flops=BIG)
    calls = []
    with np.errstate(
        over="call",
        invalid="ignore",
        call=lambda *args: calls.append(threading.current_thread().name),
    ):
        run(logistic, (x,), flops=BIG)
    assert len(calls) > 2


def test_an_error_in_a_loop_is_raised():
    def compile_it():
        raise Error("no memory")

    f = gufunc("f", "(3)->(3)", {"d": compile_it}, b"", 1, 1)
    for x in (np.ones(3), np.ones((5, 3)), np.ones((1000, 3)), [1.0, 2.0, 3.0]):
        with warnings.catch_warnings(), pytest.raises(Error, match="no memory"):
            warnings.simplefilter("ignore")
            run(f, (x,), flops=BIG)
    assert not gufuncs.failed


def test_lazy_loops_are_compiled_once_for_all_slices():
    compilations = []
    f = gufunc(
        "f", "(3)->(3)", {"d": lambda: compilations.append(1) or compiled("double", 1)}, b"", 1, 1
    )
    x = np.random.default_rng(8).uniform(size=(1000, 3))
    assert np.allclose(run(f, (x,), flops=BIG), 3.5 * x * (1 - x))
    assert compilations == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_its_own_threads(logistic):
    x = np.random.default_rng(9).uniform(size=(1000, 3))
    expected = run(logistic, (x,), flops=BIG)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(run(logistic, (x,), flops=BIG), expected) else 1)
    assert exit_code(pid) == 0


def test_the_number_of_threads(monkeypatch):
    set_threads(5)
    assert get_threads() == 5
    monkeypatch.setenv("PSIPHI_NUM_THREADS", "7")
    set_threads(None)
    assert get_threads() == 7
    monkeypatch.setenv("PSIPHI_NUM_THREADS", "several")
    with pytest.raises(Error, match="PSIPHI_NUM_THREADS is 'several'"):
        set_threads(None)
    monkeypatch.delenv("PSIPHI_NUM_THREADS")
    set_threads(None)
    assert 1 <= get_threads() <= (os.cpu_count() or 1)
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(Error, match="number of threads"):
            set_threads(wrong)
