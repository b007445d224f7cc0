"""Generates docs/reference.md and a page for each group in docs/reference/: every public name with
types, docstring and an example."""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import re
import textwrap
from functools import cached_property
from types import ModuleType

import numpy as np

import psiphi as pp
from psiphi._util.internal_names import is_internal

TITLE = """# API reference

`tools/docs.py` generates these pages from the code. `Numbers` is anything that converts to an array
of real numbers: a number, lists, NumPy arrays, pandas tables. `Array` is a NumPy array of float64,
or float32 for float32 arguments. `(..., nv)` has any leading batch axes. `Out` are arrays for the
results, `Wrenches` is a dict from frame names to wrenches [moment; force]. Errors are subclasses of
[`psiphi.Error`](errors.md).
"""
FIRST_PAGE = "reference.md"
GROUPS = {  # heading of a page -> its public names
    "Robots": (
        "load",
        "from_mujoco",
        "from_pinocchio",
        "from_dh",
        "DH",
        "Builder",
        "Robot",
        "FreeRobot",
        "robots",
    ),
    "Models": ("Model", "Body", "Frame", "Pose"),
    "Flexible links": ("Beam", "FlexibleBody"),
    "Closed chains": (
        "grasp",
        "connect",
        "embed",
        "Contact",
        "Loop",
        "Gear",
        "Rotor",
        "System",
        "scenes",
    ),
    "Contact with a ground": (
        "Ground",
        "GivenContacts",
        "Sphere",
        "Point",
        "Points",
        "Hull",
        "Capsule",
        "Box",
        "Cylinder",
    ),
    "Inverse kinematics and paths": ("reach", "IKResult", "path", "TimedPath"),
    "Optimal control": ("OptimalControl", "OptimalMotion", "MPC", "cost"),
    "Motion": ("simulate", "rollout", "Trajectory", "study", "Study", "viewer"),
    "Sensors": ("IMU", "JointTorque", "ContactForce"),
    "Reinforcement learning": ("environment", "Environment"),
    "Control": (
        "PD",
        "ComputedTorque",
        "Lyapunov",
        "Decoupled",
        "OperationalSpace",
        "ObjectControl",
        "GravityCompensation",
        "PrescribedMotion",
        "law",
    ),
    "Algebra": (
        "Expression",
        "function",
        "vector",
        "prove",
        "derivative",
        "time_derivative",
        "dot_test",
    ),
    "Estimation and other libraries": ("identify", "Identification", "estimation", "interop"),
    "Threads": ("set_threads", "get_threads"),
    "Errors": (
        "Error",
        "ModelError",
        "StateError",
        "SingularError",
        "CacheError",
        "SimulationError",
    ),
    "Warnings": ("ModelWarning", "MotionWarning"),
}


