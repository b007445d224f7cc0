"""Studies: a motion depends on its number only, not on chunks, workers or interruptions."""

import errno
import io
import os
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import distributed
import numpy as np
import pytest
import zarr

import psiphi as pp
from psiphi.apps.cli import main as cli
from psiphi.apps.studies import workers
from psiphi.apps.studies.chunks import Chunk
from psiphi.apps.studies.motion_inputs import InputSampler
from psiphi.backends.cpu import threads
from psiphi.backends.cuda import driver_bindings
from psiphi.simulation.compiled_rollout import rollout_runner
from psiphi.simulation.sensors.philox import normal, philox, uniform
from tests.backends.cuda.fake_gpu import cards
from tests.children import child, same_code

__all__ = ["cards"]  # a fixture

MASSES = RELATIVE = {"uniform": [0.8, 1.2], "relative": True}
EVERYTHING = {
    "seed": 3,
    "duration": 0.05,
    "start": {"q": [0.1, 0.2], "v": {"elbow": 0.5}},
    "controller": {"kind": "pd", "kp": 50.0, "kd": 5.0},
    "vary": {
        "q": {"uniform": [-1.0, 1.0]},
        "v": {"*": {"normal": [0.0, 0.5]}},
        "mass": MASSES,
        "com": {"normal": [0.0, 0.01]},
        "armature": {"choice": [0.0, 0.1]},
        "kp": {"loguniform": [10.0, 100.0]},
        "kd": {"elbow": {"grid": [1.0, 2.0, 4.0]}},
    },
}


@pytest.fixture(scope="module")
def robot():
    return pp.load("acrobot")


def test_random_numbers_are_numpys_philox_by_motion_and_name():
    key, start = np.array([5, 7], dtype=np.uint64), np.array([2**64 - 1, 3, 4, 5], dtype=np.uint64)
    counter = [np.array([x], dtype=np.uint64) for x in (0, 4, 4, 5)]  # NumPy counts before it draws
    found = np.concatenate(philox(counter, (key[:1], key[1:])))
    np.testing.assert_array_equal(found, np.random.Philox(key=key, counter=start).random_raw(4))
    many = np.arange(20_000)
    for draw in (uniform, normal):
        whole = draw(9, "mass", many)
        for part in (many[3:50], many[17:18], many[::-7]):
            np.testing.assert_array_equal(draw(9, "mass", part), whole[part])
        assert abs(np.corrcoef(whole[:-1], whole[1:])[0, 1]) < 0.03
        assert abs(np.corrcoef(whole, draw(9, "com", many))[0, 1]) < 0.03
        assert abs(np.corrcoef(whole, draw(10, "mass", many))[0, 1]) < 0.03
    assert abs(normal(1, "x", many).mean()) < 0.03 and abs(normal(1, "x", many).std() - 1.0) < 0.03
    assert (
        abs(uniform(1, "x", many).mean() - 0.5) < 0.01
        and abs(uniform(1, "x", many).std() - 12**-0.5) < 0.01
    )


def test_a_motion_is_its_number_whatever_the_chunks(robot):
    whole = pp.study(robot, motions=70, **EVERYTHING, keep={"every": 10})
    parts = pp.study(robot, motions=70, chunk=17, **EVERYTHING, keep={"every": 10})
    more = pp.study(robot, motions=90, chunk=40, **EVERYTHING)
    for name in ("q", "v"):
        x = getattr(whole.final, name)
        assert x.shape == (70, 2) and np.isfinite(x).all() and len(np.unique(x[:, 0])) == 70
        np.testing.assert_array_equal(x, getattr(parts.final, name))
        np.testing.assert_array_equal(x, getattr(more.final, name)[:70])
        np.testing.assert_array_equal(
            getattr(whole.samples, name)[:], getattr(parts.samples, name)[:]
        )
    for i in (0, 33, 69):
        motion = whole.motion(i)
        np.testing.assert_array_equal(motion.final.q, whole.final.q[i])
        np.testing.assert_array_equal(motion.q[::10], whole.samples.q[i])
    drawn = whole.drawn(range(70))
    assert set(drawn["kd:elbow:0"]) == {1.0, 2.0, 4.0} and drawn["kd:elbow:0"][:4].tolist() == [
        1.0,
        2.0,
        4.0,
        1.0,
    ]
    assert len(whole) == 70 and whole.failures == [] and whole.samples.t[-1] == pytest.approx(0.05)
    np.testing.assert_array_equal(whole.quantiles([0.5]).q[0], np.median(whole.final.q, axis=0))


