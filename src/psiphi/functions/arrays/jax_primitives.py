"""Functions as primitives of JAX: jit, grad, jvp, vmap, derivatives of any order.

    psiphi          the function itself
    psiphi_linear   its pushforward, linear in the changes; its transpose is the function's pullback

On the CPU, XLA calls the function's machine code (`xla_cpu.py`). If XLA's FFI has another version,
or if the function is more than one loop (a rollout), XLA calls back into Python. On the GPU, XLA
launches the function's kernel (`xla_cuda.py`). The launches of a function with several kernels are
recorded when it is compiled (`backends/cuda/deferred_arrays.py`), and made in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.validate import batch_axes, check_array, on_gpu
from psiphi.backends.cuda.deferred_arrays import LaunchRecord
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays import xla_cpu, xla_cuda
from psiphi.functions.arrays.array_dispatch import batch_shapes, read_numbers
from psiphi.functions.arrays.function_registry import (
    DifferentiableArrayFunction,
    add_batch_axis,
    sum_repeated,
)
from psiphi.functions.compiled_function import Function

jax: Any = import_optional("jax", "an array of JAX", "psiphi[jax]")
jnp: Any = import_optional("jax.numpy", "an array of JAX", "psiphi[jax]")
core: Any = import_optional("jax.extend.core", "an array of JAX", "psiphi[jax]")
ad, batching, mlir = (
    import_optional(f"jax.interpreters.{name}", "JAX", "psiphi[jax]")
    for name in ("ad", "batching", "mlir")
)

value_p = core.Primitive("psiphi")
linear_p = core.Primitive("psiphi_linear")
value_p.multiple_results = linear_p.multiple_results = True
ShapedArray = import_optional("jax.core", "JAX", "psiphi[jax]").ShapedArray
CHARS = {"float64": "d", "float32": "f"}


class AbstractArray(Protocol):
    """An array whose shape and dtype are known."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...


class LoweringContext(Protocol):
    """The part of JAX's `LoweringRuleContext` that is used here."""

    @property
    def avals_in(self) -> Sequence[Any]: ...


def call(function: DifferentiableArrayFunction, values: Sequence[Any]) -> Any:
    """The results as arrays of JAX; tracers if an argument is a tracer."""
    kinds = {x.dtype for x in values if isinstance(x, jax.Array)}
    kind = next(iter(kinds)) if len(kinds) == 1 else jnp.result_type(*kinds, jnp.float32)
    arrays = []
    for x, arg in zip(values, function.inputs, strict=True):
        if not isinstance(x, jax.Array):  # copied: the backward pass reads it later
            x = jnp.array(read_numbers(function.name, arg, x), kind)
        check_array(function.name, arg, x.shape, str(x.dtype))
        arrays.append(x if x.dtype == kind else x.astype(kind))
    results = _bind(function, arrays)
    return results[0] if len(results) == 1 else tuple(results)


def _bind(function: DifferentiableArrayFunction, arrays: Sequence[Any]) -> list[Any]:
    return value_p.bind(*_broadcast_rows(function.inputs, function, arrays), function=function)


def _broadcast_rows(
    inputs: Sequence[Argument], function: DifferentiableArrayFunction, arrays: Sequence[Any]
) -> list[Any]:
    """The arguments, each with all batch axes, or with one row for the whole batch."""
    leads = [x.shape[: x.ndim - len(arg.shape)] for x, arg in zip(arrays, inputs, strict=True)]
    try:
        batch = np.broadcast_shapes(*leads)
    except ValueError:
        batch = batch_axes(
            function.name, {arg.name: lead for arg, lead in zip(inputs, leads, strict=True)}
        )
    unshared = getattr(function, "unshared", ())
    fits = [
        lead == batch if arg.name in unshared else math.prod(lead) in (1, math.prod(batch))
        for arg, lead in zip(inputs, leads, strict=True)
    ]
    return [
        x if fit else jnp.broadcast_to(x, batch + arg.shape)
        for x, arg, fit in zip(arrays, inputs, fits, strict=True)
    ]


def _result_shapes(
    inputs: Sequence[Argument], avals: Sequence[Any], outputs: Sequence[Argument]
) -> list[Any]:
    """Shapes and dtypes of the results, as JAX's abstract values."""
    batch = np.broadcast_shapes(
        *(x.shape[: len(x.shape) - len(arg.shape)] for x, arg in zip(avals, inputs, strict=True))
    )
    return [ShapedArray(batch + arg.shape, avals[0].dtype) for arg in outputs]


# -- the function itself ---------------------------------------------------------------------------


