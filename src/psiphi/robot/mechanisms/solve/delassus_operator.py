"""The coupling of mechanisms through their constraints, on scalars of any kind.

With c' = Jc a + bias the rows of all constraints, Jc = Z [J; F]: Z turns the motions J of the constrained frames into rows,
F picks the joints that follow others. The multipliers are those that keep the rows at c' = 0:

    Omega = Jc M^-1 Jc*        Omega lambda = -(Jc a_f + bias)        a = a_f + M^-1 Jc* lambda

For arms around an object Omega is J M^-1 J* + A M(C)^-1 A* of S4: the object is a mechanism like any other. The arms' parts
are O(N) sweeps (expressions of the algebra); what is solved densely is as large as the constraints.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators, with_rotors
from psiphi.compiler.equations import Equation
from psiphi.model.loops.constraints import Closure
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import dot, is_zero_constant
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.hub import Hub, find
from psiphi.robot.mechanisms.solve.hub_elimination import GroupBlock, Solver
from psiphi.robot.mechanisms.solve.relative_motion import (
    ConstraintState,
    Scalars,
    meetings,
    rates,
    whereabouts,
)

f, u = vector("f", "frame"), vector("u")
NORMAL_FIRST = (
    "body forces whole",
    "rewritten",
    "as written",
)  # of a large system the first form is taken uncounted


@dataclass(frozen=True)
class UnitMultiplier:
    """A unit multiplier of one row: wrenches on frames (by number, in frame axes) and torques on joints."""

    wrenches: tuple[tuple[int, list], ...] = ()
    torques: tuple[tuple[int, Any], ...] = ()


def felt(pull: UnitMultiplier, motions: Mapping[int, list], accelerations: Any) -> Any:
    """One row of Jc a; frames that are not among the motions are still."""
    total: Any = 0.0
    for frame, z in pull.wrenches:
        if frame in motions:
            total = total + dot(z, motions[frame])
    for i, c in pull.torques:
        total = total + c * accelerations[i]
    return total


@dataclass(frozen=True)
class Algebra:
    """The expressions a closure needs of its forest."""

    closure: Closure
    added: bool = False  # a diagonal is added to D: what the algebra says must hold with rotors
    trunks: bool = True  # bodies that arms share may be eliminated, too

    @cached_property
    def s(self) -> Operators:
        return Operators(with_rotors(self.closure.model) if self.added else self.closure.model)

    @property
    def J(self) -> Expression:
        return self.s.J(*self.closure.frames, axes="frame")

    @property
    def B(self) -> Expression:
        return self.s.B(*self.closure.frames, axes="frame")

    def equation(self, written: bool = False, /, **results: Expression) -> Equation:
        """Named results; `written` lowers them as the papers write them."""
        forms = ("as written",) if written else NORMAL_FIRST
        if (
            self.is_thin and not written
        ):  # forms are counted over all bodies, and that would divide by what a thin one has not
            forms = (
                NORMAL_FIRST[:1]
                if any(self.s.b.letters <= e.letters for e in results.values())
                else NORMAL_FIRST[1:2]
            )
        return Equation(results, self.closure.model, forms=forms, rods=None if written else True)

    def whereabouts(self, given: Collection[str]) -> dict[str, Equation]:
        """Where the constrained frames are and, where v is given, how they move: made once, as all that is asked."""
        key = "places", *(name for name in ("v", "a") if name in given)
        if key not in self._places:
            self._places[key] = whereabouts(self.closure, given)
        return self._places[key]

    @cached_property
    def _places(self) -> dict[tuple[str, ...], dict[str, Equation]]:
        return {}

    @cached_property
    def compliances(self) -> dict[str, Equation]:
        """J M^-1 J*, and with joints that follow J M^-1 and M^-1 (entries no row needs are never computed)."""
        s, found = self.s, {}
        if self.closure.frames:
            found["X"] = self.equation(X=self.J @ s.mass.inv @ self.J.T)
        return found | self.columns if self.closure.follows else found

    @cached_property
    def columns(self) -> dict[str, Equation]:
        """J M^-1 and M^-1: what torques on joints do."""
        found = {"Y": self.equation(Y=self.s.mass.inv)}
        return (
            found | {"U": self.equation(U=self.J @ self.s.mass.inv)}
            if self.closure.frames
            else found
        )

    @cached_property
    def hub(self) -> Hub | None:
        """The mechanism that others are held by, where it pays to eliminate it last."""
        return find(self.closure, self.trunks)

    @property
    def is_thin(self) -> bool:
        """Whether a held body has no inertia of its own about some axis: then there is no Omega."""
        return self.hub is not None and self.hub.thin

    @cached_property
    def motion(self) -> Equation:
        """J itself."""
        return self.equation(J=self.J)

    @cached_property
    def inertia(self) -> Equation:
        """M, of which the hub's part is taken."""
        return self.equation(True, inertia=self.s.mass)

    @cached_property
    def correction(self) -> Equation:
        """M^-1 (J* f + u): what wrenches on frames and torques on joints add to the accelerations."""
        torque = self.J.T @ f if self.closure.frames else None
        if self.closure.follows:
            torque = u if torque is None else torque + u
        assert torque is not None
        return self.equation(a=self.s.mass.inv @ torque)


