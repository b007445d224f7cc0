"""psiphi: write robot dynamics as operator equations; get O(N) code compiled for your robot.

    import psiphi as pp
    robot = pp.load("panda.urdf")
    a = robot.forward_dynamics(q, v, tau)        # (..., nv), any batch axes

    s = robot.operators
    f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    f(q), f.flops, print(f.explain())

Names are imported at their first use, so that `import psiphi` is fast.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from psiphi._util.deprecation import renamed_attribute
from psiphi._util.late_methods import LATE_METHODS

_NAMES = {  # module: the public names it defines
    "_util.errors": (
        "CacheError",
        "Error",
        "ModelError",
        "ModelWarning",
        "SingularError",
        "StateError",
    ),
    "model.model": ("Body", "Frame", "Model", "Pose"),
    "model.contact.contact_shapes": (
        "Box",
        "Capsule",
        "Cylinder",
        "Hull",
        "Point",
        "Points",
        "Sphere",
    ),
    "model.contact.given_contacts": ("GivenContacts",),
    "model.contact.ground": ("Ground",),
    "model.flexible.beam": ("Beam",),
    "model.flexible.flexible_body": ("FlexibleBody",),
    "model.loops.contacts_and_loops": ("Contact", "Loop"),
    "model.loops.gears": ("Gear",),
    "io.dh": ("DH",),
    "algebra.expressions.expression": ("Expression", "vector"),
    "algebra.expressions.operator_properties": ("dot_test",),
    "algebra.derivatives.time_derivative": ("time_derivative",),
    "algebra.derivatives.configuration_derivative": ("derivative",),
    "algebra.rewriting.proof": ("prove",),
    "backends.cpu.threads": ("get_threads", "set_threads"),
    "functions.expression_function": ("function",),
    "robot.load": ("Builder", "from_dh", "from_mujoco", "from_pinocchio", "load"),
    "robot.robot": ("Robot",),
    "robot.free_robot": ("FreeRobot",),
    "robot.embedding.embed": ("embed",),
    "robot.embedding.rotor_bodies": ("Rotor",),
    "robot.identification.identify": ("identify",),
    "robot.identification.identification_result": ("Identification",),
    "robot.mechanisms.grasp_and_connect": ("connect", "grasp"),
    "robot.mechanisms.system": ("System",),
    "simulation.control.joint_controllers": ("ComputedTorque", "GravityCompensation", "PD"),
    "simulation.control.passivity_controllers": ("Decoupled", "Lyapunov"),
    "simulation.control.task_space_controller": ("OperationalSpace",),
    "simulation.control.marked_law": ("law",),
    "simulation.control.prescribed_motion": ("PrescribedMotion",),
    "simulation.control.object_controller": ("ObjectControl",),
    "simulation.rollout.rollout": ("rollout",),
    "simulation.sensors.sensor_models": ("ContactForce", "IMU", "JointTorque"),
    "simulation.simulate.simulate": ("simulate",),
    "simulation.simulation_errors": ("MotionWarning", "SimulationError"),
    "simulation.trajectory.trajectory": ("Trajectory",),
    "apps.environments.environment": ("Environment", "environment"),
    "apps.ik.reach": ("IKResult", "reach"),
    "apps.optimal_control.optimal_control": ("OptimalControl",),
    "apps.optimal_control.optimal_motion": ("OptimalMotion",),
    "apps.optimal_control.receding_horizon": ("MPC",),
    "apps.path_timing.path": ("path",),
    "apps.path_timing.timed_path": ("TimedPath",),
    "apps.studies.study": ("study",),
    "apps.studies.study_result": ("Study",),
}
_MODULES = {  # public modules: pp.viewer.html(...)
    "cost": "apps.optimal_control.cost",
    "estimation": "apps.estimation",
    "interop": "io.conventions",
    "robots": "robot.bundled_robots",
    "scenes": "apps.scenes",
    "viewer": "apps.viewer",
}
_RENAMED = {"Reached": "IKResult"}  # old public names, which work for one minor version
_LATE_METHODS = {  # class: its methods that a later package implements, as "module:function"
    "Expression": {"dot": "algebra.derivatives.time_derivative:time_derivative"},
    "Forest": {
        "html": "apps.viewer:html",
        "_repr_html_": "apps.viewer.notebook_cards:robot_card",
    },
    "Controller": {"_compiled_torque": "simulation.compiled_rollout.law_function:torque"},
    "Robot": {
        "free": "robot.free_robot:free",
        "step": "simulation.linearization.step_function:step",
        "linearize": "simulation.linearization.linearize:linearize",
        "on_ground": "simulation.contact.placement:on_ground",
        "explain": "simulation.compiled_rollout.contact_explanation:explain",
        "html": "apps.viewer:html",
        "_repr_html_": "apps.viewer.notebook_cards:robot_card",
    },
    "Study": {"report": "apps.studies.study_report:report"},
    "System": {
        "step": "simulation.linearization.closed_step:step",
        "linearize": "simulation.linearization.closed_linearize:linearize",
    },
    "Trajectory": {
        "measure": "simulation.sensors.measurement:measure",
        "html": "apps.viewer:html",
        "view": "apps.viewer.live.viser_viewer:view",
        "_repr_html_": "apps.viewer.notebook_cards:trajectory_card",
    },
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names} | _MODULES

__all__ = [
    "Beam",
    "Body",
    "Box",
    "Builder",
    "CacheError",
    "Capsule",
    "ComputedTorque",
    "Contact",
    "ContactForce",
    "Cylinder",
    "DH",
    "Decoupled",
    "Environment",
    "Error",
    "Expression",
    "FlexibleBody",
    "Frame",
    "FreeRobot",
    "GravityCompensation",
    "GivenContacts",
    "Ground",
    "Hull",
    "IKResult",
    "IMU",
    "JointTorque",
    "Loop",
    "Lyapunov",
    "MPC",
    "Model",
    "ModelError",
    "ModelWarning",
    "MotionWarning",
    "ObjectControl",
    "OperationalSpace",
    "OptimalControl",
    "OptimalMotion",
    "PD",
    "Point",
    "Points",
    "Pose",
    "PrescribedMotion",
    "Robot",
    "SimulationError",
    "SingularError",
    "Sphere",
    "StateError",
    "TimedPath",
    "Trajectory",
    "System",
    "connect",
    "cost",
    "embed",
    "Gear",
    "Rotor",
    "derivative",
    "dot_test",
    "environment",
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
    "law",
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
LATE_METHODS.update(
    {
        owner: {name: f"psiphi.{target}" for name, target in methods.items()}
        for owner, methods in _LATE_METHODS.items()
    }
)


if TYPE_CHECKING:
    from psiphi._util.errors import (
        CacheError,
        Error,
        ModelError,
        ModelWarning,
        SingularError,
        StateError,
    )
    from psiphi.algebra.derivatives.configuration_derivative import derivative
    from psiphi.algebra.derivatives.time_derivative import time_derivative
    from psiphi.algebra.expressions.expression import Expression, vector
    from psiphi.algebra.expressions.operator_properties import dot_test
    from psiphi.algebra.rewriting.proof import prove
    from psiphi.apps import estimation, scenes, viewer
    from psiphi.apps.environments.environment import Environment, environment
    from psiphi.apps.ik.reach import IKResult, reach
    from psiphi.apps.optimal_control import cost
    from psiphi.apps.optimal_control.optimal_control import OptimalControl
    from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
    from psiphi.apps.optimal_control.receding_horizon import MPC
    from psiphi.apps.path_timing.path import path
    from psiphi.apps.path_timing.timed_path import TimedPath
    from psiphi.apps.studies.study import study
    from psiphi.apps.studies.study_result import Study
    from psiphi.backends.cpu.threads import get_threads, set_threads
    from psiphi.functions.expression_function import function
    from psiphi.io import conventions as interop
    from psiphi.io.dh import DH
    from psiphi.model.contact.contact_shapes import (
        Box,
        Capsule,
        Cylinder,
        Hull,
        Point,
        Points,
        Sphere,
    )
    from psiphi.model.contact.given_contacts import GivenContacts
    from psiphi.model.contact.ground import Ground
    from psiphi.model.flexible.beam import Beam
    from psiphi.model.flexible.flexible_body import FlexibleBody
    from psiphi.model.loops.contacts_and_loops import Contact, Loop
    from psiphi.model.loops.gears import Gear
    from psiphi.model.model import Body, Frame, Model, Pose
    from psiphi.robot import bundled_robots as robots
    from psiphi.robot.embedding.embed import embed
    from psiphi.robot.embedding.rotor_bodies import Rotor
    from psiphi.robot.free_robot import FreeRobot
    from psiphi.robot.identification.identification_result import Identification
    from psiphi.robot.identification.identify import identify
    from psiphi.robot.load import Builder, from_dh, from_mujoco, from_pinocchio, load
    from psiphi.robot.mechanisms.grasp_and_connect import connect, grasp
    from psiphi.robot.mechanisms.system import System
    from psiphi.robot.robot import Robot
    from psiphi.simulation.control.joint_controllers import PD, ComputedTorque, GravityCompensation
    from psiphi.simulation.control.marked_law import law
    from psiphi.simulation.control.object_controller import ObjectControl
    from psiphi.simulation.control.passivity_controllers import Decoupled, Lyapunov
    from psiphi.simulation.control.prescribed_motion import PrescribedMotion
    from psiphi.simulation.control.task_space_controller import OperationalSpace
    from psiphi.simulation.rollout.rollout import rollout
    from psiphi.simulation.sensors.sensor_models import IMU, ContactForce, JointTorque
    from psiphi.simulation.simulate.simulate import simulate
    from psiphi.simulation.simulation_errors import MotionWarning, SimulationError
    from psiphi.simulation.trajectory.trajectory import Trajectory


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from psiphi._util.extras import installed_version

        return installed_version("psiphi", "0")  # a source tree that was never installed
    if name in _RENAMED:
        return renamed_attribute("psiphi", "psiphi", name, _RENAMED)
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'psiphi' has no attribute {name!r}{_suggestion(name)}")
    module = importlib.import_module(f"psiphi.{_MODULE_OF[name]}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def _suggestion(name: str) -> str:
    """The end of the error message for an unknown name: the nearest public name."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    module = sys.modules.get("psiphi.robot.robot")  # a wrong name does not import it
    if module is not None and hasattr(module.Robot, name):
        return f"; use robot.{name}"
    original = {known.lower(): known for known in _MODULE_OF}
    close = get_close_matches(name.lower(), original, n=1)
    if close:
        return f"; did you mean {original[close[0]]!r}?"
    return "; dir(psiphi) lists the public names"


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, "__version__"])
