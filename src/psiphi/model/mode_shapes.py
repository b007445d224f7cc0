"""Places on a body that bends, and the joint they hang on it by: the body's shapes, whose sizes η are the coordinates.

    ρ(η) = U η + ½ η* Q η      R(η) = (1 + θ~/2) (1 - θ~/2)⁻¹,  θ = Θ η      w = (θ' - ½ θ x θ') / (1 + |θ|²/4)

U, Θ (3 x n) are what a unit of each shape shifts and turns the place by, Q (3 x n x n) what it draws in (docs/flexible.md);
w is the turning in the place's own axes. R agrees with exp(θ~) to the third order, and has no root at θ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.model.joint_types import JOINTS, JointKind, flat_box
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.screws import Shift, Turn, cross, dot, vanishes

MODAL = "modal"  # the kind of such joints, which no table lists: how many shapes there are is the body's own


@dataclass(frozen=True)
class ModeShape:
    """U, Θ and Q at one place: rows of floats; Θ and Q empty where the place does not turn, or is not drawn in. `seen`: whether
    pictures show it."""

    U: tuple[tuple[float, ...], ...]
    Theta: tuple[tuple[float, ...], ...] = ()
    Q: tuple[tuple[tuple[float, ...], ...], ...] = ()
    seen: bool = False

    @classmethod
    def of(
        cls,
        U: np.ndarray,
        Theta: np.ndarray | None = None,
        Q: np.ndarray | None = None,
        seen: bool = False,
    ) -> ModeShape:
        some = lambda x: () if x is None or not np.any(x) else _nested(x)  # noqa: E731
        return cls(_nested(U), some(Theta), some(Q), seen)

    @property
    def count(self) -> int:
        return len(self.U[0])

    @property
    def key(self) -> list:
        return [self.U, self.Theta, self.Q]

    def shift(self, eta: list) -> list:
        bent = [_times(row, eta) for row in self.U]
        return (
            [
                x + 0.5 * _times([_times(r, eta) for r in Q], eta)
                for x, Q in zip(bent, self.Q, strict=True)
            ]
            if self.Q
            else bent
        )

    def shifted_by(self, eta: list, j: int) -> list:
        """∂ρ/∂η_j."""
        own = [row[j] for row in self.U]
        return [x + _times(Q[j], eta) for x, Q in zip(own, self.Q, strict=True)] if self.Q else own

    def turn(self, eta: list) -> Turn | None:
        return (
            None
            if not self.Theta
            else Turn.from_quaternion([0.5 * _times(row, eta) for row in self.Theta] + [1.0])
        )

    def turned_by(self, eta: list, j: int) -> list:
        """w of a unit rate of η_j, in the place's axes."""
        if not self.Theta:
            return [0.0, 0.0, 0.0]
        theta, own = [_times(row, eta) for row in self.Theta], [row[j] for row in self.Theta]
        scale = 1.0 / (1.0 + 0.25 * dot(theta, theta))
        return [scale * (x - 0.5 * y) for x, y in zip(own, cross(theta, own), strict=True)]


def _nested(x: np.ndarray) -> tuple:
    return tuple(_nested(y) for y in x) if np.ndim(x) > 1 else tuple(float(y) for y in x)


def _times(row: Any, eta: list) -> Any:
    """row · η, the zeros of the row left out."""
    total: Any = 0.0
    for c, x in zip(row, eta, strict=True):
        if not vanishes(c):
            total = total + c * x
    return total


def _motion(q: list, joint: Any) -> list:
    shape = joint.modes
    turn = shape.turn(q)
    return [Shift(shape.shift(q))] + ([] if turn is None else [turn])


def _H(q: list, joint: Any) -> list:
    shape = joint.modes
    turn = shape.turn(q)
    rows = []
    for j in range(len(q)):
        moved = shape.shifted_by(q, j)
        rows.append(shape.turned_by(q, j) + (moved if turn is None else turn.unrotate(moved)))
    return rows


def _Hdot(q: list, v: list, joint: Any) -> list:
    if not joint.modes.Theta and not joint.modes.Q:
        return [[0.0] * 6 for _ in q]
    flat = rate_of_change(lambda x: [y for row in _H(x, joint) for y in row], q, v)
    return [flat[i : i + 6] for i in range(0, len(flat), 6)]


@lru_cache(maxsize=64)
def modal(n: int) -> JointKind:
    """The row of the joint table for places on a body with n shapes."""
    slides = (True,) * n
    return JointKind(n, n, _motion, _H, slides, Hdot=_Hdot, random=flat_box(slides), axes=0)


def row_of(kind: str, modes: ModeShape | None) -> JointKind:
    """The row of a joint: of its kind, or of the shapes it has."""
    return JOINTS[kind] if modes is None else modal(modes.count)
