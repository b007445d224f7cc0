"""Elimination of the hub (`hub.py`): S = L diag(e) L* of each group, then P, as large as the hub.

All functions run on floats, arrays and tape scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import choose, less
from psiphi.model.spatial.screws import add, dot, is_zero_constant, subtract
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.hub import Hub
from psiphi.robot.mechanisms.solve.redundant_constraints import (
    ILL_CONDITIONED,
    NEGLIGIBLE_ROW_TOLERANCE,
)

PIVOT_TOLERANCE = 1e-10  # relative to the compliance of the row, group and hub together
RESIDUAL_TOLERANCE = 1e-11  # relative to the right side; above it the solve by Omega takes over
NEGLIGIBLE = 1e-16  # compliance, relative to that of the hub, of a row that nothing can move
INERTIA_FRACTION = 1e-3  # of the mass of a thin hub: the reference inertia its contacts add
SAFETY_FACTOR = 1e4  # on the squared pivot ratios of P, which inherit the errors of the S_i

# (multipliers, ill-conditioning, acceleration of the hub; [] if the multipliers determine it)
Solution: TypeAlias = tuple[list, Any, list]
Solver: TypeAlias = Callable[[list, list], Solution]  # of (right side, torques on the hub)
LDLFactors: TypeAlias = tuple[list, list]  # (L, d_inv) of `small_matrices.factor`


@dataclass
class GroupBlock:
    """S and B of one group; by row the scale within the group, `DelassusOperator.row_scales`, and
    the motions of its frames by hub coordinate."""

    S: list
    B: list
    group_scales: list
    hub_motions: list

    def row_scales(self, mass: LDLFactors) -> list:
        """The scale of each row, group and hub together; a row that is tiny relative to it is
        rounding (`semidefinite_solve.py`)."""
        return [
            sum((_row_compliance(mass, row) for row in rows), own)
            for own, rows in zip(self.group_scales, self.hub_motions, strict=True)
        ]


@dataclass
class Group:
    """One group: S = L diag(e) L* and Y = L^-1 B, by row.

    used: 1 for a pivot that is used, 0 for one that is skipped. compliances: S_jj + b M^-1 b*,
    group and hub together. rounding: the part of a compliance that is rounding.
    """

    rows: tuple[int, ...]
    block: GroupBlock
    L: list
    e_inv: list
    used: list
    Y: list
    compliances: list
    rounding: list

    def ill_conditioning(self) -> Any:
        """Sum of squared pivot ratios, relative to the diagonal and to the scales of the rows."""
        return small_matrices.ill_conditioning(
            self.block.S,
            self.e_inv,
            [semidefinite_solve.ROUNDING_WEIGHT * x for x in self.block.group_scales],
        )

    def forward_solve(self, right: list) -> list:
        """L^-1 of this group's part of a right side."""
        return small_matrices.forward(self.L, [right[i] for i in self.rows])


def _factor_group(rows: tuple[int, ...], block: GroupBlock, mass: LDLFactors | None) -> Group:
    """Factor one group. With the factors of the hub's mass matrix, pivots below PIVOT_TOLERANCE of
    the compliance of the row, and pivots of negligible rows, are skipped."""
    S, used = block.S, []
    compliances, rounding = [], []
    if mass:
        compliances = [S[j][j] + _row_compliance(mass, b) for j, b in enumerate(block.B)]
        rounding = [semidefinite_solve.ROW_ROUNDING * x for x in block.row_scales(mass)]

    def inverse(e: AnyScalar, diagonal: AnyScalar) -> Any:
        if not mass:
            used.append(1.0)
            return _inverse_pivot(e, diagonal)
        used.append(less(PIVOT_TOLERANCE * compliances[len(used)] + rounding[len(used)], e))
        return used[-1] / choose(used[-1], e, 1.0)

    L, e_inv = small_matrices.factor(S, inverse)
    columns = [small_matrices.forward(L, column) for column in small_matrices.transpose(block.B)]
    Y = small_matrices.transpose(columns)
    return Group(rows, block, L, e_inv, used, Y, compliances, rounding)


