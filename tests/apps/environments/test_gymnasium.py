"""gymnasium's own vector environment and checker, as oracles of `env.vector` and `env.single`."""

import numpy as np
import pytest

import psiphi as pp
from tests.apps.environments.worlds import cart_pole

gymnasium = pytest.importorskip("gymnasium")
MODES = [mode.name for mode in gymnasium.vector.AutoresetMode]
N = 5


def same(ours, theirs):
    """The same array, dtype included; or the same arrays by name."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for name, x in theirs.items():
            same(ours[name], x)
    else:
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("groups", [False, True])
def test_a_vector_environment_is_gymnasiums(mode, groups):
    """60 steps beside `SyncVectorEnv` of single environments: all results, to the last bit."""
    env, mode = cart_pole(groups), gymnasium.vector.AutoresetMode[mode]
    ours = env.vector(N, mode)
    theirs = gymnasium.vector.SyncVectorEnv([env.single] * N, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is mode and ours.num_envs == N
    for name in ("observation_space", "action_space"):
        assert getattr(ours, name) == getattr(theirs, name)
        assert getattr(ours, f"single_{name}") == getattr(theirs, f"single_{name}")
    ours.action_space.seed(0)
    same(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    ends = 0
    for _ in range(60):
        action = ours.action_space.sample()
        *found, info = ours.step(action)
        *wanted, their_info = theirs.step(action)
        for x, y in zip(found, wanted, strict=True):
            same(x, y)
        assert found[0] in ours.observation_space
        done = found[2] | found[3]
        ends += done.sum()
        if mode.name == "SAME_STEP" and done.any():
            np.testing.assert_array_equal(info["_final_obs"], their_info["_final_obs"])
            for x, y in zip(info["final_obs"], their_info["final_obs"], strict=True):
                assert (x is None) == (y is None)
                if y is not None:
                    same(x, y)
            upright = their_info["final_info"]["reward_terms"]["upright"][done]
            np.testing.assert_array_equal(
                info["final_info"]["reward_terms"]["upright"][done], upright
            )
        if mode.name == "DISABLED" and done.any():
            options = [{"reset_mask": done.copy()} for _ in range(2)]
            same(ours.reset(options=options[0])[0], theirs.reset(options=options[1])[0])
    assert ends >= 10
    ours.close()


def test_gymnasiums_checker_passes():
    from gymnasium.utils.env_checker import check_env

    with pytest.warns(UserWarning, match=r"infinity|spec"):
        check_env(cart_pole().single())
    with pytest.warns(UserWarning, match=r"infinity|spec"):
        check_env(cart_pole(groups=True).single(np.float64))


def test_wrappers_record_episodes():
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(cart_pole().vector(N, "same_step"))
    envs.action_space.seed(1)
    envs.reset(seed=0)
    for _ in range(40):
        *_, info = envs.step(envs.action_space.sample())
    assert len(envs.return_queue) >= N and 5.0 < np.mean(envs.length_queue) <= 25.0
    assert set(info["reward_terms"]) == {"alive", "_alive", "upright", "_upright"}


def test_seeds():
    """A seed begins again; no seed goes on; a list of seeds has one stream each."""
    envs = cart_pole(random=True).vector(4, dtype=np.float64)
    first, _ = envs.reset(seed=7)
    second, _ = envs.reset()
    assert np.abs(first - second).min() > 0.0
    np.testing.assert_array_equal(envs.reset(seed=7)[0], first)
    np.testing.assert_array_equal(envs.reset()[0], second)
    mixed, _ = envs.reset(seed=[7, 8, None, 7])
    np.testing.assert_array_equal(mixed[[0, 3]], first[[0, 3]])
    assert np.abs(mixed[[1, 2]] - first[[1, 2]]).min() > 0.0
    env = cart_pole(random=True)
    np.testing.assert_array_equal(env.reset([2], seed=7)[1]["policy"][0], first[2])
    single = env.single(np.float64)
    np.testing.assert_array_equal(single.reset(seed=7)[0], first[0])
    np.testing.assert_array_equal(single.reset()[0], second[0])
    unseeded = [env.vector(1).reset()[0] for _ in range(2)]
    assert (unseeded[0] != unseeded[1]).any(), "without a seed it is random"


def test_wrong_calls_are_errors():
    envs = cart_pole().vector(3)
    with pytest.raises(pp.StateError, match="step before reset"):
        envs.step(np.zeros((3, 1)))
    with pytest.raises(pp.StateError, match="step before reset"):
        cart_pole().single().step(np.zeros(1))
    envs.reset(seed=0)
    for action in (np.zeros(3), np.zeros((3, 2)), np.zeros((2, 1)), "left", None):
        with pytest.raises(pp.StateError, match=r"the action .*expected \(3, 1\)"):
            envs.step(action)
    with pytest.raises(pp.StateError, match=r"autoreset is 'sometimes'.*next_step, same_step"):
        cart_pole().vector(3, "sometimes")
    with pytest.raises(pp.StateError, match="autoreset is None"):
        cart_pole().vector(3, None)
    for count in (0, -1, 2.5):
        with pytest.raises(pp.StateError, match="num_envs"):
            cart_pole().vector(count)
    with pytest.raises(pp.StateError, match="float32 or float64"):
        cart_pole().vector(3, dtype=int)
    for mask in (np.ones(2, bool), [True, False, True], np.ones(3)):
        with pytest.raises(pp.StateError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    with pytest.raises(pp.StateError, match="no True"):
        envs.reset(options={"reset_mask": np.zeros(3, bool)})
    for seed in (-1, [1, 2], 0.5, "x"):
        with pytest.raises(pp.StateError, match="seed"):
            envs.reset(seed=seed)
