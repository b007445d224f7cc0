"""Emitted code against the tape's interpreter: each operation, each form of FMA, and equal bits at
every width."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from psiphi.backends.cpu import gufunc_kernel as kernel_module
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.compiler.tape.tape_evaluation import evaluate
from tests.backends.kernels import WIDTHS, batch, known, little, lowered, same_bits, ufunc
from tests.compiler.tape.expressions import LEAVES, POINTS, programs, run

EXACT = ("+", "-", "*", "/", "neg", "sqrt", "<")  # operations IEEE 754 rounds in one way only
A, B, C = (
    1.0 + 2.0**-30,
    1.0 + 2.0**-29,
    1.0 + 2.0**-30 + 2.0**-29,
)  # A B - C is 2^-59, or 0 with two roundings
FUSED = {
    "a b + c": (lambda a, b, c: a * b + c, -C),
    "c + a b": (lambda a, b, c: c + a * b, -C),
    "a b - c": (lambda a, b, c: a * b - c, C),
    "c - a b": (lambda a, b, c: c - a * b, C),
    "-(a b) - c": (lambda a, b, c: -(a * b) - c, -C),
    "(-a) b + c": (lambda a, b, c: -a * b + c, C),
}
TWO = {
    "a b + c d": (lambda x, y: x + y, -1),
    "a b - c d": (lambda x, y: x - y, 1),
    "c d - a b": (lambda x, y: y - x, 1),
    "-(a b) - c d": (lambda x, y: -x - y, -1),
}


def at(function: np.ufunc, point) -> np.ndarray:
    """The kernel at one point, alone and in a batch, which must agree to the bit."""
    alone = function(np.array(point))
    together = function(np.tile(point, (5, 1)))
    assert all(same_bits(row, alone) for row in together)
    return alone


@pytest.mark.parametrize("form", FUSED)
def test_a_product_in_a_sum_is_rounded_once(form):
    make, c = FUSED[form]
    code = little([(3,)], lambda x: [[make(*x)]])
    fused, plain = (at(ufunc(code, 4, fma=fma), (A, B, c))[0] for fma in (True, False))
    assert plain == make(A, B, c) == 0.0, "without FMA: as Python does it"
    assert fused == make(Fraction(A), Fraction(B), Fraction(c)) != 0


@pytest.mark.parametrize("form", TWO)
def test_of_two_products_one_rides(form):
    """The sum is exact but for the rounding of the other product, and has the right sign."""
    combine, sign = TWO[form]
    code = little([(4,)], lambda x: [[combine(x[0] * x[1], x[2] * x[3])]])
    c, d = sign * (1.0 + 2.0**-28), 1.0 + 2.0**-31
    got = at(ufunc(code, 4), (A, B, c, d))[0]
    ab, cd = Fraction(A) * Fraction(B), Fraction(c) * Fraction(d)
    assert got in (combine(Fraction(A * B), cd), combine(ab, Fraction(c * d)))
    assert got != combine(A * B, c * d)


def test_a_product_that_others_read_is_not_fused():
    a, b, c = point = A, B, -C
    both = at(ufunc(little([(3,)], lambda x: [[x[0] * x[1] + x[2], x[0] * x[1]]]), 4), point)
    twice = at(
        ufunc(little([(3,)], lambda x: [[x[0] * x[1] + x[2], x[0] * x[1] - x[1]]]), 4), point
    )
    assert both.tolist() == [a * b + c, a * b]
    assert twice.tolist() == [a * b + c, a * b - b]


@settings(max_examples=25)
@given(programs(EXACT), POINTS)
def test_kernels_mean_what_tapes_mean(program, point):
    """To the bit, without FMA."""
    made = []

    def make(leaves):
        tape = leaves[0].tape
        made.append((tape, run(tape, program, point, space="0")[0][LEAVES:]))
        return [made[0][1]]

    code = little([(LEAVES,)], make)
    tape, handles = made[0]
    meant = evaluate(
        tape, [tape.operand(h) for h in handles], lambda space, i: np.float64(point[i])
    )
    assert same_bits(at(ufunc(code, 2, fma=False), point) + 0.0, np.array(meant, dtype=float) + 0.0)


def test_operations_that_do_not_fold_answer_as_ieee():
    code = little([(2,)], lambda x: [[x[0] / x[1], 1.0 / x[1], x[1].sqrt(), x[0] * x[1]]])
    with np.errstate(all="ignore"):
        assert ufunc(code, 4)(np.array([3.0, 0.0])).tolist()[:3] == [np.inf, np.inf, 0.0]
        assert np.isnan(ufunc(code, 4)(np.array([0.0, 0.0]))[0]) and np.isnan(
            ufunc(code, 4)(np.array([1.0, -1.0]))[2]
        )
        assert ufunc(code, 4)(np.array([np.inf, 2.0])).tolist()[0] == np.inf


def test_results_that_are_inputs_or_constants():
    """Outputs no operation makes: a copy, a constant, a negated input, an angle's own sine, the
    same value twice."""
    code = little([(2,)], lambda x: [[x[1], 3.5, -x[0], x[0].sin(), x[1], 0.0]])
    with_batch = ufunc(code, 4)(np.tile([0.5, 2.0], (6, 1)))
    assert (
        with_batch.tolist()
        == [[2.0, 3.5, -0.5, pytest.approx(np.sin(0.5), rel=1e-15), 2.0, 0.0]] * 6
    )


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -2.5, 1e-310, 1e308, np.pi, np.inf])
def test_constants_keep_their_bits(value):
    for fp, kind in (("double", np.float64), ("float", np.float32)):
        with np.errstate(over="ignore"):
            wide = float(kind(value))
        if fp == "float" and np.isinf(wide) and np.isfinite(value):
            continue
        bits = f"0x{np.float64(wide).view(np.uint64):016X}"
        assert (
            Width(fp, 1).constant(value) == bits
            and Width(fp, 4).constant(value) == f"splat ({fp} {bits})"
        )


def test_widths_have_llvm_names():
    assert (Width("double", 1).type, Width("double", 1).suffix, Width("double", 1).bytes) == (
        "double",
        "f64",
        8,
    )
    assert (Width("float", 16).type, Width("float", 16).suffix, Width("float", 16).bytes) == (
        "<16 x float>",
        "v16f32",
        64,
    )
    assert Width("float", 8).integer == "<8 x i32>" and Width("double", 1).integer == "i64"


# -- one answer ------------------------------------------------------------------------------------


def sizes(lanes: int) -> list[int]:
    return sorted({0, 1, 2, lanes - 1, lanes, lanes + 1, 3 * lanes + 5})


@pytest.mark.parametrize("rolls", [False, True], ids=["straight", "rolled"])
@pytest.mark.parametrize(("char", "lanes"), WIDTHS)
def test_bits_do_not_depend_on_width_size_or_place(char, lanes, rolls):
    arrays = batch("small", 3 * lanes + 5, char)
    truth = known("small", "forward_dynamics", 1, char, rolls)(*arrays)
    function = known("small", "forward_dynamics", lanes, char, rolls)
    with np.errstate(
        all="ignore" if (char, lanes) == ("f", 2) else "warn"
    ):  # x86 fills two floats up to four
        for size in sizes(lanes):
            got = function(*(a[:size] for a in arrays))
            assert got.dtype == char and same_bits(got, truth[:size]), size
            assert same_bits(
                function(*(a[len(a) - size :] for a in arrays)), truth[len(truth) - size :]
            ), size
        alone = np.array([function(*(a[i] for a in arrays)) for i in range(len(truth))])
        assert same_bits(alone, truth), "one at a time"


@pytest.mark.parametrize("char", "df")
def test_bits_do_not_depend_on_the_cut(char):
    code = lowered("small", "forward_dynamics")
    arrays = batch("small", 9, char)
    truth = known("small", "forward_dynamics", 1, char)(*arrays)
    for size in (1, 7, 100, 10**9):
        assert same_bits(ufunc(code, 1, char, size=size)(*arrays), truth), size


def test_bits_do_not_depend_on_where_the_frame_lives(monkeypatch):
    arrays = batch("small", 19)
    truth = known("small", "forward_dynamics", 4)(*arrays)
    monkeypatch.setattr(kernel_module, "MAX_STACK_FRAME", 0)
    heap = ufunc(lowered("small", "forward_dynamics"), 4)
    assert same_bits(heap(*arrays), truth) and same_bits(heap(*(a[3] for a in arrays)), truth[3])


@pytest.mark.parametrize("char", "df")
def test_kernels_agree_with_the_tape(char):
    """And float32 with float64, to float32's precision."""
    code, arrays = lowered("small", "forward_dynamics"), batch("small", 11, char)
    wide = [a.astype(float) for a in arrays]
    outputs = [node for *_, node in code.stores]
    meant = np.stack(evaluate(code.tape, outputs, lambda space, i: wide[int(space)][:, i]), -1)
    got = known("small", "forward_dynamics", 4, char)(*arrays)
    np.testing.assert_allclose(
        got, meant, rtol=0, atol=(1e-13 if char == "d" else 2e-4) * np.abs(meant).max()
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200, 1e308])
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_a_bad_element_harms_no_other(lanes, bad):
    function, arrays = known("small", "forward_dynamics", lanes), batch("small", 2 * lanes + 3)
    truth = function(*arrays)
    for argument in range(3):
        for element in (0, lanes, 2 * lanes + 2):
            spoiled = [a.copy() for a in arrays]
            spoiled[argument][element, -1] = bad
            with np.errstate(all="ignore"):
                got = function(*spoiled)
            others = np.arange(len(truth)) != element
            assert same_bits(got[others], truth[others])
            assert np.isfinite(bad) or not np.isfinite(got[element]).all()


@pytest.mark.parametrize(("char", "lanes"), [w for w in WIDTHS if w != ("f", 2)])
def test_flags_are_those_of_the_elements(char, lanes):
    """No warning comes from padding, from masked lanes, or from a NaN that was there before."""
    function = known("small", "forward_dynamics", lanes, char)
    with np.errstate(all="raise", under="ignore"):
        for size in sizes(lanes):
            arrays = batch("small", size, char)
            function(*arrays)
            if size:
                arrays[1][-1, 0] = np.nan
                assert np.isnan(function(*arrays)[-1]).any()
