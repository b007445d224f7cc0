"""Values that no parameter expects, and every public call to try them in."""

from __future__ import annotations

import datetime
import decimal
import fractions
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp
from psiphi import interop, robots, scenes, viewer
from tests.functions.call_cases import gymnast


class Path2(os.PathLike):
    """A path that is bytes."""

    def __fspath__(self):
        return b"\xff\xfe"


DEEP: list = []
for _ in range(80):
    DEEP = [DEEP]
LOOP: list = []
LOOP.append(LOOP)

JUNK: dict[str, Any] = {
    "None": None,
    "True": True,
    "False": False,
    "0": 0,
    "-1": -1,
    "1": 1,
    "3": 3,
    "2**70": 2**70,
    "-2**70": -(2**70),
    "0.5": 0.5,
    "-1.5": -1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "1e308": 1e308,
    "1e-320": 1e-320,
    "1j": 1j,
    "empty text": "",
    "a space": " ",
    "text": "nonsense",
    "a digit": "1",
    "nul": "a\0b",
    "half": "\ud800",
    "long": "x" * 5000,
    "long path": "/".join(["x" * 200] * 40),
    "newline": "a\nb.urdf",
    "emoji": "🤖",
    "markup": "<a>",
    "open markup": "<robot",
    "tilde": "~",
    "slash": "/",
    "dots": "../..",
    "device": "/dev/null",
    "star": "*",
    "percent": "%s{}",
    "bytes": b"ur5",
    "empty bytes": b"",
    "bytearray": bytearray(b"x"),
    "memoryview": memoryview(b"x"),
    "path": Path("nowhere"),
    "long pathlib": Path("y" * 5000),
    "bytes path": Path2(),
    "empty list": [],
    "list": [1, 2],
    "texts": ["a", "b"],
    "ragged": [[1], [1, 2]],
    "nested": [[[]]],
    "deep": DEEP,
    "loop": LOOP,
    "tuple": (),
    "dict": {},
    "a dict": {"tool": 1},
    "odd dict": {1: None, None: 2},
    "set": set(),
    "a set": {"tool"},
    "generator": (i for i in ()),
    "range": range(3),
    "lambda": lambda *a, **k: None,
    "class": dict,
    "object": object(),
    "ellipsis": ...,
    "not implemented": NotImplemented,
    "slice": slice(None),
    "decimal": decimal.Decimal("NaN"),
    "fraction": fractions.Fraction(1, 3),
    "date": datetime.date(2000, 1, 1),
    "empty array": np.empty(0),
    "zeros": np.zeros(6),
    "a zero": np.zeros(()),
    "an empty batch": np.zeros((0, 6)),
    "nans": np.full(6, np.nan),
    "texts array": np.array(["a"]),
    "objects": np.array([None, {}], dtype=object),
    "complex": np.zeros(6, complex),
    "bools": np.zeros(6, bool),
    "dates": np.zeros(6, "M8[s]"),
    "records": np.zeros(2, "i4,f8"),
    "many axes": np.zeros((1,) * 30),
    "matrix": np.eye(4),
    "ints": np.arange(6),
    "masked": np.ma.masked_all(6),
    "dtype": np.dtype(float),
    "rng": np.random.default_rng(0),
    "exception": ValueError("x"),
    "module": os,
}


_MODAL: dict[str, Any] = {
    "nodes": [[1, 0, 0]],
    "mass": [1],
    "shapes": [[[0], [0], [1]]],
    "stiffness": [[5.0]],
    "interface": {"tip": 0},
    "turns": [[[0], [1], [0]]],
    "rotary": [np.eye(3)],
    "shortening": np.zeros((1, 3, 1, 1)),
    "damping": 0.0,
    "modal_mass": None,
    "drawn": [0],
}


class Call(NamedTuple):
    """A public callable, and arguments with which it answers."""

    name: str
    call: Callable
    given: dict[str, Any]

    def tries(self):
        """(parameter, name of the junk, a call of no arguments) for every parameter and every junk
        value."""
        for parameter in self.given:
            for label, value in JUNK.items():
                yield (
                    parameter,
                    label,
                    lambda p=parameter, v=value: self.call(**(self.given | {p: v})),
                )


