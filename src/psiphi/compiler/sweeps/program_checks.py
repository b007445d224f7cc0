"""Checks of programs: a run that checks every step. Tests compile with it; it costs one check per
value.

outward     a step reads the record of its parent and sends nothing
inward      a step reads the messages of its children
results     a step writes only entries of the outputs, each at most once
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, BodyView, Program
from psiphi.compiler.sweeps.tree_loop import ProgramRun
from psiphi.compiler.tape.tape_checks import check_tape
from psiphi.model.model import WORLD


class IllegalProgram(AssertionError):
    """A step breaks the rules of its sweep: an internal error in psiphi."""


class _Unreadable(dict):
    """A record or inbox that a step must not read."""

    def __init__(self, owner: str, program: str):
        super().__init__()
        self.owner, self.program = owner, program

    def __getitem__(self, key: object) -> NoReturn:
        raise IllegalProgram(
            f"{self.program}: a step reads {key!r} of its {self.owner}, "
            "which it cannot read in a sweep of this direction"
        )

    def get(self, key: object, default: object = None) -> object:
        return self[key]

    def __contains__(self, key: object) -> bool:
        return self[key]


@dataclass
class CheckedRun(ProgramRun):
    """A run that raises `IllegalProgram` where a step breaks the rules."""

    places: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_arguments(self.program)
        self.places = {arg.name: arg.size for arg in self.program.outputs}

    def body_view(self, k: int, inbox: dict[int, dict]) -> BodyView:
        body = super().body_view(k, inbox)
        # outward, a step reads the parent only; inward, the children only
        if k != WORLD and self.direction is not None:
            outward = self.direction is BASE_TO_TIP
            body.parent = body.parent if outward else _Unreadable("parent", self.program.name)
            body.children = _Unreadable("children", self.program.name) if outward else body.children
        return body

    def collect(self, body: BodyView) -> None:
        # outward there is no inbox: children read the record of their parent
        if body.link is not None and body.sent and self.direction is BASE_TO_TIP:
            raise IllegalProgram(
                f"{self.program.name}: an outward step sends {', '.join(map(str, body.sent))}"
            )
        # in a loop, two bodies that write one entry would be a race
        for name, index, _ in body.written:
            if not 0 <= index < self.places.get(name, 0):
                raise IllegalProgram(
                    f"{self.program.name}: {name}[{index}] is not an entry of its outputs"
                )
            if (name, index) in self.outputs:
                raise IllegalProgram(f"{self.program.name}: {name}[{index}] is written twice")
        super().collect(body)


def check_arguments(program: Program) -> None:
    """Check that arguments have unique names and that the bodies of `body_data` are swept."""
    names = [arg.name for arg in program.inputs]
    outputs = [arg.name for arg in program.outputs]
    if len(set(names)) < len(names) or len(set(outputs)) < len(outputs):
        raise IllegalProgram(f"{program.name}: arguments share a name: {names} -> {outputs}")
    # data that no step reads would be a frame or load that is ignored
    if program.bodies is not None and not set(program.body_data) <= set(program.bodies) | {WORLD}:
        raise IllegalProgram(f"{program.name}: body_data has a body that no sweep visits")


def check_loops(loops: LinkLoops) -> None:
    """Check the tapes of loops. Each leaf is a number of the link, an entry of the arguments, or a
    slot of the record of the body or its parent, or of the inbox."""
    program, tree = loops.program, loops.tree
    classes = [c for stage in loops.sweeps for c in stage.classes] + (
        [loops.finish] if loops.finish else []
    )
    joints = [
        part.stop - part.start for k in range(len(tree.links)) for part in tree.slices(k).values()
    ]
    # the sizes of all memories that a leaf can be in
    record = max((c.record_slots for c in classes), default=0)
    places = {"frame": sum(arg.size for arg in (*program.inputs, *program.outputs))}
    places |= {"inbox": max((c.inbox_slots for c in classes), default=0)}
    places |= {
        "here": record,
        "parent": record,
        "param": max((len(link.numbers()) for link in tree.links), default=0),
    }
    places |= {f"in{i}": max(joints, default=0) for i in range(len(program.inputs))}
    # after the removal of dead stores, loads stay within the smaller record and inbox
    remaining = places | {
        "here": loops.record_size,
        "parent": loops.record_size,
        "inbox": loops.inbox_size,
    }
    for c in classes:
        check_tape(c.tape, c.outputs, places)
        if not all(0 <= slot < remaining[place] for place, slot in c.loads.values()):
            raise IllegalProgram(f"{program.name}: a step reads a slot that does not exist")
