"""The memory of loops over links: the layout of their frame, and the tables that they read."""

from __future__ import annotations

import numpy as np

from psiphi.compiler.ir.segments import FrameLayout
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.model.model import WORLD


def frame_layout(rolled: LinkLoops) -> tuple[FrameLayout, int]:
    """The offsets of the arguments in the frame, and the size of the frame in values.

    The frame contains the arguments, then one record per body and one for the world, then as many
    inboxes.
    """
    layout = FrameLayout.of(rolled.program.inputs, rolled.program.outputs)
    return layout, layout.size + (len(rolled.tree.links) + 1) * (
        rolled.record_size + rolled.inbox_size
    )


def joint_parts(rolled: LinkLoops) -> list[str]:
    """How the arguments are divided among bodies: "q", "v", "x" (`Argument.per_joint`)."""
    arguments = (*rolled.program.inputs, *rolled.program.outputs)
    return sorted({arg.per_joint for arg in arguments} - {""})


class LoopTables:
    """The memory to which a kernel's symbol `tables` points. It must live as long as the kernel."""

    def __init__(self, rolled: LinkLoops, dtype: str):
        tree, n = rolled.tree, len(rolled.tree.links)
        columns = [
            [n if parent == WORLD else parent for parent in rolled.parents],
            rolled.param_start,
        ]
        columns += [
            [tree.slices(k)[place].start for k in range(n)] for place in joint_parts(rolled)
        ]
        for stage in rolled.sweeps:
            columns += [stage.order, stage.class_ids]
        self.integers = np.concatenate([np.asarray(c, dtype=np.int32) for c in columns])
        self.params = np.ascontiguousarray(rolled.params, dtype=dtype)
        self.pointers = np.array(
            [self.integers.ctypes.data, self.params.ctypes.data], dtype=np.int64
        )

    @property
    def address(self) -> int:
        return self.pointers.ctypes.data
