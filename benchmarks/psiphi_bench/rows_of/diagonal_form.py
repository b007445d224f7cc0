"""Diagonalised dynamics: operations of (q, nu, tau) -> (v, nu'), and errors of accelerations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import psiphi as pp
from psiphi_bench.counts.count_formulas import Formula
from psiphi_bench.counts.count_tables import flops as formula
from psiphi_bench.counts.published_counts import TOTALS
from psiphi_bench.interpreted_robot import Interpreted
from psiphi_bench.row import Measurement, Size
from psiphi_bench.rows_of.operation_counts import compare_counts

FORMS = {"diagonalised": True, "unnormalised": False}


def flops(form: str, case: int, target: int) -> Callable[[Size], Iterator[Measurement]]:
    """The count of psiphi relative to `target` N; the note has the paper's count."""

    def measure(size: Size) -> Iterator[Measurement]:
        subject, paper = (
            f"{'general' if case == 1 else 'perpendicular'} arm",
            TOTALS[FORMS[form], case],
        )
        yield compare_counts(
            subject, formula(f"{form}_motion", case), Formula(0, target), f"; S1: {paper}"
        )

    return measure


def agreement(size: Size) -> Iterator[Measurement]:
    """Errors of accelerations from nu' and xi', for random trees with all joint types."""
    count = 10 if size.quick else 60
    worst = dict.fromkeys(FORMS, 0.0)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        robot = Interpreted.of(
            pp.robots.random_tree(
                2 + seed % 8, seed=seed, base="free" if seed % 3 == 0 else "fixed"
            )
        )
        q, (v, tau) = robot.random(rng), rng.standard_normal((2, robot.nv))
        want = robot.forward_dynamics(q, v, tau)
        for form, normalised in FORMS.items():
            d = robot.diagonalised if normalised else robot.diagonalised.unnormalised
            nu = d.velocities(q, v)
            got = d.acceleration(q, nu, d.forward_dynamics(q, nu, tau))
            worst[form] = max(
                worst[form], float(np.abs(got - want).max() / (1.0 + np.abs(want).max()))
            )
    for form, error in worst.items():
        yield Measurement(
            f"{count} random trees, {form}", error, "", "", "relative to the largest acceleration"
        )
