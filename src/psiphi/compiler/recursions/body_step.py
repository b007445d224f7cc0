"""The step of each letter at one body, in the body's working axes (docs/mathematics.md sections 1
to 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psiphi.compiler.axes.cluster_axes import RotorLink
from psiphi.compiler.axes.link import Link
from psiphi.compiler.recursions import cluster_step
from psiphi.compiler.recursions.inertia_rates import (
    half_rate,
    half_rate_adjoint,
    inertia_rate,
    quadratic_couple,
)
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.model import Pose
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import StackedInertia
from psiphi.model.spatial.cross_products import force_cross, motion_cross
from psiphi.model.spatial.screw_paths import inertia, motion, unrotate
from psiphi.model.spatial.screws import (
    Inertia,
    add,
    cross,
    dot,
    is_zero_constant,
    square_root,
    subtract,
)
from psiphi.model.spatial.small_matrices import adjoint_map, body_part

ZERO3 = [0.0, 0.0, 0.0]
ZERO6 = [0.0] * 6
EYE3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def store_world_pose(body: BodyView) -> None:
    """Store the pose of the world: the identity."""
    body.store(R=EYE3, p=ZERO3)


@dataclass(frozen=True)
class Gain:
    """The joint seen through the articulated inertia P:

        D = H P H* + rotor        G = P H* D^-1        P+ = P - G H P

    If H only selects coordinates and the rotor has no inertia, the selected rows of P+ and of
    tau_bar are exactly zero, and H z+ = x for z+ = z + G (x - H z). These rows are set, not
    computed.
    """

    D: list
    factors: tuple[list, list]
    G: list  # by rows
    # the selected coordinates: these rows of P+ are zero
    zero_rows: tuple[int, ...]

    def update(self, z: list, x: list, innovation: list) -> list:
        """z+ = z + G (x - H z)."""
        out = [
            z[r] if r in self.zero_rows else z[r] + dot(self.G[r], innovation)
            for r in range(len(z))
        ]
        for i, r in enumerate(self.zero_rows):
            out[r] = x[i]
        return out

    def project(self, H: list, z: list) -> list:
        """tau_bar z = z - G H z."""
        Hz = small_matrices.apply(H, z)
        return [0.0 if r in self.zero_rows else z[r] - dot(self.G[r], Hz) for r in range(len(z))]

    def adjoint(self, x: list) -> list:
        """G* x."""
        return [dot(column, x) for column in zip(*self.G, strict=True)]

    def recompute(self, P: Inertia | StackedInertia, H: list, armature: list) -> tuple[Gain, Any]:
        """The gain and P+ for other numbers, such as dual numbers."""
        return compute_gain(P, H, armature)

    def solve(self, x: list) -> list:
        """D^-1 x."""
        return small_matrices.solve(self.factors, x)

    @property
    def roots(self) -> list:
        """1 / sqrt(d) with D = L diag(d) L*; the Cholesky factor D^1/2 is L diag(sqrt(d))."""
        return [square_root(d) for d in self.factors[1]]

    def half(self, x: list) -> list:
        """D^1/2 x."""
        return small_matrices.multiply_lower(
            self.factors[0], [y / r for y, r in zip(x, self.roots, strict=True)]
        )

    def half_adjoint(self, x: list) -> list:
        """(D^1/2)* x."""
        return [
            y / r
            for y, r in zip(
                small_matrices.multiply_upper(self.factors[0], x), self.roots, strict=True
            )
        ]

    def half_inverse(self, x: list) -> list:
        """D^-1/2 x."""
        return [
            y * r
            for y, r in zip(small_matrices.forward(self.factors[0], x), self.roots, strict=True)
        ]

    def half_inverse_adjoint(self, x: list) -> list:
        """(D^-1/2)* x."""
        return small_matrices.backward(
            self.factors[0], [y * r for y, r in zip(x, self.roots, strict=True)]
        )


def compute_gain(P: Inertia | StackedInertia, H: list, armature: list) -> tuple[Gain, Any]:
    """The gain of a joint with map H and articulated inertia P, and P+."""
    # D = H P H* + rotor: the inertia that a torque on the joint accelerates (docs/mathematics.md
    # section 4)
    U = [P @ row for row in H]  # P H*, by columns
    D = [[dot(h, u) for u in U] for h in H]
    coupled = bool(armature) and isinstance(armature[0], list)  # a cluster
    for i, J in enumerate(armature):
        D[i] = add(D[i], J) if coupled else [x + J if i == j else x for j, x in enumerate(D[i])]
    # Without rotors H G = I: a free coordinate transmits no force, and its row of P+ is exactly
    # zero.
    exact = not coupled and all(map(is_zero_constant, armature))
    selected = [_unit_index(row) for row in H]
    zero_rows = (
        tuple(i for i in selected if i is not None) if exact and None not in selected else ()
    )
    # G = P H* D^-1, row by row: D is small and symmetric, and is factored, not inverted
    factors = small_matrices.factor(D)
    G = [
        [1.0 if r == i else 0.0 for i in zero_rows]
        if r in zero_rows
        else small_matrices.solve(factors, [u[r] for u in U])
        for r in range(P.size)
    ]
    if isinstance(P, StackedInertia):
        return Gain(D, factors, G, zero_rows), P.minus_product(G, U, zero_rows)
    return Gain(D, factors, G, zero_rows), _subtract_joint(P, G, U, zero_rows)


def _subtract_joint(P: Inertia, G: list, U: list, zero_rows: tuple[int, ...]) -> Inertia:
    """P+ = P - G H P."""
    entry = {}
    for r in range(P.size):
        for c in range(r, P.size):
            zero = r in zero_rows or c in zero_rows
            value = 0.0 if zero else P.entry(r, c)
            for g, u in zip(G[r], U, strict=True) if not zero else ():
                value = value - g * u[c]
            entry[r, c] = entry[c, r] = value
    return type(P).from_entries(entry)


def _unit_index(row: list) -> int | None:
    """i if the row of H is the unit vector e_i, else None."""
    if any(not isinstance(x, float) for x in row) or sorted(row) != [0.0] * (len(row) - 1) + [1.0]:
        return None
    return row.index(1.0)


def articulate(body: BodyView) -> None:
    """Tip to base: P(k) = M(k) + sum phi P+(c) phi*, and its gain."""
    # the Riccati equation M = P - E_psi P E_phi*, solved from the tips: S0 (4.5)
    P = body.link.inertia
    below = body.children.get("P+")
    if below is not None:
        P = P + below
    joint_gain, P_plus = compute_gain(P, body.H, body.rotor)
    body.store(P=P, P_plus=P_plus, gain=joint_gain)
    body.send(**{"P+": inertia(body.path, P_plus)})


def store_velocity(body: BodyView) -> None:
    """Base to tip: V = phi* V(p) + H* v, and c = [0; w x v] at the origin of the public link frame.

    Sweeps use body-frame derivatives, which propagate by phi* as velocities do. The vectors a and b
    are those of S0, with inertial derivatives at link origins: alpha_inertial = alpha_body + c
    (docs/mathematics.md section 3).
    """
    V = add(motion(body.path, body.parent["V"]), adjoint_map(body.H, body.joint_input("v")))
    c = [
        y
        for index, gauge in enumerate(gauges(body))
        for y in _centrifugal(body_part(V, index), gauge)
    ]
    n = body.link.size
    body.store(
        V=V, v=body.joint_input("v"), c=c + [0.0] * (n - len(c)), world_acceleration=[0.0] * n
    )


def gauges(body: BodyView) -> Sequence:
    """The poses of the working axes in the public link frames, by body; None for public axes."""
    return body.gauge if isinstance(body.gauge, list) else (body.gauge,)


def _centrifugal(V: list, gauge: Pose | None) -> list:
    """[0; w x v] at the origin of the public link frame."""
    w, v = V[:3], V[3:]
    return ZERO3 + cross(
        w, v if gauge is None else add(v, cross(w, gauge.inv.translation.tolist()))
    )


def local_acceleration(body: BodyView) -> list:
    """a(k) of S1 and S2: V x V_d + Hdot v, as a derivative in body axes.

    For a cluster: φ_S* (a_S + H_S* (dX/dt) β).
    """
    v = body.record["v"]
    if body.is_cluster:
        return cluster_step.acceleration(body, v)
    a = motion_cross(body.record["V"], adjoint_map(body.H, v))
    return a if body.link.row.Hdot is None else add(a, adjoint_map(joint_rates(body), v))


def local_force(body: BodyView) -> list:
    """b(k) of S1 and S2: V x* M V - M [0; g].

    b(k) = [w x I w + m p x s; m s + w x (w x m p)],        s = w x v - g
    """
    g = gravity(body)
    return [
        y
        for index, link in enumerate(body.links)
        for y in _local_force(link, *(body_part(x, index) for x in (body.record["V"], g)))
    ]


def _local_force(link: Link | RotorLink, V: list, gravity: list) -> list:
    w, g = V[:3], gravity[3:]
    s, p = subtract(cross(w, V[3:]), g), link.moment
    N = add(cross(w, small_matrices.apply(link.inertia.I, w)), cross(p, s))
    return N + [link.mass * x + y for x, y in zip(s, cross(w, cross(w, p)), strict=True)]


def gravity(body: BodyView) -> list:
    """[0; g] in the axes of the link."""
    g = unrotate(body.path, body.parent["gravity"])
    body.store(gravity=g)
    return [x for index in range(len(g) // 3) for x in ZERO3 + body_part(g, index, 3)]


def couple(body: BodyView) -> list:
    """(H V x* - Hdot) P+ V+, V+ = phi* V(p): the projection onto the moving joint of P+ V+, which
    the joint does not carry.

    For one coordinate, a motion along h, h* V x* = h* V+ x*, so that the couple is a quadratic form
    of V+.
    """
    P, above = body.record["P_plus"], motion(body.path, body.parent["V"])
    if not body.is_cluster and len(body.H) == 1 and body.link.row.Hdot is None:
        return [quadratic_couple(P, above, body.H[0])]
    momentum = P @ above
    return subtract(
        small_matrices.apply(body.H, force_cross(body.record["V"], momentum)),
        small_matrices.apply(joint_rates(body), momentum),
    )


def bias_acceleration(body: BodyView) -> list:
    """a(k): V x V_d + Hdot v as an inertial derivative. At a root it includes gravity, as the
    pseudo-acceleration of the world."""
    a = local_acceleration(body)
    a = add(a, subtract(body.record["c"], motion(body.path, body.parent["c"])))
    return add(a, motion(body.path, body.parent["world_acceleration"]))


def bias_force(body: BodyView) -> list:
    """b(k): V x* M V minus M c. M alpha + b is the same force in both conventions."""
    V, M = body.record["V"], body.link.inertia
    return subtract(force_cross(V, M @ V), M @ body.record["c"])


def joint_rates(body: BodyView) -> list:
    """dH/dt, by rows."""
    if body.is_cluster:
        return cluster_step.joint_rates(body)
    if body.link.row.Hdot is None:
        return [[0.0] * 6 for _ in body.H]
    return body.link.row.Hdot(body.joint_input("q"), body.record["v"], body.link)


def gyration(body: BodyView, x: list, combine: Callable[[list, list], list] = add) -> list:
    """B(k) x = (V x* M x - M (V x x) + x x* M V) / 2.

    B is the part of b = V x* M V that makes dM/dt - 2 C skew-symmetric.
    """
    V, M = body.record["V"], body.link.inertia
    total = combine(subtract(force_cross(V, M @ x), M @ motion_cross(V, x)), force_cross(x, M @ V))
    return [0.5 * y for y in total]


def _u_ring(body: BodyView) -> list:
    """d(P H*)/dt + V x* P H*, one row per degree of freedom."""
    V, P = body.record["V"], body.record["P"]
    return [
        add(u, force_cross(V, P @ h)) for u, h in zip(body.record["U_dot"], body.H, strict=True)
    ]


def _angular_velocity(body: BodyView) -> list:
    """[w; 0] of the public link origin, moved to the working origin. There ω̃ = diag(w~, w~) is not
    a cross product with w alone."""
    out = []
    for index, gauge in enumerate(gauges(body)):
        w = body_part(body.record["V"], index)[:3]
        out += [*w, *(ZERO3 if gauge is None else cross(gauge.inv.translation.tolist(), w))]
    return out + [0.0] * (body.link.size - len(out))


def _omega_d(body: BodyView, x: list) -> list:
    """V_d ×* x with V_d = H* v; for a cluster, the motion of its bodies relative to the parent."""
    return force_cross(adjoint_map(body.H, body.record["v"]), x)


def _omega_d_adjoint(body: BodyView, x: list) -> list:
    return motion_cross(x, adjoint_map(body.H, body.record["v"]))


def _frame_rate(body: BodyView, x: list) -> list:
    """(Omega_d P + P Omega_d*) x."""
    P = body.record["P"]
    if body.is_cluster:
        return add(_omega_d(body, P @ x), P @ _omega_d_adjoint(body, x))
    return inertia_rate(P, adjoint_map(body.H, body.record["v"])) @ x


def _apply_rotor(rotor: list, x: list) -> list:
    """J_m x: one number per joint, or a matrix for a cluster."""
    return (
        small_matrices.apply(rotor, x)
        if rotor and isinstance(rotor[0], list)
        else [J * y for J, y in zip(rotor, x, strict=True)]
    )


LOCAL: dict[str, Callable] = {
    # velocities, stored by a sweep from base to tip
    "omega": lambda s, x: force_cross(_angular_velocity(s), x),
    "omega*": lambda s, x: [-y for y in motion_cross(_angular_velocity(s), x)],
    "spin": lambda s, x: motion_cross(s.record["V"], x),
    "gyro": gyration,
    # V x* M - M V x is symmetric, x -> x x* M V is skew
    "gyro*": lambda s, x: gyration(s, x, subtract),
    "spin*": lambda s, x: [-y for y in force_cross(s.record["V"], x)],
    "H_dot": lambda s, x: small_matrices.apply(joint_rates(s), x),
    "H_dot*": lambda s, x: adjoint_map(joint_rates(s), x),
    "Omega_d": lambda s, x: _omega_d(s, x),
    "Omega_d*": lambda s, x: _omega_d_adjoint(s, x),
    # P and its rate, stored by sweeps from tip to base
    "P_plus": lambda s, x: s.record["P_plus"] @ x,
    "P_dot": lambda s, x: s.record["P_dot"] @ x,
    "lambda_dot": lambda s, x: add(s.record["P_dot"] @ x, _frame_rate(s, x)),
    "U_ring": lambda s, x: small_matrices.apply(small_matrices.transpose(_u_ring(s)), x),
    "U_ring*": lambda s, x: small_matrices.apply(_u_ring(s), x),
    "D_rate": lambda s, x: half_rate(s, x),
    "D_rate*": lambda s, x: half_rate_adjoint(s, x),
    "Pi": lambda s, x: small_matrices.apply(s.record["Pi"], x),
    "Pi*": lambda s, x: small_matrices.apply(small_matrices.transpose(s.record["Pi"]), x),
    # the joint map, the body, and the gain of the joint
    "H": lambda s, x: small_matrices.apply(s.H, x),
    "H*": lambda s, x: adjoint_map(s.H, x),
    "M": lambda s, x: s.link.inertia @ x,
    "P": lambda s, x: s.record["P"] @ x,
    "D": lambda s, x: small_matrices.apply(s.record["gain"].D, x),
    "D_inv": lambda s, x: s.record["gain"].solve(x),
    "D_half": lambda s, x: s.record["gain"].half(x),
    "D_half*": lambda s, x: s.record["gain"].half_adjoint(x),
    "D_half_inv": lambda s, x: s.record["gain"].half_inverse(x),
    "D_half_inv*": lambda s, x: s.record["gain"].half_inverse_adjoint(x),
    "G": lambda s, x: small_matrices.apply(s.record["gain"].G, x),
    "G*": lambda s, x: s.record["gain"].adjoint(x),
    "tau_bar": lambda s, x: s.record["gain"].project(s.H, x),
    "tau_bar*": lambda s, x: subtract(x, adjoint_map(s.H, s.record["gain"].adjoint(x))),
    "rotor": lambda s, x: _apply_rotor(s.rotor, x),
}
