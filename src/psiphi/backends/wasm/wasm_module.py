"""WebAssembly of a tape in a small JavaScript module, for web pages and any JavaScript runtime.

    import { forward_dynamics } from "./forward_dynamics.js";
    const f = await forward_dynamics.load();
    const a = f.call(q, v, tau);                  // Float64Array; an object for several results
    f.q.set(q); f.v.set(v); f.run(); f.a          // without copies: views of the function's memory

The binary is WebAssembly 1.0 (no threads, no SIMD), written here byte by byte without a compiler:
one function per segment of the tape, over one frame in memory. Sines and cosines are JavaScript's.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64encode
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi._util.text import shown
from psiphi.compiler.ir.block_frame import BlockFrame, LaneBlock, PlacedBlock
from psiphi.compiler.ir.lane_blocks import GRID_LIMIT, GRID_POINTS, TABLE, GridLookup
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.ir.segments import Segment, SegmentedCode, split_segments
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op

if TYPE_CHECKING:  # target.py imports this file
    from psiphi.backends.target import Code

JS_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
RESERVED_WORDS = """\
arguments await break case catch class const continue debugger default delete do else enum eval
export extends false finally for function if implements import in instanceof interface let new null
package private protected public return static super switch this throw true try typeof var void
while with yield run call constructor load inputs outputs length name prototype
"""  # JavaScript's keywords, and members of the class
PAGE_BYTES = 65536  # of a page of memory


class NumberType(NamedTuple):
    """A number type: its opcodes, and the conversions to f64 and back."""

    size: int
    array: str
    form: str  # of a constant
    codes: dict[Op, int]
    const: int
    load: bytes
    store: bytes
    unequal: int
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
NUMBER_TYPES = {
    "d": NumberType(
        8, "Float64Array", "<d", _F64, 0x44, b"\x2b\x03", b"\x39\x03", 0x62, b"\xb7", b"", b""
    ),
    "f": NumberType(
        4,
        "Float32Array",
        "<f",
        _F32,
        0x43,
        b"\x2a\x02",
        b"\x38\x02",
        0x5C,
        b"\xb2",
        b"\xbb",
        b"\xb6",
    ),
}
F64_FLOOR, F64_MIN, F64_MAX = b"\x9c", b"\xa4", b"\xa5"
I32_FROM_F64 = b"\xfc\x02"  # saturating: 0 for NaN
LOCAL_TYPES = {"d": b"\x7c", "f": b"\x7d"}  # the types of locals
GET, SET, TEE, CALL, ADDRESS, END = b"\x20", b"\x21", b"\x22", b"\x10", b"\x41\x00", b"\x0b"
DROP = b"\x1a"
# blocks without a result; BR_IF repeats the loop if the top of the stack is 1
IF, LOOP, BR_IF, I32_AND = b"\x04\x40", b"\x03\x40", b"\x0d\x00", b"\x71"
SINE, COSINE, FIRST_FUNCTION = 0, 1, 2  # function numbers: two imports, then the module's own


class WebAssembly:
    """JavaScript that contains WebAssembly, for web pages."""

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        if (
            not isinstance(name, str)
            or not JS_NAME.fullmatch(name)
            or name in RESERVED_WORDS.split()
        ):
            cause = f"{shown(name)} is not a valid name for a class or member in JavaScript"
            raise StateError(cause, "use letters, digits and _, and no keyword")

    def emit(self, code: Code, char: str = "d", name: str = "", about: str = "") -> str:
        if not isinstance(code, StraightCode):
            cause = (
                "the function runs several programs in sequence, WebAssembly is for a single one"
            )
            if isinstance(code, LinkLoops):
                bodies = len(code.tree.links)
                cause = f"the robot has {bodies} bodies, WebAssembly is limited to 64"
            raise StateError(cause, "use --target llvm")
        self.check_name(name)
        for arg in (*code.program.inputs, *code.program.outputs):
            self.check_name(arg.name)
        return javascript(code, name, about, char)


def javascript(code: StraightCode, name: str, about: str = "", char: str = "d") -> str:
    """The text of a JavaScript module with one class."""
    pieces, number = split_segments(code), NUMBER_TYPES[char]
    inputs, outputs = (
        code.program.inputs,
        _distinct_outputs(code.program.inputs, code.program.outputs),
    )
    places = zip((*inputs, *outputs), (*pieces.layout.inputs, *pieces.layout.outputs), strict=True)
    views = [
        f"this.{arg.name} = new {number.array}(memory, {number.size * at}, {arg.size});"
        for arg, at in places
    ]
    parameters = ", ".join(arg.name for arg in inputs)
    fields = [f"{arg.name}: this.{arg.name}.slice()" for arg in outputs]
    result = (
        f"this.{outputs[0].name}.slice()" if len(outputs) == 1 else f"{{ {', '.join(fields)} }}"
    )
    shapes = [
        json.dumps({arg.name: list(arg.shape) for arg in group}) for group in (inputs, outputs)
    ]
    count = code.count
    counts = (
        f"{count.mul} *, {count.add} + or -, {count.div} /, {count.sqrt} sqrt, "
        f"{count.trig} sin or cos"
    )
    imports = "{ sin: Math.sin, cos: Math.cos }"
    return f"""\
