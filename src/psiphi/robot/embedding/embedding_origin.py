"""`EmbeddingOrigin`: what `pp.embed` was given. Edits change that tree and embed its loops again.

A loop whose frames were removed is dropped with a warning. A loop whose frames are now on one body,
and a gear whose joints were removed, are dropped silently. A leader that was locked becomes a
constant of its gear. Free coordinates stay free if possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi.model.diagnostics import ReaderWarning, emit_warning
from psiphi.model.editing.reconstruction import lost_loop_message, renamed_gears, renamed_loops
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear
from psiphi.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class EmbeddingOrigin:
    """The tree before embedding, its loops and gears, and the joints whose coordinates are free."""

    robot: Robot
    loops: tuple[Loop, ...]
    gears: tuple[Gear, ...]
    free: tuple[str, ...]
    embed: Callable[..., Robot]  # `pp.embed`

    def renamed(self, named: Callable[[str], str]) -> EmbeddingOrigin:
        """The origin after renaming joints and frames."""
        loops, gears = renamed_loops(self.loops, named), renamed_gears(self.gears, named)
        return replace(
            self, loops=tuple(loops), gears=tuple(gears), free=tuple(map(named, self.free))
        )

    def merged(self, other: EmbeddingOrigin | None) -> EmbeddingOrigin:
        """The origin of two robots that were joined."""
        if other is None:
            return self
        return replace(
            self,
            loops=self.loops + other.loops,
            gears=self.gears + other.gears,
            free=self.free + other.free,
        )

    def reembed(self, robot: Robot, at: Mapping[str, np.ndarray]) -> Robot:
        """A changed tree with the remaining loops embedded.

        `at` are joint positions by name: loops are closed near them, and locked joints have them.
        """
        known = [loop for loop in self.loops if {loop.first, loop.second} <= robot.frames.keys()]
        lost = [ReaderWarning(lost_loop_message(loop)) for loop in self.loops if loop not in known]
        robot = replace(robot, report=(*robot.report, *lost))
        emit_warning(lost)
        loops = [
            loop for loop in known if robot.frame(loop.first).body != robot.frame(loop.second).body
        ]
        gears = [self._remaining_gear(robot, gear, at) for gear in self.gears]
        constraints = [*loops, *(gear for gear in gears if gear is not None)]
        if not constraints:
            return robot
        start = robot.neutral()
        for joint in robot.joints:
            if len(at.get(joint.name, ())) == joint.row.nq:
                start[joint.q_slice] = at[joint.name]
        names = {joint.name for joint in robot.joints}
        free = [name for name in self.free if name in names]
        embed = partial(self.embed, robot, constraints, mimic=False, at=start)
        try:
            return embed(free=free)
        except (ModelError, StateError):
            return embed(free=())  # these coordinates are no longer independent

    @staticmethod
    def _remaining_gear(robot: Robot, gear: Gear, at: Mapping[str, np.ndarray]) -> Gear | None:
        """The gear between the joints that still move, or None."""
        moving = {joint.name for joint in robot.joints}
        if any(name not in robot.frames for name in (gear.joint, *gear.leaders)):
            return None  # a joint was removed with its subtree
        leaders = {name: ratio for name, ratio in gear.leaders.items() if name in moving}
        if gear.joint not in moving:
            if leaders:
                raise StateError(
                    f"{gear.name}: joint {gear.joint} is locked, but follows {', '.join(leaders)}",
                    "lock the leaders, or change the robot before pp.embed",
                )
            return None
        offset = gear.offset
        for name in gear.leaders.keys() - leaders.keys():
            x, coefficients = float(at[name][0]), np.asarray(gear.leaders[name]).reshape(-1)
            offset += sum(c * x**k for k, c in enumerate(coefficients.tolist(), 1))
        return replace(gear, leaders=leaders, offset=offset)
