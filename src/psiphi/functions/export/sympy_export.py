"""A function as SymPy expressions: with shared parts, as the code computes them, or written out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS, evaluate
from psiphi.functions.compiled_function import Function
from psiphi.functions.export.symbolic_parameters import PARAMETER, trace_with_names
from psiphi.functions.export.textbook_form import textbook

MAX_DENOMINATOR = 64  # denominators of numbers that are written as fractions


class SymPyExpression(Protocol):
    """The part of `sympy.Expr` that is used here."""

    is_Atom: bool

    def __neg__(self) -> SymPyExpression: ...


@dataclass(frozen=True, eq=False)
class Symbolic:
    """Results as SymPy matrices.

    inputs       {argument: column of symbols}: q1, q2, ...
    shared       [(x0, expression), ...]: parts that are used several times, as from `sympy.cse`
    results      {result: Matrix} of inputs and shared parts
    parameters   {symbol: number}: m1, l1, ..., if the parameters are symbols
    matrix       the first result written out; `M[0, 0]` is one of its entries
    """

    name: str
    inputs: dict[str, Any]
    shared: list[tuple[Any, Any]]
    results: dict[str, Any]
    parameters: dict[Any, float]

    @cached_property
    def written_out(self) -> dict[str, Any]:
        """The results without shared parts. They are exponentially long for long chains; for short
        ones, see `textbook`."""
        values: dict[Any, Any] = {}
        for symbol, value in self.shared:
            values[symbol] = value.xreplace(values)
        return {name: value.xreplace(values) for name, value in self.results.items()}

    @property
    def matrix(self) -> Any:
        """The first result, written out."""
        return next(iter(self.written_out.values()))

    def __getitem__(self, index: int | slice | tuple[int | slice, ...]) -> Any:
        return self.matrix[index]

    def textbook(self) -> Any:
        """The first result with products of sines and cosines as sums, multiplied out:
        cos(q2 + q3) instead of c2 c3 - s2 s3."""
        return self.matrix.applyfunc(textbook)

    def latex(self) -> str:
        """The results in LaTeX, after their shared parts: an `aligned` environment (amsmath)."""
        sympy = import_optional("sympy", "symbolic", "psiphi[symbolic]")
        pairs = [
            *self.shared,
            *((sympy.Symbol(name), value) for name, value in self.results.items()),
        ]
        lines = [rf"{sympy.latex(symbol)} &= {sympy.latex(value)} \\" for symbol, value in pairs]
        return "\n".join([r"\begin{aligned}", *lines, r"\end{aligned}"])

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def __repr__(self) -> str:
        shapes = ", ".join(
            f"{name} {value.rows} x {value.cols}" for name, value in self.results.items()
        )
        return f"<Symbolic {self.name}: {shapes}, {len(self.shared)} shared parts>"


def symbolic(function: Function, parameters: bool = False) -> Symbolic:
    """The function's code on SymPy's symbols. With `parameters`, masses, centers of mass, inertias
    and lengths are symbols, too."""
    sympy = import_optional("sympy", "symbolic", "psiphi[symbolic]")
    code, parameter_values = (
        (require_straight_code(function, "SymPy"), {})
        if not parameters
        else trace_with_names(function)
    )
    inputs = code.program.inputs
    symbols = {name: sympy.Symbol(name, real=True) for name in parameter_values}
    arguments = [
        [sympy.Symbol(f"{arg.name}{k + 1}", real=True) for k in range(arg.size)] for arg in inputs
    ]
    nodes = code.output_nodes
    uses = _uses(code, nodes)
    shared: list[tuple[Any, Any]] = []

    def share(node: int, value: SymPyExpression) -> SymPyExpression:
        """A new symbol for a value that is used several times."""
        if (
            uses[node] < 2
            or code.tape.nodes[node][0] in (Op.CONST, Op.SIN, Op.COS)
            or value.is_Atom
            or (-value).is_Atom
        ):
            return value
        shared.append((sympy.Symbol(f"x{len(shared)}", real=True), value))
        return shared[-1][0]

    def leaf(space: str, index: int) -> Any:  # the index of a parameter is its name
        return symbols[str(index)] if space == PARAMETER else arguments[int(space)][index]

    operations = OP_FUNCTIONS | {
        Op.CONST: lambda x: exact_constant(sympy, x),
        Op.SIN: sympy.sin,
        Op.COS: sympy.cos,
        Op.SQRT: sympy.sqrt,
        Op.LESS: lambda a, b: sympy.Piecewise((1, a < b), (0, True)),
    }
    values = code.by_output(evaluate(code.tape, nodes, leaf, operations, share))
    results = {
        arg.name: sympy.Matrix(*matrix_shape(arg), entries)
        for arg, entries in zip(code.program.outputs, values, strict=True)
    }
    columns = {
        arg.name: sympy.Matrix(arg.size, 1, entries)
        for arg, entries in zip(inputs, arguments, strict=True)
    }
    return Symbolic(
        code.program.name,
        columns,
        shared,
        results,
        {symbols[name]: x for name, x in parameter_values.items()},
    )


def exact_constant(sympy: ModuleType, x: float) -> Any:
    """A constant: a fraction if x is one exactly, with a small power of two as its denominator.

    >>> import sympy
    >>> exact_constant(sympy, 0.5), exact_constant(sympy, -3.0), exact_constant(sympy, 0.1)
    (1/2, -3, 0.1)
    """
    near = Fraction(x).limit_denominator(MAX_DENOMINATOR) if math.isfinite(x) else Fraction(0)
    return (
        sympy.Rational(near.numerator, near.denominator)
        if float(near) == x and _is_dyadic(near)
        else sympy.Float(x)
    )


def _is_dyadic(x: Fraction) -> bool:
    return x.denominator & (x.denominator - 1) == 0


def require_straight_code(function: Function, where: str) -> StraightCode:
    """The function's straight-line code, or an error for a large robot."""
    code, model = function.source.code, function.source.model
    if not isinstance(code, StraightCode):
        raise StateError(
            f"{model.name} has {len(model.bodies)} bodies, so that its code has loops, and {where} "
            "needs code without loops",
            "export a robot of at most 64 bodies, such as robot.subtree(...)",
        )
    return code


def matrix_shape(arg: Argument) -> tuple[int, int]:
    """Rows and columns of an argument: a vector is a column."""
    rows = int(np.prod(arg.shape[:-1], dtype=int)) if len(arg.shape) > 1 else arg.size
    return rows, arg.size // rows if rows else 0


def _uses(code: StraightCode, nodes: list[int]) -> Counter:
    """The number of uses of each node."""
    uses: Counter = Counter(nodes)
    for node in code.tape.live(nodes):
        op, a, b = code.tape.nodes[node]
        if op in BINARY:
            uses.update((a, b))
        elif op > Op.DIV:
            uses[a] += 1
    return uses
