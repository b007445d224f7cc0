"""Functions as primitives of JAX: jit, grad, jvp, vmap, derivatives of any order.

    psiphi          the function itself
    psiphi_linear   its pushforward, linear in the changes; its transpose is the function's pullback

XLA calls the function's loop itself (`xla_cpu.py`), or sends its kernel to a graphics card (`xla_cuda.py`). On the host,
where its version of the FFI is another one, and for what is more than one loop (a rollout), Python is called back. On a card
all kernels of such a function are written down when it is compiled (`backends/cuda/deferred_arrays.py`), and sent in one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.validate import batch_axes, check_array, on_gpu
from psiphi.backends.cuda.deferred_arrays import LaunchRecord
from psiphi.functions.arrays import xla_cpu, xla_cuda
from psiphi.functions.arrays.array_dispatch import batch_shapes, read_numbers
from psiphi.functions.arrays.function_registry import add_batch_axis, sum_repeated

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


def call(function: Any, values: Sequence[Any]) -> Any:
    """The results as arrays of JAX: traced where an argument is."""
    kinds = {x.dtype for x in values if isinstance(x, jax.Array)}
    kind = next(iter(kinds)) if len(kinds) == 1 else jnp.result_type(*kinds, jnp.float32)
    arrays = []
    for index, x in enumerate(values):
        x = (
            x
            if isinstance(x, jax.Array)
            else jnp.array(read_numbers(function.name, function.inputs[index], x), kind)
        )  # a copy: gradients come later
        check_array(function.name, function.inputs[index], x.shape, str(x.dtype))
        arrays.append(x if x.dtype == kind else x.astype(kind))
    results = _bind(function, arrays)
    return results[0] if len(results) == 1 else tuple(results)


def _bind(function: Any, arrays: Sequence[Any]) -> list[Any]:
    return value_p.bind(*_broadcast_rows(function.inputs, function, arrays), function=function)


def _broadcast_rows(inputs: Sequence[Any], function: Any, arrays: Sequence[Any]) -> list[Any]:
    """Every argument with all batch axes, or with one row for all."""
    each = [x.shape[: x.ndim - len(arg.shape)] for x, arg in zip(arrays, inputs, strict=True)]
    try:
        batch = np.broadcast_shapes(*each)
    except ValueError:
        batch = batch_axes(
            function.name, {arg.name: lead for arg, lead in zip(inputs, each, strict=True)}
        )
    own = getattr(function, "unshared", ())  # arguments that cannot be one row for all
    whole = [
        lead == batch if arg.name in own else math.prod(lead) in (1, math.prod(batch))
        for arg, lead in zip(inputs, each, strict=True)
    ]
    return [
        x if fits else jnp.broadcast_to(x, batch + arg.shape)
        for x, arg, fits in zip(arrays, inputs, whole, strict=True)
    ]


def _result_shapes(
    inputs: Sequence[Any], avals: Sequence[Any], outputs: Sequence[Any]
) -> list[Any]:
    """What the results look like."""
    batch = np.broadcast_shapes(
        *(x.shape[: len(x.shape) - len(arg.shape)] for x, arg in zip(avals, inputs, strict=True))
    )
    return [ShapedArray(batch + arg.shape, avals[0].dtype) for arg in outputs]


# -- the function itself ------------------------------------------------------------------------------------------------------


@value_p.def_abstract_eval
def _value_shapes(*avals: Any, function: Any) -> list[Any]:
    return _result_shapes(function.inputs, avals, function.outputs)


@value_p.def_impl
def _evaluate(*arrays: Any, function: Any) -> list[Any]:
    """Outside of jit: a program of this one call, or NumPy's views."""
    if hasattr(function, "source"):
        known = vars(function)
        if "jax_program" not in known:
            known["jax_program"] = jax.jit(partial(value_p.bind, function=function))
        return known["jax_program"](*arrays)
    results = (
        function.run_on_gpu(arrays)
        if any(map(on_gpu, arrays))
        else function(*map(np.asarray, arrays))
    )
    return [jnp.asarray(x) for x in (results if isinstance(results, tuple) else (results,))]


def _lower(ctx: Any, *operands: Any, function: Any) -> Any:
    """XLA calls the loop, or calls back."""
    if not hasattr(function, "source") or not _has_handler():
        return mlir.lower_fun(partial(_callback, function), multiple_results=True)(ctx, *operands)
    return _ffi_call(xla_cpu, ctx, operands, function)


def _lower_cuda(ctx: Any, *operands: Any, function: Any) -> Any:
    """XLA sends the kernel, or several."""
    _register_cuda()
    if not hasattr(function, "source"):
        return mlir.lower_fun(partial(_record_launches, function), multiple_results=True)(
            ctx, *operands
        )
    return _ffi_call(xla_cuda, ctx, operands, function)


def _record_launches(function: Any, *arrays: Any) -> list[Any]:
    """What the function sends to a card, in one call of XLA's: its numbers of the host are constants of the program, and what
    its kernels write is made by XLA."""
    ledger, kind = LaunchRecord(), arrays[0].dtype
    results = function.run_on_gpu([ledger.add_argument(x.shape, CHARS[str(kind)]) for x in arrays])
    order = ledger.order
    sends = [
        sent._replace(arrays=[(order[i], inside) for i, inside in sent.arrays])
        for sent in ledger.calls
    ]
    values = [*arrays, *(jnp.asarray(x.numbers) for x in ledger.arrays if x.numbers is not None)]
    shapes = [jax.ShapeDtypeStruct(x.shape, kind) for x in ledger.arrays if x.is_output]
    block = xla_cuda.launch_block(sends)
    made = (
        jax.ffi.ffi_call(xla_cuda.TARGET, shapes)(*values, block=np.int64(block), key=function.name)
        if shapes
        else []
    )
    there = [*values, *made]
    at = [there[place] for place in order]
    return [x.of(at) for x in (results if isinstance(results, tuple) else (results,))]


