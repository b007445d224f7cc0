"""First afternoons of several people, each written from the docs alone: no dead end, and every
number is checked."""

import warnings

import numpy as np
import pytest

import psiphi as pp


def test_a_control_engineer_with_talos(tmp_path):
    """A payload in the left hand: does the arm carry it, how does the robot hold, what do the
    motors give?"""
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        talos = pp.load("talos", lock="leg_*")
    load = pp.Body.box(3.0, (0.1, 0.1, 0.2), name="load")
    robot = talos.attach(load, "gripper_left_base_link", (0, 0, -0.15))
    arm = robot.select("arm_left_*")
    assert len(arm) == 7 and abs(robot.mass - talos.mass - 3.0) < 1e-9
    q = robot.neutral()
    q[arm] = [0.4, 0.6, -0.3, -1.6, 0.2, 0.1, 0.3]
    more = abs(robot.gravity(q)[arm]) - abs(talos.gravity(q)[arm])
    assert more.max() > 5.0  # newton metres that the load adds
    tired = [robot.velocity_names[i] for i in arm if abs(robot.gravity(q)[i]) > robot.effort[i]]
    assert tired == [
        "arm_left_4_joint",
        "arm_left_7_joint",
    ]  # three kilograms are too many for this posture
    with pytest.warns(
        pp.MotionWarning, match=r"diverged.*_7_joint.*What helps.*pp\.ComputedTorque"
    ):  # a wrist is no hip
        pp.simulate(
            robot, q + 0.05, tau=pp.PD(robot, q, kp=800.0, kd=60.0, gravity=True), duration=0.01
        )
    hold = pp.ComputedTorque(robot, q, kp=400.0, kd=40.0)
    motion = pp.simulate(robot, q + 0.05, tau=hold, duration=0.3, limits="record")
    assert abs(motion.final.q - q).max() < 0.05 and "largest torque" in motion.summary()
    figure = motion.plot("tau", joints="arm_left_*", limits=True, path=tmp_path / "tau.png")
    assert (tmp_path / "tau.png").is_file() and figure is not None
    motion.save(tmp_path / "hold.csv")
    table = pandas.read_csv(tmp_path / "hold.csv")
    np.testing.assert_array_equal(
        table["tau:arm_left_4_joint"], motion.tau[:, robot.select("arm_left_4_joint")[0]]
    )


def test_a_researcher_of_predictive_control():
    """Swing an arm to a goal: steps, their Jacobians, a Gauss-Newton pass, and the gradient of a
    rollout beside differences."""
    arm, n, dt = pp.load("pelican"), 40, 5e-3
    start, goal, tau = np.zeros(2), np.array([0.3, -0.2]), np.zeros((40, 2))

    def cost(tau):
        motion = pp.rollout(arm, start, np.zeros(2), tau, dt=dt, steps=n)
        miss = motion.q[-1] - goal
        return 0.5 * (miss @ miss) + 0.5e-6 * (tau**2).sum(), motion, miss

    before, motion, miss = cost(tau)
    weights = np.zeros_like(motion.q)
    weights[-1] = miss
    gradient = motion.vjp(weights)["tau"] + 1e-6 * tau
    bump = np.zeros_like(tau)
    bump[7, 1] = 1e-4
    assert (
        abs((cost(tau + bump)[0] - cost(tau - bump)[0]) / 2e-4 - gradient[7, 1])
        < 1e-6 * abs(gradient).max() + 1e-9
    )
    for _ in range(3):  # Gauss-Newton over all torques: how the end moves with each of them
        _, motion, miss = cost(tau)
        A, B = arm.linearize(motion.q[:-1], motion.v[:-1], tau, dt=dt)
        S, sensitivity = np.eye(4)[:2], np.zeros((n, 2, 2))
        for k in reversed(range(n)):
            sensitivity[k], S = S @ B[k], S @ A[k]
        J = sensitivity.transpose(1, 0, 2).reshape(2, -1)
        tau = tau - (J.T @ np.linalg.solve(J @ J.T + 1e-9 * np.eye(2), miss)).reshape(n, 2)
    assert abs(cost(tau)[2]).max() < 1e-6 < before
    q, v = arm.step(start, np.zeros(2), tau[0], dt)
    np.testing.assert_allclose(q, cost(tau)[1].q[1], atol=1e-12)


