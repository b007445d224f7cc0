"""The tape: hash-consed scalar SSA with constant folding and zero, one and sign propagation.

Constants are Python floats until they meet a `Scalar`. Signs are stored in the `Scalar` and cost
nothing:

    x * 0 = 0         x * 1 = x       x * (-c) = -(x * c)
    x + (-y) = x - y  x - x = 0       x / c = x * (1 / c)

Customising the general equations to one robot (Khosla, Kozlowski) is therefore no more than running
them on its numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.tape.ops import (
    ADD,
    BINARY,
    COLUMN,
    CONST,
    COS,
    DIV,
    LEAF,
    LESS,
    MUL,
    NEG,
    SIN,
    SQRT,
    SUB,
    UNARY,
    Op,
)


@dataclass(frozen=True)
class Count:
    """Exact operation counts. `flops` is mul + add + div + sqrt; as in the papers, sines and
    cosines are counted separately and signs are not. A comparison counts as a subtraction.

    >>> (Count(mul=3, add=2) + Count(div=1)).flops
    6
    """

    mul: int = 0
    add: int = 0
    div: int = 0
    sqrt: int = 0
    trig: int = 0

    @property
    def flops(self) -> int:
        return self.mul + self.add + self.div + self.sqrt

    def __add__(self, other: Count) -> Count:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Count(*(x + y for x, y in pairs))

    def __mul__(self, times: int) -> Count:
        return Count(*(times * x for x in vars(self).values()))


class Tape:
    """Nodes (op, a, b) in the order of their creation; equal nodes are one node.

    With `strict`, expressions refuse comparisons: used to trace functions that users write.
    """

    def __init__(self, strict: bool = False):
        self.strict = strict
        self.nodes: list[tuple] = []
        self._index: dict[tuple, int] = {}
        self._aliases: list[tuple] = []  # (array, its leaves)

    def copy(self) -> Tape:
        """A tape with the same nodes."""
        out = Tape()
        out.nodes, out._index = list(self.nodes), dict(self._index)
        return out

    def alias(self, array: object, leaves: np.ndarray) -> None:
        """Use `leaves` wherever a traced function passes this array object on."""
        self._aliases.append((array, leaves))

    def leaves_of(self, value: object) -> Any:
        """The leaves to use for `value`; the value itself if it has no alias."""
        return next((leaves for array, leaves in self._aliases if array is value), value)

    def node(self, op: Op, a: Any, b: Any = None) -> int:
        """The number of the node (op, a, b), which is added if it is new."""
        key = (op, a, b)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.nodes)
            self.nodes.append(key)
        return index

    def find(self, op: Op, a: int, b: int) -> int | None:
        """The number of the node (op, a, b); None if the tape does not have it."""
        return self._index.get((op, a, b))

    def leaf(self, space: str, index: int) -> Scalar:
        """An input: a coordinate, a parameter, or a value that another step stored."""
        return Scalar(self, self.node(LEAF, space, index), False)

    def operand(self, value: AnyScalar) -> int:
        """The node of `value`, a Scalar or a number; a negative sign becomes a NEG node."""
        if isinstance(value, Scalar):
            return self.node(NEG, value.index) if value.negative else value.index
        return self.node(CONST, float(value))  # type: ignore[arg-type]

    def live(self, outputs: Iterable[int], known: Container[int] = ()) -> list[int]:
        """The nodes that the outputs depend on, in order; `known` nodes need no operands."""
        needed, nodes, binary, unary = set(outputs), self.nodes, BINARY, UNARY
        for index in range(max(needed, default=-1), -1, -1):
            if index in needed and index not in known:
                op, a, b = nodes[index]
                if op in binary:
                    needed.add(a)
                    needed.add(b)
                elif op in unary:
                    needed.add(a)
        return sorted(needed)

    def operations(self, outputs: Iterable[int]) -> list[int]:
        """The live nodes that are neither leaves nor constants."""
        return [index for index in self.live(outputs) if self.nodes[index][0] not in (LEAF, CONST)]

    def count(self, outputs: Iterable[int], known: Container[int] = ()) -> Count:
        """The operations that compute the outputs from the leaves and the `known` nodes."""
        columns = Counter(
            COLUMN.get(self.nodes[i][0]) for i in self.live(outputs, known) if i not in known
        )
        return Count(**{name: columns[name] for name in ("mul", "add", "div", "sqrt", "trig")})


class Scalar:
    """A tape expression: a node and a sign. It behaves like a number."""

    __slots__ = ("index", "negative", "tape")

    def __init__(self, tape: Tape, index: int, negative: bool):
        self.tape, self.index, self.negative = tape, index, negative

    def __neg__(self) -> Scalar:
        return Scalar(self.tape, self.index, not self.negative)

    def __pos__(self) -> Scalar:
        return self

    def __add__(self, other):
        if not isinstance(other, Scalar):
            if _is_elementwise(other):
                return NotImplemented
            return self if other == 0 else self._plus_constant(float(other))
        return self._plus_node(other.index, other.negative)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, Scalar):
            return self._plus_node(other.index, not other.negative)
        return self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    def __mul__(self, other):
        if not isinstance(other, Scalar):
            return NotImplemented if _is_elementwise(other) else self._times_constant(float(other))
        a, b, tape = self.index, other.index, self.tape
        node = tape.node(MUL, a, b) if a <= b else tape.node(MUL, b, a)
        return Scalar(tape, node, self.negative != other.negative)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if not isinstance(other, Scalar):
            return NotImplemented if _is_elementwise(other) else self * (1.0 / other)
        return Scalar(
            self.tape,
            self.tape.node(DIV, self.index, other.index),
            self.negative != other.negative,
        )

    def __rtruediv__(self, other):
        if _is_elementwise(other):
            return NotImplemented
        if other == 0:
            return 0.0
        numerator = self.tape.node(CONST, abs(float(other)))
        return Scalar(
            self.tape, self.tape.node(DIV, numerator, self.index), self.negative != (other < 0)
        )

    def __pow__(self, exponent: float):
        """x**n for multiples n of 1/2: x^2 = x x, x^-1 = 1 / x, x^0.5 = sqrt(x)."""
        if exponent < 0:
            return 1.0 / self**-exponent
        whole, half = divmod(float(exponent), 1.0)
        if half not in (0.0, 0.5):
            raise TypeError(
                f"x ** {exponent} of a tape expression: exponents must be multiples of 1/2"
            )
        value = self.sqrt() if half else 1.0
        for _ in range(int(whole)):
            value = self * value
        return value

    def __abs__(self) -> Scalar:
        return self * (1.0 - 2.0 * self.less(0.0))

    def __eq__(self, other: object) -> bool:
        if self.tape.strict:
            raise TypeError("== compares a number whose value is known only when the code runs")
        return self is other

    def __hash__(self) -> int:
        if self.tape.strict:
            raise TypeError("a number whose value is known only when the code runs is hashed")
        return object.__hash__(self)

    def __bool__(self) -> bool:
        raise TypeError("a branch depends on a number whose value is known only when the code runs")

    def sin(self) -> Scalar:
        return Scalar(self.tape, self.tape.node(SIN, self.index), self.negative)

    def cos(self) -> Scalar:
        return Scalar(self.tape, self.tape.node(COS, self.index), False)

    def conjugate(self) -> Scalar:
        """The number itself: it is real. NumPy's `norm` calls this."""
        return self

    def sqrt(self) -> Scalar:
        return Scalar(self.tape, self.tape.node(SQRT, self.tape.operand(self)), False)

    def less(self, other: AnyScalar) -> Scalar:
        """1 if this is below `other`, else 0."""
        return Scalar(
            self.tape,
            self.tape.node(LESS, self.tape.operand(self), self.tape.operand(other)),
            False,
        )

    def more(self, other: AnyScalar) -> Scalar:
        """1 if this is above `other`, else 0."""
        return Scalar(
            self.tape,
            self.tape.node(LESS, self.tape.operand(other), self.tape.operand(self)),
            False,
        )

    def _plus_node(self, b: int, negative: bool):
        """This plus node b, which is subtracted if `negative`."""
        a, tape = self.index, self.tape
        if self.negative == negative:
            return Scalar(tape, tape.node(ADD, a, b) if a <= b else tape.node(ADD, b, a), negative)
        return 0.0 if a == b else _difference(tape, a, b, self.negative)

    def _plus_constant(self, constant: float):
        node = self.tape.node(CONST, abs(constant))
        return self + Scalar(self.tape, node, constant < 0)

    def _times_constant(self, constant: float):
        if constant == 0:
            return 0.0
        negative = self.negative != (constant < 0)
        if abs(constant) == 1:
            return Scalar(self.tape, self.index, negative)
        node = self.tape.node(CONST, abs(constant))
        a, b = (self.index, node) if self.index <= node else (node, self.index)
        return Scalar(self.tape, self.tape.node(MUL, a, b), negative)

    def __repr__(self) -> str:
        return f"{'-' if self.negative else ''}x{self.index}"


def _is_elementwise(other: object) -> bool:
    """Whether `other` defines the operation itself, part by part: an array, or a dual number
    (`model/spatial/dual_numbers.py`)."""
    if type(other) is float:  # nearly always
        return False
    return bool(getattr(other, "shape", ())) or hasattr(other, "rate")


def _difference(tape: Tape, a: int, b: int, negative: bool) -> Scalar:
    """a - b, or b - a if negative; both directions share one node."""
    if negative:
        a, b = b, a
    reverse = tape.find(SUB, b, a)
    if reverse is not None:
        return Scalar(tape, reverse, True)
    return Scalar(tape, tape.node(SUB, a, b), False)


def operands(tape: Tape, node: int) -> tuple:
    """The nodes that a node reads."""
    op, a, b = tape.nodes[node]
    if op in BINARY:
        return a, b
    return (a,) if op in UNARY else ()
