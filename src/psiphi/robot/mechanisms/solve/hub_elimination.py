"""The hub eliminated last (`hub.py`), on scalars of any kind: group by group S = L diag(e) L*, and P as large as the hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import choose, less
from psiphi.model.spatial.screws import add, dot, is_zero_constant, subtract
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.hub import Hub
from psiphi.robot.mechanisms.solve.redundant_constraints import OFF, STRAIN

STIFF = 1e-10  # of what a row gives way in all: what its group gives less is nothing, until the answer is refined
SHARP = 1e-11  # of the right side: rows left open by more are asked again by Omega, where Omega can be asked
NOTHING = 1e-16
HINT = 1e-3
CAUTION = 1e4  # a pivot counts a hundred times: errors of one solve go through another

Answer = tuple[
    list, Any, list
]  # multipliers, the strain, and what the hub accelerates besides (none: as the multipliers say)
Solver = Callable[[list, list], Answer]  # of the rows' right side, and of what pushes the hub


@dataclass
class GroupBlock:
    """S and B of one group, and row by row what forces at its frames can do to them: `own`, by the group, and `moved`, the
    motions of the frames by columns of the hub."""

    S: list
    B: list
    own: list
    moved: list

    def reach(self, mass: Any) -> list:
        """What they can do in all: beside it rows are seen that are nothing but rounding (`semidefinite_solve.py`)."""
        return [
            sum((_weighed(mass, row) for row in rows), own)
            for own, rows in zip(self.own, self.moved, strict=True)
        ]


@dataclass
class Group:
    """One group: S = L diag(e) L*, Y = L^-1 B by rows; `on` is 1 where a pivot is kept, `sizes` and `floors` are what rows give
    way in all, and what rounding gives."""

    rows: tuple[int, ...]
    block: GroupBlock
    L: list
    e_inv: list
    on: list
    Y: list
    sizes: list
    floors: list

    def strain(self) -> Any:
        """Of pivots that must be sound: beside their diagonal, and beside what the frames can do."""
        return small_matrices.ill_conditioning(
            self.block.S, self.e_inv, [semidefinite_solve.FAINT * x for x in self.block.own]
        )

    def down(self, right: list) -> list:
        """L^-1 of this group's part of a right side."""
        return small_matrices.forward(self.L, [right[i] for i in self.rows])


def _factored(rows: tuple[int, ...], block: GroupBlock, mass: Any) -> Group:
    """Where the hub's mass matrix comes (its factors), pivots below STIFF of what a row gives way in all, and those of dust,
    are left out."""
    S, on = block.S, []
    sizes = [S[j][j] + _weighed(mass, b) for j, b in enumerate(block.B)] if mass else []
    floors = [semidefinite_solve.DUST * x for x in block.reach(mass)] if mass else []

    def inverse(e: Any, _: Any) -> Any:
        if not mass:
            on.append(1.0)
            return _bounded(e, None)
        on.append(less(STIFF * sizes[len(on)] + floors[len(on)], e))
        return on[-1] / choose(on[-1], e, 1.0)

    L, e_inv = small_matrices.factor(S, inverse)
    columns = [small_matrices.forward(L, column) for column in small_matrices.transpose(block.B)]
    return Group(rows, block, L, e_inv, on, small_matrices.transpose(columns), sizes, floors)


def elimination(
    hub: Hub, M: list, blocks: Sequence[GroupBlock], redundant: bool, low: Sequence[bool]
) -> Solver:
    """right, push -> (multipliers, strain, d), of the hub's mass matrix and every group. The groups said to be `low` in rank,
    all of them where rows may be `redundant`, are asked pivot by pivot; forces that are not unique strain the answer unless
    rows may be redundant."""
    n = len(M)
    held = [redundant or few for few in low]
    mass = _own_inertia(hub, M, blocks) if any(held) else None
    groups = [
        _factored(*x, mass if few else None)
        for x, few in zip(zip(hub.groups, blocks, strict=True), held, strict=True)
    ]
    P = [list(row) for row in M]
    strain: Any = 0.0
    for group, few in zip(groups, held, strict=True):
        for y, e_inv in zip(group.Y, group.e_inv, strict=True):
            _square(P, y, e_inv)
        strain = strain if few else strain + group.strain()
    if mass is not None:
        return _Bound(M, mass, groups, P, strain, redundant).refined
    factors = small_matrices.factor(P, _bounded)
    strain = CAUTION * small_matrices.ill_conditioning(P, factors[1], start=strain)

    def solved(right: list, push: list) -> Answer:
        downs = [group.down(right) for group in groups]
        pushed = _pushed(
            n, groups, [scaled(g.e_inv, y) for g, y in zip(groups, downs, strict=True)]
        )
        d = small_matrices.solve(factors, add(push, pushed))
        gammas = [
            scaled(g.e_inv, subtract(y, small_matrices.apply(g.Y, d)))
            for g, y in zip(groups, downs, strict=True)
        ]
        return _gathered(len(right), groups, gammas), strain, d

    return solved


