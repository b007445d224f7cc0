"""What each letter does at one body, in the body's working axes (docs/mathematics.md sections 1 to 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psiphi.compiler.recursions import cluster_step
from psiphi.compiler.recursions.inertia_rates import half_rate, half_rate_adjoint, rate_of, turning
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import StackedInertia
from psiphi.model.spatial.cross_products import force_cross, motion_cross
from psiphi.model.spatial.screw_paths import inertia, motion, unrotate
from psiphi.model.spatial.screws import Inertia, add, cross, dot, root, subtract, vanishes
from psiphi.model.spatial.small_matrices import adjoint_map, part

ZERO3 = [0.0, 0.0, 0.0]
ZERO6 = [0.0] * 6
EYE3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def origin(site: BodyView) -> None:
    """The world's own place."""
    site.keep(R=EYE3, p=ZERO3)


@dataclass(frozen=True)
class Gain:
    """The joint seen through the articulated inertia P: D = H P H* + rotor, G = P H* D^-1, P+ = P - G H P.

    Where H only selects coordinates and the rotor has no inertia, the selected rows of P+ and of tau_bar are zero, and
    H z+ = x for z+ = z + G (x - H z), exactly: they are written as such.
    """

    D: list
    factors: tuple[list, list]
    G: list  # by rows
    closed: tuple[int, ...]  # the coordinates the joint closes: the rows of P+ that vanish

    def update(self, z, x, innovation) -> list:
        """z+ = z + G (x - H z)."""
        out = [
            z[r] if r in self.closed else z[r] + dot(self.G[r], innovation) for r in range(len(z))
        ]
        for i, r in enumerate(self.closed):
            out[r] = x[i]
        return out

    def through(self, H, z) -> list:
        """tau_bar z = z - G H z."""
        Hz = small_matrices.apply(H, z)
        return [0.0 if r in self.closed else z[r] - dot(self.G[r], Hz) for r in range(len(z))]

    def adjoint(self, x) -> list:
        """G* x."""
        return [dot(column, x) for column in zip(*self.G, strict=True)]

    def again(self, P: Any, H, armature) -> tuple[Gain, Any]:
        """The same of other numbers: those that move, of what time changes."""
        return gain(P, H, armature)

    def solve(self, x) -> list:
        """D^-1 x."""
        return small_matrices.solve(self.factors, x)

    @property
    def roots(self) -> list:
        """1 / sqrt(d) with D = L diag(d) L*; the Cholesky factor D^1/2 is L diag(sqrt(d))."""
        return [root(d) for d in self.factors[1]]

    def half(self, x) -> list:
        """D^1/2 x."""
        return small_matrices.lower(
            self.factors[0], [y / r for y, r in zip(x, self.roots, strict=True)]
        )

    def half_adjoint(self, x) -> list:
        """(D^1/2)* x."""
        return [
            y / r for y, r in zip(small_matrices.upper(self.factors[0], x), self.roots, strict=True)
        ]

    def half_inverse(self, x) -> list:
        """D^-1/2 x."""
        return [
            y * r
            for y, r in zip(small_matrices.forward(self.factors[0], x), self.roots, strict=True)
        ]

    def half_inverse_adjoint(self, x) -> list:
        """(D^-1/2)* x."""
        return small_matrices.backward(
            self.factors[0], [y * r for y, r in zip(x, self.roots, strict=True)]
        )


