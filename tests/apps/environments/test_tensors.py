"""Environments of torch and JAX, against the same steps of NumPy."""

import numpy as np
import pytest

import psiphi as pp
from tests.apps.environments.worlds import anymal, cart_pole

N = 6


def test_tensors_are_the_arrays():
    """Groups, flags, resets by index and by seed: 60 steps beside NumPy."""
    torch = pytest.importorskip("torch")
    env = cart_pole(groups=True)
    tensors = env.torch(N, dtype=torch.float64)
    with pytest.raises(pp.StateError, match="step before reset"):
        tensors.step(torch.zeros(N, 1))
    seen, _ = tensors.reset(seed=3)
    state, want = env.reset(N, seed=3)
    assert list(seen) == ["policy", "critic"]
    assert (tensors.num_envs, tensors.num_actions, tensors.max_episode_length) == (N, 1, 25)
    ends, rng = 0, np.random.default_rng(0)
    for k in range(60):
        action = rng.uniform(-1.0, 1.0, (N, 1))
        state, result = env.step(state, action, "same_step")
        seen, reward, terminated, truncated, extras = tensors.step(torch.from_numpy(action))
        for name in seen:
            np.testing.assert_array_equal(seen[name], result.observations[name])
            last = extras["final_observations"][name]
            np.testing.assert_array_equal(last, result.final_observations[name])
        np.testing.assert_array_equal(reward, result.reward)
        np.testing.assert_array_equal(terminated, result.terminated)
        np.testing.assert_array_equal(truncated, result.truncated)
        assert extras["log"]["reward/upright"] == result.reward_terms["upright"].mean()
        np.testing.assert_array_equal(tensors.episode_length_buf, state["env.counter"][:, 2])
        ends += (terminated | truncated).sum()
        if k == 30:
            before = {name: x.clone() for name, x in seen.items()}
            seen, _ = tensors.reset(torch.tensor([1, 4]))
            hit = np.isin(np.arange(N), (1, 4))
            state, want = env.begin(state, hit)
            for name, x in before.items():
                np.testing.assert_array_equal(seen[name][hit], want[name][hit])
                np.testing.assert_array_equal(seen[name][~hit], x[~hit])
    assert ends > 10
    for bad in ([6], [0.5], "x", [[1]]):
        with pytest.raises(pp.StateError, match="env_ids"):
            tensors.reset(bad)
    with pytest.raises(pp.StateError, match="the actions are"):
        tensors.step(np.zeros((N, 1)))
    with pytest.raises(pp.StateError, match=r"expected \(6, 1\)"):
        tensors.step(torch.zeros(N, 2))
    random = cart_pole(random=True).torch(N)
    first = random.reset(seed=9)[0]["policy"]
    assert first.dtype == torch.float32
    some = random.reset([2], seed=9)[0]["policy"]
    np.testing.assert_array_equal(some, first)
    assert (random.reset([2])[0]["policy"] != first).any(axis=1).tolist() == [
        i == 2 for i in range(N)
    ]


def test_rsl_rl_gets_its_interface():
    torch = pytest.importorskip("torch")
    pytest.importorskip("tensordict")
    env = cart_pole(groups=True).torch(N, seed=0).rsl_rl
    seen = env.get_observations()
    assert seen["policy"].shape == (N, 2) and seen.batch_size == (N,)
    seen, reward, done, extras = env.step(torch.zeros(N, env.num_actions))
    assert reward.shape == done.shape == extras["time_outs"].shape == (N,)


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def test_jax_is_pure_under_jit_vmap_and_scan(jax):
    env = cart_pole(random=True)
    pure, jnp = env.jax(), jax.numpy
    keys = jax.random.split(jax.random.key(0), N)
    actions = np.random.default_rng(1).uniform(-1.0, 1.0, (40, N, 1))

    def episode(key, actions):
        state, seen = pure.reset(key)

        def one(state, action):
            state, result = pure.step(state, action)
            return state, (result.observations["policy"], result.reward, result.terminated)

        state, found = jax.lax.scan(one, state, actions)
        return state, seen["policy"], found

    run = jax.jit(jax.vmap(episode, in_axes=(0, 1)))
    end, seen, (observed, reward, terminated) = run(keys, jnp.asarray(actions))
    words = np.asarray(jax.random.key_data(keys), dtype=float)
    state = {name: np.zeros((N, n)) for name, n in env.kernel("reset").state_sizes.items()}
    state["env.key"], state["env.counter"][:, 1] = words, -1.0
    state, want = env.begin(state, np.ones(N, dtype=bool))
    np.testing.assert_array_equal(seen, want["policy"])
    for k, action in enumerate(actions):
        state, result = env.step(state, action, "same_step")
        np.testing.assert_array_equal(observed[:, k], result.observations["policy"])
        np.testing.assert_array_equal(reward[:, k], result.reward)
        np.testing.assert_array_equal(terminated[:, k], result.terminated)
    assert terminated.sum() > 5
    for name, x in state.items():
        np.testing.assert_array_equal(end[name], x, err_msg=name)
    batch, _ = pure.reset(keys)
    again, result = pure.step(batch, actions[0])
    np.testing.assert_array_equal(result.reward, reward[:, 0])
    with pytest.raises(pp.StateError, match="no derivative"):
        jax.grad(lambda a: pure.step(batch, a)[1].reward.sum())(jnp.asarray(actions[0]))
    with pytest.raises(pp.StateError, match="expected one of jax"):
        pure.reset(jnp.zeros(2))


def test_jax_needs_float64():
    jax = pytest.importorskip("jax")
    if not jax.config.jax_enable_x64:
        with pytest.raises(pp.StateError, match="jax_enable_x64"):
            cart_pole().jax()


def test_a_walker_of_torch():
    torch = pytest.importorskip("torch")
    tensors, env = anymal().torch(N, seed=2), anymal()
    seen, _ = tensors.reset()
    state, want = env.reset(N, seed=2)
    np.testing.assert_array_equal(seen["policy"], want["policy"].astype(np.float32))
    seen, reward, *_ = tensors.step(torch.zeros(N, 12))
    _, result = env.step(state, np.zeros((N, 12)), "same_step")
    np.testing.assert_array_equal(seen["critic"], result.observations["critic"].astype(np.float32))
    np.testing.assert_array_equal(reward, result.reward.astype(np.float32))
