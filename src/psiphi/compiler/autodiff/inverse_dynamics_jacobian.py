"""Derivatives of inverse dynamics as matrices: composites inward, columns that climb, rows that read them.

The equations stand in `compiler/recursions/composite_bodies.py`; by ψ words the same sweeps make W d tau, for forward dynamics
(`forward_dynamics_jacobian.py`). The same composites make the Coriolis matrix, C = H φ (M φ* Hr + Γ/2 φ* H*).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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
    times,
    wedge,
)
from psiphi.compiler.recursions.newton_euler import body_force, move, world_at_rest
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
from psiphi.model.spatial.screws import add, cross, dot, from_second, subtract, tilde, vanishes
from psiphi.model.spatial.small_matrices import plus, symmetric

Arguments = tuple[Argument, ...]
Entries = dict[tuple[int, int], Any]
MOTION = "motion"


def world_keeping(
    gravity: Any, loads: WrenchDerivatives, **kept: Any
) -> Callable[[BodyView], None]:
    """What happens at the world first: it rests and falls upwards, and keeps what the bodies read of it besides."""

    def world(site: BodyView) -> None:
        site.keep(**{MOTION: world_at_rest(gravity)}, accelerations=ZERO6, w=ZERO3, velocity=ZERO3)
        site.keep(**kept)
        loads.start(site)

    return world


def accelerated(site: BodyView, u: list | None, loads: WrenchDerivatives) -> None:
    """Base to tip: the motion of body and joint under the joint accelerations u, and the force that the body needs of it."""
    # Newton and Euler of body k; beside it the parent's motion in this body's axes, on the joint's inboard side: what turning
    # the joint carries past itself, Q_V = V⁺ x H* and Q_α = α⁺ x H* + V⁺ x Q_V
    w, _, vd, U = move(site, [0.0] * len(site.H) if u is None else u, MOTION)
    w_p, wd_p, vd_p, U_p = site.parent[MOTION]
    l = pose(site.path, EYE3, ZERO3)[1]
    above = (
        unrotate(site.path, w_p),
        unrotate(site.path, wd_p),
        unrotate(site.path, add(vd_p, small_matrices.apply(U_p, l))),
    )
    site.keep(w=w, w_p=w_p, above=above, l=l, needs=body_force(site.link, U, vd))
    loads.less(site)


def gathered(site: BodyView) -> None:
    """Tip to base: the force on each joint."""
    # f(k) = needs(k) + sum_c φ(k,c) f(c)
    below = site.children.get("f")
    f = site.kept["needs"] if below is None else add(site.kept["needs"], below)
    site.keep(f=f)
    site.send(f=force(site.path, f))


class SlopeMatrix:
    """Entries of a matrix derivative, as they are found; one run of the program."""

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
        self.free: Entries = {}  # what free roots do to themselves

    def world(self, gravity: Any) -> Callable[[BodyView], None]:
        """What happens at the world first: nothing is found yet."""
        begin = world_keeping(gravity, self.loads)

        def world(site: BodyView) -> None:
            for entries in (self.by_q, self.by_v, self.mass, self.by_load, self.free):
                entries.clear()
            begin(site)

        return world

    def loaded(self, site: BodyView, through: Any = lambda x: x) -> None:
        """Tip to base: -H φ B, or by ψ words, of which what passes a joint is `through`."""
        columns = self.loads.columns(site)
        # wrenches push, tau = .. - H φ B f: the column of each of their numbers climbs as any force does
        for j, y in columns.items():
            for i, h in enumerate(site.H, site.slices["v"].start):
                self.by_load[i, j] = -dot(h, y)
        if columns and not site.at_root:
            site.sent["wrenches"] = ColumnMessage(
                {j: force(site.path, through(y)) for j, y in columns.items()}
            )

    def composites(self, site: BodyView) -> None:
        """Tip to base: φ words, with composite bodies."""
        self.loaded(site)
        Vd = joint_velocity(site)
        w, (wp, wdp, vdp) = site.kept["w"], site.kept["above"]
        # r(k), Γ(k): this body and all it carries, as one that moves
        body = MovingBody.alone(site.link, w, self.half)
        if (below := site.children.get("body")) is not None:
            body = body + below
        # seen from the body's own origin it has no velocity there, V = [w; 0], and the joint's inboard side V⁺ = [w⁺; -v_d]
        inboard = wdp + add(vdp, cross(wp, Vd[3:]))
        own = self._joint(site, w + ZERO3, wp + [-x for x in Vd[3:]], inboard)
        climbing = ColumnMessage(site.children.get("columns", {}))
        self._read(site, own, climbing)
        # this joint's own columns start: r Q_α + Γ Q_V for q, r (Q_V + V x H*) + Γ H* for v; H reads them at once
        first, X = site.slices["v"].start, self.loads.turning(site)
        for i, x in enumerate(own, first):
            by_q = _turned(add(body.inertia(x.Q_a), body.gyration(x.Q_V[:3])), X, x)
            by_v = add(body.inertia(x.ring), body.gyration(x.h[:3]))
            self._own(own, first, i, by_q, by_v)
            # r H* e_i: the column of the mass matrix, and what rows further in read as R_j
            R = body.inertia(x.h)
            for k, y in enumerate(own, first):
                self.mass[k, i] = dot(y.h, R) + (site.rotor[k - first] if k == i else 0.0)
            # behind the joint the force that it passes on turns with it, too: ⟦f⟧ H*
            turned = by_q if self.coriolis else add(by_q, force_cross(x.h, site.kept["f"]))
            climbing[i] = SlopeColumn(turned, by_v, R, body.couples(x.h), _couple(X, x))
        # the world feels no slope: columns end at the roots
        if site.at_root:
            return
        # to the parent: seen from there, the origin is at l and moves by u
        l, path = site.kept["l"], site.path
        u = add(
            cross(site.kept["w_p"], times(self.half, l)), rotate(path, times(self.half, Vd[3:]))
        )
        twice = times(2.0, u)
        site.sent["columns"] = ColumnMessage({j: c.moved(path, twice) for j, c in climbing.items()})
        if X is not None:
            site.send(X=X.moved(path))
        site.send(body=body.moved(path, l, u))

    def articulated(self, site: BodyView) -> None:
        """Tip to base: W d tau by ψ words; P and the mixed composite R (6 x 3), with the links' true velocities."""
        link, gain, path = site.link, site.kept["gain"], site.path
        w, v, (wp, wdp, vdp), vp = (
            site.kept["w"],
            site.kept["velocity"],
            site.kept["above"],
            site.kept["velocity+"],
        )
        # Γ(k) of one body from its momentum [n; F] and the rate of its second moment, about its own origin
        W = wedge(w, link.pseudo)
        F, n = (
            add([link.mass * x for x in v], cross(w, link.moment)),
            add(axial(W), cross(link.moment, v)),
        )
        p = link.moment
        Jd = symmetric(
            [[W[i][j] + W[j][i] + v[i] * p[j] + v[j] * p[i] for j in range(3)] for i in range(3)]
        )
        R = plus(from_second(Jd), tilde([-x for x in n])) + tilde([-2.0 * x for x in F])
        if (below := site.children.get("R")) is not None:
            R = plus(R, below.rows)
        X = self.loads.turning(site)
        # here with the true velocities of the origins: α⁺ is that of body axes, v' less w x v
        own = self._joint(site, w + v, wp + vp, wdp + subtract(vdp, cross(wp, vp)))
        climbing = ColumnMessage(site.children.get("columns", {}))
        self._read(site, own, climbing)
        first, across = site.slices["v"].start, small_matrices.transpose(R)
        # ψ = φ tau_bar: what passes the joint loses G H of itself; c.R and c.T climb with φ, as the mirror image reads them
        through = lambda x: gain.through(site.H, x)  # noqa: E731
        self.loaded(site, through)
        passed = {
            j: SlopeColumn(through(c.by_q), through(c.by_v), c.R, c.T, c.X)
            for j, c in climbing.items()
        }
        # the joint's own columns start: P in place of r, R = Γ + Σ ψ R φ* in place of the composite Γ
        for i, x in enumerate(own, first):
            by_q = _turned(add(site.kept["P"] @ x.Q_a, small_matrices.apply(R, x.Q_V[:3])), X, x)
            by_v = add(site.kept["P"] @ x.ring, small_matrices.apply(R, x.h[:3]))
            self._own(own, first, i, by_q, by_v)
            turned = add(through(by_q), force_cross(x.h, site.kept["f"]))
            couple, P_h = small_matrices.apply(across, x.h), site.kept["P"] @ x.h
            passed[i] = SlopeColumn(turned, through(by_v), P_h, couple, _couple(X, x))
        if site.at_root:
            return
        site.sent["columns"] = ColumnMessage({j: c.moved(path) for j, c in passed.items()})
        site.send(R=MixedComposite(R).moved(path, through))
        if X is not None:
            site.send(X=X.moved(path, through))

    def _joint(self, site: BodyView, V: list, above: list, a_above: list) -> list[JointSlopes]:
        """The joint's coordinates."""
        own = joint_slopes(site, V, above, a_above, self.coriolis)
        if not (self.solved and is_free_root(site)):
            return own
        # d tau/dv = M (Q_V + V x H*) + ..: at a free root this lies in the range of H*, and M⁻¹ will undo what M makes of it
        first = site.slices["v"].start
        for i, x in enumerate(own, first):
            self.free |= {(k, i): value for k, value in enumerate(x.ring, first)}
        return [replace(x, ring=ZERO6) for x in own]

    def _own(self, own: list[JointSlopes], first: int, i: int, by_q: list, by_v: list) -> None:
        for k, y in enumerate(own, first):
            self.by_q[k, i], self.by_v[k, i] = dot(y.h, by_q), dot(y.h, by_v)

    def _read(self, site: BodyView, own: list[JointSlopes], climbing: ColumnMessage) -> None:
        """Rows and columns of this joint against the coordinates further out."""
        # i is this joint, j one further out. Entry (i, j): H(i) on the column of j. Entry (j, i): H(j) φ* (r Q_α + Γ Q_V)(i)
        # = Q_α(i)* R_j + Q_V(i)* T_j, with R_j = φ r H*(j) and T_j = φ Γ* H*(j), which have climbed to here
        for j, c in climbing.items():
            for i, x in enumerate(own, site.slices["v"].start):
                self.by_q[i, j], self.by_v[i, j] = dot(x.h, c.by_q), dot(x.h, c.by_v)
                by_q = dot(x.Q_a, c.R) + dot(x.Q_V[:3], c.T)
                self.by_q[j, i] = by_q if c.X is None else by_q - dot(x.h[:3], c.X)
                self.by_v[j, i] = dot(x.ring, c.R) + dot(x.h[:3], c.T)
                self.mass[i, j] = self.mass[j, i] = dot(x.h, c.R)


