"""Derivatives of inverse dynamics as matrices, with composite bodies.

Tip to base, composites are summed and the columns of all coordinates are moved to the base; the row
of each joint is multiplied with the columns that pass it. `compiler/recursions/composite_bodies.py`
has the equations. With ψ in place of φ, the same sweeps compute W d tau for forward dynamics
(`forward_dynamics_jacobian.py`). The same composites give the Coriolis matrix,
C = H φ (M φ* Hr + Γ/2 φ* H*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.autodiff.wrench_derivatives import NO_LOADS, MixedComposite, WrenchDerivatives
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import EYE3, ZERO3, ZERO6, force_cross
from psiphi.compiler.recursions.composite_bodies import (
    JointSlopes,
    MovingBody,
    SlopeColumn,
    axial,
    joint_slopes,
    joint_velocity,
    scale,
    skew_product,
)
from psiphi.compiler.recursions.newton_euler import body_force, body_motion, world_at_rest
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    BodyView,
    ColumnMessage,
    Program,
    Sweep,
)
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import force, pose, rotate, unrotate
from psiphi.model.spatial.screws import (
    add,
    cross,
    dot,
    inertia_from_second_moment,
    is_zero_constant,
    subtract,
    tilde,
)
from psiphi.model.spatial.small_matrices import add_matrices, mirror_upper_half

Arguments = tuple[Argument, ...]
Entries = dict[tuple[int, int], Any]
MOTION = "motion"


def world_record(
    gravity: Sequence[AnyScalar], loads: WrenchDerivatives, **values: Any
) -> Callable[[BodyView], None]:
    """The record of the world: it is at rest, with the pseudo-acceleration -g. `values` are stored
    besides."""

    def world(body: BodyView) -> None:
        body.store(**{MOTION: world_at_rest(gravity)}, accelerations=ZERO6, w=ZERO3, velocity=ZERO3)
        body.store(**values)
        loads.start(body)

    return world


def move_body(body: BodyView, u: list | None, loads: WrenchDerivatives) -> None:
    """Base to tip: the motion of the body under the joint accelerations u, and the force
    M α + b - B f that causes it."""
    # `inboard`: w⁺, w'⁺, v'⁺, the parent's motion at the joint, in this body's axes. If the joint
    # turns, it changes by Q_V = V⁺ x H* and Q_α = α⁺ x H* + V⁺ x Q_V
    w, _, vd, U = body_motion(body, [0.0] * len(body.H) if u is None else u, MOTION)
    w_p, wd_p, vd_p, U_p = body.parent[MOTION]
    l = pose(body.path, EYE3, ZERO3)[1]
    inboard = (
        unrotate(body.path, w_p),
        unrotate(body.path, wd_p),
        unrotate(body.path, add(vd_p, small_matrices.apply(U_p, l))),
    )
    body.store(w=w, w_p=w_p, inboard=inboard, l=l, body_force=body_force(body.link, U, vd))
    loads.subtract_wrenches(body)


def sum_forces(body: BodyView) -> None:
    """Tip to base: the force on each joint, f(k) = body_force(k) + Σ_c φ(k,c) f(c)."""
    below = body.children.get("f")
    f = body.record["body_force"] if below is None else add(body.record["body_force"], below)
    body.store(f=f)
    body.send(f=force(body.path, f))


class DerivativeMatrix:
    """The entries of derivative matrices, collected in one run of a program.

    by_q, by_v, mass, by_load   d tau/dq, d tau/dv, the mass matrix, d tau/df
    free                        of free roots, what M⁻¹ cancels in forward dynamics (`solved`)
    """

    def __init__(
        self, coriolis: bool = False, loads: WrenchDerivatives = NO_LOADS, solved: bool = False
    ):
        self.half, self.coriolis, self.loads, self.solved = (
            0.5 if coriolis else 1.0,
            coriolis,
            loads,
            solved,
        )
        self.by_q: Entries = {}
        self.by_v: Entries = {}
        self.mass: Entries = {}
        self.by_load: Entries = {}
        self.free: Entries = {}

    def world(self, gravity: Sequence[AnyScalar]) -> Callable[[BodyView], None]:
        """The step at the world: it clears the entries."""
        begin = world_record(gravity, self.loads)

        def world(body: BodyView) -> None:
            for entries in (self.by_q, self.by_v, self.mass, self.by_load, self.free):
                entries.clear()
            begin(body)

        return world

    def add_wrench_columns(
        self, body: BodyView, transmit: Callable[[list], list] = lambda x: x
    ) -> None:
        """Tip to base: -H φ B; -H ψ B if `transmit` gives the part of a force that the joint
        transmits."""
        columns = self.loads.columns(body)
        for j, y in columns.items():
            for i, h in enumerate(body.H, body.slices["v"].start):
                self.by_load[i, j] = -dot(h, y)
        if columns and not body.at_root:
            body.sent["wrenches"] = ColumnMessage(
                {j: force(body.path, transmit(y)) for j, y in columns.items()}
            )

    def composites(self, body: BodyView) -> None:
        """Tip to base: d tau with φ, from composite bodies."""
        self.add_wrench_columns(body)
        Vd = joint_velocity(body)
        w, (wp, wdp, vdp) = body.record["w"], body.record["inboard"]
        # r(k), Γ(k): this body and all its descendants as one moving body
        composite = MovingBody.of_link(body.link, w, self.half)
        if (below := body.children.get("composite")) is not None:
            composite = composite + below
        # in the frame that moves with the body's origin, V = [w; 0] and V⁺ = [w⁺; -v_d]
        inboard = wdp + add(vdp, cross(wp, Vd[3:]))
        slopes = self._joint_slopes(body, w + ZERO3, wp + [-x for x in Vd[3:]], inboard)
        columns = ColumnMessage(body.children.get("columns", {}))
        self._store_outer_entries(body, slopes, columns)
        # new columns of this joint: r Q_α + Γ Q_V for q, r (Q_V + V x H*) + Γ H* for v
        first, X = body.slices["v"].start, self.loads.rotation_composite(body)
        for i, x in enumerate(slopes, first):
            by_q = _minus_rotation(
                add(composite.inertia(x.Q_a), composite.gyration(x.Q_V[:3])), X, x
            )
            by_v = add(composite.inertia(x.ring), composite.gyration(x.h[:3]))
            self._store_own_entries(slopes, first, i, by_q, by_v)
            # R = r H* e_i: the column of the mass matrix
            R = composite.inertia(x.h)
            for k, y in enumerate(slopes, first):
                self.mass[k, i] = dot(y.h, R) + (body.rotor[k - first] if k == i else 0.0)
            # inboard of the joint, the force that it transmits turns with it: + ⟦f⟧ H*
            by_q = by_q if self.coriolis else add(by_q, force_cross(x.h, body.record["f"]))
            columns[i] = SlopeColumn(by_q, by_v, R, composite.couples(x.h), _rotation_couple(X, x))
        if body.at_root:
            return
        # in the parent's axes, the origin is at l and its velocity is u
        l, path = body.record["l"], body.path
        u = add(
            cross(body.record["w_p"], scale(self.half, l)), rotate(path, scale(self.half, Vd[3:]))
        )
        twice = scale(2.0, u)
        body.sent["columns"] = ColumnMessage({j: c.moved(path, twice) for j, c in columns.items()})
        if X is not None:
            body.send(X=X.moved(path))
        body.send(composite=composite.moved(path, l, u))

    def articulated(self, body: BodyView) -> None:
        """Tip to base: W d tau with ψ, from P and the mixed composite R (6 x 3); velocities are
        those of the links' origins."""
        link, gain, path = body.link, body.record["gain"], body.path
        w, v, (wp, wdp, vdp), vp = (
            body.record["w"],
            body.record["velocity"],
            body.record["inboard"],
            body.record["velocity+"],
        )
        # Γ(k) of one body, from its momentum [n; F] and the rate Jd of its second moment
        W = skew_product(w, link.pseudo)
        F, n = (
            add([link.mass * x for x in v], cross(w, link.moment)),
            add(axial(W), cross(link.moment, v)),
        )
        p = link.moment
        Jd = mirror_upper_half(
            [[W[i][j] + W[j][i] + v[i] * p[j] + v[j] * p[i] for j in range(3)] for i in range(3)]
        )
        R = add_matrices(inertia_from_second_moment(Jd), tilde([-x for x in n])) + tilde(
            [-2.0 * x for x in F]
        )
        if (below := body.children.get("R")) is not None:
            R = add_matrices(R, below.rows)
        X = self.loads.rotation_composite(body)
        # α⁺ in body axes is v' - w x v
        slopes = self._joint_slopes(body, w + v, wp + vp, wdp + subtract(vdp, cross(wp, vp)))
        columns = ColumnMessage(body.children.get("columns", {}))
        self._store_outer_entries(body, slopes, columns)
        first, R_T = body.slices["v"].start, small_matrices.transpose(R)

        # ψ = φ tau_bar: the joint transmits x - G H x. c.R and c.T, for the lower half, move by φ
        def transmit(x: list) -> list:
            return gain.project(body.H, x)

        self.add_wrench_columns(body, transmit)
        transmitted = {
            j: SlopeColumn(transmit(c.by_q), transmit(c.by_v), c.R, c.T, c.X)
            for j, c in columns.items()
        }
        # new columns of this joint: P in place of r, R = Γ + Σ ψ R φ* in place of the composite Γ
        for i, x in enumerate(slopes, first):
            by_q = _minus_rotation(
                add(body.record["P"] @ x.Q_a, small_matrices.apply(R, x.Q_V[:3])), X, x
            )
            by_v = add(body.record["P"] @ x.ring, small_matrices.apply(R, x.h[:3]))
            self._store_own_entries(slopes, first, i, by_q, by_v)
            by_q = add(transmit(by_q), force_cross(x.h, body.record["f"]))
            couple, P_h = small_matrices.apply(R_T, x.h), body.record["P"] @ x.h
            transmitted[i] = SlopeColumn(by_q, transmit(by_v), P_h, couple, _rotation_couple(X, x))
        if body.at_root:
            return
        body.sent["columns"] = ColumnMessage({j: c.moved(path) for j, c in transmitted.items()})
        body.send(R=MixedComposite(R).moved(path, transmit))
        if X is not None:
            body.send(X=X.moved(path, transmit))

    def _joint_slopes(
        self, body: BodyView, V: list, above: list, a_above: list
    ) -> list[JointSlopes]:
        """The slopes of the joint's coordinates."""
        slopes = joint_slopes(body, V, above, a_above, self.coriolis)
        if not (self.solved and is_free_root(body)):
            return slopes
        # d tau/dv = M (Q_V + V x H*) + ..: at a free root, the bracket is in the range of H*, where
        # M⁻¹ M = I
        first = body.slices["v"].start
        for i, x in enumerate(slopes, first):
            self.free |= {(k, i): value for k, value in enumerate(x.ring, first)}
        return [replace(x, ring=ZERO6) for x in slopes]

    def _store_own_entries(
        self, slopes: list[JointSlopes], first: int, i: int, by_q: list, by_v: list
    ) -> None:
        """Column i of this joint, against its own rows."""
        for k, y in enumerate(slopes, first):
            self.by_q[k, i], self.by_v[k, i] = dot(y.h, by_q), dot(y.h, by_v)

    def _store_outer_entries(
        self, body: BodyView, slopes: list[JointSlopes], columns: ColumnMessage
    ) -> None:
        """Rows and columns of this joint against the coordinates of its descendants."""
        # i is of this joint, j of a descendant. Entry (i, j): H(i) times column j. Entry (j, i):
        # H(j) φ* (r Q_α + Γ Q_V)(i) = Q_α(i)* R_j + Q_V(i)* T_j, R_j = φ r H*(j), T_j = φ Γ* H*(j)
        for j, c in columns.items():
            for i, x in enumerate(slopes, body.slices["v"].start):
                self.by_q[i, j], self.by_v[i, j] = dot(x.h, c.by_q), dot(x.h, c.by_v)
                by_q = dot(x.Q_a, c.R) + dot(x.Q_V[:3], c.T)
                self.by_q[j, i] = by_q if c.X is None else by_q - dot(x.h[:3], c.X)
                self.by_v[j, i] = dot(x.ring, c.R) + dot(x.h[:3], c.T)
                self.mass[i, j] = self.mass[j, i] = dot(x.h, c.R)


