"""Motions on a ground beside MuJoCo's, whose soft contacts are made stiff.

MuJoCo's law is the convex relaxation of Coulomb's law: what slides also lifts a little. Feet that
slide under a push hop by 5 mm there, so motions agree to some per cent only.
"""

import numpy as np
import pytest

import psiphi as pp

mujoco = pytest.importorskip("mujoco")

DT, FRICTION = 1e-3, 0.7
FEET = ("LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT")


def mujoco_model(robot, folder, radius):
    """The same bodies on a plane, with spheres at the contact points. The contacts are as stiff as
    the step allows: a time constant of two steps, an impedance of 0.999, impratio 100."""
    path = folder / "robot.xml"
    robot.save(path)
    spec = mujoco.MjSpec.from_file(str(path))
    stiff = {
        "friction": [FRICTION, 0.0, 0.0],
        "solref": [2.0 * DT, 1.0],
        "solimp": [0.999, 0.9999, 1e-4, 0.5, 2.0],
    }
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=1, **stiff
    )
    for point in robot.contact_points:
        owner = spec.body(point.frame) or spec.site(point.frame).parent
        site = spec.site(point.frame)
        owner.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[radius] * 3,
            pos=np.array(point.center) + (0.0 if site is None else site.pos),
            mass=0.0,
            contype=1,
            conaffinity=0,
            condim=3,
            **stiff,
        )
    spec.option.timestep, spec.option.impratio = DT, 100.0
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    return spec.compile()


def in_mujoco(model, q, v, steps, torque=None):
    """q (steps + 1, nq) in psiphi's order, and how many points touch (steps + 1,)."""
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([q[:3], q[[6, 3, 4, 5]], q[7:]])
    data.qvel[:] = np.concatenate([v[3:6], v[:3], v[6:]])
    out, touching = [q], []
    for k in range(steps):
        here = out[-1]
        turn, rate = data.qvel[3:6].copy(), data.qvel
        twist = np.concatenate([turn, np.zeros(3), rate[6:]])
        tau = np.zeros(len(v)) if torque is None else torque(k * DT, here, twist)
        data.qfrc_applied[:] = np.concatenate([tau[3:6], tau[:3], tau[6:]])
        mujoco.mj_step(model, data)
        touching.append(data.ncon)
        p = data.qpos
        out.append(np.concatenate([p[:3], p[[4, 5, 6, 3]], p[7:]]))
    return np.array(out), np.array(touching)


def test_a_pushed_quadruped(tmp_path):
    """Pushes of 0.2 s along the world's y: the same feet lift, and the base goes as far."""
    robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
    names, q = list(robot.coordinate_names), robot.neutral()
    for leg, side in {"LF": 1.0, "LH": -1.0, "RF": 1.0, "RH": -1.0}.items():
        q[names.index(f"{leg}_HFE")], q[names.index(f"{leg}_KFE")] = 0.4 * side, -0.8 * side
    q = robot.on_ground(q)
    model = mujoco_model(robot, tmp_path, 0.03)
    posture, steps = q[7:].copy(), 400
    for push in (0.0, 150.0, 400.0):

        def torque(t, x, v, push=push):
            legs = 200.0 * (posture - x[7:]) - 4.0 * v[6:]
            force = np.array([0.0, push if t < 0.2 else 0.0, 0.0])
            return np.concatenate([np.zeros(3), force, legs])

        def law(t, x, v, torque=torque):
            tau = torque(t, x, v)
            R = robot.frame_pose(x, "base")[:3, :3]
            tau[3:6] = R.T @ tau[3:6]  # of the free joint: in body axes
            return tau

        expected, touching = in_mujoco(model, q, np.zeros(robot.nv), steps, torque)
        ours = pp.simulate(
            robot, q, tau=law, duration=steps * DT, dt=DT, contacts=pp.Ground(friction=FRICTION)
        )
        way = np.linalg.norm(expected[:, :3] - q[:3], axis=1).max()
        apart = np.linalg.norm(ours.q[:, :3] - expected[:, :3], axis=1)
        assert apart[:201].max() < 0.03 * way + 5e-4  # while it is pushed
        assert apart[-1] < 0.03 * way + 2e-3  # the foot behind has slid, and hops in MuJoCo
        ends = (ours.q[-1], expected[-1])
        up = [[robot.frame_pose(x, foot)[2, 3] > 0.05 for foot in FEET] for x in ends]
        assert up[0] == up[1] and any(up[0]) == (push == 400.0)
        assert touching[-1] == 4 - sum(up[1])


def test_a_thrown_crate(tmp_path):
    """It slides, tumbles on its corners, and comes to rest at the same place."""
    builder = pp.Builder("crate")
    builder.body("crate", mass=3.0, inertia=(0.02, 0.05, 0.06))
    builder.joint("root", "free", "world", "crate")
    corners = [(x, y, z) for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (-0.05, 0.05)]
    shapes = [pp.Sphere(0.01, pose=corner) for corner in corners]
    robot = pp.Robot.of(builder.build()).with_contacts({"crate": shapes})
    model = mujoco_model(robot, tmp_path, 0.01)
    q = robot.neutral()
    q[2] = 0.1
    v = np.array([0.2, 0.5, 1.0, 1.5, 0.3, 0.0])
    expected, _ = in_mujoco(model, q, v, 600)
    ours = pp.simulate(robot, q, v, duration=0.6, dt=DT, contacts=pp.Ground(friction=FRICTION))
    way = np.linalg.norm(expected[-1, :2])
    assert np.linalg.norm(ours.q[-1, :2] - expected[-1, :2]) < 0.05 * way
    assert ours.q[-1, 2] == pytest.approx(expected[-1, 2], abs=1e-4)
