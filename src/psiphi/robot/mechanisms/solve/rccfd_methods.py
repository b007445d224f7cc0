"""Forward dynamics of closed chains as equations in stages: RCCFD1, RCCFD2, RCCFD3 of S4 and more.

A stage is an operator expression of the forest. Between the stages is the dense solve with Omega.
W = I - H psi K and T' = T - H phi (M phi* a + b). Here the wrenches f act on the frames; f(0) of S4
acts on the environment: f = -f(0).

    hub         as free, for all bodies but the hub; T' is the torque on the hub (`hub.py`)
    free        a_f = M^-1 T';  a = a_f + M^-1 J* f                 rewritten by the compiler
    whole       J a_f = J M^-1 T';  a = M^-1 (T' + J* f)            rewritten by the compiler
    RCCFD1      a_f = W* D^-1 W T';  a = a_f + W* D^-1 H psi B f
    RCCFD2      J a_f = B* psi* H* D^-1 W T';  a = W* D^-1 (T' - H psi (K T' - B f))
    RCCFD3      e = W T';  J a_f = B* psi* H* D^-1 e;  a = a_1 + a_2, with f = f_1 + zeta;
                a_1 = W* (D^-1 e + D^-1 H psi B f_1);  a_2 = W* D^-1 H psi B zeta

RCCFD3 solves twice: Omega f_1 = -Jc a_f with a_f of the arms, and Omega zeta = a'(C), S4 (6.22d),
where a'(C) is the bias and what the held object would do by itself.

With mimic joints (F of Jc = Z [J; F]) there are also torques u on them: H psi B f becomes
H psi B f + W u.
"""

from __future__ import annotations

from collections.abc import Callable

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.robot.catalogue.catalogue import innovation_operator
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, f, u

tau, T, e = vector("tau"), vector("T"), vector("e")
Stages = Callable[[Algebra, tuple[str, ...], str], tuple[Equation, ...]]


def _link_forces(s: Operators, frames: tuple[str, ...], axes: str) -> Expression:
    """M phi* a + b - B f_ext: the link forces at zero joint acceleration."""
    force = s.M @ s.phi.T @ s.a + s.b
    return force - s.B(*frames, axes=axes) @ vector("f_ext", "frame") if frames else force


def _torque(s: Operators, frames: tuple[str, ...], axes: str) -> Expression:
    """T' = T - H phi (M phi* a + b - B f_ext)."""
    return tau - s.H @ s.phi @ _link_forces(s, frames, axes)


def _constrained_accelerations(
    algebra: Algebra, acceleration: Expression, **more: Expression
) -> dict[str, Expression]:
    """J a of the constrained frames and, with mimic joints, a itself."""
    closure = algebra.closure
    frames = {"A": algebra.J @ acceleration} if closure.frames else {}
    return {**frames, **({"a": acceleration} if closure.mimics else {}), **more}


def _free(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    free = s.mass.inv @ _torque(s, frames, axes)
    return algebra.equation(**_constrained_accelerations(algebra, free, a=free)), algebra.correction


def _hub(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    """The equations of all bodies but the hub, and T, the torque on the hub."""
    first, last = _free(algebra, frames, axes)
    return first, _torques(algebra, frames, axes), last


def _whole(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    torque = _torque(s, frames, axes)
    first = algebra.equation(**_constrained_accelerations(algebra, s.mass.inv @ torque))
    force = _link_forces(s, frames, axes)
    if algebra.closure.frames:
        force = force - algebra.B @ f
    torque = tau + u if algebra.closure.mimics else tau
    return first, algebra.equation(a=s.mass.inv @ (torque - s.H @ s.phi @ force))


def _torques(algebra: Algebra, frames: tuple[str, ...], axes: str) -> Equation:
    """T', by inverse dynamics at a = 0."""
    return algebra.equation(T=_torque(algebra.s, frames, axes))


def _innovation(algebra: Algebra, W: Expression) -> Expression:
    """H psi B f + W u: the innovations due to wrenches on frames and torques on mimic joints."""
    s, closure = algebra.s, algebra.closure
    if not closure.frames:
        return W @ u
    wrenches = s.H @ s.psi @ algebra.B @ f
    return wrenches + W @ u if closure.mimics else wrenches


def _rccfd1(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    W = innovation_operator(s)
    free = W.T @ s.D.inv @ W @ T
    first = algebra.equation(True, **_constrained_accelerations(algebra, free, a=free))
    second = W.T @ s.D.inv @ _innovation(algebra, W)
    return _torques(algebra, frames, axes), first, algebra.equation(True, a=second)


def _rccfd2(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s, closure = algebra.s, algebra.closure
    W = innovation_operator(s)
    torque = T + u if closure.mimics else T
    inner = s.K @ torque - algebra.B @ f if closure.frames else s.K @ torque
    second = W.T @ s.D.inv @ (torque - s.H @ s.psi @ inner)
    return (
        _torques(algebra, frames, axes),
        algebra.equation(True, **_innovation_accelerations(algebra, W)),
        algebra.equation(True, a=second),
    )


def _rccfd3(algebra: Algebra, frames: tuple[str, ...], axes: str) -> tuple[Equation, ...]:
    s = algebra.s
    W = innovation_operator(s)
    second = W.T @ (s.D.inv @ e + s.D.inv @ _innovation(algebra, W))
    bias_part = W.T @ s.D.inv @ _innovation(algebra, W)
    first = algebra.equation(True, **_innovation_accelerations(algebra, W), e=W @ T)
    parts = algebra.equation(True, a=second), algebra.equation(True, a=bias_part)
    return _torques(algebra, frames, axes), first, *parts


def _innovation_accelerations(algebra: Algebra, W: Expression) -> dict[str, Expression]:
    """J a_f = B* psi* H* D^-1 W T of the constrained frames and, with mimic joints, a_f itself."""
    s, closure = algebra.s, algebra.closure
    motions = {"A": algebra.B.T @ s.psi.T @ s.H.T @ s.D.inv @ W @ T} if closure.frames else {}
    return motions | ({"a": W.T @ s.D.inv @ W @ T} if closure.mimics else {})


HUB = "hub"  # the stages of `free` for all bodies but the hub, which is eliminated last (`hub.py`)
METHODS: dict[str, Stages] = {
    HUB: _hub,
    "free": _free,
    "whole": _whole,
    "RCCFD1": _rccfd1,
    "RCCFD2": _rccfd2,
    "RCCFD3": _rccfd3,
}
CORRECTED = (HUB, "free", "RCCFD1")  # the last stage gives a correction of the free accelerations
SPLIT = ("RCCFD3",)  # the last two stages give the parts due to the arms and due to a'(C)
PAPER = ("RCCFD1", "RCCFD2", "RCCFD3")  # the methods a user can name, besides DENSE
DENSE = "KKT"


def method_name(method: object, *also: str) -> str:
    """The checked name of a method of S4, or of one of `also`; "" (None) lets psiphi choose."""
    if method is None:
        return ""
    if not isinstance(method, str):
        raise StateError(
            f"method is {shown(method)}, expected a name",
            f"leave it out, or pass one of {', '.join(PAPER)}",
        )
    if method in PAPER or method in also:
        return method
    if method == DENSE:
        raise StateError(
            "KKT is the dense system, which has no sweeps to explain or count",
            f"pass one of {', '.join(PAPER)}",
        )
    raise StateError(
        f"no method {shown(method)} for closed chains", nearest(method, (*PAPER, DENSE))
    )
