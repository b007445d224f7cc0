"""X, dX/dt β and the closing of a cluster, on scalars: numbers, arrays, tape expressions.

    gears   β_f = Σ γ'(q_l) β_l                                  explicit
    ties    Y β_S = 0,   Y_bound β_bound = -Y_free β_free        implicit; Y by QR, and no derivative of X is needed:

    β_S = X β,    (dX/dt) β = [0; -Y_bound⁺ (dY/dt) β_S],    q_bound <- q_bound exp(-Y_bound⁺ e(q))   (Newton)

(docs/embedding.md). Which axes the bodies have does not matter: the laws are given what each joint does (`Member`s), in link
axes or in working axes, and the tied frames in the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from psiphi.model.joint_types import JointKind
from psiphi.model.loops.closure_types import Relative
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame, paths
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.screw_paths import pose
from psiphi.model.spatial.screws import Screw, Turn, add, cross, dot, root, subtract, vanishes

EYE3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
ZERO3 = [0.0, 0.0, 0.0]
OPEN = 1e-2  # metres or radians: a loop that gapes wider has no velocities; between closed steps it gapes by their square
NEWTON = 4  # steps of Newton's method that close a loop after a step in time: each squares the gap


class Member(Protocol):
    """What a cluster asks of one of its bodies."""

    @property
    def row(self) -> JointKind: ...

    def path(self, q: list) -> list: ...

    def H(self, q: list) -> list: ...


@dataclass(frozen=True)
class PublicMember:
    """A joint in public link axes."""

    joint: Any
    axes: Any

    @property
    def row(self) -> JointKind:
        return self.joint.row

    def path(self, q: list) -> list:
        outer, axes = self.joint.pose, self.axes
        before = outer.rotation @ axes.before
        return [
            *_shift(outer.translation),
            *_turn(before),
            *self.row.motion(q, axes),
            *_turn(axes.after.T),
        ]

    def H(self, q: list) -> list:
        turn = self.axes.after.tolist()
        return [
            small_matrices.apply(turn, h[:3]) + small_matrices.apply(turn, h[3:])
            for h in self.row.H(q, self.axes)
        ]


def _shift(l: np.ndarray) -> list:
    return [Screw(axis, None, float(x)) for axis, x in zip("xyz", l, strict=True) if x != 0.0]


def _turn(R: np.ndarray) -> list:
    return [] if np.array_equal(R, np.eye(3)) else [Turn(R.tolist())]


class ClusterKinematics:
    """The laws of one cluster; `members` are its joints, `spots` the (first, second) frames of its ties in their axes."""

    def __init__(
        self,
        cluster: Cluster,
        members: Sequence[Member],
        spots: Sequence[tuple[ClusterFrame, ClusterFrame]],
    ):
        self.cluster, self.members, self.spots = cluster, tuple(members), tuple(spots)
        self.nq, self.nv = (sum(getattr(m.row, n) for m in self.members) for n in ("nq", "nv"))
        self.starts = np.cumsum([0, *(m.row.nv for m in self.members)]).tolist()
        self.q_starts = np.cumsum([0, *(m.row.nq for m in self.members)]).tolist()
        self.ways = [*paths(cluster.hangs), ()]  # the last is OUTSIDE's

    @cached_property
    def _q_of(self) -> dict[int, int]:
        """Where the coordinate of a velocity stands in q, for joints with one coordinate."""
        at = zip(self.members, self.starts, self.q_starts, strict=False)
        return {v: q for m, v, q in at if (m.row.nq, m.row.nv) == (1, 1)}

    def of_q(self, q: Sequence[Any]) -> list[list]:
        """q, joint by joint."""
        return [list(q[a:b]) for a, b in zip(self.q_starts, self.q_starts[1:], strict=False)]

    def of_v(self, v: Sequence[Any]) -> list[list]:
        """Rates of the whole cluster, joint by joint."""
        return [list(v[a:b]) for a, b in zip(self.starts, self.starts[1:], strict=False)]

    # -- rates --------------------------------------------------------------------------------------------------------------

    def X(self, q: list) -> list:
        """The rates of all joints by the free ones: rows, one a coordinate of the cluster."""
        free, bound = self.cluster.free, self.cluster.bound
        lead: dict[int, list] = {c: [1.0 if c == other else 0.0 for other in free] for c in free}
        if bound:
            Y = self._by_leaders(q, self.Y(q))
            solve = _least_squares([[row[c] for c in bound] for row in Y])
            columns = [solve([-row[c] for row in Y]) for c in free]
            lead |= {c: [column[i] for column in columns] for i, c in enumerate(bound)}
        for gear in self.cluster.gears:
            slopes = self._slopes(q, gear)
            lead[gear.follower] = [
                dot(list(slopes.values()), [lead[l][i] for l in slopes]) for i in range(len(free))
            ]
        shut = self._shut(q)
        return [lead[c] if c in free else [_kept(x, shut) for x in lead[c]] for c in range(self.nv)]

    def rates(self, q: list, v: list) -> list:
        """β_S = X β."""
        return small_matrices.apply(self.X(q), v) if v else [0.0] * self.nv

    def coordinate(self, c: int) -> int:
        """Where a velocity coordinate stands in q of the cluster; -1 where its joint turns in space."""
        return self._q_of.get(c, -1)

    def transmitted(self, q: list, v: list, law: Callable[[Cluster, list, list], list]) -> list:
        """X* f: forces f = law(cluster, x, β_S) at all joints, x their coordinates, as the free ones feel them."""
        X = self.X(q)
        at = [q[self._q_of[c]] if c in self._q_of else 0.0 for c in range(self.nv)]
        return small_matrices.apply(
            small_matrices.transpose(X), law(self.cluster, at, small_matrices.apply(X, v))
        )

    def steepened(self, q: list, v: list, law: Callable[[Cluster, list, list], list]) -> list:
        """n diag(X* S X) of slopes S = law(cluster, x, β_S), n free coordinates: never less than X* S X itself."""
        X, n = self.X(q), float(len(self.cluster.free))
        at = [q[self._q_of[c]] if c in self._q_of else 0.0 for c in range(self.nv)]
        slopes = law(self.cluster, at, small_matrices.apply(X, v))
        return [
            n * dot([s * x for s, x in zip(slopes, column, strict=True)], column)
            for column in small_matrices.transpose(X)
        ]

    def drift(self, q: list, beta: list) -> list:
        """(dX/dt) β, for the rates β_S of all joints."""
        bound = self.cluster.bound
        out: dict[int, Any] = dict.fromkeys(range(self.nv), 0.0)
        self._follow(q, beta, out)
        if bound:
            # d/dt (Y β_S) with β_S constant, and what the followers do by themselves
            Y = self.Y(q)
            moved = rate_of_change(lambda x: self._opening(x, beta), q, self.rate(q, beta))
            known = [g.follower for g in self.cluster.gears]
            gap = [
                x + dot([row[c] for c in known], [out[c] for c in known]) if known else x
                for x, row in zip(moved, Y, strict=True)
            ]
            solve = _least_squares([[row[c] for c in bound] for row in self._by_leaders(q, Y)])
            out |= dict(zip(bound, solve([-x for x in gap]), strict=True))
            self._follow(q, beta, out)
        return [out[c] for c in range(self.nv)]

    def _follow(self, q: list, beta: list, out: dict[int, Any]) -> None:
        """Followers' accelerations, the leaders' known: Σ γ' dβ_l/dt + γ'' β_l²."""
        for gear in self.cluster.gears:
            total: Any = 0.0
            for (l, slope), bend in zip(
                self._slopes(q, gear).items(), self._bends(q, gear), strict=True
            ):
                total = total + slope * out[l] + bend * (beta[l] * beta[l])
            out[gear.follower] = total

    def rate(self, q: list, beta: list) -> list:
        """dq/dt, joint by joint."""
        parts = zip(self.members, self.of_q(q), self.of_v(beta), strict=True)
        return [x for member, own, rates in parts for x in member.row.rate(own, rates)]

    def risen(self, rule: Callable[[list], list], q: list, x: list, *more: list) -> list:
        """The derivative of rule(q) along free velocities x; along z too where it is given, x the same numbers everywhere."""
        if more:
            return self.risen(lambda at: self.risen(rule, at, x), q, *more)
        return rate_of_change(rule, q, self.rate(q, self.rates(q, x)))

    def maps(self, q: list) -> list:
        """H(S), one row a free coordinate: [w; v] of every body as its unit rate moves it against the outside, in link axes."""
        at, screws, X = self.places(q), self._joint_screws(q), self.X(q)
        rows = []
        for i in range(len(self.cluster.free)):
            row: list = []
            for k, way in enumerate(self.ways[:-1]):
                turn, move = ZERO3, ZERO3
                for c in (c for j in way for c in range(self.starts[j], self.starts[j + 1])):
                    w, v, origin = screws[c]
                    turn = add(turn, [X[c][i] * y for y in w])
                    move = add(
                        move, [X[c][i] * y for y in add(v, cross(w, subtract(at[k][1], origin)))]
                    )
                back = small_matrices.transpose(at[k][0])
                row += [*small_matrices.apply(back, turn), *small_matrices.apply(back, move)]
            rows.append(row)
        return rows

    def _slopes(self, q: list, gear: Any) -> dict[int, Any]:
        return {
            l: _horner([k * c for k, c in enumerate(cs, 1)], q[self._q_of[l]] - at)
            for l, at, cs in gear.terms
        }

    def _bends(self, q: list, gear: Any) -> list:
        return [
            _horner([k * (k - 1) * c for k, c in enumerate(cs, 1)][1:], q[self._q_of[l]] - at)
            for l, at, cs in gear.terms
        ]

    def _by_leaders(self, q: list, Y: list) -> list:
        """Y Γ: what each coordinate that no gear decides opens, its followers' share with it."""
        rows = [list(row) for row in Y]
        for gear in reversed(self.cluster.gears):
            for l, slope in self._slopes(q, gear).items():
                for row in rows:
                    row[l] = row[l] + row[gear.follower] * slope
        return rows

    # -- ties ---------------------------------------------------------------------------------------------------------------

    def places(self, q: list) -> list[tuple[list, list]]:
        """Rotation and origin of each body as seen from outside, and of the outside itself, last."""
        found: list[tuple[list, list]] = []
        for member, on, own in zip(self.members, self.cluster.hangs, self.of_q(q), strict=True):
            found.append(pose(member.path(own), *((EYE3, ZERO3) if on == OUTSIDE else found[on])))
        return [*found, (EYE3, ZERO3)]

    def _frames(self, q: list) -> list[tuple[list, list, list, list, list]]:
        """For each tie R₂, p₁ and p₂ in the axes outside, and frame 1 as frame 2 sees it."""
        at, found = self.places(q), []
        for first, second in self.spots:
            (R1, p1), (R2, p2) = (_on(at[spot.body], spot) for spot in (first, second))
            back = small_matrices.transpose(R2)
            apart = small_matrices.apply(back, subtract(p1, p2))
            found.append((back, p1, p2, small_matrices.product(back, R1), apart))
        return found

    def _joint_screws(self, q: list) -> list[tuple[list, list, list]]:
        """(w, v, origin) of every coordinate, in the axes outside: what its unit rate does to its body's origin."""
        at = self.places(q)
        return [
            (small_matrices.apply(at[k][0], h[:3]), small_matrices.apply(at[k][0], h[3:]), at[k][1])
            for k, (member, own) in enumerate(zip(self.members, self.of_q(q), strict=True))
            for h in member.H(own)
        ]

    def Y(self, q: list) -> list:
        """What each coordinate of the cluster opens of the ties: rows, one a constraint."""
        screws, rows = self._joint_screws(q), []
        for i, (back, p1, _, R, p) in enumerate(self._frames(q)):
            forbidden = self._forbidden(i, R, p)
            own = [[0.0] * self.nv for _ in forbidden]
            for c, sign in self._moving(i):
                w, v, origin = screws[c]
                turn = [sign * x for x in small_matrices.apply(back, w)]
                move = [
                    sign * x
                    for x in small_matrices.apply(back, add(v, cross(w, subtract(p1, origin))))
                ]
                for row, f in zip(own, forbidden, strict=True):
                    row[c] = dot(f.turn, turn) + dot(f.slide, move)
            rows += own
        return rows

    def _opening(self, q: list, beta: list) -> list:
        """Y β_S, the motions summed up before the rows are asked."""
        screws, out = self._joint_screws(q), []
        for i, (back, p1, _, R, p) in enumerate(self._frames(q)):
            turn, move = ZERO3, ZERO3
            for c, sign in self._moving(i):
                w, v, origin = screws[c]
                turn = add(turn, [sign * x * beta[c] for x in w])
                arm = cross(w, subtract(p1, origin))
                move = add(move, [sign * x * beta[c] for x in add(v, arm)])
            turn, move = small_matrices.apply(back, turn), small_matrices.apply(back, move)
            out += [dot(f.turn, turn) + dot(f.slide, move) for f in self._forbidden(i, R, p)]
        return out

    def _forbidden(self, i: int, R: list, p: list) -> list:
        tie = self.cluster.ties[i]
        rows = tie.row.rows(tie.shape, Relative(R, p, ZERO3, ZERO3))
        return [rows[k] for k in tie.rows]

    def _moving(self, i: int) -> list[tuple[int, float]]:
        """The coordinates that move the frames of a tie against each other, +1 those of frame 1; what moves both is not among
        them."""
        first, second = (set(self.ways[spot.body]) for spot in self.spots[i])
        at = [(k, 1.0) for k in sorted(first - second)] + [
            (k, -1.0) for k in sorted(second - first)
        ]
        return [(c, sign) for k, sign in at for c in range(self.starts[k], self.starts[k + 1])]

    def hold(self, q: list) -> list:
        """What each bound coordinate opens of the ties, its followers' share with it: rows. Singular at a dead point, where the
        free ones do not tell how the others go on."""
        return [[row[c] for c in self.cluster.bound] for row in self._by_leaders(q, self.Y(q))]

    def errors(self, q: list) -> list:
        """How far the ties are open, row by row."""
        return [
            f.error
            for i, (_, _, _, R, p) in enumerate(self._frames(q))
            for f in self._forbidden(i, R, p)
        ]

    def gaps(self, q: list) -> list:
        """How far gears and ties are open."""
        return [
            q[self._q_of[g.follower]] - self._followed(q, g) for g in self.cluster.gears
        ] + self.errors(q)

    def _shut(self, q: list) -> Any:
        """1 where everything is closed, to OPEN, else 0; the number 1 where there is nothing to close."""
        gaps = self.gaps(q)
        return less(dot(gaps, gaps), OPEN * OPEN) if gaps else 1.0

    # -- configurations -----------------------------------------------------------------------------------------------------

    def _followed(self, q: list, gear: Any) -> Any:
        value: Any = gear.offset
        for l, at, cs in gear.terms:
            x = q[self._q_of[l]] - at
            value = value + x * _horner(cs, x)
        return value

    def geared(self, q: list) -> list:
        """q with its followers where their leaders have them."""
        q = list(q)
        for gear in self.cluster.gears:
            q[self._q_of[gear.follower]] = self._followed(q, gear)
        return q

    def moved(self, q: list, beta: list) -> list:
        """q exp(β), joint by joint."""
        parts = zip(self.members, self.of_q(q), self.of_v(beta), strict=True)
        return [x for member, own, rates in parts for x in member.row.exp(own, rates)]

    def closed(self, q: list) -> list:
        """q moved onto the configurations that are closed, its free coordinates kept."""
        bound = self.cluster.bound
        q = self.geared(q)
        for _ in range(NEWTON if bound else 0):
            back = _least_squares(self.hold(q))([-e for e in self.errors(q)])
            step = [0.0 if c not in bound else back[bound.index(c)] for c in range(self.nv)]
            q = self.geared(self.moved(q, step))
        return q

    def exp(self, q: list, v: list) -> list:
        """q moved along the free velocities v for one unit of time, and closed again."""
        return self.closed(self.moved(q, self.rates(q, v)))

    def log(self, p: list, q: list) -> list:
        """The free velocities that lead from p to q."""
        parts = zip(self.members, self.of_q(p), self.of_q(q), strict=True)
        whole = [x for member, a, b in parts for x in member.row.log(a, b)]
        return [whole[c] for c in self.cluster.free]


