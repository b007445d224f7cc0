"""Derivatives of Newton and Euler's equations at one body: what the composites of a moving robot are made of.

    d tau/dq = H φ (M φ* Q_α + Γ φ* Q_V + ℰ_φ ⟦f⟧ H*)      d tau/dv = H φ (M φ* (Q_V + Hr) + Γ φ* H*)

    Q_V = V⁺ × H*        Q_α = α⁺ × H* + V⁺ × Q_V        Hr = V × H*        (V⁺, α⁺: of the parent, seen at the joint)
    Γ = V ×* M - M V × + ⟦M V⟧ = [[I' - n~, 0], [-2 F~, 0]]                 [n; F] = M V, I' the rate of the inertia

for joint maps that are constant in body axes. A composite φ Γ φ* keeps the form of Γ: it is moved as I', n and F are.
Velocities are those seen from the link's own origin, V = [w; 0] (a Galilean frame of its own each): to move a composite to the
parent adds the velocity u of its origin there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psiphi.compiler.recursions.body_step import ZERO3
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.cross_products import motion_cross
from psiphi.model.spatial.screw_paths import force, rotate, second_moment
from psiphi.model.spatial.screws import add, cross, from_second, vanishes
from psiphi.model.spatial.small_matrices import adjoint_map, plus, symmetric


def times(c: Any, x: list) -> list:
    """c x; nothing, where there is nothing to multiply."""
    return ZERO3 if vanishes(c) else [c * y for y in x]


def wedge(w: list, J: list) -> list:
    """w~ J."""
    return [
        [w[1] * J[2][c] - w[2] * J[1][c] for c in range(3)],
        [w[2] * J[0][c] - w[0] * J[2][c] for c in range(3)],
        [w[0] * J[1][c] - w[1] * J[0][c] for c in range(3)],
    ]


def axial(A: list) -> list:
    """The vector of A - A*."""
    return [A[2][1] - A[1][2], A[0][2] - A[2][0], A[1][0] - A[0][1]]


def both(a: list, c: list) -> list:
    """a c* + c a*."""
    return symmetric([[a[i] * c[j] + a[j] * c[i] for j in range(3)] for i in range(3)])


@dataclass(frozen=True)
class JointSlopes:
    """One coordinate of a joint: h = H* e, Q_V, Q_α, and what M meets in d tau/dv: Q_V + Hr; in the Coriolis matrix Hr."""

    h: list
    Q_V: list
    Q_a: list
    ring: list


def joint_slopes(
    site: BodyView, V: list, above: list, a_above: list, coriolis: bool = False
) -> list[JointSlopes]:
    found = []
    for h in site.H:  # a turn of the joint carries the inboard motion past it: V⁺ x H*; V x H* is the rate of H* itself
        Q_V, Hr = motion_cross(above, h), motion_cross(V, h)
        found.append(
            JointSlopes(
                h,
                Q_V,
                add(motion_cross(a_above, h), motion_cross(above, Q_V)),
                Hr if coriolis else add(Q_V, Hr),
            )
        )
    return found


@dataclass(frozen=True)
class MovingBody:
    """A composite of bodies that move: mass, first and second moment; momentum F, angular momentum n, the rate of the second
    moment.

    `half`: the last three are of half the velocity, and Γ / 2 in the place of Γ.
    """

    mass: Any
    p: list
    J: list
    F: list
    n: list
    Jd: list

    @classmethod
    def alone(cls, link: Any, w: list, half: float) -> MovingBody:
        """One body that turns by w."""
        # second moments turn as J' = w~ J - J w~ = W + W*, W = w~ J, and the angular momentum is the vector of W - W*
        W = wedge(w, [times(half, row) for row in link.pseudo])
        rate = symmetric([[W[i][j] + W[j][i] for j in range(3)] for i in range(3)])
        return cls(
            link.mass,
            list(link.moment),
            link.pseudo,
            cross(w, times(half, link.moment)),
            axial(W),
            rate,
        )

    def __add__(self, other: MovingBody) -> MovingBody:
        return MovingBody(
            self.mass + other.mass,
            add(self.p, other.p),
            symmetric(plus(self.J, other.J)),
            add(self.F, other.F),
            add(self.n, other.n),
            symmetric(plus(self.Jd, other.Jd)),
        )

    def moved(self, path: list, l: list, u: list) -> MovingBody:
        """Seen from the parent, from which its origin is at l and moves by u."""
        # Steiner, and its derivative along u = l': J + l p* + p l* + m l l*, written as both(l, p + m l / 2), and so its rate
        p, F = rotate(path, self.p), add(rotate(path, self.F), times(self.mass, u))
        middle = [x + 0.5 * self.mass * y for x, y in zip(p, l, strict=True)]
        return MovingBody(
            self.mass,
            add(p, times(self.mass, l)),
            plus(second_moment(path, self.J), both(l, middle)),
            F,
            add(add(rotate(path, self.n), cross(p, u)), cross(l, F)),
            plus(plus(second_moment(path, self.Jd), both(u, p)), both(l, F)),
        )

    def inertia(self, x: list) -> list:
        """r x, of the composite at rest."""
        # [[I, p~], [-p~, m]] x, I = tr(J) 1 - J: moments of mass are kept, and the 6 x 6 never written
        turn, move = x[:3], x[3:]
        momentum = add(small_matrices.apply(from_second(self.J), turn), cross(self.p, move))
        return momentum + add(times(self.mass, move), cross(turn, self.p))

    def gyration(self, w: list) -> list:
        """Γ x, of which only the spin w counts."""
        return add(small_matrices.apply(from_second(self.Jd), w), cross(w, self.n)) + times(
            2.0, cross(w, self.F)
        )

    def couples(self, h: list) -> list:
        """Γ* h: a couple."""
        own = add(small_matrices.apply(from_second(self.Jd), h[:3]), cross(self.n, h[:3]))
        return add(own, times(2.0, cross(self.F, h[3:])))


@dataclass(frozen=True)
class SlopeColumn:
    """What climbs for one coordinate: the change of forces by q and by v, r h, and the couples Γ* h and, of wrenches in world
    axes, X* h."""

    by_q: list
    by_v: list
    R: list
    T: list
    X: list | None = None

    def moved(self, path: list, twice: list = ZERO3) -> SlopeColumn:
        """Seen from the parent; `twice` the velocity u of this body's origin there, where each body is seen from its own."""
        # forces climb by φ; couples turn, and those of Γ gain 2 u x (the force of r h) as Γ is boosted by u
        T, X = rotate(path, self.T), None if self.X is None else rotate(path, self.X)
        T = add(T, cross(twice, rotate(path, self.R[3:])))
        return SlopeColumn(
            force(path, self.by_q), force(path, self.by_v), force(path, self.R), T, X
        )


def joint_velocity(site: BodyView) -> list:
    """V_d = H* v."""
    return adjoint_map(site.H, site.of("v"))