def test_it_is_the_robot_with_these_numbers(robot):
    found = pp.study(robot, motions=6, **EVERYTHING)
    one = {label: x[4] for label, x in found.drawn(range(6)).items()}
    rotors = [one[f"armature:{joint.name}:0"] for joint in robot.joints]
    rebuilt, q, v = robot.free("armature").baked(rotors), np.zeros(2), np.zeros(2)
    for k, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        com = np.asarray(body.com) + [one[f"com:{body.name}:{i}"] for i in range(3)]
        rebuilt = rebuilt.with_inertia(
            body.name, mass=body.mass * one[f"mass:{body.name}:0"], com=com, inertia=body.inertia
        )
        q[k], v[k] = one[f"q:{joint.name}:0"], one[f"v:{joint.name}:0"]
    unit = np.diagonal(robot.mass_matrix([0.1, 0.2]))
    kd = [5.0, one["kd:elbow:0"]]
    law = pp.PD(rebuilt, [0.1, 0.2], unit * one["kp::0"], unit * kd, gravity=True)
    motion = pp.simulate(rebuilt, q, v, law, duration=0.05)
    np.testing.assert_allclose(found.final.q[4], motion.final.q, rtol=0, atol=1e-9)


def test_motions_that_fail_are_rows(robot):
    wild = pp.study(
        robot,
        motions=40,
        duration=0.2,
        dt=0.01,
        seed=1,
        method="euler",
        vary={"v": {"loguniform": [1.0, 1e8]}},
    )
    failed = wild.failures
    assert 3 < len(failed) < 40 and {x.cause for x in failed} == {"diverged"}
    assert [x.motion for x in failed] == np.flatnonzero(
        np.isnan(wild.final.q).any(axis=-1)
    ).tolist()
    with pytest.warns(pp.MotionWarning, match="diverged"):
        alone = wild.motion(failed[0].motion)
    assert alone.events[0].t == pytest.approx(failed[0].time)
    assert wild.worst(2)[0] == min(failed, key=lambda x: (x.time, x.motion)).motion
    assert np.isfinite(wild.quantiles().q).all()
    fast = pp.study(
        robot,
        motions=30,
        duration=0.3,
        seed=2,
        fail={"speed": 3.0},
        vary={"q": {"uniform": [-3.0, 3.0]}},
    )
    for failure in fast.failures[:3]:
        motion = fast.motion(failure.motion)
        first = np.flatnonzero((np.abs(motion.v) > 3.0).any(axis=-1))[0]
        assert (failure.cause, failure.time) == ("speed", pytest.approx(motion.t[first]))
    assert fast.failures and np.isfinite(fast.final.q).all(), "too fast, and computed to its end"
    limited = pp.study(
        pp.load("ur5"),
        motions=4,
        duration=0.01,
        seed=2,
        fail={"limits": True},
        vary={"q": {"choice": [7.0, 0.0]}},
    )
    assert {(x.cause, x.time) for x in limited.failures} == {("limit", 0.0)}
    heavy = pp.study(
        robot, motions=20, duration=0.01, seed=2, vary={"mass": {"normal": [0.0, 1.0]}}
    )
    assert {x.cause for x in heavy.failures} == {"infeasible parameters"} and 0 < len(
        heavy.failures
    ) < 20


def test_scenes_and_closed_chains():
    found = pp.study(
        {
            "scene": "four_bar",
            "motions": 3,
            "duration": 0.02,
            "vary": {"v": {"motor": {"uniform": [1.0, 2.0]}}},
        }
    )
    q = found.final.q
    assert np.isfinite(q).all() and len(np.unique(q[:, 0])) == 3
    assert np.abs(found.config.system.constraint_residual(q)).max() < 1e-6