class DelassusOperator:
    """The constraints in one state of the system, from where their frames are: dense algebra, of their size."""

    def __init__(self, closure: Closure, places: Scalars):
        self.closure = closure
        self.meetings: list[ConstraintState] = meetings(closure, places)
        number = {name: i for i, name in enumerate(self.closure.frames)}
        self.pulls: list[UnitMultiplier] = []
        for meeting in self.meetings:
            ends = number.get(meeting.constraint.first), number.get(meeting.constraint.second)
            for row in meeting.rows:
                sides = zip(ends, meeting.pull(row), strict=True)
                self.pulls.append(
                    UnitMultiplier(tuple((end, pull) for end, pull in sides if end is not None))
                )
        for follow, (j, leader) in zip(self.closure.follows, self.closure.joints, strict=True):
            self.pulls.append(UnitMultiplier(torques=((j, 1.0), (leader, -follow.multiplier))))

    @property
    def bias(self) -> list:
        """What c' would be under a = 0, of velocities that keep the constraints."""
        return [x for meeting in self.meetings for x in meeting.bias] + [0.0] * len(
            self.closure.follows
        )

    @property
    def opening(self) -> list:
        """What c' would be under a = 0, of any velocities."""
        return [x for meeting in self.meetings for x in meeting.opening] + [0.0] * len(
            self.closure.follows
        )

    def errors(self, q: list) -> list:
        """How far every row is open."""
        rows = [
            0.0 if row.error is None else row.error
            for meeting in self.meetings
            for row in meeting.rows
        ]
        place = self.closure.model.joint
        for follow in self.closure.follows:
            own, leader = place(follow.joint).q_slice.start, place(follow.leader).q_slice.start
            rows.append(q[own] - follow.multiplier * q[leader] - follow.offset)
        return rows

    def rates(self, v: list) -> list:
        """c = Jc v."""
        rows = [x for meeting in self.meetings for x in rates(meeting)]
        return rows + [
            dot([c for _, c in pull.torques], [v[i] for i, _ in pull.torques])
            for pull in self.pulls[len(rows) :]
        ]

    def sense(self, motions: list, accelerations: Any) -> list:
        """Jc a, from the frames' J a (in frame axes, flat) and a itself, by coordinate."""
        at = {frame: motions[6 * frame : 6 * frame + 6] for frame in range(len(motions) // 6)}
        return [felt(pull, at, accelerations) for pull in self.pulls]

    def spread(self, multipliers: list) -> Scalars:
        """Jc* lambda, as wrenches f on the frames and torques u on the joints."""
        wrenches: list = [0.0] * (6 * len(self.closure.frames))
        torques: list = [0.0] * self.closure.model.nv
        for pull, value in zip(self.pulls, multipliers, strict=True):
            for frame, z in pull.wrenches:
                for i, x in enumerate(z):
                    wrenches[6 * frame + i] = wrenches[6 * frame + i] + x * value
            for i, c in pull.torques:
                torques[i] = torques[i] + c * value
        return {"f": wrenches, "u": torques}

    def omega(
        self, X: Scalars, rows: Sequence[int] | None = None, apart: frozenset[int] = frozenset()
    ) -> list[list]:
        """Omega = Jc M^-1 Jc*, symmetric, from X = J M^-1 J*, U = J M^-1 and Y = M^-1 (`Algebra.compliances`): of all rows, or
        of some, with the frames `apart` held still."""
        pulls = self.pulls if rows is None else [self.pulls[i] for i in rows]
        frames = list(
            dict.fromkeys(
                frame for pull in pulls for frame, _ in pull.wrenches if frame not in apart
            )
        )
        joints = list(dict.fromkeys(i for pull in pulls for i, _ in pull.torques))
        out: list[list] = [[0.0] * len(pulls) for _ in pulls]
        for b, right in enumerate(pulls):
            moved = self._moved(X, right, frames, joints)
            for a, left in enumerate(pulls[: b + 1]):
                out[a][b] = out[b][a] = felt(left, *moved)
        return out

    def reach(self, X: Scalars) -> list:
        """Row by row, what forces at its frames can do to them, whichever way they are held: the traces of their X."""
        width = 6 * len(self.closure.frames)
        own = [
            sum((X["X"][i * width + i] for i in range(6 * f, 6 * f + 6)), 0.0)
            for f in range(len(self.closure.frames))
        ]
        return [sum((own[frame] for frame, _ in pull.wrenches), 0.0) for pull in self.pulls]

    def _moved(
        self, X: Scalars, pull: UnitMultiplier, frames: list[int], joints: list[int]
    ) -> tuple[dict, dict]:
        """[J; F] M^-1 Jc* of one row: motions of the frames, accelerations of the joints that follow."""
        width, nv = 6 * len(self.closure.frames), self.closure.model.nv
        motions: dict[int, list] = {frame: [0.0] * 6 for frame in frames}
        accelerations: dict[int, Any] = dict.fromkeys(joints, 0.0)
        for frame, z in pull.wrenches:
            if frame not in motions:
                continue
            for other, motion in motions.items():
                for k in range(6):
                    start = (6 * other + k) * width + 6 * frame
                    motion[k] = motion[k] + dot(X["X"][start : start + 6], z)
            for i in joints:
                accelerations[i] = accelerations[i] + dot(
                    [X["U"][(6 * frame + k) * nv + i] for k in range(6)], z
                )
        for j, c in pull.torques:
            for other, motion in motions.items():
                for k in range(6):
                    motion[k] = motion[k] + X["U"][(6 * other + k) * nv + j] * c
            for i in joints:
                accelerations[i] = accelerations[i] + X["Y"][i * nv + j] * c
        return motions, accelerations

    def forces(self, multipliers: list) -> list:
        """The wrench every constraint imparts to the body of its second frame, world axes, at the contact: flat (l, 6)."""
        out, start = [], 0
        for meeting in self.meetings:
            own = multipliers[start : start + len(meeting.rows)]
            start += len(meeting.rows)
            for part in ("turn", "slide"):
                columns = [[getattr(row, part)[i] for row in meeting.rows] for i in range(3)]
                out += small_matrices.apply(meeting.axes, [-dot(column, own) for column in columns])
        return out


def solver(omega: list[list], reach: list, redundant: bool = False) -> Solver:
    """right -> lambda with Omega lambda = right, and the strain sum (Omega_jj / d_j)^2 of its pivots d: large when singular,
    and where a pivot is DUST beside `reach`, what the row's frames can do at all. `redundant` leaves out rows that follow from
    others, and rows of dust."""
    if redundant:
        floors = [semidefinite_solve.DUST * x for x in reach]
        loose_factors = semidefinite_solve.factor(omega, floors)
        return lambda right, _: (
            *semidefinite_solve.solve_factored(loose_factors, omega, right, floors),
            [],
        )
    factors = small_matrices.factor(omega, lambda d, _: inf if is_zero_constant(d) else 1.0 / d)
    strain = small_matrices.ill_conditioning(
        omega, factors[1], [semidefinite_solve.FAINT * x for x in reach]
    )
    return lambda right, _: (small_matrices.solve(factors, right), strain, [])


def around(
    c: DelassusOperator, hub: Hub, X: Scalars, own: Scalars
) -> tuple[list, list[GroupBlock]]:
    """The hub's mass matrix, and the block of every group (`hub.py`), from the compliances of all but the hub and the trunk,
    and what those have of their `own`: J and M of the hub, U and Y of the tree with the trunk."""
    model, nv = c.closure.model, c.closure.model.nv
    on = {i: model.frame(name).body in hub.bodies for i, name in enumerate(c.closure.frames)}
    apart = frozenset(i for i, is_hubs in on.items() if is_hubs)
    column = lambda J, i, k: [J[(6 * i + r) * nv + k] for r in range(6)]  # noqa: E731
    columns = [{i: column(own["J"], i, k) for i in apart} for k in hub.coordinates]
    units = [dict.fromkeys(range(nv), 0.0) | {k: 1.0} for k in hub.coordinates]
    columns += [{i: column(own["U"], i, k) for i in on if i not in apart} for k in hub.shared]
    units += [dict(enumerate(own["Y"][k::nv])) for k in hub.shared]
    sides = list(zip(columns, units, strict=True))
    motions = {
        i: small_matrices.transpose([side.get(i, [0.0] * 6) for side in columns]) for i in on
    }
    reach, blocks = c.reach(X), []
    for group in hub.groups:
        B = [[felt(c.pulls[i], *side) for side in sides] for i in group]
        moved = [
            [row for frame, _ in c.pulls[i].wrenches for row in motions.get(frame, ())]
            for i in group
        ]
        blocks.append(GroupBlock(c.omega(X, group, apart), B, [reach[i] for i in group], moved))
    M = [
        [own["M"][i * nv + j] for j in hub.coordinates] + [0.0] * len(hub.shared)
        for i in hub.coordinates
    ]
    Y = [
        [0.0] * len(hub.coordinates) + [own["Y"][i * nv + j] for j in hub.shared]
        for i in hub.shared
    ]
    return M + Y, blocks
