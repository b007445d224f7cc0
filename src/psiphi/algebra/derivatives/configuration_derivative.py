"""Derivatives of expressions by q or by one of their vectors: expressions again, linear in the change x.

With χ = H* x in the joints and δ = φ* H* x of the links, in body axes (the rows of `RATES`, x in the place of v):

    dφ = φ ℰ_φ (χ×*) φ      dH = dH[x]      dM = 0      dg = g× δ      dB = -B turn(B* δ) in world axes

Of clusters (docs/embedding.md) χ = H*(S) x is what the bodies do against the body outside: dφ(p, j) = φ(p, j) χ_j×* for each.

What velocities make is written out before: V× as the cross product with φ* H* v, the bias vectors a and b as what they are. A
letter that is turned by χ on a known vector is a letter of that vector, u× χ = -χ× u and χ ×* f = ⟦f⟧ χ, which puts x last:
so the derivative of a vector is a matrix, that of a number a row. Differentiating comes before rewriting: φ, M and H are
differentiated, and M⁻¹ by its rule, never P.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.derivatives.product_rule import differentiate
from psiphi.algebra.derivatives.time_derivative import RATES
from psiphi.algebra.expressions import terms, type_checks
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.letters import (
    A_LOCAL,
    B_LOCAL,
    GRAVITY,
    A,
    B,
    FormLetter,
    FrameLetter,
    Letter,
    VectorLetter,
    vector_letter,
)
from psiphi.algebra.expressions.letters import letter as letter_of
from psiphi.algebra.expressions.multilinear_forms import BEND, CROSS, RISE, SEEN
from psiphi.algebra.expressions.operators import Operators, has_constant_maps
from psiphi.algebra.expressions.spaces import ONE, compatible
from psiphi.algebra.expressions.terms import Term, adjoint, letter_term, product, scaled, total
from psiphi.model.model import Model

_s, _v = Operators(), vector("v")
_V = _s.phi.T @ _s.H.T @ _v
_MV = _s.M @ _V


def _velocity_definitions(constant: bool) -> dict[Letter, Expression]:
    """What velocities make, by the velocities; `constant`: no joint map changes in body axes."""
    spin, turn, outward = _s.cross(_V), _s.form("turn", "y", "f", u=_V), _s.I - _s.E_phi.T
    rise = _s.form("rise", "f", "u", x=_v)
    a_local = spin @ _s.H.T @ _v if constant else spin @ _s.H.T @ _v + rise.T @ _v
    found = {
        _s.spin: spin,
        _s.gyro: (-spin.T @ _s.M - _s.M @ spin + _s.form("cross", "y", "u", f=_MV)) / 2,
        _s.Omega_d: -_s.cross(_s.H.T @ _v).T,
        _s.H_dot: 0 * _s.H if constant else rise,
        _s.a_local: a_local,
        _s.b_local: -spin.T @ _MV - _s.M @ _s.g,
        # inertial derivatives at link origins are body-frame ones and w x v there: ω̃ V
        _s.a: a_local + outward @ turn @ _V - outward @ _s.g,
        _s.b: -spin.T @ _MV - _s.M @ turn @ _V,
    }
    return {letter.term.args[0]: value for letter, value in found.items()}


VELOCITY_DEFINITIONS = {constant: _velocity_definitions(constant) for constant in (False, True)}
LOCAL_BIASES = {A: A_LOCAL, B: B_LOCAL}
INERTIAL_BIASES = {A_LOCAL: A, B_LOCAL: B}
CHANGE_NAME = "change of what it is differentiated by"  # a name no user can give


def derivative(
    expression: Expression, by: str, along: str | Expression | None = None
) -> Expression:
    """d e / d by, an expression: of a vector the matrix of its derivative, of a number the gradient as a row.

    `by` is "q" (changes are tangent vectors, as v is) or a vector of the expression. With `along`, a vector or its name, it is
    the change along that vector, and of operators too: the matrix of their derivative would have three axes.

    >>> import psiphi as pp
    >>> s = pp.robots.puma560().operators
    >>> print(derivative(s.phi.T @ s.H.T @ s.vector("v"), "q"))
    φ* (ℰ_φ* φ* H* v)× H*
    """
    if not isinstance(expression, Expression):
        raise StateError(
            f"derivative of a {type(expression).__name__}", "give an operator expression"
        )
    change = _change_vector(expression, by)
    if along is None and (expression.cols != ONE):
        shape = "row" if expression.rows == ONE else "matrix"
        raise StateError(
            f"the derivative of the {shape} {expression} has three axes",
            "differentiate a vector, or give along='x'",
        )
    direction = change if along is None else _direction(expression, by, along, change)
    found = differentiate(
        _with_biases(expression.term, LOCAL_BIASES),
        _letter_rule(by, direction.term, expression.model),
    )
    if found is None and along is None:
        raise StateError(
            f"{expression} does not depend on {by}: its derivative is zero", "leave it out"
        )
    found = (
        scaled(Fraction(0), expression.term)
        if found is None
        else found
        if along is not None
        else _linear_operator([found], change)
    )
    model = direction.model if expression.model is None else expression.model
    made = Expression(_inertial_in_forms(_collect(found)), model)
    type_checks.check_product(made.term, terms.IDENTITY, model)
    return made


def _input_vectors(expression: Expression) -> dict[str, VectorLetter]:
    return {
        x.word: x.bare for x in expression.letters if isinstance(x, VectorLetter) and x.is_input
    }  # type: ignore[misc]


def _change_vector(expression: Expression, by: Any) -> Expression:
    """A change of what is differentiated by."""
    known = _input_vectors(expression)
    moves = any(x.needs_velocity for x in expression.letters)
    names = ["q", *sorted(known), *(["v"] if moves and "v" not in known else [])]
    if not isinstance(by, str) or by not in names:
        raise StateError(
            f"derivative of {expression} by {shown(by)}, which it has not", nearest(by, names)
        )
    space = known[by].space if by in known else "joint"
    return Expression(letter_term(vector_letter(CHANGE_NAME, space)))


def _direction(expression: Expression, by: str, along: Any, change: Expression) -> Expression:
    space = change.term.args[0].space
    found = vector(along, space) if isinstance(along, str) else along
    if not isinstance(found, Expression):
        raise StateError(f"along is {shown(along)}, expected a vector", "along='x' names one")
    if found.cols != ONE or not compatible(found.rows, change.rows):
        raise StateError(
            f"along is {found}, which is no {space} vector, as changes of {by} are",
            "along='x' names one",
        )
    model = type_checks.common_robot(expression, "along", found)
    type_checks.check_sum(found.term, change.term, model)
    return Expression(found.term, model)


# -- the rules ----------------------------------------------------------------------------------------------------------------


def _letter_rule(by: str, x: Term, model: Model | None):
    """The derivative of a letter along x."""

    written_out = VELOCITY_DEFINITIONS[_constant_maps(model)]

    def rule(letter: Letter) -> Term | None:
        if letter in written_out and by in ("q", "v"):
            return differentiate(written_out[letter].term, rule)
        if isinstance(letter, FrameLetter) and letter.rate and by in ("q", "v"):
            return differentiate(_frame_derivative(letter.plain, _V.term), rule)
        if isinstance(letter, FormLetter):
            return _form_derivative(
                letter, rule, x if by == "q" and not _constant_maps(model) else None
            )
        if isinstance(letter, VectorLetter) and letter.is_input:
            return x if letter.word == by else None
        if by == "q":
            return _letter_by_q(letter, x, model)
        if letter.needs_velocity and by == "v":
            raise StateError(
                f"{letter.symbol} is no product of velocities here, and has no derivative by v",
                "write it out",
            )
        return None

    return rule


def _letter_by_q(letter: Letter, x: Term, model: Model | None) -> Term | None:
    if letter == GRAVITY:
        return product(CROSS.operator("y", "f", {"u": letter_term(GRAVITY)}), _link_change(x))
    if isinstance(letter, FrameLetter):
        return None if letter.axes == "frame" else _frame_derivative(letter, _link_change(x))
    if letter not in RATES:
        if letter.depends_on:
            raise _no_derivative(letter)
        return None  # a symbol is constant
    value = RATES[letter].value
    return None if value is None else _rate_along(value.term, letter, x, model)


def _no_derivative(letter: Letter) -> StateError:
    return StateError(
        f"{letter.symbol} has no derivative by q here",
        "differentiate what it comes from: φ, M, H, B and the inverse of the mass matrix; or take .jvp of the function",
    )


def _link_change(x: Term) -> Term:
    """δ = φ* H* x."""
    return product(letter_term("phi*"), letter_term("H*"), x)


def _frame_derivative(B: FrameLetter, u: Term) -> Term:
    """dB in world axes as the links move by u: -B turn(B* u)."""
    return scaled(
        Fraction(-1),
        product(letter_term(B), SEEN.operator("y", "f", {"u": product(letter_term(B.T), u)})),
    )


def _constant_maps(model: Model | None) -> bool:
    return model is not None and has_constant_maps(model)


def _rate_along(term: Term, of: Letter, x: Term, model: Model | None) -> Term | None:
    """A rate with x in the place of v; None where nothing is left of it."""
    if term.op != "letter":
        parts = [
            _rate_along(part, of, x, model) if isinstance(part, Term) else part
            for part in term.args
        ]
        if term.op == "sum":
            parts = [part for part in parts if part is not None]
            return total(*parts) if parts else None
        if any(part is None for part in parts):
            return None
        return {"product": product, "scale": scaled, "adjoint": adjoint, "inverse": terms.inverse}[
            term.op
        ](*parts)
    letter = term.args[0]
    bare = letter.T if letter.starred else letter
    if bare == "Omega_d":
        found = scaled(
            Fraction(-1), adjoint(CROSS.operator("y", "f", {"u": product(letter_term("H*"), x)}))
        )
    elif bare == "H_dot":
        found = None if _constant_maps(model) else RISE.operator("f", "u", {"x": x})
    elif isinstance(bare, VectorLetter) and bare.word == "v":
        found = x
    elif bare.needs_velocity:
        raise _no_derivative(of)
    else:
        return term
    return adjoint(found) if found is not None and letter.starred else found


def _form_derivative(letter: FormLetter, rule: Any, x: Term | None) -> Term | None:
    """A form's letter, slot by slot; the derivative of H itself is one more slot, x."""
    filled, parts = dict(letter.filled), []
    for slot, inner in letter.filled:
        change = differentiate(inner, rule)
        parts += (
            []
            if change is None
            else [letter.form.operator(letter.inp, letter.out, {**filled, slot: change})]
        )
    if letter.form is BEND and x is not None:
        raise StateError(
            "the third derivative of a joint map is not there",
            "take .hessian of the function of its gradient",
        )
    if letter.form is RISE and x is not None:
        parts.append(BEND.operator(letter.inp, letter.out, {**filled, "z": x}))
    return total(*parts) if parts else None


