"""Inverse dynamics with its change along a vector, and with the gradient of a weighted sum: its own two sweeps and two more.

jvp   out: the motion and its change      in: the forces and theirs
vjp   out: Λ = φ* H* w beside the motion      in: the forces and what w, w', v' of each body count for
"""

from __future__ import annotations

from functools import partial

from psiphi.compiler.autodiff.forward_dynamics_jvp import STILL, change_motion, change_of, pulled
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import (
    FORCES,
    MOVED,
    Arguments,
    OfInverseDynamics,
    gathered,
    world_keeping,
)
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import ZERO6, force_cross
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, TIP_TO_BASE, BodyView, Program, Sweep
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add
from psiphi.model.spatial.small_matrices import adjoint_map

CHANGED = [
    "    dw, dw', dv' of the body for H* dq, H* dv, H* du in its joint;  db = the change of its force",
    *FORCES,
    "    df(k) = db(k) + Σ_c φ(k,c) (df + ⟦f⟧ H* dq)(c)",
]
PULLED = [
    "    Λ(k) = φ*(p,k) Λ(p) + H* weight",
    *FORCES,
    "    what w, w', v' of the body count for, by Λ and its children;  q_bar, v_bar: H of these × the inboard motion, f × Λ⁺",
]


class InverseDynamicsJvp(OfInverseDynamics):
    """(tau, d tau) for changes of q, v and u."""

    loops = (*MOVED, *CHANGED)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, wanted: tuple[str, ...]
    ) -> Program:
        value, change = (arg.name for arg in outputs)

        given = partial(change_of, wanted=wanted)

        def outward(site: BodyView) -> None:
            # beside each body's motion its change: that of the parent, carried on, and what dq, dv, du in its own joint add
            self.move(site)
            change_motion(site, given(site, "q"), given(site, "v"), given(site, self.u))
            self.loads.change(
                site, adjoint_map(site.H, given(site, "q")), self.loads.word in wanted
            )

        def inward(site: BodyView) -> None:
            # d f(k) = d needs(k) + sum_c φ (df(c) + ⟦f(c)⟧ H* dq): the force that a joint passes on turns with the joint
            gathered(site)
            below, f = site.children.get("df"), site.kept["f"]
            df = site.kept["change"] if below is None else add(site.kept["change"], below)
            site.write_joint(value, self.torque(site, f, self.accelerations(site)))
            site.write_joint(change, self.torque(site, df, given(site, self.u)))
            site.send(
                df=force(site.path, add(df, force_cross(adjoint_map(site.H, given(site, "q")), f)))
            )

        # the world does not change: STILL
        sweeps = Sweep(BASE_TO_TIP, outward), Sweep(TIP_TO_BASE, inward)
        world = world_keeping(tree.gravity, self.loads, changed=STILL)
        return Program(name, inputs, outputs, sweeps, world, marks=self.loads.marks(tree))


class InverseDynamicsVjp(OfInverseDynamics):
    """(tau, gradients of w* tau by q, v and u)."""

    loops = (*MOVED, *PULLED)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, wanted: tuple[str, ...]
    ) -> Program:
        value, weight = outputs[0].name, f"{outputs[0].name}_weight"
        bars = {which: arg.name for which, arg in zip(wanted, outputs[1:], strict=True)}

        def outward(site: BodyView) -> None:
            self.move(site)
            # φ* H* w: what the weights are as a motion of the body, which its force is read with
            above = motion(site.path, site.parent["weighed"])
            site.keep(
                **{"weighed+": above, "weighed": add(above, adjoint_map(site.H, site.of(weight)))}
            )

        def inward(site: BodyView) -> None:
            # w* tau = sum of Λ(k)* needs(k): what each body's w, w', v' count for is gathered tip to base, and a joint takes of
            # it what its own coordinate changes
            gathered(site)
            site.write_joint(value, self.torque(site, site.kept["f"], self.accelerations(site)))
            by_q, by_v, asked = pulled(site, self.loads)
            # `pulled` is of forward dynamics, a = M^-1 (tau - ..): of the torques themselves the sign turns
            found = {
                "q": [-x for x in by_q],
                "v": [-x for x in by_v],
                self.u: self.torque(site, asked, site.of(weight)),
            }
            for which, bar in bars.items():
                if which in found:
                    site.write_joint(bar, found[which])
                else:
                    self.loads.pull(site, bar, -1.0)

        sweeps = Sweep(BASE_TO_TIP, outward), Sweep(TIP_TO_BASE, inward)
        world = world_keeping(tree.gravity, self.loads, weighed=ZERO6)
        return Program(name, inputs, outputs, sweeps, world, marks=self.loads.marks(tree))
