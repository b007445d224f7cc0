"""Controllers that shape the energy of the error and do not cancel the dynamics.

    e = q_ref - q,   v_r = v_d + pull e,   a_r = dv_r/dt,   s = v - v_r

On joints whose q is not a vector (free, spherical, planar; attitudes as quaternions: Wen and Kreutz
1991), e = log(q, q_ref), and v_d = Ad v_ref is the velocity at q with which e would stay constant;
on the others v_d = v_ref, and a_r = a_ref + pull (v_ref - v).

(Wen and Bayard 1988; Slotine and Li 1987). They need C(q, v) x with the velocity v of the robot and
another velocity x, which the recursion of Newton and Euler does not compute (S3 section 6). It is
bilinear and, with Christoffel symbols, symmetric in v and x. So it is a difference of two Coriolis
torques C(q, w) w, for robots whose q is a vector:

    C(q, v) x = C(q, w) w - C(q, u) u,    w = (v + x) / 2,   u = (v - x) / 2

The law then is an inverse dynamics with w, less the bias with u; for other robots it multiplies by
the Coriolis matrix. All of it is O(N), on arrays and in rollouts.

A closed chain follows these laws in independent coordinates y with v = N(q) y' and Jc N = 0:
e and v_r are those of y, v_c = N y_r' and a_c = dv_c/dt are motions of the whole chain, and the
equations of motion hold in the directions N that the constraints leave free
(`closed_chains/feasible_motion.py`).
"""

from __future__ import annotations

from dataclasses import astuple

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import check_robot
from psiphi.model.manifold import Manifold
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.closed_chains.feasible_motion import (
    DecoupledMotion,
    FeasibleReference,
)
from psiphi.simulation.control.closed_chains.independent_joints import (
    ChainCoordinates,
    chain_coordinates,
)
from psiphi.simulation.control.closed_chains.torque_shares import inverse_dynamics_step, read_share
from psiphi.simulation.control.control_law import Controller, JointNames, Law, Step, Values
from psiphi.simulation.control.joint_controllers import Reference, Source, read_gains


class ReferenceVelocityLaw(Controller):
    """A law on v_r and a_r, for robots whose joints all have motors, and for closed chains."""

    def __init__(
        self,
        robot: Robot | System,
        reference: Source,
        numbers: dict[str, Numbers],
        joints: JointNames,
        share: Numbers | None,
        actuated: JointNames,
        passive: JointNames,
    ):
        name = type(self).__name__
        if not isinstance(robot, System):
            check_robot(name, robot, Robot)
            if joints is not None:
                raise StateError(
                    f"{name}: joints= is given, but {robot.name} is not a closed chain",
                    "leave joints= out: all joints of a robot are independent",
                )
            if robot.embedding is not None and robot.embedding.has_loops:
                raise StateError(
                    f"{name} of {robot.name}: its loops are embedded",
                    "use pp.ComputedTorque, which supports every joint, or the closed chain of "
                    "pp.connect",
                )
        super().__init__(robot, actuated, passive)
        self.reference = Reference(self.robot, reference)
        gains = {gain: read_gains(self.robot, gain, x) for gain, x in numbers.items()}
        shares, key = read_share(robot, share), ()
        if isinstance(robot, System):
            at = chain_coordinates(name, robot, joints, self.reference(0.0)[0])
            steps, key = self._chain_steps(robot, at, bool(shares)), (astuple(at), bool(shares))
            rates = Step("constraint_rates", {"dq": "v"})
            steps = (Step(reference_velocity), rates, *steps)
            gains = {gain: x * at.mask for gain, x in gains.items()}
        else:
            self.check_motors("use pp.ComputedTorque")
            steps = (Step(reference_velocity), *self._robot_steps(robot))
        self.law = Law(steps, ("q_ref", "v_ref", "a_ref"), key)
        self.numbers = gains | shares

    def _robot_steps(self, robot: Robot) -> tuple[Step, ...]:
        """The torques of a robot, from v_r and a_r."""
        raise NotImplementedError

    def _chain_steps(self, system: System, at: ChainCoordinates, shared: bool) -> tuple[Step, ...]:
        """The torques of a closed chain, from v_r, a_r, Jc and dJc."""
        raise NotImplementedError


