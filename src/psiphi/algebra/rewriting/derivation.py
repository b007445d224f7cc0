"""Derivations: the steps of a normal form, or of a proof, with the sources in the papers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from psiphi._util.escape import html, latex
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import InverseLetter, Letter, letter
from psiphi.algebra.expressions.notation import POWER, Latex, Notation, show_poly, show_word
from psiphi.algebra.expressions.terms import Poly, Word
from psiphi.algebra.rewriting.factored_steps import FactoredStep
from psiphi.algebra.rewriting.rewrite_rules import Application, Rewriting, Rule, Statement
from psiphi.model.model import Model

WIDTH = 76  # column of the sources
MAX_TITLE = 80  # characters of the equation in the repr of a proof


@dataclass(frozen=True, eq=False)
class Chain:
    """The steps from an expression to its normal form.

    factored_steps    steps on the factored expression
    start             the polynomial, multiplied out; None if there are too many steps to show
    steps             steps on the polynomial
    """

    expression: Expression
    start: Poly | None
    steps: tuple[Rewriting, ...]
    factored_steps: tuple[FactoredStep, ...] = ()

    @property
    def result(self) -> Poly:
        return self.steps[-1].after if self.steps else self.start or {}


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A state of the robot at which two sides differ, and the entry `place` that differs most."""

    model: Model
    q: np.ndarray
    values: Mapping[str, np.ndarray]
    place: tuple[int, ...]
    labels: tuple[str, ...]
    left: float
    right: float
    gap: float = 0.0

    def __str__(self) -> str:
        where = (
            f"entry {list(self.place)} ({' / '.join(self.labels)})" if self.place else "the value"
        )
        q = np.array2string(self.q, precision=4, threshold=8, edgeitems=3)
        small = f", by {self.gap:.3g}" if f"{self.left:.6g}" == f"{self.right:.6g}" else ""
        digits = 17 if small else 6
        both = f"{self.left:.{digits}g} on the left, {self.right:.{digits}g} on the right"
        return f"on {self.model.name} at q = {q}, {where} is {both}" + (
            f": they differ{small}" if small else ""
        )


@dataclass(frozen=True, eq=False)
class Derivation:
    """The steps to a normal form (`right` None), or of a proof. True if it is proved.

    inverses      letter "inv:n" that no rule resolves -> the expression that is inverted
    remainder     the normal form of left - right
    uses          the applications of rules that give the remainder
    assumes       expressions that are assumed to be invertible
    unfinished    True if the budget was used up
    """

    left: Chain
    right: Chain | None = None
    inverses: Mapping[InverseLetter, Expression] = field(default_factory=dict)
    counterexample: Counterexample | None = None
    notes: tuple[str, ...] = ()
    remainder: Poly | None = None
    uses: tuple[Application, ...] = ()
    assumes: tuple[Expression, ...] = ()
    unfinished: bool = False

    @property
    def steps(self) -> tuple[FactoredStep | Rewriting, ...]:
        """All steps, left side first; each has rule, source, position, before, after."""
        chains = (self.left,) if self.right is None else (self.left, self.right)
        return tuple(step for chain in chains for step in (*chain.factored_steps, *chain.steps))

    @property
    def proved(self) -> bool:
        return self.right is None or (
            self.remainder == {} and self.counterexample is None and not self.unfinished
        )

    def __bool__(self) -> bool:
        return self.proved

    @property
    def certificate(self) -> dict[tuple[Word, Statement | Rule, Word], Fraction]:
        """left - right - remainder as a sum of c u (axiom) v: {(u, axiom, v): c}.

        Each `axiom.poly` is zero, so that expanding the sum checks the proof. Resolved inverses and
        X⁻¹ X = I count as axioms.
        """
        total: dict = {}
        for use in self.uses:
            _expand_proof(use, Fraction(1), (), (), total)
        return {key: c for key, c in total.items() if c}

    def __str__(self) -> str:
        return text_columns(rows(self))

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0].strip()
        what = first if self.right is None else first.rpartition(":")[0]
        state = "normal form" if self.right is None else "proved" if self else "not proved"
        text = what if len(what) <= MAX_TITLE else f"{what[: MAX_TITLE - 3]}..."
        return f"<{state}: {text}>"

    def latex(self) -> str:
        """The derivation in LaTeX: an `aligned` environment (amsmath), one line per step."""
        return latex_aligned(_latex_lines(self))

    def _repr_html_(self) -> str:
        return html_table(rows(self))


def latex_aligned(lines: Iterable[str]) -> str:
    """Lines of LaTeX in an `aligned` environment."""
    return "\n".join([r"\begin{aligned}", " \\\\\n".join(lines), r"\end{aligned}"])


def html_table(rows: Iterable[tuple[str, str]]) -> str:
    """Rows (formula, source) as an HTML table."""
    cells = (f"<tr><td>{html(text)}</td><td>{html(source)}</td></tr>" for text, source in rows)
    style = "text-align: left; white-space: pre-wrap; font-family: monospace"
    return f'<table style="{style}">{"".join(cells)}</table>'


