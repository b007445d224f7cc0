"""How much memory is free: the least of what the system, the container and `ulimit` allow."""

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
    """Free memory in bytes; infinite if unknown."""
    return max(0.0, min((*_system(), *_container(), *_limit()), default=math.inf))


def _system() -> Iterator[float]:
    """Memory available without swapping on Linux; all physical memory on other systems."""
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield 1024.0 * int(line.split()[1])
            return
    try:
        yield float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return


def _container() -> Iterator[float]:
    """The container's limit less its usage; caches count as usage but can be reclaimed."""
    for names in CGROUPS:
        limit, used = (_text(f"/sys/fs/cgroup/{name}").strip() for name in names)
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
    """The limit of `ulimit -v` less the process's address space."""
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
