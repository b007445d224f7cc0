"""Newton's method for the impulses of all contacts together.

    z = lambda - rho u,   lambda_n = max(z_n, 0),
    lambda_t = the point next to z_t of the disc of radius r = mu max(z_n, 0)

This is the equation of Alart and Curnier for the laws of Signorini and Coulomb, with any rho > 0;
here rho = 1 / A_nn. Linearised, it says lambda = b - W u with a 3 x 3 matrix W for each contact:

    open    W = 0,  b = 0
    sticks  W = k,  b = lambda
    slips   lambda_n as if it stuck,  lambda_t = mu lambda_n d - s (1 - d d*) u_t,
            d = z_t / |z_t|,  s = rho r / (|z_t| - r)

on its right-hand side with the lambda before. k = rho / PROXIMAL would be infinite for Newton's
method: so the step keeps close to the lambda before, which makes redundant contacts unique, and
vanishes as the steps converge. With u = c + E V + R lambda_n, V = Omega E* lambda, one step is

    (1 + Omega K) V = Omega g,   K = sum E* W E,   g = sum E* (b - W c)

with as many unknowns as coordinates, whatever the number of contacts: a linearised contact is an
inertia of its frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi.model.spatial.branch_free import choose, less, maximum
from psiphi.model.spatial.screws import dot, square_root
from psiphi.simulation.contact.cone_solver import TINY, ContactBlock
from psiphi.simulation.contact.contact_space import ContactSpace, Matrix, Scalars, pull, take

PROXIMAL = 1e-4
SMALL_PIVOT = 1e-6  # of the elimination of 1 + Omega K


class Problem(NamedTuple):
    """The contacts of a step: u = speed + E V + compliance lambda_n, V = omega E* lambda."""

    space: ContactSpace
    omega: Matrix
    rows: Sequence[Matrix]
    blocks: Sequence[ContactBlock]
    speed: Scalars
    friction: Scalars
    compliance: Scalars | None = None
    still: Scalars | None = None
    free: Scalars | None = None

    def velocity(self, i: int, V: Scalars, normal_impulse: Any) -> Scalars:
        """u of contact i, from the V of its coordinates."""
        c = self.speed[3 * i : 3 * i + 3]
        u = [x + dot(row, V) for x, row in zip(c, self.rows[i], strict=True)]
        if self.compliance is not None:
            u[0] = u[0] + self.compliance[i] * normal_impulse
        return u

    def part(self, i: int, V: Scalars) -> Scalars:
        """The V of the coordinates of contact i."""
        return take(V, self.space.columns[i])


class _Mode(NamedTuple):
    """The modes of a contact (1 or 0), the direction d of its friction, the factor s, and the
    square of the residual."""

    closed: Any
    sticks: Any
    slips: Any
    direction: Scalars
    factor: Any
    square: Any


def _mode(problem: Problem, i: int, lam: Scalars, V: Scalars) -> _Mode:
    own, block = lam[3 * i : 3 * i + 3], problem.blocks[i]
    u = problem.velocity(i, problem.part(i, V), own[0])
    rho = block.inverse
    z = [x - rho * y for x, y in zip(own, u, strict=True)]
    size = square_root(z[1] * z[1] + z[2] * z[2] + TINY)
    scale, normal = 1.0 / size, maximum(z[0], 0.0)
    radius = problem.friction[i] * normal
    closed, outside = less(0.0, z[0]), less(radius, size)
    inside = choose(outside, radius * scale, 1.0)
    gap = [own[0] - normal, own[1] - inside * z[1], own[2] - inside * z[2]]
    factor = rho * radius / (maximum(size - radius, PROXIMAL * radius) + TINY)
    return _Mode(
        closed,
        closed * (1.0 - outside),
        closed * outside,
        [z[1] * scale, z[2] * scale],
        factor,
        dot(gap, gap) * block.normal * block.normal,
    )


def residual_square(problem: Problem, lam: Scalars, V: Scalars) -> Any:
    """The square (m/s) of how much impulses violate the law."""
    total: Any = 0.0
    for i in range(len(problem.blocks)):
        total = total + _mode(problem, i, lam, V).square
    return total


def newton_step(problem: Problem, lam: Scalars, V: Scalars, share: Any) -> tuple[Scalars, Scalars]:
    """The lambda and V after `share` of a step."""
    space, c = problem.space, problem.speed
    linear = [_linearised(problem, i, lam, V) for i in range(len(problem.blocks))]
    K: dict[tuple[int, int], Any] = {}
    g: Scalars = [0.0] * space.size
    for i, (W, b) in enumerate(linear):
        E, columns = problem.rows[i], space.columns[i]
        product = [[dot(row, column) for column in zip(*E, strict=True)] for row in W]
        for j, e in zip(columns, zip(*E, strict=True), strict=True):
            for k, p in zip(columns, zip(*product, strict=True), strict=True):
                inertia = dot(e, p)
                K[j, k] = K[j, k] + inertia if (j, k) in K else inertia
        force = [x - dot(row, c[3 * i : 3 * i + 3]) for x, row in zip(b, W, strict=True)]
        space.add_wrench(g, i, pull(E, force))
    coupled = [[j for j in range(space.size) if (j, k) in K] for k in range(space.size)]
    A: Matrix = [
        [dot(take(row, js), [K[j, k] for j in js]) for k, js in enumerate(coupled)]
        for row in problem.omega
    ]
    for i, row in enumerate(A):
        row[i] = row[i] + 1.0
    target = _eliminate(A, [dot(row, g) for row in problem.omega])
    new = []
    for i, (W, b) in enumerate(linear):
        at = zip(c[3 * i : 3 * i + 3], problem.rows[i], strict=True)
        u = [x + dot(row, problem.part(i, target)) for x, row in at]
        new += [x - dot(row, u) for x, row in zip(b, W, strict=True)]
    mix = lambda x, y: x + share * (y - x)  # noqa: E731
    return (
        [mix(x, y) for x, y in zip(lam, new, strict=True)],
        [mix(x, y) for x, y in zip(V, target, strict=True)],
    )


def _linearised(problem: Problem, i: int, lam: Scalars, V: Scalars) -> tuple[Matrix, Scalars]:
    """W and b of a contact. With compliance, u_n = (c + E V)_n + R lambda_n is solved for lambda_n:
    k and the lambda_n before are divided by 1 + k R."""
    mode, (n, t0, t1) = _mode(problem, i, lam, V), lam[3 * i : 3 * i + 3]
    stiffness = problem.blocks[i].inverse * (1.0 / PROXIMAL)
    normal = mode.closed * stiffness
    before = mode.closed * n
    if problem.compliance is not None:
        yielding = 1.0 / (1.0 + stiffness * problem.compliance[i])
        normal, before = normal * yielding, before * yielding
    (d0, d1), sticks = mode.direction, mode.sticks * stiffness
    ratio, s = mode.slips * problem.friction[i], mode.slips * mode.factor
    W = [
        [normal, 0.0, 0.0],
        [ratio * d0 * normal, sticks + s * d1 * d1, -(s * d0 * d1)],
        [ratio * d1 * normal, -(s * d0 * d1), sticks + s * d0 * d0],
    ]
    b = [before, mode.sticks * t0 + ratio * d0 * before, mode.sticks * t1 + ratio * d1 * before]
    return W, b


def _eliminate(A: Matrix, b: Scalars) -> Scalars:
    """A^-1 b, without pivoting; a pivot near 0 is replaced."""
    n, rows = len(b), [[*row, x] for row, x in zip(A, b, strict=True)]
    inverse: Scalars = []
    for k in range(n):
        pivot = rows[k][k]
        small = less(pivot * pivot, SMALL_PIVOT**2)
        inverse.append(1.0 / choose(small, SMALL_PIVOT, pivot))
        for i in range(k + 1, n):
            factor = rows[i][k] * inverse[k]
            for j in range(k + 1, n + 1):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    x: Scalars = [0.0] * n
    for k in reversed(range(n)):
        known = rows[k][n]
        for j in range(k + 1, n):
            known = known - rows[k][j] * x[j]
        x[k] = known * inverse[k]
    return x
