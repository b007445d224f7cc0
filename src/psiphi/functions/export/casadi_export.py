"""A function as a `casadi.Function`: the tape on CasADi's SX scalars. CasADi then knows its derivatives, exactly."""

from __future__ import annotations

import re
from typing import Any

from psiphi._util.extras import need
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import MEANING, evaluate
from psiphi.functions.compiled_function import Function
from psiphi.functions.export.sympy_export import straight, table


def to_casadi(function: Function) -> Any:
    """casadi.Function(q, ...) -> results; vectors are columns, arguments and results have psiphi's names."""
    casadi = need("casadi", "to_casadi", "psiphi[casadi]")
    code = straight(function, "CasADi")
    inputs, outputs = code.program.inputs, code.program.outputs
    given = [casadi.SX.sym(arg.name, *table(arg)) for arg in inputs]
    flat = [casadi.vec(x.T) for x in given]  # row by row
    meaning = MEANING | {
        Op.SIN: casadi.sin,
        Op.COS: casadi.cos,
        Op.SQRT: casadi.sqrt,
        Op.LESS: casadi.lt,
        Op.CONST: casadi.SX,
    }
    values = code.rows(evaluate(code.tape, code.ends, lambda i, k: flat[int(i)][k], meaning))
    results = []
    for arg, own in zip(outputs, values, strict=True):
        rows, columns = table(arg)
        results.append(casadi.reshape(casadi.vertcat(*own), columns, rows).T)
    taken = {arg.name for arg in inputs}
    names = [f"{arg.name}_out" if arg.name in taken else arg.name for arg in outputs]
    word = re.sub(r"\W+", "_", function.source.request.name, flags=re.ASCII).strip("_")
    return casadi.Function(f"psiphi_{word}", given, results, [arg.name for arg in inputs], names)
