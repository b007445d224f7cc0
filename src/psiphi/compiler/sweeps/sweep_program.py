"""The language of sweeps: what a program over the tree may say.

    Sweep(BASE_TO_TIP, step)    step(site) sees what the parent kept
    Sweep(TIP_TO_BASE, step)    step(site) sees the sum of what the children sent
    ProgramStage(name, what)           sweeps of their own, or dense algebra, on what the stages before them made

A step is local: it reads its `BodyView` (the link's numbers, the joint's inputs, what was kept here before, the parent or the
children) and keeps, sends or writes values. Values are lists of scalars, `Inertia`s, or anything with `+`. The same step
runs on floats (`interpreter.py`), on a tape (`tree_loop.py`) and once per class of links (`link_loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from psiphi.model.spatial.screws import add


class Direction(Enum):
    """Which way a sweep runs over the tree."""

    BASE_TO_TIP = "base to tip"
    TIP_TO_BASE = "tip to base"


BASE_TO_TIP, TIP_TO_BASE = Direction.BASE_TO_TIP, Direction.TIP_TO_BASE
PARAMETERS = "parameters"  # the input (n,) of programs of a tree some of whose numbers are inputs
ADDED = "added"  # the input (nv,) that stands beside the rotors' inertia, in programs that have it


@dataclass(frozen=True)
class Sweep:
    """One pass over the tree."""

    direction: Direction
    step: Callable[[BodyView], None]


@dataclass(frozen=True)
class Argument:
    """An input or output array: its core shape, and the slice of its last axis that belongs to a body: "q" or "v" of its joint,
    or another that its tree knows; "" where there is none."""

    name: str
    shape: tuple[int, ...]
    per_joint: str = ""

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size


@dataclass(frozen=True)
class ProgramStage:
    """One of several stages, which leave named values in places, the program's inputs being the first of them.

    `what` is a program, whose inputs are read from places and whose outputs become places (as `at` names them, {own: place};
    `given` are inputs with values of their own); or a rule on the places, rule(places) -> new places: small dense algebra.
    """

    name: str
    what: Program | Callable[[dict[str, Any]], dict[str, Any]]
    at: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, list] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Sweeps in order, over `bodies` (all when None); `finish` runs last at the world, on what the roots sent. Or `stages` in
    order, each such a program: the places named as the outputs are the result."""

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    sweeps: tuple[Sweep, ...]
    world: Callable[[BodyView], None] = lambda site: None
    finish: Callable[[BodyView], None] | None = None
    bodies: Sequence[int] | None = None
    local: bool = (
        True  # every message has a fixed size: the sweeps can run as loops (link_loops.py)
    )
    marks: Mapping[int, Any] = field(
        default_factory=dict
    )  # what the steps must know of single bodies (frames, loads)
    stages: tuple[ProgramStage, ...] = ()

    def read(
        self,
        outputs: tuple[Argument, ...],
        rule: Callable[[dict[tuple[str, int], Any]], dict[str, list]],
    ) -> Program:
        """The same sweeps for what a rule reads off their results: off those that a step writes, or the world."""

        # the results stand nowhere: what the rule does not read of them is dead on the tape, and in the sweeps before it
        def reading(step: Callable[[BodyView], None]) -> Callable[[BodyView], None]:
            def read(site: BodyView) -> None:
                step(here := site.unwritten())
                found = here.found
                for name, values in rule(found).items() if found or site.link is None else ():
                    site.write(name, 0, values)

            return read

        sweeps = tuple(Sweep(sweep.direction, reading(sweep.step)) for sweep in self.sweeps)
        return replace(
            self, outputs=outputs, sweeps=sweeps, finish=self.finish and reading(self.finish)
        )


