"""Programs of several blocks: one step, a rollout of many steps, a loop inside a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.tape.tape import Count


@dataclass(frozen=True)
class Repeat:
    """A loop inside a step, which most steps skip.

    Runs `test`. If the value `when` is not 0 in some lane, runs the blocks `before`, then those of
    `body` until the value `done` is 1 in all lanes, at most `limit` times, then `after`, if there
    is one.
    """

    name: str
    test: str
    when: str
    before: tuple[str, ...]
    body: tuple[str, ...]
    done: str
    limit: int
    after: str = ""

    @property
    def blocks(self) -> tuple[str, ...]:
        return (self.test, *self.before, *self.body, *filter(None, [self.after]))


@dataclass(frozen=True)
class Rollout:
    """A loop over steps.

    order             the blocks of one step
    packed_once       arguments that are read before the first step
    packed_per_step   arguments that are read at each step
    sampled           values that are stored as a sample
    conditions        {block: value}: blocks that run only if the value is not 0 in some lane
    prologue          blocks that run once, before the first step
    samples_start     whether the first sample is the initial state (on the GPU)
    sample_sums       values that are 0 again after each sample (on the GPU)
    in_float64        whether the arithmetic is that of float64 for float32 arrays, too (on the GPU)
    """

    frame: BlockFrame
    order: tuple[str, ...]
    packed_once: tuple[str, ...]
    packed_per_step: tuple[str, ...]
    sampled: tuple[str, ...]
    repeats: tuple[Repeat, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    prologue: tuple[str, ...] = ("start",)
    samples_start: bool = False
    sample_sums: tuple[str, ...] = ()
    in_float64: bool = False


@dataclass(frozen=True)
class SingleStep:
    """One step of a rollout as a function: its blocks in order, and its arguments, by their names
    in the frame."""

    frame: BlockFrame
    order: tuple[str, ...]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @property
    def count(self) -> Count:
        return sum((self.frame.named[name][0].count for name in self.order), Count())
