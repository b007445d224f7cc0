"""Forward dynamics of closed chains, as equations in stages: what S4 calls RCCFD1, RCCFD2 and RCCFD3, and psiphi's own.

A stage is an operator expression of the forest; between stages stands the small dense solve with Omega. W = I - H psi K,
T' = T - H phi (M phi* a + b). Wrenches f act on the frames here (S4's f(0) acts on the environment: f = -f(0)).

    hub         as free, for all but the hub: T' is what pushes it (`hub.py`)
    free        a_f = M^-1 T';  a = a_f + M^-1 J* f                 rewritten by the compiler
    whole       J a_f = J M^-1 T';  a = M^-1 (T' + J* f)            rewritten by the compiler
    RCCFD1      a_f = W* D^-1 W T';  a = a_f + W* D^-1 H psi B f
    RCCFD2      J a_f = B* psi* H* D^-1 W T';  a = W* D^-1 (T' - H psi (K T' - B f))
    RCCFD3      e = W T';  J a_f = B* psi* H* D^-1 e;  a = W* (D^-1 e + D^-1 H psi B f)

Where joints follow others (F of Jc = Z [J; F]), torques u on them stand beside f: H psi B f becomes H psi B f + W u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.robot.catalogue.quantities import whitened
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, f, u

tau, T, e = vector("tau"), vector("T"), vector("e")
Stages = Callable[[Algebra, tuple[str, ...], str], tuple[Equation, ...]]


def _load(s: Operators, frames: tuple[str, ...], axes: str) -> Expression:
    """M phi* a + b, less the external wrenches."""
    force = s.M @ s.phi.T @ s.a + s.b
    return force - s.B(*frames, axes=axes) @ vector("f_ext", "frame") if frames else force


def _torque(s: Operators, frames: tuple[str, ...], axes: str) -> Expression:
    return tau - s.H @ s.phi @ _load(s, frames, axes)


def _sensed(
    algebra: Algebra, acceleration: Expression, **more: Expression
) -> dict[str, Expression]:
    """J a of the constrained frames, and a itself where joints follow others."""
    closure = algebra.closure
    frames = {"A": algebra.J @ acceleration} if closure.frames else {}
    return {**frames, **({"a": acceleration} if closure.follows else {}), **more}


def _free(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    free = s.mass.inv @ _torque(s, frames, axes)
    return algebra.equation(**_sensed(algebra, free, a=free)), algebra.correction


def _around(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    """Those of all but the hub; what pushes the hub, and is to accelerate it, is T."""
    first, last = _free(algebra, frames, axes)
    return first, _torques(algebra, frames, axes), last


def _whole(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    torque = _torque(s, frames, axes)
    first = algebra.equation(**_sensed(algebra, s.mass.inv @ torque))
    force = _load(s, frames, axes)
    if algebra.closure.frames:
        force = force - algebra.B @ f
    pushed = tau + u if algebra.closure.follows else tau
    return first, algebra.equation(a=s.mass.inv @ (pushed - s.H @ s.phi @ force))


def _torques(algebra: Algebra, frames: tuple[str, ...], axes: str) -> Equation:
    """T' = T - C, of an inverse dynamics at a = 0."""
    return algebra.equation(T=_torque(algebra.s, frames, axes))


def _innovation(algebra: Algebra, W: Expression) -> Expression:
    """H psi B f + W u: what wrenches on frames and torques on joints that follow give each joint."""
    s, closure = algebra.s, algebra.closure
    if not closure.frames:
        return W @ u
    pushed = s.H @ s.psi @ algebra.B @ f
    return pushed + W @ u if closure.follows else pushed


def _rccfd1(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    W = whitened(s)
    free = W.T @ s.D.inv @ W @ T
    first = algebra.equation(True, **_sensed(algebra, free, a=free))
    second = W.T @ s.D.inv @ _innovation(algebra, W)
    return _torques(algebra, frames, axes), first, algebra.equation(True, a=second)


def _rccfd2(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s, closure = algebra.s, algebra.closure
    W = whitened(s)
    pushed = T + u if closure.follows else T
    inner = s.K @ pushed - algebra.B @ f if closure.frames else s.K @ pushed
    second = W.T @ s.D.inv @ (pushed - s.H @ s.psi @ inner)
    return (
        _torques(algebra, frames, axes),
        algebra.equation(True, **_felt(algebra, W)),
        algebra.equation(True, a=second),
    )


def _rccfd3(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    W = whitened(s)
    second = W.T @ (s.D.inv @ e + s.D.inv @ _innovation(algebra, W))
    first = algebra.equation(True, **_felt(algebra, W), e=W @ T)
    return _torques(algebra, frames, axes), first, algebra.equation(True, a=second)


def _felt(algebra: Algebra, W: Expression) -> dict[str, Expression]:
    """J a_f = B* psi* H* D^-1 W T of the constrained frames, and a_f itself where joints follow others."""
    s, closure = algebra.s, algebra.closure
    motions = {"A": algebra.B.T @ s.psi.T @ s.H.T @ s.D.inv @ W @ T} if closure.frames else {}
    return motions | ({"a": W.T @ s.D.inv @ W @ T} if closure.follows else {})


HUB = "hub"  # the stages of `free` for all but the hub, which is eliminated last (`hub.py`)
METHODS: dict[str, Stages] = {
    HUB: _around,
    "free": _free,
    "whole": _whole,
    "RCCFD1": _rccfd1,
    "RCCFD2": _rccfd2,
    "RCCFD3": _rccfd3,
}
CORRECTED = (HUB, "free", "RCCFD1")  # their last stage adds to the free accelerations
PAPER = ("RCCFD1", "RCCFD2", "RCCFD3")  # what a user may name, besides DENSE
DENSE = "KKT"


def method_name(method: Any, *also: str) -> str:
    """The name of a paper's method, or of one of `also`; "" leaves the choice to the compiler."""
    if method is None:
        return ""
    if not isinstance(method, str):
        raise StateError(
            f"method is {shown(method)}, expected a name",
            f"leave it out, or ask for {', '.join(PAPER)}",
        )
    if method in PAPER or method in also:
        return method
    if method == DENSE:
        raise StateError(
            "KKT is the dense system: it has no sweeps to explain or count",
            f"ask for {', '.join(PAPER)}",
        )
    raise StateError(
        f"no method {shown(method)} for closed chains", nearest(method, (*PAPER, DENSE))
    )
