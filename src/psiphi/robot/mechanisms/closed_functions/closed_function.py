"""Forward dynamics and contact forces of a closed system as functions with derivatives.

`implicit_derivatives.py` has their derivatives, by the theorem of `implicit_theorem.py`.

>>> import numpy as np, psiphi as pp
>>> arm = pp.load("pelican")
>>> pinned = pp.connect(arm, [pp.Loop("distance", "tool", "world", length=0.3)])
>>> f, q = pinned.function("forward_dynamics"), pinned.assemble([0.5, 1.0])
>>> a, da = f.jvp("tau")(q, np.zeros(2), np.ones(2), [1.0, 0.0])
>>> bool(np.allclose(da, f.jacobian("tau")(q, np.zeros(2), np.ones(2))[:, 0]))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.robot.mechanisms.closed_functions import implicit_theorem
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall, read_argument
from psiphi.robot.mechanisms.closed_functions.closed_hessian import ClosedHessian, TapeDerivative
from psiphi.robot.mechanisms.closed_functions.implicit_derivatives import FIRST, SolvedBatch
from psiphi.robot.mechanisms.dynamics import closed_forward_dynamics
from psiphi.robot.mechanisms.solve import stage_program

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

ACCELERATIONS, FORCES = NAMES = ("forward_dynamics", "contact_forces")
CHANGES = ("dtau", "tau_dot")  # changes of torques, (..., nv) or (..., na)


class ClosedFunction(ClosedCall):
    """a(q, v, tau), or the contact forces, of a closed system.

    With `frames`, f_ext (..., frames, 6) is the last argument. Changes of q are tangent vectors;
    changes of tau have the size of tau (nv or na).
    """

    def __init__(
        self,
        system: System,
        name: str,
        frames: tuple[str, ...] = (),
        axes: str = "world",
        motors: bool = False,
    ):
        argument_checks.check_axes(axes)
        self.system, self.frames, self.axes, self.motors = system, frames, axes, motors
        self.is_forces = name == FORCES
        inputs = stage_program.dynamics_arguments(system.algebra, frames)
        if motors:
            inputs = tuple(
                replace(arg, shape=(system.na,), per_joint="") if arg.name == "tau" else arg
                for arg in inputs
            )
        shape = (len(system.contacts), 6) if self.is_forces else (system.nv,)
        super().__init__(name, inputs, (Argument("forces" if self.is_forces else "a", shape),))

    def __repr__(self) -> str:
        return (
            f"<{self.name} of {self.system.name!r}: {', '.join(arg.name for arg in self.inputs)}>"
        )

    def for_torque_shape(self, shape: tuple[int, ...]) -> ClosedFunction:
        motors = shape[-1:] == (self.system.na,) != (self.system.nv,)
        return (
            self
            if motors == self.motors
            else self.system.closed_function(self.name, self.frames, self.axes, motors)
        )

    def for_system(self, system: System) -> ClosedFunction:
        """The same function of a system with other parameters."""
        return ClosedFunction(system, self.name, self.frames, self.axes, self.motors)

    def evaluate_host(self, values: Sequence[Any]) -> list[np.ndarray]:
        return [self.solve(self.read(values, ())[0]).result]

    def run_on_gpu(self, values: Sequence[Any]) -> Any:
        return self.traced.run_on_gpu(values)

    @cached_property
    def traced(self) -> TapeDerivative:
        """The function on one tape."""
        return TapeDerivative(self, ())

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedHessian(self, names) if kind == "hessian" else FIRST[kind](self, names)

    def read(
        self, values: Sequence[Any], more: Sequence[Argument]
    ) -> tuple[tuple[np.ndarray, ...], list[np.ndarray]]:
        """The arguments, and those of `more` behind them, broadcast to one batch; torques and their
        changes as (..., nv)."""
        argument_checks.require_numpy(self.name, *values)
        arrays = list(self.system.state_arrays(q=values[0], v=values[1], tau=values[2]))
        args = [*stage_program.dynamics_arguments(self.system.algebra, self.frames), *more]
        for arg, value in list(zip(args, values, strict=True))[3:]:
            if arg.name in CHANGES:
                arrays += self.system.state_arrays(tau=value)
            else:
                arrays.append(read_argument(arg, value))
        shapes = [(self.system.nv,) if arg.name in CHANGES else arg.shape for arg in args]
        batches = {
            arg.name: x.shape[: x.ndim - len(shape)]
            for arg, x, shape in zip(args, arrays, shapes, strict=True)
        }
        batch = self.system.batch_axes(argument_checks.batch_axes(self.name, batches))
        whole = [
            np.broadcast_to(x, (*batch, *shape)) for x, shape in zip(arrays, shapes, strict=True)
        ]
        return tuple(whole[: len(self.inputs)]), whole[len(self.inputs) :]

    def solve(self, values: tuple[np.ndarray, ...]) -> SolvedBatch:
        """Forward dynamics of these arguments, as in `closed_forward_dynamics.py`."""
        loads = {name: values[3][..., i, :] for i, name in enumerate(self.frames)} or None
        q, v, tau = values[:3]
        details = closed_forward_dynamics.details(
            self.system, q, v, tau, loads, self.axes, None, False
        )
        result = details["forces"] if self.is_forces else details["a"]
        whole = (*values, details["a"], details["multipliers"])
        solvable = np.asarray(details["solvable"])
        return SolvedBatch(whole, result, np.asarray(details["unique"]) & solvable, solvable)


def constant_rank(system: System, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether the rank of the constraints is constant along motions (B, samples, n), and in a
    neighbourhood of their first states: (B,)."""
    ranks = implicit_theorem.ranks(system.with_sample_axis().constraint_jacobian(q))
    constant = (ranks == ranks[:, :1]).all(axis=-1)
    redundant = np.flatnonzero(constant & (ranks[:, 0] < system.nc))
    if len(redundant):
        rest = np.zeros((len(redundant), system.nv))
        some = system.at_elements((len(q),), redundant)
        gradients = ClosedFunction(some, ACCELERATIONS).vjp("q", "v")(
            q[redundant, 0], v[redundant, 0], rest, rest
        )[1:]
        constant[redundant] = np.isfinite(np.concatenate(gradients, axis=-1)).all(axis=-1)
    return constant
