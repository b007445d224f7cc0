"""Cross products of spatial vectors, angular part first; stacked vectors are taken body by body."""

from __future__ import annotations

from psiphi.model.spatial.body_stacks import by_body
from psiphi.model.spatial.screws import add, cross


def motion_cross(V: list, X: list) -> list:
    """V x X = [w x w'; v x w' + w x v']."""
    if len(V) > 6:
        return by_body(motion_cross, V, X)
    return cross(V[:3], X[:3]) + add(cross(V[3:], X[:3]), cross(V[:3], X[3:]))


def force_cross(V: list, f: list) -> list:
    """V x* f = [w x n + v x F; w x F]."""
    if len(V) > 6:
        return by_body(force_cross, V, f)
    return add(cross(V[:3], f[:3]), cross(V[3:], f[3:])) + cross(V[:3], f[3:])