def test_a_scene_whose_contacts_open_is_refused(tmp_path):
    bundled = Path(pp.scenes.__file__).parent / "data" / "two_arms.toml"
    scene = tmp_path / "open.toml"
    scene.write_text('contacts = "open"\n' + bundled.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(pp.Error, match="its contacts can open, but rollouts keep contacts closed"):
        pp.study({"scene": str(scene), "motions": 2, "duration": 0.01})


def test_studies_on_the_ground(cards):
    """Friction varies by motion; each motion starts on its feet, and is repeated to the bit."""
    vary = {"ground_friction": {"uniform": [0.1, 1.0]}, "offset": {"uniform": [-0.05, 0.05]}}
    vary["v"] = {"root_joint": {"uniform": [-0.3, 0.3]}}
    options = {"motions": 9, "duration": 0.1, "dt": 2e-3, "vary": vary}
    study = pp.study({"robot": "anymal_c", "ground": {"friction": 0.8}, **options})
    assert not study.failures
    motion = study.motion(7)
    assert (motion.final.q == study.final.q[7]).all() and motion.gaps[0].min() == pytest.approx(0.0)
    # slower sweeps than the ground tolerates, and friction below 0, are failures of their motions
    hard = pp.Ground(iterations=1)
    vary |= {"ground_friction": {"grid": [-0.5, 0.5, 1.0]}}
    study = pp.study(pp.load("anymal_c"), ground=hard, **options)
    causes = [failure.cause for failure in study.failures]
    assert causes.count("negative friction") == 3 and "contact not solved" in causes
    there = pp.study(pp.load("anymal_c"), ground=hard, **options, cards=True)
    assert there.failures == study.failures
    assert np.allclose(there.final.q, study.final.q, rtol=1e-12, atol=1e-12, equal_nan=True)
    for wrong, words in (
        ({"ground": {"mu": 1.0}}, "ground.mu: no such key"),
        ({"vary": vary}, "ground_friction: there is no ground"),
        ({"ground": {}, "vary": {"ground_friction": {"*": 1.0}}}, "expected a distribution"),
        ({"ground": {}, "robot": "ur5"}, "no contact points"),
    ):
        with pytest.raises(pp.Error, match=words):
            pp.study({"robot": "anymal_c", "motions": 3, "duration": 0.01, **wrong})


def test_masses_of_closed_chains():
    """Each motion is that of a chain whose bodies have these masses for good."""
    arm, loops = pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)]
    chain = pp.connect(arm, loops)
    q0 = chain.assemble(np.array([0.5, 1.0]))
    found = pp.study(
        chain, motions=3, duration=0.05, start={"q": q0.tolist()}, vary={"mass": MASSES}
    )
    sampler = InputSampler(found.config)
    masses = sampler.motions(np.array([1])).system.robot.given[0]
    heavy = pp.connect(
        arm.free("mass", links=[body.name for body in arm.bodies]).baked(masses), loops
    )
    q, v = pp.rollout(heavy, q0, steps=50)
    assert np.allclose(found.final.q[1], q[-1], rtol=1e-9, atol=1e-9) and np.allclose(
        found.final.v[1], v[-1], atol=1e-9
    )
    assert len(np.unique(found.final.q[:, 0])) == 3 and np.array_equal(
        found.motion(2).q[-1], found.final.q[2]
    )


KILLED = """
import psiphi as pp
pp.study({file!r}, out={out!r})
"""


@same_code
def test_killed_at_any_moment_it_goes_on_with_the_same_bits(tmp_path):
    file, out = tmp_path / "falls.toml", tmp_path / "falls.study"
    text = "robot = 'acrobot'\nmotions = 4000\nchunk = 100\nseed = 5\nduration = 0.4\n[vary]\n"
    file.write_text(
        text + "mass = { uniform = [0.8, 1.2], relative = true }\nv = { normal = [0, 1] }\n",
        encoding="utf-8",
    )
    plain = pp.study(file, out=tmp_path / "undisturbed")
    marks = []
    for kill in range(3):
        before = len(list((out / "done").iterdir())) if kill else 0
        with child("-c", KILLED.format(file=str(file), out=str(out))) as running:
            while running.poll() is None and not (
                (out / "done").is_dir() and len(os.listdir(out / "done")) >= before + 2 + kill
            ):
                time.sleep(0.002)
            os.kill(running.pid, signal.SIGKILL)
        marks.append(
            {x.name: x.stat().st_mtime_ns for x in (out / "done").iterdir() if x.name.isdecimal()}
        )
        assert marks[-1]
    again = pp.study(file, out=out)
    now = {x.name: x.stat().st_mtime_ns for x in (out / "done").iterdir()}
    assert all(now[name] == t for mark in marks for name, t in mark.items()), (
        "what was done is not done again"
    )
    for name in ("q", "v"):
        np.testing.assert_array_equal(getattr(again.final, name), getattr(plain.final, name))


