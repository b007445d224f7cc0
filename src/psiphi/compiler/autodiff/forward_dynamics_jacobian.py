"""Derivatives of forward dynamics as matrices, by those of inverse dynamics at the accelerations it gives.

    da = -W* D⁻¹ W d tau,  W = I - H ψ K                     by φ: W applied to the columns of d tau
    W d tau = H ψ (P Q_α + R Q_V + ℰ_φ ⟦f⟧ H*) + ..          by ψ: columns climb with ψ, R = Γ + Σ ψ R φ*, no composite inertia

P is not differentiated.
"""

from __future__ import annotations

from typing import Any

from psiphi.compiler.autodiff.inverse_dynamics_jacobian import (
    CLIMBS,
    MOVED,
    Arguments,
    Entries,
    SlopeMatrix,
    accelerated,
    is_free_root,
    write,
)
from psiphi.compiler.autodiff.wrench_derivatives import NO_LOADS, WrenchDerivatives
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import articulate
from psiphi.compiler.recursions.composite_bodies import joint_velocity
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    BodyView,
    ColumnMessage,
    Program,
    Sweep,
)
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add, cross, dot, subtract, vanishes
from psiphi.model.spatial.small_matrices import adjoint_map

CLIMBS_PSI = [
    "    R(k) = Γ_V(k) + Σ_c ψ(k,c) R(c) φ*(k,c)",
    "    y_j(k) = ψ(k,c) y_j(c), started as P Q_α + R Q_V for q (then + ⟦f⟧ H*), P (Q_V + V×H*) + R H* for v",
    "    (W dtau)(k,j) = H y_j(k),  (W dtau)(j,k) from P H* and R* H*, which climb with φ",
]
FILTER = [
    "for k = tips .. base:",
    "    P, D, G;  z(k) = b(k) + Σ_c [ψ(k,c) z(c) + φ(k,c) G tau(c)];  W = I - H ψ K",
    "for k = base .. tips:",
    "    a = D⁻¹ (tau - H z) - K* λ;  f(k) = z⁺ + P⁺ λ⁺",
]


def filtered(site: BodyView, x: list, name: str, own: list) -> None:
    """Tip to base: z = own + Σ φ z⁺, z⁺ = z + G (x - H z); what is left of x is D ν."""
    # the joint yields until its torque is x: G (x - H z) is what that changes of the force, and H z⁺ = x
    below, gain = site.children.get(name), site.kept["gain"]
    z = own if below is None else add(own, below)
    left = subtract(x, small_matrices.apply(site.H, z))
    passed = gain.update(z, x, left)
    site.keep(**{f"{name}+": passed, f"{name} nu": gain.solve(left)})
    site.send(**{name: force(site.path, passed)})


def smoothed(site: BodyView, name: str, out: str) -> list:
    """Base to tip: λ = φ* λ(p) + H* u, with u = ν - G* φ* λ(p), which it returns."""
    # the motion inherited through the locked joint, less what the joint gives way to it: G* φ* λ(p)
    above = motion(site.path, site.parent[out])
    u = subtract(site.kept[f"{name} nu"], site.kept["gain"].adjoint(above))
    site.keep(**{f"{out}+": above, out: add(above, adjoint_map(site.H, u))})
    return u


def true_motion(site: BodyView) -> list:
    """Base to tip: accelerations; the inboard motion with them, and the joint's force f = z⁺ + P⁺ λ⁺."""
    a = smoothed(site, "z", "accelerations")
    more, (w, wd, vd) = site.kept["accelerations+"], site.kept["above"]
    # at roots λ⁺ = 0: the world's -g is in z, counted by the first sweep
    f = site.kept["z+"]
    f = f if site.at_root else add(f, site.kept["P_plus"] @ more)
    site.keep(above=(w, add(wd, more[:3]), add(vd, more[3:])), f=f)
    return a


class OfForwardDynamics:
    """Forward dynamics under the torques `tau`, and what goes with it: its first two sweeps."""

    rods = True

    def __init__(self, tau: str, loads: WrenchDerivatives = NO_LOADS):
        self.tau, self.loads, self.names = tau, loads, ("q", "v", tau, *loads.names)

    def move(self, site: BodyView) -> None:
        """Base to tip: velocities, and the forces that bodies need without joint accelerations."""
        accelerated(site, None, self.loads)

    def filter(self, site: BodyView) -> None:
        """Tip to base: P and its gains, and these forces filtered with the torques."""
        articulate(site)
        filtered(site, site.of(self.tau), "z", site.kept["needs"])


