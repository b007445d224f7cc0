"""A robot's torques by its inertial parameters: the door to `base_parameters.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import is_foreign
from psiphi.compiler.passes import Traceable
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import full, mathematics
from psiphi.functions.differentiable_function import DifferentiableFunction, ready
from psiphi.model.model import Model
from psiphi.robot.catalogue.torque_regressor import places
from psiphi.robot.editing_methods import EditingMethods
from psiphi.robot.identification import base_parameters as identification


class RegressorMethods(EditingMethods):
    """A robot that says what of its inertia its torques tell; `_call` runs a function of the catalogue."""

    _call: Any

    def regressor(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        more: str | Sequence[str] = (),
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """Y with tau = Y pi + rotors a, linear in the bodies' `inertial_parameters` pi. -> (..., nv, 10 bodies)

        pi = [m, m c, Ixx Ixy Ixz Iyy Iyz Izz] a body, about its link's origin in link axes. `more` adds nv columns each of
        "armature" (a on the diagonal), "damping" (v) and "friction" (sign v).

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("ur5")
        >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
        >>> Y = robot.regressor(q, v, a)
        >>> Y.shape, bool(np.allclose(Y @ robot.inertial_parameters, robot.inverse_dynamics(q, v, a)))
        ((6, 60), True)
        """
        words = identification.checked_words(more)
        if words and out is not None:
            raise StateError("regressor: out came with more columns", "leave one of them out")
        Y = self._call("regressor", dict(q=q, v=v, a=a), out, dtype, check)
        if not words:
            return Y
        if not is_foreign(Y):
            v, a = np.asarray(v, dtype=Y.dtype), np.asarray(a, dtype=Y.dtype)
        m, shape = mathematics(Y), (*Y.shape[:-1], self.nv)
        return m.concatenate(
            [Y, *(m.broadcast_to(x, shape) for x in identification.more_columns(words, v, a))], -1
        )

    def regressor_blocks(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """What of `regressor` is not zero for every motion: rows of ten, one a coordinate and a body that it carries, at
        `regressor_places`. -> (..., blocks, 10)

        Of a robot with limbs most of Y is zeros: of a G1 two thirds.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("ur5")
        >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
        >>> blocks, (rows, bodies) = robot.regressor_blocks(q, v, a), robot.regressor_places.T
        >>> Y = np.zeros((6, 6, 10))
        >>> Y[rows, bodies] = blocks
        >>> blocks.shape, bool(np.array_equal(Y.reshape(6, 60), robot.regressor(q, v, a)))
        ((21, 10), True)
        """
        return self._call("regressor_blocks", dict(q=q, v=v, a=a), out, dtype, check)

    @cached_property
    def regressor_places(self) -> np.ndarray:
        """Where `regressor_blocks` stand in Y, (blocks, 2): the coordinate, and the body whose ten columns they are."""
        found = np.array(places(self), dtype=int).reshape(-1, 2)
        found.flags.writeable = False
        return found

    def wrench_regressor(self, q: Numbers, v: Numbers, a: Numbers, link: str) -> Array:
        """W with W pi = the spatial force [moment; force] through the joint that carries `link`, as `joint_forces` gives it, at
        the link's origin in link axes. -> (..., 6, 10 bodies)

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("ur5")
        >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
        >>> W = robot.wrench_regressor(q, v, a, "wrist_1_link")
        >>> bool(np.allclose(W @ robot.inertial_parameters, robot.joint_forces(q, v, a)[3]))
        True
        """
        known = [body.name for body in self.bodies]
        if not isinstance(link, str) or link not in known:
            raise StateError(
                f"wrench_regressor: {shown(link)} is no moving link", nearest(link, known)
            )
        if not any(map(is_foreign, (q, v, a))):
            return self._by_units("joint_forces", dict(q=q, v=v, a=a))[..., known.index(link), :, :]
        light = self._with_free_inertia
        function = force_through(light, link, known.index(link))
        like = next(x for x in (q, v, a) if is_foreign(x))
        return function.jacobian("parameters")(q, v, a, full(like, light.freed.size, 0.0))

    def energy_regressor(self, q: Numbers, v: Numbers) -> Array:
        """e with e . pi = kinetic and potential energy, but for the rotors'. -> (..., 10 bodies)

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("ur5")
        >>> q, v = robot.random(seed=0), np.ones(6)
        >>> bool(np.isclose(robot.energy_regressor(q, v) @ robot.inertial_parameters, robot.energy(q, v)))
        True
        """
        return self._by_units("energy", dict(q=q, v=v))

    def excitation(
        self, q: Numbers, v: Numbers, a: Numbers, *, more: str | Sequence[str] = ()
    ) -> float:
        """How well motions (..., n) tell the base parameters apart: the condition number of their columns of Y, each scaled to
        length one. 1 is best; above some hundreds noise decides; infinite where a combination is not told at all. Of arrays of
        other libraries, an array of theirs with this one number.

        >>> import numpy as np, psiphi as pp
        >>> robot, rng = pp.load("acrobot"), np.random.default_rng(0)
        >>> q, v, a = rng.standard_normal((3, 100, 2))
        >>> round(robot.excitation(q, v, a), 1), robot.excitation(q, 0 * v, 0 * a)  # at rest no inertia is told
        (2.0, inf)
        """
        base = self.base_parameters(more=more)
        Y = self.regressor(q, v, a, more=more)[..., base.columns].reshape((-1, base.rank))
        if Y.shape[0] < base.rank:
            return full(Y, 1, np.inf)[0] if is_foreign(Y) else np.inf
        m, size = mathematics(Y), (Y * Y).sum(0) ** 0.5
        told = (
            m.isfinite(Y).all() & (size > 0.0).all()
        )  # an unbounded number, or a column of zeros: no combination is
        scaled = m.where(told, Y / m.where(size > 0.0, size, 1.0), 0.0)
        w = m.linalg.svd(m.linalg.qr(scaled)[1])[1]
        found = m.where(w[-1] > 0.0, w[0] / m.where(w[-1] > 0.0, w[-1], 1.0), np.inf)
        return found if is_foreign(Y) else float(found)

    def _by_units(self, name: str, state: dict[str, Any]) -> Array:
        """What is linear in all inertias, of each of their numbers alone: one axis more, the last."""
        light = self._with_free_inertia
        outputs, foreign = (
            light.function(name).source.outputs,
            [x for x in state.values() if is_foreign(x)],
        )
        if foreign and not outputs[0].shape:  # linear: its derivative, in one kernel
            return light.function(name).jacobian("parameters")(
                *state.values(), full(foreign[0], light.freed.size, 0.0)
            )
        inputs = light.function(name).source.inputs[:-1]
        arrays = {
            arg.name: np.asarray(x)[..., None, :]
            for arg, x in zip(
                inputs, argument_checks.plain(self, name, inputs, state.values()), strict=True
            )
        }
        argument_checks.check_upright(light._model, name, arrays["q"][..., 0, :])
        found = light._call(
            name, arrays | {"parameters": np.eye(light.freed.size)}, None, None, False
        )
        rest = light._call(
            name, arrays | {"parameters": np.zeros(light.freed.size)}, None, None, False
        )
        return np.moveaxis(
            found - rest, -1 - len(outputs[0].shape), -1
        )  # rotors have inertia of their own

    @cached_property
    def _with_free_inertia(self) -> Any:
        return self.free("inertia")  # type: ignore[attr-defined]

    @cached_property
    def inertial_parameters(self) -> Array:
        """pi of `regressor`, (10 bodies,): mass, first moment and inertia about the link's origin, of every body."""
        return identification.parameters(self)

    def base_parameters(self, *, more: str | Sequence[str] = ()) -> identification.BaseParameters:
        """The combinations of `inertial_parameters` that torques can tell, with names; `more` as in `regressor`.

        >>> import psiphi as pp
        >>> base = pp.load("acrobot").base_parameters()
        >>> base.rank, base.combinations[1]
        (6, 'upper.mz - lower.m')
        """
        return identification.base_parameters(self, more)


@dataclass(frozen=True, eq=False)
class LinkForce(Traceable):
    """[moment; force] through the joint that carries a body, by its number: six results of those of a robot's function."""

    of: DifferentiableFunction
    number: int

    @property
    def model(self) -> Model:
        return self.of.source.model

    @property
    def equation(self) -> str:
        return f"f({self.number}), f = phi (M alpha + b)"

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        return self.of.source.inputs, (Argument("f", (6,)),)

    def ready(self) -> StraightCode:
        code, start = self.of.source.code, 6 * self.number
        assert isinstance(code, StraightCode)
        stores = tuple((0, i - start, node) for _, i, node in code.stores if start <= i < start + 6)
        return StraightCode(Program("link_force", *self.arguments(), ()), code.tape, stores)


def force_through(robot: Any, link: str, number: int) -> DifferentiableFunction:
    """It of a robot, by the name of the link and its number."""
    made = partial(LinkForce, robot.function("joint_forces"), number)
    return ready(robot._functions, f"force through {link}", made)
