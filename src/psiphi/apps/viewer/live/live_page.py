"""A live page: the robot itself, compiled to WebAssembly, in one HTML file.

The page's program calls `step` and `look` of the compiled blocks (`apps/viewer/live/interactive_step.py`), draws what they answer and takes what
the user wants; of dynamics it knows nothing.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.escape import html, script_json
from psiphi._util.text import shown
from psiphi._util.validate import one_of, robot_of
from psiphi.apps.viewer import html_page
from psiphi.apps.viewer.live.interactive_step import InteractiveProgram, interactive_program
from psiphi.apps.viewer.live.live_controls import HAND_STRETCH, control_bounds, joint_sliders
from psiphi.apps.viewer.recorded_motion import (
    MAX_CURVES,
    closed_configuration,
    contact_frame,
    contacts,
    rest_configuration,
)
from psiphi.apps.viewer.scene import Scene, is_trajectory, scene
from psiphi.apps.viewer.svg_picture import picture
from psiphi.apps.viewer.svg_plots import COLORS, coordinate_labels, sample_indices
from psiphi.backends.wasm.wasm_module import blocks_binary
from psiphi.model.model import WORLD
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Controller
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.linearization.step_function import check_method
from psiphi.simulation.plant import Plant
from psiphi.simulation.start_checks import check_closed, initial_state, step_size

MIN_STEP, MAX_STEP = 1e-6, 0.05  # seconds: steps that a page can take in real time, or nearly
MAX_LOAD = 0.3  # of its own mass: the heaviest load
VIEW_MARGIN = 1.3  # how much farther than its first posture a robot reaches
LIMITS = ("ignore", "block")
LIVE_OPTIONS = ("q", "v", "dt", "method", "payload", "limits")  # options of a page that lives
STEP_INPUTS = (
    "q",
    "v",
    "h",
    "home",
    "aim",
    "law.kp",
    "law.share",
    "law.motors",
    "brake",
    "losses",
    "mobility",
)
HAND_INPUTS = ("own", "unit", "burden", "weight", "held", "grip", "hand", "stiffness", "slowing")
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
)


@dataclass(frozen=True, eq=False)
class LivePage:
    """What runs in the page: a system, where it starts, and its steps."""

    system: Robot | System
    q0: np.ndarray
    v0: np.ndarray
    h: float
    method: str
    payload: str = ""  # the frame that carries a load
    limits: str = "ignore"  # or "block": how it begins; the page has a switch

    @property
    def robot(self) -> Robot:
        return robot_of(self.system)

    @cached_property
    def program(self) -> InteractiveProgram:
        system = self.system if self.free_robot is None else self.free_robot
        return interactive_program(system, self.method, joint_stops(Plant(system)))

    @cached_property
    def free_robot(self) -> Any:
        """The robot with the parameters of the link that carries a load as inputs; None where none does."""
        return (
            self.robot.free("inertia", links=self.robot.bodies[self.payload_frame.body].name)
            if self.payload
            else None
        )

    @property
    def payload_frame(self) -> Any:
        """Where the load is."""
        frame = self.robot.frame(self.payload)
        if frame.body == WORLD:
            raise StateError(
                f"payload: frame {shown(self.payload)} is on the world",
                "name a frame of a link that moves",
            )
        return frame

    @cached_property
    def motors(self) -> np.ndarray:
        """1 where there is a motor, else 0."""
        return Controller(self.system).motors


def joint_stops(plant: Plant) -> JointStops | None:
    """Where its joints end; None where none does, or where they cannot be held there (closed chains)."""
    try:
        return JointStops(plant) or None
    except StateError:
        return None


def initial_limits(plant: Plant, limits: Any, q0: np.ndarray) -> str:
    """Whether joints end at their limits when the page opens: unless told, where they have some and start within."""
    if limits is not None:
        one_of("limits", limits, LIMITS, "a live page has a switch for it")
    if limits == "block":
        JointStops(plant)  # says why not
    ends = joint_stops(plant)
    inside = ends is not None and bool(
        ((ends.lower <= q0[ends.q]) & (q0[ends.q] <= ends.upper)).all()
    )
    return limits or ("block" if inside else "ignore")


def read_live_page(
    thing: Any,
    q: Any = None,
    v: Any = None,
    dt: Any = 1e-3,
    method: Any = "rk4",
    payload: Any = None,
    limits: Any = None,
) -> LivePage:
    """A robot, a closed chain, a scene or the start of a motion, with the steps it takes, a frame that carries a load, and
    whether its joints end at their limits."""
    if is_trajectory(thing):
        q, v = (thing.q[..., 0, :] if q is None else q), (thing.v[..., 0, :] if v is None else v)
    elif hasattr(thing, "q0") and hasattr(thing, "system"):  # a scene
        q, v = (thing.q0 if q is None else q), (thing.v0 if v is None else v)
    system = getattr(thing, "system", thing)
    plant = Plant(system)
    if not isinstance(plant.system, Robot | System) or not plant.system.joints:
        raise StateError(
            f"{shown(thing)} cannot run in a page",
            "give a robot that moves, a closed chain or a scene",
        )
    if plant.is_robot and plant.robot.freed is not None:
        plant = Plant(plant.robot.baked())  # with the parameters of its `at`
    if q is None:
        own = closed_configuration(plant.system, plant.robot)
        q = rest_configuration(plant.robot) if own is None else own
    start = initial_state(plant, q, v)
    if start[0].ndim > 1:
        raise StateError(
            f"q has the shape {start[0].shape}, expected ({plant.nq},)",
            "a live page starts from one configuration",
        )
    check_closed(plant, *start)
    h = step_size(dt)
    if not MIN_STEP <= h <= MAX_STEP:
        raise StateError(
            f"dt is {h:g}, expected {MIN_STEP:g} to {MAX_STEP:g} in a live page",
            "leave it out for 1e-3",
        )
    if payload is not None and isinstance(plant.system, System):
        raise StateError("payload came, and a closed chain keeps its masses", "leave it out")
    carries = "" if payload is None else plant.robot.frame(payload).name
    begins = initial_limits(plant, limits, start[0])
    return LivePage(plant.system, *start, h, check_method(method, "a live page"), carries, begins)


def live_html(thing: Any, **options: Any) -> str:
    """The text of a live page; options are those of `read_live_page` and of `scene`."""
    alive = read_live_page(
        thing, **{name: options.pop(name) for name in LIVE_OPTIONS if name in options}
    )
    title = options.pop("title", None)
    title = getattr(thing, "title", None) if title is None else title
    return page_text(alive, scene(alive.system, q=alive.q0, title=title, **options))


def page_text(alive: LivePage, shown: Scene) -> str:
    """The page of a scene that lives."""
    center, radius = shown.extent
    return html_page.fill_template(
        "live.html",
        {
            "title": html(shown.title),
            "words": html(
                f"{html_page.scene_summary(shown)} · {alive.method}, {1.0 / alive.h:.4g} steps a second"
            ),
            "style": html_page.page_file("page.css") + html_page.page_file("live.css"),
            "still": picture(shown, size=480),
            "notes": "\n".join(f'<p class="note">{html(note)}</p>' for note in shown.notes[:20]),
            "data": script_json(
                html_page.solid_data(shown)
                | {"radius": round(VIEW_MARGIN * radius, 5), "live": live_data(alive, shown)}
            ),
            "script": "\n".join(
                html_page.page_file(name)
                for name in (*html_page.SHARED_SCRIPTS, "grip.js", "traces.js", "live.js")
            ),
        },
    )


def live_data(alive: LivePage, shown: Scene) -> dict:
    """What the page's program needs to know of the robot, its code among it."""
    machine, robot, frame = alive.program, alive.robot, alive.program.frame
    known = [name for name in (*STEP_INPUTS, *HAND_INPUTS, *OUTPUTS) if name in frame.sizes]
    curves = coordinate_labels(robot, "q")
    curves = [curves[k] for k in sample_indices(len(curves), MAX_CURVES)] if curves else []
    floats = any(joint.kind == "free" for joint in robot.joints) and not isinstance(
        alive.system, System
    )
    mass = float(robot.mass)
    return {
        "code": base64.b64encode(
            blocks_binary(frame, machine.entries, repeats=machine.repeats)
        ).decode(),
        "ends": None if machine.options.stops is None else alive.limits == "block",
        "places": {name: [8 * frame.places[name], frame.sizes[name]] for name in known},
        "h": alive.h,
        "start": {"q": alive.q0.tolist(), "v": alive.v0.tolist()},
        "motors": alive.motors.tolist(),
        "gravity": float(np.linalg.norm(robot.gravity_vector)),
        "floats": floats,
        "joints": joint_sliders(robot, alive.motors, alive.q0),
        "curves": [[name, i] for name, i in curves],
        "torques": [[name, i] for name, i in coordinate_labels(robot, "v") if alive.motors[i]][
            :MAX_CURVES
        ],
        "colors": list(COLORS),
        "contacts": _contact_data(alive) if "forces" in frame.sizes else [],
        "strain": ILL_CONDITIONED,
        "pull": mass * 10.0 / (HAND_STRETCH * shown.extent[1]),
        "up": shown.view_rotation.tolist(),
        **control_bounds(robot, machine, alive.motors, alive.q0, alive.h, shown.pieces),
        **({} if alive.free_robot is None else {"load": _payload_data(alive, mass)}),
    }


def _payload_data(alive: LivePage, mass: float) -> dict:
    """The free parameters: those at the start, what a kilogram on the frame adds, and where it hangs."""
    own = alive.free_robot.parameters()
    unit = alive.free_robot.payload(alive.payload, 1.0) - alive.free_robot.payload(
        alive.payload, 0.0
    )
    place = {
        "body": alive.payload_frame.body,
        "at": np.asarray(alive.payload_frame.pose.translation).tolist(),
    }
    return {"own": own.tolist(), "unit": unit.tolist(), "most": MAX_LOAD * mass, **place}


def _contact_data(alive: LivePage) -> list[dict]:
    """Where contact forces act: a point of a body."""
    out = []
    for i, contact in enumerate(contacts(alive.system)):
        frame = contact_frame(alive.robot, contact)
        body, at = (
            (WORLD, [0.0] * 3)
            if frame is None
            else (frame.body, np.asarray(frame.pose.translation).tolist())
        )
        out.append(
            {
                "name": str(getattr(contact, "name", "")) or f"contact {i + 1}",
                "body": body,
                "at": at,
            }
        )
    return out
