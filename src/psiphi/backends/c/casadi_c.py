"""A C file with CasADi's own interface: `casadi.external("f", "./f.so")` takes it as it is. acados takes the same with `int`
where CasADi has `long long int`: the target acados.

    f(arg, res, iw, w, mem)      the function; f_n_in, f_name_in, f_sparsity_in, f_work, ... say what it is
    jac_f                        its Jacobian, blocks d result / d argument, where q is a vector space

Arguments are columns (matrices among them row by row), results are dense and stand column by column, as CasADi has them. An
argument that is left out is zero, a result that nobody wants is not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psiphi._util.errors import StateError
from psiphi.backends.c.c_source import check_function, comment, function, known_code
from psiphi.compiler.sweeps.sweep_program import Argument

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


INTEGERS = {"casadi": "long long int", "acados": "int"}  # what they count with


class CasADiC:
    """C with CasADi's interface, for optimisers."""

    def __init__(self, optimiser: str = "casadi"):
        self.optimiser = optimiser

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        check_function(name)

    def emit(
        self, code: Any, char: str = "d", name: str = "", about: str = "", slopes: Any = None
    ) -> str:
        if char != "d":
            raise StateError("CasADi computes in double", "leave out --type float")
        return casadi_source(code, slopes, name, about, self.optimiser)


def casadi_source(
    code: Any, slopes: Any, name: str, about: str = "", optimiser: str = "casadi"
) -> str:
    """The text of the file; `slopes` is the code of all Jacobians, results by arguments, or None."""
    own = known_code(code)
    inputs, outputs = own.program.inputs, own.program.outputs
    lines = [
        *comment(own, about),
        HEAD.format(integer=INTEGERS[optimiser]),
        *function(own, f"{name}_run", static=True),
        "",
    ]
    lines += _function(
        name,
        f"{name}_run",
        inputs,
        outputs,
        inputs,
        [(_columns(arg), _shape(arg)) for arg in outputs],
    )
    if slopes is not None:
        made = known_code(slopes)
        blocks = [(_slope_columns(y, x), (y.size, x.size)) for y in outputs for x in inputs]
        given = [*inputs, *(Argument(f"out_{arg.name}", arg.shape) for arg in outputs)]
        names = [
            Argument(f"jac_{y.name}_{x.name}", (y.size, x.size)) for y in outputs for x in inputs
        ]
        lines += [*function(made, f"jac_{name}_run", static=True), ""]
        lines += _function(
            f"jac_{name}", f"jac_{name}_run", tuple(given), tuple(names), inputs, blocks
        )
    return "\n".join(lines) + "\n"


def _function(
    name: str,
    run: str,
    given: Sequence[Argument],
    results: Sequence[Argument],
    used: Sequence[Argument],
    blocks: Sequence,
) -> Iterator[str]:
    """The function and what CasADi asks about it."""
    many = max((arg.size for arg in used), default=1)
    yield f"PSIPHI_EXPORT int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem)"
    yield "{"
    yield f"    static const casadi_real zero[{max(1, many)}] = {{0}};"
    for i, arg in enumerate(results):
        yield f"    casadi_real r{i}[{max(1, arg.size)}];"
    args = ", ".join(
        [f"arg[{i}] ? arg[{i}] : zero" for i in range(len(used))]
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
            given,
            [(arg.size, 1) if arg in used else _shape(arg) for arg in given],
        ),  # a Jacobian is told the results
        ("out", results, [shape for _, shape in blocks]),
    ):
        yield f"PSIPHI_EXPORT casadi_int {name}_n_{side}(void) {{ return {len(group)}; }}"
        yield f"PSIPHI_EXPORT const char *{name}_name_{side}(casadi_int i)"
        yield "{"
        yield f"    static const char *const names[] = {{{', '.join(chr(34) + arg.name + chr(34) for arg in group)}}};"
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
    yield f"PSIPHI_EXPORT int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w)"
    yield "{"
    yield f"    if (sz_arg) *sz_arg = {len(given)};"
    yield f"    if (sz_res) *sz_res = {len(results)};"
    yield "    if (sz_iw) *sz_iw = 0;"
    yield "    if (sz_w) *sz_w = 0;"
    yield "    return 0;"
    yield "}"
    yield ""


def _shape(arg: Argument) -> tuple[int, int]:
    """Rows and columns: vectors are columns, more axes are one after the other."""
    rows, columns = (arg.size, 1) if len(arg.shape) != 2 else arg.shape
    return rows, columns


def _columns(arg: Argument) -> list[int]:
    """Where the numbers of a result, column by column, stand row by row."""
    rows, columns = _shape(arg)
    return [i * columns + j for j in range(columns) for i in range(rows)]


def _slope_columns(y: Argument, x: Argument) -> list[int]:
    """The same of d y / d x, whose rows are y's numbers column by column."""
    return [row * x.size + j for j in range(x.size) for row in _columns(y)]
