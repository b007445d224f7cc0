"""The tape: hash-consed scalar SSA with constant folding and zero, one and sign propagation.

Constants stay Python floats until they meet a `Scalar`, signs live in the handle and cost nothing:

    x * 0 = 0    x * 1 = x    x * (-c) = -(x * c)    x + (-y) = x - y    x - x = 0    x / c = x * (1 / c)

so that customising the general equations to one robot (Khosla, Kozlowski) is nothing but running them on its numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass

from psiphi.compiler.tape.ops import BINARY, COLUMN, Op


@dataclass(frozen=True)
class Count:
    """Exact operation counts. `flops` is mul + add + div + sqrt; sines, cosines and signs stand apart, as in the papers.
    A comparison counts as the subtraction it is.

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
    """Nodes (op, a, b) in the order they were made; equal nodes are one node."""

    def __init__(self, strict: bool = False):
        self.strict = strict  # whether its expressions refuse to be compared: where a user's own function is traced
        self.nodes: list[tuple] = []
        self._known: dict[tuple, int] = {}
        self._standing: list[tuple] = []  # arrays from outside, and the leaves that they are here

    def stand(self, array, leaves) -> None:
        """Let leaves stand for an array from outside, wherever a function that is traced hands on that array itself."""
        self._standing.append((array, leaves))

    def placed(self, value):
        """The leaves that stand for a value, or the value."""
        return next((leaves for array, leaves in self._standing if array is value), value)

    def node(self, op: Op, a, b=None) -> int:
        key = (op, a, b)
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return index

    def leaf(self, space: str, index: int) -> Scalar:
        """A value from outside: an input coordinate, a parameter, a kept value."""
        return Scalar(self, self.node(Op.LEAF, space, index), False)

    def operand(self, value) -> int:
        """The node that holds `value`, a Scalar or a number; a negative sign becomes a NEG node."""
        if isinstance(value, Scalar):
            return self.node(Op.NEG, value.index) if value.negative else value.index
        return self.node(Op.CONST, float(value))

    def live(self, outputs: Iterable[int], given: Container[int] = ()) -> list[int]:
        """The nodes the outputs depend on, in order, short of what the nodes `given` depend on."""
        needed = set(outputs)
        for index in range(max(needed, default=-1), -1, -1):
            if index in needed and index not in given:
                op, a, b = self.nodes[index]
                if op in BINARY:
                    needed.add(a)
                    needed.add(b)
                elif op > Op.DIV:
                    needed.add(a)
        return sorted(needed)

    def computed(self, outputs: Iterable[int]) -> list[int]:
        """Those that are neither leaves nor constants."""
        return [
            index for index in self.live(outputs) if self.nodes[index][0] not in (Op.LEAF, Op.CONST)
        ]

    def count(self, outputs: Iterable[int], given: Container[int] = ()) -> Count:
        """How many operations the outputs cost where the nodes `given` are known."""
        seen = Counter(
            COLUMN.get(self.nodes[i][0]) for i in self.live(outputs, given) if i not in given
        )
        return Count(**{name: seen[name] for name in ("mul", "add", "div", "sqrt", "trig")})


