"""Functions as operators of torch, with autograd, fake and vmap rules: gradients of any order, torch.compile, torch.func.

    psiphi::call_3_1(int function, Tensor x0, Tensor x1, Tensor x2) -> Tensor

is every function of three arguments and one result: `function` is its number. Its backward is the operator of the function's
own `pullback`, its forward mode that of its `pushforward`, which are functions again. Tensors of the host are read where they
are, as NumPy's views; those of a card go to a kernel.

torch.compile sees the operator. Outside of it the same rules stand around it as an `autograd.Function`: `torch.func.grad` knows
rules of that kind alone, and they cost less. Where nobody watches, the dispatcher is not asked at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from psiphi._util.extras import import_optional
from psiphi._util.validate import batch_axes, check_array
from psiphi.functions.arrays.array_dispatch import batch_shapes, read_numbers
from psiphi.functions.arrays.function_registry import add_batch_axis, function_of

torch: Any = import_optional("torch", "a tensor", "psiphi[torch]")

KINDS = {torch.float64: np.float64, torch.float32: np.float32}
_modes = getattr(
    torch._C, "_len_torch_dispatch_stack", lambda: 1
)  # of the dispatcher, which are to see the operator
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)  # of torch.func
_traces = getattr(torch._C, "_get_tracing_state", lambda: None)  # of torch.jit.trace
_library = torch.library.Library("psiphi", "FRAGMENT")
_forward: Any = torch.autograd.forward_ad


def call(function: Any, values: Sequence[Any]) -> Any:
    """The results as tensors: what autograd, torch.compile and vmap follow."""
    compiles = torch.compiler.is_compiling()
    if compiles and (getattr(function, "is_temporary", False) or _is_differentiating()):
        return _graph_break(function, values)
    carried = _forward._current_level >= 0  # tensors may carry changes, for forward mode
    recorded = compiles or _traces() is not None  # what is no operator would be a constant
    watched = recorded or _transforms() or _modes() or carried
    tensors = values if not watched and _have_one_dtype(values) else _tensors(function, values)
    index, wanted = (
        function.number,
        torch.is_grad_enabled() and any(x.requires_grad for x in tensors),
    )
    if not watched:
        return _EagerCall.apply(function, *tensors) if wanted else _evaluate(function, tensors)
    if recorded:
        return getattr(torch.ops.psiphi, _operator_key(function)[0])(
            _operator_key(function)[1], *tensors
        )
    if (_transforms() and not _is_functionalizing()) or wanted or carried:
        return _TransformedCall.apply(index, *tensors)
    return _call_operator(index, *tensors)


# A function of one call has no number that a graph could keep, and operators have no rules for forward mode and
# `torch.func.grad`: torch.compile runs these between two graphs.
_graph_break = torch.compiler.disable(call)


def _is_differentiating() -> bool:
    """Whether tensors carry changes, or a transform of torch.func takes derivatives."""
    functorch = torch._C._functorch
    stack = functorch.get_interpreter_stack() if _transforms() else None
    slopes = functorch.TransformType.Grad, functorch.TransformType.Jvp
    return _forward._current_level >= 0 or any(level.key() in slopes for level in stack or ())


_is_differentiating._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _is_functionalizing() -> bool:
    """Whether `torch.func.functionalize` asks: it knows operators alone."""
    top = torch._C._functorch.peek_interpreter_stack()
    return top is not None and top.key() == torch._C._functorch.TransformType.Functionalize


def _have_one_dtype(values: Sequence[Any]) -> bool:
    """Whether these are tensors of one type, float64 or float32; what else is wrong with them, NumPy finds."""
    kind = getattr(values[0], "dtype", None)
    return kind in KINDS and all(type(x) is torch.Tensor and x.dtype is kind for x in values)


def _call_operator(index: int, *tensors: Any) -> Any:
    return getattr(torch.ops.psiphi, operator(index))(index, *tensors)


def _tensors(function: Any, values: Sequence[Any]) -> list[Any]:
    """All arguments as tensors of one type: float32 where all tensors are; what is no tensor follows them."""
    kinds = {x.dtype for x in values if isinstance(x, torch.Tensor)}
    kind = next(iter(kinds)) if len(kinds) == 1 else torch.float64
    tensors = []
    for index, (x, arg) in enumerate(zip(values, function.inputs, strict=True)):
        if not isinstance(x, torch.Tensor):
            x = torch.from_numpy(
                np.array(
                    read_numbers(function.name, function.inputs[index], x), KINDS.get(kind, float)
                )
            )  # a copy: gradients come later
        if x.dtype not in KINDS or x.shape[x.ndim - len(arg.shape) :] != arg.shape:
            check_array(
                function.name, function.inputs[index], x.shape, str(x.dtype).removeprefix("torch.")
            )
        tensors.append(x if x.dtype == kind else x.to(kind))
    return tensors


def operator(index: int) -> str:
    """The name of a function's operator: one for all with so many arguments and results."""
    function = function_of(index)
    return _register_operator(len(function.inputs), len(function.outputs))


