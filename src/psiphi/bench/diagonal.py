"""The rows about diagonalised dynamics: operations of (q, nu, tau) -> (v, nu'), and agreement with the standard form."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import psiphi as pp
from psiphi.bench.interpreted import Interpreted
from psiphi.bench.row import Measured, Size
from psiphi.counting.papers import TOTALS
from psiphi.counting.tables import flops as formula

FORMS = {"diagonalised": True, "unnormalised": False}
LENGTHS = range(4, 25)


def flops(form: str, case: int, target: int) -> Callable[[Size], Iterator[Measured]]:
    """The largest ratio of our count to `target` N, over all lengths and in the limit."""

    def measure(size: Size) -> Iterator[Measured]:
        ours, paper = formula(f"{form}_motion", case), TOTALS[FORMS[form], case]
        ratio = max(float(ours.coefficients[1]), *(float(ours(n)) / n for n in LENGTHS)) / target
        note = f"{ours(6)} at N = 6, {ours(12)} at N = 12; S1: {paper}"
        yield Measured(f"{'general' if case == 1 else 'perpendicular'} arm", ratio, str(ours), f"{target}N", note)

    return measure


def agreement(size: Size) -> Iterator[Measured]:
    """Accelerations recovered from nu' and xi', beside forward dynamics: random trees of every joint kind."""
    count = 10 if size.quick else 60
    worst = dict.fromkeys(FORMS, 0.0)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        robot = Interpreted.of(pp.robots.random_tree(2 + seed % 8, seed=seed, base="free" if seed % 3 == 0 else "fixed"))
        q, (v, tau) = robot.random(rng), rng.standard_normal((2, robot.nv))
        want = robot.forward_dynamics(q, v, tau)
        for form, normalised in FORMS.items():
            d = robot.diagonalised if normalised else robot.diagonalised.unnormalised
            nu = d.velocities(q, v)
            got = d.acceleration(q, nu, d.forward_dynamics(q, nu, tau))
            worst[form] = max(worst[form], float(np.abs(got - want).max() / (1.0 + np.abs(want).max())))
    for form, error in worst.items():
        yield Measured(f"{count} random trees, {form}", error, "", "", "relative to the largest acceleration")
