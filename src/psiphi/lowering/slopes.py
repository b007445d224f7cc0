"""Derivatives of inverse dynamics as matrices: composites inward, columns that climb, rows that read them.

The equations stand in `steps/composites.py`; by ψ words the same sweeps make W d tau, for forward dynamics
(`forward_slopes.py`). The same composites make the Coriolis matrix, C = H φ (M φ* Hr + Γ/2 φ* H*).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi.framing.framing import Tree
from psiphi.spatial import small
from psiphi.spatial.screws import add, cross, dot, force, from_second, pose, rotate, subtract, tilde, unrotate
from psiphi.spatial.small import plus, symmetric
from psiphi.steps.composites import (
    JointSlopes,
    MovingBody,
    SlopeColumn,
    axial,
    joint_slopes,
    joint_velocity,
    times,
    wedge,
)
from psiphi.steps.local import EYE3, ZERO3, ZERO6, force_cross
from psiphi.steps.newton import body_force, move, world_at_rest
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE, Argument, Climbing, Program, Site, Sweep

Arguments = tuple[Argument, ...]
Entries = dict[tuple[int, int], Any]
MOTION = "motion"


def start(gravity: Any, site: Site) -> None:
    """The world rests, and falls upwards."""
    site.keep(**{MOTION: world_at_rest(gravity)}, accelerations=ZERO6, w=ZERO3, velocity=ZERO3)


def world_keeping(gravity: Any, **kept: Any) -> Callable[[Site], None]:
    """What happens at the world first: it starts to fall, and keeps what the bodies read of it besides."""

    def world(site: Site) -> None:
        start(gravity, site)
        site.keep(**kept)

    return world


def accelerated(site: Site, u: list | None) -> None:
    """Base to tip: the motion of body and joint under the joint accelerations u, and the force that the body needs."""
    # Newton and Euler of body k; beside it the parent's motion in this body's axes, on the joint's inboard side: what turning
    # the joint carries past itself, Q_V = V⁺ x H* and Q_α = α⁺ x H* + V⁺ x Q_V
    w, _, vd, U = move(site, [0.0] * len(site.H) if u is None else u, MOTION)
    w_p, wd_p, vd_p, U_p = site.parent[MOTION]
    l = pose(site.path, EYE3, ZERO3)[1]
    above = unrotate(site.path, w_p), unrotate(site.path, wd_p), unrotate(site.path, add(vd_p, small.apply(U_p, l)))
    site.keep(w=w, w_p=w_p, above=above, l=l, needs=body_force(site.link, U, vd))


def gathered(site: Site) -> None:
    """Tip to base: the force on each joint."""
    # f(k) = needs(k) + sum_c φ(k,c) f(c)
    below = site.children.get("f")
    f = site.kept["needs"] if below is None else add(site.kept["needs"], below)
    site.keep(f=f)
    site.send(f=force(site.path, f))


class SlopeMatrix:
    """Entries of a matrix derivative, as they are found; one run of the program."""

    def __init__(self, coriolis: bool = False):
        self.half, self.coriolis = 0.5 if coriolis else 1.0, coriolis
        self.by_q: Entries = {}
        self.by_v: Entries = {}
        self.mass: Entries = {}

    def clear(self) -> None:
        for entries in (self.by_q, self.by_v, self.mass):
            entries.clear()

    def composites(self, site: Site) -> None:
        """Tip to base: φ words, with composite bodies."""
        Vd = joint_velocity(site)
        w, (wp, wdp, vdp) = site.kept["w"], site.kept["above"]
        # r(k), Γ(k): this body and all it carries, as one that moves
        body = MovingBody.alone(site.link, w, self.half)
        if (below := site.children.get("body")) is not None:
            body = body + below
        # seen from the body's own origin it has no velocity there, V = [w; 0], and the joint's inboard side V⁺ = [w⁺; -v_d]
        inboard = wdp + add(vdp, cross(wp, Vd[3:]))
        own = joint_slopes(site, w + ZERO3, wp + [-x for x in Vd[3:]], inboard, self.coriolis)
        climbing = Climbing(site.children.get("columns", {}))
        self._read(site, own, climbing)
        # this joint's own columns start: r Q_α + Γ Q_V for q, r (Q_V + V x H*) + Γ H* for v; H reads them at once
        first = site.slices["v"].start
        for i, x in enumerate(own, first):
            by_q = add(body.inertia(x.Q_a), body.gyration(x.Q_V[:3]))
            by_v = add(body.inertia(x.ring), body.gyration(x.h[:3]))
            self._own(own, first, i, by_q, by_v)
            R = body.inertia(x.h)
            for k, y in enumerate(own, first):
                self.mass[k, i] = dot(y.h, R) + (site.rotor[k - first] if k == i else 0.0)
            # behind the joint the force that it passes on turns with it, too: ⟦f⟧ H*
            turned = by_q if self.coriolis else add(by_q, force_cross(x.h, site.kept["f"]))
            climbing[i] = SlopeColumn(turned, by_v, R, body.couples(x.h))
        if site.at_root:
            return
        # to the parent: seen from there, the origin is at l and moves by u
        l, path = site.kept["l"], site.path
        u = add(cross(site.kept["w_p"], times(self.half, l)), rotate(path, times(self.half, Vd[3:])))
        twice = times(2.0, u)
        site.sent["columns"] = Climbing(
            {
                j: SlopeColumn(
                    force(path, c.by_q),
                    force(path, c.by_v),
                    force(path, c.R),
                    add(rotate(path, c.T), cross(twice, rotate(path, c.R[3:]))),
                )
                for j, c in climbing.items()
            }
        )
        site.send(body=body.moved(path, l, u))

    def articulated(self, site: Site) -> None:
        """Tip to base: W d tau by ψ words; P and the mixed composite R (6 x 3), with the links' true velocities."""
        link, gain, path = site.link, site.kept["gain"], site.path
        w, v, (wp, wdp, vdp), vp = site.kept["w"], site.kept["velocity"], site.kept["above"], site.kept["velocity+"]
        # Γ(k) of one body from its momentum [n; F] and the rate of its second moment, about its own origin
        W = wedge(w, link.pseudo)
        F, n = add([link.mass * x for x in v], cross(w, link.moment)), add(axial(W), cross(link.moment, v))
        p = link.moment
        Jd = symmetric([[W[i][j] + W[j][i] + v[i] * p[j] + v[j] * p[i] for j in range(3)] for i in range(3)])
        R = plus(from_second(Jd), tilde([-x for x in n])) + tilde([-2.0 * x for x in F])
        if (below := site.children.get("R")) is not None:
            R = plus(R, below.rows)
        own = joint_slopes(site, w + v, wp + vp, wdp + subtract(vdp, cross(wp, vp)))
        climbing = Climbing(site.children.get("columns", {}))
        self._read(site, own, climbing)
        first, across = site.slices["v"].start, small.transpose(R)
        # ψ = φ tau_bar: what passes the joint loses G H of itself; c.R and c.T climb with φ, as the mirror image reads them
        through = lambda x: gain.through(site.H, x)  # noqa: E731
        passed = {j: SlopeColumn(through(c.by_q), through(c.by_v), c.R, c.T) for j, c in climbing.items()}
        for i, x in enumerate(own, first):
            by_q = add(site.kept["P"] @ x.Q_a, small.apply(R, x.Q_V[:3]))
            by_v = add(site.kept["P"] @ x.ring, small.apply(R, x.h[:3]))
            self._own(own, first, i, by_q, by_v)
            turned = add(through(by_q), force_cross(x.h, site.kept["f"]))
            passed[i] = SlopeColumn(turned, through(by_v), site.kept["P"] @ x.h, small.apply(across, x.h))
        if site.at_root:
            return
        site.sent["columns"] = Climbing(
            {
                j: SlopeColumn(force(path, c.by_q), force(path, c.by_v), force(path, c.R), rotate(path, c.T))
                for j, c in passed.items()
            }
        )
        # ψ R φ*: tau_bar and φ on the columns; φ* on the right leaves of [w; 0] the spin alone, so that rows only turn
        columns = [force(path, through(list(column))) for column in zip(*R, strict=True)]
        site.send(R=MixedComposite([rotate(path, list(row)) for row in zip(*columns, strict=True)]))

    def _own(self, own: list[JointSlopes], first: int, i: int, by_q: list, by_v: list) -> None:
        for k, y in enumerate(own, first):
            self.by_q[k, i], self.by_v[k, i] = dot(y.h, by_q), dot(y.h, by_v)

    def _read(self, site: Site, own: list[JointSlopes], climbing: Climbing) -> None:
        """Rows and columns of this joint against the coordinates further out."""
        # i is this joint, j one further out. Entry (i, j): H(i) on the column of j. Entry (j, i): H(j) φ* (r Q_α + Γ Q_V)(i)
        # = Q_α(i)* R_j + Q_V(i)* T_j, with R_j = φ r H*(j) and T_j = φ Γ* H*(j), which have climbed to here
        for j, c in climbing.items():
            for i, x in enumerate(own, site.slices["v"].start):
                self.by_q[i, j], self.by_v[i, j] = dot(x.h, c.by_q), dot(x.h, c.by_v)
                self.by_q[j, i] = dot(x.Q_a, c.R) + dot(x.Q_V[:3], c.T)
                self.by_v[j, i] = dot(x.ring, c.R) + dot(x.h[:3], c.T)
                self.mass[i, j] = self.mass[j, i] = dot(x.h, c.R)