class ForwardDynamicsJacobian(OfForwardDynamics):
    """da/dq, da/dv and da/dtau of forward dynamics, by φ or by ψ words."""

    def __init__(self, tau: str, psi: bool, loads: WrenchDerivatives = NO_LOADS):
        super().__init__(tau, loads)
        self.psi = psi

    @property
    def loops(self) -> list[str]:
        """As the papers' pseudo-code."""
        climbs = CLIMBS_PSI if self.psi else CLIMBS
        last = "da = -W* D⁻¹ (W dtau)" if self.psi else "da = -W* D⁻¹ W dtau"
        return [
            *MOVED,
            *FILTER,
            "for k = tips .. base:",
            *climbs,
            f"{last}, the tree's zeros left out",
        ]

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, wanted: tuple[str, ...]
    ) -> Program:
        matrix, W, gains, free = SlopeMatrix(loads=self.loads, solved=True), Entries(), {}, {}

        def inward(site: BodyView) -> None:
            # P, then the filter: forward dynamics as S2 has it, and W beside it
            self.filter(site)
            _whiten(site, W)
            own = site.slices["v"]
            gains[own.start] = own, site.kept["gain"]

        def outward(site: BodyView) -> None:
            true_motion(site)
            # ψ words read velocities at the links' origins, φ words from each link's own (V = [w; 0]): only these need v
            if self.psi:
                vp = motion(site.path, site.parent["w"] + site.parent["velocity"])[3:]
                site.keep(**{"velocity+": vp, "velocity": add(vp, joint_velocity(site)[3:])})
            # a free root's columns of q are known without a solve: `_freely`
            if is_free_root(site) and not self.loads.is_world:
                _, wd, vd = site.kept["above"]
                free.update(
                    {
                        i: (site.slices["v"], _freely(wd + vd, h))
                        for i, h in enumerate(site.H, site.slices["v"].start)
                    }
                )

        def finish(site: BodyView) -> None:
            for which, arg in zip(wanted, outputs, strict=True):
                entries = {"q": matrix.by_q, "v": matrix.by_v, self.tau: None}.get(
                    which, matrix.by_load
                )
                shape, own = (tree.nv, arg.shape[-1]), free if which == "q" else {}
                found = _solved(shape, entries, W, gains, own, self.psi)
                if which == "v":  # what M was not asked to make
                    found |= {at: found.get(at, 0.0) - x for at, x in matrix.free.items()}
                write(site, arg.name, shape[1], found)

        # velocities out, P and z in, accelerations out, the slopes of inverse dynamics there in; W* D⁻¹ W is left to `finish`
        sweeps = (
            Sweep(BASE_TO_TIP, self.move),
            Sweep(TIP_TO_BASE, inward),
            Sweep(BASE_TO_TIP, outward),
            Sweep(TIP_TO_BASE, matrix.articulated if self.psi else matrix.composites),
        )
        world = matrix.world(tree.gravity)
        return Program(
            name, inputs, outputs, sweeps, world, finish, local=False, marks=self.loads.marks(tree)
        )


def _freely(above: list, h: list) -> list:
    """A free root needs no column of q: α⁺ × H* lies in the range of H*, and only the root's own acceleration turns."""
    turn, move = h[:3], h[3:]
    return [
        -x for x in cross(above[:3], turn) + add(cross(above[3:], turn), cross(above[:3], move))
    ]


def _whiten(site: BodyView, W: Entries) -> None:
    """Tip to base: the entries of W = I - H ψ K above the diagonal."""
    first, gain = site.slices["v"].start, site.kept["gain"]
    here = site.children.get("K", {})
    sent = {}
    # column j of ψ K has come from below: H reads it here, and it goes on inward by ψ
    for j, y in here.items():
        for i, h in enumerate(site.H, first):
            W[i, j] = -dot(h, y)
        sent[j] = force(site.path, gain.through(site.H, y))
    # K = E_phi G: this joint's own columns start at the parent
    for k in range(len(site.H)):
        sent[first + k] = force(site.path, [row[k] for row in gain.G])
    site.sent["K"] = ColumnMessage(sent)


def _solved(
    shape: tuple[int, int],
    entries: Entries | None,
    W: Entries,
    gains: dict,
    free: dict,
    whitened: bool,
) -> Entries:
    """-W* D⁻¹ W X, column by column, with the tree's zeros left out; X = -I where there are no entries."""
    n, width = shape
    above = {j: [i for i in range(n) if (i, j) in W] for j in range(n)}
    out: Entries = {}
    for j in range(width):
        if j in free:  # of a free root, see above
            own, column = free[j]
            out |= {(i, j): x for i, x in enumerate(column, own.start)}
            continue
        # e = W x for the column x of X: W is I on the diagonal, -H ψ K where i is an ancestor of k
        e = [0.0] * n
        if entries is None:
            e = [W.get((i, j), 0.0) if i != j else 1.0 for i in range(n)]
        else:
            e = [entries.get((i, j), 0.0) for i in range(n)]
            if not whitened:
                column = list(e)
                for k in range(n):
                    for i in above[k] if not vanishes(column[k]) else ():
                        e[i] = e[i] + W[i, k] * column[k]
        # nu = D⁻¹ e, joint by joint
        nu: list[Any] = [0.0] * n
        for own, gain in gains.values():
            if not all(map(vanishes, e[own])):
                nu[own] = gain.solve(e[own])
        # W* nu: k hears its ancestors i. Of the inverse mass matrix itself one half is enough
        for k in range(n if entries is not None else j + 1):
            value = nu[k]
            for i in above[k]:
                if not vanishes(nu[i]):
                    value = value + W[i, k] * nu[i]
            if vanishes(value):
                continue
            out[k, j] = -value if entries is not None else value
            if entries is None:
                out[j, k] = out[k, j]
    return out
