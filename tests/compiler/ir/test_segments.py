"""Straight code in pieces: run piece by piece over one frame, it is the tape it was cut from."""

from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.ir.instruction_order import choose_order, long_lived_count
from psiphi.compiler.ir.segments import FrameLayout, Store, fused_products, split_segments
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import trace_tape
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import operands
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS
from psiphi.robot.catalogue.catalogue import CATALOGUE, quantity_program
from tests import zoo
from tests.backends.kernels import little
from tests.compiler.sweeps.runs import arguments, flat, run_tape, shaped

CODES = ["forward_dynamics", "mass_matrix_inverse", "energy"]


@pytest.fixture(scope="module", params=CODES)
def straight(request):
    model = zoo.chain("small", ["helical", "universal", "spherical", "prismatic"], seed=2)
    tree = frame_tree(model, CATALOGUE[request.param].movable_inertia)
    code = trace_tape(quantity_program(request.param, tree, (), "world"), tree)
    return model, code


def run_pieces(pieces, program, arrays):
    """What a kernel does with the pieces: one frame of values, which starts as NaN."""
    inputs = flat(program, arrays)
    frame = np.full((pieces.frame, len(inputs[0])), np.nan)
    for start, values in zip(pieces.layout.inputs, inputs, strict=True):
        frame[start : start + values.shape[-1]] = values.T

    def run(segment):
        value: dict = {}

        def read(node):
            if node in value:
                return value[node]
            op, a, _ = segment.tape.nodes[node]
            return a if op is Op.CONST else frame[segment.loads[node][1]].copy()

        for node in segment.nodes:
            op = segment.tape.nodes[node][0]
            value[node] = OP_FUNCTIONS[op](*(read(x) for x in operands(segment.tape, node)))
        for store, result in [(store, read(store.node)) for store in segment.stores]:
            frame[store.offset] = result

    def angles(of):
        for at in range(of.angle_base, of.angle_base + 3 * of.angles, 3):
            frame[at + 1], frame[at + 2] = np.sin(frame[at]), np.cos(frame[at])

    run(pieces.prologue)
    angles(pieces)
    for segment in pieces.segments:
        angles(segment)
        run(segment)
    return [
        shaped(arg, frame[places].T)
        for places, arg in zip(pieces.places, program.outputs, strict=True)
    ]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("size", [1, 2, 13, 100, 10**9])
def test_pieces_are_the_tape(straight, size, shared):
    model, code = straight
    arrays = arguments(code.program, model)
    for ours, meant in zip(
        run_pieces(split_segments(code, size, shared), code.program, arrays),
        run_tape(code, *arrays),
        strict=True,
    ):
        np.testing.assert_allclose(ours, meant, rtol=1e-13, atol=1e-13 * np.abs(meant).max())


@pytest.mark.parametrize("size", [1, 13, 100, 10**9])
def test_pieces_have_the_size_asked_for(straight, size):
    _, code = straight
    pieces = split_segments(code, size)
    lengths = [len(segment.nodes) for segment in pieces.segments if segment.name != "copies"]
    assert max(lengths) <= size + 1 and all(n >= size for n in lengths[:-1])
    nodes = [node for segment in pieces.segments for node in segment.nodes]
    assert len(nodes) == len(set(nodes)), "each node once"
    assert all(code.tape.nodes[n][0] not in (Op.SIN, Op.COS, Op.LEAF, Op.CONST) for n in nodes)


def test_no_dead_code_is_emitted(straight):
    _, code = straight
    pieces = split_segments(code)
    nodes = {node for segment in pieces.segments for node in segment.nodes}
    read = {o for n in nodes for o in operands(code.tape, n)} | {node for *_, node in code.stores}
    assert nodes <= read


def test_a_number_has_one_place():
    """Zeros, halves of symmetric matrices, inputs: a result that is there already is not stored
    again."""
    code = little([(2,)], lambda x: [[x[0] * x[1], 0.0 * x[0], x[1], x[0] * x[1], 0.0 * x[1]]])
    ((product, zero, given, again, nought),) = split_segments(code, shared=True).places
    assert product == again and zero == nought and given == 1 and len({product, zero, given}) == 3
    assert split_segments(code).places == [[2, 3, 4, 5, 6]]


