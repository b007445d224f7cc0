"""Derivatives of U: q -> unit(q), which normalizes the quaternions and closes the embedded loops
of an initial state. Arrays are (..., nq).

    jvp              U' dq              second_derivative   U''(dq, eq)
    vjp              U'* w              vjp_derivative      (d/dq U'* w) dq

A motion f as a function of the given q is f(unit(q)): changes that leave the manifold have no
effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from psiphi.model.manifold import Manifold, ManifoldJoint
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import on_arrays
from psiphi.model.spatial.screws import dot

Normalization = Callable[[list], list]  # q -> unit(q) of one joint


def normalized_joints(manifold: Manifold) -> list[ManifoldJoint]:
    """The joints whose coordinates `unit` changes."""
    return [joint for joint in manifold.curved if joint.row.unit is not list]


class InitialState:
    """The derivatives of q -> unit(q) at q (..., nq)."""

    def __init__(self, manifold: Manifold, q: np.ndarray):
        self.q, self.normalized = q, normalized_joints(manifold)

    def jvp(self, dq: np.ndarray) -> np.ndarray:
        return self._by_joint(lambda unit, q, dq: rate_of_change(unit, q, dq), dq, dq)

    def second_derivative(self, dq: np.ndarray, eq: np.ndarray) -> np.ndarray:
        def rule(unit: Normalization, q: list, dq: list, eq: list) -> list:
            return rate_of_change(lambda x: rate_of_change(unit, x, dq), q, eq)

        return self._by_joint(rule, np.zeros_like(dq), dq, eq)

    def vjp(self, w: np.ndarray) -> np.ndarray:
        return self._by_joint(_vjp, w, w)

    def vjp_derivative(self, w: np.ndarray, dq: np.ndarray) -> np.ndarray:
        def rule(unit: Normalization, q: list, w: list, dq: list) -> list:
            return rate_of_change(lambda x: _vjp(unit, x, w), q, dq)

        return self._by_joint(rule, np.zeros_like(w), w, dq)

    def _by_joint(
        self, rule: Callable[..., list], unchanged: np.ndarray, *arrays: np.ndarray
    ) -> np.ndarray:
        """rule(unit, q, *arrays) at each joint that `unit` changes, `unchanged` elsewhere."""
        if not self.normalized:
            return unchanged
        shape = np.broadcast_shapes(unchanged.shape, self.q.shape)
        found = np.array(np.broadcast_to(unchanged, shape))
        for joint in self.normalized:
            columns = joint.q_slice
            values = [x[..., columns] for x in (self.q, *arrays)]
            found[..., columns] = on_arrays(partial(rule, joint.row.unit), *values)
        return found


def _vjp(unit: Normalization, q: list, w: list) -> list[Any]:
    """The gradient of w . unit(q)."""
    return [dot(rate_of_change(unit, q, e), w) for e in np.eye(len(q)).tolist()]
