"""Closed chains to measure: arms in random postures that grasp an object at their hands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import psiphi as pp
from psiphi.algebra.dense.dense_letters import block_diagonal
from psiphi.model.spatial.rotations import quaternions
from psiphi.robot.mechanisms.system import System
from psiphi_bench.interpreted_robot import Interpreted, uncompiled
from psiphi_bench.peers.lazy_import import pinocchio as pin
from psiphi_bench.peers.pinocchio_peer import Pin

CONTACTS = ("rigid", "line", "soft", "point")


@dataclass(frozen=True)
class ClosedState:
    """A system and a state that satisfies its constraints."""

    system: System
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


def random_cell(seed: int, arms: int, wrap: Callable[[System], System] = uncompiled) -> ClosedState:
    """`arms` random chains and trees, some with a free base, with each contact type in turn."""
    rng = np.random.default_rng(seed)
    mechanisms = []
    for i in range(arms):
        kinds = ("revolute", "prismatic", "universal", "spherical") if i % 2 else ("revolute",)
        n, tree_seed = int(rng.integers(6, 9)), int(rng.integers(1 << 30))
        base = "free" if i % 4 == 3 else "fixed"
        mechanisms.append(
            pp.robots.random_tree(n, tree_seed, kinds, 0.3 if i % 3 == 2 else 0.0, base)
        )
    return grasping_cell(mechanisms, [CONTACTS[(seed + i) % 4] for i in range(arms)], rng, wrap)


def grasping_cell(
    mechanisms: Sequence,
    kinds: Sequence[str],
    rng: np.random.Generator,
    wrap: Callable = uncompiled,
) -> ClosedState:
    """The mechanisms in random states; the last body of each holds the object by a contact."""
    qs = [mechanism.random(rng) for mechanism in mechanisms]
    place, bases = _random_pose(rng, 0.5), [_random_pose(rng, 1.0) for _ in mechanisms]
    frames = [mechanism.bodies[-1].name for mechanism in mechanisms]
    grips = []
    for mechanism, q, base, frame, kind in zip(mechanisms, qs, bases, frames, kinds, strict=True):
        grip = np.linalg.inv(place) @ base @ Interpreted.of(mechanism).frame_pose(q, frame)
        if kind == "point":  # any orientation
            grip[:3, :3] = _random_pose(rng, 0.0)[:3, :3]
        grips.append(grip)
    S = rng.uniform(-0.2, 0.2, (3, 3))
    S = 2.0 * (S @ S.T + 0.01 * np.eye(3))
    body = pp.Body("box", 2.0, rng.uniform(-0.1, 0.1, 3), np.trace(S) * np.eye(3) - S)
    arms = list(zip(mechanisms, bases, frames, strict=True))
    cell = wrap(pp.grasp(arms, body, grips, [_contact(rng, kind) for kind in kinds]))
    q = np.concatenate([*qs, place[:3, 3], quaternions(place[:3, :3])])
    q, v = cell.project(q, rng.standard_normal(cell.nv))
    return ClosedState(cell, q, v, 5.0 * rng.standard_normal(cell.nv))


def facing_pumas(contacts: Sequence = (), mass: float = 3.0, width: float = 0.2) -> System:
    """Two PUMA 560 that face each other, 1.2 m apart, with a box of 0.5 m between their hands."""
    puma, facing = pp.robots.puma560(), np.diag([-1.0, -1.0, 1.0, 1.0])
    facing[0, 3] = 1.2
    arms = [(puma, None, "tool"), (puma, facing, "tool")]
    return pp.grasp(
        arms, pp.Body.box(mass, (0.5, width, width)), [(-0.25, 0, 0), (0.25, 0, 0)], contacts
    )


def elbows_up(cell: System) -> np.ndarray:
    """Facing PUMAs with their elbows up."""
    posture = [0.0, -0.8, 0.6, 0.0, 0.5, 0.0]
    return cell.assemble([*posture, *posture, 0.6, 0.0, 0.3, 0, 0, 0, 1])


def four_bar(kind: str = "hinge") -> System:
    """Ground, crank, coupler, rocker: three hinges about z; its loop has redundant rows."""
    b = pp.Builder("four bar", gravity=(0.0, -9.81, 0.0))
    for name, length, mass in (("crank", 0.4, 1.0), ("coupler", 0.9, 2.0), ("rocker", 0.7, 1.5)):
        b.body(name, mass=mass, com=(length / 2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]) * mass)
    b.joint("motor", "revolute", "world", "crank")
    b.joint("crank pin", "revolute", "crank", "coupler", xyz=(0.4, 0, 0))
    b.joint("pivot", "revolute", "world", "rocker", xyz=(1.0, 0, 0))
    b.frame("coupler end", "coupler", xyz=(0.9, 0, 0))
    b.frame("rocker end", "rocker", xyz=(0.7, 0, 0))
    loop = pp.Loop(kind, "coupler end", "rocker end", axis=(0, 0, 1) if kind == "hinge" else None)
    return pp.connect(b.build(), [loop], passive=["crank pin", "pivot"])


def _random_pose(rng: np.random.Generator, far: float) -> np.ndarray:
    """A random pose, 4x4."""
    T = np.eye(4)
    Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
    Q = Q * np.sign(np.diag(R))
    T[:3, :3], T[:3, 3] = Q * np.sign(np.linalg.det(Q)), rng.uniform(-far, far, 3)
    return T


def _contact(rng: np.random.Generator, kind: str) -> Any:
    direction = rng.standard_normal(3)
    return pp.Contact(
        kind,
        axis=direction if kind == "line" else None,
        normal=direction if kind == "soft" else None,
    )


def _free_turns(kind: str, axis: np.ndarray) -> np.ndarray:
    """h (3 x n_g): the free rotations of a contact in object axes; a soft finger has two."""
    if kind == "soft":
        return np.linalg.svd(axis[None, :])[2][1:].T
    return {"weld": np.zeros((3, 0)), "hinge": axis[:, None], "ball": np.eye(3)}[kind]


def dense_solution(closed: ClosedState) -> tuple[np.ndarray, np.ndarray]:
    """The dense system (2.11) of S4 with the grasps of its appendix, in world axes.

    Unknowns are a, the wrenches f on the object, and W'. At each contact
    J a + dJ/dt v - (h W' + w_C x h W) = A alpha(C) + a(C), and h* of the moment of f is zero.
    """
    cell, q, v = closed.system, closed.q, closed.v
    robot, nv, rest = cell.robot, cell.nv, np.zeros(cell.nv)
    rows, right, turns = [], [], []
    for c in cell.contacts:
        rows.append(robot.jacobian(q, c.first) - robot.jacobian(q, c.second))
        gap = robot.frame_acceleration(q, v, rest, c.first) - robot.frame_acceleration(
            q, v, rest, c.second
        )
        h = robot.frame_pose(q, c.second)[:3, :3] @ _free_turns(c.kind, np.array(c.shape.axis))
        w = robot.frame_velocity(q, v, c.second)[:3]
        W = h.T @ (robot.frame_velocity(q, v, c.first)[:3] - w)
        right.append(np.concatenate([np.cross(w, h @ W), np.zeros(3)]) - gap)
        turns.append(np.vstack([h, np.zeros((3, h.shape[1]))]))
    J, H = np.vstack(rows), block_diagonal(turns)
    m, n_g, zero = J.shape[0], H.shape[1], np.zeros
    K = np.block(
        [
            [robot.mass_matrix(q), J.T, zero((nv, n_g))],
            [J, zero((m, m)), -H],
            [zero((n_g, nv)), H.T, zero((n_g, n_g))],
        ]
    )
    x = np.linalg.solve(K, np.concatenate([closed.tau - robot.bias(q, v), *right, zero(n_g)]))
    return x[:nv], x[nv : nv + m].reshape(-1, 6)


PROXIMAL = {
    "constraintDynamics": (1e-14, 1e-8, 50),
    "lcaba": (1e-14, 1e-4, 50),
}  # accuracy, mu, iterations


def pinocchio_call(
    closed: ClosedState, algorithm: str, settings: tuple = ()
) -> tuple[Callable[[], np.ndarray], Pin]:
    """A call of Pinocchio's constrained dynamics in the same state. Welds and balls only."""
    call, peer, _ = _pinocchio(closed, algorithm, settings)
    return call, peer


def pinocchio_derivatives(
    closed: ClosedState,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], Any]:
    """Pinocchio's derivatives of a by q, v and tau in its coordinates, and the map to these.

    Welds only. For 3-D contacts between two moving bodies, Pinocchio 4.1 differs from psiphi;
    finite differences of the dense system confirm psiphi.
    """
    call, peer, arguments = _pinocchio(closed, "constraintDynamics", (1e-14, 1e-10, 50))
    call()
    pin.computeConstraintDynamicsDerivatives(*arguments)
    data = arguments[1]
    return (data.ddq_dq.copy(), data.ddq_dv.copy(), data.ddq_dtau.copy()), peer.layout


