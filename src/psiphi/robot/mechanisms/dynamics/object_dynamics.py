"""Inverse dynamics of a held object as a program: motor torques for its desired motion, and the
distribution of the load over the contacts.

A contact is a *hand* (an arm holds the object), a *ground* (the world does) or an inner loop of the
arms. Jm, Jo: the columns of Jc of the arms and of the object; p: the coordinates without motors,
which include those of the object; Om = Jm M^-1 Jm* of all rows but grounds; w: the known external
wrench on the object; lam_d: the desired contact multipliers.

    a_o = u_o
    a_m = u_m - M^-1 Jm* Om^+ (Jm u_m + Jo u_o + bias)    the arms follow the object
    a = a - M^-1 Jc* Omega^+ (Jc a + bias)                with grounds: the nearest feasible motion
    T = M a + C v + g - w
    lam = lam_d + S Jp (Jp* S Jp)^+ (T_p - Jp* lam_d)     load shares; grounds carry lam_d only
    tau = T - Jc* lam

The motion of coordinates b without motors that are loaded by hands alone (a flying base) follows
from the dynamics. Then lam is computed first, for the object alone, and

    [Om   Jb  ] [mu]     [Jm u_m + Jo u_o + bias     ]
    [Jb*  M_bb] [z ] = - [(M u + C v + g)_b - Jb* lam],    a_m = u_m + M^-1 Jm* mu + z

S of a hand is (N V N*)^-1 with its rows N and the inverse weight V = W^-1: of all forces that the
contact can apply, those nearest to the desired ones by (f - f_d)* W^-1 (f - f_d). If the weights
are spatial inertias of parts of the object, the shares do not squeeze it: the parts, joined
rigidly, would have no force between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import Error, SingularError, StateError
from psiphi.algebra.expressions.expression import vector
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.components import path_to_body
from psiphi.model.loops.constraints import Closure, Constraint
from psiphi.model.model import WORLD, Joint
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import add, dot
from psiphi.robot.mechanisms.dynamics.closed_inverse_dynamics import (
    NEAREST_PLACES,
    contact_multipliers,
    motor_torques,
    nearest_acceleration,
    torques_of,
)
from psiphi.robot.mechanisms.dynamics.system_stages import motion_rows
from psiphi.robot.mechanisms.forest import Forest
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.constraint_solve import HUB_PLACES, solver_stages
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.solve.relative_motion import ConstraintState
from psiphi.robot.mechanisms.solve.stage_program import (
    BodySubset,
    StageDefinition,
    StagePlaces,
    StageProgramCode,
    StageRule,
    arguments,
)

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

u = vector("u")
LEVER_ROUNDING = 1e-16  # square of a relative lever (1e-8 m at 1 m) that counts as zero
HAND, GROUND, INNER = "hand", "ground", "inner"


@dataclass(frozen=True)
class GraspMap:
    """The held object: its body, its free joint, and the role of each constraint."""

    closure: Closure
    body: int
    unactuated: tuple[int, ...]  # all velocity coordinates without motors

    @property
    def joint(self) -> Joint:
        """The free joint of the object."""
        return self.closure.model.joints[self.body]

    @property
    def coordinates(self) -> range:
        """The velocity coordinates of the object."""
        return self.joint.coordinates

    @property
    def roles(self) -> tuple[str, ...]:
        """HAND, GROUND or INNER, for each constraint."""
        return tuple(map(self._role, self.closure.constraints))

    def _role(self, constraint: Constraint) -> str:
        bodies = {
            self.closure.model.frame(name).body for name in (constraint.first, constraint.second)
        }
        return INNER if self.body not in bodies else GROUND if WORLD in bodies else HAND

    @property
    def arm_rows(self) -> list[int]:
        """The rows that constrain arms: all rows but those of grounds."""
        grounds = {
            r
            for role, own in zip(self.roles, self.closure.slices, strict=False)
            if role == GROUND
            for r in _indices(own)
        }
        return [r for r in range(self.closure.size) if r not in grounds]

    @property
    def floating(self) -> list[int]:
        """The coordinates without motors that belong neither to the object nor to an inner loop."""
        bound: set[int] = set(self.coordinates)
        for role, c in zip(self.roles, self.closure.constraints, strict=True):
            ends = [self._path(self.closure.model.frame(name).body) for name in (c.first, c.second)]
            bound |= ends[0] ^ ends[1] if role == INNER else set()
        bound |= {i for pair in self.closure.joints for i in pair}
        return [i for i in self.unactuated if i not in bound]

    def _path(self, body: int) -> set[int]:
        """The velocity coordinates between the world and a body."""
        model = self.closure.model
        return {
            i for k in path_to_body(model.parent, body) for i in _indices(model.joints[k].v_slice)
        }

    @property
    def frames(self) -> list[int]:
        """The indices of the constrained frames on the object."""
        return [
            i
            for i, name in enumerate(self.closure.frames)
            if self.closure.model.frame(name).body == self.body
        ]


def _indices(own: slice) -> range:
    return range(own.start, own.stop)


def grasp_map(system: Forest) -> GraspMap:
    """The held object of a system; an error if there is none, or none that can be controlled."""
    if not system.object:
        raise StateError(f"{system.name} holds no object", "make the system with pp.grasp")
    model = system.closure.model
    body = model.frame(system.object).body
    if model.joints[body].kind != "free" or body in model.parent or model.parent[body] != WORLD:
        raise StateError(
            f"the object {system.object} is not a single free body", "hold a pp.Body with pp.grasp"
        )
    found = GraspMap(system.closure, body, tuple(system.idle.tolist()))
    if HAND not in found.roles:
        raise StateError(
            f"no arm holds {system.object}", "pp.grasp takes arms=[(robot, base pose, frame), ...]"
        )
    if found.floating and (
        GROUND in found.roles
        or len(found.floating) + len(found.coordinates) < len(found.unactuated)
    ):
        raise StateError(
            f"{system.name} has joints without motors that only {system.object} loads, together "
            "with contacts to the world or inner loops of the arms",
            "give these joints motors (actuated=), or leave out these contacts and loops",
        )
    return found


def object_inverse_dynamics(
    algebra: Algebra, grasp: GraspMap, method: str = "free"
) -> StageProgramCode:
    """q, v, u, w, wanted, weights -> tau, ill_conditioning.

    `wanted` (l, 6) are the desired contact wrenches and `weights` (l, 6, 6) the matrices V, both in
    axes of the second frames. Grounds are solved by Omega, or by eliminating the hub.
    """
    count = len(grasp.closure.constraints)
    more = Argument("w", (6,)), Argument("wanted", (6 * count,)), Argument("weights", (36 * count,))
    inverse = torques_of(algebra)
    arms = tuple(k for k in range(len(algebra.closure.model.bodies)) if k != grasp.body)
    stages: dict[str, StageDefinition] = motion_rows(algebra)
    stages |= {name: BodySubset(equation, arms) for name, equation in algebra.compliances.items()}
    if grasp.floating:
        stages |= {
            "desired": inverse,
            "mass": algebra.inertia,
            "share": _load_sharing(grasp, list(grasp.coordinates)),
        }
    stages |= {
        "follow": _arm_motion(algebra, grasp),
        "arms": BodySubset(algebra.correction, arms),
        "sum": _sum_accelerations,
    }
    if GROUND in grasp.roles:
        stages |= {
            **solver_stages(algebra, method, redundant=True),
            **nearest_acceleration(algebra, method, "a"),
        }
    stages["inverse"] = inverse
    if not grasp.floating:
        stages["share"] = _load_sharing(grasp, list(grasp.unactuated))
    stages["torque"] = lambda places: {
        "tau": motor_torques(places["Jc"], places["T"], places["lam"], grasp.unactuated)
    }
    named = HUB_PLACES | NEAREST_PLACES | {("arms", "u"): "constraint u", ("arms", "a"): "da"}
    named |= {("inverse", "u"): "a", ("mass", "inertia"): "mass"}
    nv, unactuated = algebra.closure.model.nv, ",".join(map(str, grasp.unactuated))
    outputs = Argument("tau", (nv,), "v"), Argument("ill_conditioning", ())
    name = f"closed object inverse dynamics {method} {grasp.joint.name} {unactuated}"
    inputs = (*arguments(algebra, "q", "v", "u"), *more)
    return StageProgramCode(
        name, "M a + C v + g - w - Jc* lambda", inputs, outputs, algebra, stages, named
    )


def _sum_accelerations(places: StagePlaces) -> StagePlaces:
    """a: the desired acceleration, the constraint response, and the motion of floating joints."""
    return {"a": add(add(places["u"], places["da"]), places["floating a"])}


def _row_accelerations(places: StagePlaces, a: list) -> list:
    """Jc a + bias."""
    return [dot(row, a) + b for row, b in zip(places["Jc"], places["c"].bias, strict=True)]


def _arm_motion(algebra: Algebra, grasp: GraspMap) -> StageRule:
    """The constraint forces with which the arms follow the object, and the floating motion z."""
    closure, rows, floating = algebra.closure, grasp.arm_rows, grasp.floating
    fixed = frozenset(grasp.frames)  # the object's acceleration is given

    def follow(places: StagePlaces) -> StagePlaces:
        c: DelassusOperator = places["c"]
        Om = c.omega({name: places[name] for name in algebra.compliances}, rows, fixed)
        Jc, nv = places["Jc"], closure.model.nv
        right = _row_accelerations(places, places["u"])
        matrix = [[*row, *(Jc[i][b] for b in floating)] for i, row in zip(rows, Om, strict=True)]
        matrix += [
            [*(Jc[i][b] for i in rows), *(places["mass"][b * nv + k] for k in floating)]
            for b in floating
        ]
        forces = [places["T"][b] - dot([row[b] for row in Jc], places["lam"]) for b in floating]
        solution, ill_conditioning = semidefinite_solve.solve(
            matrix, [-x for x in (*(right[i] for i in rows), *forces)]
        )
        multipliers: list = [0.0] * len(right)
        floating_a: list = [0.0] * nv
        for i, value in zip(rows, solution, strict=False):
            multipliers[i] = value
        for b, value in zip(floating, solution[len(rows) :], strict=True):
            floating_a[b] = value
        spread = c.apply_transpose(multipliers)
        wrenches = [0.0 if k // 6 in fixed else x for k, x in enumerate(spread["f"])]
        if floating:
            ill_conditioning = ill_conditioning + places["ill_conditioning"][0]
        return {
            "f": wrenches,
            "constraint u": spread["u"],
            "floating a": floating_a,
            "ill_conditioning": [ill_conditioning],
        }

    return follow


def _load_sharing(grasp: GraspMap, unactuated: list[int]) -> StageRule:
    """lam: the contact multipliers that act on the coordinates `unactuated`."""

    def share(places: StagePlaces) -> StagePlaces:
        c, Jc = places["c"], places["Jc"]
        T = list(places["T"])
        for i, x in zip(grasp.coordinates, places["w"], strict=True):
            T[i] = T[i] - x
        desired = _multipliers(c.states, places["wanted"]) + [0.0] * len(grasp.closure.mimics)
        lam, ill_conditioning = contact_multipliers(
            Jc,
            T,
            unactuated,
            lambda gram, missing: semidefinite_solve.solve(_without_rounding(gram), missing),
            lambda column: _share_weighted(c.states, grasp.roles, column, places["weights"]),
            desired,
        )
        before = places.get("ill_conditioning", [0.0])[0]
        return {"lam": lam, "ill_conditioning": [before + ill_conditioning]}

    return share


def _without_rounding(gram: list) -> list:
    """Zero rows and columns of coordinates that contacts move by rounding alone."""
    total: Any = 0.0
    for i, row in enumerate(gram):
        total = total + row[i]
    keep = [less(LEVER_ROUNDING * total, row[i]) for i, row in enumerate(gram)]
    return [
        [a * b * x for b, x in zip(keep, row, strict=True)]
        for a, row in zip(keep, gram, strict=True)
    ]


def _multipliers(states: list[ConstraintState], wrenches: list) -> list:
    """lambda of wrenches on the bodies of the second frames, in their axes: the components along
    the rows, which are orthonormal."""
    by_contact = [wrenches[6 * i : 6 * i + 6] for i in range(len(states))]
    return [
        -(dot(row.turn, f[:3]) + dot(row.slide, f[3:]))
        for state, f in zip(states, by_contact, strict=True)
        for row in state.rows
    ]


def _share_weighted(
    states: list[ConstraintState], roles: tuple[str, ...], column: list, weights: list
) -> list:
    """S x: (N V N*)^-1 x for hands, zero for grounds, x itself for other rows."""
    out, start = [], 0
    for i, (state, role) in enumerate(zip(states, roles, strict=True)):
        own = column[start : start + len(state.rows)]
        start += len(own)
        if role == HAND:
            V = [weights[36 * i + 6 * r : 36 * i + 6 * r + 6] for r in range(6)]
            N = [[*row.turn, *row.slide] for row in state.rows]
            inner = small_matrices.product(
                small_matrices.product(N, V), small_matrices.transpose(N)
            )
            out += small_matrices.solve(small_matrices.factor(inner), own)
        else:
            out += [0.0] * len(own) if role == GROUND else own
    return out + column[start:]


def object_torques(
    system: System,
    q: Numbers,
    v: Numbers,
    u: Numbers,
    w: np.ndarray,
    wanted: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """tau (..., nv), compiled. An infeasible element is NaN; a single state raises an error."""
    q, v, u = system.state_arrays(q=q, v=v, u=u)
    tau, ill_conditioning = system.call_function(
        system.object_torque_function, (q, v, u, w, wanted, weights)
    )
    infeasible = ~(ill_conditioning < ILL_CONDITIONED)
    if not np.any(infeasible):
        return tau
    if not np.ndim(ill_conditioning):
        raise infeasible_motion_error(system, q, v, u)
    return np.where(infeasible[..., None], np.nan, tau)


def infeasible_motion_error(system: System, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> Error:
    """The error that says why no torques produce the desired motion of one state."""
    grasp = grasp_map(system)
    exactly = () if GROUND in grasp.roles else (grasp.joint.name,)
    try:
        system.inverse_dynamics(q, v, system.complete(q, v, u, exactly))
    except StateError as error:
        return error
    return SingularError(
        f"the arms that hold {system.object} are too close to a singularity: their accelerations "
        "cannot be computed",
        "move the object elsewhere, or start from another configuration",
    )
