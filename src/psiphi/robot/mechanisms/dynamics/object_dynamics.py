"""Control of a held object as a program: what the motors must do so that it moves as wanted, and who carries what.

Contacts are *hands* (an arm holds the object), *grounds* (the world does) or inner loops of the arms. Jm, Jo: the columns of Jc
of the arms and of the object; p: the coordinates without motors, the object's among them; Om = Jm M^-1 Jm* of the rows that are
no grounds; w: what the surroundings are known to do to the object; lam_d: the wanted contact forces.

    a_o = u_o,  a_m = u_m - M^-1 Jm* Om^+ (Jm u_m + Jo u_o + bias)    the arms follow; the rest of u_m moves no object
    a = a - M^-1 Jc* Omega^+ (Jc a + bias)                            on grounds: the nearest motion, by the mass matrix
    T = M a + C v + g - w
    lam = lam_d + S Jp (Jp* S Jp)^+ (T_p - Jp* lam_d)                 load shares: grounds have none, lam_d is what they get
    tau = T - Jc* lam

Joints b without motors that only hands load (a flying base) move as they must: lam comes first, of the object alone, and

    [Om   Jb  ] [mu]     [Jm u_m + Jo u_o + bias     ]
    [Jb*  M_bb] [z ] = - [(M u + C v + g)_b - Jb* lam],    a_m = u_m + M^-1 Jm* mu + z

S of a hand is (N V N*)^-1, N its rows, V = W^-1 the inverse weight: of all forces its kind of contact can give, those nearest
to the wanted ones by (f - f_d)* W^-1 (f - f_d). Weights that are spatial inertias of pieces do not squeeze: joined rigidly,
such pieces would feel no force between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import Error, SingularError, StateError
from psiphi.algebra.expressions.expression import vector
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.components import way_to
from psiphi.model.loops.constraints import Closure, Constraint
from psiphi.model.model import WORLD, Joint
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import add, dot
from psiphi.robot.mechanisms.dynamics.closed_inverse_dynamics import (
    NEAREST_PLACES,
    at_motors,
    carried,
    nearest,
    torques_of,
)
from psiphi.robot.mechanisms.dynamics.system_stages import motion_rows
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.constraint_solve import HUB_PLACES, coupling
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN
from psiphi.robot.mechanisms.solve.relative_motion import ConstraintState
from psiphi.robot.mechanisms.solve.stage_program import (
    BodySubset,
    CircuitStage,
    StagePlaces,
    StageProgramCode,
    StageRule,
    arguments,
)

u = vector("u")
ROUNDING = 1e-16  # levers below 1e-8 m are none
HAND, GROUND, INNER = "hand", "ground", "inner"


@dataclass(frozen=True)
class GraspMap:
    """Who holds the object: its body, its free joint, and what each constraint is to it."""

    closure: Closure
    body: int
    idle: tuple[int, ...]  # all coordinates without motors

    @property
    def joint(self) -> Joint:
        return self.closure.model.joints[self.body]

    @property
    def own(self) -> range:
        """The object's velocity coordinates."""
        return self.joint.coordinates

    @property
    def roles(self) -> tuple[str, ...]:
        """HAND, GROUND or INNER, a constraint."""
        return tuple(map(self._role, self.closure.constraints))

    def _role(self, constraint: Constraint) -> str:
        bodies = {
            self.closure.model.frame(name).body for name in (constraint.first, constraint.second)
        }
        return INNER if self.body not in bodies else GROUND if WORLD in bodies else HAND

    @property
    def arm_rows(self) -> list[int]:
        """The rows that bind arms: all but those of grounds."""
        grounds = {
            r
            for role, own in zip(self.roles, self.closure.slices, strict=False)
            if role == GROUND
            for r in rows(own)
        }
        return [r for r in range(self.closure.size) if r not in grounds]

    @property
    def adrift(self) -> list[int]:
        """The coordinates without motors that are neither the object's nor part of an inner loop."""
        bound: set[int] = set(self.own)
        for role, c in zip(self.roles, self.closure.constraints, strict=True):
            ends = [self._path(self.closure.model.frame(name).body) for name in (c.first, c.second)]
            bound |= ends[0] ^ ends[1] if role == INNER else set()
        bound |= {i for pair in self.closure.joints for i in pair}
        return [i for i in self.idle if i not in bound]

    def _path(self, body: int) -> set[int]:
        """The velocity coordinates between the world and a body."""
        model = self.closure.model
        return {i for k in way_to(model.parent, body) for i in rows(model.joints[k].v_slice)}

    @property
    def frames(self) -> list[int]:
        """The numbers of the constrained frames on the object."""
        return [
            i
            for i, name in enumerate(self.closure.frames)
            if self.closure.model.frame(name).body == self.body
        ]