def gain(P: Any, H, armature) -> tuple[Gain, Any]:
    """The gain of a joint with map H below the articulated inertia P, and P+."""
    # D = H P H* + rotor: what a torque on the joint feels of all that it carries (docs/mathematics.md section 4)
    U = [P @ row for row in H]  # P H*, by columns
    D = [[dot(h, u) for u in U] for h in H]
    coupled = bool(armature) and isinstance(armature[0], list)  # joints that move together
    for i, J in enumerate(armature):
        D[i] = add(D[i], J) if coupled else [x + J if i == j else x for j, x in enumerate(D[i])]
    # Without rotors H G = I: a coordinate that the joint opens passes no force on, and its row of P+ is zero, not rounding.
    exact = not coupled and all(map(vanishes, armature))
    selected = [_selected(row) for row in H]
    closed = tuple(i for i in selected if i is not None) if exact and None not in selected else ()
    # G = P H* D^-1, row by row: D is small and symmetric, and no inverse is formed
    factors = small_matrices.factor(D)
    G = [
        [1.0 if r == i else 0.0 for i in closed]
        if r in closed
        else small_matrices.solve(factors, [u[r] for u in U])
        for r in range(P.size)
    ]
    return Gain(D, factors, G, closed), P.less(G, U, closed) if isinstance(
        P, StackedInertia
    ) else _reduced(P, G, U, closed)


def _reduced(P: Inertia, G, U, closed) -> Inertia:
    """P+ = P - G H P."""
    entry = {}
    for r in range(P.size):
        for c in range(r, P.size):
            value = 0.0 if r in closed or c in closed else P.entry(r, c)
            for g, u in zip(G[r], U, strict=True) if r not in closed and c not in closed else ():
                value = value - g * u[c]
            entry[r, c] = entry[c, r] = value
    return type(P).from_entries(entry)


def _selected(row) -> int | None:
    """i when the row of H is the unit vector e_i."""
    if any(not isinstance(x, float) for x in row) or sorted(row) != [0.0] * (len(row) - 1) + [1.0]:
        return None
    return row.index(1.0)


def articulate(site: BodyView) -> None:
    """Tip to base: P(k) = M(k) + sum phi P+(c) phi*, and its gain."""
    # the Riccati equation M = P - E_psi P E_phi*, solved from the tips: S0 (4.5)
    P = site.link.inertia
    below = site.children.get("P+")
    if below is not None:
        P = P + below
    joint_gain, P_plus = gain(P, site.H, site.rotor)
    site.keep(P=P, P_plus=P_plus, gain=joint_gain)
    site.send(**{"P+": inertia(site.path, P_plus)})


def keep_velocity(site: BodyView) -> None:
    """Base to tip: V = phi* V(p) + H* v, and c = [0; w x v] at the link's public origin.

    Sweeps work with body-frame derivatives, which move along phi* like velocities; the vectors a and b are those of S0, with
    inertial derivatives at link origins: alpha_inertial = alpha_body + c (docs/mathematics.md section 3), whence its terms.
    """
    V = add(motion(site.path, site.parent["V"]), adjoint_map(site.H, site.of("v")))
    c = [y for at, gauge in enumerate(gauges(site)) for y in _centrifugal(part(V, at), gauge)]
    n = site.link.size
    site.keep(V=V, v=site.of("v"), c=c + [0.0] * (n - len(c)), pull=[0.0] * n)


def gauges(site: BodyView) -> Sequence:
    """The working axes' poses in the public link frames, body by body; None: they are the public ones."""
    return site.gauge if isinstance(site.gauge, list) else (site.gauge,)


def _centrifugal(V: list, gauge) -> list:
    """[0; w x v] at the link's public origin."""
    w, v = V[:3], V[3:]
    return ZERO3 + cross(
        w, v if gauge is None else add(v, cross(w, gauge.inv.translation.tolist()))
    )


def local_acceleration(site: BodyView) -> list:
    """a(k) of S1 and S2: V x V_d + Hdot v, as a derivative in body axes. Of a cluster φ_S* (a_S + H_S* (dX/dt) β)."""
    v = site.kept["v"]
    if site.is_cluster:
        return cluster_step.acceleration(site, v)
    a = motion_cross(site.kept["V"], adjoint_map(site.H, v))
    return a if site.link.row.Hdot is None else add(a, adjoint_map(joint_rates(site), v))


