"""Sine and cosine of huge angles without a C library: x mod pi/2 by the bits of 2/pi that matter (Payne and Hanek).

x = m 2^s with a whole m < 2^53. Of x 2/pi only the rest by 4 counts, and m times a multiple of 4 is one: so F = 2^s 2/pi mod 4
is enough, 192 bits of 2/pi from bit s - 1 on. The top two bits of m F are the quadrant; the error of the rest is below 2^-136,
where no double comes nearer to a multiple of pi/2 than 2^-62.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from psiphi.emitters.llvm import Width
from psiphi.emitters.trig import PI_HALF, Text, turned

WORDS = 20  # of 2/pi: the exponent of an infinity asks for the bits of words 16 to 19
FIRST = 1013  # biased exponent of the number whose bits begin with the table
HALF = 1 << 125  # a half, where 2^126 is one quarter turn
NAME = "psiphi.huge"
DECLARATIONS = "declare i64 @llvm.fshl.i64(i64, i64, i64)\ndeclare i128 @llvm.ctlz.i128(i128, i1)"


def huge() -> str:
    """`{double, double} @psiphi.huge(double x)`: (sin x, cos x) for |x| > 1e4; NaN where x is no finite number."""
    words = ", ".join(f"i64 {word}" for word in two_over_pi())
    t = Text(Width("double", 1))
    t.answer(*_sine_and_cosine(t))
    return f"""{DECLARATIONS}
@{NAME}.table = internal constant [{WORDS} x i64] [{words}]
define internal {t.pair} @{NAME}(double %x) noinline nounwind {{
  {t.cut()}
}}
"""


def beyond(t: Text) -> tuple[str, str]:
    """What `trig.sincos` does with huge angles: the same function for float, which a double holds exactly."""
    single = t.w.fp == "float"
    x = t.line("fpext float %x to double") if single else "%x"
    both = t.line(f"call {{ double, double }} @{NAME}(double {x})")
    found = [t.line(f"extractvalue {{ double, double }} {both}, {i}") for i in range(2)]
    s, c = (t.line(f"fptrunc double {value} to float") if single else value for value in found)
    return s, c


def _sine_and_cosine(t: Text) -> tuple[str, str]:
    bits = t.line("bitcast double %x to i64")
    exponent = t.iop("and", t.iop("lshr", bits, "52"), "2047")
    m = t.iop("or", t.iop("and", bits, str((1 << 52) - 1)), str(1 << 52))
    quadrant, r = _reduced(t, m, t.iop("sub", exponent, str(FIRST)))
    below = t.line(f"icmp slt i64 {bits}, 0")
    k = t.line(f"select i1 {below}, i64 {t.iop('sub', '0', quadrant)}, i64 {quadrant}")
    s, c = turned(t, t.select(below, t.line(f"fneg double {r}"), r), k)
    finite = t.line(f"icmp ne i64 {exponent}, 2047")
    none = t.op("fsub", "%x", "%x")
    return t.select(finite, s, none), t.select(finite, c, none)


def _reduced(t: Text, m: str, place: str) -> tuple[str, str]:
    """(k, r) with m 2^s = k pi/2 + r, |r| <= pi/4; `place` is where the bits of F stand in the table."""
    wide = lambda op, x, y: t.line(f"{op} i128 {x}, {y}")  # noqa: E731
    long = lambda x: t.line(f"zext i64 {x} to i128")  # noqa: E731
    word, shift, found = t.iop("lshr", place, "6"), t.iop("and", place, "63"), []
    for i in range(4):
        at = t.line(f"getelementptr i64, ptr @{NAME}.table, i64 {t.iop('add', word, str(i))}")
        found.append(t.line(f"load i64, ptr {at}"))
    high, middle, low = (t.line(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})") for a, b in pairwise(found))
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
            total, term, k = total + (term // k if k % 4 == 1 else -(term // k)), term // (n * n), k + 2
        return total

    pi = 16 * arctan(5) - 4 * arctan(239)
    whole = (2 * one << bits) // pi
    return (0, *((whole >> (bits - 64 * (i + 1))) & ((1 << 64) - 1) for i in range(WORDS - 1)))