SETUP = """\
import pathlib, tempfile
import numpy as np
import psiphi as pp
folder = pathlib.Path(tempfile.mkdtemp())
robot = pp.load("ur5")
light = robot.free("inertia")
q, v, a, tau = robot.random(seed=0), np.ones(6), np.ones(6), np.ones(6)
s = robot.operators
case = pp.scenes.load("two_arms")
cell, Q, V = case.system, case.q0, case.v0
A, F = np.zeros(cell.nv), np.zeros((2, 6))
motion = pp.simulate(robot, q, duration=0.1)
costs = {"running": [pp.cost.torque(1e-3)], "final": [pp.cost.posture(10.0, at=q)]}
slow = pp.OptimalControl(robot, 0.02, 10, **costs)
best = slow.solve([q, q + 0.1])
layout = pp.interop.pinocchio(robot)
estimate = pp.estimation.of(robot, q, v)
q3, v3, a3 = np.random.default_rng(0).standard_normal((3, 50, 2))
env = pp.environment(pp.load("acrobot"), observations=["q", "v"], rewards={"alive": 1.0})
state, seen = env.reset(3)
found = pp.identify(acrobot := pp.load("acrobot"), q3, v3, a3, acrobot.inverse_dynamics(q3, v3, a3))
"""
HOLDERS = {
    "Robot": "robot",
    "Model": "robot",
    "System": "cell",
    "Trajectory": "motion",
    "Expression": "s.mass",
}
HOLDERS |= {
    "Environment": "env",
    "Identification": "found",
    "OptimalControl": "slow",
    "OptimalMotion": "best",
    "FreeRobot": "light",
    "interop.Layout": "layout",
    "scenes.SceneSetup": "case",
    "estimation.RobotFilterModel": "estimate",
}
OWN = {
    "q": "q",
    "v": "v",
    "a": "a",
    "tau": "tau",
    "x": "v",
    "frame": '"tool"',
    "frames": '"tool"',
    "q0": "q",
    "q1": "q + 0.1",
}
OWN |= {
    "M": "robot.mass_matrix(q)",
    "mass_matrix": "robot.mass_matrix(q)",
    "J": 'robot.jacobian(q, "tool")',
    "bias": "robot.bias(q, v)",
}
CELL = {
    "q": "Q",
    "v": "V",
    "a": "A",
    "tau": "A",
    "forces": "F",
    "q_guess": "Q",
    "q0": "Q",
    "q1": "Q",
}
EXAMPLES = {  # for names whose example cannot be built from the argument names
    "pp.Builder": 'b = pp.Builder("pendulum")',
    "Builder.body": 'b.body("rod", mass=1.0, com=(0, 0, -0.5))',
    "Builder.frame": 'b.frame("tip", "rod", xyz=(0, 0, -1))',
    "Builder.joint": (
        'b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0), damping=0.1)'
    ),
    "Builder.posture": 'b.posture("up", {"hinge": 3.1})',
    "Builder.note": 'b.note("measured on a Monday")',
    "Builder.build": "b.build()",
    "pp.Identification": "isinstance(found, pp.Identification)",
    "Identification.report": "print(found.report().splitlines()[0])",
    "Identification.plot": 'found.plot(folder / "fit.png")',
    "pp.FreeRobot": 'isinstance(pp.load("ur5").free("mass"), pp.FreeRobot)',
    "pp.Robot": 'isinstance(pp.load("ur5"), pp.Robot)',
    "Robot.symbolic": 'robot.symbolic("gravity")',
    "Robot.to_casadi": 'robot.to_casadi("gravity")',
    "Robot.flops": 'robot.flops("gravity") > 0',
    "Robot.function": 'robot.function("mass_matrix").count.flops > 0',
    "Robot.forward_dynamics_details": 'sorted(robot.forward_dynamics_details(q, v, tau, "FD2"))',
    "Robot.mass_matrix_factors": "L, D = robot.mass_matrix_factors(q)",
    "Robot.factor_product": "Lx, Dx = robot.factor_product(q, v)",
    "FreeRobot.of": "pp.FreeRobot.of(light) == light",
    "FreeRobot.parameters": "light.parameters().shape",
    "FreeRobot.consistent": "light.consistent(light.parameters()).shape",
    "Robot.of": "pp.Robot.of(robot) == robot",
    "Model.frame": 'robot.frame("tool").body',
    "Model.joint": 'robot.joint("elbow_joint").kind',
    "Model.random": "robot.random(size=10, seed=0)",
    "pp.Body": 'pp.Body("ball", 1.0, inertia=np.eye(3)).mass',
    "Body.cylinder": "pp.Body.cylinder(mass=2.0, radius=0.1, length=0.4).solid",
    "Body.sphere": "pp.Body.sphere(mass=2.0, radius=0.1).inertia",
    "pp.Frame": 'robot.frames["tool"].name',
    "pp.Pose": "pp.Pose(np.eye(3), np.array([0.1, 0.0, 0.0])).matrix",
    "pp.TimedPath": "pp.path(robot, [q, q + 0.5], acceleration=10.0)",
    "TimedPath.along": (
        "qs, vs, accelerations = "
        "pp.path(robot, [q, q + 0.5], acceleration=10.0).along(np.linspace(0, 1, 5))"
    ),
    "pp.Environment": "isinstance(env, pp.Environment)",
    "Environment.reset": "state, seen = env.reset(3, seed=0)",
    "Environment.begin": "state, seen = env.begin(state, np.array([True, False, False]))",
    "Environment.step": "state, result = env.step(state, np.zeros((3, 2)))",
    "Environment.episode": "env.episode(lambda seen: np.zeros(2), steps=5).rewards",
    "Environment.vector": "make = env.vector  # make(8) needs gymnasium",
    "Environment.single": "make = env.single  # make() needs gymnasium",
    "Environment.html": 'write = env.html  # write("page.html", policy) needs pp.PD and a ground',
    "Environment.torch": "make = env.torch  # make(8) needs torch",
    "Environment.jax": "make = env.jax  # make() needs JAX",
    "pp.Study": (
        'pp.study(acrobot, motions=3, duration=0.01, vary={"mass": {"choice": [1.0, 2.0]}})'
        ".final.q.shape"
    ),
    "pp.OptimalMotion": "slow.solve(q)",
    "OptimalControl.explain": "print(slow.explain().splitlines()[0])",
    "OptimalControl.solve": "slow.solve(q, near=best.element(0)).cost",
    "OptimalMotion.jvp": "{name: x.shape for name, x in best.jvp(q=np.ones(6)).items()}",
    "OptimalMotion.vjp": "{name: x.shape for name, x in best.vjp(u=np.ones((10, 6))).items()}",
    "OptimalMotion.element": "best.element(1)",
    "OptimalMotion.controller": "best.element(0).controller()",
    "OptimalMotion.plot": 'type(best.element(0).plot("q")).__name__',
    "OptimalMotion.html": 'best.element(0).html(folder / "best.html").name',
    "OptimalMotion.summary": "print(best.summary().splitlines()[-1])",
    "MPC.reset": "pp.MPC(slow).reset()",
    "pp.IKResult": 'pp.reach(robot, {"tool": robot.frame_pose(q, "tool")}, near=q + 0.1)',
    "pp.grasp": (
        'pp.grasp([(robot, None, "tool")], pp.Body.box(1.0, (0.1, 0.1, 0.1)), [(0, 0, 0)]).nv'
    ),
    "pp.connect": 'pp.connect(robot, loops=[pp.Loop("ball", "tool", "world")]).nc',
    "pp.Contact": 'pp.Contact("soft", normal=(0, 0, 1), friction=0.5, torsion=0.01).kind',
    "pp.Loop": 'pp.Loop("hinge", "tool", "world", axis=(0, 0, 1)).kind',
    "pp.System": "isinstance(cell, pp.System)",
    "System.arm_inertias": "own, added = cell.arm_inertias(Q)",
    "System.contact_configuration": "cell.contact_configuration(Q, 0)",
    "System.effective_compliance": "cell.effective_compliance(Q)",
    "System.effective_inertia": "cell.effective_inertia(Q)",
    "System.explain": "print(cell.explain().splitlines()[0])",
    "System.flops": "cell.flops() > 0",
    "System.forward_dynamics": (
        "acceleration, wrenches = cell.forward_dynamics(Q, V, A, forces=True)"
    ),
    "System.forward_dynamics_details": "sorted(cell.forward_dynamics_details(Q, V, A))",
    "System.frame": "cell.frame(list(cell.frames)[-1]).body",
    "System.frame_pose": "cell.frame_pose(Q, list(cell.frames)[-1])",
    "System.joint": "cell.joint(cell.joints[0].name).kind",
    "System.linearize": "A_x, B = cell.linearize(Q, V, A)",
    "System.project": "Q2, V2 = cell.project(Q, V)",
    "System.split_forces": "moving, internal = cell.split_forces(Q, F)",
    "System.random": "cell.random(size=3)",
    "pp.scenes.SceneSetup": "case.title",
    "scenes.SceneSetup.check": "case.check(duration=1.0)",
    "scenes.SceneSetup.html": 'case.html(folder / "two_arms.html").name',
    "Robot.html": 'robot.html(folder / "ur5.html", live=True).name',
    "System.html": 'cell.html(folder / "cell.html", live=True, q=Q).name',
    "scenes.SceneSetup.run": "case.run(duration=0.01)",
    "scenes.SceneSetup.optimise": 'pp.scenes.load("swing_up.toml").optimise()  # doctest: +SKIP',
    "pp.scenes.load": 'pp.scenes.load("four_bar").system.nv',
    "Trajectory.at": "motion.at(0.05).q",
    "Trajectory.element": "pp.simulate(robot, [q, q + 0.1], duration=0.01).element(1).q",
    "Trajectory.html": 'motion.html(folder / "motion.html").name',
    "Trajectory.load": (
        'motion.save(folder / "motion.csv"); '
        'pp.Trajectory.load(folder / "motion.csv", system=robot).q'
    ),
    "Trajectory.plot": (
        'figure = motion.plot("q tau", joints="wrist_*", limits=True, path=folder / "wrist.svg")'
    ),
    "Trajectory.save": 'motion.save(folder / "motion.csv")',
    "Trajectory.summary": "print(motion.summary().splitlines()[1])",
    "Trajectory.to_pandas": "list(motion.to_pandas().columns[:2])",
    "Trajectory.to_xarray": "motion.to_xarray().q.dims",
    "Trajectory.view": "viewer = motion.view()  # doctest: +SKIP",
    "pp.PD": "hold = pp.PD(robot, q, kp=200.0, kd=40.0, gravity=True)",
    "PD.torque": "hold(0.0, q, v)",
    "ComputedTorque.torque": "pp.ComputedTorque(robot, q, kp=100.0, kd=20.0)(0.0, q, v)",
    "PrescribedMotion.torque": (
        "pp.PrescribedMotion(robot, {robot.joint_names[0]: 0.5})(0.0, q, v)"
    ),
    "Lyapunov.torque": "pp.Lyapunov(robot, q, kp=200, kd=40)(0.0, q, v)",
    "Decoupled.torque": "pp.Decoupled(robot, q, k=10.0)(0.0, q, v)",
    "pp.OperationalSpace": 'reach = pp.OperationalSpace(robot, "tool", np.array([0.6, 0.2, 0.3]))',
    "OperationalSpace.torque": "reach(0.0, q, v)",
    "ObjectControl.torque": (
        "pp.ObjectControl(cell, cell.frame_pose(Q, cell.object), squeeze=20.0)(0.0, Q, V).shape"
    ),
    "GravityCompensation.torque": "pp.GravityCompensation(robot)(0.0, q, v)",
    "pp.viewer.Scene": "pp.viewer.scene(robot, q=q).ground",
    "viewer.Scene.track": "scene = pp.viewer.scene(robot, q=q); scene.track(scene.pieces[0])",
    "pp.viewer.scene": "len(pp.viewer.scene(robot, q=q).pieces) > 5",
    "pp.viewer.view": "viewer = pp.viewer.view(robot)  # doctest: +SKIP",
    "pp.viewer.Viewer": "viewer.url  # doctest: +SKIP",
    "viewer.Viewer.seek": "viewer.seek(0.5)  # doctest: +SKIP",
    "viewer.Viewer.pose": "viewer.pose(q)  # doctest: +SKIP",
    "viewer.Viewer.play": "viewer.play()  # doctest: +SKIP",
    "viewer.Viewer.pause": "viewer.pause()  # doctest: +SKIP",
    "viewer.Viewer.wait": "viewer.wait()  # doctest: +SKIP",
    "viewer.Viewer.close": "viewer.close()  # doctest: +SKIP",
    "pp.Expression": "isinstance(s.H @ s.phi, pp.Expression)",
    "Expression.blocks": 's.mass.blocks(q)["elbow_joint", "elbow_joint"]',
    "Expression.dense": "s.mass.dense(q)",
    "Expression.plot": 'figure = s.phi.plot(q, path=folder / "phi.svg")',
    "Expression.poly": "s.mass.poly()",
    "pp.dot_test": "bool(pp.dot_test(s.phi))",
    "pp.estimation.RobotFilterModel": "isinstance(estimate, pp.estimation.RobotFilterModel)",
    "pp.estimation.HeldRiccati": "old = pp.estimation.held_riccati(robot, q)",
    "estimation.HeldRiccati.forward_dynamics": "old.forward_dynamics(q, v, tau, corrections=1)",
    "estimation.HeldRiccati.mass_matrix": "old.mass_matrix(q)",
    "estimation.HeldRiccati.mass_matrix_inverse": "old.mass_matrix_inverse(q)",
    "estimation.HeldRiccati.residual": "old.residual(q)",
    "estimation.HeldRiccati.sensitivity": "bool(old.sensitivity(q) < 1e-9)",
    "pp.estimation.FastGains": (
        "pp.estimation.fast_gains(pp.estimation.sequence([[[0.5]]], [[[1.0]]] * 2, [[[1.0]]] * 2))"
        ".gains.shape"
    ),
    "pp.estimation.Estimate": "len(estimate.smoother(estimate.outputs(tau)).smoothed)",
    "pp.estimation.Smoother": "isinstance(estimate.smoother, pp.estimation.Smoother)",
    "pp.estimation.Stage": "pp.estimation.Stage(-1, np.eye(2), np.eye(2), np.eye(2)[:1]).parent",
    "estimation.LinearTree.slices": "sorted(estimate.smoother.model.slices(0))",
    "pp.estimation.sequence": (
        "pp.estimation.sequence([np.eye(2)] * 2, [np.eye(2)] * 3, [np.eye(2)[:1]] * 3).nx"
    ),
    "interop.Layout.from_spatial": "layout.from_spatial(np.arange(6.0))",
    "interop.Layout.to_spatial": "layout.to_spatial(np.arange(6.0))",
    "pp.cost": "pp.cost.torque(1e-4)",
    "pp.interop": "pp.interop.pinocchio(robot).to_q(q)",
    "pp.interop.mujoco": "pp.interop.mujoco(robot).to_q(q)",
    "pp.interop.pinocchio": "pp.interop.pinocchio(robot).to_q(q)",
    "pp.set_threads": "pp.set_threads(None)",
    "pp.get_threads": "pp.get_threads() > 0",
}


