"""Horner factoring: a polynomial of words as a graph of vector-valued nodes with shared
subexpressions.

    D^-1 T - D^-1 H psi K T - D^-1 H psi b   =   D^-1 (T - H psi (K T + b))

Words are grouped by their first letter, recursively. The rest behind a letter is a polynomial of
its own; polynomials that are equal up to a factor are one node. Four groups have node types of
their own, because one local step computes them together:

    Causal      psi (w + K x + E_phi y)    one message per body: phi (z + G (x - H z) + y), H z+ = x
    Anticausal  psi* (w + H* u)            alpha = lambda+ + H* (u - G* lambda+) + w
    BodyForce   M phi* (H* u + a) + b      Newton-Euler equations of one body, without a and b
    FrameMotion B* phi* (H* u + a_local) + B_dot* phi* H* v
                                           d/dt of frame velocities, by the same kinematics; minus
                                           B* g with gravity, to share the motion of BodyForce

A word from row vector to vector is a number: x* A y is cut in two and summed over the tree (`Dot`).
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
from psiphi.algebra.expressions.terms import Poly, Term, Word, adjoint_word

U = letter("U")  # the potential energy, a number
M = letter("M")
PHI_H_V = (letter("phi*"), letter("H*"), vector_letter("v", "joint"))  # link velocities
CAUSAL, ANTICAUSAL = ("phi", "psi"), ("phi*", "psi*")


@dataclass(frozen=True, eq=False)
class Node:
    """A vector over joints, links or frames. `Graph` makes one object per node, so nodes compare by
    identity."""

    number: int


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    """An input vector, or a vector of the state such as the bias vectors a and b."""

    letter: Letter


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """A linear combination of nodes."""

    terms: tuple[tuple[Fraction, Node], ...]


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """A letter without a recursion of its own, applied to a node."""

    letter: Letter
    argument: Node


@dataclass(frozen=True, eq=False)
class MultilinearNode(Node):
    """A multilinear form applied to a node; `filled` are the nodes in its other slots, in order."""

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
    """The accelerations of the frames of B*; minus B* g with gravity.

    B* phi* (H* u + a_local) + B_dot* phi* H* v
    """

    letter: FrameLetter
    u: Node | None
    with_gravity: bool


@dataclass(frozen=True, eq=False)
class Dot(Node):
    """x* y, a number: summed over the bodies, tip to base."""

    x: Node
    y: Node


class Graph:
    """The nodes so far and their polynomials. `slot_polys` are the polynomials of the vectors in
    slots of multilinear forms."""

    def __init__(self, slot_polys: Mapping[Term, Poly] | None = None):
        self.slot_polys = slot_polys or {}
        self.nodes: list[Node] = []
        self._known: dict[tuple, Node] = {}

    def node_of(self, poly: Poly) -> Node | None:
        """The node of a polynomial whose words all end in a vector; None for zero."""
        # Horner: words with the same first letter share its sweep, recursively
        terms = self._terms({word: c for word, c in poly.items() if c})
        return self._sum(terms)

    def dots_of(self, poly: Poly) -> list[tuple[Fraction, Node]]:
        """The dots whose sum is a polynomial of numbers.

        A word that equals its adjoint is cut in the middle, so that both halves are one node:

            v* H phi M phi* H* v = V* (M V)
        """
        # group the words by their left sides x*, so that each x is multiplied once
        groups: dict[Word, Poly] = {}
        found = []
        for word, c in poly.items():
            if word == (U,):
                found.append((c, self._make(Leaf, U)))
                continue
            # v* H phi M phi* H* v is cut before M: both halves are V = phi* H* v, from one sweep
            cut = len(word) // 2 if adjoint_word(word) == word else 1
            groups.setdefault(adjoint_word(word[:cut]), {})[word[cut:]] = c
        # x* A y + x* B z = x* (A y + B z): one dot per left side
        for left, inner in groups.items():
            factor = inner[min(inner, key=_order)]
            x, y = (
                self.node_of({left: Fraction(1)}),
                self.node_of({word: c / factor for word, c in inner.items()}),
            )
            if x is not None and y is not None:
                found.append((factor, self._make(Dot, x, y)))
        return found

    def _make(self, kind: type[Node], *parts: Any) -> Node:
        # equal parts give the same node: results share sweeps
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
        """One term per first letter. The inner polynomials are scaled to leading coefficient 1, so
        that multiples are shared."""
        groups: dict[Letter, Poly] = {}
        for word, c in poly.items():
            groups.setdefault(word[0], {})[word[1:]] = c
        terms: list[tuple[Fraction, Node]] = []
        # M phi* (H* u + a) + b first: the Newton-Euler step costs less than a, b and M separately
        body = self._body_force(groups)
        if body is not None:
            terms.append((Fraction(1), body))
            groups = {k: v for k, v in groups.items() if k not in ("M", B)}
        # d/dt of B* V before its two parts, B* and B_dot*, become words of their own
        for frame_letter in [
            x for x in groups if isinstance(x, FrameLetter) and x.starred and not x.rate
        ]:
            moving = self._frame_motion(frame_letter, groups)
            if moving is not None:
                terms.append(moving)
                groups = {
                    k: v
                    for k, v in groups.items()
                    if k not in (frame_letter, rate_letter(frame_letter))
                }
        for first, inner in groups.items():
            if isinstance(first, VectorLetter):
                terms.append((inner[()], self._make(Leaf, first)))
                continue
            # 2 A (x + y) and 3 A (x + y) are multiples of one node
            factor = inner[min(inner, key=_order)]
            node = self._applied(first, {word: c / factor for word, c in inner.items()})
            terms += [] if node is None else [(factor, node)]
        return terms

    def _applied(self, letter: Letter, inner: Poly) -> Node | None:
        """The letter applied to a polynomial; None if the result is zero."""
        if letter in CAUSAL:
            # psi K x and psi E_phi y need no further sweeps: G x and y are added to the message of
            # the body
            behind = {word: c for word, c in inner.items() if word[0] != "E_phi"}
            x, w = self._split(behind, "K")
            y = self.node_of({word[1:]: c for word, c in inner.items() if word[0] == "E_phi"})
            return None if w is x is y is None else self._make(Causal, letter, w, x, y)
        if letter in ANTICAUSAL:
            # phi* H* u needs no vector over links: H* u(k) is added to the parent's motion
            u, w = self._split(inner, "H*")
            return None if u is w is None else self._make(Anticausal, letter, w, u)
        argument = self.node_of(inner)
        if argument is None:
            return None
        # the vectors in the slots of a form are nodes, and come first
        if isinstance(letter, FormLetter):
            filled = [self.node_of(self.slot_polys[term]) for _, term in letter.filled]
            return (
                None
                if None in filled
                else self._make(MultilinearNode, letter, argument, tuple(filled))
            )
        return self._make(Apply, letter, argument)

    def _split(self, inner: Poly, letter: str) -> tuple[Node | None, Node | None]:
        """The nodes of x and w in a polynomial `letter` x + w."""
        # in w + K x (or w + H* u), x stays a vector over joints until the body that sends it
        behind = {word[1:]: c for word, c in inner.items() if word[0] == letter}
        rest = {word: c for word, c in inner.items() if word[0] != letter}
        return self.node_of(behind), self.node_of(rest)

    def _body_force(self, groups: Mapping[Letter, Poly]) -> Node | None:
        """A BodyForce, if the words of M and b are exactly those of one."""
        motion, force = groups.get(M), groups.get(B)
        # exactly the Newton-Euler words, with coefficient 1
        if motion is None or force != {(): 1} or any(word[0] != "phi*" for word in motion):
            return None
        inside = {word[1:]: c for word, c in motion.items()}
        if inside.pop((A,), None) != 1 or any(word[0] != "H*" for word in inside):
            return None
        return self._make(BodyForce, self.node_of({word[1:]: c for word, c in inside.items()}))

    def _frame_motion(
        self, frame_letter: FrameLetter, groups: Mapping[Letter, Poly]
    ) -> tuple[Fraction, Node] | None:
        """A FrameMotion and its factor, if the words of B* and B_dot* are exactly those of one."""
        turning, motion = groups.get(rate_letter(frame_letter), {}), groups[frame_letter]
        # d/dt (B* V) = B_dot* V + B* dV/dt with V = phi* H* v; this needs the first part
        if set(turning) != {PHI_H_V}:
            return None
        # c is a common factor
        c = turning[PHI_H_V]
        # minus B* g: the world accelerates by -g, and the motion is that of body forces
        with_gravity = motion.get((GRAVITY,)) == -c
        inside = {word[1:]: d / c for word, d in motion.items() if word[0] == "phi*"}
        if (
            len(inside) != len(motion) - with_gravity
            or inside.pop((A_LOCAL,), None) != 1
            or any(word[0] != "H*" for word in inside)
        ):
            return None
        u = self.node_of({word[1:]: d for word, d in inside.items()})
        return c, self._make(FrameMotion, frame_letter, u, with_gravity)


def _identity(part: object) -> object:
    """A hashable key of a part of a node: nodes by identity, other parts by value."""
    if isinstance(part, tuple) and part and isinstance(part[0], Node):
        return tuple(map(id, part))
    return id(part) if isinstance(part, Node) else part


def _order(word: Word) -> tuple:
    return len(word), word


def arguments(node: Node) -> list[Node]:
    """The nodes that a node reads: those among its fields."""
    if isinstance(node, Sum):
        return [n for _, n in node.terms]
    # fields are nodes, or tuples of nodes in the slots of forms
    found = [
        x
        for value in vars(node).values()
        for x in (value if isinstance(value, tuple) else (value,))
    ]
    return [x for x in found if isinstance(x, Node)]