@value_p.def_abstract_eval
def _value_shapes(*avals: AbstractArray, function: DifferentiableArrayFunction) -> list[Any]:
    return _result_shapes(function.inputs, avals, function.outputs)


@value_p.def_impl
def _evaluate(*arrays: AnyArray, function: DifferentiableArrayFunction) -> list[Any]:
    """A call outside of jit: a jitted program of this one call, or a call with NumPy views."""
    if hasattr(function, "source"):
        fields = vars(function)
        if "jax_program" not in fields:
            fields["jax_program"] = jax.jit(partial(value_p.bind, function=function))
        return fields["jax_program"](*arrays)
    results = (
        function.run_on_gpu(arrays)
        if any(map(on_gpu, arrays))
        else function(*map(np.asarray, arrays))
    )
    return [jnp.asarray(x) for x in (results if isinstance(results, tuple) else (results,))]


def _lower(
    ctx: LoweringContext, *operands: AbstractArray, function: DifferentiableArrayFunction
) -> Any:
    """The lowering on the CPU: a call of the function's loop, or a callback."""
    if not hasattr(function, "source") or not _has_handler():
        return mlir.lower_fun(partial(_callback, function), multiple_results=True)(ctx, *operands)
    return _ffi_call(xla_cpu, ctx, operands, cast("Function", function))


def _lower_cuda(
    ctx: LoweringContext, *operands: AbstractArray, function: DifferentiableArrayFunction
) -> Any:
    """The lowering on the GPU: one kernel, or several in one call."""
    _register_cuda()
    if not hasattr(function, "source"):
        return mlir.lower_fun(partial(record_launches, function), multiple_results=True)(
            ctx, *operands
        )
    return _ffi_call(xla_cuda, ctx, operands, cast("Function", function))


def record_launches(function: DifferentiableArrayFunction, *arrays: AnyArray) -> list[Any]:
    """All kernel launches of the function, as one call of XLA.

    Arrays of the host are constants of the program; XLA allocates the outputs of the kernels.
    """
    record, kind = LaunchRecord(), arrays[0].dtype
    results = function.run_on_gpu([record.add_argument(x.shape, CHARS[str(kind)]) for x in arrays])
    order = record.order
    launches = [
        launch._replace(arrays=[(order[i], offset) for i, offset in launch.arrays])
        for launch in record.calls
    ]
    values = [*arrays, *(jnp.asarray(x.numbers) for x in record.arrays if x.numbers is not None)]
    shapes = [jax.ShapeDtypeStruct(x.shape, kind) for x in record.arrays if x.is_output]
    block = xla_cuda.launch_block(launches)
    outputs = (
        jax.ffi.ffi_call(xla_cuda.TARGET, shapes)(*values, block=np.int64(block), key=function.name)
        if shapes
        else []
    )
    buffers = [*values, *outputs]
    existing = [buffers[position] for position in order]
    return [x.of(existing) for x in (results if isinstance(results, tuple) else (results,))]


def _ffi_call(
    module: ModuleType, ctx: LoweringContext, operands: Sequence[Any], function: Function
) -> Any:
    """A call of the handler, with the address of its block."""
    char = CHARS[str(ctx.avals_in[0].dtype)]
    leads = batch_shapes(function, [x.shape for x in ctx.avals_in])
    address = module.block(function, char, leads, math.prod(np.broadcast_shapes(*leads)))
    lowering = jax.ffi.ffi_lowering(module.TARGET)
    return lowering(ctx, *operands, block=np.int64(address), key=function.source.key(char))


def _callback(function: DifferentiableArrayFunction, *arrays: AnyArray) -> Any:
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype)
        for x in _result_shapes(function.inputs, arrays, function.outputs)
    ]

    def run(*values: AnyArray) -> list[Any]:
        results = function(*map(np.asarray, values))
        return [
            np.asarray(x, arrays[0].dtype)
            for x in (results if isinstance(results, tuple) else (results,))
        ]

    return jax.pure_callback(run, shapes, *arrays)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, function: DifferentiableArrayFunction
) -> tuple[list[Any], list[Any]]:
    """The values and their changes, by the arguments that have a tangent."""
    names = [
        arg.name for arg, t in zip(function.inputs, tangents, strict=True) if type(t) is not ad.Zero
    ]
    changes = [t for t in tangents if type(t) is not ad.Zero]
    values = value_p.bind(*primals, function=function)
    return values, linear_p.bind(*primals, *changes, function=function, names=tuple(names))


