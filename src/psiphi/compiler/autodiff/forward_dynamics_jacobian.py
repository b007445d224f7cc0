"""Derivatives of forward dynamics as matrices, from those of inverse dynamics at the resulting
accelerations.

    da = -W* D⁻¹ W d tau,  W = I - H ψ K

    with φ   W is applied to the columns of d tau
    with ψ   W d tau = H ψ (P Q_α + R Q_V + ℰ_φ ⟦f⟧ H*) + .., R = Γ + Σ ψ R φ*; no composite inertia

P is not differentiated.
"""

from __future__ import annotations

from typing import Any

from psiphi.compiler.autodiff.inverse_dynamics_jacobian import (
    COLUMN_LOOP,
    MOTION_LOOP,
    Arguments,
    DerivativeMatrix,
    Entries,
    is_free_root,
    move_body,
    write_matrix,
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
from psiphi.model.spatial.screws import add, cross, dot, is_zero_constant, subtract
from psiphi.model.spatial.small_matrices import adjoint_map

PSI_COLUMN_LOOP = [
    "    R(k) = Γ_V(k) + Σ_c ψ(k,c) R(c) φ*(k,c)",
    "    y_j(k) = ψ(k,c) y_j(c), initially P Q_α + R Q_V for q (then + ⟦f⟧ H*),"
    " P (Q_V + V×H*) + R H* for v",
    "    (W dtau)(k,j) = H y_j(k),  (W dtau)(j,k) from P H* and R* H*, which are moved by φ",
]
FILTER_LOOPS = [
    "for k = tips .. base:",
    "    P, D, G;  z(k) = b(k) + Σ_c [ψ(k,c) z(c) + φ(k,c) G tau(c)];  W = I - H ψ K",
    "for k = base .. tips:",
    "    a = D⁻¹ (tau - H z) - K* λ;  f(k) = z⁺ + P⁺ λ⁺",
]


def filter_forces(body: BodyView, x: list, name: str, force_here: list) -> None:
    """Tip to base: z = force_here + Σ φ z⁺, ν = D⁻¹ (x - H z), z⁺ = z + G (x - H z).

    The joint accelerates such that its torque is x: H z⁺ = x.
    """
    below, gain = body.children.get(name), body.record["gain"]
    z = force_here if below is None else add(force_here, below)
    innovation = subtract(x, small_matrices.apply(body.H, z))
    z_plus = gain.update(z, x, innovation)
    body.store(**{f"{name}+": z_plus, f"{name} nu": gain.solve(innovation)})
    body.send(**{name: force(body.path, z_plus)})


def smooth_motions(body: BodyView, name: str, out: str) -> list:
    """Base to tip: λ = φ* λ(p) + H* u, with u = ν - G* φ* λ(p), which is returned."""
    inherited = motion(body.path, body.parent[out])
    u = subtract(body.record[f"{name} nu"], body.record["gain"].adjoint(inherited))
    body.store(**{f"{out}+": inherited, out: add(inherited, adjoint_map(body.H, u))})
    return u


def solve_motion(body: BodyView) -> list:
    """Base to tip: the joint accelerations, which are returned and added to the inboard motion, and
    the force of the joint, f = z⁺ + P⁺ λ⁺."""
    a = smooth_motions(body, "z", "accelerations")
    inherited, (w, wd, vd) = body.record["accelerations+"], body.record["inboard"]
    # at roots λ⁺ = 0: z contains the world's -g, from the first sweep
    f = body.record["z+"]
    f = f if body.at_root else add(f, body.record["P_plus"] @ inherited)
    body.store(inboard=(w, add(wd, inherited[:3]), add(vd, inherited[3:])), f=f)
    return a


class ForwardDynamicsSweeps:
    """The first two sweeps of forward dynamics under the torques `tau`.

    `names`: the inputs with respect to which its derivatives are known.
    """

    movable_inertia = True

    def __init__(self, tau: str, loads: WrenchDerivatives = NO_LOADS):
        self.tau, self.loads, self.names = tau, loads, ("q", "v", tau, *loads.names)

    def move(self, body: BodyView) -> None:
        """Base to tip: velocities, and the forces of bodies without joint accelerations."""
        move_body(body, None, self.loads)

    def filter(self, body: BodyView) -> None:
        """Tip to base: P and its gains, and the forces filtered with the torques."""
        articulate(body)
        filter_forces(body, body.joint_input(self.tau), "z", body.record["body_force"])


class ForwardDynamicsJacobian(ForwardDynamicsSweeps):
    """da/dq, da/dv and da/dtau of forward dynamics, with φ or with ψ."""

    def __init__(self, tau: str, psi: bool, loads: WrenchDerivatives = NO_LOADS):
        super().__init__(tau, loads)
        self.psi = psi

    @property
    def loops(self) -> list[str]:
        """Pseudo-code of the sweeps."""
        columns = PSI_COLUMN_LOOP if self.psi else COLUMN_LOOP
        last = "da = -W* D⁻¹ (W dtau)" if self.psi else "da = -W* D⁻¹ W dtau"
        return [
            *MOTION_LOOP,
            *FILTER_LOOPS,
            "for k = tips .. base:",
            *columns,
            f"{last}, without the tree's zeros",
        ]

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
    ) -> Program:
        """The sweeps of the derivatives with respect to `names`, one output each."""
        matrix, W, gains, free = DerivativeMatrix(loads=self.loads, solved=True), Entries(), {}, {}

        def inward(body: BodyView) -> None:
            self.filter(body)
            _whitening_entries(body, W)
            joint = body.slices["v"]
            gains[joint.start] = joint, body.record["gain"]

        def outward(body: BodyView) -> None:
            solve_motion(body)
            # with ψ, velocities are those of the links' origins; with φ, V = [w; 0] needs none
            if self.psi:
                vp = motion(body.path, body.parent["w"] + body.parent["velocity"])[3:]
                body.store(**{"velocity+": vp, "velocity": add(vp, joint_velocity(body)[3:])})
            if is_free_root(body) and not self.loads.is_world:
                _, wd, vd = body.record["inboard"]
                free.update(
                    {
                        i: (body.slices["v"], _free_root_column(wd + vd, h))
                        for i, h in enumerate(body.H, body.slices["v"].start)
                    }
                )

        def finish(body: BodyView) -> None:
            for which, arg in zip(names, outputs, strict=True):
                entries = {"q": matrix.by_q, "v": matrix.by_v, self.tau: None}.get(
                    which, matrix.by_load
                )
                shape, known = (tree.nv, arg.shape[-1]), free if which == "q" else {}
                found = _solve_columns(shape, entries, W, gains, known, self.psi)
                if which == "v":
                    found |= {at: found.get(at, 0.0) - x for at, x in matrix.free.items()}
                write_matrix(body, arg.name, shape[1], found)

        # velocities; P and z; accelerations; d tau. `finish` applies -W* D⁻¹ W
        sweeps = (
            Sweep(BASE_TO_TIP, self.move),
            Sweep(TIP_TO_BASE, inward),
            Sweep(BASE_TO_TIP, outward),
            Sweep(TIP_TO_BASE, matrix.articulated if self.psi else matrix.composites),
        )
        world = matrix.world(tree.gravity)
        return Program(
            name,
            inputs,
            outputs,
            sweeps,
            world,
            finish,
            can_loop=False,
            body_data=self.loads.body_data(tree),
        )


