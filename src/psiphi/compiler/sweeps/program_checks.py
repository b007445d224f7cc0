"""What a program may do: a run that watches every step. Tests compile with it; it costs one look at each value.

outward     a step reads what its parent kept, and sends nothing
inward      a step reads what its children sent
results     every place of every output is written at most once, and no other
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, BodyView, Program
from psiphi.compiler.sweeps.tree_loop import ProgramRun
from psiphi.compiler.tape.tape_checks import check_tape
from psiphi.model.model import WORLD


class IllegalProgram(AssertionError):
    """A step that breaks the rules of its sweep: a mistake of psiphi's own."""


class _Unseen(dict):
    """What a step must not look at."""

    def __init__(self, whose: str, program: str):
        super().__init__()
        self.whose, self.program = whose, program

    def __getitem__(self, key: Any) -> Any:
        raise IllegalProgram(
            f"{self.program}: a step reads {key!r} of its {self.whose}, which its sweep does not bring"
        )

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key]

    def __contains__(self, key: object) -> bool:
        return self[key]


@dataclass
class CheckedRun(ProgramRun):
    """A run that refuses what the language of sweeps does not say."""

    places: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_arguments(self.program)
        self.places = {arg.name: arg.size for arg in self.program.outputs}

    def site(self, k: int, inbox: dict[int, dict]) -> BodyView:
        site = super().site(k, inbox)
        # outward a body hears its parent and nobody else, inward its children: what came the other way is not to be read
        if k != WORLD and self.direction is not None:
            outward = self.direction is BASE_TO_TIP
            site.parent = site.parent if outward else _Unseen("parent", self.program.name)
            site.children = _Unseen("children", self.program.name) if outward else site.children
        return site

    def collect(self, site: BodyView) -> None:
        # outward there is no inbox to send to: children read what their parent keeps
        if site.link is not None and site.sent and self.direction is BASE_TO_TIP:
            raise IllegalProgram(
                f"{self.program.name}: an outward step sends {', '.join(map(str, site.sent))}"
            )
        # two bodies that write one place would be a race in a loop
        for name, index, _ in site.written:
            if not 0 <= index < self.places.get(name, 0):
                raise IllegalProgram(
                    f"{self.program.name}: {name}[{index}] is no place of its outputs"
                )
            if (name, index) in self.outputs:
                raise IllegalProgram(f"{self.program.name}: {name}[{index}] is written twice")
        super().collect(site)


def check_arguments(program: Program) -> None:
    """Inputs and outputs have names of their own, and marks stand on bodies that the sweeps visit."""
    names = [arg.name for arg in program.inputs]
    outputs = [arg.name for arg in program.outputs]
    if len(set(names)) < len(names) or len(set(outputs)) < len(outputs):
        raise IllegalProgram(f"{program.name}: arguments share a name: {names} -> {outputs}")
    # a mark that no step sees is a frame or a load forgotten
    if program.bodies is not None and not set(program.marks) <= set(program.bodies) | {WORLD}:
        raise IllegalProgram(f"{program.name}: a mark stands on a body that no sweep visits")


def check_loops(loops: LinkLoops) -> None:
    """Tapes of loops read a link's numbers, whole arguments, the joint's own, records of the body and its parent, the inbox."""
    program, tree = loops.program, loops.tree
    classes = [c for stage in loops.stages for c in stage.classes] + (
        [loops.finish] if loops.finish else []
    )
    joints = [
        part.stop - part.start for k in range(len(tree.links)) for part in tree.slices(k).values()
    ]
    # every leaf of a traced step is a place in one of these: the frame, the body's record, its parent's, the inbox, the table
    record = max((c.slots for c in classes), default=0)
    places = {"frame": sum(arg.size for arg in (*program.inputs, *program.outputs))}
    places |= {"inbox": max((c.messages for c in classes), default=0)}
    places |= {
        "here": record,
        "parent": record,
        "param": max((len(link.numbers()) for link in tree.links), default=0),
    }
    places |= {f"in{i}": max(joints, default=0) for i in range(len(program.inputs))}
    # and once those are gone that nobody reads, what is read has its place
    left = places | {"here": loops.record, "parent": loops.record, "inbox": loops.inbox}
    for c in classes:
        check_tape(c.tape, c.outputs, places)
        if not all(0 <= slot < left[place] for place, slot in c.given.values()):
            raise IllegalProgram(f"{program.name}: a step reads what has no place")
