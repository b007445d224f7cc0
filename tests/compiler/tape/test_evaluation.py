"""Random expressions: what the tape means is what Python means, and folding never adds work."""

import operator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.spatial.dual_numbers import Dual
from tests.compiler.tape.expressions import POINTS, programs, run


@given(programs(), POINTS)
def test_tape_means_what_python_means(program, point):
    """To the last bit: signs and sharing round nothing."""
    tape = Tape()
    handles, numbers, _ = run(tape, program, point)
    found = evaluate(
        tape, [tape.operand(h) for h in handles], lambda space, index: np.float64(point[index])
    )
    assert [float(x) for x in found] == [float(x) for x in numbers]


def test_numbers_with_a_rate_stand_on_either_side():
    """An expression and one with a rate: sums, products and quotients of them, whichever stands
    first."""
    tape = Tape()
    x, y, dy = (tape.leaf("x", i) for i in range(3))
    moving, known = Dual(y, dy), Dual(0.7, 0.3)
    for way in (operator.add, operator.sub, operator.mul, operator.truediv):
        for found, truth in ((way(x, moving), way(1.3, known)), (way(moving, x), way(known, 1.3))):
            values = evaluate(
                tape,
                [tape.operand(found.value), tape.operand(found.rate)],
                lambda _, i: (1.3, 0.7, 0.3)[i],
            )
            assert np.allclose(values, [truth.value, truth.rate], rtol=1e-15)


@given(programs(), POINTS)
def test_folding_never_adds_work(program, point):
    tape = Tape()
    handles, _, done = run(tape, program, point)
    count = tape.count([tape.operand(h) for h in handles])
    assert count.flops + count.trig <= done


@given(programs(), POINTS)
def test_the_same_again_is_free(program, point):
    tape = Tape()
    first, *_ = run(tape, program, point)
    made = len(tape.nodes)
    again, *_ = run(tape, program, point)
    assert len(tape.nodes) == made
    for a, b in zip(first, again, strict=True):
        assert (a.index, a.negative) == (b.index, b.negative) if isinstance(a, Scalar) else a == b


@given(programs(), POINTS)
def test_nodes_come_after_what_they_read(program, point):
    """Single assignment, in order, each node once; what is live reads only what is live."""
    tape = Tape()
    handles, *_ = run(tape, program, point)
    assert len(set(tape.nodes)) == len(tape.nodes)
    live = tape.live([tape.operand(h) for h in handles[-3:]])
    for index in live:
        op, a, b = tape.nodes[index]
        reads = {a, b} if op in BINARY else set() if op in (Op.LEAF, Op.CONST) else {a}
        assert all(r < index and r in live for r in reads)


@given(programs(), st.lists(POINTS, min_size=2, max_size=4))
def test_an_array_is_its_elements(program, points):
    tape = Tape()
    handles, *_ = run(tape, program, points[0])
    outputs = [tape.operand(h) for h in handles]
    batch = np.array(points)
    with np.errstate(all="ignore"):
        together = evaluate(tape, outputs, lambda space, index: batch[:, index])
        alone = [
            evaluate(tape, outputs, lambda space, index, p=p: np.float64(p[index])) for p in points
        ]
    for i, column in enumerate(together):
        expected = np.array([row[i] for row in alone])
        np.testing.assert_array_max_ulp(
            np.broadcast_to(column, len(points)).astype(float), expected.astype(float), 2
        )
