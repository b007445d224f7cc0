"""The normal form of an expression: inverses are resolved, then rules applied until none fits.

The normal form determines the algorithm: J mass⁻¹ J* becomes B* ψ* H* D⁻¹ H ψ B, and so on. The
weights of the letters determine which form is the lightest.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import InverseLetter, inverse_letter
from psiphi.algebra.expressions.operators import Operators, has_rotors
from psiphi.algebra.expressions.spaces import compatible
from psiphi.algebra.expressions.terms import (
    Poly,
    Term,
    Word,
    add,
    adjoint_poly,
    expand,
    inverses_as_letters,
    multiply,
    product,
    spaces,
)
from psiphi.algebra.rewriting.completion import complete
from psiphi.algebra.rewriting.derivation import Chain, Derivation
from psiphi.algebra.rewriting.factored_steps import cancelled, factored_steps
from psiphi.algebra.rewriting.known_inverses import known_inverses, ratio
from psiphi.algebra.rewriting.rewrite_rules import (
    Application,
    Axiom,
    Rule,
    Rules,
    reduce,
    rewriting_steps,
)
from psiphi.algebra.rewriting.rule_sets import rules_for
from psiphi.algebra.rewriting.work_budget import TooLarge, share, spend
from psiphi.model.model import Model

_s = Operators()
IDENTITY: Poly = {(): Fraction(1)}
LINKS_ONLY = (_s.H @ _s.phi @ _s.M @ _s.phi.T @ _s.H.T).poly()
MAX_WORDS = 256  # larger products are reduced while they are multiplied out
OPAQUE_PAIRS = 100  # critical pairs for an inverse that no rule resolves


@dataclass
class Normalizer:
    """The rules for one or more expressions of a robot.

    inverted    the terms whose inverses are the letters inv:0, inv:1, ...
    proving     also complete the rules with X⁻¹ X = I for inverses that no rule resolves
    resolved    inv:n -> the rule with its polynomial
    known       term -> (its inverse, source)
    opaque      inv:n that no rule resolves -> the expression that is inverted
    forms       inv:n -> the normal form of the term that is inverted
    """

    rules: Rules
    inverted: list[Term]
    model: Model | None = None
    proving: bool = True
    resolved: dict[Word, Rule] = field(default_factory=dict)
    known: dict[Term, tuple[Term, str]] = field(default_factory=dict)
    opaque: dict[InverseLetter, Expression] = field(default_factory=dict)
    forms: dict[InverseLetter, Poly] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.known_inverse = known_inverses(self.rules)
        for n, term in enumerate(self.inverted):
            self.resolve(inverse_letter(n), term)

    def polynomial(self, term: Term) -> Poly:
        """The term, multiplied out; long products are reduced on the way."""
        term = cancelled(term) if self.proving else term
        return expand(term, inverses_as_letters(self.inverted), self._simplify)

    def _simplify(self, p: Poly) -> Poly:
        spend(sum(2 + 0.2 * len(word) for word in p))
        return self.reduce(p) if len(p) > MAX_WORDS else p

    def find(self, word: Word) -> tuple[int, Rule] | None:
        """(position, rule) of the rule that applies: inverses first."""
        for i, x in enumerate(word):
            if (x,) in self.resolved:
                return i, self.resolved[(x,)]
        return self.rules.find(word)

    def reduce(self, p: Poly) -> Poly:
        return reduce(p, self.find)[0]

    def resolve(self, letter: InverseLetter, term: Term) -> None:
        """Resolve an inverse: known, a product of known ones, equal to another, or opaque."""
        p = self.reduce(self.polynomial(term))
        inverse = self.known_inverse(p) or self._product_inverse(term)
        if inverse is not None:
            self.known[term] = inverse
            self._add_resolved(letter, self.polynomial(inverse[0]), inverse[1])
        elif not self._match_known(letter, p):
            self._add_opaque(letter, term, p)

    def _product_inverse(self, term: Term) -> tuple[Term, str] | None:
        """(t u)⁻¹ = u⁻¹ t⁻¹, if t and u are square and their inverses are known."""
        if term.op != "product":
            return None
        factors = square_factors(term)
        if len(factors) < 2 or not all(compatible(*spaces(x)) for x in factors):
            return None
        known = [self.known_inverse(self.reduce(self.polynomial(x))) for x in factors]
        inverted = [x[0] for x in reversed(known) if x is not None]
        return (product(*inverted), "(A B)⁻¹ = B⁻¹ A⁻¹") if len(inverted) == len(known) else None

    def _match_known(self, letter: InverseLetter, p: Poly) -> bool:
        """True if p is a multiple of an earlier inverted term, or of its adjoint."""
        for other, q in self.forms.items():
            for form, name in ((q, other), (adjoint_poly(q), other.T)):
                if c := ratio(p, form):
                    self._add_resolved(letter, {(name,): 1 / c}, "the same inverse")
                    return True
        return False

    def _add_opaque(self, letter: InverseLetter, term: Term, p: Poly) -> None:
        """Keep inv:n as a letter with X⁻¹ X = I = X X⁻¹; it is self-adjoint if X is."""
        self.forms[letter], self.opaque[letter] = p, Expression(term, self.model)
        if self.model is not None and has_rotors(self.model) and p == LINKS_ONLY:
            self.notes.append(
                f"{self.model.name} has rotor inertia: "
                "its mass operator is H φ M φ* H* + J_m (operators.mass)"
            )
        if adjoint_poly(p) == p:
            star = (letter.T,)
            self.resolved[star] = Rule(
                star, {(letter,): Fraction(1)}, name="X⁻¹ is self-adjoint, as X is"
            )
        if not self.proving:
            return
        inverse: Poly = {(letter,): Fraction(1)}
        sides = ((multiply(inverse, p), "X⁻¹ X = I"), (multiply(p, inverse), "X X⁻¹ = I"))
        facts = [Axiom(text, add(q, IDENTITY, -1), text) for q, text in sides if q]
        with suppress(TooLarge), share(0.3):
            self.rules = complete(facts, self.rules, OPAQUE_PAIRS)

    def _add_resolved(self, letter: InverseLetter, p: Poly, source: str) -> None:
        self.resolved[(letter,)] = Rule((letter,), p, name=source)
        self.resolved[(letter.T,)] = Rule((letter.T,), adjoint_poly(p), name=source)

    def chain(self, expression: Expression) -> Chain:
        """Steps on the factored expression, then rules on the words of its polynomial."""
        factored = tuple(factored_steps(expression, self.known.get))
        start = self.polynomial(factored[-1].after.term if factored else expression.term)
        return Chain(expression, start, tuple(rewriting_steps(start, self.find)), factored)

    def derivation(self, left: Expression, right: Expression | None = None) -> Derivation:
        """The derivation of the normal form of an expression, or of the equality of two."""
        if right is None:
            chain = self.chain(left)
            return Derivation(
                chain,
                None,
                self._unresolved(chain.result),
                None,
                tuple(self.notes),
                *self._remainder(left),
            )
        # the difference decides; it is reduced first, since equal words cancel before rules apply
        remainder, uses = self._remainder(left, right)
        notes = tuple(self.notes)
        try:
            chains = [self.chain(side) for side in (left, right)]
        except TooLarge:
            chains, notes = (
                [Chain(side, None, ()) for side in (left, right)],
                (*notes, "its steps exceed the budget and are not shown"),
            )
        inverses = self._unresolved(remainder, *(chain.result for chain in chains))
        return Derivation(chains[0], chains[1], inverses, None, notes, remainder, uses)

    def _remainder(
        self, left: Expression, right: Expression | None = None
    ) -> tuple[Poly, tuple[Application, ...]]:
        """The normal form of left - right, and the applications of rules."""
        difference = self.polynomial(left.term)
        if right is not None:
            difference = add(difference, self.polynomial(right.term), -1)
        remainder, uses = reduce(difference, self.find)
        return remainder, tuple(uses)

    def _unresolved(self, *polys: Poly) -> dict[InverseLetter, Expression]:
        """The letters inv:n in polynomials, with the expressions that are inverted."""
        left_over = {x.bare for poly in polys for word in poly for x in word}
        return {letter: inner for letter, inner in self.opaque.items() if letter in left_over}


def square_factors(term: Term) -> list[Term]:
    """A product, cut where the space between two factors is that of the whole."""
    outer, parts = spaces(term)[0], []
    for x in term.args:
        if not parts or spaces(x)[0] == outer:
            parts.append([])
        parts[-1].append(x)
    return [product(*part) for part in parts]


def normalizer(
    *expressions: Expression, rules: Rules | None = None, proving: bool = True
) -> Normalizer:
    """The rules for several expressions; equal inverses are one letter."""
    model = next((x.model for x in expressions if x.model is not None), None)
    letters = frozenset().union(*(x.letters for x in expressions))
    under = list(dict.fromkeys(inner.term for x in expressions for inner in x.inverses))
    return Normalizer(
        rules_for(model, letters, proving) if rules is None else rules, under, model, proving
    )


def normal_form(expression: Expression, rules: Rules | None = None) -> tuple[Poly, Derivation]:
    """The normal form, and its derivation; `derivation.inverses` has the letters "inv:n".

    >>> from psiphi.algebra.expressions.notation import show_poly
    >>> s = Operators()
    >>> show_poly(normal_form(s.J("tool") @ s.mass.inv @ s.J("tool").T)[0])
    'B(tool)* ψ* H* D⁻¹ H ψ B(tool)'
    """
    derivation = normalizer(expression, rules=rules).derivation(expression)
    return derivation.left.result, derivation
