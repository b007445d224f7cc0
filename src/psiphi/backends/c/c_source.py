"""C99 from a tape: one straight-line function without loops, branches, memory allocation or
libraries other than <math.h>.

    void forward_dynamics(const double *q, const double *v, const double *tau, double *a)

The parameters are the inputs of the function in their order, then its outputs; matrices are
row-major. Results are stored last, so that an output may be the array of an input. Long tapes are
several functions, and large robots are loops (`c_loops.py`, `c_columns.py`); `c_files.py` adds a
header and a test program.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi._util.text import shown
from psiphi.backends.c.c_columns import Columns, ColumnsCode
from psiphi.backends.c.c_lines import REAL, Dialect, max_live_values, tape_lines
from psiphi.backends.c.c_loops import CutCode, LoopedCode, framed_function
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op

if TYPE_CHECKING:  # target.py imports this file
    from psiphi.backends.target import Code

MAX_FUNCTION_SIZE = 4000  # operations; compilers take too long for larger functions
MAX_SIZE = 400_000  # operations; psiphi writes no larger sources
C_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
LOCAL_NAME = re.compile(r"t\d+|c\d+_\d+|frame|i|n")  # names of local variables
RESERVED_WORDS = """\
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while sin cos sqrt sinf cosf sqrtf
"""  # C99's keywords, and the functions that a robot's function calls
LIBRARY_FUNCTIONS = """\
main abort abs atexit atof atoi atol bsearch calloc div exit fabs floor ceil fmod free getenv labs
ldiv malloc pow qsort rand realloc srand strtod strtol system tan acos asin atan atan2 exp log log10
memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy strlen strncmp strncpy strstr printf
fprintf sprintf snprintf scanf fopen fclose fread fwrite fputs puts putchar getchar perror remove
rename time clock difftime mktime signal raise longjmp setjmp assert errno read write open close
sleep
"""  # of the C library: a function of such a name would replace it in the whole program
CCode = StraightCode | LinkLoops | Columns


class C99:
    """C99, for programs outside Python."""

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        check_function(name)

    def emit(self, code: Code, char: str = "d", name: str = "", about: str = "") -> str:
        return c_source(check_code(code), name, about, char)


def c_source(code: CCode, name: str, about: str = "", char: str = "d") -> str:
    """The text of one C function.

    >>> import psiphi as pp
    >>> code = pp.robots.pelican().function("gravity").code
    >>> print(c_source(code, "gravity"))  # doctest: +ELLIPSIS
    /* ...
    void gravity(const double *q, double *tau)
    {
    ...
    """
    return (
        "\n".join(
            [*comment(code, about, char), "#include <math.h>", "", *c_function(code, name, char)]
        )
        + "\n"
    )


def c_function(
    code: CCode, name: str, char: str = "d", trig: dict[Op, str] | None = None, static: bool = False
) -> list[str]:
    """The lines of the function; `trig` names functions to use instead of libm's sin and cos."""
    head = f"{'static ' * static}void {name}({', '.join(c_parameters(code, name, char))})"
    dialect, framed = Dialect.of(char, trig), framed_code(code)
    if isinstance(framed, ColumnsCode):
        return list(framed.function(head, name, dialect))
    if framed is not None:
        return list(framed_function(framed, head, name, dialect))
    assert isinstance(code, StraightCode)
    return [head, "{", *(f"    {line}" for line in _body(code, dialect)), "}"]


def framed_code(code: CCode) -> CutCode | LoopedCode | ColumnsCode | None:
    """Code that is too long for one function, or None."""
    if isinstance(code, Columns):
        return ColumnsCode(code)
    if isinstance(code, LinkLoops):
        return LoopedCode(code)
    size = len(code.tape.operations(code.output_nodes))
    if size > MAX_SIZE:
        raise StateError(
            f"{code.program.name} would be {size} lines of C, since it has no form in loops",
            "emit a function that has one, such as inverse_dynamics or forward_dynamics",
        )
    return CutCode(code) if size > MAX_FUNCTION_SIZE else None


def c_parameters(
    code: CCode, name: str, char: str = "d", tables: Collection[str] = ()
) -> list[str]:
    """The declarations of its parameters, without those that are `static const` tables."""
    check_function(name)
    real, _ = REAL[char]
    inputs, outputs = code.program.inputs, code.program.outputs
    for name_of_argument in (arg.name for arg in (*inputs, *outputs)):
        check_name(name_of_argument)
        if LOCAL_NAME.fullmatch(name_of_argument):
            raise StateError(
                f"{shown(name_of_argument)} is the name of a local variable of the function",
                "rename the argument",
            )
    declared = [f"const {real} *{arg.name}" for arg in inputs if arg.name not in tables]
    return declared + [f"{real} *{arg.name}" for arg in outputs]


def check_code(code: Code) -> CCode:
    """The code, if C can be written for it."""
    if not isinstance(code, CCode):
        cause = "the function runs several programs in sequence, and C is written for a single one"
        raise StateError(cause, "use --target llvm")
    return code


def check_function(name: object) -> None:
    """Reject a name that a linked C function cannot have."""
    check_name(name)
    if name in LIBRARY_FUNCTIONS.split():
        raise StateError(
            f"{shown(name)} is a function of the C library",
            f"use another name, such as robot_{name}",
        )


def check_name(name: object) -> None:
    """Reject a name that a C function or parameter cannot have."""
    if not isinstance(name, str) or not C_NAME.fullmatch(name) or name in RESERVED_WORDS.split():
        raise StateError(
            f"{shown(name)} is not a valid name in C",
            "use letters, digits and _, and no keyword",
        )


def comment(
    code: CCode, about: str, char: str = "d", tables: Collection[str] = ()
) -> Iterator[str]:
    """The comment of the function: what it is, its arguments, its operation counts and memory."""
    count, size, framed = code.count, 8 if char == "d" else 4, framed_code(code)
    yield f"/* {c_comment(about or code.program.name)}"
    for kind, group in (("in", code.program.inputs), ("out", code.program.outputs)):
        for arg in group:
            if arg.name in tables:
                yield f" * {arg.name}: {_shape_text(arg)}, a table at the top of the source file."
            else:
                yield f" *   {kind:<4}{arg.name:<6} {_shape_text(arg)}"
    yield (
        f" * {count.mul} *, {count.add} + or -, {count.div} /, {count.sqrt} sqrt, "
        f"{count.trig} sin or cos. SI units."
    )
    live = max_live(code)
    numbers = f"{live} numbers are live at a time: {size * live} bytes of registers and stack."
    if framed is not None:
        yield f" * {size * framed.frame_size} bytes of stack for the frame; in addition, at most"
        yield f" * {numbers}"
    else:
        yield f" * At most {numbers}"
    yield " */"


