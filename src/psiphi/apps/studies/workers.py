"""Who computes the chunks: this process, whose kernels take all its threads, or the workers of a Dask cluster.

Here a chunk is drawn and written while the next one is computed. There a worker that dies costs the chunk it had: Dask gives it
to another, and the numbers are the same. Workers hand their chunks back, so that they need no common disk.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import nullcontext
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi.apps.studies.chunks import Chunk
from psiphi.apps.studies.zarr_store import EXTRA, code_key
from psiphi.backends.cpu.threads import get_threads, set_threads

KeptRows = dict[str, np.ndarray]
AHEAD = 2  # chunks in work here: one is drawn or written while the kernel has the other
PATIENCE = 20  # seconds a scheduler may take to answer


def computed(chunk: Chunk, wanted: Iterable[int], scheduler: Any) -> Iterator[tuple[int, KeptRows]]:
    """(number, rows) of the wanted chunks, in the order in which they are ready."""
    if scheduler is None:
        yield from _here(chunk, wanted)
    else:
        yield from _there(chunk, wanted, scheduler)


def _here(chunk: Chunk, wanted: Iterable[int]) -> Iterator[tuple[int, KeptRows]]:
    left = iter(wanted)
    with ThreadPoolExecutor(min(AHEAD, get_threads()), thread_name_prefix="psiphi-study") as pool:
        running: dict[Any, int] = {}
        try:
            while True:
                while len(running) < AHEAD and (number := next(left, None)) is not None:
                    running[pool.submit(chunk.run, chunk.asked.numbers(number))] = number
                if not running:
                    return
                ready, _ = wait(running, return_when=FIRST_COMPLETED, timeout=1.0)
                for future in ready:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()


def _there(chunk: Chunk, wanted: Iterable[int], scheduler: Any) -> Iterator[tuple[int, KeptRows]]:
    distributed = import_optional("distributed", "a study on a cluster", EXTRA)
    with _client(distributed, scheduler) as client:
        sent = pickle.dumps(chunk)  # some kB with every task: what lies on a worker is lost with it
        left = iter(wanted)
        most = 2 * max(1, sum(client.nthreads().values())) + 2
        running = distributed.as_completed(with_results=False)
        for number in islice(left, most):
            running.add(_submitted(client, sent, number))
        for future in running:
            try:
                number, rows = future.result()
            except distributed.KilledWorker as error:
                cause = f"several workers died, one after another, at one chunk: {error}"
                raise Error(cause, "look at their memory; a smaller chunk takes less") from error
            future.release()
            if (more := next(left, None)) is not None:
                running.add(_submitted(client, sent, more))
            yield number, rows


def _submitted(client: Any, sent: bytes, number: int) -> Any:
    return client.submit(on_worker, sent, number, code_key(), os.getpid(), pure=False)


@lru_cache(4)
def _unpacked(sent: bytes) -> Chunk:
    return pickle.loads(sent)


def on_worker(sent: bytes, number: int, code: str, asker: int) -> tuple[int, KeptRows]:
    """One chunk on a worker, on one thread, as the cluster has one for each of its tasks."""
    if code != code_key():
        raise Error(
            "a worker has another psiphi or NumPy, whose last bits may differ",
            "install the same on all of them",
        )
    if os.getpid() != asker:
        set_threads(1)
    chunk = _unpacked(sent)
    return number, chunk.run(chunk.asked.numbers(number))


def _client(distributed: Any, scheduler: Any) -> Any:
    """A client of one's own, or of the scheduler at an address."""
    if isinstance(scheduler, distributed.Client):
        return nullcontext(scheduler)  # it stays open
    if not isinstance(scheduler, str) or not re.fullmatch(r"\w+://\S+", scheduler):
        raise Error(
            f"scheduler is {shown(scheduler)}, expected an address or a Client",
            'give "tcp://host:8786"',
        )
    try:
        return distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError, AttributeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise Error(
            f"no scheduler answers at {shown(scheduler)}: {why}",
            "start one with `dask scheduler`, and workers",
        ) from error
