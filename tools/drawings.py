"""Pictures of the bundled robots, `viewer.picture` in chosen postures, and a plot of a motion."""

from __future__ import annotations

import numpy as np

import psiphi as pp
from psiphi.apps.scenes.scene_file import SceneSetup
from psiphi.apps.viewer.scene import scene
from psiphi.apps.viewer.svg_picture import picture as still
from psiphi.apps.viewer.svg_plots import Plot
from psiphi.robot.robot import Robot

POSTURES = {  # the last coordinates, for robots whose middle posture is a poor picture
    "acrobot": [0.4, 0.7],
    "cartpole": [0.3, 0.25],
    "free_flyer": [0.0, -0.9, 1.5, -0.6, -1.2, 0.0] * 2,
    "g1": [0.0] * 29,
    "iiwa14": [0.4, 0.5, 0.0, -1.2, 0.0, 0.9, 0.0],
    "pelican": [1.9, 0.9],
}


def posture(robot: Robot) -> np.ndarray:
    """The posture "home", or else the middle of every range, and zero without limits; free bases
    upright."""
    if "home" in robot.postures:
        return robot.postures["home"]
    q = robot.neutral()
    for joint in robot.joints:
        if joint.row.nq == joint.row.nv and np.isfinite([joint.lower, joint.upper]).all():
            q[joint.q_slice] = (joint.lower + joint.upper) / 2
    tail = POSTURES.get(robot.name, [])
    q[len(q) - len(tail) :] = tail
    return q


def picture(robot: Robot) -> str:
    """The robot as SVG text."""
    return still(scene(robot, q=posture(robot)))


def scene_picture(setup: SceneSetup) -> str:
    """The start of a scene as SVG text."""
    return still(scene(setup.system, q=setup.q0))


STYLE = """<style>
.curve { fill: none; stroke-width: 1.5 } .cursor { display: none }
.tick { font: 10px sans-serif; fill: #555 } .grid { stroke: #d8dbe0 } .axis { stroke: #9aa }
</style>"""


def motion_plot() -> str:
    """The joint angles of a PUMA that computed torque takes to a posture, over time."""
    robot = pp.robots.puma560()
    goal = np.array([1.0, -0.6, 0.8, 0.3, 0.9, -0.4])
    law = pp.ComputedTorque(robot, goal, kp=60.0, kd=11.0)
    motion = pp.simulate(robot, np.zeros(6), tau=law, duration=1.5, every=15)
    plot = Plot("joint angles", "rad", tuple(robot.coordinate_names), motion.q.T)
    head, rest = plot.svg(motion.t).split(">", 1)
    return f"{head}>{STYLE}{rest}\n"
