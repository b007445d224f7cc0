"""`pp.function`: an operator expression as a compiled NumPy function that can explain itself."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.escape import html
from psiphi._util.validate import check_count, is_foreign, is_lazy, positive_number
from psiphi.algebra.dense.rank_check import MAX_BODIES, check_invertible
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.spaces import ONE
from psiphi.algebra.rewriting.derivation import Chain, Derivation
from psiphi.algebra.rewriting.work_budget import DEFAULT_SECONDS, limit_work
from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import choose
from psiphi.compiler.tape.tape import Count
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions.arrays.dask_arrays import map_blocks
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.functions.differentiable_function import (
    DifferentiableFunction,
    Exportable,
    HasDerivatives,
)
from psiphi.functions.evaluation_plans import Sweeps, plan_for
from psiphi.functions.factor_plans import Plan


def function(expression: Expression, budget: float = DEFAULT_SECONDS) -> ExpressionFunction:
    """f(q, ...) for an expression of one robot. The vectors follow q in the order in which they
    appear; v comes first if a or b need it.

    `budget`: seconds for rewriting, which the parts of a long expression share; after that, the
    expression is evaluated as it is written, or as a dense matrix.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> s = robot.operators
    >>> f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    >>> f(robot.neutral()).shape, f.sweeps
    ((6, 6), 3)
    """
    expression = argument_checks.check_expression(expression)
    for inner in expression.inverses:
        check_invertible(inner.term, expression.model, MAX_BODIES)
    return ExpressionFunction(
        expression,
        positive_number(
            "budget", budget, f"give seconds, or leave it out for {DEFAULT_SECONDS:g}", inf
        ),
    )


class ExpressionFunction(HasDerivatives[DifferentiableFunction], Exportable):
    """A compiled expression, with derivatives, operation counts and an explanation."""

    def __init__(self, expression: Expression, budget: float = DEFAULT_SECONDS):
        assert expression.model is not None
        self.expression, self.model = expression, expression.model
        row = expression.rows == ONE and expression.cols != ONE  # x* A has the numbers of A* x
        target = {"out": expression.T if row else expression}
        order = (
            [
                name
                for name, space, _ in ends(expression.term).vectors
                if not space.startswith("symbol")
            ]
            if row
            else ()
        )
        self.equation = Equation(target, self.model, input_order=order, budget=budget)
        self.function = DifferentiableFunction(QuantityRequest("expression"), self.equation)
        self.arguments = self.inputs, self.outputs = self.function.arguments

    def __reduce__(self) -> tuple[type, tuple]:
        return ExpressionFunction, (self.expression, self.equation.budget)

    @cached_property
    def plan(self) -> Plan:
        """The method of evaluation; its parts share the budget."""
        with limit_work(self.equation.budget):
            return plan_for(self.equation.results["out"], self.function)

    @property
    def dense(self) -> bool:
        """Whether the expression, or a part of it, is evaluated as a dense matrix, because no
        identity turns it into sweeps."""
        return self.plan.dense

    @property
    def compiled(self) -> Function:
        """The compiled function."""
        if not isinstance(self.plan, Sweeps):
            raise StateError(
                f"{self.expression} is not one compiled function", "call it, or look at explain()"
            )
        return self.plan.function

    @property
    def ufunc(self) -> np.ufunc:
        """The NumPy gufunc of the compiled function."""
        return self.compiled.ufunc

    def derivative_by(self, kind: str, names: tuple[str, ...]) -> DifferentiableFunction:
        return self.compiled_form.derivative_by(kind, names)

    @property
    def compiled_form(self) -> DifferentiableFunction:
        if isinstance(self.plan, Sweeps):
            return self.function
        raise StateError(
            f"{self.expression} is not one compiled function, and has no derivatives or symbols",
            "look at explain()",
        )

    @property
    def count(self) -> Count:
        """Exact operation counts of one evaluation, by operation."""
        return self.plan.count

    @property
    def flops(self) -> int:
        """Exact operation count of one evaluation, without sines and cosines."""
        return self.count.flops

    @property
    def sweeps(self) -> int:
        """The number of sweeps over the tree in one evaluation; 0 for a dense matrix."""
        return self.plan.sweeps

    def __call__(
        self,
        q: Numbers,
        *vectors: Numbers,
        parameters: Numbers | None = None,
        out: Out = None,
        dtype: DType = None,
    ) -> Array:
        """The value at q (..., nq) and the expression's vectors (..., n). Give `parameters` if the
        robot has free parameters."""
        inputs, outputs = self.arguments
        if parameters is not None:
            vectors = argument_checks.insert_parameters(
                str(self.expression), inputs, (q, *vectors), parameters
            )[1:]
        if len(vectors) != len(inputs) - 1:  # str(expression) is slow
            check_count(str(self.expression), (q, *vectors), (arg.name for arg in inputs))
        if out is None and dtype is None:
            result = self.function.fast_path(q, *vectors)
            if result is not None:
                return result
        if any(map(is_foreign, (q, *vectors))):
            return argument_checks.call_foreign(self.compiled, (q, *vectors), out, dtype)
        values = argument_checks.plain_arrays(self.model, "function", inputs, (q, *vectors))
        argument_checks.check_single_configuration(self.model, "function", values[0])
        if isinstance(self.plan, Sweeps):
            return self._compiled(values, out, dtype)
        argument_checks.check_dtype("function", dtype)
        if any(map(is_lazy, values)) and out is None:
            return map_blocks("function", self, inputs, outputs, values, dtype)
        arrays = [np.asarray(value) for value in values]
        (target,) = argument_checks.matching_out(self.model, "function", self, arrays, out)
        result = self.plan(dict(zip((arg.name for arg in inputs), arrays, strict=True)), None)
        kind = dtype or np.result_type(np.float32, *arrays)
        if target is None:
            result = np.asarray(result).astype(kind, copy=False)[()]
        return argument_checks.copy_into(target, result)

    def _compiled(self, values: tuple, out: Out, dtype: DType) -> Any:
        """The value by the compiled function."""
        try:
            result = self.function.run(values, out, dtype)
            scalar_fast_path.install_fast_path(self.function, values)
            return result
        except (ValueError, TypeError, NotImplementedError) as error:
            argument_checks.raise_state_error(
                self.model, "function", self.function.source, values, out, dtype, error
            )

    def explain(self) -> str:
        """The derivation of the sweeps, their loops, and their cost."""
        return self.plan.explain()

    @property
    def derivation(self) -> Derivation:
        """The steps by which the expression was rewritten; none if it is evaluated as written."""
        equation = getattr(self.plan, "equation", None)
        found = choose(equation).derivation if equation is not None else None
        return found if found is not None else Derivation(Chain(self.expression, None, ()))

    def latex(self) -> str:
        """The derivation in LaTeX: an `aligned` environment (amsmath) with one line per step and
        its source."""
        return self.derivation.latex()

    def __repr__(self) -> str:
        return f"<function {self.expression}>"

    def _repr_html_(self) -> str:
        lines = (html(line) for line in self.explain().splitlines())
        return '<pre style="white-space: pre-wrap">{}</pre>'.format("\n".join(lines))
