"""Sine and cosine of huge angles without a C library: x mod pi/2 by the bits of 2/pi that matter (Payne and Hanek).

x = m 2^s with a whole m < 2^53. Of x 2/pi only the rest by 4 counts, and m times a multiple of 4 is one: so F = 2^s 2/pi mod 4
is enough, 192 bits of 2/pi from bit s - 1 on. The top two bits of m F are the quadrant; the error of the rest is below 2^-136,
where no double comes nearer to a multiple of pi/2 than 2^-62.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.sincos import LIMIT, PI_HALF, Text, sincos, turned

WORDS = 20  # of 2/pi: the exponent of an infinity asks for the bits of words 16 to 19
FIRST = 1013  # biased exponent of the number whose bits begin with the table
HALF = 1 << 125  # a half, where 2^126 is one quarter turn
NAME = "psiphi.huge"
DECLARATIONS = """declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i128 @llvm.ctlz.i128(i128, i1)
declare double @llvm.fabs.f64(double)"""


def sincos_of_any(width: Width) -> str:
    """`@psiphi.sincos.<suffix>` of `trig.sincos`, with `{double, double} @psiphi.huge(double x)`, (sin x, cos x) for |x| > 1e4,
    which serves both types, since a double holds a float exactly. NaN where x is no finite number."""
    t = Text(Width("double", 1))
    k, r, finite = _quadrant(t, "%x")
    s, c = turned(t, r, k)
    none = t.op("fsub", "%x", "%x")
    t.answer(t.select(finite, s, none), t.select(finite, c, none))
    return (
        _tables()
        + f"""define internal {t.pair} @{NAME}(double %x) noinline nounwind {{
  {t.cut()}
}}
{sincos(width, _beyond, "alwaysinline ")}"""
    )


def fewer_turns(width: Width) -> str:
    """`T @psiphi.less.<suffix>(T x)`: x up to 1e4; beyond, an angle of the same sine and cosine in [-3 pi/4, 5 pi/4]. It is
    rounded, by less than a thousandth of the distance from x to its neighbours. NaN where x is no finite number."""
    t, single = Text(Width("double", 1)), width.fp == "float"
    tame = t.line(
        f"fcmp ole double {t.line('call double @llvm.fabs.f64(double %x)')}, {t.w.constant(LIMIT)}"
    )
    k, r, finite = _quadrant(t, t.select(tame, t.w.constant(2 * LIMIT), "%x"))
    quarter = t.iop("sub", t.iop("and", t.iop("add", k, "1"), "3"), "1")  # -1, 0, 1, 2
    turns = t.line(f"sitofp i64 {quarter} to double")
    near, rest, _ = (t.w.constant(part) for part in PI_HALF["double"])
    x = t.fma(turns, near, t.fma(turns, rest, r))
    x = t.select(tame, "%x", t.select(finite, x, t.op("fsub", "%x", "%x")))
    t.lines.append(f"ret double {x}")
    own, wide = ("%single", "%x = fpext float %single to double\n  ") if single else ("%x", "")
    text = t.cut()
    if single:
        text = text.replace(
            f"ret double {x}", f"%back = fptrunc double {x} to float\n  ret float %back"
        )
    return (
        _tables()
        + f"""define internal {width.type} @psiphi.less.{width.suffix}({width.type} {own}) noinline nounwind {{
  {wide}{text}
}}
"""
    )


def _tables() -> str:
    words = ", ".join(f"i64 {word}" for word in two_over_pi())
    return f"{DECLARATIONS}\n@{NAME}.table = internal constant [{WORDS} x i64] [{words}]\n"


def _beyond(t: Text) -> tuple[str, str]:
    """What `trig.sincos` does with huge angles."""
    single = t.w.fp == "float"
    x = t.line("fpext float %x to double") if single else "%x"
    both = t.line(f"call {{ double, double }} @{NAME}(double {x})")
    found = [t.line(f"extractvalue {{ double, double }} {both}, {i}") for i in range(2)]
    s, c = (t.line(f"fptrunc double {value} to float") if single else value for value in found)
    return s, c


def _quadrant(t: Text, x: str) -> tuple[str, str, str]:
    """(k, r) with x = k pi/2 + r, and whether x is finite, for a double |x| > 1e4."""
    bits = t.line(f"bitcast double {x} to i64")
    exponent = t.iop("and", t.iop("lshr", bits, "52"), "2047")
    m = t.iop("or", t.iop("and", bits, str((1 << 52) - 1)), str(1 << 52))
    quadrant, r = _reduced(t, m, t.iop("sub", exponent, str(FIRST)))
    below = t.line(f"icmp slt i64 {bits}, 0")
    k = t.line(f"select i1 {below}, i64 {t.iop('sub', '0', quadrant)}, i64 {quadrant}")
    return (
        k,
        t.select(below, t.line(f"fneg double {r}"), r),
        t.line(f"icmp ne i64 {exponent}, 2047"),
    )


def _reduced(t: Text, m: str, place: str) -> tuple[str, str]:
    """(k, r) with m 2^s = k pi/2 + r, |r| <= pi/4; `place` is where the bits of F stand in the table."""
    wide = lambda op, x, y: t.line(f"{op} i128 {x}, {y}")  # noqa: E731
    long = lambda x: t.line(f"zext i64 {x} to i128")  # noqa: E731
    word, shift, found = t.iop("lshr", place, "6"), t.iop("and", place, "63"), []
    for i in range(4):
        at = t.line(f"getelementptr i64, ptr @{NAME}.table, i64 {t.iop('add', word, str(i))}")
        found.append(t.line(f"load i64, ptr {at}"))
    high, middle, low = (
        t.line(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})")
        for a, b in pairwise(found)
    )
    top = wide("shl", long(t.iop("mul", m, high)), "64")
    carried = wide("lshr", wide("mul", long(m), long(low)), "64")
    product = wide("add", wide("add", top, wide("mul", long(m), long(middle))), carried)
    rounded = wide("add", product, str(HALF))
    k = t.line(f"trunc i128 {wide('lshr', rounded, '126')} to i64")
    rest = wide("sub", wide("lshr", wide("shl", rounded, "2"), "2"), str(HALF))
    below = t.line(f"icmp slt i128 {rest}, 0")
    size = t.line(f"select i1 {below}, i128 {wide('sub', '0', rest)}, i128 {rest}")
    zeros = t.line(f"call i128 @llvm.ctlz.i128(i128 {size}, i1 false)")
    first = t.line(f"trunc i128 {wide('lshr', wide('shl', size, zeros), '64')} to i64")
    number = t.line(f"uitofp i64 {first} to double")  # of 2^(-62 - zeros) quarter turns
    power = t.iop("shl", t.iop("sub", str(1023 - 62), t.line(f"trunc i128 {zeros} to i64")), "52")
    turns = t.op("fmul", number, t.line(f"bitcast i64 {power} to double"))
    near, rest_of_it, _ = (t.w.constant(part) for part in PI_HALF["double"])
    r = t.fma(turns, near, t.op("fmul", turns, rest_of_it))
    return k, t.select(below, t.line(f"fneg double {r}"), r)


@lru_cache(maxsize=1)
def two_over_pi() -> tuple[int, ...]:
    """64 zeros, then the bits of 2/pi, in words: pi = 16 atan(1/5) - 4 atan(1/239) (Machin), in whole numbers."""
    bits = 64 * (WORDS - 1)
    one = 1 << (bits + 128)

    def arctan(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total, term, k = (
                total + (term // k if k % 4 == 1 else -(term // k)),
                term // (n * n),
                k + 2,
            )
        return total

    pi = 16 * arctan(5) - 4 * arctan(239)
    whole = (2 * one << bits) // pi
    return (0, *((whole >> (bits - 64 * (i + 1))) & ((1 << 64) - 1) for i in range(WORDS - 1)))
