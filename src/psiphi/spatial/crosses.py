"""Cross products of spatial vectors, angular part first."""

from __future__ import annotations

from psiphi.spatial.screws import add, cross


def motion_cross(V, X) -> list:
    """V x X = [w x w'; v x w' + w x v']."""
    return cross(V[:3], X[:3]) + add(cross(V[3:], X[:3]), cross(V[:3], X[3:]))


def force_cross(V, f) -> list:
    """V x* f = [w x n + v x F; w x F]."""
    return add(cross(V[:3], f[:3]), cross(V[3:], f[3:])) + cross(V[:3], f[3:])
