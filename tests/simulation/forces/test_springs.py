"""Joint springs: their law, their energy, and implicit steps with D + gamma h B + gamma^2 h^2 S."""

import mujoco
import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.forces import joint_springs, spring_law
from psiphi.simulation.forces.damping_and_friction import mobility
from psiphi.simulation.integration.integrators import METHODS, ORDER
from psiphi.simulation.plant import Plant
from psiphi_bench.rows_of.motions import distance
from tests.robot.embedding.mechanisms import train
from tests.simulation.simulate.motions import four_bar, juggler, pendulum, state, ur5
from tests.zoo import chain

HINGES = np.array([400.0, 300.0, 500.0, 40.0, 60.0, 20.0])
TABLE = {"deflection": [-0.4, -0.1, 0.0, 0.1, 0.5], "torque": [-9.0, -1.0, 0.0, 1.0, 30.0]}


def wheel(**words) -> pp.Robot:
    """A disc of inertia 0.01 on a hinge, weightless."""
    b = pp.Builder("wheel", gravity=(0, 0, 0))
    b.body("disc", mass=1.0, inertia=np.diag([0.01, 0.01, 0.01]))
    b.joint("axle", "revolute", parent="world", child="disc", axis=(0, 0, 1), **words)
    return b.build()


def sprung(robot: pp.Robot, spring=None, scale: float = 1.0) -> pp.Robot:
    """The robot with springs at its hinges; `spring` is that of the last one."""
    names = [joint.name for joint in robot.joints if joint.row.nv == 1]
    for name, k in zip(names, np.resize(HINGES, len(names)), strict=True):
        robot = robot.with_spring(name, scale * k, rest=0.2)
    return robot if spring is None else robot.with_spring(names[-1], spring=spring)


@pytest.fixture
def all_firm(monkeypatch):
    """Every spring is implicit."""
    monkeypatch.setattr(joint_springs, "MAX_EXPLICIT_SPRING", -1.0)


@pytest.mark.parametrize("w", [0.2, 0.7, 2.0, 6.0, 1e4])
@pytest.mark.parametrize("method", list(METHODS))
def test_a_wheel_that_swings(method, w, all_firm):
    """h omega = w: no step adds energy at any w; the midpoint rule preserves it, with the phase
    2 atan(w / 2) per step."""
    h, n = 1e-3, 50
    k = 0.01 * (w / h) ** 2
    motion = pp.simulate(
        wheel(stiffness=k), [0.1], [0.3], duration=n * h, dt=h, method=method, springs=True
    )
    E = 0.5 * 0.01 * motion.v[:, 0] ** 2 + 0.5 * k * motion.q[:, 0] ** 2
    np.testing.assert_allclose(motion.energy, E, rtol=1e-12, atol=1e-200)
    assert motion.info["implicit"]["springs"] == ["axle"]
    if method != "midpoint":
        assert (np.diff(E) <= 1e-14 * E[0]).all()
        return
    np.testing.assert_allclose(E, E[0], rtol=1e-12 * n)
    phase = np.angle(motion.q[:, 0] * w / h - 1j * motion.v[:, 0] * 1.0)
    np.testing.assert_allclose(
        np.exp(1j * np.diff(phase)), np.exp(2j * np.arctan(w / 2.0)), atol=1e-6
    )


@pytest.mark.parametrize("robot", [ur5, juggler], ids=["ur5", "juggler"])
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_order(robot, method, damping, all_firm):
    """Implicit springs, with losses and a polynomial whose slope changes within the step."""
    robot, steps = sprung(robot(), {"polynomial": [0.2, 0.5]}, 0.02), (40, 80, 160)
    q, v = state(robot, 3)
    options = dict(duration=0.1, method=method, springs=True, damping=damping)
    runs = [pp.simulate(robot, q, v, dt=0.1 / n, every=n, **options) for n in steps]
    assert all(motion.info["implicit"]["order"] == ORDER[method] for motion in runs)
    coarse, fine = (distance(robot, runs[i].final, runs[i + 1].final) for i in range(2))
    assert ORDER[method] - 0.2 < np.log2(coarse / fine) < ORDER[method] + 0.7


