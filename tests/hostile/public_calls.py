"""Every public door, listed by looking, and the calls of those that `junk.py` does not write out
one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import psiphi as pp
from psiphi import estimation, interop, robots, scenes
from psiphi._util.internal_names import is_internal
from tests.functions.call_cases import gymnast
from tests.hostile import environment_calls, optimal_control_calls
from tests.hostile.junk import Call, _hinged, _study

# Classes whose objects psiphi makes and hands over: their fields are not a user's to fill. Their
# methods are tried.
MADE = {
    "Environment": "pp.environment",
    "Expression": "robot.operators and pp.vector",
    "FreeRobot": "robot.free",
    "Identification": "pp.identify",
    "Model": "pp.load and pp.Builder",
    "IKResult": "pp.reach",
    "OptimalMotion": "pp.OptimalControl.solve",
    "Robot": "pp.load, pp.Builder and Robot.of",
    "Study": "pp.study",
    "System": "pp.connect and pp.grasp",
    "TimedPath": "pp.path",
    "estimation.RobotFilterModel": "estimation.of",
    "estimation.Estimate": "Smoother",
    "estimation.FastGains": "estimation.fast_gains",
    "estimation.HeldRiccati": "estimation.held_riccati",
    "interop.Layout": "interop.pinocchio and interop.mujoco",
    "scenes.SceneSetup": "scenes.load",
    "viewer.Scene": "viewer.scene",
    "viewer.Viewer": "viewer.view",
}
ELSEWHERE = {
    "Environment.html": "tests/apps/viewer/test_policy_page.py: each call compiles a page",
    **{
        f"{law}.torque": "the law itself, on numbers and on the compiler's tapes; "
        "law(t, q, v) reads what "
        "it is given"
        for law in (
            "ComputedTorque",
            "Decoupled",
            "GravityCompensation",
            "Lyapunov",
            "ObjectControl",
            "OperationalSpace",
            "PD",
            "PrescribedMotion",
        )
    },
    **{f"robots.{name}": "reads its options as robots.acrobot does" for name in robots.bundled()},
    "viewer.Viewer.pose": "in test_viewer.py",
    "viewer.Viewer.seek": "in test_viewer.py",
    "FreeRobot.free": "is Robot.free, which refuses what is free already",
    "scenes.SceneSetup.html": "is viewer.html(case, live=True)",
    "Trajectory.view": "opens the live viewer, as viewer.view, which refuses first",
    "Pose.count": "a tuple's own",
    "Pose.index": "a tuple's own",
}


def doors() -> Iterator[tuple[str, Callable]]:
    """(name, function) of all that a user may call by a public name."""
    for name in pp.__all__:
        thing = getattr(pp, name)
        if inspect.ismodule(thing):
            for inner in thing.__all__ if hasattr(thing, "__all__") else robots.names():
                yield from _of(f"{name}.{inner}", getattr(thing, inner, None))
        else:
            yield from _of(name, thing)


def _of(name: str, thing: Any) -> Iterator[tuple[str, Callable]]:
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return
    yield name, thing
    for method in dir(thing) if inspect.isclass(thing) else ():
        getattr(thing, method, None)  # a method of a later package is imported
        held = inspect.getattr_static(thing, method)
        if method.startswith("_") or is_internal(thing, method):
            continue
        if callable(held) or isinstance(held, staticmethod | classmethod):
            yield f"{name}.{method}", getattr(held, "__func__", held)


def _is_late(name: str) -> bool:
    """Whether it is a method that a later package implements: its first parameter is the object."""
    owner, _, method = name.rpartition(".")
    classes = getattr(pp, owner, type).__mro__ if inspect.isclass(getattr(pp, owner, None)) else ()
    return any(method in pp._LATE_METHODS.get(kind.__name__, ()) for kind in classes)


def untried(calls: list[Call]) -> list[str]:
    """ "door: parameter" for every one that no call tries."""
    tried: dict[Any, set[str]] = {}
    for call in calls:
        for door in (*_names(call), getattr(call.call, "__func__", call.call)):
            tried.setdefault(door, set()).update(call.given)
    left = []
    for name, function in doors():
        if name not in MADE and name not in ELSEWHERE:
            own = [
                p.name
                for p in inspect.signature(function).parameters.values()
                if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            ]
            method = own[:1] == ["robot"] and "." in name  # a function listed as a method
            own = set(own[1:] if method or _is_late(name) else own)
            ready = {"self", "cls", *tried.get(name, ()), *tried.get(function, ())}
            left += [f"{name}: {parameter}" for parameter in sorted(own - ready)]
    return left


def _names(call: Call) -> set[str]:
    """The doors that a call is one of: by its own name, or by the method that it is (of Robot, and
    so of FreeRobot)."""
    word = call.name.split(" ")[0].removesuffix("()").removeprefix("pp.").removeprefix("robot.")
    names = {word, f"Robot.{word}", f"FreeRobot.{word.removeprefix('Robot.')}"}
    if inspect.ismethod(call.call) and not inspect.isclass(call.call.__self__):
        names |= {
            f"{kind.__name__}.{call.call.__name__}" for kind in type(call.call.__self__).__mro__
        }
    return names


def more(folder: Path) -> list[Call]:
    """A call of each function of the catalogue, of a robot and of one whose masses are free, and of
    what else there is."""
    robot = pp.Robot.of(gymnast())
    free = pp.load("acrobot").free("mass")
    return [
        *_catalogue("Robot", robot, {}),
        *_catalogue("FreeRobot", free, {"parameters": free.parameters()}),
        *_records(robot),
        *_rest(robot, folder),
        *_objects(robot, folder),
        *_estimation(),
        *_contacts(),
        *_sensors(),
        *environment_calls.calls(),
        *optimal_control_calls.calls(folder),
    ]


def _catalogue(kind: str, robot: Any, also: dict[str, Any]) -> list[Call]:
    from psiphi.robot.catalogue.catalogue import CATALOGUE

    rng, frame = np.random.default_rng(0), next(iter(robot.frames))
    values = {
        "q": robot.neutral(),
        "frame": frame,
        "frames": frame,
        "link": robot.bodies[-1].name,
        "axes": "world",
    }
    values |= {name: rng.standard_normal(robot.nv) for name in ("v", "a", "tau", "x")}
    values |= {"f_ext": None, "out": None, "dtype": None, "check": False}
    return [
        Call(
            f"{kind}.{name}",
            method,
            {p: values[p] for p in inspect.signature(method).parameters if p in values} | also,
        )
        for name in CATALOGUE
        if (method := getattr(robot, name))
    ]


def _records(robot: pp.Robot) -> list[Call]:
    """What a user writes down: it is read where it is used."""
    row = {name: p.default for name, p in inspect.signature(pp.DH).parameters.items()}
    return [
        Call(
            "DH",
            lambda **o: pp.from_dh([pp.DH(**o)]),
            row | {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.eye(3)},
        ),
        Call(
            "Body",
            lambda **o: robot.attach(pp.Body(**o), "tool"),
            {
                "name": "load",
                "mass": 1.0,
                "com": np.zeros(3),
                "inertia": np.eye(3),
                "solid": None,
            },
        ),
        Call(
            "Pose",
            lambda **o: robot.with_frame("spot", "tool", pp.Pose(**o)),
            {
                "rotation": np.eye(3),
                "translation": np.zeros(3),
            },
        ),
        Call("Frame", lambda **o: pp.Frame(**o), {"name": "grip", "body": 0, "pose": None}),
        Call("Builder.note", pp.Builder("x").note, {"text": "x", "element": "robot", "line": 1}),
        Call(
            "Builder.posture", lambda **o: _hinged().posture(**o), {"name": "up", "q": {"j": 1.0}}
        ),
        Call(
            "robots.chain",
            lambda **o: robots.chain(**o),
            {"n": 2, "planar": False, "seed": 0, "equal": False},
        ),
        Call(
            "robots.random_tree",
            robots.random_tree,
            {"n": 2, "seed": 0, "kinds": None, "branching": 0.3, "base": "fixed"},
        ),
        Call("robots.source", robots.source, {"name": "ur5"}),
    ]


def _rest(robot: pp.Robot, folder: Path) -> list[Call]:
    """Parameters that are rarely given."""
    q, v, s = robot.neutral(), np.ones(robot.nv), robot.operators
    pin = interop.pinocchio(pp.load("acrobot"))
    flat, still = np.zeros(2), {"dtype": None, "check": False}
    few = pp.load("acrobot")
    return [
        Call(
            "load more",
            lambda **o: pp.load("acrobot", **o),
            {"lock": None, "frames": None, "srdf": None, "embed": False},
        ),
        Call("Builder more", pp.Builder, {"name": "x", "file": None, "forest": True}),
        Call(
            "Builder.body more",
            lambda **o: pp.Builder("x").body("a", 1.0, **o),
            {"rotation": None, "line": 1},
        ),
        Call(
            "Builder.frame more",
            lambda **o: _hinged().frame("f", "a", **o),
            {"rotation": None, "line": 1},
        ),
        Call(
            "Builder.joint more",
            lambda **o: _loose().joint("j", "revolute", "world", "a", **o),
            {
                "rotation": None,
                "axis2": None,
                "pitch": 0.0,
                "mimic": None,
                "line": 1,
            },
        ),
        Call("Builder.build more", lambda **o: _hinged().build(**o), {"order": "given"}),
        Call("Expression.plot more", s.mass.plot, {"q": q, "v": v, "ax": None}),
        Call(
            "OperationalSpace more",
            lambda **o: pp.OperationalSpace(few, "tool", np.zeros(3), **o)(0.0, flat, flat),
            {
                "actuated": None,
                "passive": None,
            },
        ),
        Call(
            "Robot.excitation more",
            robot.excitation,
            {"q": np.tile(q, (2, 1)), "v": 0 * v, "a": 0 * v, "more": ()},
        ),
        Call(
            "Robot.forward_dynamics_details more",
            robot.forward_dynamics_details,
            {
                "q": q,
                "v": v,
                "tau": v,
                "axes": "world",
                **still,
            },
        ),
        Call(
            "Robot.regressor_blocks",
            robot.regressor_blocks,
            {"q": q, "v": v, "a": v, "out": None, **still},
        ),
        Call(
            "Robot.regressor more",
            robot.regressor,
            {"q": q, "v": v, "a": v, "more": (), "out": None, **still},
        ),
        Call(
            "Robot.with_inertia more",
            robot.with_inertia,
            {
                "link": robot.bodies[-1].name,
                "body": pp.Body.box(1.0, (1, 1, 1)),
            },
        ),
        Call("System.random more", scenes.load("four_bar").system.random, {"seed": 0}),
        Call("function more", pp.function, {"expression": s.mass, "budget": 1.0}),
        Call("interop.Layout.from_tau more", pin.from_tau, {"tau": flat, "q": np.zeros(4)}),
        Call("interop.Layout.from_v more", pin.from_v, {"v": flat, "q": np.zeros(4)}),
        Call("interop.Layout.to_tau more", pin.to_tau, {"tau": flat, "q": flat}),
        Call("interop.Layout.to_a more", pin.to_a, {"a": flat, "q": flat, "v": flat}),
        Call(
            "study more",
            lambda **o: pp.study(
                few, motions=1, duration=2e-3, vary={"q": {"uniform": [0, 1]}}, **o
            ),
            {
                "out": None,
                "progress": False,
            },
        ),
    ]


def _sensors() -> list[Call]:
    """Sensors, read along a motion, on a ground and with a push."""
    b = pp.Builder("ball")
    b.body("ball", mass=1.0, inertia=np.eye(3))
    b.joint("base", "free", "world", "ball")
    ball = b.build().with_contacts({"ball": pp.Sphere(0.1)})
    q, push = ball.on_ground(ball.neutral()), {"ball": (0, 0, 0, 1, 0, 0)}
    motion = pp.simulate(ball, q, duration=3e-3, contacts=pp.Ground())
    pushed = pp.simulate(ball, q, duration=3e-3, f_ext=push)
    errors = {"rate": 1e3, "noise": 0.1, "bias": 0.2, "drift": 0.3}
    sensors = {"force": pp.ContactForce(), "torque": pp.JointTorque("base")}
    return [
        Call("IMU", lambda **o: motion.measure({"imu": pp.IMU(**o)}), {"frame": "ball", **errors}),
        Call(
            "JointTorque",
            lambda **o: motion.measure({"torque": pp.JointTorque(**o)}),
            {"joints": "base", **errors},
        ),
        Call(
            "ContactForce",
            lambda **o: motion.measure({"force": pp.ContactForce(**o)}),
            {"contacts": "ball", **errors},
        ),
        Call("Trajectory.measure", motion.measure, {"sensors": sensors, "seed": 1}),
        Call(
            "Trajectory.measure pushes",
            pushed.measure,
            {"sensors": {"torque": pp.JointTorque()}, "f_ext": push},
        ),
    ]


def _contacts() -> list[Call]:
    """Shapes, the ground, and what a robot does with them."""
    b = pp.Builder("ball")
    b.body("ball", mass=1.0, inertia=np.eye(3))
    b.joint("base", "free", "world", "ball")
    b.frame("wall", "world", xyz=(1, 0, 0))
    ball, ground = b.build(), pp.Ground()
    touching = ball.with_contacts({"ball": pp.Sphere(0.1)})
    q, v = touching.on_ground(touching.neutral()), np.zeros(6)
    corners = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]
    sizes: dict[type, dict[str, Any]] = {
        pp.Point: {},
        pp.Sphere: {"radius": 0.1},
        pp.Capsule: {"radius": 0.1, "length": 0.2},
        pp.Cylinder: {"radius": 0.1, "length": 0.2},
        pp.Box: {"size": (0.1, 0.2, 0.3)},
        pp.Points: {"points": [(0, 0, 0)]},
        pp.Hull: {"vertices": corners, "points": 4},
    }
    shapes = [
        call
        for kind, size in sizes.items()
        for call in (
            Call(
                kind.__name__,
                lambda kind=kind, **o: ball.with_contacts({"ball": kind(**o)}),
                {**size, "pose": (0, 0, 0)},
            ),
            Call(
                f"{kind.__name__}.contact_points",
                kind(**size).contact_points,
                {"frame": "ball", "name": "ball"},
            ),
        )
    ]
    touch, hull = pp.GivenContacts(pairs=[("ball", "world")]), pp.Hull(corners)
    found, rows = ("points", "normals", "gaps"), (np.zeros((1, 3)), np.eye(3)[2:], np.zeros(1))
    law = {"friction": 0.5, "restitution": 0.1, "stiffness": 1e5, "damping": 10.0}
    plane = {"normal": (0, 0, 1), "point": (0, 0, 0), "iterations": 10, "tolerance": 1e-6}
    return [
        *shapes,
        Call("Ground", pp.Ground, {**law, **plane, "law": "convex", "smooth": 0.01}),
        Call("Ground of heights", pp.Ground, {"height": np.zeros((2, 3)), "size": (1.0, 2.0)}),
        Call(
            "GivenContacts",
            pp.GivenContacts,
            {
                **law,
                **plane,
                "law": "convex",
                "smooth": 0.01,
                "height": np.zeros((2, 3)),
                "size": (1.0, 2.0),
                "pairs": [("ball", "world")],
                "find": lambda q: rows,
            },
        ),
        Call("GivenContacts.at", touch.at, dict(zip(found, rows, strict=True)) | {"friction": 0.5}),
        Call("GivenContacts.found", touch.at(*rows).found, {"q": q}),
        Call("Hull.at", hull.at, {"pose": (0, 0, 0.1)}),
        Call(
            "Robot.compile",
            lambda **o: ball.compile("jacobian", **o),
            {"frames": ("ball",), "axes": "world", "dtype": None, "jacobian": ()},
        ),
        Call("Robot.on_ground", touching.on_ground, {"q": q, "ground": ground}),
        Call("Robot.explain", touching.explain, {"contacts": ground}),
        Call(
            "Robot.with_contacts",
            ball.with_contacts,
            {
                "contacts": {"ball": pp.Sphere(0.1), "wall": pp.Sphere(0.1)},
                "links": None,
                "pairs": [("ball", "wall")],
                "ground": "*",
                "mesh_points": 8,
            },
        ),
        Call(
            "viewer.scene of contacts",
            lambda contacts: pp.viewer.scene(touching, q=q, contacts=contacts),
            {"contacts": ground},
        ),
        Call(
            "Robot.step on the ground",
            touching.step,
            {"q": q, "v": v, "tau": v, "dt": 1e-3, "contacts": ground},
        ),
    ]


def _loose() -> pp.Builder:
    b = pp.Builder("x")
    b.body("a", mass=1.0, inertia=np.eye(3))
    return b


def _objects(robot: pp.Robot, folder: Path) -> list[Call]:
    """Methods of what psiphi hands over."""
    arm, case = pp.load("acrobot"), scenes.load("four_bar")
    q, v, system, study = robot.neutral(), np.ones(robot.nv), case.system, _study()
    motion, path = (
        pp.simulate(arm, arm.neutral(), duration=2e-3),
        pp.path(arm, [[0.0, 0.0], [0.5, 0.2]], torque=100.0, points=20),
    )
    batch = pp.simulate(arm, np.zeros((2, 2)), duration=2e-3)
    light = arm.free("mass")
    own = {"parameters": light.parameters()}
    loose = pp.connect(light, [pp.Loop("ball", "tool", "world")])
    shown = pp.viewer.scene(arm, q=arm.neutral())
    return [
        *_layouts(),
        Call("FreeRobot.mass_log_det", light.mass_log_det, {"q": [0, 0], **own}),
        Call(
            "FreeRobot.regressor", light.regressor, {"q": [0, 0], "v": [0, 0], "a": [0, 0], **own}
        ),
        Call(
            "FreeRobot.regressor_blocks",
            light.regressor_blocks,
            {"q": [0, 0], "v": [0, 0], "a": [0, 0], **own},
        ),
        Call(
            "FreeRobot.operational_space_inertia",
            light.operational_space_inertia,
            {"q": [0, 0], "frames": "tool", **own},
        ),
        Call(
            "FreeRobot.operational_space_bias",
            light.operational_space_bias,
            {
                "q": [0, 0],
                "v": [0, 0],
                "frames": "tool",
                **own,
            },
        ),
        Call(
            "FreeRobot.forward_dynamics_details",
            light.forward_dynamics_details,
            {
                "q": np.zeros(2),
                "v": np.zeros(2),
                "tau": np.zeros(2),
                "method": "FD2",
                "parameters": light.parameters(),
            },
        ),
        Call("FreeRobot.of", pp.FreeRobot.of, {"model": light, "shapes": None}),
        Call("scenes.SceneSetup.run", case.run, {"duration": 2e-3, "dt": 1e-3, "tau": None}),
        Call("scenes.SceneSetup.check", case.check, {"duration": 2e-3, "dt": 1e-3}),
        Call("viewer.Scene.track", shown.track, {"piece": shown.pieces[0]}),
        Call("Robot.base_parameters", robot.base_parameters, {"more": ()}),
        Call("Expression.dense", robot.operators.mass.dense, {"q": q, "v": v, "axes": "link"}),
        Call("Expression.blocks", robot.operators.M.blocks, {"q": q, "v": v, "axes": "link"}),
        Call("Expression.dot", robot.operators.phi.dot, {"frame": "local", "held": ()}),
        Call("Study.measured", study.measured, {"sensor": "torque"}),
        Call("Study.drawn", study.drawn, {"numbers": [0]}),
        Call("Study.motion", study.motion, {"i": 0, "quiet": True}),
        Call("Study.quantiles", study.quantiles, {"levels": [0.5]}),
        Call("Study.worst", study.worst, {"count": 1}),
        Call("Study.report", study.report, {"path": folder / "s.html", "worst": 1}),
        Call("System.at", loose.at, {"parameters": light.parameters()}),
        Call("System.difference", system.difference, {"q0": case.q0, "q1": case.q0}),
        Call(
            "System.forward_dynamics_details",
            system.forward_dynamics_details,
            {
                "q": case.q0,
                "v": case.v0,
                "tau": case.v0,
                "f_ext": None,
                "axes": "world",
                "method": None,
                "check": False,
            },
        ),
        Call("System.frame", system.frame, {"name": next(iter(system.frames))}),
        Call(
            "System.frame_pose",
            system.frame_pose,
            {
                "q": case.q0,
                "frame": next(iter(system.frames)),
                "out": None,
                "dtype": None,
                "check": False,
            },
        ),
        Call("System.joint", system.joint, {"name": system.robot.joint_names[0]}),
        Call("System.normalize", system.normalize, {"q": case.q0}),
        Call("System.random", system.random, {"rng": 0, "size": ()}),
        Call("System.html", system.html, {"path": folder / "c.html", "live": False, "q": case.q0}),
        Call("System.save", system.save, {"path": folder / "c.xml"}),
        Call("TimedPath.along", path.along, {"times": np.zeros(2)}),
        Call("Trajectory.element", lambda where: batch.element(where), {"where": 0}),
        Call("Trajectory.html", motion.html, {"path": folder / "m.html", "title": None}),
    ]


def _layouts() -> list[Call]:
    """Conversions to and from the conventions of others, with a floating base."""
    robot = pp.load("free_flyer")
    layout, q, v, square = (
        interop.mujoco(robot),
        robot.neutral(),
        np.zeros(robot.nv),
        np.eye(robot.nv),
    )
    calls = [Call("interop.Layout.from_q", layout.from_q, {"q": layout.to_q(q)})]
    calls += [
        Call(f"interop.Layout.{way}_spatial", getattr(layout, f"{way}_spatial"), {"x": np.zeros(6)})
        for way in ("to", "from")
    ]
    for way, own in (("to", q), ("from", layout.to_q(q))):
        calls += [
            Call(
                f"interop.Layout.{way}_mass_matrix",
                getattr(layout, f"{way}_mass_matrix"),
                {"M": square, "q": own},
            ),
            Call(
                f"interop.Layout.{way}_jacobian",
                getattr(layout, f"{way}_jacobian"),
                {"J": square[:6], "q": own},
            ),
            Call(
                f"interop.Layout.{way}_bias",
                getattr(layout, f"{way}_bias"),
                {"bias": v, "mass_matrix": square, "q": own, "v": v},
            ),
        ]
    return calls


def _estimation() -> list[Call]:
    arm = pp.load("acrobot")
    stage = {
        "parent": -1,
        "transition": np.eye(2),
        "covariance": np.eye(2),
        "outputs": np.ones((1, 2)),
        "noise": [0.1],
    }
    tree = estimation.LinearTree([estimation.Stage(**stage)])
    return [
        Call("estimation.Stage", lambda **o: estimation.LinearTree([estimation.Stage(**o)]), stage),
        Call(
            "estimation.LinearTree", estimation.LinearTree, {"stages": [estimation.Stage(**stage)]}
        ),
        Call("estimation.LinearTree.seen", tree.seen, {"mask": [[True]]}),
        Call(
            "estimation.TwoPort",
            lambda **o: estimation.TwoPort(**o),
            {"psi": np.eye(2), "Q": np.eye(2), "Om": np.eye(2)},
        ),
        Call("estimation.LinearTree.slices", tree.slices, {"k": 0}),
        Call(
            "estimation.RobotFilterModel.outputs",
            estimation.of(arm, arm.neutral()).outputs,
            {"tau": np.zeros(2)},
        ),
        Call("estimation.Smoother", estimation.Smoother, {"model": tree, "compiled": False}),
        Call(
            "estimation.of",
            estimation.of,
            {
                "robot": arm,
                "q": arm.neutral(),
                "v": None,
                "f_ext": None,
                "axes": "world",
                "compiled": False,
            },
        ),
        Call(
            "estimation.sequence",
            estimation.sequence,
            {
                "transitions": [np.eye(2)],
                "covariances": [np.eye(2)] * 2,
                "outputs": [np.ones((1, 2))] * 2,
                "noise": None,
            },
        ),
    ]
