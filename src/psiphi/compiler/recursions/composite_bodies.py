"""Derivatives of the Newton-Euler equations: composites of moving bodies.

    d tau/dq = H φ (M φ* Q_α + Γ φ* Q_V + ℰ_φ ⟦f⟧ H*)
    d tau/dv = H φ (M φ* (Q_V + Hr) + Γ φ* H*)

    Q_V = V⁺ × H*        Q_α = α⁺ × H* + V⁺ × Q_V        Hr = V × H*
    Γ = V ×* M - M V × + ⟦M V⟧ = [[I' - n~, 0], [-2 F~, 0]]

V⁺ and α⁺ are of the parent, as seen at the joint; [n; F] = M V, and I' is the rate of the inertia.
The joint maps are constant in body axes. A composite φ Γ φ* has the same form as Γ: it propagates
as I', n and F do. Velocities are relative to a Galilean frame at the link's own origin, V = [w; 0].
To move a composite to the parent adds the velocity u of its origin there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.axes.link import Link
from psiphi.compiler.recursions.body_step import ZERO3
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.cross_products import motion_cross
from psiphi.model.spatial.screw_paths import force, rotate, second_moment
from psiphi.model.spatial.screws import add, cross, inertia_from_second_moment, is_zero_constant
from psiphi.model.spatial.small_matrices import add_matrices, adjoint_map, mirror_upper_half


def scale(c: AnyScalar, x: list) -> list:
    """c x; zero without operations if c is the constant zero."""
    return ZERO3 if is_zero_constant(c) else [c * y for y in x]


def skew_product(w: list, J: list) -> list:
    """w~ J."""
    return [
        [w[1] * J[2][c] - w[2] * J[1][c] for c in range(3)],
        [w[2] * J[0][c] - w[0] * J[2][c] for c in range(3)],
        [w[0] * J[1][c] - w[1] * J[0][c] for c in range(3)],
    ]


def axial(A: list) -> list:
    """The axial vector of A - A*."""
    return [A[2][1] - A[1][2], A[0][2] - A[2][0], A[1][0] - A[0][1]]


def symmetric_product(a: list, c: list) -> list:
    """a c* + c a*."""
    return mirror_upper_half([[a[i] * c[j] + a[j] * c[i] for j in range(3)] for i in range(3)])


@dataclass(frozen=True)
class JointSlopes:
    """One coordinate of a joint: h = H* e, Q_V, Q_α, and the factor of M in d tau/dv: Q_V + Hr, or
    Hr in the Coriolis matrix."""

    h: list
    Q_V: list
    Q_a: list
    ring: list


def joint_slopes(
    body: BodyView, V: list, above: list, a_above: list, coriolis: bool = False
) -> list[JointSlopes]:
    """The slopes of each coordinate of the joint, from V of the body and V⁺, α⁺ of the parent."""
    slopes = []
    # V⁺ x H* is the change of the inboard motion as seen beyond the joint, V x H* the rate of H*
    for h in body.H:
        Q_V, Hr = motion_cross(above, h), motion_cross(V, h)
        slopes.append(
            JointSlopes(
                h,
                Q_V,
                add(motion_cross(a_above, h), motion_cross(above, Q_V)),
                Hr if coriolis else add(Q_V, Hr),
            )
        )
    return slopes


@dataclass(frozen=True)
class MovingBody:
    """A composite of moving bodies: mass, first and second moment, momentum F, angular momentum n,
    and the rate of the second moment.

    With `half`, the last three are those of half the velocity, for Γ / 2 in place of Γ.
    """

    mass: Any
    p: list
    J: list
    F: list
    n: list
    Jd: list

    @classmethod
    def of_link(cls, link: Link, w: list, half: float) -> MovingBody:
        """One body with angular velocity w."""
        # J' = w~ J - J w~ = W + W* with W = w~ J; the angular momentum is the axial vector of W -
        # W*
        W = skew_product(w, [scale(half, row) for row in link.pseudo])
        rate = mirror_upper_half([[W[i][j] + W[j][i] for j in range(3)] for i in range(3)])
        return cls(
            link.mass,
            list(link.moment),
            link.pseudo,
            cross(w, scale(half, link.moment)),
            axial(W),
            rate,
        )

    def __add__(self, other: MovingBody) -> MovingBody:
        return MovingBody(
            self.mass + other.mass,
            add(self.p, other.p),
            mirror_upper_half(add_matrices(self.J, other.J)),
            add(self.F, other.F),
            add(self.n, other.n),
            mirror_upper_half(add_matrices(self.Jd, other.Jd)),
        )

    def moved(self, path: list, l: list, u: list) -> MovingBody:
        """In the parent's axes, where the origin is at l and moves by u."""
        # Steiner's theorem and its derivative with u = l': J + l p* + p l* + m l l* is written as
        # symmetric_product(l, p + m l / 2), and so is its rate
        p, F = rotate(path, self.p), add(rotate(path, self.F), scale(self.mass, u))
        middle = [x + 0.5 * self.mass * y for x, y in zip(p, l, strict=True)]
        return MovingBody(
            self.mass,
            add(p, scale(self.mass, l)),
            add_matrices(second_moment(path, self.J), symmetric_product(l, middle)),
            F,
            add(add(rotate(path, self.n), cross(p, u)), cross(l, F)),
            add_matrices(
                add_matrices(second_moment(path, self.Jd), symmetric_product(u, p)),
                symmetric_product(l, F),
            ),
        )

    def inertia(self, x: list) -> list:
        """r x, with r the inertia of the composite."""
        # [[I, p~], [-p~, m]] x with I = tr(J) 1 - J, from the moments of mass
        turn, move = x[:3], x[3:]
        momentum = add(
            small_matrices.apply(inertia_from_second_moment(self.J), turn), cross(self.p, move)
        )
        return momentum + add(scale(self.mass, move), cross(turn, self.p))

    def gyration(self, w: list) -> list:
        """Γ x, which depends on the angular part w only."""
        return add(
            small_matrices.apply(inertia_from_second_moment(self.Jd), w), cross(w, self.n)
        ) + scale(2.0, cross(w, self.F))

    def couples(self, h: list) -> list:
        """Γ* h, a couple."""
        own = add(
            small_matrices.apply(inertia_from_second_moment(self.Jd), h[:3]), cross(self.n, h[:3])
        )
        return add(own, scale(2.0, cross(self.F, h[3:])))


@dataclass(frozen=True)
class SlopeColumn:
    """The columns of one coordinate on their way to the base: the changes of forces by q and by v,
    r h, the couple Γ* h and, for wrenches in world axes, X* h."""

    by_q: list
    by_v: list
    R: list
    T: list
    X: list | None = None

    def moved(self, path: list, twice: list = ZERO3) -> SlopeColumn:
        """In the parent's axes. `twice` is 2 u, u the velocity of this body's origin there, if
        velocities are relative to the body's own origin."""
        # forces propagate by φ, couples rotate, and those of Γ gain 2 u x (the force of r h)
        T, X = rotate(path, self.T), None if self.X is None else rotate(path, self.X)
        T = add(T, cross(twice, rotate(path, self.R[3:])))
        return SlopeColumn(
            force(path, self.by_q), force(path, self.by_v), force(path, self.R), T, X
        )


def joint_velocity(body: BodyView) -> list:
    """V_d = H* v."""
    return adjoint_map(body.H, body.joint_input("v"))
