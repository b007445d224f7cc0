"""Trajectories: samples, slices, times in between, files, tables, pictures."""

import builtins
import importlib
import io
import zipfile

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error, StateError
from psiphi.simulation.trajectory.trajectory import Event
from psiphi.simulation.trajectory.trajectory_tables import SAMPLE_AXES
from tests.simulation.simulate.motions import juggler, pendulum, puma, state


@pytest.fixture(scope="module")
def motion():
    q, v = state(juggler(), 1)
    return pp.simulate(juggler(), q, v, np.ones(juggler().nv), duration=0.05, dt=1e-3)


@pytest.fixture(scope="module")
def batch():
    return pp.simulate(
        pendulum(), [[0.5], [0.9]], [[0.0], [3.0]], duration=0.1, dt=1e-2, limits="stop"
    )


def same(one, other):
    assert one.events == other.events or str(one.events) == str(other.events)
    assert one.info == other.info
    for name in ("t", *SAMPLE_AXES):
        x, y = getattr(one, name), getattr(other, name)
        assert (x is None) == (y is None), name
        if x is not None:
            np.testing.assert_array_equal(x, y, err_msg=name, strict=True)


def test_samples_and_slices(motion):
    robot = juggler()
    assert len(motion) == 51 == len(list(motion))
    sample = motion[10]
    assert (
        sample.t == motion.t[10]
        and (sample.q == motion.q[10]).all()
        and sample.energy == motion.energy[10]
    )
    some = motion[10:20:2]
    assert len(some) == 5 and (some.q == motion.q[10:20:2]).all() and some.system is robot
    assert motion.final.t == 0.05 == motion[-1].t
    np.testing.assert_allclose(
        motion.a, robot.forward_dynamics(motion.q, motion.v, motion.tau), rtol=1e-12, atol=1e-12
    )
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
    for wrong in ((2,), (True,), (None,), (slice(None),), (0.0,), (0, 0), ()):
        with pytest.raises(StateError, match="batch of shape"):
            batch.element(*wrong)


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


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_between_the_samples_it_is_of_fourth_order_on_every_joint(base):
    """Half the sample distance, a sixteenth of the error; the slope at both ends is v."""
    robot = pp.robots.random_tree(3, 5, ("spherical", "planar", "revolute"), 0.3, base)
    fine = pp.simulate(
        robot, robot.random(seed=1), np.full(robot.nv, 2.0), duration=0.16, dt=1e-3, method="lie"
    )
    errors = []
    for n in (10, 20):
        half = fine[n // 2 :: n]
        errors.append(np.abs(robot.difference(fine[::n].at(half.t).q, half.q)).max())
    assert 12.0 < errors[1] / errors[0] < 20.0, errors
    coarse, h = fine[::40], 1e-6
    near = robot.difference(coarse.at(coarse.t[1:] - h).q, coarse.q[1:]) / h
    np.testing.assert_allclose(near, coarse.v[1:], atol=1e-3)


@pytest.mark.parametrize("kind", ["robot", "diagonalised"])
def test_motions_of_a_batch_have_their_own_parameters(kind, tmp_path):
    """An element is the motion it would be alone, with its system; the batch is unchanged."""
    light = pp.load("pelican").free("mass")
    p = light.parameters() * np.array([[0.8], [1.0], [1.3]])
    of = {"robot": lambda p: light.at(p), "diagonalised": lambda p: light.at(p).diagonalised}[kind]
    q, v = np.random.default_rng(0).standard_normal((2, 3, 2))
    many, alone = (
        pp.simulate(of(x), a, b, duration=0.02, dt=2e-3)
        for x, a, b in ((p, q, v), (p[1], q[1], v[1]))
    )
    many.save(tmp_path / "many.npz")
    for motion in (many, pp.Trajectory.load(tmp_path / "many.npz", of(p))):
        one = motion.element(1)
        np.testing.assert_array_equal(one.robot.given, p[1])
        np.testing.assert_allclose([one.drift, motion.drift[1]], alone.drift, rtol=1e-6)
        for t in (0.0111, [0.0111, 0.013]):
            np.testing.assert_allclose(motion.at(t).q[1], alone.at(t).q, rtol=1e-12)
            np.testing.assert_allclose(one.at(t).q, alone.at(t).q, rtol=1e-12)
        last = motion.final
        assert pp.simulate(motion.system, last.q, last.v, duration=0.01).q.shape == (3, 11, 2)
        np.testing.assert_array_equal(
            one.robot.energy(one.q, one.v) if kind == "robot" else one.energy, one.energy
        )
        assert "energy drift" in one.summary()


def test_samples_of_one_time_and_motions_of_one_sample():
    robot = pp.load("pelican")
    twice = pp.Trajectory(
        [0.0, 0.1, 0.1], [[0.0] * 2, [1.0] * 2, [2.0] * 2], np.zeros((3, 2)), system=robot
    )
    assert (
        twice.at(0.1).q.tolist() == [2.0, 2.0]
        and twice.at([0.1, 0.1]).q.tolist() == [[2.0, 2.0]] * 2
    )
    assert twice[:1].at(0.0).q.tolist() == [0.0, 0.0] and twice[:1].at([0.0]).q.tolist() == [
        [0.0, 0.0]
    ]


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_files_hold_every_bit(motion, batch, tmp_path, suffix):
    for k, one in enumerate((motion, batch, motion[:1], batch[:0])):
        path = tmp_path / f"{k}{suffix}"
        one.save(path)
        back = pp.Trajectory.load(path, one.system)
        same(one, back)
    assert len(list(tmp_path.iterdir())) == (4 if suffix == ".npz" else 8), (
        "no temporary files stay"
    )
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
    whole, table = (tmp_path / "whole.npz").read_bytes(), (tmp_path / "whole.csv").read_bytes()
    beside = (tmp_path / "whole.csv.json").read_text(encoding="utf-8")
    first, *rest = table.splitlines(keepends=True)
    broken = {
        "cut.npz": whole[: len(whole) // 2],
        "empty.npz": b"",
        "text.npz": b"hello",
        "cut.csv": table[: len(table) // 2],
        "shorter.csv": table[:-5],
        "plain.csv": b"t,q\n0,1\n",
        "short.csv": b"".join([first, *rest[:3], b"1.0,2.0\n"]),
        "nameless.csv": b"".join(rest),
        "empty.csv": b"",
    }
    for name, data in broken.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Error, match=r"not a trajectory of psiphi"):
            pp.Trajectory.load(tmp_path / name)
    for name, data, words in (
        (
            "fewer.csv",
            b"".join([first, *rest[:-1]]),
            "changed or is incomplete.*remove fewer.csv.json",
        ),
        ("digit.csv", table.replace(b"1", b"2", 1), "changed or is incomplete"),
    ):
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"{name}.json").write_text(beside, encoding="utf-8")
        with pytest.raises(Error, match=words):
            pp.Trajectory.load(tmp_path / name)
    (tmp_path / "newer.csv").write_bytes(table)
    (tmp_path / "newer.csv.json").write_text(
        beside.replace('"format": 1', '"format": 99'), encoding="utf-8"
    )
    with pytest.raises(Error, match="format 99"):
        pp.Trajectory.load(tmp_path / "newer.csv")


def test_a_table_is_what_pandas_reads(motion, batch, tmp_path):
    pandas = pytest.importorskip("pandas")
    motion.save(tmp_path / "m.csv")
    table = pandas.read_csv(tmp_path / "m.csv")
    assert list(table.columns) == ["t", *motion.to_pandas().columns] and "q:arm joint" in table
    np.testing.assert_allclose(table["q:arm joint"], motion.q[:, -1], rtol=1e-15)
    np.testing.assert_allclose(table["energy"], motion.energy, rtol=1e-15)
    batch.save(tmp_path / "b.csv")
    table = pandas.read_csv(tmp_path / "b.csv")
    assert (
        list(table.columns[:3]) == ["element", "t", "q:hinge"]
        and table.groupby("element")["q:hinge"].first()[1] == 0.9
    )


def test_a_table_is_read_by_its_header_where_nothing_stands_beside_it(motion, batch, tmp_path):
    for k, one in enumerate((motion, batch)):
        one.save(tmp_path / f"{k}.csv")
        (tmp_path / f"{k}.csv.json").unlink()
        back = pp.Trajectory.load(tmp_path / f"{k}.csv")
        for name in ("t", *SAMPLE_AXES):
            if (x := getattr(one, name)) is not None:
                np.testing.assert_array_equal(x, getattr(back, name), strict=True)
        assert back.info == {key: one.info[key] for key in ("q", "v")} and not back.events
    (tmp_path / "mine.csv").write_text(
        "t,q:a,q:b,v:a,v:b\n0,1,2,3,4\n1,5,6,7,8\n", encoding="utf-8"
    )
    mine = pp.Trajectory.load(tmp_path / "mine.csv")
    assert mine.q.tolist() == [[1, 2], [5, 6]] and mine.info["v"] == ["a", "b"]
    (tmp_path / "mine.csv").write_text("t,q:a,q:b\n0,1,2\n", encoding="utf-8")
    with pytest.raises(Error, match="no column v; expected t, q:"):
        pp.Trajectory.load(tmp_path / "mine.csv")


def test_columns_and_rows_in_any_order(tmp_path):
    """A table sorted by pandas: columns are found by joint names, rows by motion numbers."""
    robot, (one, two) = pp.load("pelican"), ("shoulder", "elbow")
    head = ["element", "t", *(f"{x}:{name}" for x in ("q", "v", "tau") for name in (one, two))]
    rows = [[k, t, *(10 * k + t + i for i in range(6))] for k in range(2) for t in range(3)]

    def load(head, rows, system=robot):
        text = "\n".join([",".join(head), *(",".join(map(str, row)) for row in rows), ""])
        (tmp_path / "m.csv").write_text(text, encoding="utf-8")
        return pp.Trajectory.load(tmp_path / "m.csv", system)

    wanted, rng = load(head, rows), np.random.default_rng(0)
    for _ in range(5):
        columns = rng.permutation(len(head))
        shuffled = [rows[i] for i in np.argsort([row[1] + rng.random() / 2 for row in rows])]
        found = load([head[i] for i in columns], [[row[i] for i in columns] for row in shuffled])
        for name in ("t", "q", "v", "tau"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), name)
        assert found.info["q"] == found.info["v"] == [one, two]
    wanted.save(tmp_path / "m.npz")
    b = pp.Builder("turned")  # the same joints, numbered otherwise
    for name, arm in ((two, "upper"), (one, "lower")):
        b.body(arm, mass=1.0, inertia=np.eye(3))
        b.joint(name, "revolute", "world", arm)
    turned = pp.Trajectory.load(tmp_path / "m.npz", b.build())
    np.testing.assert_array_equal(turned.tau, wanted.tau[..., ::-1])
    for wrong, words in (
        ((head, rows[:-1]), "different numbers of samples"),
        (([*head[:-1], head[-2]], rows), "two columns"),
    ):
        with pytest.raises(Error, match=words):
            load(*wrong)


