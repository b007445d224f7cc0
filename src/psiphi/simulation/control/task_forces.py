"""The forces of tasks, in order of priority: a rule on any scalars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import choose, less
from psiphi.model.spatial.pseudo_inverse import solve, solve_if_definite
from psiphi.model.spatial.rotations import logarithm, quaternion
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import dot, square_root, subtract
from psiphi.model.spatial.small_matrices import (
    add_matrices,
    apply,
    mirror_upper_half,
    product,
    transpose,
)
from psiphi.simulation.control.control_law import Values

NEGLIGIBLE_LEVER = 1e-8  # m: a point nearer to all axes does not move


@dataclass(frozen=True)
class TaskForces:
    """f_ext = -sum N_i F_i of tasks i in order of priority, by the block factors L D L* of
    X = J M^-1 J*:

        N_i = E_i - sum_(k<i) N_k S_k^+ c_ki        c_ki = N_k* X E_i
        S_i = X_ii - sum_(k<i) c_ki* S_k^+ c_ki
        F_i = S_i^+ (b_i - sum_(k<i) c_ki* F_k)      b_i = x''_ref - x''

    X N_i is zero in the rows of all tasks before i: task i does not disturb them. x'' is the
    acceleration that u causes (`drift`). A task has the last 3 or 6 rows of its frame, and S^+ is
    that of the policy.

    `definite_only`: no eigenvalues are computed, and the place `indefinite` is 1 if they are
    needed. `fallback` follows it: the full computation replaces the result where `indefinite` is 1.
    """

    tasks: tuple[tuple[int, int], ...]  # (index of the frame, number of rows)
    frames: int
    policy: str
    definite_only: bool = False
    fallback: bool = False

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def reference_places(self) -> tuple[str, ...]:
        """The places of the references of the tasks, in order."""
        return tuple(f"{name}_{i}" for i in range(len(self.tasks)) for name in ("x_ref", "r_ref"))

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the places; `gains` are kp, kd, the largest kp |e|, and the number of the
        policy."""
        frame_sizes = {
            f"{name}_{i}": n
            for i in range(self.frames)
            for name, n in (("T", 16), ("twist", 6), ("drift", 6))
        }
        reference_sizes = [n for _, rows in self.tasks for n in (16 if rows == 6 else 3, rows)]
        first_results = {"indefinite": 1, "f_ext": 6 * self.frames} if self.fallback else {}
        return {
            **frame_sizes,
            "X": 36 * self.frames**2,
            **dict(zip(self.reference_places, reference_sizes, strict=True)),
            "gains": 4,
            **first_results,
        }

    def __call__(self, m: Manifold, **values: Any) -> Values:
        at = {name: entries(x) for name, x in values.items()}
        number, X = at["gains"][3], self._compliance_blocks(at["X"])
        definite: Any = 1.0

        def solve_task(S: list, b: list, whole: list | None) -> list:
            nonlocal definite
            if not self.definite_only:
                return solve(self.policy, S, b, number, whole)
            x, is_definite = solve_if_definite(self.policy, S, b, number, whole)
            definite = definite * is_definite
            return x

        # of each task: N_i by blocks, S_i, X_ii (None for the first), F_i
        solved: list[tuple[dict[int, list], list, list | None, list]] = []
        for i, (_, rows) in enumerate(self.tasks):
            b, S = self._acceleration_error(i, at), X[i][i]
            N: dict[int, list] = {
                i: [[1.0 if r == c else 0.0 for c in range(rows)] for r in range(rows)]
            }
            for Nk, Sk, Xk, Fk in solved:
                c = reduce(
                    add_matrices, [product(transpose(block), X[j][i]) for j, block in Nk.items()]
                )
                Sc = transpose([solve_task(Sk, column, Xk) for column in transpose(c)])
                S = mirror_upper_half(
                    [subtract(x, y) for x, y in zip(S, product(transpose(c), Sc), strict=True)]
                )
                b = subtract(b, apply(transpose(c), Fk))
                for j, block in Nk.items():
                    change = [[-x for x in row] for row in product(block, Sc)]
                    N[j] = add_matrices(N[j], change) if j in N else change
            whole = X[i][i] if solved else None
            solved.append((N, S, whole, solve_task(S, b, whole)))
        wrenches = self._wrenches([(N, F) for N, _, _, F in solved])
        if self.definite_only:
            return {"f_ext": stack_entries(wrenches), "indefinite": stack_entries([1.0 - definite])}
        if self.fallback:
            indefinite = at["indefinite"][0]
            wrenches = [
                choose(indefinite, x, y) for x, y in zip(wrenches, at["f_ext"], strict=True)
            ]
        return {"f_ext": stack_entries(wrenches)}

    def _wrenches(self, solved: list[tuple[dict[int, list], list]]) -> list:
        """-sum N_i F_i as one wrench for each frame, flat."""
        out: list = [0.0] * (6 * self.frames)
        for N, F in solved:
            for j, block in N.items():
                frame, rows = self.tasks[j]
                for r, x in enumerate(apply(block, F)):
                    k = 6 * frame + 6 - rows + r
                    out[k] = out[k] - x
        return out

    def _compliance_blocks(self, X: list) -> list:
        """X by blocks of tasks; rows below rounding are zero."""
        width = 6 * self.frames
        keep = [
            factor
            for i in range(self.frames)
            for factor in significant_rows([X[(6 * i + r) * (width + 1)] for r in range(6)])
        ]
        rows_of_tasks = [range(6 * frame + 6 - rows, 6 * frame + 6) for frame, rows in self.tasks]

        def entry(r: int, c: int) -> Any:
            return keep[r] * keep[c] * X[width * min(r, c) + max(r, c)]

        return [
            [[[entry(r, c) for c in right] for r in left] for right in rows_of_tasks]
            for left in rows_of_tasks
        ]

    def _acceleration_error(self, i: int, at: dict[str, list]) -> list:
        """x''_ref - x'' of task i: kp e + kd (x'_ref - x') - x''."""
        (frame, rows), gains = self.tasks[i], at["gains"]
        twist, drift = (at[f"{name}_{frame}"][6 - rows :] for name in ("twist", "drift"))
        rates = zip(at[f"r_ref_{i}"], twist, drift, strict=True)
        feedback = limited_feedback(rows, at[f"T_{frame}"], at[f"x_ref_{i}"], gains)
        return [
            kp_e + gains[1] * (rate_ref - rate) - a
            for kp_e, (rate_ref, rate, a) in zip(feedback, rates, strict=True)
        ]