def is_free_root(site: BodyView) -> bool:
    """Whether every motion of the body is one of its joint against the world, coordinate by coordinate, and no rotor turns."""
    off = (x - float(i == j) for i, h in enumerate(site.H) for j, x in enumerate(h))
    return (
        site.at_root
        and len(site.H) == 6
        and all(map(vanishes, off))
        and all(map(vanishes, site.rotor))
    )


def _turned(by_q: list, X: MixedComposite | None, x: JointSlopes) -> list:
    """Less X H*: wrenches in world axes."""
    return by_q if X is None else subtract(by_q, small_matrices.apply(X.rows, x.h[:3]))


def _couple(X: MixedComposite | None, x: JointSlopes) -> list | None:
    """X* H*."""
    return None if X is None else small_matrices.apply(small_matrices.transpose(X.rows), x.h)


def write(site: BodyView, name: str, n: int, entries: Entries) -> None:
    """The entries of a matrix with n columns."""
    # pairs of joints on different branches have none: there the derivative is zero
    for (i, j), value in entries.items():
        site.write(name, i * n + j, [value])


MOVED = [
    "for k = base .. tips:",
    "    w, w', v' of the body and of its joint's inboard side; V(k) = [w; 0], from its own origin",
]
FORCES = ["for k = tips .. base:", "    f(k) = M φ*(H* u + a) + b + Σ_c φ f(c)"]
CLIMBS = [
    "    r(k), Γ(k) = M(k), Γ_V(k) + Σ_c φ(k,c) (r(c), Γ(c)) φ*(k,c), boosted by the velocity of c's origin",
    "    y_j(k) = φ(k,c) y_j(c), started as r Q_α + Γ Q_V + ⟦f⟧ H* for q, r (Q_V + V×H*) + Γ H* for v",
    "    dtau(k,j) = H y_j(k),  dtau(j,k) = R_j* Q + T_j* Q_V;  R_j, T_j climb as r H*, Γ* H*",
]
CORIOLIS = [
    "for k = base .. tips:",
    "    w(k) = R* w(p) + w_d(k)        V(k) = [w; 0], seen from the body's own origin",
    "for k = tips .. base:",
    "    r(k), Γ(k) = M(k), B_V(k) + Σ_c φ(k,c) (r(c), Γ(c)) φ*(k,c), boosted by the velocity of c's origin",
    "    y_j(k) = φ(k,c) y_j(c), started as r V×H* + Γ H*;  R_j, T_j as r H*, Γ* H*",
    "    out(k,j) = H y_j(k),  out(j,k) = R_j* V×H* + T_j* H*",
]


