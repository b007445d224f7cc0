"""What an embedded robot was made of: it is changed as the tree it was, and its loops are embedded again.

Loops whose frames are gone are left out and told, those that stand on one body now and gears whose joints are gone are left
out; a leader that stands still is a number in its gear. The coordinates that were free stay so where they can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi.model.diagnostics import ReaderWarning, warn
from psiphi.model.editing.reconstruction import lost_loop, renamed_gears, renamed_loops
from psiphi.model.loops.gears import Gear
from psiphi.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class EmbeddingOrigin:
    """The robot as it was before, its loops and gears, the joints whose coordinates are all free, and how they are embedded."""

    robot: Robot
    loops: tuple[Any, ...]
    gears: tuple[Gear, ...]
    free: tuple[str, ...]
    embed: Callable[..., Robot]

    def renamed(self, named: Callable[[str], str]) -> EmbeddingOrigin:
        """Of the robot with other names."""
        loops, gears = renamed_loops(self.loops, named), renamed_gears(self.gears, named)
        return replace(
            self, loops=tuple(loops), gears=tuple(gears), free=tuple(map(named, self.free))
        )

    def united(self, other: EmbeddingOrigin | None) -> EmbeddingOrigin:
        """Of two robots that become one."""
        if other is None:
            return self
        parts = {
            word: getattr(self, word) + getattr(other, word) for word in ("loops", "gears", "free")
        }
        return replace(self, **parts)

    def again(self, robot: Robot, at: Mapping[str, np.ndarray]) -> Robot:
        """A changed robot with what is left of the loops embedded; `at` are places of joints near which they are closed, and of
        those that stand still now."""
        there = [loop for loop in self.loops if {loop.first, loop.second} <= robot.frames.keys()]
        lost = [ReaderWarning(lost_loop(loop)) for loop in self.loops if loop not in there]
        robot = replace(robot, report=(*robot.report, *lost))
        warn(lost)
        loops = [
            loop for loop in there if robot.frame(loop.first).body != robot.frame(loop.second).body
        ]
        gears = [
            gear
            for gear in (self._geared(robot, gear, at) for gear in self.gears)
            if gear is not None
        ]
        if not loops and not gears:
            return robot
        start = robot.neutral()
        for joint in robot.joints:
            if len(at.get(joint.name, ())) == joint.row.nq:
                start[joint.q_slice] = at[joint.name]
        inside = {joint.name for joint in robot.joints}
        free = [name for name in self.free if name in inside]
        make = lambda free: self.embed(robot, [*loops, *gears], mimic=False, free=free, at=start)  # noqa: E731
        try:
            return make(free)
        except (ModelError, StateError):
            return make(())  # other coordinates decide where some are gone

    @staticmethod
    def _geared(robot: Robot, gear: Gear, at: Mapping[str, np.ndarray]) -> Gear | None:
        """The gear between the joints that still move; None where nothing is left of it."""
        moving = {joint.name for joint in robot.joints}
        if any(name not in robot.frames for name in (gear.joint, *gear.leaders)):
            return None  # a joint is gone, with what it carried
        leaders = {name: ratio for name, ratio in gear.leaders.items() if name in moving}
        if gear.joint not in moving:
            if leaders:
                raise StateError(
                    f"{gear.name}: joint {gear.joint} stands still, and {', '.join(leaders)} together lead it",
                    "lock the leaders, or change the robot before pp.embed",
                )
            return None
        offset = gear.offset
        for name in gear.leaders.keys() - leaders.keys():
            x = float(at[name][0])
            offset += sum(
                c * x**k for k, c in enumerate(np.atleast_1d(gear.leaders[name]).tolist(), 1)
            )
        return replace(gear, leaders=leaders, offset=offset)