def _ffi_call(way: Any, ctx: Any, operands: Sequence[Any], function: Any) -> Any:
    """A call of the handler, with the address of what it needs."""
    char = CHARS[str(ctx.avals_in[0].dtype)]
    each = batch_shapes(function, [x.shape for x in ctx.avals_in])
    address = way.block(function, char, each, math.prod(np.broadcast_shapes(*each)))
    lowering = jax.ffi.ffi_lowering(way.TARGET)
    return lowering(ctx, *operands, block=np.int64(address), key=function.source.key(char))


def _callback(function: Any, *arrays: Any) -> Any:
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype)
        for x in _result_shapes(function.inputs, arrays, function.outputs)
    ]

    def run(*values: Any) -> list[Any]:
        results = function(*map(np.asarray, values))
        return [
            np.asarray(x, arrays[0].dtype)
            for x in (results if isinstance(results, tuple) else (results,))
        ]

    return jax.pure_callback(run, shapes, *arrays)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, function: Any
) -> tuple[list[Any], list[Any]]:
    """The change by those arguments that change."""
    names = [
        arg.name for arg, t in zip(function.inputs, tangents, strict=True) if type(t) is not ad.Zero
    ]
    changes = [t for t in tangents if type(t) is not ad.Zero]
    values = value_p.bind(*primals, function=function)
    return values, linear_p.bind(*primals, *changes, function=function, names=tuple(names))


def _batch(
    arrays: Sequence[Any], axes: Sequence[Any], *, function: Any
) -> tuple[list[Any], list[int]]:
    results = _bind(function, add_batch_axis(jnp.moveaxis, function.inputs, arrays, axes))
    return results, [0] * len(results)


# -- its change, which is linear ----------------------------------------------------------------------------------------------


def _split(arrays: Sequence[Any], function: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    return arrays[: len(function.inputs)], arrays[len(function.inputs) :]


def _linear_inputs(function: Any, names: Sequence[str]) -> list[Any]:
    """Its arguments and their changes: these may have batch axes that no argument has (jacfwd)."""
    return [
        *function.inputs,
        *(next(arg for arg in function.inputs if arg.name == name) for name in names),
    ]


@linear_p.def_abstract_eval
def _linear_shapes(*avals: Any, function: Any, names: tuple[str, ...]) -> list[Any]:
    return _result_shapes(_linear_inputs(function, names), avals, function.outputs)


@linear_p.def_impl
def _evaluate_linear(*arrays: Any, function: Any, names: tuple[str, ...]) -> list[Any]:
    return _evaluate(*arrays, function=function.pushforward(*names))


def _linear_lower(way: Any, ctx: Any, *operands: Any, function: Any, names: tuple[str, ...]) -> Any:
    return way(ctx, *operands, function=function.pushforward(*names))


def _linear_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, function: Any, names: tuple[str, ...]
) -> Any:
    """The pushforward is a function too: of the arguments, and of the changes."""
    return _jvp(primals, tangents, function=function.pushforward(*names))


def _linear_transpose(
    weights: Sequence[Any], *arrays: Any, function: Any, names: tuple[str, ...]
) -> list[Any]:
    """The pullback, summed over axes along which an argument was repeated."""
    primals, changes = _split(arrays, function)
    if any(ad.is_undefined_primal(x) for x in primals):
        raise StateError(
            f"{function.name}: JAX transposes a change by arguments that are not linear",
            "report it",
        )
    full = [jnp.zeros(w.aval.shape, primals[0].dtype) if type(w) is ad.Zero else w for w in weights]
    found = iter(_bind(function.pullback(*names), [*primals, *full]))
    return [None] * len(primals) + [
        ad.Zero(x.aval) if not ad.is_undefined_primal(x) else sum_repeated(g, x.aval.shape)
        for x, g in zip(changes, found, strict=True)
    ]


def _linear_batch(
    arrays: Sequence[Any], axes: Sequence[Any], *, function: Any, names: tuple[str, ...]
) -> Any:
    inputs = _linear_inputs(function, names)
    moved = _broadcast_rows(inputs, function, add_batch_axis(jnp.moveaxis, inputs, arrays, axes))
    results = linear_p.bind(*moved, function=function, names=names)
    return results, [0] * len(results)


# -- as JAX knows them --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _has_handler() -> bool:
    """Whether XLA takes the handler: tried once, on the smallest call there is."""
    try:
        jax.ffi.register_ffi_target(xla_cpu.TARGET, xla_cpu.handler(), platform="cpu")
        with jax.ensure_compile_time_eval(), jax.default_device(jax.devices("cpu")[0]):
            same = jax.ffi.ffi_call(xla_cpu.TARGET, jax.ShapeDtypeStruct((), jnp.float32))
            return (
                float(same(jnp.float32(0.5), block=np.int64(xla_cpu.probe()), key="probe")) == 0.5
            )
    except Exception:  # another version of the FFI, or none
        return False


@lru_cache(maxsize=1)
def _register_cuda() -> None:
    """XLA itself refuses another version of the FFI."""
    jax.ffi.register_ffi_target(xla_cuda.TARGET, xla_cuda.handler(), platform="CUDA")


for platform, rule in {"cpu": _lower, "cuda": _lower_cuda}.items():
    mlir.register_lowering(value_p, rule, platform=platform)
    mlir.register_lowering(linear_p, partial(_linear_lower, rule), platform=platform)
ad.primitive_jvps[value_p], ad.primitive_jvps[linear_p] = _jvp, _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose
batching.primitive_batchers[value_p], batching.primitive_batchers[linear_p] = _batch, _linear_batch
