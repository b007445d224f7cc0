"""Large batches on all cores: slices of the batch run in threads, since NumPy's loops drop the GIL.

A batch with contiguous rows is cut at multiples of `ROW_MULTIPLE` rows. A kernel that computes
several rows at a time then sees each row in the same lane as in one call of the whole batch, so the
results are equal bit for bit.
"""

from __future__ import annotations

import contextvars
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from psiphi._util.array_types import DType, Out
from psiphi._util.errors import Error
from psiphi.backends.cpu.gufunc import core_dims, failed, pending_error

if TYPE_CHECKING:  # imported at first use
    from concurrent.futures import ThreadPoolExecutor

P = TypeVar("P")

MIN_FLOPS = 6_000_000  # per slice; about 0.3 ms on one core
ROW_MULTIPLE = 32  # rows per slice are a multiple; kernels compute 32 or a divisor of 32 at a time
SLICES_PER_THREAD = 2  # at most: a busy core then takes fewer slices; each costs microseconds

# set by a thread that wants the work of others to end: they stop at the next piece
cancellation: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "cancellation", default=None
)

_ndarray = np.ndarray
_lock = threading.Lock()
_threads: int | None = None
_pool: ThreadPoolExecutor | None = None


class Cancelled(Exception):
    """The thread that waits for this work has cancelled it."""


def check_cancelled() -> None:
    """Raise Cancelled if the event in `cancellation` is set. Long loops call it a few times per
    second."""
    event = cancellation.get()
    if event is not None and event.is_set():
        raise Cancelled


def get_threads() -> int:
    """How many threads a large batch may use.

    The value of set_threads, else of PSIPHI_NUM_THREADS, else the number of CPUs of this process.
    """
    if _threads is None:
        set_threads(None)
    return _threads or 1


def set_threads(n: int | None) -> None:
    """Use `n` threads for large batches; None restores the default."""
    global _threads, _pool
    count = _default_threads() if n is None else n
    if isinstance(count, np.integer):
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise Error(
            f"the number of threads is {count!r}, expected an integer of at least 1",
            "pass 1, 2, ... or None",
        )
    with _lock:
        pool, _pool, _threads = _pool, None, count
    if pool is not None:
        pool.shutdown(wait=False)


def run(
    ufunc: np.ufunc, args: Sequence[Any], out: Out = None, dtype: DType = None, flops: int = 0
) -> Any:
    """`ufunc(*args, out=out, dtype=dtype)`; a large batch, of `flops` per row, runs in threads.

    Arguments that are not plain arrays, lists or numbers (dask, xarray, units, subclasses) are
    passed to the ufunc unchanged, and their `__array_ufunc__` decides. An error inside the loop is
    raised here.
    """
    arg = None
    try:
        for arg in args:
            if arg.ndim > 1:
                break
        else:
            arg = None
    except AttributeError:  # a list, a number, ...
        pass
    if arg is not None:
        return _run_batch(ufunc, args, out, dtype, flops)
    result = ufunc(*args) if out is None and dtype is None else ufunc(*args, out=out, dtype=dtype)
    if failed:
        _raise_pending(ufunc)
    return result


def _run_batch(ufunc: np.ufunc, args: Sequence[Any], out: Out, dtype: DType, flops: int) -> Any:
    results, batch = None, ()
    args = [np.asarray(arg) if type(arg) in (list, tuple) else arg for arg in args]
    if flops * _max_rows(args) >= 2 * MIN_FLOPS and get_threads() > 1:
        batch = _batch_shape(ufunc, args)
        if batch and math.prod(batch) * flops >= 2 * MIN_FLOPS:
            results = _outputs(ufunc, args, out, dtype, batch)
    if results is None:
        result = (
            ufunc(*args) if out is None and dtype is None else ufunc(*args, out=out, dtype=dtype)
        )
    else:
        _run_slices(ufunc, [*args, *results], dtype, batch, flops)
        result = results[0] if len(results) == 1 else tuple(results)
    if failed:
        _raise_pending(ufunc)
    return result


def _max_rows(args: list[Any]) -> float:
    """A quick upper bound of the batch size, so that small batches skip the rest of this file."""
    rows = 1
    for arg in args:
        if type(arg) is not _ndarray or arg.ndim > 2:
            return math.inf
        if arg.ndim == 2 and len(arg) > rows:
            rows = len(arg)
    return rows


def _batch_shape(ufunc: np.ufunc, args: list[Any]) -> tuple[int, ...]:
    """The batch shape of the call; () if NumPy should run the whole call (or raise its error)."""
    batch, dims = (), core_dims(ufunc.signature or "")
    if len(args) != ufunc.nin or not dims:
        return ()
    for arg, core in zip(args, dims, strict=False):
        if type(arg) is _ndarray and arg.ndim >= len(core):
            shape = arg.shape[: arg.ndim - len(core)]
            try:
                batch = shape if not batch or shape == batch else np.broadcast_shapes(batch, shape)
            except ValueError:
                return ()
        elif type(arg) not in (int, float) or core:
            return ()
    return batch