def limited_feedback(rows: int, T: list, x_ref: list, gains: list) -> list:
    """kp e, its angular and linear parts limited to the length `gains[2]`; the error of a pose
    begins with a rotation vector."""
    (R, p), (kp, _, limit, _) = _split_pose(T), gains
    if rows == 3:
        error = subtract(x_ref, p)
    else:
        R_ref, p_ref = _split_pose(x_ref)
        error = logarithm(quaternion(product(R_ref, transpose(R))))[0] + subtract(p_ref, p)
    out = []
    for k in range(0, rows, 3):
        part = [kp * e for e in error[k : k + 3]]
        square = dot(part, part)
        beyond = less(limit * limit, square)
        # the inner `choose` avoids the root of 0, which has no derivative
        factor = choose(beyond, limit / square_root(choose(beyond, square, 1.0)), 1.0)
        out += [factor * x for x in part]
    return out


def _split_pose(T: list) -> tuple[list, list]:
    """The rotation and position of a pose that is given row by row."""
    return [T[4 * r : 4 * r + 3] for r in range(3)], [T[4 * r + 3] for r in range(3)]


def significant_rows(diagonal: list) -> list:
    """1 for rows of X above rounding, else 0: rows of which the lever between the angular and the
    linear part is at least NEGLIGIBLE_LEVER and at most its reciprocal.

    >>> [float(x) for x in significant_rows([1.0, 1.0, 1.0, 1e-34, 0.0, 1e-33])]
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    angular, linear = (a + b + c for a, b, c in (diagonal[:3], diagonal[3:]))
    return [less(NEGLIGIBLE_LEVER**2 * linear, angular)] * 3 + [
        less(NEGLIGIBLE_LEVER**2 * angular, linear)
    ] * 3
