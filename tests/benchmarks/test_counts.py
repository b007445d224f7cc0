"""Exact operation counts: formulas of general arms against the literature, and golden numbers of
the bundled ones."""

from functools import cache

import pytest

import psiphi as pp
from psiphi import robots
from psiphi.apps.cli.main import main
from psiphi_bench.counts import count_tables as counted
from psiphi_bench.counts import published_counts
from psiphi_bench.counts.count_formulas import Formula, fit_line
from psiphi_bench.counts.count_tables import table_2, table_3
from psiphi_bench.counts.count_tables_text import markdown, report
from psiphi_bench.counts.counted_arms import arm
from tests.pages import ROOT

SEEDS = pytest.mark.parametrize("seed", range(3))
LENGTHS = range(3, 25)

# (mul, add, div, trig) of each function of the bundled arms
GOLDEN = {
    "puma560": {
        "forward_dynamics": (398, 360, 4, 10),
        "inverse_dynamics": (198, 168, 0, 10),
        "bias": (181, 142, 0, 10),
        "gravity": (28, 12, 0, 8),
        "mass_matrix": (93, 98, 0, 8),
        "mass_matrix_inverse": (590, 529, 4, 8),
        "mass_matrix_factors": (223, 200, 3, 8),
        "mass_solve": (248, 229, 4, 8),
        "energy": (159, 103, 0, 10),
        "center_of_mass": (19, 16, 0, 10),
        "momentum": (163, 115, 0, 12),
        "centroidal_momentum": (188, 137, 0, 12),
        "centroidal_momentum_matrix": (187, 167, 0, 10),
    },
    "stanford_arm": {
        "forward_dynamics": (282, 246, 4, 8),
        "inverse_dynamics": (136, 105, 0, 8),
        "mass_matrix": (52, 55, 0, 6),
        "gravity": (25, 10, 0, 6),
    },
}


@cache
def flops(function: str, n: int, seed: int) -> int:
    return robots.chain(n, seed=seed).flops(function)


@SEEDS
def test_forward_dynamics_of_a_general_arm(seed):
    """379N - 587 for N > 2, whatever the arm's numbers: linear, exactly."""
    assert str(counted.flops("forward_dynamics", 1, LENGTHS, seed)) == "379N - 587"


@SEEDS
def test_inverse_dynamics_of_a_general_arm(seed):
    """156N - 192 for N > 2."""
    assert str(counted.flops("inverse_dynamics", 1, LENGTHS, seed)) == "156N - 192"


def test_inverse_dynamics_of_s1_section_6():
    """Both cases: multiplications and additions as printed at N = 6 and 12, and psiphi's below."""
    printed = {1: (691 + 519, 1543 + 1173), 2: (507 + 420, 1131 + 942)}
    for case, totals in printed.items():
        row, ours = published_counts.INVERSE[case][0], counted.flops("inverse_dynamics", case)
        assert tuple(row.count(n) for n in (6, 12)) == totals
        assert all(ours(n) < row.count(n) for n in (6, 12))
    assert str(ours) == "110N - 145"


@pytest.mark.parametrize("n", [6, 80], ids=["lines", "loops"])
def test_what_nobody_reads_is_not_made(n):
    """The centre of mass is read off the inertia of the whole, whose second moments then are no
    code."""
    whole, center = (flops(name, n, 0) for name in ("locked_inertia", "center_of_mass"))
    assert center < 26 * n < 60 * n < whole


@pytest.mark.parametrize("n", LENGTHS)
def test_below_the_target(n):
    assert flops("forward_dynamics", n, 0) <= 426 * n - 576
    assert flops("inverse_dynamics", n, 0) <= 174 * n - 134, "Balafoutis and Patel"


@pytest.mark.parametrize("row", published_counts.FORWARD, ids=lambda row: row.method)
def test_below_every_row_of_table_3(row):
    for n in LENGTHS:
        assert flops("forward_dynamics", n, 0) < row.count(n), f"N = {n}"
    assert all(fewer for _, _, fewer in table_3())


