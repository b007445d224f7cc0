"""The loop over the tree: the only one. It runs the steps of a program in order and carries their
messages.

On a tape it makes straight-line code for this robot (`trace_tape`). Small robots are compiled this
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.sweeps.sweep_program import (
    ADDED_INERTIA,
    BASE_TO_TIP,
    PARAMETERS,
    BodyView,
    Direction,
    Program,
    Sweep,
    SweepTree,
    add_messages,
)
from psiphi.compiler.tape.tape import Count, Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.model import WORLD
from psiphi.model.spatial.body_stacks import extract_body, insert_body


@dataclass
class ProgramRun:
    """A run of a program on one tree: the record of each body (and of the world), and the outputs
    written so far."""

    program: Program
    tree: SweepTree
    inputs: Mapping[str, Any]
    records: dict[int, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[tuple[str, int], Any] = field(default_factory=dict)
    direction: Direction | None = None  # of the current sweep

    def parent(self, k: int) -> int:
        """The parent of body k; the world if the parent is not swept."""
        parent, bodies = self.tree.parent[k], self.program.bodies
        return parent if bodies is None or parent in bodies else WORLD

    def body_view(self, k: int, inbox: dict[int, dict]) -> BodyView:
        world = self.records.setdefault(WORLD, {})
        if k == WORLD:
            return BodyView(
                None, dict(self.inputs), world, children=inbox.get(WORLD, {}), world=world
            )
        return BodyView(
            self.tree.links[k],
            dict(self.inputs),
            self.records.setdefault(k, {}),
            parent=self._parent_record(k),
            children=inbox.get(k, {}),
            slices=self.tree.slices(k),
            data=self.program.body_data.get(k, ()),
            nv=self.tree.nv,
            world=world,
            gauge=self.tree.gauge[k],
            at_root=self.parent(k) == WORLD,
        )

    def _parent_record(self, k: int) -> Mapping[str, Any]:
        """The record of the parent; if the parent is a cluster, the part of its body that carries
        k."""
        parent = self.parent(k)
        # φ(p, k) starts at the body of the cluster that carries k
        record = self.records.get(parent, {})
        slot = None if parent == WORLD else parent_slot(self.tree, k)
        return record if slot is None else ClusterView(record, *slot)

    def run_stage(
        self, program: Program, inputs: Mapping[str, Any], make_run: MakeRun
    ) -> dict[tuple[str, int], Any]:
        """The outputs of a stage that is a program."""
        return run_program(program, self.tree, inputs, make_run)

    def collect(self, body: BodyView) -> None:
        self.outputs.update(((name, index), value) for name, index, value in body.written)


MakeRun = Callable[[Program, SweepTree, Mapping[str, Any]], ProgramRun]


def parent_slot(tree: SweepTree, k: int) -> tuple[int, int] | None:
    """If the parent of link k is a cluster: the index of its body that carries k, and its number of
    bodies."""
    return tree.parent_slot(k) if isinstance(tree, Tree) else None


class ClusterView(Mapping):
    """The record of a cluster as the links see it that hang on one of its bodies."""

    def __init__(self, record: Mapping[str, Any], index: int, count: int):
        self.record, self.index, self.count = record, index, count

    def __getitem__(self, name: str) -> Any:
        return extract_body(self.record[name], self.index, self.count)

    def __iter__(self) -> Iterator[str]:
        return iter(self.record)

    def __len__(self) -> int:
        return len(self.record)


def run_program(
    program: Program,
    tree: SweepTree,
    inputs: Mapping[str, Any],
    make_run: MakeRun = ProgramRun,
) -> dict[tuple[str, int], Any]:
    """Run the program. `inputs[name]` is a list of scalars. Returns {(output, flat index): scalar};
    missing entries are zero."""
    # free parameters are set once: stages run on the tree that has them
    if isinstance(tree, Tree) and tree.freed is not None:
        if PARAMETERS not in inputs:
            cause = f"{program.name} does not take the free parameters of {tree.model.name}"
            raise StateError(cause, "fix them first: robot.baked(parameters)")
        tree = tree.with_parameters(inputs[PARAMETERS])
    run = make_run(program, tree, inputs)
    if program.stages:
        return _run_stages(run, make_run)
    bodies = list(program.bodies if program.bodies is not None else range(len(tree.links)))
    # The world runs first: roots read its record as that of their parent. Then the sweeps run in
    # order. Inboxes live for one sweep, records for all sweeps. The world runs last again and reads
    # the messages of the roots.
    world = run.body_view(WORLD, {})
    program.world(world)
    inbox: dict[int, dict] = {}
    for sweep in program.sweeps:
        inbox = _run_sweep(run, sweep, bodies)
    if program.finish is not None:
        last = run.body_view(WORLD, inbox)
        program.finish(last)
        run.collect(last)
    return run.outputs


def _run_stages(run: ProgramRun, make_run: MakeRun) -> dict[tuple[str, int], Any]:
    """Run the stages in order; each one reads and fills places."""
    # stages share places only, lists of scalars by name; records stay within a stage
    places: dict[str, Any] = dict(run.inputs)
    for stage in run.program.stages:
        if not isinstance(stage.operation, Program):
            places |= stage.operation(places)
            continue
        names = [arg.name for arg in stage.operation.inputs] + [ADDED_INERTIA]
        read = {
            name: places[place]
            for name in names
            if (place := stage.places.get(name, name)) in places
        }
        written = run.run_stage(stage.operation, {**read, **stage.constants}, make_run)
        for arg in stage.operation.outputs:
            places[stage.places.get(arg.name, arg.name)] = [
                written.get((arg.name, i), 0.0) for i in range(arg.size)
            ]
    return {
        (arg.name, i): x
        for arg in run.program.outputs
        for i, x in zip(range(arg.size), places[arg.name], strict=True)
    }


def _run_sweep(run: ProgramRun, sweep: Sweep, bodies: list[int]) -> dict[int, dict]:
    """Run one sweep; returns the inboxes (the world's has the messages of the roots)."""
    inbox: dict[int, dict] = {}
    outward, run.direction = sweep.direction is BASE_TO_TIP, sweep.direction
    # bodies are numbered parents first: ascending is base to tip, descending tip to base
    for k in bodies if outward else reversed(bodies):
        body = run.body_view(k, inbox)
        sweep.step(body)
        run.collect(body)
        # the inbox of the parent has the sum of its children's messages, sum_c phi(p, c) z(c)
        parent = run.parent(k)
        box = inbox.setdefault(parent, {})
        slot = None if parent == WORLD else parent_slot(run.tree, k)
        for name, value in body.sent.items():
            message = value if slot is None else insert_body(value, *slot)
            box[name] = add_messages(box.get(name), message)
    return inbox


@dataclass(frozen=True)
class StraightCode:
    """A tape and where its results go.

    `stores` are (output number, flat index, node); `tree` is the tree that was traced.
    """

    program: Program
    tape: Tape
    stores: tuple[tuple[int, int, int], ...]
    tree: SweepTree | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def output_nodes(self) -> list[int]:
        """The nodes that are stored."""
        return [node for *_, node in self.stores]

    @property
    def live(self) -> list[int]:
        """The nodes that the outputs depend on, in order."""
        return self.tape.live(self.output_nodes)

    def by_output(self, values: Iterable[Any]) -> list[list[Any]]:
        """The values of `output_nodes` as one list per output; zero where nothing is stored."""
        found: list[list[Any]] = [[0.0] * arg.size for arg in self.program.outputs]
        for (number, index, _), value in zip(self.stores, values, strict=True):
            found[number][index] = value
        return found

    @property
    def count(self) -> Count:
        return self.tape.count(self.output_nodes)

    def on(self, **inputs: Sequence[Any] | np.ndarray) -> dict[str, list[Any]]:
        """The outputs for inputs by name: numbers, arrays or expressions of another tape."""
        columns = [inputs.get(arg.name, ()) for arg in self.program.inputs]
        values = evaluate(self.tape, self.output_nodes, lambda space, i: columns[int(space)][i])
        names = (arg.name for arg in self.program.outputs)
        return dict(zip(names, self.by_output(values), strict=True))


def trace_tape(
    program: Program, tree: SweepTree, make_run: MakeRun = ProgramRun, tape: Tape | None = None
) -> StraightCode:
    """The whole program as one tape. Outputs that no step writes are zero. Pass `tape` if numbers
    of the tree are on a tape already."""
    # the loop over the tree runs once on leaves, and the tape records each operation
    sizes = {arg.name: arg.size for arg in program.inputs}
    tape = Tape() if tape is None else tape
    inputs = {
        name: [tape.leaf(str(i), j) for j in range(size)]
        for i, (name, size) in enumerate(sizes.items())
    }
    written = run_program(program, tree, inputs, make_run)
    # outputs in memory order
    stores = tuple(
        (number, index, tape.operand(written.get((arg.name, index), 0.0)))
        for number, arg in enumerate(program.outputs)
        for index in range(arg.size)
    )
    return StraightCode(program, tape, stores, tree=tree)