def hub_solver(
    hub: Hub, M: list, blocks: Sequence[GroupBlock], redundant: bool, deficient: Sequence[bool]
) -> Solver:
    """A solver of the constraints around the hub.

    Pivots of `deficient` groups, and of all groups if rows may be `redundant`, are tested one by
    one. Forces that are not unique count as ill-conditioned unless rows may be redundant.
    """
    n = len(M)
    tested = [redundant or is_deficient for is_deficient in deficient]
    mass = _reference_inertia(hub, M, blocks) if any(tested) else None
    groups = [
        _factor_group(*x, mass if is_tested else None)
        for x, is_tested in zip(zip(hub.groups, blocks, strict=True), tested, strict=True)
    ]
    P = [list(row) for row in M]
    ill_conditioning: Any = 0.0
    for group, is_tested in zip(groups, tested, strict=True):
        for y, e_inv in zip(group.Y, group.e_inv, strict=True):
            _add_square(P, y, e_inv)
        if not is_tested:
            ill_conditioning = ill_conditioning + group.ill_conditioning()
    if mass is not None:
        return _ConstrainedHub(M, mass, groups, P, ill_conditioning, redundant).solve
    factors = small_matrices.factor(P, _inverse_pivot)
    ill_conditioning = SAFETY_FACTOR * small_matrices.ill_conditioning(
        P, factors[1], start=ill_conditioning
    )

    def solve(right: list, torque: list) -> Solution:
        ys = [group.forward_solve(right) for group in groups]
        forces = _hub_forces(
            n, groups, [scaled(g.e_inv, y) for g, y in zip(groups, ys, strict=True)]
        )
        d = small_matrices.solve(factors, add(torque, forces))
        gammas = [
            scaled(g.e_inv, subtract(y, small_matrices.apply(g.Y, d)))
            for g, y in zip(groups, ys, strict=True)
        ]
        return _multipliers(len(right), groups, gammas), ill_conditioning, d

    return solve


def added_inertia(n: int, block: GroupBlock) -> tuple[list, Any]:
    """B* S^-1 B, the inertia that one group adds to the hub, and the ill-conditioning of S."""
    total: list = [[0.0] * n for _ in range(n)]
    group = _factor_group(tuple(range(len(block.S))), block, None)
    for y, e_inv in zip(group.Y, group.e_inv, strict=True):
        _add_square(total, y, e_inv)
    return total, group.ill_conditioning()


def movable_rows(hub: Hub, M: list, blocks: Sequence[GroupBlock]) -> list:
    """By row 1 if its group can move it, 0 if it constrains the hub or is negligible."""
    out: list = [0.0] * sum(map(len, hub.groups))
    mass = _reference_inertia(hub, M, blocks)
    for rows, block in zip(hub.groups, blocks, strict=True):
        for i, is_used in zip(rows, _factor_group(rows, block, mass).used, strict=True):
            out[i] = is_used
    return out


def _reference_inertia(hub: Hub, M: list, blocks: Sequence[GroupBlock]) -> LDLFactors:
    """Factors of the hub's mass matrix, for the scales of rows.

    A thin hub gets a fraction of its mass along its contact rows. This only affects which rows are
    negligible, not the solution.
    """
    A = [list(row) for row in M]
    if hub.thin:
        mean = INERTIA_FRACTION * (sum(row[k] for k, row in enumerate(M)) + INERTIA_FRACTION)
        for block in blocks:
            for b in block.B:
                _add_square(A, b, mean)
    return small_matrices.factor(A, _inverse_pivot)


def _inverse_pivot(d: Any, _: object) -> Any:
    """1 / d. A pivot that is zero in every state is infinite, and shows in the ill-conditioning."""
    return inf if is_zero_constant(d) else 1.0 / d


