"""Which form of a function runs: Omega or the hub, by exact operation counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.rccfd_methods import HUB
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode

BY_OMEGA = ("free", "whole")
TRIED = 4  # a trunk whose dense part takes more than this, beside the factors of Omega, is not even counted


@dataclass(frozen=True)
class MethodChoice:
    """The form with the fewest operations, and what was counted to know it."""

    circuit: StageProgramCode
    method: str
    flops: dict[str, int] = field(default_factory=dict)
    least_omega: int = 0  # what Omega takes at least: m^3 / 3 to factor m rows

    @property
    def why(self) -> str:
        """In words: the counts of the forms, or why Omega was not counted; nothing where nothing was."""
        if not self.flops:
            return ""
        counted = ", ".join(f"{name} {flops}" for name, flops in self.flops.items())
        if HUB not in self.flops:
            return f"Omega: no mechanism whose elimination leaves several groups at less cost ({counted} flops)"
        if len(self.flops) == 1 and self.flops[HUB] >= self.least_omega:
            return f"the hub, whose inertia is singular: {counted} flops"
        if len(self.flops) == 1:
            return f"the hub: {counted} flops; to factor Omega alone takes {self.least_omega}"
        return f"{'the hub' if self.method == HUB else 'Omega'}, by count: {counted} flops"


def cheapest(
    algebra: Algebra, make: Callable[[str], StageProgramCode], by_omega: Sequence[str] = BY_OMEGA
) -> MethodChoice:
    """Around the hub where that takes fewer operations than Omega; where it takes fewer than factoring Omega alone, Omega is
    not even traced, so that first calls grow with the arms and not with their cube. `make` makes the circuit of a method."""
    least, made, hub = algebra.closure.size**3 // 3, {}, algebra.hub
    if hub is not None and (hub.thin or not hub.shared or hub.work < TRIED * least):
        made[HUB] = make(HUB)
    if not algebra.is_thin and (not made or made[HUB].flops >= least):
        made |= {method: make(method) for method in by_omega}
    flops = {method: circuit.flops for method, circuit in made.items()}
    method = min(flops, key=lambda name: flops[name])
    return MethodChoice(made[method], method, flops, least)
