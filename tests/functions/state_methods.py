"""Methods of a robot, its diagonalised form and a closed chain that take a state, found by their
signatures: a new one is tested as soon as it is there."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np

import psiphi as pp
from psiphi._util.internal_names import is_internal

OTHERS: dict[str, Any] = {
    "contact": 0,
    "dt": 1e-3,
    "frame": "tool",
    "frames": ("tool",),
    "held": "*",
    "link": "hand",
}
ELSEWHERE = {  # methods of states of certain systems, or with more than a state
    *("with_posture", "with_postures", "excitation", "html", "on_ground", "assemble"),
    *("christoffel_symbols", "riemann_symbols", "is_flat"),  # of robots with q' = v
    *("arm_inertias", "effective_compliance", "effective_inertia"),  # of chains with an object
}


@cache
def spun() -> pp.Robot:
    """A ball and a hinge: nq = 5, nv = 4."""
    b = pp.Builder("spun, with a tool")
    b.body("top", 1.0, com=(0, 0, 0.2), inertia=np.diag([0.1, 0.2, 0.15]))
    b.body("hand", 0.5, com=(0.1, 0, 0), inertia=0.02 * np.eye(3))
    b.joint("ball", "spherical", "world", "top")
    b.joint("hinge", "revolute", "top", "hand", xyz=(0, 0, 0.4), axis=(0, 1, 0))
    b.frame("tool", "hand", xyz=(0.1, 0, 0))
    return b.build()


def functions(owner: Any) -> list[str]:
    """Methods whose first argument is a configuration."""
    found = []
    for name in dir(owner):
        getattr(owner, name, None)  # a method of a later package is imported
        member = inspect.getattr_static(owner, name)
        if not name.startswith("_") and not is_internal(owner, name) and inspect.isfunction(member):
            first = list(inspect.signature(member).parameters)[1:2]
            found += [name] if first and first[0] in ("q", "q0") else []
    return found


def needed(owner: Any, name: str) -> list[str]:
    """The arguments that a method must have."""
    taken = list(inspect.signature(getattr(type(owner), name)).parameters.values())[1:]
    return [p.name for p in taken if p.default is p.empty and p.kind is not p.VAR_KEYWORD]


def called(owner: Any, name: str, state: dict[str, Any]) -> Any:
    """The function with every argument it must have."""
    return getattr(owner, name)(
        **{p: state[p] if p in state else OTHERS[p] for p in needed(owner, name)}
    )


def parts(result: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(result, dict):
        return list(result.values())
    return list(result) if isinstance(result, tuple) else [result]