def test_a_user_who_learns():
    """Thousands of randomised robots in float32, steps in a loop, and a batch that knows which
    element went wrong."""
    robot = pp.load("ur5")
    light = robot.free("inertia", links="wrist_*")
    parameters = light.randomised(256, spread=0.2, seed=0)
    assert np.ptp(light.at(parameters).mass) > 0.01
    q = robot.random(seed=1, size=256)
    a = light.forward_dynamics(q, np.zeros(6), np.zeros(6), parameters=parameters)
    assert a.shape == (256, 6) and np.isfinite(a).all()
    small, still = q.astype(np.float32), np.zeros((256, 6), np.float32)
    for _ in range(20):
        small, still = robot.step(small, still, np.zeros(6, np.float32), np.float32(2e-3))
    wide, rates = pp.rollout(robot, q, steps=20, every=20, dt=2e-3)
    assert small.dtype == still.dtype == np.float32
    np.testing.assert_allclose(small, wide[:, -1], atol=2e-3)
    with pytest.raises(pp.Error, match=r"(?s)q.*\[3\]|element 3|\(3"):
        robot.gravity(np.where(np.arange(256)[:, None] == 3, np.nan, q), check=True)


def test_a_teacher(tmp_path):
    """An identity on the board: written, proved, refuted, drawn, evaluated and counted."""
    robot = pp.load("puma560")
    s, q = robot.operators, robot.random(seed=0)
    mass = s.H @ s.phi @ s.M @ s.phi.T @ s.H.T + s.rotor  # its motors turn rotors
    np.testing.assert_allclose(mass.dense(q), robot.mass_matrix(q), atol=1e-12)
    F = s.I + s.H @ s.phi @ s.K
    proof = pp.prove(mass, F @ s.D @ F.T)
    assert proof and r"\phi" in proof.latex() and "<" in proof._repr_html_()
    assert not pp.prove(s.psi, s.phi) and "φ" in str(mass) and r"\phi" in mass.latex()
    mass.plot(q, path=tmp_path / "mass.png")
    assert (tmp_path / "mass.png").stat().st_size > 1000
    f = pp.function(mass.inv @ pp.vector("tau"))
    np.testing.assert_allclose(
        f(q, np.ones(6)), np.linalg.solve(mass.dense(q), np.ones(6)), rtol=1e-9
    )
    assert f.sweeps == 2 and 0 < f.flops < 3000 and f.explain()
    assert robot.html(tmp_path / "puma.html", live=True).stat().st_size > 10_000


def test_an_engineer_of_spacecraft():
    """A servicer grabs a tumbling target: momentum is kept, and the two turn on as one."""
    b = pp.Builder("bus", gravity=(0, 0, 0))
    b.body("bus", mass=100.0, inertia=(20, 0, 0, 20, 0, 20))
    servicer = b.build(base="free").attach(pp.load("ur5"), "bus", (0.5, 0, 0), prefix="arm_")
    assert servicer.nv == 12 and servicer.joint_names[0] != "arm_shoulder_pan_joint"
    q, v = servicer.neutral(), np.zeros(12)
    v[6:] = [0.1, -0.2, 0.3, 0.0, 0.1, 0.0]

    def brake(t, q, v):  # by the motors; nothing holds the bus
        return np.concatenate([np.zeros(6), -2.0 * v[6:]])

    motion = pp.simulate(servicer, q, v, brake, duration=0.3)
    h = servicer.centroidal_momentum(motion.q, motion.v)
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), atol=1e-6 * abs(h).max())
    assert abs(motion.final.q[:7] - q[:7]).max() > 1e-4  # the bus reacts
    target = pp.Body.box(40.0, (0.4, 0.4, 0.4), name="target")
    caught = servicer.attach(target, "arm_tool", (0, 0, 0.2))
    assert abs(caught.mass - servicer.mass - 40.0) < 1e-9 and caught.nv == 12
    after = pp.simulate(caught, motion.final.q, motion.final.v, duration=0.2)
    assert after.drift < 1e-6
    M, J = caught.mass_matrix(motion.final.q), caught.jacobian(motion.final.q, "arm_tool")
    generalised = J[:, 6:] - J[:, :6] @ np.linalg.solve(
        M[:6, :6], M[:6, 6:]
    )  # hand speed while the base reacts
    assert np.linalg.norm(generalised) < np.linalg.norm(J[:, 6:])


