"""Derivatives of expressions by q or by one of their vectors: expressions linear in the change x.

With χ = H* x in the joints and δ = φ* H* x of the links, in body axes (`RATES` with x for v):

    dφ = φ ℰ_φ (χ×*) φ      dH = dH[x]      dM = 0      dg = g× δ
    dB = -B turn(B* δ) in world axes

In a cluster (docs/embedding.md), χ = H*(S) x is the change of its bodies relative to the parent p
of the cluster: dφ(p, j) = φ(p, j) χ_j×* for each body j.

1. Letters that depend on velocity are replaced by their definitions: V× by the cross product with
   φ* H* v, the bias vectors a and b by their equations.
2. The product rule is applied. φ, M and H are differentiated, and M⁻¹ by d(A⁻¹) = -A⁻¹ dA A⁻¹;
   P is not, because differentiation comes before rewriting.
3. x is moved to the right, with u× χ = -χ× u and χ ×* f = ⟦f⟧ χ. The derivative of a vector is
   then a matrix, that of a scalar a row.
"""

from __future__ import annotations

from fractions import Fraction

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.derivatives.product_rule import LetterRule, differentiate
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
    """Letters that depend on velocity, in terms of v; `constant`: H is constant in body axes."""
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
        # the inertial derivative at a link origin is the local one plus w x v: ω̃ V
        _s.a: a_local + outward @ turn @ _V - outward @ _s.g,
        _s.b: -spin.T @ _MV - _s.M @ turn @ _V,
    }
    return {letter.term.args[0]: value for letter, value in found.items()}


VELOCITY_DEFINITIONS = {constant: _velocity_definitions(constant) for constant in (False, True)}
LOCAL_BIASES = {A: A_LOCAL, B: B_LOCAL}
INERTIAL_BIASES = {A_LOCAL: A, B_LOCAL: B}
CHANGE_NAME = "change of the variable"  # name of x; users cannot choose it


def derivative(
    expression: Expression, by: str, along: str | Expression | None = None
) -> Expression:
    """de/dq or de/dx as an expression: the Jacobian of a vector, the gradient of a scalar as a row.

    `by` is "q" (a change of q is a tangent vector, as v is) or the name of a vector of the
    expression. With `along`, a vector or its name, the result is the directional derivative along
    it. A derivative of a matrix needs `along`, because it would have three axes.

    >>> import psiphi as pp
    >>> s = pp.robots.puma560().operators
    >>> print(derivative(s.phi.T @ s.H.T @ s.vector("v"), "q"))
    φ* (ℰ_φ* φ* H* v)× H*
    """
    if not isinstance(expression, Expression):
        raise StateError(
            f"derivative of a {type(expression).__name__}", "pass an operator expression"
        )
    change = _change_vector(expression, by)
    if along is None and (expression.cols != ONE):
        shape = "row" if expression.rows == ONE else "matrix"
        raise StateError(
            f"the derivative of the {shape} {expression} has three axes",
            "differentiate a vector, or pass along='x'",
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
    if found is None:
        found = scaled(Fraction(0), expression.term)
    elif along is None:
        found = _linear_operator([found], change)
    model = direction.model if expression.model is None else expression.model
    result = Expression(_inertial_in_forms(_collect(found)), model)
    type_checks.check_product(result.term, terms.IDENTITY, model)
    return result


def _input_vectors(expression: Expression) -> dict[str, VectorLetter]:
    """The input vectors of an expression, by name."""
    return {
        x.word: x.bare for x in expression.letters if isinstance(x, VectorLetter) and x.is_input
    }


def _change_vector(expression: Expression, by: object) -> Expression:
    """The change of the variable `by`: a vector of its space."""
    known = _input_vectors(expression)
    moves = any(x.needs_velocity for x in expression.letters)
    names = ["q", *sorted(known), *(["v"] if moves and "v" not in known else [])]
    if not isinstance(by, str) or by not in names:
        raise StateError(
            f"derivative of {expression} by {shown(by)}: it has no such vector", nearest(by, names)
        )
    space = known[by].space if by in known else "joint"
    return Expression(letter_term(vector_letter(CHANGE_NAME, space)))


def _direction(
    expression: Expression, by: str, along: str | Expression, change: Expression
) -> Expression:
    """The vector `along`, checked."""
    space = change.term.args[0].space
    found = vector(along, space) if isinstance(along, str) else along
    if not isinstance(found, Expression):
        raise StateError(
            f"along is {shown(along)}, expected a vector", "write along='x' for a vector x"
        )
    if found.cols != ONE or not compatible(found.rows, change.rows):
        raise StateError(
            f"along is {found}, expected a {space} vector, as changes of {by} are",
            "write along='x' for a vector x",
        )
    model = type_checks.common_robot(expression, "along", found)
    type_checks.check_sum(found.term, change.term, model)
    return Expression(found.term, model)


# -- rules -----------------------------------------------------------------------------------------


def _letter_rule(by: str, x: Term, model: Model | None) -> LetterRule:
    """The derivative of a letter along x."""
    definitions = VELOCITY_DEFINITIONS[_constant_maps(model)]

    def rule(letter: Letter) -> Term | None:
        if letter in definitions and by in ("q", "v"):
            return differentiate(definitions[letter].term, rule)
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
                f"{letter.symbol} has no derivative by v here",
                "replace it by its definition in terms of v",
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
        "differentiate an expression in φ, M, H, B and the inverse of the mass matrix; "
        "or use .jvp of the compiled function",
    )


