"""What a type checker sees of psiphi: every public name is typed, and a user's script in strict
mode has no error."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest

import psiphi as pp
from tests.children import SRC

SCRIPT = """\
import numpy as np

import psiphi as pp

robot = pp.load("ur5", gravity=(0, 0, -1.62))
q, v = robot.neutral(), np.zeros(robot.nv)
tau = robot.gravity(q)
a = robot.forward_dynamics(q, v, tau, f_ext={"tool": [0, 0, 0, 0, 0, 1]})
L, D = robot.mass_matrix_factors([0.0] * 6)
J, T = robot.jacobian(q, "tool"), robot.frame_pose(q, "tool")
s = robot.operators
f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
print(f(q).shape, f.flops, f.explain(), f.latex(), pp.prove(s.phi @ s.E_phi, s.phi - s.I).proved)
hold = pp.PD(robot, q, kp=400.0, kd=40.0, gravity=True)
motion = pp.simulate(robot, q, tau=hold, duration=0.1)
qs, vs = pp.rollout(robot, robot.random(size=100, seed=0), steps=10)
print(motion.plot("q", joints="wrist_*", limits=True), motion.final.q, motion.summary(), qs.mean(), vs.max())
motion.save("m.csv")
again = pp.Trajectory.load("m.csv", system=robot)
mine = pp.Trajectory(again.t, again.q, again.v, system=robot)
box = pp.Body.box(3.0, (0.4, 0.25, 0.2))
cell = pp.grasp([(robot, (0, -0.5, 0), "tool0"), (robot, (0, 0.5, 0), "tool0")], box, [(0, -0.1, 0), (0, 0.1, 0)])
state = cell.assemble(np.concatenate([q, q, np.array([0.5, 0, 0.5, 0, 0, 0, 1.0])]))
acceleration, wrenches = cell.forward_dynamics(state, np.zeros(cell.nv), np.zeros(cell.nv), forces=True)
print(cell.forward_dynamics(state, np.zeros(cell.nv), np.zeros(cell.nv)).shape, wrenches.shape, acceleration.shape)
b = pp.Builder("pendulum")
b.body("rod", mass=1.0, com=(0, 0, -0.5))
b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
pp.viewer.html(b.build(), "m.html", q=[0.3])
print(pp.robots.names(), pp.scenes.load("two_arms").run(duration=0.1).drift, a @ tau, L @ D, J @ v, T[:3, 3], mine.work)
"""  # noqa: E501
WRONG = {  # what must be an error, and where
    'robot.gravity("hello")': "reportArgumentType",
    "robot.jacobian(q, 3)": "reportArgumentType",
    "robot.forward_dynamics(q, v)": "reportCallIssue",
    "robot.mass_matrix(q).nonsense": "reportAttributeAccessIssue",
    'robot.load("x")': "reportAttributeAccessIssue",
    "pp.simulate(robot, q, durations=1.0)": "reportCallIssue",
}


def checked(folder, text: str) -> list[dict]:
    """What pyright says of a script in strict mode, with psiphi as an installed package is seen."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"  # whose stubs are installed here
    config = {"typeCheckingMode": "strict", "extraPaths": [str(SRC)], "pythonVersion": version}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "-p",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return json.loads(done.stdout)["generalDiagnostics"]


def test_a_users_script(tmp_path):
    pytest.importorskip("pyright")
    assert len(SCRIPT.splitlines()) >= 30
    assert [row["message"] for row in checked(tmp_path, SCRIPT) if row["severity"] == "error"] == []


def test_results_are_arrays_and_mistakes_are_found(tmp_path):
    pytest.importorskip("pyright")
    head = 'import psiphi as pp\nrobot = pp.load("ur5")\nq = robot.neutral()\nv = q\n'
    shown = (
        "robot.mass_matrix(q)",
        "robot.energy(q, v)",
        "pp.function(robot.operators.mass)(q)",
        "robot.diagonalised.gravity(q)",
    )
    body = [*(f"reveal_type({text})" for text in shown), *(f"print({text})" for text in WRONG)]
    rows = checked(tmp_path, head + "\n".join(body) + "\n")
    said: dict[int, list[dict]] = {}
    for row in rows:
        said.setdefault(row["range"]["start"]["line"] - 4, []).append(row)
    for k in range(len(shown)):
        assert said[k][0]["message"].endswith('is "ndarray[Any, dtype[floating[Any]]]"')
    for k, (text, rule) in enumerate(WRONG.items(), start=len(shown)):
        assert rule in [row["rule"] for row in said[k] if row["severity"] == "error"], text


def public() -> list[str]:
    """Every public name, and every public member of a public class."""
    out = []
    for name in pp.__all__:
        thing = getattr(pp, name)
        rooms = {f"{name}.{own}": getattr(thing, own) for own in getattr(thing, "__all__", ())}
        for path, value in rooms.items() if isinstance(thing, ModuleType) else [(name, thing)]:
            if isinstance(value, ModuleType) or (
                inspect.isclass(value) and issubclass(value, BaseException)
            ):
                continue
            out.append(path)
            if inspect.isclass(value):
                known = dir(tuple) if issubclass(value, tuple) else dir(object)
                out += [
                    f"{path}.{member}"
                    for member in dir(value)
                    if not member.startswith("_") and member not in known
                ]
    return out


def test_every_public_name_is_typed(tmp_path):
    pytest.importorskip("pyright")
    names = public()
    assert len(names) > 250
    rows = checked(
        tmp_path, "import psiphi as pp\n" + "".join(f"print(pp.{name})\n" for name in names)
    )
    untyped = {
        names[row["range"]["start"]["line"] - 1] for row in rows if row["severity"] == "error"
    }
    assert not untyped, sorted(untyped)
