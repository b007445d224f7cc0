"""Forward dynamics with its change along a vector, and with the gradient of a weighted sum: the value's sweeps and a few more.

    jvp   out: the change of Newton and Euler's motion     in: its forces filtered      out: da, smoothed
    vjp   in: the weights, filtered with the value's forces     out: Λ = ψ* H* ν beside the accelerations     in: their adjoint

P and its gains are those of the value; nothing of them is differentiated.
"""

from __future__ import annotations

from functools import partial

from psiphi.compiler.autodiff.forward_dynamics_jacobian import (
    FILTER,
    OfForwardDynamics,
    filtered,
    smoothed,
    true_motion,
)
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import MOVED, Arguments, world_keeping
from psiphi.compiler.autodiff.wrench_derivatives import WrenchDerivatives
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import ZERO3, ZERO6, force_cross
from psiphi.compiler.recursions.composite_bodies import axial, joint_velocity, wedge
from psiphi.compiler.recursions.newton_euler import body_force, of_products
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, TIP_TO_BASE, BodyView, Program, Sweep
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import force, rotate, unrotate
from psiphi.model.spatial.screws import add, cross, subtract
from psiphi.model.spatial.small_matrices import adjoint_map

CHANGED = [
    "    dw, dw', dv' of the body for H* dq, H* dv in its joint;  db = the change of its force",
    "for k = tips .. base:",
    "    dz(k) = db(k) + Σ_c [ψ(k,c) dz(c) + φ(k,c) (G dtau + ⟦f⟧ H* dq)(c)]",
    "for k = base .. tips:",
    "    da = D⁻¹ (dtau - H dz) - K* dλ",
]
PULLED = [
    "    Λ(k) = ψ*(p,k) Λ(p) + H* D⁻¹ (I - H ψ K) weight,  tau_bar = M⁻¹ weight",
    "for k = tips .. base:",
    "    what w, w', v' of the body count for, by Λ and its children;  q_bar, v_bar: -H of these × the inboard motion, f × Λ⁺",
]


STILL = ZERO3, ZERO3, ZERO3, [ZERO3, ZERO3, ZERO3]  # the change of the world's w, w', v' and U


class ForwardDynamicsJvp(OfForwardDynamics):
    """(a, da) for changes of q, v and the torques `tau`."""

    loops = (*MOVED, *FILTER, *CHANGED)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, wanted: tuple[str, ...]
    ) -> Program:
        value, change = (arg.name for arg in outputs)

        given = partial(change_of, wanted=wanted)

        def outward(site: BodyView) -> None:
            site.write_joint(value, true_motion(site))
            change_motion(site, given(site, "q"), given(site, "v"))
            self.loads.change(
                site, adjoint_map(site.H, given(site, "q")), self.loads.word in wanted
            )

        def gather(site: BodyView) -> None:
            # what the joint's own change does to the force that it passes on rides with the message
            filtered(site, given(site, self.tau), "dz", site.kept["change"])
            turned = force_cross(adjoint_map(site.H, given(site, "q")), site.kept["f"])
            site.send(dz=force(site.path, add(site.kept["dz+"], turned)))

        def spread(site: BodyView) -> None:
            site.write_joint(change, smoothed(site, "dz", "da"))

        sweeps = (
            Sweep(BASE_TO_TIP, self.move),
            Sweep(TIP_TO_BASE, self.filter),
            Sweep(BASE_TO_TIP, outward),
        )
        sweeps += (Sweep(TIP_TO_BASE, gather), Sweep(BASE_TO_TIP, spread))
        world = world_keeping(tree.gravity, self.loads, changed=STILL, da=ZERO6)
        return Program(name, inputs, outputs, sweeps, world, marks=self.loads.marks(tree))


def change_of(site: BodyView, which: str | None, wanted: tuple[str, ...]) -> list:
    """The joint's part of a change that is asked for; of another, nothing."""
    return site.of(f"d{which}") if which in wanted else [0.0] * len(site.H)


def change_motion(site: BodyView, x: list, y: list, z: list | None = None) -> None:
    """Base to tip: the change of w, w', v' and of the body's force, for changes x of q, y of v and z of the accelerations."""
    chi, own, Vd, path = (
        adjoint_map(site.H, x),
        adjoint_map(site.H, y),
        joint_velocity(site),
        site.path,
    )
    w, (wp, wdp, vdp) = site.kept["w"], site.kept["above"]
    dw_p, dwd_p, dvd_p, dU_p = site.parent["changed"]
    # chi = H* dq turns the body's axes: what is seen in them, R* y, changes by R* dy + (R* y) x chi. This of w:
    above = add(unrotate(path, dw_p), cross(wp, chi[:3]))
    dw = add(above, own[:3])
    # of w' = R* w'_p + (R* w_p) x w_d + .., by the product rule
    dwd = add(add(unrotate(path, dwd_p), cross(wdp, chi[:3])), cross(above, Vd[:3]))
    dwd = add(dwd, cross(wp, own[:3]))
    # of v' = R* (v'_p + U_p l) + (R* w_p + w) x v_d + ..; l itself moves by chi, which U_p = w'_p~ + w_p~ w_p~ carries along
    dvd = add(
        unrotate(path, add(dvd_p, small_matrices.apply(dU_p, site.kept["l"]))), cross(vdp, chi[:3])
    )
    dvd = add(dvd, add(cross(wdp, chi[3:]), cross(wp, cross(wp, chi[3:]))))
    dvd = add(add(dvd, cross(add(above, dw), Vd[3:])), cross(add(wp, w), own[3:]))
    if z is not None:
        more = adjoint_map(site.H, z)
        dwd, dvd = add(dwd, more[:3]), add(dvd, more[3:])
    # dU = dw'~ + dw~ w~ + w~ dw~; the body's force is linear in U and v', so that its change is that of (dU, dv')
    xx, yy, zz = (2.0 * w[i] * dw[i] for i in range(3))
    xy, xz, yz = (w[i] * dw[j] + w[j] * dw[i] for i, j in ((0, 1), (0, 2), (1, 2)))
    dU = of_products(xx, yy, zz, xy, xz, yz, dwd)
    site.keep(changed=(dw, dwd, dvd, dU), change=body_force(site.link, dU, dvd))


