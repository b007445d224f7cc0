"""A C function as files for a controller: NAME.h, NAME.c, and NAME_test.c with expected results.

    void NAME(const double *q, ..., double *a);                       one state
    void NAME_batch(size_t n, const double *restrict q, ...);         n consecutive states

Free parameters of the robot (`robot.free`) can be `static const` tables, to be edited by hand,
instead of arguments. With `trig="own"` the files contain their own sine and cosine; the only
function of the C library is then sqrt, which is one instruction on most machines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi._util.text import shown
from psiphi.backends.c.c_lines import REAL
from psiphi.backends.c.c_source import CCode, c_function, c_parameters, check_name, comment
from psiphi.compiler.tape.ops import Op

TRIG_CHOICES = ("libm", "own")
TOLERANCE = {"d": 1e-11, "f": 1e-3}  # relative to the largest number of a result
MAX_ANGLE = {"d": "1e5", "f": "8e3f"}  # larger angles lose digits in this reduction and give NaN
# pi/2 in parts with few bits, so that a number of quarter turns times a part is exact;
# polynomials of Cephes (S. Moshier)
PI_HALF = {
    "d": ("1.57079632673412561417e+00", "6.07710050630396597660e-11", "2.02226624879595063154e-21"),
    "f": ("1.5703125f", "4.83751296997070312500e-04f", "7.54978995489188216e-08f"),
}
SINE = {
    "d": "1.58962301576546568060e-10 -2.50507477628578072866e-8 2.75573136213857245213e-6 "
    "-1.98412698295895385996e-4 8.33333333332211858878e-3 -1.66666666666666307295e-1",
    "f": "-1.9515295891e-4f 8.3321608736e-3f -1.6666654611e-1f",
}
COSINE = {
    "d": "-1.13585365213876817300e-11 2.08757008419747316778e-9 -2.75573141792967388112e-7 "
    "2.48015872888517045348e-5 -1.38888888888730564116e-3 4.16666666666665929218e-2",
    "f": "2.443315711809948e-5f -1.388731625493765e-3f 4.166664568298827e-2f",
}


def c_files(
    code: CCode,
    name: str,
    about: str,
    cases: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]],
    char: str = "d",
    trig: str = "libm",
    constants: Mapping[str, np.ndarray] | None = None,
) -> dict[str, str]:
    """{file name: text}.

    `cases` are (inputs, expected results), which the test program compares. Inputs in `constants`
    become `static const` tables at the top of the source file instead of arguments.
    """
    check_name(name)
    tables = constants or {}
    if trig not in TRIG_CHOICES:
        raise StateError(
            f"trig is {shown(trig)}, expected 'libm' or 'own'",
            "use 'libm' for sin and cos of the C library",
        )
    arguments = c_parameters(code, name, char, tables)
    argument_list = ", ".join(arguments)
    batch_arguments = ", ".join(
        ["size_t n", *(parameter.replace("*", "*restrict ") for parameter in arguments)]
    )
    guard = f"PSIPHI_{name.upper()}_H"
    header = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stddef.h>",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *comment(code, about, char, tables),
        f"void {name}({argument_list});",
        "",
        "/* The same for n states, contiguous in each array; arrays must not overlap. */",
        f"void {name}_batch(size_t n, {argument_list});",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    trig_names = {Op.SIN: f"{name}_sin", Op.COS: f"{name}_cos"} if trig == "own" else {}
    source = [
        f"/* {c_comment(about)} */",
        f'#include "{name}.h"',
        "#include <math.h>",
        "",
        *(_own_trig(name, char) if trig_names and code.count.trig else ()),
        *(
            c_function(code, name, char, trig_names)
            if not tables
            else _with_constants(code, name, argument_list, char, trig_names, tables)
        ),
        "",
        *_batch_function(code, name, batch_arguments, tables),
    ]
    files = {
        f"{name}.h": header,
        f"{name}.c": source,
        f"{name}_test.c": list(_test_program(code, name, cases, char, tables)),
    }
    return {file: "\n".join([*lines, ""]) for file, lines in files.items()}


def _with_constants(
    code: CCode,
    name: str,
    argument_list: str,
    char: str,
    trig: dict[Op, str],
    tables: Mapping[str, np.ndarray],
) -> Iterator[str]:
    """Tables of numbers that can be edited by hand, and the function that reads them."""
    for arg in code.program.inputs:
        if arg.name in tables:
            yield from table(f"{name}_{arg.name}", arg.size, [tables[arg.name]], char)
    yield ""
    yield from c_function(code, f"{name}_of", char, trig, static=True)
    yield ""
    yield f"void {name}({argument_list})"
    yield "{"
    values = [
        f"{name}_{arg.name}" if arg.name in tables else arg.name
        for arg in (*code.program.inputs, *code.program.outputs)
    ]
    yield f"    {name}_of({', '.join(values)});"
    yield "}"


def table(name: str, size: int | str, rows: Sequence[np.ndarray], char: str) -> Iterator[str]:
    """static const double NAME[size] = {...}, one line per row."""
    real, suffix = REAL[char]
    numbers = (np.ravel(np.asarray(row, dtype=float)).tolist() for row in rows)
    lines = ",\n".join("    " + ", ".join(f"{x!r}{suffix}" for x in row) for row in numbers)
    yield f"static const {real} {name}[{size}] = {{\n{lines}}};"


def _batch_function(
    code: CCode, name: str, batch_arguments: str, tables: Collection[str]
) -> Iterator[str]:
    yield f"void {name}_batch({batch_arguments})"
    yield "{"
    yield "    for (size_t i = 0; i < n; ++i) {"
    arguments = [
        arg for arg in (*code.program.inputs, *code.program.outputs) if arg.name not in tables
    ]
    places = [f"&{arg.name}[{arg.size}u * i]" for arg in arguments]
    yield f"        {name}({', '.join(places)});"
    yield "    }"
    yield "}"


def _own_trig(name: str, char: str) -> Iterator[str]:
    """Sine and cosine in C: x = k pi/2 + r, |r| <= pi/4, and polynomials of r."""
    real, suffix = REAL[char]
    first, second, third = PI_HALF[char]
    yield f"static {real} {name}_turn({real} x, long shift)"
    yield "{"
    yield f"    {real} y = (x - x) / ((x - x) + 0.0{suffix});  /* NaN */"
    yield f"    if ((x >= -{MAX_ANGLE[char]}) && (x <= {MAX_ANGLE[char]})) {{"
    yield f"        const {real} turns = x * 0.63661977236758134308{suffix};"
    yield f"        const {real} half = (turns < 0.0{suffix}) ? -0.5{suffix} : 0.5{suffix};"
    yield f"        const {real} nearest = turns + half;"
    yield "        const long k = (long)nearest;"
    yield f"        const {real} n = ({real})k;"
    yield f"        const {real} r = ((x - (n * {first})) - (n * {second})) - (n * {third});"
    yield f"        const {real} z = r * r;"
    yield "        const long quarter = (k + shift) % 4;  /* may be negative */"
    yield "        const int across = (int)((quarter + 4) % 4);"
    yield f"        const {real} s = r + ((r * z) * {_polynomial(SINE[char])});"
    cosine = f"(1.0{suffix} - (0.5{suffix} * z)) + ((z * z) * {_polynomial(COSINE[char])})"
    yield f"        const {real} c = {cosine};"
    yield "        y = ((across % 2) != 0) ? c : s;"
    yield "        y = (across >= 2) ? -y : y;"
    yield "    }"
    yield "    return y;"
    yield "}"
    yield f"static {real} {name}_sin({real} x) {{ return {name}_turn(x, 0); }}"
    yield f"static {real} {name}_cos({real} x) {{ return {name}_turn(x, 1); }}"
    yield ""


def _polynomial(coefficients: str) -> str:
    """The polynomial in z by Horner's rule, highest power first."""
    text, *rest = coefficients.split()
    for c in rest:
        text = f"(({text} * z) + {c})" if not c.startswith("-") else f"(({text} * z) - {c[1:]})"
    return text


