"""What the tape folds, shares and counts: one line a rule, each rule checked as an equality of
handles and by its value."""

from operator import neg

import numpy as np
import pytest

from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Count, Scalar, Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.spatial.screws import cosine, cross, dot, sine
from psiphi.model.spatial.small_matrices import apply

VALUES = {"x": 0.7, "y": -1.3}

RULES = {
    # zeros and ones vanish
    "x * 0 = 0": (lambda x, y: x * 0.0, lambda x, y: 0.0),
    "0 * x = 0": (lambda x, y: 0.0 * x, lambda x, y: 0.0),
    "x * -0 = 0": (lambda x, y: x * -0.0, lambda x, y: 0.0),
    "x * 1 = x": (lambda x, y: x * 1.0, lambda x, y: x),
    "1 * x = x": (lambda x, y: 1.0 * x, lambda x, y: x),
    "x * -1 = -x": (lambda x, y: x * -1.0, lambda x, y: -x),
    "x + 0 = x": (lambda x, y: x + 0.0, lambda x, y: x),
    "0 + x = x": (lambda x, y: 0.0 + x, lambda x, y: x),
    "x - 0 = x": (lambda x, y: x - 0.0, lambda x, y: x),
    "0 - x = -x": (lambda x, y: 0.0 - x, lambda x, y: -x),
    "x - x = 0": (lambda x, y: x - x, lambda x, y: 0.0),
    "-x + x = 0": (lambda x, y: -x + x, lambda x, y: 0.0),
    "x / 1 = x": (lambda x, y: x / 1.0, lambda x, y: x),
    "x / -1 = -x": (lambda x, y: x / -1.0, lambda x, y: -x),
    "0 / x = 0": (lambda x, y: 0.0 / x, lambda x, y: 0.0),
    # signs move out, into the handle
    "--x = x": (lambda x, y: neg(-x), lambda x, y: x),
    "+x = x": (lambda x, y: +x, lambda x, y: x),
    "(-x) y = -(x y)": (lambda x, y: -x * y, lambda x, y: -(x * y)),
    "x (-y) = -(x y)": (lambda x, y: x * -y, lambda x, y: -(x * y)),
    "(-x) (-y) = x y": (lambda x, y: -x * -y, lambda x, y: x * y),
    "x (-c) = -(x c)": (lambda x, y: x * -2.5, lambda x, y: -(x * 2.5)),
    "(-x) c = -(x c)": (lambda x, y: -x * 2.5, lambda x, y: -(x * 2.5)),
    "(-x) (-c) = x c": (lambda x, y: -x * -2.5, lambda x, y: x * 2.5),
    "x + (-y) = x - y": (lambda x, y: x + -y, lambda x, y: x - y),
    "-x + y = y - x": (lambda x, y: -x + y, lambda x, y: y - x),
    "-x - y = -(x + y)": (lambda x, y: -x - y, lambda x, y: -(x + y)),
    "x - (-y) = x + y": (lambda x, y: x - -y, lambda x, y: x + y),
    "x + (-c) = x - c": (lambda x, y: x + -2.5, lambda x, y: x - 2.5),
    "-x - c = -(x + c)": (lambda x, y: -x - 2.5, lambda x, y: -(x + 2.5)),
    "x / (-y) = -(x / y)": (lambda x, y: x / -y, lambda x, y: -(x / y)),
    "(-x) / y = -(x / y)": (lambda x, y: -x / y, lambda x, y: -(x / y)),
    "(-x) / (-y) = x / y": (lambda x, y: -x / -y, lambda x, y: x / y),
    "-c / x = -(c / x)": (lambda x, y: -2.5 / x, lambda x, y: -(2.5 / x)),
    "-c / (-x) = c / x": (lambda x, y: -2.5 / -x, lambda x, y: 2.5 / x),
    "sin(-x) = -sin x": (lambda x, y: sine(-x), lambda x, y: -sine(x)),
    "cos(-x) = cos x": (lambda x, y: cosine(-x), lambda x, y: cosine(x)),
    # order does not matter where it must not
    "x + y = y + x": (lambda x, y: x + y, lambda x, y: y + x),
    "x y = y x": (lambda x, y: x * y, lambda x, y: y * x),
    "x + c = c + x": (lambda x, y: x + 2.5, lambda x, y: 2.5 + x),
    "x c = c x": (lambda x, y: x * 2.5, lambda x, y: 2.5 * x),
    "y - x = -(x - y)": (lambda x, y: y - x, lambda x, y: -(x - y)),
    "c - x = -(x - c)": (lambda x, y: 2.5 - x, lambda x, y: -(x - 2.5)),
    # a constant divides by its reciprocal
    "x / c = x (1 / c)": (lambda x, y: x / 4.0, lambda x, y: x * 0.25),
    "x / (-c) = -(x / c)": (lambda x, y: x / -4.0, lambda x, y: -(x * 0.25)),
}

