"""C99 from a tape: one straight-line function without loops, branches, memory or libraries other than <math.h>.

    void forward_dynamics(const double *q, const double *v, const double *tau, double *a)

takes the inputs of the quantity in their order, then its outputs; matrices are row by row. Results are stored last, so
that an output may be one of the inputs' arrays. `c_files.py` puts a header and a test program beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from psiphi.errors import StateError
from psiphi.escaping import c_comment
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import Argument
from psiphi.tape.ops import BINARY, Op
from psiphi.tape.tape import operands
from psiphi.wording import shown

SIGN = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.LESS: "<"}
FUNCTION = {Op.SIN: "sin", Op.COS: "cos", Op.SQRT: "sqrt"}
REAL = {"d": ("double", ""), "f": ("float", "f")}  # the type, and the suffix of its constants and functions
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
LOCAL = re.compile(r"t\d+|c\d+_\d+")  # what the body calls its numbers
TAKEN = """\
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while sin cos sqrt sinf cosf sqrtf
"""  # C99's own words, and what a robot's function calls


class C99:
    """C99, for other people's programs."""

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        check_name(name)

    def emit(self, code: Any, char: str = "d", name: str = "", about: str = "") -> str:
        return c_source(straight_code(code), name, about, char)


def c_source(straight: Straight, name: str, about: str = "", char: str = "d") -> str:
    """The text of one C function.

    >>> import psiphi as pp
    >>> code = pp.robots.pelican().function("gravity").code
    >>> print(c_source(code, "gravity"))  # doctest: +ELLIPSIS
    /* ...
    void gravity(const double *q, double *tau)
    {
    ...
    """
    return "\n".join([*comment(straight, about, char), "#include <math.h>", "", *function(straight, name, char)]) + "\n"


def function(
    straight: Straight, name: str, char: str = "d", trig: dict[Op, str] | None = None, static: bool = False
) -> list[str]:
    """The lines of the function; `trig` names other sines and cosines than the library's."""
    real, suffix = REAL[char]
    called = {op: f"{word}{suffix}" for op, word in FUNCTION.items()} | (trig or {})
    head = f"{'static ' * static}void {name}({', '.join(parameters(straight, name, char))})"
    return [head, "{", *(f"    {line}" for line in _body(straight, real, suffix, called)), "}"]


def parameters(straight: Straight, name: str, char: str = "d") -> list[str]:
    """Its arguments, as C declares them."""
    check_name(name)
    real, _ = REAL[char]
    inputs, outputs = straight.program.inputs, straight.program.outputs
    for word in (arg.name for arg in (*inputs, *outputs)):
        check_name(word)
        if LOCAL.fullmatch(word):
            raise StateError(f"{shown(word)} is the name of one of the function's own numbers", "call the vector otherwise")
    return [f"const {real} *{arg.name}" for arg in inputs] + [f"{real} *{arg.name}" for arg in outputs]


def straight_code(code: Any) -> Straight:
    """Code without loops, or words."""
    if not isinstance(code, Straight):
        bodies = len(code.tree.links)
        raise StateError(f"the robot has {bodies} bodies, C is written for up to 64", "use --target llvm")
    return code


def check_name(name: object) -> None:
    """Refuse what C could not call a function, or an argument."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in TAKEN.split():
        raise StateError(f"{shown(name)} is no name in C", "use letters, digits and _, and none of the language's own words")


def comment(straight: Straight, about: str, char: str = "d") -> Iterator[str]:
    """What the function is, takes and costs."""
    count, alive = straight.count, most_alive(straight)
    yield f"/* {c_comment(about or straight.program.name)}"
    for kind, group in (("in", straight.program.inputs), ("out", straight.program.outputs)):
        for arg in group:
            yield f" *   {kind:<4}{arg.name:<6} {_shape(arg)}"
    yield f" * {count.mul} *, {count.add} + or -, {count.div} /, {count.sqrt} sqrt, {count.trig} sin or cos. SI units."
    yield f" * At most {alive} numbers are alive at a time: {alive * (8 if char == 'd' else 4)} bytes of registers and stack."
    yield " */"


def most_alive(straight: Straight) -> int:
    """How many numbers a machine must hold at once, when it computes in this order."""
    tape = straight.tape
    order = [n for n in tape.live(node for *_, node in straight.stores) if tape.nodes[n][0] not in (Op.LEAF, Op.CONST)]
    last = {o: i for i, n in enumerate(order) for o in operands(tape, n)}
    last |= {node: len(order) for *_, node in straight.stores}
    ends = Counter(last[n] for n in order)
    most = now = 0
    for i in range(len(order)):
        now += 1
        most = max(most, now)
        now -= ends[i]
    return most


def _shape(arg: Argument) -> str:
    words = "one number" if not arg.shape else f"{arg.shape[0]} numbers" if len(arg.shape) == 1 else ""
    return words or " x ".join(map(str, arg.shape)) + " numbers, row by row"


def _body(straight: Straight, real: str, suffix: str, called: dict[Op, str]) -> Iterator[str]:
    tape, inputs, outputs = straight.tape, straight.program.inputs, straight.program.outputs
    text: dict[int, str] = {}
    read = {int(tape.nodes[n][1]) for n in tape.live(node for *_, node in straight.stores) if tape.nodes[n][0] is Op.LEAF}
    yield from (f"(void){arg.name};" for i, arg in enumerate(inputs) if i not in read)  # a strict compiler asks
    for node in tape.live(node for *_, node in straight.stores):
        op, a, b = tape.nodes[node]
        if op is Op.LEAF:
            text[node] = f"{inputs[int(a)].name}[{b}]"
            continue
        if op is Op.CONST:
            text[node] = f"{a!r}{suffix}"
            continue
        if op in BINARY:
            value = f"{text[a]} {SIGN[op]} {_operand(text[b])}"
        elif op is Op.NEG:
            value = f"-{_operand(text[a])}"
        else:
            value = f"{called[op]}({text[a]})"
        text[node] = f"t{node}"
        yield f"const {real} t{node} = {value};"
    last = {(number, index): text[node] for number, index, node in straight.stores}
    kept = {}
    for place, value in last.items():  # an input that goes out is read before anything is written
        if value.endswith("]"):
            kept[place] = f"c{place[0]}_{place[1]}"
            yield f"const {real} {kept[place]} = {value};"
    for (number, index), value in last.items():
        yield f"{outputs[number].name}[{index}] = {kept.get((number, index), value)};"


def _operand(text: str) -> str:
    return f"({text})" if text.startswith("-") else text
