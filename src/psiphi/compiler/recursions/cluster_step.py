"""What a cluster of bodies does that one body does not: its joints move together (`compiler/axes/cluster_axes.py`, docs/embedding.md).

a(S) = φ_S* (a_S + H_S* (dX/dt) β)      dH/dt, d²H, dP/dt by the rules for H and P themselves, run on numbers that move
"""

from __future__ import annotations

from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import NOTHING, StackedInertia
from psiphi.model.spatial.cross_products import motion_cross
from psiphi.model.spatial.dual_numbers import Dual, rate
from psiphi.model.spatial.screws import Inertia, add, subtract
from psiphi.model.spatial.small_matrices import adjoint_map, part


def acceleration(site: BodyView, v: list) -> list:
    """a(S), base to tip among the bodies: each one's own share, and what it inherits."""
    link, q = site.link, site.of("q")
    # β = X v are the rates of all joints, (dX/dt) v what they gain without anybody's doing
    rates = link.laws.rates(q, v)
    b, d = (link.laws.of_v(x) for x in (rates, link.laws.drift(q, rates)))
    own = []
    for at, (body, H, x) in enumerate(
        zip(link.links, link.maps(q), link.laws.of_q(q), strict=True)
    ):
        a = add(
            motion_cross(part(site.kept["V"], at), adjoint_map(H, b[at])), adjoint_map(H, d[at])
        )
        own.append(
            a
            if body.row.Hdot is None
            else add(a, adjoint_map(body.row.Hdot(x, b[at], body), b[at]))
        )
    return link.spread(site.path[0], own) + link.spun([x for part_of in d for x in part_of])


def _moving(site: BodyView) -> list:
    """dq/dt of all joints."""
    laws, q = site.link.laws, site.of("q")
    return laws.rate(q, laws.rates(q, site.kept["v"]))


def risen(site: BodyView, *along: list) -> list:
    """dH[x], or d²H[x, z] (x the same numbers wherever z leads), of H(S) = X* H_S φ_S in body axes, by rows."""
    link = site.link
    flat = link.laws.risen(lambda q: [y for row in link.H(q) for y in row], site.of("q"), *along)
    return [flat[i : i + link.size] for i in range(0, len(flat), link.size)]


def joint_rates(site: BodyView) -> list:
    """dH/dt, by rows."""
    return risen(site, site.kept["v"])


def differentiate(site: BodyView) -> None:
    """Tip to base: dP/dt, dU/dt, dD/dt, and d/dt (φ P+ φ*) for the parent: `articulate`, on numbers that move."""
    link, P = site.link, site.kept["P"]
    P_dot = site.children.get("P+_dot") or StackedInertia([NOTHING] * len(link.parts))
    # every number with its rate: what `articulate` does to P is done to P + ε Ṗ, H + ε Ḣ, and the rates are read off
    moving = StackedInertia([_dual(a, b) for a, b in zip(P.blocks, P_dot.blocks, strict=True)])
    q = [Dual(x, rate) for x, rate in zip(site.of("q"), _moving(site), strict=True)]
    H = link.H(q)
    U = [moving @ h for h in H]
    rotor = link.rotor(q)
    joint, P_plus = site.kept["gain"].again(
        moving, H, [[Dual(0.0) + x for x in row] for row in rotor]
    )
    sent: Inertia = link.path(q)[0].inertia(P_plus)
    rates = {(r, c): rate(sent.entry(r, c)) for r in range(6) for c in range(6)}
    site.keep(
        P_dot=P_dot,
        U_dot=[[rate(x) for x in u] for u in U],
        D_dot=[[rate(x) for x in row] for row in joint.D],
    )
    site.send(**{"P+_dot": Inertia.from_entries(rates)})


def split(site: BodyView, rows: type[list]) -> None:
    """Tip to base: Pi(S) = sum of what came, and φ {τ̄ Π τ̄* + P+ (Ω_δ* - Ḣ* G*)} φ* for the parent, column by column."""
    joint, P_plus, n = site.kept["gain"], site.kept["P_plus"], site.link.size
    Pi = site.children.get("Pi") or rows([[0.0] * n for _ in range(n)])
    site.keep(Pi=Pi)
    (junction,), H_dot, columns = site.path, joint_rates(site), []
    for c in range(6):
        # column c of what the parent gets: φ* of a unit motion, through the joint and back as a force by φ
        x = junction.motion([1.0 if i == c else 0.0 for i in range(6)])
        felt = [-y for y in adjoint_map(H_dot, joint.adjoint(x))]
        through = subtract(x, adjoint_map(site.H, joint.adjoint(x)))  # τ̄* x
        turned = motion_cross(x, adjoint_map(site.H, site.kept["v"]))  # Ω_δ* x
        y = add(
            joint.through(site.H, small_matrices.apply(Pi, through)), P_plus @ add(turned, felt)
        )
        columns.append(junction.force(y))
    site.send(Pi=rows(small_matrices.transpose(columns)))


def _dual(P: Inertia, P_dot: Inertia) -> Inertia:
    return Inertia.from_entries(
        {(r, c): Dual(P.entry(r, c), P_dot.entry(r, c)) for r in range(6) for c in range(6)}
    )