def _operator_key(function: Any) -> tuple[str, int]:
    """What a graph knows a function by, for torch.compile: of another function it is another graph."""
    return operator(function.number), function.number


_operator_key._dynamo_marked_constant = True  # type: ignore[attr-defined]


@cache
def _register_operator(takes: int, gives: int) -> str:
    """Its name, registered when it is first asked for."""
    name = f"call_{takes}_{gives}"
    taken = "".join(f", Tensor x{i}" for i in range(takes))
    _library.define(
        f"{name}(int function{taken}) -> {'Tensor' if gives == 1 else '(' + ', '.join(['Tensor'] * gives) + ')'}"
    )
    full = f"psiphi::{name}"
    torch.library.impl(full, ("CPU", "CUDA"), _run_operator, lib=_library)
    torch.library.register_fake(full, _fake_results, lib=_library)
    torch.library.register_autograd(full, _backward_rule, setup_context=_save_inputs, lib=_library)
    torch.library.register_vmap(full, _vmap_rule, lib=_library)
    return name


def _run_operator(index: int, *tensors: Any) -> Any:
    return _compute(function_of(index), tensors, list(map(_as_view, tensors)))


def _evaluate(function: Any, tensors: Sequence[Any]) -> Any:
    """Where nobody watches; but what has no numbers of its own (`torch.autograd.grad(..., is_grads_batched=True)` stacks
    weights) the dispatcher takes apart."""
    try:
        views = list(map(_as_view, tensors))
    except RuntimeError:
        return _call_operator(function.number, *tensors)
    return _compute(function, tensors, views)


def _compute(function: Any, tensors: Sequence[Any], views: list[Any]) -> Any:
    """On the host by views, on a card by its kernel."""
    if tensors[0].is_cuda:
        return function.run([x.contiguous() for x in _expand_unshared(function, tensors)])
    results = _run_on_cpu(function, views)
    if isinstance(results, tuple):
        return tuple(torch.from_numpy(np.asarray(x)) for x in results)
    return torch.from_numpy(np.asarray(results))


def _expand_unshared(function: Any, tensors: Sequence[Any]) -> Sequence[Any]:
    """Arguments that cannot be one row for all get every batch axis."""
    if not (own := getattr(function, "unshared", ())):
        return tensors
    batch = torch.broadcast_shapes(*batch_shapes(function, [x.shape for x in tensors]))
    each = zip(function.inputs, tensors, strict=True)
    return [x.expand(*batch, *arg.shape) if arg.name in own else x for arg, x in each]


def _as_view(x: Any) -> Any:
    """The numbers of a tensor where they are; where that cannot be (its sign is kept apart), a copy. Of a card: itself."""
    if x.is_cuda:
        return x
    try:
        return (x.detach() if x.requires_grad else x).numpy()
    except RuntimeError:
        return x.numpy(force=True)


