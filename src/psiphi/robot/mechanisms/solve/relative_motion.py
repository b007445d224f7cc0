"""Poses and motions of the constrained frames, and the constraint rows computed from them.

These are operator expressions, in the axes of the frames:

    E_0 phi B = [R, p~ R; 0, R]      poses
    V = J v                          velocities
    A = J a + DJ/Dt v - B* g         accelerations for joint accelerations a (zero if not given)

Gravity enters as an acceleration of the world, as in the recursive Newton-Euler algorithm.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from psiphi.algebra.expressions.expression import vector
from psiphi.algebra.expressions.operators import Operators, frame_poses
from psiphi.compiler.equations import REWRITTEN, Equation
from psiphi.compiler.lower.frame_sweeps import pose_from_entries
from psiphi.compiler.recursions.body_step import ZERO3, ZERO6
from psiphi.compiler.recursions.newton_euler import acceleration_tensor
from psiphi.model.loops.closure_types import ConstraintRow, RelativeMotion
from psiphi.model.loops.constraints import Closure, Constraint
from psiphi.model.model import WORLD
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import add, cross, dot, subtract

Scalars = dict[str, list]
v, a = vector("v"), vector("a")
PLACES = {name: f"{name} of frames" for name in ("R", "p", "V", "A")}  # places of the results


def frame_equations(closure: Closure, given: Collection[str]) -> dict[str, Equation]:
    """Poses of the constrained frames; with v in `given` also V and A, with a A includes J a."""
    s, frames = Operators(closure.model), closure.frames
    if not frames:
        return {}
    equations = {"poses": frame_poses(s, frames)}
    if "v" in given:
        J = s.J(*frames, axes="frame")
        A = J.dot("inertial") @ v - s.B(*frames, axes="frame").T @ s.g
        equations["motions"] = {"V": J @ v, "A": J @ a + A if "a" in given else A}
    return {
        name: Equation(results, closure.model, forms=(REWRITTEN,))
        for name, results in equations.items()
    }


@dataclass(frozen=True)
class FrameState:
    """A frame: rotation R and origin p in the world; w, v, w' and v' in the frame's own axes."""

    R: list
    p: list
    w: list
    v: list
    wd: list
    vd: list


def _frame_state(closure: Closure, places: Scalars, name: str) -> FrameState:
    """The state of one frame. Frames of the world have velocity zero and acceleration -g."""
    frame, has_motion = closure.model.frame(name), PLACES["V"] in places
    if frame.body == WORLD:
        R, p = frame.pose.rotation.tolist(), frame.pose.translation.tolist()
        acceleration = small_matrices.apply(
            small_matrices.transpose(R), [-float(g) for g in closure.model.gravity_vector]
        )
        return FrameState(R, p, ZERO3, ZERO3, ZERO3, acceleration)
    index = closure.frames.index(name)
    motion = [places[PLACES[x]][6 * index : 6 * index + 6] if has_motion else ZERO6 for x in "VA"]
    R, p = pose_from_entries(lambda x, i: places[PLACES[x]][i], index, len(closure.frames))
    return FrameState(R, p, *(part for x in motion for part in (x[:3], x[3:])))


@dataclass(frozen=True)
class ConstraintState:
    """One constraint in one state: its rows, c' = S [w'; v'] + extra, and the relative w' and v'.

    `bias` drops the terms that are zero if the velocities satisfy the constraint; `full_bias`
    keeps them.
    """

    constraint: Constraint
    relative: RelativeMotion
    rows: list[ConstraintRow]
    bias: list
    wd: list
    vd: list
    axes: list  # rotation of frame 2 in the world

    @property
    def full_bias(self) -> list:
        """c' for any velocities."""
        return _row_accelerations(self.rows, self.wd, self.vd)

    def unit_wrenches(self, row: ConstraintRow) -> tuple[list, list]:
        """The wrenches of a unit multiplier: on frame 1 in its axes, on frame 2 in its axes."""
        back = small_matrices.transpose(self.relative.R)
        first = small_matrices.apply(back, row.turn) + small_matrices.apply(back, row.slide)
        moment = add(row.turn, cross(self.relative.p, row.slide))
        return first, [-x for x in (*moment, *row.slide)]


def constraint_state(constraint: Constraint, one: FrameState, two: FrameState) -> ConstraintState:
    """The motion of frame 1 relative to frame 2, in axes of frame 2, and the constraint rows:

    w = R w1 - w2            w' = R w1' - w2' - w2 x w
    v = R v1 - v2 - w2 x p   v' = R v1' - v2' - U2 p - 2 w2 x v      U2 = w2'~ + w2~ w2~
    """
    back = small_matrices.transpose(two.R)
    R = small_matrices.product(back, one.R)
    p = small_matrices.apply(back, subtract(one.p, two.p))
    w = subtract(small_matrices.apply(R, one.w), two.w)
    v = subtract(subtract(small_matrices.apply(R, one.v), two.v), cross(two.w, p))
    wd_at_rest = subtract(small_matrices.apply(R, one.wd), two.wd)  # w' if w = 0
    vd_at_rest = subtract(  # v' if v = 0
        subtract(small_matrices.apply(R, one.vd), two.vd),
        small_matrices.apply(acceleration_tensor(two.w, two.wd), p),
    )
    wd = subtract(wd_at_rest, cross(two.w, w))
    vd = subtract(vd_at_rest, [2.0 * x for x in cross(two.w, v)])
    kind, relative = constraint.row, RelativeMotion(R, p, w, v)
    rows = kind.rows(constraint.shape, relative)
    bias = _row_accelerations(
        rows, wd if kind.turns else wd_at_rest, vd if kind.slides else vd_at_rest
    )
    return ConstraintState(constraint, relative, rows, bias, wd, vd, two.R)


def _row_accelerations(rows: list[ConstraintRow], wd: list, vd: list) -> list:
    """S [w'; v'] + extra."""
    return [dot(row.turn, wd) + dot(row.slide, vd) + row.extra for row in rows]


def constraint_states(closure: Closure, places: Scalars) -> list[ConstraintState]:
    """The state of every constraint, from the states of its frames."""
    return [
        constraint_state(c, *(_frame_state(closure, places, name) for name in (c.first, c.second)))
        for c in closure.constraints
    ]


def row_rates(state: ConstraintState) -> list:
    """c = S [w; v]."""
    return [
        dot(row.turn, state.relative.w) + dot(row.slide, state.relative.v) for row in state.rows
    ]
