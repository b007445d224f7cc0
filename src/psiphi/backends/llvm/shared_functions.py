"""Functions that kernels share, compiled once per process and loaded once.

Every kernel packs its arguments, unpacks its results and takes sines with functions that depend on
the dtype and the lanes but not on the robot: for a small robot, most of the text. `split` takes
them out of a kernel's text; `compiled` and `loaded` keep the object code and the addresses.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from psiphi.backends.llvm import jit

NAMES = r"psiphi\.(?:sincos|angles)|(?:pack|unpack|deliver)\d*"  # before the suffix of the width
_FUNCTION = re.compile(
    rf"^define internal (?P<head>[^\n]*@(?P<name>(?:{NAMES})\.\w+)\([^\n]*?\))[^\n]*\{{\n"
    r".*?^\}\n",
    re.MULTILINE | re.DOTALL,
)
_DECLARATION = re.compile(r"^declare [^\n]*@([\w.]+)\([^\n]*\n", re.MULTILINE)
_NAME = re.compile(r"@([\w.]+)")


class SharedText(NamedTuple):
    """The text of a module, and the names of the functions that it defines."""

    text: str
    names: tuple[str, ...]


def split(text: str) -> tuple[str, list[SharedText]]:
    """The text of a kernel with its shared functions declared, and the modules that define them:
    one of those that every kernel has, one for each other function.

    A function that uses anything else of the kernel stays where it is.
    """
    outside = {found[1]: found[0] for found in _DECLARATION.finditer(text)}
    common: dict[str, str] = {}
    others: dict[str, str] = {}

    def take_out(found: re.Match[str]) -> str:
        name = found["name"]
        if set(_NAME.findall(found[0])) - {name} - outside.keys() - common.keys():
            return found[0]
        group = others if name.partition(".")[0][-1].isdigit() else common
        group[name] = found[0].replace("define internal ", "define ", 1)
        return f"declare {found['head']}\n"

    rest = _FUNCTION.sub(take_out, text)
    groups = [common, *({name: body} for name, body in others.items())]
    return rest, [_module(group, outside) for group in groups if group]


def _module(functions: dict[str, str], outside: dict[str, str]) -> SharedText:
    text = "".join(functions.values())
    declared = sorted(set(_NAME.findall(text)) & outside.keys())
    return SharedText("".join(outside[name] for name in declared) + text, tuple(functions))


def compiled(text: str) -> bytes:
    """The object code of a module of shared functions."""
    return _compiled(text, jit.OPT_LEVEL, jit.host())


@lru_cache(maxsize=256)
def _compiled(text: str, level: int, _processor: jit.Processor) -> bytes:
    return jit.compile_ir(text, level)


def loaded(code: bytes, names: Iterable[str]) -> dict[str, jit.Address]:
    """The addresses of shared functions; equal code is loaded once per process and kept."""
    with jit.LOCK:
        key = hashlib.sha256(code).digest()
        if key not in _libraries:
            _libraries[key] = jit.load_object(code, list(names), keep=True)
        library = _libraries[key]
        return {name: library.address(name) for name in names}


_libraries: dict[bytes, jit.Library] = {}
