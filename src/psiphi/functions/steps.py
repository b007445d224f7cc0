"""The local steps of open-chain dynamics: one body each, in its working axes. Equations of theory.md sections 1 to 4.

Accelerations are inertial derivatives, gravity enters as the pseudo-acceleration -g of the world. With w, w' the angular
velocity and acceleration of a body and U = w'~ + w~ w~, a point at l accelerates by v' + U l, and the body needs

    F = m v' + U m p        N = dual(U J - (U J)*) + m p x v'        (Balafoutis and Patel; J the second moment)
"""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.spatial import dense
from psiphi.spatial.screws import Inertia, add, cross, dot, force, inertia, motion, pose, unrotate
from psiphi.sweeps.program import Site

ZERO3 = [0.0, 0.0, 0.0]
ZERO6 = [0.0] * 6
EYE3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def adjoint_map(H, x) -> list:
    """H* x: the spatial motion of joint rates x."""
    return dense.apply(dense.transpose(H), x)


def tensor(w, wd) -> list:
    """U = wd~ + w~ w~."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return [
        [-(yy + zz), xy - wd[2], xz + wd[1]],
        [xy + wd[2], -(xx + zz), yz - wd[0]],
        [xz - wd[1], yz + wd[0], -(xx + yy)],
    ]


def body_force(link, U, vd) -> list:
    """[N; F] that moves the body with U and v' at its origin."""
    J, p = link.pseudo, link.moment
    Fc = dense.apply(U, p)
    F = [link.mass * a + b for a, b in zip(vd, Fc, strict=True)]
    N = [
        U[2][0] * J[0][1] + U[2][1] * J[1][1] + (U[2][2] - U[1][1]) * J[1][2] - U[1][0] * J[0][2] - U[1][2] * J[2][2],
        (U[0][0] - U[2][2]) * J[0][2] + U[0][1] * J[1][2] + U[0][2] * J[2][2] - U[2][0] * J[0][0] - U[2][1] * J[0][1],
        U[1][0] * J[0][0] + (U[1][1] - U[0][0]) * J[0][1] + U[1][2] * J[0][2] - U[0][1] * J[1][1] - U[0][2] * J[1][2],
    ]
    return add(N, cross(p, vd)) + F


def accelerate(site: Site) -> None:
    """Base to tip: w, w', v' of the body under the joint accelerations "a" (zero if not an input), and its body force.

    w = R* w_p + w_d,  w' = R* w_p' + (R* w_p) x w_d + ..,  v' = R* (v_p' + U_p l) + (R* w_p + w) x v_d + ..
    """
    path, up, v, a = site.path, site.parent, site.of("v"), site.of("a")
    Vd, A = adjoint_map(site.H, v), adjoint_map(site.H, a)
    if site.link.row.Hdot is not None:
        A = add(A, site.link.row.Hdot(site.of("q"), v, site.link))
    wp = unrotate(path, up["w"])
    w = add(wp, Vd[:3])
    wd = add(add(unrotate(path, up["wd"]), cross(wp, Vd[:3])), A[:3])
    l = pose(path, EYE3, ZERO3)[1]
    vd = unrotate(path, add(up["vd"], dense.apply(up["U"], l)))
    vd = add(add(vd, cross(add(wp, w), Vd[3:])), A[3:])
    U = tensor(w, wd)
    site.keep(w=w, wd=wd, vd=vd, U=U, f=body_force(site.link, U, vd))


