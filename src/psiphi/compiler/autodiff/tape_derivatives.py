"""Derivatives of a tape, on the same tape: exact, node by node.

    push_forward   forward mode: the changes of the outputs for changes of the leaves
    pull_back      reverse mode: the gradients of a weighted sum of nodes

New nodes are appended to the tape, which folds and shares them: zeros cost nothing. The derivative
of a comparison is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.tape.ops import ADD, BINARY, CONST, COS, DIV, LEAF, LESS, MUL, NEG, SIN, SUB
from psiphi.compiler.tape.tape import Scalar, Tape

FLAT = frozenset({LEAF, CONST, LESS})  # operations without a derivative


def push_forward(tape: Tape, outputs: Iterable[int], seeds: Mapping[int, AnyScalar]) -> list[Any]:
    """The change of each output; `seeds`: {leaf: its change}."""
    outputs = list(outputs)
    change: dict[int, Any] = dict(seeds)
    for n in tape.live(outputs):
        op, a, b = tape.nodes[n]
        if n in change or op in FLAT:
            continue
        da = change.get(a, 0.0)
        db = change.get(b, 0.0) if op in BINARY else 0.0
        if _is_zero(da) and _is_zero(db):
            continue
        change[n] = _node_change(tape, n, da, db)
    return [change.get(n, 0.0) for n in outputs]


def _node_change(tape: Tape, n: int, da: AnyScalar, db: AnyScalar) -> AnyScalar:
    """The change of a node, from those of its operands."""
    op, a, b = tape.nodes[n]
    if op is ADD:
        return da + db
    if op is SUB:
        return da - db
    if op is MUL:
        return da * _value(tape, b) + _value(tape, a) * db
    if op is DIV:
        return (da - _value(tape, n) * db) / _value(tape, b)
    return da * _slope(tape, n)


def pull_back(tape: Tape, weights: Mapping[int, AnyScalar]) -> dict[int, Any]:
    """{node: gradient of Σ weight * node}; `weights`: {node: weight}. Nodes whose gradient is zero
    may be absent."""
    bar: dict[int, Any] = dict(weights)

    def add(n: int, x: AnyScalar) -> None:
        bar[n] = bar[n] + x if n in bar else x

    for n in reversed(tape.live(list(weights))):
        op, a, b = tape.nodes[n]
        w = bar.get(n, 0.0)
        if _is_zero(w) or op in FLAT:
            continue
        if op is ADD or op is SUB:
            add(a, w)
            add(b, w if op is ADD else -w)
        elif op is MUL:
            add(a, w * _value(tape, b))
            add(b, w * _value(tape, a))
        elif op is DIV:
            share = w / _value(tape, b)
            add(a, share)
            add(b, -(share * _value(tape, n)))
        else:
            add(a, w * _slope(tape, n))
    return bar


def _slope(tape: Tape, n: int) -> Any:
    """The derivative of a unary node with respect to its operand."""
    op, a, _ = tape.nodes[n]
    x = _value(tape, a)
    if op is NEG:
        return -1.0
    if op is SIN:
        return x.cos()
    return -x.sin() if op is COS else 0.5 / _value(tape, n)


def _value(tape: Tape, n: int) -> Any:
    op, a, _ = tape.nodes[n]
    return a if op is CONST else Scalar(tape, n, False)


def _is_zero(x: object) -> bool:
    return not isinstance(x, Scalar) and x == 0
