"""The language of sweeps: what a program over the tree can contain.

    Sweep(BASE_TO_TIP, step)         step(body) reads the record of the parent
    Sweep(TIP_TO_BASE, step)         step(body) reads the sum of the children's messages
    ProgramStage(name, operation)    a program or dense algebra on the results of earlier stages

A step is local: it reads its `BodyView` (the numbers of the link, the inputs of the joint, the
record of the body, the parent or the children) and stores, sends or writes values. Values are lists
of scalars, `Inertia`s, or anything with `+`. The same step runs on floats (`interpreter.py`), on a
tape (`tree_loop.py`) and once per class of links (`link_loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial.screws import add


class Direction(Enum):
    """The direction of a sweep over the tree."""

    BASE_TO_TIP = "base to tip"
    TIP_TO_BASE = "tip to base"


BASE_TO_TIP, TIP_TO_BASE = Direction.BASE_TO_TIP, Direction.TIP_TO_BASE
PARAMETERS = "parameters"  # the input (n,) with the free parameters of the model
ADDED_INERTIA = "added"  # the input (nv,) that is added to the rotor inertia


class SweepTree(Protocol):
    """What sweeps read of a tree: its links, their parents, and the slices of arrays by body."""

    @property
    def links(self) -> Any: ...  # a sequence of links
    @property
    def parent(self) -> Sequence[int]: ...
    @property
    def gauge(self) -> Sequence[Any]: ...
    @property
    def nv(self) -> int: ...
    @property
    def gravity(self) -> Sequence[AnyScalar]: ...
    def slices(self, k: int) -> dict[str, slice]: ...


@dataclass(frozen=True)
class Sweep:
    """One pass over the tree."""

    direction: Direction
    step: Callable[[BodyView], None]


@dataclass(frozen=True)
class Argument:
    """An input or output array. `shape` is its core shape. `per_joint` names the slice of the last
    axis that belongs to a body: "q" or "v" for its joint, or another slice of the tree; "" for
    none.
    """

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
    """One stage of a program. Stages read and write named values, the places; the first places are
    the inputs of the program.

    `operation` is a program or a rule. The inputs of a program are read from places, and its
    outputs become places. `places` renames them, {name in the program: place}; `constants` are
    inputs with fixed values. A rule(places) returns new places; it contains small dense algebra.
    """

    name: str
    operation: Program | Callable[[dict[str, Any]], dict[str, Any]]
    places: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, list] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Sweeps in order, over `bodies` (default: all). `finish` runs last, at the world, on the
    messages of the roots. A program with `stages` has no sweeps of its own: it runs the stages in
    order, and the places with the names of the outputs are the results.
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    sweeps: tuple[Sweep, ...]
    world: Callable[[BodyView], None] = lambda body: None
    finish: Callable[[BodyView], None] | None = None
    bodies: Sequence[int] | None = None
    # every message has a fixed size, so that the sweeps can run as loops (link_loops.py)
    can_loop: bool = True
    # data of single bodies that the steps read (frames, loads)
    body_data: Mapping[int, Any] = field(default_factory=dict)
    stages: tuple[ProgramStage, ...] = ()

    def map_outputs(
        self,
        outputs: tuple[Argument, ...],
        rule: Callable[[dict[tuple[str, int], Any]], dict[str, list]],
    ) -> Program:
        """The same sweeps with other outputs: rule({(output, flat index): value}) returns them.

        The rule runs wherever values are written: in the steps that write outputs, and at the
        world.
        """

        # outputs that the rule does not read are dead code
        def mapped(step: Callable[[BodyView], None]) -> Callable[[BodyView], None]:
            def mapped_step(body: BodyView) -> None:
                step(inner := body.without_outputs())
                written = inner.outputs
                for name, values in rule(written).items() if written or body.link is None else ():
                    body.write(name, 0, values)

            return mapped_step

        sweeps = tuple(Sweep(sweep.direction, mapped(sweep.step)) for sweep in self.sweeps)
        return replace(
            self, outputs=outputs, sweeps=sweeps, finish=self.finish and mapped(self.finish)
        )


@dataclass
class BodyView:
    """One body of the tree (or the world: `link` is None) as a step sees it."""

    link: Any  # a Link or ClusterLink; None at the world
    inputs: dict[str, Any]  # complete inputs; `joint_input` returns the part of the joint
    record: dict[Any, Any] = field(default_factory=dict)
    parent: Mapping[Any, Any] = field(default_factory=dict)
    children: dict[Any, Any] = field(default_factory=dict)
    sent: dict[Any, Any] = field(default_factory=dict)
    written: list[tuple[str, int, Any]] = field(default_factory=list)
    slices: dict[str, slice] = field(default_factory=dict)
    data: Any = ()  # the program's `body_data` of this body
    nv: int = 0  # velocity coordinates of the whole model
    # the record of the world; complete when a sweep has ended
    world: dict[Any, Any] = field(default_factory=dict)
    # the pose of the working axes in the public link frame; None: they are the public axes
    gauge: Any = None
    # whether the parent is the world; always False in steps that run as loops
    at_root: bool = False

    # -- reading: inputs by joint or by body --

    def joint_input(self, name: str) -> list:
        """The part of an input that belongs to the joint; zeros if there is no such input."""
        values = self.inputs.get(name)
        own = self.slices["q" if name == "q" else "v"]
        return [0.0] * (own.stop - own.start) if values is None else values[own]

    def input_slice(self, name: str, place: str) -> list:
        """The part of an input that belongs to the body; `place` is a slice of the tree ("q", "v",
        "x").
        """
        return self.inputs[name][self.slices[place]]

    def link_input(self, name: str) -> list:
        """The part of an input over links that belongs to the body."""
        return self.input_slice(name, "x")

    @property
    def is_cluster(self) -> bool:
        """Whether this is a cluster: several bodies whose joints move together
        (`compiler/axes/cluster_axes.py`).
        """
        return hasattr(self.link, "kinematics")

    @property
    def links(self) -> tuple:
        """The link, or the links of a cluster."""
        return self.link.parts if self.is_cluster else (self.link,)

    def to_parent(self, step: Callable, values: list) -> Any:
        """The message to the parent, the sum of step(path, value) over the links. In a cluster,
        messages pass from link to link.
        """
        return (
            self.path[0].tip_to_base(step, values)
            if self.is_cluster
            else step(self.path, values[0])
        )

    # -- storing, sending, writing --

    def store(self, **values: object) -> None:
        """Store values in the record of this body, for its children and for later sweeps."""
        self.record.update(values)

    def send(self, **values: object) -> None:
        """Send values to the parent, which reads their sum over its children as `children`."""
        self.sent.update(values)

    def write(self, name: str, start: int, values: Sequence[object]) -> None:
        """Write scalars to the flat output `name`, from index `start` on."""
        self.written.extend((name, start + i, value) for i, value in enumerate(values))

    def without_outputs(self) -> BodyView:
        """The same view without outputs."""
        return replace(self, written=[])

    @property
    def outputs(self) -> dict[tuple[str, int], Any]:
        """The values written here, {(output, flat index): value}."""
        return {(name, index): value for name, index, value in self.written}

    def write_joint(self, name: str, values: Sequence[object], offset: int = 0) -> None:
        """Write the joint's part of an output vector, or of the matrix row starting at `offset`."""
        self.write(name, offset + self.slices["v"].start, values)

    def write_part(self, name: str, place: str, values: Sequence[object]) -> None:
        """Write the body's part of an output; `place` is a slice of the tree."""
        self.write(name, self.slices[place].start, values)

    def write_link(self, name: str, values: Sequence[object]) -> None:
        """Write the body's part of an output over links."""
        self.write_part(name, "x", values)

    @cached_property
    def path(self) -> list:
        """The displacement from the parent to the body."""
        return self.link.path(self.joint_input("q"))

    @property
    def rotor(self) -> list:
        """The rotor inertia of the joint plus the program's input `added`, h B for damped joints.

        One number per degree of freedom; the rows of a matrix if joints move together.
        """
        added = self.joint_input(ADDED_INERTIA)
        if not self.is_cluster:
            return [J + x for J, x in zip(self.link.armature, added, strict=True)]
        return [
            [J + x if i == j else J for j, J in enumerate(row)]
            for i, (row, x) in enumerate(
                zip(self.link.rotor_inertia(self.joint_input("q")), added, strict=True)
            )
        ]

    @cached_property
    def H(self) -> list:
        """The joint map, one row per degree of freedom."""
        return self.link.H(self.joint_input("q"))


class ColumnMessage(dict):
    """Columns on their way to the base, {coordinate: value}; children send different ones."""

    def __add__(self, other: ColumnMessage) -> ColumnMessage:
        return ColumnMessage({**self, **other})


def add_messages(a: Any, b: Any) -> Any:
    """The sum of two messages; None is the empty message."""
    if a is None:
        return b
    if type(a) is list:
        return add(a, b)
    return a + b
