"""Terms: trees of letters, sums, products, multiples, adjoints and inverses. Plain data.

    Term("letter", (phi*,))      Term("product", (t, ...))    Term("sum", (t, ...))
    Term("scale", (c, t))        Term("adjoint", (sum,))      Term("inverse", (t,))

The functions below make simplified terms: nested sums and products are flattened, scalars come
first, adjoints of letters and products are expanded. The adjoint of a sum is not, because papers
write (I + H φ K)*.

`expand` multiplies a term out into a non-commutative polynomial {word: coefficient}. A word is a
tuple of letters; the empty word is the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from math import prod
from operator import add as plus
from operator import matmul
from typing import Any, NamedTuple

from psiphi.algebra.expressions.block_structure import Structure
from psiphi.algebra.expressions.letters import FormLetter, Letter, inverse_letter, letter
from psiphi.algebra.expressions.spaces import Space, meet

Word = tuple[Letter, ...]
Poly = dict[Word, Fraction]
ZERO = Fraction(0)


class Term(NamedTuple):
    """A node: an operation and its operands."""

    op: str
    args: tuple[Any, ...]


def letter_term(name: str) -> Term:
    """The term of a letter, or of a letter's name."""
    return Term("letter", (letter(name),))


IDENTITY = letter_term("I")


def scaled(c: Fraction, term: Term) -> Term:
    """c t."""
    if term.op == "scale":
        c, term = c * term.args[0], term.args[1]
    return term if c == 1 else Term("scale", (c, term))


def product(*terms: Term) -> Term:
    """t u ...: flattened, scalars first, without identities."""
    c, factors = Fraction(1), []
    for term in terms:
        if term.op == "scale":
            c, term = c * term.args[0], term.args[1]
        factors += term.args if term.op == "product" else [] if term == IDENTITY else [term]
    if not factors:
        return scaled(c, IDENTITY)
    return scaled(c, factors[0] if len(factors) == 1 else Term("product", tuple(factors)))


def total(*terms: Term) -> Term:
    """t + u + ...: flattened."""
    parts = [part for term in terms for part in (term.args if term.op == "sum" else (term,))]
    return parts[0] if len(parts) == 1 else Term("sum", tuple(parts))


def adjoint(term: Term) -> Term:
    """t*; a self-adjoint sum is returned unchanged."""
    if term.op == "letter":
        return letter_term(term.args[0].T)
    if term.op == "product":
        return Term("product", tuple(adjoint(x) for x in reversed(term.args)))
    if term.op == "scale":
        return Term("scale", (term.args[0], adjoint(term.args[1])))
    if term.op == "inverse":
        return inverse(adjoint(term.args[0]))
    if term.op == "adjoint":
        return term.args[0]
    starred = [adjoint(x) for x in term.args]
    self_adjoint = sorted(map(repr, starred)) == sorted(map(repr, term.args))
    return term if self_adjoint else Term("adjoint", (term,))


def inverse(term: Term) -> Term:
    """t⁻¹."""
    if term.op == "letter":
        name = term.args[0]
        if name.row.inverse:
            known = letter(name.row.inverse)
            return letter_term(known.T if name.starred else known)
    if term.op == "inverse":
        return term.args[0]
    if c := identity_multiple(term):
        return scaled(1 / c, IDENTITY)
    if term.op == "scale":
        return scaled(1 / term.args[0], inverse(term.args[1]))
    return Term("inverse", (term,))


def identity_multiple(term: Term) -> Fraction | None:
    """c of a term c I without a space of its own; None for other terms."""
    if term == IDENTITY:
        return Fraction(1)
    inner = [
        x if isinstance(x, Fraction) else identity_multiple(x)
        for x in term.args
        if not isinstance(x, str)
    ]
    numbers = [c for c in inner if c is not None]
    if not inner or len(numbers) != len(inner):
        return None
    if term.op == "inverse":
        return 1 / numbers[0]
    return sum(numbers, Fraction(0)) if term.op == "sum" else prod(numbers, start=Fraction(1))


@lru_cache(maxsize=4096)
def spaces(term: Term) -> tuple[Space, Space]:
    """(rows, cols) of a legal term."""
    if term.op == "letter":
        return term.args[0].rows, term.args[0].cols
    inner = [spaces(x) for x in term.args if isinstance(x, Term)]
    if term.op == "product":
        return inner[0][0], inner[-1][1]
    if term.op == "sum":
        rows, cols = zip(*inner, strict=True)
        return reduce(meet, rows), reduce(meet, cols)
    rows, cols = inner[0]
    return (cols, rows) if term.op in ("adjoint", "inverse") else (rows, cols)


