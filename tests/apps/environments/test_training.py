"""`examples/train_walk.py`: two iterations of a few environments, its advantages, its policy."""

import runpy

import numpy as np
import pytest

from tests.pages import ROOT

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "examples"))  # as of `python examples/train_walk.py`
        yield runpy.run_path(str(ROOT / "examples" / "train_walk.py"))


def test_the_script_trains(script, capsys, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        curve = script["main"](
            ["--iterations", "2", "--envs", "12", "--out", f"{tmp_path}/walk.npz"]
        )
    finally:
        torch.set_num_threads(threads)
    assert len(curve) == 2 and -4.0 < min(curve) <= max(curve) < 2.0
    said = capsys.readouterr().out.splitlines()
    assert (
        said[1].lstrip().startswith("576 steps: reward ")
        and "500 new environments: error" in said[2]
    )
    weights = list(np.load(tmp_path / "walk.npz").values())
    assert len(weights) == 8 and all(np.isfinite(x).all() for x in weights)
    rows = np.loadtxt(tmp_path / "walk.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows[:, 0], [288, 576])
    np.testing.assert_allclose(rows[:, 1], curve, rtol=1e-4)
    assert "LF_HAA" in (tmp_path / "walk.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def weights():
    return list(np.load(ROOT / "examples" / "train_walk.npz").values())


def test_the_trained_policy_trots(script, weights):
    """The command is followed to 0.2 m/s, and diagonal feet step together."""
    agent = script["Agent"](env := script["task"]())
    with torch.no_grad():
        for parameter, x in zip(agent.mean.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(x, dtype=torch.float32))
        seen = np.random.default_rng(0).standard_normal(48)
        there = agent.mean(torch.tensor(seen, dtype=torch.float32)).numpy()
        np.testing.assert_allclose(script["network"](weights)(seen), there, atol=1e-5)
        envs, contacts, errors, falls = env.torch(60, seed=3), [], [], 0
        groups, _ = envs.reset()
        for _ in range(250):
            groups, _, terminated, _, _ = envs.step(agent.mean(groups["policy"]))
            falls += int(terminated.sum())
            errors.append(script["error"](groups))
            moves = groups["policy"][:, script["COMMAND"]].norm(dim=-1) > 0.4
            contacts.append(groups["critic"][moves, 8:12])
    assert np.mean(errors) < 0.2 and falls <= 3
    lf, lh, rf, rh = np.corrcoef(torch.cat(contacts[100:]).numpy().T)
    assert lf[3] > 0.6 and lh[2] > 0.6 and max(lf[1], lf[2], rh[1], rh[2]) < -0.6


def test_the_curve_reaches_the_goal():
    """docs/environments.md shows it."""
    rows = np.genfromtxt(ROOT / "examples" / "train_walk.csv", delimiter=",", names=True)
    assert set(rows["seed"]) == {0, 1, 2, 3}
    for seed in range(4):
        own = rows[rows["seed"] == seed]
        first = own[own["error"] < 0.2]["seconds"][0]
        assert first < 120.0 and own["error"][-1] < 0.15


def test_advantages_are_sums_of_errors(script):
    """sum_j (discount trace)^j error_{k+j}, up to the end of the episode."""
    rng = np.random.default_rng(0)
    steps = script["HORIZON"]
    data = {name: torch.tensor(rng.standard_normal((steps, 3))) for name in ("reward", "value")}
    data["ends"] = torch.tensor((rng.random((steps, 3)) < 0.2) * 1.0)
    last = torch.tensor(rng.standard_normal(3))
    found = script["advantages"](data, last).numpy()
    reward, value, ends = (data[name].numpy() for name in ("reward", "value", "ends"))
    after = np.concatenate([value[1:], last.numpy()[None]])
    error = reward + script["DISCOUNT"] * after * (1.0 - ends) - value
    decay = script["DISCOUNT"] * script["TRACE"]
    for k in range(steps):
        alive = np.cumprod(np.concatenate([np.ones((1, 3)), 1.0 - ends[k:-1]]), axis=0)
        powers = decay ** np.arange(steps - k)[:, None]
        np.testing.assert_allclose(found[k], (alive * powers * error[k:]).sum(axis=0), atol=1e-12)
