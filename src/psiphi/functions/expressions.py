"""`pp.function`: an operator expression as a compiled NumPy function that can explain itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.errors import StateError
from psiphi.functions import guard
from psiphi.functions.compiler import Function, Request
from psiphi.functions.equations import Equation
from psiphi.functions.threads import run
from psiphi.operators.expression import Expression
from psiphi.tape.ops import Count


def function(expression: Expression) -> ExpressionFunction:
    """f(q, ...) for an expression of one robot: vectors follow q in the order they appear (v first, where a or b need it).

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> s = robot.operators
    >>> f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    >>> f(robot.neutral()).shape, f.sweeps
    ((6, 6), 3)
    """
    if not isinstance(expression, Expression):
        raise StateError(
            f"pp.function got a {type(expression).__name__}, expected an operator expression", "s = robot.operators"
        )
    if expression.model is None:
        raise StateError(f"{expression} belongs to no robot", "write it with s = robot.operators")
    return ExpressionFunction(expression)


class ExpressionFunction:
    """A compiled expression: call it; ask `flops`, `count`, `sweeps`, `explain()`, `dense` (True: no sweeps were found)."""

    def __init__(self, expression: Expression):
        assert expression.model is not None
        self.expression, self.model = expression, expression.model
        self.equation = Equation({"out": expression}, self.model, equation=str(expression))
        self._function: Function | None = None

    @property
    def dense(self) -> bool:
        """Whether the expression is evaluated as a dense matrix, because no identity turns it into sweeps."""
        try:
            return self.equation.form is None
        except StateError:
            return True

    @property
    def compiled(self) -> Function:
        """The gufunc and how it came about."""
        if self._function is None:
            self._function = Function(self.model, Request("expression"), quantity=self.equation)
        return self._function

    @property
    def ufunc(self) -> np.ufunc:
        return self.compiled.ufunc

    @property
    def count(self) -> Count:
        return self.compiled.count

    @property
    def flops(self) -> int:
        """Exact operation count of one evaluation (sines and cosines apart)."""
        return self.count.flops

    @property
    def sweeps(self) -> int:
        """How many sweeps over the tree one evaluation takes; 0 when it is dense."""
        return 0 if self.dense else self.equation.sweeps

    def __call__(self, q, *vectors, out=None, dtype=None) -> Any:
        """The value at q (..., nq) and the expression's vectors (..., n)."""
        inputs, _ = self.equation.arguments()
        if len(vectors) != len(inputs) - 1:
            names = ", ".join(arg.name for arg in inputs)
            raise StateError(
                f"{self.expression}: {1 + len(vectors)} arguments came, expected ({names})", "give them in this order"
            )
        if self.dense:
            return self._dense(q, dict(zip((arg.name for arg in inputs[1:]), vectors, strict=True)))
        values = guard.plain(self.model, "function", inputs, (q, *vectors))
        try:
            return run(self.ufunc, values, out, dtype=dtype, flops=self.compiled.cost)
        except (ValueError, TypeError, NotImplementedError) as error:
            words = guard.in_words(self.model, "function", self.compiled.source, values, out, dtype, error)
            if words is error:
                raise
            raise words from error

    def _dense(self, q, vectors: dict[str, Any]) -> np.ndarray:
        v = vectors.pop("v", None)
        return self.expression.dense(q, v, **vectors)

    def explain(self) -> str:
        """How the expression became sweeps: the derivation, the loops, what they cost."""
        if self.dense:
            return f"{self.expression}\n\nNo identity turns this into sweeps: it is evaluated as a dense matrix, O(N^3)."
        return self.equation.explain(self.count)

    def __repr__(self) -> str:
        return f"<function {self.expression}>"