class OfInverseDynamics:
    """The torques of inverse dynamics at joint accelerations u (an input; None: there are none), and what goes with them."""

    rods = True

    def __init__(self, u: str | None, loads: WrenchDerivatives = NO_LOADS):
        self.u, self.loads, self.names = u, loads, ("q", "v", u, *loads.names)

    def accelerations(self, site: BodyView) -> list | None:
        """The accelerations of this joint."""
        return None if self.u is None else site.of(self.u)

    def move(self, site: BodyView) -> None:
        """Base to tip: the motion, and the force that each body needs."""
        accelerated(site, self.accelerations(site), self.loads)

    def torque(self, site: BodyView, f: list, u: list | None) -> list:
        """H f + J_m u."""
        tau = small_matrices.apply(site.H, f)
        # rotors turn with their joints alone: J_m u is felt by no other body
        return tau if u is None else [x + c * y for x, c, y in zip(tau, site.rotor, u, strict=True)]


class InverseDynamicsJacobian(OfInverseDynamics):
    """d tau/dq, d tau/dv and the mass matrix; or C."""

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
        """As the papers' pseudo-code."""
        return CORIOLIS if self.coriolis else [*MOVED, *FORCES, *CLIMBS]

    def program(
        self,
        name: str,
        tree: Tree,
        inputs: Arguments,
        outputs: Arguments,
        wanted: tuple[str, ...] = ("v",),
    ) -> Program:
        matrix = SlopeMatrix(self.coriolis, self.loads)

        # outward the motion, inward forces and columns together: the derivative costs no further sweep
        def inward(site: BodyView) -> None:
            gathered(site)
            matrix.composites(site)

        def finish(site: BodyView) -> None:
            found = {"q": matrix.by_q, "v": matrix.by_v, self.u: matrix.mass}
            for which, arg in zip(wanted, outputs, strict=True):
                write(site, arg.name, arg.shape[-1], found.get(which, matrix.by_load))

        sweeps, marks = (
            (Sweep(BASE_TO_TIP, self.move), Sweep(TIP_TO_BASE, inward)),
            self.loads.marks(tree),
        )
        return Program(
            name,
            inputs,
            outputs,
            sweeps,
            matrix.world(tree.gravity),
            finish,
            local=False,
            marks=marks,
        )