def is_free_root(body: BodyView) -> bool:
    """Whether the body's joint to the world is free, with H = I and without rotor inertia."""
    residual = (x - float(i == j) for i, h in enumerate(body.H) for j, x in enumerate(h))
    return (
        body.at_root
        and len(body.H) == 6
        and all(map(is_zero_constant, residual))
        and all(map(is_zero_constant, body.rotor))
    )


def _minus_rotation(by_q: list, X: MixedComposite | None, x: JointSlopes) -> list:
    """The column minus X H*, for wrenches in world axes."""
    return by_q if X is None else subtract(by_q, small_matrices.apply(X.rows, x.h[:3]))


def _rotation_couple(X: MixedComposite | None, x: JointSlopes) -> list | None:
    """X* H*, for wrenches in world axes."""
    return None if X is None else small_matrices.apply(small_matrices.transpose(X.rows), x.h)


def write_matrix(body: BodyView, name: str, n: int, entries: Entries) -> None:
    """Write the entries of a matrix with n columns; the others (different branches) are zero."""
    for (i, j), value in entries.items():
        body.write(name, i * n + j, [value])


MOTION_LOOP = [
    "for k = base .. tips:",
    "    w, w', v' of the body, and inboard of its joint;  V(k) = [w; 0], relative to its origin",
]
FORCE_LOOP = ["for k = tips .. base:", "    f(k) = M φ*(H* u + a) + b + Σ_c φ f(c)"]
COLUMN_LOOP = [
    "    r(k), Γ(k) = M(k), Γ_V(k) + Σ_c φ(k,c) (r(c), Γ(c)) φ*(k,c), boosted by the velocity of"
    " c's origin",
    "    y_j(k) = φ(k,c) y_j(c), initially r Q_α + Γ Q_V + ⟦f⟧ H* for q,"
    " r (Q_V + V×H*) + Γ H* for v",
    "    R_j, T_j are moved by φ, initially r H*, Γ* H*",
    "    dtau(k,j) = H y_j(k),  dtau(j,k) = R_j* Q + T_j* Q_V",
]
CORIOLIS_LOOPS = [
    "for k = base .. tips:",
    "    w(k) = R* w(p) + w_d(k)        V(k) = [w; 0], relative to the body's origin",
    "for k = tips .. base:",
    "    r(k), Γ(k) = M(k), B_V(k) + Σ_c φ(k,c) (r(c), Γ(c)) φ*(k,c), boosted by the velocity of"
    " c's origin",
    "    y_j(k) = φ(k,c) y_j(c), initially r V×H* + Γ H*;  R_j, T_j likewise, r H*, Γ* H*",
    "    out(k,j) = H y_j(k),  out(j,k) = R_j* V×H* + T_j* H*",
]


