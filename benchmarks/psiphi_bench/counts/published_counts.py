"""Published operation counts of forward and inverse dynamics, as data with their sources.

S1 is Kozłowski's comparison (see `rewriting/__init__.py`). Its Tables 2 and 3 have the corrections
of docs/mathematics.md section 13: Table 2 prints 354N for 345N in the subtotal of additions and
43N - 3 for 13N - 3, and Table 3 prints N^3/6 for N^3/3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from psiphi_bench.counts.count_formulas import Formula


def line(slope: int, constant: int = 0) -> Formula:
    return Formula(constant, slope)


NONE = line(0)

# Table 2: recursion -> (multiplications case 1, case 2, additions case 1, case 2);
# divisions count as multiplications
COMMON: dict[str, tuple[Formula, Formula, Formula, Formula]] = {
    "P": (line(101, -108), line(51, -58), line(94, -105), line(53, -64)),
    "G": (line(5, -1), line(5, -1), NONE, NONE),
    "V+": (line(6, -12), line(2, -4), line(6, -12), line(2, -4)),
    "V": (line(16, -29), line(8, -16), line(9, -17), line(5, -9)),
    "z": (line(6, -12), line(2, -4), line(6, -12), line(2, -4)),
    "psi": (line(44, -1), line(12, -1), line(19, -1), line(5, -1)),
    "b": (line(59, -43), line(55, -53), line(40, -27), line(38, -35)),
    "X": (line(18, -12), line(18, -12), NONE, NONE),
    "lambda": (line(159, -6), line(95, -6), line(171, -6), line(113, -6)),
}
NORMALISED = {
    "v": (line(7, -10), line(7, -11), line(6, -10), line(6, -11)),
    "eps": (line(1), line(1), line(1, -1), line(1, -1)),
    "z+": (line(23, -4), line(14, -3), line(15, -8), line(10, -7)),
    "y": (line(158, -223), line(134, -211), line(162, -249), line(140, -217)),
    "C": (line(2, -1), line(2, -1), NONE, NONE),
    "rate": (NONE, NONE, line(1), line(1)),
}
UNNORMALISED = {
    "v": (line(5, -8), line(5, -9), line(5, -8), line(5, -9)),
    "eps": (NONE, NONE, line(1, -1), line(1, -1)),
    "z+": (line(21, -4), line(13, -3), line(13, -8), line(9, -7)),
    "y": (line(59, -83), line(47, -71), line(61, -89), line(50, -78)),
    "C": (NONE, NONE, NONE, NONE),
    "rate": (line(1), line(1), line(1), line(1)),
}
TOTALS = {  # (normalised?, case) -> the total of Table 2, as printed
    (True, 1): line(1135, -910),
    (True, 2): line(782, -740),
    (False, 1): line(926, -605),
    (False, 2): line(598, -456),
}


@dataclass(frozen=True)
class PublishedCount:
    """One row of Table 3: a method, its count for the general arm, its source."""

    method: str
    count: Formula
    source: str
    note: str = ""


def _cubic(squares: Fraction, links: Fraction, constant: int) -> Formula:
    return Formula(constant, links, squares, Fraction(1, 3))


F = Fraction
FORWARD = (
    PublishedCount("articulated body", line(579, -526), "Featherstone 1987, in S1 Table 3"),
    PublishedCount(
        "Walker and Orin 1",
        _cubic(F(261, 2), F(1183, 6), -33),
        "Walker and Orin 1982, in S1 Table 3",
    ),
    PublishedCount(
        "Walker and Orin 2",
        _cubic(F(133, 2), F(1567, 6), -33),
        "Walker and Orin 1982, in S1 Table 3",
    ),
    PublishedCount(
        "Walker and Orin 3",
        _cubic(F(43, 2), F(2149, 6), -113),
        "Walker and Orin 1982, in S1 Table 3",
        "N^3/6 printed",
    ),
    PublishedCount(
        "Walker and Orin 4",
        Formula(-31, 207, F(265, 2)),
        "Walker and Orin 1982, in S1 Table 3",
        "5967, 21537 printed",
    ),
    PublishedCount("Brandl, Johanni, Otter", line(470, -420), "Brandl et al. 1986, in S1 Table 3"),
    PublishedCount(
        "McMillan and Orin",
        Formula(F(-357), F(799, 2)),
        "McMillan and Orin 1995, abstract: about 15 % below Brandl et al.",
        "0.85 (470N - 420), about",
    ),
    PublishedCount(
        "numerical solution", _cubic(F(41, 2), F(2047, 6), -395), "Kozłowski 1992, in S1 Table 3"
    ),
    PublishedCount("Kalman filter and smoother", line(477, -503), "Kozłowski 1993, in S1 Table 3"),
    PublishedCount("diagonalised, normalised", TOTALS[True, 1], "S1 Table 3"),
    PublishedCount("diagonalised, unnormalised", TOTALS[False, 1], "S1 Table 3"),
)
# totals at N = 6 and 12 as printed in Table 3; those of Walker and Orin 4 contradict its formula
PRINTED = {
    "articulated body": (2948, 6422),
    "Walker and Orin 1": (5920, 21701),
    "Walker and Orin 2": (4000, 13253),
    "Walker and Orin 3": (2882, 7857),
    "Brandl, Johanni, Otter": (2400, 5220),
    "numerical solution": (2462, 7227),
    "Kalman filter and smoother": (2359, 5221),
    "diagonalised, normalised": (5900, 12710),
    "diagonalised, unnormalised": (4951, 10507),
}
INVERSE_GENERAL = (
    PublishedCount(
        "Kalman form, general arm", line(251, -296), "S1 section 6: 142N - 161 and 109N - 135"
    ),
    PublishedCount("Balafoutis, Patel, Misra", line(174, -134), "Balafoutis, Patel, Misra 1988"),
)
INVERSE_PERPENDICULAR = (
    PublishedCount(
        "Kalman form, case 2", line(191, -219), "S1 section 6: 104N - 117 and 87N - 102"
    ),
)
INVERSE = {1: INVERSE_GENERAL, 2: INVERSE_PERPENDICULAR}  # by case of the arm
