"""What happens between control steps: new commands, pushes, and the delay of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import nonnegative_number, positive_number
from psiphi.apps.environments.state_resets import commands, named_distributions, sampled
from psiphi.apps.environments.terms.term_state import COMMAND, LAST_V
from psiphi.apps.environments.terms.term_trace import TermTrace
from psiphi.apps.studies.distributions import Distribution
from psiphi.compiler.ir.lane_blocks import Selection
from psiphi.model.spatial.branch_free import less
from psiphi.robot.robot import Robot

TIMERS = "env.timers"  # control steps until the next command, and until the next push
MAX_STEPS = 10**9  # of an episode or between events
MAX_DELAY = 10_000  # steps of the simulation: the state has the actions that wait
NEXT = "env.next."  # the prefix of places with the numbers of an event
COMMAND_DUE, PUSH_DUE, EVENT = "env.command_due", "env.push_due", "env.event_due"


@dataclass(frozen=True, eq=False)
class Events:
    """`command_steps` and `push_steps` are the numbers of control steps between events, 0 for none;
    `pushes` are changes of velocity by index in v; `delay` is in steps of the simulation."""

    commands: Mapping[str, Distribution] = field(default_factory=dict)
    command_steps: int = 0
    pushes: Mapping[int, Distribution] = field(default_factory=dict)
    push_steps: int = 0
    delay: int = 0

    @property
    def exist(self) -> bool:
        return bool(self.command_steps or self.push_steps)

    @property
    def first(self) -> list[float]:
        """The timers at the start of an episode."""
        return [float(self.command_steps), float(self.push_steps)]

    def tick(self, x: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The timers after a control step, and which events are due."""
        found, due = [], []
        for timer, steps in zip(x[TIMERS], (self.command_steps, self.push_steps), strict=True):
            is_due = less(timer, 1.5) if steps else 0.0
            due.append(is_due)
            found.append(timer - 1.0 + is_due * steps if steps else 0.0)
        either = due[0] + due[1] - due[0] * due[1]
        return {TIMERS: found, COMMAND_DUE: due[:1], PUSH_DUE: due[1:], EVENT: [either]}

    def store(self, trace: TermTrace) -> None:
        """Add the numbers of the events to the outputs of a trace."""
        s = trace.state
        if self.command_steps:
            trace.outputs[NEXT + COMMAND] = commands(self.commands, s)
        if self.push_steps:
            rows = {name: [x.item() for x in trace.place(name)] for name in ("V", LAST_V)}
            for index, distribution in self.pushes.items():
                change = sampled(distribution, s)
                for row in rows.values():
                    row[index] = row[index] + change
            trace.outputs |= {NEXT + name: row for name, row in rows.items()}

    def selections(self, sizes: Mapping[str, int]) -> dict[str, Selection]:
        """The blocks that make the events happen, by name."""
        found = {}
        if self.command_steps:
            values = {COMMAND: NEXT + COMMAND}
            found["env.steer"] = Selection(COMMAND_DUE, values, sizes)
        if self.push_steps:
            values = {"V": f"{NEXT}V", "v": f"{NEXT}V", LAST_V: NEXT + LAST_V}
            found["env.push"] = Selection(PUSH_DUE, values, sizes)
        return found


def read_events(
    robot: Robot,
    commands: Mapping[str, Distribution],
    command_interval: float | None,
    pushes: object,
    push_interval: float | None,
    action_delay: float,
    dt: float,
    decimation: int,
) -> Events:
    """The arguments of `pp.environment` about events."""
    step = dt * decimation
    command_steps = _steps("command_interval", command_interval, step)
    push_steps = _steps("push_interval", push_interval, step)
    if command_steps and not commands:
        raise StateError("command_interval is given without commands", "give commands=")
    if (pushes is None) != (not push_steps):
        raise StateError(
            "pushes and push_interval belong together, and one is missing",
            'give pushes={"x": (-0.5, 0.5)}, in m/s, and push_interval, in s',
        )
    if pushes is not None and (not isinstance(pushes, Mapping) or not pushes):
        cause = f"pushes is {shown(pushes)}, expected a dict of changes of velocity"
        raise StateError(cause, 'pushes={"x": (-0.5, 0.5), "y": (-0.5, 0.5)}')
    named = {} if pushes is None else named_distributions(robot, "pushes", pushes)
    seconds = nonnegative_number("action_delay", action_delay, "give seconds")
    delay = step_count("action_delay", seconds, dt, MAX_DELAY)
    return Events(commands, command_steps, named, push_steps, delay)


def _steps(name: str, value: float | None, step: float) -> int:
    if value is None:
        return 0
    seconds = positive_number(name, value, "give seconds")
    return max(1, step_count(name, seconds, step))


def step_count(name: str, seconds: float, step: float, most: int = MAX_STEPS) -> int:
    """A duration in steps, rounded."""
    if not seconds <= most * step:
        cause = f"{name} is {seconds:g} s, more than {most} steps of {step:g} s"
        raise StateError(cause, f"give at most {most * step:g}")
    return round(seconds / step)