@dataclass
class BodyView:
    """Where a step stands: one body of the tree, or the world (link None)."""

    link: Any  # Link, or None at the world
    inputs: dict[str, Any]  # whole inputs; `of` gives the joint's own part
    kept: dict[Any, Any] = field(default_factory=dict)
    parent: Mapping[Any, Any] = field(default_factory=dict)
    children: dict[Any, Any] = field(default_factory=dict)
    sent: dict[Any, Any] = field(default_factory=dict)
    written: list[tuple[str, int, Any]] = field(default_factory=list)
    slices: dict[str, slice] = field(default_factory=dict)
    mark: Any = ()  # the program's mark on this body
    nv: int = 0  # the whole model's velocity coordinates
    world: dict[Any, Any] = field(
        default_factory=dict
    )  # what the world keeps; whole when a sweep has ended
    gauge: Any = (
        None  # the working axes' pose in the public link frame; None: they are the public ones
    )
    at_root: bool = False  # whether the parent is the world; steps that run as loops do not know

    # What a step reads: inputs, by joint or by body

    def of(self, name: str) -> list:
        """The joint's own part of an input; zeros when the program has no such input."""
        values = self.inputs.get(name)
        own = self.slices["q" if name == "q" else "v"]
        return [0.0] * (own.stop - own.start) if values is None else values[own]

    def part(self, name: str, place: str) -> list:
        """The body's own part of an input, where the tree says its `place` is ("q", "v", "x", ...)."""
        return self.inputs[name][self.slices[place]]

    def link_part(self, name: str) -> list:
        """The body's own part of an input over links."""
        return self.part(name, "x")

    @property
    def is_cluster(self) -> bool:
        """Whether several bodies stand here, whose joints move together (`compiler/axes/cluster_axes.py`)."""
        return hasattr(self.link, "laws")

    @property
    def bodies(self) -> tuple:
        """The bodies that stand here: the link, or those of a cluster."""
        return self.link.parts if self.is_cluster else (self.link,)

    def handed(self, step: Callable, values: list) -> Any:
        """What the parent gets of the bodies' values: step(path, value), summed; from body to body within a cluster."""
        return self.path[0].inward(step, values) if self.is_cluster else step(self.path, values[0])

    # What it leaves: for its children and for later sweeps, for its parent, and as results

    def keep(self, **values) -> None:
        """Remember values at this body, for its children and for later sweeps."""
        self.kept.update(values)

    def send(self, **values) -> None:
        """Add values to what the parent sees as `children`."""
        self.sent.update(values)

    def write(self, name: str, start: int, values) -> None:
        """Put scalars into the flat output `name` from index `start` on."""
        self.written.extend((name, start + i, value) for i, value in enumerate(values))

    def unwritten(self) -> BodyView:
        """The same place, where nothing is written yet."""
        return replace(self, written=[])

    @property
    def found(self) -> dict[tuple[str, int], Any]:
        """What was written here, by output and flat index."""
        return {(name, index): value for name, index, value in self.written}

    def write_joint(self, name: str, values, offset: int = 0) -> None:
        """Put the joint's own part of an output vector, or of the matrix row that starts at `offset`."""
        self.write(name, offset + self.slices["v"].start, values)

    def write_part(self, name: str, place: str, values) -> None:
        """Put the body's own part of an output."""
        self.write(name, self.slices[place].start, values)

    def write_link(self, name: str, values) -> None:
        """Put the body's own part of an output over links."""
        self.write_part(name, "x", values)

    @cached_property
    def path(self) -> list:
        """The displacement parent -> body."""
        return self.link.path(self.of("q"))

    @property
    def rotor(self) -> list:
        """The joint's rotor inertia, and what the program's input `added` adds to it: h B of joints that are braked.

        One number a degree of freedom; rows of a matrix where joints move together."""
        added = self.of(ADDED)
        if not self.is_cluster:
            return [J + x for J, x in zip(self.link.armature, added, strict=True)]
        return [
            [J + x if i == j else J for j, J in enumerate(row)]
            for i, (row, x) in enumerate(zip(self.link.rotor(self.of("q")), added, strict=True))
        ]

    @cached_property
    def H(self) -> list:
        """The joint map, one row a degree of freedom."""
        return self.link.H(self.of("q"))


class ColumnMessage(dict):
    """What climbs, {coordinate: value}: a message of which different children have different parts."""

    def __add__(self, other: ColumnMessage) -> ColumnMessage:
        return ColumnMessage({**self, **other})


def merge(a, b):
    """The sum of two messages; None is nothing."""
    if a is None:
        return b
    if type(a) is list:
        return add(a, b)
    return a + b
