"""Between NumPy's arrays and the lanes: any strides, any size, nothing read or written beside the
elements."""

import ctypes
import signal
from functools import lru_cache

import numpy as np
import pytest

from psiphi.backends.cpu import gufunc_kernel
from psiphi.backends.cpu.cpu_target import has_wide_shuffles
from psiphi.backends.cpu.straight_kernel import straight_kernel
from tests.backends import guarded_memory
from tests.backends.kernels import WIDTHS, batch, call, known, little, loop, loop_of, same_bits

SHAPES = [
    ((1,), (3,)),
    ((2,), (8,)),
    ((7,), (9,)),
    ((16,), (5,)),
    ((2, 3), (4,)),
    ((3, 8), (1,)),
    ((5, 1), (17,)),
    ((), (6,)),
]
WALLS = pytest.mark.skipif(not guarded_memory.POSIX, reason="needs fork and mprotect")


@lru_cache(maxsize=128)
def copier(shapes, lanes: int, char: str):
    """(a, b) -> (b, a): what goes astray in one argument shows up in another."""
    return loop(little(shapes, lambda a, b: [list(b), list(a)]), lanes, char)


def contiguous(x):
    return x.copy()


def rows_apart(x):
    return spaced(x, (slice(1, None, 3),))


def rows_reversed(x):
    return x[::-1].copy()[::-1]


def fortran(x):
    return np.asfortranarray(x)


def columns_apart(x):
    return (
        spaced(x, (slice(None),) * (x.ndim - 1) + (slice(1, None, 2),))
        if x.ndim > 1
        else rows_apart(x)
    )


def columns_reversed(x):
    return x[..., ::-1].copy()[..., ::-1]


def everything_reversed(x):
    return np.flip(np.flip(x).copy())


def unaligned(x):
    """A field of packed records: no address is a multiple of the item's size."""
    records = np.zeros(
        len(x), np.dtype([("pad", "u1"), ("x", x.dtype, x.shape[1:]), ("end", "u1", 2)])
    )
    records["x"] = x
    return records["x"]


def spaced(x, slices):
    """x as a slice of a larger array full of sevens."""
    shape = list(x.shape)
    for axis, cut in enumerate(slices):
        if cut.step:
            shape[axis] = cut.start + cut.step * shape[axis]
    larger = np.full(shape, 7, x.dtype)
    view = larger[slices][tuple(slice(n) for n in x.shape)]
    view[...] = x
    return view


LAYOUTS = [
    contiguous,
    rows_apart,
    rows_reversed,
    fortran,
    columns_apart,
    columns_reversed,
    everything_reversed,
    unaligned,
]


def whole(view: np.ndarray) -> np.ndarray:
    """The bytes of everything that a view is a part of."""
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view.view(np.uint8) if view.flags.c_contiguous else view.T.view(np.uint8)


def numbers(rng, n: int, shape, char: str) -> np.ndarray:
    return rng.standard_normal((n, *shape)).astype(char)


