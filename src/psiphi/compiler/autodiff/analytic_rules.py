"""Equations whose derivatives have analytic sweeps, recognised by their polynomials.

    H φ (M φ* (H* u + a) + b - B f) + J_m u               inverse dynamics; without u the bias,
                                                          at rest the gravity torques
    (H φ M φ* H* + J_m)⁻¹ (u - H φ (M φ* a + b - B f))    forward dynamics
    H φ (M φ* (V× H* + Ḣ*) + B_V φ* H*)                   the Coriolis matrix

Wrenches f on frames are optional. u is not v, since a and b depend on v. The joint maps of the
robot must be constant in body axes; universal joints are split into two revolute joints first. All
other equations use the derivatives of their tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.letters import FrameLetter, VectorLetter
from psiphi.algebra.expressions.operators import Operators, has_constant_maps, has_rotors
from psiphi.algebra.expressions.terms import letter_term
from psiphi.compiler.autodiff.forward_dynamics_jacobian import ForwardDynamicsJacobian
from psiphi.compiler.autodiff.forward_dynamics_jvp import ForwardDynamicsJvp, ForwardDynamicsVjp
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import Arguments, InverseDynamicsJacobian
from psiphi.compiler.autodiff.inverse_dynamics_jvp import InverseDynamicsJvp, InverseDynamicsVjp
from psiphi.compiler.autodiff.wrench_derivatives import NO_LOADS, WrenchDerivatives
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import Equation
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.model.model import Model
from psiphi.model.universal_joints import split_universal


class DerivativeSweeps(Protocol):
    """The sweeps of a derivative; `names` are the inputs with respect to which it is known."""

    @property
    def movable_inertia(self) -> bool: ...
    @property
    def names(self) -> tuple[str | None, ...]: ...
    @property
    def loops(self) -> Sequence[str]: ...
    def program(
        self, name: str, tree: Tree, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
    ) -> Program: ...


def analytic_derivatives(request: object, kind: str) -> list[DerivativeSweeps]:
    """The sweeps of a derivative of an equation; [] for none. `kind`: jacobian, jvp or vjp."""
    if (
        not isinstance(request, Equation)
        or len(request.results) != 1
        or not _is_supported(request)
        or _has_name_conflict(request)
    ):
        return []
    (e,) = request.results.values()
    inputs = [
        x.bare
        for x in e.letters
        if isinstance(x, VectorLetter) and x.is_input and x.space == "joint" and x.word != "v"
    ]
    vectors = [Expression(letter_term(x)) for x in dict.fromkeys(inputs)]
    loads = _frame_wrenches(e)
    for u in (None, *vectors):
        if _equals(e, inverse_dynamics(request.model, u, loads)):
            return _inverse_dynamics_sweeps(kind, None if u is None else _vector_name(u), loads)
    for u in vectors:
        if _equals(e, forward_dynamics(request.model, u, loads)):
            return _forward_dynamics_sweeps(kind, _vector_name(u), loads)
    return []


def _inverse_dynamics_sweeps(
    kind: str, u: str | None, loads: WrenchDerivatives
) -> list[DerivativeSweeps]:
    if kind == "jacobian":
        return [InverseDynamicsJacobian(u, loads=loads)]
    if kind == "jvp":
        return [InverseDynamicsJvp(u, loads)]
    return [InverseDynamicsVjp(u, loads)] if kind == "vjp" else []


def _forward_dynamics_sweeps(
    kind: str, tau: str, loads: WrenchDerivatives
) -> list[DerivativeSweeps]:
    if kind == "jacobian":
        return [ForwardDynamicsJacobian(tau, psi, loads) for psi in (False, True)]
    if kind == "jvp":
        return [ForwardDynamicsJvp(tau, loads)]
    return [ForwardDynamicsVjp(tau, loads)] if kind == "vjp" else []


def _has_name_conflict(equation: Equation) -> bool:
    """Whether an input has the name of a change or of a weight in these sweeps."""
    inputs, outputs = ({arg.name for arg in args} for args in equation.arguments())
    return bool(inputs & ({f"d{name}" for name in inputs} | {f"{name}_weight" for name in outputs}))


def _frame_wrenches(e: Expression) -> WrenchDerivatives:
    """Wrenches on frames, if an expression has one letter B and one vector for it."""
    letters = {x.plain for x in e.letters if isinstance(x, FrameLetter)}
    names = {
        x.word
        for x in e.letters
        if isinstance(x, VectorLetter) and x.is_input and x.space == "frame"
    }
    return (
        WrenchDerivatives(letters.pop(), names.pop())
        if len(letters) == len(names) == 1
        else NO_LOADS
    )


def coriolis_sweeps(equation: Equation) -> InverseDynamicsJacobian | None:
    """The Coriolis matrix from composites; None if the equation is not that of the matrix."""
    if (
        len(equation.results) != 1
        or not _is_supported(equation)
        or not has_constant_maps(equation.model)
    ):
        return None
    (e,) = equation.results.values()
    return (
        InverseDynamicsJacobian(coriolis=True)
        if _equals(e, Operators(equation.model).coriolis)
        else None
    )


def inverse_dynamics(
    model: Model, u: Expression | None, loads: WrenchDerivatives = NO_LOADS
) -> Expression:
    """H φ (M φ* (H* u + a) + b - B f) + J_m u."""
    s = Operators(model)
    motion = s.a if u is None else s.H.T @ u + s.a
    force = s.M @ s.phi.T @ motion + s.b
    if loads.letter:
        force = force - s.B(*loads.letter.frames, axes=loads.letter.axes) @ vector(
            loads.input_name, "frame"
        )
    torque = s.H @ s.phi @ force
    return torque if u is None or not has_rotors(model) else torque + s.rotor @ u


def forward_dynamics(
    model: Model, u: Expression, loads: WrenchDerivatives = NO_LOADS
) -> Expression:
    """(H φ M φ* H* + J_m)⁻¹ (u - H φ (M φ* a + b - B f))."""
    return Operators(model).mass.inv @ (u - inverse_dynamics(model, None, loads))


def _is_supported(equation: Equation) -> bool:
    model = equation.model
    return (
        has_constant_maps(split_universal(model))
        and bool(model.joints)
        and not equation.added
        and not equation.velocities
    )


def _vector_name(u: Expression) -> str:
    return u.term.args[0].word


def _equals(e: Expression, other: Expression) -> bool:
    """Whether both have the same polynomial over the same inverses; J_m is zero without rotors."""
    if [x.poly() for x in e.inverses] != [x.poly() for x in other.inverses]:
        return False
    words = {
        word: c
        for word, c in e.poly().items()
        if "rotor" not in word or e.model is None or has_rotors(e.model)
    }
    return words == other.poly()
