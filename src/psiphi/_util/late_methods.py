"""Methods that are implemented in a later package than their class.

`robot.step` needs integrators, and integrators need robots. So the class `Robot` only declares
`step`. `psiphi/__init__.py`, which may import every package, lists the function's module in
`LATE_METHODS`, and `with_late_methods` adds the function to the class at its first use.
"""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

LATE_METHODS: dict[str, dict[str, str]] = {}  # {class: {method: "module:function"}}
C = TypeVar("C", bound=type)


class LateMethod:
    """A descriptor that imports a method's function at the first access and is replaced by it."""

    def __init__(self, owner: type, name: str, target: str):
        self.owner, self.name = owner, name
        self.module, _, self.function = target.partition(":")

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        function = getattr(importlib.import_module(self.module), self.function)
        setattr(self.owner, self.name, function)
        return function.__get__(instance, owner)


def with_late_methods(cls: C) -> C:
    """Class decorator: add the methods that `LATE_METHODS` lists for the class."""
    for name, target in LATE_METHODS[cls.__name__].items():
        setattr(cls, name, LateMethod(cls, name, target))
    return cls
