"""Velocities that are computed, not given: expressions in quasi-velocities nu or xi.

The letters made of velocities (spin, Omega_d, a_local, b_local, P_dot, ...) read V and v. Here these two are nodes of the
graph themselves, polynomials in the quasi-velocities such as V = psi* H* xi, and everything that needs them comes after.
"""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.algebra.expressions.terms import Poly
from psiphi.compiler.lower.horner_graph import Node
from psiphi.compiler.lower.vector_sweeps import Lowered


@dataclass
class QuasiLowered(Lowered):
    """A `Lowered` whose link velocities `V` and joint velocities `v` are polynomials."""

    V: Poly | None = None
    v: Poly | None = None
    movable: bool = True  # False: the results speak of the single bodies

    def _motion(self) -> dict[Node, str]:
        # first of all nodes: letters made of velocities wait for the sweeps that make these two
        assert self.V is not None and self.v is not None
        nodes = {"V": self.graph.of(self.V), "v": self.graph.of(self.v)}
        return {node: name for name, node in nodes.items() if node is not None}

    @property
    def explicit_bias(self) -> bool:
        """No sweep makes the velocities from v."""
        return False

    @property
    def rods(self) -> bool:
        """Inertia may change sides of joints: the moved bodies have the same kinetic and potential energy, hence the same
        D, nu and xi; and all results over joints are functions of these."""
        return self.movable and not self._over_links
