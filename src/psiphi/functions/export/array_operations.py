"""A function in another library's own operations, `to_jax` and `to_torch`: the tape on its arrays, number by number.

Slower than the compiled code, which takes arrays of both (`docs/arrays.md`), and for where that does not reach: `jax.jit` on
cards, forward mode and higher derivatives of either library, export of a traced graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, check_count
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS, evaluate
from psiphi.functions.compiled_function import Function
from psiphi.functions.export.sympy_export import require_straight_code


def to_jax(function: Function) -> Callable:
    """f(q, ...) on jax.numpy arrays with any batch axes in front; one result, or a tuple of them."""
    jnp = import_optional("jax.numpy", "to_jax", "psiphi[jax]")
    meaning = OP_FUNCTIONS | {
        Op.SIN: jnp.sin,
        Op.COS: jnp.cos,
        Op.SQRT: jnp.sqrt,
        Op.LESS: lambda a, b: jnp.where(a < b, 1.0, 0.0),
    }
    return _array_function(
        function,
        "JAX",
        meaning,
        jnp.asarray,
        lambda x, shape, like: jnp.broadcast_to(x, shape),
        jnp.stack,
    )


def to_torch(function: Function) -> Callable:
    """f(q, ...) on torch tensors with any batch axes in front; one result, or a tuple of them."""
    torch = import_optional("torch", "to_torch", "psiphi[torch]")

    def on(rule: Callable) -> Callable:
        return lambda x: (
            rule(x)
            if isinstance(x, torch.Tensor)
            else float(rule(torch.tensor(x, dtype=torch.float64)))
        )

    def wide(x: Any, shape: tuple[int, ...], like: Any) -> Any:
        return torch.broadcast_to(
            x
            if isinstance(x, torch.Tensor)
            else torch.full((), x, dtype=like.dtype, device=like.device),
            shape,
        )

    less = {Op.LESS: lambda a, b: (a < b) * 1.0}
    meaning = (
        OP_FUNCTIONS
        | less
        | {Op.SIN: on(torch.sin), Op.COS: on(torch.cos), Op.SQRT: on(torch.sqrt)}
    )
    return _array_function(
        function,
        "torch",
        meaning,
        torch.as_tensor,
        wide,
        lambda parts, axis: torch.stack(parts, dim=axis),
    )


def _array_function(
    function: Function, name: str, meaning: dict, read: Callable, wide: Callable, stack: Callable
) -> Callable:
    code = require_straight_code(function, name)
    inputs, outputs = code.program.inputs, code.program.outputs

    def bridged(*arrays: Any) -> Any:
        check_count(bridged.__name__, arrays, (arg.name for arg in inputs))
        given, leads = [], {}
        for arg, array in zip(inputs, arrays, strict=True):
            try:
                x = read(array)
                lead = tuple(x.shape[: x.ndim - len(arg.shape)])
                if tuple(x.shape[len(lead) :]) != tuple(arg.shape):
                    raise StateError(
                        f"{arg.name} has shape {tuple(x.shape)}",
                        f"give (..., {', '.join(map(str, arg.shape))})",
                    )
                given.append(x.reshape((*lead, arg.size)))
            except (TypeError, ValueError, RuntimeError) as error:
                if isinstance(error, StateError):
                    raise
                raise StateError(
                    f"{arg.name} is {shown(array)}, no array for {name}", "give numbers"
                ) from error
            leads[arg.name] = lead
        lead = batch_axes(bridged.__name__, leads)
        rows = code.by_output(
            evaluate(code.tape, code.output_nodes, lambda i, k: given[int(i)][..., k], meaning)
        )
        results = [
            stack([wide(x, lead, given[0]) for x in own], axis=-1).reshape((*lead, *arg.shape))
            for arg, own in zip(outputs, rows, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    bridged.__name__ = function.source.quantity.name
    return bridged
