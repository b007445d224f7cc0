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
inertia of its frames, and a linearised joint stop one of its joint. A stop is open or closed: then
W = k and b = lambda. The same step with the robot's velocities as unknowns, y = m* v, M = m m*, is

    (1 + Y* K Y) y = Y* g,   V = Y y

Row j of Y = J m^-* is zero but for the joints between its frame and the base, so that elimination
from tip to base fills nothing in: this is a sweep over articulated bodies, as M + J* K J has the
factors of M. The smaller of both systems is solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.screws import dot, square_root
from psiphi.simulation.contact.cone_solver import TINY, ContactBlock
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


class _Mode(NamedTuple):
    """The modes of a contact (1 or 0), the direction d of its friction, the factor s, and the
    square of the residual."""

    closed: Any
    sticks: Any
    slips: Any
    direction: Scalars
    factor: Any
    square: Any


def _mode(problem: Problem, i: int, lam: Scalars, V: Scalars, proximal: Any = PROXIMAL) -> _Mode:
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
    factor = rho * radius / (maximum(size - radius, proximal * radius) + TINY)
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
    for i in problem.stops:
        error = stop_violation(problem, i, lam, V)
        total = total + error * error
    return total


def stop_violation(problem: Problem, i: int, lam: Scalars, V: Scalars) -> Any:
    """How much (m/s, rad/s) a stop violates 0 <= lambda _|_ u >= 0: min(A lambda, u)."""
    ((k,), part) = problem.space.columns[i], problem.space.parts[i]
    return minimum(problem.omega[k][k] * lam[part][0], stop_speed(problem, i, V[k]))


def stop_speed(problem: Problem, i: int, rate: Any) -> Any:
    """u of stop i, whose joint has V = `rate`."""
    return problem.speed[problem.space.parts[i]][0] + problem.rows[i][0][0] * rate


def newton_step(
    problem: Problem, lam: Scalars, V: Scalars, share: Any, proximal: Any = PROXIMAL
) -> tuple[Scalars, Scalars]:
    """The lambda and V after `share` of a step that keeps close to the lambda before as `proximal`
    says."""
    space, c = problem.space, problem.speed
    linear = [_linearised(problem, i, lam, V, proximal) for i in range(len(problem.blocks))]
    linear += [_linearised_stop(problem, i, lam, V, proximal) for i in problem.stops]
    K: dict[tuple[int, int], Any] = {}
    size = len(problem.omega)
    g: Scalars = [0.0] * size
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
    mix = lambda x, y: x + share * (y - x)  # noqa: E731
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
    problem: Problem, i: int, lam: Scalars, V: Scalars, proximal: Any
) -> tuple[Matrix, Scalars]:
    """W and b of a contact. With compliance, u_n = (c + E V)_n + R lambda_n is solved for lambda_n:
    k and the lambda_n before are divided by 1 + k R."""
    mode, (n, t0, t1) = _mode(problem, i, lam, V, proximal), lam[3 * i : 3 * i + 3]
    stiffness = problem.blocks[i].inverse * (1.0 / proximal)
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


def _linearised_stop(
    problem: Problem, i: int, lam: Scalars, V: Scalars, proximal: Any
) -> tuple[Matrix, Scalars]:
    """W and b of a stop."""
    (k,), (x,) = problem.space.columns[i], lam[problem.space.parts[i]]
    A = problem.omega[k][k]
    closed = less(stop_speed(problem, i, V[k]), A * x)
    return [[closed / (proximal * A)]], [closed * x]


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
