"""Functions as torch operators, with autograd, fake and vmap rules: gradients of any order,
torch.compile, torch.func.

    psiphi::call_3_1(int function, Tensor x0, Tensor x1, Tensor x2) -> Tensor

is the operator of all functions of three arguments and one result; `function` is the function's
number. Its backward is the operator of the function's `pullback`, its forward mode that of its
`pushforward`, which are functions again. Tensors on the CPU are read as NumPy views, without a
copy; for tensors on the GPU a kernel is launched.

torch.compile traces the operator. Otherwise the same rules are an `autograd.Function`, which costs
less, and which `torch.func.grad` requires. If no transform or mode of torch is active, the
dispatcher is not called at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from psiphi._util.extras import import_optional
from psiphi._util.validate import batch_axes, check_array
from psiphi.functions.arrays.array_dispatch import batch_shapes, read_numbers
from psiphi.functions.arrays.function_registry import (
    DifferentiableArrayFunction,
    add_batch_axis,
    function_of,
)

torch: Any = import_optional("torch", "a tensor", "psiphi[torch]")

KINDS = {torch.float64: np.float64, torch.float32: np.float32}
# what is active: modes of the dispatcher, transforms of torch.func, torch.jit.trace
_mode_count = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_has_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
_tracing_state = getattr(torch._C, "_get_tracing_state", lambda: None)
_library = torch.library.Library("psiphi", "FRAGMENT")
_forward: Any = torch.autograd.forward_ad


class Tensor(Protocol):
    """The part of `torch.Tensor` that is used here."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def is_cuda(self) -> bool: ...
    @property
    def requires_grad(self) -> bool: ...
    def detach(self) -> Tensor: ...
    def numpy(self, *, force: bool = False) -> np.ndarray: ...
    def contiguous(self) -> Tensor: ...
    def expand(self, *sizes: int) -> Tensor: ...
    def new_empty(self, size: tuple[int, ...]) -> Tensor: ...
    def sum_to_size(self, shape: tuple[int, ...]) -> Tensor: ...


class Context(Protocol):
    """The part of the context of a `torch.autograd.Function` that is used here."""

    function: DifferentiableArrayFunction

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...
    @property
    def needs_input_grad(self) -> tuple[bool, ...]: ...
    def save_for_backward(self, *tensors: Tensor) -> None: ...
    def save_for_forward(self, *tensors: Tensor) -> None: ...


def call(function: DifferentiableArrayFunction, values: Sequence[Any]) -> Any:
    """The results as tensors, which autograd, torch.compile and vmap can follow."""
    compiling = torch.compiler.is_compiling()
    if compiling and (getattr(function, "is_temporary", False) or _is_differentiating()):
        return _graph_break(function, values)
    forward_mode = _forward._current_level >= 0  # tensors may have tangents
    recorded = compiling or _tracing_state() is not None  # only operators are recorded
    eager = not (recorded or _has_transforms() or _mode_count() or forward_mode)
    tensors = values if eager and _have_one_dtype(values) else _tensors(function, values)
    index, needs_grad = (
        function.number,
        torch.is_grad_enabled() and any(x.requires_grad for x in tensors),
    )
    if eager:
        return _EagerCall.apply(function, *tensors) if needs_grad else _evaluate(function, tensors)
    if recorded:
        return getattr(torch.ops.psiphi, _operator_key(function)[0])(
            _operator_key(function)[1], *tensors
        )
    if (_has_transforms() and not _is_functionalizing()) or needs_grad or forward_mode:
        return _TransformedCall.apply(index, *tensors)
    return _call_operator(index, *tensors)


# A graph cannot refer to a function that exists for one call only, and operators have no rules for
# forward mode and `torch.func.grad`: torch.compile runs these calls between two graphs.
_graph_break = torch.compiler.disable(call)


def _is_differentiating() -> bool:
    """Whether forward mode or a derivative of torch.func is active."""
    functorch = torch._C._functorch
    stack = functorch.get_interpreter_stack() if _has_transforms() else None
    derivatives = functorch.TransformType.Grad, functorch.TransformType.Jvp
    return _forward._current_level >= 0 or any(level.key() in derivatives for level in stack or ())


_is_differentiating._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _is_functionalizing() -> bool:
    """Whether the call comes from `torch.func.functionalize`, which supports operators only."""
    top = torch._C._functorch.peek_interpreter_stack()
    return top is not None and top.key() == torch._C._functorch.TransformType.Functionalize


