"""Compile a request to a library of a target, or load it from the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi.backends import kernel_cache
from psiphi.backends.target import RunningTarget
from psiphi.compiler.equations import CompileRequest
from psiphi.compiler.ir.loop_tables import LoopTables
from psiphi.compiler.passes import code, needs_tables
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.tape.tape import Count


def compile(
    request: CompileRequest,
    target: RunningTarget,
    char: str,
    key: Callable[[str], str],
    what: str = "",
) -> tuple[Any, Count]:
    """The compiled request as a library of the target, and its exact cost. `key(char)` is its name
    in the cache, `what` that for the user."""

    def make() -> bytes:
        lines = code(request)
        return target.build(target.emit(lines, char), vars(lines.count))

    library, count = target.load(kernel_cache.fetch_or_build(key(char), make, what))
    if needs_tables(request) and isinstance(loops := code(request), LinkLoops):
        library.tables = LoopTables(loops, char)
        library.set_pointer("tables", library.tables.address)
    return library, Count(**count)