def _horner(coefficients: Sequence[float], x: Any) -> Any:
    value: Any = 0.0
    for c in reversed(coefficients):
        value = value * x + float(c)
    return value


def _kept(x: Any, shut: Any) -> Any:
    """x where the cluster is closed; no number where it is not, constants included: a gear's ratio, too, is of closed ones."""
    return x if vanishes(x) else x / shut


def _on(place: tuple[list, list], spot: ClusterFrame) -> tuple[list, list]:
    R, p = place
    return small_matrices.product(R, spot.rotation.tolist()), add(
        p, small_matrices.apply(R, spot.origin.tolist())
    )


def _least_squares(A: list) -> Any:
    """b -> x with |A x - b| least, A of full column rank, by rows: modified Gram and Schmidt, b one more column."""
    columns, R = small_matrices.transpose(A), []
    Q: list = []
    for column in columns:
        tops = []
        for base in Q:
            part = dot(base, column)
            column = [x - part * y for x, y in zip(column, base, strict=True)]
            tops.append(part)
        size = root(dot(column, column))
        Q.append([x / size for x in column])
        R.append([*tops, size])  # by columns

    def solve(b: list) -> list:
        rest, right = b, []
        for base in Q:
            part = dot(base, rest)
            rest = [x - part * y for x, y in zip(rest, base, strict=True)]
            right.append(part)
        x: list = [0.0] * len(right)
        for i in reversed(range(len(right))):
            value = right[i]
            for j in range(i + 1, len(right)):
                value = value - R[j][i] * x[j]
            x[i] = value / R[i][i]
        return x

    return solve
