"""Masses, gains and friction of each episode, commands, pushes and delays, against `robot.step`."""

from functools import cache

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.compiler.sweeps.sweep_program import PARAMETERS

N, DT, DECIMATION = 9, 0.004, 3
RELATIVE = {"uniform": (0.5, 1.5), "relative": True}
NUMBERS = {
    "mass": {"ball": RELATIVE, "arm": (0.2, 0.6)},
    "com": {"arm": (-0.05, 0.05)},
    "armature": {"elbow": (0.01, 0.1)},
    "kp": RELATIVE,
    "kd": {"elbow": {"choice": [0.5, 1.0]}},
    "ground_friction": (0.1, 1.0),
}


@cache
def ball():
    """A ball on the ground, with an arm that has a motor."""
    build = pp.Builder("ball")
    build.body("ball", mass=1.0, inertia=0.004 * np.eye(3))
    build.body("arm", mass=0.4, com=(0.0, 0.0, 0.2), inertia=0.002 * np.eye(3))
    build.joint("base", "free", "world", "ball")
    build.joint("elbow", "revolute", "ball", "arm", axis=(0, 1, 0), effort=4.0)
    return build.build().with_contacts({"ball": pp.Sphere(0.1)})


def make(**options):
    robot = ball()
    q0 = robot.neutral()
    q0[2] = 0.1
    given = dict(
        actuation=pp.PD(robot, q0, kp=20.0, kd=1.0),
        observations=["q", "v", "action"],
        rewards={"alive": 1.0},
        resets={"v": {"x": (0.5, 1.5)}},
        episode_length=0.12,
        dt=DT,
        decimation=DECIMATION,
        effort=True,
        q0=q0,
    )
    return pp.environment(robot, pp.Ground(friction=0.5), **(given | options))


@cache
def randomized():
    return make(randomize=NUMBERS)


def by_hand(state, targets):
    """The state after the steps of the simulation, with the PD targets (steps, N) of the elbow."""
    free = ball().free("mass", "com", "armature", links=["ball", "arm"])
    parameters = state.get(PARAMETERS, np.tile(free.parameters(), (N, 1)))
    kp, kd = (state.get(f"law.{x}", np.full((N, 7), g)) for x, g in (("kp", 20.0), ("kd", 1.0)))
    friction = state.get("contact.friction", np.full((N, 1), 0.5))
    robot, ground = free.at(parameters), pp.Ground(friction=friction)
    q, v = state["q"], state["v"]
    for target in targets:
        tau = np.zeros((N, 7))
        tau[:, 6] = np.clip(kp[:, 6] * (target - q[:, 7]) - kd[:, 6] * v[:, 6], -4.0, 4.0)
        q, v, _ = robot.step(q, v, tau, DT, contacts=ground)
    return q, v


def test_numbers_are_drawn_for_each_episode():
    env = randomized()
    state, _ = env.reset(4000, seed=0)
    names = ball().free("mass", "com", "armature", links=["ball", "arm"]).freed.names
    p = dict(zip(names, state[PARAMETERS].T, strict=True))
    for name, low, high in (
        ("ball.mass", 0.5, 1.5),
        ("arm.mass", 0.2, 0.6),
        ("arm.x", -0.05, 0.05),
        ("arm.z", 0.15, 0.25),
        ("elbow.armature", 0.01, 0.1),
    ):
        x = (p[name] - low) / (high - low)
        assert 0.0 <= x.min() < 0.01 and 0.99 < x.max() <= 1.0 and abs(x.mean() - 0.5) < 0.02, name
    assert abs(np.corrcoef([p["ball.mass"], p["arm.mass"]])[0, 1]) < 0.05
    kp, kd, friction = (state[x] for x in ("law.kp", "law.kd", "contact.friction"))
    assert (kp == kp[:, :1]).all() and 10.0 <= kp.min() < 10.1 and 29.9 < kp.max() <= 30.0
    assert set(kd[:, 6]) == {0.5, 1.0} and (kd[:, :6] == 1.0).all()
    assert 0.1 <= friction.min() < 0.11 and 0.99 < friction.max() <= 1.0
    again, _ = env.begin(state, np.arange(4000) < 2000)
    changed = (again[PARAMETERS] != state[PARAMETERS]).any(axis=1)
    np.testing.assert_array_equal(changed, np.arange(4000) < 2000)