def test_soft_springs_keep_the_order():
    robot, steps = ur5().with_spring("*", 3.0, rest=0.2), (40, 80, 160)
    q, v = state(robot, 3)
    runs = [
        pp.simulate(robot, q, v, duration=0.2, dt=0.2 / n, every=n, springs=True) for n in steps
    ]
    coarse, fine = (distance(robot, runs[i].final, runs[i + 1].final) for i in range(2))
    assert np.log2(coarse / fine) > 3.8 and "implicit" not in runs[0].info


CASES = [("flying", method) for method in METHODS] + [
    ("loop", "implicit"),
    ("loop", "rk4"),
    ("long", "euler"),
    ("long", "lie"),
]
CASES += [
    ("arm", "implicit"),
    ("arm", "rk4"),
    ("batch", "midpoint"),
    ("law", "midpoint"),
    ("law", "rk4"),
    ("table", "lie"),
]


@pytest.mark.parametrize(("case", "method"), CASES)
def test_kernels_take_the_same_steps(case, method, all_firm):
    tau, extra = None, dict(damping=4.0, friction=1.0) if case in ("arm", "loop") else {}
    if case == "loop":
        robot, given = four_bar(), 3e3
        q = robot.assemble(np.array([0.6, 0.2, 1.2]))
        v = np.zeros(3)
    else:
        model = chain("long", ["revolute"] * 70, 1) if case == "long" else None
        robot = pp.Robot.of(model) if model else juggler() if case == "flying" else ur5()
        robot, given = (
            robot if model else sprung(robot, TABLE if case in ("table", "flying") else None),
            True,
        )
        given = 50.0 if model else given
        q, v = state(
            robot, 2, *([5] if case == "batch" else []), speed=0.1 if case == "long" else 1.0
        )
    if case == "law":
        tau = pp.PD(robot, lambda t: np.sin(t) * np.ones(6), 20.0, 1.0, gravity=True)
    options = dict(
        duration=0.03, dt=3e-3, springs=given, method=method, hold=case == "batch", **extra
    )
    fast, slow = (
        pp.simulate(robot, q, v, tau, compiled=compiled, **options) for compiled in (True, False)
    )
    assert fast.info == slow.info and "springs" in fast.info["implicit"]
    near = 1e-5 if case == "loop" else 1e-9
    for name in ("q", "v", "tau", "a", "energy"):
        one, other = getattr(fast, name), getattr(slow, name)
        np.testing.assert_allclose(
            one, other, rtol=1e-7, atol=near * max(1.0, np.abs(other).max()), err_msg=name
        )


def test_the_law_of_a_table():
    """Straight between its points, and on beyond them; its energy is the integral."""
    robot = wheel(spring=TABLE, rest=0.3)
    own = joint_springs.read_springs(Plant(robot), True)
    y = np.linspace(-1.0, 1.0, 2001)[:, None]
    s = spring_law.spring_force(0.3 + y, **own.active)[:, 0]
    inside = (y[:, 0] >= -0.4) & (y[:, 0] <= 0.5)
    np.testing.assert_allclose(
        s[inside], np.interp(y[inside, 0], TABLE["deflection"], TABLE["torque"]), atol=1e-12
    )
    np.testing.assert_allclose(np.diff(s)[-1] / 1e-3, 29.0 / 0.4, rtol=1e-9)
    U = own.energy(robot.manifold, 0.3 + y)
    np.testing.assert_allclose(np.gradient(U, 1e-3)[1:-1], s[1:-1], atol=0.1)
    np.testing.assert_allclose(U[1000], 0.0, atol=1e-12)
    assert robot.stiffness[0] == pytest.approx(10.0) and own.max_slope[0] == pytest.approx(
        29.0 / 0.4
    )


