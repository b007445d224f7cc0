"""What a closed system computes, as a function with derivatives: `implicit_derivatives.py`, by the theorem of `implicit_theorem.py`.

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
from typing import Any

import numpy as np

from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.robot.mechanisms.closed_functions import implicit_theorem
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall, shaped
from psiphi.robot.mechanisms.closed_functions.closed_hessian import ClosedHessian, TapeDerivative
from psiphi.robot.mechanisms.closed_functions.implicit_derivatives import FIRST, SolvedBatch
from psiphi.robot.mechanisms.dynamics import closed_forward_dynamics
from psiphi.robot.mechanisms.solve import stage_program

ACCELERATIONS, FORCES = NAMES = ("forward_dynamics", "contact_forces")
CHANGES = ("dtau", "tau_dot")  # of torques, which may be those of motors


class ClosedFunction(ClosedCall):
    """a(q, v, tau), or the contact forces, of a closed system; with `frames`, f_ext (..., frames, 6) is the last argument.

    Changes of q are tangent vectors; those of tau have as many numbers as tau came with (nv, or na)."""

    def __init__(
        self,
        system: Any,
        name: str,
        frames: tuple[str, ...] = (),
        axes: str = "world",
        motors: bool = False,
    ):
        argument_checks.check_axes(axes)
        self.system, self.frames, self.axes, self.motors = system, frames, axes, motors
        self.is_forces = name == FORCES
        inputs = stage_program.given(system.algebra, frames)
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

    def taking(self, tau: tuple[int, ...]) -> ClosedFunction:
        motors = tau[-1:] == (self.system.na,) != (self.system.nv,)
        return (
            self
            if motors == self.motors
            else self.system.closed_function(self.name, self.frames, self.axes, motors)
        )

    def again(self, system: Any) -> ClosedFunction:
        """The same of a system with other parameters."""
        return ClosedFunction(system, self.name, self.frames, self.axes, self.motors)

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        return [self.solved(self.read(values, ())[0]).result]

    def on_cards(self, values: Sequence[Any]) -> Any:
        return self.traced.on_cards(values)

    @cached_property
    def traced(self) -> TapeDerivative:
        """The function as one piece of code."""
        return TapeDerivative(self, ())

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedHessian(self, names) if kind == "hessian" else FIRST[kind](self, names)

    def read(
        self, values: Any, more: Sequence[Argument]
    ) -> tuple[tuple[np.ndarray, ...], list[np.ndarray]]:
        """The arguments and what comes behind them, of one batch; torques of motors alone are filled up with zeros."""
        argument_checks.on_host(self.name, *values)
        arrays = list(self.system.state_arrays(q=values[0], v=values[1], tau=values[2]))
        args = [*stage_program.given(self.system.algebra, self.frames), *more]
        for arg, value in list(zip(args, values, strict=True))[3:]:
            if arg.name in CHANGES:
                arrays += self.system.state_arrays(tau=value)
            else:
                arrays.append(shaped(arg, value))
        shapes = [(self.system.nv,) if arg.name in CHANGES else arg.shape for arg in args]
        leads = {
            arg.name: x.shape[: x.ndim - len(shape)]
            for arg, x, shape in zip(args, arrays, shapes, strict=True)
        }
        lead = self.system.batch_axes(argument_checks.batch_axes(self.name, leads))
        whole = [
            np.broadcast_to(x, (*lead, *shape)) for x, shape in zip(arrays, shapes, strict=True)
        ]
        return tuple(whole[: len(self.inputs)]), whole[len(self.inputs) :]

    def solved(self, values: tuple[np.ndarray, ...]) -> SolvedBatch:
        """The accelerations and multipliers there, by the policies of `closed_forward_dynamics.py`."""
        loads = {name: values[3][..., i, :] for i, name in enumerate(self.frames)} or None
        q, v, tau = values[:3]
        found = closed_forward_dynamics.details(
            self.system, q, v, tau, loads, self.axes, None, False
        )
        result = found["forces"] if self.is_forces else found["a"]
        whole = (*values, found["a"], found["multipliers"])
        solvable = np.asarray(found["solvable"])
        return SolvedBatch(whole, result, np.asarray(found["unique"]) & solvable, solvable)


def lasting(system: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Which motions (B, samples, n) have constraints whose rank stays, on them and beside where they begin: (B,)."""
    own = implicit_theorem.ranks(system.with_sample_axis().constraint_jacobian(q))
    found = (own == own[:, :1]).all(axis=-1)
    loose = np.flatnonzero(found & (own[:, 0] < system.nc))
    if len(loose):
        rest = np.zeros((len(loose), system.nv))
        some = system.at_elements((len(q),), loose)
        gradients = ClosedFunction(some, ACCELERATIONS).vjp("q", "v")(
            q[loose, 0], v[loose, 0], rest, rest
        )[1:]
        found[loose] = np.isfinite(np.concatenate(gradients, axis=-1)).all(axis=-1)
    return found
