"""Time derivatives of operators: a row per letter, and the product rule (`product_rule.py`).

The rows are Table 1 of S1, corrected, for joints of any kind, with V_d = H* v, Ω_δ = V_d ×*.

A local derivative is that of the components in body axes. The inertial derivative DX/Dt, also in
body axes, adds ω̃ X if the rows are links, and -X ω̃ if the columns are: [ω̃, X] for an operator
from links to links. For B in the axes of its frames it adds Ḃ, which is dB/dt of B in world axes.

The derivative seen from the next frame inboard, S1 (7), (18)-(20), adds Ω_δ X if X gives link
forces and -Ω_δ* X if it gives motions; with the opposite sign on the right: Ṗ + Ω_δ P + P Ω_δ*.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi._util.validate import one_of
from psiphi.algebra.derivatives.product_rule import differentiate
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import (
    FORCE,
    SIDES,
    FrameLetter,
    Letter,
    SymbolLetter,
    VectorLetter,
    rate_letter,
    symbol_letter,
    vector_letter,
)
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.spaces import LINK
from psiphi.algebra.expressions.terms import Term, adjoint, letter_term, product, scaled, total

_s = Operators()
H, H_dot, P, P_dot, D, D_half, G = _s.H, _s.H_dot, _s.P, _s.P_dot, _s.D, _s.D_half, _s.G
phi, psi, E_phi, E_psi, Delta_phi = _s.phi, _s.psi, _s.E_phi, _s.E_psi, _s.Delta_phi
tau_bar, S, Omega_d, I = _s.tau_bar, _s.S, _s.Omega_d, _s.I
U_dot = P_dot @ H.T + P @ H_dot.T  # d(P H*)/dt
D_DOT = H @ U_dot + H_dot @ P @ H.T
G_DOT = tau_bar @ U_dot @ D.inv - G @ H_dot @ G
TAU_BAR_DOT = -(G_DOT @ H) - G @ H_dot
E_PSI_DOT = E_phi @ (Omega_d @ tau_bar + TAU_BAR_DOT)


@dataclass(frozen=True)
class Rate:
    """The local derivative of a letter (None: constant in body axes), and its source."""

    value: Expression | None
    source: str


RATES: dict[str, Rate] = {
    "I": Rate(None, ""),
    "E_phi": Rate(E_phi @ Omega_d, "S1 Table 1"),
    "Delta_phi": Rate(Delta_phi @ Omega_d, "S1 Table 1"),
    "phi": Rate(phi @ E_phi @ Omega_d @ phi, "S1 Table 1"),
    "E_0": Rate(_s.E_0 @ Omega_d, "as ℰ_φ"),
    "S": Rate(None, "only ones and zeros"),
    "H": Rate(H_dot, "S1 Table 1; nonzero for universal joints only"),
    "M": Rate(None, "S1 Table 1"),
    "rotor": Rate(None, "a number of the model"),
    "P": Rate(P_dot, "S1 (17), any joint: docs/mathematics.md section 10"),
    "D": Rate(D_DOT, "S1 Table 1, any joint: docs/mathematics.md section 10"),
    "D_inv": Rate(-(D.inv @ D_DOT @ D.inv), "D D⁻¹ = I"),
    "D_half": Rate(D_half @ _s.D_rate, "D^½ (D^½)* = D"),
    "D_half_inv": Rate(-(_s.D_rate @ D_half.inv), "D^½ D^-½ = I"),
    "G": Rate(G_DOT, "S1 Table 1, any joint: docs/mathematics.md section 10"),
    "tau_bar": Rate(TAU_BAR_DOT, "S1 Table 1"),
    "E_psi": Rate(E_PSI_DOT, "S1 Table 1"),
    "Delta_psi": Rate(Delta_phi @ (Omega_d @ tau_bar + TAU_BAR_DOT), "S1 Table 1"),
    "psi": Rate(psi @ E_PSI_DOT @ psi, "ψ⁻¹ = I - ℰ_ψ"),
    "K": Rate(E_phi @ (Omega_d @ G + G_DOT), "K = ℰ_φ G"),
    "L": Rate(Delta_phi @ (Omega_d @ G + G_DOT), "L = Δ_φ G"),
    "P_plus": Rate(TAU_BAR_DOT @ P + tau_bar @ P_dot, "P⁺ = τ̄ P"),
    "Phi": Rate(phi @ E_phi @ Omega_d @ phi @ S, "Φ = φ S"),
    "Psi": Rate(psi @ E_PSI_DOT @ psi @ S, "Ψ = ψ S"),
    "U": Rate(-(_s.g.T @ _s.M @ phi.T @ H.T @ _s.vector("v")), "the power of the weights"),
    "Om": Rate(_s.Om_dot, "Ω = ψ* Ω ψ + H* D⁻¹ H at each body"),
}
FRAMES = ("local", "inertial", "next")
FRAME_TEXT = {"inertial": "inertial frame", "next": "next frame"}


def time_derivative(
    expression: Expression, frame: str = "local", held: str | Collection[str] = ()
) -> Expression:
    """d/dt of an expression along the motion of the robot: an expression with the same spaces.

    frame="inertial" gives DX/Dt, in body axes and in frame axes; frame="next" the derivative seen
    from the frame of the parent, at each joint, in body axes. A vector x becomes x_dot, a symbol
    X becomes X_dot; those named in `held` are constant. Operators that depend on velocity (spin,
    gyro, Ω_δ, the bias vectors) raise an error: their derivatives need accelerations.

    >>> str(time_derivative(_s.phi)), str(time_derivative(_s.M, "inertial"))
    ('φ ℰ_φ Ω_δ φ', 'ω̃ M - M ω̃')
    """
    if not isinstance(expression, Expression):
        raise StateError(
            f"time_derivative of a {type(expression).__name__}", "pass an operator expression"
        )
    one_of("frame", frame, FRAMES, "leave it out for body axes")
    names = _constant_names(held, expression)
    parts = [differentiate(expression.term, lambda x: _letter_rate(x, names, frame == "inertial"))]
    if frame != "local" and LINK in (expression.rows, expression.cols):
        if mixed := sorted({x.bare for x in expression.letters if x.row.mixed_axes}):
            cause = (
                f"{mixed[0]} maps between the axes of a body and of its parent: "
                f"it has no derivative seen from the {FRAME_TEXT[frame]}"
            )
            raise StateError(cause, "write E_phi, E_psi or K, or take the local derivative")
        sides = ends(expression.term)
        if expression.rows == LINK:
            turn = _turn(expression, sides.value(sides.gives), frame)
            parts.append(product(turn, expression.term))
        if expression.cols == LINK:
            turn = _turn(expression, sides.value(sides.takes), frame)
            parts.append(scaled(Fraction(-1), product(expression.term, turn)))
    found = [part for part in parts if part is not None]
    return Expression(
        total(*found) if found else scaled(Fraction(0), expression.term), expression.model
    )


def _turn(expression: Expression, side: object, frame: str) -> Term:
    """What a change of frame adds to the derivative of link forces or motions: ω̃, or Ω_δ and its
    dual."""
    if frame == "inertial":
        return letter_term("omega")
    if side not in SIDES:
        raise StateError(
            f"{expression} may give or take link forces or motions: their derivatives seen from "
            "the next frame differ",
            'declare its vectors: pp.vector("f", "force")',
        )
    return Omega_d.term if side == FORCE else scaled(Fraction(-1), adjoint(Omega_d.term))


def _constant_names(held: str | Collection[str], expression: Expression) -> frozenset[str]:
    """`held` as a set of names of vectors and symbols of the expression."""
    known = {
        x.word
        for x in expression.letters
        if isinstance(x, SymbolLetter) or (isinstance(x, VectorLetter) and x.is_input)
    }
    names = (held,) if isinstance(held, str) else held
    try:
        unknown = [name for name in names if name not in known]
    except TypeError as error:
        raise StateError(
            f"held is {held!r}, expected names of vectors", "held=('x',) keeps x constant"
        ) from error
    if unknown:
        raise StateError(
            f"held names {unknown[0]!r}, but {expression} has no such vector",
            nearest(unknown[0], sorted(known)),
        )
    return frozenset(names)


@lru_cache(maxsize=4096)
def _letter_rate(x: Letter, held: frozenset[str], inertial: bool) -> Term | None:
    if x in RATES:
        value = RATES[x].value
        return None if value is None else value.term
    if isinstance(x, FrameLetter) and not x.rate:
        return letter_term(rate_letter(x)) if inertial or x.axes == "world" else None
    if isinstance(x, VectorLetter) and x.is_input:
        return None if x.word in held else letter_term(vector_letter(f"{x.word}_dot", x.space))
    if isinstance(x, SymbolLetter):
        return None if x.word in held else letter_term(symbol_letter(f"{x.word}_dot", x.space))
    symbol = x.symbol
    if x == "E_c":
        raise StateError(
            f"{symbol} has no time derivative here: the centre of mass moves",
            "write E_0, which refers to the world's origin",
        )
    raise StateError(
        f"the time derivative of {symbol} needs accelerations",
        "differentiate before you multiply by operators that depend on velocity",
    )


def table() -> list[tuple[str, str, str, str]]:
    """Table 1 as text: (letter, local derivative, terms that the inertial one adds, source)."""
    rows = []
    for name, rate in RATES.items():
        letter = getattr(_s, name)
        turns = [f"ω̃ {letter}"] if letter.rows == LINK else []
        turns += [f"- {letter} ω̃"] if letter.cols == LINK else []
        if name != "I":
            added = "" if letter.term.args[0].row.mixed_axes else " ".join(turns)
            rows.append((str(letter), str(rate.value or 0), added, rate.source))
    return rows