def max_live(code: CCode) -> int:
    """How many numbers are live at a time, at most, besides those of the frame."""
    framed = framed_code(code)
    if framed is not None:
        return framed.max_live
    assert isinstance(code, StraightCode)
    return max_live_values(code.tape, code.tape.operations(code.output_nodes), code.output_nodes)


def _shape_text(arg: Argument) -> str:
    if len(arg.shape) > 1:
        return " x ".join(map(str, arg.shape)) + " numbers, row-major"
    return f"{arg.shape[0]} numbers" if arg.shape else "one number"


def _body(straight: StraightCode, dialect: Dialect) -> Iterator[str]:
    tape, inputs, outputs = straight.tape, straight.program.inputs, straight.program.outputs
    leaves = {node: tape.nodes[node] for node in straight.live if tape.nodes[node][0] is Op.LEAF}
    read = {int(place) for _, place, _ in leaves.values()}
    # strict compilers warn about unused parameters
    yield from (f"(void){arg.name};" for i, arg in enumerate(inputs) if i not in read)
    loads = {node: f"{inputs[int(place)].name}[{at}]" for node, (_, place, at) in leaves.items()}
    stored = {f"{outputs[number].name}[{index}]": node for number, index, node in straight.stores}
    stores = [(place, node, False) for place, node in stored.items()]
    yield from tape_lines(tape, tape.operations(straight.output_nodes), loads, stores, dialect)