def example(path: str, thing, here: dict) -> list[str]:
    """An example with its output, from `EXAMPLES` or from the names of the arguments."""
    text = EXAMPLES.get(path) or _by_names(path, thing)
    if text is None:
        return []
    out = ["```python", f">>> {text}"]
    if "+SKIP" not in text:
        shown = io.StringIO()
        *before, last = ast.parse(text).body
        with contextlib.redirect_stdout(shown):
            exec(compile(ast.Module(before, []), path, "exec"), here)
            value = _value(last, here, path)
        if isinstance(value, np.ndarray):
            out[-1], value = f"{out[-1]}.shape", value.shape
        elif isinstance(value, np.floating | float):
            out[-1] = f">>> round(float({text}), 6)"
            value = round(float(value), 6)
        out += (
            shown.getvalue().splitlines()
            if shown.getvalue()
            else []
            if value is None
            else [repr(value)]
        )
    return [*out, "", "```", ""]


def _value(last: ast.stmt, here: dict, path: str):
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), path, "eval"), here)
    return exec(compile(ast.Module([last], []), path, "exec"), here)


def _by_names(path: str, thing) -> str | None:
    holder, _, name = path.rpartition(".")
    if holder not in HOLDERS or not callable(thing):
        return None
    known = CELL | {"frame": '"tool"'} if holder == "System" else OWN
    needed = [
        p
        for p in inspect.signature(thing).parameters.values()
        if p.default is p.empty and p.name not in ("self", "cls")
    ]
    needed = [p.name for p in needed if p.kind is p.POSITIONAL_OR_KEYWORD]
    if holder == "interop.Layout":  # the layout of a velocity may depend on q
        needed += [
            p for p in ("q", "v") if p in inspect.signature(thing).parameters and p not in needed
        ]
    return (
        f"{HOLDERS[holder]}.{name}({', '.join(known[p] for p in needed)})"
        if set(needed) <= set(known)
        else None
    )


