"""Where a motion begins: at unit(q) of the numbers q that are given, quaternions scaled, loops closed.

    moved     U' dq            bent      U''(dq, eq)            U the map q -> unit(q), on arrays (..., nq)
    weighed   U'* w            turned    (d/dq U'* w) dq

A motion f of its beginning is f(unit(q)) of these numbers: changes that leave the manifold move nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from psiphi.model.manifold import Manifold
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import along
from psiphi.model.spatial.screws import dot


def scaled(manifold: Manifold) -> list[Any]:
    """The joints whose numbers unit changes."""
    return [joint for joint in manifold.bent if joint.row.unit is not list]


class InitialState:
    """The map q -> unit(q) at some q (..., nq), and its derivatives."""

    def __init__(self, manifold: Manifold, q: np.ndarray):
        self.q, self.scaled = q, scaled(manifold)

    def moved(self, dq: np.ndarray) -> np.ndarray:
        return self._each(lambda unit, q, dq: rate_of_change(unit, q, dq), dq, dq)

    def bent(self, dq: np.ndarray, eq: np.ndarray) -> np.ndarray:
        def law(unit: Callable, q: list, dq: list, eq: list) -> list:
            return rate_of_change(lambda x: rate_of_change(unit, x, dq), q, eq)

        return self._each(law, np.zeros_like(dq), dq, eq)

    def weighed(self, w: np.ndarray) -> np.ndarray:
        return self._each(_weighed, w, w)

    def turned(self, w: np.ndarray, dq: np.ndarray) -> np.ndarray:
        def law(unit: Callable, q: list, w: list, dq: list) -> list:
            return rate_of_change(lambda x: _weighed(unit, x, w), q, dq)

        return self._each(law, np.zeros_like(w), w, dq)

    def _each(self, law: Callable, flat: np.ndarray, *given: np.ndarray) -> np.ndarray:
        """law(unit, q, *given) of the joints that unit changes, and `flat` elsewhere."""
        if not self.scaled:
            return flat
        found = np.array(np.broadcast_to(flat, np.broadcast_shapes(flat.shape, self.q.shape)))
        for joint in self.scaled:
            own = joint.q_slice
            found[..., own] = along(
                partial(law, joint.row.unit), self.q[..., own], *(x[..., own] for x in given)
            )
        return found


def _weighed(unit: Callable, q: list, w: list) -> list[Any]:
    """The gradient of w . unit(q), number by number."""
    return [dot(rate_of_change(unit, q, way), w) for way in np.eye(len(q)).tolist()]
