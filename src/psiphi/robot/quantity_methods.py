"""A robot's functions by name: look up the quantity, call it, and turn failures into messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from psiphi._util.array_types import DType, Numbers, Out, Wrenches
from psiphi._util.errors import SingularError, StateError
from psiphi._util.validate import as_names, flag, is_foreign
from psiphi.compiler.passes import is_large
from psiphi.compiler.sweeps.interpreter import interpret, interpret_on_tape
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions import result_checks as checked
from psiphi.functions.arrays.dask_arrays import refuse_lazy
from psiphi.functions.compiled_function import Function
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.spatial.branch_free import on_tape
from psiphi.model.state_checks import check_states
from psiphi.robot import matrix_by_columns
from psiphi.robot.catalogue import quantity_request
from psiphi.robot.catalogue.catalogue import INTERNAL_QUANTITIES, METHODS, quantity_function
from psiphi.robot.editing_methods import EditingMethods

_ndarray = np.ndarray


def _tape_values(inputs: tuple[Argument, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of one state as arrays of tape expressions; () if none is on a tape.

    Placeholders of the tape's own leaves, a robot's parameters, become these leaves.
    """
    tape = next((x.tape for value in values for x in np.asarray(value).flat if on_tape(x)), None)
    placed = () if tape is None else tuple(np.asarray(tape.leaves_of(x)) for x in values)
    fits = all(np.shape(value) == arg.shape for arg, value in zip(inputs, placed, strict=False))
    return placed if fits else ()


def _like(result: Any, values: tuple[Any, ...]) -> Any:
    """A result on a tape, of the class of arrays that the arguments have."""
    kind = next((type(x) for x in values if isinstance(x, np.ndarray) and x.dtype == object), None)
    return result if kind in (None, _ndarray) else np.asarray(result, dtype=object).view(kind)