def test_bad_studies_are_refused_in_words(robot, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "SCHEDULER_TIMEOUT", 0.2)
    good = {"motions": 10, "duration": 0.01}

    def toml(text):
        def call():
            (tmp_path / "x.toml").write_text(text, encoding="utf-8")
            pp.study(tmp_path / "x.toml", out=tmp_path / "x.study")

        return call

    pp.study(robot, out=tmp_path / "there", **good)
    refused = [
        (toml("robot = 'ur5'\nmotion = 3"), "motions: is missing"),
        (toml("robot = 'ur55'\nmotions = 3"), "robot: is 'ur55'.*ur5"),
        (toml("robot = 'arm.urdf'\nmotions = 3"), "robot: is 'arm.urdf'"),
        (toml("robot = 'ur5'\nmotions = 3\ndurration = 1.0"), "durration: no such key.*duration"),
        (toml("robot = 'ur5'\nmotions = 3\n[vary]\nmass = { unifrom = [1, 2] }"), "unifrom"),
        (
            toml("robot = 'ur5'\nmotions = 3\n[vary]\nmas = { uniform = [1, 2] }"),
            "vary.mas: no such key.*mass",
        ),
        (
            toml("robot = 'ur5'\nmotions = 3\n[vary]\nmass = { uniform = [2, 1] }"),
            "vary.mass.uniform.*not above its first",
        ),
        (
            toml("robot = 'ur5'\nmotions = 3\n[vary.mass]\nwrist_9_link = 1.0"),
            "vary.mass.wrist_9_link.*wrist_1_link",
        ),
        (
            toml("robot = 'ur5'\nmotions = 3\n[controller]\nkind = 'hold'\nkp = 1.0"),
            "controller.kp: no such key",
        ),
        (
            toml("robot = 'ur5'\nmotions = 3\n[controller]\nkind = 'computed'\ngravity = false"),
            "controller.gravity: no such key",
        ),
        (toml("robot = 'ur5'\nmotions = 3\n[vary]\nkp = 1.0"), "vary.kp: the controller 'none'"),
        (
            toml("robot = 'ur5'\nmotions = 3\n[vary]\ndamping = 1.0"),
            "vary.damping: .*is not applied.*damping = true",
        ),
        (
            toml("robot = 'ur5'\nmotions = 3\ndamping = 0.5\n[vary]\ndamping = 1.0"),
            "its variation has no effect",
        ),
        (
            toml("robot = 'ur5'\nmotions = 3\n[vary]\nstiffness = 1.0"),
            "vary.stiffness: .*springs = true",
        ),
        (toml("robot = 'ur5'\nscene = 'four_bar'\nmotions = 3"), "scene: contradicts robot"),
        (
            toml("scene = 'four_bar'\nmotions = 3\n[vary]\nq = 1.0"),
            "q of a closed chain must satisfy its constraints",
        ),
        (toml("robot = \nmotions = 3"), "not TOML.*line 1"),
        (lambda: pp.study(tmp_path / "none.toml"), "no such study file"),
        (
            lambda: pp.study(robot, out=tmp_path / "there", motions=11, duration=0.01),
            "another study: motions is 10 there",
        ),
        (lambda: pp.study(robot, out=tmp_path / "x.toml", **good), "cannot store a study"),
        (
            lambda: pp.study(robot, **good, keep={"every": 3}),
            "keep.every: is 3, and 10 steps are not a multiple",
        ),
        (lambda: pp.study(robot, **good, scheduler="tcp://127.0.0.1:1"), "no scheduler answers"),
        (lambda: pp.study(robot, **good, method="dop853"), "method"),
        (lambda: pp.study(robot, **good).samples, "stored no samples"),
        (lambda: pp.study(robot, **good).motion(10), "motion 10 of 10"),
        (lambda: pp.study(robot, **good).quantiles([2.0]), "levels is"),
        (lambda: pp.study(robot.free("mass"), **good), "free already"),
        (
            lambda: pp.study(robot, **good, controller={"kind": "pd", "kp": -1.0}),
            "controller.kp: is -1, expected a gain",
        ),
        (
            lambda: pp.study(robot, **good, vary={"v": RELATIVE}),
            "vary.v: is relative to the nominal v, which is 0",
        ),
        (
            lambda: pp.study(robot, **good, vary={"mass": {"lower": 1.0, "*": 2.0}}),
            "vary.mass.lower: has no effect",
        ),
        (lambda: pp.study(3), "expected a TOML file"),
    ]
    for call, words in refused:
        with pytest.raises(pp.Error, match=words):
            call()