# -- biases -------------------------------------------------------------------------------------------------------------------


def _with_biases(term: Term, names: dict[VectorLetter, VectorLetter]) -> Term:
    """M φ* a + b by the other pair of bias vectors, inertial or local, where a and b stand nowhere else; else as it is."""
    (first, other), (second, _) = names.items()
    if not {first, second} <= set(terms.letters(term)):
        return term
    under = list(dict.fromkeys(terms.inverses(term)))
    poly = terms.expand(term, terms.inverses_as_letters(under))
    if any({first, second} & set(terms.letters(inner)) for inner in under):
        return term
    motions = {
        word[:-3]: c
        for word, c in poly.items()
        if word[-3:] == (letter_of("M"), letter_of("phi*"), first)
    }
    forces = {word[:-1]: c for word, c in poly.items() if word[-1:] == (second,)}
    uses = sum(any(x.bare in names for x in word) for word in poly)
    if motions != forces or uses != len(motions) + len(forces):
        return term
    return _replace_vectors(term, names)


def _replace_vectors(term: Term, names: dict[VectorLetter, VectorLetter]) -> Term:
    """Other bias vectors, as the term shows them; those inside letters made of vectors stay."""
    if term.op == "letter":
        x = term.args[0]
        return letter_term(names[x]) if x in names else term
    return Term(
        term.op, tuple(_replace_vectors(x, names) if isinstance(x, Term) else x for x in term.args)
    )


