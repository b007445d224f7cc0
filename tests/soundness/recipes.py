"""What a user writes, as plain data: a tree of letters, products, sums, .T, .inv, .dot(), and the
Python that writes it.

A recipe is no psiphi expression. `text` is the source a user would type, `read` is its inverse (it
reads what `repr(expression)` prints, too), and the oracle gives a recipe its value without asking
psiphi.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

BINARY = {"product": " @ ", "sum": " + ", "difference": " - "}


class Node(NamedTuple):
    """One node: `op` and what it holds (nodes, names, numbers)."""

    op: str
    args: tuple[Any, ...]

    def __matmul__(self, other: Node) -> Node:
        return Node("product", (self, other))

    def __add__(self, other: Node) -> Node:
        return Node("sum", (self, other))

    def __sub__(self, other: Node) -> Node:
        return Node("difference", (self, other))

    def __rmul__(self, c: Any) -> Node:
        return Node("scale", (c, self))

    @property
    def T(self) -> Node:
        return Node("T", (self,))

    @property
    def inv(self) -> Node:
        return Node("inv", (self,))

    def dot(self, frame: str = "local") -> Node:
        return Node("dot", (self, frame))

    def __str__(self) -> str:
        return text(self)


def letter(name: str) -> Node:
    """s.name"""
    return Node("letter", (name,))


def frames(kind: str, *names: str, axes: str = "world") -> Node:
    """s.B(...) or s.J(...)"""
    return Node("frames", (kind, names, axes))


def vector(name: str, space: str) -> Node:
    """pp.vector(name, space)"""
    return Node("vector", (name, space))


def symbol(name: str, space: str) -> Node:
    """s.symbol(name, space): any block diagonal."""
    return Node("symbol", (name, space))


def children(node: Node) -> tuple[Node, ...]:
    return tuple(x for x in node.args if isinstance(x, Node))


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def size(node: Node) -> int:
    return sum(1 for _ in walk(node))


def named(node: Node) -> dict[str, str]:
    """{name: space} of the vectors that must be given; under .dot() also those of their rates."""
    found = {x.args[0]: x.args[1] for x in walk(node) if x.op == "vector"}
    for dotted in (x for x in walk(node) if x.op == "dot"):
        found |= {f"{name}_dot": space for name, space in named(dotted.args[0]).items()}
    return found


def text(node: Node, tight: bool = False) -> str:
    """Python that writes it, with `s` for the robot's operators and `pp` for psiphi."""
    op, args = node
    if op in BINARY:
        left, right = args
        written = (
            text(left, op == "product" and left.op != "product") + BINARY[op] + text(right, True)
        )
        return f"({written})" if tight else written
    if op == "scale":
        written = (
            f"{args[0]} * {text(args[1], True)}"
            if not isinstance(args[0], Fraction)
            else _fraction(args[0], args[1])
        )
        return f"({written})" if tight else written
    if op in ("T", "inv"):
        return f"{text(args[0], True)}.{op}"
    if op == "dot":
        return f"{text(args[0], True)}.dot({'' if args[1] == 'local' else repr(args[1])})"
    if op == "letter":
        return f"s.{args[0]}"
    if op == "frames":
        axes = "" if args[2] == "world" else f", axes={args[2]!r}"
        return f"s.{args[0]}({', '.join(map(repr, args[1]))}{axes})"
    return (
        f"pp.{op}({args[0]!r}, {args[1]!r})"
        if op == "vector"
        else f"s.{op}({args[0]!r}, {args[1]!r})"
    )


def _fraction(c: Fraction, inner: Node) -> str:
    return f"{c.numerator} * {text(inner, True)} / {c.denominator}"


def read(source: str) -> Node:
    """The recipe of Python source: of `text(node)`, or of the repr of an expression."""
    return _read(ast.parse(source.strip(), mode="eval").body)


_OPERATORS = {ast.MatMult: "product", ast.Add: "sum", ast.Sub: "difference"}


def _read(node: ast.AST) -> Node:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return Node(_OPERATORS[type(node.op)], (_read(node.left), _read(node.right)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _number(node.left) * _read(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        inner, c = _read(node.left), 1 / Fraction(_number(node.right))
        return (
            (c * inner.args[0]) * inner.args[1]
            if inner.op == "scale" and isinstance(inner.args[0], int)
            else c * inner
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -1 * _read(node.operand)
    if isinstance(node, ast.Attribute) and node.attr in ("T", "inv"):
        return Node(node.attr, (_read(node.value),))
    if isinstance(node, ast.Attribute):
        return letter(node.attr)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        words = [ast.literal_eval(x) for x in node.args]
        options = {x.arg: ast.literal_eval(x.value) for x in node.keywords}
        if node.func.attr in ("B", "J"):
            return frames(node.func.attr, *words, **options)
        if node.func.attr == "dot":
            return _read(node.func.value).dot(*words, **options)
        if node.func.attr in ("vector", "symbol"):
            return Node(
                node.func.attr,
                (words[0], words[1] if len(words) > 1 else options.get("space", "joint")),
            )
    raise ValueError(f"not part of the language: {ast.unparse(node)}")  # type: ignore[arg-type]


def _number(node: ast.AST) -> Any:
    return ast.literal_eval(ast.unparse(node))  # type: ignore[arg-type]