def test_readers_keep_to_their_budgets(motion, tmp_path):
    for suffix in (".npz", ".csv"):
        motion.save(tmp_path / f"m{suffix}")
        with pytest.raises(
            Error, match=r"may need \d+ bytes of memory, and the limit is 1000.*max_bytes="
        ):
            pp.Trajectory.load(tmp_path / f"m{suffix}", max_bytes=1000)
        assert len(pp.Trajectory.load(tmp_path / f"m{suffix}", max_bytes=2_000_000)) == len(motion)


def test_boxes_that_lie_about_their_size(motion, tmp_path):
    """A few kB that would become gigabytes: refused before they do."""
    motion.save(tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz") as box:
        parts = {name: box.read(name) for name in box.namelist()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"shape": (1 << 40,), "fortran_order": False, "descr": "<f8"}
    )
    for name, lie in (
        ("claimed", header.getvalue()),
        ("packed", header.getvalue() + bytes(1 << 24)),
    ):
        with zipfile.ZipFile(tmp_path / f"{name}.npz", "w", zipfile.ZIP_DEFLATED) as box:
            for part, data in (parts | {"q.npy": lie}).items():
                box.writestr(part, data)
    with pytest.raises(Error, match=r"not a trajectory.*holds \d+ bytes, not \(1099511627776,\)"):
        pp.Trajectory.load(tmp_path / "claimed.npz")
    assert (tmp_path / "packed.npz").stat().st_size < 200_000
    with pytest.raises(Error, match="may need"):
        pp.Trajectory.load(tmp_path / "packed.npz", max_bytes=1 << 20)