class InverseDynamicsSweeps:
    """The sweeps of inverse dynamics; `u` is the input of joint accelerations, or None for none.

    `names`: the inputs with respect to which its derivatives are known.
    """

    movable_inertia = True

    def __init__(self, u: str | None, loads: WrenchDerivatives = NO_LOADS):
        self.u, self.loads, self.names = u, loads, ("q", "v", u, *loads.names)

    def accelerations(self, body: BodyView) -> list | None:
        """The input u of this joint."""
        return None if self.u is None else body.joint_input(self.u)

    def move(self, body: BodyView) -> None:
        """Base to tip: the motion of the body, and the force that causes it."""
        move_body(body, self.accelerations(body), self.loads)

    def torque(self, body: BodyView, f: list, u: list | None) -> list:
        """H f + J_m u."""
        tau = small_matrices.apply(body.H, f)
        return tau if u is None else [x + c * y for x, c, y in zip(tau, body.rotor, u, strict=True)]


class InverseDynamicsJacobian(InverseDynamicsSweeps):
    """d tau/dq, d tau/dv, d tau/du (the mass matrix) and d tau/df; or the Coriolis matrix."""

    def __init__(
        self, u: str | None = None, coriolis: bool = False, loads: WrenchDerivatives = NO_LOADS
    ):
        super().__init__(u, loads)
        self.coriolis, self.names = coriolis, ("v",) if coriolis else self.names

    @property
    def sweeps(self) -> list:
        return [BASE_TO_TIP, TIP_TO_BASE]

    @property
    def loops(self) -> list[str]:
        """Pseudo-code of the sweeps."""
        return CORIOLIS_LOOPS if self.coriolis else [*MOTION_LOOP, *FORCE_LOOP, *COLUMN_LOOP]

    def program(
        self,
        name: str,
        tree: Tree,
        inputs: Arguments,
        outputs: Arguments,
        names: tuple[str, ...] = ("v",),
    ) -> Program:
        """The sweeps of the derivatives with respect to `names`, one output each."""
        matrix = DerivativeMatrix(self.coriolis, self.loads)

        # forces and columns share a sweep: the derivative needs no sweep besides those of the value
        def inward(body: BodyView) -> None:
            sum_forces(body)
            matrix.composites(body)

        def finish(body: BodyView) -> None:
            entries = {"q": matrix.by_q, "v": matrix.by_v, self.u: matrix.mass}
            for which, arg in zip(names, outputs, strict=True):
                write_matrix(body, arg.name, arg.shape[-1], entries.get(which, matrix.by_load))

        return Program(
            name,
            inputs,
            outputs,
            (Sweep(BASE_TO_TIP, self.move), Sweep(TIP_TO_BASE, inward)),
            matrix.world(tree.gravity),
            finish,
            can_loop=False,
            body_data=self.loads.body_data(tree),
        )