def _have_one_dtype(values: Sequence[Any]) -> bool:
    """Whether all are tensors of one dtype, float64 or float32. NumPy checks their shapes later."""
    kind = getattr(values[0], "dtype", None)
    return kind in KINDS and all(type(x) is torch.Tensor and x.dtype is kind for x in values)


def _call_operator(index: int, *tensors: Tensor) -> Any:
    return getattr(torch.ops.psiphi, operator(index))(index, *tensors)


def _tensors(function: DifferentiableArrayFunction, values: Sequence[Any]) -> list[Any]:
    """All arguments as tensors of one dtype: float32 if all tensors are float32, else float64."""
    kinds = {x.dtype for x in values if isinstance(x, torch.Tensor)}
    kind = next(iter(kinds)) if len(kinds) == 1 else torch.float64
    tensors = []
    for x, arg in zip(values, function.inputs, strict=True):
        if not isinstance(x, torch.Tensor):
            numbers = read_numbers(function.name, arg, x)
            # copied: the backward pass reads it later
            x = torch.from_numpy(np.array(numbers, KINDS.get(kind, float)))
        if x.dtype not in KINDS or x.shape[x.ndim - len(arg.shape) :] != arg.shape:
            check_array(function.name, arg, x.shape, str(x.dtype).removeprefix("torch."))
        tensors.append(x if x.dtype == kind else x.to(kind))
    return tensors


def operator(index: int) -> str:
    """The name of a function's operator, which depends on the numbers of arguments and results."""
    function = function_of(index)
    return _register_operator(len(function.inputs), len(function.outputs))


def _operator_key(function: DifferentiableArrayFunction) -> tuple[str, int]:
    """Name and number of a function's operator: constants of a graph of torch.compile."""
    return operator(function.number), function.number


_operator_key._dynamo_marked_constant = True  # type: ignore[attr-defined]


@cache
def _register_operator(n_inputs: int, n_outputs: int) -> str:
    """The name of the operator, which is registered at the first call."""
    name = f"call_{n_inputs}_{n_outputs}"
    inputs = "".join(f", Tensor x{i}" for i in range(n_inputs))
    outputs = ", ".join(["Tensor"] * n_outputs)
    _library.define(
        f"{name}(int function{inputs}) -> {outputs if n_outputs == 1 else f'({outputs})'}"
    )
    full = f"psiphi::{name}"
    torch.library.impl(full, ("CPU", "CUDA"), _run_operator, lib=_library)
    torch.library.register_fake(full, _fake_results, lib=_library)
    torch.library.register_autograd(full, _backward_rule, setup_context=_save_inputs, lib=_library)
    torch.library.register_vmap(full, _vmap_rule, lib=_library)
    return name


def _run_operator(index: int, *tensors: Tensor) -> Any:
    return _compute(function_of(index), tensors, list(map(_as_view, tensors)))


def _evaluate(function: DifferentiableArrayFunction, tensors: Sequence[Tensor]) -> Any:
    """The results without the dispatcher, except for tensors that have no NumPy view, such as the
    stacked weights of `torch.autograd.grad(..., is_grads_batched=True)`."""
    try:
        views = list(map(_as_view, tensors))
    except RuntimeError:
        return _call_operator(function.number, *tensors)
    return _compute(function, tensors, views)


def _compute(
    function: DifferentiableArrayFunction, tensors: Sequence[Tensor], views: list[Any]
) -> Any:
    """The results: on the CPU with NumPy views, on the GPU by a kernel."""
    if tensors[0].is_cuda:
        return function.run([x.contiguous() for x in _expand_unshared(function, tensors)])
    results = _run_on_cpu(function, views)
    if isinstance(results, tuple):
        return tuple(torch.from_numpy(np.asarray(x)) for x in results)
    return torch.from_numpy(np.asarray(results))


def _expand_unshared(
    function: DifferentiableArrayFunction, tensors: Sequence[Tensor]
) -> Sequence[Tensor]:
    """The tensors; arguments that cannot be one row for the whole batch get all batch axes."""
    if not (unshared := getattr(function, "unshared", ())):
        return tensors
    batch = torch.broadcast_shapes(*batch_shapes(function, [x.shape for x in tensors]))
    pairs = zip(function.inputs, tensors, strict=True)
    return [x.expand(*batch, *arg.shape) if arg.name in unshared else x for arg, x in pairs]


