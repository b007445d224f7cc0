"""Neighbours change places: every number after what it reads, none far from its place, and a
processor waits less."""

import pytest

from psiphi.compiler.ir import latency_order, segments
from psiphi.compiler.ir.instruction_order import choose_order
from psiphi.compiler.ir.latency_order import CYCLES, FMA_CYCLES, ISSUE_WIDTH, WINDOW, hide_latency
from psiphi.compiler.ir.segments import fused_products
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import operands
from tests.backends.kernels import batch, lowered, same_bits, ufunc

CASES = [
    ("arm", "forward_dynamics"),
    ("limbs", "forward_dynamics"),
    ("small", "mass_matrix"),
    ("limbs", "inverse_dynamics"),
]


def orders(name: str, what: str):
    """Tape, the body as it was, riders, and the body interleaved."""
    straight = lowered(name, what)
    tape, stored = straight.tape, [node for *_, node in straight.stores]
    body = [i for i in tape.operations(stored) if tape.nodes[i][0] not in (Op.SIN, Op.COS)]
    body = choose_order(straight, body)
    riding = fused_products(tape, body, stored)
    return tape, body, riding, hide_latency(tape, body, riding)


@pytest.mark.parametrize(("name", "what"), CASES)
def test_every_number_stands_after_what_it_reads(name, what):
    tape, body, riding, found = orders(name, what)
    assert sorted(found) == sorted(body)
    place = {node: i for i, node in enumerate(found)}
    assert all(
        place[read] < i
        for i, node in enumerate(found)
        for read in operands(tape, node)
        if read in place
    )
    assert all(place[product] == place[total] - 1 for total, product in riding.items())


@pytest.mark.parametrize(("name", "what"), CASES)
def test_none_overtakes_more_than_a_window(name, what):
    _, body, riding, found = orders(name, what)
    passengers = set(riding.values())
    before, after = ([node for node in order if node not in passengers] for order in (body, found))
    place = {node: i for i, node in enumerate(before)}
    left = set(before)
    for node in after:
        assert place[node] < min(place[x] for x in left) + WINDOW
        left.remove(node)


def waits(tape, riding, order) -> int:
    """Cycles of a machine that begins WIDTH nodes a cycle, in this order and no other."""
    passengers, done, cycle, begun = set(riding.values()), {}, 0, 0
    for node in (node for node in order if node not in passengers):
        read = [
            x
            for o in operands(tape, node)
            for x in (operands(tape, o) if o in passengers else (o,))
        ]
        ready = max((done.get(x, 0) for x in read), default=0)
        if ready > cycle or begun == ISSUE_WIDTH:
            cycle, begun = max(ready, cycle + (begun == ISSUE_WIDTH)), 0
        begun += 1
        done[node] = cycle + (FMA_CYCLES if node in riding else CYCLES.get(tape.nodes[node][0], 1))
    return max(done.values())


@pytest.mark.parametrize(("name", "what"), CASES)
def test_a_processor_waits_less(name, what):
    tape, body, riding, found = orders(name, what)
    assert waits(tape, riding, found) < 0.9 * waits(tape, riding, body)


def test_the_bits_are_the_same(monkeypatch):
    given = batch("limbs", 11)
    truth = ufunc(lowered("limbs", "forward_dynamics"), 4)(*given)
    monkeypatch.setattr(segments, "hide_latency", lambda tape, body, riding: body)
    assert same_bits(ufunc(lowered("limbs", "forward_dynamics"), 4)(*given), truth)
    monkeypatch.setattr(segments, "hide_latency", hide_latency)
    monkeypatch.setattr(latency_order, "WINDOW", 1000)
    assert same_bits(ufunc(lowered("limbs", "forward_dynamics"), 4)(*given), truth)
