"""A changed description as a robot again: built and checked, with the shapes, loops and gears that still have their places.

Loops that were embedded are embedded again (`embedding/origin.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi.model.builder import Builder
from psiphi.model.log import warn
from psiphi.model.shapes import Shape


@dataclass(frozen=True)
class More:
    """What was attached: its shapes, under their new names, itself, and the prefix of its names."""

    shapes: tuple[Shape, ...] = ()
    guest: Any = None
    prefix: str = ""

    @property
    def loops(self) -> list[Any]:
        """Between its renamed frames."""
        own = getattr(self.guest, "loops", ())
        return [replace(loop, first=self.prefix + loop.first, second=self.prefix + loop.second) for loop in own]

    @property
    def gears(self) -> list[Any]:
        """Between its renamed joints."""
        renamed = lambda gear: {self.prefix + name: ratio for name, ratio in gear.leaders.items()}  # noqa: E731
        own = getattr(self.guest, "gears", ())
        return [replace(gear, joint=self.prefix + gear.joint, leaders=renamed(gear)) for gear in own]


ALONE = More()


def rebuilt(robot: Any, builder: Builder, base: str, more: More, at: np.ndarray | None) -> Any:
    """The changed robot; what was embedded is closed near to `at`, a configuration of the robot before."""
    model = builder.build(base)
    warn(line for line in model.report if line not in robot.report)
    shapes = (shape for shape in (*robot.shapes, *more.shapes) if shape.link in model.frames)
    kept = [loop for loop in (*robot.loops, *more.loops) if {loop.first, loop.second} <= model.frames.keys()]
    moving = {joint.name for joint in model.joints}
    meshing = [gear for gear in (*robot.gears, *more.gears) if {gear.joint, *gear.leaders} <= moving]
    changed = replace(type(robot).of(model, shapes), loops=tuple(kept), gears=tuple(meshing))
    origin, near = _embedded(robot, more, at)
    return changed if origin is None else origin.again(changed, near)


def _embedded(robot: Any, more: More, at: np.ndarray | None) -> tuple[Any, dict[str, np.ndarray]]:
    """What was embedded, of the robot and of what was attached, None where nothing was; and where their joints are."""
    near: dict[str, np.ndarray] = {}
    origin = None
    for one, prefix, q in ((robot, "", at), (more.guest, more.prefix, None)):
        embedding = getattr(one, "embedding", None)
        if embedding is None or embedding.origin is None:
            continue
        q = embedding.neutral if q is None else q
        near |= {prefix + joint.name: q[joint.q_slice] for joint in one.joints}
        origin = embedding.origin.renamed(prefix).united(origin)
    return origin, near
