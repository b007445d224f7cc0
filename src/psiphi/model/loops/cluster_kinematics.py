"""X, dX/dt β and loop closure of a cluster, on numbers, arrays or tape expressions.

    gears   β_f = Σ γ'(q_l) β_l                                explicit
    ties    Y β_S = 0,   Y_bound β_bound = -Y_free β_free      implicit, solved by QR

    β_S = X β,    (dX/dt) β = [0; -Y_bound⁺ (dY/dt) β_S]
    q_bound <- q_bound exp(-Y_bound⁺ e(q))                     Newton's method closes the loops

See docs/embedding.md. (dX/dt) β needs no derivative of X. The joints (`Member`s) and the tied
frames are given in the same axes, link axes or working axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.model.components import Axes, Joint
from psiphi.model.joint_types import JointKind
from psiphi.model.loops.closure_types import ConstraintRow, RelativeMotion
from psiphi.model.loops.clusters import (
    OUTSIDE,
    Cluster,
    ClusterFrame,
    GearRow,
    paths_from_outside,
)
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.screw_paths import pose
from psiphi.model.spatial.screws import (
    Screw,
    Turn,
    add,
    cross,
    dot,
    is_zero_constant,
    square_root,
    subtract,
)

EYE3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
ZERO3 = [0.0, 0.0, 0.0]
# Metres or radians. If a loop is open by more, velocities are not finite; between two closed
# configurations it is open by the square of the step.
MAX_GAP = 1e-2
NEWTON_STEPS = 4  # close a loop after a time step; each squares the gap


class Member(Protocol):
    """The joint of one body of a cluster."""

    @property
    def row(self) -> JointKind: ...

    def path(self, q: list) -> list: ...

    def H(self, q: list) -> list: ...


@dataclass(frozen=True)
class PublicMember:
    """A joint in public link axes."""

    joint: Joint
    axes: Axes

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
        R = self.axes.after.tolist()
        return [
            small_matrices.apply(R, h[:3]) + small_matrices.apply(R, h[3:])
            for h in self.row.H(q, self.axes)
        ]


def _shift(l: np.ndarray) -> list:
    return [Screw(axis, None, float(x)) for axis, x in zip("xyz", l, strict=True) if x != 0.0]


def _turn(R: np.ndarray) -> list:
    return [] if np.array_equal(R, np.eye(3)) else [Turn(R.tolist())]


class ClusterKinematics:
    """The kinematics of one cluster.

    `members` are its joints, `tie_frames` the (first, second) frames of its ties, in the axes of
    the members.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Sequence[Member],
        tie_frames: Sequence[tuple[ClusterFrame, ClusterFrame]],
    ):
        self.cluster, self.members, self.tie_frames = cluster, tuple(members), tuple(tie_frames)
        self.nq, self.nv = (sum(getattr(m.row, n) for m in self.members) for n in ("nq", "nv"))
        self.starts = np.cumsum([0, *(m.row.nv for m in self.members)]).tolist()
        self.q_starts = np.cumsum([0, *(m.row.nq for m in self.members)]).tolist()
        self.paths = [*paths_from_outside(cluster.parents), ()]  # the last is that of OUTSIDE

    @cached_property
    def _q_of(self) -> dict[int, int]:
        """The index in q of each velocity coordinate whose joint has one coordinate."""
        rows = zip(self.members, self.starts, self.q_starts, strict=False)
        return {v: q for m, v, q in rows if (m.row.nq, m.row.nv) == (1, 1)}

    def split_q(self, q: Sequence[Any]) -> list[list]:
        """q as one list per joint."""
        return [list(q[a:b]) for a, b in zip(self.q_starts, self.q_starts[1:], strict=False)]

    def split_v(self, v: Sequence[Any]) -> list[list]:
        """β_S as one list per joint."""
        return [list(v[a:b]) for a, b in zip(self.starts, self.starts[1:], strict=False)]

    # -- velocities --------------------------------------------------------------------------------

    def X(self, q: list) -> list:
        """X, one row for each coordinate of the cluster, one column for each free one."""
        free, bound = self.cluster.free, self.cluster.bound
        lead: dict[int, list] = {c: [1.0 if c == other else 0.0 for other in free] for c in free}
        if bound:
            Y = self.leader_jacobian(q, self.Y(q))
            solve = _least_squares([[row[c] for c in bound] for row in Y])
            columns = [solve([-row[c] for row in Y]) for c in free]
            lead |= {c: [column[i] for column in columns] for i, c in enumerate(bound)}
        for gear in self.cluster.gears:
            slopes = self._slopes(q, gear)
            lead[gear.follower] = [
                dot(list(slopes.values()), [lead[l][i] for l in slopes]) for i in range(len(free))
            ]
        closed = self._is_closed(q)
        return [
            lead[c] if c in free else [_nan_if_open(x, closed) for x in lead[c]]
            for c in range(self.nv)
        ]

    def rates(self, q: list, v: list) -> list:
        """β_S = X β."""
        return small_matrices.apply(self.X(q), v) if v else [0.0] * self.nv

    def q_index(self, c: int) -> int:
        """The index in q of velocity coordinate c; -1 if its joint has several coordinates."""
        return self._q_of.get(c, -1)

    def project_forces(self, q: list, v: list, law: Callable[[Cluster, list, list], list]) -> list:
        """X* f, the forces on the free coordinates of the joint forces f = law(cluster, x, β_S).

        x are the positions of all coordinates; 0 where a joint has several.
        """
        X = self.X(q)
        x = [q[self._q_of[c]] if c in self._q_of else 0.0 for c in range(self.nv)]
        return small_matrices.apply(
            small_matrices.transpose(X), law(self.cluster, x, small_matrices.apply(X, v))
        )

    def slope_bound(self, q: list, v: list, law: Callable[[Cluster, list, list], list]) -> list:
        """n diag(X* S X) >= X* S X for slopes S = law(cluster, x, β_S) and n free coordinates."""
        X, n = self.X(q), float(len(self.cluster.free))
        x = [q[self._q_of[c]] if c in self._q_of else 0.0 for c in range(self.nv)]
        slopes = law(self.cluster, x, small_matrices.apply(X, v))
        return [
            n * dot([s * x for s, x in zip(slopes, column, strict=True)], column)
            for column in small_matrices.transpose(X)
        ]

    def drift(self, q: list, beta: list) -> list:
        """(dX/dt) β, from the velocities β_S of all joints."""
        bound = self.cluster.bound
        out: dict[int, Any] = dict.fromkeys(range(self.nv), 0.0)
        self._follower_accelerations(q, beta, out)
        if bound:
            # (dY/dt) β_S, and the accelerations of followers if their leaders do not accelerate
            Y = self.Y(q)
            Y_dot_beta = rate_of_change(
                lambda x: self._opening_rate(x, beta), q, self.rate(q, beta)
            )
            known = [g.follower for g in self.cluster.gears]
            gap = [
                x + dot([row[c] for c in known], [out[c] for c in known]) if known else x
                for x, row in zip(Y_dot_beta, Y, strict=True)
            ]
            solve = _least_squares([[row[c] for c in bound] for row in self.leader_jacobian(q, Y)])
            out |= dict(zip(bound, solve([-x for x in gap]), strict=True))
            self._follower_accelerations(q, beta, out)
        return [out[c] for c in range(self.nv)]

    def _follower_accelerations(self, q: list, beta: list, out: dict[int, Any]) -> None:
        """Add Σ γ' dβ_l/dt + γ'' β_l², the accelerations of followers, to those of the leaders."""
        for gear in self.cluster.gears:
            total: Any = 0.0
            for (l, slope), curvature in zip(
                self._slopes(q, gear).items(), self._second_slopes(q, gear), strict=True
            ):
                total = total + slope * out[l] + curvature * (beta[l] * beta[l])
            out[gear.follower] = total

    def rate(self, q: list, beta: list) -> list:
        """dq/dt from β_S."""
        parts = zip(self.members, self.split_q(q), self.split_v(beta), strict=True)
        return [
            x for member, coordinates, rates in parts for x in member.row.rate(coordinates, rates)
        ]

    def joint_map_derivative(
        self, rule: Callable[[list], list], q: list, x: list, *more: list
    ) -> list:
        """The derivative of rule(q) along the free velocities x.

        With `more` = (z,), its derivative along z in turn, x constant.
        """
        if more:
            return self.joint_map_derivative(
                lambda p: self.joint_map_derivative(rule, p, x), q, *more
            )
        return rate_of_change(rule, q, self.rate(q, self.rates(q, x)))

    def H(self, q: list) -> list:
        """H(S), one row for each free coordinate.

        A row is [w; v] of every body relative to the body outside, at unit velocity, in link axes.
        """
        poses, screws, X = self.body_poses(q), self._joint_screws(q), self.X(q)
        rows = []
        for i in range(len(self.cluster.free)):
            row: list = []
            for k, path in enumerate(self.paths[:-1]):
                turn, move = ZERO3, ZERO3
                for c in (c for j in path for c in range(self.starts[j], self.starts[j + 1])):
                    w, v, origin = screws[c]
                    turn = add(turn, [X[c][i] * y for y in w])
                    move = add(
                        move, [X[c][i] * y for y in add(v, cross(w, subtract(poses[k][1], origin)))]
                    )
                back = small_matrices.transpose(poses[k][0])
                row += [*small_matrices.apply(back, turn), *small_matrices.apply(back, move)]
            rows.append(row)
        return rows

    def _slopes(self, q: list, gear: GearRow) -> dict[int, Any]:
        return {
            l: _horner([k * c for k, c in enumerate(cs, 1)], q[self._q_of[l]] - x0)
            for l, x0, cs in gear.terms
        }

    def _second_slopes(self, q: list, gear: GearRow) -> list:
        return [
            _horner([k * (k - 1) * c for k, c in enumerate(cs, 1)][1:], q[self._q_of[l]] - x0)
            for l, x0, cs in gear.terms
        ]

    def leader_jacobian(self, q: list, Y: list) -> list:
        """Y Γ: the columns of followers are added to those of their leaders."""
        rows = [list(row) for row in Y]
        for gear in reversed(self.cluster.gears):
            for l, slope in self._slopes(q, gear).items():
                for row in rows:
                    row[l] = row[l] + row[gear.follower] * slope
        return rows

    # -- ties --------------------------------------------------------------------------------------

    def body_poses(self, q: list) -> list[tuple[list, list]]:
        """(R, p) of each body relative to the body outside, and of that body itself, last."""
        found: list[tuple[list, list]] = []
        rows = zip(self.members, self.cluster.parents, self.split_q(q), strict=True)
        for member, parent, coordinates in rows:
            R, p = (EYE3, ZERO3) if parent == OUTSIDE else found[parent]
            found.append(pose(member.path(coordinates), R, p))
        return [*found, (EYE3, ZERO3)]

    def _tie_frames(self, q: list) -> list[tuple[list, list, list, list, list]]:
        """For each tie R₂*, p₁, p₂ (axes outside), and (R, p) of frame 1 relative to frame 2."""
        poses, found = self.body_poses(q), []
        for first, second in self.tie_frames:
            (R1, p1), (R2, p2) = (_frame_pose(poses[f.body], f) for f in (first, second))
            back = small_matrices.transpose(R2)
            apart = small_matrices.apply(back, subtract(p1, p2))
            found.append((back, p1, p2, small_matrices.product(back, R1), apart))
        return found

    def _joint_screws(self, q: list) -> list[tuple[list, list, list]]:
        """For each coordinate, w, v (at unit rate) and the origin of its body, in axes outside."""
        poses = self.body_poses(q)
        return [
            (
                small_matrices.apply(poses[k][0], h[:3]),
                small_matrices.apply(poses[k][0], h[3:]),
                poses[k][1],
            )
            for k, (member, coordinates) in enumerate(
                zip(self.members, self.split_q(q), strict=True)
            )
            for h in member.H(coordinates)
        ]

    def Y(self, q: list) -> list:
        """Y, the Jacobian of the ties: a row for each constraint, a column for each coordinate."""
        screws, rows = self._joint_screws(q), []
        for i, (back, p1, _, R, p) in enumerate(self._tie_frames(q)):
            constraint_rows = self._constraint_rows(i, R, p)
            block = [[0.0] * self.nv for _ in constraint_rows]
            for c, sign in self._relative_coordinates(i):
                w, v, origin = screws[c]
                turn = [sign * x for x in small_matrices.apply(back, w)]
                move = [
                    sign * x
                    for x in small_matrices.apply(back, add(v, cross(w, subtract(p1, origin))))
                ]
                for row, f in zip(block, constraint_rows, strict=True):
                    row[c] = dot(f.turn, turn) + dot(f.slide, move)
            rows += block
        return rows

    def _opening_rate(self, q: list, beta: list) -> list:
        """Y β_S: the velocities are summed before the rows are applied."""
        screws, out = self._joint_screws(q), []
        for i, (back, p1, _, R, p) in enumerate(self._tie_frames(q)):
            turn, move = ZERO3, ZERO3
            for c, sign in self._relative_coordinates(i):
                w, v, origin = screws[c]
                turn = add(turn, [sign * x * beta[c] for x in w])
                arm = cross(w, subtract(p1, origin))
                move = add(move, [sign * x * beta[c] for x in add(v, arm)])
            turn, move = small_matrices.apply(back, turn), small_matrices.apply(back, move)
            out += [dot(f.turn, turn) + dot(f.slide, move) for f in self._constraint_rows(i, R, p)]
        return out

    def _constraint_rows(self, i: int, R: list, p: list) -> list[ConstraintRow]:
        """The independent rows of tie i, frame 1 at (R, p) relative to frame 2."""
        tie = self.cluster.ties[i]
        rows = tie.row.rows(tie.shape, RelativeMotion(R, p, ZERO3, ZERO3))
        return [rows[k] for k in tie.rows]

    def _relative_coordinates(self, i: int) -> list[tuple[int, float]]:
        """The coordinates that change tie i: (c, 1.0) if c moves frame 1, (c, -1.0) if frame 2.

        A coordinate that moves both frames does not change the tie.
        """
        first, second = (set(self.paths[f.body]) for f in self.tie_frames[i])
        bodies = [(k, 1.0) for k in sorted(first - second)]
        bodies += [(k, -1.0) for k in sorted(second - first)]
        return [(c, sign) for k, sign in bodies for c in range(self.starts[k], self.starts[k + 1])]

    def bound_jacobian(self, q: list) -> list:
        """The columns of Y Γ of the bound coordinates, by rows.

        It is singular at a dead point, where the free coordinates do not determine the others.
        """
        return [[row[c] for c in self.cluster.bound] for row in self.leader_jacobian(q, self.Y(q))]

    def tie_errors(self, q: list) -> list:
        """The position errors of the ties, row by row."""
        return [
            f.error
            for i, (_, _, _, R, p) in enumerate(self._tie_frames(q))
            for f in self._constraint_rows(i, R, p)
        ]

    def closure_errors(self, q: list) -> list:
        """The position errors of gears and ties."""
        return [
            q[self._q_of[g.follower]] - self._follower_position(q, g) for g in self.cluster.gears
        ] + self.tie_errors(q)

    def _is_closed(self, q: list) -> Any:
        """1 where all errors are below MAX_GAP, else 0; the float 1.0 without constraints."""
        gaps = self.closure_errors(q)
        return less(dot(gaps, gaps), MAX_GAP * MAX_GAP) if gaps else 1.0

    # -- configurations ----------------------------------------------------------------------------

    def _follower_position(self, q: list, gear: GearRow) -> Any:
        value: Any = gear.offset
        for l, x0, cs in gear.terms:
            x = q[self._q_of[l]] - x0
            value = value + x * _horner(cs, x)
        return value

    def apply_gears(self, q: list) -> list:
        """q with the coordinates of followers computed from their leaders."""
        q = list(q)
        for gear in self.cluster.gears:
            q[self._q_of[gear.follower]] = self._follower_position(q, gear)
        return q

    def integrate(self, q: list, beta: list) -> list:
        """q exp(β_S), without closing the loops."""
        parts = zip(self.members, self.split_q(q), self.split_v(beta), strict=True)
        return [
            x for member, coordinates, rates in parts for x in member.row.exp(coordinates, rates)
        ]

    def close_loops(self, q: list) -> list:
        """The closed configuration with the free coordinates of q, by Newton's method."""
        bound = self.cluster.bound
        q = self.apply_gears(q)
        for _ in range(NEWTON_STEPS if bound else 0):
            back = _least_squares(self.bound_jacobian(q))([-e for e in self.tie_errors(q)])
            step = [0.0 if c not in bound else back[bound.index(c)] for c in range(self.nv)]
            q = self.apply_gears(self.integrate(q, step))
        return q

    def exp(self, q: list, v: list) -> list:
        """q after one unit of time with the free velocities v, loops closed."""
        return self.close_loops(self.integrate(q, self.rates(q, v)))

    def log(self, p: list, q: list) -> list:
        """The free velocities that lead from p to q in one unit of time."""
        parts = zip(self.members, self.split_q(p), self.split_q(q), strict=True)
        whole = [x for member, a, b in parts for x in member.row.log(a, b)]
        return [whole[c] for c in self.cluster.free]


def _horner(coefficients: Sequence[float], x: AnyScalar) -> Any:
    """c₀ + c₁ x + c₂ x² + ..."""
    value: Any = 0.0
    for c in reversed(coefficients):
        value = value * x + float(c)
    return value


def _nan_if_open(x: AnyScalar, closed: AnyScalar) -> Any:
    """x where the cluster is closed, else not finite. Constants too, except the float 0.0."""
    return x if is_zero_constant(x) else x / closed


def _frame_pose(body: tuple[list, list], frame: ClusterFrame) -> tuple[list, list]:
    """The pose of a frame from the pose (R, p) of its body."""
    R, p = body
    return small_matrices.product(R, frame.rotation.tolist()), add(
        p, small_matrices.apply(R, frame.origin.tolist())
    )


def _least_squares(A: list) -> Callable[[list], list]:
    """The function b -> argmin_x |A x - b|, for A (by rows) of full column rank.

    Modified Gram-Schmidt; b is treated as one more column.
    """
    columns, R = small_matrices.transpose(A), []
    Q: list = []
    for column in columns:
        tops = []
        for base in Q:
            part = dot(base, column)
            column = [x - part * y for x, y in zip(column, base, strict=True)]
            tops.append(part)
        size = square_root(dot(column, column))
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