@lru_cache(maxsize=4096)
def structure(term: Term) -> Structure:
    """Where the blocks of a term may be nonzero."""
    if term.op == "letter":
        return term.args[0].row.structure
    inner = [structure(x) for x in term.args if isinstance(x, Term)]
    if term.op in ("product", "sum"):
        return reduce(matmul if term.op == "product" else plus, inner)
    return {"adjoint": inner[0].adjoint, "inverse": inner[0].inverse, "scale": inner[0]}[term.op]


def letters(term: Term) -> Iterator[Letter]:
    """The letters of the term, in order; after a form letter, those of its vectors."""
    if term.op == "letter":
        yield term.args[0]
        if isinstance(term.args[0], FormLetter):
            for _, inner in term.args[0].filled:
                yield from letters(inner)
    for x in term.args:
        if isinstance(x, Term):
            yield from letters(x)


def inverses(term: Term) -> Iterator[Term]:
    """The terms whose inverses occur, in order, inner before outer."""
    for x in term.args:
        if isinstance(x, Term):
            yield from inverses(x)
    if term.op == "inverse":
        yield term.args[0]


# -- polynomials -----------------------------------------------------------------------------------


def expand(
    term: Term, invert: Callable[[Term], Poly], simplify: Callable[[Poly], Poly] = lambda p: p
) -> Poly:
    """The polynomial of a term.

    `invert(t)` returns the polynomial of t⁻¹; `simplify` may shorten intermediate products.
    """
    if term.op == "letter":
        name = term.args[0]
        word: Word = () if name == "I" else (name,)
        return {word: Fraction(1)}
    if term.op == "inverse":
        return invert(term.args[0])
    if term.op == "scale":
        return scale_poly(expand(term.args[1], invert, simplify), term.args[0])
    if term.op == "adjoint":
        return adjoint_poly(expand(term.args[0], invert, simplify))
    parts = [expand(x, invert, simplify) for x in term.args]
    if term.op == "product":
        p = parts[0]
        for part in parts[1:]:
            p = simplify(multiply(p, part))
        return p
    p = {}
    for part in parts:
        accumulate(p, part)
    return p


def inverses_as_letters(inverted: list[Term]) -> Callable[[Term], Poly]:
    """The `invert` of `expand` that writes the inverse of inverted[n] as the letter "inv:n"."""
    return lambda term: {(inverse_letter(inverted.index(term)),): Fraction(1)}


def add(p: Mapping[Word, Fraction], q: Mapping[Word, Fraction], factor: Fraction | int = 1) -> Poly:
    """p + factor q."""
    total = dict(p)
    accumulate(total, q, factor)
    return total


def accumulate(total: Poly, q: Mapping[Word, Fraction], factor: Fraction | int = 1) -> None:
    """total += factor q, in place; words that cancel are removed."""
    for word, c in q.items():
        value = total.get(word, ZERO) + factor * c
        if value:
            total[word] = value
        else:
            total.pop(word, None)


def scale_poly(p: Mapping[Word, Fraction], factor: Fraction | int) -> Poly:
    """factor p."""
    return {word: Fraction(c * factor) for word, c in p.items()} if factor else {}


def adjoint_word(word: Iterable[Letter]) -> Word:
    """The word of the adjoint: (x y)* = y* x*."""
    return tuple(letter(x).T for x in reversed(tuple(word)))


def multiply(p: Mapping[Word, Fraction], q: Mapping[Word, Fraction]) -> Poly:
    """p q.

    >>> multiply({("H",): Fraction(2)}, {("phi",): Fraction(1), (): Fraction(1)})
    {('H', 'phi'): Fraction(2, 1), ('H',): Fraction(2, 1)}
    """
    total: Poly = {}
    for a, c in p.items():
        accumulate(total, {a + b: d for b, d in q.items()}, c)
    return total


def two_sided_product(left: Word, p: Mapping[Word, Fraction], right: Word) -> Poly:
    """left p right, for two words."""
    return {left + word + right: c for word, c in p.items()}


def adjoint_poly(p: Mapping[Word, Fraction]) -> Poly:
    """p*: every word reversed, every letter starred."""
    return {adjoint_word(word): c for word, c in p.items()}
