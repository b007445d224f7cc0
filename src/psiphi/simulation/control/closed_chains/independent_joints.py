"""The independent joints of a closed chain: as many coordinates as it has degrees of freedom, whose
velocities y' determine all others, v = N(q) y' with Jc N = 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import count_of, shown
from psiphi._util.validate import as_names
from psiphi.robot.mechanisms.dynamics.load_distribution import unconstrained_motions
from psiphi.robot.mechanisms.system import System

RANK_TOLERANCE = 1e-9  # singular values of Jc below this count as zero


@dataclass(frozen=True)
class ChainCoordinates:
    """The velocity coordinates of a closed chain by their role."""

    independent: tuple[int, ...]
    unactuated: tuple[int, ...]  # those without a motor
    nv: int
    rows: int  # of the constraints

    @property
    def dependent(self) -> tuple[int, ...]:
        """The coordinates whose velocities follow from the independent ones."""
        return tuple(i for i in range(self.nv) if i not in self.independent)

    @property
    def mask(self) -> np.ndarray:
        """(nv,): 1 at independent coordinates, else 0."""
        return np.isin(np.arange(self.nv), self.independent).astype(float)


def check_driven(law: str, system: System, q: np.ndarray) -> np.ndarray:
    """Jc in a closed configuration near q; an error if motors cannot produce every motion of the
    chain there."""
    if system.algebra.is_thin:
        raise StateError(
            f"{law} of {system.name}: the inertia of {system.object} is singular",
            "give the object an inertia, or use pp.ObjectControl",
        )
    try:
        closed = system.assemble(q)
    except Error as error:
        raise StateError(
            f"{law} of {system.name}: no closed configuration near the reference was found",
            "give a reference that satisfies the constraints: system.assemble(q)",
        ) from error
    Jc = system.constraint_jacobian(closed)
    free = unconstrained_motions(Jc[..., system.idle]).any(axis=-1)
    if free.any():
        names = {system.joints[k].name for k in _joints_of(system, system.idle[free])}
        raise StateError(
            f"{law} of {system.name}: no motor drives every motion of {', '.join(sorted(names))}",
            "the law needs motors for every motion: use pp.ComputedTorque, or actuated=",
        )
    return Jc


def _joints_of(system: System, coordinates: Iterable[int]) -> list[int]:
    return [
        next(k for k, joint in enumerate(system.joints) if i in joint.coordinates)
        for i in coordinates
    ]


def chain_coordinates(
    law: str, system: System, joints: str | Iterable[str] | None, q: np.ndarray
) -> ChainCoordinates:
    """The coordinates of the independent `joints`. Default: the joints with motors, or the held
    object, if these determine the motion."""
    Jc = check_driven(law, system, q)
    freedoms = system.nv - int(np.linalg.matrix_rank(Jc, tol=RANK_TOLERANCE))
    if joints is None:
        choices = [tuple(system.actuated.tolist())]
        if system.object:
            body = system.frame(system.object).body
            choices.append(tuple(system.joints[body].coordinates))
        chosen = next((x for x in choices if _determine(Jc, x, freedoms)), None)
        if chosen is None:
            raise StateError(
                f"{law} of {system.name}: the chain has {count_of(freedoms, 'degree')} of freedom, "
                "and neither its motors nor its object are as many independent coordinates",
                "name joints whose motion determines that of all others: joints=[...]",
            )
    else:
        names = as_names("joints", joints)
        chosen = tuple(sorted(i for name in names for i in system.joint(name).coordinates))
        if not _determine(Jc, chosen, freedoms):
            raise StateError(
                f"{law} of {system.name}: the {len(chosen)} coordinates of joints={shown(joints)} "
                f"do not determine the motion, which has {count_of(freedoms, 'degree')} of freedom",
                f"name joints with {freedoms} coordinates whose motion determines that of all "
                "others",
            )
    return ChainCoordinates(chosen, tuple(system.idle.tolist()), system.nv, system.nc)


def _determine(Jc: np.ndarray, chosen: tuple[int, ...], freedoms: int) -> bool:
    """Whether velocities of these coordinates are free and determine all others."""
    others = np.delete(Jc, chosen, axis=-1)
    rank = np.linalg.matrix_rank(others, tol=RANK_TOLERANCE) if others.size else 0
    return len(set(chosen)) == len(chosen) == freedoms and rank == others.shape[-1]