class _ConstrainedHub:
    """The solve if rows constrain the hub: min d* P d / 2 - h* d subject to C d = y.

    Only Q = C* C = Lq diag Lq* and C* y are formed. With z = Lq* d, entries of z with a pivot are
    determined and the others are free: (free P' free + determined) z = free (h' - P' z_determined).
    Skipped rows have gamma = C x with Q x = P d - h. One step of iterative refinement on the
    original rows follows, so that the choice of skipped rows does not show in the solution.
    Negligible rows, which neither the group nor the hub moves, are dropped.
    """

    def __init__(
        self,
        M: list,
        mass: LDLFactors,
        groups: list[Group],
        P: list,
        ill_conditioning: AnyScalar,
        redundant: bool,
    ):
        self.M, self.mass, self.groups, self.P = M, mass, groups, P
        n = len(M)
        self.Q: list = [[0.0] * n for _ in range(n)]
        self.weights: list[list] = []  # of the skipped rows, by group
        self.row_tolerance: dict[int, Any] = {}  # weight of a residual; small for negligible rows
        self.tolerance = semidefinite_solve.RESIDUAL_TOLERANCE if redundant else RESIDUAL_TOLERANCE
        # (M^-1)_kk: pivots of Q are compared with 1 / (M^-1)_kk, since Q may have no entries
        units = [
            _row_compliance(mass, [1.0 if i == k else 0.0 for i in range(n)]) for k in range(n)
        ]
        smallest: Any = NEGLIGIBLE * dot(units, [1.0] * n)
        skipped: Any = 0.0
        for group in groups:
            weights = []
            for j, (y, is_used) in enumerate(zip(group.Y, group.used, strict=True)):
                if isinstance(is_used, float) and is_used == 1.0:
                    weights.append(0.0)
                    continue
                is_movable = less(group.rounding[j], group.compliances[j])
                self.row_tolerance[group.rows[j]] = choose(
                    is_movable, 1.0, self.tolerance / NEGLIGIBLE_ROW_TOLERANCE
                )
                weights.append(is_movable * (1.0 - is_used) / (group.compliances[j] + smallest))
                _add_square(self.Q, y, weights[-1])
                skipped = skipped + (1.0 - is_used)
            self.weights.append(weights)
        sizes = [self.Q[k][k] + 1.0 / units[k] for k in range(n)]
        determined: list = []

        def inverse(d: AnyScalar, _: object) -> Any:
            determined.append(less(semidefinite_solve.PIVOT_TOLERANCE * sizes[len(determined)], d))
            return determined[-1] / choose(determined[-1], d, 1.0)

        self.L, self.q_inv = small_matrices.factor(self.Q, inverse)
        half = [small_matrices.forward(self.L, column) for column in P]
        self.transformed = [  # P' = Lq^-1 P Lq^-*
            small_matrices.forward(self.L, column) for column in small_matrices.transpose(half)
        ]
        free = [1.0 - x for x in determined]
        inner = [[free[i] * (free[j] * self.transformed[i][j]) for j in range(n)] for i in range(n)]
        for i, x in enumerate(determined):
            inner[i][i] = inner[i][i] + x
        self.free, self.inner = free, small_matrices.factor(inner)
        rank: Any = 0.0
        for j, q_inv in enumerate(self.q_inv):
            ill_conditioning = ill_conditioning + (sizes[j] * q_inv) * (sizes[j] * q_inv)
            rank = rank + determined[j]
        # more skipped rows than rank: the forces are not unique. With `redundant` rows only the
        # residual of the solution counts
        self.ill_conditioning = (
            0.0
            if redundant
            else ill_conditioning + semidefinite_solve.UNSOLVABLE * less(0.5, skipped - rank)
        )

    def solve_once(self, right: list, torque: list) -> tuple[list, list]:
        """Multipliers and d of S lambda + B d = right, M d - B* lambda = torque."""
        ys = [group.forward_solve(right) for group in self.groups]
        parts = list(zip(self.groups, ys, self.weights, strict=True))
        forces = _hub_forces(len(torque), self.groups, [scaled(g.e_inv, y) for g, y, _ in parts])
        h = add(torque, forces)
        given = _hub_forces(len(torque), self.groups, [scaled(w, y) for _, y, w in parts])
        z = scaled(self.q_inv, small_matrices.forward(self.L, given))
        rest = subtract(
            small_matrices.forward(self.L, h), small_matrices.apply(self.transformed, z)
        )
        d = small_matrices.backward(
            self.L, add(z, small_matrices.solve(self.inner, scaled(self.free, rest)))
        )
        unbalanced = subtract(small_matrices.apply(self.P, d), h)
        x = small_matrices.backward(
            self.L, scaled(self.q_inv, small_matrices.forward(self.L, unbalanced))
        )
        gammas = []
        for g, y, w in parts:
            Y_d, Y_x = small_matrices.apply(g.Y, d), small_matrices.apply(g.Y, x)
            gammas.append(add(scaled(g.e_inv, subtract(y, Y_d)), scaled(w, Y_x)))
        return _multipliers(len(right), self.groups, gammas), d

    def residual(self, right: list, torque: list, multipliers: list, d: list) -> tuple[list, list]:
        """The residuals of the rows and of the hub."""
        rows = list(right)
        hub = subtract(torque, small_matrices.apply(self.M, d))
        for group in self.groups:
            own = [multipliers[i] for i in group.rows]
            values = add(
                small_matrices.apply(group.block.S, own), small_matrices.apply(group.block.B, d)
            )
            for i, value in zip(group.rows, values, strict=True):
                rows[i] = rows[i] - value
            hub = add(hub, small_matrices.apply(small_matrices.transpose(group.block.B), own))
        return rows, hub

    def solve(self, right: list, torque: list) -> Solution:
        """The solution after one step of refinement; its residual adds to the ill-conditioning."""
        multipliers, d = self.solve_once(right, torque)
        more, more_d = self.solve_once(*self.residual(right, torque, multipliers, d))
        multipliers, d = add(multipliers, more), add(d, more_d)
        rows, hub = self.residual(right, torque, multipliers, d)
        rows = [x * self.row_tolerance.get(i, 1.0) for i, x in enumerate(rows)]
        hub_error = small_matrices.solve(self.mass, hub)
        allowed = self.tolerance * self.tolerance * (1.0 + dot(right, right))
        error = (dot(rows, rows) + dot(hub_error, hub_error)) / allowed
        return multipliers, self.ill_conditioning + ILL_CONDITIONED * error, d


