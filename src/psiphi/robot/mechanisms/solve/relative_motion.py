"""Where constrained frames are and how they move, and the constraint rows that follow from it.

All of it is words, in axes of the frames:

    E_0 phi B = [R, p~ R; 0, R]      where they are
    V = J v                          how they move
    A = J a + DJ/Dt v - B* g         and how that changes, under the joint accelerations a (zero where none are given)

Gravity is the pseudo-acceleration of the world, as Newton and Euler have it: so are the bodies' own accelerations made already.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from psiphi.algebra.expressions.expression import vector
from psiphi.algebra.expressions.operators import Operators, frame_poses
from psiphi.compiler.equations import REWRITTEN, Equation
from psiphi.compiler.lower.frame_sweeps import place_of
from psiphi.compiler.recursions.body_step import ZERO3, ZERO6
from psiphi.compiler.recursions.newton_euler import tensor
from psiphi.model.loops.closure_types import Forbidden, Relative
from psiphi.model.loops.constraints import Closure, Constraint
from psiphi.model.model import WORLD
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import add, cross, dot, subtract

Scalars = dict[str, list]
v, a = vector("v"), vector("a")
PLACES = {
    name: f"{name} of frames" for name in ("R", "p", "V", "A")
}  # what the words are called among other stages


def whereabouts(closure: Closure, given: Collection[str]) -> dict[str, Equation]:
    """The words of constrained frames, under way with the joint velocities v and accelerations a where these are given."""
    s, frames = Operators(closure.model), closure.frames
    if not frames:
        return {}
    words = {"places": frame_poses(s, frames)}
    if "v" in given:
        J = s.J(*frames, axes="frame")
        A = J.dot("inertial") @ v - s.B(*frames, axes="frame").T @ s.g
        words["moves"] = {"V": J @ v, "A": J @ a + A if "a" in given else A}
    return {
        name: Equation(results, closure.model, forms=(REWRITTEN,))
        for name, results in words.items()
    }


@dataclass(frozen=True)
class FrameState:
    """A frame: rotation and origin in the world; w, v, w' and v' in its own axes."""

    R: list
    p: list
    w: list
    v: list
    wd: list
    vd: list


def _state(closure: Closure, places: Scalars, name: str) -> FrameState:
    """Of one frame; the world's own are at rest, and fall."""
    frame, moves = closure.model.frame(name), PLACES["V"] in places
    if frame.body == WORLD:
        R, p = frame.pose.rotation.tolist(), frame.pose.translation.tolist()
        pull = small_matrices.apply(
            small_matrices.transpose(R), [-float(g) for g in closure.model.gravity_vector]
        )
        return FrameState(R, p, ZERO3, ZERO3, ZERO3, pull)
    at = closure.frames.index(name)
    own = [places[PLACES[x]][6 * at : 6 * at + 6] if moves else ZERO6 for x in "VA"]
    R, p = place_of(lambda x, i: places[PLACES[x]][i], at, len(closure.frames))
    return FrameState(R, p, *(part for x in own for part in (x[:3], x[3:])))


@dataclass(frozen=True)
class ConstraintState:
    """A constraint in one state: its rows, c' = S [w'; v'] + extra under the accelerations given, and w' and v' themselves.

    `bias` leaves out what is zero of velocities that keep the constraint; `opening` does not.
    """

    constraint: Constraint
    at: Relative
    rows: list[Forbidden]
    bias: list
    wd: list
    vd: list
    axes: list  # rotation of frame 2 in the world

    @property
    def opening(self) -> list:
        """c' of any velocities."""
        return _along(self.rows, self.wd, self.vd)

    def pull(self, row: Forbidden) -> tuple[list, list]:
        """A unit multiplier of a row as wrenches: on frame 1 in its axes, on frame 2 in its axes."""
        back = small_matrices.transpose(self.at.R)
        first = small_matrices.apply(back, row.turn) + small_matrices.apply(back, row.slide)
        moment = add(row.turn, cross(self.at.p, row.slide))
        return first, [-x for x in (*moment, *row.slide)]


def meet(constraint: Constraint, one: FrameState, two: FrameState) -> ConstraintState:
    """Frame 1 seen from frame 2:

    w = R w1 - w2            w' = R w1' - w2' - w2 x w
    v = R v1 - v2 - w2 x p   v' = R v1' - v2' - U2 p - 2 w2 x v      U2 = w2'~ + w2~ w2~
    """
    back = small_matrices.transpose(two.R)
    R = small_matrices.product(back, one.R)
    p = small_matrices.apply(back, subtract(one.p, two.p))
    w = subtract(small_matrices.apply(R, one.w), two.w)
    v = subtract(subtract(small_matrices.apply(R, one.v), two.v), cross(two.w, p))
    parted = (
        subtract(small_matrices.apply(R, one.wd), two.wd),
        subtract(
            subtract(small_matrices.apply(R, one.vd), two.vd),
            small_matrices.apply(tensor(two.w, two.wd), p),
        ),
    )
    wd, vd = (
        subtract(parted[0], cross(two.w, w)),
        subtract(parted[1], [2.0 * x for x in cross(two.w, v)]),
    )
    kind, at = constraint.row, Relative(R, p, w, v)
    rows = kind.rows(constraint.shape, at)
    turning, sliding = (
        wd if kind.turns else parted[0],
        vd if kind.slides else parted[1],
    )  # w = 0, v = 0 where they must be
    return ConstraintState(constraint, at, rows, _along(rows, turning, sliding), wd, vd, two.R)


def _along(rows: list[Forbidden], wd: list, vd: list) -> list:
    """S [w'; v'] + extra."""
    return [dot(row.turn, wd) + dot(row.slide, vd) + row.extra for row in rows]


def meetings(closure: Closure, places: Scalars) -> list[ConstraintState]:
    """Every constraint, from the states of its frames."""
    return [
        meet(c, *(_state(closure, places, name) for name in (c.first, c.second)))
        for c in closure.constraints
    ]


def rates(meeting: ConstraintState) -> list:
    """c = S [w; v]."""
    return [dot(row.turn, meeting.at.w) + dot(row.slide, meeting.at.v) for row in meeting.rows]
