"""Horner factoring: a polynomial of words as a graph of vector-valued nodes, equal subexpressions shared.

    D^-1 T - D^-1 H psi K T - D^-1 H psi b   =   D^-1 (T - H psi (K T + b))

Words are grouped by their first letter, again and again; what remains behind a letter is a polynomial of its own, and equal
polynomials (up to a factor) are one node. Four groups have names because one local step does them together:

    Causal      psi (w + K x + E_phi y)    one message a body: phi (z + G (x - H z) + y), with H z+ = x
    Anticausal  psi* (w + H* u)      alpha = lambda+ + H* (u - G* lambda+) + w
    BodyForce   M phi* (H* u + a) + b    Newton and Euler at one body, without a or b written out
    FrameMotion B* phi* (H* u + a_local) + B_dot* phi* H* v    d/dt of frames' velocities, by the same kinematics; less B* g
                                     where the world falls, as it does for BodyForce: both then have one motion

A word from row vector to vector is a number: x* A y is cut in two, and summed over the tree (`Dot`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from psiphi.algebra.expressions.letters import (
    A_LOCAL,
    GRAVITY,
    A,
    B,
    FormLetter,
    FrameLetter,
    Letter,
    VectorLetter,
    letter,
    rate_letter,
    vector_letter,
)
from psiphi.algebra.expressions.terms import Poly, Term, Word, starred

U = letter("U")  # a number by itself
M = letter("M")
PHI_H_V = (letter("phi*"), letter("H*"), vector_letter("v", "joint"))  # the links' velocities
CAUSAL, ANTICAUSAL = ("phi", "psi"), ("phi*", "psi*")


@dataclass(frozen=True, eq=False)
class Node:
    """A vector over joints, links or frames. Nodes are equal when they are the same object: `Graph` shares them."""

    number: int


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    """An input vector, or the bias vectors a and b."""

    letter: Letter


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """A linear combination."""

    terms: tuple[tuple[Fraction, Node], ...]


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """A letter that needs no sweep of its own, on a node."""

    letter: Letter
    argument: Node


@dataclass(frozen=True, eq=False)
class MultilinearNode(Node):
    """A letter made of vectors, on a node: a form with `filled` in its slots, in the letter's order."""

    letter: FormLetter
    argument: Node
    filled: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Causal(Node):
    """phi or psi on w + K x + E_phi y."""

    kind: Letter
    w: Node | None
    x: Node | None
    y: Node | None = None


@dataclass(frozen=True, eq=False)
class Anticausal(Node):
    """phi* or psi* on w + H* u."""

    kind: Letter
    w: Node | None
    u: Node | None


@dataclass(frozen=True, eq=False)
class BodyForce(Node):
    """M phi* (H* u + a) + b."""

    u: Node | None


@dataclass(frozen=True, eq=False)
class FrameMotion(Node):
    """B* phi* (H* u + a_local) + B_dot* phi* H* v: accelerations of the frames of the letter B*; less B* g where it `falls`."""

    letter: FrameLetter
    u: Node | None
    falls: bool


@dataclass(frozen=True, eq=False)
class Dot(Node):
    """x* y, a number: summed up over bodies, tip to base."""

    x: Node
    y: Node


