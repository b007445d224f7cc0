"""C99 from a tape: one straight-line function without loops, branches, memory or libraries other than <math.h>.

    void forward_dynamics(const double *q, const double *v, const double *tau, double *a)

takes the inputs of the quantity in their order, then its outputs; matrices are row by row. Results are stored last, so
that an output may be one of the inputs' arrays. Long tapes and large robots are several functions, and loops (`c_loops.py`,
`c_columns.py`); `c_files.py` puts a header and a test program beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi._util.text import shown
from psiphi.backends.c.c_columns import Columns, ColumnsCode
from psiphi.backends.c.c_lines import REAL, Dialect, alive, tape_lines
from psiphi.backends.c.c_loops import CutCode, LoopedCode, framed_function
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op

LONG = 4000  # operations beyond which a compiler's time for one function grows out of hand
MOST = 400_000  # and beyond which no compiler should be asked
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
LOCAL = re.compile(r"t\d+|c\d+_\d+|frame|i|n")  # what the functions call their own numbers
TAKEN = """\
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while sin cos sqrt sinf cosf sqrtf
"""  # C99's own words, and what a robot's function calls
LIBRARY = """\
main abort abs atexit atof atoi atol bsearch calloc div exit fabs floor ceil fmod free getenv labs ldiv malloc pow qsort rand
realloc srand strtod strtol system tan acos asin atan atan2 exp log log10 memchr memcmp memcpy memmove memset strcat strchr
strcmp strcpy strlen strncmp strncpy strstr printf fprintf sprintf snprintf scanf fopen fclose fread fwrite fputs puts putchar
getchar perror remove rename time clock difftime mktime signal raise longjmp setjmp assert errno read write open close sleep
"""  # of C's library: a function of such a name would take its place in the whole program
Code = StraightCode | LinkLoops | Columns


class C99:
    """C99, for other people's programs."""

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        check_function(name)

    def emit(self, code: Any, char: str = "d", name: str = "", about: str = "") -> str:
        return c_source(known_code(code), name, about, char)


def c_source(code: Code, name: str, about: str = "", char: str = "d") -> str:
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
            [*comment(code, about, char), "#include <math.h>", "", *function(code, name, char)]
        )
        + "\n"
    )


def function(
    code: Code, name: str, char: str = "d", trig: dict[Op, str] | None = None, static: bool = False
) -> list[str]:
    """The lines of the function; `trig` names other sines and cosines than the library's."""
    head = f"{'static ' * static}void {name}({', '.join(parameters(code, name, char))})"
    dialect, made = Dialect.of(char, trig), in_frame(code)
    if isinstance(made, ColumnsCode):
        return list(made.function(head, name, dialect))
    if made is not None:
        return list(framed_function(made, head, name, dialect))
    assert isinstance(code, StraightCode)
    return [head, "{", *(f"    {line}" for line in _body(code, dialect)), "}"]


def in_frame(code: Code) -> CutCode | LoopedCode | ColumnsCode | None:
    """Code that is too long for one function; None for the others."""
    if isinstance(code, Columns):
        return ColumnsCode(code)
    if isinstance(code, LinkLoops):
        return LoopedCode(code)
    size = len(code.tape.computed(code.ends))
    if size > MOST:
        cause = f"{code.program.name} would be {size} lines of C: over so many bodies it is no sweep, and fits no loop"
        raise StateError(
            cause,
            "emit what it is made of, such as inverse_dynamics or forward_dynamics, which are loops",
        )
    return CutCode(code) if size > LONG else None


def parameters(code: Code, name: str, char: str = "d", known: Collection[str] = ()) -> list[str]:
    """Its arguments, as C declares them; none for those that are `known`."""
    check_function(name)
    real, _ = REAL[char]
    inputs, outputs = code.program.inputs, code.program.outputs
    for word in (arg.name for arg in (*inputs, *outputs)):
        check_name(word)
        if LOCAL.fullmatch(word):
            raise StateError(
                f"{shown(word)} is the name of one of the function's own numbers",
                "call the vector otherwise",
            )
    taken = [f"const {real} *{arg.name}" for arg in inputs if arg.name not in known]
    return taken + [f"{real} *{arg.name}" for arg in outputs]


def known_code(code: Any) -> Code:
    """A tape or loops of it, or words."""
    if not isinstance(code, Code):
        raise StateError(
            "the function is several programs one after the other, and C is written of one",
            "use --target llvm",
        )
    return code


def check_function(name: object) -> None:
    """Refuse what C could not call a function that others link."""
    check_name(name)
    if name in LIBRARY.split():
        raise StateError(
            f"{shown(name)} is a function of C's library",
            f"name it otherwise, such as robot_{name}",
        )


def check_name(name: object) -> None:
    """Refuse what C could not call a function, or an argument."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in TAKEN.split():
        raise StateError(
            f"{shown(name)} is no name in C",
            "use letters, digits and _, and none of the language's own words",
        )


def comment(code: Code, about: str, char: str = "d", known: Collection[str] = ()) -> Iterator[str]:
    """What the function is, takes and costs."""
    count, size, made = code.count, 8 if char == "d" else 4, in_frame(code)
    yield f"/* {c_comment(about or code.program.name)}"
    for kind, group in (("in", code.program.inputs), ("out", code.program.outputs)):
        for arg in group:
            if arg.name in known:
                yield f" * {arg.name}: {_shape(arg)}, at the head of the source file."
            else:
                yield f" *   {kind:<4}{arg.name:<6} {_shape(arg)}"
    yield f" * {count.mul} *, {count.add} + or -, {count.div} /, {count.sqrt} sqrt, {count.trig} sin or cos. SI units."
    waiting = most_alive(code)
    if made is not None:
        yield f" * {size * made.frame} bytes of stack for the frame; beside it at most {waiting} numbers are alive at a time:"
        yield f" * {size * waiting} bytes of registers and stack."
    else:
        yield f" * At most {waiting} numbers are alive at a time: {waiting * size} bytes of registers and stack."
    yield " */"


def most_alive(code: Code) -> int:
    """How many numbers a machine must hold at once, when it computes in this order; beside the frame, where there is one."""
    made = in_frame(code)
    if made is not None:
        return made.alive
    assert isinstance(code, StraightCode)
    return alive(code.tape, code.tape.computed(code.ends), code.ends)


def _shape(arg: Argument) -> str:
    words = (
        "one number" if not arg.shape else f"{arg.shape[0]} numbers" if len(arg.shape) == 1 else ""
    )
    return words or " x ".join(map(str, arg.shape)) + " numbers, row by row"


def _body(straight: StraightCode, dialect: Dialect) -> Iterator[str]:
    tape, inputs, outputs = straight.tape, straight.program.inputs, straight.program.outputs
    leaves = {node: tape.nodes[node] for node in straight.live if tape.nodes[node][0] is Op.LEAF}
    read = {int(place) for _, place, _ in leaves.values()}
    yield from (
        f"(void){arg.name};" for i, arg in enumerate(inputs) if i not in read
    )  # a strict compiler asks
    given = {node: f"{inputs[int(place)].name}[{at}]" for node, (_, place, at) in leaves.items()}
    last = {f"{outputs[number].name}[{index}]": node for number, index, node in straight.stores}
    stores = [(place, node, False) for place, node in last.items()]
    yield from tape_lines(tape, tape.computed(straight.ends), given, stores, dialect)
