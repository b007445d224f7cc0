"""A robot at a state as an estimation problem: forward dynamics as filtering and smoothing.

Stage k is body k. Its state is the spatial force across joint k at the link's origin in link axes,
its outputs are the torques of the joint, its noise the rotor inertias. Inputs and co-inputs are the
biases of S2 (4.4), (5.6):

    eta = V x H* v + dH*/dt v,    xi = V x* M V - M [0; g] - B f_ext

A cluster (docs/embedding.md) is a stage with 6 states per body and one per rotor, which is a mass J
that slides by X v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi._util.array_types import Numbers, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_robot, finite_array
from psiphi.algebra.dense.dense_joints import Unit, units
from psiphi.algebra.dense.dense_letter_rates import motion_cross, t
from psiphi.algebra.dense.dense_letters import DenseLetters
from psiphi.algebra.expressions.letters import GRAVITY, frame_letter
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage
from psiphi.apps.estimation.smoother import Estimate, Smoother
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.model.loops.cluster_joints import ClusterJoint
from psiphi.model.model import WORLD, Joint, Model
from psiphi.model.state_checks import check_states
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class RobotFilterModel:
    """The estimation problem of a robot at a state.

    `model` is a LinearTree; `inputs` xi and `coinputs` eta are lists with one entry per body or
    cluster. Called with torques tau (..., nv), it returns the estimate: `predicted` z-, `filtered`
    z+, `smoothed` (the joint forces), `innovations`, `residuals`, `costates` lambda-,
    `inboard_costates` lambda+, and `multipliers` (the joint accelerations).
    """

    robot: Robot
    model: LinearTree
    inputs: list[np.ndarray]
    coinputs: list[np.ndarray]
    compiled: bool = False

    @cached_property
    def smoother(self) -> Smoother:
        """The smoother of the model: its covariances are articulated inertias."""
        return Smoother(self.model, self.compiled)

    def outputs(self, tau: Numbers) -> list[np.ndarray]:
        """The torques (..., nv) as measurements: one list entry per joint."""
        nv = self.robot.nv
        tau = finite_array("tau", tau, (nv,), f"give robot.nv = {nv} real numbers in its last axis")
        return [tau[..., joint.v_slice] for joint in self.robot.units]

    def __call__(self, tau: Numbers) -> Estimate:
        return self.smoother(self.outputs(tau), self.inputs, self.coinputs)


def of(
    robot: Robot | Model,
    q: Numbers,
    v: Numbers | None = None,
    f_ext: Wrenches | None = None,
    axes: str = "world",
    *,
    compiled: bool = False,
) -> RobotFilterModel:
    """The robot at q (nq) and v (nv, default 0), with wrenches f_ext as in `forward_dynamics`.

    q and v may have batch axes. Covariances depend on q, so each state has its own model; torques
    broadcast with them. The sweeps are interpreted by default. `compiled=True` compiles them for
    all robots with this tree.

    >>> import psiphi as pp
    >>> robot = pp.load("puma560")
    >>> q, v, tau = robot.random(seed=0), np.ones(6), np.arange(6.0)
    >>> found = of(robot, q, v)(tau)
    >>> bool(np.allclose(np.concatenate(found.multipliers), robot.forward_dynamics(q, v, tau)))
    True
    """
    check_robot("estimation.of", robot, Model)
    robot = robot if isinstance(robot, Robot) else Robot.of(robot)
    if isinstance(robot, FreeRobot):
        robot = robot.baked()  # with the parameters of `at`; raises if there are none
    arguments = Argument("q", (robot.nq,), "q"), Argument("v", (robot.nv,), "v")
    values = q, np.zeros(robot.nv) if v is None else v
    state = [
        finite_array(
            arg.name,
            x,
            arg.shape,
            f"give robot.n{arg.name} = {arg.size} real numbers in its last axis",
        )
        for arg, x in zip(arguments, values, strict=True)
    ]
    shapes = {arg.name: x.shape[:-1] for arg, x in zip(arguments, state, strict=True)}
    batch_axes("estimation.of", shapes)
    check_states(robot, "estimation.of", arguments, state)
    letters = DenseLetters(robot, *state)
    gravity, wrenches = letters[GRAVITY], _link_wrenches(letters, f_ext, axes)
    stages, inputs, coinputs, V = [], [], [], []
    # base to tip: V = phi* V(p) + H* v
    for joint, unit in zip(robot.units, units(letters), strict=True):
        rates = letters.v[..., unit.v_slice, None]
        V_joint, at_root = unit.S @ rates, unit.parent == WORLD
        V.append(V_joint if at_root else t(unit.phi) @ V[unit.parent] + V_joint)
        crosses = [motion_cross(V[-1][..., i : i + 6, 0]) for i in range(0, unit.size, 6)]
        X = letters.diagonal(crosses)
        xi = -t(X) @ unit.M @ V[-1] - unit.M @ gravity[..., unit.rows, :]
        xi = xi - wrenches[..., unit.rows, :]
        eta = X @ V_joint + unit.S_dot @ rates
        above = 6 if at_root else stages[unit.parent].covariance.shape[-1]
        noise = (
            joint.armature
            if isinstance(joint, Joint)
            else np.zeros(len(joint.kinematics.cluster.free))
        )
        phi, M, H, xi, eta = _with_rotors(joint, unit, above, xi[..., 0], eta[..., 0])
        stages.append(Stage(unit.parent, phi, M, H, noise))
        inputs.append(xi)
        coinputs.append(eta)
    return RobotFilterModel(robot, LinearTree(stages), inputs, coinputs, compiled)


def _with_rotors(
    joint: Joint | ClusterJoint, unit: Unit, above: int, xi: np.ndarray, eta: np.ndarray
) -> tuple[np.ndarray, ...]:
    """phi, M, H, xi, eta of a stage whose parent has `above` states.

    The rotors of a cluster are states after its bodies. They transmit no force, have no weight, and
    slide by X v.
    """
    batch, n, width = xi.shape[:-1], unit.size, unit.S.shape[-1]
    J, (X, drift) = np.zeros(0), (np.zeros((*batch, 0, width)), np.zeros((*batch, 0)))
    if unit.rotor_map is not None and isinstance(joint, ClusterJoint):
        J, (X, drift) = np.array(joint.kinematics.cluster.armature), unit.rotor_map
    index = np.flatnonzero(J)
    size = n + len(index)
    phi, M = np.zeros((*batch, above, size)), np.zeros((*batch, size, size))
    phi[..., : unit.phi.shape[-2], :n] = unit.phi
    M[..., :n, :n], M[..., n:, n:] = unit.M, np.diag(J[index])
    S = np.broadcast_to(t(unit.S), (*batch, width, n))
    H = np.concatenate([S, t(X[..., index, :])], axis=-1)
    xi = np.concatenate([xi, np.zeros((*batch, len(index)))], axis=-1)
    return phi, M, H, xi, np.concatenate([eta, drift[..., index]], axis=-1)


def _link_wrenches(letters: DenseLetters, f_ext: Wrenches | None, axes: str) -> np.ndarray:
    """B f_ext (..., 6 bodies, 1): the wrenches on the links."""
    argument_checks.check_axes(axes)
    if f_ext is None or not argument_checks.check_wrench_mapping(f_ext):
        return np.zeros((6 * len(letters.model.bodies), 1))
    frames = [letters.model.frame(name).name for name in f_ext]
    stacked = argument_checks.stack_wrenches(f_ext)
    if stacked.shape != (len(frames), 6) or not np.isfinite(stacked).all():
        raise StateError(
            f"f_ext has wrenches of shape {(*stacked.shape[:-2], 6)}, or not finite, expected "
            "six numbers for each frame",
            "make a model of each state",
        )
    return letters[frame_letter(frames, axes)] @ stacked.reshape(-1, 1)