def _batch(
    arrays: Sequence[Any], axes: Sequence[Any], *, function: DifferentiableArrayFunction
) -> tuple[list[Any], list[int]]:
    results = _bind(function, add_batch_axis(jnp.moveaxis, function.inputs, arrays, axes))
    return results, [0] * len(results)


# -- the pushforward -------------------------------------------------------------------------------


def _split(
    arrays: Sequence[Any], function: DifferentiableArrayFunction
) -> tuple[Sequence[Any], Sequence[Any]]:
    return arrays[: len(function.inputs)], arrays[len(function.inputs) :]


def _linear_inputs(function: DifferentiableArrayFunction, names: Sequence[str]) -> list[Argument]:
    """The arguments and their changes, which may have further batch axes (jacfwd)."""
    return [
        *function.inputs,
        *(next(arg for arg in function.inputs if arg.name == name) for name in names),
    ]


@linear_p.def_abstract_eval
def _linear_shapes(
    *avals: AbstractArray, function: DifferentiableArrayFunction, names: tuple[str, ...]
) -> list[Any]:
    return _result_shapes(_linear_inputs(function, names), avals, function.outputs)


@linear_p.def_impl
def _evaluate_linear(
    *arrays: AnyArray, function: DifferentiableArrayFunction, names: tuple[str, ...]
) -> list[Any]:
    return _evaluate(*arrays, function=function.pushforward(*names))


def _linear_lower(
    rule: Callable,
    ctx: LoweringContext,
    *operands: AbstractArray,
    function: DifferentiableArrayFunction,
    names: tuple[str, ...],
) -> Any:
    return rule(ctx, *operands, function=function.pushforward(*names))


def _linear_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    function: DifferentiableArrayFunction,
    names: tuple[str, ...],
) -> Any:
    """The pushforward is itself a function, of the arguments and the changes."""
    return _jvp(primals, tangents, function=function.pushforward(*names))


def _linear_transpose(
    weights: Sequence[Any],
    *arrays: AnyArray,
    function: DifferentiableArrayFunction,
    names: tuple[str, ...],
) -> list[Any]:
    """The pullback, summed over axes along which an argument was broadcast."""
    primals, changes = _split(arrays, function)
    if any(ad.is_undefined_primal(x) for x in primals):
        raise StateError(
            f"{function.name}: JAX transposes the pushforward by arguments that are not linear",
            "report this as a bug of psiphi",
        )
    full = [jnp.zeros(w.aval.shape, primals[0].dtype) if type(w) is ad.Zero else w for w in weights]
    gradients = iter(_bind(function.pullback(*names), [*primals, *full]))
    return [None] * len(primals) + [
        ad.Zero(x.aval) if not ad.is_undefined_primal(x) else sum_repeated(g, x.aval.shape)
        for x, g in zip(changes, gradients, strict=True)
    ]


def _linear_batch(
    arrays: Sequence[Any],
    axes: Sequence[Any],
    *,
    function: DifferentiableArrayFunction,
    names: tuple[str, ...],
) -> Any:
    inputs = _linear_inputs(function, names)
    moved = _broadcast_rows(inputs, function, add_batch_axis(jnp.moveaxis, inputs, arrays, axes))
    results = linear_p.bind(*moved, function=function, names=names)
    return results, [0] * len(results)


# -- registration ----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _has_handler() -> bool:
    """Whether XLA can call the handler, which is tried once, with one float."""
    try:
        jax.ffi.register_ffi_target(xla_cpu.TARGET, xla_cpu.handler(), platform="cpu")
        with jax.ensure_compile_time_eval(), jax.default_device(jax.devices("cpu")[0]):
            copy = jax.ffi.ffi_call(xla_cpu.TARGET, jax.ShapeDtypeStruct((), jnp.float32))
            return (
                float(copy(jnp.float32(0.5), block=np.int64(xla_cpu.probe()), key="probe")) == 0.5
            )
    except Exception:  # another version of the FFI, or no FFI
        return False


@lru_cache(maxsize=1)
def _register_cuda() -> None:
    """Register the handler; XLA raises an error if its FFI has another version."""
    jax.ffi.register_ffi_target(xla_cuda.TARGET, xla_cuda.handler(), platform="CUDA")


for platform, rule in {"cpu": _lower, "cuda": _lower_cuda}.items():
    mlir.register_lowering(value_p, rule, platform=platform)
    mlir.register_lowering(linear_p, partial(_linear_lower, rule), platform=platform)
ad.primitive_jvps[value_p], ad.primitive_jvps[linear_p] = _jvp, _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose
batching.primitive_batchers[value_p], batching.primitive_batchers[linear_p] = _batch, _linear_batch
