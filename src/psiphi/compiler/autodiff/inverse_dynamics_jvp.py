"""jvp and vjp of inverse dynamics, in its two sweeps.

jvp   base to tip: the motion and its change; tip to base: the forces and their change
vjp   base to tip: the motion and Λ = φ* H* w; tip to base: the forces and w_bar, w'_bar, v'_bar
"""

from __future__ import annotations

from functools import partial

from psiphi.compiler.autodiff.forward_dynamics_jvp import (
    REST,
    change_motion,
    joint_change,
    motion_gradients,
)
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import (
    FORCE_LOOP,
    MOTION_LOOP,
    Arguments,
    InverseDynamicsSweeps,
    sum_forces,
    world_record,
)
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import ZERO6, force_cross
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, TIP_TO_BASE, BodyView, Program, Sweep
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add
from psiphi.model.spatial.small_matrices import adjoint_map

JVP_LOOPS = [
    "    dw, dw', dv' of the body, from H* dq, H* dv and H* du;  db = the change of its force",
    *FORCE_LOOP,
    "    df(k) = db(k) + Σ_c φ(k,c) (df + ⟦f⟧ H* dq)(c)",
]
VJP_LOOPS = [
    "    Λ(k) = φ*(p,k) Λ(p) + H* weight",
    *FORCE_LOOP,
    "    w_bar, w'_bar, v'_bar of the body, from Λ and its children",
    "    q_bar, v_bar = H (these × the inboard motion, f × Λ⁺)",
]


class InverseDynamicsJvp(InverseDynamicsSweeps):
    """(tau, d tau) for changes of q, v and u."""

    loops = (*MOTION_LOOP, *JVP_LOOPS)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
    ) -> Program:
        """The sweeps for changes of the inputs `names`."""
        value, change = (arg.name for arg in outputs)
        change_of = partial(joint_change, names=names)

        def outward(body: BodyView) -> None:
            self.move(body)
            change_motion(body, change_of(body, "q"), change_of(body, "v"), change_of(body, self.u))
            self.loads.change(
                body, adjoint_map(body.H, change_of(body, "q")), self.loads.input_name in names
            )

        def inward(body: BodyView) -> None:
            # the force that a joint transmits turns with the joint: + ⟦f⟧ H* dq
            sum_forces(body)
            below, f, df = body.children.get("df"), body.record["f"], body.record["d_body_force"]
            df = df if below is None else add(df, below)
            body.write_joint(value, self.torque(body, f, self.accelerations(body)))
            body.write_joint(change, self.torque(body, df, change_of(body, self.u)))
            turned = force_cross(adjoint_map(body.H, change_of(body, "q")), f)
            body.send(df=force(body.path, add(df, turned)))

        sweeps = Sweep(BASE_TO_TIP, outward), Sweep(TIP_TO_BASE, inward)
        world = world_record(tree.gravity, self.loads, d_motion=REST)
        return Program(name, inputs, outputs, sweeps, world, body_data=self.loads.body_data(tree))


class InverseDynamicsVjp(InverseDynamicsSweeps):
    """(tau, gradients of w* tau with respect to q, v and u)."""

    loops = (*MOTION_LOOP, *VJP_LOOPS)

    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
    ) -> Program:
        """The sweeps of the gradients with respect to `names`."""
        value, weight = outputs[0].name, f"{outputs[0].name}_weight"
        bars = {which: arg.name for which, arg in zip(names, outputs[1:], strict=True)}

        def outward(body: BodyView) -> None:
            self.move(body)
            # Λ = φ* H* w: w* tau = Σ Λ(k)* body_force(k)
            inherited = motion(body.path, body.parent["costate"])
            costate = add(inherited, adjoint_map(body.H, body.joint_input(weight)))
            body.store(**{"costate+": inherited, "costate": costate})

        def inward(body: BodyView) -> None:
            sum_forces(body)
            body.write_joint(value, self.torque(body, body.record["f"], self.accelerations(body)))
            by_q, by_v, by_acceleration = motion_gradients(body, self.loads)
            gradients = {
                "q": [-x for x in by_q],
                "v": [-x for x in by_v],
                self.u: self.torque(body, by_acceleration, body.joint_input(weight)),
            }
            for which, bar in bars.items():
                if which in gradients:
                    body.write_joint(bar, gradients[which])
                else:
                    self.loads.write_gradient(body, bar, -1.0)

        sweeps = Sweep(BASE_TO_TIP, outward), Sweep(TIP_TO_BASE, inward)
        world = world_record(tree.gravity, self.loads, costate=ZERO6)
        return Program(name, inputs, outputs, sweeps, world, body_data=self.loads.body_data(tree))