def test_what_no_file_holds_is_said(tmp_path):
    motion = pp.Trajectory(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 2)), info={"mine": object()})
    for name in ("m.npz", "m.csv"):
        with pytest.raises(StateError, match="info cannot be written"):
            motion.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_users_trajectory_knows_the_joints(tmp_path):
    robot, t = puma(), [0.0, 0.5, 1.0]
    mine = pp.Trajectory(
        t, np.zeros((3, 6)).tolist(), np.ones((3, 6)), tau=np.ones((3, 6)), system=robot
    )
    names = [joint.name for joint in robot.joints]
    assert mine.info["q"] == mine.info["v"] == names and mine.info["system"] == robot.name
    assert mine.t.dtype == float and f"1 at {names[0]}" in mine.summary()
    mine.save(tmp_path / "mine.csv")
    assert (
        (tmp_path / "mine.csv")
        .read_text(encoding="utf-8")
        .startswith(f"t,q:{names[0]},q:{names[1]}")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"t": [0.0, 1.0]}, r"q has shape \(3, 6\), expected \(..., n, nq\) with n = 2"),
        ({"t": [0.0, 2.0, 1.0]}, "times that do not decrease"),
        ({"t": [0.0, np.nan, 1.0]}, "times that do not decrease"),
        ({"v": np.zeros((2, 3, 6))}, r"v has shape \(2, 3, 6\), expected \(3, ...\)"),
        ({"v": None}, "v is None"),
        ({"tau": np.zeros((4, 6))}, r"tau has shape \(4, 6\)"),
        ({"energy": np.zeros((3, 1))}, r"energy has shape \(3, 1\)"),
        ({"q": np.zeros((3, 5))}, "puma560 has nq=6 and nv=6, but the motion has nq=5"),
        ({"system": "puma560"}, "the system is 'puma560'"),
        ({"events": ["x"]}, "expected events"),
        ({"info": {1: 2}}, "expected a dict of names"),
    ],
)
def test_a_users_trajectory_that_does_not_fit(change, words):
    fits = dict(t=[0.0, 0.5, 1.0], q=np.zeros((3, 6)), v=np.ones((3, 6)), system=puma())
    assert len(pp.Trajectory(**fits)) == 3
    with pytest.raises(StateError, match=words):
        pp.Trajectory(**(fits | change))