def _outputs(
    ufunc: np.ufunc, args: list[Any], out: Out, dtype: DType, batch: tuple[int, ...]
) -> list[np.ndarray] | None:
    """The arrays to write to, new or given; None to leave them to NumPy.

    NumPy handles given arrays of a wrong shape or a subclass, and those that overlap others.
    """
    outs: tuple[Any, ...] = out if isinstance(out, tuple) else (out,) + (None,) * (ufunc.nout - 1)
    dtypes = [arg.dtype if type(arg) is _ndarray else type(arg) for arg in args]
    options: dict[str, Any] = (
        {}
        if dtype is None
        else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
    )
    try:
        types = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout), **options)[ufunc.nin :]
        shapes = [
            batch + tuple(int(dim) for dim in core)
            for core in core_dims(ufunc.signature or "")[ufunc.nin :]
        ]
    except (TypeError, ValueError):
        return None
    if len(outs) != ufunc.nout:
        return None
    arrays = [
        np.empty(shape, kind) if array_in is None else array_in
        for array_in, shape, kind in zip(outs, shapes, types, strict=True)
    ]
    for array_in, array, shape in zip(outs, arrays, shapes, strict=True):
        if type(array) is not _ndarray or array.shape != shape:
            return None
        others = [x for x in (*args, *arrays) if x is not array_in]
        if array_in is not None and (
            any(x is array_in for x in args)
            or any(np.may_share_memory(array_in, x) for x in others)
        ):
            return None
    return arrays


def _run_slices(
    ufunc: np.ufunc, operands: list[Any], dtype: DType, batch: tuple[int, ...], flops: int
) -> None:
    """Cut all operands along the longest batch axis and run the slices on several threads."""
    cores = [len(core) for core in core_dims(ufunc.signature or "")]
    if len(batch) > 1 and all(
        _has_contiguous_rows(x, core, batch) for x, core in zip(operands, cores, strict=True)
    ):
        operands = [_flatten_batch(x, core) for x, core in zip(operands, cores, strict=True)]
        batch = (math.prod(batch),)
    axis = max(range(len(batch)), key=batch.__getitem__)
    threads, length, axis_from_end = get_threads(), batch[axis], len(batch) - axis
    count = min(SLICES_PER_THREAD * threads, math.prod(batch) * flops // MIN_FLOPS)
    slice_size = ROW_MULTIPLE * math.ceil(length / (ROW_MULTIPLE * count))
    # NumPy 1 has one error state per thread, NumPy 2 one per context
    state: Any = {"call": np.geterrcall(), **np.geterr()}

    def work(start: int) -> None:
        parts = [
            _take_slice(x, axis_from_end + core, slice(start, start + slice_size))
            for x, core in zip(operands, cores, strict=True)
        ]
        with np.errstate(**state):
            ufunc(*parts[: ufunc.nin], out=tuple(parts[ufunc.nin :]), dtype=dtype)

    run_pieces(range(0, length, slice_size), work, threads)


def _has_contiguous_rows(x: object, core: int, batch: tuple[int, ...]) -> bool:
    """Whether an operand's rows are contiguous, or it has one row for the whole batch."""
    return (
        type(x) is not _ndarray
        or x.ndim == core
        or (x.flags.c_contiguous and x.shape[: x.ndim - core] == batch)
    )


def _flatten_batch(x: object, core: int) -> object:
    return (
        x if type(x) is not _ndarray or x.ndim == core else x.reshape(-1, *x.shape[x.ndim - core :])
    )


def _take_slice(x: object, axis_from_end: int, part: slice) -> object:
    """The part of an operand for one slice; all of it if it is broadcast along that axis."""
    if type(x) is not _ndarray or x.ndim < axis_from_end or x.shape[-axis_from_end] == 1:
        return x
    return x[(slice(None),) * (x.ndim - axis_from_end) + (part,)]


def run_pieces(pieces: Iterable[P], work: Callable[[P], None], threads: int) -> None:
    """Run `work` on all pieces, on up to `threads` threads, this one included.

    Each thread has a copy of this context. After an exception no further piece is started.
    """
    queue = deque(pieces)

    def worker() -> None:
        while queue:
            try:
                piece = queue.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                work(piece)
            except BaseException:
                queue.clear()
                raise

    futures = []
    try:
        for _ in range(min(threads, len(queue)) - 1):
            futures.append(_executor().submit(contextvars.copy_context().run, worker))
    except RuntimeError:  # the pool was shut down, or the interpreter exits: use fewer threads
        pass
    try:
        worker()
    finally:
        for future in futures:
            if not future.cancel():
                future.result()


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(max(1, (_threads or 2) - 1), thread_name_prefix="psiphi")
        return _pool


def _default_threads() -> int:
    text = os.environ.get("PSIPHI_NUM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise Error(
                f"PSIPHI_NUM_THREADS is {text!r}, expected an integer of at least 1",
                "set it to 1 or more",
            )
        return int(text)
    return cpu_count()


def cpu_count() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _raise_pending(ufunc: np.ufunc) -> None:
    error = pending_error(ufunc)
    if error is not None:
        raise error


def _renew_pool() -> None:
    """Replace the pool and its lock in a forked child, which has no threads of its parent."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_pool)
