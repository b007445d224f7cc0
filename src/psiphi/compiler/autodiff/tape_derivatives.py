"""Derivatives of a tape, written on a tape: exact, node by node.

    push    forward: what every node changes by when the leaves change by given expressions (one column at a time)
    pull    backward: what every leaf contributes to given multiples of the results (all leaves at once)

New nodes stand behind the old ones on the same tape, which folds and shares them as it does all others: zeros cost nothing.
A comparison has no derivative: it is constant on either side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Scalar, Tape


def copied(tape: Tape) -> Tape:
    """The same nodes on a tape of their own."""
    out = Tape()
    out.nodes, out._known = list(tape.nodes), dict(tape._known)
    return out


def push(tape: Tape, outputs: Iterable[int], seeds: Mapping[int, Any]) -> list[Any]:
    """The change of each output when the leaves (node: change) change so."""
    outputs = list(outputs)
    change: dict[int, Any] = dict(seeds)
    for n in tape.live(outputs):
        op, a, b = tape.nodes[n]
        if n in change or op in (Op.LEAF, Op.CONST, Op.LESS):
            continue
        da = change.get(a, 0.0)
        db = change.get(b, 0.0) if op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV) else 0.0
        if _is_zero(da) and _is_zero(db):
            continue
        change[n] = _changed(tape, n, da, db)
    return [change.get(n, 0.0) for n in outputs]


def _changed(tape: Tape, n: int, da: Any, db: Any) -> Any:
    """d of one node, from those of its operands."""
    op, a, b = tape.nodes[n]
    if op is Op.ADD:
        return da + db
    if op is Op.SUB:
        return da - db
    if op is Op.MUL:
        return da * _value(tape, b) + _value(tape, a) * db
    if op is Op.DIV:
        return (da - _value(tape, n) * db) / _value(tape, b)
    return da * _slope(tape, n)


def pull(tape: Tape, weights: Mapping[int, Any]) -> dict[int, Any]:
    """For every node what sum of weight times output changes by when it does; leaves that do not matter are absent."""
    bar: dict[int, Any] = dict(weights)

    def add(n: int, x: Any) -> None:
        bar[n] = bar[n] + x if n in bar else x

    for n in reversed(tape.live(list(weights))):
        op, a, b = tape.nodes[n]
        w = bar.get(n, 0.0)
        if _is_zero(w) or op in (Op.LEAF, Op.CONST, Op.LESS):
            continue
        if op is Op.ADD or op is Op.SUB:
            add(a, w)
            add(b, w if op is Op.ADD else -w)
        elif op is Op.MUL:
            add(a, w * _value(tape, b))
            add(b, w * _value(tape, a))
        elif op is Op.DIV:
            share = w / _value(tape, b)
            add(a, share)
            add(b, -(share * _value(tape, n)))
        else:
            add(a, w * _slope(tape, n))
    return bar


def _slope(tape: Tape, n: int) -> Any:
    """The derivative of a node of one operand."""
    op, a, _ = tape.nodes[n]
    x = _value(tape, a)
    if op is Op.NEG:
        return -1.0
    if op is Op.SIN:
        return x.cos()
    return -x.sin() if op is Op.COS else 0.5 / _value(tape, n)


def _value(tape: Tape, n: int) -> Any:
    op, a, _ = tape.nodes[n]
    return a if op is Op.CONST else Scalar(tape, n, False)


def _is_zero(x: Any) -> bool:
    return not isinstance(x, Scalar) and x == 0
