"""A function as a `casadi.Function`: its tape is run on CasADi's SX scalars, so that CasADi can
differentiate it."""

from __future__ import annotations

import re
from typing import Any

from psiphi._util.extras import import_optional
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS, evaluate
from psiphi.functions.compiled_function import Function
from psiphi.functions.export.sympy_export import matrix_shape, require_straight_code


def to_casadi(function: Function) -> Any:
    """casadi.Function(q, ...) -> results. Vectors are columns; arguments and results keep the names
    that they have in psiphi."""
    casadi = import_optional("casadi", "to_casadi", "psiphi[casadi]")
    code = require_straight_code(function, "CasADi")
    inputs, outputs = code.program.inputs, code.program.outputs
    symbols = [casadi.SX.sym(arg.name, *matrix_shape(arg)) for arg in inputs]
    flat = [casadi.vec(x.T) for x in symbols]  # row by row
    operations = OP_FUNCTIONS | {
        Op.SIN: casadi.sin,
        Op.COS: casadi.cos,
        Op.SQRT: casadi.sqrt,
        Op.LESS: casadi.lt,
        Op.CONST: casadi.SX,
    }
    values = code.by_output(
        evaluate(code.tape, code.output_nodes, lambda i, k: flat[int(i)][k], operations)
    )
    results = []
    for arg, numbers in zip(outputs, values, strict=True):
        rows, columns = matrix_shape(arg)
        results.append(casadi.reshape(casadi.vertcat(*numbers), columns, rows).T)
    input_names = [arg.name for arg in inputs]
    names = [f"{arg.name}_out" if arg.name in input_names else arg.name for arg in outputs]
    identifier = re.sub(r"\W+", "_", function.source.quantity.name, flags=re.ASCII).strip("_")
    return casadi.Function(f"psiphi_{identifier}", symbols, results, input_names, names)
