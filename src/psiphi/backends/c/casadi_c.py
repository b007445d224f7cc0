"""A C file with the interface of CasADi's generated code, for `casadi.external("f", "./f.so")`.

    f(arg, res, iw, w, mem)      the function; f_n_in, f_name_in, f_sparsity_in, ... describe it
    jac_f                        its Jacobian, blocks d result / d argument, if q is a vector space

acados uses the same interface with `int` instead of `long long int` (the target acados). Arguments
are columns (matrices are row-major); results are dense and column-major, as in CasADi. A missing
argument is zero, and a result that is not requested is not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from psiphi._util.errors import StateError
from psiphi.backends.c.c_source import c_function, check_code, check_function, comment
from psiphi.compiler.sweeps.sweep_program import Argument

if TYPE_CHECKING:  # target.py imports this file
    from psiphi.backends.target import Code

HEAD = """\
#include <math.h>
#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int {integer}
#endif
#if defined(_WIN32)
#define PSIPHI_EXPORT __declspec(dllexport)
#else
#define PSIPHI_EXPORT
#endif
"""


INTEGER_TYPES = {"casadi": "long long int", "acados": "int"}


class CasADiC:
    """C with CasADi's interface, for optimisers."""

    def __init__(self, optimiser: str = "casadi"):
        self.optimiser = optimiser

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        check_function(name)

    def emit(
        self,
        code: Code,
        char: str = "d",
        name: str = "",
        about: str = "",
        jacobians: Code | None = None,
    ) -> str:
        if char != "d":
            raise StateError("CasADi computes in double precision", "omit --type float")
        return casadi_source(code, jacobians, name, about, self.optimiser)


def casadi_source(
    code: Code, jacobians: Code | None, name: str, about: str = "", optimiser: str = "casadi"
) -> str:
    """The text of the file; `jacobians`: code of d result / d argument for all pairs, or None."""
    checked = check_code(code)
    inputs, outputs = checked.program.inputs, checked.program.outputs
    lines = [
        *comment(checked, about),
        HEAD.format(integer=INTEGER_TYPES[optimiser]),
        *c_function(checked, f"{name}_run", static=True),
        "",
    ]
    lines += _function(
        name,
        f"{name}_run",
        inputs,
        outputs,
        inputs,
        [(_column_order(arg), _shape(arg)) for arg in outputs],
    )
    if jacobians is not None:
        jacobian_code = check_code(jacobians)
        blocks = [(_jacobian_order(y, x), (y.size, x.size)) for y in outputs for x in inputs]
        jacobian_inputs = [*inputs, *(Argument(f"out_{arg.name}", arg.shape) for arg in outputs)]
        jacobian_outputs = [
            Argument(f"jac_{y.name}_{x.name}", (y.size, x.size)) for y in outputs for x in inputs
        ]
        lines += [*c_function(jacobian_code, f"jac_{name}_run", static=True), ""]
        lines += _function(
            f"jac_{name}",
            f"jac_{name}_run",
            tuple(jacobian_inputs),
            tuple(jacobian_outputs),
            inputs,
            blocks,
        )
    return "\n".join(lines) + "\n"


def _function(
    name: str,
    run: str,
    inputs: Sequence[Argument],
    results: Sequence[Argument],
    function_inputs: Sequence[Argument],
    blocks: Sequence,
) -> Iterator[str]:
    """The function, and the functions that describe it to CasADi."""
    size = max((arg.size for arg in function_inputs), default=1)
    yield (
        f"PSIPHI_EXPORT int {name}(const casadi_real **arg, casadi_real **res, "
        "casadi_int *iw, casadi_real *w, int mem)"
    )
    yield "{"
    yield f"    static const casadi_real zero[{max(1, size)}] = {{0}};"
    for i, arg in enumerate(results):
        yield f"    casadi_real r{i}[{max(1, arg.size)}];"
    args = ", ".join(
        [f"arg[{i}] ? arg[{i}] : zero" for i in range(len(function_inputs))]
        + [f"r{i}" for i in range(len(results))]
    )
    yield "    (void)iw; (void)w; (void)mem;"
    yield f"    {run}({args});"
    for i, (order, _) in enumerate(blocks):
        numbers = ", ".join(map(str, order))
        yield f"    if (res[{i}]) {{"
        yield f"        static const int from[{max(1, len(order))}] = {{{numbers}}};"
        yield f"        for (int i = 0; i < {len(order)}; ++i) res[{i}][i] = r{i}[from[i]];"
        yield "    }"
    yield "    return 0;"
    yield "}"
    for side, group, shapes in (
        (
            "in",
            inputs,
            [(arg.size, 1) if arg in function_inputs else _shape(arg) for arg in inputs],
        ),  # the results are inputs of a Jacobian, too
        ("out", results, [shape for _, shape in blocks]),
    ):
        yield f"PSIPHI_EXPORT casadi_int {name}_n_{side}(void) {{ return {len(group)}; }}"
        yield f"PSIPHI_EXPORT const char *{name}_name_{side}(casadi_int i)"
        yield "{"
        names = ", ".join(f'"{arg.name}"' for arg in group)
        yield f"    static const char *const names[] = {{{names}}};"
        yield f"    return i >= 0 && i < {len(group)} ? names[i] : 0;"
        yield "}"
        yield f"PSIPHI_EXPORT const casadi_int *{name}_sparsity_{side}(casadi_int i)"
        yield "{"
        dense = ", ".join(f"{{{rows}, {columns}, 1}}" for rows, columns in shapes)
        yield f"    static const casadi_int dense[][3] = {{{dense}}};"
        yield f"    return i >= 0 && i < {len(group)} ? dense[i] : 0;"
        yield "}"
    yield f"PSIPHI_EXPORT casadi_real {name}_default_in(casadi_int i) {{ (void)i; return 0; }}"
    yield f"PSIPHI_EXPORT void {name}_incref(void) {{}}"
    yield f"PSIPHI_EXPORT void {name}_decref(void) {{}}"
    yield (
        f"PSIPHI_EXPORT int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, "
        "casadi_int *sz_iw, casadi_int *sz_w)"
    )
    yield "{"
    yield f"    if (sz_arg) *sz_arg = {len(inputs)};"
    yield f"    if (sz_res) *sz_res = {len(results)};"
    yield "    if (sz_iw) *sz_iw = 0;"
    yield "    if (sz_w) *sz_w = 0;"
    yield "    return 0;"
    yield "}"
    yield ""


def _shape(arg: Argument) -> tuple[int, int]:
    """Rows and columns; an argument of one axis, or of more than two, is a column."""
    rows, columns = (arg.size, 1) if len(arg.shape) != 2 else arg.shape
    return rows, columns


def _column_order(arg: Argument) -> list[int]:
    """The row-major index of each number of a result, in column-major order."""
    rows, columns = _shape(arg)
    return [i * columns + j for j in range(columns) for i in range(rows)]


def _jacobian_order(y: Argument, x: Argument) -> list[int]:
    """The same for d y / d x, whose rows are the numbers of y in column-major order."""
    return [row * x.size + j for j in range(x.size) for row in _column_order(y)]