DIFFERENT = {
    "x / y, y / x": (lambda x, y: x / y, lambda x, y: y / x),
    "x - y, x + y": (lambda x, y: x - y, lambda x, y: x + y),
    "x - y, y - x": (lambda x, y: x - y, lambda x, y: y - x),
    "x c, x d": (lambda x, y: x * 2.0, lambda x, y: x * 3.0),
    "x + c, x - c": (lambda x, y: x + 2.0, lambda x, y: x - 2.0),
    "x + c, c x": (lambda x, y: x + 2.0, lambda x, y: x * 2.0),
    "sin x, cos x": (lambda x, y: x.sin(), lambda x, y: x.cos()),
    "sqrt x, sqrt -x": (lambda x, y: x.sqrt(), lambda x, y: (-x).sqrt()),
    "x x, x + x": (lambda x, y: x * x, lambda x, y: x + x),
    "x / x, 1": (lambda x, y: x / x, lambda x, y: 1.0),
}


def leaves(*names: str) -> tuple[Tape, list[Scalar]]:
    tape = Tape()
    return tape, [tape.leaf(name, 0) for name in names]


def same(a, b) -> bool:
    """One value: the same number, or the same node with the same sign."""
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return (a.index, a.negative) == (b.index, b.negative)
    return not isinstance(a, Scalar) and not isinstance(b, Scalar) and a == b


def value(tape: Tape, handle, given=None):
    """The handle's value where the leaves have the values `given`."""
    values = VALUES if given is None else given
    with np.errstate(all="ignore"):
        return evaluate(
            tape, [tape.operand(handle)], lambda space, index: np.float64(values[space])
        )[0]


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule):
    tape, (x, y) = leaves("x", "y")
    left, right = RULES[rule]
    a, b = left(x, y), right(x, y)
    assert same(a, b), f"{rule}: {a} and {b}"
    assert value(tape, a) == left(VALUES["x"], VALUES["y"])


@pytest.mark.parametrize("rule", RULES)
def test_rule_in_the_other_order(rule):
    """What was made first must not matter, save for which of a - b and b - a is the node."""
    _, (x, y) = leaves("x", "y")
    left, right = RULES[rule]
    b, a = right(x, y), left(x, y)
    assert same(a, b), f"{rule}: {a} and {b}"


@pytest.mark.parametrize("pair", DIFFERENT)
def test_different_things_stay_different(pair):
    _, (x, y) = leaves("x", "y")
    left, right = DIFFERENT[pair]
    assert not same(left(x, y), right(x, y))


def test_leaves_are_known_by_space_and_index():
    tape = Tape()
    handles = [tape.leaf("q", 0), tape.leaf("q", 1), tape.leaf("v", 0)]
    assert len({h.index for h in handles}) == 3
    assert same(tape.leaf("q", 1), handles[1]) and len(tape.nodes) == 3


def test_equal_expressions_are_one_node():
    tape, (x, y) = leaves("x", "y")
    first = (x * y + 2.0) / (x - y)
    made = len(tape.nodes)
    assert same((2.0 + y * x) / (x - y), first)
    assert same((y * x + 2.0) / (y - x), -first)  # x - y and y - x share
    assert len(tape.nodes) == made


def test_nothing_hides_a_division_by_zero():
    """Only constants fold: a quotient whose divisor may vanish stays on the tape."""
    tape, (x, y) = leaves("x", "y")
    at_zero = {"x": 0.0, "y": 3.0}
    assert np.isnan(value(tape, x / x, at_zero))
    assert value(tape, y / x, at_zero) == np.inf and value(tape, -y / x, at_zero) == -np.inf
    assert value(tape, 1.0 / x, at_zero) == np.inf and value(tape, -2.0 / x, at_zero) == -np.inf
    assert np.isnan(value(tape, (x * y) / x, at_zero))
    with pytest.raises(ZeroDivisionError):
        x / 0.0


