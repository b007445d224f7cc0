"""Errors of each function of a robot relative to another library, as a table.

The error is |ours - theirs| / max|theirs| for each array and state. Functions that solve with the
mass matrix may have an error of eps kappa, where kappa is the condition number of the mass matrix
scaled to a unit diagonal; this much is allowed where it exceeds the tolerance. Only iCub needs it,
in a few states, where Pinocchio's own algorithms (articulated bodies and Cholesky) differ as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.robot.robot import Robot
from psiphi_bench.peers.peer import Peer

TOLERANCE = 1e-10
EPS = float(np.finfo(float).eps)


class Comparison(NamedTuple):
    """One row: a function, its input arrays, its frame or loads."""

    name: str
    inputs: tuple[str, ...]
    where: str = ""  # "frame": at a frame; "load": with wrenches on two frames
    axes: str = ""

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.name, "loaded" * (self.where == "load"), self.axes)))

    @property
    def solves(self) -> bool:
        """Whether the function solves with the mass matrix."""
        return self.name in ("forward_dynamics", "mass_matrix_inverse")


class Deviation(NamedTuple):
    """The largest error of one function: with the allowance for eps kappa, and without (`raw`)."""

    label: str
    value: float
    raw: float


FUNCTIONS = (
    Comparison("forward_dynamics", ("q", "v", "tau")),
    Comparison("forward_dynamics", ("q", "v", "tau"), "load", "world"),
    Comparison("forward_dynamics", ("q", "v", "tau"), "load", "frame"),
    Comparison("inverse_dynamics", ("q", "v", "a")),
    Comparison("inverse_dynamics", ("q", "v", "a"), "load", "world"),
    Comparison("inverse_dynamics", ("q", "v", "a"), "load", "frame"),
    Comparison("mass_matrix", ("q",)),
    Comparison("mass_matrix_inverse", ("q",)),
    Comparison("mass_matrix_factors", ("q",)),
    Comparison("bias", ("q", "v")),
    Comparison("gravity", ("q",)),
    Comparison("frame_pose", ("q",), "frame"),
    Comparison("frame_velocity", ("q", "v"), "frame", "world"),
    Comparison("frame_velocity", ("q", "v"), "frame", "frame"),
    Comparison("jacobian", ("q",), "frame", "world"),
    Comparison("jacobian", ("q",), "frame", "frame"),
    Comparison("energy", ("q", "v")),
    Comparison("center_of_mass", ("q",)),
)


def compiled(robot: Robot, name: str, *arrays, **options) -> Any:
    """The compiled function of the robot."""
    return getattr(robot, name)(*arrays, **options)


def interpreted(
    robot: Robot, name: str, *arrays, frame: str = "", f_ext=None, axes: str = "world"
) -> Any:
    """The same program, interpreted on NumPy arrays instead of compiled."""
    frames = tuple(f_ext or ()) or (frame,) * bool(frame)
    function = robot.function(name, frames, axes)
    if f_ext:
        arrays = (*arrays, np.stack(list(f_ext.values()), axis=-2))
    results = interpret(function.program, function.tree, *arrays)
    return results[0] if len(results) == 1 else results


def states(robot: Robot, size: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Random q, v, a, tau and wrenches."""
    rng = np.random.default_rng(seed)
    sizes = {"v": robot.nv, "a": robot.nv, "tau": robot.nv, "wrench0": 6, "wrench1": 6}
    return {
        "q": robot.random(rng, size),
        **{name: rng.standard_normal((size, n)) for name, n in sizes.items()},
    }


def one_state(robot: Robot) -> dict[str, np.ndarray]:
    """The same for one state, without a batch axis."""
    return {name: rows[0] for name, rows in states(robot, 1).items()}


def errors(
    robot: Robot, peer: Peer, size: int = 100, call: Callable = compiled, functions=FUNCTIONS
) -> Iterator[Deviation]:
    """The error of each function over `size` random states."""
    state, frames = states(robot, size), two_frames(robot)
    if not robot.bodies:
        # without moving bodies there is no center of mass
        functions = [row for row in functions if row.name != "center_of_mass"]
    allowed = np.maximum(1.0, EPS * condition(peer.mass_matrix(state["q"])) / TOLERANCE)
    for row in functions:
        options: dict[str, Any] = {"axes": row.axes} if row.axes else {}
        if row.where == "frame":
            options["frame"] = frames[0]
        if row.where == "load":
            options["f_ext"] = {frame: state[f"wrench{i}"] for i, frame in enumerate(frames)}
        inputs = [state[name] for name in row.inputs]
        raw = relative_error(
            _ours(robot, call, row.name, inputs, options), _theirs(peer, row.name, inputs, options)
        )
        yield Deviation(
            row.label,
            float((raw / allowed if row.solves else raw).max(initial=0.0)),
            float(raw.max(initial=0.0)),
        )


def condition(M: np.ndarray) -> np.ndarray:
    """The condition number of each mass matrix, scaled to a unit diagonal to remove units.

    >>> condition(np.diag([1e9, 1e-9])[None])
    array([1.])
    """
    if M.shape[-1] == 0:
        return np.ones(M.shape[:-2])
    scale = np.sqrt(np.einsum("...ii->...i", M))
    return np.linalg.cond(M / scale[..., :, None] / scale[..., None, :])


def two_frames(robot: Robot) -> list[str]:
    """A frame on the last body (or on the world), and one on the middle body."""
    last, middle = len(robot.bodies) - 1, (len(robot.bodies) - 1) // 2
    name_of = {frame.body: name for name, frame in robot.frames.items()}
    return [name_of[last], name_of[middle]] if last != middle else [name_of[last]]


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """max |ours - theirs| / max|theirs| of each state; inf where a result is NaN.

    >>> ours = np.array([[1.0, 2.0], [0.0, 0.0], [0.0, np.nan]])
    >>> relative_error(ours, np.array([[1.0, 4.0], [0.0, 0.0], [1.0, 1.0]]))
    array([0.5, 0. , inf])
    """
    axes = tuple(range(1, theirs.ndim))
    off, size = (
        np.abs(ours - theirs).max(axis=axes, initial=0.0),
        np.abs(theirs).max(axis=axes, initial=0.0),
    )
    ratio = np.divide(off, size, out=np.where(off > 0.0, np.inf, 0.0), where=size > 0.0)
    return np.nan_to_num(ratio, nan=np.inf)


def _ours(robot: Robot, call: Callable, name: str, inputs: list, options: dict) -> np.ndarray:
    result = call(robot, name, *inputs, **options)
    if name == "mass_matrix_factors":
        L, D = result
        return L @ D @ np.swapaxes(L, -1, -2)
    return result


def _theirs(peer: Peer, name: str, inputs: list, options: dict) -> np.ndarray:
    if name == "mass_matrix_factors":  # the factors are unique: compare their product
        name = "mass_matrix"
    return getattr(peer, name)(*inputs, **options)
