"""The solve with the constraints, as stages: by Omega, or around the hub (`hub.py`).

Both leave a `Solver` in the place "solver": right -> multipliers, their strain, and what the hub accelerates besides.
"""

from __future__ import annotations

from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import frame, kept
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.loops.constraints import Closure
from psiphi.model.model import Model
from psiphi.model.parameters.free_parameters import nominal
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, around, solver
from psiphi.robot.mechanisms.solve.hub import Hub
from psiphi.robot.mechanisms.solve.hub_elimination import elimination, movable
from psiphi.robot.mechanisms.solve.rccfd_methods import HUB
from psiphi.robot.mechanisms.solve.stage_program import (
    BodySubset,
    CircuitStage,
    StagePlaces,
    StageProgramCode,
    arguments,
)


def compliance(algebra: Algebra) -> dict[str, CircuitStage]:
    """X, U and Y where they are needed, and Omega of them."""

    def coupled(places: StagePlaces) -> StagePlaces:
        X = {name: places[name] for name in algebra.compliances}
        return {"Omega": places["c"].omega(X), "reach": places["c"].reach(X)}

    return {**algebra.compliances, "Omega": coupled}


def coupling(algebra: Algebra, method: str, redundant: bool) -> dict[str, CircuitStage]:
    """Stages that leave the solver of the constraints in the place "solver": by Omega, or around the hub."""
    if method != HUB:
        return {
            **compliance(algebra),
            "factor": lambda places: {
                "solver": solver(places["Omega"], places["reach"], redundant)
            },
        }
    low = low_groups(algebra)

    def eliminated(places: StagePlaces) -> StagePlaces:
        M, blocks = places["around"]
        return {"solver": elimination(places["hub"], M, blocks, redundant, low)}

    return {**hub_stages(algebra), "factor": eliminated}


def all_but(hub: Hub, model: Model) -> tuple[int, ...]:
    return tuple(k for k in range(len(model.bodies)) if k not in hub.bodies)


def over(algebra: Algebra, method: str, *stages: Equation) -> list[CircuitStage]:
    """Equations over all bodies; around a hub those that give torques over the hub, the others over all but the hub."""
    hub = algebra.hub
    if method != HUB or hub is None:
        return list(stages)
    others = all_but(hub, algebra.closure.model)
    return [BodySubset(stage, hub.bodies if "T" in stage.results else others) for stage in stages]


def pushing(algebra: Algebra, torques: list) -> list:
    """The hub's part of torques; the trunk falls as it does without constraints."""
    return (
        [torques[i] for i in algebra.hub.coordinates] + [0.0] * len(algebra.hub.shared)
        if algebra.hub
        else []
    )


def hub_stages(algebra: Algebra) -> dict[str, CircuitStage]:
    """What the elimination of the hub takes: the others' compliances with the trunk still, J and M of the hub, J M^-1 and M^-1
    of the tree with the trunk, and the block of every group."""
    hub, compliances = algebra.hub, algebra.compliances
    assert hub is not None
    others = all_but(hub, algebra.closure.model)

    def grouped(places: StagePlaces) -> StagePlaces:
        X = {name: places[name] for name in compliances}
        own = {name: places.get(f"hub {name}", []) for name in "MJUY"}
        return {"hub": hub, "around": around(places["c"], hub, X, own)}

    still = tuple(k for k in others if k not in hub.trunk)
    parts: dict[str, CircuitStage] = {
        name: BodySubset(equation, still) for name, equation in compliances.items()
    }
    if hub.bodies:
        parts["hub M"] = BodySubset(algebra.inertia, hub.bodies)
    if hub.bodies and algebra.closure.frames:
        parts["hub J"] = BodySubset(algebra.motion, hub.bodies)
    if hub.trunk:
        parts |= {
            f"hub {name}": BodySubset(equation, others)
            for name, equation in algebra.columns.items()
        }
    return {**parts, "groups": grouped}


HUB_PLACES = {
    ("hub M", "inertia"): "hub M",
    ("hub J", "J"): "hub J",
    ("hub U", "U"): "hub U",
    ("hub Y", "Y"): "hub Y",
}


@kept
def low_groups(algebra: Algebra) -> tuple[bool, ...]:
    """The groups that cannot move all their rows: by count of coordinates, or in a few random configurations."""
    closure = algebra.closure
    hub, model = algebra.hub, nominal(closure.model)
    assert hub is not None
    if all(hub.short):
        return hub.short
    plain = Algebra(Closure(model, closure.constraints, closure.follows))
    stages = hub_stages(plain) | {
        "kept": lambda places: {"kept": movable(places["hub"], *places["around"])}
    }
    outputs = (Argument("kept", (closure.size,)),)
    asked = StageProgramCode(
        "closed ranks", "", arguments(plain, "q"), outputs, plain, stages, HUB_PLACES
    )
    tree = frame(model, asked.rods)
    (on,) = interpret(asked.program(tree), tree, model.random(seed=1, size=3))
    return tuple(
        few or not on[:, list(rows)].all(axis=-1).any()
        for rows, few in zip(hub.groups, hub.short, strict=True)
    )


def settled(algebra: Algebra, a: list, hub: list) -> list:
    """Accelerations, the hub's as the solver found them."""
    own = (
        dict(zip(algebra.hub.coordinates, hub, strict=False)) if hub and algebra.hub else {}
    )  # the trunk's come behind
    return [own.get(i, x) for i, x in enumerate(a)]