def felt_inertia(n: int, block: GroupBlock) -> tuple[list, Any]:
    """B* S^-1 B, what one group adds to the inertia one feels at the hub, and the strain of its pivots."""
    total: list = [[0.0] * n for _ in range(n)]
    group = _factored(tuple(range(len(block.S))), block, None)
    for y, e_inv in zip(group.Y, group.e_inv, strict=True):
        _square(total, y, e_inv)
    return total, group.strain()


def movable(hub: Hub, M: list, blocks: Sequence[GroupBlock]) -> list:
    """Row by row 1 where its pivot is kept, 0 where the row binds the hub, or is none."""
    out: list = [0.0] * sum(map(len, hub.groups))
    mass = _own_inertia(hub, M, blocks)
    for rows, block in zip(hub.groups, blocks, strict=True):
        for i, on in zip(rows, _factored(rows, block, mass).on, strict=True):
            out[i] = on
    return out


def _own_inertia(hub: Hub, M: list, blocks: Sequence[GroupBlock]) -> tuple[list, list]:
    """Factors of the hub's mass matrix, beside which rows are weighed. A thin hub (a rod, a point mass) gets a little of what
    its contacts would give it with the mass it has: which rows count is a question of size, and no answer shows it."""
    A = [list(row) for row in M]
    if hub.thin:
        mean = HINT * (sum(row[k] for k, row in enumerate(M)) + HINT)
        for block in blocks:
            for b in block.B:
                _square(A, b, mean)
    return small_matrices.factor(A, _bounded)


def _bounded(d: Any, _: Any) -> Any:
    """1 / d; where it is nothing in every state, that is told by the strain."""
    return inf if is_zero_constant(d) else 1.0 / d


