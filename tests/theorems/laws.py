"""The laws of mechanics, one row each: `name: (robot, state) -> left side, right side`.

A robot is anything with psiphi's functions, a state one random q, v, a, tau and a wrench f. Rates
are central differences along the motion. The equations are those of docs/mathematics.md sections 1
to 8.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp
from psiphi.model.model import WORLD, Model
from tests.oracles import reference
from tests.zoo import random_state

STEP = 2e-5  # of central differences: error of the third order against rounding


class Law(NamedTuple):
    """Both sides of an equation, and how near they must come, relative to their size."""

    sides: Callable[[Any, Any], tuple[Any, Any]]
    tolerance: float = 1e-9


def state(model: Model, seed: int) -> SimpleNamespace:
    """A random state, accelerations, torques and a wrench."""
    q, v, a, tau = random_state(model, seed)
    return SimpleNamespace(
        q=q, v=v, a=a, tau=tau, f=np.random.default_rng(seed + 1).standard_normal(6), rest=0.0 * v
    )


def holds(law: Law, robot: Any, s: SimpleNamespace) -> None:
    left, right = (np.asarray(side, dtype=float) for side in law.sides(robot, s))
    np.testing.assert_allclose(
        left, right, rtol=0, atol=law.tolerance * (1.0 + np.abs(right).max(initial=0.0))
    )


def rate(
    r: Any, s: SimpleNamespace, quantity: Callable[[Any, Any], Any], a: Any = 0.0
) -> np.ndarray:
    """d/dt of quantity(q, v) as the robot moves with v and accelerates with a."""
    later, sooner = (quantity(r.integrate(s.q, s.v, h), s.v + h * a) for h in (STEP, -STEP))
    return (np.asarray(later) - np.asarray(sooner)) / (2.0 * STEP)


def gradient(r: Any, s: SimpleNamespace, quantity: Callable[[Any], float]) -> np.ndarray:
    """The derivative of quantity(q) along every velocity coordinate."""
    moves = STEP * np.eye(r.nv)
    return (quantity(r.integrate(s.q, moves)) - quantity(r.integrate(s.q, -moves))) / (2.0 * STEP)


def related(model: Model) -> np.ndarray:
    """(nv, nv): is the joint of row k the joint of column j, or an ancestor of it?"""
    out = np.zeros((model.nv, model.nv), dtype=bool)
    for joint in model.joints:
        k = joint.index
        while k != WORLD:
            out[model.joints[k].v_slice, joint.v_slice] = True
            k = model.joints[k].parent
    return out


def own_block(model: Model) -> np.ndarray:
    """(nv, nv): do row and column belong to one joint?"""
    return related(model) & related(model).T


def both(R: np.ndarray) -> np.ndarray:
    """Turns the halves of a spatial vector alike."""
    return np.kron(np.eye(2), R)


def compliance(r: Any, s: SimpleNamespace) -> np.ndarray:
    """J M^-1 J* of two frames, multiplied out."""
    J = np.vstack([r.jacobian(s.q, frame) for frame in ("tool", "elbow")])
    return J @ r.mass_matrix_inverse(s.q) @ J.T


def log_det(A) -> float:
    return np.linalg.slogdet(A)[1]


def turned(r: Any, s: SimpleNamespace, x: np.ndarray) -> np.ndarray:
    """A spatial vector in world axes, in the tool's own."""
    return both(r.frame_pose(s.q, "tool")[:3, :3].T) @ x


def spin(r: Any, s: SimpleNamespace) -> np.ndarray:
    """dR/dt R* of the tool, as a vector."""
    W = (
        rate(r, s, lambda q, v: r.frame_pose(q, "tool")[:3, :3])
        @ r.frame_pose(s.q, "tool")[:3, :3].T
    )
    return np.array([W[2, 1], W[0, 2], W[1, 0]])


# -- one robot, one state --------------------------------------------------------------------------

