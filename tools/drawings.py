"""Pictures of the bundled robots: `viewer.picture` in chosen postures."""

from __future__ import annotations

import numpy as np

from psiphi.apps.scenes.scene_file import SceneSetup
from psiphi.apps.viewer.scene import scene
from psiphi.apps.viewer.svg_picture import picture as still
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
