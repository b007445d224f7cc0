"""Sine and cosine as vector code.

    x = k pi/2 + r, |r| <= pi/4

Cody-Waite reduction with FMA: pi/2 is split into three parts, and the first product is exact for
|x| <= 1e4, so that r has full precision. Polynomials of r follow (Cephes, S. Moshier). Lanes with
|x| > 1e4, infinities and NaN are computed by libm, lane by lane, and blended in: the result of a
lane and the floating-point flags never depend on its neighbours.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from psiphi.backends.llvm.llvm_emitter import Width

LIMIT = 1e4
PI_HALF = {  # pi/2 in three parts of the type's precision
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
}
SIN = {
    "double": (
        1.58962301576546568060e-10,
        -2.50507477628578072866e-8,
        2.75573136213857245213e-6,
        -1.98412698295895385996e-4,
        8.33333333332211858878e-3,
        -1.66666666666666307295e-1,
    ),
    "float": (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
}
COS = {
    "double": (
        -1.13585365213876817300e-11,
        2.08757008419747316778e-9,
        -2.75573141792967388112e-7,
        2.48015872888517045348e-5,
        -1.38888888888730564116e-3,
        4.16666666666665929218e-2,
    ),
    "float": (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
}
# 1.5 * 2^mantissa: adding it rounds to an integer and leaves k in the low bits
ROUND = {"double": 6755399441055744.0, "float": 12582912.0}


class IRBuilder:
    """The lines of one function; each result gets a new register."""

    def __init__(self, width: Width):
        self.w, self.lines, self.n = width, [], 0
        self.pair = f"{{ {width.type}, {width.type} }}"
        self.bools = f"<{width.lanes} x i1>" if width.lanes > 1 else "i1"

    def take_block(self) -> str:
        """The lines so far as the text of a basic block; later lines start another block."""
        text, self.lines = "\n  ".join(self.lines), []
        return text

    def define(self, text: str) -> str:
        self.n += 1
        self.lines.append(f"%s{self.n} = {text}")
        return f"%s{self.n}"

    def op(self, name: str, x: str, y: str) -> str:
        return self.define(f"{name} {self.w.type} {x}, {y}")

    def iop(self, name: str, x: str, y: str) -> str:
        return self.define(f"{name} {self.w.integer} {x}, {y}")

    def fma(self, x: str, y: str, z: str) -> str:
        T = self.w.type
        return self.define(f"call {T} @llvm.fma.{self.w.suffix}({T} {x}, {T} {y}, {T} {z})")

    def poly(self, coefficients, x: str) -> str:
        value = self.w.constant(coefficients[0])
        for c in coefficients[1:]:
            value = self.fma(value, x, self.w.constant(c))
        return value

    def select(self, mask: str, x: str, y: str) -> str:
        return self.define(f"select {self.bools} {mask}, {self.w.type} {x}, {self.w.type} {y}")

    def return_pair(self, sine: str, cosine: str) -> None:
        first = self.define(f"insertvalue {self.pair} poison, {self.w.type} {sine}, 0")
        both = self.define(f"insertvalue {self.pair} {first}, {self.w.type} {cosine}, 1")
        self.lines.append(f"ret {self.pair} {both}")


HugeAngles = Callable[[IRBuilder], tuple[str, str]]


def sincos(width: Width, huge_angles: HugeAngles | None = None, inline: str = "") -> str:
    """`{T, T} @psiphi.sincos.<suffix>(T x)`: (sin x, cos x).

    `huge_angles` emits them for |x| > 1e4; by default libm computes them.
    """
    builder, w = IRBuilder(width), width
    huge, some = _huge_lanes(builder)
    head = builder.take_block()
    builder.return_pair(*_cody_waite(builder))
    fast = builder.take_block()
    builder.return_pair(*(huge_angles(builder) if huge_angles else _with_libm(builder, huge)))
    slow = builder.take_block()
    name = f"@psiphi.sincos.{w.suffix}"
    return f"""define internal {builder.pair} {name}({w.type} %x) {inline}nounwind {{
  {head}
  br i1 {some}, label %slow, label %fast
fast:
  {fast}
slow:
  {slow}
}}
"""


def bounded_sincos(width: Width) -> str:
    """`@psiphi.sincos.<suffix>` for |x| <= 1e4 only.

    `i1 @psiphi.beyond.<suffix>(T x)` tells whether x is larger, infinite or NaN.
    """
    builder, w = IRBuilder(width), width
    builder.return_pair(*_cody_waite(builder))
    fast = builder.take_block()
    _, some = _huge_lanes(builder)
    name = f"@psiphi.sincos.{w.suffix}"
    return f"""define internal {builder.pair} {name}({w.type} %x) alwaysinline nounwind {{
  {fast}
}}
define internal i1 @psiphi.beyond.{w.suffix}({w.type} %x) alwaysinline nounwind {{
  {builder.take_block()}
  ret i1 {some}
}}
"""


def _huge_lanes(t: IRBuilder) -> tuple[str, str]:
    """(lanes with |x| > 1e4, infinite or NaN; whether there are any).

    The bits are compared as integers, because comparing a NaN raises a floating-point flag.
    """
    w = t.w
    whole = t.define(f"bitcast {w.type} %x to {w.integer}")
    size = t.iop("and", whole, w.integer_constant((1 << 8 * w.scalar_bytes - 1) - 1))
    huge = t.define(f"icmp sgt {w.integer} {size}, {w.integer_constant(_bits(LIMIT, w))}")
    if w.lanes == 1:
        return huge, huge
    return huge, t.define(
        f"icmp ne i{w.lanes} {t.define(f'bitcast {t.bools} {huge} to i{w.lanes}')}, 0"
    )


def _bits(value: float, w: Width) -> int:
    form = "<d" if w.fp == "double" else "<f"
    return int.from_bytes(struct.pack(form, value), "little")


def _cody_waite(t: IRBuilder) -> tuple[str, str]:
    """(sin x, cos x) for |x| <= 1e4."""
    w, fp = t.w, t.w.fp
    shifted = t.fma("%x", w.constant(0.6366197723675814), w.constant(ROUND[fp]))
    k = t.op("fsub", shifted, w.constant(ROUND[fp]))
    bits = t.define(f"bitcast {w.type} {shifted} to {w.integer}")
    r = "%x"
    for part in PI_HALF[fp]:
        r = t.fma(k, w.constant(-part), r)
    return rotate_to_quadrant(t, r, bits)


def rotate_to_quadrant(t: IRBuilder, r: str, bits: str) -> tuple[str, str]:
    """(sin, cos) of k pi/2 + r: the low two bits of k swap and negate the polynomials of r."""
    w, fp = t.w, t.w.fp
    r2 = t.op("fmul", r, r)
    s = t.fma(t.op("fmul", r, r2), t.poly(SIN[fp], r2), r)
    c = t.fma(
        t.op("fmul", r2, r2), t.poly(COS[fp], r2), t.fma(r2, w.constant(-0.5), w.constant(1.0))
    )
    swap = t.define(
        f"icmp ne {w.integer} {t.iop('and', bits, w.integer_constant(1))}, {w.integer_constant(0)}"
    )
    s, c = t.select(swap, c, s), t.select(swap, s, c)
    top = 8 * w.scalar_bytes - 2  # bit 1 of k moved to the sign bit
    s = _flip_sign(
        t, s, t.iop("shl", t.iop("and", bits, w.integer_constant(2)), w.integer_constant(top))
    )
    c = _flip_sign(
        t,
        c,
        t.iop(
            "shl",
            t.iop("and", t.iop("add", bits, w.integer_constant(1)), w.integer_constant(2)),
            w.integer_constant(top),
        ),
    )
    return s, c


def _flip_sign(t: IRBuilder, value: str, sign: str) -> str:
    whole = t.define(f"bitcast {t.w.type} {value} to {t.w.integer}")
    return t.define(f"bitcast {t.w.integer} {t.iop('xor', whole, sign)} to {t.w.type}")


def _with_libm(t: IRBuilder, huge: str) -> tuple[str, str]:
    """libm for the huge lanes; the others call @psiphi.sincos again, with 0 in the huge lanes."""
    w = t.w
    small = t.select(huge, w.constant(0.0), "%x")
    both = t.define(f"call {t.pair} @psiphi.sincos.{w.suffix}({w.type} {small})")
    sine, cosine = (t.define(f"extractvalue {t.pair} {both}, {i}") for i in range(2))
    return t.select(huge, _call_libm(t, "sin"), sine), t.select(huge, _call_libm(t, "cos"), cosine)


def _call_libm(t: IRBuilder, name: str) -> str:
    """Call libm lane by lane."""
    w = t.w
    libm = name if w.fp == "double" else name + "f"
    if w.lanes == 1:
        return t.define(f"call {w.fp} @{libm}({w.fp} %x)")
    out = "poison"
    for lane in range(w.lanes):
        x = t.define(f"extractelement {w.type} %x, i32 {lane}")
        y = t.define(f"call {w.fp} @{libm}({w.fp} {x})")
        out = t.define(f"insertelement {w.type} {out}, {w.fp} {y}, i32 {lane}")
    return out


def sincos_loop(width: Width) -> str:
    """`@psiphi.angles.<suffix>(ptr first, i64 m)`: sine and cosine of m angles.

    Angles have stride 3; the sine and the cosine are written after each angle.
    """
    w, b = width, width.bytes
    pair = f"{{ {w.type}, {w.type} }}"
    return f"""define internal void @psiphi.angles.{w.suffix}(ptr %first, i64 %m) nounwind {{
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %m
  br i1 %more, label %body, label %done
body:
  %offset = mul i64 %i, {3 * b}
  %p = getelementptr i8, ptr %first, i64 %offset
  %x = load {w.type}, ptr %p, align {b}
  %both = call {pair} @psiphi.sincos.{w.suffix}({w.type} %x)
  %s = extractvalue {pair} %both, 0
  %c = extractvalue {pair} %both, 1
  %ps = getelementptr i8, ptr %p, i64 {b}
  %pc = getelementptr i8, ptr %p, i64 {2 * b}
  store {w.type} %s, ptr %ps, align {b}
  store {w.type} %c, ptr %pc, align {b}
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}}
"""
