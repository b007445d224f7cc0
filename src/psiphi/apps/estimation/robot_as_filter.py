"""A robot at a state as an estimation problem: the bridge from forward dynamics to filtering and smoothing.

Stage k is body k: its state is the spatial force through joint k at the link's origin in link axes, its outputs the joint's
torques, its noise the rotors' inertia. Inputs and co-inputs are the biases of S2 (4.4), (5.6):

    eta = V x H* v + dH*/dt v,    xi = V x* M V - M [0; g] - B f_ext

A cluster (docs/embedding.md) is a stage of 6 numbers a body, and one a rotor: a mass J that slides by X v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
from psiphi.model.model import WORLD, Joint, Model
from psiphi.model.state_checks import check_states
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class RobotFilterModel:
    """A robot's estimation problem: `model`, and the known `inputs` xi and `coinputs` eta, a list entry a body or cluster.

    Called with torques tau (..., nv) it is the smoother on them: `predicted` z-, `filtered` z+, `smoothed` the joint forces,
    `innovations`, `residuals`, `costates` lambda-, `inboard_costates` lambda+, and `multipliers`: the joint accelerations.
    """

    robot: Robot
    model: LinearTree
    inputs: list[np.ndarray]
    coinputs: list[np.ndarray]
    compiled: bool = False

    @cached_property
    def smoother(self) -> Smoother:
        """The smoother of the model: its covariances are articulated inertias, its gains the joints'."""
        return Smoother(self.model, self.compiled)

    def outputs(self, tau: Numbers) -> list[np.ndarray]:
        """The torques (..., nv) as data: a list entry a joint."""
        nv = self.robot.nv
        tau = finite_array("tau", tau, (nv,), f"give robot.nv = {nv} real numbers in its last axis")
        return [tau[..., joint.v_slice] for joint in self.robot.units]

    def __call__(self, tau) -> Estimate:
        return self.smoother(self.outputs(tau), self.inputs, self.coinputs)


def of(
    robot: Any,
    q: Numbers,
    v: Numbers | None = None,
    f_ext: Wrenches | None = None,
    axes: str = "world",
    *,
    compiled: bool = False,
) -> RobotFilterModel:
    """The robot at q (nq), moving with v (nv; at rest when left out), wrenches f_ext on it as in `forward_dynamics`.

    q and v may have batch axes: covariances depend on q, so each state has a model of its own, and torques meet them element by
    element. A model of one state is used once: its sweeps are interpreted; `compiled=True` makes code for all models of robots
    of this shape.

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
        robot = robot.baked()  # the parameters that `at` put in; without any, an error says so
    inputs = Argument("q", (robot.nq,), "q"), Argument("v", (robot.nv,), "v")
    state = [
        finite_array(
            arg.name,
            x,
            arg.shape,
            f"give robot.n{arg.name} = {arg.size} real numbers in its last axis",
        )
        for arg, x in zip(inputs, (q, np.zeros(robot.nv) if v is None else v), strict=True)
    ]
    batch_axes(
        "estimation.of", {arg.name: x.shape[:-1] for arg, x in zip(inputs, state, strict=True)}
    )
    check_states(robot, "estimation.of", inputs, state)
    atoms = DenseLetters(robot, *state)
    gravity, pushed = atoms[GRAVITY], _wrenches(atoms, f_ext, axes)
    stages, inputs, coinputs, V = [], [], [], []
    for joint, unit in zip(
        robot.units, units(atoms), strict=True
    ):  # base to tip: V = phi* V(p) + H* v
        rates = atoms.v[..., unit.v_slice, None]
        own = unit.S @ rates
        V.append(own if unit.parent == WORLD else t(unit.phi) @ V[unit.parent] + own)
        X = atoms.diagonal([motion_cross(V[-1][..., i : i + 6, 0]) for i in range(0, unit.size, 6)])
        xi = (
            -t(X) @ unit.M @ V[-1] - unit.M @ gravity[..., unit.rows, :] - pushed[..., unit.rows, :]
        )
        above = 6 if unit.parent == WORLD else stages[unit.parent].covariance.shape[-1]
        noise = (
            joint.armature
            if isinstance(joint, Joint)
            else np.zeros(len(joint.kinematics.cluster.free))
        )
        phi, M, H, xi, eta = _numbers(
            joint, unit, above, xi[..., 0], (X @ own + unit.S_dot @ rates)[..., 0]
        )
        stages.append(Stage(unit.parent, phi, M, H, noise))
        inputs.append(xi)
        coinputs.append(eta)
    return RobotFilterModel(robot, LinearTree(stages), inputs, coinputs, compiled)


def _numbers(
    joint: Any, unit: Unit, above: int, xi: np.ndarray, eta: np.ndarray
) -> tuple[np.ndarray, ...]:
    """phi, M, H, xi, eta of a stage below `above` states. A cluster's rotors stand behind its bodies: they hang on nothing,
    weigh nothing, and slide by X v."""
    lead, n, width = xi.shape[:-1], unit.size, unit.S.shape[-1]
    J, (X, drift) = np.zeros(0), (np.zeros((*lead, 0, width)), np.zeros((*lead, 0)))
    if unit.rotor_map is not None:
        J, (X, drift) = np.array(joint.kinematics.cluster.armature), unit.rotor_map
    which = np.flatnonzero(J)
    more = len(which)
    phi, M = np.zeros((*lead, above, n + more)), np.zeros((*lead, n + more, n + more))
    phi[..., : unit.phi.shape[-2], :n] = unit.phi
    M[..., :n, :n], M[..., n:, n:] = unit.M, np.diag(J[which])
    H = np.concatenate(
        [np.broadcast_to(t(unit.S), (*lead, width, n)), t(X[..., which, :])], axis=-1
    )
    xi, eta = (
        np.concatenate([xi, np.zeros((*lead, more))], axis=-1),
        np.concatenate([eta, drift[..., which]], axis=-1),
    )
    return phi, M, H, xi, eta


def _wrenches(atoms: DenseLetters, f_ext: Any, axes: Any) -> np.ndarray:
    """B f_ext (..., 6 bodies, 1): the wrenches, on the links."""
    argument_checks.check_axes(axes)
    if f_ext is None or not argument_checks.check_wrench_mapping(f_ext):
        return np.zeros((6 * len(atoms.model.bodies), 1))
    frames, stacked = (
        [atoms.model.frame(name).name for name in f_ext],
        argument_checks.stack_wrenches(f_ext),
    )
    if stacked.shape != (len(frames), 6) or not np.isfinite(stacked).all():
        raise StateError(
            f"f_ext has wrenches of shape {(*stacked.shape[:-2], 6)}, or not finite, expected six numbers each",
            "make a model of each state",
        )
    return atoms[frame_letter(frames, axes)] @ stacked.reshape(-1, 1)