def table(folder: Path) -> list[Call]:
    """Every public call that ends soon; files go into `folder`."""
    robot, ur5 = gymnast(), pp.load("acrobot")
    q, v = robot.random(seed=0), np.ones(robot.nv)
    s = robot.operators
    i, j, k = s.bodies("i j k")
    ports = pp.estimation.two_ports(ur5, np.zeros(2))
    old = pp.estimation.held_riccati(ur5, np.zeros(2))
    product = pp.function(s.mass @ pp.vector("x"))
    state = {"out": None, "dtype": None, "check": False}
    calls = [
        Call("load", pp.load, {"source": "acrobot", "base": None, "gravity": (0, 0, -9.81)}),
        Call(
            "load urdf",
            pp.load,
            {
                "source": URDF,
                "base": "fixed",
                "repair": (),
                "packages": None,
                "allow_outside": False,
                "gravity": (0, 0, -9.81),
                "armature": None,
                "max_bytes": 1 << 20,
                "max_depth": 50,
                "max_elements": 100,
                "max_bodies": 10,
            },
        ),
        Call(
            "from_dh",
            pp.from_dh,
            {
                "rows": [{"alpha": 0.0, "a": 0.0, "mass": 1.0, "com": (0.5, 0, 0)}],
                "convention": "modified",
                "base": "fixed",
                "name": "arm",
                "gravity": (0, 0, -9.81),
            },
        ),
        Call(
            "from_dh rows",
            lambda **row: pp.from_dh([row]),
            {
                "alpha": 0.0,
                "a": 0.0,
                "d": 0.0,
                "theta": 0.0,
                "mass": 1.0,
                "com": (0.5, 0, 0),
                "inertia": np.eye(3),
                "kind": "revolute",
            },
        ),
        Call("Builder", pp.Builder, {"name": "x", "gravity": (0, 0, -1)}),
        Call(
            "Builder.body",
            lambda **o: pp.Builder("x").body(**o),
            {"name": "a", "mass": 1.0, "com": (0, 0, 0), "inertia": np.eye(3)},
        ),
        Call(
            "Builder.joint",
            _joint,
            {
                "name": "j",
                "kind": "revolute",
                "parent": "world",
                "child": "a",
                "axis": (0, 0, 1),
                "xyz": (0, 0, 0),
                "rpy": (0, 0, 0),
                "lower": -1.0,
                "upper": 1.0,
                "velocity": 1.0,
                "effort": 1.0,
                "damping": 0.0,
                "friction": 0.0,
                "armature": 0.0,
                "stiffness": 1.0,
                "rest": 0.0,
                "spring": None,
                "motor": True,
            },
        ),
        Call(
            "Builder.spring",
            lambda **o: _hinged().spring(**o),
            {"joint": "j", "stiffness": 1.0, "rest": 0.0, "spring": None},
        ),
        Call(
            "Builder.elastic",
            lambda **o: _hinged().elastic(**o),
            {
                "joint": "j",
                "stiffness": 1.0,
                "rotor": 1e-3,
                "ratio": 10.0,
                "damping": 0.0,
                "spring": None,
            },
        ),
        Call(
            "Builder.flexible",
            lambda **o: _hinged().flexible(**o),
            {
                "link": "a",
                "body": pp.Beam(1.0, 0.01, "steel", modes=1),
                "xyz": (0, 0, 0),
                "rpy": (0, 0, 0),
                "rotation": None,
            },
        ),
        Call(
            "Beam",
            pp.Beam,
            {
                "length": 1.0,
                "section": (0.01, 0.02),
                "material": "steel",
                "modes": 1,
                "planes": "z",
                "torsion": 1,
                "axial": 1,
                "tip": "free",
                "damping": 0.01,
                "stiffening": False,
            },
        ),
        Call(
            "Beam's section",
            lambda **o: pp.Beam(1.0, o, "steel", 1),
            {"area": 1.0, "Iy": 1.0, "Iz": 1.0, "J": 1.0},
        ),
        Call(
            "Beam's material",
            lambda **o: pp.Beam(1.0, 0.01, o, 1),
            {"E": 1e9, "density": 1e3, "G": 1e9},
        ),
        Call("FlexibleBody", pp.FlexibleBody, _MODAL),
        Call(
            "FlexibleBody.craig_bampton",
            pp.FlexibleBody.craig_bampton,
            {
                "nodes": [[0, 0, 0], [1, 0, 0]],
                "mass": [1, 1],
                "stiffness": np.eye(12),
                "root": 0,
                "interface": {"tip": 1},
                "modes": 0,
                "rotary": np.tile(np.eye(3), (2, 1, 1)),
                "damping": 0.0,
            },
        ),
        Call("FlexibleBody.load", pp.FlexibleBody.load, {"path": _modal_file(folder)}),
        Call("FlexibleBody.save", pp.FlexibleBody(**_MODAL).save, {"path": folder / "body.npz"}),
        Call(
            "spring table",
            lambda **o: _hinged().spring("j", spring=o),
            {"deflection": [0.0, 1.0], "torque": [0.0, 1.0]},
        ),
        Call(
            "Builder.frame", _frame, {"name": "f", "body": "a", "xyz": (0, 0, 0), "rpy": (0, 0, 0)}
        ),
        Call("Builder.build", _build, {"base": "fixed", "repair": ()}),
        Call(
            "Body.box", pp.Body.box, {"mass": 1.0, "size": (1, 1, 1), "name": "b", "com": (0, 0, 0)}
        ),
        Call(
            "Body.sphere",
            pp.Body.sphere,
            {"mass": 1.0, "radius": 1.0, "name": "b", "com": (0, 0, 0)},
        ),
        Call(
            "Body.cylinder",
            pp.Body.cylinder,
            {"mass": 1.0, "radius": 1.0, "length": 1.0, "name": "b", "com": (0, 0, 0)},
        ),
        Call("Robot.of", pp.Robot.of, {"model": robot, "shapes": None}),
        Call("robots.ur5", robots.ur5, {"base": None, "gravity": (0, 0, -1)}),
        Call("robots.acrobot", robots.acrobot, {"base": None}),
        Call("random", robot.random, {"rng": 0, "size": ()}),
        Call("random by name", robot.random, {"seed": 0, "size": 2}),
        Call("integrate", robot.integrate, {"q": q, "v": v, "dt": 1.0}),
        Call("rate", robot.rate, {"q": q, "v": v}),
        Call("velocity_of", robot.velocity_of, {"q": q, "q_dot": q}),
        Call("difference", robot.difference, {"q0": q, "q1": q}),
        Call("normalize", robot.normalize, {"q": q}),
        Call("frame", robot.frame, {"name": "tool"}),
        Call("joint", robot.joint, {"name": "wrist"}),
        Call(
            "function", robot.function, {"name": "jacobian", "frames": ("tool",), "axes": "world"}
        ),
        Call("flops", robot.flops, {"name": "jacobian", "frames": ("tool",), "axes": "world"}),
        Call(
            "forward_dynamics_details",
            robot.forward_dynamics_details,
            {"q": q, "v": v, "tau": v, "method": "FD2", "f_ext": None},
        ),
        Call("mass_log_det", robot.mass_log_det, {"q": q, "dtype": None, "check": False}),
        Call(
            "operational_space_inertia",
            robot.operational_space_inertia,
            {
                "q": q,
                "frames": "tool",
                "policy": "pseudo",
                "rcond": 1e-9,
                "damping": 1e-3,
                "axes": "world",
                "check": False,
            },
        ),
        Call(
            "operational_space_bias",
            robot.operational_space_bias,
            {
                "q": q,
                "v": v,
                "frames": "tool",
                "policy": "pseudo",
                "rcond": 1e-9,
                "damping": 1e-3,
                "check": False,
            },
        ),
        Call(
            "forward_dynamics",
            robot.forward_dynamics,
            {"q": q, "v": v, "tau": v, "f_ext": None, "axes": "world", "method": None, **state},
        ),
        Call(
            "frame_velocity",
            robot.frame_velocity,
            {"q": q, "v": v, "frame": "tool", "axes": "world", **state},
        ),
        Call("energy", robot.energy, {"q": q, "v": v, **state}),
        Call("diagonalised.velocities", robot.diagonalised.velocities, {"q": q, "v": v, **state}),
        Call(
            "diagonalised.forward_dynamics",
            robot.diagonalised.forward_dynamics,
            {"q": q, "nu": v, "tau": v, "f_ext": None, **state},
        ),
        Call(
            "diagonalised.at_energy", robot.diagonalised.at_energy, {"q": q, "nu": v, "energy": 1.0}
        ),
        Call("diagonalised.flops", robot.diagonalised.flops, {"verb": "forces"}),
        Call("pp.function", pp.function, {"expression": s.mass}),
        Call(
            "a function",
            lambda q, x, **o: product(q, x, **o),
            {"q": q, "x": v, "out": None, "dtype": None},
        ),
        Call("interop.pinocchio", interop.pinocchio, {"model": ur5, "peer": None}),
        Call("interop.mujoco", interop.mujoco, {"model": ur5, "peer": None}),
        *(
            Call(
                f"Layout.{way}_{name}",
                getattr(interop.pinocchio(ur5), f"{way}_{name}"),
                {name: np.zeros(2)},
            )
            for way in ("to", "from")
            for name in ("v", "a", "tau")
        ),
        Call("Layout.to_q", interop.mujoco(robot).to_q, {"q": q}),
        Call("Layout.to_v", interop.mujoco(robot).to_v, {"v": v, "q": q}),
        Call("Layout.from_a", interop.mujoco(robot).from_a, {"a": v, "q": q, "v": v}),
        Call(
            "viewer.scene",
            viewer.scene,
            {
                "thing": ur5,
                "q": np.zeros(2),
                "t": None,
                "shapes": None,
                "meshes": False,
                "title": None,
                "element": 0,
                "frames": 10,
            },
        ),
        Call(
            "viewer.html",
            viewer.html,
            {"thing": ur5, "path": folder / "x.html", "title": None, "q": np.zeros(2)},
        ),
        Call(
            "viewer.html live",
            viewer.html,
            {
                "thing": ur5,
                "path": folder / "x.html",
                "live": True,
                "title": None,
                "q": np.zeros(2),
                "v": np.zeros(2),
                "dt": 1e-3,
                "method": "rk4",
                "payload": None,
                "limits": None,
            },
        ),
        Call("robot.html", ur5.html, {"path": folder / "x.html", "live": True}),
        Call("viewer.view", viewer.view, {"thing": None, "port": -1, "sliders": None}),
        Call("scenes.load", scenes.load, {"source": "four_bar"}),
        Call("set_threads", pp.set_threads, {"n": None}),
        *_motions(ur5),
        *_chains(ur5),
        Call("vector", pp.vector, {"name": "x", "space": "joint"}),
        Call("dot_test", pp.dot_test, {"op": s.mass, "q": q, "rng": 0, "tolerance": 1e-9}),
        Call(
            "time_derivative",
            pp.time_derivative,
            {"expression": s.phi, "frame": "local", "held": ()},
        ),
        Call("prove", pp.prove, {"lhs": s.psi, "rhs": s.psi, "budget": 1.0}),
        Call(
            "prove blocks",
            pp.prove,
            {"lhs": s.psi[k, j], "rhs": s.psi[k, j], "budget": 1.0, "where": k > j},
        ),
        Call("bodies", s.bodies, {"names": "i j"}),
        Call("a block", lambda at: s.psi[at], {"at": (k, j)}),
        Call("a sum of blocks", s.psi[k, j].over, {"i": i, "start": j, "stop": k}),
        Call("sums of blocks", lambda x: s.psi[k, j] + x, {"x": s.psi[k, j]}),
        Call("products of blocks", lambda x: s.psi[k, j] @ x, {"x": s.psi[j, k]}),
        Call("multiples of blocks", lambda x: s.psi[k, j] * x, {"x": 2}),
        Call("an index", lambda x: (k + 1) > x, {"x": j}),
        Call("a parent", lambda x: k + x, {"x": 1}),
        Call("a meeting", k.meets, {"other": j, "at": k}),
        Call(
            "a value of blocks",
            s.psi[k, j].value,
            {"q": q, "bodies": {"k": robot.bodies[0].name, "j": robot.bodies[1].name}, "v": v},
        ),
        Call(
            "derivative",
            pp.derivative,
            {"expression": s.mass @ pp.vector("x"), "by": "q", "along": None},
        ),
        Call(
            "symbolic",
            ur5.symbolic,
            {"name": "jacobian", "frames": ("tool",), "axes": "world", "parameters": False},
        ),
        Call("to_jax", ur5.to_jax, {"name": "jacobian", "frames": ("tool",), "axes": "world"}),
        Call("to_torch", ur5.to_torch, {"name": "jacobian", "frames": ("tool",), "axes": "world"}),
        Call(
            "to_casadi", ur5.to_casadi, {"name": "jacobian", "frames": ("tool",), "axes": "world"}
        ),
        Call(
            "fast_gains",
            pp.estimation.fast_gains,
            {"model": pp.estimation.sequence([np.eye(2)], [np.eye(2)] * 2, [np.eye(2)] * 2)},
        ),
        Call(
            "estimation.held_riccati", pp.estimation.held_riccati, {"robot": ur5, "q": np.zeros(2)}
        ),
        *(
            Call(f"estimation.HeldRiccati.{name}", getattr(old, name), {"q": np.zeros(2)})
            for name in ("mass_matrix", "mass_matrix_inverse", "residual", "sensitivity")
        ),
        Call(
            "estimation.HeldRiccati.forward_dynamics",
            old.forward_dynamics,
            {"q": np.zeros(2), "v": np.zeros(2), "tau": np.zeros(2), "corrections": 1},
        ),
        Call("two_ports", pp.estimation.two_ports, {"robot": ur5, "q": np.zeros(2)}),
        Call("TwoPort.on", ports.on, {"inner": ports}),
        Call("TwoPort.felt", ports.felt, {"load": np.eye(6)}),
        Call("TwoPort.repeated", ports.repeated, {"n": 3}),
        Call("TwoPort at", lambda at: ports[at], {"at": 0}),
        Call(
            "path",
            pp.path,
            {
                "robot": ur5,
                "postures": [[0.0, 0.0], [0.5, 0.2]],
                "kind": "fastest",
                "speed": 2.0,
                "acceleration": 5.0,
                "torque": 100.0,
                "points": 20,
            },
        ),
        Call(
            "path of poses",
            pp.path,
            {
                "robot": ur5,
                "postures": {"tool": ur5.frame_pose([[0.1, 0.4], [0.4, 0.6]], "tool")[:, :3, 3]},
                "near": np.array([0.1, 0.4]),
                "torque": 100.0,
                "points": 20,
            },
        ),
        Call(
            "TimedPath", pp.path(ur5, [[0.0, 0.0], [0.5, 0.2]], torque=100.0, points=20), {"t": 0.1}
        ),
        Call(
            "reach",
            pp.reach,
            {
                "robot": ur5,
                "targets": {"tool": (0.1, 0.2, -1.0)},
                "near": np.zeros(2),
                "directions": None,
                "center_of_mass": None,
                "posture": None,
                "weights": None,
                "order": ["tool"],
                "limits": True,
                "moving": None,
                "tolerance": 1e-6,
                "starts": 2,
                "distinct": False,
            },
        ),
        Call(
            "reach target",
            lambda **o: pp.reach(
                ur5,
                {"tool": o["target"]},
                directions={"tool": (o["axis"], o["to"])},
                weights={"tool": o["weight"]},
                starts=1,
            ),
            {
                "target": (0.1, 0.2, -1.0),
                "axis": (0, 0, 1),
                "to": (1, 0, 0),
                "weight": (1.0, 2.0),
            },
        ),
        Call("jacobian", lambda by: robot.function("gravity").jacobian(by), {"by": "q"}),
        Call("pullback", lambda by: robot.function("gravity").pullback(by), {"by": "q"}),
        Call("pushforward", lambda by: robot.function("gravity").pushforward(by), {"by": "q"}),
        Call("from_mujoco", pp.from_mujoco, {"model": MJCF}),
        Call("from_pinocchio", pp.from_pinocchio, {"model": _peer()}),
        *_edits(ur5, folder),
        Call(
            "Body.capsule",
            pp.Body.capsule,
            {"mass": 1.0, "radius": 1.0, "length": 1.0, "name": "b", "com": (0, 0, 0)},
        ),
        Call(
            "Trajectory",
            pp.Trajectory,
            {
                "t": np.zeros(1),
                "q": np.zeros((1, 2)),
                "v": np.zeros((1, 2)),
                "a": None,
                "tau": None,
                "forces": None,
                "energy": None,
                "residual": None,
                "gaps": None,
                "modes": None,
                "contact_residual": None,
                "stop_forces": None,
                "stop_work": None,
                "events": (),
                "system": ur5,
                "info": {},
            },
        ),
        Call(
            "Trajectory.plot",
            _motion().plot,
            {"what": "q", "path": folder / "m.png", "joints": None, "limits": False},
        ),
        Call("Expression.plot", s.mass.plot, {"q": q, "path": folder / "e.png"}),
        Call(
            "Trajectory.load csv",
            pp.Trajectory.load,
            {"path": _saved(folder), "system": None, "max_bytes": 1 << 20},
        ),
        Call("Trajectory.save", _motion().save, {"path": folder / "m.npz"}),
        Call("Trajectory.load", pp.Trajectory.load, {"path": folder / "m.npz"}),
    ]
    return calls