def test_a_step_has_the_numbers_of_its_episode():
    """Also those of the next one, after an autoreset."""
    env, rng = randomized(), np.random.default_rng(0)
    state, _ = env.reset(N, seed=1)
    for k in range(12):
        action = rng.uniform(-1.0, 1.0, (N, 1))
        q, v = by_hand(state, np.tile(action[:, 0], (DECIMATION, 1)))
        new, result = env.step(state, action, "same_step")
        last = result.final_observations["policy"]
        np.testing.assert_allclose(last[:, :15], np.concatenate([q, v], axis=1), atol=1e-9)
        differs = (new[PARAMETERS] != state[PARAMETERS]).any(axis=1)
        assert (differs == (k == 9)).all() and result.truncated.all() == (k == 9)
        state = new


def test_pushes_and_commands_come_at_their_times():
    distribution = {"x": (0.5, 1.0), "y": {"choice": [-2.0]}}
    commands = {"speed": (0.0, 1.0), "turn": 0.25}
    env = make(
        pushes=distribution,
        push_interval=0.048,
        commands=commands,
        command_interval=0.024,
        observations=["q", "v", "command", ("v", {"noise": (0.0, 1e-9)})],
        episode_length=None,
    )
    state, seen = env.reset(N, seed=2)
    np.testing.assert_array_equal(seen["policy"][:, 15:17], state["env.command"])
    assert (state["env.command"][:, 1] == 0.25).all()
    pushes = []
    for k in range(1, 10):
        q, v = by_hand(state, np.zeros((DECIMATION, N)))
        new, result = env.step(state, np.zeros((N, 1)))
        np.testing.assert_allclose(new["q"], q, atol=1e-10)
        change = new["v"] - v
        if k % 4 == 0:
            assert (change[:, 3] > 0.4999).all() and (change[:, 3] < 1.0001).all()
            np.testing.assert_allclose(change[:, 4], -2.0, atol=1e-9)
            np.testing.assert_allclose(change[:, [0, 1, 2, 5, 6]], 0.0, atol=1e-9)
            pushes.append(change[:, 3])
        else:
            np.testing.assert_allclose(change, 0.0, atol=1e-9)
        fresh = (new["env.command"][:, 0] != state["env.command"][:, 0]).all()
        assert fresh == (k % 2 == 0)
        np.testing.assert_array_equal(result.observations["policy"][:, 15:17], new["env.command"])
        state = new
    assert len(pushes) == 2 and np.ptp(pushes) > 0.2
    again, _ = env.begin(state, np.ones(N, dtype=bool))
    np.testing.assert_array_equal(again["env.timers"], np.tile([2.0, 4.0], (N, 1)))


@pytest.mark.parametrize("delay", [1, 3, 4, 8])
def test_actions_act_late(delay):
    """A delay of some steps of the simulation, of a control step, and of more."""
    env, rng = make(action_delay=delay * DT, episode_length=None), np.random.default_rng(3)
    state, _ = env.reset(N, seed=3)
    given = np.zeros((delay, N))  # one row for each step of the simulation
    for _ in range(4):
        action = rng.uniform(-1.0, 1.0, (N, 1))
        given = np.concatenate([given, np.tile(action[:, 0], (DECIMATION, 1))])
        q, v = by_hand(state, given[:DECIMATION])
        given = given[DECIMATION:]
        state, result = env.step(state, action)
        np.testing.assert_allclose(state["q"], q, atol=1e-9)
        np.testing.assert_allclose(state["v"], v, atol=1e-8)
        np.testing.assert_array_equal(result.observations["policy"][:, 15:], action)
    again, _ = env.begin(state, np.ones(N, dtype=bool))
    assert (again["env.history"] == 0.0).all()