class Lyapunov(ReferenceVelocityLaw):
    """tau = M a_r + C(q, v) v_r + g + kp e + kd (v_r - v),    v_r = v_ref + pull e

    The energy s* M s / 2 + e* kp e / 2 decreases at the rate s* kd s + pull e* kp e, since
    dM/dt - 2 C is skew: no term has to be cancelled exactly. pull = 0 is the law of Wen and Bayard,
    kp = 0 that of Slotine and Li. Gains are one number, or nv of them.

    On free, spherical and planar joints kp e is the gradient of e* kp e / 2, and v_ref, a_ref are
    those of the reference in its own axes, as v and a are; pull must be equal at the coordinates of
    a joint. Then the energy decreases at the same rate. Errors of half a turn have no direction.

    A closed chain follows the reference at its independent `joints`: as many coordinates as it has
    degrees of freedom, by default the joints with motors, or the held object. The energy with their
    e and s = v - v_c, where v_c is the motion of the chain that v_r determines, decreases at the
    rate s* kd s + pull e* kp e of these coordinates. The contact forces minimize
    sum |f_i|^2 / share_i. The reference at other joints is not used.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> swing = lambda t: (np.sin(t) * np.ones(6), np.cos(t) * np.ones(6), -np.sin(t) * np.ones(6))
    >>> control = Lyapunov(robot, swing, kp=200, kd=50)
    >>> motion = pp.simulate(robot, np.zeros(6), np.ones(6), control, duration=0.5)
    >>> float(abs(motion.final.q - np.sin(0.5)).max()) < 1e-8
    True
    """

    def __init__(
        self,
        robot: Robot | System,
        reference: Source,
        kp: Numbers = 100.0,
        kd: Numbers = 20.0,
        pull: Numbers = 0.0,
        *,
        joints: JointNames = None,
        share: Numbers | None = None,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        numbers = {"kp": kp, "kd": kd, "pull": pull}
        super().__init__(robot, reference, numbers, joints, share, actuated, passive)

    def _robot_steps(self, robot: Robot) -> tuple[Step, ...]:
        if robot.manifold.is_flat:
            return (
                Step(mean_and_half_difference),
                Step("inverse_dynamics", {"v": "mean", "a": "a_r", "tau": "tau_mean"}),
                Step("bias", {"v": "half", "tau": "tau_half"}),
                Step("gravity", {"tau": "g"}),
                Step(lyapunov_torque),
            )
        return (
            Step("mass_product", {"a": "a_r", "tau": "inertial"}),
            Step("coriolis_product", {"x": "v_r", "y": "turning"}),
            Step("gravity", {"tau": "g"}),
            Step(restoring_force),
            Step(lyapunov_torque_on_manifolds),
        )

    def _chain_steps(self, system: System, at: ChainCoordinates, shared: bool) -> tuple[Step, ...]:
        feasible = FeasibleReference(at)
        return (
            Step(feasible, sizes=feasible.sizes),
            Step("mass_product", {"a": "a_c", "tau": "inertial"}),
            Step("coriolis_product", {"x": "v_c", "y": "turning"}),
            Step("free_gravity", {"tau": "g"}),
            Step(restoring_force),
            Step(chain_forces),
            Step("free_forward_dynamics", {"tau": "F", "a": "u"}),
            inverse_dynamics_step(shared),
        )


class Decoupled(ReferenceVelocityLaw):
    """tau = M a + C v + g,    a = a_r + m^-* (k m* + (dm/dt)*) (v_r - v),    M = m m*

    with v_r = v_ref + pull e. In the velocities nu = m* v the mass matrix is the identity, and
    their error s = m* (v - v_r) obeys s' = -k s: each entry decays at the rate of its own k, at
    every speed and in every configuration (docs/diagonalised.md). `k` and `pull`, in 1/s, are one
    number or nv of them.

    For a closed chain with the independent `joints` y, v = N y', this holds of s = m* (y' - y_r')
    with N* M N = m m*; `joints` and `share` are those of `pp.Lyapunov`.

    >>> import numpy as np, psiphi as pp
    >>> case = pp.scenes.load("four_bar")
    >>> chain, still = case.system, np.zeros(3)
    >>> control = Decoupled(chain, case.q0, joints="motor")
    >>> bool(abs(chain.forward_dynamics(case.q0, still, control(0.0, case.q0, still))).max() < 1e-9)
    True
    """

    def __init__(
        self,
        robot: Robot | System,
        reference: Source,
        k: Numbers = 10.0,
        pull: Numbers = 5.0,
        *,
        joints: JointNames = None,
        share: Numbers | None = None,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        numbers = {"k": k, "pull": pull}
        super().__init__(robot, reference, numbers, joints, share, actuated, passive)

    def _robot_steps(self, robot: Robot) -> tuple[Step, ...]:
        return (
            Step(velocity_error),
            Step("mass_half_product", {"y": "s"}),
            Step(decay_rate),
            Step("mass_half_rate_solve", {"a": "correction"}),
            Step(decoupled_acceleration),
            Step("inverse_dynamics", {"a": "u"}),
        )

    def _chain_steps(self, system: System, at: ChainCoordinates, shared: bool) -> tuple[Step, ...]:
        motion = DecoupledMotion(at)
        return (
            Step("mass_matrix"),
            Step("coriolis"),
            Step(motion, sizes=motion.sizes),
            inverse_dynamics_step(shared),
        )


def reference_velocity(m: Manifold, q, v, pull, q_ref, v_ref, a_ref) -> Values:
    e, v_d, a_d = m.log(q, q_ref), m.carried(q, q_ref, v_ref), a_ref
    change = v_ref - v
    if not m.is_flat:
        a_d = m.carried_rate(q, v, q_ref, v_ref, a_ref)
        change = m.log_rate(q, q_ref, v_ref) - m.log_rate(q_ref, q, v)
    return {"e": e, "v_r": v_d + pull * e, "a_r": a_d + pull * change}


def mean_and_half_difference(m: Manifold, v, v_r) -> Values:
    return {"mean": 0.5 * (v + v_r), "half": 0.5 * (v - v_r)}


def lyapunov_torque(m: Manifold, tau_mean, tau_half, g, e, v, v_r, kp, kd) -> Values:
    return {"tau": tau_mean - tau_half + g + kp * e + kd * (v_r - v)}


def restoring_force(m: Manifold, q, q_ref, e, kp) -> Values:
    """The force of the potential e* kp e / 2 on the motions of q."""
    return {"restoring": m.log_gradient(q, q_ref, kp * e)}


def chain_forces(m: Manifold, inertial, turning, g, restoring, v, v_c, kd) -> Values:
    """F, forces at all joints; the acceleration that they cause is that of the motors' torques."""
    return {"F": inertial + turning + g + restoring + kd * (v_c - v)}


def lyapunov_torque_on_manifolds(
    m: Manifold, inertial, turning, g, restoring, v, v_r, kd
) -> Values:
    return {"tau": inertial + turning + g + restoring + kd * (v_r - v)}


def velocity_error(m: Manifold, v, v_r) -> Values:
    return {"x": v_r - v}


def decay_rate(m: Manifold, s, k) -> Values:
    return {"y": k * s}


def decoupled_acceleration(m: Manifold, a_r, correction) -> Values:
    return {"u": a_r + correction}
