"""Transforms along a path of displacements, listed from the outer end to the inner one.

`screws.py` has the displacements and the transforms of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from psiphi.model.spatial.screws import Inertia


def motion(path: Sequence, V: list) -> list:
    """phi* V along a path of displacements, outer to inner."""
    for step in path:
        V = step.motion(V)
    return V


def force(path: Sequence, f: list) -> list:
    """phi f along a path of displacements, inner to outer."""
    for step in reversed(path):
        f = step.force(f)
    return f


def inertia(path: Sequence, P: Inertia) -> Inertia:
    """phi P phi* along a path of displacements, inner to outer."""
    for step in reversed(path):
        P = step.inertia(P)
    return P


def rotate(path: Sequence, x: list) -> list:
    """A free 3-vector from inner axes to outer axes."""
    for step in reversed(path):
        x = step.rotate(x)
    return x


def unrotate(path: Sequence, x: list) -> list:
    """A free 3-vector from outer axes to inner axes."""
    for step in path:
        x = step.unrotate(x)
    return x


def pose(path: Sequence, R, p):
    """The pose of the inner end of a path whose outer end has the pose (R, p)."""
    for step in path:
        R, p = step.pose(R, p)
    return R, p


def coinertia(path: Sequence, X: Inertia) -> Inertia:
    """phi* X phi along a path, outer to inner: the compliance X of the outer end, at the inner end.

    With angular and linear parts swapped, phi* is the force transform of the inverse displacement.
    """
    if hasattr(path[0], "coinertia"):
        return path[0].coinertia(X)
    S = Inertia(X.M, [list(column) for column in zip(*X.H, strict=True)], X.I)
    for step in path:
        for inverse in step.inverse():
            S = inverse.inertia(S)
    return Inertia(S.M, [list(column) for column in zip(*S.H, strict=True)], S.I)


def second_moment(path: Sequence, J: list) -> list:
    """R J R* along a path, inner to outer, for a symmetric 3x3 J."""
    for step in reversed(path):
        J = step.rotate_tensor(J)
    return J