class ForwardDynamicsVjp(OfForwardDynamics):
    """(a, gradients of w* a by q, v and the torques `tau`)."""

    loops = (*MOVED, *FILTER, *PULLED)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, wanted: tuple[str, ...]
    ) -> Program:
        value, weight = outputs[0].name, f"{outputs[0].name}_weight"
        bars = {which: arg.name for which, arg in zip(wanted, outputs[1:], strict=True)}

        def inward(site: BodyView) -> None:
            self.filter(site)
            filtered(site, site.of(weight), "s", ZERO6)

        def outward(site: BodyView) -> None:
            site.write_joint(value, true_motion(site))
            tau_bar = smoothed(site, "s", "weighed")
            if self.tau in bars:
                site.write_joint(bars[self.tau], tau_bar)

            if self.loads.word in bars:
                self.loads.pull(site, bars[self.loads.word], 1.0)

        def adjoint(site: BodyView) -> None:
            for which, bar in zip("qv", pulled(site, self.loads), strict=False):
                if which in bars:
                    site.write_joint(bars[which], bar)

        sweeps = (Sweep(BASE_TO_TIP, self.move), Sweep(TIP_TO_BASE, inward))
        sweeps += (
            Sweep(BASE_TO_TIP, outward),
            *([Sweep(TIP_TO_BASE, adjoint)] if {"q", "v"} & set(wanted) else []),
        )
        world = world_keeping(tree.gravity, self.loads, weighed=ZERO6)
        return Program(name, inputs, outputs, sweeps, world, marks=self.loads.marks(tree))


def pulled(site: BodyView, loads: WrenchDerivatives) -> tuple[list, list, list]:
    """Tip to base: the gradients by q and v of this joint, and what w' and v' of the body count for; what is asked of w, w' and
    v' of the parent travels inward."""
    path, (wp, wdp, vdp), Vd = site.path, site.kept["above"], joint_velocity(site)
    # `change_motion` backwards: y_bar is what the weighed sum gains by y. The body's force [N; F], weighed by Λ = [turn; move],
    # gains by U and by v' of its origin:
    turn, move, p = site.kept["weighed"][:3], site.kept["weighed"][3:], site.link.moment
    W = wedge(turn, site.link.pseudo)
    U = [[move[r] * p[c] + W[r][c] for c in range(3)] for r in range(3)]
    vb = [site.link.mass * y + x for y, x in zip(move, cross(turn, p), strict=True)]
    wb = wdb = ZERO3
    # what the children ask of this body's v', w', w and U: their v' reads U l, so that U_bar gains F l*
    if (below := site.children.get("pulled")) is not None:
        vb, wdb, wb = add(vb, below[:3]), below[3:6], below[6:9]
        U = [[U[i][j] + below[9 + 3 * i + j] for j in range(3)] for i in range(3)]
    # U = w'~ + w~ w~: its skew half is w', the symmetric one a square of w
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
    wb = add(add(wb, small_matrices.apply(S, site.kept["w"])), cross(Vd[3:], vb))
    above = add(add(wb, cross(Vd[:3], wdb)), cross(Vd[3:], vb))
    # handed to the parent, in its axes
    F, l = rotate(path, vb), site.kept["l"]
    site.send(
        pulled=F
        + rotate(path, wdb)
        + rotate(path, above)
        + [F[i] * l[j] for i in range(3) for j in range(3)]
    )
    # by q: chi turns w⁺, w'⁺ and v'⁺ (all x chi above), shifts l, and turns the force f that the joint hands on against Λ⁺
    f, lam = site.kept["f"], site.kept["weighed+"]
    turned = add(add(cross(above, wp), cross(wdb, wdp)), cross(vb, vdp))
    turned = add(turned, add(cross(f[:3], lam[:3]), cross(f[3:], lam[3:])))
    if (couple := loads.couple(site)) is not None:
        turned = subtract(turned, couple)
    shifted = add(add(cross(vb, wdp), cross(wp, cross(wp, vb))), cross(f[3:], lam[:3]))
    by_q = [-x for x in small_matrices.apply(site.H, turned + shifted)]
    by_v = add(wb, cross(wdb, wp)) + cross(vb, add(wp, site.kept["w"]))
    return by_q, [-x for x in small_matrices.apply(site.H, by_v)], wdb + vb
