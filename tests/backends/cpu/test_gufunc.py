"""Native loops as NumPy gufuncs: types, shapes, lives, and errors that must not vanish."""

from __future__ import annotations

import ctypes
import gc
import pydoc
import threading
import warnings
import weakref

import numpy as np
import pytest

from psiphi._util.errors import Error, StateError
from psiphi.backends.cpu import gufunc as module
from psiphi.backends.cpu.gufunc import gufunc, pending_error, prepare
from psiphi.backends.llvm import jit
from tests.backends.cpu.native_loops import BEGIN
from tests.children import in_threads

# out[row][k] = 2 in[row][k] for k < size, any strides
DOUBLE = (
    BEGIN
    + """  br label %row
row:
  %i = phi i64 [0, %entry], [%i.next, %row.end]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %cell, label %done
cell:
  %k = phi i64 [0, %row], [%k.next, %cell]
  %a = mul i64 %i, %in.step
  %b = mul i64 %k, %in.core
  %ab = add i64 %a, %b
  %x.at = getelementptr i8, ptr %in, i64 %ab
  %x = load {real}, ptr %x.at
  %y = fadd {real} %x, %x
  %c = mul i64 %i, %out.step
  %d = mul i64 %k, %out.core
  %cd = add i64 %c, %d
  %y.at = getelementptr i8, ptr %out, i64 %cd
  store {real} %y, ptr %y.at
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, {size}
  br i1 %more, label %cell, label %row.end
row.end:
  %i.next = add i64 %i, 1
  br label %row
done:
  ret void
}}
"""
)


def compiled(char: str, size: int = 3) -> jit.Address:
    text = DOUBLE.format(real={"d": "double", "f": "float"}[char], size=size)
    return jit.load_object(jit.compile_ir(text), ["loop"]).address("loop")


@pytest.fixture(scope="module")
def double():
    return gufunc(
        "double", "(3)->(3)", {"f": compiled("f"), "d": compiled("d")}, b"Twice the argument.", 1, 1
    )


def python_loop(body):
    """A loop written in Python, for what needs no speed; `body(pointers, dims, steps)`."""

    def loop(args, dims, steps, data):
        sizes = ctypes.POINTER(ctypes.c_ssize_t)
        body(
            ctypes.cast(args, ctypes.POINTER(ctypes.c_void_p)),
            ctypes.cast(dims, sizes),
            ctypes.cast(steps, sizes),
        )

    function = module._LOOP(loop)
    kept.append(function)
    return ctypes.cast(function, ctypes.c_void_p).value


kept = []