def test_somebody_whose_drone_stands_on_the_ground(tmp_path):
    """A file without joints, bolted down: nothing moves, all functions say so, or nothing;
    base="free" is what was meant."""
    text = """<robot name="drone"><link name="body"><inertial><mass value="1"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    still, none = pp.load(text), np.zeros((3, 0))
    assert still.nv == 0 and any(
        'base="free") makes its base free' in line for line in still.report
    )
    assert still.forward_dynamics(none, none, none).shape == (3, 0)
    assert still.function("forward_dynamics").jacobian("q")(none, none, none).shape == (3, 0, 0)
    for dt in (None, 0.01):
        assert [x.shape for x in still.linearize(none, none, none, dt)] == [(3, 0, 0)] * 2
    for asked in (
        still.base_parameters,
        lambda: still.excitation(none, none, none),
        lambda: pp.identify(still, none, none, none, none),
    ):
        with pytest.raises(pp.Error, match=r'drone has no moving joint.*base="free"'):
            asked()
    assert pp.load(text, base="free").base_parameters().rank == 10


def test_somebody_whose_log_is_sorted_by_name(tmp_path):
    """Columns in alphabetical order, as logs have them: numbers of other joints, refused wherever
    they come in; a file of a motion is read by its names."""
    pandas = pytest.importorskip("pandas")
    robot = pp.load("ur5")
    q = pandas.DataFrame(robot.random(seed=0, size=40), columns=list(robot.coordinate_names))
    by_name, one = q[sorted(q.columns)], np.zeros((40, 6))
    np.testing.assert_array_equal(robot.gravity(q), robot.gravity(q.to_numpy()))
    np.testing.assert_array_equal(
        robot.gravity(by_name[list(robot.coordinate_names)]), robot.gravity(q)
    )
    for asked in (
        lambda: robot.gravity(by_name),
        lambda: robot.gravity(by_name.iloc[0]),
        lambda: robot.gravity(by_name.rename(columns="q:{}".format)),
        lambda: robot.inverse_dynamics(q, by_name, one),
        lambda: robot.step(by_name, one, one, 1e-3),
        lambda: pp.simulate(robot, by_name, duration=1e-3),
        lambda: pp.identify(robot, q, one, one, by_name),
        lambda: pp.Trajectory(np.arange(40.0), by_name, one, system=robot),
    ):
        with pytest.raises(
            pp.StateError, match=r"'elbow_joint', 'shoulder_lift.*in another order than ur5.*_names"
        ):
            asked()
    pp.Trajectory(np.arange(40.0), q, one, system=robot).save(tmp_path / "log.csv")
    table = pandas.read_csv(tmp_path / "log.csv")
    table[sorted(table.columns)].to_csv(tmp_path / "sorted.csv", index=False)
    for file in ("log.csv", "sorted.csv"):
        np.testing.assert_array_equal(pp.Trajectory.load(tmp_path / file, robot).q, q)


def test_somebody_who_balances_a_pole():
    """A regulator of one motor answers one number: it is not spread over joints that have none."""
    b = pp.Builder("cartpole")
    b.body("cart", mass=1.0)
    b.body("pole", mass=0.1, com=(0, 0, 0.5), inertia=(0.1 / 12, 0.1 / 12, 1e-5))  # the diagonal
    b.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0))
    b.joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))
    robot = b.build()
    A, B = robot.linearize(np.zeros(2), np.zeros(2), np.zeros(2))
    inertia, m, M, l, g = 0.1 / 12 + 0.1 * 0.25, 0.1, 1.0, 0.5, 9.81
    whole = (M + m) * inertia - (m * l) ** 2
    np.testing.assert_allclose(A[2:, 1], [-((m * l) ** 2) * g / whole, (M + m) * m * g * l / whole])
    np.testing.assert_allclose(B[2:, 0], [inertia / whole, -m * l / whole])
    K = np.array([[-1.0, -30.0, -2.5, -7.0]])

    def law(t, q, v):
        return -K @ np.concatenate([q, v])

    with pytest.raises(pp.StateError, match=r"shape \(1,\), expected \(2,\).*passive="):
        pp.simulate(robot, [0, 0.2], tau=law, duration=0.01)
    with pytest.raises(pp.StateError, match=r"shape \(\), expected \(2,\)"):
        pp.simulate(robot, [0, 0.2], tau=lambda t, q, v: float(law(t, q, v)[0]), duration=0.01)
    motion = pp.simulate(robot, [0, 0.2], tau=law, passive="hinge", duration=4.0)
    assert abs(motion.final.q[1]) < 0.05 and not motion.tau[:, 1].any()
    own = dict(
        q0=[0, 0.2], duration=0.1
    )  # a number is that of the only motor, and 0 that of every one
    one = pp.simulate(robot, tau=lambda t, q, v: 3.0 * q[1] - v[0], passive="hinge", **own)
    row = pp.simulate(robot, tau=lambda t, q, v: [3.0 * q[1] - v[0], 0.0], **own)
    np.testing.assert_allclose(one.q, row.q, rtol=1e-12)
    for compiled in (True, False):
        still = pp.simulate(robot, tau=lambda t, q, v: 0.0, compiled=compiled, **own)
        np.testing.assert_allclose(still.q, pp.simulate(robot, **own).q, rtol=1e-12, atol=1e-15)


def test_a_researcher_of_legged_robots(tmp_path):
    """Does a standing quadruped survive a shove? Which feet slide, and do steps of a learning loop
    give the same motion?"""
    robot, ground = pp.load("anymal_c"), pp.Ground(friction=0.8)
    signs = {"LF": 1, "RF": 1, "LH": -1, "RH": -1}
    bent = {f"{leg}_HFE": 0.4 * sign for leg, sign in signs.items()}
    bent |= {f"{leg}_KFE": -0.8 * sign for leg, sign in signs.items()}
    q = robot.on_ground(robot.with_posture("stand", bent).postures["stand"], ground)
    stand = pp.PD(robot, q, kp=300.0, kd=8.0)
    run = dict(tau=stand, dt=2e-3, contacts=ground)
    still = pp.simulate(robot, q, duration=1.0, **run)
    weight = 9.81 * robot.mass
    np.testing.assert_allclose(still.forces[-1].sum(axis=0), [0, 0, weight], atol=1.0)
    assert (still.modes[-1] == 1).all() and abs(still.gaps[-1]).max() < 1e-6

    def shove(t):  # 100 N to the left, for a tenth of a second
        return [0, 0, 0, 0, 100.0 if t < 0.1 else 0.0, 0]

    q, v = still.final.q, still.final.v
    pushed = pp.simulate(robot, q, v, duration=0.2, f_ext={"base": shove}, **run)
    moved = robot.center_of_mass(pushed.final.q) - robot.center_of_mass(q)
    assert moved[1] > 1e-3 and abs(moved[2]) < 0.05  # it leans, and stands
    during = pushed.forces[10].sum(axis=0)
    assert during[1] < -10.0  # the feet hold against the shove
    rows, at = [], (q, v)
    for k in range(5):
        *at, _ = robot.step(*at, stand(k * 2e-3, *at), 2e-3, contacts=ground)
        rows.append(at[0])
    free = pp.rollout(robot, q, v, steps=5, **run)
    np.testing.assert_allclose(rows, free.q[1:], rtol=0, atol=1e-9)
    assert pushed.html(tmp_path / "shove.html").stat().st_size > 10_000


def test_somebody_with_a_messy_file(tmp_path, capsys):
    """A file of an old exporter: all faults at once, repairs that need no guess, and a robot."""
    from psiphi.apps.cli import main as cli

    inertial = """<inertial><origin xyz="0 0 0.2"/><mass value="{}"/><inertia ixx="{}" iyy="0.02"
    izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>"""
    joint = """<joint name="{}" type="{}"><origin xyz="0 0 0.4" rpy="{}"/><parent link="{}"/>
    <child link="{}"/><axis xyz="0 1 0"/>
    <limit lower="{}" upper="{}" effort="{}" velocity="2"/></joint>"""
    text = "".join(
        (
            '<robot name="old"><link name="base"/>',
            f'<link name="upper">{inertial.format(2, -0.2)}<visual><geometry>'
            '<mesh filename="package://lost/upper.stl"/></geometry></visual></link>',
            f'<link name="lower">{inertial.format("1,5", 0.02)}</link>',
            f'<link name="finger">{inertial.format(0.1, 0.02)}</link>',
            joint.format("shoulder", "revolute", "0 0 0", "base", "upper", 2, -2, 0),
            joint.format("elbow", "revolut", "0 90 0", "upper", "lower", -90, 90, 10),
            joint.format("grip", "revolute", "0 0 0", "lowr", "finger", -1, 1, 5),
            "</robot>",
        )
    ).replace("<link", "\n<link")
    file = tmp_path / "old.urdf"
    file.write_text(text, encoding="utf-8")
    assert cli.main(["check", str(file)]) == 1
    told = capsys.readouterr().out
    for words in ("5 faults", "principal moments -0.2", "decimal point", "'revolute'", "'lower'"):
        assert words in told
    for words in ("lower limit 2 is above upper limit -2", "upper.stl", "effort limit 0"):
        assert words in told
    corrected = (
        text.replace("1,5", "1.5").replace('"revolut"', '"revolute"').replace("lowr", "lower")
    )
    file.write_text(corrected, encoding="utf-8")
    with pytest.warns(pp.ModelWarning, match=r"(?s)in degrees.*repaired") as caught:
        robot = pp.load(file, repair=("inertia", "limits"), lock="grip")
    assert len(caught) == 1 and robot.nv == 2
    assert robot.lower[robot.select("shoulder")].tolist() == [-2.0]
    assert any("upper.stl" in line for line in robot.report)
    file.write_text(corrected.replace("0 90 0", "0 1.5708 0"), encoding="utf-8")
    with pytest.warns(pp.ModelWarning, match="repaired"):
        robot = pp.load(file, repair="all", lock="grip")
    motion = pp.simulate(robot, robot.neutral(), duration=0.1)
    assert motion.drift < 1e-6 and motion.html(tmp_path / "old.html").is_file()


def test_what_newcomers_give():
    """Each is right, or refused in words that help."""
    robot = pp.load("ur5")
    s, light, load = robot.operators, robot.free("mass"), pp.Body("load", 1.0)
    for asked, words in (
        (
            lambda: robot.with_frame("tip", "tool", [0, 0, 0.1, 0, 0, 0]),
            r"\[\(x, y, z\), \(roll, pitch, yaw\)\]",
        ),
        (
            lambda: pp.reach(robot, {"tool": pp.Pose([0.4, 0.1, 0.4])}),
            r"the rotation of the target.*3x3 matrix",
        ),
        (lambda: robot.attach(load, "tool").with_gravity(-1.62), r"give x, y, z: \(0, 0, -9.81\)"),
        (lambda: pp.Builder("arm").body("a", mass="heavy"), r"mass is 'heavy', expected numbers"),
        (lambda: pp.Builder("arm").body("a", mass=True), r"mass is True, expected numbers"),
        (
            lambda: light.masses({"wrist_3_link": -1.0}),
            r"the mass of wrist_3_link is -1.0, expected 0 or more",
        ),
        (lambda: robot.free(["mass", "com"]), r'robot.free\("mass", "com"\)'),
        (
            lambda: pp.Trajectory(np.zeros((3, 6)), np.zeros((3, 6)), np.arange(3)),
            r"t has shape \(3, 6\).*the order is t, q, v, a, tau",
        ),
        (
            lambda: pp.simulate(robot.with_posture("home", np.ones(6)), "home"),
            r"robot.postures\['home'\]",
        ),
        (lambda: pp.load("<robot/>", keyframe="home", mode=1), r"did you mean 'frames'"),
        (lambda: pp.load("<robot/>", colour="red"), r"its options are base, lock, .* max_bodies"),
        (lambda: np.linalg.inv(s.mass), r"is an operator, not an array.*expr.dense\(q\)"),
        (
            lambda: pp.prove("mass", s.mass),
            r"'mass' is not an operator expression.*robot.operators",
        ),
        (lambda: s.J("tool").inv, r"^\(B\('tool'\).T @ phi.T @ H.T\).inv: "),
    ):
        with pytest.raises(pp.Error, match=words):
            asked()
    arm = pp.from_dh([pp.DH(mass=1.0, com=(0.5, 0, 0))], tool=(1, 0, 0))  # a tool's place alone
    np.testing.assert_array_equal(arm.frame_pose([0.0], "tool")[:3, 3], [1, 0, 0])
    with pytest.raises(AttributeError, match=r"use robot.forward_dynamics"):
        _ = pp.forward_dynamics  # type: ignore[attr-defined]


def test_what_newcomers_forget():
    """A joint that was not written, limits in degrees, loops of a file that nobody closed: not
    refused, and not silent."""
    b = pp.Builder("arm")
    b.body("upper", mass=1.0, com=(0, 0, 0.1))
    b.body("lower", mass=1.0, com=(0, 0, 0.1))
    b.joint("shoulder", "revolute", "world", "upper", axis=(0, 1, 0), lower=-90, upper=90)
    with pytest.warns(
        pp.ModelWarning, match=r"-90 and 90 are several turns.*degrees.*'lower': has no joint"
    ):
        b.build()
    with pytest.raises(pp.ModelError, match="did you mean 'world'"):
        b.joint("elbow", "revolute", "wrld", "lower")
        b.build()
    panda = pp.load("panda")
    summary = pp.simulate(panda, panda.neutral(), duration=1e-3).summary()
    assert (
        "left out" in summary
        and "pp.connect(robot, mimic=True)" in summary
        and "damping (damping=True)" in summary
    )
    assert "beyond limits   panda_joint4" in summary  # whose zero is
    plain = pp.simulate(pp.load("ur5"), np.zeros(6), duration=1e-3).summary()
    assert "left out" not in plain and "beyond" not in plain
    assert (
        "beyond limits   elbow_joint"
        in pp.simulate(pp.load("ur5"), [0, 0, 90, 0, 0, 0], duration=1e-3).summary()
    )
