"""Newton's method for the impulses of all contacts together.

    A lambda = p(A lambda - u)

This is the law of contact (`cone_solver.py`) with any A > 0; for Coulomb's law the equation of
Alart and Curnier. Here A = A_nn. With S = dp/dy, 3 x 3, a step says lambda = b - W u for each
contact,

    W = B S / A,   b = B (PROXIMAL S' A lambda + p - S y) / A,   B = (1 + PROXIMAL S' - S)^-1

on the right-hand side with the lambda and u before, y = A lambda - u; S' is the diagonal of S. A
contact that sticks has S = 1, and W would be infinite without PROXIMAL: so the step keeps close to
the lambda before, which makes redundant contacts unique, and vanishes as the steps converge. An
open contact has S = 0, p = 0 and lambda = 0. With u = c + E V + R lambda_n, V = Omega E* lambda, a
step is

    (1 + Omega K) V = Omega g,   K = sum E* W E,   g = sum E* (b - W c)

with as many unknowns as coordinates, whatever the number of contacts: a linearised contact is an
inertia of its frames, and a linearised joint stop one of its joint. A stop has p = [y] in place of
the cone, or p = y if it holds its joint. The same step with the robot's velocities as unknowns,
y = m* v, M = m m*, is

    (1 + Y* K Y) y = Y* g,   V = Y y

Row j of Y = J m^-* is zero but for the joints between its frame and the base, so that elimination
from tip to base fills nothing in: this is a sweep over articulated bodies, as M + J* K J has the
factors of M. The smaller of both systems is solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psiphi.model.spatial.branch_free import choose, less, minimum
from psiphi.model.spatial.screws import dot
from psiphi.simulation.contact.cone_solver import (
    ContactBlock,
    ContactLaw,
    Projection,
    positive_part,
)
from psiphi.simulation.contact.contact_space import ContactSpace, Matrix, Scalars, pull, take

PROXIMAL = 1e-4
SMALL_PIVOT = 1e-6  # of the elimination of 1 + Omega K


SparseRow = dict[int, Any]  # a sparse row: {column: entry}


class Problem(NamedTuple):
    """The contacts of a step: u = speed + E V + compliance lambda_n, V = omega E* lambda. Joint
    stops follow the contacts in rows, in speed and in lambda."""

    space: ContactSpace
    omega: Matrix
    rows: Sequence[Matrix]
    blocks: Sequence[ContactBlock]
    speed: Scalars
    friction: Scalars
    half: Sequence[SparseRow] | None = None  # the rows of Y, if the unknowns are y
    compliance: Scalars | None = None
    still: Scalars | None = None
    free: Scalars | None = None
    law: ContactLaw = ContactLaw()

    def velocity(self, i: int, V: Scalars, normal_impulse: Any) -> Scalars:
        """u of contact i, from the V of its coordinates."""
        c = self.speed[3 * i : 3 * i + 3]
        u = [x + dot(row, V) for x, row in zip(c, self.rows[i], strict=True)]
        if self.compliance is not None:
            u[0] = u[0] + self.compliance[i] * normal_impulse
        return u

    @property
    def stops(self) -> range:
        """The numbers of the stops among the rows."""
        return range(len(self.blocks), len(self.rows))

    def part(self, i: int, V: Scalars) -> Scalars:
        """The V of the coordinates of contact i."""
        return take(V, self.space.columns[i])


class _Linear(NamedTuple):
    """A lambda, y = A lambda - u, and the projection of y."""

    push: Scalars
    y: Scalars
    projection: Projection


def _project(problem: Problem, i: int, lam: Scalars, V: Scalars, smooth: Any) -> _Linear:
    own, block = lam[3 * i : 3 * i + 3], problem.blocks[i]
    u, A = problem.velocity(i, problem.part(i, V), own[0]), problem.law.scale(block)
    push = [A * x for x in own]
    y = [a - b for a, b in zip(push, u, strict=True)]
    return _Linear(push, y, problem.law.projection(y, problem.friction[i], smooth))


def residual_square(problem: Problem, lam: Scalars, V: Scalars) -> Any:
    """The square (m/s) of how much impulses violate the law."""
    total: Any = 0.0
    for i in range(len(problem.blocks)):
        at = _project(problem, i, lam, V, problem.law.smooth)
        gap = [a - b for a, b in zip(at.push, at.projection.point, strict=True)]
        total = total + dot(gap, gap)
    for i in problem.stops:
        error = stop_violation(problem, i, lam, V)
        total = total + error * error
    return total


def stop_violation(problem: Problem, i: int, lam: Scalars, V: Scalars) -> Any:
    """How much (m/s, rad/s) a stop violates 0 <= lambda _|_ u >= 0: min(A lambda, u); u itself if
    it holds its joint."""
    ((k,), part) = problem.space.columns[i], problem.space.parts[i]
    u = stop_speed(problem, i, V[k])
    return u if problem.space.is_locked(i) else minimum(problem.omega[k][k] * lam[part][0], u)


def stop_speed(problem: Problem, i: int, rate: Any) -> Any:
    """u of stop i, whose joint has V = `rate`."""
    return problem.speed[problem.space.parts[i]][0] + problem.rows[i][0][0] * rate


class NewtonOptions(NamedTuple):
    """How far a step goes: the share of it that is taken, how close it keeps to the lambda before,
    and the speeds that smooth the laws of contacts and stops."""

    share: Any = 1.0
    proximal: Any = PROXIMAL
    smooth: Any = 0.0
    smooth_stops: Any = 0.0


def newton_step(
    problem: Problem, lam: Scalars, V: Scalars, size: NewtonOptions
) -> tuple[Scalars, Scalars]:
    """The lambda and V after a step."""
    space, c = problem.space, problem.speed
    linear = [_linearised(problem, i, lam, V, size) for i in range(len(problem.blocks))]
    linear += [_linearised_stop(problem, i, lam, V, size) for i in problem.stops]
    K: dict[tuple[int, int], Any] = {}
    g: Scalars = [0.0] * len(problem.omega)
    for i, (W, b) in enumerate(linear):
        E, columns = problem.rows[i], space.columns[i]
        product = [[dot(row, column) for column in zip(*E, strict=True)] for row in W]
        for j, e in zip(columns, zip(*E, strict=True), strict=True):
            for k, p in zip(columns, zip(*product, strict=True), strict=True):
                inertia = dot(e, p)
                K[j, k] = K[j, k] + inertia if (j, k) in K else inertia
        force = [x - dot(row, c[space.parts[i]]) for x, row in zip(b, W, strict=True)]
        space.add_wrench(g, i, pull(E, force))
    target = _by_coordinates(problem, K, g) if problem.half is None else _by_joints(problem, K, g)
    new = []
    for i, (W, b) in enumerate(linear):
        at = zip(c[space.parts[i]], problem.rows[i], strict=True)
        u = [x + dot(row, problem.part(i, target)) for x, row in at]
        new += [x - dot(row, u) for x, row in zip(b, W, strict=True)]
    mix = lambda x, y: x + size.share * (y - x)  # noqa: E731
    return (
        [mix(x, y) for x, y in zip(lam, new, strict=True)],
        [mix(x, y) for x, y in zip(V, target, strict=True)],
    )


def _by_coordinates(problem: Problem, K: Mapping[tuple[int, int], Any], g: Scalars) -> Scalars:
    """V, from (1 + Omega K) V = Omega g."""
    size = len(g)
    coupled = [[j for j in range(size) if (j, k) in K] for k in range(size)]
    A: Matrix = [
        [dot(take(row, js), [K[j, k] for j in js]) for k, js in enumerate(coupled)]
        for row in problem.omega
    ]
    for i, row in enumerate(A):
        row[i] = row[i] + 1.0
    return _eliminate(A, [dot(row, g) for row in problem.omega])


def _by_joints(problem: Problem, K: Mapping[tuple[int, int], Any], g: Scalars) -> Scalars:
    """V = Y y, from (1 + Y* K Y) y = Y* g."""
    Y = problem.half
    assert Y is not None
    joints = sorted({a for row in Y for a in row})
    B: dict[int, SparseRow] = {a: {a: 1.0} for a in joints}
    right: SparseRow = dict.fromkeys(joints, 0.0)
    product: list[SparseRow] = [{} for _ in Y]  # K Y
    for (j, k), x in K.items():
        for c, y in Y[k].items():
            product[j][c] = product[j].get(c, 0.0) + x * y
    for row, other, force in zip(Y, product, g, strict=True):
        for a, y in row.items():
            right[a] = right[a] + y * force
            for c, x in other.items():
                B[a][c] = B[a].get(c, 0.0) + y * x
    inverse: SparseRow = {}
    for k in reversed(joints):  # tip to base
        pivot = B[k][k]
        small = less(pivot * pivot, SMALL_PIVOT**2)
        inverse[k] = 1.0 / choose(small, SMALL_PIVOT, pivot)
        for i in (i for i in joints if i < k and k in B[i]):
            factor = B[i][k] * inverse[k]
            right[i] = right[i] - factor * right[k]
            for c, x in B[k].items():
                if c < k:
                    B[i][c] = B[i].get(c, 0.0) - factor * x
    y: SparseRow = {}
    for k in joints:  # base to tip
        known = right[k]
        for c in (c for c in joints if c < k and c in B[k]):
            known = known - B[k][c] * y[c]
        y[k] = known * inverse[k]
    return [dot(list(row.values()), [y[k] for k in row]) for row in Y]


def coordinate_operations(space: ContactSpace) -> int:
    """The products of `_by_coordinates`."""
    n = space.size
    coupled = sum(len(columns) for columns in {*space.columns} for _ in columns)
    return n * coupled + sum(k * (k + 1) for k in range(n))


def joint_operations(space: ContactSpace, supports: Sequence[Sequence[int]]) -> int:
    """The products of `_by_joints`; `supports` are the columns of the entries of Y, row by row."""
    pattern: dict[int, set[int]] = {a: {a} for support in supports for a in support}
    total = 0
    for columns in {*space.columns}:
        wide = {a for j in columns for a in supports[j]}
        total += sum(len(supports[k]) for _ in columns for k in columns)
        for j in columns:
            total += len(supports[j]) * (len(wide) + 2)
            for a in supports[j]:
                pattern[a] |= wide
    for k in sorted(pattern, reverse=True):
        before = {c for c in pattern[k] if c < k}
        for i in (i for i in pattern if i < k and k in pattern[i]):
            pattern[i] |= before
            total += len(before) + 2
    return total


def _linearised(
    problem: Problem, i: int, lam: Scalars, V: Scalars, size: NewtonOptions
) -> tuple[Matrix, Scalars]:
    """W and b of a contact, whose lambda = b - W (c + E V). In the axes (n, d, across) W is a 2 x 2
    matrix and a number. With compliance, u_n has the term R lambda_n, and the row of lambda_n is
    solved for it."""
    (push, y, p), eta = _project(problem, i, lam, V, size.smooth), size.proximal
    inverse = 1.0 / problem.law.scale(problem.blocks[i])
    (n, d, e), (y_n, y_d, y_e) = (_in_plane(x, p.direction) for x in (push, y))
    a, b = 1.0 + eta * p.nn - p.nn, 1.0 + eta * p.dd - p.dd
    c = 1.0 + eta * p.across - p.across
    scale = 1.0 / (a * b - p.nd * p.dn)
    nn, nd = scale * (b * p.nn + p.nd * p.dn), scale * (b * p.nd + p.nd * p.dd)
    dn, dd = scale * (p.dn * p.nn + a * p.dn), scale * (p.dn * p.nd + a * p.dd)
    across = p.across / c
    right_n = eta * p.nn * n + p.normal - p.nn * y_n - p.nd * y_d
    right_d = eta * p.dd * d + p.along - p.dn * y_n - p.dd * y_d
    b_n = scale * (b * right_n + p.nd * right_d)
    b_d = scale * (p.dn * right_n + a * right_d)
    b_e = (eta * p.across * e - p.across * y_e) / c
    if problem.compliance is not None:
        R = problem.compliance[i]
        yielding = 1.0 / (1.0 + inverse * nn * R)
        nn, nd, b_n = nn * yielding, nd * yielding, b_n * yielding
        coupling = inverse * dn * R
        dn, dd, b_d = dn - coupling * nn, dd - coupling * nd, b_d - coupling * b_n
    (d0, d1), turn = p.direction, dd - across
    W = [
        [nn, nd * d0, nd * d1],
        [dn * d0, across + turn * d0 * d0, turn * d0 * d1],
        [dn * d1, turn * d0 * d1, across + turn * d1 * d1],
    ]
    bias = [b_n, b_d * d0 - b_e * d1, b_d * d1 + b_e * d0]
    return [[inverse * x for x in row] for row in W], [inverse * x for x in bias]


def _in_plane(x: Scalars, direction: tuple[Any, Any]) -> Scalars:
    """x in the axes (n, d, across)."""
    d0, d1 = direction
    return [x[0], d0 * x[1] + d1 * x[2], d0 * x[2] - d1 * x[1]]


def _linearised_stop(
    problem: Problem, i: int, lam: Scalars, V: Scalars, size: NewtonOptions
) -> tuple[Matrix, Scalars]:
    """W and b of a stop."""
    (k,), (x,) = problem.space.columns[i], lam[problem.space.parts[i]]
    A, u = problem.omega[k][k], stop_speed(problem, i, V[k])
    y = A * x - u
    is_locked = problem.space.is_locked(i)
    p, slope = (y, 1.0) if is_locked else positive_part(y, size.smooth_stops)
    B = 1.0 / ((1.0 + size.proximal * slope - slope) * A)
    W = B * slope
    return [[W]], [B * (A * x * size.proximal * slope + p - slope * y)]


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
