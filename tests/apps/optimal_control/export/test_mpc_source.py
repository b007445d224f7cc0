"""`MPC.c_files`: strict compilers take it, and its torques are those of the controller."""

import ctypes
import shutil
import subprocess
from functools import cache
from typing import Any

import numpy as np
import pytest

import psiphi as pp
from psiphi.backends.cpu import cpu_target
from tests.apps.optimal_control import robots
from tests.apps.optimal_control.test_optimum_derivatives import inputs, posed_problem
from tests.backends.c.test_c_files import CHECKED, STRICT

Pointer = ctypes.POINTER(ctypes.c_double)


@cache
def posed_controller() -> pp.MPC:
    """Goals of every kind, one of them for each node, and free masses."""
    made = posed_problem()
    problem = pp.OptimalControl(
        made.robot, made.dt, made.steps, running=[x.cost for x in made.running],
        final=[x.cost for x in made.final], torque=[2.0, 0.5], hessian="gauss",
    )  # fmt: skip
    values, _ = inputs()
    given: dict[str, Any] = {k: values[k] for k in ("tool", "center_of_mass", "speed")}
    given["posture"] = lambda t: values["posture"][0] + [0.1 * t, -0.2 * t]
    return pp.MPC(problem, parameters=1.1 * values["parameters"], first=20, **given)


def written(files, folder):
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in files if name.endswith(".c")]


def compiled(*words):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) on this machine")
    done = subprocess.run([compiler, *words, "-lm"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def pointers(*arrays):
    return [np.ascontiguousarray(x).ctypes.data_as(Pointer) for x in arrays]


def test_the_test_program_agrees(tmp_path):
    """With sanitizers; a wrong torque is found."""
    sources = written(posed_controller().c_files("posed", [0.3, -0.2], [0.2, 0.1]), tmp_path)
    source, test, code = *sources, str(tmp_path / "posed.o")
    options = *STRICT, *CHECKED, "-O0"
    compiled(*options, "-c", source, "-o", code)
    compiled(*options, test, code, "-o", str(tmp_path / "test"))
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "largest error" in done.stdout, done.stdout + done.stderr
    text = (tmp_path / "posed_test.c").read_text(encoding="utf-8")
    head, numbers = text.split("test_u[8] = {\n", 1)
    (tmp_path / "posed_test.c").write_text(
        head + "test_u[8] = {\n 1.0 + " + numbers.lstrip(), encoding="utf-8"
    )
    compiled(*options, test, code, "-o", str(tmp_path / "wrong"))
    assert subprocess.run([tmp_path / "wrong"], capture_output=True, timeout=60).returncode == 1


def test_the_same_bits(tmp_path, monkeypatch):
    """Without fused products and sines, which compilers and libraries round as they like, every bit
    of the torques is that of the controller."""
    monkeypatch.setattr(cpu_target, "has_fma", lambda: False)
    builder = pp.Builder("slides")
    for name, parent, axis in (("a", "world", (1, 0, 0)), ("b", "a", (0.6, 0, 0.8))):
        builder.body(name, mass=1.3, com=(0.1, 0.0, 0.2), inertia=np.diag([0.1, 0.2, 0.3]))
        builder.joint(f"slide_{name}", "prismatic", parent, name, axis=axis, velocity=0.5)
    robot = builder.build()
    problem = pp.OptimalControl(
        robot,
        dt=0.05,
        steps=12,
        running=[
            pp.cost.torque(1e-2),
            pp.cost.of(lambda q, v, u: [q[0] * q[1], v[0] * q[1] - 0.3]),
        ],
        final=[pp.cost.posture(10.0), pp.cost.speed(1.0)],
        torque=[3.0, 13.0],
        speed="soft",
        limit_weight=50.0,
        hessian="gauss",
    )
    control = pp.MPC(problem, iterations=2, first=4, posture=[0.7, -0.4])
    sources = written(control.c_files("slides", [0.0, 0.0]), tmp_path)
    library = str(tmp_path / "slides.so")
    compiled("-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", sources[0], "-o", library)
    functions = ctypes.CDLL(library)
    plan, u, q, v = np.zeros(10_000), np.zeros(2), np.zeros(2), np.array([0.3, -0.2])
    fast = 0
    goal, bounded = np.array([0.7, -0.4]), 0
    for step in range(12):
        expected = control(step * problem.dt, q, v)
        if step == 0:
            functions.slides_start(*pointers(plan, q, v, problem.first_torques(q), goal, u))
        else:
            functions.slides_step(*pointers(plan, q, v), 1, *pointers(goal, u))
        np.testing.assert_array_equal(u, expected)
        fast += (np.abs(control.plan.v) > 0.5).any()
        bounded += (np.abs(u) >= [3.0, 13.0]).sum()
        q, v = robot.step(q, v, 0.9 * expected, problem.dt, method="euler")
    assert 0 < bounded < 20 and fast, (bounded, fast)


def test_steps_of_a_free_body(tmp_path):
    """A satellite with an arm, two iterations a step, steps that come late: the same torques."""
    problem, robot = robots.turn_problem(), robots.satellite()
    q, v = robot.neutral(), np.zeros(7)
    hull, tip = robot.frame_pose(q, "hull"), robot.frame_pose(q, "tip")[:3, 3]
    hull[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    hull[:3, 3] = 0.3, 0.1, 0.0
    control = pp.MPC(problem, iterations=2, first=3, hull=hull, tip=tip + 0.2)
    sources = written(control.c_files("turn", q, v), tmp_path)
    library = str(tmp_path / "turn.so")
    compiled("-std=c99", "-O0", "-shared", "-fPIC", sources[0], "-o", library)
    functions = ctypes.CDLL(library)
    plan = np.zeros(100_000)
    goals = [np.ascontiguousarray(hull[:3]).reshape(-1), np.array(tip + 0.2)]
    u, first = np.zeros(7), problem.first_torques(q)

    t = 0.0
    for step, passed in enumerate((0, 1, 1, 3, 1, 50)):
        t += passed * problem.dt
        expected = control(t, q, v)
        before, after = pointers(plan, q, v), pointers(*goals, u)
        if step == 0:
            good = functions.turn_start(*before, *pointers(first), *after)
        else:
            good = functions.turn_step(*before, passed, *after)
        assert good == 1
        np.testing.assert_allclose(u, expected, rtol=1e-8, atol=1e-9)
        assert np.abs(u).max() > 0.1
        q, v = robot.step(q, v, expected, problem.dt, method="euler")
        v = v + 0.01 * np.cos(step + np.arange(7))  # the plant is not the model
    v[0] = np.nan
    assert functions.turn_step(*pointers(plan, q, v), 1, *pointers(*goals, u)) == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: robots.swing_problem(), 'the problem has "auto"'),
        (
            lambda: pp.OptimalControl(
                robots.pelican(), 0.1, 5, running=[pp.cost.torque(1.0)], speed=2.0, hessian="gauss"
            ),
            'with "kept" limits of positions or speeds',
        ),
    ],
)
def test_what_is_not_written(make, words):
    with pytest.raises(pp.StateError) as error:
        pp.MPC(make()).c_files("x", [0.0, 0.0])
    assert words in str(error.value)


def test_bad_arguments():
    control = posed_controller()
    for call, words in (
        (lambda: control.c_files("2x", [0.0, 0.0]), "is not a valid name in C"),
        (lambda: control.c_files("x", [0.0]), "expected (..., 2)"),
        (lambda: control.c_files("x", np.zeros((3, 2))), "batch axes"),
    ):
        with pytest.raises(pp.StateError) as error:
            call()
        assert words in str(error.value)
