"""Tables 2 and 3 for the code of psiphi: traced, split by recursion, fitted exactly in N."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from psiphi.algebra.expressions.letters import COUPLE, GRAVITY
from psiphi.compiler.lower.horner_graph import Apply, Causal, Leaf, Node
from psiphi.compiler.lower.vector_sweeps import Lowered
from psiphi.compiler.passes import choose, frame, program
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.compiler.tape.tape import Count
from psiphi.model.spatial.screw_paths import motion
from psiphi.robot.catalogue.quasi_velocities import PREFIXES, QUASI_QUANTITIES
from psiphi_bench.counts import published_counts
from psiphi_bench.counts.count_formulas import Formula, fit_line, sum_formulas
from psiphi_bench.counts.counted_arms import arm
from psiphi_bench.counts.counts_by_recursion import REST, Recursion, by_recursion

LENGTHS = {
    1: range(3, 9),  # N > 2
    2: range(4, 9),  # N > 3: P is full only three links from the tip
}


@dataclass(frozen=True)
class Line:
    """One row of Table 2: (multiplications and divisions, additions) of psiphi and of the paper."""

    name: str
    meaning: str
    ours: tuple[Formula, Formula]
    theirs: tuple[Formula, Formula]


# recursion -> the rows of the paper for the same work, and its results
ROWS = {
    "P": (("P",), "articulated inertias P and P+"),
    "G": (("G",), "gains, 1/D (normalised: and its root)"),
    "V+": (("V+",), "velocities, inboard side"),
    "v": (("v",), "joint velocities"),
    "V": (("V",), "velocities"),
    "psi": (("psi",), "not formed: psi acts as phi tau_bar"),
    "b": (("b",), "couple (H V x*) P+ V+, gravity; the paper's bias forces"),
    "lambda": (("X", "lambda"), "derivative of P"),
    "y": (("y",), "d(P H*)/dt xi; the paper's y"),
    "z": (("z", "z+"), "articulated bias forces z and z+"),
    "rest": (("eps", "C", "rate"), "eps, C and the result"),
}


def _labels(nodes: list[Node]) -> list[Recursion]:
    """The values of each recursion at a body; nodes of the graph are found by their type."""

    def nodes_where(matches: Callable[[Node], bool]) -> Callable[[BodyView], Any]:
        names = [f"n{n.number}" for n in nodes if matches(n)]
        return lambda site: [site.record[name] for name in names]

    return [
        ("P", lambda s: (s.record["P"], s.record["P_plus"])),
        ("G", lambda s: (s.record["gain"].G, s.record["gain"].factors, s.record["gain"].roots)),
        ("V+", lambda s: motion(s.path, s.parent["V"])),
        ("v", lambda s: s.record["v"]),
        ("V", lambda s: s.record["V"]),
        ("b", nodes_where(lambda n: isinstance(n, Leaf) and n.letter in (COUPLE, GRAVITY))),
        ("lambda", lambda s: (s.record["P_dot"], s.record["D_dot"])),
        ("y", nodes_where(lambda n: isinstance(n, Apply) and n.letter == "U_ring")),
        ("z", nodes_where(lambda n: isinstance(n, Causal))),
    ]


@lru_cache(maxsize=64)
def _split(n: int, case: int, normalised: bool) -> dict[str, Count]:
    robot = arm(n, case)
    equation = QUASI_QUANTITIES[f"{PREFIXES[normalised]}_motion"].of(robot.model)
    lowered = choose(equation).lowered
    assert isinstance(lowered, Lowered)
    tree = frame(robot.model, lowered.movable_inertia)
    return by_recursion(program(equation, tree), tree, _labels(lowered.nodes))


@lru_cache(maxsize=8)
def table_2(normalised: bool = True, case: int = 1) -> list[Line]:
    """Counts of (q, nu, tau) -> (v, nu') by recursion, for psiphi and the paper."""
    splits = {n: _split(n, case, normalised) for n in LENGTHS[case]}
    paper = {
        **published_counts.COMMON,
        **(published_counts.NORMALISED if normalised else published_counts.UNNORMALISED),
    }
    lines = []
    for name, (theirs, meaning) in ROWS.items():
        key = REST if name == "rest" else name
        ours = tuple(
            fit_line({n: column(split.get(key, Count())) for n, split in splits.items()}, name)
            for column in (_products, _sums)
        )
        each = [sum_formulas(paper[x][2 * k + case - 1] for x in theirs) for k in (0, 1)]
        lines.append(Line(name, meaning, (ours[0], ours[1]), (each[0], each[1])))
    return lines


def _products(count: Count) -> int:
    return count.mul + count.div + count.sqrt


def _sums(count: Count) -> int:
    return count.add


def total(lines: list[Line]) -> Line:
    """The sum of all rows."""
    ours, theirs = (
        [sum_formulas(getattr(row, side)[k] for row in lines) for k in (0, 1)]
        for side in ("ours", "theirs")
    )
    return Line("total", "", (ours[0], ours[1]), (theirs[0], theirs[1]))


@lru_cache(maxsize=16)
def flops(function: str, case: int = 1, lengths: range | None = None, seed: int = 0) -> Formula:
    """The exact count of a function of the robot, as a formula that holds at all `lengths`.

    >>> str(flops("forward_dynamics"))
    '379N - 587'
    """
    return fit_line(
        {n: arm(n, case, seed).flops(function) for n in lengths or LENGTHS[case]}, function
    )


def table_3() -> list[tuple[published_counts.PublishedCount, Formula, bool]]:
    """Each published forward dynamics, psiphi's, and whether that is smaller at N = 6 and 12."""
    ours = flops("forward_dynamics")
    return [
        (row, ours, all(ours(n) < row.count(n) for n in (6, 12)))
        for row in published_counts.FORWARD
    ]
