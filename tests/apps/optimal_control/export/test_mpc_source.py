"""`MPC.c_files`: strict compilers take it, and its torques are those of the controller."""

import ctypes
import shutil
import subprocess
from functools import cache
from typing import Any

import numpy as np
import pytest

import psiphi as pp
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


def test_the_test_program_agrees(tmp_path):
    """With sanitizers; a wrong torque is found."""
    sources = written(posed_controller().c_files("posed", [0.3, -0.2], [0.2, 0.1]), tmp_path)
    source, test, code = *sources, str(tmp_path / "posed.o")
    options = *STRICT, *CHECKED, "-O0"
    compiled(*options, "-c", source, "-o", code)
    compiled(*options, test, code, "-o", str(tmp_path / "test"))
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "largest error" in done.stdout, done.stdout + done.stderr
    text = (tmp_path / "posed_test.c").read_text()
    head, numbers = text.split("test_u[8] = {\n", 1)
    (tmp_path / "posed_test.c").write_text(head + "test_u[8] = {\n 1.0 + " + numbers.lstrip())
    compiled(*options, test, code, "-o", str(tmp_path / "wrong"))
    assert subprocess.run([tmp_path / "wrong"], capture_output=True, timeout=60).returncode == 1


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

    def pointers(*arrays):
        return [np.ascontiguousarray(x).ctypes.data_as(Pointer) for x in arrays]

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
            "with limits of positions or speeds",
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
