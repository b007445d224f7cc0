"""The arguments of one step: method, dt, state and batch axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, one_of, read_array
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions.arrays.array_dispatch import scalar_dt
from psiphi.model.model import Model
from psiphi.model.state_checks import check_column_order
from psiphi.simulation.integration.integrators import METHODS

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


def check_method(method: object, of: str = "step") -> str:
    """`method`, checked to be one that takes steps of dt."""
    return one_of(f"{of}: method", method, METHODS)


def one_dt(dt: Numbers, of: str = "step") -> float:
    """dt as one float, where other arguments are arrays of another library."""
    return scalar_dt(of, read_dt(dt, of))


# torch.compile evaluates it while it traces
one_dt._dynamo_marked_constant = True  # type: ignore[attr-defined]


def read_state(
    of: str, model: Model, q: Numbers, v: Numbers, tau: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and tau as arrays of float64, or float32 if they are."""
    arrays: list[np.ndarray] = []
    for name, value, size in (("q", q, model.nq), ("v", v, model.nv), ("tau", tau, model.nv)):
        array, fault = read_array(value, (size,))
        if fault:
            raise StateError(
                f"{of}: {name} {fault}", f"give {size} numbers, with any batch axes in front"
            )
        check_column_order(model, f"{of}: {name}", value, "q" if name == "q" else "v")
        arrays.append(array if array.dtype == FLOAT32 else array.astype(float, copy=False))
    return arrays[0], arrays[1], arrays[2]


def check_batch(
    of: str,
    state: Sequence[np.ndarray],
    h: np.ndarray | None,
    parameters: Sequence[np.ndarray],
) -> tuple[int, ...]:
    """The batch axes of q, v, tau, dt and the free parameters of the robot, broadcast."""
    leads = {
        name: x.shape[:-1]
        for name, x in zip(("q", "v", "tau", PARAMETERS), (*state, *parameters), strict=False)
    }
    return batch_axes(of, leads if h is None else leads | {"dt": h.shape})


def read_dt(dt: Numbers, of: str = "step") -> np.ndarray:
    """dt as an array, with finite positive numbers."""
    h, fault = read_array(dt, ())
    if fault:
        raise StateError(f"{of}: dt {fault}", "give seconds, 1e-3 for instance")
    is_boolean, h = h.dtype == bool, h.astype(float)
    if is_boolean or not ((h > 0.0) & (h < np.inf)).all():
        raise StateError(
            f"{of}: dt is {shown(dt)}, expected finite numbers above 0",
            "give seconds, 1e-3 for instance",
        )
    return h
