"""Methods of `Robot` for regressors: torques, wrenches and energy as linear functions of its
parameters. `robot.py` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import is_foreign
from psiphi.compiler.equations import Arguments
from psiphi.compiler.passes import RuleRequest
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import (
    array_module,
    beside,
    constants_beside,
    full_like,
)
from psiphi.functions.differentiable_function import DifferentiableFunction, traced_function
from psiphi.robot.catalogue.torque_regressor import block_places
from psiphi.robot.identification import base_parameters as base

if TYPE_CHECKING:
    from psiphi.robot.free_robot import FreeRobot
    from psiphi.robot.robot import Robot


def regressor(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    *,
    more: str | Sequence[str] = (),
    out: Out = None,
    dtype: DType = None,
    check: bool = False,
) -> Array:
    """Y with tau = Y pi + rotors a, pi the `inertial_parameters`. -> (..., nv, 10 bodies)

    pi = [m, m c, Ixx Ixy Ixz Iyy Iyz Izz] per body, about the origin of its link in link axes.
    `more` adds nv columns each for "armature" (a on the diagonal), "damping" (v) and "friction"
    (sign v).

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
    >>> Y, tau = robot.regressor(q, v, a), robot.inverse_dynamics(q, v, a)
    >>> Y.shape, bool(np.allclose(Y @ robot.inertial_parameters, tau))
    ((6, 60), True)
    """
    groups = base.check_groups(more)
    if groups and out is not None:
        raise StateError("regressor: out and more are both given", "leave one of them out")
    Y = robot.call_quantity("regressor", dict(q=q, v=v, a=a), out, dtype, check)
    if not groups:
        return Y
    m, shape = array_module(Y), (*Y.shape[:-1], robot.nv)
    diagonals = base.diagonal_columns(groups, beside(Y, v), beside(Y, a))
    columns = (m.broadcast_to(x, shape) for x in diagonals)
    return m.concatenate([Y, *columns], -1)


def regressor_blocks(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    *,
    out: Out = None,
    dtype: DType = None,
    check: bool = False,
) -> Array:
    """The blocks of `regressor` that can be nonzero, at `regressor_places`. -> (..., blocks, 10)

    A block has ten columns, for a coordinate and a body that it moves. For a robot with limbs
    most of Y is zero, two thirds for the G1.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
    >>> blocks, (rows, bodies) = robot.regressor_blocks(q, v, a), robot.regressor_places.T
    >>> Y = np.zeros((6, 6, 10))
    >>> Y[rows, bodies] = blocks
    >>> blocks.shape, bool(np.array_equal(Y.reshape(6, 60), robot.regressor(q, v, a)))
    ((21, 10), True)
    """
    return robot.call_quantity("regressor_blocks", dict(q=q, v=v, a=a), out, dtype, check)


@cached_property
def regressor_places(robot: Robot) -> np.ndarray:
    """(coordinate, body) of each block of `regressor_blocks`, (blocks, 2)."""
    places = np.array(block_places(robot), dtype=int).reshape(-1, 2)
    places.flags.writeable = False
    return places


def wrench_regressor(robot: Robot, q: Numbers, v: Numbers, a: Numbers, link: str) -> Array:
    """W with W pi = the force through the joint that carries `link`. -> (..., 6, 10 bodies)

    The force is that of `joint_forces`: [moment; force] at the link's origin in link axes.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
    >>> W = robot.wrench_regressor(q, v, a, "wrist_1_link")
    >>> bool(np.allclose(W @ robot.inertial_parameters, robot.joint_forces(q, v, a)[3]))
    True
    """
    known = [body.name for body in robot.bodies]
    if not isinstance(link, str) or link not in known:
        raise StateError(
            f"wrench_regressor: {shown(link)} is not a moving link", nearest(link, known)
        )
    number = known.index(link)
    if not any(map(is_foreign, (q, v, a))):
        return _by_parameter(robot, "joint_forces", dict(q=q, v=v, a=a))[..., number, :, :]
    with_inertia = robot.with_free_inertia
    zeros = constants_beside((q, v, a), len(with_inertia.parameter_names))
    return link_force_function(with_inertia, link, number).jacobian("parameters")(q, v, a, zeros)


def energy_regressor(robot: Robot, q: Numbers, v: Numbers) -> Array:
    """e with e . pi = kinetic plus potential energy, without rotors. -> (..., 10 bodies)

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> q, v = robot.random(seed=0), np.ones(6)
    >>> e, pi = robot.energy_regressor(q, v), robot.inertial_parameters
    >>> bool(np.isclose(e @ pi, robot.energy(q, v)))
    True
    """
    return _by_parameter(robot, "energy", dict(q=q, v=v))


def excitation(
    robot: Robot, q: Numbers, v: Numbers, a: Numbers, *, more: str | Sequence[str] = ()
) -> float:
    """The condition number of the base parameters' columns of Y, scaled to length one.

    It measures how well motions (..., n) determine the base parameters: 1 is best, above a few
    hundred noise dominates, infinite means that a combination is not determined. For arrays of
    another library the result is an array of that library.

    >>> import numpy as np, psiphi as pp
    >>> robot, rng = pp.load("acrobot"), np.random.default_rng(0)
    >>> q, v, a = rng.standard_normal((3, 100, 2))
    >>> at_rest = robot.excitation(q, 0 * v, 0 * a)  # does not determine inertia
    >>> round(robot.excitation(q, v, a), 1), at_rest
    (2.0, inf)
    """
    known = robot.base_parameters(more=more)
    Y = robot.regressor(q, v, a, more=more)[..., known.columns].reshape((-1, known.rank))
    if Y.shape[0] < known.rank:
        return full_like(Y, 1, np.inf)[0] if is_foreign(Y) else np.inf
    m, size = array_module(Y), (Y * Y).sum(0) ** 0.5
    # without finite numbers, or with a column of zeros, the result is infinite
    regular = m.isfinite(Y).all() & (size > 0.0).all()
    scaled = m.where(regular, Y / m.where(size > 0.0, size, 1.0), 0.0)
    w = m.linalg.svd(m.linalg.qr(scaled)[1])[1]
    condition = m.where(w[-1] > 0.0, w[0] / m.where(w[-1] > 0.0, w[-1], 1.0), np.inf)
    return condition if is_foreign(Y) else float(condition)


def _by_parameter(robot: Robot, name: str, state: dict[str, Any]) -> Array:
    """A quantity that is linear in pi, for each unit vector pi: a new last axis (10 bodies,)."""
    with_inertia, values = robot.with_free_inertia, tuple(state.values())
    function, count = with_inertia.unbound_function(name), len(with_inertia.parameter_names)
    inputs, outputs = function.source.inputs[:-1], function.source.outputs
    zeros = constants_beside(values, count)
    if any(map(is_foreign, values)):  # it is linear: its Jacobian, in one kernel
        return function.jacobian("parameters")(*values, zeros)
    arrays = argument_checks.plain_arrays(robot, name, inputs, values)
    rows: dict[str, Any] = {
        arg.name: x[..., None, :] for arg, x in zip(inputs, arrays, strict=True)
    }
    argument_checks.check_single_configuration(with_inertia.model, name, rows["q"][..., 0, :])
    units = rows | {"parameters": np.eye(count, dtype=zeros.dtype)}
    # subtract the share of the rotors, which have inertia of their own
    values = with_inertia.call_quantity(name, units, None, None, False)
    values = values - with_inertia.call_quantity(
        name, rows | {"parameters": zeros[None]}, None, None, False
    )
    return np.moveaxis(values, -1 - len(outputs[0].shape), -1)


@cached_property
def with_free_inertia(robot: Robot) -> FreeRobot:
    """(Internal use only) The robot with free masses, first moments and inertias."""
    return robot.free("inertia")


@cached_property
def inertial_parameters(robot: Robot) -> Array:
    """pi of `regressor`, (10 bodies,): mass, first moment and inertia of every body."""
    return base.model_parameters(robot)


def base_parameters(robot: Robot, *, more: str | Sequence[str] = ()) -> base.BaseParameters:
    """The combinations of `inertial_parameters` that torques depend on, with names.

    `more` is that of `regressor`.

    >>> import psiphi as pp
    >>> base = pp.load("acrobot").base_parameters()
    >>> base.rank, base.combinations[1]
    (6, 'upper.mz - lower.m')
    """
    return base.base_parameters(robot, more)


def _link_force(of: DifferentiableFunction, number: int) -> RuleRequest:
    """[moment; force] through the joint of one body: six of the results of `joint_forces`."""
    equation, outputs = f"f({number}), f = phi (M alpha + b)", (Argument("f", (6,)),)
    rule = partial(_trace_link_force, of, number)
    return RuleRequest(of.source.model, equation, of.source.inputs, outputs, rule)


def _trace_link_force(
    of: DifferentiableFunction, number: int, inputs: Arguments, outputs: Arguments
) -> StraightCode:
    code, start = of.source.code, 6 * number
    assert isinstance(code, StraightCode)
    stores = tuple((0, i - start, node) for _, i, node in code.stores if start <= i < start + 6)
    return StraightCode(Program("link_force", inputs, outputs, ()), code.tape, stores)


def link_force_function(robot: FreeRobot, link: str, number: int) -> DifferentiableFunction:
    """The compiled force through the joint of a link: its name, and the number of its body."""
    make = partial(_link_force, robot.unbound_function("joint_forces"), number)
    return traced_function(robot.function_cache, f"force through {link}", make)
