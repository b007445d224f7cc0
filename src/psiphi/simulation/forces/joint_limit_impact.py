"""`limits="block"`: joints that end at their limits, without bouncing.

After a step, q is put back into its range, and the coordinates at a limit get the impulses lambda >= 0 that leave none of
them moving outward (an inelastic impact, Moreau 1988):

    v+ = v + M^-1 S* lambda,    0 <= lambda  _|_  S v+ >= 0,    S the inward directions of the coordinates at a limit

A coordinate whose limits are one number stands still: S v+ = 0, and lambda has any sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.model.spatial.branch_free import choose, least, less, most
from psiphi.simulation.control.torque_input import UNBOUND
from psiphi.simulation.plant import Plant

SWEEPS = 100  # of Gauss-Seidel; a few joints at a time are at their limits
CLOSE = 1e-12
Values = dict[str, Any]  # by place


class JointStops:
    """The joints of a robot that have limits; its rules run on arrays, and are traced (`simulation/compiled_rollout/constraint_blocks.py`)."""

    def __init__(self, system: Plant):
        lower, upper = system.robot.lower, system.robot.upper
        if not system.is_plain:
            raise StateError(
                'limits="block" is for robots alone',
                'use limits="stop" or "record" with closed chains',
            )
        for joint in system.manifold.bent:
            ends = lower[joint.q_slice], upper[joint.q_slice]
            if np.isfinite(ends).any():
                why = "which move together" if joint.kind == "compound" else f"a {joint.kind} joint"
                raise StateError(
                    f'limits="block" does not hold {joint.name}, {why}',
                    'use limits="stop" or "record"',
                )
        q, v = system.manifold.flat
        finite = np.isfinite(lower[q]) | np.isfinite(upper[q])
        self.robot, self.q, self.v = system.robot, q[finite], v[finite]
        self.lower, self.upper = (np.clip(x[self.q], -UNBOUND, UNBOUND) for x in (lower, upper))
        self.locked = self.lower == self.upper

    def __bool__(self) -> bool:
        """Whether any joint has a limit."""
        return bool(len(self.q))

    def __call__(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state after the impact."""
        if not self:
            return q, v
        at: Values = {"q": q, "v": v, "M_inv": None} | self.touch(q, v)
        if not at["hit"].any():
            return q, v
        at["M_inv"] = self.robot.mass_matrix_inverse(at["q"]).reshape(
            *q.shape[:-1], self.robot.nv**2
        )
        at |= self.impact(v, at["M_inv"], at["side"])
        for _ in range(SWEEPS):
            at |= self.sweep(at["compliance"], at["speed"], at["side"], at["impulse"], at["done"])
            if at["done"].all():
                break
        return at["q"], self.bounce(v, at["M_inv"], at["side"], at["impulse"])["v"]

    def touch(self, q, v) -> Values:
        """q within its limits; side: 1 at a lower limit (or both), -1 at an upper, else 0; hit: what must change."""
        x, rate, put = q[..., self.q], v[..., self.v], q.copy()
        low, high = 1.0 - less(self.lower, x), 1.0 - less(x, self.upper)
        out = less(x, self.lower) + less(self.upper, x)
        outward = low * less(rate, 0.0) + high * less(0.0, rate)
        put[..., self.q] = least(most(x, self.lower), self.upper)
        side = np.where(self.locked, 1.0, low - high)
        return {
            "Q": put,
            "q": put,
            "side": side,
            "hit": (out + outward).sum(axis=-1, keepdims=True),
        }

    def impact(self, v, M_inv, side) -> Values:
        """A = S M^-1 S*, speed = S v, lambda = 0."""
        A = side[..., :, None] * self._columns(M_inv)[..., self.v, :] * side[..., None, :]
        flat = A.reshape(*A.shape[:-2], len(self.q) ** 2)
        return {
            "compliance": flat,
            "speed": side * v[..., self.v],
            "impulse": 0.0 * side,
            "done": 0.0 * side[..., :1],
        }

    def sweep(self, compliance, speed, side, impulse, done) -> Values:
        """One sweep of Gauss and Seidel, until each element is done: lambda >= 0 with speed + A lambda >= 0 where there is a
        side, and one of the two zero (the latter, where locked)."""
        n, new = len(self.q), impulse.copy()
        A, on = compliance.reshape(*compliance.shape[:-1], n, n), side * side
        for k in range(n):
            after = speed[..., k] + (A[..., k, :] * new).sum(axis=-1)
            push = new[..., k] - after / choose(on[..., k], A[..., k, k], 1.0)
            new[..., k] = on[..., k] * (push if self.locked[k] else most(push, 0.0))
        moving = less(CLOSE * CLOSE * _square(new), _square(new - impulse))
        return {"impulse": choose(done, impulse, new), "done": 1.0 - (1.0 - done) * moving}

    def bounce(self, v, M_inv, side, impulse) -> Values:
        """v + M^-1 S* lambda."""
        v = v + (self._columns(M_inv) * (side * impulse)[..., None, :]).sum(axis=-1)
        own = v[..., self.v]
        v[..., self.v] = np.where(
            self.locked, 0.0, own * (1.0 - less(side * own, 0.0))
        )  # what rounding left over
        return {"V": v, "v": v}

    def _columns(self, M_inv: Any) -> Any:
        """M^-1 S*, without the signs."""
        nv = self.robot.nv
        return M_inv.reshape(*M_inv.shape[:-1], nv, nv)[..., self.v]


def _square(x: Any) -> Any:
    return (x * x).sum(axis=-1, keepdims=True)
