"""jvp and vjp of forward dynamics: the sweeps of the value, and a few more.

    jvp   base to tip: the change of the Newton-Euler motion; tip to base: its forces, filtered;
          base to tip: da, smoothed
    vjp   tip to base: the weights, filtered with the forces of the value; base to tip: Λ = ψ* H* ν
          beside the accelerations; tip to base: the adjoint of the change of the motion

P and its gains are those of the value; they are not differentiated.
"""

from __future__ import annotations

from functools import partial

from psiphi.compiler.autodiff.forward_dynamics_jacobian import (
    FILTER_LOOPS,
    ForwardDynamicsSweeps,
    filter_forces,
    smooth_motions,
    solve_motion,
)
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import MOTION_LOOP, Arguments, world_record
from psiphi.compiler.autodiff.wrench_derivatives import WrenchDerivatives
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import ZERO3, ZERO6, force_cross
from psiphi.compiler.recursions.composite_bodies import axial, joint_velocity, skew_product
from psiphi.compiler.recursions.newton_euler import body_force, tensor_of_products
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, TIP_TO_BASE, BodyView, Program, Sweep
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import force, rotate, unrotate
from psiphi.model.spatial.screws import add, cross, subtract
from psiphi.model.spatial.small_matrices import adjoint_map

JVP_LOOPS = [
    "    dw, dw', dv' of the body, from H* dq and H* dv;  db = the change of its force",
    "for k = tips .. base:",
    "    dz(k) = db(k) + Σ_c [ψ(k,c) dz(c) + φ(k,c) (G dtau + ⟦f⟧ H* dq)(c)]",
    "for k = base .. tips:",
    "    da = D⁻¹ (dtau - H dz) - K* dλ",
]
VJP_LOOPS = [
    "    Λ(k) = ψ*(p,k) Λ(p) + H* D⁻¹ (I - H ψ K) weight,  tau_bar = M⁻¹ weight",
    "for k = tips .. base:",
    "    w_bar, w'_bar, v'_bar of the body, from Λ and its children",
    "    q_bar, v_bar = -H (these × the inboard motion, f × Λ⁺)",
]
REST = ZERO3, ZERO3, ZERO3, [ZERO3, ZERO3, ZERO3]  # the change of the world's w, w', v' and U


class ForwardDynamicsJvp(ForwardDynamicsSweeps):
    """(a, da) for changes of q, v and the torques `tau`."""

    loops = (*MOTION_LOOP, *FILTER_LOOPS, *JVP_LOOPS)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
    ) -> Program:
        """The sweeps for changes of the inputs `names`."""
        value, change = (arg.name for arg in outputs)
        change_of = partial(joint_change, names=names)

        def outward(body: BodyView) -> None:
            body.write_joint(value, solve_motion(body))
            change_motion(body, change_of(body, "q"), change_of(body, "v"))
            self.loads.change(
                body, adjoint_map(body.H, change_of(body, "q")), self.loads.input_name in names
            )

        def gather(body: BodyView) -> None:
            # the force that the joint transmits turns with the joint: + ⟦f⟧ H* dq
            filter_forces(body, change_of(body, self.tau), "dz", body.record["d_body_force"])
            turned = force_cross(adjoint_map(body.H, change_of(body, "q")), body.record["f"])
            body.send(dz=force(body.path, add(body.record["dz+"], turned)))

        def spread(body: BodyView) -> None:
            body.write_joint(change, smooth_motions(body, "dz", "da"))

        sweeps = (
            Sweep(BASE_TO_TIP, self.move),
            Sweep(TIP_TO_BASE, self.filter),
            Sweep(BASE_TO_TIP, outward),
            Sweep(TIP_TO_BASE, gather),
            Sweep(BASE_TO_TIP, spread),
        )
        world = world_record(tree.gravity, self.loads, d_motion=REST, da=ZERO6)
        return Program(name, inputs, outputs, sweeps, world, body_data=self.loads.body_data(tree))


def joint_change(body: BodyView, which: str | None, names: tuple[str, ...]) -> list:
    """The joint's part of the change of an input; zeros if the input is not among `names`."""
    return body.joint_input(f"d{which}") if which in names else [0.0] * len(body.H)


def change_motion(body: BodyView, x: list, y: list, z: list | None = None) -> None:
    """Base to tip: the change of w, w', v' and of the body's force, for changes x of q, y of v and
    z of the joint accelerations."""
    chi, dVd, Vd, path = (
        adjoint_map(body.H, x),
        adjoint_map(body.H, y),
        joint_velocity(body),
        body.path,
    )
    w, (wp, wdp, vdp) = body.record["w"], body.record["inboard"]
    dw_p, dwd_p, dvd_p, dU_p = body.parent["d_motion"]
    # chi = H* dq turns the body's axes: d(R* y) = R* dy + (R* y) x chi. Of w = R* w_p + w_d:
    dwp = add(unrotate(path, dw_p), cross(wp, chi[:3]))
    dw = add(dwp, dVd[:3])
    # of w' = R* w'_p + (R* w_p) x w_d + ..
    dwd = add(add(unrotate(path, dwd_p), cross(wdp, chi[:3])), cross(dwp, Vd[:3]))
    dwd = add(dwd, cross(wp, dVd[:3]))
    # of v' = R* (v'_p + U_p l) + (R* w_p + w) x v_d + .., U_p = w'_p~ + w_p~ w_p~; chi also moves l
    dvd = add(
        unrotate(path, add(dvd_p, small_matrices.apply(dU_p, body.record["l"]))),
        cross(vdp, chi[:3]),
    )
    dvd = add(dvd, add(cross(wdp, chi[3:]), cross(wp, cross(wp, chi[3:]))))
    dvd = add(add(dvd, cross(add(dwp, dw), Vd[3:])), cross(add(wp, w), dVd[3:]))
    if z is not None:
        acceleration = adjoint_map(body.H, z)
        dwd, dvd = add(dwd, acceleration[:3]), add(dvd, acceleration[3:])
    # dU = dw'~ + dw~ w~ + w~ dw~; the body's force is linear in U and v'
    xx, yy, zz = (2.0 * w[i] * dw[i] for i in range(3))
    xy, xz, yz = (w[i] * dw[j] + w[j] * dw[i] for i, j in ((0, 1), (0, 2), (1, 2)))
    dU = tensor_of_products(xx, yy, zz, xy, xz, yz, dwd)
    body.store(d_motion=(dw, dwd, dvd, dU), d_body_force=body_force(body.link, dU, dvd))


