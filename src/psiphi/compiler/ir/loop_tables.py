"""Memory of code in loops over links: the tables that loops read, and the layout of their frame."""

from __future__ import annotations

import numpy as np

from psiphi.compiler.ir.segments import FrameLayout
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.model.model import WORLD


def loop_frame(rolled: LinkLoops) -> tuple[FrameLayout, int]:
    """Where the arguments stand in the frame of loops over links, and how many values the frame holds.

    The frame holds the arguments, then a record a body (and one for the world), then an inbox a
    body.
    """
    layout = FrameLayout.of(rolled.program.inputs, rolled.program.outputs)
    return layout, layout.size + (len(rolled.tree.links) + 1) * (rolled.record + rolled.inbox)


def places(rolled: LinkLoops) -> list[str]:
    """The kinds of parts that bodies have of the arguments."""
    arguments = (*rolled.program.inputs, *rolled.program.outputs)
    return sorted({arg.per_joint for arg in arguments} - {""})


class LoopTables:
    """The memory `tables` points to; keep it alive as long as the kernel."""

    def __init__(self, rolled: LinkLoops, dtype: str):
        tree, n = rolled.tree, len(rolled.tree.links)
        columns = [
            [n if parent == WORLD else parent for parent in rolled.parents],
            rolled.param_start,
        ]
        columns += [[tree.slices(k)[place].start for k in range(n)] for place in places(rolled)]
        for stage in rolled.stages:
            columns += [stage.order, stage.ids]
        self.integers = np.concatenate([np.asarray(c, dtype=np.int32) for c in columns])
        self.params = np.ascontiguousarray(rolled.params, dtype=dtype)
        self.pointers = np.array(
            [self.integers.ctypes.data, self.params.ctypes.data], dtype=np.int64
        )

    @property
    def address(self) -> int:
        return self.pointers.ctypes.data
