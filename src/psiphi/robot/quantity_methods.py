"""A robot's functions by their names: found in the catalogue, called, and their errors turned into words."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from psiphi._util.errors import SingularError
from psiphi._util.validate import flag, is_foreign
from psiphi.compiler.passes import is_large
from psiphi.compiler.sweeps.interpreter import interpret, interpret_on_tape
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions import value_checks as checked
from psiphi.functions.arrays.dask_arrays import refuse_lazy
from psiphi.functions.compiled_function import Function
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.spatial.branch_free import on_tape
from psiphi.model.state_checks import check_states
from psiphi.robot import matrix_by_columns
from psiphi.robot.catalogue import quantity_request
from psiphi.robot.catalogue.quantities import METHODS, PARTS, catalogued
from psiphi.robot.identification.regressor_methods import RegressorMethods

_ndarray = np.ndarray


def _traced(inputs: tuple[Argument, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, where they are arrays of one state with tape expressions among their numbers; else nothing. What stands for
    leaves of that tape, a robot's parameters, is these."""
    tape = next((x.tape for value in values for x in np.ravel(value) if on_tape(x)), None)
    placed = () if tape is None else tuple(map(tape.placed, values))
    return (
        placed
        if all(np.shape(value) == arg.shape for arg, value in zip(inputs, placed, strict=False))
        else ()
    )


