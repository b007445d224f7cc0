"""Methods of `Robot` for configurations, for arrays of any library: integrate, difference, ...

They are compiled, except for NumPy arrays if q is a vector space or the robot is large. `robot.py`
lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.validate import is_foreign, is_lazy, real_array
from psiphi.compiler.passes import is_large
from psiphi.functions import scalar_fast_path
from psiphi.functions.arrays.array_dispatch import dispatch, dt_beside, scalar_dt, widest_array
from psiphi.functions.arrays.dask_arrays import map_blocks
from psiphi.model.model import Model
from psiphi.robot.coordinate_functions import coordinate_function

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot

_ndarray = np.ndarray


def _duration(dt: Numbers) -> float:
    """dt as one number, for a call with arrays of another library."""
    return scalar_dt("integrate", real_array("integrate: dt", dt, (), "give a number"))


# torch.compile does not trace into it
_duration._dynamo_marked_constant = True  # type: ignore[attr-defined]


@cached_property
def fast_calls(robot: Robot) -> dict[str, Callable[..., Any]]:
    """(Internal use only) Functions of one state without NumPy's overhead, by name.

    The first call of each law adds its row. They return None for other arguments.
    """
    return {}


def integrate(robot: Robot, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> Array:
    """q moved along the constant velocity v for the time dt, on the configuration manifold.

    dt is a number, or one per batch element. With arrays of another library, dt is a number or
    an array () or (..., 1) of that library.
    """
    if type(q) is _ndarray and type(dt) is float:
        x = robot.fast_calls.get("integrate", scalar_fast_path.no_fast_path)(q, v, np.array((dt,)))
        if x is not None:
            return x
    if is_lazy(q) or is_lazy(v) or is_lazy(dt):
        law = lambda q, v, h: robot.integrate(q, v, h[..., 0])  # noqa: E731
        return _map_law(robot, "integrate", law, q, v, _column(dt))
    if not (is_foreign(q) or is_foreign(v) or is_foreign(dt)):
        return Model.integrate(robot, q, v, dt)
    h = dt_beside(widest_array(q, v, dt), dt, _duration)
    return dispatch(coordinate_function(robot, "integrate"), (q, v, h))


def difference(robot: Robot, q0: Numbers, q1: Numbers) -> Array:
    """The velocity v with integrate(q0, v) = q1."""
    return _call_law(robot, "difference", Model.difference, q0, q1)


def rate(robot: Robot, q: Numbers, v: Numbers) -> Array:
    """dq/dt = Omega(q) v, S0 (b.5). -> (..., nq)

    Equal to v except for quaternions and planar joints.
    """
    return _call_law(robot, "rate", Model.rate, q, v)


def velocity_of(robot: Robot, q: Numbers, q_dot: Numbers) -> Array:
    """v of dq/dt, S0 (b.3): the inverse of `rate`. -> (..., nv)

    The part of q_dot that changes the length of a quaternion is ignored.
    """
    return _call_law(robot, "velocity_of", Model.velocity_of, q, q_dot)


def normalize(robot: Robot, q: Numbers) -> Array:
    """q with its quaternions scaled to unit length."""
    return _call_law(robot, "normalize", Model.normalize, q)


def _call_law(robot: Robot, law: str, numpy_law: Callable[..., Array], *values: Numbers) -> Any:
    """Call a law: by the fast path, as compiled code for foreign arrays, or as `numpy_law`."""
    x = robot.fast_calls.get(law, scalar_fast_path.no_fast_path)(*values)
    if x is not None:
        return x
    if any(map(is_lazy, values)):
        return _map_law(robot, law, getattr(robot, law), *values)
    if any(map(is_foreign, values)):
        return dispatch(coordinate_function(robot, law), values)
    return numpy_law(robot, *values)


def _map_law(robot: Robot, law: str, call: Callable[..., Array], *values: Any) -> Any:
    """A law of Dask arrays, as a Dask array."""
    function = coordinate_function(robot, law)
    return map_blocks(law, call, function.inputs, function.outputs, values, None)


def _column(dt: Numbers) -> Any:
    """dt (...) as an array (..., 1); a Dask array stays lazy."""
    h: Any = dt
    if not is_lazy(dt):
        h = real_array("integrate: dt", dt, (), "give a number, or an array")
    return h[..., None]


def apply_law(
    robot: Robot, name: str, law: Callable[..., np.ndarray], *arrays: np.ndarray
) -> np.ndarray:
    """A law for checked NumPy arrays: compiled, unless q is a vector space."""
    if robot.manifold.is_flat:
        robot.fast_calls[name] = scalar_fast_path.vector_call([x.shape[-1:] for x in arrays], law)
    if robot.manifold.is_flat or is_large(robot):
        return law(*arrays)
    function = coordinate_function(robot, name)
    result = function.run(arrays)
    scalar_fast_path.install_fast_path(function, arrays)
    robot.fast_calls[name] = (
        scalar_fast_path.checked_call(robot.model, function.fast_path, 1)
        if name == "difference"
        else function.fast_path
    )
    return result