def _test_program(
    code: CCode, name: str, cases: Sequence, char: str, tables: Collection[str]
) -> Iterator[str]:
    real, suffix = REAL[char]
    inputs, outputs = code.program.inputs, code.program.outputs
    yield (
        f"/* Test of {name}: prints the largest error of each result, "
        "returns 0 if all are small. */"
    )
    yield f'#include "{name}.h"'
    yield "#include <math.h>"
    yield "#include <stdio.h>"
    yield ""
    yield f"#define CASES {len(cases)}"
    for place, group in ((0, inputs), (1, outputs)):
        for i, arg in enumerate(group):
            if place or arg.name not in tables:
                size = f"CASES * {max(1, arg.size)}"
                yield from table(
                    f"{'right_' * place}{arg.name}", size, [case[place][i] for case in cases], char
                )
    yield ""
    yield f"static int close_to(const char *what, const {real} *x, const {real} *y, int n)"
    yield "{"
    yield f"    {real} most = 0, size = 1;"
    yield "    for (int i = 0; i < n; ++i) {"
    yield f"        const {real} d = fabs{suffix}(x[i] - y[i]), s = fabs{suffix}(y[i]);"
    yield "        if (!(d <= most)) most = d;"
    yield "        if (s > size) size = s;"
    yield "    }"
    yield '    printf("%-24s largest error %.3g of %.3g\\n", what, (double)most, (double)size);'
    yield f"    return most <= {TOLERANCE[char]:g}{suffix} * size;"
    yield "}"
    yield ""
    yield "int main(void)"
    yield "{"
    for arg in outputs:
        yield f"    static {real} {arg.name}[CASES * {arg.size}];"
    yield "    int good = 1;"
    arguments = [arg.name for arg in (*inputs, *outputs) if arg.name not in tables]
    yield f"    {name}_batch(CASES, {', '.join(arguments)});"
    for arg in outputs:
        yield (
            f'    good &= close_to("{arg.name}", {arg.name}, right_{arg.name}, CASES * {arg.size});'
        )
    yield "    return good ? 0 : 1;"
    yield "}"
