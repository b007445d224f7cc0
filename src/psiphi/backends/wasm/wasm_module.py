"""WebAssembly from a tape, inside a small JavaScript module: the function runs in a page, or wherever JavaScript does.

    import { forward_dynamics } from "./forward_dynamics.js";
    const f = await forward_dynamics.load();
    const a = f.call(q, v, tau);                       // Float64Array; of several results an object
    f.q.set(q); f.v.set(v); f.run(); f.a               // the same without copies: views of the function's own memory

The binary is written here byte by byte (WebAssembly 1.0: no threads, no SIMD), one function for each piece of the tape over one
frame of memory; sines and cosines are JavaScript's. No server, no compiler, no dependency.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, NamedTuple

from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi._util.text import shown
from psiphi.compiler.ir.block_frame import BlockFrame, PlacedBlock
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.ir.segments import Pieces, Segment, cut
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
TAKEN = """\
arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally
for function if implements import in instanceof interface let new null package private protected public return static super
switch this throw true try typeof var void while with yield run call constructor load inputs outputs length name prototype
"""  # JavaScript's own words, and what the class calls its members
PAGE = 65536  # bytes: memory comes in such pages


class NumberType(NamedTuple):
    """A type of numbers: its codes in the binary, and how to get to f64 and back."""

    size: int
    array: str
    form: str  # of a constant
    codes: dict[Op, int]
    const: int
    load: bytes
    store: bytes
    flag: bytes  # 0 or 1 as a number
    widen: bytes
    narrow: bytes


_F64 = {
    Op.ADD: 0xA0,
    Op.SUB: 0xA1,
    Op.MUL: 0xA2,
    Op.DIV: 0xA3,
    Op.SQRT: 0x9F,
    Op.NEG: 0x9A,
    Op.LESS: 0x63,
}
_F32 = {
    Op.ADD: 0x92,
    Op.SUB: 0x93,
    Op.MUL: 0x94,
    Op.DIV: 0x95,
    Op.SQRT: 0x91,
    Op.NEG: 0x8C,
    Op.LESS: 0x5D,
}
NUMBERS = {
    "d": NumberType(
        8, "Float64Array", "<d", _F64, 0x44, b"\x2b\x03", b"\x39\x03", b"\xb7", b"", b""
    ),
    "f": NumberType(
        4, "Float32Array", "<f", _F32, 0x43, b"\x2a\x02", b"\x38\x02", b"\xb2", b"\xbb", b"\xb6"
    ),
}
VALUE = {"d": b"\x7c", "f": b"\x7d"}  # the types of locals
GET, SET, TEE, CALL, ADDRESS, END = b"\x20", b"\x21", b"\x22", b"\x10", b"\x41\x00", b"\x0b"
IF, LOOP, AGAIN, BOTH = (
    b"\x04\x40",
    b"\x03\x40",
    b"\x0d\x00",
    b"\x71",
)  # of no result; again if the last word was 1; and
SINE, COSINE, OWN = 0, 1, 2  # functions: two are imported, ours follow


class WebAssembly:
    """JavaScript with WebAssembly in it, for pages."""

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name) or name in TAKEN.split():
            cause = f"{shown(name)} is no name for a class or a member in JavaScript"
            raise StateError(
                cause, "use letters, digits and _, and none of the language's own words"
            )

    def emit(self, code: Any, char: str = "d", name: str = "", about: str = "") -> str:
        if not isinstance(code, StraightCode):
            bodies = len(code.tree.links)
            raise StateError(
                f"the robot has {bodies} bodies, WebAssembly is written for up to 64",
                "use --target llvm",
            )
        self.check_name(name)
        for arg in (*code.program.inputs, *code.program.outputs):
            self.check_name(arg.name)
        return javascript(code, name, about, char)


def javascript(straight: StraightCode, name: str, about: str = "", char: str = "d") -> str:
    """The text of a module with one class."""
    pieces, number = cut(straight), NUMBERS[char]
    inputs, outputs = (
        straight.program.inputs,
        _apart(straight.program.inputs, straight.program.outputs),
    )
    places = zip((*inputs, *outputs), (*pieces.layout.inputs, *pieces.layout.outputs), strict=True)
    views = [
        f"this.{arg.name} = new {number.array}(memory, {number.size * at}, {arg.size});"
        for arg, at in places
    ]
    given = ", ".join(arg.name for arg in inputs)
    answers = [f"{arg.name}: this.{arg.name}.slice()" for arg in outputs]
    answer = (
        f"this.{outputs[0].name}.slice()" if len(outputs) == 1 else f"{{ {', '.join(answers)} }}"
    )
    shapes = [
        json.dumps({arg.name: list(arg.shape) for arg in group}) for group in (inputs, outputs)
    ]
    count = straight.count
    return f"""\