def reference() -> dict[str, str]:
    """The texts of the pages: a list of all groups, and a page for each."""
    here: dict = {}
    exec(SETUP, here)
    first = [TITLE, "| group | public names |", "|---|---|"]
    pages = {}
    for heading, names in GROUPS.items():
        file = f"reference/{heading.lower().replace(' ', '_')}.md"
        lines = [f"# {heading}", "", f"Part of the [API reference](../{FIRST_PAGE}).", ""]
        for name in names:
            lines += _entry(f"pp.{name}", getattr(pp, name), 2, here)
        pages[file] = "\n".join(lines).rstrip() + "\n"
        first.append(f"| [{heading}]({file}) | {', '.join(f'`pp.{name}`' for name in names)} |")
    first += ["", "The examples run in the test suite, after this:", "", "```python"]
    first += [*(f">>> {line}" for line in SETUP.splitlines()), "", "```", ""]
    return {FIRST_PAGE: "\n".join(first).rstrip() + "\n", **pages}


def _entry(path: str, thing, level: int, here: dict) -> list[str]:
    lines = [f"{'#' * level} `{path}`", ""]
    if isinstance(thing, ModuleType):
        lines += [*_words(inspect.getdoc(thing) or ""), "", *example(path, thing, here)]
        for name in thing.__all__:
            if not isinstance(getattr(thing, name), ModuleType):
                lines += _entry(f"{path}.{name}", getattr(thing, name), level + 1, here)
        return lines
    if not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        lines += _signature(path, thing)
    lines += [*_words(inspect.getdoc(thing) or ""), ""]
    if ">>>" not in (inspect.getdoc(thing) or ""):
        lines += example(path, thing, here)
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        lines += _members(path, thing, level + 1, here)
    return lines