def _run_on_cpu(function: Any, arrays: list[np.ndarray]) -> Any:
    """Its results for arrays of the right kind; where they do not fit together, its words about it."""
    if getattr(function, "needs_no_check", False):
        try:
            return function.run(arrays)
        except ValueError:
            pass
    return function(*arrays)


def _fake_results(index: int, *tensors: Any) -> Any:
    """What the results look like."""
    function, shapes = function_of(index), [x.shape for x in tensors]
    try:
        batch = torch.broadcast_shapes(*batch_shapes(function, shapes))
    except RuntimeError:
        batch = batch_axes(
            function.name,
            dict(
                zip(
                    (arg.name for arg in function.inputs),
                    batch_shapes(function, shapes),
                    strict=True,
                )
            ),
        )
    results = tuple(tensors[0].new_empty((*batch, *arg.shape)) for arg in function.outputs)
    return results[0] if len(results) == 1 else results


def _save_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.function = function_of(inputs[0])
    ctx.save_for_backward(*inputs[1:])


def _save_for_jvp(ctx: Any, inputs: Any, output: Any) -> None:
    _save_inputs(ctx, inputs, output)
    ctx.save_for_forward(*inputs[1:])


def _jvp_rule(ctx: Any, _: Any, *changes: Any) -> Any:
    """Forward mode: the function's own change, by the arguments that have one."""
    function, tensors = ctx.function, ctx.saved_tensors
    given = [
        (arg.name, x) for arg, x in zip(function.inputs, changes, strict=True) if x is not None
    ]
    return call(
        function.pushforward(*(name for name, _ in given)), (*tensors, *(x for _, x in given))
    )


def _backward_rule(ctx: Any, *weights: Any) -> Any:
    """The function's own gradients, by the arguments that want one; summed over axes along which these were repeated."""
    function, tensors, wanted = ctx.function, ctx.saved_tensors, ctx.needs_input_grad[1:]
    names = [arg.name for arg, wants in zip(function.inputs, wanted, strict=True) if wants]
    found = _run_pullback(function.pullback(*names), (*tensors, *weights)) if names else ()
    each = iter(found if isinstance(found, tuple) else (found,))
    return None, *(
        _sum_to_shape(next(each), x.shape) if wants else None
        for x, wants in zip(tensors, wanted, strict=True)
    )


def _run_pullback(pullback: Any, tensors: Sequence[Any]) -> Any:
    """What autograd asks for while nobody watches is of the right kind: the function's arguments, weights like its results."""
    watched = torch.is_grad_enabled() or torch.compiler.is_compiling() or _transforms() or _modes()
    watched = watched or _forward._current_level >= 0
    return call(pullback, tensors) if watched else _evaluate(pullback, tensors)


def _sum_to_shape(gradient: Any, shape: Any) -> Any:
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _vmap_rule(info: Any, axes: Any, index: int, *tensors: Any) -> Any:
    """vmap: one more batch axis, in front of all others."""
    function = function_of(index)
    results = call(function, add_batch_axis(torch.movedim, function.inputs, tensors, axes[1:]))
    return results, tuple(0 for _ in results) if isinstance(results, tuple) else 0


class _TransformedCall(torch.autograd.Function):
    """The rules, for transforms of torch.func and modes of the dispatcher."""

    forward, setup_context = staticmethod(_call_operator), staticmethod(_save_for_jvp)
    backward, jvp, vmap = (
        staticmethod(_backward_rule),
        staticmethod(_jvp_rule),
        staticmethod(_vmap_rule),
    )


class _EagerCall(torch.autograd.Function):
    """The rules, where nobody watches."""

    backward = staticmethod(_backward_rule)

    @staticmethod
    def forward(ctx: Any, function: Any, *tensors: Any) -> Any:
        ctx.function = function
        ctx.save_for_backward(*tensors)
        return _evaluate(function, tensors)
