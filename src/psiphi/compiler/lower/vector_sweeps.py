"""Vector-valued expressions: a graph of nodes as sweeps, each node evaluated body by body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from psiphi.algebra.expressions.letters import BIAS, BODIES, FrameLetter, VectorLetter
from psiphi.algebra.expressions.multilinear_forms import TURN
from psiphi.algebra.expressions.terms import Poly, Term, Word
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.frame_gather import Gathering, combination, inner
from psiphi.compiler.lower.horner_graph import (
    Anticausal,
    Apply,
    BodyForce,
    Causal,
    Dot,
    FrameMotion,
    Graph,
    Leaf,
    MultilinearNode,
    Node,
    arguments,
)
from psiphi.compiler.lower.node_value import value_at, write_result
from psiphi.compiler.lower.omega_sides import TURNING
from psiphi.compiler.lower.sweep_schedule import Schedule, schedule
from psiphi.compiler.recursions.body_step import ZERO6, articulate, keep_velocity
from psiphi.compiler.recursions.inertia_rates import differentiate, split
from psiphi.compiler.recursions.newton_euler import world_at_rest
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, Argument, BodyView, Program, Sweep


@dataclass(frozen=True)
class Result:
    """One output: its polynomial (words end in vectors) and its space; over links "motion"s or "force"s, "one" for numbers."""

    name: str
    poly: Poly
    space: str


@dataclass
class Lowered:
    """A graph with its schedule: what `explain` prints and `program` runs."""

    results: Sequence[Result]
    made_of: Mapping[Term, Poly] = field(
        default_factory=dict
    )  # the vectors that letters are made of

    def __post_init__(self):
        self.graph = Graph(self.made_of)
        self.motion = self._motion()
        # Equal subexpressions of all results are one node, so that they share sweeps: P, V and the like are made once.
        self.roots = [
            None if result.space == "one" else self.graph.of(result.poly) for result in self.results
        ]
        self.sums = {
            result.name: self.graph.numbers(result.poly)
            for result in self.results
            if result.space == "one"
        }
        dots = [dot for terms in self.sums.values() for _, dot in terms]
        # Factoring leaves nodes behind that nothing reads (the halves of a cut word): no sweep for these.
        live = _live([root for root in (*self.motion, *self.roots, *dots) if root is not None])
        self.nodes = [n for n in self.graph.nodes if n.number in live]
        letters = {n.letter for n in self.nodes if isinstance(n, (Apply, FrameMotion))}
        self.frames = sorted({x.of for x in letters if isinstance(x, FrameLetter)})
        self.gathering = Gathering(self.nodes, self.roots)
        placed = any(x.axes == "world" for x in self.frames)
        self.schedule: Schedule = schedule(
            self.nodes,
            placed=placed,
            motion=tuple(self.motion),
            whole=self.gathering.whole,
            last=self.gathering.last,
        )

    def _motion(self) -> dict[Node, str]:
        """The nodes of velocities that are computed, and the names local letters know them by; none: v is given."""
        return {}

    @property
    def explicit_bias(self) -> bool:
        return any(isinstance(n, (Apply, Leaf)) and n.letter.moves for n in self.nodes)

    @property
    def splits(self) -> bool:
        """Whether Pi is needed."""
        return any(isinstance(n, Apply) and n.letter.bare == "Pi" for n in self.nodes)

    @property
    def rods(self) -> bool:
        """Whether inertia may change sides of joints: where M shows only inside H phi M phi* H*, or in body forces."""
        applied = {
            n.letter for n in self.nodes if isinstance(n, (Apply, Leaf)) and BODIES in n.letter.made
        }
        # What a joint does not feel of its link may move to the parent: H phi M phi* H*, hence D, stays as it is. phi M phi* by
        # itself would not, nor would forces of single bodies.
        alone = "M" in applied and not all(_inside_mass(w) for r in self.results for w in r.poly)
        shows = (
            alone
            or bool(applied - {"M"})
            or any(isinstance(n, MultilinearNode) for n in self.nodes)
        )
        return not (shows or self.explicit_bias or self._over_links)

    def program(
        self, name: str, tree: Any, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        # one step a sweep: it makes all nodes of that sweep at one body, whatever results they are of
        sweeps = tuple(
            Sweep(direction, self._step(i)) for i, direction in enumerate(self.schedule.directions)
        )
        marks = frame_sweeps.marks(tree, self.frames)
        # links of one class share a step: it cannot know single gauges, nor the world before its sweep has ended
        local = not self._over_links and not any(map(_at_public_origin, self.nodes))
        local = local and not self.gathering.used
        finish = (
            partial(self._finish, tree.gravity) if self.gathering.results or self.sums else None
        )
        # J v needs the bodies between the base and its frames, and none of the others.
        bodies = sorted(marks) if self._only_to_frames else None
        return Program(
            name, inputs, outputs, sweeps, self._world(tree), finish, bodies, local, marks
        )

    @property
    def _only_to_frames(self) -> bool:
        """Values of frames, made on the way out to them: no other body has a part in it."""
        # a sweep inward would bring in what hangs elsewhere; a dot sums over all bodies
        outward = all(direction is BASE_TO_TIP for direction in self.schedule.directions)
        return (
            outward
            and not self.sums
            and all(root is not None and self.gathering.home.get(root) for root in self.roots)
        )

    def _finish(self, gravity: Any, site: BodyView) -> None:
        """At the world, last: numbers, and the results over frames that no single body has."""
        for name, terms in self.sums.items():
            # numbers are linear in dots: c1 x1* y1 + c2 x2* y2 + ... - g . m c
            parts = [(c, self._number(site, node, gravity)) for c, node in terms]
            site.write(name, 0, combination(parts) if parts else [0.0])
        for result, root in zip(self.results, self.roots, strict=True):
            if root in self.gathering.results:
                for i, part in self.gathering.value(site, root).items():
                    site.write(result.name, 6 * i, part)

    def _number(self, site: BodyView, dot: Node, gravity: Any) -> list:
        """What the bodies have summed up; of frames that no single body has, what the world has."""
        if not isinstance(dot, Dot):
            return world_body.potential(site, gravity)
        if dot in self.gathering.at_world:
            return [inner(self.gathering.value(site, dot.x), self.gathering.value(site, dot.y))]
        return site.children.get(f"n{dot.number}", [0.0])

    @property
    def chain(self) -> int:
        """Sweeps as the equation is written: the longest chain of recursions that need each other."""
        length: dict[int, int] = {}
        # arguments stand before the nodes that read them, so that one pass is enough
        for node in self.nodes:
            own = isinstance(node, (Causal, Anticausal, BodyForce, FrameMotion)) or (
                isinstance(node, Leaf) and node.letter in BIAS
            )
            length[node.number] = own + max([length[a.number] for a in arguments(node)], default=0)
        return max(length.values(), default=0)

    @property
    def _over_links(self) -> bool:
        """Arrays over links are in public axes, which a class of links does not know."""
        # working axes are chosen for cheap code (`framing`): a given x(k) must be turned into them, and x(k) out of them
        leaves = [n.letter for n in self.nodes if isinstance(n, Leaf)]
        given = any(
            isinstance(x, VectorLetter) and x.given and x.rows.name == "link" for x in leaves
        )
        return given or any(result.space in ("motion", "force") for result in self.results)

    def _world(self, tree: Any) -> Callable[[BodyView], None]:
        gravity = tree.gravity

        def world(site: BodyView) -> None:
            # The world rests, and yet accelerates by -g: what falls freely then has no acceleration of its own (S0 (3.21)).
            site.keep(
                V=ZERO6,
                c=ZERO6,
                pull=[0.0, 0.0, 0.0, *(-g for g in gravity)],
                R=frame_sweeps.EYE3,
                p=frame_sweeps.ZERO3,
            )
            site.keep(down=list(gravity))
            for node in self.nodes:
                # forces of bodies take gravity along as the world's acceleration; frames move in a world at rest, or fall too
                if isinstance(node, (BodyForce, FrameMotion)):
                    rests = isinstance(node, FrameMotion) and not node.falls
                    site.keep(
                        **{
                            f"motion{node.number}": world_at_rest(
                                frame_sweeps.ZERO3 if rests else gravity
                            )
                        }
                    )
                else:
                    site.keep(**{f"n{node.number}": ZERO6})

        return world

    def _step(self, stage: int) -> Callable[[BodyView], None]:
        nodes, first_out = self.schedule.stages[stage], stage == self.outward
        pairs = zip(self.results, self.roots, strict=True)
        roots = [
            (result, root)
            for result, root in pairs
            if root is not None and root not in self.gathering.results
        ]
        work = [
            node
            for node in nodes
            if node not in self.gathering.at_world and not world_body.is_height(node)
        ]

        def step(site: BodyView) -> None:
            # Before the nodes of this sweep, what their letters are made of: V outward, P inward, and dP/dt after both.
            if first_out and self.explicit_bias:
                keep_velocity(site)
            if first_out and self.frames:
                frame_sweeps.locate(site)
            if stage == self.schedule.articulate:
                articulate(site)
            if stage == self.schedule.weigh:
                world_body.weigh(site)
            if stage == self.schedule.differentiate:
                differentiate(site)
                if self.splits:
                    split(site)
            # Nodes stand in the order in which they were made, arguments first: each reads what this body has kept already.
            for node in work:
                value = value_at(site, node, self.gathering)
                site.keep(**{f"n{node.number}": value})
                if node in self.gathering.gathered:
                    self.gathering.gather(site, node, value)
                if node in self.motion:
                    site.keep(**{self.motion[node]: value})
            for result, root in roots:
                if root in work:
                    write_result(site, result.name, result.space, site.kept[f"n{root.number}"])

        return step

    @property
    def outward(self) -> int:
        """The first base-to-tip sweep."""
        outward = [i for i, d in enumerate(self.schedule.directions) if d.value == "base to tip"]
        return outward[0] if outward else -1


def _at_public_origin(node: Node) -> bool:
    """Whether it must know where the link's own origin is."""
    return (isinstance(node, Apply) and node.letter in TURNING) or (
        isinstance(node, MultilinearNode) and node.letter.form is TURN
    )


def _inside_mass(word: Word) -> bool:
    """Every M of the word stands in H phi M phi* H*."""
    return all(
        word[max(i - 2, 0) : i + 3] == ("H", "phi", "M", "phi*", "H*")
        for i, x in enumerate(word)
        if x == "M"
    )


def _live(roots: list[Node]) -> set[int]:
    # from the results backwards: what none of them reads is not made
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number not in seen:
            seen.add(node.number)
            stack.extend(arguments(node))
    return seen