def _members(path: str, cls: type, level: int, here: dict) -> list[str]:
    """The members of a class, including those of base classes that are not public."""
    known = set(dir(tuple)) if issubclass(cls, tuple) else set(dir(object))
    public = {getattr(pp, name) for name in pp.__all__ if inspect.isclass(getattr(pp, name))} - {
        cls
    }
    known |= {name for base in cls.__mro__[1:] if base in public for name in dir(base)}
    fields, methods = [], []
    for name in dir(cls):
        if name.startswith("_") or name in known or is_internal(cls, name):
            continue
        found = inspect.getattr_static(cls, name)
        if callable(getattr(cls, name)) and not isinstance(found, property):
            methods.append(name)
        elif isinstance(found, property | cached_property) and (text := _first(found)):
            fields.append(f"| `{name}` | {_type(found)} | {text} |")
    lines = ["| property | | |", "|---|---|---|", *fields, ""] if fields else []
    for name in methods:
        short = f"{path.removeprefix('pp.')}.{name}"
        lines += [f"{'#' * level} `{short}`", "", *_signature(name, getattr(cls, name))]
        lines += [*_words(inspect.getdoc(getattr(cls, name)) or ""), ""]
        if ">>>" not in (inspect.getdoc(getattr(cls, name)) or ""):
            lines += example(short, getattr(cls, name), here)
    return lines


