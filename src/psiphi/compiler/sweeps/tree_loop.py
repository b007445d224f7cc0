"""The loop over the tree: the only one. It runs a program's steps in order and carries their messages.

On a tape it leaves straight-line code for this robot alone (`unroll`): that is how small robots are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from psiphi._util.errors import StateError
from psiphi.compiler.sweeps.sweep_program import (
    ADDED,
    BASE_TO_TIP,
    PARAMETERS,
    BodyView,
    Direction,
    Program,
    Sweep,
    merge,
)
from psiphi.compiler.tape.tape import Count, Tape
from psiphi.model.model import WORLD
from psiphi.model.spatial.body_stacks import put, taken


@dataclass
class ProgramRun:
    """A program under way on one tree: what each body (and the world) has kept, and the outputs written so far."""

    program: Program
    tree: Any  # a Tree, or anything with its links, parents and slices
    inputs: Mapping[str, Any]
    kept: dict[int, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[tuple[str, int], Any] = field(default_factory=dict)
    direction: Direction | None = None  # of the sweep that runs

    def parent(self, k: int) -> int:
        """The body that k hangs on: the world, where it is not among those that are swept."""
        parent, bodies = self.tree.parent[k], self.program.bodies
        return parent if bodies is None or parent in bodies else WORLD

    def site(self, k: int, inbox: dict[int, dict]) -> BodyView:
        world = self.kept.setdefault(WORLD, {})
        if k == WORLD:
            return BodyView(
                None, dict(self.inputs), world, children=inbox.get(WORLD, {}), world=world
            )
        return BodyView(
            self.tree.links[k],
            dict(self.inputs),
            self.kept.setdefault(k, {}),
            parent=self._above(k),
            children=inbox.get(k, {}),
            slices=self.tree.slices(k),
            mark=self.program.marks.get(k, ()),
            nv=self.tree.nv,
            world=world,
            gauge=self.tree.gauge[k],
            at_root=self.parent(k) == WORLD,
        )

    def _above(self, k: int) -> Mapping[str, Any]:
        """What the parent has kept; of a cluster, what its body has on which this one hangs."""
        above = self.parent(k)
        # φ(p, k) of a body that hangs on a cluster begins at the one body of it that carries k
        kept, seat = self.kept.get(above, {}), None if above == WORLD else seat_of(self.tree, k)
        return kept if seat is None else ClusterView(kept, *seat)

    def stage(
        self, what: Program, inputs: Mapping[str, Any], under: MakeRun
    ) -> dict[tuple[str, int], Any]:
        """What a stage of this program gives."""
        return drive(what, self.tree, inputs, under)

    def collect(self, site: BodyView) -> None:
        self.outputs.update(((name, index), value) for name, index, value in site.written)


MakeRun = Callable[[Program, Any, Mapping[str, Any]], ProgramRun]


def seat_of(tree: Any, k: int) -> tuple[int, int] | None:
    """Where link k hangs on a cluster of bodies; trees without clusters need not tell."""
    return tree.seat(k) if hasattr(tree, "seat") else None


class ClusterView(Mapping):
    """What a cluster has kept, as the links see it that hang on one of its bodies."""

    def __init__(self, kept: Mapping[str, Any], at: int, count: int):
        self.kept, self.at, self.count = kept, at, count

    def __getitem__(self, name: str) -> Any:
        return taken(self.kept[name], self.at, self.count)

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)


def drive(
    program: Program, tree: Any, inputs: Mapping[str, Any], under: MakeRun = ProgramRun
) -> dict[tuple[str, int], Any]:
    """Run the program; `inputs[name]` is a list of scalars. Returns {(output, flat index): scalar}; absent means zero."""
    if getattr(tree, "freed", None) is not None:  # once: stages run on the tree with its numbers
        if PARAMETERS not in inputs:
            cause = f"{program.name}: numbers of {tree.model.name} are inputs, and this does not take them"
            raise StateError(cause, "light.baked(parameters) is a robot with these numbers in it")
        tree = tree.at(inputs[PARAMETERS])
    run = under(program, tree, inputs)
    if program.stages:
        return _staged(run, under)
    bodies = list(program.bodies if program.bodies is not None else range(len(tree.links)))
    # The world first: what it keeps is what roots see of their parent. Then sweep by sweep; inboxes live for one sweep, what
    # bodies have kept for all of them. Last the world again, which reads what the roots of the last sweep sent.
    world = run.site(WORLD, {})
    program.world(world)
    inbox: dict[int, dict] = {}
    for sweep in program.sweeps:
        inbox = _sweep(run, sweep, bodies)
    if program.finish is not None:
        last = run.site(WORLD, inbox)
        program.finish(last)
        run.collect(last)
    return run.outputs


def _staged(run: ProgramRun, under: MakeRun) -> dict[tuple[str, int], Any]:
    """ProgramStage by stage, on the places they fill; each a run of its own."""
    # Sweeps of a stage see nothing of another's records: stages meet in places alone, lists of scalars by name.
    places: dict[str, Any] = dict(run.inputs)
    for stage in run.program.stages:
        if not isinstance(stage.what, Program):
            places |= stage.what(places)
            continue
        names = [arg.name for arg in stage.what.inputs] + [ADDED]
        read = {
            name: places[place] for name in names if (place := stage.at.get(name, name)) in places
        }
        written = run.stage(stage.what, {**read, **stage.given}, under)
        for arg in stage.what.outputs:
            places[stage.at.get(arg.name, arg.name)] = [
                written.get((arg.name, i), 0.0) for i in range(arg.size)
            ]
    return {
        (arg.name, i): x
        for arg in run.program.outputs
        for i, x in zip(range(arg.size), places[arg.name], strict=True)
    }


def _sweep(run: ProgramRun, sweep: Sweep, bodies: list[int]) -> dict[int, dict]:
    """One pass; returns the inboxes (the world's is what the roots sent)."""
    inbox: dict[int, dict] = {}
    outward, run.direction = sweep.direction is BASE_TO_TIP, sweep.direction
    # Bodies are numbered parents first: upwards is base to tip, downwards tip to base.
    for k in bodies if outward else reversed(bodies):
        site = run.site(k, inbox)
        sweep.step(site)
        run.collect(site)
        # Children add up in the parent's inbox, sum_c phi(p, c) z(c): the parent sees the sum and not who sent what.
        above = run.parent(k)
        box, seat = inbox.setdefault(above, {}), None if above == WORLD else seat_of(run.tree, k)
        for name, value in site.sent.items():
            box[name] = merge(box.get(name), value if seat is None else put(value, *seat))
    return inbox


@dataclass(frozen=True)
class StraightCode:
    """A tape and where its results go: `stores` are (output number, flat index, node). `tree`: over which it was unrolled."""

    program: Program
    tape: Tape
    stores: tuple[tuple[int, int, int], ...]
    tree: Any = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def ends(self) -> list[int]:
        """The nodes that are stored."""
        return [node for *_, node in self.stores]

    @property
    def live(self) -> list[int]:
        """The nodes that these depend on, in order."""
        return self.tape.live(self.ends)

    def rows(self, values: Iterable[Any]) -> list[list[Any]]:
        """The values of `ends`, result by result; zero where nothing is stored."""
        found: list[list[Any]] = [[0.0] * arg.size for arg in self.program.outputs]
        for (number, index, _), value in zip(self.stores, values, strict=True):
            found[number][index] = value
        return found

    @property
    def count(self) -> Count:
        return self.tape.count(self.ends)


def unroll(
    program: Program, tree: Any, under: MakeRun = ProgramRun, tape: Tape | None = None
) -> StraightCode:
    """The whole program as one tape (`tape`, where numbers of the tree stand on one); outputs no step wrote are zero."""
    # the loop over the tree runs once, on leaves: what it adds and multiplies is left on the tape, in that order
    sizes = {arg.name: arg.size for arg in program.inputs}
    tape = Tape() if tape is None else tape
    inputs = {
        name: [tape.leaf(str(i), j) for j in range(size)]
        for i, (name, size) in enumerate(sizes.items())
    }
    written = drive(program, tree, inputs, under)
    # outputs row by row, as they stand in memory
    stores = tuple(
        (number, index, tape.operand(written.get((arg.name, index), 0.0)))
        for number, arg in enumerate(program.outputs)
        for index in range(arg.size)
    )
    return StraightCode(program, tape, stores, tree=tree)