def test_constants_that_are_no_numbers_are_not_folded_away():
    tape, (x,) = leaves("x")
    for bad in (np.nan, np.inf, -np.inf):
        assert value(tape, x * bad, {"x": 2.0}) == 2.0 * bad or np.isnan(bad)
        assert np.isnan(value(tape, x * bad)) == np.isnan(bad) and not np.isfinite(
            value(tape, x + bad)
        )


@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64])
def test_constants_of_any_type_on_either_side(kind):
    tape, (x,) = leaves("x")
    c, zero, one = kind(2), kind(0), kind(1)
    for ours, direct in (
        (x * c, 1.4),
        (c * x, 1.4),
        (x + c, 2.7),
        (c + x, 2.7),
        (x - c, -1.3),
        (c - x, 1.3),
        (c / x, 2 / 0.7),
    ):
        assert isinstance(ours, Scalar) and value(tape, ours) == pytest.approx(direct, rel=1e-15)
    assert same(x * one, x) and same(one * x, x) and same(x + zero, x) and same(zero + x, x)
    assert same(x * zero, 0.0) and same(zero * x, 0.0)


def test_a_sign_becomes_a_node_only_where_it_leaves():
    tape, (x, y) = leaves("x", "y")
    product = -x * y
    assert Op.NEG not in {op for op, *_ in tape.nodes}
    out = tape.operand(product)
    assert tape.nodes[out] == (Op.NEG, product.index, None)
    assert tape.operand(-product) == product.index and tape.operand(product) == out
    assert value(tape, product) == -(VALUES["x"] * VALUES["y"])
    assert value(tape, (-y).sqrt()) == np.sqrt(1.3), "the sign goes under the root"
    assert tape.nodes[tape.operand(-2.5)] == (Op.CONST, -2.5, None), "a constant carries its own"


def test_dead_code_is_neither_live_nor_counted():
    tape, (x, y) = leaves("x", "y")
    wanted, _ = x * y, (x / y).sin() + 3.0
    assert tape.live([wanted.index]) == [x.index, y.index, wanted.index]
    assert tape.count([wanted.index]) == Count(mul=1)
    assert tape.live([]) == [] and tape.count([]) == Count()


def test_what_is_given_costs_nothing():
    tape, (x, y) = leaves("x", "y")
    known = (x * y).sin()
    out = known * x + y
    assert tape.count([out.index]) == Count(mul=2, add=1, trig=1)
    assert tape.count([out.index], {known.index}) == Count(mul=1, add=1)
    assert known.index - 1 not in tape.live([out.index], {known.index}), (
        "nor does what it is made of"
    )


COUNTS = {
    "dot product": (lambda a, b: [dot(a, b)], Count(mul=3, add=2)),
    "cross product": (lambda a, b: cross(a, b), Count(mul=6, add=3)),
    "a x b and b x a": (lambda a, b: cross(a, b) + cross(b, a), Count(mul=6, add=3)),
    "matrix times vector": (lambda a, b: apply([a, b, a], b), Count(mul=6, add=4)),
    "matrix with ones and zeros": (
        lambda a, b: apply([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]], a),
        Count(),
    ),
    "sine and cosine": (lambda a, b: [a[0].sin(), a[0].cos(), (-a[0]).sin()], Count(trig=2)),
    "quotient and root": (
        lambda a, b: [a[0] / b[0], a[1].sqrt(), 1.0 / a[0]],
        Count(div=2, sqrt=1),
    ),
    "negation": (lambda a, b: [-a[0], -(a[0] * b[0])], Count(mul=1)),
    "square of a difference": (lambda a, b: [(a[0] - b[0]) * (b[0] - a[0])], Count(mul=1, add=1)),
    "division by a constant": (lambda a, b: [a[0] / 3.0], Count(mul=1)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_count(name):
    tape = Tape()
    a, b = ([tape.leaf(s, i) for i in range(3)] for s in "ab")
    make, count = COUNTS[name]
    assert tape.count([tape.operand(out) for out in make(a, b)]) == count


def test_counts_add_and_multiply():
    one = Count(mul=1, add=2, div=3, sqrt=4, trig=5)
    assert one + one == one * 2 == Count(2, 4, 6, 8, 10)
    assert one.flops == 1 + 2 + 3 + 4, "sines and cosines stand apart"
