"""The choice between Omega and the hub, by exact operation counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.rccfd_methods import HUB
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode

BY_OMEGA = ("free", "whole")
MAX_TRUNK_COST = 4  # a trunk is not tried if it costs more than this times the factors of Omega


@dataclass(frozen=True)
class MethodChoice:
    """The program with the fewest operations, and the counts of all that were tried."""

    program: StageProgramCode
    method: str
    flops: dict[str, int] = field(default_factory=dict)
    omega_factor_flops: int = 0  # m^3 / 3 operations to factor Omega: a lower bound of its cost

    @property
    def reason(self) -> str:
        """The counts, or why Omega was not counted, as text; empty if nothing was counted."""
        if not self.flops:
            return ""
        counted = ", ".join(f"{name} {flops}" for name, flops in self.flops.items())
        if HUB not in self.flops:
            return f"Omega: no hub leaves several groups at a lower cost ({counted} flops)"
        if len(self.flops) == 1 and self.flops[HUB] >= self.omega_factor_flops:
            return f"the hub, whose inertia is singular: {counted} flops"
        if len(self.flops) == 1:
            return (
                f"the hub: {counted} flops; factoring Omega alone takes {self.omega_factor_flops}"
            )
        return f"{'the hub' if self.method == HUB else 'Omega'}, by count: {counted} flops"


def choose_method(
    algebra: Algebra, make: Callable[[str], StageProgramCode], by_omega: Sequence[str] = BY_OMEGA
) -> MethodChoice:
    """The method with the fewest operations; `make` builds the program of a method.

    If the hub costs less than factoring Omega, Omega is not traced, so that the time of first calls
    grows with the number of arms and not with its cube.
    """
    factoring, hub = algebra.closure.size**3 // 3, algebra.hub
    programs: dict[str, StageProgramCode] = {}
    if hub is not None and (
        hub.thin or not hub.trunk_coordinates or hub.cost < MAX_TRUNK_COST * factoring
    ):
        programs[HUB] = make(HUB)
    if not algebra.is_thin and (not programs or programs[HUB].flops >= factoring):
        programs |= {method: make(method) for method in by_omega}
    flops = {method: program.flops for method, program in programs.items()}
    method = min(flops, key=lambda name: flops[name])
    return MethodChoice(programs[method], method, flops, factoring)