LAWS: dict[str, Law] = {
    # dynamics and its inverse
    "FD(ID(a)) = a": Law(
        lambda r, s: (r.forward_dynamics(s.q, s.v, r.inverse_dynamics(s.q, s.v, s.a)), s.a), 1e-8
    ),
    "ID(FD(tau)) = tau": Law(
        lambda r, s: (r.inverse_dynamics(s.q, s.v, r.forward_dynamics(s.q, s.v, s.tau)), s.tau),
        1e-8,
    ),
    "M a + bias = ID(a)": Law(
        lambda r, s: (
            r.mass_matrix(s.q) @ s.a + r.bias(s.q, s.v),
            r.inverse_dynamics(s.q, s.v, s.a),
        ),
    ),
    "M FD = tau - bias": Law(
        lambda r, s: (
            r.mass_matrix(s.q) @ r.forward_dynamics(s.q, s.v, s.tau),
            s.tau - r.bias(s.q, s.v),
        ),
        1e-8,
    ),
    "mass_solve = M^-1 tau": Law(
        lambda r, s: (r.mass_solve(s.q, s.tau), r.mass_matrix_inverse(s.q) @ s.tau), 1e-8
    ),
    "FD is affine in tau, with slope M^-1": Law(
        lambda r, s: (
            r.forward_dynamics(s.q, s.v, s.tau) - r.forward_dynamics(s.q, s.v, s.rest),
            r.mass_solve(s.q, s.tau),
        ),
        1e-8,
    ),
    "motion can run backwards: FD(q, -v, tau) = FD(q, v, tau)": Law(
        lambda r, s: (r.forward_dynamics(s.q, -s.v, s.tau), r.forward_dynamics(s.q, s.v, s.tau)),
        1e-8,
    ),
    # the mass matrix
    "M = M*": Law(lambda r, s: (r.mass_matrix(s.q), r.mass_matrix(s.q).T), 0.0),
    "M is positive definite": Law(
        lambda r, s: (np.linalg.eigvalsh(r.mass_matrix(s.q)).min(initial=1.0) > 0.0, True)
    ),
    "M's columns are ID of unit accelerations at rest": Law(
        lambda r, s: (
            r.mass_matrix(s.q),
            (r.inverse_dynamics(s.q, s.rest, np.eye(r.nv)) - r.gravity(s.q)).T,
        )
    ),
    "M couples only joints on one path": Law(
        lambda r, s: (r.mass_matrix(s.q)[~(related(r) | related(r).T)], 0.0), 0.0
    ),
    "M M^-1 = I": Law(
        lambda r, s: (r.mass_matrix(s.q) @ r.mass_matrix_inverse(s.q), np.eye(r.nv)), 1e-8
    ),
    "reciprocity: M^-1 = (M^-1)*": Law(
        lambda r, s: (r.mass_matrix_inverse(s.q), r.mass_matrix_inverse(s.q).T), 1e-12
    ),
    "reciprocity: torque at i moves j as torque at j moves i": Law(
        lambda r, s: (r.mass_solve(s.q, np.eye(r.nv)), r.mass_solve(s.q, np.eye(r.nv)).T), 1e-8
    ),
    # its factors
    "M = L D L*": Law(lambda r, s: (_product(*r.mass_matrix_factors(s.q)), r.mass_matrix(s.q))),
    "L is unit upper triangular": Law(
        lambda r, s: (np.tril(r.mass_matrix_factors(s.q)[0]), np.eye(r.nv)), 0.0
    ),
    "L is sparse as the tree": Law(
        lambda r, s: (
            r.mass_matrix_factors(s.q)[0][~related(r) | (own_block(r) & ~np.eye(r.nv, dtype=bool))],
            0.0,
        ),
        0.0,
    ),
    "D is block diagonal": Law(
        lambda r, s: (r.mass_matrix_factors(s.q)[1][~own_block(r)], 0.0), 0.0
    ),
    "D is symmetric": Law(
        lambda r, s: (r.mass_matrix_factors(s.q)[1], r.mass_matrix_factors(s.q)[1].T), 1e-12
    ),
    "D is positive definite": Law(
        lambda r, s: (
            np.linalg.eigvalsh(r.mass_matrix_factors(s.q)[1]).min(initial=1.0) > 0.0,
            True,
        )
    ),
    "log det M = sum log det D": Law(
        lambda r, s: (log_det(r.mass_matrix(s.q)), log_det(r.mass_matrix_factors(s.q)[1]))
    ),
    # velocity and gravity
    "bias = ID(0)": Law(
        lambda r, s: (r.bias(s.q, s.v), r.inverse_dynamics(s.q, s.v, s.rest)), 1e-12
    ),
    "gravity = bias(v = 0)": Law(lambda r, s: (r.gravity(s.q), r.bias(s.q, s.rest)), 1e-12),
    "gravity = dU/dq": Law(lambda r, s: (gradient(r, s, r.potential_energy), r.gravity(s.q)), 1e-7),
    "U = -m g.c": Law(
        lambda r, s: (r.potential_energy(s.q), -r.mass * r.gravity_vector @ r.center_of_mass(s.q)),
    ),
    "Coriolis forces are quadratic: C(3v) = 9 C(v)": Law(
        lambda r, s: (
            r.bias(s.q, 3.0 * s.v) - r.gravity(s.q),
            9.0 * (r.bias(s.q, s.v) - r.gravity(s.q)),
        )
    ),
    "passivity: v.C = v.(dM/dt)v / 2": Law(
        lambda r, s: (
            s.v @ (r.bias(s.q, s.v) - r.gravity(s.q)),
            s.v @ rate(r, s, lambda q, v: r.mass_matrix(q)) @ s.v / 2,
        ),
        1e-6,
    ),
    # energy
    "K = v.M v / 2": Law(
        lambda r, s: (r.kinetic_energy(s.q, s.v), s.v @ r.mass_matrix(s.q) @ s.v / 2)
    ),
    "E = K + U": Law(
        lambda r, s: (r.energy(s.q, s.v), r.kinetic_energy(s.q, s.v) + r.potential_energy(s.q)),
        1e-12,
    ),
    "power balance: dE/dt = tau.v": Law(
        lambda r, s: (rate(r, s, r.energy, r.forward_dynamics(s.q, s.v, s.tau)), s.tau @ s.v), 1e-4
    ),
    # frames
    "a pose is a rotation and a place": Law(
        lambda r, s: _rotation_sides(r.frame_pose(s.q, "tool"))
    ),
    "V = J v": Law(
        lambda r, s: (r.jacobian(s.q, "tool") @ s.v, r.frame_velocity(s.q, s.v, "tool")), 1e-11
    ),
    "V = J v, in the frame's own axes": Law(
        lambda r, s: (
            r.jacobian(s.q, "tool", axes="frame") @ s.v,
            r.frame_velocity(s.q, s.v, "tool", axes="frame"),
        ),
        1e-11,
    ),
    "own axes are world axes turned": Law(
        lambda r, s: (r.jacobian(s.q, "tool", axes="frame"), turned(r, s, r.jacobian(s.q, "tool"))),
        1e-11,
    ),
    "linear velocity is the rate of place": Law(
        lambda r, s: (
            rate(r, s, lambda q, v: r.frame_pose(q, "tool")[:3, 3]),
            r.frame_velocity(s.q, s.v, "tool")[3:],
        ),
        1e-7,
    ),
    "angular velocity is the rate of rotation": Law(
        lambda r, s: (spin(r, s), r.frame_velocity(s.q, s.v, "tool")[:3]), 1e-7
    ),
    "a frame of the world stands still": Law(lambda r, s: (r.jacobian(s.q, "world"), 0.0), 0.0),
    "operational compliance = J M^-1 J*": Law(
        lambda r, s: (r.operational_compliance(s.q, ("tool", "elbow")), compliance(r, s)), 1e-8
    ),
    # wrenches
    "J* f = ID without f - ID with f": Law(
        lambda r, s: (
            r.jacobian(s.q, "tool").T @ s.f,
            r.inverse_dynamics(s.q, s.v, s.a)
            - r.inverse_dynamics(s.q, s.v, s.a, f_ext={"tool": s.f}),
        )
    ),
    "FD with f = FD of tau + J* f": Law(
        lambda r, s: (
            r.forward_dynamics(s.q, s.v, s.tau, f_ext={"tool": s.f}),
            r.forward_dynamics(s.q, s.v, s.tau + r.jacobian(s.q, "tool").T @ s.f),
        ),
        1e-8,
    ),
    "wrenches add": Law(
        lambda r, s: (
            r.bias(s.q, s.v, f_ext={"tool": s.f, "elbow": 2.0 * s.f}),
            r.bias(s.q, s.v) - (r.jacobian(s.q, "tool") + 2.0 * r.jacobian(s.q, "elbow")).T @ s.f,
        )
    ),
    "a wrench in own axes is the wrench turned": Law(
        lambda r, s: (
            r.forward_dynamics(s.q, s.v, s.tau, f_ext={"tool": turned(r, s, s.f)}, axes="frame"),
            r.forward_dynamics(s.q, s.v, s.tau, f_ext={"tool": s.f}),
        ),
        1e-8,
    ),
    "virtual power: f.V = (J* f).v": Law(
        lambda r, s: (
            s.f @ r.frame_velocity(s.q, s.v, "tool"),
            (r.bias(s.q, s.v) - r.bias(s.q, s.v, f_ext={"tool": s.f})) @ s.v,
        )
    ),
    "a wrench on the world moves nothing": Law(
        lambda r, s: (
            r.forward_dynamics(s.q, s.v, s.tau, f_ext={"world": s.f}),
            r.forward_dynamics(s.q, s.v, s.tau),
        ),
        1e-8,
    ),
    # a second opinion, written another way (tests/oracles/reference.py)
    "the reference's ID": Law(
        lambda r, s: (
            r.inverse_dynamics(s.q, s.v, s.a),
            reference.inverse_dynamics(r, s.q, s.v, s.a),
        )
    ),
    "the reference's FD": Law(
        lambda r, s: (
            r.forward_dynamics(s.q, s.v, s.tau),
            reference.forward_dynamics(r, s.q, s.v, s.tau),
        ),
        1e-8,
    ),
    "the reference's pose": Law(
        lambda r, s: (r.frame_pose(s.q, "tool"), reference.frame_pose(r, s.q, "tool").matrix), 1e-12
    ),
}


def _product(L, D) -> np.ndarray:
    return L @ D @ L.T


def _rotation_sides(T) -> tuple:
    R = T[:3, :3]
    return [*(R @ R.T).ravel(), np.linalg.det(R), *T[3]], [
        *np.eye(3).ravel(),
        1.0,
        0.0,
        0.0,
        0.0,
        1.0,
    ]


def of_single_bodies(robot: Any, s: Any) -> list[Callable[[], Any]]:
    """Calls at doors that know single rigid bodies alone: robots of which others stand together or
    bend are told so there."""
    return [
        lambda: pp.interop.pinocchio(robot),
        lambda: pp.interop.mujoco(robot),
        lambda: robot.forward_dynamics_details(s.q, s.v, s.tau, method="kalman"),
    ]