class _Bound:
    """The same where rows bind the hub: min d* P d / 2 - h* d with C d = y, of Q = C* C = Lq diag Lq* and C* y alone.

    z = Lq* d: entries with a pivot are given, the others free; (free P' free + kept) z = free (h' - P' z_given). Rows left out
    have gamma = C x with Q x = P d - h. One step of refinement with the rows as they are follows, so that no choice of what is
    nothing shows in the answer. Rows of dust, which neither the group nor the hub moves, are none."""

    def __init__(
        self, M: list, mass: Any, groups: list[Group], P: list, strain: Any, redundant: bool
    ):
        self.M, self.mass, self.groups, self.P = M, mass, groups, P
        n = len(M)
        self.Q: list = [[0.0] * n for _ in range(n)]
        self.weights: list[list] = []  # of the rows that are left out
        self.asked: dict[
            int, Any
        ] = {}  # how closely a row is to be met, beside the others: less where it is dust
        self.open = semidefinite_solve.OPEN if redundant else SHARP
        # where nothing binds the hub Q has no entry: its pivots are seen beside the hub's own inertia, 1 / (M^-1)_kk
        units = [_weighed(mass, [1.0 if i == k else 0.0 for i in range(n)]) for k in range(n)]
        faint: Any = NOTHING * dot(
            units, [1.0] * n
        )  # what gives way less in all is a row that nothing moves
        many: Any = 0.0
        for group in groups:
            weights = []
            for j, (y, on) in enumerate(zip(group.Y, group.on, strict=True)):
                if isinstance(on, float) and on == 1.0:
                    weights.append(0.0)
                    continue
                sound = less(group.floors[j], group.sizes[j])
                self.asked[group.rows[j]] = choose(sound, 1.0, self.open / OFF)
                weights.append(sound * (1.0 - on) / (group.sizes[j] + faint))
                _square(self.Q, y, weights[-1])
                many = many + (1.0 - on)
            self.weights.append(weights)
        sizes = [self.Q[k][k] + 1.0 / units[k] for k in range(n)]
        self.bound: list = []

        def inverse(d: Any, _: Any) -> Any:
            self.bound.append(less(semidefinite_solve.LOOSE * sizes[len(self.bound)], d))
            return self.bound[-1] / choose(self.bound[-1], d, 1.0)

        self.L, self.q_inv = small_matrices.factor(self.Q, inverse)
        turned = [small_matrices.forward(self.L, column) for column in P]
        self.turned = [
            small_matrices.forward(self.L, column) for column in small_matrices.transpose(turned)
        ]  # Lq^-1 P Lq^-*
        free = [1.0 - on for on in self.bound]
        inner = [[free[i] * (free[j] * self.turned[i][j]) for j in range(n)] for i in range(n)]
        for i, on in enumerate(self.bound):
            inner[i][i] = inner[i][i] + on
        self.free, self.inner = free, small_matrices.factor(inner)
        kept: Any = 0.0
        for j, q_inv in enumerate(self.q_inv):
            strain = strain + (sizes[j] * q_inv) * (sizes[j] * q_inv)
            kept = kept + self.bound[j]
        # rows that follow from others, or nearly do: forces are not unique; what is solved is told by what it leaves
        strain = 0.0 if redundant else strain + semidefinite_solve.FAR * less(0.5, many - kept)
        self.strain = strain

    def once(self, right: list, push: list) -> tuple[list, list]:
        """Multipliers and d of S lambda + B d = right, M d - B* lambda = push."""
        downs = [group.down(right) for group in self.groups]
        pairs = list(zip(self.groups, downs, self.weights, strict=True))
        h = add(push, _pushed(len(push), self.groups, [scaled(g.e_inv, y) for g, y, _ in pairs]))
        given = _pushed(len(push), self.groups, [scaled(w, y) for _, y, w in pairs])
        z = scaled(self.q_inv, small_matrices.forward(self.L, given))
        rest = subtract(small_matrices.forward(self.L, h), small_matrices.apply(self.turned, z))
        d = small_matrices.backward(
            self.L, add(z, small_matrices.solve(self.inner, scaled(self.free, rest)))
        )
        left = subtract(small_matrices.apply(self.P, d), h)
        x = small_matrices.backward(
            self.L, scaled(self.q_inv, small_matrices.forward(self.L, left))
        )
        gammas = []
        for g, y, w in pairs:
            moved, bound = small_matrices.apply(g.Y, d), small_matrices.apply(g.Y, x)
            gammas.append(add(scaled(g.e_inv, subtract(y, moved)), scaled(w, bound)))
        return _gathered(len(right), self.groups, gammas), d

    def left(self, right: list, push: list, multipliers: list, d: list) -> tuple[list, list]:
        """What an answer leaves of both right sides."""
        rows = list(right)
        hub = subtract(push, small_matrices.apply(self.M, d))
        for group in self.groups:
            own = [multipliers[i] for i in group.rows]
            moved = add(
                small_matrices.apply(group.block.S, own), small_matrices.apply(group.block.B, d)
            )
            for i, value in zip(group.rows, moved, strict=True):
                rows[i] = rows[i] - value
            hub = add(hub, small_matrices.apply(small_matrices.transpose(group.block.B), own))
        return rows, hub

    def refined(self, right: list, push: list) -> Answer:
        multipliers, d = self.once(right, push)
        more, d_more = self.once(*self.left(right, push, multipliers, d))
        multipliers, d = add(multipliers, more), add(d, d_more)
        rows, hub = self.left(right, push, multipliers, d)
        rows = [x * self.asked.get(i, 1.0) for i, x in enumerate(rows)]
        loosened = small_matrices.solve(self.mass, hub)
        allowed = self.open * self.open * (1.0 + dot(right, right))
        unmet = (dot(rows, rows) + dot(loosened, loosened)) / allowed
        return multipliers, self.strain + STRAIN * unmet, d


def _square(A: list, y: list, weight: Any) -> None:
    """A + y* weight y, in place."""
    for a, x in enumerate(y):
        part = weight * x
        for b in range(a + 1):
            value = A[a][b] + part * y[b]
            A[a][b] = A[b][a] = value


def _weighed(mass: Any, b: list) -> Any:
    """b M^-1 b*: what the hub gives way to a row."""
    y = small_matrices.forward(mass[0], b)
    return dot(y, scaled(mass[1], y))


def _pushed(n: int, groups: Sequence[Group], values: Sequence[list]) -> list:
    """sum Y_i* x_i."""
    total: list = [0.0] * n
    for group, x in zip(groups, values, strict=True):
        total = add(total, small_matrices.apply(small_matrices.transpose(group.Y), x))
    return total


def _gathered(count: int, groups: Sequence[Group], gammas: Sequence[list]) -> list:
    """lambda = L^-* gamma of all groups, row by row."""
    out: list = [0.0] * count
    for group, gamma in zip(groups, gammas, strict=True):
        for i, value in zip(group.rows, small_matrices.backward(group.L, gamma), strict=True):
            out[i] = value
    return out


def scaled(weights: list, x: list) -> list:
    return [w * value for w, value in zip(weights, x, strict=True)]
