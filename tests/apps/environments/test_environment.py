"""A control step against steps of the robot, NumPy and Philox's published words."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.ir.lane_blocks import RandomNumbers, Selection, philox
from psiphi.model.spatial.rotations import rotation_matrices
from tests.apps.environments.worlds import TASK, anymal, cart_pole, stand

N = 11  # environments: more than one group of lanes, and a part of one


def run(env, state, actions, mode="disabled"):
    """The last state, and the results of all steps."""
    results = []
    for action in actions:
        state, result = env.step(state, action, mode)
        results.append(result)
    return state, results


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # Random123's known answers
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_has_the_published_words(counter, key, words):
    found = philox([np.uint64(x) for x in counter], [np.uint64(x) for x in key])
    assert " ".join(f"{int(x):08x}" for x in found) == words


def test_a_selection_stops_nan():
    pick = Selection("mask", {"x": "y", "z": ""}, {"x": 2, "z": 1})
    mask, x = np.array([[1.0], [0.0]]), np.array([[np.nan, 1.0], [2.0, np.nan]])
    found = pick.on(mask=mask, x=x, y=np.zeros((2, 2)), z=np.array([[np.nan], [3.0]]))
    np.testing.assert_array_equal(found["x"], [[0.0, 0.0], [2.0, np.nan]])
    np.testing.assert_array_equal(found["z"], [[0.0], [3.0]])


def test_torques_are_those_of_a_rollout():
    env, robot = cart_pole(), pp.load("cartpole")
    actions = np.random.default_rng(0).uniform(-1.5, 1.5, (6, N, 1))
    state, _ = env.reset(N)
    end, results = run(env, state, actions)
    force = np.clip(actions, -1.0, 1.0)[..., 0] * 10.0  # times the effort limit
    tau = np.zeros((N, 24, 2))
    tau[..., 0] = np.repeat(force, 4, axis=0).T
    q, v = pp.rollout(robot, state["q"], state["v"], tau, dt=0.005, steps=24)
    np.testing.assert_array_equal(end["q"], q[:, -1])
    np.testing.assert_array_equal(end["v"], v[:, -1])
    for k, result in enumerate(results):
        now = q[:, 4 * k + 4]
        seen = np.concatenate([now, v[:, 4 * k + 4]], axis=1)
        np.testing.assert_array_equal(result.observations["policy"], seen)
        np.testing.assert_allclose(result.reward, 1.0 - now[:, 1] ** 2, rtol=1e-14)
        np.testing.assert_array_equal(result.terminated, np.abs(now[:, 1]) > 0.3)


def test_a_walker_is_its_steps_on_the_ground():
    """PD targets, effort limits, contacts, words and groups, against `robot.step` and NumPy."""
    env, (robot, ground, stance) = anymal(), stand()
    state, _ = env.reset(N, seed=5)
    assert np.abs(state["env.command"]).max() > 0.5
    rng = np.random.default_rng(1)
    for _ in range(3):
        action = rng.uniform(-1.3, 1.3, (N, 12))
        q, v, before = state["q"], state["v"], state["env.action"]
        target = stance[7:] + 0.25 * np.clip(action, -1.0, 1.0)
        for _ in range(4):
            tau = np.zeros((N, 18))
            tau[:, 6:] = np.clip(80.0 * (target - q[:, 7:]) - 2.0 * v[:, 6:], -80.0, 80.0)
            last = v
            q, v, contact = robot.step(q, v, tau, 0.005, contacts=ground)
        state, result = env.step(state, action)
        np.testing.assert_allclose(state["q"], q, atol=1e-12)
        np.testing.assert_allclose(state["v"], v, atol=1e-11)
        R, command = rotation_matrices(q[:, 3:7]), state["env.command"]
        a, g = (v - last) / 0.005, -R[:, 2, :]
        force = a[:, 3:6] + np.cross(v[:, :3], v[:, 3:6]) - 9.81 * g
        counter = state["env.counter"]
        critic = [q, v, force, contact.forces.reshape(N, 12), contact.modes > 0]
        critic += [0.02 * counter[:, 2:], q[:, 2:3]]
        seen = result.observations
        np.testing.assert_allclose(seen["critic"], np.concatenate(critic, axis=1), atol=2e-8)
        exact = np.concatenate([v[:, 3:6], v[:, :3], g, command], axis=1)
        np.testing.assert_allclose(seen["policy"][:, :12], exact, atol=1e-11)
        noise = seen["policy"][:, 12:24] - (q[:, 7:] - stance[7:])
        assert np.abs(noise).max() < 0.01 and noise.std() > 0.004
        noise = seen["policy"][:, 24:36] / 0.05 - v[:, 6:]
        assert 0.4 < noise.std() < 0.6 and abs(noise.mean()) < 0.2
        np.testing.assert_array_equal(seen["policy"][:, 36:], before)
        clipped = np.clip(action, -1.0, 1.0)
        terms = {
            "track_linear_velocity": np.exp(-4 * ((command[:, :2] - v[:, 3:5]) ** 2).sum(1)),
            "track_angular_velocity": 0.5 * np.exp(-4 * (command[:, 2] - v[:, 2]) ** 2),
            "vertical_velocity": -2.0 * v[:, 5] ** 2,
            "torques": -1e-5 * (tau**2).sum(1),
            "accelerations": -2.5e-7 * (a[:, 6:] ** 2).sum(1),
            "action_rate": -0.01 * ((clipped - before) ** 2).sum(1),
            "power": -1e-4 * np.abs(tau * v).sum(1),
            "lateral": -0.1 * np.abs(v[:, 4]),
        }
        assert list(terms) == list(TASK["rewards"])
        for name, x in terms.items():
            np.testing.assert_allclose(result.reward_terms[name], x, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(result.reward, sum(terms.values()), atol=1e-8)
        assert not result.terminated.any() and result.contact_residual.max() < 1e-6
    same, seen = env.begin(state, np.zeros(N, dtype=bool))  # no torques and contacts are kept
    np.testing.assert_array_equal(same["q"], state["q"])
    force = np.cross(v[:, :3], v[:, 3:6]) - 9.81 * g
    still = [state["q"], state["v"], force, np.zeros((N, 16)), 0.02 * counter[:, 2:]]
    np.testing.assert_allclose(seen["critic"][:, :-1], np.concatenate(still, axis=1), atol=1e-10)


def test_resets_are_philox():
    """Uniform, normal and chosen numbers from the words of the counter, in the order of v."""
    env, stance = anymal(), stand()[2]
    state, _ = env.reset([3, 40], seed=9, episode=2)
    for row, number in enumerate((3, 40)):
        noise = 12 + 24  # draws of the observations come first: 9 counters of four
        key, counter = np.array([[9.0, 0.0]]), np.array([[number, 2.0, 0.0]])
        u = RandomNumbers(24, noise // 4).on(key, counter)["numbers"][0]
        yaw = -3.14 + 6.28 * u[0]
        R = rotation_matrices(state["q"][row, 3:7])
        np.testing.assert_allclose(R[:2, 0], [np.cos(yaw), np.sin(yaw)], atol=1e-12)
        assert state["q"][row, 2] == pytest.approx(stance[2] + 0.05, abs=1e-15)
        normal = np.sqrt(-2 * np.log(u[1:17:2])) * np.cos(2 * np.pi * u[2:17:2])
        legs = [i for i in range(12) if i % 3]
        moved = (state["q"][row, 7:] - stance[7:])[legs]
        np.testing.assert_allclose(moved, 0.02 * normal, atol=1e-15)
        np.testing.assert_allclose(state["v"][row, 3], u[17] - 0.5, atol=1e-15)
        command = [2.0 * u[18] - 1.0, u[19] - 0.5, [-1.0, 0.0, 1.0][int(3 * u[20])]]
        np.testing.assert_allclose(state["env.command"][row], command, atol=1e-15)


def test_an_episode_is_the_same_alone_and_in_any_batch():
    """The bits of environment 21 depend on its numbers, not on its neighbours or on threads."""
    env, count = anymal(), 40
    actions = np.random.default_rng(2).uniform(-1.0, 1.0, (5, count, 12))
    threads = pp.get_threads()
    found = []
    try:
        for many in (1, 2):
            pp.set_threads(many)
            found.append(run(env, env.reset(count, seed=4)[0], actions, "same_step"))
    finally:
        pp.set_threads(threads)
    (state, results), (again, _) = found
    alone = run(env, env.reset([21], seed=4)[0], actions[:, 21:22], "same_step")
    some = run(env, env.reset([7, 21, 30], seed=4)[0], actions[:, [7, 21, 30]], "same_step")
    for name, x in state.items():
        np.testing.assert_array_equal(x, again[name], err_msg=name)
        np.testing.assert_array_equal(x[21], alone[0][name][0], err_msg=name)
        np.testing.assert_array_equal(x[[7, 21, 30]], some[0][name], err_msg=name)
    for mine, other in zip(results, alone[1], strict=True):
        for group, x in mine.observations.items():
            np.testing.assert_array_equal(x[21], other.observations[group][0])
        assert mine.reward[21] == other.reward[0]
    other_seed = env.reset(count, seed=2**32 + 4)[0]
    assert np.abs(other_seed["q"] - env.reset(count, seed=4)[0]["q"]).max() > 0.1


def test_an_episode_is_recorded_alone(tmp_path):
    """The second episode of environment 8, run in a batch and alone, and its page."""
    env = cart_pole(random=True)
    policy = lambda seen: np.clip(-3.0 * seen[1:2] - seen[3:], -1.0, 1.0)  # noqa: E731
    state, _ = env.reset(N, seed=6)
    seen, rows = env.reset(N, seed=6)[1]["policy"], []
    while state["env.counter"][8, 1] < 2:
        action = np.array([policy(x) for x in seen])
        if state["env.counter"][8, 1] == 1:
            rows.append((state["q"][8], seen[8], action[8]))
        state, result = env.step(state, action, "same_step")
        seen = result.observations["policy"]
    found = env.episode(policy, number=8, episode=1, seed=6)
    assert len(found.rewards) == len(rows) > 5 and found.terminated != found.truncated
    for k, (q, x, action) in enumerate(rows):
        np.testing.assert_array_equal(found.motion.q[k], q)
        np.testing.assert_array_equal(found.observations["policy"][k], x)
        np.testing.assert_array_equal(found.actions[k], action)
    assert found.motion.t[-1] == pytest.approx(0.02 * len(rows))
    found.motion.html(tmp_path / "episode.html")
    assert "hinge" in (tmp_path / "episode.html").read_text(encoding="utf-8")
    walk = anymal().episode(lambda seen: np.zeros(12), number=3, steps=4)
    assert walk.motion.info["ground"]["normal"] == [0.0, 0.0, 1.0] and len(walk.motion) == 5
    for wrong, words in ((None, "policy is None"), (lambda seen: seen, "expected 1 numbers")):
        with pytest.raises(pp.StateError, match=words):
            env.episode(wrong)


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_autoreset_is_a_reset_by_hand(mode):
    """A random environment in each mode, against steps without autoreset and `env.begin`."""
    env = cart_pole(random=True)
    actions = np.random.default_rng(3).uniform(-1.0, 1.0, (40, N, 1))
    state, _ = env.reset(N, seed=1)
    hand, ends = {name: x.copy() for name, x in state.items()}, 0
    waiting = np.zeros(N, dtype=bool)
    for action in actions:
        state, found = env.step(state, action, mode)
        if mode == "same_step":
            hand, want = env.step(hand, action)
            over = want.terminated | want.truncated
            last = want.observations["policy"]
            np.testing.assert_array_equal(found.final_observations["policy"], last)
            hand, seen = env.begin(hand, over)
            seen = np.where(over[:, None], seen["policy"], last)
            reward, flags = want.reward, (want.terminated, want.truncated)
        else:
            moved, want = env.step(hand, action)
            fresh, seen = env.begin(hand, waiting)
            where = waiting[:, None]
            hand = {name: np.where(where, fresh[name], moved[name]) for name in moved}
            seen = np.where(where, seen["policy"], want.observations["policy"])
            reward = np.where(waiting, 0.0, want.reward)
            flags = want.terminated & ~waiting, want.truncated & ~waiting
            waiting = flags[0] | flags[1]
        ends += (found.terminated | found.truncated).sum()
        np.testing.assert_array_equal(found.observations["policy"], seen)
        np.testing.assert_array_equal(found.reward, reward)
        np.testing.assert_array_equal([found.terminated, found.truncated], flags)
        for name in ("q", "v", "env.counter", "env.action"):
            np.testing.assert_array_equal(state[name], hand[name], err_msg=name)
    assert ends > 15 and state["env.counter"][:, 1].max() > 1


def test_draws_have_their_distributions():
    """10 000 normal numbers of a reset: mean, deviation and tails."""
    state, _ = cart_pole(random=True).reset(10_000, seed=0)
    x = state["v"] / [0.1, 0.3]
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1.0) < 0.02
    assert abs((np.abs(x) > 2.0).mean() - 0.0455) < 0.006 and np.abs(x).max() < 6.0
    assert abs(np.corrcoef(x.T)[0, 1]) < 0.03
    q = state["q"]
    assert abs(q).max() < 0.2 and abs(q.mean()) < 0.003 and abs(q.std() - 0.4 / 12**0.5) < 0.002


def test_a_bad_action_ends_one_environment():
    """NaN, infinity: the environment ends where it was, is flagged, and the others go on."""
    env = anymal()
    state, _ = env.reset(N, seed=3)
    good = np.zeros((N, 12))
    bad = good.copy()
    bad[2, 5], bad[9, 0] = np.nan, np.inf
    new, result = env.step(state, bad, "next_step")
    want, plain = env.step(state, good, "next_step")
    hit = np.isin(np.arange(N), (2, 9))
    np.testing.assert_array_equal(result.failed, hit)
    np.testing.assert_array_equal(result.terminated, hit)
    assert not result.truncated.any() and np.isfinite(result.observations["critic"]).all()
    for name, x in want.items():
        np.testing.assert_array_equal(new[name][~hit], x[~hit], err_msg=name)
    for name in ("q", "v"):
        np.testing.assert_array_equal(new[name][hit], state[name][hit])
    np.testing.assert_array_equal(result.reward[~hit], plain.reward[~hit])
    begun, result = env.step(new, bad, "next_step")  # the action of a reset is ignored
    assert not result.failed.any() and (begun["env.counter"][hit, 1] == 1.0).all()
    assert (begun["env.counter"][~hit, 1] == 0.0).all() and (result.reward[hit] == 0.0).all()
    assert np.isfinite(begun["q"]).all()
    begun, result = env.step(state, bad, "same_step")
    np.testing.assert_array_equal(result.failed, hit)
    assert (begun["env.counter"][hit, 1] == 1.0).all() and np.isfinite(begun["q"]).all()


def test_a_diverged_state_ends_one_environment():
    env = cart_pole()
    state, _ = env.reset(3)
    state["v"][1] = 1e200
    new, result = env.step(state, np.zeros((3, 1)), "same_step")
    assert result.failed.tolist() == [False, True, False] == result.terminated.tolist()
    np.testing.assert_array_equal(new["v"][1], [0.0, 0.5])