def test_a_folder_is_of_one_study_to_the_order_of_its_grids_and_the_controller_of_its_scene(
    robot, tmp_path
):
    """Stored results belong to the samples of their motion; the first grid changes fastest."""
    grids = {"v": {"grid": [0.0, 1.0]}, "mass": {"grid": [1.0, 2.0, 3.0]}}
    for order, words in ((grids, ("v", "mass")), (dict(reversed(grids.items())), ("mass", "v"))):
        found = pp.study(robot, motions=2, duration=0.01, vary=order).drawn(range(2))
        assert [label.partition(":")[0] for label in found][::2] == list(words)
        assert [len(set(x)) for x in found.values()] == [2, 1, 1, 1]
    turned = {"elbow": {"grid": [0.1, 0.2]}, "shoulder": {"grid": [0.0, 1.0, 2.0]}}
    kept = {"out": tmp_path / "grids", "motions": 6, "duration": 0.01}
    pp.study(robot, **kept, vary={"q": turned})
    with pytest.raises(pp.Error, match="another study: vary"):
        pp.study(robot, **kept, vary={"q": dict(reversed(turned.items()))})
    scene, text = (
        tmp_path / "arm.toml",
        '[robots.arm]\nrobot = "acrobot"\n[controller]\nkind = "pd"\nkp = ',
    )
    kept = {"scene": str(scene), "motions": 2, "duration": 0.01}
    scene.write_text(f'title = "An arm"\n{text}50.0', encoding="utf-8")
    pp.study(kept, out=tmp_path / "held")
    scene.write_text(f"# soft, by another name\n{text}50", encoding="utf-8")
    pp.study(kept, out=tmp_path / "held")
    for other in (f"{text}5.0", f'method = "euler"\n{text}50.0', f"damping = true\n{text}50.0"):
        scene.write_text(other, encoding="utf-8")
        with pytest.raises(pp.Error, match="another study: scene"):
            pp.study(kept, out=tmp_path / "held")


def test_numbers_that_are_gone_are_no_zeros(robot, tmp_path):
    """A folder that lost files, all of them or one: said, and not filled up."""
    kept = {"motions": 6, "chunk": 2, "duration": 0.01, "out": tmp_path / "x"}
    study = pp.study(robot, **kept)
    zeros = pp.study(robot.with_gravity((0, 0, 0)), motions=6, chunk=2, duration=0.01)
    assert not zeros.final.q.any() and zeros.failures == [], "these are zeros, and no file says so"
    data = tmp_path / "x" / "data.zarr"
    for name in ("final_q", "cause"):
        min(
            file for file in (data / name).rglob("*") if file.is_file() and "json" not in file.name
        ).unlink()
        with pytest.raises(pp.Error, match="2 motions are missing, beginning with motion 0"):
            assert study.final
    shutil.rmtree(data)
    with pytest.raises(pp.Error, match=r"markers of finished chunks but no data\.zarr/final_q"):
        pp.study(robot, **kept)


