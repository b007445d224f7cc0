"""A two-link flexible arm (as Book's, 1984) beside MuJoCo's chain of many rigid segments with
springs between them."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp

mujoco = pytest.importorskip("mujoco")

LENGTHS, SECTION, E, DENSITY = (1.0, 0.8), (0.05, 0.006), 70e9, 2700.0
HUB, ELBOW, PAYLOAD = 0.05, 0.5, 0.2  # kg m2, kg, kg
PIECES = 16
AREA, EI = SECTION[0] * SECTION[1], E * SECTION[0] * SECTION[1] ** 3 / 12.0
TORQUE = 3.0, 0.4  # N m at the shoulder: so long forward, then back


def bent_arm() -> pp.Robot:
    b = pp.Builder("two flexible links")
    for link, on, mass in (("upper", "world", 0.0), ("lower", "upper_tip", ELBOW)):
        b.body(link, mass=mass or 1e-9, inertia=(HUB if on == "world" else 1e-4) * np.eye(3))
        b.joint(
            f"{link}_hinge",
            "revolute",
            on,
            link,
            axis=(0, 1, 0),
            damping=0.0 if on == "world" else 0.2,
        )
        beam = pp.Beam(
            LENGTHS[link == "lower"], SECTION, dict(E=E, density=DENSITY), modes=3, planes="z"
        )
        b.flexible(link, beam)
    b.body("payload", mass=PAYLOAD, inertia=1e-4 * np.eye(3))
    b.joint("weld", "fixed", "lower_tip", "payload")
    return b.build()


MASS = 'mass="{}" diaginertia="{} {} {}"'


def slim(length: float) -> str:
    return MASS.format(DENSITY * AREA * length, 1e-9, *2 * [DENSITY * AREA * length**3 / 12.0])


def segments() -> str:
    """Each link as PIECES elements with a spring EI / d in the middle of each: half a piece, whole
    ones, half a piece."""
    text, ends = "", 0
    for link, L in zip(("upper", "lower"), LENGTHS, strict=True):
        d = L / PIECES
        hub = MASS.format(
            *((1e-9, HUB, HUB, HUB) if link == "upper" else (ELBOW, 1e-4, 1e-4, 1e-4))
        )
        damping = 0.0 if link == "upper" else 0.2
        at = "0" if link == "upper" else f"{LENGTHS[0] / PIECES / 2}"
        text += (
            f'<body pos="{at} 0 0"><joint name="{link}" axis="0 1 0" '
            f'damping="{damping}"/><inertial pos="0 0 0" {hub}/>'
        )
        text += f'<body><inertial pos="{d / 4} 0 0" {slim(d / 2)}/></body>'
        for k in range(PIECES):
            long, x = d if k < PIECES - 1 else d / 2, d / 2 if k == 0 else d
            text += (
                f'<body pos="{x} 0 0"><joint axis="0 1 0" stiffness="{EI / d}"/><inertial '
                f'pos="{long / 2} 0 0" {slim(long)}/>'
            )
        ends += PIECES + 1
    load = (
        f'<body pos="{LENGTHS[1] / PIECES / 2} 0 0"><inertial pos="0 0 0" '
        f'mass="{PAYLOAD}" diaginertia="1e-4 1e-4 1e-4"/>'
    )
    text += load + '<site name="tip"/></body>' + "</body>" * ends
    options = '<option timestep="1e-4" integrator="RK4"/><compiler boundmass="0" boundinertia="0"/>'
    return (
        f"<mujoco>{options}<worldbody>{text}</worldbody><actuator><motor "
        f'joint="upper"/></actuator></mujoco>'
    )


def test_tip_and_joints_move_as_those_of_many_segments():
    T = 0.8
    model = mujoco.MjModel.from_xml_string(segments())
    data = mujoco.MjData(model)
    theirs, hinges = [], [model.joint(name).qposadr[0] for name in ("upper", "lower")]
    for k in range(int(T / 1e-4)):
        data.ctrl[0] = TORQUE[0] if k * 1e-4 < TORQUE[1] else -TORQUE[0]
        mujoco.mj_step(model, data)
        if (k + 1) % 200 == 0:
            mujoco.mj_kinematics(model, data)
            theirs.append([*data.site("tip").xpos[[0, 2]], *data.qpos[hinges]])
    robot = bent_arm()
    tau = np.zeros(robot.nv)
    tau[0] = TORQUE[0]
    law = lambda t, q, v: tau if t < TORQUE[1] else -tau  # noqa: E731
    motion = pp.simulate(
        robot, robot.neutral(), duration=T, dt=1e-3, tau=law, springs=True, damping=True
    )
    q = motion.q[20::20]
    places = robot.frame_pose(q, "payload")[:, [0, 2], 3]
    hinge = q[:, robot.select(["upper_hinge", "lower_hinge"])]
    bent = np.abs(robot.frame_pose(motion.q, "upper_tip")[:, 2, 3] + np.sin(motion.q[:, 0])).max()
    assert bent > 0.02  # it does bend: by two centimetres of a metre
    wanted = np.array(theirs)
    np.testing.assert_allclose(places, wanted[:, :2], rtol=0, atol=1e-3)  # of 1.8 m
    np.testing.assert_allclose(hinge, wanted[:, 2:], rtol=0, atol=2e-3)  # of 2 rad