@pytest.mark.parametrize(("char", "lanes"), WIDTHS)
def test_any_layout_goes_in_and_out(char, lanes, rng):
    """Each layout of the inputs, and each of the outputs, for every remainder of the batch size and
    of the core size."""
    for shapes in SHAPES:
        address = copier(shapes, lanes, char)
        for n in (1, lanes, 2 * lanes + 1):
            a, b = (numbers(rng, n, shape, char) for shape in shapes)
            for layout in LAYOUTS:
                out = [np.zeros((n, x.size // n), char) for x in (b, a)]
                call(address, [layout(a), layout(b), *out])
                assert same_bits(out[0].reshape(b.shape), b) and same_bits(
                    out[1].reshape(a.shape), a
                ), (shapes, n, layout)
                out = [layout(x) for x in out]
                for view in out:
                    view[...] = 0
                call(address, [a, b, *out])
                assert np.array_equal(out[0].reshape(b.shape), b) and np.array_equal(
                    out[1].reshape(a.shape), a
                ), layout


@pytest.mark.parametrize(("char", "lanes"), WIDTHS)
def test_nothing_beside_the_outputs_is_written(char, lanes, rng):
    for shapes in SHAPES:
        address = copier(shapes, lanes, char)
        for n in {1, max(1, lanes - 1), lanes, 2 * lanes + 1}:
            a, b = (numbers(rng, n, shape, char) for shape in shapes)
            for layout in (rows_apart, columns_apart, unaligned):
                outs = [layout(x.reshape(n, -1)) for x in (b, a)]
                expected = [whole(out).copy() for out in outs]
                for out in outs:
                    out[...] = 0
                call(address, [a, b, *outs])
                assert all(
                    np.array_equal(whole(out), x) for out, x in zip(outs, expected, strict=True)
                ), (shapes, n, layout)


@pytest.mark.parametrize(("char", "lanes"), WIDTHS)
def test_one_row_serves_all(char, lanes, rng):
    """A batch stride of zero, a column stride of zero."""
    shapes, n = ((7,), (9,)), 2 * lanes + 3
    a, b = numbers(rng, n, (7,), char), numbers(rng, 1, (9,), char)
    outs = np.zeros((n, 9), char), np.zeros((n, 7), char)
    call(copier(shapes, lanes, char), [a, np.broadcast_to(b, (n, 9)), *outs])
    assert same_bits(outs[1], a) and all(same_bits(row, b[0]) for row in outs[0])
    column = numbers(rng, n, (1,), char)
    call(
        copier(shapes, lanes, char),
        [np.broadcast_to(column, (n, 7)), np.broadcast_to(b, (n, 9)), *outs],
    )
    assert np.array_equal(outs[1], np.broadcast_to(column, (n, 7)))


def test_an_empty_batch_touches_nothing():
    nowhere = np.ndarray((0, 7), buffer=memoryview(bytearray(8))[8:])
    for char, lanes in (("d", 1), ("d", 4)):
        call(
            copier(((7,), (9,)), lanes, char),
            [nowhere, np.zeros((0, 9)), np.zeros((0, 9)), np.zeros((0, 7))],
        )


# -- past the caches -------------------------------------------------------------------------------


@pytest.mark.skipif(not has_wide_shuffles(), reason="needs AVX-512")
@pytest.mark.parametrize(("char", "lanes"), [("d", 8), ("f", 16)])
def test_large_outputs_go_past_the_caches_with_the_same_bits(char, lanes, rng, monkeypatch):
    """Wherever lines of memory begin, whatever is left of the last one; nothing beside the
    outputs."""
    monkeypatch.setattr(gufunc_kernel, "STREAM_BYTES", 0)
    for cells in (3 * lanes - 1, 3 * lanes, 3 * lanes + 1, 5 * lanes - 3):
        code = little([(cells,)], lambda x: [[y + y for y in x], [y * 0.5 for y in x[:5]]])
        address = loop_of(straight_kernel(code), lanes, char, streams=True)
        for n in (2, lanes - 1, lanes, 3 * lanes, 3 * lanes + 1):
            x = numbers(rng, n, (cells,), char)
            for start in range(lanes):
                memory = np.full(start + n * cells + lanes, 7, char)
                out, half = (
                    memory[start : start + n * cells].reshape(n, cells),
                    np.zeros((n, 5), char),
                )
                call(address, [x, out, half])
                assert same_bits(out, x + x) and same_bits(half, x[:, :5] * x.dtype.type(0.5)), (
                    cells,
                    n,
                    start,
                )
                assert (memory[:start] == 7).all() and (memory[start + n * cells :] == 7).all()
            for layout in (rows_apart, columns_apart, unaligned):
                out = layout(np.zeros((n, cells), char))
                call(address, [x, out, np.zeros((n, 5), char)])
                assert np.array_equal(out, x + x), layout


@pytest.mark.skipif(not has_wide_shuffles(), reason="needs AVX-512")
@pytest.mark.parametrize(("char", "lanes"), [("d", 8), ("f", 16)])
def test_zeros_of_large_outputs_stand_where_they_belong(char, lanes, rng, monkeypatch):
    """Tiles that are zeros alone, first, last and between others, and tiles that are nearly so."""
    monkeypatch.setattr(gufunc_kernel, "STREAM_BYTES", 0)
    for which in ((1, 2), (0, 3, 5), (0, 1, 2, 3, 4, 5), (2, 4)):
        spots = {t * lanes + i for t in which for i in range(lanes)} - {4 * lanes + 1}
        code = little(
            [(6 * lanes + 3,)],
            lambda x, spots=spots: [[0.0 if i in spots else y for i, y in enumerate(x)]],
        )
        address = loop_of(straight_kernel(code), lanes, char, streams=True)
        x = numbers(rng, 2 * lanes + 1, (6 * lanes + 3,), char)
        out, expected = np.full_like(x, 7), x.copy()
        expected[:, sorted(spots)] = 0.0
        call(address, [x, out])
        assert same_bits(out, expected), which


# -- walls -----------------------------------------------------------------------------------------


@WALLS
def test_the_wall_stands():
    wall = guarded_memory.array(np.zeros(3), "after")
    end = wall.ctypes.data + wall.nbytes
    assert guarded_memory.outcome(lambda: ctypes.string_at(end - 1, 1)) == 0
    assert guarded_memory.outcome(lambda: ctypes.string_at(end, 1)) in (
        -signal.SIGSEGV,
        -signal.SIGBUS,
    )


@WALLS
@pytest.mark.parametrize("wall", ["before", "after"])
@pytest.mark.parametrize(("char", "lanes"), [w for w in WIDTHS if w[1] > 1])
def test_nothing_beyond_the_arrays_is_touched(char, lanes, wall, rng):
    """Parts of tiles, tails and padding stay inside: every array has a wall at one end."""
    jobs = []
    for shapes in SHAPES:
        for n in (1, 2, lanes - 1, lanes, lanes + 1, 2 * lanes + 3):
            jobs.append(
                (copier(shapes, lanes, char), [numbers(rng, n, shape, char) for shape in shapes])
            )

    def walk():
        for address, (a, b) in jobs:
            walled = [guarded_memory.array(x, wall) for x in (a, b)]
            outs = [
                guarded_memory.array(np.zeros((len(x), x.size // len(x)), char), wall)
                for x in (b, a)
            ]
            call(address, [*walled, *outs])
            assert same_bits(outs[0].reshape(b.shape), b) and same_bits(outs[1].reshape(a.shape), a)

    assert guarded_memory.outcome(walk) == 0


@WALLS
@pytest.mark.parametrize("rolls", [False, True], ids=["straight", "rolled"])
def test_dynamics_stay_inside_their_arrays(rolls):
    function, truth = (
        known("small", "forward_dynamics", 8, "d", rolls),
        known("small", "forward_dynamics", 1, "d", rolls),
    )

    def walk():
        for n in (1, 7, 8, 9, 29):
            arrays = batch("small", n)
            for wall in ("before", "after"):
                out = guarded_memory.array(np.zeros((n, 6)), wall)
                function(*(guarded_memory.array(x, wall) for x in arrays), out=out)
                assert same_bits(out, truth(*arrays))

    assert guarded_memory.outcome(walk) == 0


# -- through NumPy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 8])
def test_numpy_hands_over_any_array(lanes):
    """Strided, reversed, transposed, Fortran-ordered, unaligned, byte-swapped, broadcast: the same
    bits."""
    function, arrays = known("small", "forward_dynamics", lanes), batch("small", 24)
    truth = function(*arrays)
    for layout in LAYOUTS:
        assert same_bits(function(*(layout(x) for x in arrays)), truth), layout
        out = layout(np.zeros_like(truth))
        assert function(*arrays, out=out) is out and np.array_equal(out, truth), layout
    assert same_bits(function(*(x.astype(">f8") for x in arrays)), truth)
    folded = [x.reshape(2, 3, 4, -1).swapaxes(0, 2) for x in arrays]
    assert np.array_equal(function(*folded), truth.reshape(2, 3, 4, -1).swapaxes(0, 2))
    q, v, tau = arrays
    assert np.array_equal(function(q, v[3], tau), function(q, np.tile(v[3], (24, 1)), tau))
    grid = function(q[:3, None], v[None, :5], tau[7])
    assert grid.shape == (3, 5, 6) and same_bits(grid[2, 4], function(q[2], v[4], tau[7]))


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_outputs_may_lie_on_inputs(lanes):
    """NumPy copies what overlaps: out= may be an argument, or part of one."""
    function, arrays = known("arm", "forward_dynamics", lanes), batch("arm", 21)
    truth = function(*arrays)
    for i in range(3):
        args = [x.copy() for x in arrays]
        assert same_bits(function(*args, out=args[i]), truth)
        args = [x.copy() for x in arrays]
        function(*args, out=args[i][::-1])
        assert np.array_equal(args[i], truth[::-1])
    shared = np.zeros((22, 3))
    shared[:-1] = arrays[2]
    function(*arrays[:2], shared[:-1], out=shared[1:])
    assert same_bits(shared[1:], truth)