class MixedComposite:
    """R by rows; what children send adds up."""

    def __init__(self, rows: list):
        self.rows = rows

    def __add__(self, other: MixedComposite) -> MixedComposite:
        return MixedComposite(plus(self.rows, other.rows))


def write(site: Site, name: str, n: int, entries: Entries) -> None:
    for (i, j), value in entries.items():
        site.write(name, i * n + j, [value])


MOVED = [
    "for k = base .. tips:",
    "    w, w', v' of the body and of its joint's inboard side; V(k) = [w; 0], from its own origin",
]
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


class InverseSlopes:
    """d tau/dq, d tau/dv and the mass matrix, at joint accelerations u (an input; None: there are none); or C."""

    rods = True

    def __init__(self, u: str | None = None, coriolis: bool = False):
        self.u, self.coriolis = u, coriolis
        self.names = ("v",) if coriolis else ("q", "v", u)

    @property
    def sweeps(self) -> list:
        return [BASE_TO_TIP, TIP_TO_BASE]

    @property
    def loops(self) -> list[str]:
        """As the papers' pseudo-code."""
        return (
            CORIOLIS
            if self.coriolis
            else [*MOVED, "for k = tips .. base:", "    f(k) = M φ*(H* u + a) + b + Σ_c φ f(c)", *CLIMBS]
        )

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, wanted: tuple[str, ...] = ("v",)
    ) -> Program:
        matrix = SlopeMatrix(self.coriolis)

        def world(site: Site) -> None:
            matrix.clear()
            start(tree.gravity, site)

        def inward(site: Site) -> None:
            gathered(site)
            matrix.composites(site)

        def finish(site: Site) -> None:
            found = {"q": matrix.by_q, "v": matrix.by_v, self.u: matrix.mass}
            for which, arg in zip(wanted, outputs, strict=True):
                write(site, arg.name, tree.nv, found[which])

        outward = Sweep(BASE_TO_TIP, lambda site: accelerated(site, None if self.u is None else site.of(self.u)))
        return Program(name, inputs, outputs, (outward, Sweep(TIP_TO_BASE, inward)), world, finish, local=False)
