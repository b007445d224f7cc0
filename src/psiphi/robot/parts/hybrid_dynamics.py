"""Hybrid dynamics: some joints follow given accelerations, torques drive the others.

Joints are held (h), which follow given accelerations, or free (f), which torques drive:

    M_ff a_f = tau_f - (C v + g - J* f_ext)_f - M_fh a_h
    tau_h = (M a + C v + g - J* f_ext)_h

A held joint is one with a rigid rotor, X -> infinity, and the torque X a_h: then D^-1 and the gain
G of the joint are zero in (M + X)^-1, and its acceleration is a_h. In floating-point numbers 1e30
is as good as infinity, since all other inertias are below its rounding. So the joints that are held
are data, and one compiled function serves them all, in O(N).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, Numbers, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import is_foreign, is_list, matching_names, read_array
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import array_module, convert_like, widest_array
from psiphi.model.motors import velocity_indices

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot

RIGID_INERTIA = 1e30  # an added inertia beside which all others are below rounding
HELD_REMEDY = 'give names of joints, such as "wheel_*", or nv booleans'


def hybrid_dynamics(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    a: Numbers,
    held: str | Iterable[str] | Numbers,
    *,
    f_ext: Wrenches | None = None,
    axes: str = "world",
    check: bool = False,
) -> tuple[Array, Array]:
    """(a, tau), both complete: `held` joints follow the accelerations a, the others the torques
    tau. M a + C v + g - J* f_ext = tau. -> two (..., nv)

    `held` are names or patterns, or booleans (..., nv), which may differ between the elements of a
    batch. Entries of a at free coordinates and of tau at held ones are ignored. The returned tau is
    what holds the held joints on their motion: of a free base, the wrench that carries it.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5", base="free")
    >>> q, rest = robot.neutral(), np.zeros(robot.nv)
    >>> up = np.eye(robot.nv)[5]  # the base accelerates upwards
    >>> a, tau = robot.hybrid_dynamics(q, rest, rest, up, held=robot.joint_names[:1])
    >>> bool((a[:6] == up[:6]).all()), bool(abs(tau[6:]).max() < 1e-9)
    (True, True)
    """
    mask = _read_held(robot, held)
    loads = {} if f_ext is None else argument_checks.check_wrench_mapping(f_ext)
    given: list[Any] = [q, v, tau, a, *loads.values(), *robot.parameter_arguments]
    where: Any
    if any(map(is_foreign, given)):
        like = widest_array(*given)
        where, rigid = array_module(like).where, convert_like(like, RIGID_INERTIA * mask)
        tau, a = (x if is_foreign(x) else convert_like(like, np.asarray(x)) for x in (tau, a))
    else:
        vectors = (Argument(name, (robot.nv,), "v") for name in ("v", "tau", "a"))
        arguments = (Argument("q", (robot.nq,), "q"), *vectors)
        given = list(
            argument_checks.plain_arrays(robot, "hybrid_dynamics", arguments, (q, v, tau, a))
        )
        q, v, tau, a = given
        where, kind = np.where, np.result_type(np.float32, *(x.dtype for x in given))
        rigid = (RIGID_INERTIA * mask).astype(kind)
    drive: Any = tau
    given_a: Any = a
    is_held = rigid > 0.0
    driving = where(is_held, RIGID_INERTIA * given_a, drive)
    if loads:
        driving = driving + where(is_held, 0.0, _wrench_torques(robot, q, loads, axes))
    state = {"q": q, "v": v, "tau": driving, "added": rigid}
    found: Any = robot.call_quantity("added_inertia_dynamics", state, None, None, check)
    found = where(is_held, given_a, found)
    torques = robot.inverse_dynamics(q, v, found, f_ext=f_ext, axes=axes, check=check)
    return found, where(is_held, torques, drive)


def _wrench_torques(robot: Robot, q: Numbers, f_ext: Wrenches, axes: str) -> Any:
    """J* f_ext."""
    argument_checks.check_axes(axes)
    names = argument_checks.frame_names(robot, list(f_ext))
    state = {"q": q, "f_ext": argument_checks.stack_wrenches(f_ext)}
    return robot.call_quantity("wrench_torques", state, None, None, False, names, axes)


def _read_held(robot: Robot, held: Any) -> np.ndarray:
    """1.0 at held coordinates, else 0.0, (..., nv)."""
    if isinstance(held, np.ndarray) or (is_list(held) and not _are_names(held)):
        array, fault = read_array(held, (robot.nv,))
        if fault or not np.isin(array, (0.0, 1.0)).all():
            raise StateError(f"hybrid_dynamics: held is {shown(held)}", HELD_REMEDY)
        return array.astype(float)
    mask = np.zeros(robot.nv)
    names = matching_names("joints", held, robot.joint_names, robot.name)
    mask[velocity_indices(robot, names)] = 1.0
    return mask


def _are_names(held: Iterable[Any]) -> bool:
    return all(isinstance(x, str) for x in held)
