"""Registers by hand on processors: whatever is held where, the bits are the same, and no more is
held than was said."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import (
    MAX_POINTERS,
    POINTER_REACH,
    FrameSpills,
    pointer_targets,
    segment_function,
)
from psiphi.compiler.ir.segments import Segment, Store, split_segments
from psiphi.compiler.tape.tape import Tape
from tests.backends.kernels import batch, known, little, lowered, most_alive, same_bits, ufunc

NUMBERS = [5, 12, 28]


@pytest.mark.parametrize("registers", NUMBERS)
@pytest.mark.parametrize(("char", "lanes"), [("d", 1), ("d", 4), ("d", 8), ("f", 16)])
@pytest.mark.parametrize(
    ("model", "quantity"), [("arm", "forward_dynamics"), ("small", "mass_matrix")]
)
def test_bits_do_not_depend_on_registers(model, quantity, char, lanes, registers):
    """Nor on the pieces into which the tape is cut."""
    code, given = (
        lowered(model, quantity),
        batch(model, 11, char)[: len(lowered(model, quantity).program.inputs)],
    )
    expected = known(model, quantity, lanes, char)(*given)
    for size in (0, 40):
        assert same_bits(ufunc(code, lanes, char, size=size, registers=registers)(*given), expected)


@pytest.mark.parametrize("registers", NUMBERS)
@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics"])
def test_loops_over_links(quantity, registers):
    """Their steps write to where their neighbours read: results go out at the end of a step, and
    LLVM keeps them."""
    code, given = lowered("limbs", quantity, rolls=True), batch("limbs", 9, "d")
    assert same_bits(ufunc(code, 4, registers=registers)(*given), ufunc(code, 4)(*given))


@pytest.mark.parametrize("fma", [True, False])
def test_without_fused_sums(fma):
    given = batch("arm", 5, "d")
    with_few = ufunc(lowered("arm", "forward_dynamics"), 4, fma=fma, registers=5)(*given)
    assert same_bits(with_few, ufunc(lowered("arm", "forward_dynamics"), 4, fma=fma)(*given))


@pytest.mark.parametrize("registers", [4, 10, 25])
def test_no_more_are_held_than_said(registers):
    """Counted at every line of every piece; each number is written once, and no parking place
    beyond the last is touched."""
    for segment in split_segments(lowered("limbs", "forward_dynamics")).segments:
        parking = FrameSpills(segment, Width("double", 8, registers))
        lines = parking.body()
        assert (
            most_alive(lines) <= registers + 5
        )  # and what one instruction reads, negates and makes
        places = [int(x) // 64 for x in re.findall(r"ptr %park, i64 (\d+)", "\n".join(lines))]
        assert max(places, default=-1) == parking.slot_count - 1
        assert sum("store " in line for line in lines) <= len(segment.nodes) + len(segment.stores)


def test_a_result_that_stands_in_the_frame_is_not_parked():
    """It is read where it was stored: of ten numbers that are stored and wanted again, none is
    written twice."""
    code = little([(10,)], lambda x: [[a * a for a in x], [sum((a * a for a in x), 0.0) * x[3]]])
    (segment,) = [s for s in split_segments(code).segments if s.nodes]
    parking = FrameSpills(segment, Width("double", 8, 3))
    assert "%park" not in "\n".join(parking.body()) and parking.slot_count == 0


def test_a_sum_in_the_frame_is_not_what_was_added_to_it():
    tape = Tape()
    x = [tape.leaf("0", i) for i in range(6)]
    square, rest = x[0] * x[0], [x[i] * x[i + 1] for i in range(1, 5)]
    last = square * rest[0]
    nodes = [tape.operand(value) for value in (square, *rest, last)]
    given = {tape.operand(value): ("frame", i) for i, value in enumerate(x)}
    stores = [
        Store("frame", 6, nodes[0], accumulate=True),
        *(Store("frame", 7 + i, node) for i, node in enumerate(nodes[1:])),
    ]
    frame = np.arange(1.0, 13.0)
    found = _run(
        FrameSpills(Segment("sums", tape, nodes, stores, given), Width("double", 1, 1)).body(),
        frame.copy(),
    )
    assert same_bits(found[6:], np.array([7.0 + 1.0, 6.0, 12.0, 20.0, 30.0, 6.0]))


def test_results_that_go_where_others_are_read_wait():
    """y goes where x stands: all of x is read before."""
    tape = Tape()
    x = [tape.leaf("0", i) for i in range(12)]
    nodes = [tape.operand(a * b) for a, b in zip(x, [*x[1:], x[0]], strict=True)]
    given = {tape.operand(value): ("frame", i) for i, value in enumerate(x)}
    segment = Segment(
        "swap", tape, nodes, [Store("frame", i, node) for i, node in enumerate(nodes)], given
    )
    text = segment_function("swap", ["frame"], segment, Width("double", 1, 3))
    assert "%park" not in text
    frame = np.arange(1.0, 13.0)
    found = _run([line.strip() for line in text.splitlines()[1:-2]], frame.copy())
    assert same_bits(found, frame * np.roll(frame, -1))


def _run(lines: list[str], frame: np.ndarray) -> np.ndarray:
    """The lines, executed."""
    held: dict[str, float] = {}
    places: dict[str, tuple[str, int]] = {}
    memory = {("frame", i): x for i, x in enumerate(frame)}
    for line in lines:
        if found := re.match(r"(%t\d+) = getelementptr i8, ptr %(\w+), i64 (\d+)", line):
            places[found[1]] = found[2], int(found[3]) // 8
        elif found := re.match(r"(%t\d+) = load (?:volatile )?double, ptr (%t\d+)", line):
            held[found[1]] = memory[places[found[2]]]
        elif found := re.match(r"store (?:volatile )?double (%t\d+), ptr (%t\d+)", line):
            memory[places[found[2]]] = held[found[1]]
        elif found := re.match(r"(%t\d+) = f(mul|add) double (%t\d+), (%t\d+)", line):
            a, b = held[found[3]], held[found[4]]
            held[found[1]] = a * b if found[2] == "mul" else a + b
        else:
            raise AssertionError(line)
    return np.array([memory["frame", i] for i in range(len(frame))])


def test_pointers_go_where_most_is_read():
    asked = Counter(
        {0: 9, 5: 9, 1000: 1, 1001: 5, 1200: 5, 5000: 3, 9000: 2, 20_000: 1, 30_000: 1, 40_000: 1}
    )
    found = pointer_targets(asked)
    assert len(found) == MAX_POINTERS and all(at >= POINTER_REACH for at in found)
    assert all(-POINTER_REACH <= place - found[0] < POINTER_REACH for place in (1000, 1001, 1200))
    reached = [
        place
        for place in asked
        if place < POINTER_REACH
        or any(-POINTER_REACH <= place - at < POINTER_REACH for at in found)
    ]
    assert len(reached) == len(asked) - 1
    assert pointer_targets(Counter({3: 1, 127: 4})) == []


def test_pieces_of_long_frames_are_passed_pointers():
    """Only those of registers as wide as a line of memory: there an instruction names a place near
    a pointer in one byte."""
    pieces = split_segments(lowered("limbs", "mass_matrix"), 300)
    for lanes, near in ((8, True), (4, False)):
        text = "".join(
            segment_function(s.name, ["frame"], s, Width("double", lanes, 28), fma=True)
            for s in pieces.segments
        )
        assert ("ptr %near0, i64 -" in text and ".near(ptr %frame, ptr %near0" in text) is near