/* {c_comment(about or straight.program.name)}
 * {count.mul} *, {count.add} + or -, {count.div} /, {count.sqrt} sqrt, {count.trig} sin or cos. SI units; matrices row by row.
 */
const binary = "{b64encode(binary(pieces, char)).decode()}";

export class {name} {{
  static inputs = {shapes[0]};
  static outputs = {shapes[1]};

  static async load() {{
    const code = Uint8Array.from(atob(binary), (c) => c.charCodeAt(0));
    const {{ instance }} = await WebAssembly.instantiate(code, {{ m: {{ sin: Math.sin, cos: Math.cos }} }});
    return new {name}(instance.exports);
  }}

  constructor({{ run, memory: {{ buffer: memory }} }}) {{
    this.run = run;
    {f"{chr(10)}    ".join(views)}
  }}

  /* {given} */
  call(...given) {{
    Object.keys(this.constructor.inputs).forEach((key, i) => {{
      const [got, want] = [given[i]?.length, this[key].length];
      if (got !== want) throw new RangeError(`${{key}} has ${{got}} numbers, expected ${{want}}`);
      this[key].set(given[i]);
    }});
    this.run();
    return {answer};
  }}
}}
"""


def _apart(inputs: Iterable[Argument], outputs: Iterable[Argument]) -> list[Argument]:
    """Results under names that no argument has."""
    taken = {arg.name for arg in inputs}
    return [
        Argument(f"{arg.name}_out" if arg.name in taken else arg.name, arg.shape) for arg in outputs
    ]


# -- the binary ---------------------------------------------------------------------------------------------------------------


def binary(pieces: Pieces, char: str = "d") -> bytes:
    """A module that exports `run` and its `memory`, the frame at address 0."""
    bodies = _pieces((pieces.prologue, *pieces.segments), pieces, char)
    bodies.append(_calls(range(OWN, OWN + len(bodies)), char))
    return _module(bodies, {"run": OWN + len(bodies) - 1}, pieces.frame, char)


def blocks_binary(
    frame: BlockFrame,
    entries: dict[str, tuple[str, ...]],
    char: str = "d",
    repeats: tuple[Repeat, ...] = (),
) -> bytes:
    """A module of many blocks over one frame, exported as `memory`: each entry runs its blocks in order, repeats among them."""
    bodies: list[bytes] = []
    at: dict[str, int] = {}
    looped = {repeat.name: repeat for repeat in repeats}
    wanted = (one for order in entries.values() for one in order)
    for name in dict.fromkeys(
        part for one in wanted for part in (looped[one].blocks if one in looped else (one,))
    ):
        block = frame.blocks[name]
        if not isinstance(block, PlacedBlock):
            raise StateError(
                f"{name} runs in loops over links, and WebAssembly has none",
                "take a robot of up to 64 bodies",
            )
        parts = _pieces(block.segments, block, char)
        bodies += [*parts, _calls(range(OWN + len(bodies), OWN + len(bodies) + len(parts)), char)]
        at[name] = OWN + len(bodies) - 1
    for name, repeat in looped.items():
        bodies.append(_repeat(repeat, frame, at, char))
        at[name] = OWN + len(bodies) - 1
    first = OWN + len(bodies)
    bodies += [_calls((at[name] for name in order), char) for order in entries.values()]
    return _module(bodies, {name: first + i for i, name in enumerate(entries)}, frame.size, char)


def _module(bodies: list[bytes], entries: dict[str, int], frame: int, char: str) -> bytes:
    """Functions of no arguments over one frame; some of them are exported, and the memory."""
    pages = 1 + NUMBERS[char].size * frame // PAGE
    types = [b"\x60" + vector([b"\x7c"]) + vector([b"\x7c"]), b"\x60" + vector([]) + vector([])]
    imports = [text("m") + text(name) + b"\x00\x00" for name in ("sin", "cos")]
    exports = [
        *(text(name) + b"\x00" + whole(i) for name, i in entries.items()),
        text("memory") + b"\x02\x00",
    ]
    sections = {
        1: types,
        2: imports,
        3: [b"\x01"] * len(bodies),
        5: [b"\x00" + whole(pages)],
        7: exports,
        10: bodies,
    }
    return b"\0asm\1\0\0\0" + b"".join(
        bytes([i]) + sized(vector(items)) for i, items in sections.items()
    )


def _pieces(segments: Iterable[Segment], block: Pieces | PlacedBlock, char: str) -> list[bytes]:
    """The arguments of sines and cosines, these, then the rest."""
    first, *rest = segments
    bodies = [_piece(first, char), _angles(block, char)]
    for segment in rest:
        bodies += [*([_angles(segment, char)] if segment.angles else ()), _piece(segment, char)]
    return bodies


def _calls(functions: Iterable[int], char: str) -> bytes:
    return _body(b"".join(CALL + whole(i) for i in functions), 0, char)


def _repeat(repeat: Repeat, frame: BlockFrame, at: dict[str, int], char: str) -> bytes:
    """look; if (0 < when) { before; do again while (done < 1 && ++k < most); after }, k the one local."""
    number = NUMBERS[char]
    const, less, add = (
        bytes([x]) for x in (number.const, number.codes[Op.LESS], number.codes[Op.ADD])
    )
    one, zero, most = (const + struct.pack(number.form, float(x)) for x in (1, 0, repeat.most))
    call = {name: CALL + whole(at[name]) for name in repeat.blocks}
    when, done = (
        ADDRESS + number.load + whole(number.size * frame.places[x])
        for x in (repeat.when, repeat.done)
    )
    k_up = GET + whole(0) + one + add + TEE + whole(0)
    again = LOOP + call[repeat.again] + done + one + less + k_up + most + less + BOTH + AGAIN + END
    inside = b"".join(call[name] for name in repeat.before) + again + call[repeat.after]
    return _body(call[repeat.look] + zero + when + less + IF + inside + END, 1, char)


def _piece(segment: Segment, char: str) -> bytes:
    """One function: every node once, into a local; values from elsewhere are read once."""
    number, tape = NUMBERS[char], segment.tape
    local: dict[int, bytes] = {}
    code: list[bytes] = []

    def named(node: int) -> bytes:
        local[node] = whole(len(local))
        return local[node]

    def get(node: int) -> bytes:
        if node in local:
            return GET + local[node]
        if node in segment.given:
            return (
                ADDRESS
                + number.load
                + whole(number.size * segment.given[node][1])
                + TEE
                + named(node)
            )
        op, a, _ = tape.nodes[node]
        assert op is Op.CONST, op
        return bytes([number.const]) + struct.pack(number.form, a)

    for node in segment.nodes:
        op, a, b = tape.nodes[node]
        value = get(a) + (get(b) if op in BINARY else b"") + bytes([number.codes[op]])
        code.append(value + (number.flag if op is Op.LESS else b"") + SET + named(node))
    # An address goes under its value: the store's own offset says where in the frame.
    stores = [
        ADDRESS + get(x.node) + number.store + whole(number.size * x.offset) for x in segment.stores
    ]
    return _body(b"".join((*code, *stores)), len(local), char)


def _angles(pieces: Pieces | PlacedBlock | Segment, char: str) -> bytes:
    """Sine and cosine behind every angle of the frame."""
    number, code = NUMBERS[char], b""
    for i in range(pieces.angles):
        at = pieces.angle_base + 3 * i
        angle = ADDRESS + number.load + whole(number.size * at) + number.widen
        for function in (SINE, COSINE):
            value = angle + CALL + whole(function) + number.narrow
            code += ADDRESS + value + number.store + whole(number.size * (at + 1 + function))
    return _body(code, 0, char)


def _body(code: bytes, locals: int, char: str) -> bytes:
    return sized(vector([whole(locals) + VALUE[char]] if locals else []) + code + END)


def whole(n: int) -> bytes:
    """A natural number, seven bits a byte, the last ones first."""
    out = []
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def vector(items: list[bytes]) -> bytes:
    return whole(len(items)) + b"".join(items)


def sized(data: bytes) -> bytes:
    return whole(len(data)) + data


def text(name: str) -> bytes:
    return sized(name.encode())