/* {c_comment(about or code.program.name)}
 * {counts}. SI units; matrices are row-major.
 */
const binary = "{b64encode(binary(pieces, char)).decode()}";

export class {name} {{
  static inputs = {shapes[0]};
  static outputs = {shapes[1]};

  static async load() {{
    const code = Uint8Array.from(atob(binary), (c) => c.charCodeAt(0));
    const {{ instance }} = await WebAssembly.instantiate(code, {{ m: {imports} }});
    return new {name}(instance.exports);
  }}

  constructor({{ run, memory: {{ buffer: memory }} }}) {{
    this.run = run;
    {f"{chr(10)}    ".join(views)}
  }}

  /* {parameters} */
  call(...args) {{
    Object.keys(this.constructor.inputs).forEach((key, i) => {{
      const [got, want] = [args[i]?.length, this[key].length];
      if (got !== want) throw new RangeError(`${{key}} has ${{got}} numbers, expected ${{want}}`);
      this[key].set(args[i]);
    }});
    this.run();
    return {result};
  }}
}}
"""


def _distinct_outputs(inputs: Iterable[Argument], outputs: Iterable[Argument]) -> list[Argument]:
    """The outputs, renamed if an input has the same name."""
    input_names = {arg.name for arg in inputs}
    return [
        Argument(f"{arg.name}_out" if arg.name in input_names else arg.name, arg.shape)
        for arg in outputs
    ]


# -- the binary ------------------------------------------------------------------------------------


def binary(pieces: SegmentedCode, char: str = "d") -> bytes:
    """A module that exports `run` and its `memory`, the frame at address 0."""
    bodies = _block_functions((pieces.prologue, *pieces.segments), pieces, char)
    bodies.append(_calling_function(range(FIRST_FUNCTION, FIRST_FUNCTION + len(bodies)), char))
    return _module(bodies, {"run": FIRST_FUNCTION + len(bodies) - 1}, pieces.frame, char)


def blocks_binary(
    frame: BlockFrame,
    entries: dict[str, tuple[str, ...]],
    char: str = "d",
    repeats: tuple[Repeat, ...] = (),
    conditions: Mapping[str, str] | None = None,
    tables: Mapping[str, int] | None = None,
) -> bytes:
    """A module of several blocks over one frame, which is exported as `memory`; after the frame are
    the tables {place: size}, one after the other (`table_places`).

    Each entry is an exported function that runs its blocks (and repeats) in order. `conditions`
    are {block: value}: blocks that run only if the value is not 0.
    """
    bodies: list[bytes] = []
    index_of: dict[str, int] = {}
    conditions = conditions or {}
    repeats_by_name = {repeat.name: repeat for repeat in repeats}
    names = (part_name for order in entries.values() for part_name in order)

    def add_function(name: str, body: bytes) -> None:
        bodies.append(body)
        index_of[name] = FIRST_FUNCTION + len(bodies) - 1

    for name in dict.fromkeys(
        part
        for part_name in names
        for part in (
            repeats_by_name[part_name].blocks if part_name in repeats_by_name else (part_name,)
        )
    ):
        block = frame.blocks[name]
        if isinstance(block, LaneBlock) and isinstance(block.code, GridLookup) and char == "d":
            table = frame.named[name][1].get(TABLE, TABLE)
            body = _lookup_function(block, block.code, table_places(frame, tables or {})[table])
            add_function(name, body)
            continue
        if not isinstance(block, PlacedBlock):
            raise StateError(
                f"{name} runs in loops over links, which WebAssembly does not support",
                "use a robot of at most 64 bodies",
            )
        first = FIRST_FUNCTION + len(bodies)
        parts = _block_functions(block.segments, block, char)
        bodies += parts
        add_function(name, _calling_function(range(first, first + len(parts)), char))
        if name in conditions:
            place = frame.places[conditions[name]]
            add_function(name, _conditional_function(place, index_of[name], char))
    for name, repeat in repeats_by_name.items():
        add_function(name, _repeat_function(repeat, frame, index_of, char))
    first = FIRST_FUNCTION + len(bodies)
    bodies += [
        _calling_function((index_of[name] for name in order), char) for order in entries.values()
    ]
    size = frame.size + sum((tables or {}).values())
    return _module(bodies, {name: first + i for i, name in enumerate(entries)}, size, char)


def table_places(frame: BlockFrame, tables: Mapping[str, int]) -> dict[str, int]:
    """{place: offset} of the tables, in numbers."""
    starts = accumulate(tables.values(), initial=frame.size)
    return dict(zip(tables, starts, strict=False))


def _module(bodies: list[bytes], entries: dict[str, int], frame: int, char: str) -> bytes:
    """A module of functions without arguments; exports its entries and its memory."""
    pages = 1 + NUMBER_TYPES[char].size * frame // PAGE_BYTES
    types = [b"\x60" + vector([b"\x7c"]) + vector([b"\x7c"]), b"\x60" + vector([]) + vector([])]
    imports = [name_bytes("m") + name_bytes(name) + b"\x00\x00" for name in ("sin", "cos")]
    exports = [
        *(name_bytes(name) + b"\x00" + leb128(i) for name, i in entries.items()),
        name_bytes("memory") + b"\x02\x00",
    ]
    sections = {
        1: types,
        2: imports,
        3: [b"\x01"] * len(bodies),
        5: [b"\x00" + leb128(pages)],
        7: exports,
        10: bodies,
    }
    return b"\0asm\1\0\0\0" + b"".join(
        bytes([i]) + sized(vector(items)) for i, items in sections.items()
    )


def _block_functions(
    segments: Iterable[Segment], block: SegmentedCode | PlacedBlock, char: str
) -> list[bytes]:
    """Functions of a block: angles first, then sines and cosines, then the rest."""
    first, *rest = segments
    bodies = [_segment_function(first, char), _angle_function(block, char)]
    for segment in rest:
        bodies += [
            *([_angle_function(segment, char)] if segment.angles else ()),
            _segment_function(segment, char),
        ]
    return bodies


def _calling_function(functions: Iterable[int], char: str) -> bytes:
    return _function_body(b"".join(CALL + leb128(i) for i in functions), 0, char)


def _conditional_function(place: int, function: int, char: str) -> bytes:
    """if (value at `place` != 0) call the function."""
    call = CALL + leb128(function)
    return _function_body(_not_zero(place, NUMBER_TYPES[char]) + IF + call + END, 0, char)


def _not_zero(place: int, number: NumberType) -> bytes:
    """1 if the value at `place` is not 0, also if it is NaN."""
    value = ADDRESS + number.load + leb128(number.size * place)
    return value + _constant(0.0, number) + bytes([number.unequal])


def _constant(value: float, number: NumberType) -> bytes:
    return bytes([number.const]) + struct.pack(number.form, value)


def _repeat_function(
    repeat: Repeat, frame: BlockFrame, index_of: dict[str, int], char: str
) -> bytes:
    """test; if (when != 0) { before; do body while (done < 1 && ++k < limit); after }.

    k is the only local.
    """
    number = NUMBER_TYPES[char]
    less, add = bytes([number.codes[Op.LESS]]), bytes([number.codes[Op.ADD]])
    one, limit = _constant(1.0, number), _constant(float(repeat.limit), number)
    call = {name: CALL + leb128(index_of[name]) for name in repeat.blocks}
    done = ADDRESS + number.load + leb128(number.size * frame.places[repeat.done])
    increment = GET + leb128(0) + one + add + TEE + leb128(0)
    body = b"".join(call[name] for name in repeat.body)
    again = done + one + less + increment + limit + less + I32_AND + BR_IF
    inside = b"".join(call[name] for name in repeat.before) + LOOP + body + again + END
    inside += call[repeat.after] if repeat.after else b""
    when = _not_zero(frame.places[repeat.when], number)
    return _function_body(call[repeat.test] + when + IF + inside + END, 1, char)


def _lookup_function(block: LaneBlock, code: GridLookup, table: int) -> bytes:
    """The cells of points in a grid, and the numbers of the table about them. Locals: the cell, and
    the offsets of its rows and columns in the table."""
    number = NUMBER_TYPES["d"]
    add, multiply = bytes([number.codes[Op.ADD]]), bytes([number.codes[Op.MUL]])
    constant = lambda x: _constant(float(x), number)  # noqa: E731
    get, put = (lambda k: GET + leb128(k)), (lambda k: SET + leb128(k))
    text, to, most = b"", block.places["cells"], max(code.cells)

    def store(value: bytes, place: int) -> bytes:
        return ADDRESS + value + number.store + leb128(number.size * place)

    for point, (m, size) in enumerate(zip(code.cells, code.sizes, strict=True)):
        for axis, (nodes, step) in enumerate(
            zip(code.shape, (number.size * code.shape[1], number.size), strict=True)
        ):
            place = block.places[GRID_POINTS] + 2 * point + axis
            x = ADDRESS + number.load + leb128(number.size * place)
            bounded = x + constant(-GRID_LIMIT) + F64_MAX + constant(GRID_LIMIT) + F64_MIN
            text += bounded + F64_FLOOR + put(axis) + store(get(axis), to + axis)
            for k in range(m + 1):
                index = get(axis) + constant(k) + add + constant(0.0) + F64_MAX
                index += constant(nodes - 1) + F64_MIN + constant(step) + multiply
                text += index + put(2 + axis * (most + 1) + k)
        for i in range(m + 1):
            for j in range(m + 1):
                offset = get(2 + i) + get(3 + most + j) + add + I32_FROM_F64
                value = offset + number.load + leb128(number.size * table)
                text += store(value, to + 2 + i * (m + 1) + j)
        to += size
    return _function_body(text, 4 + 2 * most, "d")


def _segment_function(segment: Segment, char: str) -> bytes:
    """The function of a segment: each node is computed, and each value loaded, once to a local."""
    number, tape = NUMBER_TYPES[char], segment.tape
    local: dict[int, bytes] = {}
    code: list[bytes] = []

    def new_local(node: int) -> bytes:
        local[node] = leb128(len(local))
        return local[node]

    def get(node: int) -> bytes:
        if node in local:
            return GET + local[node]
        if node in segment.loads:
            return (
                ADDRESS
                + number.load
                + leb128(number.size * segment.loads[node][1])
                + TEE
                + new_local(node)
            )
        op, a, _ = tape.nodes[node]
        assert op is Op.CONST, op
        return _constant(a, number)

    for node in segment.nodes:
        op, a, b = tape.nodes[node]
        value = get(a) + (get(b) if op in BINARY else b"") + bytes([number.codes[op]])
        code.append(value + (number.flag if op is Op.LESS else b"") + SET + new_local(node))
    # a value that is only moved is loaded before a store overwrites it
    written = {store.offset for store in segment.stores}
    moved = dict.fromkeys(x.node for x in segment.stores if x.node in segment.loads)
    code += [
        get(node) + DROP
        for node in moved
        if node not in local and segment.loads[node][1] in written
    ]
    # The address is pushed before the value; the place in the frame is the offset of the store.
    stores = [
        ADDRESS + get(x.node) + number.store + leb128(number.size * x.offset)
        for x in segment.stores
    ]
    return _function_body(b"".join((*code, *stores)), len(local), char)


def _angle_function(pieces: SegmentedCode | PlacedBlock | Segment, char: str) -> bytes:
    """A function that writes sine and cosine after each angle of the frame."""
    number, code = NUMBER_TYPES[char], b""
    for i in range(pieces.angles):
        at = pieces.angle_base + 3 * i
        angle = ADDRESS + number.load + leb128(number.size * at) + number.widen
        for function in (SINE, COSINE):
            value = angle + CALL + leb128(function) + number.narrow
            code += ADDRESS + value + number.store + leb128(number.size * (at + 1 + function))
    return _function_body(code, 0, char)


def _function_body(code: bytes, locals: int, char: str) -> bytes:
    return sized(vector([leb128(locals) + LOCAL_TYPES[char]] if locals else []) + code + END)


def leb128(n: int) -> bytes:
    """An unsigned integer in LEB128: seven bits per byte, low bits first."""
    out = []
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def vector(items: list[bytes]) -> bytes:
    return leb128(len(items)) + b"".join(items)


def sized(data: bytes) -> bytes:
    return leb128(len(data)) + data


def name_bytes(name: str) -> bytes:
    return sized(name.encode())
