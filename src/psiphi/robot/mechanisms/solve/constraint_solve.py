"""Stages that solve for the multipliers: by Omega, or by eliminating the hub (`hub.py`).

Both store a `Solver` of `hub_elimination.py` in the place "solver".
"""

from __future__ import annotations

from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import frame, memoized_pass
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.loops.constraints import Closure
from psiphi.model.model import Model
from psiphi.model.parameters.free_parameters import nominal_model
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, hub_blocks, omega_solver
from psiphi.robot.mechanisms.solve.hub import Hub
from psiphi.robot.mechanisms.solve.hub_elimination import hub_solver, movable_rows
from psiphi.robot.mechanisms.solve.rccfd_methods import HUB
from psiphi.robot.mechanisms.solve.stage_program import (
    BodySubset,
    StageDefinition,
    StagePlaces,
    StageProgramCode,
    arguments,
)


def omega_stages(algebra: Algebra) -> dict[str, StageDefinition]:
    """The stages of Omega: X, U and Y of `Algebra.compliances`, Omega and its row scales."""

    def omega(places: StagePlaces) -> StagePlaces:
        X = {name: places[name] for name in algebra.compliances}
        return {"Omega": places["c"].omega(X), "row scales": places["c"].row_scales(X)}

    return {**algebra.compliances, "Omega": omega}


def solver_stages(algebra: Algebra, method: str, redundant: bool) -> dict[str, StageDefinition]:
    """The stages that store the solver of the constraints in the place "solver"."""
    if method != HUB:
        return {
            **omega_stages(algebra),
            "factor": lambda places: {
                "solver": omega_solver(places["Omega"], places["row scales"], redundant)
            },
        }
    deficient = deficient_groups(algebra)

    def factor(places: StagePlaces) -> StagePlaces:
        M, blocks = places["hub blocks"]
        return {"solver": hub_solver(places["hub"], M, blocks, redundant, deficient)}

    return {**hub_stages(algebra), "factor": factor}


def bodies_without(hub: Hub, model: Model) -> tuple[int, ...]:
    """The bodies that are not part of the hub."""
    return tuple(k for k in range(len(model.bodies)) if k not in hub.bodies)


def restrict_stages(algebra: Algebra, method: str, *stages: Equation) -> list[StageDefinition]:
    """Restrict equations to the bodies that matter to the method.

    With a hub, an equation for torques T runs over the hub, others run over all other bodies.
    """
    hub = algebra.hub
    if method != HUB or hub is None:
        return list(stages)
    others = bodies_without(hub, algebra.closure.model)
    return [BodySubset(stage, hub.bodies if "T" in stage.results else others) for stage in stages]


def hub_torques(algebra: Algebra, torques: list) -> list:
    """The torques on the hub; zero for the trunk, whose free acceleration includes its torques."""
    return (
        [torques[i] for i in algebra.hub.coordinates] + [0.0] * len(algebra.hub.trunk_coordinates)
        if algebra.hub
        else []
    )


def hub_stages(algebra: Algebra) -> dict[str, StageDefinition]:
    """The stages before the elimination of the hub: the compliances of the other bodies with the
    trunk at rest, J and M of the hub, J M^-1 and M^-1 of the trunk's tree, the block of each group.
    """
    hub, compliances = algebra.hub, algebra.compliances
    assert hub is not None
    others = bodies_without(hub, algebra.closure.model)

    def groups(places: StagePlaces) -> StagePlaces:
        X = {name: places[name] for name in compliances}
        own = {name: places.get(f"hub {name}", []) for name in "MJUY"}
        return {"hub": hub, "hub blocks": hub_blocks(places["c"], hub, X, own)}

    arms = tuple(k for k in others if k not in hub.trunk)
    stages: dict[str, StageDefinition] = {
        name: BodySubset(equation, arms) for name, equation in compliances.items()
    }
    if hub.bodies:
        stages["hub M"] = BodySubset(algebra.inertia, hub.bodies)
    if hub.bodies and algebra.closure.frames:
        stages["hub J"] = BodySubset(algebra.motion, hub.bodies)
    if hub.trunk:
        stages |= {
            f"hub {name}": BodySubset(equation, others)
            for name, equation in algebra.columns.items()
        }
    return {**stages, "groups": groups}


HUB_PLACES = {
    ("hub M", "inertia"): "hub M",
    ("hub J", "J"): "hub J",
    ("hub U", "U"): "hub U",
    ("hub Y", "Y"): "hub Y",
}


@memoized_pass
def deficient_groups(algebra: Algebra) -> tuple[bool, ...]:
    """By group whether it cannot move all its rows: it has fewer coordinates than rows, or its
    rows are dependent in three random configurations."""
    closure = algebra.closure
    hub, model = algebra.hub, nominal_model(closure.model)
    assert hub is not None
    if all(hub.deficient):
        return hub.deficient
    plain = Algebra(Closure(model, closure.constraints, closure.mimics))
    stages = hub_stages(plain) | {
        "movable": lambda places: {"movable": movable_rows(places["hub"], *places["hub blocks"])}
    }
    outputs = (Argument("movable", (closure.size,)),)
    ranks = StageProgramCode(
        "closed ranks", "", arguments(plain, "q"), outputs, plain, stages, HUB_PLACES
    )
    tree = frame(model, ranks.movable_inertia)
    (movable,) = interpret(ranks.program(tree), tree, model.random(seed=1, size=3))
    return tuple(
        by_count or not movable[:, list(rows)].all(axis=-1).any()
        for rows, by_count in zip(hub.groups, hub.deficient, strict=True)
    )


def with_hub_accelerations(algebra: Algebra, a: list, hub: list) -> list:
    """Accelerations a with those of the hub replaced by `hub`, the result of the solver (its
    entries behind the coordinates of the hub belong to the trunk)."""
    by_coordinate = (
        dict(zip(algebra.hub.coordinates, hub, strict=False)) if hub and algebra.hub else {}
    )
    return [by_coordinate.get(i, x) for i, x in enumerate(a)]
