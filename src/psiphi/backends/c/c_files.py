"""A function for somebody's controller, as files: NAME.h, NAME.c and NAME_test.c, which knows the right numbers.

    void NAME(const double *q, ..., double *a);                       one state
    void NAME_batch(size_t n, const double *restrict q, ...);         n states, one after the other

Where numbers of the robot are inputs (`robot.free`), they can be `static const` tables instead, to be changed by hand.
`trig="own"` brings sines and cosines along: nothing of a C library is called but sqrt, an instruction on most machines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi._util.text import shown
from psiphi.backends.c.c_lines import REAL
from psiphi.backends.c.c_source import Code, check_name, comment, function, parameters
from psiphi.compiler.tape.ops import Op

TRIG = ("libm", "own")
WITHIN = {"d": 1e-11, "f": 1e-3}  # of the largest number of a result
FAR = {"d": "1e5", "f": "8e3f"}  # beyond, an angle has lost its last digits here: the answer is NaN
# pi/2 in parts of so few bits that a whole number of quarter turns times a part is exact; polynomials of Cephes (S. Moshier)
QUARTER = {
    "d": ("1.57079632673412561417e+00", "6.07710050630396597660e-11", "2.02226624879595063154e-21"),
    "f": ("1.5703125f", "4.83751296997070312500e-04f", "7.54978995489188216e-08f"),
}
SINE = {
    "d": "1.58962301576546568060e-10 -2.50507477628578072866e-8 2.75573136213857245213e-6 -1.98412698295895385996e-4 "
    "8.33333333332211858878e-3 -1.66666666666666307295e-1",
    "f": "-1.9515295891e-4f 8.3321608736e-3f -1.6666654611e-1f",
}
COSINE = {
    "d": "-1.13585365213876817300e-11 2.08757008419747316778e-9 -2.75573141792967388112e-7 2.48015872888517045348e-5 "
    "-1.38888888888730564116e-3 4.16666666666665929218e-2",
    "f": "2.443315711809948e-5f -1.388731625493765e-3f 4.166664568298827e-2f",
}


def c_files(
    code: Code,
    name: str,
    about: str,
    cases: Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]],
    char: str = "d",
    trig: str = "libm",
    constants: Mapping[str, np.ndarray] | None = None,
) -> dict[str, str]:
    """{file name: text}; `cases` are (inputs, right results), which the test program compares. Inputs among the `constants` are
    no arguments, but `static const` tables at the head of the source file."""
    check_name(name)
    known = constants or {}
    if trig not in TRIG:
        raise StateError(
            f"trig is {shown(trig)}, expected 'libm' or 'own'", "libm is the C library's"
        )
    given = parameters(code, name, char, known)
    each = ", ".join(given)
    many = ", ".join(["size_t n", *(word.replace("*", "*restrict ") for word in given)])
    guard = f"PSIPHI_{name.upper()}_H"
    header = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stddef.h>",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *comment(code, about, char, known),
        f"void {name}({each});",
        "",
        "/* The same of n states, one after the other in every array; arrays do not overlap. */",
        f"void {name}_batch(size_t n, {each});",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    own = {Op.SIN: f"{name}_sin", Op.COS: f"{name}_cos"} if trig == "own" else {}
    source = [
        f"/* {c_comment(about)} */",
        f'#include "{name}.h"',
        "#include <math.h>",
        "",
        *(_own_trig(name, char) if own and code.count.trig else ()),
        *(
            function(code, name, char, own)
            if not known
            else _with_constants(code, name, each, char, own, known)
        ),
        "",
        *_batch(code, name, many, known),
    ]
    files = {
        f"{name}.h": header,
        f"{name}.c": source,
        f"{name}_test.c": list(_test(code, name, cases, char, known)),
    }
    return {file: "\n".join([*lines, ""]) for file, lines in files.items()}


def _with_constants(
    code: Code, name: str, each: str, char: str, own: dict[Op, str], known: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """Tables of numbers that somebody may change by hand, and the function that reads them."""
    for arg in code.program.inputs:
        if arg.name in known:
            yield from _table(f"{name}_{arg.name}", arg.size, [known[arg.name]], char)
    yield ""
    yield from function(code, f"{name}_of", char, own, static=True)
    yield ""
    yield f"void {name}({each})"
    yield "{"
    words = [
        f"{name}_{arg.name}" if arg.name in known else arg.name
        for arg in (*code.program.inputs, *code.program.outputs)
    ]
    yield f"    {name}_of({', '.join(words)});"
    yield "}"


def _table(name: str, size: int | str, rows: Sequence[np.ndarray], char: str) -> Iterator[str]:
    """static const double NAME[size] = {...}, a line for each row."""
    real, suffix = REAL[char]
    numbers = (np.ravel(np.asarray(row, dtype=float)).tolist() for row in rows)
    lines = ",\n".join("    " + ", ".join(f"{x!r}{suffix}" for x in row) for row in numbers)
    yield f"static const {real} {name}[{size}] = {{\n{lines}}};"


def _batch(code: Code, name: str, many: str, known: Collection[str]) -> Iterator[str]:
    yield f"void {name}_batch({many})"
    yield "{"
    yield "    for (size_t i = 0; i < n; ++i) {"
    taken = [arg for arg in (*code.program.inputs, *code.program.outputs) if arg.name not in known]
    places = [f"&{arg.name}[{arg.size}u * i]" for arg in taken]
    yield f"        {name}({', '.join(places)});"
    yield "    }"
    yield "}"


def _own_trig(name: str, char: str) -> Iterator[str]:
    """x = k pi/2 + r, |r| <= pi/4; then polynomials of r."""
    real, suffix = REAL[char]
    first, second, third = QUARTER[char]
    yield f"static {real} {name}_turn({real} x, long shift)"
    yield "{"
    yield f"    {real} y = (x - x) / ((x - x) + 0.0{suffix});  /* NaN */"
    yield f"    if ((x >= -{FAR[char]}) && (x <= {FAR[char]})) {{"
    yield f"        const {real} turns = x * 0.63661977236758134308{suffix};"
    yield f"        const {real} half = (turns < 0.0{suffix}) ? -0.5{suffix} : 0.5{suffix};"
    yield f"        const {real} nearest = turns + half;"
    yield "        const long k = (long)nearest;"
    yield f"        const {real} n = ({real})k;"
    yield f"        const {real} r = ((x - (n * {first})) - (n * {second})) - (n * {third});"
    yield f"        const {real} z = r * r;"
    yield "        const long quarter = (k + shift) % 4;  /* of any sign */"
    yield "        const int across = (int)((quarter + 4) % 4);"
    yield f"        const {real} s = r + ((r * z) * {_polynomial(SINE[char])});"
    yield f"        const {real} c = (1.0{suffix} - (0.5{suffix} * z)) + ((z * z) * {_polynomial(COSINE[char])});"
    yield "        y = ((across % 2) != 0) ? c : s;"
    yield "        y = (across >= 2) ? -y : y;"
    yield "    }"
    yield "    return y;"
    yield "}"
    yield f"static {real} {name}_sin({real} x) {{ return {name}_turn(x, 0); }}"
    yield f"static {real} {name}_cos({real} x) {{ return {name}_turn(x, 1); }}"
    yield ""


def _polynomial(words: str) -> str:
    """By Horner's rule in z."""
    text, *rest = words.split()
    for c in rest:
        text = f"(({text} * z) + {c})" if not c.startswith("-") else f"(({text} * z) - {c[1:]})"
    return text


