"""The joint seen through the articulated inertia of what it carries (docs/mathematics.md section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psiphi.spatial import small
from psiphi.spatial.screws import Inertia, add, dot, root
from psiphi.spatial.stacks import StackedInertia


@dataclass(frozen=True)
class Gain:
    """The joint seen through the articulated inertia P: D = H P H* + rotor, G = P H* D^-1, P+ = P - G H P.

    Where H only selects coordinates and the rotor has no inertia, the selected rows of P+ and of tau_bar are zero, and
    H z+ = x for z+ = z + G (x - H z), exactly: they are written as such.
    """

    D: list
    factors: tuple[list, list]
    G: list  # by rows
    closed: tuple[int, ...]  # the coordinates the joint closes: the rows of P+ that vanish

    def update(self, z, x, innovation) -> list:
        """z+ = z + G (x - H z)."""
        out = [z[r] if r in self.closed else z[r] + dot(self.G[r], innovation) for r in range(len(z))]
        for i, r in enumerate(self.closed):
            out[r] = x[i]
        return out

    def through(self, H, z) -> list:
        """tau_bar z = z - G H z."""
        Hz = small.apply(H, z)
        return [0.0 if r in self.closed else z[r] - dot(self.G[r], Hz) for r in range(len(z))]

    def adjoint(self, x) -> list:
        """G* x."""
        return [dot(column, x) for column in zip(*self.G, strict=True)]

    def solve(self, x) -> list:
        """D^-1 x."""
        return small.solve(self.factors, x)

    @property
    def roots(self) -> list:
        """1 / sqrt(d) with D = L diag(d) L*; the Cholesky factor D^1/2 is L diag(sqrt(d))."""
        return [root(d) for d in self.factors[1]]

    def half(self, x) -> list:
        """D^1/2 x."""
        return small.lower(self.factors[0], [y / r for y, r in zip(x, self.roots, strict=True)])

    def half_adjoint(self, x) -> list:
        """(D^1/2)* x."""
        return [y / r for y, r in zip(small.upper(self.factors[0], x), self.roots, strict=True)]

    def half_inverse(self, x) -> list:
        """D^-1/2 x."""
        return [y * r for y, r in zip(small.forward(self.factors[0], x), self.roots, strict=True)]

    def half_inverse_adjoint(self, x) -> list:
        """(D^-1/2)* x."""
        return small.backward(self.factors[0], [y * r for y, r in zip(x, self.roots, strict=True)])


def gain(P: Any, H, armature) -> tuple[Gain, Any]:
    """The gain of a joint with map H below the articulated inertia P, and P+."""
    U = [P @ row for row in H]  # P H*, by columns
    D = [[dot(h, u) for u in U] for h in H]
    coupled = bool(armature) and isinstance(armature[0], list)  # joints that move together
    for i, J in enumerate(armature):
        D[i] = add(D[i], J) if coupled else [x + J if i == j else x for j, x in enumerate(D[i])]
    # Without rotors H G = I: a coordinate that the joint opens passes no force on, and its row of P+ is zero, not rounding.
    exact = not coupled and all(isinstance(J, float) and J == 0.0 for J in armature)
    selected = [_selected(row) for row in H]
    closed = tuple(i for i in selected if i is not None) if exact and None not in selected else ()
    factors = small.factor(D)
    G = [
        [1.0 if r == i else 0.0 for i in closed] if r in closed else small.solve(factors, [u[r] for u in U])
        for r in range(P.size)
    ]
    return Gain(D, factors, G, closed), P.less(G, U, closed) if isinstance(P, StackedInertia) else _reduced(P, G, U, closed)


def _reduced(P: Inertia, G, U, closed) -> Inertia:
    """P+ = P - G H P."""
    entry = {}
    for r in range(P.size):
        for c in range(r, P.size):
            value = 0.0 if r in closed or c in closed else P.entry(r, c)
            for g, u in zip(G[r], U, strict=True) if r not in closed and c not in closed else ():
                value = value - g * u[c]
            entry[r, c] = entry[c, r] = value
    return type(P).from_entries(entry)


def _selected(row) -> int | None:
    """i when the row of H is the unit vector e_i."""
    if any(not isinstance(x, float) for x in row) or sorted(row) != [0.0] * (len(row) - 1) + [1.0]:
        return None
    return row.index(1.0)