def test_a_damaged_chunk_is_named_and_computed_again(robot, tmp_path):
    """Any flipped bit of any array: an error that names the motions, whose remedy repairs them."""
    options = dict(motions=20, duration=4e-3, dt=2e-3, out=tmp_path, chunk=8)
    study = pp.study(robot, vary={"q": {"uniform": [-1, 1]}}, keep={"every": 1}, **options)
    before = study.final.q.copy(), study.final.v.copy(), np.asarray(study.samples.q)
    files = [f for f in (tmp_path / "data.zarr").rglob("c/*") if f.is_file()]
    files += [f for f in (tmp_path / "data.zarr").rglob("c/*/*") if f.is_file()]
    files += [f for f in (tmp_path / "data.zarr").rglob("c/*/*/*") if f.is_file()]
    assert len(files) == 3 * 6  # no motion failed, so the times of failures have no files
    rng = np.random.default_rng(0)
    for file in files:
        sound = file.read_bytes()
        for bit in rng.integers(8 * len(sound), size=3):
            damaged = bytearray(sound)
            damaged[bit // 8] ^= 1 << (bit % 8)
            file.write_bytes(damaged)
            name = file.relative_to(tmp_path / "data.zarr").parts[0]
            chunk = int(file.relative_to(tmp_path / "data.zarr").parts[2])
            first, last = 8 * chunk, min(20, 8 * chunk + 8) - 1
            with pytest.raises(pp.Error, match=f"{name} of motions {first} to {last} is damaged"):
                study.store.read(name)
        file.write_bytes(sound)
    assert np.array_equal(study.final.q, before[0])
    file = next(f for f in files if "final_q" in str(f))
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(pp.Error, match="damaged") as error:
        assert study.final
    marker = re.search(r"delete (\S+) and run", str(error.value))
    assert marker
    Path(marker[1]).unlink()
    again = pp.study(robot, vary={"q": {"uniform": [-1, 1]}}, keep={"every": 1}, **options)
    assert np.array_equal(again.final.q, before[0]) and np.array_equal(again.final.v, before[1])
    assert np.array_equal(again.samples.q, before[2])


def test_a_full_disk_keeps_what_is_complete(robot, tmp_path, monkeypatch):
    """A study whose disk fills says which chunk was lost, and continues when there is space."""
    options = dict(
        motions=20, duration=4e-3, dt=2e-3, out=tmp_path, chunk=8, vary={"q": {"uniform": [-1, 1]}}
    )
    write = zarr.Array.__setitem__

    def full(self, rows, values):
        if rows.start == 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, rows, values)

    with monkeypatch.context() as changed:
        changed.setattr(zarr.Array, "__setitem__", full)
        with pytest.raises(pp.Error, match=r"chunk 1 cannot be written.*No space left") as error:
            pp.study(robot, **options)
    assert "run the study again" in str(error.value)
    # the chunks are computed at the same time: the other two are complete or not
    assert "000001" not in {path.name for path in (tmp_path / "done").iterdir()}
    again = pp.study(robot, **options)
    whole = pp.study(robot, **options | {"out": tmp_path / "other"})
    assert np.array_equal(again.final.q, whole.final.q)


def test_gains_below_zero_are_rows(robot):
    drawn = {
        "seed": 1,
        "duration": 0.01,
        "controller": {"kind": "computed"},
        "vary": {"kp": {"normal": [1.0, 1.0]}},
    }
    study = pp.study(robot, motions=40, **drawn)
    (below,) = study.drawn(range(40)).values()
    assert [x.motion for x in study.failures] == np.flatnonzero(below < 0.0).tolist() != []
    assert {(x.cause, x.time) for x in study.failures} == {("negative gain", 0.0)}
    np.testing.assert_array_equal(np.isnan(study.final.q).any(axis=1), below < 0.0)
    with pytest.raises(pp.StateError, match="negative gain"):
        study.motion(study.failures[0].motion)


@same_code
def test_a_cluster_gives_the_same_bits_and_a_dead_worker_costs_its_chunk(robot, monkeypatch):
    keys = {
        "motions": 640,
        "chunk": 64,
        "seed": 4,
        "duration": 0.02,
        "vary": {"mass": MASSES, "v": {"normal": [0.0, 1.0]}},
    }
    plain = pp.study(robot, **keys)
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        first = client.run(os.getpid)
        killer = threading.Timer(
            0.3, lambda: [os.kill(pid, signal.SIGKILL) for pid in first.values()]
        )
        killer.start()
        there = pp.study(robot, **keys, scheduler=cluster.scheduler_address)
        killer.join(60)
        again = pp.study(robot, **{**keys, "chunk": 320}, scheduler=client)
        monkeypatch.setattr(workers, "code_key", lambda: "another")
        with pytest.raises(pp.Error, match="another psiphi or NumPy"):
            pp.study(robot, **keys, scheduler=client)
    for study in (there, again):
        np.testing.assert_array_equal(study.final.q, plain.final.q)


