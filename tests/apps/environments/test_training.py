"""`examples/train_walk.py`: two iterations of a few environments, and its advantages."""

import runpy

import numpy as np
import pytest

from tests.pages import ROOT

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "examples" / "train_walk.py"))


def test_the_script_trains(script, capsys, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        curve = script["main"](
            ["--iterations", "2", "--envs", "12", "--out", f"{tmp_path}/walk.pt"]
        )
    finally:
        torch.set_num_threads(threads)
    assert len(curve) == 2 and -2.0 < min(curve) <= max(curve) < 1.5
    said = capsys.readouterr().out.splitlines()
    assert said[1].lstrip().startswith("576 steps: reward ") and "one episode alone" in said[2]
    weights = torch.load(tmp_path / "walk.pt")
    assert all(torch.isfinite(x).all() for x in weights.values())
    assert "LF_HAA" in (tmp_path / "walk.html").read_text(encoding="utf-8")


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