def still_world(gravity):
    """The world does not move; gravity is its upward pseudo-acceleration."""

    def world(site: Site) -> None:
        site.keep(w=ZERO3, wd=ZERO3, vd=[-float(g) for g in gravity], U=[ZERO3, ZERO3, ZERO3], lam=ZERO6)
        wrenches = site.inputs.get("f_ext", [])
        site.keep(**{f"wrench{i}": wrenches[6 * i : 6 * i + 6] for i in range(len(wrenches) // 6)})

    return world


def carry_wrenches(site: Site) -> None:
    """Base to tip: external wrenches on their way to their frames, in the axes of each body they pass; at the frame's
    body they act: body force - phi(k, frame) f_ext. `site.mark` holds (number, place on this body or None, world axes?)."""
    for number, place, in_world in site.mark:
        name = f"wrench{number}"
        if in_world:
            wrench = site.parent[name]
            wrench = unrotate(site.path, wrench[:3]) + unrotate(site.path, wrench[3:])
            site.keep(**{name: wrench})
        if place is None:
            continue
        R, r = place
        if not in_world:
            wrench = site.inputs["f_ext"][6 * number : 6 * number + 6]
            wrench = dense.apply(R, wrench[:3]) + dense.apply(R, wrench[3:])
        moved = add(wrench[:3], cross(r, wrench[3:])) + wrench[3:]
        site.keep(f=[x - y for x, y in zip(site.kept["f"], moved, strict=True)])


def accelerate_loaded(site: Site) -> None:
    """`accelerate`, with external wrenches."""
    accelerate(site)
    carry_wrenches(site)


def collect_forces(site: Site) -> None:
    """Tip to base: f(k) = sum phi f(c) + body force - external; T(k) = H f(k) (+ rotor inertia times a)."""
    f = _plus(site.kept["f"], site.children.get("f"))
    site.send(f=force(site.path, f))
    rotor = [J * a for J, a in zip(site.link.armature, site.of("a"), strict=True)]
    site.write_joint("tau", add(dense.apply(site.H, f), rotor))


@dataclass(frozen=True)
class Gain:
    """The joint seen through the articulated inertia P: D = H P H* + rotor, G = P H* D^-1, P+ = P - G H P.

    Where H only selects coordinates and the rotor has no inertia, the selected rows of P+ and of z+ - T are zero, exactly
    (tau_bar's zero rows; H z+ = T): they are written as such.
    """

    D: list
    factors: tuple[list, list]
    G: list  # 6 rows
    closed: tuple[int, ...]  # the coordinates the joint closes: the rows of P+ that vanish

    def force(self, z, tau, eps) -> list:
        """z+ = z + G eps."""
        out = [z[r] if r in self.closed else z[r] + dot(self.G[r], eps) for r in range(6)]
        for i, r in enumerate(self.closed):
            out[r] = tau[i]
        return out

    def adjoint(self, x) -> list:
        """G* x."""
        return [dot(column, x) for column in zip(*self.G, strict=True)]


def gain(P: Inertia, H, armature) -> tuple[Gain, Inertia]:
    """The gain of a joint with map H below the articulated inertia P, and P+."""
    U = [P @ row for row in H]  # P H*, by columns
    D = [[dot(h, u) for u in U] for h in H]
    for i, J in enumerate(armature):
        D[i][i] = D[i][i] + J
    exact = all(isinstance(J, float) and J == 0.0 for J in armature)
    selected = [_selected(row) for row in H]
    closed = tuple(i for i in selected if i is not None) if exact and None not in selected else ()
    factors = dense.factor(D)
    G = [[1.0 if r == i else 0.0 for i in closed] if r in closed else dense.solve(factors, [u[r] for u in U]) for r in range(6)]
    return Gain(D, factors, G, closed), _reduced(P, G, U, closed)


def _reduced(P: Inertia, G, U, closed) -> Inertia:
    """P+ = P - G H P."""
    entry = {}
    for r in range(6):
        for c in range(r, 6):
            value = 0.0 if r in closed or c in closed else P.entry(r, c)
            for g, u in zip(G[r], U, strict=True) if r not in closed and c not in closed else ():
                value = value - g * u[c]
            entry[r, c] = entry[c, r] = value
    return from_entries(entry)


def from_entries(entry) -> Inertia:
    """Blocks from a mapping (r, c) -> value of the 6x6 matrix."""

    def block(i: int, j: int) -> list:
        return [[entry[i + r, j + c] for c in range(3)] for r in range(3)]

    return Inertia(block(0, 0), block(0, 3), block(3, 3))


def _selected(row) -> int | None:
    """i when the row of H is the unit vector e_i."""
    if any(not isinstance(x, float) for x in row) or sorted(row) != [0.0] * 5 + [1.0]:
        return None
    return row.index(1.0)


def articulate(site: Site) -> None:
    """Tip to base: P(k) = M(k) + sum phi P+(c) phi*, and its gain."""
    P = site.link.inertia
    below = site.children.get("P")
    if below is not None:
        P = P + below
    joint_gain, P_plus = gain(P, site.H, site.link.armature)
    site.keep(gain=joint_gain)
    site.send(P=inertia(site.path, P_plus))


def filter_forces(site: Site) -> None:
    """Tip to base: z = body force + sum phi z+(c), eps = T - H z, z+ = z + G eps, nu = D^-1 eps; P alongside."""
    articulate(site)
    G, tau = site.kept["gain"], site.of("tau")
    z = _plus(site.kept["f"], site.children.get("z"))
    eps = [t - y for t, y in zip(tau, dense.apply(site.H, z), strict=True)]
    site.keep(nu=dense.solve(G.factors, eps))
    site.send(z=force(site.path, G.force(z, tau, eps)))


def smooth_accelerations(site: Site) -> None:
    """Base to tip: lambda+ = phi* lambda(p), a = nu - G* lambda+, lambda = lambda+ + H* a."""
    lam = motion(site.path, site.parent["lam"])
    a = [x - y for x, y in zip(site.kept["nu"], site.kept["gain"].adjoint(lam), strict=True)]
    site.keep(lam=add(lam, adjoint_map(site.H, a)))
    site.write_joint("a", a)


def _plus(x, y):
    return x if y is None else add(x, y)


def filter_torques(site: Site) -> None:
    """`filter_forces` of a body at rest and without weight: only the torques drive it."""
    site.keep(f=ZERO6)
    filter_forces(site)