def rows(own: slice) -> range:
    return range(own.start, own.stop)


def held(system: Any) -> GraspMap:
    """The object of a system, or an error."""
    if not system.object:
        raise StateError(f"{system.name} holds no object", "pp.grasp makes a system that holds one")
    model = system.closure.model
    body = model.frame(system.object).body
    if model.joints[body].kind != "free" or body in model.parent or model.parent[body] != WORLD:
        cause = f"the object {system.object} is no single free body"
        raise StateError(cause, "hold a body with pp.grasp")
    found = GraspMap(system.closure, body, tuple(system.idle.tolist()))
    if HAND not in found.roles:
        raise StateError(
            f"no arm holds {system.object}", "pp.grasp takes arms=[(robot, base pose, frame), ...]"
        )
    if found.adrift and (
        GROUND in found.roles or len(found.adrift) + len(found.own) < len(found.idle)
    ):
        cause = f"{system.name} has joints without motors that nothing but {system.object} loads, beside loops"
        raise StateError(
            cause,
            "give these joints motors (actuated=), or leave the loops to the world and of the arms out",
        )
    return found


def carrying(algebra: Algebra, holding: GraspMap, method: str = "free") -> StageProgramCode:
    """q, v, u, w, wanted, weights -> tau, strain; `wanted` (l, 6) and V = `weights` (l, 6, 6), in axes of the second frames.
    Where grounds bind the object, by Omega or around the hub."""
    count = len(holding.closure.constraints)
    more = Argument("w", (6,)), Argument("wanted", (6 * count,)), Argument("weights", (36 * count,))
    inverse = torques_of(algebra)
    arms = [
        k for k in range(len(algebra.closure.model.bodies)) if k != holding.body
    ]  # the object does not yield to them
    stages: dict[str, CircuitStage] = motion_rows(algebra)
    stages |= {
        name: BodySubset(equation, tuple(arms)) for name, equation in algebra.compliances.items()
    }
    if holding.adrift:
        stages |= {
            "wish": inverse,
            "mass": algebra.inertia,
            "share": _share(holding, list(holding.own)),
        }
    stages |= {
        "follow": _follow(algebra, holding),
        "arms": BodySubset(algebra.correction, tuple(arms)),
        "followed": _moved,
    }
    if GROUND in holding.roles:
        stages |= {**coupling(algebra, method, redundant=True), **nearest(algebra, method, "a")}
    stages["inverse"] = inverse
    if not holding.adrift:
        stages["share"] = _share(holding, list(holding.idle))
    stages["torque"] = lambda places: {
        "tau": at_motors(places["Jc"], places["T"], places["lam"], holding.idle)
    }
    named = HUB_PLACES | NEAREST_PLACES | {("arms", "u"): "pushed", ("arms", "a"): "da"}
    named |= {("inverse", "u"): "a", ("mass", "inertia"): "mass"}
    outputs = Argument("tau", (algebra.closure.model.nv,), "v"), Argument("strain", ())
    name = f"closed carrying {method} {holding.joint.name} {','.join(map(str, holding.idle))}"
    inputs = (*arguments(algebra, "q", "v", "u"), *more)
    return StageProgramCode(
        name, "M a + C v + g - w - Jc* lambda", inputs, outputs, algebra, stages, named
    )


def _moved(places: StagePlaces) -> StagePlaces:
    """a = what was wished, what pushes do, and what moves as it must."""
    return {"a": add(add(places["u"], places["da"]), places["fallen"])}


def _opened(places: StagePlaces, a: list) -> list:
    """Jc a + bias."""
    return [dot(row, a) + b for row, b in zip(places["Jc"], places["c"].bias, strict=True)]


