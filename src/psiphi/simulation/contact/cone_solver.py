"""One contact: its laws, and the exact solution of Signorini's and Coulomb's, without branches.

    c = A lam + r,    0 <= lam_n  _|_  c_n >= 0,    |lam_t| <= mu lam_n,
    lam_t = -mu lam_n c_t / |c_t|  where it slides

lam is an impulse (N s), c a velocity (m/s), both as [normal, tangent, tangent]; A is the 3 x 3
block of the contact, r the velocity without its own impulse. With the normal row eliminated,

    a = A_tn / A_nn,   S = A_tt - a A_nt,   y = r_t - a r_n,
    lam_t(x) = -(S + x I)^-1 y,   lam_n(x) = -r_n / A_nn - a . lam_t(x)

The contact is open if r_n >= 0; it sticks if lam(0) is in the cone; else it slides with the x > 0
at which mu lam_n(x) = |lam_t(x)|. That x is 1 / |lam_t| times the sliding speed. Newton's method
finds it within a bracket that bisection keeps closed.

The laws are also fixed points of a projection p, with y = A_nn lam - c in m/s and any A_nn > 0:

    A_nn lam = p(y)
    Coulomb   p_n = [y_n],  p_t = y_t r / max(|y_t|, r),  r = mu p_n
    convex    p = the point of the friction cone nearest to y; then c_n = mu |c_t| where it slides

The smoothed laws replace [x] = max(x, 0) by (x + sqrt(x^2 + e^2)) / 2, with a speed e. Then
(A_nn lam_n) c_n = e^2 / 4: a contact pushes at a distance, and creeps where it sticks. As e tends
to 0 they tend to the rigid laws, which is also how `contact_solver.py` solves what else it cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.screws import square_root

TINY = 1e-30  # below any square of an impulse or speed that matters
ROUNDING = 1e-13  # of S: det S is 0 if the contact cannot move along a tangent
NEWTON_STEPS = 2  # in one sweep; x is kept from sweep to sweep
SMALL_SPEED = 1e-9  # m/s, below which |y_t| is smoothed in the convex law

Vector3 = list[Any]  # numbers, arrays or tape expressions


class ContactBlock(NamedTuple):
    """A_nn, 1 / A_nn, a (two numbers), and S (its entries 00, 01, 11) of one contact."""

    normal: Any
    inverse: Any
    a0: Any
    a1: Any
    s00: Any
    s01: Any
    s11: Any

    @classmethod
    def of(cls, A: Sequence[Sequence[Any]]) -> ContactBlock:
        (n, p, q), (_, d, e), (_, _, f) = A
        inverse = 1.0 / n
        a0, a1 = p * inverse, q * inverse
        return cls(n, inverse, a0, a1, d - a0 * p, e - a0 * q, f - a1 * q)

    def times(self, x: Vector3) -> Vector3:
        """A x."""
        n, t0, t1 = x
        along = self.normal * (n + self.a0 * t0 + self.a1 * t1)
        return [
            along,
            self.a0 * along + self.s00 * t0 + self.s01 * t1,
            self.a1 * along + self.s01 * t0 + self.s11 * t1,
        ]


BLOCK_NUMBERS = len(ContactBlock.__annotations__)


class ContactLaw(NamedTuple):
    """Which law contacts obey: its cone, the speed e that smooths it (m/s), and the A_nn (1/kg) of
    its projection, None for that of each contact, which makes no difference if e is 0."""

    is_convex: bool = False
    smooth: float = 0.0
    mobility: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether this is the law of Coulomb itself, which `solve_contact` solves."""
        return not self.is_convex and not self.smooth

    def scale(self, block: ContactBlock) -> Any:
        """A_nn."""
        return block.normal if self.mobility is None else self.mobility

    def projection(self, y: Vector3, mu: Any, smooth: Any) -> Projection:
        """p and its derivative, smoothed by the speed `smooth`."""
        return _nearest_point(y, mu, smooth) if self.is_convex else _friction_disc(y, mu, smooth)

    def residual(self, y: Vector3, p: Vector3, mu: Any) -> Any:
        """|p(y) - p| in m/s."""
        of = self.projection(y, mu, self.smooth)
        gap = [a - b for a, b in zip(of.point, p, strict=True)]
        return square_root(gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2])