def test_table_3_as_printed():
    """The transcription gives the printed totals (Walker and Orin 4's are misprints of the
    source)."""
    counts = {row.method: row.count for row in published_counts.FORWARD}
    for method, totals in published_counts.PRINTED.items():
        assert tuple(counts[method](n) for n in (6, 12)) == totals, method
    for (normalised, case), whole in published_counts.TOTALS.items():
        total = counted.total(table_2(normalised, case))
        assert total.theirs[0] + total.theirs[1] == whole


DIAGONALISED = {  # (normalised?, case): what issue and theory ask for at most, and what it is
    (True, 1): (Formula(0, 700), Formula(-920, 576)),
    (True, 2): (Formula(0, 500), Formula(-797, 416)),
    (False, 1): (Formula(0, 600), Formula(-917, 571)),
    (False, 2): (Formula(0, 420), Formula(-794, 411)),
}


@pytest.mark.parametrize(("normalised", "case"), DIAGONALISED)
def test_diagonalised_dynamics(normalised, case):
    """(q, nu, tau) -> (v, nu'), exactly; the table by recursion adds up to what `robot.flops`
    says."""
    target, exact = DIAGONALISED[normalised, case]
    name = f"{'diagonalised' if normalised else 'unnormalised'}_motion"
    assert counted.flops(name, case) == exact
    assert exact.coefficients[1] <= target.coefficients[1]
    total = counted.total(table_2(normalised, case))
    assert total.ours[0] + total.ours[1] == exact
    for n in (3, 10, 17):
        assert arm(n, case).flops(name) <= target(n), n
    assert arm(10, case, seed=2).flops(name) == arm(10, case).flops(name) == exact(10)


def test_the_page_shows_the_tables():
    """docs/counts.md is what is counted today."""
    page = (ROOT / "docs" / "counts.md").read_text(encoding="utf-8")
    start, end = "<!-- counted: begin -->\n\n", "\n<!-- counted: end -->"
    assert page[page.index(start) + len(start) : page.index(end)] == markdown(), (
        "paste psiphi_bench.counts.count_tables_text.markdown() again"
    )


def test_the_report():
    text = report()
    assert "576N - 920" in text and "416N - 797" in text and "379N - 587" in text
    assert "Table 3" not in report(table=2, case=2) and "case 1" not in report(table=2, case=2)
    for wrong in (dict(table=4), dict(case=3), dict(table=3, case=2)):
        with pytest.raises(pp.StateError, match=r"expected|general arm only"):
            report(**wrong)
    with pytest.raises(pp.StateError, match="expected 1 or 2"):
        arm(3, 5)


@pytest.mark.parametrize(
    "words", ("ur5 --table 3", "--case 1 ur5", "--frame tool0", "--base free", "--table 3 --case 2")
)
def test_options_that_do_not_go_together(words, capsys):
    """No option is taken and not used."""
    assert main(["count", *words.split()]) == 2
    assert "hint:" in capsys.readouterr().err


def test_formulas():
    assert (
        str(
            Formula(
                -33,
                published_counts.F(1183, 6),
                published_counts.F(261, 2),
                published_counts.F(1, 3),
            )
        )
        == "1/3 N^3 + (130+1/2)N^2 + (197+1/6)N - 33"
    )
    assert (
        str(Formula(0)) == "0"
        and str(Formula(-1, 1)) == "N - 1"
        and str(Formula(2, -1)) == "-N + 2"
    )
    with pytest.raises(pp.StateError, match="not linear"):
        fit_line({3: 1, 4: 2, 5: 4})


@pytest.mark.parametrize(
    ("robot", "function"), [(robot, f) for robot, counts in GOLDEN.items() for f in counts]
)
def test_golden_counts(robot, function):
    """A change here is a change of the generated code: better is welcome, and is written down."""
    count = getattr(robots, robot)().function(function).count
    assert (count.mul, count.add, count.div, count.trig) == GOLDEN[robot][function]


def test_loops_count_what_straight_code_counts():
    """A long chain runs in loops; a link of it costs what it costs in a short one, plus what its
    neighbours' zeros saved."""
    long, short = flops("forward_dynamics", 200, 0) / 200, 379
    assert short <= long < 1.5 * short
