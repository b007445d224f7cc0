"""Methods that are implemented in a later package than their class.

`robot.step` needs integrators, and integrators need robots. So the class `Robot` only declares
`step`; `psiphi/__init__.py`, which may know every package, lists in `LATE_METHODS` where the
function is, and `with_late_methods` puts it into the class when it is first looked up.
"""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

LATE_METHODS: dict[str, dict[str, str]] = {}  # {class: {method: "module:function"}}
C = TypeVar("C", bound=type)


class LateMethod:
    """Imports the function of a method at the first access, and replaces itself by it."""

    def __init__(self, owner: type, name: str, place: str):
        self.owner, self.name = owner, name
        self.module, _, self.function = place.partition(":")

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        function = getattr(importlib.import_module(self.module), self.function)
        setattr(self.owner, self.name, function)
        return function.__get__(instance, owner)


def with_late_methods(cls: C) -> C:
    """Give a class the methods that `LATE_METHODS` lists for it."""
    for name, place in LATE_METHODS[cls.__name__].items():
        setattr(cls, name, LateMethod(cls, name, place))
    return cls