def test_a_smooth_table_is_the_natural_cubic_spline():
    """Against SciPy, linear beyond the ends; the energy is the integral, and steps across knots
    keep their order."""
    interpolate = pytest.importorskip("scipy.interpolate")
    points = dict(deflection=[-0.4, -0.1, 0.05, 0.3, 0.5], torque=[-9.0, -1.0, 0.5, 6.0, 7.0])
    robot = wheel(spring={**points, "smooth": True}, rest=0.3)
    own = joint_springs.read_springs(Plant(robot), True)
    spline = interpolate.CubicSpline(points["deflection"], points["torque"], bc_type="natural")
    y = np.linspace(-0.4, 0.5, 901)[:, None]
    np.testing.assert_allclose(
        spring_law.spring_force(0.3 + y, **own.active)[:, 0], spline(y[:, 0]), atol=1e-12
    )
    np.testing.assert_allclose(
        spring_law.spring_slope(0.3 + y, **own.active)[:, 0],
        np.maximum(spline(y[:, 0], 1), 0.0),
        atol=1e-11,
    )
    np.testing.assert_allclose(
        spring_law.spring_force(np.array([[1.3]]), **own.active),
        spline(0.5) + 0.5 * spline(0.5, 1),
        atol=1e-11,
    )
    U = [own.energy(robot.manifold, np.array([0.3 + x])) for x in (-0.3, 0.45)]
    np.testing.assert_allclose(U[1] - U[0], spline.integrate(-0.3, 0.45), atol=1e-12)
    assert robot.stiffness[0] == pytest.approx(float(spline(0.0, 1)))
    assert own.max_slope[0] == pytest.approx(
        np.max(spline(np.linspace(-0.4, 0.5, 90001), 1)), rel=1e-8
    )
    ends = [
        pp.simulate(robot, [0.7], [1.0], duration=0.24, dt=dt, springs=True).final.q[0]
        for dt in (4e-3, 2e-3, 2.5e-4)
    ]
    assert abs(ends[1] - ends[2]) < 0.15 * abs(ends[0] - ends[2]) < 1e-5


def test_a_table_beside_steps_of_scipys_choosing():
    robot = wheel(spring=TABLE, rest=0.1)
    options = dict(duration=0.5, springs=True)
    ours = pp.simulate(robot, [0.7], [1.0], dt=5e-4, **options)
    exact = pp.simulate(
        robot, [0.7], [1.0], dt=0.5, method="DOP853", rtol=1e-10, atol=1e-10, **options
    )
    assert abs(ours.final.q[0] - exact.final.q[0]) < 1e-4, (
        "steps across the bends are of lower order"
    )
    assert ours.drift < 1e-3 and exact.drift < 1e-7