def _add_square(A: list, y: list, weight: AnyScalar) -> None:
    """A + y* weight y, in place."""
    for a, x in enumerate(y):
        part = weight * x
        for b in range(a + 1):
            value = A[a][b] + part * y[b]
            A[a][b] = A[b][a] = value


def _row_compliance(mass: LDLFactors, b: list) -> Any:
    """b M^-1 b*: the compliance of a row due to the hub."""
    y = small_matrices.forward(mass[0], b)
    return dot(y, scaled(mass[1], y))


def _hub_forces(n: int, groups: Sequence[Group], values: Sequence[list]) -> list:
    """sum Y_i* x_i."""
    total: list = [0.0] * n
    for group, x in zip(groups, values, strict=True):
        total = add(total, small_matrices.apply(small_matrices.transpose(group.Y), x))
    return total


def _multipliers(count: int, groups: Sequence[Group], gammas: Sequence[list]) -> list:
    """lambda = L^-* gamma of all groups, by row."""
    out: list = [0.0] * count
    for group, gamma in zip(groups, gammas, strict=True):
        for i, value in zip(group.rows, small_matrices.backward(group.L, gamma), strict=True):
            out[i] = value
    return out


def scaled(weights: list, x: list) -> list:
    """The elementwise product of two lists."""
    return [w * value for w, value in zip(weights, x, strict=True)]