def text_columns(rows: Iterable[tuple[str, str]]) -> str:
    """Rows (formula, source) as text."""
    return "\n".join(
        f"{text:<{WIDTH}}  {source}".rstrip() if text else source for text, source in rows
    )


def _expand_proof(use: Application, c: Fraction, left: Word, right: Word, total: dict) -> None:
    """Add an application to `total`, with proofs of rules expanded down to axioms."""
    c, left, right = c * use.c, left + use.left, use.right + right
    if isinstance(use.rule, Statement) or not use.rule.proof:
        key = left, use.rule, right
        total[key] = total.get(key, 0) + c
        return
    for inner in use.rule.proof:
        _expand_proof(inner, c, left, right, total)


def rows(d: Derivation) -> Iterator[tuple[str, str]]:
    """The rows (formula, source) of a derivation."""
    if d.right is None:
        yield from _chain_rows(d.left, d)
    else:
        yield f"{d.left.expression} = {d.right.expression}: {_verdict(d)}", ""
        for chain in (d.left, d.right):
            yield from _chain_rows(chain, d)
    for x, inner in d.inverses.items() if d.right is None else ():
        yield f"no rule resolves {x} = ({inner})⁻¹: it is evaluated densely", ""
    yield from ((f"note: {note}", "") for note in d.notes)
    if d.counterexample is not None:
        yield f"counter-example: {d.counterexample}", ""
    elif not d.proved:
        yield (
            "no counter-example found at random states: "
            "it may hold for this robot, or need axioms that psiphi does not have",
            "",
        )


def _verdict(d: Derivation) -> str:
    under = (
        f", assuming {', '.join(map(str, d.assumes))} invertible" if d.assumes and d.proved else ""
    )
    return ("proved" if d.proved else "not proved") + under


def _chain_rows(chain: Chain, d: Derivation) -> Iterator[tuple[str, str]]:
    notation = _Inverses(d.inverses)
    yield f"  {chain.expression}", ""
    if chain.start is None:
        return
    for move in chain.factored_steps:
        yield f"= {move.after}", move.source
    last = str(chain.factored_steps[-1].after if chain.factored_steps else chain.expression)
    start = show_poly(chain.start, notation)
    if start != last:
        yield f"= {start}", "multiplied out" if len(chain.start) > 1 else ""
    for step in chain.steps:
        yield (
            f"    {show_word(step.word, notation)}  →  {show_poly(step.replacement, notation)}",
            step.source,
        )
    if chain.steps:
        yield f"= {show_poly(chain.result, notation)}", ""


def _latex_lines(d: Derivation) -> Iterator[str]:
    """The lines of LaTeX of both sides."""
    for chain in (d.left,) if d.right is None else (d.left, d.right):
        notation, last = _LatexInverses(d.inverses), chain.expression.latex()
        yield f"& {last}"
        if chain.start is None:
            continue
        lines = [(move.after.latex(), move.source) for move in chain.factored_steps]
        lines += [
            (show_poly(chain.start, notation), "multiplied out" if len(chain.start) > 1 else "")
        ]
        lines += [(show_poly(step.after, notation), step.source) for step in chain.steps]
        for text, source in lines:
            if text != last:
                yield f"&= {text}" + (rf" && \text{{{_latex_source(source)}}}" if source else "")
            last = text
    if d.right is not None:
        under = ",".join(rf"\ {inner.latex()}" for inner in d.assumes) if d.proved else ""
        assumption = rf"\text{{, assuming}}{under}\ \text{{invertible}}" if under else ""
        yield rf"& \text{{{'proved' if d.proved else 'not proved'}}}{assumption}"


SIGNS = {
    "⁻¹": "^{-1}",
    "φ": r"\phi",
    "ψ": r"\psi",
    "ℰ": r"\mathcal{E}",
    "½": r"\frac12",
    "ℳ": r"\mathcal{M}",
}


def _latex_source(source: str) -> str:
    """A source as LaTeX text, with letters of the algebra as formulas."""
    text = latex(source)
    for sign, formula in SIGNS.items():
        text = text.replace(sign, f"${formula}$")
    return text


class _Inverses(Notation):
    """Unicode, with letters inv:n written as inverses of expressions."""

    def __init__(self, inverses: Mapping[InverseLetter, Expression]):
        self.inverses = inverses

    def letter(self, name: Letter) -> tuple[str, int]:
        x = letter(name).bare
        inner = self.inverses.get(x) if isinstance(x, InverseLetter) else None
        return (
            super().letter(name)
            if inner is None
            else (self.inverse_text(inner, letter(name).starred), POWER)
        )

    def inverse_text(self, inner: Expression, starred: bool) -> str:
        return f"({inner})⁻¹" + ("*" if starred else "")


class _LatexInverses(_Inverses, Latex):
    """LaTeX, with letters inv:n written as inverses of expressions."""

    def inverse_text(self, inner: Expression, starred: bool) -> str:
        return rf"\left({inner.latex()}\right)^{{{'-*' if starred else '-1'}}}"