MJ = """<mujoco><option timestep="1e-3" integrator="{integrator}"/><worldbody>
  <body name="a" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0" stiffness="300"
      springref="0.1" damping="{b}"/>
    <geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/>
    <body name="b" pos="0 0 -0.1"><joint name="h" axis="0 1 0" stiffness="{k}"
      springref="40" ref="10" damping="{b}"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.1 0 -0.5" contype="0"
        conaffinity="0"/></body></body>
  <body name="c" pos="1 0 1"><freejoint name="fly"/><geom size="0.1" contype="0" conaffinity="0"/>
    <body name="d"><joint name="w" axis="0 0 1" stiffness="1.5"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 -0.2" contype="0"
      conaffinity="0"/></body></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "method"), [("RK4", "rk4"), ("Euler", "euler"), ("implicitfast", "euler")]
)
@pytest.mark.parametrize("k", ["30", "30 10 200"])
def test_beside_mujoco(integrator, method, k):
    """MuJoCo's own integrators, for one second: springs with dampers, linear and (from MuJoCo 4 on)
    polynomial."""
    if " " in k and int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("MuJoCo 3 has linear springs")
    text = MJ.format(integrator=integrator, k=k, b="0" if method == "rk4" else "0.4")
    peer = mujoco.MjModel.from_xml_string(text)
    robot, data = pp.from_mujoco(text), mujoco.MjData(peer)
    assert not any("spring" in line for line in robot.report)
    layout = pp.interop.mujoco(robot, peer)
    q, v = (
        robot.integrate(robot.postures["qpos0"], 0.3 * np.ones(robot.nv)),
        np.linspace(-0.5, 0.5, robot.nv),
    )
    data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
    for _ in range(1000):
        mujoco.mj_step(peer, data)
    ours = pp.simulate(
        robot, q, v, duration=1.0, every=1000, method=method, springs=True, damping=True
    ).final
    flat = [joint for joint in robot.joints if joint.kind != "free"]
    own = np.concatenate([np.arange(joint.q_slice.start, joint.q_slice.stop) for joint in flat])
    np.testing.assert_allclose(ours.q[own], layout.from_q(data.qpos)[own], atol=1e-9)


def test_gradients_of_a_motion_with_springs():
    robot = sprung(pp.load("acrobot"), TABLE)
    q, v, n = *state(robot, 4), robot.nv

    def end(dq, method):
        return pp.rollout(robot, q + dq, v, steps=6, dt=5e-3, method=method, springs=True)

    for method in ("rk4", "midpoint"):
        weights = np.zeros((7, n))
        weights[-1] = np.arange(1.0, n + 1.0)
        found = end(0.0, method).vjp(weights)["q"]
        steps = 1e-6 * np.eye(n)
        wanted = [((end(d, method).q - end(-d, method).q)[-1] @ weights[-1]) / 2e-6 for d in steps]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_what_is_firm_is_said():
    robot = wheel(stiffness=0.01 * 600.0**2)
    motion = pp.simulate(robot, [0.1], duration=0.01, springs=True)
    assert "implicit        springs at axle, of order 3" in motion.summary()
    assert "energy drift" in motion.summary(), "springs lose nothing"
    soft = pp.simulate(wheel(stiffness=0.01 * 400.0**2), [0.1], duration=0.01, springs=True)
    assert "implicit" not in soft.info
    assert mobility(robot)[0] == pytest.approx(100.0)


@pytest.mark.parametrize("method", ["implicit", "midpoint"])
def test_a_stiff_pendulum_beside_its_limit(method):
    """A spring of 1e6 N m/rad holds the rod: h omega is about 1.4e3 at dt = 1 ms, and steps are
    stable."""
    motion = pp.simulate(pendulum(), [0.0], [0.1], duration=0.1, method=method, springs=1e9)
    assert not motion.events and np.abs(motion.q).max() < 1e-5
    if method == "midpoint":
        assert motion.drift < 1e-6


def test_step_and_linearize_know_the_midpoint_rule():
    robot = pp.load("acrobot")
    q, v = state(robot, 1)
    tau, h = np.ones(2), 1e-2
    one = robot.step(q, v, tau, h, method="midpoint")
    rolled = pp.rollout(robot, q, v, tau, h, 1, "midpoint")
    np.testing.assert_allclose(one[0], rolled.q[-1], rtol=1e-14)
    A, _ = robot.linearize(q, v, tau, dt=h, method="midpoint")
    d = 1e-6 * np.eye(2)
    after = [
        [robot.step(q + x, v, tau, h, method="midpoint")[0] for x in sign * d]
        for sign in (1.0, -1.0)
    ]
    np.testing.assert_allclose(A[:2, :2], np.subtract(*after).T / 2e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (-1.0, "at least 0"),
        ("soft", "springs"),
        (np.ones(5), "nv = 6"),
        (np.nan, "springs"),
    ],
)
def test_what_is_no_spring_is_refused(given, words):
    with pytest.raises(pp.Error, match=words):
        pp.simulate(ur5(), np.zeros(6), duration=0.01, springs=given)


def test_springs_of_your_own_are_for_hinges():
    robot = juggler()
    q, v = state(robot, 1)
    pp.simulate(robot, q, v, duration=0.01, springs=5.0)
    with pytest.raises(pp.Error, match="turns in space"):
        pp.simulate(robot, q, v, duration=0.01, springs=np.ones(robot.nv))


def test_springs_of_an_embedded_robot_are_its_own():
    """A spring at a joint of a gear train has the stiffness k ratio^2 at the free joint."""
    robot, gears, options = train()
    plain = pp.embed(robot, gears, **options)
    pp.simulate(plain, plain.neutral(), duration=0.002, springs=True)
    with pytest.raises(pp.Error, match="springs=True"):
        pp.simulate(plain, plain.neutral(), duration=0.002, springs=3.0)
    soft = pp.embed(robot.with_spring(robot.joint_names[0], 5.0), gears, **options)
    motion = pp.simulate(soft, soft.neutral(), np.ones(soft.nv), duration=0.02, springs=True)
    assert soft.stiffness.shape == (soft.nv,) and motion.drift < 1e-9
