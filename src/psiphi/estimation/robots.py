"""A robot at a state as an estimation problem: the bridge from forward dynamics to filtering and smoothing.

Stage k is body k: its state is the spatial force through joint k at the link's origin in link axes, its outputs the joint's
torques, its noise the rotors' inertia. Inputs and co-inputs are the biases of S2 (4.4), (5.6):

    eta = V x H* v + dH*/dt v,    xi = V x* M V - M [0; g] - B f_ext
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.arguments import Numbers, Wrenches, read
from psiphi.errors import StateError
from psiphi.estimation.linear import EMPTY, LinearTree, Stage
from psiphi.estimation.smoother import Estimate, Smoother
from psiphi.functions import guard
from psiphi.functions.free import FreeRobot
from psiphi.functions.robot import Robot
from psiphi.model.definitions import transmission
from psiphi.model.model import WORLD, Model
from psiphi.model.states import check_states
from psiphi.operators.atoms import Atoms
from psiphi.operators.moving import motion_cross
from psiphi.sweeps.program import Argument
from psiphi.wording import shown


@dataclass(frozen=True, eq=False)
class Analogue:
    """A robot's estimation problem: `model`, and the known `inputs` xi and `coinputs` eta, a list entry a body.

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
        tau = _finite("tau", tau, Argument("tau", (self.robot.nv,), "v"))
        return [tau[..., joint.v_slice] for joint in self.robot.joints]

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
) -> Analogue:
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
    if not isinstance(robot, Model):
        raise StateError(f"robot is {shown(robot)}, expected a robot", "pp.load, pp.from_dh and pp.Builder make robots")
    robot = robot if isinstance(robot, Robot) else Robot.of(robot)
    if robot.embedding is not None:
        cause = f"{robot.embedding.words(robot.name)}, and stages are single bodies"
        raise StateError(cause, f"take {robot.embedding.instead}, or robot.forward_dynamics")
    if isinstance(robot, FreeRobot):
        robot = robot.baked()  # the parameters that `at` put in; without any, an error says so
    inputs = Argument("q", (robot.nq,), "q"), Argument("v", (robot.nv,), "v")
    state = [_finite(arg.name, x, arg) for arg, x in zip(inputs, (q, np.zeros(robot.nv) if v is None else v), strict=True)]
    try:
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in state))
    except ValueError:
        cause = f"q has the batch axes {state[0].shape[:-1]}, v {state[1].shape[:-1]}: they do not fit together"
        raise StateError(cause, "make them equal, 1, or absent") from None
    check_states(robot, "estimation.of", inputs, state)
    wrenches = _wrenches(robot, f_ext, axes)
    q, v = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in state)
    each = [_numbers(robot, q[at], v[at], wrenches) for at in np.ndindex(lead)]
    stages, inputs, coinputs = [], [], []
    for k, joint in enumerate(robot.joints):
        phi, M, H, xi, eta = (np.stack([one[k][i] for one in each]) if each else EMPTY for i in range(5))
        phi, M, H, xi, eta = (x.reshape(*lead, *x.shape[1:]) for x in (phi, M, H, xi, eta))
        stages.append(Stage(joint.parent, phi, M, H, joint.armature))
        inputs.append(xi)
        coinputs.append(eta)
    return Analogue(robot, LinearTree(stages), inputs, coinputs, compiled)


def _numbers(robot: Robot, q: np.ndarray, v: np.ndarray, wrenches: list) -> list[tuple[np.ndarray, ...]]:
    """phi, M, H, xi, eta of each body. Base to tip: velocities, rotations, and what the biases are made of."""
    atoms = Atoms(robot, q, v)
    V: list[np.ndarray] = []
    found = []
    for k, (joint, motion, M, R) in enumerate(zip(robot.joints, atoms.motions, atoms.inertias, atoms.rotations, strict=True)):
        own = motion.S @ v[joint.v_slice]
        V.append(own if joint.parent == WORLD else motion.phi.T @ V[joint.parent] + own)
        X = motion_cross(V[k])
        xi = -X.T @ M @ V[k] - M @ np.concatenate([np.zeros(3), R.T @ robot.gravity_vector])
        for frame, world, wrench in wrenches:
            if frame.body == k:
                xi = xi - transmission(R.T if world else frame.pose.rotation, frame.pose.translation) @ wrench
        found.append((motion.phi, M, motion.S.T, xi, X @ own + motion.rate))
    return found


def _wrenches(robot: Robot, f_ext: Any, axes: Any) -> list:
    """(frame, in world axes?, wrench) of each."""
    guard.check_axes(axes)
    if f_ext is None or not guard.mapping(f_ext):
        return []
    frames, stacked = [robot.frame(name) for name in f_ext], guard.stack_wrenches(f_ext)
    if stacked.shape != (len(frames), 6) or not np.isfinite(stacked).all():
        raise StateError(
            f"f_ext has wrenches of shape {(*stacked.shape[:-2], 6)}, or not finite, expected six numbers each",
            "make a model of each state",
        )
    return [(frame, axes == "world", wrench) for frame, wrench in zip(frames, stacked, strict=True)]


def _finite(name: str, value: Any, arg: Argument) -> np.ndarray:
    array, fault = read(value, arg.shape)
    if not fault and not np.isfinite(array).all():
        fault = "holds numbers that are not finite"
    if fault:
        length = "nq" if arg.per_joint == "q" else "nv"
        raise StateError(f"{name} {fault}", f"give robot.{length} = {arg.shape[0]} real numbers in its last axis")
    return array.astype(float, copy=False)
