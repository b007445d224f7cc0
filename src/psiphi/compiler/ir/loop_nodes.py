"""Programs of several blocks: one step, a loop over steps, and blocks that repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.tape.tape import Count


@dataclass(frozen=True)
class Repeat:
    """Blocks that not every step needs: `look`; where the place `when` is not 0 in some lane also `before`, then `again` until
    the place `done` is 1 in all lanes, at most `most` times, then `after`, if there is one."""

    name: str
    look: str
    when: str
    before: tuple[str, ...]
    again: str
    done: str
    most: int
    after: str = ""

    @property
    def blocks(self) -> tuple[str, ...]:
        return (self.look, *self.before, self.again, *filter(None, [self.after]))


@dataclass(frozen=True)
class Rollout:
    """A rollout: the blocks of one step in order, and the places that are packed once, every step, and stored as a sample."""

    frame: BlockFrame
    order: tuple[str, ...]
    once: tuple[str, ...]
    each: tuple[str, ...]
    sample: tuple[str, ...]
    repeats: tuple[Repeat, ...] = ()
    where: Mapping[str, str] = field(
        default_factory=dict
    )  # blocks that run only where a place is not 0 in some lane
    first: tuple[str, ...] = ("start",)  # blocks that run once, before the first step
    starts: bool = False  # whether the first sample is where it began (on cards)


@dataclass(frozen=True)
class SingleStep:
    """One step of a rollout as a function: arguments by their places, and the blocks in order."""

    frame: BlockFrame
    order: tuple[str, ...]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @property
    def count(self) -> Count:
        return sum((self.frame.named[name][0].count for name in self.order), Count())
