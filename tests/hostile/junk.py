# ruff: noqa: E501
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
from functions.doors import gymnast
from psiphi import interop, robots, scenes, viewer


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
    "None": None, "True": True, "False": False, "0": 0, "-1": -1, "1": 1, "3": 3, "2**70": 2**70, "-2**70": -(2**70),
    "0.5": 0.5, "-1.5": -1.5, "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "1e308": 1e308, "1e-320": 1e-320,
    "1j": 1j, "empty text": "", "a space": " ", "text": "nonsense", "a digit": "1", "nul": "a\0b", "half": "\ud800", "long": "x" * 5000,
    "long path": "/".join(["x" * 200] * 40), "newline": "a\nb.urdf", "emoji": "🤖", "markup": "<a>", "open markup": "<robot",
    "tilde": "~", "slash": "/", "dots": "../..", "device": "/dev/null", "star": "*", "percent": "%s{}",
    "bytes": b"ur5", "empty bytes": b"", "bytearray": bytearray(b"x"), "memoryview": memoryview(b"x"), "path": Path("nowhere"),
    "long pathlib": Path("y" * 5000), "bytes path": Path2(), "empty list": [], "list": [1, 2], "texts": ["a", "b"], "ragged": [[1], [1, 2]],
    "nested": [[[]]], "deep": DEEP, "loop": LOOP, "tuple": (), "dict": {}, "a dict": {"tool": 1}, "odd dict": {1: None, None: 2},
    "set": set(), "a set": {"tool"}, "generator": (i for i in ()), "range": range(3), "lambda": lambda *a, **k: None,
    "class": dict, "object": object(), "ellipsis": ..., "not implemented": NotImplemented,
    "slice": slice(None), "decimal": decimal.Decimal("NaN"), "fraction": fractions.Fraction(1, 3), "date": datetime.date(2000, 1, 1),
    "empty array": np.empty(0), "zeros": np.zeros(6), "a zero": np.zeros(()), "an empty batch": np.zeros((0, 6)), "nans": np.full(6, np.nan),
    "texts array": np.array(["a"]), "objects": np.array([None, {}], dtype=object), "complex": np.zeros(6, complex),
    "bools": np.zeros(6, bool), "dates": np.zeros(6, "M8[s]"), "records": np.zeros(2, "i4,f8"), "many axes": np.zeros((1,) * 30),
    "matrix": np.eye(4), "ints": np.arange(6), "masked": np.ma.masked_all(6), "dtype": np.dtype(float), "rng": np.random.default_rng(0),
    "exception": ValueError("x"), "module": os,
}  # fmt: skip


class Call(NamedTuple):
    """A public callable, and arguments with which it answers."""

    name: str
    call: Callable
    given: dict[str, Any]

    def tries(self):
        """(parameter, name of the junk, a call of no arguments) for every parameter and every junk value."""
        for parameter in self.given:
            for label, value in JUNK.items():
                yield parameter, label, lambda p=parameter, v=value: self.call(**(self.given | {p: v}))


