"""A live page: one HTML file in which a robot is simulated, compiled to WebAssembly.

`page/live.js` calls the functions `begin`, `aim`, `step`, `blocked` and `look` of the compiled
blocks, draws the results and writes the user's inputs to their memory. It
has no dynamics of its own.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.escape import html, script_json
from psiphi._util.text import count_of, shown
from psiphi._util.validate import one_of, robot_of
from psiphi.apps.viewer import html_page
from psiphi.apps.viewer.live.interactive_step import (
    ACTIONS,
    InteractiveProgram,
    PagePolicy,
    interactive_program,
)
from psiphi.apps.viewer.live.live_controls import (
    PULL_STRETCH,
    control_bounds,
    joint_sliders,
    standing_controls,
)
from psiphi.apps.viewer.recorded_motion import (
    MAX_CURVES,
    closed_configuration,
    contact_point,
    contacts,
    shown_configuration,
)
from psiphi.apps.viewer.scene import Scene, is_trajectory, scene
from psiphi.apps.viewer.svg_picture import picture
from psiphi.apps.viewer.svg_plots import COLORS, coordinate_labels, sample_indices
from psiphi.backends.wasm.wasm_module import blocks_binary, table_places
from psiphi.model.contact.ground import Ground
from psiphi.model.model import WORLD, Frame
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout import contact_blocks
from psiphi.simulation.compiled_rollout.contact_step import choose_method, ground_contact
from psiphi.simulation.contact.placement import on_ground
from psiphi.simulation.control.control_law import Controller
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.linearization.step_arguments import check_method
from psiphi.simulation.plant import Plant
from psiphi.simulation.start_checks import check_closed, initial_state, step_size

MIN_STEP, MAX_STEP = 1e-6, 0.05  # seconds: steps that a page can run about in real time
MAX_LOAD = 0.3  # of the robot's mass
OF = "a live page"  # in errors
VIEW_MARGIN = 1.3  # radius of the view over that of the first configuration
LIMITS = ("ignore", "block")
# arguments of `read_live_page`
LIVE_OPTIONS = ("q", "v", "dt", "method", "payload", "limits", "contacts")
STEP, CONTACT_STEP = 1e-3, 2e-3  # seconds: the default dt, without and with a ground
STEP_INPUTS = (
    "q",
    "v",
    "h",
    "home",
    "aim",
    "law.kp",
    "law.kd",
    "law.gravity_share",
    "law.motors",
    "motor_damping",
    "losses",
    "mobility",
)
USER_INPUTS = (
    "base_parameters",
    "unit_payload",
    "payload_mass",
    "gravity_scale",
    "pulled",
    "pull_point",
    "pull_target",
    "pull_stiffness",
    "pull_damping",
    *ACTIONS,
    "env.command",
)
OUTPUTS = (
    "Q",
    "V",
    "S",
    "torque",
    "R",
    "p",
    "point",
    "pull",
    "energy",
    "kinetic_energy",
    "potential_energy",
    "forces",
    "touching_points",
    "ground_forces",
    contact_blocks.RECORDED[1],
    contact_blocks.TOTAL,
)


@dataclass(frozen=True, eq=False)
class LivePage:
    """What runs in the page: a system, its start and its step."""

    system: Robot | System
    q0: np.ndarray
    v0: np.ndarray
    h: float
    method: str
    payload: str = ""  # the frame that carries a load
    limits: str = "ignore"  # or "block"; without a ground the initial state of the page's switch
    ground: Ground | None = None  # that the robot's contact points touch
    policy: PagePolicy | None = None  # that moves the robot on its ground

    @property
    def robot(self) -> Robot:
        return robot_of(self.system)

    @cached_property
    def program(self) -> InteractiveProgram:
        """The blocks of the step."""
        plant = Plant(self.system if self.free_robot is None else self.free_robot)
        if self.ground is None:
            return interactive_program(plant.system, self.method, joint_stops(plant))
        contacts = ground_contact(plant, self.ground, self.limits, OF)
        return interactive_program(plant.system, self.method, ground=contacts, policy=self.policy)

    @cached_property
    def free_robot(self) -> FreeRobot | None:
        """The robot with free inertia of the link that carries the load; None without load."""
        if not self.payload:
            return None
        return self.robot.free("inertia", links=self.robot.bodies[self.payload_frame.body].name)

    @property
    def payload_frame(self) -> Frame:
        """The frame that carries the load."""
        frame = self.robot.frame(self.payload)
        if frame.body == WORLD:
            raise StateError(
                f"payload: frame {shown(self.payload)} is on the world",
                "name a frame of a link that moves",
            )
        return frame

    @cached_property
    def motors(self) -> np.ndarray:
        """(nv,): 1 for coordinates with a motor, else 0."""
        return Controller(self.system).motors


def joint_stops(plant: Plant) -> JointStops | None:
    """The joint limits; None if there are none, or if they cannot stop joints (closed chains)."""
    try:
        return JointStops(plant) or None
    except StateError:
        return None


def initial_limits(plant: Plant, limits: str | None, q0: np.ndarray) -> str:
    """ "ignore" or "block" when the page opens. The default is "block" if q0 is inside limits."""
    if limits is not None:
        one_of("limits", limits, LIMITS, "a live page has a switch for it")
    if limits == "block":
        JointStops(plant)  # raises if the limits cannot stop joints
    ends = joint_stops(plant)
    inside = ends is not None and bool(
        ((ends.lower <= q0[ends.q]) & (q0[ends.q] <= ends.upper)).all()
    )
    return limits or ("block" if inside else "ignore")


def read_live_page(
    thing: Any,
    q: Numbers | None = None,
    v: Numbers | None = None,
    dt: float | None = None,
    method: str | None = None,
    payload: str | None = None,
    limits: str | None = None,
    contacts: Ground | None = None,
) -> LivePage:
    """Check the arguments of a live page.

    `thing` is a robot, a closed chain, a scene or a trajectory, whose start is used. `payload` is
    a frame that carries a load; `limits` is "block" or "ignore", a switch of the
    page unless the robot is on a ground, where it is fixed; `contacts` is the ground of a
    robot, by default that of the scene.
    """
    system: Any = getattr(thing, "system", thing)
    contacts = scene_ground(thing) if contacts is None else contacts
    if is_trajectory(thing):
        q, v = (thing.q[..., 0, :] if q is None else q), (thing.v[..., 0, :] if v is None else v)
    elif hasattr(thing, "q0") and hasattr(thing, "system"):  # a scene
        q, v = (thing.q0 if q is None else q), (thing.v0 if v is None else v)
    plant = Plant(system)
    if not isinstance(plant.system, Robot | System) or not plant.system.joints:
        raise StateError(
            f"{shown(thing)} cannot run in a page",
            "give a robot that moves, a closed chain or a scene",
        )
    if plant.is_robot and plant.robot.freed is not None:
        plant = Plant(plant.robot.baked())  # with the parameters that `at` bound
    if q is None:
        closed = closed_configuration(plant.system, plant.robot)
        q = shown_configuration(plant.robot) if closed is None else closed
        if isinstance(contacts, Ground) and plant.is_robot and plant.robot.joints[0].kind == "free":
            q = on_ground(plant.robot, q, contacts)
    start = initial_state(plant, q, v)
    if start[0].ndim > 1:
        raise StateError(
            f"q has the shape {start[0].shape}, expected ({plant.nq},)",
            "a live page starts from one configuration",
        )
    check_closed(plant, *start)
    if contacts is not None:
        check_ground(plant, contacts, limits, start[0])
    h = step_size((STEP if contacts is None else CONTACT_STEP) if dt is None else dt)
    if not MIN_STEP <= h <= MAX_STEP:
        raise StateError(
            f"dt is {h:g}, expected {MIN_STEP:g} to {MAX_STEP:g} in a live page",
            f"leave it out for {STEP:g}, or {CONTACT_STEP:g} on a ground",
        )
    if payload is not None and isinstance(plant.system, System):
        raise StateError("payload is for robots, not for a closed chain", "leave it out")
    frame = "" if payload is None else plant.robot.frame(payload).name
    method = choose_method(method, contacts, OF)
    if contacts is not None:
        return LivePage(plant.system, *start, h, method, frame, limits or "ignore", contacts)
    switch = initial_limits(plant, limits, start[0])
    return LivePage(plant.system, *start, h, check_method(method, "a live page"), frame, switch)


def scene_ground(thing: object) -> Ground | None:
    """The ground of a scene; None if it has none. Raises for a motion on a ground."""
    if is_trajectory(thing) and "ground" in thing.info:
        raise StateError(
            "the motion is one on a ground, of which it stores the plane only",
            "give contacts=, the pp.Ground of the live page",
        )
    options = getattr(thing, "options", None)
    found = options.get("contacts") if isinstance(options, Mapping) else None
    return found if isinstance(found, Ground) else None


def check_ground(plant: Plant, ground: Ground, limits: str | None, q: np.ndarray) -> None:
    """Raise for a ground on which the robot cannot run in a page."""
    one_of("limits", "ignore" if limits is None else limits, LIMITS)
    contacts = ground_contact(plant, ground, limits or "ignore", OF, q)
    for name, value in (contacts.numbers | contacts.tables).items():
        if value.ndim > 1:
            fits = "(nx, ny)" if name in contacts.tables else f"one number, or ({contacts.count},)"
            raise StateError(
                f"the {name} of the ground has shape {np.shape(getattr(ground, name))}, and a live "
                "page shows one motion",
                f"give {fits}",
            )


def live_html(thing: object, **options: Any) -> str:
    """The HTML of a live page. Options are those of `read_live_page` and `scene`."""
    live = {name: options.pop(name) for name in LIVE_OPTIONS if name in options}
    page = read_live_page(thing, **live)
    title = options.pop("title", None)
    title = getattr(thing, "title", None) if title is None else title
    view = scene(page.system, q=page.q0, title=title, contacts=page.ground, **options)
    return page_text(page, view)


def page_text(page: LivePage, view: Scene) -> str:
    """The template `live.html`, filled with a page and its scene."""
    center, radius = view.extent
    return html_page.fill_template(
        "live.html",
        {
            "title": html(view.title),
            "words": html(
                f"{html_page.scene_summary(view)} · "
                f"{page.method if page.ground is None else 'on a ground'}, "
                f"{1.0 / page.h:.4g} steps per second"
            ),
            "style": html_page.page_file("page.css") + html_page.page_file("live.css"),
            "still": picture(view, size=480),
            "collisions": html(_collisions(page)),
            "notes": "\n".join(f'<p class="note">{html(note)}</p>' for note in view.notes[:20]),
            "data": script_json(
                html_page.solid_data(view)
                | {"radius": round(VIEW_MARGIN * radius, 5), "live": live_data(page, view)}
            ),
            "script": "\n".join(
                html_page.page_file(name)
                for name in (*html_page.SHARED_SCRIPTS, "grip.js", "traces.js", "live.js")
            ),
        },
    )


def _collisions(page: LivePage) -> str:
    """What collides in the page, in words."""
    if page.ground is None:
        return "There are no collisions: links pass through each other and through the floor."
    count = len(page.robot.contact_points)
    return (
        f"{count_of(count, 'point')} of the robot can touch the ground, with Coulomb friction. "
        "Links pass through each other, and other parts of them through the ground."
    )


def live_data(page: LivePage, view: Scene) -> dict:
    """The data that `live.js` reads: WebAssembly, memory layout, start, controls."""
    program, robot, frame = page.program, page.robot, page.program.frame
    contacts = program.options.contacts
    numbers = {} if contacts is None else contacts.numbers
    names = (*STEP_INPUTS, *USER_INPUTS, *map(contact_blocks.contact_place, numbers), *OUTPUTS)
    known = [name for name in names if name in frame.sizes]
    tables = {} if contacts is None else contacts.tables
    table_sizes = {contact_blocks.contact_place(name): x.size for name, x in tables.items()}
    starts = table_places(frame, table_sizes)
    curves = coordinate_labels(robot, "q")
    curves = [curves[k] for k in sample_indices(len(curves), MAX_CURVES)] if curves else []
    floats = any(joint.kind == "free" for joint in robot.joints) and not isinstance(
        page.system, System
    )
    mass = float(robot.mass)
    return {
        "code": base64.b64encode(
            blocks_binary(
                frame,
                program.entries,
                repeats=tuple(program.loops.values()),
                conditions=program.conditions,
                tables=table_sizes,
            )
        ).decode(),
        "ends": None if program.options.stops is None else page.limits == "block",
        "places": {name: [8 * frame.places[name], frame.sizes[name]] for name in known}
        | {name: [8 * starts[name], size] for name, size in table_sizes.items()},
        "h": page.h,
        "start": {"q": page.q0.tolist(), "v": page.v0.tolist()},
        "motors": page.motors.tolist(),
        "gravity": float(np.linalg.norm(robot.gravity_vector)),
        "floats": floats,
        "joints": joint_sliders(robot, page.motors, page.q0),
        "curves": [[name, i] for name, i in curves],
        "torques": [[name, i] for name, i in coordinate_labels(robot, "v") if page.motors[i]][
            :MAX_CURVES
        ],
        "colors": list(COLORS),
        "contacts": _contact_data(page, view) if "forces" in frame.sizes else [],
        "ground": None if page.ground is None else _ground_data(page, page.ground),
        "strain": ILL_CONDITIONED,
        "pull": mass * 10.0 / (PULL_STRETCH * view.extent[1]),
        "up": view.view_rotation.tolist(),
        **control_bounds(robot, program, page.motors, page.q0, page.h, view.pieces),
        **_ground_controls(page),
        **({} if page.free_robot is None else {"load": _payload_data(page, page.free_robot)}),
    }


def _ground_controls(page: LivePage) -> dict:
    """The gains of a robot on its feet, or those of its policy."""
    if page.policy is not None:
        return _policy_data(page.policy)
    return {} if page.ground is None else standing_controls(page.robot, page.q0, page.h)


def _policy_data(policy: PagePolicy) -> dict:
    """The rhythm of a policy, its commands, and the gains of its environment."""
    kp, kd = (max(float(x.max()), 1e-9) for x in (policy.kp, policy.kd))
    return {
        "policy": {"every": policy.every, "delay": policy.delay, "home": policy.posture.tolist()},
        "commands": [
            dict(zip(("name", "low", "high", "value"), row, strict=True)) for row in policy.commands
        ],
        "kp": [kp, 2.0 * kp],
        "kd": [kd, 2.0 * kd],
        "scale": (policy.kp / kp).tolist(),
        "dampers": (policy.kd / kd).tolist(),
        "most": None,
    }


def _ground_data(page: LivePage, ground: Ground) -> dict:
    """The contact points with their links, and the numbers of the ground."""
    contacts, robot = page.program.options.contacts, page.robot
    assert contacts is not None
    return {
        "names": list(contacts.names),
        "bodies": [robot.frame(point.frame).body for point in contacts.points],
        "radii": [0.0 if point.axis is not None else point.radius for point in contacts.points],
        "normal": list(ground.axes[0]),
        "numbers": {
            contact_blocks.contact_place(name): x.tolist()
            for name, x in (contacts.numbers | contacts.tables).items()
        },
        "weight": float(robot.mass * np.linalg.norm(robot.gravity_vector)) or 1.0,
        "tolerance": ground.tolerance,
    }


def _payload_data(page: LivePage, robot: FreeRobot) -> dict:
    """Free parameters: without load, the change by a load of 1 kg, and the load's position."""
    own, frame = robot.parameters(), page.payload_frame
    unit = robot.payload(page.payload, 1.0) - robot.payload(page.payload, 0.0)
    return {
        "own": own.tolist(),
        "unit": unit.tolist(),
        "most": MAX_LOAD * float(page.robot.mass),
        "body": frame.body,
        "at": np.asarray(frame.pose.translation).tolist(),
    }


def _contact_data(page: LivePage, view: Scene) -> list[dict]:
    """The points at which contact forces act, and the signs with which they are drawn."""
    out = []
    for i, contact in enumerate(contacts(page.system)):
        frame, sign = contact_point(page.robot, contact)
        at = np.asarray(frame.pose.translation)
        out.append(
            {
                "name": contact.name or f"contact {i + 1}",
                "body": frame.body,
                "at": (view.view_rotation @ at if frame.body == WORLD else at).tolist(),
                "sign": sign,
            }
        )
    return out
