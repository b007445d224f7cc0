"""Equations whose derivatives have sweeps of their own, by what they say: Newton and Euler's, and what it inverts.

    H φ (M φ* (H* u + a) + b - B f) + J_m u       inverse dynamics; without u the bias, at rest the gravity torques
    (H φ M φ* H* + J_m)⁻¹ (u - H φ (M φ* a + b - B f))       forward dynamics, with wrenches f on frames or without; u is not v,
                                                             of which a and b are made, too
    H φ (M φ* (V× H* + Ḣ*) + B_V φ* H*)     the Coriolis matrix

for robots whose joint maps are constant in body axes, or are once universal joints are two hinges each. Others have the
derivatives of their tape.
"""

from __future__ import annotations

from typing import Any

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.letters import FrameLetter, VectorLetter
from psiphi.algebra.expressions.operators import Operators, has_constant_maps, has_rotors
from psiphi.algebra.expressions.terms import of_letter
from psiphi.compiler.autodiff.forward_dynamics_jacobian import ForwardDynamicsJacobian
from psiphi.compiler.autodiff.forward_dynamics_jvp import ForwardDynamicsJvp, ForwardDynamicsVjp
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import InverseDynamicsJacobian
from psiphi.compiler.autodiff.inverse_dynamics_jvp import InverseDynamicsJvp, InverseDynamicsVjp
from psiphi.compiler.autodiff.wrench_derivatives import NO_LOADS, WrenchDerivatives
from psiphi.compiler.equations import Equation
from psiphi.model.model import Model
from psiphi.model.universal_joints import hinged


def derivatives(asked: Any, kind: str) -> list[Any]:
    """The sweeps of one kind of derivative (jacobian, jvp or vjp) of what is asked; none where it has none of its own."""
    if (
        not isinstance(asked, Equation)
        or len(asked.results) != 1
        or not _plain(asked)
        or _is_taken(asked)
    ):
        return []
    (e,) = asked.results.values()
    given = [
        x.bare
        for x in e.letters
        if isinstance(x, VectorLetter) and x.given and x.space == "joint" and x.word != "v"
    ]
    vectors = [Expression(of_letter(x)) for x in dict.fromkeys(given)]
    loads = _loads(e)
    for u in (None, *vectors):
        if _same(e, inverse_dynamics(asked.model, u, loads)):
            of = {
                "jacobian": InverseDynamicsJacobian,
                "jvp": InverseDynamicsJvp,
                "vjp": InverseDynamicsVjp,
            }.get(kind)
            return [] if of is None else [of(None if u is None else _word(u), loads=loads)]
    for u in vectors:
        if _same(e, forward_dynamics(asked.model, u, loads)):
            return {
                "jacobian": [
                    ForwardDynamicsJacobian(_word(u), psi, loads) for psi in (False, True)
                ],
                "jvp": [ForwardDynamicsJvp(_word(u), loads)],
                "vjp": [ForwardDynamicsVjp(_word(u), loads)],
            }.get(kind, [])
    return []


def _is_taken(equation: Equation) -> bool:
    """Whether a vector has the name that these sweeps know a change or a weight by."""
    inputs, outputs = ({arg.name for arg in args} for args in equation.arguments())
    return bool(inputs & ({f"d{name}" for name in inputs} | {f"{name}_weight" for name in outputs}))


def _loads(e: Expression) -> WrenchDerivatives:
    """Wrenches on frames, where an expression has one letter B and one vector for it."""
    letters = {x.of for x in e.letters if isinstance(x, FrameLetter)}
    words = {
        x.word for x in e.letters if isinstance(x, VectorLetter) and x.given and x.space == "frame"
    }
    return (
        WrenchDerivatives(letters.pop(), words.pop())
        if len(letters) == len(words) == 1
        else NO_LOADS
    )


def coriolis(equation: Equation) -> InverseDynamicsJacobian | None:
    """The Coriolis matrix by composites, where an equation asks for it."""
    if len(equation.results) != 1 or not _plain(equation) or not has_constant_maps(equation.model):
        return None
    (e,) = equation.results.values()
    return (
        InverseDynamicsJacobian(coriolis=True)
        if _same(e, Operators(equation.model).coriolis)
        else None
    )


def inverse_dynamics(
    model: Model, u: Expression | None, loads: WrenchDerivatives = NO_LOADS
) -> Expression:
    s = Operators(model)
    motion = s.a if u is None else s.H.T @ u + s.a
    force = s.M @ s.phi.T @ motion + s.b
    if loads.letter:
        force = force - s.B(*loads.letter.frames, axes=loads.letter.axes) @ vector(
            loads.word, "frame"
        )
    torque = s.H @ s.phi @ force
    return torque if u is None or not has_rotors(model) else torque + s.rotor @ u


def forward_dynamics(
    model: Model, u: Expression, loads: WrenchDerivatives = NO_LOADS
) -> Expression:
    return Operators(model).mass.inv @ (u - inverse_dynamics(model, None, loads))


def _plain(equation: Equation) -> bool:
    model = equation.model
    return (
        has_constant_maps(hinged(model))
        and bool(model.joints)
        and not equation.added
        and not equation.velocities
    )


def _word(u: Expression) -> str:
    return u.term.args[0].word


def _same(e: Expression, other: Expression) -> bool:
    """The same polynomial over the same inverses; without rotors J_m is zero."""
    if [x.poly() for x in e.inverses] != [x.poly() for x in other.inverses]:
        return False
    words = {
        word: c
        for word, c in e.poly().items()
        if "rotor" not in word or e.model is None or has_rotors(e.model)
    }
    return words == other.poly()