def local_force(site: BodyView) -> list:
    """b(k) of S1 and S2: V x* M V - M [0; g] = [w x I w + m p x s; m s + w x (w x m p)], s = w x v - g."""
    pull = gravity(site)
    return [
        y
        for at, link in enumerate(site.bodies)
        for y in _local_force(link, *(part(x, at) for x in (site.kept["V"], pull)))
    ]


def _local_force(link, V: list, pull: list) -> list:
    w, g = V[:3], pull[3:]
    s, p = subtract(cross(w, V[3:]), g), link.moment
    N = add(cross(w, small_matrices.apply(link.inertia.I, w)), cross(p, s))
    return N + [link.mass * x + y for x, y in zip(s, cross(w, cross(w, p)), strict=True)]


def gravity(site: BodyView) -> list:
    """[0; g] in the link's axes."""
    g = unrotate(site.path, site.parent["down"])
    site.keep(down=g)
    return [x for at in range(len(g) // 3) for x in ZERO3 + part(g, at, 3)]


def couple(site: BodyView) -> list:
    """(H V x* - Hdot) P+ V+, V+ = phi* V(p): what the joint does not carry, seen by the joint as it moves.

    One coordinate moves the body along h: there h* V x* = h* V+ x*, and the couple is a quadratic form of V+.
    """
    P, above = site.kept["P_plus"], motion(site.path, site.parent["V"])
    if not site.is_cluster and len(site.H) == 1 and site.link.row.Hdot is None:
        return [turning(P, above, site.H[0])]
    felt = P @ above
    return subtract(
        small_matrices.apply(site.H, force_cross(site.kept["V"], felt)),
        small_matrices.apply(joint_rates(site), felt),
    )


def bias_acceleration(site: BodyView) -> list:
    """a(k): V x V_d + Hdot v, as an inertial derivative; at a root also gravity, as the world's pseudo-acceleration."""
    a = local_acceleration(site)
    a = add(a, subtract(site.kept["c"], motion(site.path, site.parent["c"])))
    return add(a, motion(site.path, site.parent["pull"]))


def bias_force(site: BodyView) -> list:
    """b(k): V x* M V, with c taken out again: M alpha + b is the same force in either convention."""
    V, M = site.kept["V"], site.link.inertia
    return subtract(force_cross(V, M @ V), M @ site.kept["c"])


def joint_rates(site: BodyView) -> list:
    """d/dt H, by rows."""
    if site.is_cluster:
        return cluster_step.joint_rates(site)
    if site.link.row.Hdot is None:
        return [[0.0] * 6 for _ in site.H]
    return site.link.row.Hdot(site.of("q"), site.kept["v"], site.link)


def gyration(site: BodyView, x, turn=add) -> list:
    """B(k) x = (V x* M x - M (V x x) + x x* M V) / 2: the share of b = V x* M V that makes dM/dt - 2 C skew."""
    V, M = site.kept["V"], site.link.inertia
    total = turn(subtract(force_cross(V, M @ x), M @ motion_cross(V, x)), force_cross(x, M @ V))
    return [0.5 * y for y in total]


def _ring(site: BodyView) -> list:
    """d(P H*)/dt + V x* P H*, one row a degree of freedom."""
    V, P = site.kept["V"], site.kept["P"]
    return [add(u, force_cross(V, P @ h)) for u, h in zip(site.kept["U_dot"], site.H, strict=True)]


def _turning(site: BodyView) -> list:
    """[w; 0] of the link's public origin, moved to the working one: there ω̃ = diag(w~, w~) is no cross product with w alone."""
    out = []
    for at, gauge in enumerate(gauges(site)):
        w = part(site.kept["V"], at)[:3]
        out += [*w, *(ZERO3 if gauge is None else cross(gauge.inv.translation.tolist(), w))]
    return out + [0.0] * (site.link.size - len(out))


def _omega_d(site: BodyView, x) -> list:
    """V_d ×* x, V_d = H* v: of a cluster what its bodies do against the body outside."""
    return force_cross(adjoint_map(site.H, site.kept["v"]), x)


def _omega_d_adjoint(site: BodyView, x) -> list:
    return motion_cross(x, adjoint_map(site.H, site.kept["v"]))


def _turned(site: BodyView, x) -> list:
    """(Omega_d P + P Omega_d*) x."""
    P = site.kept["P"]
    if site.is_cluster:
        return add(_omega_d(site, P @ x), P @ _omega_d_adjoint(site, x))
    return rate_of(P, adjoint_map(site.H, site.kept["v"])) @ x


def _rotated(rotor: list, x: list) -> list:
    """J_m x: one number a joint, or a matrix where joints move together."""
    return (
        small_matrices.apply(rotor, x)
        if rotor and isinstance(rotor[0], list)
        else [J * y for J, y in zip(rotor, x, strict=True)]
    )


LOCAL: dict[str, Callable] = {
    # made of velocities, which a sweep outward has kept
    "omega": lambda s, x: force_cross(_turning(s), x),
    "omega*": lambda s, x: [-y for y in motion_cross(_turning(s), x)],
    "spin": lambda s, x: motion_cross(s.kept["V"], x),
    "gyro": gyration,
    "gyro*": lambda s, x: gyration(
        s, x, subtract
    ),  # V x* M - M V x is symmetric, x -> x x* M V is skew
    "spin*": lambda s, x: [-y for y in force_cross(s.kept["V"], x)],
    "H_dot": lambda s, x: small_matrices.apply(joint_rates(s), x),
    "H_dot*": lambda s, x: adjoint_map(joint_rates(s), x),
    "Omega_d": lambda s, x: _omega_d(s, x),
    "Omega_d*": lambda s, x: _omega_d_adjoint(s, x),
    # made of P and of its rate, which sweeps inward have kept
    "P_plus": lambda s, x: s.kept["P_plus"] @ x,
    "P_dot": lambda s, x: s.kept["P_dot"] @ x,
    "lambda_dot": lambda s, x: add(s.kept["P_dot"] @ x, _turned(s, x)),
    "U_ring": lambda s, x: small_matrices.apply(small_matrices.transpose(_ring(s)), x),
    "U_ring*": lambda s, x: small_matrices.apply(_ring(s), x),
    "D_rate": lambda s, x: half_rate(s, x),
    "D_rate*": lambda s, x: half_rate_adjoint(s, x),
    "Pi": lambda s, x: small_matrices.apply(s.kept["Pi"], x),
    "Pi*": lambda s, x: small_matrices.apply(small_matrices.transpose(s.kept["Pi"]), x),
    # the joint map, the body, and the joint's gain
    "H": lambda s, x: small_matrices.apply(s.H, x),
    "H*": lambda s, x: adjoint_map(s.H, x),
    "M": lambda s, x: s.link.inertia @ x,
    "P": lambda s, x: s.kept["P"] @ x,
    "D": lambda s, x: small_matrices.apply(s.kept["gain"].D, x),
    "D_inv": lambda s, x: s.kept["gain"].solve(x),
    "D_half": lambda s, x: s.kept["gain"].half(x),
    "D_half*": lambda s, x: s.kept["gain"].half_adjoint(x),
    "D_half_inv": lambda s, x: s.kept["gain"].half_inverse(x),
    "D_half_inv*": lambda s, x: s.kept["gain"].half_inverse_adjoint(x),
    "G": lambda s, x: small_matrices.apply(s.kept["gain"].G, x),
    "G*": lambda s, x: s.kept["gain"].adjoint(x),
    "tau_bar": lambda s, x: s.kept["gain"].through(s.H, x),
    "tau_bar*": lambda s, x: subtract(x, adjoint_map(s.H, s.kept["gain"].adjoint(x))),
    "rotor": lambda s, x: _rotated(s.rotor, x),
}
