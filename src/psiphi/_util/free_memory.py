"""How much memory is free: what the system says, and what limits on this process leave of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def free_memory() -> float:
    """Bytes; infinite where nothing is known."""
    return max(0.0, min((*_system(), *_container(), *_limit()), default=math.inf))


def _system() -> Iterator[float]:
    """What can be had without swapping: Linux says it; others say how much memory they have."""
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield 1024.0 * int(line.split()[1])
            return
    try:
        yield float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return


def _container() -> Iterator[float]:
    """What a container leaves; its caches count as used, but are given back."""
    for most, now in CGROUPS:
        limit, used = (_text(f"/sys/fs/cgroup/{name}").strip() for name in (most, now))
        if limit.isdigit() and used.isdigit():
            yield float(int(limit) - int(used) + _cached())


def _cached() -> int:
    lines = (line.split() for line in _text("/sys/fs/cgroup/memory.stat").splitlines())
    return sum(
        int(words[1])
        for words in lines
        if words[0] in ("inactive_file", "active_file", "slab_reclaimable")
    )


def _limit() -> Iterator[float]:
    """What `ulimit -v` leaves."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(_text("/proc/self/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, IndexError, ValueError, OSError):
        return
    if limit != resource.RLIM_INFINITY:
        yield float(limit - used)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
