"""Big batches on all cores: one gufunc call cut into slices of the batch, which NumPy's loops run without the GIL.

A batch that lies in memory as one run of rows is cut at multiples of `ROWS` rows. A kernel that takes several rows at a
time then meets each row in the same place as in one whole call, and the results are equal bit for bit.
"""

from __future__ import annotations

import contextvars
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi.backends.cpu.gufunc import core_dims, failed, pending_error

GRAIN = 6_000_000  # flops that are worth a thread's while: about 0.3 ms on one core
ROWS = 32  # slices hold a multiple of so many rows; kernels take 32 or a divisor of it at a time
SLICES = 2  # at most so many for each thread: a core that is busy elsewhere takes fewer; each costs some microseconds

_ndarray = np.ndarray
_lock = threading.Lock()
_threads: int | None = None
_pool: Any = None


def get_threads() -> int:
    """How many threads a big batch may use: set_threads, else PSIPHI_NUM_THREADS, else the CPUs of this process."""
    if _threads is None:
        set_threads(None)
    return _threads or 1


def set_threads(n: int | None) -> None:
    """Use `n` threads for big batches; None returns to the default."""
    global _threads, _pool
    count = _default() if n is None else n
    if isinstance(count, np.integer):
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise Error(
            f"the number of threads is {count!r}, expected a whole number of at least 1",
            "give 1, 2, ... or None",
        )
    with _lock:
        pool, _pool, _threads = _pool, None, count
    if pool is not None:
        pool.shutdown(wait=False)


def run(
    ufunc: np.ufunc, args: Sequence[Any], out: Any = None, dtype: Any = None, flops: int = 0
) -> Any:
    """`ufunc(*args, out=out, dtype=dtype)`; a big batch, of `flops` for each row, runs on several threads.

    Arguments that are no plain arrays, lists or numbers (dask, xarray, units, subclasses) go to the ufunc as they are, so
    that their own `__array_ufunc__` decides. An error inside the loop is raised here.
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


def _run_batch(ufunc: np.ufunc, args: Sequence[Any], out: Any, dtype: Any, flops: int) -> Any:
    results, batch = None, ()
    args = [np.asarray(arg) if type(arg) in (list, tuple) else arg for arg in args]
    if flops * _most_rows(args) >= 2 * GRAIN and get_threads() > 1:
        batch = _batch_shape(ufunc, args)
        if batch and math.prod(batch) * flops >= 2 * GRAIN:
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


def _most_rows(args: list[Any]) -> float:
    """A quick bound on the size of the batch, so that the rest of this file need not slow down small ones."""
    most = 1
    for arg in args:
        if type(arg) is not _ndarray or arg.ndim > 2:
            return math.inf
        if arg.ndim == 2 and len(arg) > most:
            most = len(arg)
    return most


def _batch_shape(ufunc: np.ufunc, args: list[Any]) -> tuple[int, ...]:
    """The leading dimensions of the call; () when NumPy should have it whole: not plain, or about to be an error."""
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
    ufunc: np.ufunc, args: list[Any], out: Any, dtype: Any, batch: tuple[int, ...]
) -> list[np.ndarray] | None:
    """The arrays to write to, new or given; None when NumPy should judge them (wrong shape, overlap, subclass)."""
    given = out if isinstance(out, tuple) else (out,) + (None,) * (ufunc.nout - 1)
    asked = [arg.dtype if type(arg) is _ndarray else type(arg) for arg in args]
    rule: dict[str, Any] = (
        {}
        if dtype is None
        else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
    )
    try:
        types = ufunc.resolve_dtypes((*asked, *(None,) * ufunc.nout), **rule)[ufunc.nin :]
        shapes = [
            batch + tuple(int(dim) for dim in core)
            for core in core_dims(ufunc.signature or "")[ufunc.nin :]
        ]
    except (TypeError, ValueError):
        return None
    if len(given) != ufunc.nout:
        return None
    arrays = [
        np.empty(shape, kind) if o is None else o
        for o, shape, kind in zip(given, shapes, types, strict=True)
    ]
    for o, array, shape in zip(given, arrays, shapes, strict=True):
        if type(array) is not _ndarray or array.shape != shape:
            return None
        others = [x for x in (*args, *arrays) if x is not o]
        if o is not None and (
            any(x is o for x in args) or any(np.may_share_memory(o, x) for x in others)
        ):
            return None
    return arrays


def _run_slices(
    ufunc: np.ufunc, operands: list[Any], dtype: Any, batch: tuple[int, ...], flops: int
) -> None:
    """Cut all operands along the longest axis of the batch, and work the slices off on several threads, this one included."""
    cores = [len(core) for core in core_dims(ufunc.signature or "")]
    if len(batch) > 1 and all(
        _is_one_run(x, core, batch) for x, core in zip(operands, cores, strict=True)
    ):
        operands = [_flat(x, core) for x, core in zip(operands, cores, strict=True)]
        batch = (math.prod(batch),)
    axis = max(range(len(batch)), key=batch.__getitem__)
    threads, length, from_right = get_threads(), batch[axis], len(batch) - axis
    count = min(SLICES * threads, math.prod(batch) * flops // GRAIN)
    step = ROWS * math.ceil(length / (ROWS * count))
    state: Any = {
        "call": np.geterrcall(),
        **np.geterr(),
    }  # NumPy 1 keeps it for each thread, NumPy 2 for each context

    def work(start: int) -> None:
        cut = [
            _cut(x, from_right + core, slice(start, start + step))
            for x, core in zip(operands, cores, strict=True)
        ]
        with np.errstate(**state):
            ufunc(*cut[: ufunc.nin], out=tuple(cut[ufunc.nin :]), dtype=dtype)

    each(range(0, length, step), work, threads)


def _is_one_run(x: Any, core: int, batch: tuple[int, ...]) -> bool:
    """Whether an operand's rows follow each other in memory, or it has one row for the whole batch."""
    return (
        type(x) is not _ndarray
        or x.ndim == core
        or (x.flags.c_contiguous and x.shape[: x.ndim - core] == batch)
    )


