"""Vector-valued expressions: a graph of nodes as sweeps, each node evaluated body by body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from psiphi._util.array_types import AnyScalar
from psiphi.algebra.expressions.letters import BODIES, STATE_VECTORS, FrameLetter, VectorLetter
from psiphi.algebra.expressions.multilinear_forms import TURN
from psiphi.algebra.expressions.terms import Poly, Term, Word
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.frame_gather import FrameGather, inner_product, linear_combination
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
from psiphi.compiler.lower.node_value import node_value, write_result
from psiphi.compiler.lower.omega_sides import OMEGAS
from psiphi.compiler.lower.sweep_schedule import Schedule, schedule
from psiphi.compiler.recursions.body_step import EYE3, ZERO3, ZERO6, articulate, store_velocity
from psiphi.compiler.recursions.inertia_rates import differentiate, split_rate
from psiphi.compiler.recursions.newton_euler import world_at_rest
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    Argument,
    BodyView,
    Program,
    Sweep,
    SweepTree,
)


@dataclass(frozen=True)
class Result:
    """One output: its polynomial, whose words end in vectors, and its space: "joint", "frame",
    "one" for numbers, or over links "motion" or "force"."""

    name: str
    poly: Poly
    space: str


@dataclass
class Lowered:
    """A graph of nodes with its schedule. `program` returns the sweeps."""

    results: Sequence[Result]
    # the polynomials of the vectors in slots of multilinear forms
    slot_polys: Mapping[Term, Poly] = field(default_factory=dict)

    def __post_init__(self):
        self.graph = Graph(self.slot_polys)
        self.velocities = self._velocity_nodes()
        # equal subexpressions of all results are one node, so that results share sweeps
        self.roots = [
            None if result.space == "one" else self.graph.node_of(result.poly)
            for result in self.results
        ]
        self.sums = {
            result.name: self.graph.dots_of(result.poly)
            for result in self.results
            if result.space == "one"
        }
        dots = [dot for terms in self.sums.values() for _, dot in terms]
        # factoring leaves nodes that nothing reads, such as the halves of a word that was cut
        live = _live_nodes(
            [root for root in (*self.velocities, *self.roots, *dots) if root is not None]
        )
        self.nodes = [n for n in self.graph.nodes if n.number in live]
        letters = {n.letter for n in self.nodes if isinstance(n, (Apply, FrameMotion))}
        self.frames = sorted({x.plain for x in letters if isinstance(x, FrameLetter)})
        self.frame_gather = FrameGather(self.nodes, self.roots)
        needs_poses = any(x.axes == "world" for x in self.frames)
        self.schedule: Schedule = schedule(
            self.nodes,
            needs_poses=needs_poses,
            velocities=tuple(self.velocities),
            after_sweep=self.frame_gather.after_sweep,
            final_sums=self.frame_gather.final_sums,
        )

    def _velocity_nodes(self) -> dict[Node, str]:
        """The nodes that compute velocities, with their names in records. Empty if v is an
        input."""
        return {}

    @property
    def computes_velocities(self) -> bool:
        """Whether a sweep computes the link velocities from v."""
        return any(isinstance(n, (Apply, Leaf)) and n.letter.needs_velocity for n in self.nodes)

    @property
    def needs_pi(self) -> bool:
        """Whether a letter needs Pi."""
        return any(isinstance(n, Apply) and n.letter.bare == "Pi" for n in self.nodes)

    @property
    def movable_inertia(self) -> bool:
        """Whether inertia may move across joints: if M occurs only inside H phi M phi* H*, or in
        body forces."""
        applied = {
            n.letter
            for n in self.nodes
            if isinstance(n, (Apply, Leaf)) and BODIES in n.letter.depends_on
        }
        # Inertia that does not affect a joint may move to the parent: H phi M phi* H* and D do not
        # change. phi M phi* by itself would change, and so would forces of single bodies.
        outside = "M" in applied and not all(_inside_mass(w) for r in self.results for w in r.poly)
        depends_on_bodies = (
            outside
            or bool(applied - {"M"})
            or any(isinstance(n, MultilinearNode) for n in self.nodes)
        )
        return not (depends_on_bodies or self.computes_velocities or self._has_link_arrays)

    def program(
        self,
        name: str,
        tree: SweepTree,
        inputs: tuple[Argument, ...],
        outputs: tuple[Argument, ...],
    ) -> Program:
        """The sweeps, as a program with these arguments."""
        # one step per sweep computes all nodes of that sweep at one body, for all results
        sweeps = tuple(
            Sweep(direction, self._step(i)) for i, direction in enumerate(self.schedule.directions)
        )
        frames = {}
        if self.frames:
            assert isinstance(tree, Tree)
            frames = frame_sweeps.frame_data(tree, self.frames)
        # links of a class share a step, which knows neither the gauge of a single link nor the
        # world before a sweep has ended
        can_loop = not self._has_link_arrays and not any(map(_needs_link_origin, self.nodes))
        can_loop = can_loop and not self.frame_gather.is_used
        finish = (
            partial(self._finish, tree.gravity)
            if self.frame_gather.world_results or self.sums
            else None
        )
        # J v needs only the bodies between the base and its frames
        bodies = sorted(frames) if self._only_to_frames else None
        return Program(
            name, inputs, outputs, sweeps, self._world(tree), finish, bodies, can_loop, frames
        )

    @property
    def _only_to_frames(self) -> bool:
        """Whether all results are values of frames, computed base to tip: other bodies are not
        needed."""
        # a tip-to-base sweep involves all bodies outboard; a dot sums over all bodies
        outward = all(direction is BASE_TO_TIP for direction in self.schedule.directions)
        return (
            outward
            and not self.sums
            and all(
                root is not None and self.frame_gather.location.get(root) for root in self.roots
            )
        )

    def _finish(self, gravity: Sequence[AnyScalar], body: BodyView) -> None:
        """At the world, last: numbers, and the frame values that are collected at the world."""
        for name, terms in self.sums.items():
            # numbers are linear in dots: c1 x1* y1 + c2 x2* y2 + ... - g . m c
            parts = [(c, self._number(body, node, gravity)) for c, node in terms]
            body.write(name, 0, linear_combination(parts) if parts else [0.0])
        for result, root in zip(self.results, self.roots, strict=True):
            if root in self.frame_gather.world_results:
                for i, part in self.frame_gather.value(body, root).items():
                    body.write(result.name, 6 * i, part)

    def _number(self, body: BodyView, dot: Node, gravity: Sequence[AnyScalar]) -> list:
        """The value of a dot: the sum over the bodies, or the product of two frame values at the
        world."""
        if not isinstance(dot, Dot):
            return world_body.potential(body, gravity)
        if dot in self.frame_gather.at_world:
            x, y = (self.frame_gather.value(body, node) for node in (dot.x, dot.y))
            return [inner_product(x, y)]
        return body.children.get(f"n{dot.number}", [0.0])

    @property
    def unfused_sweeps(self) -> int:
        """The number of sweeps as the equation is written: the longest chain of recursions that
        depend on each other."""
        length: dict[int, int] = {}
        # arguments come before the nodes that read them, so one pass is enough
        for node in self.nodes:
            own = isinstance(node, (Causal, Anticausal, BodyForce, FrameMotion)) or (
                isinstance(node, Leaf) and node.letter in STATE_VECTORS
            )
            length[node.number] = own + max([length[a.number] for a in arguments(node)], default=0)
        return max(length.values(), default=0)

    @property
    def _has_link_arrays(self) -> bool:
        """Whether there are inputs or results over links: these are in public axes, which a class
        of links does not know."""
        # inputs x(k) are changed to the working axes, and results to the public axes
        leaves = [n.letter for n in self.nodes if isinstance(n, Leaf)]
        given = any(
            isinstance(x, VectorLetter) and x.is_input and x.rows.name == "link" for x in leaves
        )
        return given or any(result.space in ("motion", "force") for result in self.results)

    def _world(self, tree: SweepTree) -> Callable[[BodyView], None]:
        gravity = tree.gravity

        def world(body: BodyView) -> None:
            # the world is at rest but accelerates by -g: then a body in free fall has no
            # acceleration (S0 (3.21))
            body.store(
                V=ZERO6,
                c=ZERO6,
                world_acceleration=[0.0, 0.0, 0.0, *(-g for g in gravity)],
                R=EYE3,
                p=ZERO3,
                gravity=list(gravity),
            )
            for node in self.nodes:
                # body forces include gravity as the world's acceleration; frame accelerations do so
                # on request
                if isinstance(node, (BodyForce, FrameMotion)):
                    at_rest = isinstance(node, FrameMotion) and not node.with_gravity
                    motion = world_at_rest(ZERO3 if at_rest else gravity)
                    body.store(**{f"motion{node.number}": motion})
                else:
                    body.store(**{f"n{node.number}": ZERO6})

        return world

    def _step(self, stage: int) -> Callable[[BodyView], None]:
        nodes, first_out = self.schedule.stages[stage], stage == self.first_outward
        pairs = zip(self.results, self.roots, strict=True)
        roots = [
            (result, root)
            for result, root in pairs
            if root is not None and root not in self.frame_gather.world_results
        ]
        work = [
            node
            for node in nodes
            if node not in self.frame_gather.at_world and not world_body.is_potential(node)
        ]

        def step(body: BodyView) -> None:
            # before the nodes, what their letters need: V base to tip, P tip to base, then dP/dt
            if first_out and self.computes_velocities:
                store_velocity(body)
            if first_out and self.frames:
                frame_sweeps.store_pose(body)
            if stage == self.schedule.articulate:
                articulate(body)
            if stage == self.schedule.sum_masses:
                world_body.sum_masses(body)
            if stage == self.schedule.differentiate:
                differentiate(body)
                if self.needs_pi:
                    split_rate(body)
            # arguments come first, so each node reads values that are in the record already
            for node in work:
                value = node_value(body, node, self.frame_gather)
                body.store(**{f"n{node.number}": value})
                if node in self.frame_gather.gathered:
                    self.frame_gather.gather(body, node, value)
                if node in self.velocities:
                    body.store(**{self.velocities[node]: value})
            for result, root in roots:
                if root in work:
                    write_result(body, result.name, result.space, body.record[f"n{root.number}"])

        return step

    @property
    def first_outward(self) -> int:
        """The number of the first base-to-tip sweep."""
        outward = [i for i, d in enumerate(self.schedule.directions) if d.value == "base to tip"]
        return outward[0] if outward else -1


def _needs_link_origin(node: Node) -> bool:
    """Whether the node depends on the origin of the public link frame."""
    return (isinstance(node, Apply) and node.letter in OMEGAS) or (
        isinstance(node, MultilinearNode) and node.letter.form is TURN
    )


def _inside_mass(word: Word) -> bool:
    """Whether every M of the word is inside H phi M phi* H*."""
    return all(
        word[max(i - 2, 0) : i + 3] == ("H", "phi", "M", "phi*", "H*")
        for i, x in enumerate(word)
        if x == "M"
    )


def _live_nodes(roots: list[Node]) -> set[int]:
    # from the results backwards
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number not in seen:
            seen.add(node.number)
            stack.extend(arguments(node))
    return seen
