"""Runs the chunks in this process, on all its threads, or on the workers of a Dask cluster.

In this process one chunk is sampled or written while the kernel computes the next one. On a
cluster, Dask gives the chunk of a dead worker to another worker, with the same results. Workers
return their chunks, so they need no shared disk.
"""

from __future__ import annotations

import os
import pickle
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi.apps.studies.chunks import Chunk
from psiphi.apps.studies.zarr_store import EXTRA, code_key
from psiphi.backends.cpu.threads import cancellation, get_threads, set_threads

ChunkRows = dict[str, np.ndarray]
IN_FLIGHT = 2  # chunks in this process: one is sampled or written while the other is computed
SCHEDULER_TIMEOUT = 20  # seconds
TICK = 0.2  # seconds between two calls of `waiting`


def compute_chunks(
    chunk: Chunk,
    missing: Iterable[int],
    scheduler: object,
    waiting: Callable[[], None] = lambda: None,
) -> Generator[tuple[int, ChunkRows], None, None]:
    """(number, rows) of the missing chunks, in the order in which they finish.

    In this process `waiting` is called a few times per second. Close the iterator to cancel the
    chunks that are not finished.
    """
    if scheduler is None:
        yield from _run_locally(chunk, missing, waiting)
    else:
        yield from _run_on_cluster(chunk, missing, scheduler)


def _run_locally(
    chunk: Chunk, missing: Iterable[int], waiting: Callable[[], None]
) -> Iterator[tuple[int, ChunkRows]]:
    left, stopped = iter(missing), threading.Event()
    running: dict[Future[ChunkRows], int] = {}

    def compute(number: int) -> ChunkRows:
        cancellation.set(stopped)
        return chunk.run(chunk.config.numbers(number))

    pool = ThreadPoolExecutor(min(IN_FLIGHT, get_threads()), thread_name_prefix="psiphi-study")
    try:
        while True:
            while len(running) < IN_FLIGHT and (number := next(left, None)) is not None:
                running[pool.submit(compute, number)] = number
            if not running:
                return
            waiting()
            ready, _ = wait(running, return_when=FIRST_COMPLETED, timeout=TICK)
            for future in ready:
                yield running.pop(future), future.result()
    finally:  # after an interrupt the threads end by themselves, at the next piece
        stopped.set()
        pool.shutdown(wait=not running, cancel_futures=True)


def _run_on_cluster(
    chunk: Chunk, missing: Iterable[int], scheduler: object
) -> Iterator[tuple[int, ChunkRows]]:
    distributed = import_optional("distributed", "a study on a cluster", EXTRA)
    with _client(distributed, scheduler) as client:
        sent = pickle.dumps(chunk)  # a few kB per task: a new worker needs no other data
        left = iter(missing)
        limit = 2 * max(1, sum(client.nthreads().values())) + 2
        running = distributed.as_completed(with_results=False)
        pending = {_submit(client, sent, number) for number in islice(left, limit)}
        running.update(pending)
        try:
            for future in running:
                try:
                    number, rows = future.result()
                except distributed.KilledWorker as error:
                    cause = f"several workers died one after another on the same chunk: {error}"
                    raise Error(cause, "check their memory; a smaller chunk needs less") from error
                pending.discard(future)
                future.release()
                if (following := next(left, None)) is not None:
                    pending.add(added := _submit(client, sent, following))
                    running.add(added)
                yield number, rows
        finally:
            if pending:
                client.cancel(list(pending))


def _submit(client: Any, sent: bytes, number: int) -> Any:
    return client.submit(on_worker, sent, number, code_key(), os.getpid(), pure=False)


@lru_cache(4)
def _unpickle(sent: bytes) -> Chunk:
    return pickle.loads(sent)


def on_worker(sent: bytes, number: int, code: str, sender: int) -> tuple[int, ChunkRows]:
    """Compute one chunk on a worker, on one thread: the cluster has one thread per task."""
    if code != code_key():
        raise Error(
            "a worker has another psiphi or NumPy, so results may differ in the last bits",
            "install the same versions on all workers",
        )
    if os.getpid() != sender:
        set_threads(1)
    chunk = _unpickle(sent)
    return number, chunk.run(chunk.config.numbers(number))


def _client(distributed: ModuleType, scheduler: object) -> AbstractContextManager[Any]:
    """The client `scheduler`, or a new client for the address `scheduler`."""
    if isinstance(scheduler, distributed.Client):
        return nullcontext(scheduler)  # the caller closes it
    if not isinstance(scheduler, str) or not re.fullmatch(r"\w+://\S+", scheduler):
        raise Error(
            f"scheduler is {shown(scheduler)}, expected an address or a Client",
            'pass "tcp://host:8786"',
        )
    try:
        return distributed.Client(scheduler, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Error(
            f"no scheduler answers at {shown(scheduler)}: {reason}",
            "start `dask scheduler` and workers",
        ) from error