def quiet(call, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return call(*args)


# -- a gufunc like any other -----------------------------------------------------------------------


def test_it_is_a_ufunc(double):
    assert isinstance(double, np.ufunc)
    assert double.signature == "(3)->(3)" and double.nin == double.nout == 1
    assert double.types == ["d->d", "f->f"]
    assert double.__name__ == "double" and "Twice the argument." in double.__doc__
    assert "double" in pydoc.render_doc(double) and "Twice the argument." in pydoc.render_doc(
        double
    )


def test_values_and_broadcasting(double):
    x = np.random.default_rng(1).normal(size=(4, 5, 3))
    assert np.array_equal(double(x), 2 * x)
    assert np.array_equal(double(x[::2, ::-1, ::-1]), 2 * x[::2, ::-1, ::-1])
    assert np.array_equal(double(np.asfortranarray(x)), 2 * x)
    assert double([1, 2, 3]).tolist() == [2.0, 4.0, 6.0]
    out = np.empty((4, 5, 3))
    assert double(x, out=out) is out and np.array_equal(out, 2 * x)
    assert double(np.empty((0, 3))).shape == (0, 3) and double(np.empty((7, 0, 3))).shape == (
        7,
        0,
        3,
    )
    assert np.array_equal(double(np.moveaxis(x, -1, 0), axis=0), 2 * np.moveaxis(x, -1, 0))


KINDS = [
    ("f", "f"),
    ("d", "d"),
    ("?", "d"),
    ("b", "d"),
    ("h", "d"),
    ("i", "d"),
    ("l", "d"),
    ("e", "d"),
    (">f8", "d"),
]


@pytest.mark.parametrize(("given", "answer"), KINDS)
def test_only_float32_stays_float32(double, given, answer):
    assert double(np.array([1, 0, 1], given)).dtype == answer
    assert double(np.array([1, 0, 1], given)).tolist() == [2.0, 0.0, 2.0]


def test_dtype_is_honoured_and_bad_types_are_refused(double):
    assert double(np.ones(3), dtype=np.float32).dtype == np.float32
    for wrong in (
        np.ones(3, complex),
        np.array(["a"] * 3),
        np.array([None] * 3),
        np.ones(3, np.longdouble),
    ):
        with pytest.raises(TypeError):
            double(wrong)


def test_wrong_shapes_are_refused(double):
    for wrong in (np.ones(4), np.ones((3, 2)), np.float64(1), np.ones((2, 0))):
        with pytest.raises(ValueError, match="double: Input operand 0"):
            double(wrong)
    with pytest.raises(Error, match="nin=2"):
        gufunc("f", "(3)->(3)", {"d": 1}, b"", 2, 1)
    for loops in ({}, {"g": 1}):
        with pytest.raises(Error, match="loops"):
            gufunc("f", "(3)->(3)", loops, b"", 1, 1)


def test_several_outputs_and_the_order_of_dims_and_steps():
    seen = []

    def body(args, dims, steps):
        seen.append((dims[:4], steps[:9]))
        ctypes.cast(args[2], ctypes.POINTER(ctypes.c_double))[0] = 5.0

    f = gufunc("f", "(7),()->(6,6),(6,2)", {"d": python_loop(body)}, b"", 2, 2)
    first, second = f(np.ones((2, 7)), 1.0)
    assert first.shape == (2, 6, 6) and second.shape == (2, 6, 2) and first[0, 0, 0] == 5.0
    assert seen == [
        ([2, 7, 6, 2], [56, 0, 288, 96, 8, 48, 8, 16, 8])
    ]  # outer steps, then the core steps of each operand


def test_empty_operands():
    calls = []
    f = gufunc("f", "(0),(3)->(0),(3,0)", {"d": python_loop(lambda *_: calls.append(1))}, b"", 2, 2)
    for batch in ((), (4,), (0,)):
        first, second = f(np.empty((*batch, 0)), np.ones(3))
        assert first.shape == (*batch, 0) and second.shape == (*batch, 3, 0)
    calls.clear()
    quiet(f, np.empty(2), np.ones(3))  # NumPy has no fixed size 0, so ours is checked in the call
    error = pending_error(f)
    assert isinstance(error, StateError) and "2 elements, expected 0" in str(error)
    assert calls == []
    f(np.empty(0), np.ones(3))
    assert pending_error(f) is None
    with pytest.raises(Error, match="an output is empty"):
        gufunc("f", "(3)->(0)", {"d": 1}, b"", 1, 1)


# -- loops compiled at first use -------------------------------------------------------------------


def test_each_dtype_is_compiled_at_its_first_use():
    compilations = []

    def lazily(char):
        return lambda: compilations.append(char) or compiled(char)

    f = gufunc("f", "(3)->(3)", {"f": lazily("f"), "d": lazily("d")}, b"", 1, 1)
    assert compilations == []
    for _ in range(3):
        assert np.array_equal(f(np.arange(12.0).reshape(4, 3)), 2 * np.arange(12.0).reshape(4, 3))
    assert compilations == ["d"]
    assert f(np.ones(3, np.float32)).tolist() == [2, 2, 2]
    assert compilations == ["d", "f"]
    prepare(f, "d")
    assert compilations == ["d", "f"]


def test_after_the_first_call_numpy_calls_native_code():
    f = gufunc("f", "(3)->(3)", {"d": lambda: compiled("d")}, b"", 1, 1)
    table = module.gufunc_memory(f).table
    stub = table[0]
    prepare(f)
    assert table[0] == module.gufunc_memory(f).loops[0].address != stub
    calls = []
    table[0] = python_loop(lambda *_: calls.append(1))
    f(np.ones(3))
    assert calls == [1]  # NumPy reads the table at every call


def test_arithmetic_of_the_compilation_raises_no_warning():
    def noisy():
        np.float64(1e308) * np.float64(10)
        return compiled("d")

    f = gufunc("f", "(3)->(3)", {"d": noisy}, b"", 1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "overflow encountered in scalar")
        f(np.ones(3))
    with pytest.warns(RuntimeWarning, match="overflow encountered in f"):
        f(np.full(3, 1e308))  # but its own arithmetic does, under the name of the function


def test_threads_compile_a_loop_once():
    compilations = []
    f = gufunc("f", "(3)->(3)", {"d": lambda: compilations.append(1) or compiled("d")}, b"", 1, 1)
    barrier, results = threading.Barrier(8, timeout=60), []

    def work():
        barrier.wait()
        results.append(f(np.ones((1000, 3))).sum())

    in_threads([work] * 8)
    assert results == [6000.0] * 8 and compilations == [1]


def failing(error):
    def compile_it():
        raise error

    return gufunc("f", "(3)->(3,2),(2)", {"d": compile_it}, b"", 1, 2)


def test_a_failed_compilation_is_seen():
    f = failing(Error("no memory"))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="f returns NaN: Error: no memory"):
            first, second = f(np.ones((4, 3)))
        assert first.shape == (4, 3, 2) and np.isnan(first).all() and np.isnan(second).all()
        assert str(pending_error(f)) == "no memory"
        assert pending_error(f) is None and not module.failed
    with pytest.raises(Error, match="no memory"):
        prepare(f)


