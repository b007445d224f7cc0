"""psiphi: write robot dynamics as operator equations, get O(N) code compiled for your robot.

    import psiphi as pp
    robot = pp.load("panda.urdf")
    a = robot.forward_dynamics(q, v, tau)        # (..., nv), any batch axes

    s = robot.operators
    f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    f(q), f.flops, print(f.explain())

Names are loaded when they are first used: `import psiphi` costs almost nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

_NAMES = {  # where public names live; the last ones are rooms
    "errors": ("Error", "ModelError", "ModelWarning", "StateError", "SingularError", "CacheError"),
    "model.model": ("Model", "Pose", "Frame", "Body"),
    "loading": ("Builder", "from_dh", "load"),
    "model.dh": ("DH",),
    "exchange.from_mujoco": ("from_mujoco",),
    "exchange.from_pinocchio": ("from_pinocchio",),
    "functions.robot": ("Robot",),
    "functions.free": ("FreeRobot",),
    "identifying.identify": ("identify",),
    "identifying.findings": ("Identification",),
    "closed": ("System", "Contact", "Loop", "grasp", "connect"),
    "embedding": ("embed", "Gear", "Rotor"),
    "flexible": ("Beam", "FlexibleBody"),
    "functions.expressions": ("function",),
    "operators": ("vector", "dot_test", "time_derivative", "derivative", "Expression"),
    "rewriting": ("prove",),
    "studies": ("study", "Study"),
    "runtime.threads": ("set_threads", "get_threads"),
    "simulation": ("simulate", "rollout", "MotionWarning", "SimulationError"),
    "reaching.search": ("reach", "Reached"),
    "following.laying": ("path",),
    "following.timed_path": ("TimedPath",),
    "motion.trajectory": ("Trajectory",),
    "control.controllers": ("GravityCompensation", "PD", "ComputedTorque"),
    "control.energy_based": ("Decoupled", "Lyapunov"),
    "control.task_space": ("OperationalSpace",),
    "control.held_object": ("ObjectControl",),
    "": ("estimation", "robots", "interop", "viewer", "scenes"),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "Beam",
    "Body",
    "Builder",
    "CacheError",
    "ComputedTorque",
    "Contact",
    "DH",
    "Decoupled",
    "Error",
    "Expression",
    "FlexibleBody",
    "Frame",
    "FreeRobot",
    "GravityCompensation",
    "Loop",
    "Lyapunov",
    "Model",
    "ModelError",
    "ModelWarning",
    "MotionWarning",
    "ObjectControl",
    "OperationalSpace",
    "PD",
    "Pose",
    "Reached",
    "Robot",
    "SimulationError",
    "SingularError",
    "StateError",
    "TimedPath",
    "Trajectory",
    "System",
    "connect",
    "embed",
    "Gear",
    "Rotor",
    "derivative",
    "dot_test",
    "estimation",
    "from_dh",
    "from_mujoco",
    "from_pinocchio",
    "function",
    "get_threads",
    "grasp",
    "identify",
    "Identification",
    "interop",
    "load",
    "path",
    "prove",
    "reach",
    "robots",
    "rollout",
    "scenes",
    "set_threads",
    "simulate",
    "study",
    "Study",
    "time_derivative",
    "vector",
    "viewer",
]

if TYPE_CHECKING:
    from psiphi import estimation, interop, robots, scenes, viewer
    from psiphi.closed import Contact, Loop, System, connect, grasp
    from psiphi.control.controllers import PD, ComputedTorque, GravityCompensation
    from psiphi.control.energy_based import Decoupled, Lyapunov
    from psiphi.control.held_object import ObjectControl
    from psiphi.control.task_space import OperationalSpace
    from psiphi.embedding import Gear, Rotor, embed
    from psiphi.errors import CacheError, Error, ModelError, ModelWarning, SingularError, StateError
    from psiphi.exchange.from_mujoco import from_mujoco
    from psiphi.exchange.from_pinocchio import from_pinocchio
    from psiphi.flexible import Beam, FlexibleBody
    from psiphi.following.laying import path
    from psiphi.following.timed_path import TimedPath
    from psiphi.functions.expressions import function
    from psiphi.functions.free import FreeRobot
    from psiphi.functions.robot import Robot
    from psiphi.identifying.findings import Identification
    from psiphi.identifying.identify import identify
    from psiphi.loading import Builder, from_dh, load
    from psiphi.model.dh import DH
    from psiphi.model.model import Body, Frame, Model, Pose
    from psiphi.motion.trajectory import Trajectory
    from psiphi.operators import Expression, derivative, dot_test, time_derivative, vector
    from psiphi.reaching.search import Reached, reach
    from psiphi.rewriting import prove
    from psiphi.runtime.threads import get_threads, set_threads
    from psiphi.simulation import MotionWarning, SimulationError, rollout, simulate
    from psiphi.studies import Study, study


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from psiphi.optional import version

        return version("psiphi", "0")  # a source tree that was never installed
    if name not in _HOME:
        raise AttributeError(f"module 'psiphi' has no attribute {name!r}{_meant(name)}")
    home = _HOME[name]
    module = importlib.import_module(f"psiphi.{home or name}")
    value = getattr(module, name) if home else module
    globals()[name] = value
    return value


def _meant(name: str) -> str:
    """The nearest public name, in words."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    robots = sys.modules.get("psiphi.functions.robot")  # where it is not there nobody has a robot: a name costs nothing
    if robots is not None and hasattr(robots.Robot, name):
        return f"; robots have it: robot.{name}"
    by_small = {known.lower(): known for known in _HOME}
    close = get_close_matches(name.lower(), by_small, n=1)
    return f"; did you mean {by_small[close[0]]!r}?" if close else "; dir(psiphi) lists what there is"


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