def _flat(x: Any, core: int) -> Any:
    return (
        x if type(x) is not _ndarray or x.ndim == core else x.reshape(-1, *x.shape[x.ndim - core :])
    )


def _cut(x: Any, from_right: int, piece: slice) -> Any:
    """An operand's share of a slice: all of it where it is broadcast along the axis that is cut."""
    if type(x) is not _ndarray or x.ndim < from_right or x.shape[-from_right] == 1:
        return x
    return x[(slice(None),) * (x.ndim - from_right) + (piece,)]


def each(pieces: Iterable[Any], work: Callable[[Any], None], threads: int) -> None:
    """Work pieces off on up to so many threads, this one included, each in a copy of this context; where one fails, those that
    are left are not begun."""
    left = deque(pieces)

    def some() -> None:
        while left:
            try:
                piece = left.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                work(piece)
            except BaseException:
                left.clear()
                raise

    futures = []
    try:
        for _ in range(min(threads, len(left)) - 1):
            futures.append(_executor().submit(contextvars.copy_context().run, some))
    except (
        RuntimeError
    ):  # the pool was shut down meanwhile, or the interpreter is about to end: fewer hands
        pass
    try:
        some()
    finally:
        for future in futures:
            if not future.cancel():
                future.result()


def _executor() -> Any:
    global _pool
    with _lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(max(1, (_threads or 2) - 1), thread_name_prefix="psiphi")
        return _pool


def _default() -> int:
    text = os.environ.get("PSIPHI_NUM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise Error(
                f"PSIPHI_NUM_THREADS is {text!r}, expected a whole number of at least 1",
                "set it to 1 or more",
            )
        return int(text)
    return cores()


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _raise_pending(ufunc: np.ufunc) -> None:
    error = pending_error(ufunc)
    if error is not None:
        raise error


def _forget_pool() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that was held."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