def _inertial_in_forms(term: Term) -> Term:
    """The vectors that letters are made of, with body forces as Newton and Euler make them: inertial, in one step."""
    if term.op != "letter":
        return Term(
            term.op, tuple(_inertial_in_forms(x) if isinstance(x, Term) else x for x in term.args)
        )
    x = term.args[0]
    if not isinstance(x, FormLetter):
        return term
    made = x.form.letter(
        x.inp,
        x.out,
        {
            slot: _with_biases(_inertial_in_forms(inner), INERTIAL_BIASES)
            for slot, inner in x.filled
        },
    )
    return letter_term(made.T if x.starred else made)


# -- x to the right -----------------------------------------------------------------------------------------------------------


def _collect(term: Term) -> Term:
    """A sum with equal terms as one."""
    if term.op != "sum":
        return term
    counts: dict[Term, Fraction] = {}
    for part in term.args:
        c, inner = part.args if part.op == "scale" else (Fraction(1), part)
        counts[inner] = counts.get(inner, Fraction(0)) + c
    kept = [scaled(c, inner) for inner, c in counts.items() if c]
    return total(*kept) if kept else scaled(Fraction(0), term)


def _linear_operator(factors: list[Term], change: Expression) -> Term:
    """A product that ends in a vector and is linear in the change, as an operator on it."""
    x = change.term.args[0]
    i = next(i for i, factor in enumerate(factors) if x in {y.bare for y in terms.letters(factor)})
    before, here, behind = factors[:i], factors[i], factors[i + 1 :]
    if here.op == "product":
        return _linear_operator([*before, *here.args, *behind], change)
    if here.op == "scale":
        inner = _linear_operator([*before, here.args[1], *behind], change)
        return total(
            *(
                scaled(here.args[0], part)
                for part in (inner.args if inner.op == "sum" else (inner,))
            )
        )
    if here.op in ("sum", "adjoint"):
        parts = here.args if here.op == "sum" else [adjoint(part) for part in here.args[0].args]
        return total(*(_linear_operator([*before, part, *behind], change) for part in parts))
    letter = here.args[0]
    if letter == x:
        return product(*before, terms.IDENTITY)
    if letter == x.T:  # x* A y = y* A* x
        return product(*before, adjoint(product(*behind)))
    # what is turned by x on a known vector is a letter of that vector, on x
    slot, inner = next(
        (slot, inner)
        for slot, inner in letter.filled
        if x in {y.bare for y in terms.letters(inner)}
    )
    takes, gives = letter.open_slots
    filled = {**dict(letter.filled), takes: product(*behind)}
    del filled[slot]
    return product(
        *before, letter.form.operator(slot, gives, filled), _linear_operator([inner], change)
    )
