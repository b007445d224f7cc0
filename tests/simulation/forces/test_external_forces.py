"""`f_ext=` of a simulation, beside closed forms and laws that add J* f to the torque."""

import numpy as np
import pytest

import psiphi as pp

ARM = pp.load("pelican")
F = np.array([0.3, -0.2, 0.1, 2.0, -1.0, 0.5])


def stone(gravity=(0, 0, 0)):
    b = pp.Builder("stone", gravity=gravity)
    b.body("stone", mass=2.0, inertia=(0.4, 0.4, 0.4))
    return b.build(base="free")


def test_a_constant_push_and_one_that_changes_with_time():
    """x = f t^2 / (2 m), and f = sin(3 t) twice integrated; each motion of a batch has its own."""
    robot = stone()
    push = np.zeros((2, 6))
    push[:, 3] = 4.0, -6.0
    q = np.stack([robot.neutral()] * 2)
    motion = pp.simulate(robot, q, duration=0.5, dt=0.01, f_ext={"stone": push})
    np.testing.assert_allclose(motion.final.q[:, 0], [0.25, -0.375], rtol=1e-12)
    for method in ("rk4", "RK45"):
        waves = pp.simulate(
            robot,
            q[0],
            duration=0.5,
            dt=0.01,
            method=method,
            f_ext={"stone": lambda t: (0, 0, 0, 0, 0, np.sin(3 * t))},
        )
        want = (0.5 / 3 - np.sin(1.5) / 9) / 2.0
        assert abs(waves.final.q[2] - want) < 1e-7
    assert not waves.tau.any() and "f_ext  " in waves.summary()
    assert "drift" not in waves.summary()


OPTIONS = [{}, {"hold": True}, {"damping": 500.0}, {"method": "midpoint"}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_push_is_the_torque_of_the_transposed_jacobian(options):
    """Effort limits bind the motors, not the push; the recorded torque is that of the motors."""
    q, v = np.array([0.3, -0.4]), np.array([0.1, 0.2])
    tau = np.array([1.0, -0.5])
    run = dict(duration=0.02, dt=1e-3, compiled=False) | options

    def pushed(t, q, v):
        return tau + ARM.jacobian(q, "tool").T @ F

    motion = pp.simulate(ARM, q, v, [10.0, -0.5], effort=[1.0, 1.0], f_ext={"tool": F}, **run)
    law = pp.simulate(ARM, q, v, pushed, **run)
    # a law that is held has the torque of the start of the step, and a push acts at every stage
    np.testing.assert_allclose(motion.q, law.q, atol=2e-6 if options.get("hold") else 1e-13)
    np.testing.assert_array_equal(motion.tau, np.broadcast_to(tau, motion.tau.shape))


def test_a_block_on_the_ground_slides_if_the_push_exceeds_friction():
    b = pp.Builder("block")
    b.body("block", mass=1.0, inertia=(0.01, 0.01, 0.01))
    cube = pp.Robot.of(b.build(base="free")).with_contacts({"block": pp.Box(0.2)})
    q = cube.on_ground(cube.neutral())
    ends = []
    for force in (4.0, 7.0):  # mu m g = 4.905 N
        motion = pp.simulate(
            cube,
            q,
            duration=0.1,
            dt=1e-3,
            contacts=pp.Ground(friction=0.5),
            f_ext={"block": (0, 0, 0, force, 0, 0)},
        )
        ends.append(motion.final.q[0])
        resisted = motion.forces[-1].sum(axis=0)
        assert resisted == pytest.approx([-min(force, 0.5 * 9.81), 0, 9.81], abs=1e-6)
    assert abs(ends[0]) < 1e-9
    assert ends[1] == pytest.approx((7.0 - 0.5 * 9.81) * 0.1**2 / 2, rel=2e-2)


def test_a_closed_chain_is_pushed():
    scene = pp.scenes.load("four_bar")
    cell, robot = scene.system, scene.system.robot
    frame = robot.bodies[-1].name
    q, v = np.asarray(scene.q0), np.zeros(cell.nv)
    motion = pp.simulate(cell, q, v, duration=2e-3, f_ext={frame: F})
    tau = robot.jacobian(q, frame).T @ F
    np.testing.assert_allclose(motion.a[0], cell.forward_dynamics(q, v, tau), rtol=1e-9, atol=1e-9)


def test_what_is_no_push_says_so():
    q = np.zeros(2)
    for f_ext, words in (
        (F, "expected a dict by frames"),
        ({"tol": F}, "no frame 'tol'.*'tool'"),
        ({"tool": F[:3]}, r"f_ext of tool has shape \(3,\)"),
        ({"tool": np.zeros((4, 6))}, r"shape \(4, 6\), expected \(6,\)"),
        ({"tool": lambda t: F[:2]}, r"f_ext of tool"),
        ({"tool": F * np.nan}, "f_ext of tool"),
    ):
        with pytest.raises(pp.Error, match=words):
            pp.simulate(ARM, q, duration=0.002, f_ext=f_ext)
    with pytest.raises(pp.StateError, match="compiled=True, but f_ext acts"):
        pp.simulate(ARM, q, duration=0.002, f_ext={"tool": F}, compiled=True)
    plain = pp.simulate(ARM, q, duration=0.002, f_ext={})
    assert "f_ext" not in plain.info
