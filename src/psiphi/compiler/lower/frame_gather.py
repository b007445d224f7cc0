"""Values over frames that are collected at the world.

B* x is computed at the bodies that carry the frames, and stays there as long as all frames of an
expression are the same. It is collected at the world if other frames enter (J1 v - J2 v), if given
vectors enter (f - J v), or if another B reads it (J1* J2 v). Then it is complete when its sweep has
ended. ℰ₀ x, the sum over the roots, is always at the world.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from fractions import Fraction
from typing import Any

from psiphi.algebra.expressions.letters import FrameLetter, Letter, VectorLetter
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.frame_sweeps import FrameVector
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
from psiphi.compiler.recursions.multilinear_step import FormBody, apply_form
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial.screws import add, dot


class FrameGather:
    """The nodes that are collected at the world, and their values there."""

    def __init__(self, nodes: list[Node], roots: Sequence[Node | None]):
        # where each value is: at the bodies of these frames; (): a given vector; None: at the world
        self.location: dict[Node, tuple[str, ...] | None] = {}
        for node in nodes:
            if _is_frame_vector(node, self.location):
                self.location[node] = self._location_of(node)
        # sums over the roots, and dots of vectors that are not at the same bodies, are at the world
        self.world_sums = {n for n in nodes if world_body.is_world_sum(n)}
        dots = {
            n
            for n in nodes
            if isinstance(n, Dot) and n.x in self.location and not self._same_bodies(n)
        }
        self.at_world = (
            {node for node, location in self.location.items() if location is None} | dots
        ) - self.world_sums
        self.world_results = {
            root for root in roots if root in self.location and not self.location[root]
        }
        # B and ℰ₀* map values of frames and of the world to bodies. They read values at the world
        # unless these are of their own frames.
        mapped = [n for n in nodes if isinstance(n, Apply) and n.argument in self.location]
        forms = [n for n in self.at_world if isinstance(n, MultilinearNode)]
        self.readers = {
            n
            for n in mapped
            if world_body.reads_world(n)
            or self.location[n.argument] not in ((), _frame_names(n.letter))
        }
        read = {n.argument for n in self.readers} | {
            x for n in self.at_world if isinstance(n, Sum) for _, x in n.terms
        }
        read |= {x for n in (*dots, *forms) for x in arguments(n)}
        # bodies send the values that are read there
        self.gathered = {node for node in read if self.location[node]}
        # no node reads these
        self.final_sums = {n for n in nodes if isinstance(n, Dot) or world_body.is_potential(n)} | (
            self.world_sums - read
        )
        # these wait for the end of a sweep
        self.after_sweep = {n for n in self.readers if self.location[n.argument] != ()}

    @property
    def is_used(self) -> bool:
        """Whether the world is read for anything but final sums."""
        return bool(self.at_world or self.readers or self.world_results - self.final_sums)

    def _location_of(self, node: Node) -> tuple[str, ...] | None:
        if isinstance(node, Leaf):
            return ()
        if isinstance(node, FrameMotion):
            return node.letter.frames
        if isinstance(node, Apply):
            return None if world_body.is_world_sum(node) else _frame_names(node.letter)
        # a value stays at the bodies if all its arguments are at the same ones; frames of different
        # sets can be on any branches, and only the world has all of them
        locations = {self.location[x] for x in arguments(node)}
        if isinstance(node, MultilinearNode):
            locations -= {()}  # given vectors are available everywhere
        return locations.pop() if len(locations) == 1 else None

    def _same_bodies(self, dot: Dot) -> bool:
        """Whether both vectors are at the same bodies."""
        return bool(self.location[dot.x]) and self.location[dot.x] == self.location[dot.y]

    def gather(self, body: BodyView, node: Node, value: FrameVector) -> None:
        """Send the values of this body's frames to the world; each frame is on one body."""
        body.world.setdefault(f"n{node.number} at frames", {}).update(value)

    def value(self, body: BodyView, node: Node) -> FrameVector:
        """{frame number: six scalars} at the world; frames that no body carries are missing, with
        value zero."""
        if isinstance(node, Leaf):
            return frame_sweeps.frame_inputs(body, vector_name(node))
        # the sum over the roots is the value of the world's only frame
        if node in self.world_sums:
            assert isinstance(node, Apply)
            return {0: world_body.world_sum(body, node.letter, f"n{node.number} at world")}
        if self.location[node]:
            return body.world.get(f"n{node.number} at frames", {})
        if isinstance(node, MultilinearNode):
            return apply_form(
                node.letter,
                FormBody(body),
                [self.value(body, x) for x in node.filled],
                self.value(body, node.argument),
            )
        assert isinstance(node, Sum)
        return linear_combination([(c, self.value(body, x)) for c, x in node.terms])


def _is_frame_vector(node: Node, known: Container[Node]) -> bool:
    if isinstance(node, Sum):
        return node.terms[0][1] in known
    if isinstance(node, FrameMotion):
        return True
    if isinstance(node, MultilinearNode):
        return node.argument in known
    return (isinstance(node, Leaf) and node.letter.rows.name == "frame") or (
        isinstance(node, Apply)
        and (frame_sweeps.maps_to_frames(node.letter) or world_body.is_world_sum(node))
    )


def _frame_names(letter: Letter) -> tuple[str, ...]:
    assert isinstance(letter, FrameLetter)
    return letter.frames


def vector_name(leaf: Leaf) -> str:
    """The name of a given vector."""
    assert isinstance(leaf.letter, VectorLetter)
    return leaf.letter.word


def linear_combination(terms: list[tuple[Fraction, Any]]) -> Any:
    """A linear combination of lists, or of {frame: list} in which missing frames are zero."""
    if isinstance(terms[0][1], dict):
        numbers = sorted({i for _, value in terms for i in value})
        return {
            i: linear_combination([(c, value[i]) for c, value in terms if i in value])
            for i in numbers
        }
    # factors 1 and -1 cost no multiplication
    total = None
    for c, value in terms:
        scaled = (
            value if c == 1 else [-x for x in value] if c == -1 else [float(c) * x for x in value]
        )
        total = scaled if total is None else add(total, scaled)
    return total


def inner_product(x: list | FrameVector, y: list | FrameVector) -> Any:
    """x* y of two vectors at one body, or of two {frame: vector}."""
    if isinstance(x, dict):
        assert isinstance(y, dict)
        parts = [inner_product(x[i], y[i]) for i in sorted(x) if i in y]
        return sum(parts[1:], start=parts[0]) if parts else 0.0
    assert not isinstance(y, dict)
    return dot(x, y) if x else 0.0
