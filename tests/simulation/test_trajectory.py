"""Trajectories: samples, slices, times in between, files, tables, pictures."""

import builtins
import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import psiphi as pp
from psiphi.errors import Error, StateError
from psiphi.simulation import Event
from psiphi.simulation.columns import TABLED
from simulation.motions import juggler, pendulum, puma, state


@pytest.fixture(scope="module")
def motion():
    q, v = state(juggler(), 1)
    return pp.simulate(juggler(), q, v, np.ones(juggler().nv), duration=0.05, dt=1e-3)


@pytest.fixture(scope="module")
def batch():
    return pp.simulate(pendulum(), [[0.5], [0.9]], [[0.0], [3.0]], duration=0.1, dt=1e-2, limits="stop")


def same(one, other):
    assert one.events == other.events or str(one.events) == str(other.events)
    assert one.info == other.info
    for name in ("t", *TABLED):
        x, y = getattr(one, name), getattr(other, name)
        assert (x is None) == (y is None), name
        if x is not None:
            np.testing.assert_array_equal(x, y, err_msg=name, strict=True)


def test_samples_and_slices(motion):
    robot = juggler()
    assert len(motion) == 51 == len(list(motion))
    sample = motion[10]
    assert sample.t == motion.t[10] and (sample.q == motion.q[10]).all() and sample.energy == motion.energy[10]
    some = motion[10:20:2]
    assert len(some) == 5 and (some.q == motion.q[10:20:2]).all() and some.system is robot
    assert motion.final.t == 0.05 == motion[-1].t
    np.testing.assert_allclose(motion.a, robot.forward_dynamics(motion.q, motion.v, motion.tau), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(motion.energy, robot.energy(motion.q, motion.v), rtol=1e-13)
    for wrong in (51, -52, "x", 1.5):
        with pytest.raises(StateError, match="sample"):
            motion[wrong]


def test_elements_of_a_batch(batch):
    one = batch.element(0)
    assert one.batch == () and (one.q == batch.q[0]).all() and not one.events
    stopped = batch.element(1)
    assert len(stopped) < len(batch) and [event.name for event in stopped.events] == ["limit"]
    assert np.isnan(batch.q[1, len(stopped) :]).all()
    with pytest.raises(StateError, match="batch of shape"):
        batch.element(2)


def test_between_the_samples(motion):
    robot = juggler()
    fine = pp.simulate(robot, motion.q[0], motion.v[0], np.ones(robot.nv), duration=0.05, dt=2.5e-4)
    between = motion.at(fine.t)
    assert np.abs(robot.difference(between.q, fine.q)).max() < 1e-8
    np.testing.assert_allclose(between.v, fine.v, atol=1e-8)
    np.testing.assert_allclose(between.energy, fine.energy, rtol=1e-6)
    on = motion.at(motion.t)
    np.testing.assert_allclose(on.q, motion.q, atol=1e-14)
    assert motion.at(0.0125).q.shape == (robot.nq,)
    for wrong in (-0.1, 0.0501, np.nan, [[0.0]]):
        with pytest.raises(StateError, match=r"covers 0 to 0\.05 s"):
            motion.at(wrong)


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_files_hold_every_bit(motion, batch, tmp_path, suffix):
    for k, one in enumerate((motion, batch, motion[:1], batch[:0])):
        path = tmp_path / f"{k}{suffix}"
        one.save(path)
        back = pp.Trajectory.load(path, one.system)
        same(one, back)
    assert len(list(tmp_path.iterdir())) == 4, "no temporary files stay"
    assert pp.Trajectory.load(tmp_path / f"1{suffix}").events[0].name == "limit"


def test_files_that_are_none(motion, tmp_path):
    with pytest.raises(Error, match=r"\.npz or \.csv"):
        motion.save(tmp_path / "motion.pkl")
    with pytest.raises(Error, match=r"\.npz or \.csv"):
        pp.Trajectory.load(tmp_path / "motion.pkl")
    with pytest.raises(Error, match="no file"):
        pp.Trajectory.load(tmp_path / "nothing.npz")
    motion.save(tmp_path / "whole.npz")
    motion.save(tmp_path / "whole.csv")
    whole, text = (tmp_path / "whole.npz").read_bytes(), (tmp_path / "whole.csv").read_text(encoding="utf-8")
    first, *rest = text.splitlines()
    broken = {
        "cut.npz": whole[: len(whole) // 2],
        "empty.npz": b"",
        "text.npz": b"hello",
        "cut.csv": text[: len(text) // 2].encode(),
        "fewer.csv": "".join(f"{line}\n" for line in text.splitlines()[:-1]).encode(),
        "shorter.csv": text[:-5].encode(),
        "plain.csv": b"t,q\n0,1\n",
        "newer.csv": "\n".join([first.replace('"format": 1', '"format": 99'), *rest]).encode(),
        "short.csv": "\n".join([first, *rest[:3], "1.0,2.0"]).encode(),
    }
    for name, data in broken.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Error, match=r"no trajectory of psiphi|format"):
            pp.Trajectory.load(tmp_path / name)


def test_files_never_run_code(tmp_path):
    np.savez(tmp_path / "evil.npz", head=np.array("{}"), q=np.array([print], dtype=object), t=np.zeros(1))
    with pytest.raises(Error, match="no trajectory"):
        pp.Trajectory.load(tmp_path / "evil.npz")


def test_summary_tells(batch, motion):
    text = batch.summary()
    assert "batch" in text and "limit: hinge" in text and "pendulum" in text
    text = motion.summary()
    for words in (
        "juggler",
        "0 to 0.05 s, 51 samples, rk4, dt 0.001 s",
        "largest speed",
        "work of torques",
        "energy balance",
        "events",
    ):
        assert words in text
    assert str(Event("limit", 0.1, "hinge", (3,), 1.5, True)) == "limit: hinge (1.5) at t = 0.1 s in batch element 3, stopped"
    assert "none" in motion[:0].summary()


def test_pandas_and_xarray(motion, batch):
    pytest.importorskip("pandas")
    table = motion.to_pandas()
    assert table.index.name == "t" and len(table) == 51
    np.testing.assert_array_equal(table["q:arm joint"], motion.q[:, -1])
    np.testing.assert_array_equal(table["v:ball joint.2"], motion.v[:, 2])
    assert batch.to_pandas().loc[(1, 0.0), "q:hinge"] == 0.9
    pytest.importorskip("xarray")
    data = batch.to_xarray()
    assert data.q.dims == ("batch0", "t", "q_index") and float(data.q.sel(t=0.0, q_index="hinge")[1]) == 0.9


def test_pictures(motion, batch, tmp_path):
    pytest.importorskip("matplotlib")
    figure = motion.plot(path=tmp_path / "motion.png")
    assert len(figure.axes) == 4 and (tmp_path / "motion.png").stat().st_size > 10_000
    assert len(batch.plot("q, energy").axes) == 2
    with pytest.raises(StateError, match="cannot plot 'speed'"):
        motion.plot("speed")


@pytest.mark.parametrize(
    ("call", "module", "words"),
    [
        (lambda m: m.to_pandas(), "pandas", "needs pandas.*pip install 'pandas'"),
        (lambda m: m.to_xarray(), "xarray", "needs xarray.*pip install 'xarray'"),
        (lambda m: m.plot(), "matplotlib", r"needs matplotlib.*pip install 'psiphi\[plot\]'"),
        (
            lambda m: pp.simulate(puma(), np.zeros(6), duration=0.1, method="RK45"),
            "scipy",
            r"needs scipy.*pip install 'psiphi\[sim\]'",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(motion, monkeypatch, call, module, words):
    real = importlib.import_module

    def without(name, *rest):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(Error, match=words):
        call(motion)


def test_view_and_html_are_the_viewers(motion, monkeypatch):
    seen = []
    fake = SimpleNamespace(view=lambda m: seen.append(("view", m)), html=lambda m, path: seen.append((path, m)))
    monkeypatch.setitem(sys.modules, "psiphi.viewer", fake)
    motion.view()
    motion.html("motion.html")
    assert seen == [("view", motion), ("motion.html", motion)]


def test_a_trajectory_is_frozen(motion):
    with pytest.raises(AttributeError):
        motion.q = 0
    assert builtins.repr(motion) == "<Trajectory: 0 to 0.05 s, 51 samples, 0 events>"


def test_a_trajectory_without_its_system(motion, tmp_path):
    motion.save(tmp_path / "motion.npz")
    alone = pp.Trajectory.load(tmp_path / "motion.npz")
    with pytest.raises(StateError, match="does not know its system"):
        alone.at(0.01)
    assert "juggler" in alone.summary()


def test_what_a_motion_does_not_have_is_not_drawn():
    motion = pp.simulate(puma(), np.zeros(6), duration=0.01)
    with pytest.raises(StateError, match=r"no forces and no residual.*it has .*energy"):
        motion.plot("forces residual")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(Error, match=r"cannot read .*check the file"):
        pp.Trajectory.load(tmp_path / "folder.npz")


def test_a_condition_has_no_number():
    motion = pp.simulate(puma(), np.zeros(6), duration=0.01, events={"late": lambda t, q, v: t > 0.005})
    assert str(motion.events[0]).startswith("late: late at t = 0.006")
