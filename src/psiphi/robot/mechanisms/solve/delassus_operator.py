"""The Delassus operator Omega, which couples mechanisms through their constraints.

The rows of all constraints are c' = Jc a + bias with Jc = Z [J; F]: Z maps the motions J of the
constrained frames to rows, F selects the mimic joints. The multipliers lambda make c' = 0:

    Omega = Jc M^-1 Jc*      Omega lambda = -(Jc a_f + bias)      a = a_f + M^-1 Jc* lambda

For arms around an object, Omega is J M^-1 J* + A M(C)^-1 A* of S4; the object is one more
mechanism. The terms of the mechanisms are O(N) sweeps (operator expressions); the dense system
has the size of the constraints. All functions run on floats, arrays and tape scalars.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, TypeAlias

from psiphi._util.array_types import AnyScalar
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators, with_rotors
from psiphi.compiler.equations import Equation
from psiphi.model.loops.constraints import Closure
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import dot, is_zero_constant
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.hub import Hub, find_hub
from psiphi.robot.mechanisms.solve.hub_elimination import GroupBlock, Solver
from psiphi.robot.mechanisms.solve.relative_motion import (
    ConstraintState,
    Scalars,
    constraint_states,
    frame_equations,
    row_rates,
)

f, u = vector("f", "frame"), vector("u")
Accelerations: TypeAlias = "Sequence[Any] | Mapping[int, Any]"  # by velocity coordinate
# forms of an equation whose operations are counted; a large system takes the first one uncounted
FORMS = ("body forces whole", "rewritten", "as written")


@dataclass(frozen=True)
class UnitMultiplier:
    """The forces of a unit multiplier of one row: (frame index, wrench in frame axes) and
    (coordinate, torque)."""

    wrenches: tuple[tuple[int, list], ...] = ()
    torques: tuple[tuple[int, AnyScalar], ...] = ()


def constraint_row(
    unit: UnitMultiplier, motions: Mapping[int, list], accelerations: Accelerations
) -> Any:
    """One row of Jc a; frames without an entry in `motions` do not move."""
    total: Any = 0.0
    for frame, z in unit.wrenches:
        if frame in motions:
            total = total + dot(z, motions[frame])
    for i, c in unit.torques:
        total = total + c * accelerations[i]
    return total


@dataclass(frozen=True)
class Algebra:
    """The operator expressions of a closed system."""

    closure: Closure
    added: bool = False  # a diagonal input is added to D, as rotor inertias are
    trunks: bool = True  # bodies that several arms share may be eliminated as part of the hub

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
        """An equation with named results; `written` lowers them as the papers write them."""
        forms = ("as written",) if written else FORMS
        if self.is_thin and not written:
            # counting runs over all bodies, and would divide by the singular inertia of the hub
            forms = (
                FORMS[:1]
                if any(self.s.b.letters <= e.letters for e in results.values())
                else FORMS[1:2]
            )
        return Equation(
            results, self.closure.model, forms=forms, movable_inertia=None if written else True
        )

    def frame_equations(self, given: Collection[str]) -> dict[str, Equation]:
        """Poses of the constrained frames and, with v or a in `given`, their motions; cached."""
        key = "poses", *(name for name in ("v", "a") if name in given)
        if key not in self._frame_equations:
            self._frame_equations[key] = frame_equations(self.closure, given)
        return self._frame_equations[key]

    @cached_property
    def _frame_equations(self) -> dict[tuple[str, ...], dict[str, Equation]]:
        return {}

    @cached_property
    def compliances(self) -> dict[str, Equation]:
        """J M^-1 J*, and with mimic joints J M^-1 and M^-1; entries that no row reads are dropped
        by the compiler."""
        s, found = self.s, {}
        if self.closure.frames:
            found["X"] = self.equation(X=self.J @ s.mass.inv @ self.J.T)
        return found | self.columns if self.closure.mimics else found

    @cached_property
    def columns(self) -> dict[str, Equation]:
        """J M^-1 and M^-1: the responses to joint torques."""
        found = {"Y": self.equation(Y=self.s.mass.inv)}
        return (
            found | {"U": self.equation(U=self.J @ self.s.mass.inv)}
            if self.closure.frames
            else found
        )

    @cached_property
    def hub(self) -> Hub | None:
        """The mechanism to eliminate last, or None if that does not pay."""
        return find_hub(self.closure, self.trunks)

    @property
    def is_thin(self) -> bool:
        """Whether the inertia of the held body is singular; Omega does not exist then."""
        return self.hub is not None and self.hub.thin

    @cached_property
    def motion(self) -> Equation:
        """J of the constrained frames."""
        return self.equation(J=self.J)

    @cached_property
    def inertia(self) -> Equation:
        """The mass matrix; the hub uses its own block of it."""
        return self.equation(True, inertia=self.s.mass)

    @cached_property
    def correction(self) -> Equation:
        """M^-1 (J* f + u): accelerations due to wrenches f on frames and torques u on joints."""
        torque = self.J.T @ f if self.closure.frames else None
        if self.closure.mimics:
            torque = u if torque is None else torque + u
        assert torque is not None
        return self.equation(a=self.s.mass.inv @ torque)


class DelassusOperator:
    """All constraints of a system in one state: Jc, its transpose, the bias, and Omega."""

    def __init__(self, closure: Closure, places: Scalars):
        self.closure = closure
        self.states: list[ConstraintState] = constraint_states(closure, places)
        number = {name: i for i, name in enumerate(self.closure.frames)}
        self.unit_multipliers: list[UnitMultiplier] = []
        for state in self.states:
            ends = number.get(state.constraint.first), number.get(state.constraint.second)
            for row in state.rows:
                sides = zip(ends, state.unit_wrenches(row), strict=True)
                self.unit_multipliers.append(
                    UnitMultiplier(tuple((end, z) for end, z in sides if end is not None))
                )
        for follow, (j, leader) in zip(self.closure.mimics, self.closure.joints, strict=True):
            self.unit_multipliers.append(
                UnitMultiplier(torques=((j, 1.0), (leader, -follow.multiplier)))
            )

    @property
    def bias(self) -> list:
        """dJc/dt v = c' at a = 0, for velocities that satisfy the constraints (Jc v = 0)."""
        return [x for state in self.states for x in state.bias] + [0.0] * len(self.closure.mimics)

    @property
    def full_bias(self) -> list:
        """dJc/dt v = c' at a = 0, for any velocities."""
        rows = [x for state in self.states for x in state.full_bias]
        return rows + [0.0] * len(self.closure.mimics)

    def errors(self, q: list) -> list:
        """e(q), the position error of every row; zero for rows on velocities only."""
        rows = [
            0.0 if row.error is None else row.error for state in self.states for row in state.rows
        ]
        joint = self.closure.model.joint
        for follow in self.closure.mimics:
            own, leader = joint(follow.joint).q_slice.start, joint(follow.leader).q_slice.start
            rows.append(q[own] - follow.multiplier * q[leader] - follow.offset)
        return rows

    def rates(self, v: list) -> list:
        """c = Jc v."""
        rows = [x for state in self.states for x in row_rates(state)]
        return rows + [
            dot([c for _, c in unit.torques], [v[i] for i, _ in unit.torques])
            for unit in self.unit_multipliers[len(rows) :]
        ]

    def apply(self, motions: list, accelerations: Accelerations) -> list:
        """Jc a, from J a of the frames (flat, in frame axes) and a by coordinate."""
        by_frame = {frame: motions[6 * frame : 6 * frame + 6] for frame in range(len(motions) // 6)}
        return [constraint_row(unit, by_frame, accelerations) for unit in self.unit_multipliers]

    def apply_transpose(self, multipliers: list) -> Scalars:
        """Jc* lambda: wrenches f on the frames and torques u on the joints."""
        wrenches: list = [0.0] * (6 * len(self.closure.frames))
        torques: list = [0.0] * self.closure.model.nv
        for unit, value in zip(self.unit_multipliers, multipliers, strict=True):
            for frame, z in unit.wrenches:
                for i, x in enumerate(z):
                    wrenches[6 * frame + i] = wrenches[6 * frame + i] + x * value
            for i, c in unit.torques:
                torques[i] = torques[i] + c * value
        return {"f": wrenches, "u": torques}

    def omega(
        self, X: Scalars, rows: Sequence[int] | None = None, fixed: frozenset[int] = frozenset()
    ) -> list[list]:
        """Omega = Jc M^-1 Jc*, symmetric, from X = J M^-1 J*, U = J M^-1 and Y = M^-1
        (`Algebra.compliances`); of all rows or of `rows`, with the frames `fixed` held still."""
        units = self.unit_multipliers if rows is None else [self.unit_multipliers[i] for i in rows]
        frames = list(
            dict.fromkeys(
                frame for unit in units for frame, _ in unit.wrenches if frame not in fixed
            )
        )
        joints = list(dict.fromkeys(i for unit in units for i, _ in unit.torques))
        out: list[list] = [[0.0] * len(units) for _ in units]
        for b, right in enumerate(units):
            response = self._response(X, right, frames, joints)
            for a, left in enumerate(units[: b + 1]):
                out[a][b] = out[b][a] = constraint_row(left, *response)
        return out

    def row_scales(self, X: Scalars) -> list:
        """For each row the trace of X of its frames: the size of the row whatever its direction.
        A diagonal entry of Omega that is tiny relative to it is rounding."""
        width = 6 * len(self.closure.frames)
        traces = [
            sum((X["X"][i * width + i] for i in range(6 * f, 6 * f + 6)), 0.0)
            for f in range(len(self.closure.frames))
        ]
        return [
            sum((traces[frame] for frame, _ in unit.wrenches), 0.0)
            for unit in self.unit_multipliers
        ]

    def _response(
        self, X: Scalars, unit: UnitMultiplier, frames: list[int], joints: list[int]
    ) -> tuple[dict, dict]:
        """[J; F] M^-1 Jc* of one row: motions of the frames, accelerations of the joints."""
        width, nv = 6 * len(self.closure.frames), self.closure.model.nv
        motions: dict[int, list] = {frame: [0.0] * 6 for frame in frames}
        accelerations: dict[int, Any] = dict.fromkeys(joints, 0.0)
        for frame, z in unit.wrenches:
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
        for j, c in unit.torques:
            for other, motion in motions.items():
                for k in range(6):
                    motion[k] = motion[k] + X["U"][(6 * other + k) * nv + j] * c
            for i in joints:
                accelerations[i] = accelerations[i] + X["Y"][i * nv + j] * c
        return motions, accelerations

    def forces(self, multipliers: list) -> list:
        """The wrench of each constraint on the body of its second frame, in world axes, at the
        contact: flat (l, 6)."""
        out, start = [], 0
        for state in self.states:
            own = multipliers[start : start + len(state.rows)]
            start += len(state.rows)
            for part in ("turn", "slide"):
                columns = [[getattr(row, part)[i] for row in state.rows] for i in range(3)]
                out += small_matrices.apply(state.axes, [-dot(column, own) for column in columns])
        return out


def omega_solver(omega: list[list], row_scales: list, redundant: bool = False) -> Solver:
    """A solver of Omega lambda = right.

    Its ill-conditioning is sum (Omega_jj / d_j)^2 over the pivots d; it also grows where a pivot
    is rounding relative to `row_scales`. With `redundant`, redundant and negligible rows are
    skipped.
    """
    if redundant:
        rounding = [semidefinite_solve.ROW_ROUNDING * x for x in row_scales]
        semidefinite_factors = semidefinite_solve.factor(omega, rounding)
        return lambda right, _: (
            *semidefinite_solve.solve_factored(semidefinite_factors, omega, right, rounding),
            [],
        )
    factors = small_matrices.factor(omega, lambda d, _: inf if is_zero_constant(d) else 1.0 / d)
    ill_conditioning = small_matrices.ill_conditioning(
        omega, factors[1], [semidefinite_solve.ROUNDING_WEIGHT * x for x in row_scales]
    )
    return lambda right, _: (small_matrices.solve(factors, right), ill_conditioning, [])


def hub_blocks(
    c: DelassusOperator, hub: Hub, X: Scalars, own: Scalars
) -> tuple[list, list[GroupBlock]]:
    """The mass matrix of hub and trunk, and the block of every group (`hub.py`).

    X: the compliances of the other bodies with hub and trunk at rest. `own`: J and M of the hub,
    U and Y of the tree that contains the trunk.
    """
    model, nv = c.closure.model, c.closure.model.nv
    on_hub = {i: model.frame(name).body in hub.bodies for i, name in enumerate(c.closure.frames)}
    fixed = frozenset(i for i, is_on_hub in on_hub.items() if is_on_hub)
    column = lambda J, i, k: [J[(6 * i + r) * nv + k] for r in range(6)]  # noqa: E731
    columns = [{i: column(own["J"], i, k) for i in fixed} for k in hub.coordinates]
    units = [dict.fromkeys(range(nv), 0.0) | {k: 1.0} for k in hub.coordinates]
    columns += [
        {i: column(own["U"], i, k) for i in on_hub if i not in fixed} for k in hub.trunk_coordinates
    ]
    units += [dict(enumerate(own["Y"][k::nv])) for k in hub.trunk_coordinates]
    sides = list(zip(columns, units, strict=True))
    motions = {
        i: small_matrices.transpose([side.get(i, [0.0] * 6) for side in columns]) for i in on_hub
    }
    scales, blocks = c.row_scales(X), []
    for group in hub.groups:
        B = [[constraint_row(c.unit_multipliers[i], *side) for side in sides] for i in group]
        hub_motions = [
            [row for frame, _ in c.unit_multipliers[i].wrenches for row in motions.get(frame, ())]
            for i in group
        ]
        S = c.omega(X, group, fixed)
        blocks.append(GroupBlock(S, B, [scales[i] for i in group], hub_motions))
    M = [
        [own["M"][i * nv + j] for j in hub.coordinates] + [0.0] * len(hub.trunk_coordinates)
        for i in hub.coordinates
    ]
    Y = [
        [0.0] * len(hub.coordinates) + [own["Y"][i * nv + j] for j in hub.trunk_coordinates]
        for i in hub.trunk_coordinates
    ]
    return M + Y, blocks