class QuantityMethods(RegressorMethods):
    """A robot that looks its functions up: `_call` runs one, `_loaded` one with wrenches, `_matrix` one of a matrix."""

    function_cache: dict[tuple, DifferentiableFunction]  # those that were asked for

    def function(
        self, name: str, frames: tuple[str, ...] = (), axes: str = "world"
    ) -> DifferentiableFunction:
        """The compiled quantity `name` of the catalogue, to be called, with its derivatives; its `.ufunc` is a NumPy gufunc."""
        try:
            return self.function_cache[name, frames, axes]
        except (KeyError, TypeError):
            request = quantity_request.request(self, name, frames, axes)
        key = request.name, request.frames, request.axes
        return self.function_cache.setdefault(
            key, catalogued(self.model, request, kind=DifferentiableFunction)
        )

    def symbolic(
        self, name: str, frames: Any = (), axes: str = "world", *, parameters: bool = False
    ) -> Any:
        """The quantity `name` of the catalogue as SymPy expressions, with shared parts or written out (extra `symbolic`).

        The answer has `shared` and `results`, as `sympy.cse` gives them, `matrix` (written out), `textbook()` and `latex()`;
        `parameters=True` makes masses, centres, inertias, lengths and gravity symbols, m1, c1x, I1zz, l1, g.

        >>> import psiphi as pp
        >>> arm = pp.from_dh([pp.DH(mass=1.0, com=(0.5, 0, 0)), pp.DH(a=1.0, mass=1.0, com=(0.5, 0, 0))])
        >>> arm.symbolic("mass_matrix", parameters=True).textbook()[0, 1]
        c2x**2*m2 + c2x*l1*m2*cos(q2)
        """
        return self.function(name, frames, axes).symbolic(parameters)

    def to_casadi(self, name: str, frames: Any = (), axes: str = "world") -> Any:
        """The quantity `name` of the catalogue as a `casadi.Function` on SX, with CasADi's exact derivatives (extra `casadi`).

        Vectors are columns; CasADi's derivatives by q are by its nq numbers, quaternions among them.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> f = robot.to_casadi("gravity")
        >>> bool(np.allclose(np.array(f(np.ones(6))).ravel(), robot.gravity(np.ones(6))))
        True
        """
        return self.function(name, frames, axes).to_casadi()

    def to_jax(self, name: str, frames: Any = (), axes: str = "world") -> Any:
        """The quantity `name` of the catalogue as a function on JAX arrays, in JAX's own operations: for `jax.jit` on cards,
        forward mode, and whatever else traces it. Calls with JAX arrays need it not: they run the compiled code.

        >>> import numpy as np, psiphi as pp
        >>> pp.robots.puma560().to_jax("gravity")(np.ones((4, 6))).shape
        (4, 6)
        """
        return self.function(name, frames, axes).to_jax()

    def to_torch(self, name: str, frames: Any = (), axes: str = "world") -> Any:
        """The same on torch tensors, in torch's own operations: for forward mode, higher derivatives, and export.

        >>> import torch, psiphi as pp
        >>> pp.robots.puma560().to_torch("gravity")(torch.ones(4, 6)).shape
        torch.Size([4, 6])
        """
        return self.function(name, frames, axes).to_torch()

    def flops(self, name: str, **options: Any) -> int:
        """Exact operation count (mul, add, div, sqrt) of one evaluation, sines and cosines apart."""
        return self.function(name, **options).flops

    def require_mass(self, name: str, remedy: str) -> None:
        """Refuse what needs a centre of mass on a robot that has none."""
        if not self.mass > 0.0:
            raise SingularError(f"{name}: no moving body of {self.name} has mass", remedy)

    @cached_property
    def mass(self) -> float:
        """The mass of all moving bodies."""
        return sum(body.mass for body in self.bodies)

    def _frame_name(self, frame) -> str:
        return self.frame(frame).name

    def call_with_wrenches(
        self, name: str, state: dict[str, Any], f_ext, axes: str, out, dtype, check
    ):
        argument_checks.check_axes(axes)
        if f_ext is None or not argument_checks.mapping(f_ext):
            return self.call_quantity(name, state, out, dtype, check)
        frames = tuple(self._frame_name(frame) for frame in f_ext)
        state["f_ext"] = argument_checks.stack_wrenches(f_ext)
        return self.call_quantity(name, state, out, dtype, check, frames, axes)

    def _call_matrix(self, name: str, q, out, dtype, check):
        if not is_large(self) or self.function(name).written_out:
            return self.call_quantity(name, dict(q=q), out, dtype, check)
        return matrix_by_columns.matrix(self, name, q, out, dtype, check)

    def _parameter_values(self, name: str) -> Any:
        """The numbers that are free; a robot that has some is a `FreeRobot`, which knows them."""
        return argument_checks.parameters(self, name, None)

    def with_sample_axis(self) -> Self:
        """The robot for arrays with one batch axis more: what has batch axes of its own gets it, too."""
        return self

    @property
    def parameter_arguments(self) -> tuple[Any, ...]:
        """What its functions take behind their own arguments."""
        return () if self.freed is None else (self._parameter_values(""),)

    def call_quantity(
        self,
        name: str,
        state: dict[str, Any],
        out,
        dtype,
        check,
        frames: tuple[str, ...] = (),
        axes: str = "world",
    ):
        if self.freed is not None and PARAMETERS not in state:
            state = {**state, PARAMETERS: self._parameter_values(name)}
        function, values = self.function(name, frames, axes), tuple(state.values())
        if out is None and dtype is None and check is False:
            result = function.at_once(
                *values
            )  # one state: control loops come here a thousand times a second
            if result is not None:
                return result
        for value in values:
            if type(value) is not _ndarray or not self.joints:
                if any(map(is_foreign, values)):
                    return argument_checks.entered(function, values, out, dtype, check)
                values = argument_checks.plain(self, name, function.source.inputs, values)
                break
        argument_checks.check_upright(self.model, name, values[0])
        if check is not False and flag("check", check):
            refuse_lazy(name, "check=True looks at numbers", *values)
            values = argument_checks.plain(self, name, function.source.inputs, values)
            check_states(self, name, function.source.inputs, values, frames)
            with np.errstate(all="ignore"):
                result = self.call_quantity(
                    name, dict(zip(state, values, strict=True)), out, dtype, False, frames, axes
                )
            checked.after(self, name, function.source, values, result)
            return result
        if out is not None and (type(out) is not _ndarray or out.dtype.kind != "f"):
            out = argument_checks.fitting_out(self, name, function.source, values, out)
        elif out is None and dtype is not None:
            out = (None,) * function.ufunc.nout
        try:
            if is_large(self) and (name in METHODS or name in PARTS) and not function.program.local:
                refuse_lazy(
                    name, "on a robot of so many bodies its sweeps are interpreted", *values
                )
                return self._interpreted(function, values, dtype)
            result = function.run(values, out, dtype)
            scalar_fast_path.quicken(function, values)
            return result
        except (ValueError, TypeError, NotImplementedError) as error:
            if not is_large(self) and (
                placed := _traced(function.source.inputs, values)
            ):  # a user's law of control
                results: Any = interpret_on_tape(function.program, function.tree, *placed)
                return results[0] if len(results) == 1 else results
            argument_checks.retell(self, name, function.source, values, out, dtype, error)

    @staticmethod
    def _interpreted(function: Function, values, dtype) -> Any:
        """The sweeps as they are: what is kept of every link of a large robot fits no loop over classes of links."""
        source = function.source
        with np.errstate(all="ignore"):
            results = interpret(source.program, source.tree, *values)
        results = tuple(
            x.astype(dtype or np.result_type(np.float32, *values), copy=False) for x in results
        )
        return results[0] if len(results) == 1 else results