def table(folder: Path) -> list[Call]:
    """Every public call that ends soon; files go into `folder`."""
    robot, ur5 = gymnast(), pp.load("acrobot")
    q, v = robot.random(seed=0), np.ones(robot.nv)
    s = robot.operators
    product = pp.function(s.mass @ pp.vector("x"))
    state = {"out": None, "dtype": None, "check": False}
    calls = [
        Call("load", pp.load, {"source": "acrobot", "base": None, "gravity": (0, 0, -9.81)}),
        Call("load urdf", pp.load, {
            "source": URDF, "base": "fixed", "repair": (), "packages": None, "allow_outside": False, "gravity": (0, 0, -9.81),
            "armature": None, "max_bytes": 1 << 20, "max_depth": 50, "max_elements": 100, "max_bodies": 10,
        }),
        Call("from_dh", pp.from_dh, {
            "rows": [{"alpha": 0.0, "a": 0.0, "mass": 1.0, "com": (0.5, 0, 0)}], "convention": "modified", "base": "fixed",
            "name": "arm", "gravity": (0, 0, -9.81),
        }),
        Call("from_dh rows", lambda **row: pp.from_dh([row]), {
            "alpha": 0.0, "a": 0.0, "d": 0.0, "theta": 0.0, "mass": 1.0, "com": (0.5, 0, 0), "inertia": np.eye(3), "kind": "revolute",
        }),
        Call("Builder", pp.Builder, {"name": "x", "gravity": (0, 0, -1)}),
        Call("Builder.body", lambda **o: pp.Builder("x").body(**o), {"name": "a", "mass": 1.0, "com": (0, 0, 0), "inertia": np.eye(3)}),
        Call("Builder.joint", _joint, {
            "name": "j", "kind": "revolute", "parent": "world", "child": "a", "axis": (0, 0, 1), "xyz": (0, 0, 0), "rpy": (0, 0, 0),
            "lower": -1.0, "upper": 1.0, "velocity": 1.0, "effort": 1.0, "damping": 0.0, "friction": 0.0, "armature": 0.0,
        }),
        Call("Builder.frame", _frame, {"name": "f", "body": "a", "xyz": (0, 0, 0), "rpy": (0, 0, 0)}),
        Call("Builder.build", _build, {"base": "fixed", "repair": ()}),
        Call("Body.box", pp.Body.box, {"mass": 1.0, "size": (1, 1, 1), "name": "b", "com": (0, 0, 0)}),
        Call("Body.sphere", pp.Body.sphere, {"mass": 1.0, "radius": 1.0, "name": "b", "com": (0, 0, 0)}),
        Call("Body.cylinder", pp.Body.cylinder, {"mass": 1.0, "radius": 1.0, "length": 1.0, "name": "b", "com": (0, 0, 0)}),
        Call("Robot.of", pp.Robot.of, {"model": robot, "shapes": None}),
        Call("robots.ur5", robots.ur5, {"base": None, "gravity": (0, 0, -1)}),
        Call("robots.acrobot", robots.acrobot, {"base": None}),
        Call("random", robot.random, {"rng": 0, "size": ()}),
        Call("random by name", robot.random, {"seed": 0, "size": 2}),
        Call("integrate", robot.integrate, {"q": q, "v": v, "dt": 1.0}),
        Call("difference", robot.difference, {"q0": q, "q1": q}),
        Call("normalize", robot.normalize, {"q": q}),
        Call("frame", robot.frame, {"name": "tool"}),
        Call("joint", robot.joint, {"name": "wrist"}),
        Call("function", robot.function, {"name": "jacobian", "frames": ("tool",), "axes": "world"}),
        Call("flops", robot.flops, {"name": "jacobian", "frames": ("tool",), "axes": "world"}),
        Call("forward_dynamics_details", robot.forward_dynamics_details, {"q": q, "v": v, "tau": v, "method": "FD2", "f_ext": None}),
        Call("mass_log_det", robot.mass_log_det, {"q": q, "dtype": None, "check": False}),
        Call("operational_space_inertia", robot.operational_space_inertia, {
            "q": q, "frames": "tool", "policy": "pseudo", "rcond": 1e-9, "damping": 1e-3, "axes": "world", "check": False,
        }),
        Call("operational_space_bias", robot.operational_space_bias, {
            "q": q, "v": v, "frames": "tool", "policy": "pseudo", "rcond": 1e-9, "damping": 1e-3, "check": False,
        }),
        Call("forward_dynamics", robot.forward_dynamics, {"q": q, "v": v, "tau": v, "f_ext": None, "axes": "world", "method": None, **state}),
        Call("frame_velocity", robot.frame_velocity, {"q": q, "v": v, "frame": "tool", "axes": "world", **state}),
        Call("energy", robot.energy, {"q": q, "v": v, **state}),
        Call("diagonalised.velocities", robot.diagonalised.velocities, {"q": q, "v": v, **state}),
        Call("diagonalised.forward_dynamics", robot.diagonalised.forward_dynamics, {"q": q, "nu": v, "tau": v, "f_ext": None, **state}),
        Call("diagonalised.at_energy", robot.diagonalised.at_energy, {"q": q, "nu": v, "energy": 1.0}),
        Call("diagonalised.flops", robot.diagonalised.flops, {"verb": "forces"}),
        Call("pp.function", pp.function, {"expression": s.mass}),
        Call("a function", lambda q, x, **o: product(q, x, **o), {"q": q, "x": v, "out": None, "dtype": None}),
        Call("interop.pinocchio", interop.pinocchio, {"model": ur5, "peer": None}),
        Call("interop.mujoco", interop.mujoco, {"model": ur5, "peer": None}),
        *(Call(f"Layout.{way}_{name}", getattr(interop.pinocchio(ur5), f"{way}_{name}"), {name: np.zeros(2)})
          for way in ("to", "from") for name in ("v", "a", "tau")),
        Call("Layout.to_q", interop.mujoco(robot).to_q, {"q": q}),
        Call("Layout.to_v", interop.mujoco(robot).to_v, {"v": v, "q": q}),
        Call("Layout.from_a", interop.mujoco(robot).from_a, {"a": v, "q": q, "v": v}),
        Call("viewer.scene", viewer.scene, {
            "thing": ur5, "q": np.zeros(2), "t": None, "shapes": None, "meshes": False, "title": None, "element": 0, "frames": 10,
        }),
        Call("viewer.html", viewer.html, {"thing": ur5, "path": folder / "x.html", "title": None, "q": np.zeros(2)}),
        Call("viewer.view", viewer.view, {"thing": None, "port": -1, "sliders": None}),
        Call("scenes.load", scenes.load, {"source": "four_bar"}),
        Call("set_threads", pp.set_threads, {"n": None}),
        Call("Body.capsule", pp.Body.capsule, {"mass": 1.0, "radius": 1.0, "length": 1.0, "name": "b", "com": (0, 0, 0)}),
        Call("Trajectory", pp.Trajectory, {
            "t": np.zeros(1), "q": np.zeros((1, 2)), "v": np.zeros((1, 2)), "a": None, "tau": None, "forces": None, "energy": None,
            "residual": None, "events": (), "system": ur5, "info": {},
        }),
        Call("Trajectory.plot", _motion().plot, {"what": "q", "path": folder / "m.png", "joints": None, "limits": False}),
        Call("Expression.plot", s.mass.plot, {"q": q, "path": folder / "e.png"}),
        Call("Trajectory.load csv", pp.Trajectory.load, {"path": _saved(folder), "system": None, "max_bytes": 1 << 20}),
        Call("Trajectory.save", _motion().save, {"path": folder / "m.npz"}),
        Call("Trajectory.load", pp.Trajectory.load, {"path": folder / "m.npz"}),
    ]  # fmt: skip
    return calls


URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


@cache
def _saved(folder: Path) -> Path:
    _motion().save(folder / "saved.csv")
    return folder / "saved.csv"


def _motion() -> pp.Trajectory:
    return pp.Trajectory(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 2)))


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