class QuantityMethods(EditingMethods):
    """The functions of the catalogue by name.

    `call_quantity` calls one, `call_with_wrenches` one that takes wrenches, `_call_matrix` one that
    returns matrices.
    """

    @cached_property
    def function_cache(self) -> dict[tuple[Any, ...], DifferentiableFunction]:
        """(Internal use only) The compiled functions by (name, frames, axes)."""
        return {}

    @cached_property
    def last_rollout(self) -> dict[str, Any]:
        """(Internal use only) The rollout that was traced last, by its key: the code for one motion
        and that for several are made of the same tapes."""
        return {}

    def function(
        self, name: str, frames: str | Sequence[str] = (), axes: str = "world"
    ) -> DifferentiableFunction:
        """The quantity `name` of the catalogue as a compiled function with derivatives.

        Its `.ufunc` is a NumPy gufunc.
        """
        return self.unbound_function(name, frames, axes)

    def unbound_function(
        self, name: str, frames: str | Sequence[str] = (), axes: str = "world"
    ) -> DifferentiableFunction:
        """(Internal use only) `function` with the free parameters, if any, as an argument."""
        try:
            return self.function_cache[name, frames, axes]
        except (KeyError, TypeError):  # TypeError: frames is a list
            request = quantity_request.check_request(self, name, frames, axes)
        key = request.name, request.frames, request.axes
        return self.function_cache.setdefault(
            key, quantity_function(self.model, request, kind=DifferentiableFunction)
        )

    def compile(
        self,
        *names: str,
        frames: str | Sequence[str] = (),
        axes: str = "world",
        dtype: DType = None,
        jacobian: str | Sequence[str] = (),
    ) -> None:
        """Compile quantities of the catalogue now instead of at their first calls.

        The code is kept in the cache, for this process and later ones. `frames` and `axes` are as
        in `function`, `dtype` is float64 or float32. `jacobian` names arguments: their Jacobians
        are compiled, too.

        >>> import psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> robot.compile("forward_dynamics", "mass_matrix")
        >>> robot.compile("jacobian", frames="tool")
        """
        argument_checks.check_dtype("compile", dtype)
        if not names:
            raise StateError(
                "compile got no names of quantities", 'write robot.compile("forward_dynamics")'
            )
        char = "d" if dtype is None else np.dtype(dtype).char
        by = tuple(as_names("jacobian", jacobian, "names of arguments", 'give jacobian="q"'))
        functions = [self.unbound_function(name, frames, axes) for name in names]
        derivatives = [function.jacobian(*by) for function in functions if by]
        for function in [*functions, *derivatives]:
            matrix_by_columns.compiled_function(self, function).prepare(char)

    def symbolic(
        self,
        name: str,
        frames: str | Sequence[str] = (),
        axes: str = "world",
        *,
        parameters: bool = False,
    ) -> Any:
        """The quantity `name` of the catalogue as SymPy expressions (extra `symbolic`).

        The result has `shared` and `results` (common subexpressions, as from `sympy.cse`), `matrix`
        (expanded), `textbook()` and `latex()`. `parameters=True` makes masses, centres of mass,
        inertias, lengths and gravity symbols: m1, c1x, I1zz, l1, g.

        >>> import psiphi as pp
        >>> link = dict(mass=1.0, com=(0.5, 0, 0))
        >>> arm = pp.from_dh([pp.DH(**link), pp.DH(a=1.0, **link)])
        >>> arm.symbolic("mass_matrix", parameters=True).textbook()[0, 1]
        c2x**2*m2 + c2x*l1*m2*cos(q2)
        """
        return self.unbound_function(name, frames, axes).symbolic(parameters)

    def to_casadi(self, name: str, frames: str | Sequence[str] = (), axes: str = "world") -> Any:
        """The quantity `name` of the catalogue as a `casadi.Function` on SX (extra `casadi`).

        Vectors are columns. CasADi differentiates by all nq entries of q, quaternions included.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> f = robot.to_casadi("gravity")
        >>> bool(np.allclose(np.array(f(np.ones(6))).ravel(), robot.gravity(np.ones(6))))
        True
        """
        return self.unbound_function(name, frames, axes).to_casadi()

    def to_jax(self, name: str, frames: str | Sequence[str] = (), axes: str = "world") -> Any:
        """The quantity `name` of the catalogue as a function of JAX arrays, in JAX operations.

        Use it for `jax.jit` on GPUs, forward mode and other JAX transformations. Ordinary calls
        with JAX arrays do not need it: they run the compiled code.

        >>> import numpy as np, psiphi as pp
        >>> pp.robots.puma560().to_jax("gravity")(np.ones((4, 6))).shape
        (4, 6)
        """
        return self.unbound_function(name, frames, axes).to_jax()

    def to_torch(self, name: str, frames: str | Sequence[str] = (), axes: str = "world") -> Any:
        """The quantity `name` of the catalogue as a function of torch tensors, in torch operations.

        Use it for forward mode, higher derivatives and export.

        >>> import torch, psiphi as pp
        >>> pp.robots.puma560().to_torch("gravity")(torch.ones(4, 6)).shape
        torch.Size([4, 6])
        """
        return self.unbound_function(name, frames, axes).to_torch()

    def flops(self, name: str, **options: Any) -> int:
        """Exact count of operations (mul, add, div, sqrt; not sin and cos) of one evaluation."""
        return self.unbound_function(name, **options).flops

    def require_mass(self, name: str, remedy: str) -> None:
        """(Internal use only) Raise a SingularError if the robot has no mass."""
        if not self.mass > 0.0:
            raise SingularError(f"{name}: no moving body of {self.name} has mass", remedy)

    @cached_property
    def mass(self) -> float:
        """The total mass of the moving bodies."""
        return sum(body.mass for body in self.bodies)

    def _frame_name(self, frame: str) -> str:
        """The name of the frame, or an error with the nearest names."""
        return self.frame(frame).name

    def call_with_wrenches(
        self,
        name: str,
        state: dict[str, Any],
        f_ext: Wrenches | None,
        axes: str,
        out: Out,
        dtype: DType,
        check: bool,
    ) -> Any:
        """(Internal use only) `call_quantity` with external wrenches on frames."""
        argument_checks.check_axes(axes)
        if f_ext is None or not argument_checks.check_wrench_mapping(f_ext):
            return self.call_quantity(name, state, out, dtype, check)
        frames = tuple(self._frame_name(frame) for frame in f_ext)
        state["f_ext"] = argument_checks.stack_wrenches(f_ext)
        return self.call_quantity(name, state, out, dtype, check, frames, axes)

    def _call_matrix(self, name: str, q: Numbers, out: Out, dtype: DType, check: bool) -> Any:
        """Call a quantity that is a matrix of q; a large robot computes it column by column."""
        if not is_large(self) or self.unbound_function(name).written_out:
            return self.call_quantity(name, dict(q=q), out, dtype, check)
        return matrix_by_columns.compute_matrix(self, name, q, out, dtype, check)

    def _parameter_values(self, name: str) -> Any:
        """The values of the free parameters, or an error; `FreeRobot` knows them."""
        return argument_checks.require_parameters(self, name, None)

    def with_sample_axis(self) -> Self:
        """(Internal use only) The robot for arguments (..., samples, n).

        Parameters with batch axes get an axis of length 1 for the samples.
        """
        return self

    @property
    def parameter_arguments(self) -> tuple[Any, ...]:
        """(Internal use only) The free parameters, as last arguments of every function."""
        return () if self.freed is None else (self._parameter_values(""),)

    def call_quantity(
        self,
        name: str,
        state: dict[str, Any],
        out: Out,
        dtype: DType,
        check: bool,
        frames: tuple[str, ...] = (),
        axes: str = "world",
    ) -> Any:
        """(Internal use only) Call the quantity `name` with the arguments in `state`, in order."""
        if self.freed is not None and PARAMETERS not in state:
            state = {**state, PARAMETERS: self._parameter_values(name)}
        function = self.unbound_function(name, frames, axes)
        values: tuple[Any, ...] = tuple(state.values())
        if out is None and dtype is None and check is False:
            result = function.fast_path(*values)  # one state: the path of control loops
            if result is not None:
                return result
        for value in values:
            if type(value) is not _ndarray or not self.joints:
                if any(map(is_foreign, values)):
                    return argument_checks.call_foreign(function, values, out, dtype, check)
                values = argument_checks.plain_arrays(self, name, function.source.inputs, values)
                break
        argument_checks.check_single_configuration(self.model, name, values[0])
        if check is not False and flag("check", check):
            refuse_lazy(name, "check=True works on NumPy arrays", *values)
            values = argument_checks.plain_arrays(self, name, function.source.inputs, values)
            check_states(self, name, function.source.inputs, values, frames)
            with np.errstate(all="ignore"):
                result = self.call_quantity(
                    name, dict(zip(state, values, strict=True)), out, dtype, False, frames, axes
                )
            checked.check_results(self, name, function.source, values, result)
            return result
        results_out: Any = out
        if out is not None and (type(out) is not _ndarray or out.dtype.kind != "f"):
            results_out = argument_checks.matching_out(self, name, function.source, values, out)
        elif out is None and dtype is not None:
            results_out = (None,) * len(function.outputs)
        try:
            if (
                is_large(self)
                and (name in METHODS or name in INTERNAL_QUANTITIES)
                and not function.program.can_loop
            ):
                refuse_lazy(name, "on a robot with this many bodies it is interpreted", *values)
                return self._interpret(function, values, dtype)
            result = function.run(values, results_out, dtype)
            scalar_fast_path.install_fast_path(function, values)
            return result
        except (ValueError, TypeError, NotImplementedError) as error:
            # a control law that psiphi traces calls with tape expressions
            if not is_large(self) and (traced := _tape_values(function.source.inputs, values)):
                results: Any = interpret_on_tape(function.program, function.tree, *traced)
                results = [_like(x, values) for x in results]
                return results[0] if len(results) == 1 else results
            argument_checks.raise_state_error(
                self, name, function.source, values, results_out, dtype, error
            )

    @staticmethod
    def _interpret(function: Function, values: Sequence[np.ndarray], dtype: DType) -> Any:
        """Interpret the sweeps: compiled loops cannot return values of every link."""
        source = function.source
        with np.errstate(all="ignore"):
            results = interpret(source.program, source.tree, *values)
        results = tuple(
            x.astype(dtype or np.result_type(np.float32, *values), copy=False) for x in results
        )
        return results[0] if len(results) == 1 else results
