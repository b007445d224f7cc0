"""What MJCF says of motors, flags and keyframes: rotors are those of mj_forward, what has no
counterpart is listed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import psiphi as pp
from tests.oracles import reference

mujoco = pytest.importorskip("mujoco")
SCENE = """<mujoco><option gravity="0 1 -9">{flags}</option><worldbody>
  <body name="a"><joint name="ball" type="ball"/><geom name="g1" size="0.2" pos="0.3 0 0"/>
    <body name="b" pos="0.4 0 0">
      <joint name="turn" axis="0 1 0.2" damping="0.5" armature="0.1" frictionloss="0.2" range="-60 60"/>
      <joint name="slide" type="slide" axis="1 0 0" stiffness="3" {slide}/><geom name="g2" size="0.1 0.2 0.3" type="box"/>
    </body></body></worldbody>{more}</mujoco>"""  # noqa: E501


def read(more="", flags="", slide=""):
    """The robot, MuJoCo's model, and what the report says of it."""
    peer = mujoco.MjModel.from_xml_string(SCENE.format(more=more, flags=flags, slide=slide))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = pp.from_mujoco(peer)
    return robot, peer, "\n".join(robot.report)


def agree(robot, peer, rng) -> None:
    """Accelerations with springs and damping, where no actuator pushes."""
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    layout, data = pp.interop.mujoco(robot, peer), mujoco.MjData(peer)
    q, v = robot.random(rng), rng.standard_normal(robot.nv)
    data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
    mujoco.mj_forward(peer, data)
    tau = -robot.damping * v
    tau[-1] -= 3.0 * q[-1]
    theirs = layout.from_a(data.qacc_smooth, data.qpos, data.qvel)
    np.testing.assert_allclose(
        reference.forward_dynamics(robot, q, v, tau), theirs, atol=1e-9 * np.abs(theirs).max()
    )


def motors(*rows: str) -> str:
    return f"<actuator>{''.join(f'<{row}/>' for row in rows)}</actuator>"


@pytest.mark.parametrize(
    "kind", ["motor", "position", "velocity", "general", "pid", "damper", "muscle"]
)
def test_rotors_are_seen_through_their_gears(kind, rng):
    """M and damping have gear² of the actuator's, whatever its law."""
    words = {"damper": 'ctrlrange="0 1"', "muscle": 'lengthrange="0.1 1"'}.get(kind, "")
    robot, peer, report = read(
        motors(
            f'{kind} joint="turn" gear="-3" armature="0.2" damping="0.3" {words}',
            f'{kind} jointinparent="slide" gear="2" armature="0.1" {words}',
            f'{kind} joint="slide" gear="0.5" damping="0.7" {words}',
        )
    )
    np.testing.assert_allclose(robot.armature, [0, 0, 0, 0.1 + 9 * 0.2, 4 * 0.1])
    np.testing.assert_allclose(robot.damping, [0, 0, 0, 0.5 + 9 * 0.3, 0.25 * 0.7])
    agree(robot, peer, rng)
    assert "armature and damping of actuators" not in report


def test_rotors_elsewhere_are_listed():
    tendon = '<tendon><fixed name="t"><joint joint="turn" coef="1"/></fixed></tendon>'
    for row in (
        'motor name="m" joint="ball" gear="1 2 3" armature="1"',
        'motor name="m" tendon="t" damping="1"',
    ):
        robot, _, report = read(tendon + motors(row))
        assert "actuators that are not on a hinge or slide: left out ('m')" in report
    assert (
        "nonlinear damping: only its linear part is used ('m')"
        in read(motors('motor name="m" joint="turn" damping="1 2"'))[2]
    )


def test_efforts_behind_actuators_of_several_controls():
    """An orientation servo has three controls and outputs, a PID servo two controls: the rows of
    others are further down."""
    own = (
        'motor joint="turn" gear="4" ctrlrange="-2 2"',
        'motor jointinparent="slide" gear="-3" forcerange="-5 5"',
    )
    for before in (
        (),
        ('orientation joint="ball" kp="2"',),
        ('pid joint="turn" gear="7" forcerange="-1 1"',),
    ):
        robot, _, report = read(motors(*before, *own))
        more = 7.0 if before and "pid" in before[0] else 0.0
        assert robot.effort[3:].tolist() == [8.0 + more, 15.0]
        assert (
            "where motors matter ('turn" not in report
            and "where motors matter ('slide" not in report
        )


def test_efforts_that_differ_by_direction_are_listed():
    for row, slide in (
        ('motor joint="slide" ctrlrange="-1 4"', ""),
        ('motor joint="slide"', 'actuatorfrcrange="-4 1"'),
    ):
        robot, _, report = read(motors(row), slide=slide)
        assert robot.effort[-1] == 4.0 and "the larger one is used ('slide')" in report
    robot, _, report = read(
        motors('motor joint="slide" gear="0"', 'motor joint="turn"'),
        slide='actuatorfrcrange="-4 4"',
    )
    assert (
        robot.effort[-1] == 4.0
        and "joints without an actuator" in report
        and "larger" not in report
    )


def test_what_flags_switch_off_is_told():
    words = {
        "spring": "springs",
        "damper": "damping",
        "frictionloss": "frictionloss",
        "limit": "limits",
    }
    for flag, word in words.items():
        assert f"part of the psiphi model ('{word}')" in read(flags=f'<flag {flag}="disable"/>')[2]
    assert (
        "('frictionloss', 'limits')" in read(flags='<flag constraint="disable"/>')[2]
        and "flag" not in read()[2]
    )
    weld = '<equality><weld name="w" body1="b"/></equality>'
    for flag in ("equality", "constraint"):
        robot, _, report = read(weld, flags=f'<flag {flag}="disable"/>')
        assert not robot.loops and "equality 'w': is not active" in report
    assert len(read(weld)[0].loops) == 1


def test_springs_that_yield_and_keyframes_that_move():
    assert (
        "springs that yield: yielding is left out ('slide')" in read(slide='springyield="0.1"')[2]
    )
    keys = '<key name="key1" qpos="1 0 0 0 0.1 0.2"/><key qpos="1 0 0 0 0.3 0.4" qvel="0 0 0 1 0"/>'
    robot, _, report = read(f"<keyframe>{keys}</keyframe>")
    assert robot.postures["key1"][-1] == 0.2 and robot.postures["key1_"][-1] == 0.4
    assert "velocities of keyframes: left out" in report