def test_torques_too():
    """Masses of a robot without ground or controller, and one episode alone."""
    cart = pp.load("cartpole")
    env = pp.environment(
        cart,
        observations=["q", "v"],
        rewards={"alive": 1.0},
        actuated="slide",
        randomize={"mass": {"*": RELATIVE}},
        action_delay=0.01,
    )
    state, _ = env.reset(N, seed=4, episode=6)
    alone, _ = env.reset([5], seed=4, episode=6)
    np.testing.assert_array_equal(alone[PARAMETERS][0], state[PARAMETERS][5])
    new, _ = env.step(state, np.ones((N, 1)))
    tau = np.zeros((N, 4, 2))
    tau[:, 2:, 0] = 10.0
    robot = cart.free("mass").at(state[PARAMETERS])
    q, v = pp.rollout(robot, state["q"], state["v"], tau, dt=0.005, steps=4)
    np.testing.assert_allclose(new["q"], q[:, -1], atol=1e-14)
    np.testing.assert_allclose(new["v"], v[:, -1], atol=1e-14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(randomize={"weight": 1.0}), "randomize is .* expected some of mass"),
        (dict(randomize={"stiffness": 1.0}), "randomize is .* expected some of mass"),
        (dict(randomize={"damping": 1.0}), "the damping of joints does not act"),
        (dict(randomize={"damping": 1.0}, damping=True), "have no damping"),
        (dict(randomize={}), "randomize is"),
        (dict(randomize={"mass": {"leg": 1.0}}), "leg"),
        (dict(randomize={"mass": "heavy"}), "heavy"),
        (dict(randomize={"mass": {"ball": (-1.0, 1.0)}}), "mass of ball is negative"),
        (dict(randomize={"mass": {"ball": {"grid": [1, 2]}}}), "grid"),
        (dict(randomize={"kp": 2.0}, actuation=None, effort=False), "has no gains"),
        (dict(pushes={"x": 1.0}), "belong together"),
        (dict(push_interval=1.0), "belong together"),
        (dict(pushes={"up": 1.0}, push_interval=1.0), "up"),
        (dict(pushes=[1.0], push_interval=1.0), "expected a dict"),
        (dict(command_interval=1.0), "without commands"),
        (dict(command_interval=-1.0, commands={"x": 1.0}), "command_interval"),
        (dict(action_delay=-0.1), "action_delay"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(pp.Error, match=f"(?s){words}"):
        make(**options)


def test_contacts_that_are_not_solved_are_reported():
    """One iteration does not solve two contacts of a robot that slides."""
    pytest.importorskip("gymnasium")
    feet = {"ball": pp.Sphere(0.1), "arm": pp.Sphere(0.1, pose=(0.3, 0.0, 0.0))}
    robot = ball().with_contacts(feet)
    q0 = robot.neutral()
    q0[2] = 0.1
    reports = {}
    for iterations in (1, 200):
        env = pp.environment(
            robot,
            pp.Ground(friction=0.5, iterations=iterations),
            observations=["q", "v"],
            rewards={"alive": 1.0},
            resets={"v": {"x": (0.5, 1.5), "y": (0.5, 1.5)}},
            q0=q0,
        )
        envs = env.vector(N)
        envs.reset(seed=0)
        *_, info = envs.step(np.ones((N, 1), dtype=np.float32))
        reports[iterations] = info
    flagged = reports[1]["_contact_residual"]
    assert flagged.any() and (reports[1]["contact_residual"][flagged] > 1e-6).all()
    assert "contact_residual" not in reports[200]


def test_times_in_the_air():
    """They add up while a contact is missing, and a landing pays its flight less 0.5 s."""
    env = make(
        resets={"offset": {"z": 0.02}, "v": {"z": (0.2, 2.0)}},
        commands={"vx": {"choice": (0.0, 1.0)}, "vy": 0.0, "turn": 0.0},
        pushes={"z": (0.0, 3.0)},
        push_interval=0.15,
        observations=["contacts", "air_time", lambda s: s.flight_time, "command"],
        rewards={"air_time": 2.0},
        episode_length=0.9,
    )
    state, seen = env.reset(40, seed=2)
    assert not seen["policy"][:, :3].any()
    air, flights, long = np.zeros(40), 0, 0
    for _ in range(160):
        walks = seen["policy"][:, 3] > 0.5
        state, result = env.step(state, np.zeros((40, 1)), "same_step")
        seen, last = result.observations, result.final_observations
        assert last is not None
        over = result.terminated | result.truncated
        touches, in_air, flight, _ = np.where(over[:, None], last["policy"], seen["policy"])[
            :, :4
        ].T
        np.testing.assert_allclose(flight, touches * air, atol=1e-12)
        air = (1.0 - touches) * (air + env.step_time)
        np.testing.assert_allclose(in_air, air, atol=1e-12)
        lands = flight > 1.5 * env.step_time
        np.testing.assert_allclose(result.reward, 2.0 * walks * lands * (flight - 0.5), atol=1e-12)
        flights, long = flights + (walks & lands).sum(), long + (flight > 0.3).sum()
        assert not seen["policy"][over, 1:3].any()
        air[over] = 0.0
    assert flights > 20 and long > 3


def test_damping_differs_by_episode():
    """Each environment moves as a robot with its damping does, which is implicit on a ground."""
    build = pp.Builder("damped")
    build.body("ball", mass=1.0, inertia=0.004 * np.eye(3))
    build.body("arm", mass=0.4, com=(0.0, 0.0, 0.2), inertia=0.002 * np.eye(3))
    build.body("hand", mass=0.1, com=(0.0, 0.0, 0.1), inertia=0.001 * np.eye(3))
    build.joint("base", "free", "world", "ball")
    build.joint("elbow", "revolute", "ball", "arm", axis=(0, 1, 0), effort=4.0, damping=0.05)
    build.joint("wrist", "revolute", "arm", "hand", xyz=(0, 0, 0.4), axis=(0, 1, 0), effort=1.0)
    robot = build.build().with_contacts({"ball": pp.Sphere(0.1)})
    q0 = robot.neutral()
    q0[2] = 0.1
    options = dict(
        actuation=pp.PD(robot, q0, kp=20.0, kd=0.0),
        observations=["q"],
        rewards={"alive": 1.0},
        q0=q0,
        v0=[0.0] * 6 + [3.0, -4.0],
        dt=DT,
        decimation=DECIMATION,
    )
    numbers = {"elbow": {"uniform": (0.2, 4.0), "relative": True}, "wrist": (0.0, 2.0)}
    ground = pp.Ground(friction=0.5)
    env = pp.environment(robot, ground, damping=True, randomize={"damping": numbers}, **options)
    state, _ = env.reset(N, seed=4)
    b = state["damping"].copy()
    assert not b[:, :6].any() and (b[:, 6] > 0.01).all() and (b[:, 6] < 0.2).all()
    assert np.ptp(b[:, 7]) > 0.5
    start, found = state, env.step(state, np.zeros((N, 2)))[0]
    assert (found["damping"] == b).all()
    for i in range(N):
        alone = dict(damping=b[i], dt=DT, steps=DECIMATION, contacts=ground)
        law = pp.PD(robot, q0, kp=20.0, kd=0.0)
        motion = pp.rollout(robot, start["q"][i], start["v"][i], tau=law, **alone)
        np.testing.assert_allclose(found["q"][i], motion.q[-1], atol=1e-12)
        np.testing.assert_allclose(found["v"][i], motion.v[-1], atol=1e-10)
    with pytest.raises(StateError, match="damping of joints does not act"):
        pp.environment(robot, ground, randomize={"damping": numbers}, **options)
    with pytest.raises(StateError, match="which may diverge"):
        pp.environment(robot, damping=True, randomize={"damping": numbers}, **options)
