"""When a simulation breaks off: the error keeps what was computed."""

from __future__ import annotations

from typing import Any

from psiphi.errors import Error


class SimulationError(Error):
    """A torque, an event function or the system itself failed; `.trajectory` is the motion so far, the cause is chained."""

    def __init__(self, cause: str, remedy: str = "", *, trajectory: Any = None):
        super().__init__(cause, remedy)
        self.trajectory = trajectory


class MotionWarning(UserWarning):
    """A motion was computed, and part of it is no motion: it diverged."""


class Interrupted(KeyboardInterrupt):
    """Control-C during a simulation; `.trajectory` is the motion so far."""

    def __init__(self, trajectory: Any):
        super().__init__(f"interrupted at t = {trajectory.t[-1]:g} s; .trajectory has the motion so far")
        self.trajectory = trajectory
