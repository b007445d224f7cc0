"""Values over frames that no single body has: they are gathered at the world.

B* x is made at the bodies that carry the frames. As long as frames of the same names meet, everything stays there; where
other frames meet them (J1 v - J2 v), given vectors join them (f - J v) or B takes them elsewhere (J1* J2 v), the value is
whole only when its sweep has ended, and is read at the world. ℰ₀ x is nowhere else: what the roots send, summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from psiphi.algebra.expressions.letters import FrameLetter, Letter, VectorLetter
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.horner_graph import (
    Apply,
    Dot,
    FrameMotion,
    Leaf,
    MultilinearNode,
    Node,
    Sum,
    arguments,
)
from psiphi.compiler.recursions.multilinear_step import SitePlace, formed
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial.screws import add, dot


class Gathering:
    """Which nodes of a graph are gathered, and what they are worth at the world."""

    def __init__(self, nodes: list[Node], roots: Sequence[Node | None]):
        self.home: dict[
            Node, tuple[str, ...] | None
        ] = {}  # the frames whose bodies have the value; (): given; None: the world
        for node in nodes:
            if _over_frames(node, self.home):
                self.home[node] = self._home(node)
        # Whose value it is, decided from the leaves up: the bodies of these frames, or nobody but the world.
        self.grounded = {n for n in nodes if world_body.gives(n)}
        dots = {n for n in nodes if isinstance(n, Dot) and n.x in self.home and not self._shared(n)}
        self.at_world = (
            {node for node, home in self.home.items() if home is None} | dots
        ) - self.grounded
        self.results = {root for root in roots if root in self.home and not self.home[root]}
        # B and ℰ₀* hand values of frames and of the world back to bodies: other frames' than their own they read at the world,
        spread = [n for n in nodes if isinstance(n, Apply) and n.argument in self.home]
        made = [n for n in self.at_world if isinstance(n, MultilinearNode)]
        self.readers = {
            n
            for n in spread
            if world_body.takes(n) or self.home[n.argument] not in ((), _names(n.letter))
        }
        read = {n.argument for n in self.readers} | {
            x for n in self.at_world if isinstance(n, Sum) for _, x in n.terms
        }
        read |= {x for n in (*dots, *made) for x in arguments(n)}
        # and what is read there, the bodies that have it must hand over.
        self.gathered = {node for node in read if self.home[node]}
        self.last = {n for n in nodes if isinstance(n, Dot) or world_body.is_height(n)} | (
            self.grounded - read
        )  # nobody waits for them
        self.whole = {
            n for n in self.readers if self.home[n.argument] != ()
        }  # they wait for the end of a sweep

    @property
    def used(self) -> bool:
        """Whether anything is read at the world other than sums that end there."""
        return bool(self.at_world or self.readers or self.results - self.last)

    def _home(self, node: Node) -> tuple[str, ...] | None:
        if isinstance(node, Leaf):
            return ()
        if isinstance(node, FrameMotion):
            return node.letter.frames
        if isinstance(node, Apply):
            return None if world_body.gives(node) else _names(node.letter)
        # of one home alone a sum or a form stays there; of several, only the world sees all: frames may be on any branches
        if isinstance(
            node, MultilinearNode
        ):  # given vectors are where frames are; alone, at the world
            homes = {self.home[x] for x in arguments(node)} - {()}
            return homes.pop() if len(homes) == 1 else None
        assert isinstance(node, Sum)
        homes = {self.home[x] for _, x in node.terms}
        return homes.pop() if len(homes) == 1 else None

    def _shared(self, dot: Dot) -> bool:
        """Whether both vectors are at the same bodies."""
        return bool(self.home[dot.x]) and self.home[dot.x] == self.home[dot.y]

    def gather(self, site: BodyView, node: Node, value: dict) -> None:
        """A body hands the world what it has: each frame is on one body."""
        site.world.setdefault(f"n{node.number} at frames", {}).update(value)

    def value(self, site: BodyView, node: Node) -> dict[int, list]:
        """{frame number: six scalars}; frames no body carries are missing: there the value is zero."""
        if isinstance(node, Leaf):
            return frame_sweeps.every_input(site, word_of(node))
        # ℰ₀ x: the roots' sum is the world's, as the value of its one frame
        if node in self.grounded:
            assert isinstance(node, Apply)
            return {0: world_body.total(site, node.letter, f"n{node.number} at world")}
        if self.home[node]:
            return site.world.get(f"n{node.number} at frames", {})
        if isinstance(node, MultilinearNode):
            return formed(
                node.letter,
                SitePlace(site),
                [self.value(site, x) for x in node.filled],
                self.value(site, node.argument),
            )
        assert isinstance(node, Sum)
        return combination([(c, self.value(site, x)) for c, x in node.terms])


def _over_frames(node: Node, known: dict) -> bool:
    if isinstance(node, Sum):
        return node.terms[0][1] in known
    if isinstance(node, FrameMotion):
        return True
    if isinstance(node, MultilinearNode):
        return node.argument in known
    return (isinstance(node, Leaf) and node.letter.rows.name == "frame") or (
        isinstance(node, Apply) and (frame_sweeps.senses(node.letter) or world_body.gives(node))
    )


def _names(letter: Letter) -> tuple[str, ...]:
    assert isinstance(letter, FrameLetter)
    return letter.frames


def word_of(leaf: Leaf) -> str:
    """The name of a given vector."""
    assert isinstance(leaf.letter, VectorLetter)
    return leaf.letter.word


def combination(terms: list[tuple[Fraction, Any]]) -> Any:
    """A linear combination of values: lists, or {frame: list} in which missing frames are zero."""
    if isinstance(terms[0][1], dict):
        numbers = sorted({i for _, value in terms for i in value})
        return {
            i: combination([(c, value[i]) for c, value in terms if i in value]) for i in numbers
        }
    # factors of one cost nothing: most words have them
    total = None
    for c, value in terms:
        scaled = (
            value if c == 1 else [-x for x in value] if c == -1 else [float(c) * x for x in value]
        )
        total = scaled if total is None else add(total, scaled)
    return total


def inner(x, y) -> Any:
    """x* y of two vectors at one body, or of {frame: vector}s."""
    if isinstance(x, dict):
        parts = [inner(x[i], y[i]) for i in sorted(x) if i in y]
        return sum(parts[1:], start=parts[0]) if parts else 0.0
    return dot(x, y) if x else 0.0