MJCF = """<mujoco><worldbody>
<body name="a"><joint name="j"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""


def _peer() -> Any:
    import pinocchio

    return pinocchio.buildSampleModelManipulator()


def _edits(robot: pp.Robot, folder: Path) -> list[Call]:
    """What changes a robot, and what it says of its joints."""
    q, v = robot.neutral(), np.ones(robot.nv)
    joint, frame = robot.joints[-1].name, list(robot.frames)[-1]
    body = pp.Body.box(1.0, (0.1, 0.1, 0.1), "load")
    return [
        Call("lock", robot.lock, {"joints": joint, "at": q}),
        Call("subtree", robot.subtree, {"root": joint, "base": "fixed"}),
        Call("without", robot.without, {"names": joint}),
        Call(
            "attach",
            robot.attach,
            {"other": body, "frame": frame, "pose": None, "joint": "fixed", "prefix": ""},
        ),
        Call("with_frame", robot.with_frame, {"name": "grip", "frame": frame, "pose": None}),
        Call("with_gravity", robot.with_gravity, {"gravity": (0, 0, -1)}),
        Call("with_base", robot.with_base, {"base": "free", "pose": None}),
        Call("with_posture", robot.with_posture, {"name": "up", "q": q}),
        Call(
            "with_spring",
            robot.with_spring,
            {"joints": robot.joint_names[-1], "stiffness": 1.0, "rest": 0.0, "spring": None},
        ),
        Call(
            "with_elastic",
            robot.with_elastic,
            {
                "joints": robot.joint_names[-1],
                "stiffness": 1.0,
                "rotor": 1e-3,
                "ratio": 10.0,
                "damping": 0.0,
                "spring": None,
            },
        ),
        Call(
            "with_flexible",
            robot.with_flexible,
            {
                "link": robot.bodies[-1].name,
                "body": pp.Beam(1.0, 0.01, "steel", modes=1),
                "xyz": (0, 0, 0),
                "rpy": (0, 0, 0),
                "keep": True,
                "hang": None,
            },
        ),
        Call(
            "with_inertia",
            robot.with_inertia,
            {"link": robot.bodies[-1].name, "mass": 1.0, "com": None, "inertia": None},
        ),
        Call(
            "with_postures",
            robot.with_postures,
            {
                "srdf": f"<robot name='x'><group_state name='up' group='g'><joint name='{joint}' "
                f"value='1'/></group_state></robot>"
            },
        ),
        Call("select", robot.select, {"joints": "*", "of": "v"}),
        Call("save", robot.save, {"path": folder / "r.urdf"}),
        Call("regressor", robot.regressor, {"q": q, "v": v, "a": v}),
        Call(
            "wrench_regressor",
            robot.wrench_regressor,
            {"q": q, "v": v, "a": v, "link": robot.bodies[-1].name},
        ),
        Call("energy_regressor", robot.energy_regressor, {"q": q, "v": v}),
        Call("excitation", robot.excitation, {"q": np.ones((9, robot.nv)), "v": v, "a": v}),
        *_free(robot, q, v),
        *_identified(robot, folder),
        Call("linearize", robot.linearize, {"q": q, "v": v, "tau": v, "dt": 1e-3, "method": "rk4"}),
    ]


def _identified(robot: pp.Robot, folder: Path) -> list[Call]:
    q, v, a = np.random.default_rng(0).standard_normal((3, 30, robot.nv))
    data = {"q": q, "v": v, "a": a, "tau": robot.inverse_dynamics(q, v, a)}
    found = pp.identify(robot, **data)
    return [
        Call(
            "identify",
            lambda **o: pp.identify(**o),
            {
                "robot": robot,
                **data,
                "more": (),
                "wrenches": None,
                "sigma": None,
                "consistent": True,
            },
        ),
        Call("Identification.plot", found.plot, {"path": folder / "fit.png"}),
    ]


def _free(robot: pp.Robot, q: np.ndarray, v: np.ndarray) -> list[Call]:
    """Numbers as inputs, and what makes them."""
    light, link = robot.free("inertia"), robot.bodies[-1].name
    p, compiled = light.parameters(), light.function("gravity")
    return [
        Call(
            "free",
            lambda word, links: robot.free(word, links=links),
            {"word": "mass", "links": link},
        ),
        Call("FreeRobot.at", light.at, {"parameters": p}),
        Call("FreeRobot.gravity", light.gravity, {"q": q, "parameters": p}),
        Call(
            "an expression's parameters",
            pp.function(light.operators.mass),
            {"q": q, "parameters": p},
        ),
        Call(
            "a function's parameters",
            lambda q, parameters: compiled(q, parameters=parameters),
            {"q": q, "parameters": p},
        ),
        Call("FreeRobot.step", light.step, {"q": q, "v": v, "tau": v, "dt": 1e-3, "parameters": p}),
        Call("FreeRobot.consistent", light.consistent, {"parameters": p}),
        Call("FreeRobot.baked", light.baked, {"parameters": p}),
        Call("FreeRobot.masses", light.masses, {"masses": {link: 1.0}}),
        Call(
            "FreeRobot.payload",
            light.payload,
            {"frame": link, "mass": 1.0, "com": (0, 0, 0), "inertia": np.eye(3)},
        ),
        Call("FreeRobot.randomised", light.randomised, {"size": 2, "spread": 0.1, "seed": 0}),
    ]


def _motions(robot: pp.Robot) -> list[Call]:
    """What moves a robot, and what is asked of its motion."""
    q, v, rest = robot.neutral(), np.ones(robot.nv), np.zeros(robot.nv)
    motion, rolled = (
        pp.simulate(robot, q, v, duration=0.01),
        pp.rollout(robot, q, v, rest, steps=2, method="euler"),
    )
    driven = pp.simulate(robot, q, v, rest, duration=2e-3, method="euler", compiled=True)
    motors = {"actuated": None, "passive": None}
    brakes = {
        "damping": False,
        "friction": 1.0,
        "friction_speed": 0.01,
        "springs": False,
        "effort": False,
        **motors,
    }
    given = {
        "q0": q,
        "v0": v,
        "tau": None,
        "dt": 1e-3,
        "method": "rk4",
        "every": 1,
        "hold": False,
        "limits": "ignore",
    }
    return [
        Call(
            "simulate",
            lambda **o: pp.simulate(**o),
            {
                "system": robot,
                "duration": 3e-3,
                "f_ext": None,
                **given,
                **brakes,
                "events": (),
                "stop": False,
                "projection": None,
                "rtol": None,
                "atol": None,
                "compiled": False,
                "progress": None,
                "contacts": "hold",
            },
        ),
        Call(
            "simulate by SciPy",
            lambda **o: pp.simulate(robot, q, duration=2e-3, **o),
            {
                "method": "RK45",
                "rtol": 1e-3,
                "atol": 1e-3,
                "events": {"e": lambda t, q, v: 1.0},
                "stop": ("diverged",),
            },
        ),
        Call(
            "study",
            pp.study,
            {
                "source": pp.load("acrobot"),
                "motions": 2,
                "duration": 3e-3,
                "method": "rk4",
                "limits": "ignore",
                "controller": {"kind": "pd"},
                "vary": {"q": {"uniform": [0, 1]}},
                "keep": {"every": 1},
                "scheduler": None,
                "cards": False,
            },
        ),
        Call(
            "study sensors",
            lambda **o: pp.study(pp.load("acrobot"), motions=2, duration=2e-3, sensors={"one": o}),
            {"kind": "joint_torque", "joints": "*", "rate": 1e3, "noise": 0.1, "bias": 0.0},
        ),
        Call(
            "study vary",
            lambda **o: pp.study(
                pp.load("acrobot"),
                motions=2,
                duration=2e-3,
                vary={"mass": o["all"], "v": {"uniform": o["numbers"]}},
            ),
            {
                "all": {"choice": [1.0, 2.0]},
                "numbers": [0.5, 1.5],
            },
        ),
        Call(
            "rollout",
            pp.rollout,
            {"robot": robot, "steps": 2, **given, **brakes, "out": None, "contacts": None},
        ),
        Call("rollout().vjp", rolled.vjp, {"q_weight": np.ones_like(rolled.q), "v_weight": None}),
        Call("rollout().jvp", rolled.jvp, {"q": v, "v": None, "tau": rest}),
        Call(
            "rollout().hvp",
            rolled.hvp,
            {"q_weight": np.ones_like(rolled.q), "v_weight": None, "q": v, "v": None, "tau": rest},
        ),
        Call(
            "Trajectory.hvp",
            driven.hvp,
            {"q_weight": np.ones_like(driven.q), "v_weight": None, "q": v, "v": None},
        ),
        Call("Trajectory.vjp", driven.vjp, {"q_weight": np.ones_like(driven.q), "v_weight": None}),
        Call("Trajectory.jvp", driven.jvp, {"q": v, "v": None, "tau": rest}),
        Call("step", robot.step, {"q": q, "v": v, "tau": rest, "dt": 1e-3, "method": "rk4"}),
        Call(
            "GravityCompensation", _asked(pp.GravityCompensation, q, v), {"robot": robot, **motors}
        ),
        Call(
            "PD",
            _asked(pp.PD, q, v),
            {"robot": robot, "reference": q, "kp": 1.0, "kd": 1.0, "gravity": False, **motors},
        ),
        Call(
            "ComputedTorque",
            _asked(pp.ComputedTorque, q, v),
            {"robot": robot, "reference": q, "kp": 1.0, "kd": 1.0, "share": None, **motors},
        ),
        Call(
            "Lyapunov",
            _asked(pp.Lyapunov, q, v),
            {
                "robot": robot,
                "reference": q,
                "kp": 1.0,
                "kd": 1.0,
                "pull": 1.0,
                "joints": None,
                "share": None,
                **motors,
            },
        ),
        Call(
            "PrescribedMotion",
            _asked(pp.PrescribedMotion, q, v),
            {
                "robot": robot,
                "motions": {robot.joint_names[0]: 0.1},
                "tau": None,
                "kp": 1.0,
                "kd": 1.0,
            },
        ),
        Call("Robot.part", robot.part, {"joints": robot.joint_names[0]}),
        Call(
            "Robot.hybrid_dynamics",
            robot.hybrid_dynamics,
            {
                "q": q,
                "v": v,
                "tau": rest,
                "a": rest,
                "held": robot.joint_names[0],
                "f_ext": None,
                "axes": "world",
                "check": False,
            },
        ),
        Call(
            "law",
            lambda **o: pp.simulate(robot, q, v, pp.law(**o), duration=2e-3),
            {"function": lambda t, q, v: -v, "batched": False, "pure": True},
        ),
        Call(
            "Decoupled",
            _asked(pp.Decoupled, q, v),
            {
                "robot": robot,
                "reference": q,
                "k": 1.0,
                "pull": 1.0,
                "joints": None,
                "share": None,
                **motors,
            },
        ),
        Call(
            "OperationalSpace",
            _asked(pp.OperationalSpace, q, v),
            {
                "robot": robot,
                "frame": next(iter(robot.frames)),
                "share": None,
                "target": np.zeros(3),
                "kp": 1.0,
                "kd": 1.0,
                "posture": q,
                "posture_kp": 1.0,
                "posture_kd": 1.0,
                "policy": "faded",
                "rcond": 1e-9,
                "damping": 1e-3,
                "fade": 0.03,
                "speed": 1.0,
            },
        ),
        Call(
            "OperationalSpace tasks",
            _asked(pp.OperationalSpace, q, v),
            {
                "robot": robot,
                "frame": list(robot.frames)[:2],
                "target": [np.zeros(3), np.eye(4)],
            },
        ),
        Call("Trajectory.at", motion.at, {"t": 0.005}),
        Call("Trajectory.element", lambda where: motion.element(where), {"where": 0})
        if motion.batch
        else Call("Trajectory[k]", lambda k: motion[k], {"k": 0}),
        Call("Trajectory.plot", motion.plot, {"what": "q"}),
    ]


def _asked(make: Callable, q: np.ndarray, v: np.ndarray) -> Callable:
    """A controller, made and asked for a torque."""
    return lambda **options: make(**options)(0.0, q, v)


def _chains(robot: pp.Robot) -> list[Call]:
    """Closed chains: how they are made, and what they answer."""
    case = scenes.load("four_bar")
    system, q = case.system, case.q0
    v, contact = case.v0, system.contacts[0].name
    still, forces = system.complete(q, v, np.zeros(system.nv)), np.zeros((len(system.contacts), 6))
    frame = next(name for name, spot in system.frames.items() if spot.body >= 0)
    hand = next(name for name, spot in robot.frames.items() if spot.body == len(robot.bodies) - 1)
    motors = {"passive": None, "actuated": None}
    pair = pp.grasp(
        [(robot, None, hand), (robot, (1, 0, 0), hand)],
        pp.Body.box(1.0, (1, 1, 1)),
        [None, (0.1, 0, 0)],
    )
    held = pp.grasp([(pp.load("puma560"), None, "tool")], pp.Body.box(1.0, (1, 1, 1)), [None])
    tied = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    grip = held.assemble([0.1, -0.8, 0.6, 0.2, 0.5, 0.0, 0.3, 0.0, 0.3, 0, 0, 0, 1])
    return [
        Call(
            "connect",
            pp.connect,
            {
                "mechanisms": robot,
                "loops": [pp.Loop("ball", hand, "world")],
                "mimic": False,
                "name": "",
                **motors,
            },
        ),
        Call(
            "grasp",
            pp.grasp,
            {
                "arms": [(robot, None, hand)],
                "object": pp.Body.box(1.0, (1, 1, 1)),
                "at": [None],
                "contacts": (),
                "loops": (),
                "mimic": False,
                "name": "cell",
                **motors,
            },
        ),
        Call(
            "embed",
            lambda **o: pp.embed(**{"robot": pp.load("panda"), "mimic": True, **o}),
            {
                "robot": pp.load("panda"),
                "loops": (),
                "mimic": True,
                "rotors": (),
                "free": (),
                "at": None,
            },
        ),
        Call(
            "Gear",
            lambda **o: pp.embed(robot, [pp.Gear(**o)]),
            {
                "joint": robot.joint_names[0],
                "leaders": {robot.joint_names[1]: 2.0},
                "offset": 0.0,
                "name": "",
            },
        ),
        Call(
            "Rotor",
            lambda **o: pp.embed(robot, rotors=[pp.Rotor(**o)]),
            {
                "joint": robot.joint_names[1],
                "inertia": 1e-4,
                "ratio": 100.0,
                "mass": 0.0,
                "link": None,
                "axis": None,
                "at": None,
            },
        ),
        Call(
            "grasp of a robot",
            lambda thing, base, grip: pp.grasp(
                [(robot, None, hand)], (thing, base), [grip], ["point"]
            ),
            {
                "thing": robot,
                "base": None,
                "grip": hand,
            },
        ),
        Call("System.arm_inertias", pair.arm_inertias, {"q": pair.neutral(), "axes": "world"}),
        Call(
            "Loop",
            lambda **o: pp.connect(robot, [pp.Loop(**o)]),
            {
                "kind": "hinge",
                "first": hand,
                "second": "world",
                "axis": (0, 0, 1),
                "axis2": None,
                "length": None,
                "name": "",
                "friction": None,
                "restitution": 0.0,
            },
        ),
        Call(
            "Contact",
            lambda **o: pp.grasp(
                [(robot, None, hand)], pp.Body.box(1.0, (1, 1, 1)), [None], [pp.Contact(**o)]
            ),
            {
                "kind": "rigid",
                "axis": None,
                "normal": (0, 0, 1),
                "friction": 0.5,
                "torsion": None,
                "restitution": 0.0,
            },
        ),
        Call(
            "System.forward_dynamics",
            system.forward_dynamics,
            {
                "q": q,
                "v": v,
                "tau": still,
                "forces": False,
                "f_ext": None,
                "axes": "world",
                "method": None,
                "check": False,
            },
        ),
        Call(
            "System.function",
            system.function,
            {"name": "contact_forces", "frames": (frame,), "axes": "world"},
        ),
        Call(
            "System.function()",
            lambda q, v, tau: system.function("contact_forces")(q, v, tau),
            {"q": q, "v": v, "tau": still},
        ),
        Call(
            "System.function().jacobian",
            lambda by: system.function("forward_dynamics").jacobian(by),
            {"by": "q"},
        ),
        Call(
            "System.function().jvp",
            lambda q, v, tau, dtau: system.function("contact_forces").jvp("tau")(q, v, tau, dtau),
            {
                "q": q,
                "v": v,
                "tau": still,
                "dtau": v,
            },
        ),
        Call(
            "System.function().vjp",
            lambda q, v, tau, weight: system.function("forward_dynamics").vjp("q")(
                q, v, tau, weight
            ),
            {
                "q": q,
                "v": v,
                "tau": still,
                "weight": v,
            },
        ),
        Call(
            "System.function().jvp of torques",
            lambda q, v, a, da: system.function("inverse_dynamics").jvp("a")(q, v, a, da),
            {
                "q": q,
                "v": v,
                "a": still,
                "da": v,
            },
        ),
        Call(
            "System.function().hessian",
            lambda q, v, tau, w: tied.function("forward_dynamics").hessian("v")(q, v, tau, w),
            {x: np.ones(2) for x in ("q", "v", "tau", "w")},
        ),
        Call(
            "System.function().vjp.jvp",
            lambda **o: tied.function("contact_forces").vjp("q").jvp("q")(*o.values()),
            {
                "q": np.ones(2),
                "v": np.ones(2),
                "tau": np.ones(2),
                "weight": np.ones((1, 6)),
                "dq": np.ones(2),
            },
        ),
        Call(
            "System.step",
            system.step,
            {"q": q, "v": v, "tau": still, "dt": 1e-3, "method": "rk4"},
        ),
        Call(
            "System.linearize",
            system.linearize,
            {"q": q, "v": v, "tau": still, "dt": 1e-3, "method": "rk4", "check": False},
        ),
        Call(
            "System.inverse_dynamics",
            system.inverse_dynamics,
            {
                "q": q,
                "v": v,
                "a": still,
                "internal": None,
                "share": None,
                "forces": False,
                "f_ext": None,
                "axes": "world",
                "check": False,
            },
        ),
        Call(
            "System.complete",
            system.complete,
            {
                "q": q,
                "v": v,
                "a": still,
                "exactly": (),
                "check": False,
                "f_ext": None,
                "axes": "world",
            },
        ),
        Call(
            "ObjectControl",
            _asked(pp.ObjectControl, grip, np.zeros(held.nv)),
            {
                "system": held,
                "target": held.frame_pose(grip, held.object),
                "kp": 1.0,
                "kd": 1.0,
                "stiffness": None,
                "damping": None,
                "inertia": None,
                "measured": np.zeros(6),
                "forces": np.zeros((1, 6)),
                "squeeze": 1.0,
                "share": None,
                "posture": grip,
                "posture_kp": 1.0,
                "posture_kd": 1.0,
            },
        ),
        Call(
            "ObjectControl impedance",
            _asked(pp.ObjectControl, grip, np.zeros(held.nv)),
            {
                "system": held,
                "target": held.frame_pose(grip, held.object),
                "stiffness": 1.0,
                "damping": 1.0,
                "inertia": 1.0,
            },
        ),
        Call(
            "Lyapunov of a chain",
            _asked(pp.Lyapunov, grip, np.zeros(held.nv)),
            {"robot": held, "reference": grip, "joints": None, "share": [1.0]},
        ),
        Call(
            "System.with_dynamics",
            held.with_dynamics,
            {"mechanisms": {"puma560": lambda q, v, tau: tau}, "batched": False},
        ),
        Call("System.split_forces", system.split_forces, {"q": q, "forces": forces, "share": None}),
        Call(
            "System.effective_compliance",
            system.effective_compliance,
            {"q": q, "frame": frame, "axes": "world"},
        ),
        Call(
            "System.effective_inertia",
            system.effective_inertia,
            {"q": q, "frame": frame, "axes": "world", "policy": "exact"},
        ),
        Call("System.constraint_residual", system.constraint_residual, {"q": q, "v": v}),
        Call("System.constraint_jacobian", system.constraint_jacobian, {"q": q}),
        Call("System.constraint_bias", system.constraint_bias, {"q": q, "v": v}),
        Call("System.assemble", system.assemble, {"q_guess": q, "hold": (), "tolerance": 1e-11}),
        Call("System.project", system.project, {"q": q, "v": v, "tolerance": 1e-12}),
        Call("System.contact_ratio", system.contact_ratio, {"q": q, "forces": forces}),
        Call(
            "System.contact_configuration_rate",
            system.contact_configuration_rate,
            {"q": q, "v": v, "contact": contact},
        ),
        Call(
            "System.contact_configuration",
            system.contact_configuration,
            {"q": q, "contact": contact},
        ),
        Call("System.contact_rates", system.contact_rates, {"q": q, "v": v}),
        Call(
            "System.contact_accelerations",
            system.contact_accelerations,
            {"q": q, "v": v, "a": still},
        ),
        Call("System.flops", system.flops, {"name": "forward_dynamics", "method": None}),
        Call("System.explain", system.explain, {"method": None}),
        Call("System.energy", system.energy, {"q": q, "v": v}),
        Call("System.integrate", system.integrate, {"q": q, "v": v, "dt": 1.0}),
    ]


URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


@cache
def _saved(folder: Path) -> Path:
    _motion().save(folder / "saved.csv")
    return folder / "saved.csv"


@cache
def _study() -> pp.Study:
    return pp.study(
        pp.load("acrobot"),
        motions=3,
        duration=2e-3,
        vary={"mass": {"choice": [1.0, 2.0]}},
        sensors={"torque": pp.JointTorque()},
    )


def _motion() -> pp.Trajectory:
    return pp.Trajectory(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 2)))


def _modal_file(folder: Path) -> Path:
    pp.FlexibleBody(**_MODAL).save(folder / "body.json")
    return folder / "body.json"


def _hinged() -> pp.Builder:
    b = pp.Builder("x")
    b.body("a", mass=1.0, inertia=np.eye(3))
    b.joint("j", "revolute", "world", "a")
    return b


def _joint(**options) -> None:
    builder = pp.Builder("x")
    builder.body("a", 1.0, inertia=np.eye(3))
    builder.joint(**options)
    builder.build()


def _frame(**options) -> None:
    builder = pp.Builder("x")
    builder.body("a", 1.0, inertia=np.eye(3))
    builder.joint("j", "revolute", "world", "a")
    builder.frame(**options)
    builder.build()


def _build(**options) -> None:
    builder = pp.Builder("x")
    builder.body("a", 1.0, inertia=np.eye(3))
    builder.joint("j", "revolute", "world", "a")
    builder.build(**options)
