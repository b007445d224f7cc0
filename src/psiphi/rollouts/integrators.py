"""Fixed steps on the configuration manifold: one function a method, h the step.

    euler   v1 = v + h a(t, q, v);  q1 = q exp(h v1)                                semi-implicit, order 1
    rk4     the classical four stages on dq/dt = rate(q, v), dv/dt = a;  quaternions scaled to unit length after the step.
            The flow of dp/dt = p (w, 0) / 2 keeps |p|, and dynamics depend on p / |p| only, so the order is 4 there too
    lie     four stages without commutators on the group itself (Celledoni, Marthinsen and Owren 2003, order 4): with
            F = (v, a) of each stage,  q2 = q exp(h/2 F1),  q3 = q exp(h/2 F2),  q4 = q2 exp(h F3 - h/2 F1),
            q1 = q exp(h/12 (3 F1 + 2 F2 + 2 F3 - F4)) exp(h/12 (-F1 + 2 F2 + 2 F3 + 3 F4))

Where q is a vector space, rk4 and lie are one method. `first` is field(t, q, v), known before the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.model.manifold import Manifold

State = tuple[np.ndarray, np.ndarray]


def euler(m: Manifold, field: Any, t: float, q: np.ndarray, v: np.ndarray, h: float, first: State) -> State:
    """First order; its energy error does not grow."""
    v = v + h * first[1]
    return m.unit(m.exp(q, h * field.system.velocity(q, v))), v


def rk4(m: Manifold, field: Any, t: float, q: np.ndarray, v: np.ndarray, h: float, first: State) -> State:
    """Fourth order, in the coordinates q and v."""
    half, (u1, a1) = 0.5 * h, first
    k1 = m.rate(q, u1)
    q2, v2 = q + half * k1, v + half * a1
    u2, a2 = field(t + half, q2, v2)
    k2 = m.rate(q2, u2)
    q3, v3 = q + half * k2, v + half * a2
    u3, a3 = field(t + half, q3, v3)
    k3 = m.rate(q3, u3)
    q4, v4 = q + h * k3, v + h * a3
    u4, a4 = field(t + h, q4, v4)
    k4 = m.rate(q4, u4)
    sixth = h / 6.0
    return m.unit(q + sixth * (k1 + 2.0 * (k2 + k3) + k4)), v + sixth * (a1 + 2.0 * (a2 + a3) + a4)


def lie(m: Manifold, field: Any, t: float, q: np.ndarray, v: np.ndarray, h: float, first: State) -> State:
    """Fourth order, on the group: every stage is a configuration."""
    half, (u1, a1) = 0.5 * h, first
    q2, v2 = m.exp(q, half * u1), v + half * a1
    u2, a2 = field(t + half, q2, v2)
    q3, v3 = m.exp(q, half * u2), v + half * a2
    u3, a3 = field(t + half, q3, v3)
    q4, v4 = m.exp(q2, h * u3 - half * u1), v + h * a3
    u4, a4 = field(t + h, q4, v4)
    middle, twelfth = 2.0 * (u2 + u3), h / 12.0
    way = m.exp(q, twelfth * (3.0 * u1 + middle - u4))
    end = m.exp(way, twelfth * (middle - u1 + 3.0 * u4))
    return m.unit(end), v + (h / 6.0) * (a1 + 2.0 * (a2 + a3) + a4)


METHODS: dict[str, Callable] = {"euler": euler, "rk4": rk4, "lie": lie}
