"""From code to a library that runs on a target, through the cache."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from psiphi.backends import kernel_cache
from psiphi.backends.target import RunningTarget
from psiphi.compiler.ir.loop_tables import LoopTables
from psiphi.compiler.passes import code, in_loops
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.tape.tape import Count


def compile(
    asked: Any, target: RunningTarget, char: str, key: Callable[[str], str]
) -> tuple[Any, Count]:
    """What is asked, as a library that runs on a target, and its exact cost; `key` gives its name in the cache."""

    def make() -> bytes:
        lines = code(asked)
        return target.build(target.emit(lines, char), vars(lines.count))

    library, count = target.load(kernel_cache.remember(key(char), make))
    if in_loops(asked) and isinstance(loops := code(asked), LinkLoops):
        library.tables = LoopTables(loops, char)
        ctypes.c_void_p.from_address(library.address("tables")).value = library.tables.address
    return library, Count(**count)
