"""The steps of a cluster: bodies whose joints move together (`compiler/axes/cluster_axes.py`,
docs/embedding.md).

    a(S) = φ_S* (a_S + H_S* (dX/dt) β)

dH/dt, d²H and dP/dt apply the rules for H and P to dual numbers.
"""

from __future__ import annotations

from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import ZERO_INERTIA, StackedInertia
from psiphi.model.spatial.cross_products import motion_cross
from psiphi.model.spatial.dual_numbers import Dual, rate
from psiphi.model.spatial.screws import Inertia, add, subtract
from psiphi.model.spatial.small_matrices import adjoint_map, body_part


def acceleration(body: BodyView, v: list) -> list:
    """a(S), base to tip among the bodies: the share of each body, and what it inherits."""
    link, q = body.link, body.joint_input("q")
    # β = X v are the rates of all joints, (dX/dt) v their drift
    rates = link.kinematics.rates(q, v)
    b, d = (link.kinematics.split_v(x) for x in (rates, link.kinematics.drift(q, rates)))
    own = []
    for index, (member, H, x) in enumerate(
        zip(link.links, link.maps(q), link.kinematics.split_q(q), strict=True)
    ):
        a = add(
            motion_cross(body_part(body.record["V"], index), adjoint_map(H, b[index])),
            adjoint_map(H, d[index]),
        )
        own.append(
            a
            if member.row.Hdot is None
            else add(a, adjoint_map(member.row.Hdot(x, b[index], member), b[index]))
        )
    return link.accumulate_motion(body.path[0], own) + link.rotor_motion(
        [x for part_of in d for x in part_of]
    )


def _coordinate_rates(body: BodyView) -> list:
    """dq/dt of all joints."""
    kinematics, q = body.link.kinematics, body.joint_input("q")
    return kinematics.rate(q, kinematics.rates(q, body.record["v"]))


def joint_map_derivative(body: BodyView, *along: list) -> list:
    """dH[x], or d²H[x, z] with x constant along z, of H(S) = X* H_S φ_S in body axes, by rows."""
    link = body.link
    flat = link.kinematics.joint_map_derivative(
        lambda q: [y for row in link.H(q) for y in row], body.joint_input("q"), *along
    )
    return [flat[i : i + link.size] for i in range(0, len(flat), link.size)]


def joint_rates(body: BodyView) -> list:
    """dH/dt, by rows."""
    return joint_map_derivative(body, body.record["v"])


def differentiate(body: BodyView) -> None:
    """Tip to base: dP/dt, dU/dt, dD/dt, and d/dt (φ P+ φ*) for the parent: `articulate` on dual
    numbers."""
    link, P = body.link, body.record["P"]
    P_dot = body.children.get("P+_dot") or StackedInertia([ZERO_INERTIA] * len(link.parts))
    # `articulate` on P + ε Ṗ and H + ε Ḣ; the dual parts are the rates
    moving = StackedInertia([_dual(a, b) for a, b in zip(P.blocks, P_dot.blocks, strict=True)])
    q = [
        Dual(x, rate)
        for x, rate in zip(body.joint_input("q"), _coordinate_rates(body), strict=True)
    ]
    H = link.H(q)
    U = [moving @ h for h in H]
    rotor = link.rotor_inertia(q)
    joint, P_plus = body.record["gain"].recompute(
        moving, H, [[Dual(0.0) + x for x in row] for row in rotor]
    )
    sent: Inertia = link.path(q)[0].inertia(P_plus)
    rates = {(r, c): rate(sent.entry(r, c)) for r in range(6) for c in range(6)}
    body.store(
        P_dot=P_dot,
        U_dot=[[rate(x) for x in u] for u in U],
        D_dot=[[rate(x) for x in row] for row in joint.D],
    )
    body.send(**{"P+_dot": Inertia.from_entries(rates)})


def split_rate(body: BodyView, rows: type[list]) -> None:
    """Tip to base, column by column: Pi(S) = sum of the messages. The message to the parent is

    φ {τ̄ Π τ̄* + P+ (Ω_δ* - Ḣ* G*)} φ*
    """
    joint, P_plus, n = body.record["gain"], body.record["P_plus"], body.link.size
    Pi = body.children.get("Pi") or rows([[0.0] * n for _ in range(n)])
    body.store(Pi=Pi)
    (transform,), H_dot, columns = body.path, joint_rates(body), []
    for c in range(6):
        # column c of the message: φ* of a unit motion, through the joint, and back as a force by φ
        x = transform.motion([1.0 if i == c else 0.0 for i in range(6)])
        H_dot_G_x = adjoint_map(H_dot, joint.adjoint(x))  # Ḣ* G* x
        projected = subtract(x, adjoint_map(body.H, joint.adjoint(x)))  # τ̄* x
        omega_x = motion_cross(x, adjoint_map(body.H, body.record["v"]))  # Ω_δ* x
        y = add(
            joint.project(body.H, small_matrices.apply(Pi, projected)),
            P_plus @ add(omega_x, [-y for y in H_dot_G_x]),
        )
        columns.append(transform.force(y))
    body.send(Pi=rows(small_matrices.transpose(columns)))


def _dual(P: Inertia, P_dot: Inertia) -> Inertia:
    return Inertia.from_entries(
        {(r, c): Dual(P.entry(r, c), P_dot.entry(r, c)) for r in range(6) for c in range(6)}
    )