class Scalar:
    """A value on a tape, with its sign: behaves like a number."""

    __slots__ = ("index", "negative", "tape")

    def __init__(self, tape: Tape, index: int, negative: bool):
        self.tape, self.index, self.negative = tape, index, negative

    def __neg__(self) -> Scalar:
        return Scalar(self.tape, self.index, not self.negative)

    def __pos__(self) -> Scalar:
        return self

    def __add__(self, other):
        if not isinstance(other, Scalar):
            if _has_parts(other):
                return NotImplemented
            return self if other == 0 else self._plus_constant(float(other))
        if self.negative == other.negative:
            a, b = self.index, other.index
            return Scalar(
                self.tape, self.tape.node(Op.ADD, *((a, b) if a <= b else (b, a))), self.negative
            )
        if self.index == other.index:
            return 0.0
        return _difference(self.tape, self.index, other.index, self.negative)

    __radd__ = __add__

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    def __mul__(self, other):
        if not isinstance(other, Scalar):
            return NotImplemented if _has_parts(other) else self._times_constant(float(other))
        a, b = self.index, other.index
        return Scalar(
            self.tape,
            self.tape.node(Op.MUL, *((a, b) if a <= b else (b, a))),
            self.negative != other.negative,
        )

    __rmul__ = __mul__

    def __truediv__(self, other):
        if not isinstance(other, Scalar):
            return NotImplemented if _has_parts(other) else self * (1.0 / other)
        return Scalar(
            self.tape,
            self.tape.node(Op.DIV, self.index, other.index),
            self.negative != other.negative,
        )

    def __rtruediv__(self, other):
        if _has_parts(other):
            return NotImplemented
        if other == 0:
            return 0.0
        numerator = self.tape.node(Op.CONST, abs(float(other)))
        return Scalar(
            self.tape, self.tape.node(Op.DIV, numerator, self.index), self.negative != (other < 0)
        )

    def __pow__(self, exponent: float):
        """Whole powers, and roots of halves: x^2 = x x, x^-1 = 1 / x, x^0.5."""
        if exponent < 0:
            return 1.0 / self**-exponent
        whole, half = divmod(float(exponent), 1.0)
        if half not in (0.0, 0.5):
            raise TypeError(
                f"x ** {exponent} of a tape expression: whole and half exponents are known"
            )
        value = self.sqrt() if half else 1.0
        for _ in range(int(whole)):
            value = self * value
        return value

    def __abs__(self) -> Scalar:
        return self * (1.0 - 2.0 * self.less(0.0))

    def __eq__(self, other: object) -> bool:
        if self.tape.strict:
            raise TypeError("== of a number that is known only when the code runs")
        return self is other

    def __hash__(self) -> int:
        if self.tape.strict:
            raise TypeError("a number that is known only when the code runs is looked up")
        return object.__hash__(self)

    def __bool__(self) -> bool:
        raise TypeError("a branch on a number that is known only when the code runs")

    def sin(self) -> Scalar:
        return Scalar(self.tape, self.tape.node(Op.SIN, self.index), self.negative)

    def cos(self) -> Scalar:
        return Scalar(self.tape, self.tape.node(Op.COS, self.index), False)

    def sqrt(self) -> Scalar:
        return Scalar(self.tape, self.tape.node(Op.SQRT, self.tape.operand(self)), False)

    def less(self, other) -> Scalar:
        """1 where this is below `other`, else 0."""
        return Scalar(
            self.tape,
            self.tape.node(Op.LESS, self.tape.operand(self), self.tape.operand(other)),
            False,
        )

    def more(self, other) -> Scalar:
        """1 where this is above `other`, else 0."""
        return Scalar(
            self.tape,
            self.tape.node(Op.LESS, self.tape.operand(other), self.tape.operand(self)),
            False,
        )

    def _plus_constant(self, constant: float):
        node = self.tape.node(Op.CONST, abs(constant))
        return self + Scalar(self.tape, node, constant < 0)

    def _times_constant(self, constant: float):
        if constant == 0:
            return 0.0
        flipped = self.negative != (constant < 0)
        if abs(constant) == 1:
            return Scalar(self.tape, self.index, flipped)
        node = self.tape.node(Op.CONST, abs(constant))
        a, b = (self.index, node) if self.index <= node else (node, self.index)
        return Scalar(self.tape, self.tape.node(Op.MUL, a, b), flipped)

    def __repr__(self) -> str:
        return f"{'-' if self.negative else ''}x{self.index}"


def _has_parts(other) -> bool:
    """Whether it goes part by part, as it knows itself: an array, or a number with a rate (`model/spatial/dual_numbers.py`)."""
    return bool(getattr(other, "shape", ())) or hasattr(other, "rate")


def _difference(tape: Tape, a: int, b: int, negative: bool) -> Scalar:
    """(a - b) or, negative, (b - a); the two directions share one node."""
    if negative:
        a, b = b, a
    if (Op.SUB, b, a) in tape._known:
        return Scalar(tape, tape.node(Op.SUB, b, a), True)
    return Scalar(tape, tape.node(Op.SUB, a, b), False)


def operands(tape: Tape, node: int) -> tuple:
    """The nodes a node reads."""
    op, a, b = tape.nodes[node]
    if op in BINARY:
        return a, b
    return () if op in (Op.LEAF, Op.CONST) else (a,)
