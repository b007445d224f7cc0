"""Composite bodies: all that a joint carries as one rigid body, its joints locked.

r(k) = M(k) + sum_c phi(k, c) r(c) phi*(k, c)        tip to base (docs/mathematics.md section 6)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psiphi.spatial.along import pose, rotate, second_moment
from psiphi.spatial.screws import Inertia, add, rigid
from psiphi.spatial.small import plus, steiner, symmetric
from psiphi.spatial.stacks import StackedInertia
from psiphi.steps.local import EYE3, ZERO3
from psiphi.sweeps.program import Site


def compose(site: Site) -> None:
    """Tip to base: r(k) = M(k) + sum phi r(c) phi*, as (mass, first moment, second moment) of a rigid body."""
    # this body with all that its children sent; of a cluster, each body with what hangs on it
    bodies = [Rigid(link.mass, link.moment, link.pseudo) for link in site.bodies]
    below = site.children.get("rigid")
    if below is not None:
        bodies = [x + y for x, y in zip(bodies, below if isinstance(below, RigidStack) else [below], strict=True)]
    site.keep(r=StackedInertia([x.inertia for x in bodies]) if site.is_cluster else bodies[0].inertia)
    site.send(rigid=site.handed(_carried, bodies))


def _carried(path: list, body: Rigid) -> Rigid:
    """As the parent sees it: m, m p + m l, and J by Steiner. Moments of mass move cheaper than 6 x 6 inertias."""
    mass = body.mass
    l, p = pose(path, EYE3, ZERO3)[1], rotate(path, body.moment)
    first = [x + mass * y for x, y in zip(p, l, strict=True)]
    return Rigid(mass, first, steiner(second_moment(path, body.J), mass, p, l))


class RigidStack(list):
    """The rigid bodies that the bodies of a cluster carry."""

    def __add__(self, other: RigidStack) -> RigidStack:  # type: ignore[override]
        return RigidStack(x + y for x, y in zip(self, other, strict=True))


@dataclass(frozen=True)
class Rigid:
    """Mass, first and second moment of a rigid body; they add."""

    mass: Any
    moment: list
    J: list

    def __add__(self, other: Rigid) -> Rigid:
        return Rigid(self.mass + other.mass, add(self.moment, other.moment), symmetric(plus(self.J, other.J)))

    def put(self, at: int, count: int) -> RigidStack:
        """Carried by one body of a cluster."""
        nothing = Rigid(0.0, ZERO3, [ZERO3, ZERO3, ZERO3])
        return RigidStack(self if i == at else nothing for i in range(count))

    @property
    def inertia(self) -> Inertia:
        return rigid(self.mass, self.moment, self.J)