def _free_root_column(inboard: list, h: list) -> list:
    """The column da/dq of a free root, known without a solve: α⁺ × H* is in the range of H*, so
    that only the acceleration of the root itself rotates."""
    turn, move = h[:3], h[3:]
    return [
        -x
        for x in cross(inboard[:3], turn) + add(cross(inboard[3:], turn), cross(inboard[:3], move))
    ]


def _whitening_entries(body: BodyView, W: Entries) -> None:
    """Tip to base: the entries of W = I - H ψ K above the diagonal."""
    first, gain = body.slices["v"].start, body.record["gain"]
    sent = {}
    # the columns j of ψ K of descendants
    for j, y in body.children.get("K", {}).items():
        for i, h in enumerate(body.H, first):
            W[i, j] = -dot(h, y)
        sent[j] = force(body.path, gain.project(body.H, y))
    # K = ℰ_φ G: the columns of this joint begin at the parent
    for k in range(len(body.H)):
        sent[first + k] = force(body.path, [row[k] for row in gain.G])
    body.sent["K"] = ColumnMessage(sent)


def _solve_columns(
    shape: tuple[int, int],
    entries: Entries | None,
    W: Entries,
    gains: dict,
    free: dict,
    whitened: bool,
) -> Entries:
    """-W* D⁻¹ W X, column by column, without the tree's zeros; X = -I if there are no entries.

    `free` has the columns of free roots; if `whitened`, the entries are those of W X.
    """
    n, width = shape
    ancestors = {j: [i for i in range(n) if (i, j) in W] for j in range(n)}
    out: Entries = {}
    for j in range(width):
        if j in free:
            joint, column = free[j]
            out |= {(i, j): x for i, x in enumerate(column, joint.start)}
            continue
        # e = W x for the column x of X; W = I - H ψ K, with entries (i, k) if i is an ancestor of k
        e = [0.0] * n
        if entries is None:
            e = [W.get((i, j), 0.0) if i != j else 1.0 for i in range(n)]
        else:
            e = [entries.get((i, j), 0.0) for i in range(n)]
            if not whitened:
                column = list(e)
                for k in range(n):
                    for i in ancestors[k] if not is_zero_constant(column[k]) else ():
                        e[i] = e[i] + W[i, k] * column[k]
        # nu = D⁻¹ e, joint by joint
        nu: list[Any] = [0.0] * n
        for joint, gain in gains.values():
            if not all(map(is_zero_constant, e[joint])):
                nu[joint] = gain.solve(e[joint])
        # W* nu; of the inverse mass matrix, which is symmetric, only one half
        for k in range(n if entries is not None else j + 1):
            value = nu[k]
            for i in ancestors[k]:
                if not is_zero_constant(nu[i]):
                    value = value + W[i, k] * nu[i]
            if is_zero_constant(value):
                continue
            out[k, j] = -value if entries is not None else value
            if entries is None:
                out[j, k] = out[k, j]
    return out