def _test(
    code: Code, name: str, cases: Sequence, char: str, known: Collection[str]
) -> Iterator[str]:
    real, suffix = REAL[char]
    inputs, outputs = code.program.inputs, code.program.outputs
    yield f"/* Right numbers for {name}: prints the largest error of each result, and returns 0 where all are small. */"
    yield f'#include "{name}.h"'
    yield "#include <math.h>"
    yield "#include <stdio.h>"
    yield ""
    yield f"#define CASES {len(cases)}"
    for place, group in ((0, inputs), (1, outputs)):
        for i, arg in enumerate(group):
            if place or arg.name not in known:
                size = f"CASES * {max(1, arg.size)}"
                yield from _table(
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
    yield f"    return most <= {WITHIN[char]:g}{suffix} * size;"
    yield "}"
    yield ""
    yield "int main(void)"
    yield "{"
    for arg in outputs:
        yield f"    static {real} {arg.name}[CASES * {arg.size}];"
    yield "    int good = 1;"
    taken = [arg.name for arg in (*inputs, *outputs) if arg.name not in known]
    yield f"    {name}_batch(CASES, {', '.join(taken)});"
    for arg in outputs:
        yield f'    good &= close_to("{arg.name}", {arg.name}, right_{arg.name}, CASES * {arg.size});'
    yield "    return good ? 0 : 1;"
    yield "}"