class ForwardDynamicsVjp(ForwardDynamicsSweeps):
    """(a, gradients of w* a with respect to q, v and the torques `tau`)."""

    loops = (*MOTION_LOOP, *FILTER_LOOPS, *VJP_LOOPS)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
    ) -> Program:
        """The sweeps of the gradients with respect to `names`."""
        value, weight = outputs[0].name, f"{outputs[0].name}_weight"
        bars = {which: arg.name for which, arg in zip(names, outputs[1:], strict=True)}

        def inward(body: BodyView) -> None:
            self.filter(body)
            filter_forces(body, body.joint_input(weight), "s", ZERO6)

        def outward(body: BodyView) -> None:
            body.write_joint(value, solve_motion(body))
            tau_bar = smooth_motions(body, "s", "costate")
            if self.tau in bars:
                body.write_joint(bars[self.tau], tau_bar)
            if self.loads.input_name in bars:
                self.loads.write_gradient(body, bars[self.loads.input_name], 1.0)

        def adjoint(body: BodyView) -> None:
            for which, bar in zip("qv", motion_gradients(body, self.loads), strict=False):
                if which in bars:
                    body.write_joint(bars[which], bar)

        sweeps = (
            Sweep(BASE_TO_TIP, self.move),
            Sweep(TIP_TO_BASE, inward),
            Sweep(BASE_TO_TIP, outward),
            *([Sweep(TIP_TO_BASE, adjoint)] if {"q", "v"} & set(names) else []),
        )
        world = world_record(tree.gravity, self.loads, costate=ZERO6)
        return Program(name, inputs, outputs, sweeps, world, body_data=self.loads.body_data(tree))


def motion_gradients(body: BodyView, loads: WrenchDerivatives) -> tuple[list, list, list]:
    """Tip to base: q_bar and v_bar of this joint, and [w'_bar; v'_bar] of the body, by the adjoint
    of `change_motion`. y_bar is the gradient of the weighted sum with respect to y.

    q_bar and v_bar are those of forward dynamics, a = M⁻¹ (tau - ..). Those of inverse dynamics
    have the opposite sign.
    """
    path, (wp, wdp, vdp), Vd = body.path, body.record["inboard"], joint_velocity(body)
    # the body's force, weighted by Λ = [turn; move]: U_bar and v'_bar
    turn, move, p = body.record["costate"][:3], body.record["costate"][3:], body.link.moment
    W = skew_product(turn, body.link.pseudo)
    U = [[move[r] * p[c] + W[r][c] for c in range(3)] for r in range(3)]
    vb = [body.link.mass * y + x for y, x in zip(move, cross(turn, p), strict=True)]
    wb = wdb = ZERO3
    # from the children: v'_bar, w'_bar, w_bar, and U_bar = F l*, since their v' reads U l
    if (below := body.children.get("motion_bar")) is not None:
        vb, wdb, wb = add(vb, below[:3]), below[3:6], below[6:9]
        U = [[U[i][j] + below[9 + 3 * i + j] for j in range(3)] for i in range(3)]
    # U = w'~ + w~ w~: the skew part is linear in w', the symmetric part quadratic in w
    wdb = add(wdb, axial(U))
    S = [
        [
            U[i][j] + U[j][i]
            if i != j
            else -2.0 * (U[(i + 1) % 3][(i + 1) % 3] + U[(i + 2) % 3][(i + 2) % 3])
            for j in range(3)
        ]
        for i in range(3)
    ]
    wb = add(add(wb, small_matrices.apply(S, body.record["w"])), cross(Vd[3:], vb))
    wpb = add(add(wb, cross(Vd[:3], wdb)), cross(Vd[3:], vb))
    # to the parent, in its axes
    F, l = rotate(path, vb), body.record["l"]
    body.send(
        motion_bar=F
        + rotate(path, wdb)
        + rotate(path, wpb)
        + [F[i] * l[j] for i in range(3) for j in range(3)]
    )
    # chi = H* dq turns w⁺, w'⁺ and v'⁺, moves l, and turns the transmitted force f against Λ⁺
    f, lam = body.record["f"], body.record["costate+"]
    turned = add(add(cross(wpb, wp), cross(wdb, wdp)), cross(vb, vdp))
    turned = add(turned, add(cross(f[:3], lam[:3]), cross(f[3:], lam[3:])))
    if (couple := loads.couple(body)) is not None:
        turned = subtract(turned, couple)
    moved = add(add(cross(vb, wdp), cross(wp, cross(wp, vb))), cross(f[3:], lam[:3]))
    by_q = [-x for x in small_matrices.apply(body.H, turned + moved)]
    by_v = add(wb, cross(wdb, wp)) + cross(vb, add(wp, body.record["w"]))
    return by_q, [-x for x in small_matrices.apply(body.H, by_v)], wdb + vb
