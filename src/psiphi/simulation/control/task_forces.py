"""The forces of tasks, in order of priority: a rule on any scalars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

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

LEVER = 1e-8  # m: a point nearer to all axes does not move


@dataclass(frozen=True)
class TaskForces:
    """f_ext = -sum N_i F_i of tasks i in order of priority, by the block factors L D L* of X = J M^-1 J*:

        N_i = E_i - sum_(k<i) N_k S_k^+ c_ki        c_ki = N_k* X E_i        S_i = X_ii - sum_(k<i) c_ki* S_k^+ c_ki
        F_i = S_i^+ (b_i - sum_(k<i) c_ki* F_k)      b_i = x''_ref - x''

    X N_i is zero in the rows of all tasks before i: what a task does they do not feel. x'' is what u makes (`drift`); a task
    has the last 3 or 6 rows of its frame, and S^+ is that of the policy.

    `quick`: without eigenvalues, and `lost` is 1 where that does not do; `after` it, all of it where something is lost.
    """

    tasks: tuple[tuple[int, int], ...]  # (the number of its frame, rows)
    frames: int
    policy: str
    quick: bool = False
    after: bool = False

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def reference_places(self) -> tuple[str, ...]:
        """Where the tasks' references stand, in their order."""
        return tuple(f"{name}_{i}" for i in range(len(self.tasks)) for name in ("x_ref", "r_ref"))

    @property
    def sizes(self) -> dict[str, int]:
        """`gains`: kp, kd, the largest pull, and the policy's number."""
        seen = {
            f"{name}_{i}": n
            for i in range(self.frames)
            for name, n in (("T", 16), ("twist", 6), ("drift", 6))
        }
        asked = [n for _, rows in self.tasks for n in (16 if rows == 6 else 3, rows)]
        known = {"lost": 1, "f_ext": 6 * self.frames} if self.after else {}
        return {
            **seen,
            "X": 36 * self.frames**2,
            **dict(zip(self.reference_places, asked, strict=True)),
            "gains": 4,
            **known,
        }

    def __call__(self, m, **given) -> Values:
        at = {name: entries(x) for name, x in given.items()}
        number, X = at["gains"][3], self._compliance(at["X"])
        sure: Any = 1.0

        def answer(S: list, b: list, whole: list | None) -> list:
            nonlocal sure
            if not self.quick:
                return solve(self.policy, S, b, number, whole)
            x, own = solve_if_definite(self.policy, S, b, number, whole)
            sure = sure * own
            return x

        made: list[
            tuple[dict[int, list], list, list | None, list]
        ] = []  # by task: N_i by blocks, S_i, X_ii, F_i
        for i, (_, rows) in enumerate(self.tasks):
            b, S = self._missing(i, at), X[i][i]
            N: dict[int, list] = {
                i: [[1.0 if r == c else 0.0 for c in range(rows)] for r in range(rows)]
            }
            for Nk, Sk, Xk, Fk in made:
                c = reduce(
                    add_matrices, [product(transpose(block), X[j][i]) for j, block in Nk.items()]
                )
                back = transpose([answer(Sk, column, Xk) for column in transpose(c)])
                S = mirror_upper_half(
                    [subtract(x, y) for x, y in zip(S, product(transpose(c), back), strict=True)]
                )
                b = subtract(b, apply(transpose(c), Fk))
                for j, block in Nk.items():
                    taken = [[-x for x in row] for row in product(block, back)]
                    N[j] = add_matrices(N[j], taken) if j in N else taken
            F = answer(S, b, X[i][i] if made else None)
            made.append((N, S, X[i][i] if made else None, F))
        wrenches = self._wrenches(made)
        if self.quick:
            return {"f_ext": stack_entries(wrenches), "lost": stack_entries([1.0 - sure])}
        if self.after:
            wrenches = [
                choose(at["lost"][0], x, y) for x, y in zip(wrenches, at["f_ext"], strict=True)
            ]
        return {"f_ext": stack_entries(wrenches)}

    def _wrenches(self, made: list) -> list:
        out: list = [0.0] * (6 * self.frames)
        for N, _, _, F in made:
            for j, block in N.items():
                frame, rows = self.tasks[j]
                for r, x in enumerate(apply(block, F)):
                    k = 6 * frame + 6 - rows + r
                    out[k] = out[k] - x
        return out

    def _compliance(self, X: list) -> list:
        """X by blocks of tasks; rows that are no more than rounding are zero."""
        width = 6 * self.frames
        keep = [
            k
            for i in range(self.frames)
            for k in significant_rows([X[(6 * i + r) * (width + 1)] for r in range(6)])
        ]
        places = [range(6 * frame + 6 - rows, 6 * frame + 6) for frame, rows in self.tasks]

        def entry(r: int, c: int):
            return keep[r] * keep[c] * X[width * min(r, c) + max(r, c)]

        return [
            [[[entry(r, c) for c in right] for r in left] for right in places] for left in places
        ]

    def _missing(self, i: int, at: dict[str, list]) -> list:
        """x''_ref - x'' of task i: kp e + kd (x'_ref - x') - x''."""
        (frame, rows), gains = self.tasks[i], at["gains"]
        twist, drift = (at[f"{name}_{frame}"][6 - rows :] for name in ("twist", "drift"))
        rates = zip(at[f"r_ref_{i}"], twist, drift, strict=True)
        pulled = limited_feedback(rows, at[f"T_{frame}"], at[f"x_ref_{i}"], gains)
        return [
            pull + gains[1] * (wanted - now) - drifting
            for pull, (wanted, now, drifting) in zip(pulled, rates, strict=True)
        ]


def limited_feedback(rows: int, T: list, x_ref: list, gains: list) -> list:
    """kp e, angular and linear parts cut to what kd balances at the speed; the turn of a pose as a rotation vector."""
    (R, p), (kp, _, pull, _) = _split(T), gains
    if rows == 3:
        error = subtract(x_ref, p)
    else:
        wanted, place = _split(x_ref)
        error = logarithm(quaternion(product(wanted, transpose(R))))[0] + subtract(place, p)
    out = []
    for k in range(0, rows, 3):
        part = [kp * e for e in error[k : k + 3]]
        square = dot(part, part)
        far = less(pull * pull, square)
        share = choose(
            far, pull / square_root(choose(far, square, 1.0)), 1.0
        )  # at the target a length has no derivative
        out += [share * x for x in part]
    return out


def _split(T: list) -> tuple[list, list]:
    """Rotation and position of a pose, given row by row."""
    return [T[4 * r : 4 * r + 3] for r in range(3)], [T[4 * r + 3] for r in range(3)]


def significant_rows(diagonal: list) -> list:
    """1 for the rows of X that are more than rounding, 0 for others: of levers below LEVER, or above 1 / LEVER.

    >>> [float(x) for x in felt([1.0, 1.0, 1.0, 1e-34, 0.0, 1e-33])]
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    turn, slide = (a + b + c for a, b, c in (diagonal[:3], diagonal[3:]))
    return [less(LEVER**2 * slide, turn)] * 3 + [less(LEVER**2 * turn, slide)] * 3
