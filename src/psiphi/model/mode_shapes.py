"""Nodes of a flexible body, and the modal joint that moves them. Its coordinates are amplitudes η.

    ρ(η) = U η + ½ η* Q η                       displacement
    R(η) = (1 + θ~/2) (1 - θ~/2)⁻¹,  θ = Θ η    rotation
    w    = (θ' - ½ θ x θ') / (1 + |θ|²/4)       angular velocity in the node's axes

The columns of U and Θ (3 x n) are the displacement and rotation of the node in each mode; Q
(3 x n x n) is the foreshortening (docs/flexible.md). R agrees with exp(θ~) to third order, and
contains no square root, which would not be differentiable at θ = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.model.joint_types import JOINTS, JointKind, uniform_sampler
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.screws import Shift, Turn, cross, dot, is_zero_constant

MODAL = "modal"  # the kind of these joints; not in JOINTS, since each body has its number of modes


@dataclass(frozen=True)
class ModeShape:
    """U, Θ and Q of one node, as rows of floats.

    Θ is empty if the node does not rotate, Q if it has no foreshortening. `is_drawn` says whether
    pictures show the node.
    """

    U: tuple[tuple[float, ...], ...]
    Theta: tuple[tuple[float, ...], ...] = ()
    Q: tuple[tuple[tuple[float, ...], ...], ...] = ()
    is_drawn: bool = False

    @classmethod
    def of(
        cls,
        U: np.ndarray,
        Theta: np.ndarray | None = None,
        Q: np.ndarray | None = None,
        is_drawn: bool = False,
    ) -> ModeShape:
        """The mode shapes of arrays; an array that is None or zero becomes ()."""
        return cls(_nested(U), _nonzero(Theta), _nonzero(Q), is_drawn)

    @property
    def count(self) -> int:
        """The number of modes."""
        return len(self.U[0])

    @property
    def key(self) -> list:
        return [self.U, self.Theta, self.Q]

    def shift(self, eta: list) -> list:
        """ρ(η)."""
        linear = [_dot_product(row, eta) for row in self.U]
        if not self.Q:
            return linear
        return [
            x + 0.5 * _dot_product([_dot_product(r, eta) for r in Q], eta)
            for x, Q in zip(linear, self.Q, strict=True)
        ]

    def shift_derivative(self, eta: list, j: int) -> list:
        """∂ρ/∂η_j."""
        linear = [row[j] for row in self.U]
        if not self.Q:
            return linear
        return [x + _dot_product(Q[j], eta) for x, Q in zip(linear, self.Q, strict=True)]

    def turn(self, eta: list) -> Turn | None:
        """R(η); None if the node does not rotate."""
        if not self.Theta:
            return None
        return Turn.from_quaternion([0.5 * _dot_product(row, eta) for row in self.Theta] + [1.0])

    def angular_velocity(self, eta: list, j: int) -> list:
        """w for a unit rate of η_j, in the node's axes."""
        if not self.Theta:
            return [0.0, 0.0, 0.0]
        theta, rate = [_dot_product(row, eta) for row in self.Theta], [row[j] for row in self.Theta]
        scale = 1.0 / (1.0 + 0.25 * dot(theta, theta))
        return [scale * (x - 0.5 * y) for x, y in zip(rate, cross(theta, rate), strict=True)]


def _nonzero(x: np.ndarray | None) -> tuple:
    return () if x is None or not np.any(x) else _nested(x)


def _nested(x: np.ndarray) -> tuple:
    return tuple(_nested(y) for y in x) if np.ndim(x) > 1 else tuple(float(y) for y in x)


def _dot_product(row: Sequence[AnyScalar], eta: list) -> Any:
    """row · η, without the terms in which the row is zero."""
    total: Any = 0.0
    for c, x in zip(row, eta, strict=True):
        if not is_zero_constant(c):
            total = total + c * x
    return total


class HasModes(Protocol):
    """The canonical axes of a modal joint."""

    @property
    def modes(self) -> ModeShape: ...


def _motion(q: list, joint: HasModes) -> list:
    shape = joint.modes
    turn = shape.turn(q)
    return [Shift(shape.shift(q))] + ([] if turn is None else [turn])


def _H(q: list, joint: HasModes) -> list:
    shape = joint.modes
    turn = shape.turn(q)
    rows = []
    for j in range(len(q)):
        velocity = shape.shift_derivative(q, j)
        velocity = velocity if turn is None else turn.unrotate(velocity)
        rows.append(shape.angular_velocity(q, j) + velocity)
    return rows


def _Hdot(q: list, v: list, joint: HasModes) -> list:
    if not joint.modes.Theta and not joint.modes.Q:
        return [[0.0] * 6 for _ in q]
    flat = rate_of_change(lambda x: [y for row in _H(x, joint) for y in row], q, v)
    return [flat[i : i + 6] for i in range(0, len(flat), 6)]


@lru_cache(maxsize=64)
def modal_joint(n: int) -> JointKind:
    """The row of the joint table for nodes of a flexible body with n modes."""
    slides = (True,) * n
    return JointKind(n, n, _motion, _H, slides, Hdot=_Hdot, random=uniform_sampler(slides), axes=0)


def row_of(kind: str, modes: ModeShape | None) -> JointKind:
    """The row of the joint table for a kind, or for modes if there are any."""
    return JOINTS[kind] if modes is None else modal_joint(modes.count)