def test_a_failure_fills_strided_outputs_and_nothing_else():
    f = failing(Error("no"))
    first, second = np.zeros((4, 6, 4)), np.zeros((8, 2))
    quiet(lambda: f(np.ones((4, 3)), out=(first[:, ::2, ::-2], second[::2])))
    assert np.isnan(first[:, ::2, 1::2]).all() and np.isnan(first).sum() == 24
    assert np.isnan(second[::2]).all() and np.isnan(second).sum() == 8
    pending_error(f)


def test_a_failure_where_warnings_are_errors():
    f = failing(Error("no"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(f(np.ones(3))[0]).all()
    assert str(pending_error(f)) == "no"


def test_an_interrupted_compilation_may_be_tried_again():
    answers = [KeyboardInterrupt(), compiled("d")]

    def compile_it():
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    f = gufunc("f", "(3)->(3)", {"d": compile_it}, b"", 1, 1)
    assert np.isnan(quiet(f, np.ones(3))).all()
    assert isinstance(pending_error(f), KeyboardInterrupt)
    assert f(np.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_only_our_ufuncs_have_pending_errors():
    with pytest.raises(Error, match="not made by psiphi"):
        pending_error(np.sin)


# -- lives -----------------------------------------------------------------------------------------


def test_memory_and_code_live_as_long_as_the_ufunc():
    f = gufunc(
        "".join(["na", "me"]),
        "(3)->(3)",
        {"d": compiled("d"), "f": lambda: compiled("f")},
        b"d" * 1000,
        1,
        1,
    )
    f(np.ones(3, np.float32))
    libraries = [weakref.ref(loop.address.library) for loop in module.gufunc_memory(f).loops]
    gc.collect()
    assert all(library() is not None for library in libraries)
    assert (
        f(np.ones(3)).tolist() == [2, 2, 2]
        and f.__name__ == "name"
        and f.__doc__.endswith("d" * 1000)
    )
    attached = (
        not module._memory_by_id
    )  # NumPy < 2.2 has no place to hang it on: there it goes when the ufunc's id is used again
    del f
    gc.collect()
    assert not attached or all(library() is None for library in libraries)


def test_ten_thousand_come_and_go():
    address, counts = compiled("d"), []
    for i in range(10_000):
        f = gufunc(f"f{i}", "(3)->(3)", {"d": address, "f": lambda: 0}, b"doc", 1, 1)
        if i % 100 == 0:
            assert f(np.ones(3))[0] == 2.0
            counts.append(len(module._loops) + len(module._memory_by_id))
    assert counts[-1] <= counts[1] + 10


def test_the_compiler_is_let_go_once_it_has_compiled():
    class Robot:
        address = compiled("d")

    def make(robot):
        robot.f = gufunc("f", "(3)->(3)", {"d": lambda: robot.address}, b"", 1, 1)
        assert robot.f(np.ones(3))[0] == 2.0
        return weakref.ref(robot)

    gone = make(Robot())
    gc.collect()
    assert gone() is None