def test_files_never_run_code(tmp_path):
    np.savez(
        tmp_path / "evil.npz", head=np.array("{}"), q=np.array([print], dtype=object), t=np.zeros(1)
    )
    with pytest.raises(Error, match="not a trajectory"):
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
    assert (
        str(Event("limit", 0.1, "hinge", (3,), 1.5, True))
        == "limit: hinge (1.5) at t = 0.1 s in batch element 3, stopped"
    )
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
    assert (
        data.q.dims == ("batch0", "t", "q_index")
        and float(data.q.sel(t=0.0, q_index="hinge")[1]) == 0.9
    )


def test_pictures(motion, batch, tmp_path):
    pytest.importorskip("matplotlib")
    figure = motion.plot(path=tmp_path / "motion.png")
    assert len(figure.axes) == 4 and (tmp_path / "motion.png").stat().st_size > 10_000
    assert len(batch.plot("q, energy").axes) == 2
    with pytest.raises(StateError, match="cannot plot 'speed'"):
        motion.plot("speed")


def many(count: int = 32) -> pp.Trajectory:
    """A robot of many joints, half of them in arms."""
    b = pp.Builder("crowd")
    for k in range(count):
        b.body(f"l{k}", 1.0, (0.1, 0, 0), np.eye(3) * 0.01)
        name = f"arm_{'left' if k % 4 == 1 else 'right'}_{k}_joint" if k % 2 else f"leg_{k}_joint"
        b.joint(
            name,
            "revolute",
            f"l{k - 1}" if k else "world",
            f"l{k}",
            (0.1, 0, 0),
            lower=-1.0,
            upper=2.0,
            effort=50.0 + k,
        )
    t = np.linspace(0, 1, 20)
    q = np.sin(t[:, None] * 5 + np.arange(count))
    return pp.Trajectory(t, q, q, tau=20 * q, system=b.build())


