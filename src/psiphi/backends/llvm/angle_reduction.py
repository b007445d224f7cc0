"""Sine and cosine of huge angles without a C library: the reduction of Payne and Hanek.

x = m 2^s with an integer m < 2^53. Only x 2/pi mod 4 matters, so F = 2^s 2/pi mod 4 suffices:
192 bits of 2/pi, from bit s - 1. The top two bits of m F are the quadrant. The error of the
remaining bits is below 2^-136, and no double is closer to a multiple of pi/2 than 2^-62.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.sincos import LIMIT, PI_HALF, IRBuilder, rotate_to_quadrant, sincos

WORDS = 20  # of 2/pi; the exponent of an infinity reads words 16 to 19
FIRST_EXPONENT = 1013  # biased exponent of a number that reads the table from its first bit
HALF_QUADRANT = 1 << 125  # 2^126 is a quarter turn
NAME = "psiphi.huge"
DECLARATIONS = """declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i128 @llvm.ctlz.i128(i128, i1)
declare double @llvm.fabs.f64(double)"""


def sincos_any_angle(width: Width) -> str:
    """`@psiphi.sincos.<suffix>` of `sincos.py`, for any x; NaN if x is not finite.

    Also defines `{double, double} @psiphi.huge(double x)`: (sin x, cos x) for |x| > 1e4, used for
    both types, since a double represents every float exactly.
    """
    t = IRBuilder(Width("double", 1))
    k, r, finite = _quadrant(t, "%x")
    s, c = rotate_to_quadrant(t, r, k)
    nan = t.op("fsub", "%x", "%x")
    t.return_pair(t.select(finite, s, nan), t.select(finite, c, nan))
    return (
        _tables()
        + f"""define internal {t.pair} @{NAME}(double %x) noinline nounwind {{
  {t.take_block()}
}}
{sincos(width, _call_huge, "alwaysinline ")}"""
    )


def reduce_angle(width: Width) -> str:
    """`T @psiphi.less.<suffix>(T x)`: x if |x| <= 1e4, else x less whole turns.

    The reduced angle is in [-3 pi/4, 5 pi/4]; its rounding error is below a thousandth of the
    spacing of numbers at x. NaN if x is not finite.
    """
    t, single = IRBuilder(Width("double", 1)), width.fp == "float"
    size = t.define("call double @llvm.fabs.f64(double %x)")
    is_small = t.define(f"fcmp ole double {size}, {t.w.constant(LIMIT)}")
    k, r, finite = _quadrant(t, t.select(is_small, t.w.constant(2 * LIMIT), "%x"))
    quarter = t.iop("sub", t.iop("and", t.iop("add", k, "1"), "3"), "1")  # -1, 0, 1, 2
    turns = t.define(f"sitofp i64 {quarter} to double")
    high, low, _ = (t.w.constant(part) for part in PI_HALF["double"])
    x = t.fma(turns, high, t.fma(turns, low, r))
    x = t.select(is_small, "%x", t.select(finite, x, t.op("fsub", "%x", "%x")))
    t.lines.append(f"ret double {x}")
    parameter, widen = (
        ("%single", "%x = fpext float %single to double\n  ") if single else ("%x", "")
    )
    text = t.take_block()
    if single:
        text = text.replace(
            f"ret double {x}", f"%back = fptrunc double {x} to float\n  ret float %back"
        )
    head = f"{width.type} @psiphi.less.{width.suffix}({width.type} {parameter})"
    return f"""{_tables()}define internal {head} noinline nounwind {{
  {widen}{text}
}}
"""


def _tables() -> str:
    words = ", ".join(f"i64 {word}" for word in two_over_pi())
    return f"{DECLARATIONS}\n@{NAME}.table = internal constant [{WORDS} x i64] [{words}]\n"


def _call_huge(t: IRBuilder) -> tuple[str, str]:
    """(sin x, cos x) by @psiphi.huge: the branch for huge angles of `sincos`."""
    single = t.w.fp == "float"
    x = t.define("fpext float %x to double") if single else "%x"
    both = t.define(f"call {{ double, double }} @{NAME}(double {x})")
    halves = [t.define(f"extractvalue {{ double, double }} {both}, {i}") for i in range(2)]
    s, c = (t.define(f"fptrunc double {value} to float") if single else value for value in halves)
    return s, c


def _quadrant(t: IRBuilder, x: str) -> tuple[str, str, str]:
    """(k, r) with x = k pi/2 + r, and whether x is finite, for a double |x| > 1e4."""
    bits = t.define(f"bitcast double {x} to i64")
    exponent = t.iop("and", t.iop("lshr", bits, "52"), "2047")
    m = t.iop("or", t.iop("and", bits, str((1 << 52) - 1)), str(1 << 52))
    quadrant, r = _payne_hanek(t, m, t.iop("sub", exponent, str(FIRST_EXPONENT)))
    negative = t.define(f"icmp slt i64 {bits}, 0")
    k = t.define(f"select i1 {negative}, i64 {t.iop('sub', '0', quadrant)}, i64 {quadrant}")
    return (
        k,
        t.select(negative, t.define(f"fneg double {r}"), r),
        t.define(f"icmp ne i64 {exponent}, 2047"),
    )


def _payne_hanek(t: IRBuilder, m: str, first_bit: str) -> tuple[str, str]:
    """(k, r) with m 2^s = k pi/2 + r, |r| <= pi/4; `first_bit` is that of F in the table."""
    op128 = lambda op, x, y: t.define(f"{op} i128 {x}, {y}")  # noqa: E731
    extend = lambda x: t.define(f"zext i64 {x} to i128")  # noqa: E731
    word, shift, words = t.iop("lshr", first_bit, "6"), t.iop("and", first_bit, "63"), []
    for i in range(4):
        address = t.define(
            f"getelementptr i64, ptr @{NAME}.table, i64 {t.iop('add', word, str(i))}"
        )
        words.append(t.define(f"load i64, ptr {address}"))
    high, middle, low = (
        t.define(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})")
        for a, b in pairwise(words)
    )
    high_product = op128("shl", extend(t.iop("mul", m, high)), "64")
    low_product = op128("lshr", op128("mul", extend(m), extend(low)), "64")
    product = op128(
        "add", op128("add", high_product, op128("mul", extend(m), extend(middle))), low_product
    )
    rounded = op128("add", product, str(HALF_QUADRANT))
    k = t.define(f"trunc i128 {op128('lshr', rounded, '126')} to i64")
    rest = op128("sub", op128("lshr", op128("shl", rounded, "2"), "2"), str(HALF_QUADRANT))
    negative = t.define(f"icmp slt i128 {rest}, 0")
    magnitude = t.define(f"select i1 {negative}, i128 {op128('sub', '0', rest)}, i128 {rest}")
    zeros = t.define(f"call i128 @llvm.ctlz.i128(i128 {magnitude}, i1 false)")
    leading = t.define(f"trunc i128 {op128('lshr', op128('shl', magnitude, zeros), '64')} to i64")
    number = t.define(f"uitofp i64 {leading} to double")  # of 2^(-62 - zeros) quarter turns
    power = t.iop("shl", t.iop("sub", str(1023 - 62), t.define(f"trunc i128 {zeros} to i64")), "52")
    turns = t.op("fmul", number, t.define(f"bitcast i64 {power} to double"))
    pi_high, pi_low, _ = (t.w.constant(part) for part in PI_HALF["double"])
    r = t.fma(turns, pi_high, t.op("fmul", turns, pi_low))
    return k, t.select(negative, t.define(f"fneg double {r}"), r)


@lru_cache(maxsize=1)
def two_over_pi() -> tuple[int, ...]:
    """64 zeros, then the bits of 2/pi, as 64-bit words.

    pi = 16 atan(1/5) - 4 atan(1/239) (Machin), in integer arithmetic.
    """
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