class Projection(NamedTuple):
    """p = (normal, along d, 0), where d is the direction of y_t, and its derivative by y: 2 x 2 for
    the normal and d, one number for the direction across."""

    normal: Any
    along: Any
    direction: tuple[Any, Any]
    nn: Any
    nd: Any
    dn: Any
    dd: Any
    across: Any

    @property
    def point(self) -> Vector3:
        return [self.normal, self.along * self.direction[0], self.along * self.direction[1]]


def positive_part(x: Any, smooth: Any) -> tuple[Any, Any]:
    """[x] and its derivative."""
    soft = less(0.0, smooth)
    root = square_root(x * x + smooth * smooth + TINY)
    value = choose(soft, 0.5 * (x + root), maximum(x, 0.0))
    return value, choose(soft, 0.5 + 0.5 * x / root, less(0.0, x))


def _friction_disc(y: Vector3, mu: Any, smooth: Any) -> Projection:
    """Coulomb's law: |y_t| is T = sqrt(|y_t|^2 + e^2), and the larger of T and r is M = (T + r +
    sqrt((T - r)^2 + e^2)) / 2."""
    square = smooth * smooth + TINY
    size = square_root(y[1] * y[1] + y[2] * y[2] + TINY)
    normal, slope = positive_part(y[0], smooth)
    r, T = mu * normal, square_root(size * size + square)
    difference = T - r
    root = square_root(difference * difference + square)
    larger, inverse = 0.5 * (T + r + root), 1.0 / root
    of_size, of_r = 0.5 + 0.5 * difference * inverse, 0.5 - 0.5 * difference * inverse
    inverse = 1.0 / larger
    share = r * inverse
    return Projection(
        normal,
        share * size,
        (y[1] / size, y[2] / size),
        slope,
        0.0 * slope,
        mu * slope * size * (larger - r * of_r) * inverse * inverse,
        share * (1.0 - size * size * of_size * inverse / T),
        share,
    )


def _nearest_point(y: Vector3, mu: Any, smooth: Any) -> Projection:
    """The convex law: p = [s] (1, mu d) + [x] (mu, -d), both over 1 + mu^2, with s = y_n + mu |y_t|
    and x = mu y_n - |y_t|."""
    size = square_root(y[1] * y[1] + y[2] * y[2] + SMALL_SPEED * SMALL_SPEED)
    x, of_x = positive_part(mu * y[0] - size, mu * smooth)
    s, of_s = positive_part(y[0] + mu * size, smooth)
    share = 1.0 / (1.0 + mu * mu)
    along, mixed = share * (mu * s - x), share * mu * (of_s - of_x)
    return Projection(
        share * (s + mu * x),
        along,
        (y[1] / size, y[2] / size),
        share * (of_s + mu * mu * of_x),
        mixed,
        mixed,
        share * (mu * mu * of_s + of_x),
        minimum(maximum(along / size, 0.0), 1.0),
    )


def solve_contact(block: ContactBlock, r: Vector3, mu: Any, x: Any) -> tuple[Vector3, Any, Any]:
    """The impulse of one contact, the new x, and by how much (m/s) Newton's method has not
    converged. `x` is that of the sweep before, 0 at first."""
    row = _TangentRow.of(block, r)
    _, stick0, stick1, stick_n = row.impulse(ROUNDING * row.trace)
    friction = square_root(stick0 * stick0 + stick1 * stick1)
    sticks = 1.0 - less(mu * maximum(stick_n, 0.0), friction)
    pushes = less(r[0], 0.0)
    x = row.slip_parameter(mu, x)
    _, t0, t1, n = row.impulse(x)
    size = square_root(t0 * t0 + t1 * t1 + TINY)
    error = (size - mu * n) * (1.0 - sticks) * pushes * block.normal
    n = maximum(n, 0.0)
    scale = minimum(mu * n / size, 1.0)
    slide = [n, t0 * scale, t1 * scale]
    stick = [stick_n, stick0, stick1]
    return [choose(sticks, a, b) * pushes for a, b in zip(stick, slide, strict=True)], x, error


