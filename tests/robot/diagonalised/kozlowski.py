"""S1's recursions (corrected: docs/mathematics.md section 10) on dense blocks: an oracle for joints
of one coordinate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psiphi.algebra.expressions.operators import Operators
from psiphi.model.model import Model


class Recursed(NamedTuple):
    nu: np.ndarray
    xi: np.ndarray
    C_nu: np.ndarray
    C_xi: np.ndarray
    skew: np.ndarray  # [c_ki] of (48)


def cross_force(V):
    """V x* = [[w~, v~], [0, w~]]."""
    w, v = (np.cross(np.eye(3), x) for x in (V[:3], V[3:]))
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def recurse(model: Model, q, v) -> Recursed:
    """nu, xi, C(theta, nu), C(theta, xi) with gravity in b, and the skew matrix, body by body, tip
    to base."""
    assert all(joint.row.nv == 1 for joint in model.joints)
    s, N = Operators(model), len(model.bodies)
    dense = {x: getattr(s, x).dense(q) for x in ("Delta_psi", "P", "D", "G", "H", "M", "psi")}
    at = lambda x, k: dense[x][6 * k : 6 * k + 6, 6 * k : 6 * k + 6]  # noqa: E731
    V = (s.phi.T @ s.H.T).dense(q) @ v
    g = s.g.dense(q)
    H = [dense["H"][k, 6 * k : 6 * k + 6] for k in range(N)]
    D, G = np.diag(dense["D"]), [dense["G"][6 * k : 6 * k + 6, k] for k in range(N)]
    Vk, gk = V.reshape(N, 6), g.reshape(N, 6)
    xi = np.array([G[k] @ Vk[k] for k in range(N)])
    lam, y, Y = np.zeros((N, 6, 6)), np.zeros((N, 6)), np.zeros((N, 6))
    C_nu, C_xi = np.zeros(N), np.zeros(N)
    Omega = [cross_force(H[k] * v[k]) for k in range(N)]
    for k in reversed(range(N)):
        M, psi, parent = at("M", k), at("Delta_psi", k), model.parent[k]
        X = Omega[k] @ at("P", k)
        b = cross_force(Vk[k]) @ M @ Vk[k] - M @ gk[k]
        lam[k] += X + X.T
        y[k] += 2 * b + (X.T - X) @ Vk[k]
        Y[k] += b - X @ Vk[k] + lam[k] @ H[k] * xi[k]
        if parent >= 0:
            y[k] -= lam[k] @ psi.T @ Vk[parent]
            lam[parent] += psi @ lam[k] @ psi.T
            y[parent] += psi @ (y[k] + lam[k] @ Vk[k])
            Y[parent] += psi @ Y[k]
        C_nu[k], C_xi[k] = H[k] @ y[k] / (2 * np.sqrt(D[k])), H[k] @ Y[k]
    return Recursed(np.sqrt(D) * xi, xi, C_nu, C_xi, _skew(model, dense, Omega, H, D))


def _skew(model: Model, dense, Omega, H, D) -> np.ndarray:
    """(48): c_ki = D_k^-1/2 sum over m beyond i of H_k psi(k, m) P(m) Omega_d*(m) psi*(i, m) H_i*
    D_i^-1/2, k inward of i."""
    N, out = len(H), np.zeros((len(H), len(H)))
    block = lambda x, k, m: dense[x][6 * k : 6 * k + 6, 6 * m : 6 * m + 6]  # noqa: E731
    for i in range(N):
        k = model.parent[i]
        while k >= 0:
            for m in range(i + 1, N):
                if np.any(block("psi", i, m)):
                    middle = (
                        block("psi", k, m) @ block("P", m, m) @ Omega[m].T @ block("psi", i, m).T
                    )
                    out[k, i] += H[k] @ middle @ H[i] / np.sqrt(D[k] * D[i])
            out[i, k] = -out[k, i]
            k = model.parent[k]
    return out