class Graph:
    """Nodes made so far, and the polynomials they stand for; `made_of` are those of the vectors that letters are made of."""

    def __init__(self, made_of: Mapping[Term, Poly] | None = None):
        self.made_of = made_of or {}
        self.nodes: list[Node] = []
        self._known: dict[tuple, Node] = {}

    def of(self, poly: Poly) -> Node | None:
        """The node of a polynomial whose words all end in a vector; None for zero."""
        # Horner: words with one first letter share its sweep, and so on inward
        terms = self._terms({word: c for word, c in poly.items() if c})
        return self._sum(terms)

    def numbers(self, poly: Poly) -> list[tuple[Fraction, Node]]:
        """The dots whose sum is a polynomial of numbers; words that are their own adjoints are cut in the middle, so that
        both halves are one: v* H phi M phi* H* v = V* (M V)."""
        # words by their left sides x*: what stands behind one x is summed before it is met
        groups: dict[Word, Poly] = {}
        found = []
        for word, c in poly.items():
            if word == (U,):
                found.append((c, self._make(Leaf, U)))
                continue
            # v* H phi M phi* H* v: cut before M, both halves are V = phi* H* v, and one sweep makes both.
            cut = len(word) // 2 if starred(word) == word else 1
            groups.setdefault(starred(word[:cut]), {})[word[cut:]] = c
        # x* A y + x* B z = x* (A y + B z): one dot a left side
        for left, inner in groups.items():
            factor = inner[min(inner, key=_order)]
            x, y = (
                self.of({left: Fraction(1)}),
                self.of({word: c / factor for word, c in inner.items()}),
            )
            if x is not None and y is not None:
                found.append((factor, self._make(Dot, x, y)))
        return found

    def _make(self, kind, *parts) -> Node:
        # equal parts, one node: a sweep that two results need runs once
        key = (kind, *(_identity(p) for p in parts))
        if kind is Sum:
            key = (Sum, frozenset((c, id(n)) for c, n in parts[0]))
        if key not in self._known:
            node = kind(len(self.nodes), *parts)
            self.nodes.append(node)
            self._known[key] = node
        return self._known[key]

    def _sum(self, terms: list[tuple[Fraction, Node]]) -> Node | None:
        # a single node is its own sum
        if not terms:
            return None
        if len(terms) == 1 and terms[0][0] == 1:
            return terms[0][1]
        return self._make(Sum, tuple(terms))

    def _terms(self, poly: Poly) -> list[tuple[Fraction, Node]]:
        """One term a first letter; the inner polynomial is scaled to a leading 1 so that multiples are shared."""
        groups: dict[Letter, Poly] = {}
        for word, c in poly.items():
            groups.setdefault(word[0], {})[word[1:]] = c
        terms: list[tuple[Fraction, Node]] = []
        # M phi* (H* u + a) + b first: Newton and Euler in one step cost less than a, b and M one by one.
        body = self._body_force(groups)
        if body is not None:
            terms.append((Fraction(1), body))
            groups = {k: v for k, v in groups.items() if k not in ("M", B)}
        # and d/dt of B* V before its two halves, B* and B_dot*, are taken for words of their own
        for at in [x for x in groups if isinstance(x, FrameLetter) and x.starred and not x.rate]:
            moving = self._frame_motion(at, groups)
            if moving is not None:
                terms.append(moving)
                groups = {k: v for k, v in groups.items() if k not in (at, rate_letter(at))}
        for first, inner in groups.items():
            if isinstance(first, VectorLetter):
                terms.append((inner[()], self._make(Leaf, first)))
                continue
            # 2 A (x + y) and 3 A (x + y) are multiples of one node.
            factor = inner[min(inner, key=_order)]
            node = self._applied(first, {word: c / factor for word, c in inner.items()})
            terms += [] if node is None else [(factor, node)]
        return terms

    def _applied(self, letter: Letter, inner: Poly) -> Node | None:
        """The letter on a polynomial; None where a vector of a letter is zero."""
        if letter in CAUSAL:
            # psi K x and psi E_phi y are no further sweeps: G x and y join the message that the body sends anyway.
            behind = {word: c for word, c in inner.items() if word[0] != "E_phi"}
            x, w = self._split(behind, "K")
            y = self.of({word[1:]: c for word, c in inner.items() if word[0] == "E_phi"})
            return None if w is x is y is None else self._make(Causal, letter, w, x, y)
        if letter in ANTICAUSAL:
            # phi* H* u needs no vector over links: H* u(k) joins what the parent hands on
            u, w = self._split(inner, "H*")
            return None if u is w is None else self._make(Anticausal, letter, w, u)
        argument = self.of(inner)
        if argument is None:
            return None
        # u x, ⟦f⟧ and their like: the vectors they are made of are nodes as well, and come first
        if isinstance(letter, FormLetter):
            filled = [self.of(self.made_of[term]) for _, term in letter.filled]
            return (
                None
                if None in filled
                else self._make(MultilinearNode, letter, argument, tuple(filled))
            )
        return self._make(Apply, letter, argument)

    def _split(self, inner: Poly, letter: str) -> tuple[Node | None, Node | None]:
        """The part behind `letter`, and the rest."""
        # w + K x (or w + H* u): x stays a vector over joints until the body that sends it
        behind = {word[1:]: c for word, c in inner.items() if word[0] == letter}
        rest = {word: c for word, c in inner.items() if word[0] != letter}
        return self.of(behind), self.of(rest)

    def _body_force(self, groups: Mapping[Letter, Poly]) -> Node | None:
        """M phi* (H* u + a) + b, when the words of M and b say exactly that."""
        motion, force = groups.get(M), groups.get(B)
        # The words of Newton and Euler, and no other factor before any of them:
        if motion is None or force != {(): 1} or any(word[0] != "phi*" for word in motion):
            return None
        inside = {word[1:]: c for word, c in motion.items()}
        if inside.pop((A,), None) != 1 or any(word[0] != "H*" for word in inside):
            return None
        return self._make(BodyForce, self.of({word[1:]: c for word, c in inside.items()}))

    def _frame_motion(
        self, at: FrameLetter, groups: Mapping[Letter, Poly]
    ) -> tuple[Fraction, Node] | None:
        """B* phi* (H* u + a_local) + B_dot* phi* H* v (- B* g), when the words of B* and B_dot* say so, up to a factor."""
        turning, motion = groups.get(rate_letter(at), {}), groups[at]
        # d/dt (B* V) = B_dot* V + B* dV/dt, V = phi* H* v: without the first there is no frame that moves
        if set(turning) != {PHI_H_V}:
            return None
        # a multiple of it is as good: the factor stands before the node
        c = turning[PHI_H_V]
        # less B* g: the world then accelerates by -g, and this motion is the one that body forces are made of
        falls = motion.get((GRAVITY,)) == -c
        inside = {word[1:]: d / c for word, d in motion.items() if word[0] == "phi*"}
        if (
            len(inside) != len(motion) - falls
            or inside.pop((A_LOCAL,), None) != 1
            or any(word[0] != "H*" for word in inside)
        ):
            return None
        u = self.of({word[1:]: d for word, d in inside.items()})
        return c, self._make(FrameMotion, at, u, falls)


def _identity(part: Any) -> Any:
    """What a part of a node is known by."""
    if isinstance(part, tuple) and part and isinstance(part[0], Node):
        return tuple(map(id, part))
    return id(part) if isinstance(part, Node) else part


def _order(word: Word) -> tuple:
    return len(word), word


def arguments(node: Node) -> list[Node]:
    """The nodes a node reads: those among its fields."""
    if isinstance(node, Sum):
        return [n for _, n in node.terms]
    # alone, or several in a tuple: the vectors that a form is made of
    found = [
        x
        for value in vars(node).values()
        for x in (value if isinstance(value, tuple) else (value,))
    ]
    return [x for x in found if isinstance(x, Node)]