class _TangentRow(NamedTuple):
    """A contact with its normal row eliminated: -r_n / A_nn, y, det S and trace S."""

    block: ContactBlock
    r0: Any
    y0: Any
    y1: Any
    determinant: Any
    trace: Any

    @classmethod
    def of(cls, block: ContactBlock, r: Vector3) -> _TangentRow:
        y0, y1 = r[1] + block.a0 * (-r[0]), r[2] + block.a1 * (-r[0])
        determinant = block.s00 * block.s11 - block.s01 * block.s01
        return cls(block, -(r[0] * block.inverse), y0, y1, determinant, block.s00 + block.s11)

    def impulse(self, x: Any) -> tuple[Any, Any, Any, Any]:
        """1 / det(S + x I), lam_t(x), lam_n(x)."""
        b = self.block
        d = 1.0 / maximum(self.determinant + x * (self.trace + x), TINY)
        t0 = (b.s01 * self.y1 - (b.s11 + x) * self.y0) * d
        t1 = (b.s01 * self.y0 - (b.s00 + x) * self.y1) * d
        return d, t0, t1, self.r0 - b.a0 * t0 - b.a1 * t1

    def slip_parameter(self, mu: Any, x: Any) -> Any:
        """The x at which mu lam_n(x) = |lam_t(x)|, by Newton's method from the given x."""
        b = self.block
        low = 0.0 * x
        x, high = self._start(mu, x)
        for _ in range(NEWTON_STEPS):
            d, t0, t1, n = self.impulse(x)
            dt0 = (b.s01 * t1 - (b.s11 + x) * t0) * d
            dt1 = (b.s01 * t0 - (b.s00 + x) * t1) * d
            size = 1.0 / square_root(t0 * t0 + t1 * t1 + TINY)
            f = mu * n * size - 1.0
            slope = -(b.a0 * dt0 + b.a1 * dt1) - n * (t0 * dt0 + t1 * dt1) * size * size
            below = less(f, 0.0)
            low, high = choose(below, x, low), choose(below, high, x)
            step = x - f / maximum(mu * size * slope, TINY)
            inside = (1.0 - less(step, low)) * (1.0 - less(high, step))
            x = choose(inside, step, 0.5 * (low + high))
        return x

    def _start(self, mu: Any, x: Any) -> tuple[Any, Any]:
        """x, or at first its value for large x; and its upper bound. With s = y . S y / |y|^2,

        x = (|y| / mu - a . y) / r0 - s + O(1/x),  x <= |y| (1 / mu + |a|) / r0,  r0 = -r_n / A_nn
        """
        b, y0, y1 = self.block, self.y0, self.y1
        square = y0 * y0 + y1 * y1
        size = square_root(square)
        inverse = 1.0 / maximum(mu * maximum(self.r0, 0.0), TINY)
        coupling = square_root(b.a0 * b.a0 + b.a1 * b.a1)
        high = size * (1.0 + mu * coupling) * inverse
        s = (b.s00 * y0 * y0 + 2.0 * b.s01 * y0 * y1 + b.s11 * y1 * y1) / maximum(square, TINY)
        first = (size - mu * (b.a0 * y0 + b.a1 * y1)) * inverse - s
        start = choose(less(0.0, x), x, maximum(first, 0.0))
        return minimum(start, high), high


def violation(lam: Vector3, c: Vector3, mu: Any, inverse: Any) -> Any:
    """How much (m/s) impulse and velocity violate the law: |lam - P(lam - k u)| / k with k = 1 /
    A_nn, u = c + (mu |c_t|, 0, 0), and P the projection onto the friction cone; 0 if they obey."""
    speed = square_root(c[1] * c[1] + c[2] * c[2])
    u = [c[0] + mu * speed, c[1], c[2]]
    n, t0, t1 = (a - inverse * b for a, b in zip(lam, u, strict=True))
    size = square_root(t0 * t0 + t1 * t1)
    inside = 1.0 - less(mu * n, size)
    polar = less(mu * size + n, 0.0)  # below the polar cone: projected onto the apex
    share = (n + mu * size) / (1.0 + mu * mu)
    edge = mu * share / maximum(size, TINY)
    outside = (1.0 - inside) * (1.0 - polar)
    projected = (
        choose(inside, n, outside * share),
        choose(inside, t0, outside * edge * t0),
        choose(inside, t1, outside * edge * t1),
    )
    gap = [a - b for a, b in zip(lam, projected, strict=True)]
    return square_root(gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2]) / inverse
