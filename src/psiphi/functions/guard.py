"""What the doors do with arguments that do not fit: find the words, name the joint, stack the wrenches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.errors import Error, SingularError, StateError
from psiphi.model.model import Joint, Model
from psiphi.sweeps.program import Argument


def in_words(model: Model, name: str, arguments: Sequence[Argument], state: dict[str, Any], error: Exception) -> Exception:
    """The StateError behind NumPy's complaint; Errors of psiphi pass as they are."""
    if isinstance(error, Error):
        return error
    for arg in arguments:
        fault = _fault(arg, state[arg.name])
        if fault:
            what = f"robot.{'nq' if arg.name == 'q' else 'nv'} = " if len(arg.shape) == 1 and arg.per_joint else ""
            return StateError(
                f"{name}: {arg.name} {fault}", f"give {arg.name} {what}{_shape(arg.shape)} numbers in its last axes"
            )
    shapes = ", ".join(f"{x} {np.shape(value)}" for x, value in state.items())
    if "broadcast" in str(error):
        return StateError(f"{name}: the batch axes of {shapes} do not fit together", "make the leading axes equal or 1")
    return StateError(f"{name}: {error} ({shapes})", "check shapes and dtypes")


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _fault(arg: Argument, value: Any) -> str:
    """What is wrong with one argument, or ''."""
    try:
        array = np.asarray(value)
    except ValueError:
        return "is ragged: its rows have different lengths"
    if array.dtype.kind not in "fiub":
        return f"is of dtype {array.dtype}, expected real numbers"
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return f"is of dtype {array.dtype}, expected float64 or float32"
    core = array.shape[max(0, array.ndim - len(arg.shape)) :]
    if core != arg.shape:
        return f"has shape {array.shape}, expected (..., {', '.join(map(str, arg.shape))})"
    return ""


def mapping(f_ext) -> Mapping:
    """f_ext as given, when it is {frame name: wrench}."""
    if isinstance(f_ext, Mapping):
        return f_ext
    raise StateError(f"f_ext is a {type(f_ext).__name__}, expected {{frame name: wrench (..., 6)}}", "give a dict")


def stack_wrenches(f_ext: Mapping) -> np.ndarray:
    """(..., frames, 6) from {frame: (..., 6)}."""
    wrenches = []
    for frame, wrench in f_ext.items():
        fault = _fault(Argument("f_ext", (6,)), wrench)
        if fault:
            raise StateError(f"f_ext[{frame!r}] {fault}", "give [moment; force], six numbers in the last axis")
        wrenches.append(np.asarray(wrench))
    try:
        return np.stack(np.broadcast_arrays(*wrenches), axis=-2)
    except ValueError as error:
        shapes = ", ".join(str(w.shape) for w in wrenches)
        raise StateError(f"the batch axes of the wrenches {shapes} do not fit together", "make them equal or 1") from error


def check_state(model: Model, state: dict[str, Any]) -> None:
    """Finite numbers, unit quaternions; else a StateError that names joint and batch element."""
    for name, value in state.items():
        array = np.asarray(value)
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        joint = "" if name == "f_ext" else f" (joint {_joint_at(model, name, place[-1]).name!r})"
        raise StateError(f"{name}{list(place)} is {array[place]}{joint}, expected finite numbers", "look at where it came from")
    if "q" in state:
        _check_quaternions(model, np.asarray(state["q"], dtype=float))


def _check_quaternions(model: Model, q: np.ndarray) -> None:
    for joint in model.joints:
        if joint.row.nq == joint.row.nv:
            continue
        norm = np.linalg.norm(q[..., joint.q_slice][..., -4:], axis=-1)
        bad = np.argwhere(np.abs(norm - 1.0) > 1e-6)
        if bad.size or (norm.ndim == 0 and abs(norm - 1.0) > 1e-6):
            where = tuple(int(i) for i in bad[0]) if norm.ndim else ()
            raise StateError(
                f"the quaternion of joint {joint.name!r} has norm {float(norm[where]):.9g}, expected 1",
                "use robot.normalize(q)",
            )


def check_result(model: Model, name: str, result: Any) -> None:
    """A finite state with a non-finite answer: some D(k) vanishes, or numbers overflow."""
    for array in result if isinstance(result, tuple) else (result,):
        if np.isfinite(array).all():
            continue
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise SingularError(
            f"{name} is {array[place]} at {list(place)} though the state is finite", "check masses and magnitudes"
        )


def _joint_at(model: Model, name: str, index: int) -> Joint:
    for joint in model.joints:
        own = joint.q_slice if name == "q" else joint.v_slice
        if own.start <= index < own.stop:
            return joint
    raise StateError(f"{name} has no coordinate {index}")


def columns(robot: Any, operator: str, name: str, q: Any, out: Any, dtype: Any, check: Any):
    """A matrix of a large robot: its O(N) operator on the columns of the identity."""
    q = np.asarray(q)
    eye = np.eye(robot.nv, dtype=np.float32 if q.dtype == np.float32 else float)
    batch = q[..., None, :]
    if operator != "factor_product":
        result = robot._call(operator, {"q": batch, "a" if operator == "mass_product" else "tau": eye}, None, dtype, check)
        return _into(out, np.swapaxes(result, -1, -2))
    L, D = robot._call(operator, {"q": batch, "x": eye}, None, dtype, check)
    given = out if isinstance(out, tuple) else (None, None)
    return _into(given[0], np.swapaxes(L, -1, -2)), _into(given[1], np.swapaxes(D, -1, -2))


def _into(out: Any, result: np.ndarray) -> np.ndarray:
    if out is None:
        return result
    np.copyto(out, result)
    return out