def test_what_is_stored_at_once_is_not_read_afterwards():
    """A segment that writes where it reads keeps its stores for the end."""
    code = little([(2,)], lambda x: [[x[0] + x[1], x[0] - x[1]]])
    (segment,) = (s for s in split_segments(code).segments if s.nodes)
    assert segment.may_store_early
    swapped = [Store("frame", place, store.node) for place, store in enumerate(segment.stores)]
    assert not replace(segment, stores=swapped).may_store_early
    assert not replace(segment, stores=[Store("v", 9, segment.nodes[0])]).may_store_early, (
        "another base may be anywhere"
    )


def test_fewer_numbers_wait_in_the_order_of_columns():
    """Derivatives of a chain: column by column; whichever way, every node once, after what it
    reads."""
    robot = pp.robots.puma560()
    code = robot.function("forward_dynamics").jacobian("q", "v").code
    traced = [
        n
        for n in code.tape.live(n for *_, n in code.stores)
        if code.tape.nodes[n][0] not in (Op.LEAF, Op.CONST)
    ]
    found = choose_order(code, traced)
    place = {node: i for i, node in enumerate(found)}
    assert sorted(found) == sorted(traced) and long_lived_count(
        code.tape, found
    ) < 0.8 * long_lived_count(code.tape, traced)
    assert all(place.get(x, -1) < place[node] for node in found for x in operands(code.tape, node))


def test_slots_are_used_again(straight):
    """The frame of a cut tape is smaller than one slot a value."""
    _, code = straight
    pieces = split_segments(code, 20)
    crossing = {
        s.node
        for segment in pieces.segments
        for s in segment.stores
        if s.offset >= pieces.angle_base
    }
    slots = pieces.frame - pieces.angle_base - 3 * pieces.angles
    assert 0 < slots < 0.8 * len(crossing)


def test_each_angle_is_taken_once(straight):
    model, code = straight
    pieces = split_segments(code)
    assert pieces.angles * 2 == code.count.trig or pieces.angles == len(pieces.prologue.stores)
    assert len({store.node for store in pieces.prologue.stores}) == pieces.angles


def test_riders_stay_with_their_sums():
    """No cut parts a product from the sum it rides in; a product with two readers rides nowhere."""
    code = little(
        [(4,)], lambda x: [[x[0] * x[1] + x[2] * x[3], (x[0] * x[2]) - x[1], (x[0] * x[2]) + x[3]]]
    )
    nodes = [
        n
        for n in code.tape.live(n for *_, n in code.stores)
        if code.tape.nodes[n][0] not in (Op.LEAF, Op.CONST)
    ]
    stored = [n for *_, n in code.stores]
    riding = fused_products(code.tape, nodes, stored)
    assert len(riding) == 1, "one of the first two"
    ((total, product),) = riding.items()
    assert code.tape.nodes[total][2] == product and code.tape.nodes[product][0] is Op.MUL
    for segment in split_segments(code, 1).segments:
        assert (total in segment.nodes) == (product in segment.nodes)
    assert fused_products(code.tape, nodes, [*stored, product]) == {
        total: code.tape.nodes[total][1]
    }, "a stored product does not ride"


@pytest.mark.parametrize("size", [0, 1, 3])
def test_sines_of_sines_come_round_by_round(size):
    def deep(x):
        y = x[0].sin().cos() * x[1]
        return [
            [(y + x[1]).sin() + x[0].sin(), y, (x[0] * x[1]).sin().sin().sin(), x[1].cos().sin()]
        ]

    code = little([(2,)], deep)
    pieces = split_segments(code, size)
    assert sum(s.angles > 0 for s in pieces.segments) == 2
    x, z = 0.7, -1.3
    y = np.cos(np.sin(x)) * z
    wanted = [np.sin(y + z) + np.sin(x), y, np.sin(np.sin(np.sin(x * z))), np.sin(np.cos(z))]
    (found,) = run_pieces(pieces, code.program, [np.array([[x, z]])])
    assert np.allclose(found[0], wanted, rtol=0, atol=1e-15)


def test_layout_puts_arguments_in_a_row():
    args = [Argument("a", (2, 3)), Argument("b", ()), Argument("c", (4,))]
    layout = FrameLayout.of(args[:2], args[2:])
    assert (layout.inputs, layout.outputs, layout.size) == ((0, 6), (7,), 11)
