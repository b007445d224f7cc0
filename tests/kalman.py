"""Textbook filters to hold psiphi's against, in plain NumPy: nothing here knows of operators,
sweeps or gains with one letter.

filter_tree(...)     the Kalman filter from leaves to roots (Joseph form), with log-linear terms eta
smooth_tree(...)     the Rauch-Tung-Striebel smoother back to the leaves; it uses no co-states
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, noise_covariance


@dataclass
class Node:
    """A node of a linear Gaussian tree: x = sum phi x(child) + w, w ~ N(xi, M), y = H x + n,
    density times exp(eta . x)."""

    parent: int
    phi: np.ndarray
    M: np.ndarray
    H: np.ndarray
    R: np.ndarray
    xi: np.ndarray
    eta: np.ndarray
    y: np.ndarray


@dataclass
class Filtered:
    prior: np.ndarray
    prior_cov: np.ndarray
    posterior: np.ndarray
    posterior_cov: np.ndarray
    innovation: np.ndarray
    innovation_cov: np.ndarray
    gain: np.ndarray
    smoothed: np.ndarray | None = None
    smoothed_cov: np.ndarray | None = None


def filter_tree(nodes: list[Node]) -> list[Filtered]:
    """Leaves to roots."""
    found: dict[int, Filtered] = {}
    for k in reversed(range(len(nodes))):
        node = nodes[k]
        x, P = node.xi.copy(), node.M.copy()
        for c in range(k + 1, len(nodes)):
            if nodes[c].parent == k:
                x = x + nodes[c].phi @ found[c].posterior
                P = P + nodes[c].phi @ found[c].posterior_cov @ nodes[c].phi.T
        S = node.H @ P @ node.H.T + node.R
        K = np.linalg.solve(S, node.H @ P).T
        A = np.eye(len(x)) - K @ node.H
        cov = A @ P @ A.T + K @ node.R @ K.T
        e = node.y - node.H @ x
        found[k] = Filtered(x, P, x + K @ e + cov @ node.eta, cov, e, S, K)
    return [found[k] for k in range(len(nodes))]


def smooth_tree(nodes: list[Node]) -> list[Filtered]:
    """Rauch-Tung-Striebel: each child corrected by what its parent learnt since it heard from the
    child."""
    found = filter_tree(nodes)
    for node, own in zip(nodes, found, strict=True):
        own.smoothed, own.smoothed_cov = own.posterior, own.posterior_cov
        if node.parent >= 0:
            above = found[node.parent]
            C = (
                own.posterior_cov
                @ node.phi.T
                @ np.linalg.pinv(above.prior_cov, rcond=1e-13, hermitian=True)
            )
            own.smoothed = own.posterior + C @ (above.smoothed - above.prior)
            own.smoothed_cov = own.posterior_cov + C @ (above.smoothed_cov - above.prior_cov) @ C.T
    return found


def of_robot(robot, q, v, tau) -> list[Node]:
    """A robot at one state, from the dense operators: eta and xi of S2 (body derivatives, gravity
    among the forces)."""
    s = robot.operators
    E, H, M = s.E_phi.dense(q), s.H.dense(q), s.M.dense(q)
    eta, xi = (x.dense(q, v).reshape(-1, 6) for x in (s.a_local, s.b_local))
    nodes = []
    for k, joint in enumerate(robot.joints):
        own, p = slice(6 * k, 6 * k + 6), joint.parent
        phi = E[6 * p : 6 * p + 6, own] if p >= 0 else np.zeros((0, 6))
        nodes.append(
            Node(
                p,
                phi,
                M[own, own],
                H[joint.v_slice, own],
                np.diag(joint.armature),
                xi[k],
                eta[k],
                tau[joint.v_slice],
            )
        )
    return nodes


def spd(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n)


def random_model(rng, count, noisy=True):
    """Stages without outputs are among them."""
    sizes, widths = (
        rng.integers(1, 9, count),
        rng.integers(0, 3, count),
    )  # more than six, too, as a body has
    widths = np.minimum(widths, sizes)
    parents = [-1] + [
        int(rng.integers(-1 if rng.random() < 0.2 else 0, k)) for k in range(1, count)
    ]
    stages = []
    for k, p in enumerate(parents):
        step = rng.normal(size=(sizes[p] if p >= 0 else 0, sizes[k]))
        noise = spd(rng, widths[k]) if noisy else None
        stages.append(
            Stage(p, step, spd(rng, sizes[k]), rng.normal(size=(widths[k], sizes[k])), noise)
        )
    return LinearTree(stages)


def dense(tree):
    """(prior map, covariance, outputs, noise) of all states stacked."""
    where = [tree.slices(k) for k in range(len(tree.stages))]
    E, Q = np.zeros((tree.nx, tree.nx)), np.zeros((tree.nx, tree.nx))
    H, R = np.zeros((tree.nv, tree.nx)), np.zeros((tree.nv, tree.nv))
    for k, stage in enumerate(tree.stages):
        x, y = where[k]["x"], where[k]["v"]
        Q[x, x], H[y, x] = stage.covariance, stage.outputs
        R[y, y] = noise_covariance(stage)
        if stage.parent >= 0:
            E[where[stage.parent]["x"], x] = stage.transition
    phi = np.linalg.inv(np.eye(tree.nx) - E)
    return phi, phi @ Q @ phi.T, H, R