def _link_change(x: Term) -> Term:
    """δ = φ* H* x."""
    return product(letter_term("phi*"), letter_term("H*"), x)


def _frame_derivative(B: FrameLetter, u: Term) -> Term:
    """dB in world axes for link motions u: -B turn(B* u)."""
    return scaled(
        Fraction(-1),
        product(letter_term(B), SEEN.operator("y", "f", {"u": product(letter_term(B.T), u)})),
    )


def _constant_maps(model: Model | None) -> bool:
    return model is not None and has_constant_maps(model)


def _rate_along(term: Term, letter: Letter, x: Term, model: Model | None) -> Term | None:
    """The rate `term` of a letter with x in place of v; None if it is zero."""
    if term.op != "letter":
        parts = [
            _rate_along(part, letter, x, model) if isinstance(part, Term) else part
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
    y = term.args[0]
    bare = y.bare
    if bare == "Omega_d":
        found = scaled(
            Fraction(-1), adjoint(CROSS.operator("y", "f", {"u": product(letter_term("H*"), x)}))
        )
    elif bare == "H_dot":
        found = None if _constant_maps(model) else RISE.operator("f", "u", {"x": x})
    elif isinstance(bare, VectorLetter) and bare.word == "v":
        found = x
    elif bare.needs_velocity:
        raise _no_derivative(letter)
    else:
        return term
    return adjoint(found) if found is not None and y.starred else found


def _form_derivative(letter: FormLetter, rule: LetterRule, x: Term | None) -> Term | None:
    """The derivative of a form letter by its vectors and, along x, by the q of H."""
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
            "third derivatives of joint maps are not supported",
            "compile the gradient and use .hessian of that function",
        )
    if letter.form is RISE and x is not None:
        parts.append(BEND.operator(letter.inp, letter.out, {**filled, "z": x}))
    return total(*parts) if parts else None


# -- bias vectors ----------------------------------------------------------------------------------


def _with_biases(term: Term, names: dict[VectorLetter, VectorLetter]) -> Term:
    """M φ* a + b with the other pair of bias vectors, inertial or local.

    The term is returned unchanged if a or b also occurs elsewhere in it.
    """
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
    """The term with other bias vectors; those inside form letters are not replaced."""
    if term.op == "letter":
        x = term.args[0]
        return letter_term(names[x]) if x in names else term
    return Term(
        term.op, tuple(_replace_vectors(x, names) if isinstance(x, Term) else x for x in term.args)
    )


def _inertial_in_forms(term: Term) -> Term:
    """The term with inertial bias vectors in its form letters: cheaper in Newton-Euler sweeps."""
    if term.op != "letter":
        return Term(
            term.op, tuple(_inertial_in_forms(x) if isinstance(x, Term) else x for x in term.args)
        )
    x = term.args[0]
    if not isinstance(x, FormLetter):
        return term
    letter = x.form.letter(
        x.inp,
        x.out,
        {
            slot: _with_biases(_inertial_in_forms(inner), INERTIAL_BIASES)
            for slot, inner in x.filled
        },
    )
    return letter_term(letter.T if x.starred else letter)


# -- x to the right --------------------------------------------------------------------------------


def _collect(term: Term) -> Term:
    """A sum with equal terms combined."""
    if term.op != "sum":
        return term
    counts: dict[Term, Fraction] = {}
    for part in term.args:
        c, inner = part.args if part.op == "scale" else (Fraction(1), part)
        counts[inner] = counts.get(inner, Fraction(0)) + c
    parts = [scaled(c, inner) for inner, c in counts.items() if c]
    return total(*parts) if parts else scaled(Fraction(0), term)


def _linear_operator(factors: list[Term], change: Expression) -> Term:
    """The operator A with A x equal to the product of the factors, a vector linear in x."""
    x = change.term.args[0]
    i = next(i for i, y in enumerate(factors) if x in {z.bare for z in terms.letters(y)})
    before, factor, after = factors[:i], factors[i], factors[i + 1 :]
    if factor.op == "product":
        return _linear_operator([*before, *factor.args, *after], change)
    if factor.op == "scale":
        inner = _linear_operator([*before, factor.args[1], *after], change)
        return total(
            *(
                scaled(factor.args[0], part)
                for part in (inner.args if inner.op == "sum" else (inner,))
            )
        )
    if factor.op in ("sum", "adjoint"):
        parts = (
            factor.args if factor.op == "sum" else [adjoint(part) for part in factor.args[0].args]
        )
        return total(*(_linear_operator([*before, part, *after], change) for part in parts))
    letter = factor.args[0]
    if letter == x:
        return product(*before, terms.IDENTITY)
    if letter == x.T:  # x* A y = y* A* x
        return product(*before, adjoint(product(*after)))
    # exchange x with the vector to its right: u× χ = -χ× u, χ ×* f = ⟦f⟧ χ
    slot, inner = next(
        (slot, inner)
        for slot, inner in letter.filled
        if x in {y.bare for y in terms.letters(inner)}
    )
    takes, gives = letter.open_slots
    filled = {**dict(letter.filled), takes: product(*after)}
    del filled[slot]
    return product(
        *before, letter.form.operator(slot, gives, filled), _linear_operator([inner], change)
    )
