"""Velocities that are expressions, not inputs: equations in quasi-velocities nu or xi.

The letters that depend on velocities (spin, Omega_d, a_local, b_local, P_dot, ...) read V and v. In
these equations V and v are nodes of the graph, polynomials of the quasi-velocities such as V = psi*
H* xi. Nodes that need them come later.
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
    movable: bool = True  # False: the results are of single bodies

    def _velocity_nodes(self) -> dict[Node, str]:
        # the first nodes of the graph
        assert self.V is not None and self.v is not None
        nodes = {"V": self.graph.node_of(self.V), "v": self.graph.node_of(self.v)}
        return {node: name for name, node in nodes.items() if node is not None}

    @property
    def computes_velocities(self) -> bool:
        """Velocities are nodes; no sweep computes them from v."""
        return False

    @property
    def movable_inertia(self) -> bool:
        """Whether inertia may move across joints. The moved bodies have the same kinetic and
        potential energy, hence the same D, nu and xi, and all results over joints are functions of
        these."""
        return self.movable and not self._has_link_arrays
