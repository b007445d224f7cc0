"""`check=True`: look at the numbers before (`model/state_checks.py`) and after a call, and name joint and batch element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import SingularError
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.loops.cluster_joints import COMPOUND
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.state_checks import element, first


def after(robot: Any, name: str, source: Any, values: Sequence[Any], result: Any) -> None:
    """A finite state with an answer that is not: SingularError. Some D(k) vanishes, or numbers overflow."""
    for arg, array in zip(
        source.outputs, result if isinstance(result, tuple) else (result,), strict=True
    ):
        place = first(~np.isfinite(np.asarray(array)))
        if place is None:
            continue
        lead = np.shape(array)[: np.ndim(array) - len(arg.shape)]
        which = place[: len(lead)]
        one = [
            _one(value, core, lead, which)
            for core, value in zip(source.inputs, values, strict=True)
        ]
        cause, remedy = _singular(
            robot, one[0], *([one[-1]] if robot.freed is not None else [])
        ) or _overflow(source.inputs, one)
        raise SingularError(
            f"{name} is {np.asarray(array)[place]}{element(which)} of a finite state: {cause}",
            remedy,
        )


def _one(value: Any, arg: Argument, lead: tuple[int, ...], which: tuple[int, ...]) -> np.ndarray:
    """One batch element's share of an argument."""
    return np.broadcast_to(np.asarray(value, dtype=float), lead + arg.shape)[which]


def _singular(robot: Any, q: np.ndarray, *parameters: np.ndarray) -> tuple[str, str] | None:
    """The outermost joint whose D(k) is not positive definite: all joints beyond it are sound, and yet it resists nothing.

    The columns of all D(k) at once: x_i is the i-th unit vector in every joint.
    """
    for joint in (joint for joint in robot.units if joint.kind == COMPOUND):
        with np.errstate(all="ignore"):
            X = np.array(joint.laws.X(entries(q[joint.q_slice])), dtype=float)
        if not np.isfinite(X).all():
            cause = f"the loop of {joint.name} is singular there, its free coordinates do not decide the others"
            return cause, "leave this configuration, or pp.embed the loop with other joints free="
    x = np.zeros(
        (max([6, *(joint.v_slice.stop - joint.v_slice.start for joint in robot.units)]), robot.nv)
    )
    for joint in robot.units:
        own = range(
            joint.v_slice.start, joint.v_slice.stop
        )  # a unit: perhaps joints that move together
        x[range(len(own)), own] = 1.0
    with np.errstate(all="ignore"):
        _, columns = robot.function("factor_product").ufunc(q, x, *parameters)
    for joint in reversed(robot.units):
        D = columns[: joint.v_slice.stop - joint.v_slice.start, joint.v_slice]
        if not np.isfinite(D).all():
            return None
        smallest = np.linalg.eigvalsh(D)[0]
        if smallest <= 0.0:
            cause = f"nothing resists joint {joint.name!r} there, its articulated inertia D is {smallest:.3g}"
            return (
                cause,
                "leave this configuration, give the links beyond the joint mass, or the joint armature",
            )
    return None


def _overflow(inputs: Sequence[Argument], one: Sequence[np.ndarray]) -> tuple[str, str]:
    sizes = {
        arg.name: float(np.abs(value).max(initial=0.0))
        for arg, value in zip(inputs, one, strict=True)
    }
    name = max(sizes, key=sizes.__getitem__)
    return (
        f"it is too large for floating point ({name} is up to {sizes[name]:.3g})",
        "check units and magnitudes, use float64",
    )