def _signature(path: str, thing) -> list[str]:
    """name(parameter: type = default, ...) -> type."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return []
    name, lines, star = path.rpartition(".")[2], [""], False
    ends = (
        ""
        if found.return_annotation in (found.empty, None, "None")
        else f" -> {found.return_annotation}"
    )
    words = []
    for p in found.parameters.values():
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        words.append(_parameter(p))
    for word in [*(f"{word}, " for word in words[:-1]), *words[-1:]]:
        if len(name) + len(lines[-1]) + len(word) > 110:
            lines.append("    ")
        lines[-1] += word
    text = "\n".join(line.rstrip() for line in lines)
    return ["```text", f"{name}({text}){ends}", "```", ""]


def _parameter(p: inspect.Parameter) -> str:
    sign = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    annotation = (
        p.annotation if isinstance(p.annotation, str) else inspect.formatannotation(p.annotation)
    )
    default = "" if p.default is p.empty else f" = {re.sub(r'<.*>', '...', repr(p.default))}"
    return f"{sign}{p.name}{'' if p.annotation is p.empty else f': {annotation}'}{default}"


def _type(found) -> str:
    getter = getattr(found, "fget", None) or getattr(found, "func", None)
    result = getattr(getter, "__annotations__", {}).get("return", "")
    return f"`{result}`" if result else ""


def _first(thing) -> str:
    """The first paragraph, in a cell: stars are adjoints, not emphasis."""
    return (
        " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
        .replace("|", "\\|")
        .replace("*", "\\*")
    )


def _words(doc: str) -> list[str]:
    """A docstring as Markdown, with its examples and aligned tables as code blocks."""
    out: list[str] = []
    for block in doctest.DocTestParser().parse(doc) if ">>>" in doc else [doc]:
        if isinstance(block, doctest.Example):
            out += [
                f"    >>> {line}" if k == 0 else f"    ... {line}"
                for k, line in enumerate(block.source.splitlines())
            ]
            out += [f"    {line}" for line in block.want.splitlines()]
        elif block.strip():
            out += ["", *_paragraphs(block), ""]
    return _fenced(out)


def _paragraphs(text: str) -> list[str]:
    """Paragraphs as Markdown; indented ones and those with columns become code blocks."""
    out = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        lines = textwrap.dedent(part).splitlines()
        if any(re.search(r"\S {2,}\S", line) or line.startswith("    ") for line in lines):
            out += ["```text", *lines, "```", ""]
        else:
            out += [
                *(
                    line.replace("*", "\\*").replace("<", "&lt;").replace("[", "\\[")
                    for line in lines
                ),
                "",
            ]
    return out


def _fenced(lines: list[str]) -> list[str]:
    """Consecutive examples in one code block."""
    out, inside, in_text = [], False, False
    for line in lines:
        in_text ^= line.startswith("```")
        example = line.startswith("    ") and not in_text
        if example and not inside:
            out.append("```pycon")
        if inside and not example:
            out += ["```", ""]
        inside = example
        out.append(line[4:] if example else line)
    return (
        re.sub(r"\n{3,}", "\n\n", "\n".join([*out, *(["```"] if inside else [])]))
        .strip("\n")
        .split("\n")
    )
