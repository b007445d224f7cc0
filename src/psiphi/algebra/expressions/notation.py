"""Three ways to print a term: Unicode algebra, LaTeX, and Python code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from psiphi.algebra.expressions.letters import (
    FormLetter,
    FrameLetter,
    Letter,
    SymbolLetter,
    VectorLetter,
    display_name,
    letter,
)
from psiphi.algebra.expressions.terms import Term, Word

SUM, PRODUCT, POWER = 0, 1, 2  # precedence of a piece of text


class Notation:
    """Unicode. One method for each operation returns the text of a term and its precedence."""

    space, minus, plus, star, invert = " ", " - ", " + ", "{}*", "{}⁻¹"
    brackets, fraction = "({})", "{}/{}"

    def text(self, term: Term, precedence: int = SUM) -> str:
        """The text of a term, in brackets if its precedence is lower than this."""
        out, own = getattr(self, term.op)(*term.args)
        return self.brackets.format(out) if own < precedence else out

    def letter(self, name: Letter) -> tuple[str, int]:
        return letter(name).symbol, POWER

    def product(self, *terms: Term) -> tuple[str, int]:
        return self.space.join(
            self.text(x, POWER if x.op != "product" else PRODUCT) for x in terms
        ), PRODUCT

    def sum(self, *terms: Term) -> tuple[str, int]:
        out = ""
        for i, term in enumerate(terms):
            negative = term.op == "scale" and term.args[0] < 0
            if negative:
                term = (
                    Term("scale", (-term.args[0], term.args[1]))
                    if term.args[0] != -1
                    else term.args[1]
                )
            sign = (self.minus if negative else self.plus) if i else ("-" if negative else "")
            out += sign + self.text(term, PRODUCT)
        return out, SUM

    def scale(self, c: Fraction, term: Term) -> tuple[str, int]:
        if c < 0:
            inner = self.text(term, PRODUCT) if c == -1 else self.scale(-c, term)[0]
            return "-" + inner, SUM
        return self.number(c) + self.space + self.text(term, PRODUCT), PRODUCT

    def number(self, c: Fraction) -> str:
        if c.denominator == 1:
            return str(c.numerator)
        return (
            self.fraction.format(c.numerator, c.denominator)
            if c.denominator < 1000
            else f"{float(c):.6g}"
        )

    def adjoint(self, term: Term) -> tuple[str, int]:
        return self.star.format(self.brackets.format(self.text(term))), POWER

    def inverse(self, term: Term) -> tuple[str, int]:
        return self.invert.format(self.text(term, POWER)), POWER


class Latex(Notation):
    """LaTeX."""

    space, star, invert, brackets, fraction = (
        r"\, ",
        "{}^*",
        "{}^{{-1}}",
        r"\left({}\right)",
        r"\tfrac{{{}}}{{{}}}",
    )

    def letter(self, name: Letter) -> tuple[str, int]:
        return letter(name).latex, POWER

    def inverse(self, term: Term) -> tuple[str, int]:
        plain = term.op == "letter" and "^" not in term.args[0].latex
        return self.invert.format(
            self.text(term) if plain else self.brackets.format(self.text(term))
        ), POWER


class Python(Notation):
    """Python code of an equal expression; `scope` is the name of the robot's operators."""

    space, star, invert = " @ ", "{}.T", "{}.inv"

    def __init__(self, scope: str = "s"):
        self.scope = scope + "." if scope else ""

    def letter(self, name: Letter) -> tuple[str, int]:
        return self.scope + self._code(letter(name).bare) + (
            ".T" if letter(name).starred else ""
        ), POWER

    def _code(self, x: Letter) -> str:
        if isinstance(x, FrameLetter):
            axes = f", axes={x.axes!r}" if x.axes != "world" else ""
            rate = ".dot()" if x.axes == "world" else ".dot('inertial')"
            return f"B({', '.join(map(repr, x.frames))}{axes})" + rate * x.rate
        if isinstance(x, VectorLetter):
            return f"vector({x.word!r}, {x.space!r})" if x.is_input else x.word
        if isinstance(x, FormLetter):
            vectors = "".join(f", {slot}={self.text(inner)}" for slot, inner in x.filled)
            return f"form({x.form.name!r}, {x.inp!r}, {x.out!r}{vectors})"
        if isinstance(x, SymbolLetter):
            return f"symbol({x.word!r}, {x.space!r})"
        return x.row.code or x

    def scale(self, c: Fraction, term: Term) -> tuple[str, int]:
        if c < 0:
            return super().scale(c, term)
        if c.denominator != 1 and Fraction(float(c)) == c:
            return f"{float(c)!r} * {self.text(term, POWER)}", PRODUCT
        out = (
            f"{c.numerator} * {self.text(term, POWER)}"
            if c.numerator != 1
            else self.text(term, POWER)
        )
        return out + (f" / {c.denominator}" if c.denominator != 1 else ""), PRODUCT


UNICODE, LATEX = Notation(), Latex()


def result_names(polys: Mapping[str, Mapping[Word, Fraction]]) -> dict[str, str]:
    """Printed names of results: their own, unless a letter of the polynomials has the same one."""
    used = {x.symbol for p in polys.values() for word in p for x in map(letter, word)}
    is_letter = {  # D = D is not a conflict
        name: {x.symbol for word in p for x in word} == {name} for name, p in polys.items()
    }
    return {
        name: display_name(name) if name == "a" or (name in used and not is_letter[name]) else name
        for name in polys
    }


def show_word(word: Word, notation: Notation = UNICODE) -> str:
    """A word of a polynomial: H φ M φ* H*; the empty word is I."""
    return notation.space.join(notation.letter(x)[0] for x in word) or "I"


def show_poly(
    p: Mapping[Word, Fraction],
    notation: Notation = UNICODE,
    word_text: Callable[..., str] = show_word,
) -> str:
    """A polynomial, in the order of its terms; an empty one is 0. `word_text` prints a word."""
    out = ""
    for word, c in p.items():
        sign = ("-" if c < 0 else "") if not out else notation.minus if c < 0 else notation.plus
        number = "" if abs(c) == 1 else notation.number(abs(c)) + " "
        out += sign + number + word_text(word, notation)
    return out or "0"