def _pinocchio(
    closed: ClosedState, algorithm: str, settings: tuple
) -> tuple[Callable[[], np.ndarray], Pin, tuple]:
    peer = Pin(closed.system.robot.model)
    model, layout = peer.peer, peer.layout
    kinds = {"weld": pin.ContactType.CONTACT_6D, "ball": pin.ContactType.CONTACT_3D}
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in closed.system.contacts:
        one, two = (model.frames[peer.frame_id(name)] for name in (c.first, c.second))
        ends = one.parentJoint, one.placement, two.parentJoint, two.placement
        models.append(
            pin.RigidConstraintModel(kinds[c.kind], model, *ends, pin.ReferenceFrame.LOCAL)
        )
    for m in models:
        datas.append(m.createData())
    state = (
        layout.to_q(closed.q),
        layout.to_v(closed.v, closed.q),
        layout.to_tau(closed.tau, closed.q),
    )
    proximal = pin.ProximalSettings(*(settings or PROXIMAL[algorithm]))
    data = model.createData()
    if algorithm == "lcaba":
        pin.computeJointMinimalOrdering(model, data, models)
    else:
        pin.initConstraintDynamics(model, data, models, datas)
    call = getattr(pin, algorithm)
    return (
        lambda: call(model, data, *state, models, datas, proximal),
        peer,
        (model, data, models, datas, proximal),
    )


def pinocchio_accelerations(closed: ClosedState, algorithm: str) -> np.ndarray:
    """The accelerations from Pinocchio in psiphi's coordinates."""
    call, peer = pinocchio_call(closed, algorithm)
    L = peer.layout
    return L.from_a(np.array(call()), L.to_q(closed.q), L.to_v(closed.v, closed.q))
