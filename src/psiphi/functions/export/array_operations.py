"""A function in the operations of JAX or torch, `to_jax` and `to_torch`: its tape is run on their
arrays, operation by operation.

This is slower than the compiled code, which takes arrays of both (`docs/arrays.md`), and serves
where that is not available, e.g. to export a traced graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, check_count
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS, evaluate
from psiphi.functions.compiled_function import Function
from psiphi.functions.export.sympy_export import require_straight_code


def to_jax(function: Function) -> Callable:
    """f(q, ...) on JAX arrays with leading batch axes; one result, or a tuple of results."""
    jnp = import_optional("jax.numpy", "to_jax", "psiphi[jax]")
    operations = OP_FUNCTIONS | {
        Op.SIN: jnp.sin,
        Op.COS: jnp.cos,
        Op.SQRT: jnp.sqrt,
        Op.LESS: lambda a, b: jnp.where(a < b, 1.0, 0.0),
    }
    return _array_function(
        function,
        "JAX",
        operations,
        jnp.asarray,
        lambda x, shape, like: jnp.broadcast_to(x, shape),
        jnp.stack,
    )


def to_torch(function: Function) -> Callable:
    """f(q, ...) on torch tensors with leading batch axes; one result, or a tuple of results."""
    torch = import_optional("torch", "to_torch", "psiphi[torch]")

    def on_scalars(operation: Callable) -> Callable:
        """The operation for tensors and floats."""
        return lambda x: (
            operation(x)
            if isinstance(x, torch.Tensor)
            else float(operation(torch.tensor(x, dtype=torch.float64)))
        )

    def broadcast(x: AnyScalar, shape: tuple[int, ...], like: Any) -> Any:
        return torch.broadcast_to(
            x
            if isinstance(x, torch.Tensor)
            else torch.full((), x, dtype=like.dtype, device=like.device),
            shape,
        )

    less = {Op.LESS: lambda a, b: (a < b) * 1.0}
    operations = (
        OP_FUNCTIONS
        | less
        | {
            Op.SIN: on_scalars(torch.sin),
            Op.COS: on_scalars(torch.cos),
            Op.SQRT: on_scalars(torch.sqrt),
        }
    )
    return _array_function(
        function,
        "torch",
        operations,
        torch.as_tensor,
        broadcast,
        lambda parts, axis: torch.stack(parts, dim=axis),
    )


def _array_function(
    function: Function,
    library: str,
    operations: dict,
    read: Callable,
    broadcast: Callable,
    stack: Callable,
) -> Callable:
    """f(q, ...) in the operations of a library. `read` converts an argument to its array,
    `broadcast(x, shape, like)` a number, `stack(parts, axis)` joins arrays."""
    code = require_straight_code(function, library)
    inputs, outputs = code.program.inputs, code.program.outputs

    def exported(*arrays: Any) -> Any:
        check_count(exported.__name__, arrays, (arg.name for arg in inputs))
        values, leads = [], {}
        for arg, array in zip(inputs, arrays, strict=True):
            try:
                x = read(array)
                lead = tuple(x.shape[: x.ndim - len(arg.shape)])
                if tuple(x.shape[len(lead) :]) != tuple(arg.shape):
                    expected = f"({', '.join(['...', *map(str, arg.shape)])})"
                    raise StateError(
                        f"{arg.name} has shape {tuple(x.shape)}, expected {expected}",
                        f"give {arg.name} {expected}",
                    )
                values.append(x.reshape((*lead, arg.size)))
            except (TypeError, ValueError, RuntimeError) as error:
                if isinstance(error, StateError):
                    raise
                raise StateError(
                    f"{arg.name} is {shown(array)}, which {library} cannot read as an array",
                    "give an array of real numbers",
                ) from error
            leads[arg.name] = lead
        lead = batch_axes(exported.__name__, leads)
        rows = code.by_output(
            evaluate(code.tape, code.output_nodes, lambda i, k: values[int(i)][..., k], operations)
        )
        results = [
            stack([broadcast(x, lead, values[0]) for x in row], axis=-1).reshape(
                (*lead, *arg.shape)
            )
            for arg, row in zip(outputs, rows, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    exported.__name__ = function.source.quantity.name
    return exported
