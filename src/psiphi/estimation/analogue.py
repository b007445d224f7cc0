"""A robot at a state as an estimation problem: the bridge from forward dynamics to filtering and smoothing.

Stage k is body k: its state is the spatial force through joint k at the link's origin in link axes, its outputs the joint's
torques, its noise the rotors' inertia. Inputs and co-inputs are the biases of S2 (4.4), (5.6):

    eta = V x H* v + dH*/dt v,    xi = V x* M V - M [0; g] - B f_ext

A cluster (docs/embedding.md) is a stage of 6 numbers a body, and one a rotor: a mass J that slides by X v.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.arguments import Numbers, Wrenches, check_robot, read
from psiphi.errors import StateError
from psiphi.estimation.linear import EMPTY, LinearTree, Stage
from psiphi.estimation.smoother import Estimate, Smoother
from psiphi.functions import guard
from psiphi.functions.free import FreeRobot
from psiphi.functions.robot import Robot
from psiphi.model.definitions import transmission
from psiphi.model.model import WORLD, Joint, Model
from psiphi.model.states import check_states
from psiphi.operators.atoms import Atoms
from psiphi.operators.moving import motion_cross
from psiphi.operators.units import Unit, units
from psiphi.sweeps.program import Argument


@dataclass(frozen=True, eq=False)
class Analogue:
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
        tau = _finite("tau", tau, Argument("tau", (self.robot.nv,), "v"))
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
    check_robot("estimation.of", robot, Model)
    robot = robot if isinstance(robot, Robot) else Robot.of(robot)
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
    for k, (parent, rotor) in enumerate(_stages(robot)):
        phi, M, H, xi, eta = (np.stack([one[k][i] for one in each]) if each else EMPTY for i in range(5))
        phi, M, H, xi, eta = (x.reshape(*lead, *x.shape[1:]) for x in (phi, M, H, xi, eta))
        stages.append(Stage(parent, phi, M, H, rotor))
        inputs.append(xi)
        coinputs.append(eta)
    return Analogue(robot, LinearTree(stages), inputs, coinputs, compiled)


def _stages(robot: Robot) -> list[tuple[int, np.ndarray]]:
    """The parent of each stage, and its noise; rotors of clusters are among their states."""
    home = {k: i for i, joint in enumerate(robot.units) for k in _bodies(joint)} | {WORLD: WORLD}
    return [
        (home[joint.parent], joint.armature)
        if isinstance(joint, Joint)
        else (home[joint.laws.cluster.parent], np.zeros(len(joint.laws.cluster.free)))
        for joint in robot.units
    ]


def _bodies(joint: Any) -> Iterable[int]:
    return (joint.index,) if isinstance(joint, Joint) else joint.laws.cluster.bodies


def _numbers(robot: Robot, q: np.ndarray, v: np.ndarray, wrenches: list) -> list[tuple[np.ndarray, ...]]:
    """phi, M, H, xi, eta of each stage. Base to tip: velocities, rotations, and what the biases are made of."""
    atoms = Atoms(robot, q, v)
    V: list[np.ndarray] = []
    found: list[tuple[np.ndarray, ...]] = []
    for joint, unit in zip(robot.units, units(atoms), strict=True):
        bodies, M, own = _bodies(joint), unit.M, unit.S @ v[unit.v_slice]
        V.append(own if unit.parent == WORLD else unit.phi.T @ V[unit.parent] + own)
        X = atoms.diagonal([motion_cross(part) for part in V[-1].reshape(-1, 6)])
        pull = [np.concatenate([np.zeros(3), atoms.rotations[k].T @ robot.gravity_vector]) for k in bodies]
        xi = -X.T @ M @ V[-1] - M @ np.concatenate(pull)
        for frame, world, wrench in wrenches:
            if frame.body in bodies:
                turn = atoms.rotations[frame.body].T if world else frame.pose.rotation
                rows = slice(6 * frame.body - unit.rows.start, 6 * frame.body - unit.rows.start + 6)
                xi[rows] = xi[rows] - transmission(turn, frame.pose.translation) @ wrench
        above = 6 if unit.parent == WORLD else len(found[unit.parent][1])
        phi = np.zeros((above, unit.size))
        phi[: len(unit.phi)] = unit.phi
        found.append(_with_rotors(joint, unit, phi, M, unit.S.T, xi, X @ own + unit.S_dot @ v[unit.v_slice]))
    return found


def _with_rotors(joint: Any, unit: Unit, phi, M, H, xi, eta) -> tuple[np.ndarray, ...]:
    """A cluster's rotors behind its bodies: they hang on nothing, weigh nothing, and slide by X v."""
    if unit.spun is None:
        return phi, M, H, xi, eta
    J = np.array(joint.laws.cluster.armature)
    which, (X, drift) = np.flatnonzero(J), unit.spun
    n, more = len(M), len(which)
    heavy = np.zeros((n + more, n + more))
    heavy[:n, :n], heavy[n:, n:] = M, np.diag(J[which])
    still = np.zeros((len(phi), more))
    H = np.concatenate([H, X[which].T], axis=1)
    return np.concatenate([phi, still], axis=1), heavy, H, np.append(xi, np.zeros(more)), np.append(eta, drift[which])


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