def _follow(algebra: Algebra, holding: GraspMap) -> StageRule:
    """The arms do what the object's motion asks of them."""
    closure, bound, adrift, apart = (
        algebra.closure,
        holding.arm_rows,
        holding.adrift,
        frozenset(holding.frames),
    )

    def follow(places: StagePlaces) -> StagePlaces:
        c: DelassusOperator = places["c"]
        whole = c.omega(
            {name: places[name] for name in algebra.compliances}, bound, apart
        )  # the object does not yield
        Jc, nv = places["Jc"], closure.model.nv
        opened = _opened(places, places["u"])
        inner = [[*row, *(Jc[i][b] for b in adrift)] for i, row in zip(bound, whole, strict=True)]
        inner += [
            [*(Jc[i][b] for i in bound), *(places["mass"][b * nv + k] for k in adrift)]
            for b in adrift
        ]
        asked = [places["T"][b] - dot([row[b] for row in Jc], places["lam"]) for b in adrift]
        found, strain = semidefinite_solve.solve(
            inner, [-x for x in (*(opened[i] for i in bound), *asked)]
        )
        multipliers: list = [0.0] * len(opened)
        fallen: list = [0.0] * nv
        for i, value in zip(bound, found, strict=False):
            multipliers[i] = value
        for b, value in zip(adrift, found[len(bound) :], strict=True):
            fallen[b] = value
        pushed = c.spread(multipliers)
        wrenches = [0.0 if k // 6 in apart else x for k, x in enumerate(pushed["f"])]
        strain = strain + places["strain"][0] if adrift else strain
        return {"f": wrenches, "pushed": pushed["u"], "fallen": fallen, "strain": [strain]}

    return follow


def _share(holding: GraspMap, idle: list[int]) -> StageRule:
    """lam: what contacts do for the coordinates `idle`."""

    def share(places: StagePlaces) -> StagePlaces:
        c, Jc = places["c"], places["Jc"]
        T = list(places["T"])
        for i, x in zip(holding.own, places["w"], strict=True):
            T[i] = T[i] - x
        wanted = _multipliers(c.meetings, places["wanted"]) + [0.0] * len(holding.closure.follows)
        weigh = lambda column: _weighed(c.meetings, holding.roles, column, places["weights"])  # noqa: E731
        lam, strain = carried(
            Jc,
            T,
            idle,
            lambda gram, missing: semidefinite_solve.solve(_felt(gram), missing),
            weigh,
            wanted,
        )
        return {"lam": lam, "strain": [places.get("strain", [0.0])[0] + strain]}

    return share


def _felt(gram: list) -> list:
    """Coordinates that contacts move by rounding alone are not theirs to move: their rows and columns are zero."""
    total: Any = 0.0
    for i, row in enumerate(gram):
        total = total + row[i]
    keep = [less(ROUNDING * total, row[i]) for i, row in enumerate(gram)]
    return [
        [a * b * x for b, x in zip(keep, row, strict=True)]
        for a, row in zip(keep, gram, strict=True)
    ]


def _multipliers(meetings: list[ConstraintState], wrenches: list) -> list:
    """lambda of wrenches on the bodies of the second frames, in their axes: the part along the rows, which are orthonormal."""
    own = [wrenches[6 * i : 6 * i + 6] for i in range(len(meetings))]
    return [
        -(dot(row.turn, f[:3]) + dot(row.slide, f[3:]))
        for meeting, f in zip(meetings, own, strict=True)
        for row in meeting.rows
    ]


def _weighed(
    meetings: list[ConstraintState], roles: tuple[str, ...], column: list, weights: list
) -> list:
    """S x: of hands (N V N*)^-1 x, of grounds nothing, of other rows x itself."""
    out, start = [], 0
    for i, (meeting, role) in enumerate(zip(meetings, roles, strict=True)):
        own = column[start : start + len(meeting.rows)]
        start += len(own)
        if role == HAND:
            V = [weights[36 * i + 6 * r : 36 * i + 6 * r + 6] for r in range(6)]
            N = [[*row.turn, *row.slide] for row in meeting.rows]
            inner = small_matrices.product(
                small_matrices.product(N, V), small_matrices.transpose(N)
            )
            out += small_matrices.solve(small_matrices.factor(inner), own)
        else:
            out += [0.0] * len(own) if role == GROUND else own
    return out + column[start:]


def carry(system: Any, q, v, u, w, wanted, weights) -> np.ndarray:
    """tau (..., nv), compiled; an element that no torque moves as wanted is NaN, a single state raises an error."""
    q, v, u = system.state_arrays(q=q, v=v, u=u)
    tau, strain = system.call_function(system.object_torque_function, (q, v, u, w, wanted, weights))
    bad = ~(strain < STRAIN)
    if not np.any(bad):
        return tau
    if not np.ndim(strain):
        raise refusal(system, q, v, u)
    return np.where(bad[..., None], np.nan, tau)


def refusal(system: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> Error:
    """Why no torque moves the object as wanted, of one state."""
    holding = held(system)
    exactly = () if GROUND in holding.roles else (holding.joint.name,)
    try:
        system.inverse_dynamics(q, v, system.complete(q, v, u, exactly))
    except StateError as error:
        return error
    cause = f"the arms that hold {system.object} are too near to a singularity: what they must do is lost in rounding"
    return SingularError(cause, "lead it elsewhere, or start from another posture")
