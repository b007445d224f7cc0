"""`limits="block"`: joints that stop at their limits, without bouncing.

After a step, q is clipped to its range. The coordinates at a limit get impulses lambda >= 0, so
that none of them moves outward (an inelastic impact, Moreau 1988):

    v+ = v + M^-1 S* lambda,    0 <= lambda  _|_  S v+ >= 0

S are the inward directions of the coordinates at a limit. A coordinate with equal limits is locked:
S v+ = 0, and lambda has any sign. The work of the stops in a step is lambda* S (v0 + v+) / 2, where
v0 is the velocity at the start of the step: 0 for a joint that rests.

The same law holds for the accelerations of coordinates that rest at their limits: a+ = a + M^-1 S*
lambda, 0 <= lambda _|_ S a+ >= 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.control.torque_input import UNBOUND
from psiphi.simulation.plant import Plant

SWEEPS = 100  # of Gauss-Seidel, at most
CONVERGENCE = 1e-12  # of impulses, relative
START_TOLERANCE = 1e-6  # rad and m: a start this far outside its limits is moved to them
REST_SPEED = 1e-9  # rad/s, m/s: slower coordinates at a limit rest there


class JointStops:
    """The joints of a robot with limits. The rules `touch`, `impact`, `sweep` and `bounce` run on
    arrays; kernels trace them (`compiled_rollout/constraint_blocks.py`)."""

    def __init__(self, plant: Plant):
        lower, upper = plant.robot.lower, plant.robot.upper
        if not plant.is_robot:
            raise StateError(
                'limits="block" works for robots only, not for closed chains',
                'use limits="stop" or "record"',
            )
        curved: Any = plant.manifold.curved  # joints and clusters
        for joint in curved:
            ends = lower[joint.q_slice], upper[joint.q_slice]
            if np.isfinite(ends).any():
                why = "which move together" if joint.kind == "compound" else f"a {joint.kind} joint"
                raise StateError(
                    f'limits="block" does not support {joint.name}, {why}',
                    'use limits="stop" or "record"',
                )
        q, v = plant.manifold.flat
        finite = np.isfinite(lower[q]) | np.isfinite(upper[q])
        self.robot, self.q, self.v = plant.robot, q[finite], v[finite]
        self.lower, self.upper = (np.clip(x[self.q], -UNBOUND, UNBOUND) for x in (lower, upper))
        self.locked = self.lower == self.upper

    @property
    def range(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper limits of the coordinates that have some."""
        return self.lower, self.upper

    def check_start(self, q: np.ndarray) -> None:
        """Raise an error unless the initial configurations are within the limits."""
        x = q[..., self.q]
        beyond = np.maximum(self.lower - x, x - self.upper)
        if not (beyond > START_TOLERANCE).any():
            return
        where = np.unravel_index(int(beyond.argmax()), beyond.shape)
        value, k = x[where], where[-1]
        lower, upper = self.lower[k], self.upper[k]
        name = self.robot.coordinate_names[self.q[k]]
        raise StateError(
            f'limits="block": q0 of {name} is {value:.6g}, expected {lower:.6g} to {upper:.6g}',
            "start within robot.lower and robot.upper, in radians and metres: "
            "np.clip(q0, robot.lower, robot.upper)",
        )

    def __bool__(self) -> bool:
        """Whether any joint has a limit."""
        return bool(len(self.q))

    def __call__(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state after the impact."""
        return self.collide(q, v, v, np.zeros((*v.shape[:-1], self.sum_size)))[:2]

    @property
    def sum_size(self) -> int:
        """The size of `stop_sum`: the impulses S* lambda of the coordinates with limits, and their
        work."""
        return len(self.q) + 1

    def approach(self, v: np.ndarray) -> Values:
        """The velocities of the coordinates with limits, at the start of a step."""
        return {"speed_before": v[..., self.v]}

    def collide(
        self, q: np.ndarray, v: np.ndarray, v_before: np.ndarray, stop_sum: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The state after the impact, and `stop_sum` with its impulses and work; `v_before` is the
        velocity at the start of the step."""
        if not self:
            return q, v, stop_sum
        at = self.touch(q, v)
        if not at["hit"].any():
            return q, v, stop_sum
        M_inv = self._inverse(self.robot, at["q"])
        impulse = self._impulses(v, M_inv, at["side"])
        before = self.approach(v_before)["speed_before"]
        after = self.bounce(v, M_inv, at["side"], impulse, before, stop_sum)
        return at["q"], after["v"], after["stop_sum"]

    def rest(self, robot: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The accelerations with the forces at coordinates that rest at their limits; a (..., nv)
        are those without."""
        side = self.touch(q, v)["side"]
        side = side * (side * v[..., self.v] <= REST_SPEED)
        M_inv = self._inverse(robot, q)
        return self.bounce(a, M_inv, side, self._impulses(a, M_inv, side))["v"]

    def rests(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(...): whether some coordinate rests at a limit."""
        side = self.touch(q, v)["side"]
        return ((side != 0.0) & (side * v[..., self.v] <= REST_SPEED)).any(axis=-1)

    def _inverse(self, robot: Any, q: np.ndarray) -> np.ndarray:
        return robot.mass_matrix_inverse(q).reshape(*q.shape[:-1], self.robot.nv**2)

    def _impulses(self, v: np.ndarray, M_inv: np.ndarray, side: np.ndarray) -> np.ndarray:
        """lambda."""
        at = self.impact(v, M_inv, side)
        for _ in range(SWEEPS):
            at |= self.sweep(at["compliance"], at["speed"], side, at["impulse"], at["done"])
            if at["done"].all():
                break
        return at["impulse"]

    def touch(self, q: np.ndarray, v: np.ndarray) -> Values:
        """q within its limits; side: 1 at a lower limit (or both), -1 at an upper, else 0; hit:
        positive if the state must change."""
        x, rate, clipped = q[..., self.q], v[..., self.v], q.copy()
        low, high = 1.0 - less(self.lower, x), 1.0 - less(x, self.upper)
        outside = less(x, self.lower) + less(self.upper, x)
        outward = low * less(rate, 0.0) + high * less(0.0, rate)
        clipped[..., self.q] = minimum(maximum(x, self.lower), self.upper)
        side = np.where(self.locked, 1.0, low - high)
        return {
            "Q": clipped,
            "q": clipped,
            "side": side,
            "hit": (outside + outward).sum(axis=-1, keepdims=True),
        }

    def impact(self, v: np.ndarray, M_inv: np.ndarray, side: np.ndarray) -> Values:
        """compliance A = S M^-1 S*, speed = S v, impulse lambda = 0."""
        A = side[..., :, None] * self._columns(M_inv)[..., self.v, :] * side[..., None, :]
        flat = A.reshape(*A.shape[:-2], len(self.q) ** 2)
        return {
            "compliance": flat,
            "speed": side * v[..., self.v],
            "impulse": 0.0 * side,
            "done": 0.0 * side[..., :1],
        }

    def sweep(
        self,
        compliance: np.ndarray,
        speed: np.ndarray,
        side: np.ndarray,
        impulse: np.ndarray,
        done: np.ndarray,
    ) -> Values:
        """One Gauss-Seidel sweep for the elements that are not done: lambda >= 0, speed + A lambda
        >= 0, and their product 0, at each limit; speed + A lambda = 0 at locked coordinates."""
        n, new = len(self.q), impulse.copy()
        A, on = compliance.reshape(*compliance.shape[:-1], n, n), side * side
        for k in range(n):
            after = speed[..., k] + (A[..., k, :] * new).sum(axis=-1)
            free = new[..., k] - after / choose(on[..., k], A[..., k, k], 1.0)
            new[..., k] = on[..., k] * (free if self.locked[k] else maximum(free, 0.0))
        moving = less(CONVERGENCE * CONVERGENCE * _square(new), _square(new - impulse))
        return {"impulse": choose(done, impulse, new), "done": 1.0 - (1.0 - done) * moving}

    def bounce(
        self,
        v: np.ndarray,
        M_inv: np.ndarray,
        side: np.ndarray,
        impulse: np.ndarray,
        speed_before: np.ndarray | None = None,
        stop_sum: np.ndarray | None = None,
    ) -> Values:
        """v + M^-1 S* lambda; what rounding leaves of outward velocities is set to 0. The impulses
        and their work are added to `stop_sum`."""
        v = v + (self._columns(M_inv) * (side * impulse)[..., None, :]).sum(axis=-1)
        rate = v[..., self.v]
        v[..., self.v] = np.where(self.locked, 0.0, rate * (1.0 - less(side * rate, 0.0)))
        after: Values = {"V": v, "v": v}
        if stop_sum is not None and speed_before is not None:
            after["stop_sum"] = self.add_impulse(stop_sum, side * impulse, speed_before, v)
        return after

    def add_impulse(
        self, stop_sum: np.ndarray, force: np.ndarray, speed_before: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """`stop_sum` with the impulses S* lambda of a step, and their work."""
        work = 0.5 * (force * (speed_before + v[..., self.v])).sum(axis=-1, keepdims=True)
        return stop_sum + np.concatenate([force, work], axis=-1)

    def _columns(self, M_inv: np.ndarray) -> np.ndarray:
        """M^-1 S* without the signs."""
        nv = self.robot.nv
        return M_inv.reshape(*M_inv.shape[:-1], nv, nv)[..., self.v]


def _square(x: np.ndarray) -> np.ndarray:
    return (x * x).sum(axis=-1, keepdims=True)