def test_the_command_line_runs_tells_and_reports(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "robot = 'acrobot'\nmotions = 200\nduration = 0.2\ndt = 0.01\nmethod = 'euler'\n"
    text += "title = '<b>fast</b>'\n"
    text += "[vary]\nv = { loguniform = [1.0, 1e8] }\n"
    (tmp_path / "fast.toml").write_text(text, encoding="utf-8")
    assert cli.main(["study", "status", "fast.toml"]) == 2
    assert cli.main(["study", "run", "fast.toml"]) == 0
    said = capsys.readouterr()
    assert (
        "200 motions" in said.out
        and "diverged" in said.out
        and "100%" in said.err
        and "left" in said.err
    )
    assert cli.main(["study", "status", "fast.toml"]) == 0
    assert "200 of 200 motions are done" in capsys.readouterr().out
    assert cli.main(["study", "report", "fast.toml", "--worst", "2"]) == 0
    page = (tmp_path / "fast.html").read_text(encoding="utf-8")
    assert "<b>fast</b>" not in page and "&lt;b&gt;fast" in page and "https:" not in page
    assert page.count("<svg") == 4 and "diverged" in page and "Quantiles" in page
    links = re.findall('href="([^"]*)"', page)
    assert len(links) == 2 and all((tmp_path / link).stat().st_size > 10_000 for link in links)
    for words in (
        ["walk", "fast.toml"],
        ["status", "fast.toml", "--scheduler", "x"],
        ["run", "none.toml"],
    ):
        assert cli.main(["study", *words]) == 2


def test_on_cards_the_bits_are_the_hosts(robot, cards):
    """Chunks run on the two GPUs in turn; motions with large angles run on the CPU."""
    fast = {
        "q": {"elbow": {"choice": [0.1, 3e4]}},
        "v": {"*": {"choice": [0.5, 1e7]}},
        "mass": MASSES,
    }
    keys = {
        "motions": 70,
        "chunk": 32,
        "seed": 4,
        "duration": 0.02,
        "keep": {"every": 10},
        "vary": fast,
    }
    plain, there = pp.study(robot, **keys), pp.study(robot, **keys, cards=True)
    assert {row[-1] for row in cards.log if row[0] == "launch"} == {0, 1} and not cards.memory
    for one, other in ((plain.final, there.final), (plain.samples, there.samples)):
        assert np.array_equal(one.q[:], other.q[:], equal_nan=True) and np.array_equal(
            one.v[:], other.v[:], equal_nan=True
        )
    assert (np.abs(plain.final.q) > 1e4).any() and plain.failures == there.failures != []
    stopped = {
        **keys,
        "motions": 40,
        "vary": {"v": {"*": {"uniform": [-20.0, 20.0]}}, "mass": MASSES},
        "limits": "block",
    }
    plain, there = (pp.study(robot, **stopped, cards=on) for on in (False, True))
    assert np.array_equal(plain.final.q, there.final.q)
    chain = {"scene": "four_bar", "motions": 3, "duration": 0.02, "vary": {"mass": MASSES}}
    plain, there = (pp.study(chain, cards=on) for on in (False, True))
    assert np.array_equal(plain.final.q, there.final.q) and np.array_equal(
        plain.final.v, there.final.v
    )


def test_cards_that_are_not_there(robot, cards, monkeypatch):
    keys = {"motions": 5, "duration": 0.01, "vary": {"mass": MASSES}}
    monkeypatch.setattr(type(cards), "count", 0)
    with pytest.raises(pp.Error, match="the driver finds no GPU"):
        pp.study(robot, **keys, cards=True)

    def absent():
        raise driver_bindings.DriverError("no driver", "")

    monkeypatch.setattr(driver_bindings, "driver", absent)
    assert driver_bindings.count_gpus() == 0
    with pytest.raises(pp.Error, match="no driver"):
        pp.study(robot, **keys, cards=True)


LONG = """
robot = 'ur5'
motions = 1_000_000
seed = 5
dt = 0.001
duration = 60.0
chunk = {chunk}
[vary]
q = {{ uniform = [-0.1, 0.1] }}
"""
# a shell starts background processes with the interrupt ignored
INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
RUN = {
    "python": "import psiphi as pp; pp.study({file!r}, out={out!r}, progress=True)",
    "command": "from psiphi.apps.cli.main import main; "
    "raise SystemExit(main(['study', 'run', {file!r}, '--out', {out!r}]))",
}


@same_code
@pytest.mark.skipif(os.name == "nt", reason="this system has no signal for one process")
@pytest.mark.parametrize("how", RUN)
@pytest.mark.parametrize("chunk", [32, 8192])
def test_control_c_stops_within_a_second_and_says_how_much_is_stored(tmp_path, how, chunk):
    """Also in the middle of a chunk that would take a minute."""
    file, out = tmp_path / "long.toml", tmp_path / "long.study"
    file.write_text(LONG.format(chunk=chunk), encoding="utf-8")
    with child("-c", INTERRUPTS + RUN[how].format(file=str(file), out=str(out))) as running:
        started = time.monotonic()
        while not (out / "data.zarr" / "time").is_dir() and time.monotonic() < started + 60.0:
            time.sleep(0.02)
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        pressed = time.monotonic()
        _, err = running.communicate(timeout=60.0)
        took = time.monotonic() - pressed
    stored = sum(chunk for name in os.listdir(out / "done") if name.isdecimal())
    assert f"{stored} of 1000000 motions are stored in {out}; the same command resumes" in err
    assert took < 2.0, took  # a second, on a busy machine
    assert running.returncode == 130 if how == "command" else "Traceback" in err
    assert stored if chunk == 32 else not stored


def test_an_interrupted_study_without_a_folder_says_what_to_do(robot, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("psiphi.apps.studies.study.compute_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt, match="after 0 of 4 motions, which are not kept; out="):
        pp.study(robot, motions=4, duration=0.01)


def test_long_pieces_are_cut_and_have_the_same_bits(monkeypatch):
    arm, stop = pp.load("ur5"), threading.Event()
    q0 = arm.random(seed=1, size=100)
    whole = pp.rollout(arm, q0, steps=20, every=20)
    monkeypatch.setattr(rollout_runner, "PIECE_SECONDS", 1e-9)
    sizes = []
    native = rollout_runner.StepLoop._run

    def run(self, code, arrays, start, end, *rest):
        sizes.append(end - start)
        native(self, code, arrays, start, end, *rest)

    monkeypatch.setattr(rollout_runner.StepLoop, "_run", run)
    cut = pp.rollout(arm, q0, steps=20, every=20)
    assert sorted(sizes) == [4, 32, 32, 32] and all(map(np.array_equal, whole, cut))
    token = threads.cancellation.set(stop)
    try:
        stop.set()
        with pytest.raises(threads.Cancelled):
            pp.rollout(arm, q0, steps=20)
    finally:
        threads.cancellation.reset(token)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "shown"),
    [
        (Terminal, None, True),
        (Terminal, True, True),
        (Terminal, False, False),
        (io.StringIO, None, False),
        (io.StringIO, True, True),
    ],
)
def test_the_bar_is_there_from_the_start(robot, monkeypatch, stream, progress, shown):
    """On a terminal it stands there before the first chunk is computed."""
    seen, stderr = [], stream()
    compute = Chunk.run
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(workers, "TICK", 0.02)

    def run(self, numbers):
        if len(numbers) > 1:  # not the one that compiles
            time.sleep(0.1)
            seen.append(stderr.getvalue())
        return compute(self, numbers)

    monkeypatch.setattr(Chunk, "run", run)
    pp.study(robot, motions=64, duration=0.01, chunk=32, progress=progress)
    assert bool(stderr.getvalue()) is shown
    if shown and stream is Terminal:
        assert "] " in seen[0] and "0% " in seen[0] and "0 motions" in seen[0]
        assert seen[0].count("\r") >= 2, "it is drawn again while a chunk is computed"