def test_joints_are_picked_by_name_and_their_limits_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    motion = many()
    figure = motion.plot("tau", joints="arm_left_*", limits=True)
    (axes,) = figure.axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert (
        names == [name for name in motion.info["v"] if name.startswith("arm_left_")]
        and len(names) == 8
    )
    dashed = sorted({line.get_ydata()[0] for line in axes.lines if len(line.get_ydata()) == 2})
    efforts = [50.0 + int(name.split("_")[2]) for name in names]
    assert dashed == sorted([*efforts, *(-x for x in efforts)])
    bounds = {
        line.get_ydata()[0]
        for line in motion.plot("q", limits=True).axes[0].lines
        if len(line.get_ydata()) == 2
    }
    assert bounds == {-1.0, 2.0}
    assert len(motion.plot("q energy", joints=["leg_0_joint", "arm_right_*"]).axes) == 1
    for wrong, words in (
        (dict(joints="arm_lfet_1_joint"), "no joint is called 'arm_lfet_1_joint'.*did you mean"),
        (dict(joints=[]), "expected names"),
        (dict(joints=3), "expected names"),
        (dict(what="v", limits=True), "none of these joints has a limit in v"),
        (dict(limits="yes"), "expected True or False"),
    ):
        with pytest.raises(StateError, match=words):
            motion.plot(**wrong)
    motion.save(tmp_path / "m.npz")
    alone = pp.Trajectory.load(tmp_path / "m.npz")
    assert len(alone.plot("q", joints="arm_*").axes[0].lines) == 16, "names are in the file"
    with pytest.raises(StateError, match=r"system of the trajectory, which is not known"):
        alone.plot("q", limits=True)


def test_a_joint_of_several_coordinates_is_picked_by_its_own_name(motion):
    pytest.importorskip("matplotlib")
    texts = motion.plot("v", joints="ball joint").axes[0].get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["ball joint.0", "ball joint.1", "ball joint.2"]


def test_the_legend_of_a_crowd_can_be_read():
    """No label lies over curves, over another label, or outside; no two curves look alike."""
    pytest.importorskip("matplotlib")
    figure = many(60).plot("q tau")
    figure.draw_without_rendering()
    paper = figure.bbox
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.get_legend().get_texts()]
        assert len(boxes) == 60
        for i, box in enumerate(boxes):
            assert (
                not box.overlaps(axes.bbox)
                and box.x1 <= paper.x1
                and box.y0 >= 0
                and box.y1 <= paper.y1
            )
            assert box.height > 8 and not any(box.overlaps(other) for other in boxes[:i])
        looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
        assert len(looks) == 60


def test_strange_names_are_shown_as_they_are():
    pytest.importorskip("matplotlib")
    names = ["_hidden", "$\\frac{1}{", "a_b^c"]
    motion = pp.Trajectory(
        [0.0, 1.0], np.zeros((2, 3)), np.zeros((2, 3)), info={"q": names, "v": names}
    )
    figure = motion.plot("q")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == names
    assert figure._repr_png_().startswith(b"\x89PNG"), "and a notebook shows it"


@pytest.mark.parametrize(
    ("call", "module", "words"),
    [
        (lambda m: m.to_pandas(), "pandas", "needs pandas.*pip install 'pandas'"),
        (lambda m: m.to_xarray(), "xarray", "needs xarray.*pip install 'xarray'"),
        (lambda m: m.plot(), "matplotlib", "needs matplotlib.*pip install 'matplotlib"),
        (
            lambda m: pp.simulate(puma(), np.zeros(6), duration=0.1, method="RK45"),
            "scipy",
            "needs scipy.*pip install 'scipy",
        ),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(motion, monkeypatch, call, module, words):
    real = importlib.import_module

    def without(name, *rest):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(Error, match=words):
        call(motion)


def test_view_and_html_are_the_viewers(motion):
    assert motion.view.__func__ is pp.viewer.view and motion.html.__func__ is pp.viewer.html


def test_a_trajectory_is_frozen(motion):
    with pytest.raises(AttributeError):
        motion.q = 0
    assert builtins.repr(motion) == "<Trajectory: 0 to 0.05 s, 51 samples, 0 events>"


def test_a_trajectory_without_its_system(motion, tmp_path):
    motion.save(tmp_path / "motion.npz")
    alone = pp.Trajectory.load(tmp_path / "motion.npz")
    with pytest.raises(StateError, match="system of this trajectory is not known"):
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
    motion = pp.simulate(
        puma(), np.zeros(6), duration=0.01, events={"late": lambda t, q, v: t > 0.005}
    )
    assert str(motion.events[0]).startswith("late: late at t = 0.006")
