"""`check=True`: the checks of results after a call; `model/state_checks.py` has those before it.

Errors name the joint and the batch element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import SingularError
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.argument_checks import HasArguments
from psiphi.model.loops.cluster_joints import COMPOUND
from psiphi.model.parameters.free_parameters import FreeParameters
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.state_checks import batch_element, first_true


class CheckedRobot(Protocol):
    """The parts of a `Robot` that the checks need."""

    @property
    def freed(self) -> FreeParameters | None: ...

    units: Any  # cached properties of a `Robot`
    nv: Any

    def unbound_function(self, name: str) -> Any: ...


def check_results(
    robot: CheckedRobot,
    name: str,
    source: HasArguments,
    values: Sequence[Any],
    result: np.ndarray | tuple[np.ndarray, ...],
) -> None:
    """Raise a SingularError if a result of a finite state is not finite: some D(k) is singular, or
    numbers overflow."""
    for arg, array in zip(
        source.outputs, result if isinstance(result, tuple) else (result,), strict=True
    ):
        place = first_true(~np.isfinite(np.asarray(array)))
        if place is None:
            continue
        lead = np.shape(array)[: np.ndim(array) - len(arg.shape)]
        which = place[: len(lead)]
        arguments = [
            _batch_element(value, core, lead, which)
            for core, value in zip(source.inputs, values, strict=True)
        ]
        cause, remedy = _singular_joint(
            robot, arguments[0], *([arguments[-1]] if robot.freed is not None else [])
        ) or _overflow(source.inputs, arguments)
        raise SingularError(
            f"{name} is {np.asarray(array)[place]}{batch_element(which)} of a finite state: "
            f"{cause}",
            remedy,
        )


def _batch_element(
    value: AnyArray, arg: Argument, lead: tuple[int, ...], which: tuple[int, ...]
) -> np.ndarray:
    """The argument of one batch element."""
    return np.broadcast_to(np.asarray(value, dtype=float), lead + arg.shape)[which]


def _singular_joint(
    robot: CheckedRobot, q: np.ndarray, *parameters: np.ndarray
) -> tuple[str, str] | None:
    """Cause and remedy for the outermost joint whose D(k) is not positive definite; None if there
    is none.

    All D(k) are computed at once, column by column: x_i is the i-th unit vector in every joint.
    """
    for joint in (joint for joint in robot.units if joint.kind == COMPOUND):
        with np.errstate(all="ignore"):
            X = np.array(joint.kinematics.X(entries(q[joint.q_slice])), dtype=float)
        if not np.isfinite(X).all():
            return (
                f"the loop of {joint.name} is singular there: its free coordinates do not "
                "determine the others",
                "leave this configuration, or pp.embed the loop with other joints free=",
            )
    x = np.zeros(
        (max([6, *(joint.v_slice.stop - joint.v_slice.start for joint in robot.units)]), robot.nv)
    )
    for joint in robot.units:  # joints, or clusters of joints that move together
        columns = range(joint.v_slice.start, joint.v_slice.stop)
        x[range(len(columns)), columns] = 1.0
    with np.errstate(all="ignore"):
        _, columns = robot.unbound_function("factor_product").run((q, x, *parameters))
    for joint in reversed(robot.units):
        D = columns[: joint.v_slice.stop - joint.v_slice.start, joint.v_slice]
        if not np.isfinite(D).all():
            return None
        smallest = np.linalg.eigvalsh(D)[0]
        if smallest <= 0.0:
            return (
                f"joint {joint.name!r} has no inertia there: its articulated inertia D is "
                f"{smallest:.3g}",
                "leave this configuration, or add mass to the links beyond the joint, or armature "
                "to the joint",
            )
    return None


def _overflow(inputs: Sequence[Argument], values: Sequence[np.ndarray]) -> tuple[str, str]:
    """Cause and remedy for numbers that overflow."""
    sizes = {
        arg.name: float(np.abs(value).max(initial=0.0))
        for arg, value in zip(inputs, values, strict=True)
    }
    name = max(sizes, key=sizes.__getitem__)
    return (
        f"it is too large for floating point ({name} is up to {sizes[name]:.3g})",
        "check units and magnitudes, use float64",
    )