def _as_view(x: Tensor) -> Any:
    """A NumPy view of a tensor, or a copy if there is no view (the negative bit is set). A tensor
    on the GPU is returned itself."""
    if x.is_cuda:
        return x
    try:
        return (x.detach() if x.requires_grad else x).numpy()
    except RuntimeError:
        return x.numpy(force=True)


def _run_on_cpu(function: DifferentiableArrayFunction, arrays: list[np.ndarray]) -> Any:
    """The results for arrays of the right dtype and core shapes; an error if batch axes differ."""
    if getattr(function, "needs_no_check", False):
        try:
            return function.run(arrays)
        except ValueError:
            pass
    return function(*arrays)


def _fake_results(index: int, *tensors: Tensor) -> Any:
    """Empty results with the right shapes."""
    function = function_of(index)
    leads = batch_shapes(function, [x.shape for x in tensors])
    try:
        batch = torch.broadcast_shapes(*leads)
    except RuntimeError:
        names = (arg.name for arg in function.inputs)
        batch = batch_axes(function.name, dict(zip(names, leads, strict=True)))
    results = tuple(tensors[0].new_empty((*batch, *arg.shape)) for arg in function.outputs)
    return results[0] if len(results) == 1 else results


def _save_inputs(ctx: Context, inputs: Sequence[Any], output: object) -> None:
    ctx.function = function_of(inputs[0])
    ctx.save_for_backward(*inputs[1:])


def _save_for_jvp(ctx: Context, inputs: Sequence[Any], output: object) -> None:
    _save_inputs(ctx, inputs, output)
    ctx.save_for_forward(*inputs[1:])


def _jvp_rule(ctx: Context, _: object, *changes: Tensor | None) -> Any:
    """Forward mode: the pushforward, by the arguments that have a tangent."""
    function, tensors = ctx.function, ctx.saved_tensors
    pairs = zip(function.inputs, changes, strict=True)
    tangents = {arg.name: x for arg, x in pairs if x is not None}
    return call(function.pushforward(*tangents), (*tensors, *tangents.values()))


def _backward_rule(ctx: Context, *weights: Tensor) -> Any:
    """The pullback, by the arguments that need a gradient, summed over axes along which these were
    broadcast."""
    function, tensors, needed = ctx.function, ctx.saved_tensors, ctx.needs_input_grad[1:]
    names = [arg.name for arg, needs in zip(function.inputs, needed, strict=True) if needs]
    results = _run_pullback(function.pullback(*names), (*tensors, *weights)) if names else ()
    gradients = iter(results if isinstance(results, tuple) else (results,))
    return None, *(
        _sum_to_shape(next(gradients), x.shape) if needs else None
        for x, needs in zip(tensors, needed, strict=True)
    )


def _run_pullback(pullback: DifferentiableArrayFunction, tensors: Sequence[Tensor]) -> Any:
    """The gradients. In a plain backward pass the tensors need no check: they are the function's
    arguments, and weights with the dtypes and shapes of its results."""
    plain = not (
        torch.is_grad_enabled()
        or torch.compiler.is_compiling()
        or _has_transforms()
        or _mode_count()
        or _forward._current_level >= 0
    )
    return _evaluate(pullback, tensors) if plain else call(pullback, tensors)


def _sum_to_shape(gradient: Tensor, shape: tuple[int, ...]) -> Any:
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _vmap_rule(info: object, axes: Sequence[int | None], index: int, *tensors: Tensor) -> Any:
    """vmap: one more batch axis, in front of all others."""
    function = function_of(index)
    results = call(function, add_batch_axis(torch.movedim, function.inputs, tensors, axes[1:]))
    return results, tuple(0 for _ in results) if isinstance(results, tuple) else 0


class _TransformedCall(torch.autograd.Function):
    """The rules for transforms of torch.func and modes of the dispatcher."""

    forward, setup_context = staticmethod(_call_operator), staticmethod(_save_for_jvp)
    backward, jvp, vmap = (
        staticmethod(_backward_rule),
        staticmethod(_jvp_rule),
        staticmethod(_vmap_rule),
    )


class _EagerCall(torch.autograd.Function):
    """The rules for eager calls, without transforms and modes."""

    backward = staticmethod(_backward_rule)

    @staticmethod
    def forward(ctx: Context, function: DifferentiableArrayFunction, *tensors: Tensor) -> Any:
        ctx.function = function
        ctx.save_for_backward(*tensors)
        return _evaluate(function, tensors)
